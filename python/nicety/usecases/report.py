"""Reports of use cases as texts, tables and pictures. A report names its own axis and figure."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from html import escape
from typing import TYPE_CHECKING, Any, NotRequired, TypedDict

from nicety._generated.types import FailedPoint
from nicety.shared.ranges import format_size
from nicety.show.circumstances import circumstances
from nicety.show.columns import align, fixed
from nicety.show.html import table_html

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Group = dict[str, Any]
"""Maps `nic`, and the name of each parameter other than the axis, to its value."""


class UseCaseReport(TypedDict):
    """The report of a use case; `nicety bench --json` prints exactly this.

    A row has `nic`, `mode`, the parameters of its point, `iterations`, and the time `latency_ns` (the mean over the
    iterations) with `min_ns`, `p50_ns`, `p99_ns` and `max_ns` (nearest ranks). It has `bandwidth_bytes_per_s` if the
    use case moves one payload. `host_memory_read_bytes` and `host_memory_written_bytes` are the traffic of all hosts'
    memories (the mean over the iterations). `verified` is true: every byte was compared with a sequential reference
    computation. `axis`, `parameters` and `figure` name the fields that tables have. `incomplete` lists the rows with
    requests that were not completed, for example if a full table refuses keys; with such a row, the command's status
    is 1. `failures` lists the allowed failures of handlers, as in `Run.failures`, with their points. `failed_points`
    lists the points whose run failed; they have no row.
    """

    benchmark: str
    title: str
    meaning: str
    axis: str
    parameters: list[str]
    figure: dict[str, Any]
    version: str
    seed: int
    manifest: dict[str, Any]
    rows: list[dict[str, Any]]
    incomplete: list[Incomplete]
    failures: list[dict[str, Any]]
    failed_points: NotRequired[list[FailedPoint]]


class Incomplete(TypedDict):
    """A row in which not all requests were completed, and words on the requests that were not."""

    nic: str
    mode: str
    point: dict[str, Any]
    text: str


def report_text(report: UseCaseReport, *, percentiles: bool = False) -> str:
    """Return a report as text: a table per card and value of the other parameters, with a column per mode.

    Further tables have the bytes that each mode moved through the memories of all hosts. With `percentiles` each mode
    has its own table of the times of its iterations.
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
    """Return a report for a notebook."""
    about = f"{report['benchmark']}, nicety {report['version']}, seed {report['seed']}"
    return f"<p>{escape(about)}</p>" + "".join(table_html(title, rows) for title, rows in figure_tables(report))


def _circumstances(report: UseCaseReport) -> list[str]:
    manifest, iterations = report["manifest"], report["rows"][0]["iterations"]
    lines = [f"seed {report['seed']}, {iterations} iteration{'s' if iterations != 1 else ''}"]
    lines += [f"topology {manifest['topology']}", *circumstances({**manifest, "topology": "pair"})]
    return [f"# {line}" for line in lines]


def axis_name(axis: str) -> str:
    """Return a parameter's name as the head of a column: `Nodes`, `Size`, `Block`."""
    return axis.removesuffix("_bytes").replace("_", " ").capitalize()


def group_title(group: Mapping[str, Any]) -> str:
    """Return the card and the other parameters as a title: `spin-discrete, size 64Ki`. A list joins several values."""
    parts = []
    for name, value in group.items():
        values = value if isinstance(value, list) else [value]
        shown = " and ".join(format_size(each) if name.endswith("_bytes") else str(each) for each in values)
        parts.append(shown if name == "nic" else f"{axis_name(name).lower()} {shown}")
    return ", ".join(parts)


def groups(report: UseCaseReport) -> Iterator[tuple[Group, list[dict[str, Any]]]]:
    """Yield the card and the parameters other than the axis, and the rows that have these values."""
    names = ["nic", *(name for name in report["parameters"] if name != report["axis"])]
    found: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for row in report["rows"]:
        found.setdefault(tuple(row[name] for name in names), []).append(row)
    for values, rows in found.items():
        yield dict(zip(names, values, strict=True)), rows


def figure_tables(report: UseCaseReport) -> list[tuple[str, list[list[str]]]]:
    """Return titles and tables: the figures, and the bytes through host memory. Row 0 names the columns.

    A column has the number of refused requests, if there are any.
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
    """Yield titles and tables. Equal tables are merged if one title can name the values of all of them."""
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
    """Return titles and tables of the iterations' times, one per card, mode and value of the other parameters."""
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
    """Return a table with an additional column after each mode in which requests were refused."""
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


# Maximum number of axes side by side.
_MOST_BESIDE = 3


def usecase_figure(report: UseCaseReport, *, percentiles: bool = False) -> Figure:
    """Draw the figure of a use case over the parameter of its axis, with a line per card and mode.

    With `percentiles` the points of a latency have whiskers, as in `report_figure`. If other parameters have several
    values, each value has its own axes, over the same range.
    """
    from nicety.show.axes import house_style, new_figure, set_figure_titles, size_axis, value_axis
    from nicety.show.curves import mode_lines, spread_of

    axis, shown = report["axis"], report["figure"]
    beside: dict[str, list[dict[str, Any]]] = {}
    found = list(groups(report))
    # Parameters with one value are below the title, and those that vary above their axes.
    alike = {name: value for name, value in found[0][0].items() if all(group[name] == value for group, _ in found)}
    for group, rows in found:
        varied = {name: value for name, value in group.items() if name != "nic" and name not in alike}
        beside.setdefault(group_title(varied), []).extend(rows)
    alike.pop("nic", None)
    scale, label = _usecase_unit(report)

    def value(row: Mapping[str, Any]) -> float:
        return float(row[shown["name"]] / scale)

    spread = (lambda row: spread_of(row, scale)) if percentiles and shown["name"] == "latency_ns" else None
    values = [value(row) for row in report["rows"]]
    if spread:
        values += [end for row in report["rows"] for end in spread(row)]
    columns = min(len(beside), _MOST_BESIDE)
    lines = math.ceil(len(beside) / columns)
    with house_style():
        figure = new_figure(2.6 + 4.6 * columns, 4.4 if lines == 1 else 0.5 + 3.5 * lines)
    for at, (title, rows) in enumerate(beside.items()):
        with house_style():
            axes = figure.add_subplot(lines, columns, at + 1)
            axes.set_axisbelow(True)
            value_axis(axes, values, label, share=shown["name"].endswith("_ratio"))
            mode_lines(axes, rows, axis, value, spread=spread, legend=at + 1 == columns)
            size_axis(axes, sorted({row[axis] for row in rows}), format_size if axis.endswith("_bytes") else str)
            axes.set_xlabel(f"{axis_name(axis)}{' (B)' if axis.endswith('_bytes') else ''}")
            axes.set_title(title, loc="left", fontsize=9)
    with house_style():
        whole = f"{report['title']}: {report['meaning']}"
        set_figure_titles(figure, whole, [group_title(alike), *circumstances(report["manifest"])])
    return figure


def _usecase_unit(report: UseCaseReport) -> tuple[float, str]:
    """Return a readable unit of a use case's figure, and the label of its axis."""
    from nicety.show.axes import GIGABYTES, time_unit

    shown = report["figure"]
    most = max((row[shown["name"]] for row in report["rows"]), default=0.0)
    if shown["name"].endswith("_ns"):
        scale, unit = time_unit(most)
        return scale, f"{shown['label'].partition(' (')[0]} ({unit})"
    if shown["name"] == "bandwidth_bytes_per_s" and most >= GIGABYTES:
        return 1e9, "Bandwidth (GB/s)"
    return shown["unit"], shown["label"].replace("10^6", "10⁶")
