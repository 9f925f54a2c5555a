"""Measures handlers under traffic: packets per second of CPU time, and cycles of PsPIN's 32 busy cores per second.

`python crates/py-ext/benches/handlers.py`. A small handler gets a looped capture of frames of 60, 590 and 1514 B at
wire rate. PsPIN's cores add up the words of packets at a rate slightly above their capacity. Long packets cost almost
only instructions; the result for short packets is a share of that for long ones.
"""

from __future__ import annotations

import argparse
import random
import struct
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import nicety
from nicety._generated.types import LineRateRow

ROOT = Path(__file__).parents[3]
# Hashes bytes 28 to 43 of a packet, which hold addresses and ports, and counts the packet by its hash.
MESSAGES = """#include <nicety.h>
__handler int payload_handler(const ptl_payload_t p, void *state) {
    const uint32_t *words = (const uint32_t *)p.base + 7;
    uint32_t hash = 2166136261u;
    for (int i = 0; i < 4; i++) hash = (hash ^ words[i]) * 16777619u;
    ((uint32_t *)state)[hash & 63]++;
    return SUCCESS;
}
"""
# The same for a frame, with words that may be unaligned.
FRAMES = """#include <frame.h>
__handler int frame_handler(const frame_t *frame, void *state) {
    uint32_t hash = 2166136261u;
    for (int i = 0; i < 4; i++) hash = (hash ^ frame_load32(frame->data + 28 + 4 * i)) * 16777619u;
    ((uint32_t *)state)[hash & 63]++;
    return FRAME_DROP;
}
"""
CORES = 32
# A packet takes a core 3001 cycles at 1 GHz, so 32 cores take 170.6 Gb/s. The excess forms a short backlog.
PSPIN_LONG = "udp size=2000 rate=175Gbps"
# 84 cycles: at 195.0 Gb/s all cores are busy and the backlog does not grow. Beyond that it grows.
PSPIN_SHORT = "udp size=64 rate=195Gbps"
PSPIN_BEYOND = "udp size=64 rate=197Gbps"


@dataclass(frozen=True)
class Timed:
    """The result of a run, and its CPU time in seconds."""

    row: LineRateRow
    seconds: float


def write_capture(file: Path) -> None:
    """Write 4096 frames of UDP from random addresses: 7 of 60 B and 4 of 590 B to each of 1514 B."""
    chosen = random.Random(1)  # noqa: S311  # the same frames each time, no secret
    written = [struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1)]
    for at in range(4096):
        (size,) = chosen.choices([60, 590, 1514], [7, 4, 1])
        ip = struct.pack(">BxHxxxxBBxx4s4s", 0x45, size - 14, 64, 17, chosen.randbytes(4), bytes([192, 168, 0, 1]))
        udp = struct.pack(">HHHxx", chosen.randrange(1 << 16), 53, size - 34)
        frame = bytes.fromhex("0200000000020200000000010800") + ip + udp
        written += [struct.pack("<IIII", 0, at, size, size), frame, chosen.randbytes(size - len(frame))]
    file.write_bytes(b"".join(written))


def measured(tries: int, source: Path, nic: str, traffic: str, packets: int) -> Timed:
    """Return the best of `tries` runs. A short run before them pays the costs of first use."""

    def run(packets: int) -> Timed:
        begun = time.process_time()
        (row,) = nicety.check_line_rate(source, nics=[nic], traffic=f"{traffic} packets={packets}")["rows"]
        return Timed(row, time.process_time() - begun)

    run(100)
    return min((run(packets) for _ in range(tries)), key=lambda each: each.seconds)


def packets_per_s(tries: int, packets: int, folder: Path) -> None:
    """Print packets of a capture per second of CPU time: on a card for messages, and on a card for frames."""
    capture = folder / "mixed.pcap"
    write_capture(capture)
    for nic, text in (("spin-discrete", MESSAGES), ("spin-100g", FRAMES)):
        source = folder / f"{nic}.c"
        source.write_text(text)
        found = measured(tries, source, nic, f"capture={capture} loop rate=wire", packets)
        instructions = found.row["instructions_mean"]
        print(
            f"{nic}, a capture to a handler of {instructions:.0f} instructions: "
            f"packets_per_s {packets / found.seconds:.0f}, us_per_packet {found.seconds / packets * 1e6:.2f}"
        )


def cycles_per_s(tries: int, traffic: str, packets: int, baseline: float | None = None) -> float:
    """Print PsPIN's cycles per second of CPU time: the sum of all cores, and its clock. Return the latter."""
    source = ROOT / "handlers/pspin/sum.c"
    found = measured(tries, source, "pspin", traffic, packets)
    (handler,) = found.row["handlers"]
    each, instructions = handler["cycles_mean"], packets * handler["instructions_mean"]
    cycles = packets * each
    # At 1 GHz.
    clock = packets / found.row["packets_per_s"] * 1e9
    share = f", {clock / found.seconds / baseline:.2f} of long runs" if baseline else ""
    print(
        f"pspin, {traffic}, runs of {each:.0f} cycles, {cycles / clock:.1f} of {CORES} cores busy: "
        f"core_cycles_per_s {cycles / found.seconds:.0f}, cycles_per_s {clock / found.seconds:.0f}, "
        f"instructions_per_s {instructions / found.seconds:.0f}{share}"
    )
    return clock / found.seconds


def main() -> None:
    """Measure."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--packets", type=int, default=200_000, help="of the capture; 200000 if left out")
    arguments.add_argument("--long-packets", type=int, default=8_000, help="to PsPIN; 8000 if left out")
    arguments.add_argument("--short-packets", type=int, default=200_000, help="to PsPIN; 200000 if left out")
    arguments.add_argument("--tries", type=int, default=3, help="the best of how many; 3 if left out")
    given = arguments.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        packets_per_s(given.tries, given.packets, Path(folder))
    long = cycles_per_s(given.tries, PSPIN_LONG, given.long_packets)
    for traffic in (PSPIN_SHORT, PSPIN_BEYOND):
        cycles_per_s(given.tries, traffic, given.short_packets, long)


if __name__ == "__main__":
    main()
