"""An XDP program on cards' cores and in hosts' drivers: one command, one table."""

from __future__ import annotations

import csv
import json
import random
import struct
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nicety import XdpProgram, _native, check_line_rate
from test_xdp_cards import SECTIONS, built, capture, flow, udp

CARDS = ["spin-100g", "spin-100g-rv64", "pspin", "ethernet-100g"]

# Every verdict, by the last byte of the source address. Frames become shorter and longer at both ends.
VERDICTS = """
#include <xdp.h>
struct {
    __uint(type, BPF_MAP_TYPE_DEVMAP);
    __uint(max_entries, 2);
    __type(key, __u32);
    __type(value, __u32);
} ports SEC(".maps");
struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, 8);
    __type(key, __u32);
    __type(value, __u64);
} seen SEC(".maps");
SEC("xdp") int verdicts(struct xdp_md *context) {
    unsigned char *data = xdp_data(context);
    if (data + 34 > (unsigned char *)xdp_end(context)) {
        return XDP_ABORTED;
    }
    __u32 number = data[29] & 7;
    __u64 *count = bpf_map_lookup_elem(&seen, &number);
    if (count) {
        (*count)++;
    }
    switch (number) {
    case 0:
        return XDP_DROP;
    case 1:
        return XDP_PASS;
    case 2:
        return XDP_TX;
    case 3:
        return bpf_redirect_map(&ports, 1, 0);
    case 4:
        return bpf_redirect_map(&ports, 0, 0);
    case 5:
        /* Room that the packet had is room again, on every card. */
        if (bpf_xdp_adjust_head(context, 14) || bpf_xdp_adjust_head(context, -14)) {
            return XDP_DROP;
        }
        return bpf_xdp_adjust_tail(context, -4) ? XDP_DROP : XDP_TX;
    case 6:
        return bpf_xdp_adjust_tail(context, 3000) ? XDP_PASS : XDP_DROP;
    default:
        return 77;
    }
}
char _license[] SEC("license") = "GPL";
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with objects, flows and captures."""
    folder = tmp_path_factory.mktemp("places")
    built(folder, "firewall")
    built(folder, "verdicts", VERDICTS)
    built(folder, "two", SECTIONS)
    (folder / "flows.json").write_text(json.dumps([flow(at, 53, at % 4) for at in range(8)]))
    (folder / "ports.json").write_text('[{"key": 1, "value": 1}]')
    rng = random.Random(7)
    frames = [udp(rng.randrange(12), 53, rng.choice([60, 100, 400])) for _ in range(400)]
    (folder / "traffic.pcap").write_bytes(capture(frames))
    return folder


def interpreted(folder: Path) -> dict[str, int]:
    """The verdicts of the firewall by the interpreter."""
    asked = {"program": None, "repeat": 1, "cpus": 1, "gap_ns": 1000, "interface": 1, "queue": 0}
    entries = [("flows", (folder / "flows.json").read_text())]
    request = json.dumps({**asked, "instructions": None, "maps": entries})
    content, packets = (folder / "firewall.o").read_bytes(), (folder / "traffic.pcap").read_bytes()
    found: dict[str, int] = json.loads(_native.xdp_run(content, request, packets))["verdicts"]
    return found


def test_one_command_has_cards_and_drivers_in_one_table(folder: Path, nicety: Callable, tmp_path: Path) -> None:
    command = ["bench", "handlers", folder / "firewall.o", "--nic", ",".join(CARDS)]
    command += ["--traffic", f"capture={folder / 'traffic.pcap'}", "--map", f"flows={folder / 'flows.json'}"]
    result = nicety(*command, "--json", "--csv", tmp_path / "rows.csv")
    assert result.status == 0, result.stderr
    report = json.loads(result.stdout)
    places = report["places"]
    assert [place["nic"] for place in places] == CARDS
    assert [place["place"] for place in places] == ["card cores"] * 3 + ["host driver"]
    expected = interpreted(folder)
    assert set(expected) == {"XDP_ABORTED", "XDP_DROP", "XDP_PASS", "XDP_TX"}
    assert all(place["verdicts"] == expected for place in places)
    # A frame each microsecond, which all of them sustain.
    assert all(place["sustained_fraction"] == pytest.approx(1) for place in places)
    assert all(place["offered_pps"] == pytest.approx(1e6, rel=0.01) for place in places)
    assert [place["cycles_mean"] is None for place in places] == [False, False, False, True]
    # The host of pspin takes no frames. That of spin-100g takes those that the card passes.
    assert [place["host_cpu_ns"] is None for place in places] == [False, False, True, False]
    assert places[0]["host_cpu_ns"] < places[3]["host_cpu_ns"]
    assert [row["nic"] for row in report["rows"]] == CARDS[:3]
    assert [row["nic"] for row in report["drivers"]] == CARDS[3:]
    assert set(report["manifest"]["specs"]) == set(CARDS)
    with (tmp_path / "rows.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["nic"] for row in rows] == CARDS
    assert [float(row["sustained_pps"]) for row in rows] == [place["sustained_pps"] for place in places]
    assert [bool(row["cycles_mean"]) for row in rows] == [True, True, True, False]


def captured(path: Path) -> list[int]:
    """The number of packets on each link in a pcapng file."""
    data, at = path.read_bytes(), 0
    counts: Counter[int] = Counter()
    while at < len(data):
        kind, length, interface = struct.unpack_from("<III", data, at)
        if kind == 6:
            counts[interface] += 1
        at += length
    return list(counts.values())


@pytest.mark.parametrize("nic", ["spin-100g", "ethernet-100g"])
def test_a_capture_has_the_offered_frames_once(folder: Path, nicety: Callable, tmp_path: Path, nic: str) -> None:
    # One flow is for one CPU, so that a search follows in the driver.
    command = ["bench", "handlers", folder / "two.o", "--program", "first", "--nic", nic, "--lossy", "--json"]
    command += ["--traffic", "udp size=60 packets=400"]
    result = nicety(*command, "--capture", tmp_path / "out.pcapng")
    assert result.status == 0, result.stderr
    (place,) = json.loads(result.stdout)["places"]
    assert place["sustained_fraction"] < 1 or nic == "spin-100g"
    # From the generator to the switch, and from there to the card.
    assert captured(tmp_path / "out.pcapng") == [400, 400]


def test_short_frames_come_as_padded_ones(folder: Path) -> None:
    def places(size: int) -> list[dict[str, Any]]:
        # A port that the firewall does not know.
        traffic = f"udp size={size} sport=1 packets=300"
        nics = ["spin-100g", "hxdp-sume", "ethernet-100g"]
        report = check_line_rate(XdpProgram(folder / "firewall.o"), nics=nics, traffic=[traffic])
        return [{**place, "verdicts": None} for place in report["places"]]

    assert places(42) == places(60)


def test_the_text_is_one_table(folder: Path, nicety: Callable) -> None:
    command = ["bench", "handlers", folder / "firewall.o", "--nic", "pspin,ethernet-100g"]
    result = nicety(*command, "--packet-sizes", "60,128", "--messages", "400")
    assert result.status == 0, result.stderr
    tables = [line for line in result.stdout.splitlines() if line and not line.startswith("# ")]
    assert [line.split()[:4] for line in tables] == [
        ["pspin", "card", "cores", "60"],
        ["pspin", "card", "cores", "128"],
        ["ethernet-100g", "host", "driver", "60"],
        ["ethernet-100g", "host", "driver", "128"],
    ]
    text = " ".join(result.stdout.replace("\n# ", " ").split())
    assert "pspin: 60 B: verdicts of firewall: XDP_DROP 400." in text
    assert "ethernet-100g: 60 B: native mode on" in text


def test_pspin_carries_out_each_verdict(folder: Path) -> None:
    frames = [udp(at, 53) for at in range(8) for _ in range(50)]
    (folder / "eight.pcap").write_bytes(capture(frames))
    ports = json.loads((folder / "ports.json").read_text())
    program = XdpProgram(folder / "verdicts.o", maps={"ports": ports})
    report = check_line_rate(program, nics=["pspin"], traffic=[f"capture={folder / 'eight.pcap'}"])
    (row,) = report["rows"]
    assert row["xdp"]["verdicts"] == {
        "XDP_DROP": 50,
        "XDP_PASS": 100,
        "XDP_TX": 100,
        "XDP_REDIRECT": 50,
        # An empty entry of a devmap gives the flags, 0.
        "XDP_ABORTED": 50,
    }
    assert row["xdp"]["invalid"] == 50
    # Two frames of eight and a redirected one leave by the wire.
    assert row["sent_per_packet"] == pytest.approx(3 / 8)
    assert row["loads"]["bus_to_host"] > 0


def test_drivers_alone_have_a_table_and_a_picture(folder: Path, nicety: Callable, tmp_path: Path) -> None:
    command = ["bench", "handlers", folder / "two.o", "--program", "first", "--nic", "ethernet-100g,niagara2-niu"]
    command += ["--packet-sizes", "64", "--messages", "300", "--plot", tmp_path / "places.svg"]
    result = nicety(*command, "--csv", tmp_path / "places.csv", "--json")
    assert result.status == 0, result.stderr
    report = json.loads(result.stdout)
    assert report["rows"] == []
    assert [place["verdicts"] for place in report["places"]] == [{"XDP_DROP": 300}] * 2
    assert (tmp_path / "places.svg").stat().st_size > 1000
    with (tmp_path / "places.csv").open() as file:
        assert [row["place"] for row in csv.DictReader(file)] == ["host driver"] * 2


def test_generic_mode_costs_more_than_native(folder: Path) -> None:
    def cpu_ns(**mode: Any) -> float:
        program = XdpProgram(folder / "two.o", program="first")
        report = check_line_rate(program, nics=["ethernet-100g"], packet_sizes=[64], messages=300, **mode)
        found = report["places"][0]["host_cpu_ns"]
        assert found is not None
        return found

    assert cpu_ns() < cpu_ns(xdp_mode="generic")


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (
            ["--nic", "ethernet-100g", "--rule", "udp"],
            "--rule: ethernet-100g has no handler cores",
        ),
        (
            ["--nic", "ethernet-100g", "--pfc", "--traffic", "udp size=64"],
            "--pfc: ethernet-100g has no handler cores",
        ),
        (["--nic", "ethernet-100g", "--sensitivity"], "--sensitivity: ethernet-100g has no handler cores"),
        (["--nic", "ethernet-100g", "--packet-sizes", "40"], "a frame of ethernet-100g has 60 to"),
        (["--nic", "pspin", "--rule", "udp"], "--rule: handlers of pspin process messages"),
        (["--nic", "pspin", "--message-packets", "4"], "--message-packets: frames of pspin are not parts of messages"),
        (["--nic", "qnix"], "qnix"),
    ],
)
def test_options_without_a_meaning_are_refused(
    options: list[str], expected: str, folder: Path, nicety: Callable
) -> None:
    result = nicety("bench", "handlers", folder / "two.o", "--program", "first", *options)
    assert result.status == 2, result.stderr
    assert expected in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1


def test_a_mode_is_for_programs_of_xdp(nicety: Callable, tmp_path: Path) -> None:
    (tmp_path / "drop.c").write_text("#include <frame.h>\nint frame_handler(const frame_t *f, void *s) { return 0; }\n")
    result = nicety("bench", "handlers", tmp_path / "drop.c", "--nic", "spin-100g", "--xdp-mode", "generic")
    assert result.status == 2
    assert (
        result.stderr
        == "nicety: --xdp-mode: an option of XDP programs, but these are handlers in C; leave --xdp-mode out\n"
    )
