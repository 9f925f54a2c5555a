"""The stepping of programs in the caller's thread, where Ctrl-C, other threads, runs inside runs and errors work."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import io
import os
import signal
import sys
import threading
import time
import traceback
import types
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from rich.progress import Progress

import nicety

LONG = """#include <nicety.h>
__handler int payload_handler(const ptl_payload_t p, void *state) {
    for (volatile uint32_t round = 0;; round++)
        ;
}
"""


def alone(main: Any, **options: Any) -> nicety.Run:
    return nicety.Cluster(1, "spin-discrete", **options).run(main)


class CtrlC:
    """Presses Ctrl-C half a second after `start`."""

    def __init__(self) -> None:
        self._timer = threading.Timer(0.5, self._press)
        self.pressed = 0.0

    def _press(self) -> None:
        self.pressed = time.monotonic()
        os.kill(os.getpid(), signal.SIGINT)

    def start(self) -> None:
        self._timer.start()

    @contextlib.contextmanager
    def ends_this(self) -> Iterator[None]:
        try:
            with pytest.raises(KeyboardInterrupt):
                yield
        finally:
            self._timer.cancel()


def run_for_long(folder: Path, begin: Callable[[], None]) -> None:
    """An hour of a handler, without a step of a program, after a call of `begin`."""
    source = folder / "long.c"
    source.write_text(LONG)

    async def sender(host: nicety.Host) -> None:
        await host.barrier()
        await host.portals.put(host.portals.md_bind(host.alloc(8)), 8, to=1, pt=1)

    async def receiver(host: nicety.Host) -> None:
        back, count = host.alloc(8), host.portals.ct_alloc()
        attached = host.portals.attach(nicety.Handlers(source))
        await host.portals.me_append(
            back, pt=host.portals.pt_alloc(pt=1), options=["op_put", "event_ct_comm"], ct=count, handlers=attached
        )
        await host.barrier()
        begin()
        await host.portals.ct_wait(count, 1)

    cluster = nicety.Cluster(2, "spin-discrete", set={"hpu.cycle_limit": 10**12})
    cluster.run({0: sender, 1: receiver})


def test_ctrl_c_ends_a_long_stretch_of_simulation_and_other_threads_go_on(tmp_path: Path) -> None:
    ticks, over = [0], threading.Event()

    def tick() -> None:
        while not over.wait(0.005):
            ticks[0] += 1

    ticking = threading.Thread(target=tick)
    ticking.start()
    try:
        ctrl_c = CtrlC()
        with ctrl_c.ends_this():
            run_for_long(tmp_path, ctrl_c.start)
        # It takes an hour otherwise, and less than a quarter of a second on an idle machine.
        assert time.monotonic() - ctrl_c.pressed < 10
    finally:
        over.set()
        ticking.join()
    assert ticks[0] > 10


def test_ctrl_c_ends_a_computation_through_endless_noise() -> None:
    ctrl_c = CtrlC()

    async def main(host: nicety.Host) -> None:
        ctrl_c.start()
        await host.compute(ns=1e13)

    with ctrl_c.ends_this():
        alone(main, noise="100ns,20ns")


def test_progress_is_shown_in_a_long_run(tmp_path: Path) -> None:
    shown = io.StringIO()
    console = Console(file=shown, force_terminal=True, width=80)
    ctrl_c = CtrlC()
    with ctrl_c.ends_this(), Progress(console=console, refresh_per_second=20) as progress:
        progress.add_task("a long run", total=None)
        run_for_long(tmp_path, ctrl_c.start)
    assert shown.getvalue().count("a long run") > 4


def test_ctrl_c_is_raised_in_a_program_that_computes_in_python() -> None:
    closed: list[str] = []

    async def other(host: nicety.Host) -> None:
        try:
            await host.recv(host.alloc(8))
        finally:
            closed.append("other")

    async def computes(host: nicety.Host) -> None:
        await host.compute(ns=1)
        try:
            while True:
                pass
        finally:
            closed.append("computes")

    ctrl_c = CtrlC()
    ctrl_c.start()
    with ctrl_c.ends_this():
        nicety.Cluster(2, "spin-discrete").run({0: other, 1: computes})
    assert closed == ["computes", "other"]


def test_ctrl_c_ends_the_set_up_of_a_large_cluster() -> None:
    def handle(*_: object) -> None:
        raise TimeoutError("enough")

    def set_up() -> None:
        for _ in range(1000):
            nicety.Cluster(1024, "spin-discrete", topology="fat-tree")

    before = signal.signal(signal.SIGALRM, handle)
    signal.setitimer(signal.ITIMER_REAL, 0.2)
    try:
        with pytest.raises(TimeoutError, match="enough"):
            set_up()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_a_run_inside_a_run() -> None:
    async def inner(host: nicety.Host) -> tuple[int, float]:
        host.alloc(8)
        await host.compute(ns=3)
        return host.rank, host.now_ns

    async def outer(host: nicety.Host) -> Any:
        await host.compute(ns=1)
        results = nicety.Cluster(2, "spin-integrated").run(inner).results
        made = host.alloc(16)
        await host.compute(ns=1)
        return results, len(made), host.now_ns

    assert alone(outer).results[0] == ({0: (0, 3.0), 1: (1, 3.0)}, 16, 2.0)


def test_a_host_of_another_run_is_refused() -> None:
    async def outer(host: nicety.Host) -> list[str]:
        told = []

        async def asks(_: nicety.Host) -> None:
            host.alloc(8)

        async def awaits(_: nicety.Host) -> None:
            await host.compute(ns=1)

        async def sends(own: nicety.Host) -> None:
            await own.send(host.alloc(8), to=0)

        for inner in (asks, awaits, sends):
            with pytest.raises(nicety.InputError) as raised:
                alone(inner)
            told.append(str(raised.value))
        return told

    asked, awaited, sent = alone(outer).results[0]
    assert "<Host, rank 0 of 1> is used outside its program, which does not run now" in asked
    assert "rank 0 awaits a call of another run; a host program may await only" in awaited
    assert "used outside its program" in sent


def test_memory_of_another_run_is_refused() -> None:
    async def outer(host: nicety.Host) -> str:
        memory = host.alloc(8)

        async def sends(own: nicety.Host) -> None:
            await own.send(memory, to=0)

        with pytest.raises(nicety.InputError) as raised:
            alone(sends)
        return str(raised.value)

    assert "<Buffer of rank 0, 8 bytes> is not memory of rank 0: hosts share none" in alone(outer).results[0]


def test_a_host_is_refused_in_another_thread() -> None:
    async def main(host: nicety.Host) -> str:
        told = []

        def elsewhere() -> None:
            with pytest.raises(nicety.InputError) as raised:
                host.alloc(8)
            told.append(str(raised.value))

        thread = threading.Thread(target=elsewhere)
        thread.start()
        thread.join()
        return told[0]

    assert "is used outside its program" in alone(main).results[0]


def traffic(seed: int) -> Any:
    async def main(host: nicety.Host) -> int:
        other, out, back = 1 - host.rank, host.alloc(64), host.alloc(64)
        for tag in range(100):
            out.array[:] = tag
            if host.rank == 0:
                await host.barrier()
                await host.send(out, to=other, tag=tag)
            else:
                pending = await host.post_recv(back, tag=tag)
                await host.barrier()
                assert (await pending).tag == tag
                assert (back.array == tag).all()
        return host.now_ps

    run = nicety.Cluster(2, "spin-discrete", seed=seed, noise="1us,100ns").run(main)
    return run.results, run.time_ps, run.events


def test_runs_in_several_threads_at_once() -> None:
    found: dict[int, Any] = {}

    def run(seed: int) -> None:
        found[seed] = traffic(seed)

    threads = [threading.Thread(target=run, args=[seed]) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {seed: traffic(seed) for seed in range(4)}
    assert len({str(each) for each in found.values()}) > 1


def test_objects_may_be_dropped_in_another_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    raised: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", raised.append)
    monkeypatch.setattr(threading, "excepthook", raised.append)
    kept: list[Any] = []

    async def main(host: nicety.Host) -> None:
        buffer = host.alloc(8)
        call = host.compute(ns=1)
        kept.extend([host, buffer, buffer.array, await host.post_recv(buffer), call])
        await call

    cluster = nicety.Cluster(1, "spin-discrete")
    kept.extend([cluster, cluster.run(main)])

    def drop() -> None:
        kept.clear()
        gc.collect()

    thread = threading.Thread(target=drop)
    thread.start()
    thread.join()
    assert raised == []


class Own:
    """An awaitable of a program, around a call or something else."""

    def __init__(self, what: Any) -> None:
        self.what = what

    def __await__(self) -> Generator[Any, Any, Any]:
        return (yield from self.what.__await__())


class Bare:
    def __await__(self) -> Generator[int, None, None]:
        yield 7


def test_awaitables_of_ones_own_around_calls() -> None:
    @types.coroutine
    def plain(host: nicety.Host) -> Generator[Any, Any, Any]:
        yield from host.compute(ns=2).__await__()
        return "done"

    async def main(host: nicety.Host) -> Any:
        await Own(host.compute(ns=1))
        return await plain(host), host.now_ns

    assert alone(main).results[0] == ("done", 3.0)


def test_foreign_awaitables_are_told_and_may_be_handled() -> None:
    loop = asyncio.new_event_loop()
    told: list[str] = []

    async def main(host: nicety.Host) -> float:
        for what in (loop.create_future(), Bare(), Own(Bare())):
            with pytest.raises(nicety.InputError) as raised:
                await what
            told.append(str(raised.value))
        await host.compute(ns=1)
        return host.now_ns

    assert alone(main).results[0] == 1.0
    loop.close()
    end = "; a host program may await only what its own host offers, such as host.recv(...) or host.compute(ns=...)"
    assert told == [
        f"rank 0 awaits something foreign ({name}){end}" for name in ("_asyncio.Future", "builtins.int", "builtins.int")
    ]


@pytest.mark.parametrize("first", [True, False])
def test_asyncio_is_told(first: bool) -> None:
    async def sleeps(_: nicety.Host) -> None:
        await asyncio.sleep(1)

    async def gathers(host: nicety.Host) -> None:
        await host.gather(sleeps(host))

    with pytest.raises(nicety.InputError, match="rank 0 awaits asyncio; a host program may await only") as raised:
        alone(sleeps if first else gathers)
    assert isinstance(raised.value.__cause__, RuntimeError)


class Broken(Exception):
    pass


async def breaks(host: nicety.Host) -> None:
    await host.compute(ns=5)
    try:
        host.alloc(-1)
    except nicety.InputError as error:
        raise Broken("mine") from error


@pytest.mark.parametrize("first", [True, False])
def test_errors_keep_their_tracebacks_and_causes(first: bool) -> None:
    async def outer(host: nicety.Host) -> None:
        await breaks(host)

    async def gathers(host: nicety.Host) -> None:
        await host.gather(outer(host))

    with pytest.raises(Broken, match="mine") as raised:
        alone(outer if first else gathers)
    names = [frame.name for frame in traceback.extract_tb(raised.value.__traceback__)]
    assert names[-2:] == ["outer", "breaks"]
    assert ("gathers" in names) is not first
    assert isinstance(raised.value.__cause__, nicety.InputError)
    assert raised.value.__notes__ == ["in the program of rank 0, at 5.0 ns of virtual time"]


def test_a_call_that_fails_is_raised_where_it_is_awaited() -> None:
    async def main(host: nicety.Host) -> None:
        await host.send(host.alloc(8), to=7)

    with pytest.raises(nicety.InputError, match="no rank 7") as raised:
        alone(main)
    assert traceback.extract_tb(raised.value.__traceback__)[-1].line == "await host.send(host.alloc(8), to=7)"


# An exit of a program is an error of the run, which it causes.
@pytest.mark.parametrize(
    ("kind", "raised"),
    [
        (SystemExit, nicety.RunError),
        (GeneratorExit, GeneratorExit),
        (asyncio.CancelledError, asyncio.CancelledError),
    ],
)
def test_exits_end_the_run_at_once(kind: type[BaseException], raised: type[BaseException]) -> None:
    async def leaves(host: nicety.Host) -> None:
        await host.compute(ns=1)
        raise kind

    async def main(host: nicety.Host) -> None:
        await host.gather(leaves(host), never(host))

    async def never(host: nicety.Host) -> None:
        await host.compute(ns=2)
        raise AssertionError

    with pytest.raises(raised):
        alone(main)


def test_finally_blocks_run_when_a_run_fails() -> None:
    closed: list[str] = []

    async def waits(host: nicety.Host, name: str) -> None:
        try:
            await host.recv(host.alloc(8))
        finally:
            closed.append(name)
            with pytest.raises(nicety.InputError, match="used outside its program"):
                host.alloc(8)

    async def fails(host: nicety.Host) -> None:
        try:
            await host.gather(waits(host, "thread"), breaks(host), waits(host, "other thread"))
        finally:
            closed.append("main")

    async def stops(host: nicety.Host) -> None:
        await host.compute(ns=9)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        nicety.Cluster(2, "spin-discrete").run({0: fails, 1: stops})
    assert closed == ["main", "thread", "other thread"]
    closed.clear()
    with pytest.raises(Broken):
        nicety.Cluster(2, "spin-discrete").run({0: fails})
    assert closed == ["main", "thread", "other thread"]


def test_errors_of_clean_up_hide_no_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    raised: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda each: raised.append(each.exc_value))

    async def untidy(host: nicety.Host) -> None:
        try:
            await host.recv(host.alloc(8))
        finally:
            await host.compute(ns=1)

    async def stops(host: nicety.Host) -> None:
        await host.compute(ns=9)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        nicety.Cluster(2, "spin-discrete").run({0: untidy, 1: stops})
    assert [str(each) for each in raised] == ["coroutine ignored GeneratorExit"]


def test_a_failure_stops_everything_at_once() -> None:
    after: list[int] = []

    async def goes_on(host: nicety.Host) -> None:
        for number in range(100):
            await host.compute(ns=10)
            after.append(number)

    async def stops(host: nicety.Host) -> None:
        await host.compute(ns=25)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        nicety.Cluster(2, "spin-discrete").run({0: goes_on, 1: stops})
    assert after == [0, 1]


def test_a_call_is_awaited_once() -> None:
    async def main(host: nicety.Host) -> list[str]:
        call, told = host.compute(ns=1), []
        await call
        for again in (call, Own(call)):
            with pytest.raises(nicety.InputError) as raised:
                await again
            told.append(str(raised.value))
        return told

    line = main_line(main, "call, told")
    text = f"host.compute(...) at {__file__}:{line} was awaited before; call it again"
    assert alone(main).results[0] == [text, text]


def main_line(function: Any, begins: str) -> int:
    """The number of the line of a function with this beginning."""
    lines = Path(__file__).read_text().splitlines()
    first: int = function.__code__.co_firstlineno
    return next(number for number in range(first, first + 20) if lines[number - 1].strip().startswith(begins))


def test_a_forgotten_call_names_its_line_wherever_it_is_forgotten() -> None:
    async def main(host: nicety.Host) -> None:
        held = [host.compute(ns=1)]
        await host.compute(ns=2)
        held.clear()
        await host.compute(ns=3)

    line = main_line(main, "held =")
    with pytest.raises(nicety.InputError, match=rf"rank 0: host.compute\(...\) at .*:{line} was never awaited"):
        alone(main)


def test_a_call_forgotten_by_an_exception_leaves_the_exception() -> None:
    async def main(host: nicety.Host) -> None:
        await host.compute(ns=1)
        print([host.compute(ns=1), 1 / 0])

    with pytest.raises(ZeroDivisionError):
        alone(main)


def test_the_same_coroutine_waits_for_one_gather() -> None:
    async def main(host: nicety.Host) -> float:
        async def computes() -> None:
            await host.compute(ns=1)

        once = computes()
        first = host.gather(once)
        with pytest.raises(nicety.InputError, match="was given before"):
            host.gather(once)
        await first
        return host.now_ns

    assert alone(main).results[0] == 1.0


def test_coroutines_that_are_never_begun_are_closed_quietly() -> None:
    async def fine(host: nicety.Host) -> None:
        await host.compute(ns=1)

    def wrong(_: nicety.Host) -> None:
        return None

    with pytest.raises(nicety.InputError, match="rank 1 is no async function"):
        nicety.Cluster(2, "spin-discrete").run({0: fine, 1: wrong})
    gc.collect()


def test_times_are_rounded_up_by_their_digits() -> None:
    times = [1, 0.1, 0.0001, 2.5, 1e-9, 3.0000000001, 1234567.890625, "1.5", 10**6, True]

    async def main(host: nicety.Host) -> list[int]:
        took = []
        for ns in times[:-1]:
            begun = host.now_ps
            await host.compute(ns=ns)  # type: ignore[arg-type]
            took.append(host.now_ps - begun)
        with pytest.raises(nicety.InputError, match=r"compute\(ns=True\): a time is a number"):
            host.compute(ns=True)
        return took

    assert alone(main).results[0] == [1000, 100, 1, 2500, 1, 3001, 1234567891, 1500, 10**9]


def test_a_cluster_runs_in_any_thread_and_more_than_once() -> None:
    async def exchange(host: nicety.Host) -> int:
        buffer = host.alloc(64)
        if host.rank == 1:
            await host.send(buffer, to=0, tag=1)
        else:
            await host.recv(buffer)
        return host.rank

    runs: list[nicety.Run] = []

    def run(cluster: nicety.Cluster) -> None:
        runs.append(cluster.run(exchange))

    clusters = [nicety.Cluster(2, "spin-discrete") for _ in range(2)]
    # Built in this thread, which no longer has the first one's cluster.
    run(clusters[0])
    for cluster in clusters:
        run(cluster)
    for work in (lambda: run(clusters[1]), lambda: run(nicety.Cluster(2, "spin-discrete"))):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert len(runs) == 5
    assert {(one.time_ns, one.events, tuple(one.results.values())) for one in runs} == {
        (runs[0].time_ns, runs[0].events, (0, 1))
    }
