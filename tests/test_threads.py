"""Several threads of one host's program, on any card."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from typing import Any

import pytest

import nicety

CARDS = ["spin-discrete", "nfp-4000"]


def alone(main: Any, card: str = "spin-discrete", **options: Any) -> nicety.Run:
    return nicety.Cluster(1, card, **options).run(main)


async def wait(host: nicety.Host, ns: float, result: Any = None) -> Any:
    await host.compute(ns=ns)
    return result


@pytest.mark.parametrize("card", CARDS)
def test_threads_go_on_at_once_and_results_come_in_order(card: str) -> None:
    async def main(host: nicety.Host) -> Any:
        results = await host.gather(wait(host, 300, "slow"), wait(host, 100, "fast"), wait(host, 200))
        return results, host.now_ns, await host.gather()

    assert alone(main, card).results[0] == (["slow", "fast", None], 300, [])


def test_threads_wait_for_a_free_core() -> None:
    async def main(host: nicety.Host) -> float:
        await host.gather(*(wait(host, 100) for _ in range(5)))
        return host.now_ns

    assert alone(main, set={"host.cores": 2}).results[0] == 300


def test_threads_have_threads() -> None:
    async def pair(host: nicety.Host, ns: float) -> float:
        await host.gather(wait(host, ns), wait(host, 2 * ns))
        return host.now_ns

    async def main(host: nicety.Host) -> Any:
        return await host.gather(pair(host, 10), pair(host, 100)), host.now_ns

    assert alone(main).results[0] == ([20, 200], 200)


def test_threads_share_buffers_and_messages_find_theirs() -> None:
    async def send(host: nicety.Host, tag: int) -> None:
        buffer = host.alloc(8)
        buffer.array[:] = tag
        await host.send(buffer, to=1, tag=tag)

    async def left(host: nicety.Host) -> None:
        await host.barrier()
        await host.gather(*(send(host, tag) for tag in range(4)))

    async def receive(host: nicety.Host, pending: nicety.PendingRecv, buffer: nicety.Buffer) -> int:
        received = await pending
        assert set(buffer.array) == {received.tag}
        return received.tag

    async def right(host: nicety.Host) -> list[int]:
        buffers = [host.alloc(8) for _ in range(4)]
        pending = [await host.post_recv(buffer, source=0, tag=3 - tag) for tag, buffer in enumerate(buffers)]
        await host.barrier()
        return await host.gather(*(receive(host, *pair) for pair in zip(pending, buffers, strict=True)))

    run = nicety.Cluster(2, "spin-discrete").run({0: left, 1: right})
    assert run.results[1] == [3, 2, 1, 0]


def test_barriers_of_threads_are_one_after_another() -> None:
    async def barrier(host: nicety.Host) -> float:
        await host.barrier()
        return host.now_ns

    async def main(host: nicety.Host) -> Any:
        if host.rank == 0:
            return await host.gather(barrier(host), barrier(host))
        return [await barrier(host), await barrier(host)]

    run = nicety.Cluster(2, "spin-discrete").run(main)
    assert run.results[0] == run.results[1] == [20_000, 40_000]


class Broken(Exception):
    pass


async def fail(host: nicety.Host, ns: float, text: str) -> None:
    await host.compute(ns=ns)
    raise Broken(text)


def test_the_first_failure_is_raised_when_all_have_ended() -> None:
    ended = []

    async def late(host: nicety.Host) -> None:
        await host.compute(ns=500)
        ended.append(host.now_ns)

    async def main(host: nicety.Host) -> float:
        with pytest.raises(Broken, match="second"):
            await host.gather(late(host), fail(host, 200, "first"), fail(host, 100, "second"))
        return host.now_ns

    assert alone(main).results[0] == 500
    assert ended == [500]


def test_an_uncaught_failure_ends_the_run() -> None:
    async def main(host: nicety.Host) -> None:
        await host.gather(fail(host, 100, "broken"), wait(host, 1000))

    with pytest.raises(Broken, match="broken") as raised:
        alone(main)
    assert raised.value.__notes__ == ["in the program of rank 0, at 100.0 ns of virtual time"]


def test_a_failure_is_told_where_others_wait_for_that_thread() -> None:
    async def stuck(host: nicety.Host) -> None:
        await host.recv(host.alloc(8))

    async def main(host: nicety.Host) -> None:
        await host.gather(fail(host, 100, "broken"), stuck(host))

    with pytest.raises(Broken, match="broken") as raised:
        alone(main)
    assert isinstance(raised.value.__cause__, nicety.Deadlock)


def test_a_deadlock_names_the_threads() -> None:
    async def stuck(host: nicety.Host, tag: int) -> None:
        await host.recv(host.alloc(8), tag=tag)

    async def main(host: nicety.Host) -> None:
        await host.gather(stuck(host, 4), stuck(host, 5))

    with pytest.raises(nicety.Deadlock) as raised:
        alone(main)
    text = str(raised.value)
    for part in ("rank 0, thread 1", "tag 4", "rank 0, thread 2", "tag 5", "the end of its thread 1"):
        assert part in text


class Nothing:
    """An awaitable object that is not a coroutine."""

    def __await__(self) -> Iterator[None]:
        return iter(())


def test_threads_that_are_no_coroutines_are_refused() -> None:
    async def main(host: nicety.Host) -> None:
        with pytest.raises(nicety.InputError, match=r"gather takes coroutines, as in .* not function"):
            await host.gather(Nothing(), main)  # type: ignore[arg-type]
        once = wait(host, 1)
        with pytest.raises(nicety.InputError, match="was given before, or awaited; call its function again"):
            await host.gather(once, once)
        await host.gather(once)
        with pytest.raises(nicety.InputError, match="was given before, or awaited"):
            await host.gather(once)

    alone(main)


def test_calls_of_the_host_are_gathered_like_coroutines() -> None:
    async def main(host: nicety.Host) -> Any:
        out, back = host.alloc(8), host.alloc(8)
        out.array[:] = host.rank + 1
        peer = 1 - host.rank
        pending = await host.post_recv(back, source=peer, tag=1)
        await host.barrier()
        _, received, *rest = await host.gather(
            host.send(out, to=peer, tag=1), pending, host.compute(ns=1000), wait(host, 1, "end")
        )
        return received.source, int(back.array[0]), rest, host.now_ns > 1000

    run = nicety.Cluster(2, "spin-discrete").run(main)
    assert run.results == {rank: (1 - rank, 2 - rank, [None, "end"], True) for rank in (0, 1)}


def test_a_call_is_gathered_once() -> None:
    async def main(host: nicety.Host) -> None:
        call = host.compute(ns=1)
        await host.gather(call, call)

    with pytest.raises(nicety.InputError, match=r"host.compute\(...\) at .* was awaited before"):
        alone(main)


def test_a_call_that_is_not_awaited_is_told_in_threads_too() -> None:
    async def forgets(host: nicety.Host) -> None:
        host.compute(ns=5)
        await host.compute(ns=1)

    async def main(host: nicety.Host) -> None:
        await host.gather(forgets(host))

    with pytest.raises(nicety.InputError, match=r"host.compute\(...\) at .* was never awaited"):
        alone(main)


def test_a_gather_that_is_not_awaited_is_told() -> None:
    async def main(host: nicety.Host) -> None:
        host.gather(wait(host, 1))
        await host.compute(ns=1)

    with pytest.raises(nicety.InputError, match=r"host.gather\(...\) at .* was never awaited; write await host.gather"):
        alone(main)


def test_the_same_seed_is_the_same_run_in_any_number_of_shards() -> None:
    async def main(host: nicety.Host) -> Any:
        return await host.gather(*(wait(host, 100 + host.rank, n) for n in range(20))), host.now_ps

    def run(shards: int) -> nicety.Run:
        return nicety.Cluster(4, "spin-discrete", topology="star", noise="1us,200ns", shards=shards).run(main)

    assert run(1).results == run(4).results
    assert run(1).time_ps == run(2).time_ps


def test_ended_threads_are_forgotten() -> None:
    """A program may have any number of threads, one after another: none of them is kept, or searched."""

    class Big:
        pass

    async def returns(_: nicety.Host) -> Big:
        return Big()

    async def fails(_: nicety.Host) -> None:
        raise ValueError("broken")

    async def main(host: nicety.Host) -> int:
        kept: list[weakref.ref[object]] = []
        for _ in range(3):
            thread = returns(host)
            kept.append(weakref.ref(thread))
            results = await host.gather(thread, returns(host))
            kept.append(weakref.ref(results[0]))
            failing = fails(host)
            kept.append(weakref.ref(failing))
            try:
                await host.gather(failing, returns(host))
            except ValueError as error:
                error.__traceback__ = None
            del thread, results, failing
        return sum(each() is not None for each in kept)

    assert nicety.Cluster(2, "spin-discrete").run({0: main, 1: main}).results == {0: 0, 1: 0}
