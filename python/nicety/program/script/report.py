"""The report of the programs in a file, as text, HTML, CSV and table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NotRequired, TypedDict

from nicety._generated.types import FailedPoint
from nicety.errors import InputError
from nicety.program.portals.refusals import refused_on_ranks
from nicety.shared.faults import faults_line
from nicety.show.columns import align, distinct, fixed
from nicety.show.html import text_html
from nicety.show.tables import Table, csv_rows, flatten

OURS = ("nic", "rank", "time_ns", "host_memory", "faults", "ports", "transport")
"""Names of a row that a program's return value must not have."""


class ProgramReport(TypedDict):
    """The report of a file's programs; `nicety run --json` prints exactly this.

    A row has `nic` and `rank` (None if no program on the card returned a value), and the program's return values under
    their names. `time_ns` is the time of the last event of the run. `host_memory` is bytes read and written by node.

    `failures` is failures on cards for which no program waited, as in `Run.failures`. `messages_dropped` is the number
    of messages that a card dropped, and a description of the first one. `frames_lost` is the number of frames that a
    port lost: `unclaimed` frames were for queues that were not open, and `waiting` frames were never received by a
    process. `refused_commands` is the commands of handlers that a card refused, as in `RefusedCommand`.
    `handler_lines` is the number of lines that handlers `printed`, and of lines that were `suppressed`. Each entry of
    these lists names card and rank. `traffic` is the number of frames per disposition, as in `Run.traffic`, with the
    card's name. `profile` has the rows of a profile, if it was requested. `failed_points` lists the cards without a row
    because their run ended with an error, if other cards have rows.
    """

    program: str
    version: str
    seed: int
    manifest: dict[str, Any]
    rows: list[dict[str, Any]]
    failures: list[dict[str, Any]]
    messages_dropped: list[dict[str, Any]]
    frames_lost: list[dict[str, Any]]
    refused_commands: list[dict[str, Any]]
    handler_lines: list[dict[str, Any]]
    traffic: list[dict[str, Any]]
    profile: NotRequired[list[dict[str, Any]]]
    failed_points: NotRequired[list[FailedPoint]]


def program_text(report: ProgramReport) -> str:
    """Return a report as a table, with a row per card and per rank with a returned value."""
    manifest, rows = report["manifest"], report["rows"]
    circumstances = f"seed {report['seed']}, {manifest['nodes']} nodes, topology {manifest['topology']}"
    if manifest["noise"]:
        circumstances += f", noise {manifest['noise']}"
    if manifest.get("flow_control"):
        circumstances += f", flow control {manifest['flow_control']}"
    if manifest.get("faults"):
        circumstances += f", faults {faults_line(manifest['faults'])}"
    if manifest["overrides"]:
        circumstances += f", set {', '.join(manifest['overrides'])}"
    names = distinct(name for row in rows for name in row if name not in OURS)
    columns = ["nic", *(["rank"] if any(row["rank"] is not None for row in rows) else []), *names, "time_ns"]
    numeric = [i for i, name in enumerate(columns) if not any(isinstance(row.get(name), str) for row in rows)]
    table = [[f"# {columns[0]}", *columns[1:]], *([_cell(row.get(name)) for name in columns] for row in rows)]
    title = f"# nicety run {report['program']} v{report['version']}"
    refused = [f"# {line}" for line in refused_on_ranks(report["refused_commands"])]
    became = _traffic_text(report["traffic"])
    return "\n".join([title, f"# {circumstances}", "", *align(table, numeric), *refused, *became]) + "\n"


_DISPOSITIONS = {
    "Offered": "offered",
    "Handled": "handled",
    "Passed": "passed",
    "Dropped": "dropped_by_handler",
    "Failed": "failed",
    "Overload": "dropped_by_overload",
    "No room": "dropped_at_host",
    "Damaged": "damaged",
    "Lost": "lost",
}
"""Maps a column of the table of traffic to a field of the report."""
_ALWAYS = 6
"""Number of columns that are always shown. Another column is shown only if it has a number above zero."""
_LATENCIES = {"p50": "latency_ns_p50", "p99": "latency_ns_p99", "p99.9": "latency_ns_p999", "Max": "latency_ns_max"}


def _traffic_text(traffic: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return lines with the number of frames per disposition; empty without traffic."""
    lines = []
    for nic in distinct(each["nic"] for each in traffic):
        of_nic = [each for each in traffic if each["nic"] == nic]
        last = list(_DISPOSITIONS)[_ALWAYS:]
        dispositions = [
            name for name in _DISPOSITIONS if name not in last or any(each[_DISPOSITIONS[name]] for each in of_nic)
        ]
        table = [["# Rank", *dispositions, *_LATENCIES, "Traffic"]]
        for each in of_nic:
            counts = [str(each[_DISPOSITIONS[name]]) for name in dispositions]
            times = [fixed(each[name]) for name in _LATENCIES.values()]
            table.append([str(each["rank"]), *counts, *times, each["traffic"]])
        lines += ["", f"# {nic}: packet disposition, and latency through the card (ns)"]
        lines += align(table, range(len(table[0]) - 1))
    return lines


_SMALL = 0.001


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.3g}" if 0 < abs(value) < _SMALL else fixed(value)
    return str(value)


def program_html(report: ProgramReport) -> str:
    """Return a report as HTML, with the text of `program_text`."""
    return text_html(program_text(report))


def program_csv(report: ProgramReport) -> str:
    """Return a report as CSV: a column per field of a row. `report_table` documents the columns of memory.

    Raises:
        InputError: a program returned a name that is such a column.
    """
    names, rows = _flat(report)
    return csv_rows(names, ([row.get(name) for name in names] for row in rows))


def program_table(report: ProgramReport) -> Table:
    """Return a report as a table, with the columns of `program_csv`. A column with numbers and texts has texts.

    Raises:
        InputError: see `program_csv`.
    """
    names, rows = _flat(report)
    columns = [(name, [row.get(name) for row in rows]) for name in names]
    texts = {name for name, cells in columns if any(isinstance(cell, str) for cell in cells)}
    return Table(
        [
            (name, [None if cell is None else str(cell) for cell in cells] if name in texts else cells)
            for name, cells in columns
        ]
    )


def _flat(report: ProgramReport) -> tuple[list[str], list[dict[str, Any]]]:
    """Return the names of all columns, and the rows as dicts."""
    rows = []
    for row in report["rows"]:
        fields = list(flatten(row))
        rows.append(dict(fields))
        for name in row.keys() - {"host_memory"}:
            if [field for field, _ in fields].count(name) > 1:
                raise InputError(f"a program returned {name!r}, which is already a column; use another name")
    # The columns of memory are equal in all rows.
    last = ["time_ns", *(name for name in rows[0] if name not in report["rows"][0])]
    return [*dict.fromkeys(name for row in rows for name in row if name not in last), *last], rows
