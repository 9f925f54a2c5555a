"""Simulation and programs take turns: a program runs until it awaits a call, then virtual time does."""

from __future__ import annotations

import contextlib
import inspect
import json
from collections.abc import Coroutine, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from nicety import _native
from nicety._calls import Call, Progress
from nicety.applications import ApplicationReport
from nicety.errors import InputError, RunError
from nicety.failures import Failure
from nicety.faults import LinkReport, TransportReport
from nicety.host import Host, Program
from nicety.interfaces import InterfaceReport
from nicety.outcomes import NodeReport, Run
from nicety.processes import (
    ChannelReport,
    KernelReport,
    MicroengineReport,
    PortReport,
    Processes,
    ProcessReport,
    QueueReport,
)
from nicety.refusals import RefusedCommand

if TYPE_CHECKING:
    from nicety.handlers import Handlers


def _node_report(node: dict[str, Any]) -> NodeReport:
    return NodeReport(
        **node
        | {
            "applications": [ApplicationReport(**application) for application in node["applications"]],
            "transport": TransportReport(**node["transport"]),
            "refused_commands": [RefusedCommand(**command) for command in node["refused_commands"]],
            "microengines": [_microengine_report(microengine) for microengine in node["microengines"]],
            "channels": ChannelReport(**node["channels"]),
            "port": _port_report(node["port"]),
            "interfaces": InterfaceReport(**node["interfaces"]),
            "kernel": KernelReport(**node["kernel"]),
        }
    )


def _port_report(port: dict[str, Any]) -> PortReport:
    return PortReport(**port | {"queues": [QueueReport(**queue) for queue in port["queues"]]})


def _microengine_report(microengine: dict[str, Any]) -> MicroengineReport:
    processes = [ProcessReport(**process) for process in microengine["processes"]]
    return MicroengineReport(**microengine | {"processes": processes})


Thread = tuple[int, int]
"""A thread of a program: rank, and the thread's number there; the first is 0."""


class RunTurns:
    """The programs of one run, and whose turn it is."""

    def __init__(self, simulation: _native.Simulation, ranks: int, uids: Sequence[int]) -> None:
        self.simulation = simulation
        self.uids = uids
        self.ranks = ranks
        self.hosts: dict[int, Host] = {}
        self.progress: dict[int, Progress] = {}
        self.loaded: dict[Handlers | Processes, int] = {}
        # Those that have not ended, and the same by their identities.
        self.coroutines: dict[Thread, Coroutine[Any, Any, Any]] = {}
        self.alive: set[int] = set()
        # How many threads each rank has had.
        self.begun: dict[int, int] = {}
        # What threads returned, and what further ones failed with and which of them was first, until somebody is told.
        self.results: dict[Thread, Any] = {}
        self.failures: dict[Thread, tuple[int, Exception]] = {}
        self.failed = 0
        self.running: Host | None = None
        # What faults of the network did to packets, told when the run has ended.
        self.fault_notes = ""
        # What is wrong with a program that uses its host before it is driven.
        self.beginning: str | None = None

    def at_once(self, host: Host, command: Mapping[str, Any]) -> tuple[Any, Any]:
        """Ask for what takes no virtual time; give its result and the memory it allocated."""
        self._check(host)
        self.simulation.ask(json.dumps(command))
        return self._answer()

    def load(self, host: Host, program: Handlers | Processes) -> int:
        """Compile a program and hand it over, once for all hosts; give its number."""
        self._check(host)
        number = self.loaded.get(program)
        if number is None:
            elf = program.compile(isa=self.simulation.isa()).elf
            if isinstance(program, Processes):
                self.simulation.load_processes(elf)
            else:
                self.simulation.load(elf, program.header, program.payload, program.completion)
            number = self.loaded[program] = cast(int, self._answer()[0])
        return number

    def threads(self, host: Host, coroutines: Sequence[object]) -> list[int]:
        """Numbers for further threads of a host's program."""
        self._check(host)
        given: set[int] = set()
        for coroutine in coroutines:
            if not isinstance(coroutine, Coroutine):
                what = f"not {type(coroutine).__name__}"
                raise InputError(f"gather takes coroutines, as in host.gather(send(host), receive(host)), {what}")
            begun = inspect.iscoroutine(coroutine) and inspect.getcoroutinestate(coroutine) != inspect.CORO_CREATED
            if begun or id(coroutine) in self.alive or id(coroutine) in given:
                raise InputError(f"gather: {coroutine!r} was given before, or awaited; call its function again")
            given.add(id(coroutine))
        return [self._add(host.rank, cast("Coroutine[Any, Any, Any]", coroutine)) for coroutine in coroutines]

    def _add(self, rank: int, coroutine: Coroutine[Any, Any, Any]) -> int:
        """Add a thread; give its number."""
        number = self.begun.get(rank, 0)
        self.begun[rank] = number + 1
        self.coroutines[rank, number] = coroutine
        self.alive.add(id(coroutine))
        return number

    def _ended(self, thread: Thread) -> None:
        """Forget a thread, so that those that have ended take neither time nor memory."""
        self.alive.discard(id(self.coroutines.pop(thread)))

    def gathered(self, host: Host, numbers: Sequence[int]) -> list[Any]:
        """What threads returned, all of which have ended."""
        threads = [(host.rank, number) for number in numbers]
        failures = [self.failures.pop(thread) for thread in threads if thread in self.failures]
        results = [self.results.pop(thread, None) for thread in threads]
        if failures:
            raise min(failures, key=lambda failed: failed[0])[1]
        return results

    def _check(self, host: Host) -> None:
        if self.beginning is not None:
            raise InputError(self.beginning)
        if self.running is not host:
            raise InputError(f"{host!r} is used outside its program, which does not run now")

    def _answer(self) -> tuple[Any, Any]:
        step = self.simulation.next()
        assert step is not None, "the simulation stands still while a program runs"  # noqa: S101
        _, _, _, result, error, memory = step
        if error is not None:
            raise error
        return json.loads(result or "null"), memory

    def run(self, programs: Mapping[int, Program]) -> Run:
        """Run programs to their end."""
        for rank, program in programs.items():
            self._add(rank, self._begin(rank, program))
        stop = True
        try:
            self.simulation.start(sorted(programs))
            while (step := self.simulation.next()) is not None:
                rank, thread, now_ps, result, error, _ = step
                self.running = self.hosts[rank]
                self.progress[rank].now_ps = now_ps
                self._go_on((rank, thread), None if result is None else json.loads(result), error)
                self.running = None
            stop = False
        finally:
            self.running = None
            for coroutine in self.coroutines.values():
                coroutine.close()
            if stop:
                # What stopped it is on its way up already.
                with contextlib.suppress(_native.Error, KeyboardInterrupt, RuntimeError):
                    self.simulation.end(stop=True)
                self.fault_notes = self.simulation.fault_notes()
        try:
            text, recording = self.simulation.end(stop=False)
        except RunError as error:
            # Others may wait for a thread that failed, so that nobody was told yet.
            for _, failure in self.failures.values():
                raise failure from error
            raise
        finally:
            self.fault_notes = self.simulation.fault_notes()
        report = json.loads(text)
        links = [LinkReport(**link) for link in report.pop("links")]
        failures = [Failure(**failure) for failure in report.pop("failures")]
        nodes = [_node_report(node) for node in report.pop("nodes")]
        results = {rank: self.results[rank, 0] for rank in programs}
        return Run(**report, nodes=nodes, results=results, links=links, failures=failures, _recording=recording)

    def _begin(self, rank: int, program: Program) -> Coroutine[Any, Any, Any]:
        progress = self.progress[rank] = Progress()
        self.hosts[rank] = Host(self, rank, self.ranks, progress, self.uids[rank] if self.uids else 0)
        name = getattr(program, "__name__", repr(program))
        text = f"the program of rank {rank} is no async function; write: async def {name}(host):"
        self.beginning = text
        coroutine: object = program(self.hosts[rank])
        self.beginning = None
        if not isinstance(coroutine, Coroutine):
            raise InputError(text)
        return coroutine

    def _go_on(self, thread: Thread, result: Any, error: BaseException | None) -> None:
        """Run a thread of a program until it awaits a call of its host."""
        host, coroutine = self.hosts[thread[0]], self.coroutines[thread]
        forgotten = self.progress[host.rank].forgotten
        try:
            awaited = coroutine.send(result) if error is None else coroutine.throw(error)
            while (wrong := _wrong(awaited, host, forgotten)) is not None:
                awaited = coroutine.throw(wrong)
        except StopIteration as end:
            if forgotten:
                raise InputError(forgotten[0]) from None
            self.results[thread] = end.value
            self._ended(thread)
            self.simulation.finished()
        except Exception as raised:
            failure = _explained(raised, host)
            if thread[1] == 0:
                raise failure from (None if failure is raised else raised)
            self.failures[thread] = (self.failed, failure)
            self.failed += 1
            self._ended(thread)
            self.simulation.finished()
        else:
            self.simulation.ask(json.dumps(awaited.command))


_AWAITABLE = "a host program may await only what its own host offers, such as host.recv(...) or host.compute(ns=...)"


def _explained(raised: Exception, host: Host) -> Exception:
    """What a program raised, with where and when."""
    if isinstance(raised, RuntimeError) and "no running event loop" in str(raised):
        return InputError(f"rank {host.rank} awaits asyncio; {_AWAITABLE}")
    place = "in the program of rank"
    if not isinstance(raised, RuntimeError) and not any(n.startswith(place) for n in getattr(raised, "__notes__", [])):
        raised.add_note(f"{place} {host.rank}, at {host.now_ns} ns of virtual time")
    return raised


def _wrong(awaited: object, host: Host, forgotten: list[str]) -> InputError | None:
    """What is wrong with what a program awaits, or has not awaited before."""
    if forgotten:
        return InputError(forgotten.pop(0))
    if isinstance(awaited, Call) and awaited.host is host:
        return None
    if isinstance(awaited, Call):
        return InputError(f"rank {host.rank} awaits a call of rank {awaited.host.rank}'s host; {_AWAITABLE}")
    what = type(awaited)
    return InputError(f"rank {host.rank} awaits something foreign ({what.__module__}.{what.__name__}); {_AWAITABLE}")
