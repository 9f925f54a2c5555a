"""The travelling salesman's climbs on a graphics processor, by OpenCL, if PyOpenCL is installed.

A climb is a 2-opt search from one random tour. The algorithm is that of `handlers/nfp/tsp_climb.h`: a climb with the
same number finds the same tour. One work-group makes a climb, and its work-items share the moves. Of equally good
moves, the work-group takes the one that a sequential search finds first.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from nicety.errors import InputError

MEMBERS = 128
"""Number of work-items in a work-group."""

AT_ONCE = 1 << 14
"""Maximum number of climbs per kernel launch. The device may also drive a display, so a launch must be short."""

SOURCE = r"""
/* Climbs number `first` and so on of `states`; a group each. `tours` may be left out. Distances are below 2^30. */
__kernel void climb(__global const DISTANCE *distances, const int cities, __global const uint *states,
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
            int saved = (int)distances[a * cities + b] + (int)distances[c * cities + d] -
                        (int)distances[a * cities + c] - (int)distances[b * cities + d];
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
    """The best result of several climbs on a graphics processor."""

    length: int
    """The length of the shortest tour that a climb found."""
    number: int
    """The number of the climb that found the shortest tour. If several climbs found it, the first of them."""
    tour: list[int]
    """The cities of the shortest tour in order, numbered from zero."""
    seconds: float
    """Time in seconds that the device executed kernels, by its own clock, without compilation and data transfers."""
    device: str
    """The device's name."""


def climbs(distances: Sequence[Sequence[int]], numbers: Iterable[int], *, seed: int, device: str = "gpu") -> GpuClimbs:
    """Make the climbs with the given numbers, on the first OpenCL device of the given kind on this machine.

    Args:
        distances: the symmetric matrix of distances between cities, each below 2^30; at most 256 cities.
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
    # Narrow distances leave more room in the device's caches.
    widest = max(max(row) for row in distances)
    kind, width = ("ushort", np.uint16) if widest < 1 << 16 else ("uint", np.uint32)
    matrix = np.array(distances, width)
    kernel = cl.Program(context, SOURCE).build(options=[f"-DMEMBERS={MEMBERS}", f"-DDISTANCE={kind}"]).climb

    def on_device(array: np.ndarray[Any, Any]) -> Any:
        flags = cl.mem_flags
        return cl.Buffer(context, flags.READ_WRITE | flags.COPY_HOST_PTR, hostbuf=array)

    table = on_device(matrix)

    def run(states: Sequence[int], tours: Any) -> tuple[np.ndarray[Any, Any], int]:
        lengths = np.zeros(len(states), np.uint32)
        shared = on_device(lengths)
        size = (len(states) * MEMBERS,)
        starts = on_device(np.array(states, np.uint32))
        done = kernel(queue, size, (MEMBERS,), table, np.int32(len(matrix)), starts, shared, tours)
        cl.enqueue_copy(queue, lengths, shared)
        queue.finish()
        return lengths, done.profile.end - done.profile.start

    states = [zlib.crc32(number.to_bytes(4, "little"), seed) | 1 for number in made]
    parts = [run(part, None) for part in _cut(states)]
    lengths = np.concatenate([lengths for lengths, _ in parts])
    best = int(lengths.argmin())
    tour = np.zeros(len(matrix), np.uint8)
    tours = on_device(tour)
    run([states[best]], tours)
    cl.enqueue_copy(queue, tour, tours)
    queue.finish()
    seconds = sum(ns for _, ns in parts) / 1e9
    return GpuClimbs(int(lengths[best]), made[best], tour.tolist(), seconds, found.name.strip())


def _cut(states: Sequence[int]) -> Iterator[Sequence[int]]:
    for at in range(0, len(states), AT_ONCE):
        yield states[at : at + AT_ONCE]


def _opencl() -> Any:
    try:
        import pyopencl
    except ImportError as error:
        raise InputError(
            'climbing on a graphics processor needs PyOpenCL; pip install "nicety[gpu]", or leave out --compare gpu'
        ) from error
    return pyopencl


def _device(cl: Any, kind: str) -> Any:
    wanted = {"gpu": cl.device_type.GPU, "cpu": cl.device_type.CPU}[kind]
    try:
        platforms = cl.get_platforms()
    except cl.LogicError:  # no OpenCL driver is installed
        platforms = []
    for platform in platforms:
        for device in platform.get_devices():
            if device.type & wanted:
                return device
    raise InputError("OpenCL finds no graphics processor on this machine; leave out --compare gpu")
