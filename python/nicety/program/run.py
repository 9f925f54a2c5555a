"""The result of a run."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, astuple, dataclass, field, fields
from html import escape
from typing import TYPE_CHECKING, Any

from nicety._generated.reports import Failure, LinkReport, NetworkPortReport, PortalsReport, TrafficReport
from nicety.errors import InputError, failure_text
from nicety.program.reports import NodeReport, report_of
from nicety.show.html import picture_html, table_html
from nicety.show.recordings import Recorded

if TYPE_CHECKING:
    from nicety import _native
    from nicety._generated.reports import ApplicationReport, RefusedCommand, TransportReport
    from nicety._generated.types import ProfileRow


@dataclass(frozen=True)
class Run(Recorded):
    """A completed run and its recording.

    Attributes:
        time_ps: the time of the last event, in picoseconds.
        events: number of events of the simulation.
        nodes: a report per rank.
        results: the key is a rank, the value the return value of that rank's program.
        failures: failures of handlers and processes on the cards, and refused commands, by rank. If a failure is not
            allowed, `Cluster.run` raises a `HandlerFailure` with this run as its `run`.
        links: effects of faults on each direction of a link that can have faults.
        ports: drops and pauses of hosts' and switches' ports, if the network has no credits.
        traffic: for each expression of traffic, the number of frames per disposition.
        profile: for a cluster with `profile`, a row for each card and program of processes.
    """

    time_ps: int
    events: int
    nodes: list[NodeReport]
    results: dict[int, Any] = field(default_factory=dict)
    links: list[LinkReport] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    ports: list[NetworkPortReport] = field(default_factory=list)
    traffic: list[TrafficReport] = field(default_factory=list)
    profile: list[ProfileRow] = field(default_factory=list, repr=False)
    _recording: _native.Recording = field(kw_only=True, repr=False, compare=False)

    @property
    def time_ns(self) -> float:
        """The time of the last event, in nanoseconds."""
        return self.time_ps / 1000

    def __repr__(self) -> str:
        return f"<Run of {len(self.nodes)} nodes, {self.time_ns:.3f} ns: {self.events} events>"

    def _repr_html_(self) -> str:
        return run_html(self) + timeline_html(self)


def run_of(text: str, results: dict[int, Any], recording: _native.Recording, profile: str | None = None) -> Run:
    """Make a run from its report as JSON, its programs' results, its recording, and the rows of its profile as JSON."""
    report = json.loads(text)
    links = [report_of(LinkReport, link) for link in report.pop("links")]
    ports = [report_of(NetworkPortReport, port) for port in report.pop("ports")]
    traffic = [report_of(TrafficReport, each) for each in report.pop("traffic")]
    nodes = [report_of(NodeReport, node) for node in report.pop("nodes")]
    failures = [failure for node in nodes for failure in node.failures]
    return Run(
        **report,
        nodes=nodes,
        results=results,
        links=links,
        ports=ports,
        traffic=traffic,
        failures=failures,
        profile=[] if profile is None else json.loads(profile),
        _recording=recording,
    )


_LONGEST = 60
"""Maximum number of characters of a program's result in the table."""
_MOST = 32
"""Maximum number of rows of a table; the rest are counted."""


def run_html(run: Run) -> str:
    """Return a run as HTML: its duration, and the counts of each node. Counts that are 0 on all nodes are left out."""
    found = [_counts(node) for node in run.nodes]
    names = dict.fromkeys(name for counts in found for name in counts)
    counts = [name for name in names if any(counts.get(name) for counts in found)]
    rows = [["rank", *(name.replace("_", " ") for name in counts), "result"]]
    for rank in range(min(len(run.nodes), _MOST)):
        result = repr(run.results[rank]) if rank in run.results else ""
        if len(result) > _LONGEST:
            result = f"{result[: _LONGEST - 3]}..."
        rows.append([str(rank), *(f"{found[rank].get(name, 0):,}" for name in counts), result])
    text = table_html(f"{run.time_ns:,.3f} ns of virtual time, {run.events:,} events", rows)
    if len(run.nodes) > _MOST:
        text += f"<p>and {len(run.nodes) - _MOST} more ranks</p>"
    portals = [(rank, node.card) for rank, node in enumerate(run.nodes) if isinstance(node.card, PortalsReport)]
    applications = [(rank, part) for rank, card in portals for part in card.applications]
    # If there is only the default application, its counts are the node's counts.
    if any(part.name != "default" for _, part in applications):
        text += _parts("applications", applications)
    transports = [(rank, card.transport) for rank, card in portals]
    text += _parts("reliable transport", [(rank, part) for rank, part in transports if any(astuple(part))])
    refused = [(rank, part) for rank, node in enumerate(run.nodes) for part in node.refused_commands]
    text += _parts("commands that cards refused", refused)
    text += _traffic(run.traffic)
    text += _ports([port for port in run.ports if port.dropped_packets or port.pauses_sent])
    shown = (failure for failure in run.failures if failure.kind != "refused")
    failed = [f"rank {failure.rank}: {failure_text(asdict(failure))}" for failure in shown]
    items = "".join(f"<li>{escape(text)}</li>" for text in failed[:_MOST])
    return text + (f"<p>{len(failed)} failures:</p><ul>{items}</ul>" if failed else "")


def timeline_html(run: Run) -> str:
    """Return the timeline of a run as HTML; empty if the run did not record the uses of resources."""
    if run.recording != "everything" or len(run.resources) == 0:
        return ""
    try:
        return picture_html(run.plot(kind="timeline"), "Activity of each part over time")
    except InputError as error:
        # A notebook shows a run of any size.
        return f"<p>{escape(str(error))}</p>"


def _traffic(traffic: Sequence[TrafficReport]) -> str:
    """Return a table of the traffic for hosts' cards; empty without traffic."""
    if not traffic:
        return ""
    names = ("rank", "offered", "handled", "passed", "dropped_by_handler", "dropped_by_overload", "dropped_at_host")
    rows = [["traffic", *(name.replace("_", " ") for name in names), "p50 (ns)", "p99 (ns)", "max (ns)"]]
    for each in traffic:
        latency = (each.latency_ns_p50, each.latency_ns_p99, each.latency_ns_max)
        counts = [f"{getattr(each, name):,}" for name in names]
        rows.append([each.traffic, *counts, *(f"{time:,.3f}" for time in latency)])
    return table_html("traffic for hosts' cards", rows)


def _ports(ports: Sequence[NetworkPortReport]) -> str:
    """Return a table of ports; empty without ports."""
    if not ports:
        return ""
    rows = [[field.name.replace("_", " ") for field in fields(NetworkPortReport)]]
    counts = (astuple(port) for port in ports[:_MOST])
    rows += [[f"{value:,}" if isinstance(value, int) else value for value in each] for each in counts]
    more = f"<p>and {len(ports) - _MOST} more</p>" if len(ports) > _MOST else ""
    return table_html("ports that dropped packets or paused their senders", rows) + more


def _counts(node: NodeReport) -> dict[str, int]:
    """Map the name of a count to its value, for a node and its card."""
    parts = [part for part in (node.card, node) if part is not None]
    found = ((field.name, getattr(part, field.name)) for part in parts for field in fields(part))
    return {name: count for name, count in found if isinstance(count, int)}


def _parts(title: str, parts: Sequence[tuple[int, ApplicationReport | TransportReport | RefusedCommand]]) -> str:
    """Return a table of nested reports, one row for each pair of rank and report; empty without any."""
    if not parts:
        return ""
    names = [field.name for field in fields(parts[0][1])]
    rows = [["rank", *(name.replace("_", " ") for name in names)]]
    for rank, part in parts[:_MOST]:
        rows.append([str(rank), *(f"{value:,}" if isinstance(value, int) else str(value) for value in astuple(part))])
    more = f"<p>and {len(parts) - _MOST} more</p>" if len(parts) > _MOST else ""
    return table_html(title, rows) + more
