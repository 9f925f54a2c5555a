"""Traffic of line-rate checks: captures and generated packets, loss and pauses, counts that add up, and refusals."""

from __future__ import annotations

import gzip
import struct
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

import nicety as package
from nicety._generated.types import LineRateRow, TrafficFigures
from nicety.bench.line_rate import line_rate_text, words_of
from nicety.bench.places.pictures import line_rate_figure
from nicety.bench.words.shortfalls import shortfalls
from nicety.build.compiler import library_source

# Counts frames by their destination port in the state, and drops those to port 7.
COUNTS = """
#include <nicety.h>
__handler int payload_handler(const ptl_payload_t p, void *state) {
    const uint8_t *frame = (const uint8_t *)p.base;
    if (frame[12] != 8 || p.length < 42)
        return FAIL;
    const uint32_t port = frame[36] << 8 | frame[37];
    return port == 7 ? DROP : SUCCESS;
}
"""
SLOW = """
#include <nicety.h>
__handler __attribute__((naked)) int payload_handler(const ptl_payload_t p, void *state) {
    __asm__ volatile(".rept 997\\n nop\\n .endr\\n li a0, 0\\n ret");
}
"""
# Some cycles per byte: of messages and of frames.
BYTES = {
    "spin-discrete": """
#include <nicety.h>
__handler int payload_handler(const ptl_payload_t p, void *state) {
    const volatile uint8_t *bytes = (const uint8_t *)p.base;
    for (ptl_size_t i = 0; i < p.length; i++)
        (void)bytes[i];
    return SUCCESS;
}
""",
    "spin-100g": """
#include <frame.h>
__handler int frame_handler(const frame_t *frame, void *state) {
    const volatile uint8_t *bytes = frame->data;
    for (uint32_t i = 0; i < frame->length; i++)
        (void)bytes[i];
    return FRAME_DROP;
}
""",
}
# Faster matching: a packet is a message, and each of them takes a search.
FAST = "match.first=1 ns"


def write(folder: Path, text: str) -> Path:
    path = folder / "mine.c"
    path.write_text(text)
    return path


def frame(size: int, port: int) -> bytes:
    head = bytes(12) + b"\x08\x00\x45" + bytes(19) + bytes(2) + port.to_bytes(2, "big")
    return head + bytes(size - len(head))


def pcap(packets: Sequence[tuple[int, bytes]], link: int = 1, cut: int = 0) -> bytes:
    """A capture of packets with their times in nanoseconds; each had `cut` more bytes on the wire."""
    text = struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 65535, link)
    for time, packet in packets:
        text += struct.pack("<IIII", time // 10**9, time % 10**9, len(packet), len(packet) + cut) + packet
    return text


def check(source: Path, traffic: str, *overrides: str, **more: Any) -> tuple[LineRateRow, TrafficFigures]:
    (row,) = package.check_line_rate(
        source, nics="spin-discrete", traffic=traffic, overrides=[FAST, *overrides], **more
    )["rows"]
    figures = row["traffic"]
    parts = [figures["passed"], figures["dropped_by_handler"], figures["failed"]]
    assert figures["handled"] == sum(parts) == row["packets"]
    assert figures["offered"] == figures["handled"] + figures["dropped_by_overload"]
    times = [
        figures["latency_ns_p50"],
        figures["latency_ns_p99"],
        figures["latency_ns_p999"],
        figures["latency_ns_max"],
    ]
    assert times == sorted(times)
    return row, figures


@pytest.mark.parametrize("packed", [False, True])
def test_a_capture_comes_at_its_times(tmp_path: Path, packed: bool) -> None:
    source = write(tmp_path, COUNTS)
    packets = [(number * 1000, frame(100 + number % 50, 7 if number % 4 == 0 else 53)) for number in range(200)]
    capture = tmp_path / "my.pcap"
    capture.write_bytes(gzip.compress(pcap(packets)) if packed else pcap(packets))
    row, figures = check(source, f"capture={capture}")
    assert (figures["offered"], figures["dropped_by_handler"], figures["passed"]) == (200, 50, 150)
    assert figures["offered_bytes"] == sum(len(packet) for _, packet in packets)
    # 199 gaps of a microsecond, and one more after the last packet.
    assert figures["offered_ns"] == 200_000
    assert row["verdict"] == "yes"
    # A match of 1 ns, and the handler: no packet waits for another.
    assert figures["latency_ns_max"] == pytest.approx(1 + row["cycles_mean"] * 0.4, abs=3)
    _, again = check(source, f"capture={capture} loop packets=1000 rate=2Mpps")
    assert (again["offered"], again["dropped_by_handler"]) == (1000, 250)
    assert again["offered_ns"] == 500_000


@pytest.mark.parametrize(
    ("arrivals", "load", "waits"), [("paced", 0.5, False), ("poisson", 0.5, True), ("burst:64", 0.5, True)]
)
def test_bursts_wait_where_paced_packets_do_not(tmp_path: Path, arrivals: str, load: float, waits: bool) -> None:
    source = write(tmp_path, SLOW)
    # 1000 cycles of 0.4 ns on 4 processors: 10 packets per microsecond.
    traffic = f"udp size=64 rate={10 * load}Mpps arrivals={arrivals} packets=4k"
    row, figures = check(source, traffic)
    assert row["loads"]["hpus"] == pytest.approx(load)
    assert row["verdict"] == "yes"
    assert (figures["latency_ns_p99"] > 500) is waits
    assert figures["latency_ns_p50"] >= 400
    assert check(source, traffic)[1] == figures
    if waits and arrivals == "poisson":
        assert check(source, traffic, seed=2)[1] != figures


@pytest.mark.parametrize(("overload", "lost"), [({}, False), ({"lossy": True}, True), ({"pfc": True}, False)])
def test_a_full_buffer_drops_or_pauses_or_holds_credits(tmp_path: Path, overload: dict[str, bool], lost: bool) -> None:
    source = write(tmp_path, SLOW)
    row, figures = check(source, "udp size=64 rate=20Mpps packets=4k", **overload)
    # Twice the number that the processors handle.
    assert (row["verdict"], row["bottleneck"]) == ("no", "handler cores")
    assert row["capacity_fraction"] == pytest.approx(0.5)
    assert figures["overload_policy"] == (next(iter(overload), "credits"))
    share = figures["dropped_by_overload"] / figures["offered"]
    # All but the buffer's 256.
    assert share == (pytest.approx(0.5 - 256 / 4000, abs=0.02) if lost else 0)
    assert (figures["paused_ns"] > 0) is ("pfc" in overload)
    # With loss, the part that came through; otherwise the rate of all.
    assert row["line_rate_fraction"] == (1 - share if lost else pytest.approx(0.5, rel=0.01))
    # 256 packets wait for four processors of 400 ns.
    assert figures["latency_ns_max"] == pytest.approx(256 * 100, rel=0.05)


@pytest.mark.parametrize(("overload", "far"), [({}, True), ({"lossy": True}, False)])
def test_a_long_wire_takes_places_of_the_packet_buffer_with_credits_alone(
    tmp_path: Path, overload: dict[str, bool], far: bool
) -> None:
    source = write(tmp_path, SLOW)
    row, figures = check(source, "udp size=64 rate=5Mpps packets=4k", "link.latency=10us", **overload)
    (load,) = [part["load"] for part in row["parts"] if part["part"] == "packet buffer"]
    # One arrives every 200 ns for 256 places, and a credit takes 10 us each way.
    there_and_back = 20_000 if far else 0
    assert load == pytest.approx((figures["latency_ns_mean"] + there_and_back) / 200 / 256, rel=1e-2)
    assert row["verdict"] == "yes"
    # At a greater distance, a sender with credits does not have enough of them.
    row, _ = check(source, "udp size=64 rate=5Mpps packets=40k", "link.latency=100us", **overload)
    assert (row["verdict"], row["bottleneck"]) == (("no", "packet buffer") if far else ("yes", "handler cores"))


@pytest.mark.parametrize("packets", [2, 20, 200])
def test_too_few_packets_to_fill_the_buffer_still_say_that_more_would(tmp_path: Path, packets: int) -> None:
    row, _ = check(write(tmp_path, SLOW), f"udp size=64 rate=100Mpps packets={packets}")
    # 100 ns of the processors per packet, one every 10 ns.
    assert row["loads"]["hpus"] == pytest.approx(10)
    assert (row["verdict"], row["bottleneck"]) == ("no", "handler cores")
    assert row["capacity_fraction"] == pytest.approx(0.1)


@pytest.mark.parametrize("packets", [1000, 2000, 2500, 3000, 20_000])
def test_bursts_are_as_much_work_as_their_rate_however_many_there_are(tmp_path: Path, packets: int) -> None:
    source = write(tmp_path, SLOW)
    for mpps, verdict in [(7, "yes"), (9.5, "barely"), (10.5, "no")]:
        traffic = f"udp size=64 rate={1000 * mpps:.0f}kpps arrivals=burst:1000 packets={packets}"
        row, figures = check(source, traffic)
        assert row["loads"]["hpus"] == pytest.approx(mpps / 10)
        assert figures["offered_ns"] == pytest.approx(1000 * packets / mpps)
        assert (row["verdict"], row["bottleneck"]) == (verdict, "handler cores")
        assert row["capacity_fraction"] == pytest.approx(10 / mpps)


SELDOM = """
#include <nicety.h>
__handler int payload_handler(const ptl_payload_t p, void *state) {
    const uint32_t number = __atomic_fetch_add((uint32_t *)state, 1, __ATOMIC_RELAXED);
    for (uint32_t n = number % 100 == 99 ? 10000 : 10; n; n--)
        __asm__ volatile("");
    return SUCCESS;
}
"""


def test_the_sustainable_rate_is_independent_of_the_last_packet(tmp_path: Path) -> None:
    source = write(tmp_path, SELDOM)
    rows = [check(source, f"udp size=64 rate=50Mpps packets={packets}")[0] for packets in (100, 1000, 20_000)]
    # The mean of 99 packets and a long one, on four processors of 2.5 GHz.
    load = rows[0]["cycles_mean"] * 0.4 / 4 / 20
    assert load > 1
    for row in rows:
        assert row["loads"]["hpus"] == pytest.approx(load, rel=1e-3)
        assert (row["verdict"], row["bottleneck"]) == ("no", "handler cores")
        # Also for many packets, if the last ones leave at the observed rate.
        assert row["capacity_fraction"] == pytest.approx(1 / load, rel=0.02)
    # Few packets all come through at their rate, with the buffer almost empty.
    assert rows[0]["line_rate_fraction"] == 1 > rows[2]["line_rate_fraction"]
    assert rows[0]["buffer_packets_used"] < rows[0]["buffer_packets"]
    (text,) = shortfalls(rows[:1])
    assert f"has held {rows[0]['buffer_packets_used']} packets at most" in text
    assert f"{100 / load:.1f}% of the offered rate can get through. Nothing is lost." in text


def test_bursts_that_do_not_fit_the_buffer_are_lost_though_the_mean_load_is_low(tmp_path: Path) -> None:
    source = write(tmp_path, SLOW)
    row, figures = check(source, "udp size=64 rate=1Mpps arrivals=burst:400 packets=4k", lossy=True)
    assert row["loads"]["hpus"] < 0.2
    assert (row["verdict"], row["bottleneck"]) == ("no", "packet buffer")
    # During a burst, at 6.7 ns per packet, 27 packets are handled.
    assert figures["dropped_by_overload"] == pytest.approx(10 * (400 - 256 - 27), rel=0.05)
    report = package.check_line_rate(
        source, traffic="udp size=64 rate=1Mpps arrivals=burst:400 packets=4k", overrides=[FAST], lossy=True
    )
    text = line_rate_text(report).replace("\n# ", " ")
    assert "packets that find it full are dropped" in text
    assert f"{figures['dropped_by_overload']} packets are lost" in text
    figure = line_rate_figure(report)
    figure.draw_without_rendering()
    lost = 100 * figures["dropped_by_overload"] / 4000
    # This handler forwards all packets, except for lost ones.
    axes = figure.axes[2]
    assert [bar.get_width() for bar in axes.patches] == pytest.approx([100 - lost, lost])
    labels = [text.get_text() for text in axes.get_legend().get_texts()]
    assert labels == [f"passed: {100 - lost:.1f}%", f"lost: packet buffer full: {lost:.1f}%"]
    (label,) = [tick.get_text() for tick in axes.get_yticklabels()]
    assert f"max {figures['latency_ns_max']:.1f} ns" in label


def mixed(count: int, size: int, small: int, large: int) -> tuple[int, int]:
    """The numbers of small and large packets among `count` packets with `size` bytes in total."""
    most = (size - count * small) // (large - small)
    assert (count - most) * small + most * large == size
    return count - most, most


@pytest.mark.parametrize(
    ("nic", "sizes"), [("spin-100g", (60, 1514)), ("spin-discrete", (64, 1500)), ("pspin", (64, 1000))]
)
def test_loads_are_those_of_the_offered_packets_also_where_others_come_through(
    tmp_path: Path, nic: str, sizes: tuple[int, int]
) -> None:
    # Of PsPIN's interface, 6 cycles a word.
    source = library_source("pspin/sum.c") if nic == "pspin" else write(tmp_path, BYTES[nic])
    single: dict[str, Any] = {} if nic == "spin-100g" else {"message_packets": 1}
    alone = package.check_line_rate(source, nics=nic, packet_sizes=list(sizes), messages=500, **single)["rows"]
    small, large = (row["handlers"][0]["time_ns_mean"] for row in alone)
    assert large > 5 * small
    traffic = f"udp size={sizes[0]}:3,{sizes[1]}:1 packets=6k"
    rows = {
        overload: package.check_line_rate(source, nics=nic, traffic=traffic, **{overload: True} if overload else {})
        for overload in ("", "lossy", "pfc")
    }
    for overload, report in rows.items():
        (row,) = report["rows"]
        figures = row["traffic"]
        # By hand: the demand of the offered packets, over the processors' capacity meanwhile.
        few, many = mixed(figures["offered"], figures["offered_bytes"], *sizes)
        work = few * small + many * large
        load = work / (row["hpus"] * figures["offered_ns"])
        assert load > 1.2
        assert row["loads"]["hpus"] == pytest.approx(load, rel=0.01), overload
        assert row["handler_ns"] == pytest.approx(work / figures["offered"], rel=0.01)
        assert (row["verdict"], row["bottleneck"]) == ("no", "handler cores")
        assert row["capacity_fraction"] == pytest.approx(1 / load, rel=0.03)
        # And the demand of the handled ones: their bytes are counted.
        few, many = mixed(figures["handled"], figures["handled_bytes"], *sizes)
        assert row["cycles_mean"] == pytest.approx(
            (few * alone[0]["cycles_mean"] + many * alone[1]["cycles_mean"]) / figures["handled"], rel=0.01
        )
        size = figures["handled_bytes"] / figures["handled"]
        assert row["bandwidth_bytes_per_s"] == pytest.approx(row["packets_per_s"] * size)
        lost = overload == "lossy"
        assert figures["loads_from_lossless_run"] is (figures["dropped_by_overload"] > 0) is lost
        text = line_rate_text(report).replace("\n# ", " ")
        assert ("loads are those of all 6000 packets" in text) is lost
        if lost:
            # The long ones occupy the wire for longer, so that more places become free meanwhile.
            assert size > 1.1 * figures["offered_bytes"] / figures["offered"]


def test_flows_and_sizes_reach_handlers(tmp_path: Path) -> None:
    row, figures = check(
        write(tmp_path, COUNTS), "udp dport=1-10 src=10.0.0.0/16 flows=100k zipf=1.1 imix rate=50Gbps packets=20k"
    )
    assert figures["failed"] == 0
    assert 0 < figures["dropped_by_handler"] < 20_000
    # 7 x 60, 4 x 590 and 1514 bytes are 358 on average.
    assert row["packet_bytes"] == pytest.approx((7 * 60 + 4 * 590 + 1514) / 12, rel=0.03)
    assert figures["offered_bytes"] * 8 / figures["offered_ns"] == pytest.approx(50, rel=0.01)


def test_on_the_command_line(nicety: Callable, tmp_path: Path) -> None:
    write(tmp_path, COUNTS)
    command = ["bench", "handlers", "mine.c", "--nic", "spin-discrete", "--traffic", "udp dport=7 size=64 packets=500"]
    result = nicety(*command, "--csv", "f.csv", "--plot", "f.png", "--trace", "f.pftrace")
    assert result.status == 0, result.stderr
    report = nicety(*command, "--json").json()
    assert result.stdout == line_rate_text(report)
    assert "# traffic, each packet a message: udp dport=7 size=64 packets=500" in result.stdout
    assert "drops 100.0%" in result.stdout
    assert "traffic_latency_ns_p999" in (tmp_path / "f.csv").read_text()
    assert (tmp_path / "f.pftrace").stat().st_size > 1000


CAPTURES = {
    "cut.pcap": (pcap([(0, frame(100, 1)), (9, frame(100, 1))])[:-10], "at packet 2, byte 140: the file ends 10 bytes"),
    "snapped.pcap": (pcap([(0, frame(100, 1))], cut=20), "packet 1 was captured up to byte 100 of 120; write cut=pad"),
    "cooked.pcap": (pcap([(0, frame(100, 1))], link=113), "packet 1 has link type 113"),
    "long.pcap": (pcap([(0, frame(99, 1)), (1, frame(4097, 1))]), "packet 2 has 4097 bytes"),
    "text.pcap": (b"not a capture at all", "this is no capture"),
    "empty.pcap": (pcap([]), "the capture has no packets"),
}


@pytest.mark.parametrize("name", CAPTURES)
def test_captures_that_cannot_be_sent_name_the_packet(nicety: Callable, tmp_path: Path, name: str) -> None:
    write(tmp_path, COUNTS)
    content, words = CAPTURES[name]
    (tmp_path / name).write_bytes(content)
    result = nicety("bench", "handlers", "mine.c", "--nic", "spin-discrete", "--traffic", f"capture={name}")
    assert (result.status, result.stdout) == (2, "")
    assert f"--traffic: {name}: " in result.stderr
    assert words in result.stderr


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--traffic", "udp dprt=53"], ["column 5: there is no key dprt", "^^^^"]),
        (["--traffic", "udp imix size=64"], ["imix and size", "leave one of the two out"]),
        (
            ["--traffic", "udp size=4000 rate=500Gbps packets=50"],
            ["a rate of 500 Gbps exceeds the rate of the wire: 400.00 Gbps", "write rate=wire or a lower rate"],
        ),
        (["--traffic", "udp size=9000"], ["9000 bytes", "at most 4096"]),
        (["--traffic", "capture=gone.pcap"], ["gone.pcap: ", "No such file"]),
        (["--traffic", "udp", "--packet-sizes", "64"], ["--packet-sizes and --traffic"]),
        (["--traffic", "udp", "--message-packets", "2"], ["--message-packets and --traffic"]),
        (["--traffic", "udp", "--lossy", "--pfc"], ["--lossy and --pfc"]),
        (["--traffic", "udp", "--lossy", "--set", "transport.reliable=true"], ["--lossy: spin-discrete retransmits"]),
        (["--lossy"], ["--lossy: ", "--traffic 'udp size=64' --lossy"]),
    ],
)
def test_options_that_contradict_traffic_are_refused(
    nicety: Callable, tmp_path: Path, options: list[str], words: list[str]
) -> None:
    write(tmp_path, COUNTS)
    result = nicety("bench", "handlers", "mine.c", "--nic", "spin-discrete", *options)
    assert (result.status, result.stdout) == (2, "")
    for word in words:
        assert word in result.stderr


EMPTY = """
#include <handler.h>
__handler__ void work(handler_args_t *args) { (void)args; }
void init_handlers(handler_fn *head, handler_fn *packet, handler_fn *tail, void **memory) {
    volatile handler_fn handlers[] = {NULL, work, NULL};
    *head = handlers[0], *packet = handlers[1], *tail = handlers[2], *memory = NULL;
}
"""


@pytest.mark.parametrize("packets", [500, 5000])
@pytest.mark.parametrize(("size", "gbps", "load"), [(64, 300, 0.586), (65, 240, 0.923), (65, 280, 1.077)])
def test_the_packet_buffer_of_clusters_is_written_a_beat_a_cycle(
    tmp_path: Path, packets: int, size: int, gbps: int, load: float
) -> None:
    """Packets of one and of two beats of 64 bytes, at a gigahertz."""
    traffic = f"udp size={size} rate={gbps}Gbps packets={packets}"
    (row,) = package.check_line_rate(write(tmp_path, EMPTY), nics="pspin", traffic=traffic)["rows"]
    assert row["loads"]["packet_writer"] == pytest.approx(load, abs=1e-3)
    limit = "no" if load > 1 else "barely" if load >= 0.9 else "yes"
    assert (row["verdict"], row["bottleneck"]) == (limit, "packet writer")
    assert row["capacity_fraction"] == pytest.approx(1 / load, rel=2e-3)
    if load > 1:
        (text,) = shortfalls([row])
        assert "at that rate the writer of the packet buffer needs 1.08 x its capacity" in text


PUTS = """
#include <nicety.h>
__handler int payload_handler(const ptl_payload_t p, void *state) {
    for (int i = 0; i < 7; i++)
        PtlHandlerPutFromDevice(p.base, 8, 0, PTL_NO_ACK_REQ, 0, 1, 0, NULL, 0);
    return SUCCESS;
}
"""


@pytest.mark.parametrize(("mpps", "verdict"), [(10, "yes"), (20, "barely"), (22, "no")])
def test_messages_of_handlers_leave_a_gap_apart(tmp_path: Path, mpps: int, verdict: str) -> None:
    traffic = f"udp size=64 rate={mpps}Mpps packets=3k"
    (row,) = package.check_line_rate(write(tmp_path, PUTS), nics="spin-discrete", traffic=traffic)["rows"]
    # Seven per packet, 6.7 ns apart; the link needs a part of that.
    load = 7 * 6.7 * mpps / 1000
    assert row["loads"]["send_engine"] == pytest.approx(load, rel=1e-3)
    assert row["loads"]["link"] < 0.1 * load
    assert (row["verdict"], row["bottleneck"]) == (verdict, "send engine")
    assert row["capacity_fraction"] == pytest.approx(1 / load, rel=5e-3)


def test_a_capture_from_a_faster_wire_comes_as_fast_as_this_one_takes_it(tmp_path: Path) -> None:
    capture = tmp_path / "fast.pcap"
    for gap_ns, faster in [(5, True), (100, False)]:
        capture.write_bytes(pcap([(number * gap_ns, frame(100, 53)) for number in range(300)]))
        row, figures = check(write(tmp_path, COUNTS), f"capture={capture}")
        assert figures["recorded_above_wire_rate"] is faster
        assert row["packet_interval_ns"] == pytest.approx(100 if not faster else figures["offered_ns"] / 300)
        told = any("were recorded faster than this wire takes them" in text for text in words_of([row]))
        assert told is faster


def blocks(*packets: tuple[bytes, int], options: bytes = b"") -> bytes:
    """A capture in pcapng: packets with their lengths on the wire, 1 us apart, of an interface with these options."""

    def block(kind: int, body: bytes) -> bytes:
        body += bytes(-len(body) % 4)
        length = struct.pack("<I", 12 + len(body))
        return struct.pack("<I", kind) + length + body + length

    text = block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1))
    text += block(1, struct.pack("<HHI", 1, 0, 0) + options)
    for number, (packet, length) in enumerate(packets):
        text += block(6, struct.pack("<IIIII", 0, 0, number, len(packet), length) + packet)
    return text


def test_handlers_get_frames_without_what_a_capture_has_behind_them(tmp_path: Path) -> None:
    """Check sequences, by each way to declare them, and bytes after the original length."""
    source = write(tmp_path, COUNTS)
    plain, checked = frame(60, 9), frame(60, 9) + b"\xfc" * 4
    pcap_fcs = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 0x24000001)
    record = struct.pack("<IIII", 0, 0, len(checked), len(checked)) + checked
    longer = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1) + struct.pack("<IIII", 0, 0, 64, 60) + checked
    captures = {
        "pcap": pcap_fcs + record,
        "bits": blocks((checked, 64), options=struct.pack("<HHBxxx", 13, 1, 32)),
        "bytes": blocks((checked, 64), options=struct.pack("<HHBxxx", 13, 1, 4)),
        "longer": longer,
        "longer-ng": blocks((checked, 60)),
        "none": blocks((plain, 60)),
    }
    for name, contents in captures.items():
        capture = tmp_path / f"{name}.pcap"
        capture.write_bytes(contents)
        _, figures = check(source, f"capture={capture} rate=wire loop packets=100", FAST)
        assert (figures["offered"], figures["offered_bytes"]) == (100, 6000), name


def test_times_of_several_interfaces_are_those_of_one_clock(nicety: Callable[..., Any], tmp_path: Path) -> None:
    """One interface counts from 2 s later: packets 1 ms apart, and not 2.001 s."""
    write(tmp_path, COUNTS)
    packet = frame(60, 9)

    def block(kind: int, body: bytes) -> bytes:
        length = struct.pack("<I", 12 + len(body))
        return struct.pack("<I", kind) + length + body + length

    text = block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1)) + block(1, struct.pack("<HHI", 1, 0, 0))
    text += block(1, struct.pack("<HHIHHqHH", 1, 0, 0, 14, 8, -2, 0, 0))
    for interface, us in ((0, 100_000_000), (1, 102_001_000), (0, 100_002_000)):
        text += block(6, struct.pack("<IIIII", interface, 0, us, 60, 60) + packet)
    (tmp_path / "two.pcapng").write_bytes(text)
    traffic = ["--traffic", "capture=two.pcapng", "--json"]
    report = nicety("bench", "handlers", "mine.c", "--nic", "spin-discrete", *traffic).json()
    # Three packets in 3 ms.
    assert report["rows"][0]["line_rate_packets_per_s"] == pytest.approx(1000)


@pytest.mark.parametrize(
    ("contents", "traffic", "words"),
    [
        (
            pcap([(0, frame(60, 9)), (4 * 10**18, frame(60, 9))]),
            "",
            "packet 2 is due 4000000000 s after the first one",
        ),
        (pcap([(0, frame(1500, 9))]), "rate=1bps loop packets=2k", "frame 1536 is due more than 2^64 ps (213 days)"),
        (
            pcap([(0, frame(60, 9))], link=113),
            "",
            "packet 1 has link type 113 (LINKTYPE_LINUX_SLL), but only frames of",
        ),
        (
            b"BZh91AY&SY",
            "",
            "this is compressed by bzip2; pcap and pcapng can be read, also compressed by gzip or zstd",
        ),
        (blocks((frame(60, 9), 60), options=struct.pack("<HHBxxx", 13, 1, 33)), "", "of 33 bits (if_fcslen)"),
    ],
)
def test_impossible_contents_of_captures_are_named(
    nicety: Callable[..., Any], tmp_path: Path, contents: bytes, traffic: str, words: str
) -> None:
    write(tmp_path, COUNTS)
    (tmp_path / "x.pcap").write_bytes(contents)
    options = ["--nic", "spin-discrete", "--traffic", f"capture=x.pcap {traffic}"]
    done = nicety("bench", "handlers", "mine.c", *options)
    assert (done.status, done.stdout) == (2, "")
    assert words in done.stderr, done.stderr
