"""The travelling salesman's climbs on a graphics processor, by OpenCL, if PyOpenCL is installed.

The algorithm of `handlers/nfp/tsp.c`, climb by climb: the same numbers give the same tours. A work-group makes a climb,
and its members share the moves. Of equally good moves the first one is taken, as by a processor that tries them in
order.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from nicety.errors import InputError

MEMBERS = 128
"""Members of a work-group."""

AT_ONCE = 1 << 14
"""Climbs per call of the device. A display may share the device, so a call must be short."""

SOURCE = r"""
/* Climbs number `first` and so on of `states`; a group each. `tours` may be left out. */
__kernel void climb(__global const ushort *distances, const int cities, __global const uint *states,
                    __global uint *lengths, __global uchar *tours) {
    __local uchar tour[256];
    __local ulong best[MEMBERS];
    const int me = get_local_id(0);
    const int number = get_group_id(0);
    for (int k = me; k < cities; k += MEMBERS) tour[k] = k;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (me == 0) {
        uint x = states[number];
        for (int k = cities - 1; k > 0; k--) {
            x ^= x << 13;
            x ^= x >> 17;
            x ^= x << 5;
            int other = mul_hi(x, (uint)(k + 1));
            uchar kept = tour[k];
            tour[k] = tour[other];
            tour[other] = kept;
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (;;) {
        /* What a move saves, and behind it its place, so that the first of equals is the greatest. */
        ulong mine = 0;
        for (int place = me; place < (cities - 2) * cities; place += MEMBERS) {
            int i = place / cities, j = place % cities;
            if (j < i + 2 || (i == 0 && j == cities - 1)) continue;
            int a = tour[i], b = tour[i + 1], c = tour[j], d = tour[j + 1 < cities ? j + 1 : 0];
            int saved = distances[a * cities + b] + distances[c * cities + d] - distances[a * cities + c] -
                        distances[b * cities + d];
            if (saved > 0) mine = max(mine, (ulong)saved << 32 | (0xffffffffu - (uint)place));
        }
        best[me] = mine;
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int half_ = MEMBERS / 2; half_; half_ /= 2) {
            if (me < half_) best[me] = max(best[me], best[me + half_]);
            barrier(CLK_LOCAL_MEM_FENCE);
        }
        ulong move = best[0];
        barrier(CLK_LOCAL_MEM_FENCE);
        if (move == 0) break;
        int place = 0xffffffffu - (uint)move;
        int from = place / cities + 1, to = place % cities;
        for (int k = me; k < (to - from + 1) / 2; k += MEMBERS) {
            uchar kept = tour[from + k];
            tour[from + k] = tour[to - k];
            tour[to - k] = kept;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (me == 0) {
        uint length = 0;
        for (int k = 0; k < cities; k++) length += distances[tour[k] * cities + tour[k + 1 < cities ? k + 1 : 0]];
        lengths[number] = length;
    }
    if (tours) for (int k = me; k < cities; k += MEMBERS) tours[number * cities + k] = tour[k];
}
"""


@dataclass(frozen=True)
class GpuClimbs:
    """The result of climbs on a graphics processor."""

    length: int
    """The shortest tour's length."""
    number: int
    """The number of the climb that found that tour; of several such climbs, the first."""
    tour: list[int]
    """The cities of that tour in order, numbered from zero."""
    seconds: float
    """Working time of the device by its own clock, without compilation and data transfers."""
    device: str
    """The device's name."""


def climbs(cities: Sequence[tuple[int, int]], numbers: Iterable[int], *, seed: int, device: str = "gpu") -> GpuClimbs:
    """Make the climbs with these numbers on the first device of a kind that OpenCL finds on this machine.

    Args:
        cities: coordinates, at most 256 of them.
        numbers: the numbers of the climbs, at least one.
        seed: the seed of the climbs' random numbers.
        device: the kind of device: `gpu`, or `cpu` for tests.

    Raises:
        InputError: PyOpenCL is not installed, or there is no device of that kind.
    """
    made = list(numbers)
    cl = _opencl()
    found = _device(cl, device)
    context = cl.Context([found])
    queue = cl.CommandQueue(context, properties=cl.command_queue_properties.PROFILING_ENABLE)
    kernel = cl.Program(context, SOURCE).build(options=[f"-DMEMBERS={MEMBERS}"]).climb

    def on_device(array: np.ndarray[Any, Any]) -> Any:
        flags = cl.mem_flags
        return cl.Buffer(context, flags.READ_WRITE | flags.COPY_HOST_PTR, hostbuf=array)

    table = on_device(_distances(cities).astype(np.uint16))

    def run(states: Sequence[int], tours: Any) -> tuple[np.ndarray[Any, Any], int]:
        lengths = np.zeros(len(states), np.uint32)
        shared = on_device(lengths)
        size = (len(states) * MEMBERS,)
        starts = on_device(np.array(states, np.uint32))
        done = kernel(queue, size, (MEMBERS,), table, np.int32(len(cities)), starts, shared, tours)
        cl.enqueue_copy(queue, lengths, shared)
        queue.finish()
        return lengths, done.profile.end - done.profile.start

    states = [zlib.crc32(number.to_bytes(4, "little"), seed) | 1 for number in made]
    parts = [run(part, None) for part in _cut(states)]
    lengths = np.concatenate([lengths for lengths, _ in parts])
    best = int(lengths.argmin())
    tour = np.zeros(len(cities), np.uint8)
    tours = on_device(tour)
    run([states[best]], tours)
    cl.enqueue_copy(queue, tour, tours)
    queue.finish()
    seconds = sum(ns for _, ns in parts) / 1e9
    return GpuClimbs(int(lengths[best]), made[best], tour.tolist(), seconds, found.name.strip())


def _cut(states: Sequence[int]) -> Iterator[Sequence[int]]:
    for at in range(0, len(states), AT_ONCE):
        yield states[at : at + AT_ONCE]


def _distances(cities: Sequence[tuple[int, int]]) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Distances of all pairs, rounded to the nearest integer, as in TSPLIB's EUC_2D."""
    at = np.array(cities, np.int64)
    squares = ((at[:, None] - at[None]) ** 2).sum(axis=2)
    roots = np.sqrt(squares.astype(np.float64)).astype(np.int64)
    return np.asarray(roots + (squares - roots * roots > roots))


def _opencl() -> Any:
    try:
        import pyopencl
    except ImportError as error:
        raise InputError(
            'climbing on a graphics processor takes PyOpenCL; pip install "nicety[gpu]", or leave out --compare gpu'
        ) from error
    return pyopencl


def _device(cl: Any, kind: str) -> Any:
    wanted = {"gpu": cl.device_type.GPU, "cpu": cl.device_type.CPU}[kind]
    try:
        platforms = cl.get_platforms()
    except cl.LogicError:  # there is no driver of any kind
        platforms = []
    for platform in platforms:
        for device in platform.get_devices():
            if device.type & wanted:
                return device
    raise InputError("OpenCL finds no graphics processor on this machine; leave out --compare gpu")
