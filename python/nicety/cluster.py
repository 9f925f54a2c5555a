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
import math
import sys
from collections.abc import Awaitable, Callable, Coroutine, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from nicety import _native
from nicety._checks import U32, U64, text, whole
from nicety.applications import ApplicationReport, HandlerCalls
from nicety.errors import InputError
from nicety.faults import Faults, LinkReport, TransportReport, faults_text
from nicety.handlers import Handlers
from nicety.results import Level, Recorded

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

Program = Callable[["Host"], Coroutine[Any, Any, Any]]
"""An async function of one host."""

ANY = None
"""Any source, or any tag."""


class Buffer:
    """Memory of a host, or a part of it; slice it for a part. `array` is the same memory for numpy."""

    def __init__(self, host: Host, number: int, memory: _native.HostMemory, offset: int, length: int) -> None:
        self._host = host
        self._number = number
        self._memory = memory
        self._offset = offset
        self._length = length

    def __len__(self) -> int:
        """Bytes."""
        return self._length

    def __getitem__(self, part: slice) -> Buffer:
        """A part of the buffer, the same memory: `buffer[64:128]`."""
        if not isinstance(part, slice):
            raise InputError(f"a buffer is sliced, as in buffer[0:8]; for one byte write buffer.array[{part}]")
        start, stop, step = part.indices(self._length)
        if step != 1:
            raise InputError("a part of a buffer is contiguous; slice it without a step")
        return Buffer(self._host, self._number, self._memory, self._offset + start, max(0, stop - start))

    @property
    def array(self) -> npt.NDArray[np.uint8]:
        """The bytes as a writable numpy array that shares the memory."""
        import numpy as np

        return self.view(np.uint8)

    def view(self, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
        """The memory as a writable numpy array of another type.

        Raises:
            InputError: where the buffer is not a whole number of elements.
        """
        import numpy as np

        kind = np.dtype(dtype)
        if self._length % kind.itemsize:
            raise InputError(f"{self._length} bytes are no whole number of {kind.name} ({kind.itemsize} bytes each)")
        if self._length == 0:
            return np.empty(0, kind)
        return np.frombuffer(memoryview(self._memory), kind, self._length // kind.itemsize, self._offset)

    def _part(self) -> dict[str, int]:
        """The buffer as a command names it."""
        return {"buffer": self._number, "offset": self._offset, "bytes": self._length}

    def __repr__(self) -> str:
        return f"<Buffer of rank {self._host.rank}, {self._length} bytes>"


Extent = Buffer | tuple[Buffer, Iterable[tuple[int, int]]]
"""Memory that a computation goes through: a buffer, or blocks of one, pairs of offset and length."""


@dataclass(frozen=True)
class Received:
    """What a receive brought: the rank it came from, its tag, its length in bytes."""

    source: int
    tag: int
    length_bytes: int


@dataclass(frozen=True)
class Event:
    """A full event of Portals, with the names of the specification's fields."""

    kind: str
    fail: str
    initiator: int
    pt: int
    match_bits: int
    hdr_data: int
    rlength_bytes: int
    mlength_bytes: int
    remote_offset_bytes: int
    user_ptr: int


@dataclass(frozen=True)
class NodeReport:
    """What happened on a node during a run."""

    messages_matched: int
    messages_dropped: int
    handler_runs: int
    handler_instructions: int
    handler_cycles: int
    applications: list[ApplicationReport]
    host_memory_read_bytes: int
    host_memory_written_bytes: int
    faults: list[str]
    transport: TransportReport


def _node_report(node: dict[str, Any]) -> NodeReport:
    applications = [ApplicationReport(**application) for application in node.pop("applications")]
    transport = TransportReport(**node.pop("transport"))
    return NodeReport(**node, applications=applications, transport=transport)


@dataclass(frozen=True)
class Run(Recorded):
    """A run that came to its end, and what it has recorded.

    Attributes:
        time_ps: when the last thing happened, in picoseconds.
        events: how many events the kernel went through.
        nodes: a report for each rank.
        results: what each rank's program returned.
        links: what faults did, for each direction of a link on which anything could go wrong.
    """

    time_ps: int
    events: int
    nodes: list[NodeReport]
    results: dict[int, Any] = field(default_factory=dict)
    links: list[LinkReport] = field(default_factory=list)
    _recording: _native.Recording = field(kw_only=True, repr=False, compare=False)

    @property
    def time_ns(self) -> float:
        """When the last thing happened, in nanoseconds."""
        return self.time_ps / 1000

    def _repr_html_(self) -> str:
        from nicety._notebook import run_html

        return run_html(self)


_T = TypeVar("_T")


class _Call(Generic[_T]):
    """A call whose virtual time passes while it is awaited."""

    def __init__(self, host: Host, command: Mapping[str, Any], result: Callable[[Any], _T]) -> None:
        self.host = host
        self.command = command
        self._result = result
        self._awaited = False
        # The line of the program: behind this, Host._call and the method of Host.
        frame = sys._getframe(3)  # noqa: SLF001, the cheap way to know it
        self._code, self._line = frame.f_code, frame.f_lineno

    def __await__(self) -> Generator[_Call[_T], Any, _T]:
        if self._awaited:
            raise InputError(f"{self!r} was awaited before; call it again")
        self._awaited = True
        return self._result((yield self))

    def __del__(self) -> None:
        # Like Python's own coroutines, so that a call may be made in one line and awaited in a later one.
        if not getattr(self, "_awaited", True) and hasattr(self, "_line"):
            name = self.command["op"]
            self.host._forgotten.append(  # noqa: SLF001, two classes of one module
                f"rank {self.host.rank}: {self!r} was never awaited; write await host.{name}(...)"
            )

    def __repr__(self) -> str:
        return f"host.{self.command['op']}(...) at {self._code.co_filename}:{self._line}"


def _nothing(_: Any) -> None:
    """The result of a call that has none."""


class Host(HandlerCalls):
    """A host of a cluster, as its program sees it.

    What is awaited takes virtual time; what is not is set-up, and takes none.
    """

    def __init__(self, turns: _Turns, rank: int, ranks: int) -> None:
        self._turns = turns
        self._rank = rank
        self._ranks = ranks
        self._now_ps = 0
        self._forgotten: list[str] = []

    @property
    def rank(self) -> int:
        """This host's number."""
        return self._rank

    @property
    def ranks(self) -> int:
        """How many hosts there are."""
        return self._ranks

    @property
    def now_ps(self) -> int:
        """The current instant of virtual time in picoseconds."""
        return self._now_ps

    @property
    def now_ns(self) -> float:
        """The current instant of virtual time in nanoseconds."""
        return self._now_ps / 1000

    def alloc(self, length_bytes: int) -> Buffer:
        """Allocate zeroed host memory.

        Raises:
            RunError: where the host has no more.
        """
        length_bytes = whole(length_bytes, "length_bytes")
        number, memory = self._ask("alloc", bytes=length_bytes)
        return Buffer(self, number, memory, 0, length_bytes)

    def send(self, buffer: Buffer, *, to: int, tag: int = 0) -> Awaitable[None]:
        """Send a buffer to another rank's `recv` of the same tag; it may be used again afterwards.

        Raises:
            RunError: where there is no such rank.
        """
        return self._call("send", part=self._own(buffer), to=to, tag=tag)

    def recv(self, buffer: Buffer, *, source: int | None = ANY, tag: int | None = ANY) -> Awaitable[Received]:
        """Receive one message, from one rank or any, of one tag or any.

        A message that comes before its `recv` has been posted is dropped and counted; ranks that may run apart that
        far meet at a `barrier` first.

        Raises:
            RunError: where the message is longer than the buffer, or there is no such rank.
        """
        return self._call("recv", lambda received: Received(**received), part=self._own(buffer), source=source, tag=tag)

    def compute(
        self, *, ns: float = 0, cycles: int = 0, reads: Iterable[Extent] = (), writes: Iterable[Extent] = ()
    ) -> Awaitable[None]:
        """Compute on one of the host's CPUs.

        It takes `ns` and `cycles` together where it goes through no memory. Where it does, lines that are not in the
        cache come from memory meanwhile, and whatever takes longest counts; they are traffic of host memory. Only the
        time passes: the bytes are the program's to change.

        Args:
            ns: nanoseconds, rounded up to whole picoseconds.
            cycles: of the CPU's clock, `host.clock`.
            reads: what is read, in this order: buffers, or a buffer and blocks of it, pairs of offset and length.
            writes: what is written.
        """
        try:
            # By way of the decimal digits: 0.1 ns is 100 ps, not the 101 that its binary fraction comes up to.
            ps = math.ceil(Decimal(str(ns)) * 1000)
        except (ArithmeticError, ValueError):
            ps = -1
        if not 0 <= ps <= U64:
            raise InputError(f"compute(ns={ns}): a time is a number of nanoseconds from 0 to 1.8e16, 2^64 picoseconds")
        cycles = whole(cycles, "cycles")
        read, written = ([self._extent(extent) for extent in extents] for extents in (reads, writes))
        if not (cycles or read or written):
            return self._call("compute", ps=ps)
        return self._call("work", ps=ps, cycles=cycles, reads=read, writes=written)

    def copy(self, source: Buffer, to: Buffer) -> Awaitable[None]:
        """Copy a buffer with one of the host's CPUs, 16 bytes a cycle, or as memory has it; see `compute`.

        Raises:
            RunError: where the buffers differ in length.
        """
        return self._call("copy", part=self._own(source), into=self._own(to))

    def barrier(self) -> Awaitable[None]:
        """Wait until every program of the cluster has come here, over the job launcher's own network."""
        return self._call("barrier")

    def ct_alloc(self) -> int:
        """Allocate a counting event, at zero."""
        return cast(int, self._ask("ct_alloc")[0])

    def ct_get(self, ct: int) -> int:
        """Successes a counter has counted, as the host sees it now."""
        return cast(int, self._ask("ct_get", ct=ct)[0]["success"])

    def ct_wait(self, ct: int, threshold: int) -> Awaitable[int]:
        """Wait until a counter has reached a threshold; give its successes.

        Raises:
            RunError: where operations it counts have failed.
        """
        return self._call("ct_wait", int, ct=ct, threshold=threshold)

    def eq_alloc(self, depth: int) -> int:
        """Allocate a queue for that many full events."""
        return cast(int, self._ask("eq_alloc", depth=depth)[0])

    def eq_wait(self, eq: int) -> Awaitable[Event]:
        """Wait for the next event of a queue.

        Raises:
            RunError: where the queue has lost events.
        """
        return self._call("eq_wait", lambda event: Event(**event), eq=eq)

    def pt_alloc(self, *, pt: int | None = None, eq: int | None = None) -> int:
        """Allocate a portal table entry, this one or any. Entry 0 belongs to `send` and `recv`."""
        return cast(int, self._ask("pt_alloc", pt=pt, eq=eq)[0])

    def md_bind(
        self, buffer: Buffer, *, options: Iterable[str] = (), eq: int | None = None, ct: int | None = None
    ) -> int:
        """Bind a memory descriptor to a buffer. Options by their names in Portals 4, such as `event_ct_send`."""
        asked = self._ask("md_bind", part=self._own(buffer), options=_options(options), eq=eq, ct=ct)
        return cast(int, asked[0])

    def me_append(
        self,
        buffer: Buffer,
        *,
        pt: int,
        match_bits: int = 0,
        ignore_bits: int = 0,
        source: int | None = ANY,
        options: Iterable[str] = ("op_put",),
        ct: int | None = None,
        handlers: int | None = None,
        user_ptr: int = 0,
        wait: bool = True,
    ) -> Awaitable[None]:
        """Append a match entry to the priority list; with `wait`, until the card has done so.

        Args:
            buffer: the memory that messages are put into.
            pt: the portal table entry.
            match_bits: the bits that a message must have.
            ignore_bits: the bits that do not matter.
            source: whose messages; anybody's where it is left out.
            options: by their names in Portals 4: `op_put`, `use_once`, `event_ct_comm`, `event_ct_bytes`, ...
            ct: the counter that counts its messages.
            handlers: attached handlers that run for its messages.
            user_ptr: comes back in its events.
            wait: whether to wait for the card.
        """
        return self._call(
            "me_append",
            part=self._own(buffer),
            pt=pt,
            match_bits=match_bits,
            ignore_bits=ignore_bits,
            source=source,
            options=_options(options),
            ct=ct,
            handlers=handlers,
            user_ptr=user_ptr,
            wait=bool(wait),
        )

    def put(
        self,
        md: int,
        length_bytes: int,
        *,
        to: int,
        pt: int,
        match_bits: int = 0,
        local_offset: int = 0,
        remote_offset: int = 0,
        hdr_data: int = 0,
        user_ptr: int = 0,
        ack: bool = False,
    ) -> Awaitable[None]:
        """Post a put of a memory descriptor's bytes; returns when it has been posted."""
        put = _put(md, length_bytes, to, pt, match_bits, local_offset, remote_offset, hdr_data, user_ptr, ack)
        return self._call("put", put=put)

    def triggered_put(
        self,
        md: int,
        length_bytes: int,
        *,
        to: int,
        pt: int,
        ct: int,
        threshold: int,
        match_bits: int = 0,
        local_offset: int = 0,
        remote_offset: int = 0,
        hdr_data: int = 0,
        user_ptr: int = 0,
        ack: bool = False,
    ) -> Awaitable[None]:
        """Post a put that the card starts once a counter has reached a threshold."""
        put = _put(md, length_bytes, to, pt, match_bits, local_offset, remote_offset, hdr_data, user_ptr, ack)
        return self._call("triggered_put", put=put, ct=ct, threshold=threshold)

    def _call(self, operation: str, result: Callable[[Any], Any] = _nothing, /, **arguments: Any) -> _Call[Any]:
        return _Call(self, _command(operation, **arguments), result)

    def _ask(self, operation: str, /, **arguments: Any) -> tuple[Any, Any]:
        return self._turns.at_once(self, _command(operation, **arguments))

    def _own(self, buffer: Buffer) -> dict[str, int]:
        if not isinstance(buffer, Buffer):
            raise InputError(f"expected a buffer made by host.alloc, not {type(buffer).__name__}")
        if buffer._host is not self:  # noqa: SLF001, two classes of one module
            raise InputError(f"{buffer!r} is not memory of rank {self.rank}: hosts share none")
        return buffer._part()  # noqa: SLF001, two classes of one module

    def _extent(self, extent: Extent) -> dict[str, Any]:
        if isinstance(extent, Buffer):
            return {"part": self._own(extent)}
        try:
            buffer, blocks = extent
            pairs = [(whole(offset, "an offset"), whole(length, "a length")) for offset, length in blocks]
        except (TypeError, ValueError) as error:
            raise InputError(
                "what is read or written is a buffer, or a buffer and blocks of it, as in (buffer, [(0, 64)])"
            ) from error
        return {"part": self._own(buffer), "blocks": pairs}

    def __repr__(self) -> str:
        return f"<Host, rank {self.rank} of {self.ranks}>"


def _put(
    md: int,
    length_bytes: int,
    to: int,
    pt: int,
    match_bits: int,
    local_offset: int,
    remote_offset: int,
    hdr_data: int,
    user_ptr: int,
    ack: bool,
) -> dict[str, Any]:
    return {
        "md": whole(md, "md"),
        "bytes": whole(length_bytes, "length_bytes"),
        "to": whole(to, "to", U32),
        "pt": whole(pt, "pt", U32),
        "match_bits": whole(match_bits, "match_bits"),
        "local_offset": whole(local_offset, "local_offset"),
        "remote_offset": whole(remote_offset, "remote_offset"),
        "hdr_data": whole(hdr_data, "hdr_data"),
        "user_ptr": whole(user_ptr, "user_ptr"),
        "ack": bool(ack),
    }


_MOST = {
    **dict.fromkeys(("to", "source", "tag", "pt", "depth"), U32),
    **dict.fromkeys(("md", "ct", "eq", "length_bytes", "threshold", "match_bits", "ignore_bits"), U64),
    **dict.fromkeys(("local_offset", "remote_offset", "hdr_data", "user_ptr"), U64),
}
"""Numbers that calls take, and how large they may be."""

_OPTIONAL = {
    "recv": ("source", "tag"),
    "pt_alloc": ("pt", "eq"),
    "md_bind": ("eq", "ct"),
    "me_append": ("source", "ct", "handlers"),
}


def _command(operation: str, /, **arguments: Any) -> dict[str, Any]:
    """A call as the simulation takes it, its numbers checked."""
    optional = _OPTIONAL.get(operation, ())
    for name, value in arguments.items():
        most = U32 if (operation, name) == ("me_append", "handlers") else _MOST.get(name)
        if most is not None and not (value is None and name in optional):
            arguments[name] = whole(value, name, most)
    return {"op": operation, **arguments}


def _options(options: Iterable[str]) -> list[str]:
    names = [options] if isinstance(options, str) else list(options)
    return [text(name, "an option", "op_put") for name in names]


class _Turns:
    """Simulation and programs take turns: a program runs until it awaits a call, then virtual time does."""

    def __init__(self, simulation: _native.Simulation, ranks: int) -> None:
        self.simulation = simulation
        self.ranks = ranks
        self.hosts: dict[int, Host] = {}
        self.loaded: dict[Handlers, int] = {}
        self.running: Host | None = None

    def at_once(self, host: Host, command: Mapping[str, Any]) -> tuple[Any, Any]:
        """Ask for what takes no virtual time; give its result and the memory it allocated."""
        self._check(host)
        self.simulation.ask(json.dumps(command))
        return self._answer()

    def load(self, host: Host, handlers: Handlers) -> int:
        """Compile a program and hand it over, once for all hosts; give its number."""
        self._check(host)
        number = self.loaded.get(handlers)
        if number is None:
            program = handlers.compile(isa=self.simulation.isa())
            self.simulation.load(program.elf, handlers.header, handlers.payload, handlers.completion)
            number = self.loaded[handlers] = cast(int, self._answer()[0])
        return number

    def _check(self, host: Host) -> None:
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
                host._now_ps = now_ps  # noqa: SLF001, the host's clock is set by its turns
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
        self.hosts[rank] = Host(self, rank, self.ranks)
        coroutine: object = program(self.hosts[rank])
        if not isinstance(coroutine, Coroutine):
            name = getattr(program, "__name__", repr(program))
            raise InputError(f"the program of rank {rank} is no async function; write: async def {name}(host):")
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
        try:
            awaited = coroutine.send(result) if error is None else coroutine.throw(error)
            while (wrong := _wrong(awaited, host)) is not None:
                awaited = coroutine.throw(wrong)
        except StopIteration as end:
            if host._forgotten:  # noqa: SLF001, two classes of one module
                raise InputError(host._forgotten[0]) from None  # noqa: SLF001
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


def _wrong(awaited: object, host: Host) -> InputError | None:
    """What is wrong with what a program awaits, or has not awaited before."""
    if host._forgotten:  # noqa: SLF001, two classes of one module
        return InputError(host._forgotten.pop(0))  # noqa: SLF001
    if isinstance(awaited, _Call) and awaited.host is host:
        return None
    if isinstance(awaited, _Call):
        return InputError(f"rank {host.rank} awaits a call of rank {awaited.host.rank}'s host; {_AWAITABLE}")
    what = type(awaited)
    return InputError(f"rank {host.rank} awaits something foreign ({what.__module__}.{what.__name__}); {_AWAITABLE}")


class Cluster:
    """Hosts with a card each, and a network between them.

    Args:
        nodes: how many hosts.
        nic: the card: the name of a spec, or the path of a TOML file.
        topology: how they are joined: `pair`, two hosts and a wire; `star`, hosts around a switch; or `fat-tree:36`,
            levels of switches of so many ports (`fat-tree:PORTS:LEVELS:ROUTING`, of which all may be left out).
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

    Raises:
        InputError: where card, change, topology or faults cannot be.
    """

    def __init__(
        self,
        nodes: int,
        nic: str | PathLike[str],
        *,
        topology: str = "pair",
        seed: int = 1,
        set: Mapping[str, object] | Sequence[str] = (),  # noqa: A002, named as the option --set
        noise: str | None = None,
        recording: Level = "messages",
        recorded_rows: int | None = None,
        shards: int = 1,
        faults: Faults | None = None,
    ) -> None:
        overrides = [f"{key}={value}" for key, value in set.items()] if isinstance(set, Mapping) else list(set)
        self._nodes = whole(nodes, "nodes", U32)
        rows = None if recorded_rows is None else whole(recorded_rows, "recorded_rows")
        if not isinstance(nic, str | PathLike):
            raise InputError(f"nic is the name of a card or the path of its file, not {nic!r}")
        for name, value, example in (("topology", topology, "star"), ("recording", recording, "packets")):
            text(value, name, example)
        if noise is not None:
            text(noise, "noise", "1ms,25us")
        for override in overrides:
            text(override, "a change to the card", "hpu.cores=8")
        fixed = (self._nodes, fspath(nic), topology, whole(seed, "seed"), overrides, whole(shards, "shards"))
        self._arguments = (*fixed, noise, recording, rows, faults_text(faults))
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
        return _Turns(_native.Simulation(*self._arguments), self._nodes).run(of_rank)
