"""Reports of cards with microengines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class ProcessReport:
    """A process on a context of a microengine; its cycles are those since the card's beginning, each in one part.

    Attributes:
        context: its number.
        name: the function that was started there last.
        returned: what that returned; none where it runs, or was stopped.
        trapped: why it was stopped, and at which line; none where it was not.
        cycles_computing: instructions, and units that hold the core, such as the CRC.
        cycles_asleep: waiting for a memory, a signal or a channel.
        cycles_ready: waiting for the core, which another context had.
        cycles_idle: before its start and after its end.
        instructions: instructions that it executed.
        references: references to memories outside the microengine.
    """

    context: int
    name: str
    returned: int | None
    trapped: str | None
    cycles_computing: int
    cycles_asleep: int
    cycles_ready: int
    cycles_idle: int
    instructions: int
    references: int


@dataclass(frozen=True)
class MicroengineReport:
    """A microengine that was given a program; its cycles are those since the card's beginning.

    Attributes:
        microengine: its number.
        cycles_computing: some context computed.
        cycles_switching: it went from one context to another.
        cycles_asleep: every context with a process slept.
        cycles_idle: no context had a process.
        switches: how often it went from one context to another.
        processes: the contexts on which processes were started.
    """

    microengine: int
    cycles_computing: int
    cycles_switching: int
    cycles_asleep: int
    cycles_idle: int
    switches: int
    processes: list[ProcessReport]


@dataclass(frozen=True)
class QueueReport:
    """A queue of a card's port.

    Attributes:
        queue: its number; 255 is that of messages between hosts.
        frames_received: frames that processes took.
        frames_unclaimed: frames that came before the queue was open, which were dropped.
        frames_waiting: frames that no process has taken at the end.
    """

    queue: int
    frames_received: int
    frames_unclaimed: int
    frames_waiting: int


@dataclass(frozen=True)
class PortReport:
    """The port of a card, through which processes send frames.

    Attributes:
        frames_sent: frames that processes sent, those that forward messages between hosts included.
        frames_received: frames that processes took.
        frames_damaged: frames that came damaged, or were none for this card, which were dropped.
        frames_unclaimed: frames for queues that were not open, which were dropped.
        frames_waiting: frames that no process has taken at the end.
        frames_refused: frames of messages between hosts that could not be meant, which were dropped.
        envelopes_refused: the same of what another host says about messages.
        queues: the queues that have seen anything, by number.
    """

    frames_sent: int
    frames_received: int
    frames_damaged: int
    frames_unclaimed: int
    frames_waiting: int
    frames_refused: int
    envelopes_refused: int
    queues: list[QueueReport]


@dataclass(frozen=True)
class ChannelReport:
    """A card with microengines: its channels, its port, and its microengines.

    Attributes:
        posted: mailboxes that the host wrote.
        pushed: mailboxes that the card wrote, with an interrupt each.
        transfers: DMA transfers of indirect messages, one a page.
        transferred_bytes: bytes of those that succeeded.
        dma_errors: transfers that failed.
        retries: page lists that were sent again.
        dropped: mailboxes that were not heeded.
        pages_pinned: pages of the host that are pinned at the end.
        port: what the card's port did.
        microengines: those that were given a program.
    """

    posted: int
    pushed: int
    transfers: int
    transferred_bytes: int
    dma_errors: int
    retries: int
    dropped: int
    pages_pinned: int
    port: PortReport
    microengines: list[MicroengineReport]


def channel_report(counted: dict[str, Any]) -> ChannelReport:
    """The report of a card with microengines, read from JSON."""
    port = counted["port"]
    queues = [QueueReport(**queue) for queue in port["queues"]]
    microengines = [_microengine_report(each) for each in counted["microengines"]]
    return ChannelReport(**counted | {"port": PortReport(**port | {"queues": queues}), "microengines": microengines})


def _microengine_report(microengine: dict[str, Any]) -> MicroengineReport:
    processes = [ProcessReport(**process) for process in microengine["processes"]]
    return MicroengineReport(**microengine | {"processes": processes})
