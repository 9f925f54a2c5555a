"""Reports of a node, and of what failed on it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from nicety.errors import InputError
from nicety.program.channels.reports import ChannelReport, channel_report
from nicety.program.portals.refusals import RefusedCommand
from nicety.program.portals.reports import PortalsReport, TransportReport, portals_report
from nicety.program.vni import InterfaceReport

_R = TypeVar("_R")


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


def told(failure: Mapping[str, Any]) -> str:
    """A failure as text."""
    return failure["text"] if failure["times"] == 1 else f"{failure['text']} ({failure['times']} times)"


@dataclass(frozen=True)
class LinkReport:
    """Effects of faults on one direction of a link.

    Attributes:
        link: its name, such as `hosts.0 -> switch.0`.
        packets: packets that were put on it, those that were sent again and acknowledgements among them.
        lost: those that never arrived.
        corrupted: those of which a byte was damaged.
        duplicated: those of which a second one followed.
        reordered: those that were delayed.
    """

    link: str
    packets: int
    lost: int
    corrupted: int
    duplicated: int
    reordered: int


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


_READ: dict[str, Callable[[dict[str, Any]], Any]] = {
    "portals": portals_report,
    "channels": channel_report,
    "vni": lambda counted: InterfaceReport(**counted),
}


@dataclass(frozen=True)
class NodeReport:
    """A node during a run: counts that every node has, and by design those of its card.

    Attributes:
        nic: the name of the node's card.
        host_memory_read_bytes: what the card read from the host's memory.
        host_memory_written_bytes: what it wrote to it.
        kernel: what the host's operating system did.
        failures: what failed on this node, as in `Run.failures`.
        refused_commands: what handlers asked of the card and it refused; `failures` has these as texts.
        card: what the card did, as `portals`, `channels` or `vni`; None where its design is none of nicety's.
    """

    nic: str
    host_memory_read_bytes: int
    host_memory_written_bytes: int
    kernel: KernelReport
    failures: list[Failure]
    refused_commands: list[RefusedCommand]
    card: PortalsReport | ChannelReport | InterfaceReport | None

    @property
    def portals(self) -> PortalsReport:
        """Counts of a card with Portals, under the same name as `host.portals`.

        Raises:
            InputError: where it is of another design.
        """
        return self._of(PortalsReport, "portals")

    @property
    def channels(self) -> ChannelReport:
        """Counts of a card with microengines, under the same name as `host.channels`.

        Raises:
            InputError: where it is of another design.
        """
        return self._of(ChannelReport, "channels")

    @property
    def vni(self) -> InterfaceReport:
        """Counts of a card with virtual network interfaces, under the same name as `host.vni`.

        Raises:
            InputError: where it is of another design.
        """
        return self._of(InterfaceReport, "vni")

    def _of(self, kind: type[_R], name: str) -> _R:
        if not isinstance(self.card, kind):
            names = {PortalsReport: "portals", ChannelReport: "channels", InterfaceReport: "vni"}
            instead = f"what it did is in node.{names[type(self.card)]}" if self.card else "it reports nothing"
            raise InputError(f"node.{name}: {self.nic} is of another design; {instead}")
        return self.card


def node_report(node: dict[str, Any], failures: list[Failure]) -> NodeReport:
    """The report of a node, read from JSON, and what failed on it."""
    card = None
    for name, counted in (node["card"] or {}).items():
        card = _READ[name](counted)
    return NodeReport(
        **node
        | {
            "kernel": KernelReport(**node["kernel"]),
            "failures": failures,
            "refused_commands": [RefusedCommand(**command) for command in node["refused_commands"]],
            "card": card,
        }
    )


def transport_of(node: NodeReport) -> TransportReport:
    """Counts of the reliable transport of a node's card: zero where it has none."""
    return node.card.transport if isinstance(node.card, PortalsReport) else TransportReport()
