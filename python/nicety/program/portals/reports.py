"""Reports of cards with Portals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class ApplicationReport:
    """Resources that an application has used on its card.

    Attributes:
        name: its name; `default` is that of handlers for which none was given.
        weight: its weight.
        handler_runs: handlers run to their end.
        handler_instructions: instructions that they executed.
        handler_cycles: cycles for which they held a processor.
        handler_stalled_cycles: cycles of these in which they waited for commands and transfers.
        handlers_failed: runs that were stopped, or returned an error.
        messages_refused: messages that failed because its budget of cycles was used up when a handler of theirs was
            to run.
        hpu_memory_bytes: HPU memory that it has at the end: states, and the data of its programs.
        hpu_memory_most_bytes: the most that it ever had.
    """

    name: str
    weight: int
    handler_runs: int
    handler_instructions: int
    handler_cycles: int
    handler_stalled_cycles: int
    handlers_failed: int
    messages_refused: int
    hpu_memory_bytes: int
    hpu_memory_most_bytes: int


@dataclass(frozen=True)
class TransportReport:
    """Counts of a card's reliable transport; all zero where there is none.

    Attributes:
        retransmitted: packets sent again.
        corrupted: packets discarded because their CRC was wrong.
        duplicated: packets discarded because they had come before.
        out_of_order: packets discarded because one before them was missing.
        acknowledgements: acknowledgements sent.
        refusals: refusals sent, each of which says what is missing.
        timeouts: how often nothing had come in time.
        unusable: without such a transport, packets that came damaged or out of place and were dropped.
    """

    retransmitted: int = 0
    corrupted: int = 0
    duplicated: int = 0
    out_of_order: int = 0
    acknowledgements: int = 0
    refusals: int = 0
    timeouts: int = 0
    unusable: int = 0


@dataclass(frozen=True)
class PortalsReport:
    """A card with Portals: messages, handlers, and its reliable transport.

    Attributes:
        messages_matched: messages that found a match entry.
        messages_dropped: messages that found none, or that the card dropped for another reason.
        first_dropped: what the first of these was, and why; None where there was none.
        handler_runs: handlers that ran.
        handler_instructions: their instructions.
        handler_cycles: their cycles.
        handler_lines_shown: lines that they printed and the card showed, 1000 at most.
        handler_lines_left_out: the others.
        applications: what each application used.
        transport: what the reliable transport did.
    """

    messages_matched: int
    messages_dropped: int
    first_dropped: str | None
    handler_runs: int
    handler_instructions: int
    handler_cycles: int
    handler_lines_shown: int
    handler_lines_left_out: int
    applications: list[ApplicationReport]
    transport: TransportReport


def portals_report(counted: dict[str, Any]) -> PortalsReport:
    """The report of a card with Portals, read from JSON."""
    applications = [ApplicationReport(**application) for application in counted["applications"]]
    transport = TransportReport(**counted["transport"])
    return PortalsReport(**counted | {"applications": applications, "transport": transport})
