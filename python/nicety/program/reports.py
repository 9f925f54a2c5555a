"""Reports of a node, and of what failed on it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from nicety.program.channels.channel import ChannelReport
from nicety.program.channels.processes import MicroengineReport, PortReport, ProcessReport, QueueReport
from nicety.program.faults import TransportReport
from nicety.program.portals.handlers import ApplicationReport
from nicety.program.portals.refusals import RefusedCommand
from nicety.program.vni import InterfaceReport


@dataclass(frozen=True)
class Failure:
    """Something that failed in a run that came to its end.

    Attributes:
        rank: on whose card.
        kind: `trap`, a handler or process was stopped; `fail`, it returned `FAIL`, `SEGV` or no return code; `budget`,
            a budget of its application was used up; `refused`, the card refused a command.
        text: what failed, and where in the source.
        times: how many times.
    """

    rank: int
    kind: str
    text: str
    times: int


@dataclass(frozen=True)
class KernelReport:
    """How often a host's operating system was entered, and what for.

    Attributes:
        calls: system calls.
        pins: times that pages were locked and translated.
        pages_pinned: pages of these.
        unpins: times that pages were given free again.
        interrupts: interrupts of the card whose handlers ran.
        wakes: threads that were woken up.
    """

    calls: int
    pins: int
    pages_pinned: int
    unpins: int
    interrupts: int
    wakes: int


@dataclass(frozen=True)
class NodeReport:
    """What happened on a node during a run.

    `faults` are the handlers and processes that failed, each with how many times it was. `refused_commands` are what
    handlers asked of the card and it refused. `Run.failures` has both.

    `handler_lines_shown` and `handler_lines_left_out` are the lines that handlers printed: a card shows 1000 and counts
    the others.

    What a card of the run's design does not have is zero, and empty; `microengines` are those that were given a
    program, and `kernel` is the host's operating system.

    Beside what is counted, `nic` is the name of the node's card, and `first_dropped` says of the first message that its
    card dropped what it was and why, where there was one.
    """

    nic: str
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


def node_report(node: dict[str, Any]) -> NodeReport:
    """The report of a node, read from JSON."""
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
