"""Measures an XDP firewall beside a handler in C that does the same, on the cores of cards.

`python crates/py-ext/benches/firewall.py [NIC...]`. `handlers/xdp/firewall.c` runs with its map, and
`handlers/frames/firewall.c` with its table. Both have the same 4096 flows and get the same frames, of 8192 flows. For
each card it prints cycles and instructions of a core for a frame, and the sustained rate. It also prints the CPU time
of this machine for the check, and the ratios of both programs.
"""

from __future__ import annotations

import random
import struct
import sys
import tempfile
import time
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


@dataclass(frozen=True)
class Flow:
    """A flow, in numbers of a little-endian core, and its verdict."""

    source: int
    destination: int
    ports: int
    verdict: int


def flows() -> list[Flow]:
    """Flows of UDP from 10.0.16.0/20 to 10.0.0.2. One in 64 passes, so that the host does not limit."""
    to, ports = struct.unpack("<II", bytes([10, 0, 0, 2]) + struct.pack(">HH", 1000, 53))
    sources = [struct.unpack("<I", struct.pack(">I", 0x0A001000 + at))[0] for at in range(FLOWS)]
    return [Flow(source, to, ports, PASS if at % 64 == 0 else DROP) for at, source in enumerate(sources)]


def entries(all_flows: list[Flow]) -> list[dict[str, Any]]:
    """Entries of the map of the XDP program."""

    def key(flow: Flow) -> dict[str, int]:
        source_port, destination_port = flow.ports & 0xFFFF, flow.ports >> 16
        ports = {"source_port": source_port, "destination_port": destination_port}
        return {"source": flow.source, "destination": flow.destination, **ports, "protocol": UDP}

    return [{"key": key(flow), "value": flow.verdict} for flow in all_flows]


def table(all_flows: list[Flow]) -> bytes:
    """The table of the handler in C: open addressing, with its hash."""
    slots: list[Flow | None] = [None] * SLOTS
    for flow in all_flows:
        mixed = (flow.source * 0x9E3779B1 & WORD) ^ flow.destination
        mixed = (mixed * 0x85EBCA6B & WORD) ^ flow.ports ^ UDP
        at = (mixed * 0xC2B2AE35 & WORD) >> 19
        while slots[at] is not None:
            at = (at + 1) % SLOTS
        slots[at] = flow
    rows = [
        (0,) * 6 if each is None else (each.source, each.destination, each.ports, UDP, each.verdict, 0)
        for each in slots
    ]
    return b"".join(struct.pack("<6I", *row) for row in rows)


def write_capture(file: Path) -> None:
    """Write 8192 frames of 60 bytes, half of them of known flows."""
    chosen = random.Random(1)  # noqa: S311  # the same frames each time, no secret
    parts = [struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1)]
    for _ in range(8192):
        source = 0x0A001000 + chosen.randrange(2 * FLOWS)
        ip = struct.pack("!BBHHHBBHI4B", 0x45, 0, 46, 0, 0, 64, UDP, 0, source, 10, 0, 0, 2)
        udp = struct.pack("!HHHH", 1000, 53, 26, 0)
        frame = (bytes([2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0]) + ip + udp).ljust(60, b"\0")
        parts.append(struct.pack("<IIII", 0, 0, len(frame), len(frame)) + frame)
    file.write_bytes(b"".join(parts))


def checked(program: Any, nic: str, capture: Path, **options: Any) -> tuple[LineRateRow, float]:
    """The row of a check, and the CPU time of this machine in seconds."""
    begin = time.process_time()
    report = nicety.check_line_rate(program, nics=[nic], traffic=[f"capture={capture} rate=wire"], **options)
    return report["rows"][0], time.process_time() - begin


def main() -> None:
    """Check both programs on each card, and print."""
    all_flows = flows()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_capture(folder / "flows.pcap")
        built = compile_xdp(ROOT / "handlers/xdp/firewall.c", output=folder / "firewall.o")
        xdp = nicety.XdpProgram(built, maps={"flows": entries(all_flows)})
        c_source = ROOT / "handlers/frames/firewall.c"
        state = table(all_flows)
        for nic in sys.argv[1:] or CARDS:
            rows = [
                checked(xdp, nic, folder / "flows.pcap"),
                checked(c_source, nic, folder / "flows.pcap", state=state, state_bytes=len(state) + 64 * 64),
            ]
            for what, (row, seconds) in zip(("xdp", "c"), rows, strict=True):
                rate = row["capacity_fraction"] * row["line_rate_packets_per_s"] / 1e6
                print(
                    f"{nic}_{what}  {row['cycles_mean']:.1f} cycles/frame, {row['instructions_mean']:.1f} instructions,"
                    f" {rate:.1f} Mpps, {seconds:.2f} s of CPU time"
                )
            (first, took), (second, other) = rows
            cycles, own = first["cycles_mean"], second["cycles_mean"]
            if cycles is not None and own:
                print(f"{nic}_ratio  {cycles / own:.2f} x cycles, {took / other:.2f} x CPU time")


if __name__ == "__main__":
    main()
