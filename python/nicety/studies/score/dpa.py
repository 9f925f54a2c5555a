"""Programs of a datapath accelerator: cycles of its loads, and rates over its threads."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from nicety.bench.line_rate import check_line_rate
from nicety.build.compiler import library_source
from nicety.build.sources import Handlers
from nicety.errors import InputError
from nicety.program.cluster import Cluster
from nicety.program.host import Host

LOADS = {
    "DPA_LOAD_L2": ["memory.cache.deposit=second"],
    "DPA_LOAD_L3": ["memory.cache.deposit=third"],
    "DPA_LOAD_MEMORY": ["memory.cache.deposit=none"],
    "DPA_LOAD_ARM": ["memory.packet=device"],
    "DPA_LOAD_ARM_FIRST": ["memory.packet=device"],
}
"""Tests of a load of a frame's lines, by the place of the lines."""
REFLECT = "DPA_REFLECT"
GAIN = "DPA_AGGREGATE_GAIN"
_MEMORIES = ("l2", "device")
_CORES = 16
_LINE = 64
_HEADERS = 42
_CHECK_SEQUENCE = 4
_TABLE = 256 << 10
_FRAMES = 1024
"""Frames for each thread: each entry of its queues is used eight times."""
_KEYS = 0x9E3779B97F4A7C15
"""A factor that spreads numbers over keys."""


def load_cycles(test: str, *, nic: str, size: int, overrides: Sequence[str] = ()) -> float:
    """Return the median of the cycles of a load of the first word of each line of a frame, after some frames.

    For `DPA_LOAD_ARM_FIRST`: the cycles of the first one. For `DPA_LOAD_ARM`: of the others.
    """
    lines = (size - 8) // _LINE + 1

    async def main(host: Host) -> list[int]:
        socket = host.socket.datagram()
        if host.rank == 0:
            await host.barrier()
            for _ in range(4):
                await socket.sendto(bytes(size - _HEADERS), 1, 9)
            await host.barrier()
            return []
        await socket.bind(9)
        rule = host.frames.install("udp dport=9", Handlers(library_source("dpa/loads.c")), state=bytes(4 * lines))
        await host.barrier()
        await host.barrier()
        return list(struct.unpack(f"<{lines}I", rule.state))

    cycles = Cluster(2, nic, set=[*overrides, *LOADS[test]]).run(main).results[1]
    if test == "DPA_LOAD_ARM_FIRST":
        return float(cycles[0])
    return float(median(cycles[1:] if test == "DPA_LOAD_ARM" else cycles))


def spread(threads: int) -> list[str]:
    """Overrides for `threads` threads: one a core up to 16, then evenly on 16 cores.

    Raises:
        InputError: a number that does not spread evenly.
    """
    if threads > _CORES and threads % _CORES:
        raise InputError(f"{threads} threads do not spread over {_CORES} cores: name a multiple of {_CORES}")
    return [f"hpu.cores={min(threads, _CORES)}", f"hpu.threads={max(threads // _CORES, 1)}"]


def rate_mpps(
    program: str, *, nic: str, size: int, threads: int, traffic: str = "", overrides: Sequence[str] = ()
) -> float:
    """Return the rate in Mpps that a program of `handlers/dpa` sustains with some threads, at most that of the link.

    Args:
        program: the name of the program.
        nic: the card.
        size: bytes of a frame with its check sequence.
        threads: the number of threads.
        traffic: a traffic expression; by default UDP.
        overrides: changes to the card.
    """
    frames = _FRAMES * threads
    report = check_line_rate(
        library_source(f"dpa/{program}.c"),
        nics=[nic],
        traffic=[traffic or f"udp src=10.0.0.0/8 size={size - _CHECK_SEQUENCE} packets={frames}"],
        state_bytes=_TABLE,
        overrides=[*overrides, *spread(threads)],
    )
    (row,) = report["rows"]
    return min(row["capacity_fraction"], 1.0) * row["line_rate_packets_per_s"] / 1e6


def aggregation_gain(*, nic: str, size: int, threads: int, overrides: Sequence[str] = ()) -> float:
    """Return the rate of the best places of packets and sums over that of the worst, each DPA or Arm memory.

    Each frame has one pair of a key from all over the table and a value.
    """
    with TemporaryDirectory() as folder:
        capture = Path(folder) / "pairs.pcap"
        capture.write_bytes(_pairs(size, _FRAMES * threads))
        rates = [
            rate_mpps(
                "aggregate",
                nic=nic,
                size=size,
                threads=threads,
                traffic=f'capture="{capture}" rate=wire',
                overrides=[*overrides, f"memory.packet={packets}", f"memory.state={sums}"],
            )
            for packets in _MEMORIES
            for sums in _MEMORIES
        ]
    return max(rates) / min(rates)


def _pairs(size: int, frames: int) -> bytes:
    """Return a capture of frames with one pair each."""
    head = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 1 << 16, 1)
    length = size - _CHECK_SEQUENCE
    made = [head]
    for number in range(frames):
        frame = bytearray(length)
        frame[12:14] = b"\x88\xb5"
        struct.pack_into("<QQQ", frame, 56, 1, number * _KEYS % (1 << 63), 1)
        made.append(struct.pack("<IIII", 0, number, length, length) + bytes(frame))
    return b"".join(made)
