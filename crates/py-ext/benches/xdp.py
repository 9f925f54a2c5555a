"""Measures XDP programs beside handlers in C that do the same, on the cores of cards.

`python crates/py-ext/benches/xdp.py [NIC...]`. A program of `handlers/xdp` runs with its maps, and the handler of the
same name in `handlers/frames` with its tables. Both have the same contents and get the same frames. For each card it
prints cycles and instructions of a core for a frame, and the sustained rate. It also prints the CPU time of this
machine for a frame on its way through the card, and the ratios of program and handler. A check searches the sustained
rate, so it sends the frames several times. The CPU time is that of one run, without the setup.
"""

from __future__ import annotations

import random
import struct
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nicety
from nicety._generated.types import LineRateRow
from nicety.build.xdp import compile_xdp

ROOT = Path(__file__).parents[3]
CARDS = ["spin-100g", "spin-100g-rv64"]
SLOTS = 8192
# Verdicts are XDP's, as in both programs.
DROP, PASS = 1, 2
FLOWS = 4096
UDP = 17
WORD = 0xFFFFFFFF
# Frames of the two checks of each program: the difference of their CPU times is that of frames alone.
FRAMES = (8192, 40960)
TRIES = 3
SERVICES, PLACES, SERVERS, CACHED = 16, 251, 64, 1024
CORES = 64


@dataclass(frozen=True)
class Pair:
    """A program's maps, and the state of the handler that does the same.

    Attributes:
        maps: the entries of each map.
        state: the first bytes of the handler's state, and the number of all of them.
        source: the source address of a random frame.
    """

    maps: dict[str, list[dict[str, Any]]]
    state: tuple[bytes, int]
    source: Callable[[random.Random], int]


def network_word(number: int) -> int:
    """A word in network order, as a number of a little-endian core."""
    return int(struct.unpack("<I", struct.pack(">I", number))[0])


TO = network_word(0x0A000002)
PORTS = int(struct.unpack("<I", struct.pack(">HH", 1000, 53))[0])


def firewall() -> Pair:
    """Half of the frames have known flows of UDP. One of 64 flows passes, so that hosts do not limit."""
    all_flows = [(network_word(0x0A001000 + at), PASS if at % 64 == 0 else DROP) for at in range(FLOWS)]
    ports = {"source_port": PORTS & 0xFFFF, "destination_port": PORTS >> 16}
    entries = [
        {"key": {"source": source, "destination": TO, **ports, "protocol": UDP}, "value": verdict}
        for source, verdict in all_flows
    ]
    slots: list[tuple[int, ...]] = [(0,) * 6] * SLOTS
    for source, verdict in all_flows:
        mixed = (source * 0x9E3779B1 & WORD) ^ TO
        mixed = (mixed * 0x85EBCA6B & WORD) ^ PORTS ^ UDP
        at = (mixed * 0xC2B2AE35 & WORD) >> 19
        while slots[at][3]:
            at = (at + 1) % SLOTS
        slots[at] = (source, TO, PORTS, UDP, verdict, 0)
    table = b"".join(struct.pack("<6I", *slot) for slot in slots)
    return Pair({"flows": entries}, (table, len(table) + 64 * CORES), lambda chosen: chosen.randrange(2 * FLOWS))


def balancer() -> Pair:
    """Frames of 512 flows to one service with three servers. A cache has room for 1024 flows."""
    port = PORTS >> 16
    servers = [(network_word(0xC0000200 + at), [2, 0, 0, 0, 0, at]) for at in range(3)]
    maps: dict[str, list[dict[str, Any]]] = {
        "services": [{"key": {"address": TO, "port": port, "protocol": UDP}, "value": 0}],
        "places": [{"key": at, "value": at % 3} for at in range(PLACES)],
        "servers": [
            {"key": at, "value": {"address": address, "station": station}}
            for at, (address, station) in enumerate(servers)
        ],
    }
    services = [(0, 0, 0, 0)] * SERVICES
    services[((TO ^ port) * 0x9E3779B1 & WORD) >> 28] = (TO, port, UDP, 0)
    state = struct.pack("<II", 0, 0) + b"".join(struct.pack("<4I", *each) for each in services)
    state += b"".join(struct.pack("<I", at % 3 if at < PLACES else 0) for at in range(SERVICES * PLACES))
    state += b"".join(struct.pack("<I8B", address, *station, 0, 0) for address, station in servers)
    state += bytes(12 * (SERVERS - len(servers)))
    return Pair(maps, (state, len(state) + 24 * CACHED), lambda chosen: chosen.randrange(512))


PAIRS = {"firewall": firewall, "balancer": balancer}


def write_capture(file: Path, frames: int, source: Callable[[random.Random], int]) -> None:
    """Write frames of 60 bytes from random hosts of 10.0.16.0/19."""
    chosen = random.Random(1)  # noqa: S311  # the same frames each time, no secret
    parts = [struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1)]
    for _ in range(frames):
        ip = struct.pack("!BBHHHBBHI4B", 0x45, 0, 46, 0, 0, 64, UDP, 0, 0x0A001000 + source(chosen), 10, 0, 0, 2)
        udp = struct.pack("!HHHH", 1000, 53, 26, 0)
        frame = (bytes([2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0]) + ip + udp).ljust(60, b"\0")
        parts.append(struct.pack("<IIII", 0, 0, len(frame), len(frame)) + frame)
    file.write_bytes(b"".join(parts))


Run = Callable[[Path], tuple[LineRateRow, float]]


def run_of(program: Any, nic: str, **options: Any) -> Run:
    """A check with the frames of a capture. It returns the row, and the CPU seconds of this machine for each run."""

    def run(capture: Path) -> tuple[LineRateRow, float]:
        begin = time.process_time()
        traffic = [f"capture={capture} rate=wire"]
        report = nicety.check_line_rate(program, nics=[nic], traffic=traffic, **options)
        (row,) = report["rows"]
        # The first run is at the offered rate.
        return row, (time.process_time() - begin) / (1 + len(row["trials"]))

    return run


def measured(runs: dict[str, Run], captures: dict[int, Path]) -> dict[str, tuple[LineRateRow, float]]:
    """The row and the CPU time for a frame in nanoseconds of each run. Runs alternate, and the fastest try counts."""
    rows: dict[str, LineRateRow] = {}
    least: dict[tuple[str, int], float] = {}
    for _ in range(TRIES):
        for frames, capture in captures.items():
            for name, run in runs.items():
                rows[name], took = run(capture)
                least[name, frames] = min(took, least.get((name, frames), took))
    few, many = FRAMES
    return {name: (rows[name], (least[name, many] - least[name, few]) / (many - few) * 1e9) for name in runs}


def compare(title: str, pair: Pair, folder: Path, nics: list[str]) -> None:
    """Check both programs of a pair on each card, and print."""
    captures = {frames: folder / f"{title}_{frames}.pcap" for frames in FRAMES}
    for frames, capture in captures.items():
        write_capture(capture, frames, pair.source)
    built = compile_xdp(ROOT / f"handlers/xdp/{title}.c", output=folder / f"{title}.o")
    xdp = nicety.XdpProgram(built, maps=pair.maps)
    handler, (state, size) = ROOT / f"handlers/frames/{title}.c", pair.state
    for nic in nics:
        runs = {"xdp": run_of(xdp, nic), "c": run_of(handler, nic, state=state, state_bytes=size)}
        rows = measured(runs, captures)
        for name, (row, took) in rows.items():
            rate = row["capacity_fraction"] * row["line_rate_packets_per_s"] / 1e6
            print(
                f"{title}_{nic}_{name}  {row['cycles_mean']:.1f} cycles/frame,"
                f" {row['instructions_mean']:.1f} instructions, {rate:.1f} Mpps, {took:.0f} ns of CPU time"
            )
        (first, own), (second, other) = rows.values()
        cycles = (first["cycles_mean"] or 0) / (second["cycles_mean"] or 1)
        print(f"{title}_{nic}_ratio  {cycles:.2f} x cycles, {own / other:.2f} x CPU time")


def main() -> None:
    """Compare each pair on the cards of the arguments."""
    with tempfile.TemporaryDirectory() as name:
        for title, made in PAIRS.items():
            compare(title, made(), Path(name), sys.argv[1:] or CARDS)


if __name__ == "__main__":
    main()
