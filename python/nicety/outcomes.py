"""What programs are told, and what a run leaves."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from nicety.applications import ApplicationReport
from nicety.failures import Failure
from nicety.faults import LinkReport, TransportReport
from nicety.interfaces import InterfaceReport
from nicety.processes import ChannelReport, KernelReport, MicroengineReport, PortReport
from nicety.refusals import RefusedCommand
from nicety.results import Recorded

if TYPE_CHECKING:
    from nicety import _native


@dataclass(frozen=True)
class Received:
    """What a receive brought: the rank it came from, its tag, its length in bytes."""

    source: int
    tag: int
    length_bytes: int


@dataclass(frozen=True)
class Event:
    """A full event of Portals, with the names of the specification's fields.

    Attributes:
        kind: what happened, for example `PTL_EVENT_PUT`.
        fail: how it ended: `PTL_NI_OK`, or why not, for example `PTL_NI_PT_DISABLED`.
        initiator: the rank that started the operation; the own one where nobody else has.
        pt: the portal table entry.
        list: the list the match entry is on: `priority` or `overflow`.
        match_bits: the bits of the message.
        hdr_data: the initiator's word for the target.
        rlength_bytes: bytes asked for.
        mlength_bytes: bytes kept.
        remote_offset_bytes: where they begin in the target's memory.
        start: where they begin in this host's memory, as in `Buffer.address`.
        user_ptr: the user's word, of the match entry or of the operation.
        uid: the user on whose behalf the operation is.
        operator: of an atomic operation, for example `PTL_SUM`.
        datatype: of its items, for example `PTL_UINT64_T`.
    """

    kind: str
    fail: str
    initiator: int
    pt: int
    list: str
    match_bits: int
    hdr_data: int
    rlength_bytes: int
    mlength_bytes: int
    remote_offset_bytes: int
    start: int
    user_ptr: int
    uid: int
    operator: str | None
    datatype: str | None

    @property
    def ok(self) -> bool:
        """Whether it succeeded."""
        return self.fail == "PTL_NI_OK"


@dataclass(frozen=True)
class Count:
    """The value of a counting event: successes and failures, of operations or bytes."""

    success: int
    failure: int


@dataclass(frozen=True)
class NodeReport:
    """What happened on a node during a run.

    `faults` are the handlers and processes that failed, each with how many times it was. `refused_commands` are what
    handlers asked of the card and it refused. `Run.failures` has both.

    `handler_lines_shown` and `handler_lines_left_out` are the lines that handlers printed: a card shows 1000 and counts
    the others.

    What a card of the run's design does not have is zero, and empty; `microengines` are those that were given a
    program, and `kernel` is the host's operating system.

    Beside what is counted, `first_dropped` says of the first message that its card dropped what it was and why, where
    there was one.
    """

    messages_matched: int
    messages_dropped: int
    first_dropped: str | None
    handler_runs: int
    handler_instructions: int
    handler_cycles: int
    applications: list[ApplicationReport]
    host_memory_read_bytes: int
    host_memory_written_bytes: int
    faults: list[str]
    handler_lines_shown: int
    handler_lines_left_out: int
    refused_commands: list[RefusedCommand]
    transport: TransportReport
    microengines: list[MicroengineReport]
    channels: ChannelReport
    port: PortReport
    interfaces: InterfaceReport
    kernel: KernelReport


@dataclass(frozen=True)
class Run(Recorded):
    """A run that came to its end, and what it has recorded.

    Attributes:
        time_ps: when the last thing happened, in picoseconds.
        events: how many events the kernel went through.
        nodes: a report for each rank.
        results: what each rank's program returned.
        failures: what failed on the cards, by rank: handlers and processes, and commands that were refused. A run
            that has other failures than it was allowed is no result but the `run` of a `HandlerFailure`.
        links: what faults did, for each direction of a link on which anything could go wrong.
    """

    time_ps: int
    events: int
    nodes: list[NodeReport]
    results: dict[int, Any] = field(default_factory=dict)
    links: list[LinkReport] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    _recording: _native.Recording = field(kw_only=True, repr=False, compare=False)

    @property
    def time_ns(self) -> float:
        """When the last thing happened, in nanoseconds."""
        return self.time_ps / 1000

    def __repr__(self) -> str:
        matched = sum(node.messages_matched for node in self.nodes)
        return f"<Run of {len(self.nodes)} nodes, {self.time_ns:.3f} ns: {matched} messages, {self.events} events>"

    def _repr_html_(self) -> str:
        from nicety._notebook import run_html

        return run_html(self)
