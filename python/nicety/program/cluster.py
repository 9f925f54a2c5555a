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

Virtual time, not asyncio, drives a program: it may await the calls of its host, and coroutines that await these. While
Python code runs, virtual time does not pass, so Python's own computation takes no time. `Host.compute` takes time.
"""

from __future__ import annotations

import inspect
import json
import signal
import traceback
from collections.abc import Coroutine, Iterable, Mapping, Sequence
from os import PathLike, fspath
from types import FrameType
from typing import Any, Unpack

from nicety import _native
from nicety._generated.types import NetworkOptions
from nicety.build.sources import Processes
from nicety.errors import InputError, RunError
from nicety.program.calls import Loaded
from nicety.program.failures import Allowed, allowed, require
from nicety.program.host import Host, Program
from nicety.program.run import Run, run_of
from nicety.shared.checks import U32, Overrides, changes, whole
from nicety.shared.options import asked
from nicety.shared.typed import checked
from nicety.show.recordings import Level

Cards = str | PathLike[str] | Sequence[str | PathLike[str]]
"""A card for all hosts, or one per rank: names of specs, or paths of TOML files."""
Traffic = str | Sequence[str]
"""Traffic for hosts' cards: one expression, or several."""
Users = Sequence[int]
"""The number of a user for each rank."""


class Cluster:
    """Hosts with a card each, and a network between them.

    Cards with `set={"transport.reliable": "true"}` recover from faults of the network, and from drops in its switches.
    """

    @checked
    def __init__(
        self,
        nodes: int,
        nic: Cards,
        *,
        set: Overrides = (),  # noqa: A002, named as the option --set
        recording: Level = "messages",
        recorded_rows: int | None = None,
        shards: int = 1,
        uids: Users = (),
        allow_failures: Allowed = (),
        traffic: Traffic = (),
        profile: bool = False,
        **given: Unpack[NetworkOptions],
    ) -> None:
        """Build the hosts with their cards, and the network.

        Args:
            nodes: number of hosts.
            nic: the card: the name of a spec, or the path of a TOML file. A list names a card per rank; the cards have
                to be of one design, so that they interoperate. Each direction of a cable has the parameters of its
                sender's card. Packets have the maximum size that all cards accept. Switches and launcher have the
                parameters of rank 0's card.
            set: changes to the cards, with a unit if the key has one: `{"hpu.cores": 8, "bus.latency": "300 ns"}`.
            recording: the extent of recording: `summary` records nothing per message, `messages` a row per message,
                `packets` also a row per packet and per handler run, `everything` also a row per use of a resource. A
                timeline is drawn from `everything`. Recording costs no virtual time.
            recorded_rows: maximum number of rows that each node keeps per table, 250 000 by default; `Run.left_out`
                counts the others. A message takes about 200 bytes, a packet 300, everything else 120.
            shards: the number of shards over which the nodes are spread; results do not depend on this number.
            uids: the user of each rank's operations, one number each, which match entries may require
                (`me_append(uid=...)`); user 0 by default.
            allow_failures: failures that are part of the experiment: `trap`, a handler is stopped; `fail`, a handler
                returns a failure; `budget`, an application's budget of cycles is used up; `refused`, the card refuses a
                command; `lost`, packets are lost or damaged, no card retransmits them, and no program waits for them.
                Give one of these names, several, or `all`. `Run.failures` lists the failures.
            traffic: frames for a host's card while programs run, as in `udp dport=53 size=imix rate=10Gbps to=1`: an
                expression, or several. Each expression has its own tester, an end of a link like a host, after the last
                rank. The tester sends from `start` on until the programs have ended, and accepts all arriving frames.
                If the expression has no addresses, frames are from the tester to the host. `Run.traffic` has the
                frames' disposition.
            profile: profile the processes of flow processors; `Run.profile` has a row for each card and program. The
                cluster has one shard.

        Raises:
            InputError: an invalid card, change, topology, flow control, faults, users or traffic.
        """
        self._nodes = whole(nodes, "nodes", U32)
        self._allowed = allowed(allow_failures)
        if profile and shards != 1:
            raise InputError("profile: a profile is of a cluster of one shard; leave shards out")
        self._profile = profile
        self._loaded: Loaded = {}
        rows = None if recorded_rows is None else whole(recorded_rows, "recorded_rows")
        options = asked(NetworkOptions, given)
        topology = options["topology"]
        expressions = _expressions(traffic)
        if topology is None:
            alone = self._nodes == 1
            topology = usual_topology(self._nodes, len(expressions)) if expressions or alone else "pair"
        if isinstance(uids, str | Mapping) or not isinstance(uids, Iterable):
            raise InputError(f"uids are numbers, one for each rank, as in [0, 7], not {uids!r}")
        self._uids = [whole(uid, "a user id", U32) for uid in uids]
        self._nics = _cards(nic, self._nodes)
        fixed = (
            self._nodes,
            self._nics,
            topology,
            options["seed"],
            changes(set),
            whole(shards, "shards"),
        )
        arguments = (*fixed, options["noise"], recording, rows, options["faults"], self._uids)
        # Errors in expressions of traffic are raised here, before the run.
        try:
            self._simulation = _native.Simulation(*arguments, options["flow_control"], expressions)
        except InputError as error:
            raise _of_argument(error) from error

    @property
    def fault_notes(self) -> str:
        """Return notes on packets that faults or full buffers lost in the last run, and no card retransmitted.

        The notes continue an error message: each note is a line with a leading newline. Empty without such losses.
        """
        return self._simulation.fault_notes()

    def run(self, programs: Program | Mapping[int, Program]) -> Run:
        """Run one program on every rank, or each rank's own program, from time zero until no event is left.

        Raises:
            Deadlock: programs wait and no event is left; the error names the operation for which each program waits.
            HandlerTrap: programs wait, no event is left, and a handler that failed is the reason.
            HandlerFailure: the programs ended, but with a failure that is not allowed.
            RunError: a call failed and the program did not handle the error, a program called `sys.exit`, or a switch
                dropped a packet that no card retransmits.
            Exception: a program raised this exception.
        """
        return self._run(programs)

    def _run(
        self,
        programs: Program | Mapping[int, Program],
        check: tuple[int, int | None] | None = None,
        debug: tuple[_native.DebugSession, int] | None = None,
    ) -> Run:
        of_rank = programs if isinstance(programs, Mapping) else dict.fromkeys(range(self._nodes), programs)
        for rank, program in of_rank.items():
            if not callable(program):
                raise InputError(
                    f"a program is an async function, not {program!r}; write run(main), or run({{0: ping, 1: pong}})"
                )
            if not 0 <= whole(rank, "a rank") < self._nodes:
                raise InputError(f"there is no rank {rank}; the cluster has ranks 0 to {self._nodes - 1}")
        loaded: Loaded = {}
        self._loaded = loaded
        begun: list[tuple[_native.Calls, Coroutine[Any, Any, Any]]] = []
        hosts: list[Host] = []
        try:
            for rank, program in of_rank.items():
                begun.append(self._begin(rank, program, loaded, hosts))
        except BaseException:
            for _, coroutine in begun:
                coroutine.close()
            raise
        try:
            text, recording, returned, profile = self._simulation.run(begun, self._profile, check, debug)
        except SystemExit as left:
            if (error := _exit_error(left, hosts)) is None:
                raise
            raise error from left
        results = dict(zip(of_rank, returned, strict=True))
        return require(run_of(text, results, recording, profile), self._allowed)

    def check(
        self,
        programs: Program | Mapping[int, Program],
        *,
        schedule: int = 0,
        instructions: int | None = None,
        lenient: bool = False,
    ) -> dict[str, Any]:
        """Run programs as `run` does, with the processes of flow processors under the checker.

        Args:
            programs: as for `run`.
            schedule: the interleaving: 0 is that of the cards, others delay contexts by random cycles.
            instructions: the most of a card's processes; a run with more of them ends there.
            lenient: a failure of the run is no reason to raise an exception, also without findings.

        Returns:
            The findings, and the numbers of processes and instructions. A run that fails has them too, if there are
            any.

        Raises:
            InputError: a card without processes.
            Exception: that of `run`, if there are no findings.
            KeyboardInterrupt: the user interrupts the run.
        """
        failure: Exception | KeyboardInterrupt | None = None
        try:
            self._run(programs, (schedule, instructions))
        except (Exception, KeyboardInterrupt) as error:
            failure = error
        text = self._simulation.checked()
        found: dict[str, Any] = {} if text is None else json.loads(text)
        if isinstance(failure, KeyboardInterrupt):
            # Only a run that has reached its number of instructions was not interrupted by the user.
            if not found.get("cut_off"):
                raise failure
        elif failure is not None and not lenient and (isinstance(failure, InputError) or not found.get("findings")):
            raise failure
        return found

    def debug(self, programs: Program | Mapping[int, Program], session: _native.DebugSession, *, rank: int = 0) -> Run:
        """Run programs as `run` does, with the processes on a rank's first card in a debugging session.

        Raises:
            InputError: there is no such rank, or its card has no processes.
            KeyboardInterrupt: the session abandons the run, to go back in time.
        """
        if not 0 <= whole(rank, "rank") < self._nodes:
            raise InputError(f"there is no rank {rank}; the cluster has ranks 0 to {self._nodes - 1}")
        return self._run(programs, debug=(session, rank))

    def program_with(self, function: str) -> bytes:
        """Return the compiled program with processes of the last run that has a function, or no bytes."""
        for program, isa in self._loaded:
            if isinstance(program, Processes):
                elf = program.compile(isa=isa).elf
                if function.encode() in elf:
                    return elf
        return b""

    def _begin(
        self, rank: int, program: Program, loaded: Loaded, hosts: list[Host]
    ) -> tuple[_native.Calls, Coroutine[Any, Any, Any]]:
        name = getattr(program, "__name__", repr(program))
        wrong = f"the program of rank {rank} is no async function; write: async def {name}(host):"
        calls = _native.Calls(rank, self._nodes, wrong)
        nic = self._nics[rank] if len(self._nics) > 1 else self._nics[0]
        host = Host(calls, loaded, nic, self._uids[rank] if self._uids else 0)
        hosts.append(host)
        coroutine: object = program(host)
        if not isinstance(coroutine, Coroutine):
            raise InputError(wrong)
        return calls, coroutine


def _exit_error(left: SystemExit, hosts: Iterable[Host]) -> RunError | None:
    """Return the error of a program that called `sys.exit`. None if a signal or another caller ends this process.

    Args:
        left: the exception, which left the run.
        hosts: the hosts of the run.
    """
    frames = [frame for frame, _ in traceback.walk_tb(left.__traceback__)]
    handlers = [getattr(signal.getsignal(number), "__code__", None) for number in signal.valid_signals()]
    in_program = any(frame.f_code.co_flags & inspect.CO_COROUTINE for frame in frames)
    if not in_program or any(frame.f_code in handlers for frame in frames):
        return None
    code = "" if left.code is None else repr(left.code)
    text = f"sys.exit({code}) is an error in a program of a host; write return to end the program"
    return RunError(f"{text}\n  {_exit_place(frames, list(hosts))}")


def _exit_place(frames: Iterable[FrameType], hosts: list[Host]) -> str:
    """Return the rank and the time of the program that a traceback's frames belong to."""
    known = {id(host) for host in hosts}
    for frame in frames:
        for value in frame.f_locals.values():
            if id(value) in known:
                return _rank_and_time(value)
    # The frames have no host. So take the host that was resumed last, if there is only one.
    last = max(host.now_ps for host in hosts)
    resumed = [host for host in hosts if host.now_ps == last]
    if len(resumed) > 1:
        return f"in a program, at {resumed[0].now_ns} ns of virtual time"
    return _rank_and_time(resumed[0])


def _rank_and_time(host: Host) -> str:
    return f"in the program of rank {host.rank}, at {host.now_ns} ns of virtual time"


def usual_topology(nodes: int, testers: int) -> str:
    """Return the simplest topology for `nodes` hosts and `testers` testers that send traffic to them."""
    return {1: "alone", 2: "pair"}.get(nodes + testers, "star")


def _of_argument(error: InputError) -> InputError:
    """Return an error about a change to the card with the name of the argument in place of the option."""
    text = str(error)
    if not text.startswith("--set "):
        return error
    return InputError(text.replace("--set ", "set: ", 1).replace("--set ", ""))


def _expressions(traffic: object) -> list[str]:
    """Return the expressions of traffic as a list."""
    if isinstance(traffic, str):
        return [traffic]
    if isinstance(traffic, Mapping | bytes) or not isinstance(traffic, Iterable):
        raise InputError(f"traffic is an expression such as 'udp dport=53 to=1', or a list of these, not {traffic!r}")
    expressions = list(traffic)
    for expression in expressions:
        if not isinstance(expression, str):
            raise InputError(f"traffic is expressions such as 'udp dport=53 to=1', not {expression!r}")
    return expressions


def _cards(nic: object, nodes: int) -> list[str]:
    """Return the names or paths of cards: one for all hosts, or one per rank."""
    if isinstance(nic, str | PathLike):
        return [fspath(nic)]
    if isinstance(nic, Mapping | bytes) or not isinstance(nic, Sequence):
        raise InputError(f"nic is the name of a card or the path of its file, or a list of these, not {nic!r}")
    for card in nic:
        if not isinstance(card, str | PathLike):
            raise InputError(f"nic names a card for each rank, by name or by the path of its file, not {card!r}")
    if len(nic) != nodes:
        cards = "1 card" if len(nic) == 1 else f"{len(nic)} cards"
        raise InputError(f"nic names {cards} for {nodes} hosts; name one for each rank, or one for all without a list")
    return [fspath(card) for card in nic]
