"""A program's own accesses to host memory: lines, the cache, and concurrent writes of the card."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

import nicety

KIB = 1 << 10


def times(program: Callable[[nicety.Host], list[Callable[[], Awaitable[None]]]], **changes: Any) -> tuple[Any, Any]:
    """The duration of each of a program's steps in nanoseconds, and the report of its node."""

    async def main(host: nicety.Host) -> list[float]:
        took = []
        for step in program(host):
            begun = host.now_ps
            await step()
            took.append((host.now_ps - begun) / 1000)
        return took

    run = nicety.Cluster(2, "spin-discrete", set=changes).run({0: main})
    return run.results[0], run.nodes[0]


def test_a_copy_is_as_fast_as_lines_come_and_then_as_the_core() -> None:
    def program(host: nicety.Host) -> list[Any]:
        one, other = host.alloc(64 * KIB), host.alloc(64 * KIB)
        one.array[:] = 7
        check = [lambda: host.copy(one, other), lambda: host.copy(one, other)]
        return [*check, lambda: host.compute(ns=1 if (other.array == 7).all() else 2)]

    took, node = times(program)
    # 1024 lines arrive ten in 51 ns; cached bytes are copied 16 per cycle of 0.4 ns.
    assert took == [103 * 51, 4096 * 0.4, 1]
    assert (node.host_memory_read_bytes, node.host_memory_written_bytes) == (64 * KIB, 64 * KIB)


def test_blocks_fetch_the_lines_that_they_touch() -> None:
    def program(host: nicety.Host) -> list[Any]:
        memory = host.alloc(64 * KIB)
        return [
            lambda: host.compute(reads=[(memory, [(0, 1), (63, 2), (640, 64)])]),
            lambda: host.compute(writes=[(memory[128:], [(0, 64), (70, 8)])]),
            lambda: host.compute(cycles=1000, reads=[memory[:64]]),
        ]

    took, node = times(program)
    # Three lines; then a wholly written one and a partly written one, which must be fetched first; then a cached one.
    assert took == [51 + 1.193, 51 + 1.193, 400]
    assert (node.host_memory_read_bytes, node.host_memory_written_bytes) == (4 * 64, 2 * 64)


def test_a_cache_is_as_large_as_the_spec_has_it() -> None:
    def program(host: nicety.Host) -> list[Any]:
        memory = host.alloc(64 * KIB)
        return [lambda: host.compute(reads=[memory]) for _ in range(2)]

    assert times(program)[0] == [103 * 51, pytest.approx(51 - 51, abs=0)]
    small, node = times(program, **{"host.cache": "63 KiB"})
    assert small == [103 * 51] * 2
    assert node.host_memory_read_bytes == 128 * KIB
    one_by_one, _ = times(program, **{"host.line_fills": 1, "host.memory_latency": "10 ns"})
    assert one_by_one[0] == 10_240
    # With many lines in flight bandwidth is the limit: 64 KiB at 150 GiB/s after the first latency.
    wide, _ = times(program, **{"host.line_fills": 1024})
    assert wide[0] == pytest.approx(51 + 64 * KIB / (150 * 1.024**3), abs=0.001)


def test_writes_of_the_card_are_not_in_the_cache() -> None:
    async def sender(host: nicety.Host) -> None:
        out = host.alloc(KIB)
        await host.barrier()
        await host.send(out, to=1)

    async def receiver(host: nicety.Host) -> list[int]:
        back, took = host.alloc(4 * KIB), []
        for _ in range(2):
            begun = host.now_ps
            await host.compute(reads=[back])
            took.append(host.now_ps - begun)
            if not took[1:]:
                await host.barrier()
                await host.recv(back[:KIB])
        return took

    run = nicety.Cluster(2, "spin-discrete").run({0: sender, 1: receiver})
    # 64 lines in seven rounds; then the 16 of the message, in two.
    assert run.results[1] == [7 * 51_000, 2 * 51_000]


def test_noise_delays_it_too() -> None:
    async def main(host: nicety.Host) -> int:
        memory = host.alloc(1 << 20)
        await host.compute(reads=[memory])
        return host.now_ps

    quiet = nicety.Cluster(2, "spin-discrete").run({0: main}).results[0]
    noisy = nicety.Cluster(2, "spin-discrete", noise="10us,5us").run({0: main}).results[0]
    assert noisy > 1.3 * quiet


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda host, a, b: host.copy(a, b[:8]), "a copy of 64 bytes into a buffer of 8"),
        (lambda host, a, _: host.compute(reads=[(a, [(60, 5)])]), "past the end of a buffer of 64 bytes"),
        (lambda host, a, _: host.compute(reads=[a], cycles=2**64 - 1), "virtual time ends after 2^64 ps"),
        (lambda host, a, _: host.compute(reads=[a], cycles=-1), "cycles is a whole number"),
        (lambda host, _a, _b: host.compute(reads=[5]), "a buffer and blocks of it"),
        (lambda host, a, _: host.compute(writes=[(a, [5])]), "a buffer and blocks of it"),
        (lambda host, a, _: host.compute(writes=[(a, [(-1, 2)])]), "an offset is a whole number"),
        (lambda host, a, _: host.copy(a, bytes(64)), "made by host.alloc"),
    ],
)
def test_invalid_arguments_are_refused(call: Callable[..., Awaitable[None]], words: str) -> None:
    async def main(host: nicety.Host) -> None:
        await call(host, host.alloc(64), host.alloc(64))

    with pytest.raises(nicety.Error, match=words.replace("^", r"\^")):
        nicety.Cluster(2, "spin-discrete").run({0: main})
