"""How results show themselves in a notebook."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, fields
from html import escape
from typing import TYPE_CHECKING

from nicety.outcomes import NodeReport
from nicety.refusals import refused_at_sizes
from nicety.tables import figure_tables

if TYPE_CHECKING:
    from nicety.applications import ApplicationReport
    from nicety.benchmarks import Report
    from nicety.cardinality import ContextReport
    from nicety.channel_benchmarks import ChannelBenchReport
    from nicety.faults import TransportReport
    from nicety.interface_benchmarks import FairnessReport, RegistrationReport
    from nicety.line_rate import LineRateReport
    from nicety.outcomes import Run
    from nicety.refusals import RefusedCommand

_LONGEST = 60
"""Characters of a result."""
_MOST = 32
"""Rows of a table."""


def report_html(report: Report) -> str:
    """A benchmark's report: its figures, a table for each card."""
    about = f"{report['benchmark']}, nicety {report['version']}, seed {report['seed']}"
    return f"<p>{escape(about)}</p>" + "".join(_table(title, rows) for title, rows in figure_tables(report))


def line_rate_html(report: LineRateReport) -> str:
    """A line-rate check: a card's figures, and in words where it does not keep up."""
    from nicety.line_rate_text import shortfalls, tables_of

    text = f"<p>line-rate check, nicety {escape(report['version'])}, seed {report['seed']}</p>"
    for nic in dict.fromkeys(row["nic"] for row in report["rows"]):
        own = [row for row in report["rows"] if row["nic"] == nic]
        text += "".join(_table(title, rows) for title, rows in tables_of(nic, own))
        text += "".join(f"<p>{escape(words)}</p>" for words in [*refused_at_sizes(own), *shortfalls(own)])
    return text


def channel_html(report: ChannelBenchReport) -> str:
    """A benchmark of channels: its figures, a table for each card."""
    from nicety.channel_text import channel_tables

    about = f"{report['benchmark']}, nicety {report['version']}, seed {report['seed']}"
    return f"<p>{escape(about)}</p>" + "".join(_table(title, rows) for title, rows in channel_tables(report))


def context_html(report: ContextReport) -> str:
    """What contexts do for a program: a table for each card."""
    from nicety.cardinality_text import context_tables

    about = f"pcsa, nicety {report['version']}, {report['rows'][0]['updates']} updates"
    return f"<p>{escape(about)}</p>" + "".join(_table(title, rows) for title, rows in context_tables(report))


def interface_html(report: RegistrationReport | FairnessReport) -> str:
    """A benchmark of a card that many processes share: a table for each card."""
    from nicety.interface_text import interface_tables

    about = f"{report['benchmark']}, nicety {report['version']}"
    return f"<p>{escape(about)}</p>" + "".join(_table(title, rows) for title, rows in interface_tables(report))


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
    text = _table(f"{run.time_ns:,.3f} ns of virtual time, {run.events:,} events", rows)
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
    return _table(title, rows) + more


def _table(title: str, rows: Sequence[Sequence[str]]) -> str:
    """A table whose first row names the columns."""
    head, *body = ["".join(_cell(text, index == 0) for text in row) for index, row in enumerate(rows)]
    lines = "".join(f"<tr>{cells}</tr>" for cells in body)
    caption = f'<caption style="text-align: left; font-weight: bold; white-space: nowrap">{escape(title)}</caption>'
    return f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{lines}</tbody></table>"


def _cell(text: str, heads: bool) -> str:
    tag = "th" if heads else "td"
    return f'<{tag} style="text-align: right; padding: 0.1em 0.6em">{escape(text)}</{tag}>'
