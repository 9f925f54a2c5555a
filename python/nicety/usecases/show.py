"""Reports of use cases as texts, tables and pictures: what is the axis, and what the figure, they say themselves."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from html import escape
from typing import TYPE_CHECKING, Any

from nicety.faults import faults_line
from nicety.ranges import format_size
from nicety.tables import align, fixed

if TYPE_CHECKING:
    from nicety.usecases.driver import UseCaseReport

Group = dict[str, Any]
"""The parameters that are not the axis, and the card."""


def report_text(report: UseCaseReport, *, percentiles: bool = False) -> str:
    """A report as text: for each card, and each value of what is not the axis, a table with a column for each mode.

    Below it stands what each mode moved through the memories of all hosts. With `percentiles` each mode has a table of
    its own, of the times of its iterations.
    """
    unit = ", 10^6 B/s" if report["figure"]["name"] == "bandwidth_bytes_per_s" else ""
    lines = [
        f"# nicety {report['title']} v{report['version']}",
        f"# {report['meaning']}{unit}",
        *_circumstances(report),
    ]
    for title, (head, *body) in percentile_tables(report) if percentiles else figure_tables(report):
        lines += ["", f"# {title}", *align([[f"# {head[0]}", *head[1:]], *body], range(1, len(head)))]
    return "\n".join(lines) + "\n"


def report_html(report: UseCaseReport) -> str:
    """A report for a notebook."""
    from nicety._notebook import _table

    about = f"{report['benchmark']}, nicety {report['version']}, seed {report['seed']}"
    return f"<p>{escape(about)}</p>" + "".join(_table(title, rows) for title, rows in figure_tables(report))


def _circumstances(report: UseCaseReport) -> list[str]:
    manifest, iterations = report["manifest"], report["rows"][0]["iterations"]
    lines = [f"# seed {report['seed']}, {iterations} iteration{'s' if iterations != 1 else ''}"]
    lines.append(f"# topology {manifest['topology']}")
    if manifest["noise"]:
        lines.append(f"# noise {manifest['noise']}")
    if manifest.get("faults"):
        lines.append(f"# faults {faults_line(manifest['faults'])}")
    return lines


def axis_name(axis: str) -> str:
    """A parameter as the head of a column: `Nodes`, `Size`, `Block`."""
    return axis.removesuffix("_bytes").replace("_", " ").capitalize()


def group_title(group: Mapping[str, Any]) -> str:
    """The card and the parameters beside the axis: `spin-discrete, size 64Ki`; several values of one in a list."""
    parts = []
    for name, value in group.items():
        values = value if isinstance(value, list) else [value]
        shown = " and ".join(format_size(each) if name.endswith("_bytes") else str(each) for each in values)
        parts.append(shown if name == "nic" else f"{axis_name(name).lower()} {shown}")
    return ", ".join(parts)


def groups(report: UseCaseReport) -> Iterator[tuple[Group, list[dict[str, Any]]]]:
    """The rows by card and by what is not the axis."""
    names = ["nic", *(name for name in report["parameters"] if name != report["axis"])]
    found: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for row in report["rows"]:
        found.setdefault(tuple(row[name] for name in names), []).append(row)
    for values, rows in found.items():
        yield dict(zip(names, values, strict=True)), rows


def figure_tables(report: UseCaseReport) -> list[tuple[str, list[list[str]]]]:
    """The figures, and the bytes through host memory, as tables with their titles; the first row names the columns.

    Where requests were refused, a column says how many.
    """
    figure = report["figure"]
    cell = lambda row: fixed(row[figure["name"]] / figure["unit"], figure["digits"])  # noqa: E731, short
    tables = [
        (f"{group_title(group)}: {figure['label']}", _with_refused(_grid(report, rows, cell), rows))
        for group, rows in groups(report)
    ]
    for titles, grid in _alike([(group, _grid(report, rows, _traffic)) for group, rows in groups(report)]):
        tables.append((f"{titles}: read from and written to host memory in the whole run, all nodes (B)", grid))
    return tables


def _alike(tables: list[tuple[Group, list[list[str]]]]) -> Iterator[tuple[str, list[list[str]]]]:
    """Tables with their titles; those that are alike are one, where a title can say so."""
    found: list[tuple[list[Group], list[list[str]]]] = []
    for group, grid in tables:
        same = next((groups for groups, other in found if other == grid), None)
        if same is None:
            found.append(([group], grid))
        else:
            same.append(group)
    for alike, grid in found:
        values = {name: list(dict.fromkeys(group[name] for group in alike)) for name in alike[0]}
        if math.prod(map(len, values.values())) == len(alike):
            yield group_title(values), grid
        else:
            yield from ((group_title(group), grid) for group in alike)


def _traffic(row: Mapping[str, Any]) -> str:
    return str(round(row["host_memory_read_bytes"] + row["host_memory_written_bytes"]))


def percentile_tables(report: UseCaseReport) -> list[tuple[str, list[list[str]]]]:
    """The times of the iterations, a table for each card, mode and value of what is not the axis."""
    head = [axis_name(report["axis"]), "mean", "min", "p50", "p99", "max"]
    fields = ["latency_ns", "min_ns", "p50_ns", "p99_ns", "max_ns"]
    tables: list[tuple[str, list[list[str]]]] = []
    for group, rows in groups(report):
        for mode in dict.fromkeys(row["mode"] for row in rows):
            own = [row for row in rows if row["mode"] == mode]
            what, names, columns = "time (ns)", head, fields
            if "operation_p99_ns" in own[0]:
                what = "mean time of a request in each iteration, and p99 of the requests (ns)"
                names, columns = [*head, "request p99"], [*fields, "operation_p99_ns"]
            body = [[str(row[report["axis"]]), *(fixed(row[name]) for name in columns)] for row in own]
            if any(row.get("refused") for row in own):
                names = [*names, "refused"]
                body = [[*line, f"{row['refused']:g}"] for line, row in zip(body, own, strict=True)]
            tables.append((f"{group_title(group)}, mode {mode}: {what}", [names, *body]))
    return tables


def _grid(report: UseCaseReport, rows: list[dict[str, Any]], cell: Callable[[dict[str, Any]], str]) -> list[list[str]]:
    modes = list(dict.fromkeys(row["mode"] for row in rows))
    at = {(row[report["axis"]], row["mode"]): cell(row) for row in rows}
    values = list(dict.fromkeys(row[report["axis"]] for row in rows))
    head = [axis_name(report["axis"]), *modes]
    return [head, *([str(value), *(at.get((value, mode), "-") for mode in modes)] for value in values)]


def _with_refused(grid: list[list[str]], rows: list[dict[str, Any]]) -> list[list[str]]:
    """A grid with a column behind that of each mode in which requests were refused."""
    modes = list(dict.fromkeys(row["mode"] for row in rows))
    for mode in reversed(modes):
        refused = [row.get("refused", 0) for row in rows if row["mode"] == mode]
        if any(refused):
            cells = ["refused", *(f"{count:g}" for count in refused)]
            grid = [
                [*line[: modes.index(mode) + 2], cell, *line[modes.index(mode) + 2 :]]
                for line, cell in zip(grid, cells, strict=True)
            ]
    return grid
