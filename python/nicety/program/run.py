"""What a run leaves."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import astuple, dataclass, field, fields
from html import escape
from typing import TYPE_CHECKING, Any

from nicety.program.faults import LinkReport, TransportReport
from nicety.program.reports import Failure, NodeReport, node_report
from nicety.show.html import table_html
from nicety.show.recordings import Recorded

if TYPE_CHECKING:
    from nicety import _native
    from nicety.program.portals.handlers import ApplicationReport
    from nicety.program.portals.refusals import RefusedCommand


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
        return run_html(self)


def run_of(text: str, results: dict[int, Any], recording: _native.Recording) -> Run:
    """A run that came to its end, what its programs returned, and what it has recorded."""
    report = json.loads(text)
    links = [LinkReport(**link) for link in report.pop("links")]
    failures = [Failure(**failure) for failure in report.pop("failures")]
    nodes = [node_report(node) for node in report.pop("nodes")]
    return Run(**report, nodes=nodes, results=results, links=links, failures=failures, _recording=recording)


_LONGEST = 60
"""Characters of a result."""
_MOST = 32
"""Rows of a table."""


def run_html(run: Run) -> str:
    """A run: how long it took, and what happened on each node; what happened nowhere is left out."""
    counts = [field.name for field in fields(NodeReport) if field.type in (int, "int")]
    counts = [name for name in counts if any(getattr(node, name) for node in run.nodes)]
    rows = [["rank", *(name.replace("_", " ") for name in counts), "result"]]
    for rank, node in enumerate(run.nodes[:_MOST]):
        result = repr(run.results[rank]) if rank in run.results else ""
        if len(result) > _LONGEST:
            result = f"{result[: _LONGEST - 3]}..."
        rows.append([str(rank), *(f"{getattr(node, name):,}" for name in counts), result])
    text = table_html(f"{run.time_ns:,.3f} ns of virtual time, {run.events:,} events", rows)
    if len(run.nodes) > _MOST:
        text += f"<p>and {len(run.nodes) - _MOST} more ranks</p>"
    applications = [(rank, part) for rank, node in enumerate(run.nodes) for part in node.applications]
    # What the unnamed one did is what the node did.
    if any(part.name != "default" for _, part in applications):
        text += _parts("applications", applications)
    transports = [(rank, node.transport) for rank, node in enumerate(run.nodes)]
    text += _parts("reliable transport", [(rank, part) for rank, part in transports if any(astuple(part))])
    refused = [(rank, part) for rank, node in enumerate(run.nodes) for part in node.refused_commands]
    text += _parts("commands that cards refused", refused)
    faults = [fault for node in run.nodes for fault in node.faults]
    items = "".join(f"<li>{escape(fault)}</li>" for fault in faults[:_MOST])
    return text + (f"<p>{len(faults)} faults:</p><ul>{items}</ul>" if faults else "")


def _parts(title: str, parts: Sequence[tuple[int, ApplicationReport | TransportReport | RefusedCommand]]) -> str:
    """A table of what is reported in parts of a node, or nothing where there are none."""
    if not parts:
        return ""
    names = [field.name for field in fields(parts[0][1])]
    rows = [["rank", *(name.replace("_", " ") for name in names)]]
    for rank, part in parts[:_MOST]:
        rows.append([str(rank), *(f"{value:,}" if isinstance(value, int) else str(value) for value in astuple(part))])
    more = f"<p>and {len(parts) - _MOST} more</p>" if len(parts) > _MOST else ""
    return table_html(title, rows) + more
