"""Traffic of several ports of a card at once: the sum of their rates, figures by port, and refusals."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

import nicety as package
from nicety._generated.types import LineRateRow, PortFigures
from nicety.bench.line_rate import line_rate_text, words_of
from nicety.bench.places.pictures import line_rate_figure
from test_traffic import BYTES, COUNTS, FAST, SLOW, frame, pcap, write

FRAMES = """
#include <frame.h>
__handler int frame_handler(const frame_t *frame, void *state) {
    (void)state;
    const uint8_t *data = frame->data;
    const uint32_t port = data[36] << 8 | data[37];
    if (port == 7)
        return FRAME_DROP;
    frame_swap(frame->data, frame->data + 6, 6);
    return FRAME_WIRE;
}
"""


def check(
    source: Path, traffic: Sequence[str], *overrides: str, nic: str = "spin-discrete", **more: Any
) -> tuple[LineRateRow, list[PortFigures]]:
    changes = [f"link.ports={len(traffic)}", *([FAST] if nic == "spin-discrete" else []), *overrides]
    (row,) = package.check_line_rate(source, nics=nic, traffic=traffic, overrides=changes, **more)["rows"]
    figures = row["traffic"]
    ports = figures.get("ports", [])
    for port in ports:
        assert port["handled"] == port["passed"] + port["dropped_by_handler"] + port["failed"]
        assert port["offered"] == port["handled"] + port["dropped_by_overload"]
        assert port["latency_ns_p50"] <= port["latency_ns_p99"] <= port["latency_ns_max"]
    if ports:
        for key in ("offered", "offered_bytes", "handled", "passed", "dropped_by_handler", "dropped_by_overload"):
            assert dict(figures)[key] == sum(dict(port)[key] for port in ports), key
        assert figures["latency_ns_max"] == max(port["latency_ns_max"] for port in ports)
        assert [(port["port"], port["traffic"]) for port in ports] == list(enumerate(traffic))
    return row, ports


@pytest.mark.parametrize(
    ("rates", "verdict"), [((3, 3), "yes"), ((6, 3), "barely"), ((6, 6), "no"), ((3, 3, 3.5), "barely")]
)
def test_a_card_has_to_keep_up_with_the_sum(tmp_path: Path, rates: tuple[float, ...], verdict: str) -> None:
    """1000 cycles of 0.4 ns on 4 processors: 10 packets per microsecond from all ports together."""
    traffic = [f"udp size=64 rate={1000 * rate:.0f}kpps packets=4k" for rate in rates]
    row, ports = check(write(tmp_path, SLOW), traffic)
    assert row["line_rate_packets_per_s"] == pytest.approx(1e6 * sum(rates), rel=1e-3)
    assert row["loads"]["hpus"] == pytest.approx(sum(rates) / 10, rel=0.01)
    assert row["verdict"] == verdict
    # The port with the highest rate ends first, and the others with it.
    assert ports[rates.index(max(rates))]["offered"] == 4000
    if verdict != "no":
        for port, rate in zip(ports, rates, strict=True):
            assert port["offered"] == pytest.approx(4000 * rate / max(rates), abs=2)


def test_two_ports_bring_twice_what_one_wire_carries(tmp_path: Path) -> None:
    source = write(tmp_path, FRAMES)
    traffic = ["udp size=1500 packets=2k", "udp size=1500 dport=7 packets=2k"]
    row, ports = check(source, traffic, nic="spin-100g")
    # 1524 bytes of the wire per frame, at 100 Gb/s.
    wire = 1e9 / (row["packet_wire_bytes"] * 0.08)
    assert row["line_rate_packets_per_s"] == pytest.approx(2 * wire, rel=1e-3)
    assert row["line_rate_fraction"] > 0.99
    assert [port["offered_ns"] for port in ports] == pytest.approx([2e12 / wire, 2e12 / wire], rel=0.01)
    # Arrivals at port 0 go back, and fill its outgoing link; no frame leaves by the other one.
    assert (ports[0]["passed"], ports[1]["passed"]) == (ports[0]["offered"], 0)
    assert row["loads"]["link"] == pytest.approx(1, rel=0.01)
    # The same two flows by one port take twice as long.
    (one,) = package.check_line_rate(source, nics="spin-100g", traffic="udp size=1500 packets=4k")["rows"]
    assert one["line_rate_packets_per_s"] == pytest.approx(wire, rel=1e-3)
    assert "ports" not in one["traffic"]


GROWS = """#include <frame.h>
__handler int frame_handler(const frame_t *frame, void *state) {
    frame_swap(frame->data, frame->data + 6, 6);
    frame_push(frame, 40);
    frame_swap(frame->data, frame->data + 40, 12);
    return FRAME_WIRE;
}
"""
ECHO = """#include <frame.h>
__handler int frame_handler(const frame_t *frame, void *state) {
    frame_swap(frame->data, frame->data + 6, 6);
    return FRAME_WIRE;
}
"""


@pytest.mark.parametrize("address", ["{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}", "{0x02, 0x00, 0x00, 0x00, 0x01, 0x00}"])
@pytest.mark.parametrize("ports", [1, 2])
def test_frames_for_nobody_fill_the_link_by_which_they_came(tmp_path: Path, address: str, ports: int) -> None:
    """To all stations, and to one that is not there, as a next hop."""
    source = write(
        tmp_path,
        f"""#include <frame.h>
        __handler int frame_handler(const frame_t *frame, void *state) {{
            static const uint8_t address[6] = {address};
            __builtin_memcpy(frame->data, address, 6);
            return FRAME_WIRE;
        }}""",
    )
    row, _ = check(source, ["udp size=256 packets=3k", "udp size=256 rate=1Gbps"][:ports], nic="spin-100g")
    figures = row["traffic"]
    assert figures["unknown_destination"] == figures["offered"] == figures["passed"]
    assert row["loads"]["link"] == pytest.approx(1, rel=1e-3)
    assert (row["verdict"], row["bottleneck"]) == ("barely", "link")
    told = (
        f"traffic: {figures['offered']} frames that handlers sent have a destination address that no station here has"
    )
    assert any(text.startswith(told) for text in words_of([row]))


@pytest.mark.parametrize("overload", ["lossy", "pfc", "credits"])
def test_a_port_is_overloaded_whatever_the_others_have_to_do(tmp_path: Path, overload: str) -> None:
    more = {} if overload == "credits" else {overload: True}
    # 84 bytes of the wire arrive per frame, and 124 leave.
    row, _ = check(
        write(tmp_path, GROWS), ["udp size=60 packets=20k", "udp size=60 rate=1Gbps"], nic="spin-100g", **more
    )
    assert (row["verdict"], row["bottleneck"]) == ("no", "link")
    assert row["loads"]["link"] == pytest.approx(124 / 84, rel=0.01)
    lost = row["traffic"]["dropped_at_link"]
    # 40 of 124 frames, except for those in their queue.
    assert (0.1 * 20_000 < lost < 20_000 * 40 / 124) if overload == "lossy" else lost == 0


def test_frames_that_leave_in_bursts_and_find_no_room_are_no_yes(tmp_path: Path) -> None:
    source = write(tmp_path, ECHO.replace("frame_swap(frame->data, frame->data + 6, 6);", "frame->data[5] = 0;"))
    burst = "udp size=1500 rate=20Gbps arrivals=burst:2000 packets=4k"
    row, ports = check(source, [burst, burst], nic="spin-100g", lossy=True)
    figures = row["traffic"]
    lost = figures["dropped_at_link"]
    # Two concurrent bursts go to the port of the first: half of the frames, except for those in its queue.
    assert 3000 < lost < 4000
    assert [port["dropped_at_link"] for port in ports] == [lost, 0]
    assert row["loads"]["link"] < 0.9
    assert (row["verdict"], row["bottleneck"]) == ("no", "link")
    assert row["capacity_fraction"] == pytest.approx(1 - lost / 8000)
    assert f"{lost} frames that handlers sent found no room before their port, and were lost." in " ".join(
        words_of([row])
    )


def test_ports_with_other_traffic_fill_their_ways_out_each(tmp_path: Path) -> None:
    row, _ = check(write(tmp_path, ECHO), ["udp size=60 packets=3k", "udp size=1514 packets=3k"], nic="spin-100g")
    assert (row["verdict"], row["bottleneck"]) == ("barely", "link")
    assert row["loads"]["link"] == pytest.approx(1, rel=1e-3)


def test_all_ports_end_with_the_first_one(tmp_path: Path) -> None:
    """Also one with a next packet long after that."""
    source = write(tmp_path, COUNTS)
    capture = tmp_path / "rare.pcap"
    capture.write_bytes(pcap([(0, frame(100, 7)), (90_000, frame(100, 7)), (10**9, frame(100, 7))]))
    row, ports = check(source, [f"capture={capture}", "udp size=64 rate=10Mpps packets=1k"])
    assert [port["offered"] for port in ports] == [2, 1000]
    assert (ports[0]["dropped_by_handler"], ports[1]["passed"]) == (2, 1000)
    # 100 us, not the second until the capture's last packet.
    assert row["line_rate_fraction"] > 0.98
    assert row["verdict"] == "yes"


@pytest.mark.parametrize("overload", ["lossy", "pfc", "credits"])
def test_a_full_buffer_holds_up_all_ports(tmp_path: Path, overload: str) -> None:
    more = {} if overload == "credits" else {overload: True}
    traffic = ["udp size=64 rate=10Mpps packets=4k", "udp size=64 rate=10Mpps packets=4k"]
    row, ports = check(write(tmp_path, SLOW), traffic, **more)
    assert (row["verdict"], row["bottleneck"]) == ("no", "handler cores")
    assert row["capacity_fraction"] == pytest.approx(0.5, rel=0.02)
    assert row["traffic"]["overload_policy"] == overload
    shares = [port["dropped_by_overload"] / port["offered"] for port in ports]
    assert shares == (pytest.approx([0.5 - 128 / 4000] * 2, abs=0.06) if overload == "lossy" else [0, 0])
    assert (row["traffic"]["paused_ns"] > 0) is (overload == "pfc")


def test_a_port_that_waits_does_not_change_the_mix(tmp_path: Path) -> None:
    """One port at the wire's rate, one at a lower one: together they need the sum of their separate needs."""
    source = write(tmp_path, BYTES["spin-100g"])
    traffic = ["udp size=60:3,1514:1 packets=3k", "udp size=1500 rate=10Gbps packets=3k"]
    apart = [package.check_line_rate(source, nics="spin-100g", traffic=alone)["rows"][0] for alone in traffic]
    load = sum(row["loads"]["hpus"] for row in apart)
    assert load > 2
    for overload in ("credits", "lossy", "pfc"):
        more = {} if overload == "credits" else {overload: True}
        row, ports = check(source, traffic, nic="spin-100g", **more)
        assert row["loads"]["hpus"] == pytest.approx(load, rel=0.01), overload
        assert row["capacity_fraction"] == pytest.approx(1 / load, rel=0.03)
        # 10 Gb/s of 1500 bytes is a packet every 1.2 us, during the other port's packets.
        assert ports[0]["offered"] == 3000
        assert ports[1]["offered"] == pytest.approx(ports[0]["offered_ns"] / 1200, abs=1)


def test_one_expression_is_for_one_port_however_many_there_are(tmp_path: Path) -> None:
    source = write(tmp_path, COUNTS)
    alone = check(source, ["udp size=64 packets=500"])[0]
    of_four = check(source, ["udp size=64 packets=500"], "link.ports=4")[0]
    assert alone == of_four


def test_ports_in_words_and_pictures(nicety: Callable, tmp_path: Path) -> None:
    write(tmp_path, COUNTS)
    traffic = [
        "--traffic",
        "udp size=64:1,128:1 rate=1Mpps packets=1k",
        "--traffic",
        "udp dport=7 rate=500kpps packets=1k",
    ]
    command = ["bench", "handlers", "mine.c", "--nic", "spin-discrete", "--set", "link.ports=2", *traffic]
    result = nicety(*command, "--csv", "f.csv", "--plot", "f.png")
    assert result.status == 0, result.stderr
    report = nicety(*command, "--json").json()
    assert result.stdout == line_rate_text(report)
    assert "# port 0: udp size=64:1,128:1 rate=1Mpps packets=1k\n# port 1: udp dport=7 rate=500kpps" in result.stdout
    table = [line.split() for line in result.stdout.splitlines() if line.split()[:1] in (["0"], ["1"], ["all"])]
    assert [line[:5] for line in table] == [
        ["0", "1000", "1000", "1000", "0"],
        ["1", "500", "500", "0", "500"],
        ["all", "1500", "1500", "1000", "500"],
    ]
    assert "traffic_ports_1_latency_ns_p999" in (tmp_path / "f.csv").read_text()
    figure = line_rate_figure(report)
    figure.draw_without_rendering()
    legend = figure.axes[2].get_legend()
    assert legend is not None
    assert [text.get_text().split("\n") for text in legend.get_texts()] == [
        ["passed", "port 0: 100.0%", "port 1: 0.0%", "all ports: 66.7%"],
        ["dropped by handlers", "port 0: 0.0%", "port 1: 100.0%", "all ports: 33.3%"],
    ]
    labels = [tick.get_text().split("\n")[0] for tick in figure.axes[2].get_yticklabels()]
    assert labels == ["spin-discrete, port 0", "spin-discrete, port 1", "spin-discrete, all ports"]


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (
            ["--traffic", "udp", "--traffic", "udp"],
            (
                "--traffic: 2 expressions need 2 ports of a card, but spin-discrete has 1 port; leave some "
                "out, or write --set link.ports=2"
            ),
        ),
        (
            ["--traffic", "udp", "--traffic", "udp", "--traffic", "udp", "--set", "link.ports=2"],
            "3 expressions need 3 ports of a card, but spin-discrete has 2 ports",
        ),
        (["--traffic", "udp", "--traffic", "udp dprt=53", "--set", "link.ports=2"], "column 5: there is no key dprt"),
        (["--traffic", "udp", "--traffic", "udp to=1", "--set", "link.ports=2"], "--traffic: to is for host programs"),
        (["--set", "link.ports=65"], "from 1 to 64"),
        (["--nic", "apenet-v5", "--set", "link.ports=2"], "link.ports"),
    ],
)
def test_ports_that_no_card_has_are_refused(nicety: Callable, tmp_path: Path, options: list[str], text: str) -> None:
    write(tmp_path, COUNTS)
    nic = [] if "--nic" in options else ["--nic", "spin-discrete"]
    result = nicety("bench", "handlers", "mine.c", *nic, *options)
    assert (result.status, result.stdout) == (2, "")
    assert text in " ".join(result.stderr.split())


def test_sensitivity_moves_values_for_all_ports(tmp_path: Path) -> None:
    row, _ = check(write(tmp_path, SLOW), ["udp size=64 rate=3Mpps packets=400"] * 2, sensitivity=True)
    assert row["sensitivity"]["varied"] > 30
