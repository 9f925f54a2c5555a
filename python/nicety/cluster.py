"""Clusters: hosts with cards, and programs on them, written as `async def`.

    import nicety

    async def ping(host):
        buffer = host.alloc(8)
        buffer.array[:] = 7
        await host.send(buffer, to=1, tag=1)

    async def pong(host):
        buffer = host.alloc(8)
        received = await host.recv(buffer, source=0, tag=1)
        return host.now_ns, received.length_bytes

    run = nicety.Cluster(2, "spin-discrete").run({0: ping, 1: pong})

A program is driven by virtual time, not by asyncio: it may await what its host offers and other coroutines made of
that. While Python runs, virtual time stands still, so a program's own computing takes no time; `Host.compute` does.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any, cast

from nicety import _native
from nicety._calls import Call, Progress
from nicety._checks import U32, Overrides, changes, text, whole
from nicety.applications import ApplicationReport
from nicety.buffers import Buffer
from nicety.errors import InputError
from nicety.faults import Faults, LinkReport, TransportReport, faults_text
from nicety.host import ANY, Extent, Host, PendingRecv
from nicety.outcomes import Count, Event, NodeReport, Received, Run
from nicety.processes import MicroengineReport, Processes, ProcessReport
from nicety.refusals import RefusedCommand

if TYPE_CHECKING:
    from nicety.handlers import Handlers
    from nicety.results import Level

__all__ = [
    "ANY",
    "Buffer",
    "Cluster",
    "Count",
    "Event",
    "Extent",
    "Host",
    "NodeReport",
    "PendingRecv",
    "Program",
    "Received",
    "Run",
]

Program = Callable[[Host], Coroutine[Any, Any, Any]]
"""An async function of one host."""


def _node_report(node: dict[str, Any]) -> NodeReport:
    applications = [ApplicationReport(**application) for application in node.pop("applications")]
    transport = TransportReport(**node.pop("transport"))
    refused = [RefusedCommand(**command) for command in node.pop("refused_commands")]
    microengines = [_microengine_report(microengine) for microengine in node.pop("microengines")]
    return NodeReport(
        **node,
        applications=applications,
        transport=transport,
        refused_commands=refused,
        microengines=microengines,
    )


def _microengine_report(microengine: dict[str, Any]) -> MicroengineReport:
    processes = [ProcessReport(**process) for process in microengine.pop("processes")]
    return MicroengineReport(**microengine, processes=processes)


class _Turns:
    """Simulation and programs take turns: a program runs until it awaits a call, then virtual time does."""

    def __init__(self, simulation: _native.Simulation, ranks: int, uids: Sequence[int]) -> None:
        self.simulation = simulation
        self.uids = uids
        self.ranks = ranks
        self.hosts: dict[int, Host] = {}
        self.progress: dict[int, Progress] = {}
        self.loaded: dict[Handlers | Processes, int] = {}
        self.running: Host | None = None
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

    def _check(self, host: Host) -> None:
        if self.beginning is not None:
            raise InputError(self.beginning)
        if self.running is not host:
            raise InputError(f"{host!r} is used outside its program, which does not run now")

    def _answer(self) -> tuple[Any, Any]:
        step = self.simulation.next()
        assert step is not None, "the simulation stands still while a program runs"  # noqa: S101
        _, _, result, error, memory = step
        if error is not None:
            raise error
        return json.loads(result or "null"), memory

    def run(self, programs: Mapping[int, Program]) -> Run:
        """Run programs to their end."""
        coroutines = {rank: self._begin(rank, program) for rank, program in programs.items()}
        results: dict[int, Any] = {}
        stop = True
        try:
            self.simulation.start(sorted(coroutines))
            while (step := self.simulation.next()) is not None:
                rank, now_ps, result, error, _ = step
                host = self.running = self.hosts[rank]
                self.progress[rank].now_ps = now_ps
                self._go_on(coroutines[rank], host, None if result is None else json.loads(result), error, results)
                self.running = None
            stop = False
        finally:
            self.running = None
            for coroutine in coroutines.values():
                coroutine.close()
            if stop:
                # What stopped it is on its way up already.
                with contextlib.suppress(_native.Error, KeyboardInterrupt, RuntimeError):
                    self.simulation.end(stop=True)
        text, recording = self.simulation.end(stop=False)
        report = json.loads(text)
        links = [LinkReport(**link) for link in report.pop("links")]
        nodes = [_node_report(node) for node in report.pop("nodes")]
        return Run(**report, nodes=nodes, results=results, links=links, _recording=recording)

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

    def _go_on(
        self,
        coroutine: Coroutine[Any, Any, Any],
        host: Host,
        result: Any,
        error: BaseException | None,
        results: dict[int, Any],
    ) -> None:
        """Run a program until it awaits a call of its host."""
        forgotten = self.progress[host.rank].forgotten
        try:
            awaited = coroutine.send(result) if error is None else coroutine.throw(error)
            while (wrong := _wrong(awaited, host, forgotten)) is not None:
                awaited = coroutine.throw(wrong)
        except StopIteration as end:
            if forgotten:
                raise InputError(forgotten[0]) from None
            results[host.rank] = end.value
            self.simulation.finished()
        except RuntimeError as raised:
            if "no running event loop" not in str(raised):
                raise
            text = f"rank {host.rank} awaits asyncio; {_AWAITABLE}"
            raise InputError(text) from raised
        except Exception as raised:
            raised.add_note(f"in the program of rank {host.rank}, at {host.now_ns} ns of virtual time")
            raise
        else:
            self.simulation.ask(json.dumps(awaited.command))


_AWAITABLE = "a host program may await only what its own host offers, such as host.recv(...) or host.compute(ns=...)"


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


class Cluster:
    """Hosts with a card each, and a network between them.

    Args:
        nodes: how many hosts.
        nic: the card: the name of a spec, or the path of a TOML file.
        topology: how they are joined: `pair`, two hosts and a wire; `star`, hosts around a switch; or `fat-tree:36`,
            levels of switches of so many ports (`fat-tree:PORTS:LEVELS:ROUTING`, of which all may be left out). A pair
            if left out, and `alone` for one host.
        seed: of every random stream; the same seed gives the same run to the last bit.
        set: changes to the card, with a unit where the key has one: `{"hpu.cores": 8, "bus.latency": "300 ns"}`.
        noise: background noise on the hosts' CPUs, `PERIOD,DURATION` with units, as in `1ms,25us`; none if left out.
        recording: how much of a run is recorded: `summary` is nothing for each message, `messages` a row for each,
            `packets` one for each packet and handler run too, `everything` one for each use of a resource, which is
            what a timeline is drawn from. It costs no virtual time.
        recorded_rows: most rows that each node keeps in each table, 250 000 by default; `Run.left_out` counts the
            others. A message takes about 1200 bytes, a packet 300, everything else 120.
        shards: over how many shards the nodes are spread; results do not depend on it.
        faults: what goes wrong in the network: a line such as `loss=1e-3,seed=7`, TOML or the path of a TOML file, or a
            dict of the same keys. Cards make up for it with `set={"transport.reliable": "true"}`.

        uids: on behalf of which user each rank's operations are, one number for each, which match entries may ask for
            (`me_append(uid=...)`); of user 0 if left out.

    Raises:
        InputError: where card, change, topology, faults or users cannot be.
    """

    def __init__(
        self,
        nodes: int,
        nic: str | PathLike[str],
        *,
        topology: str | None = None,
        seed: int = 1,
        set: Overrides = (),  # noqa: A002, named as the option --set
        noise: str | None = None,
        recording: Level = "messages",
        recorded_rows: int | None = None,
        shards: int = 1,
        faults: Faults | None = None,
        uids: Sequence[int] = (),
    ) -> None:
        self._nodes = whole(nodes, "nodes", U32)
        rows = None if recorded_rows is None else whole(recorded_rows, "recorded_rows")
        if not isinstance(nic, str | PathLike):
            raise InputError(f"nic is the name of a card or the path of its file, not {nic!r}")
        topology = ("alone" if self._nodes == 1 else "pair") if topology is None else topology
        for name, value, example in (("topology", topology, "star"), ("recording", recording, "packets")):
            text(value, name, example)
        if noise is not None:
            text(noise, "noise", "1ms,25us")
        if isinstance(uids, str | Mapping) or not isinstance(uids, Iterable):
            raise InputError(f"uids are numbers, one for each rank, as in [0, 7], not {uids!r}")
        self._uids = [whole(uid, "a user id", U32) for uid in uids]
        fixed = (self._nodes, fspath(nic), topology, whole(seed, "seed"), changes(set), whole(shards, "shards"))
        self._arguments = (*fixed, noise, recording, rows, faults_text(faults), self._uids)
        # Whatever is wrong with them is said here, not when the cluster is run.
        _native.Simulation(*self._arguments)

    def run(self, programs: Program | Mapping[int, Program]) -> Run:
        """Run one program on every rank, or the given ones, from time zero until nothing is left to happen.

        Raises:
            Deadlock: where programs wait and nothing can happen any more; it says who waits for what.
            HandlerTrap: where that is because a handler failed.
            RunError: where a call failed and the program did not handle it.
            Exception: what a program raised.
        """
        of_rank = programs if isinstance(programs, Mapping) else dict.fromkeys(range(self._nodes), programs)
        for rank, program in of_rank.items():
            if not callable(program):
                raise InputError(
                    f"a program is an async function, not {program!r}; write run(main), or run({{0: ping, 1: pong}})"
                )
            if not 0 <= whole(rank, "a rank") < self._nodes:
                raise InputError(f"there is no rank {rank}; the cluster has ranks 0 to {self._nodes - 1}")
        return _Turns(_native.Simulation(*self._arguments), self._nodes, self._uids).run(of_rank)
