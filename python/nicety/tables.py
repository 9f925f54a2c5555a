"""Reports as text: benchmarks in the style of the OSU micro-benchmarks, and plain aligned columns."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Sequence
from decimal import ROUND_HALF_UP, Context, Decimal
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from nicety._text import printable
from nicety.faults import faults_line
from nicety.refusals import refused_on_ranks

if TYPE_CHECKING:
    from nicety.benchmarks import Flow, Report, Row
    from nicety.programs import ProgramReport

_TITLES = {"latency": "Latency Test", "bandwidth": "Bandwidth Test", "message-rate": "Message Rate Test"}
_UNITS = {"latency": "Latency (ns)", "bandwidth": "Bandwidth (MB/s)", "message-rate": "Messages/s"}
_MEANINGS = {
    "latency": "half a round trip of send and receive, host to host",
    "bandwidth": "payload of a window of messages one way, 10^6 bytes a second",
    "message-rate": "a window of messages one way, from the first post to the last completion",
}
_UNITS_SHORT = {"latency": "mean", "bandwidth": "MB/s", "message-rate": "messages/s"}
_GAP = "  "
_WIDE = Context(prec=400)

_Table = tuple[str, list[list[str]]]
"""A title, and rows of which the first names the columns."""

_T = TypeVar("_T", bound=Hashable)


def align(rows: Sequence[Sequence[str]], right: Iterable[int] = ()) -> list[str]:
    """Lines with the cells of each column under one another; the columns named in `right` flush right.

    A cell is one line, and says nothing to a terminal: control characters in it are escaped.
    """
    flush = set(right)
    rows = [[printable(cell) for cell in row] for row in rows]
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))] if rows else []
    lines = []
    for row in rows:
        cells = [
            cell.rjust(width) if i in flush else cell.ljust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append(_GAP.join(cells).rstrip())
    return lines


def fixed(value: float, digits: int = 3) -> str:
    """A number with so many decimals, halves rounded up as they are written, so that equal figures look equal.

    Rounding the binary fraction instead turns 0.6225 to .622 and 5.6225 to .623.
    """
    if not math.isfinite(value):
        return str(value)
    exact = Decimal(repr(float(value)))
    return f"{exact.quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP, _WIDE):f}"


def benchmark_text(report: Report, *, breakdown: bool = False, percentiles: bool = False) -> str:
    """A benchmark's report as text: a table for each card, and with `breakdown` one of stages for each size.

    Where every card ran one mode and the same one, the cards share a table. With `percentiles` each card and mode has a
    table of its own. A pattern in which several ranks send adds what each direction gets.
    """
    rows = report["rows"]
    lines = [
        f"# nicety {_TITLES[report['benchmark']]} v{report['version']}",
        f"# {_MEANINGS[report['benchmark']]}",
        f"# seed {report['seed']}{_iterations(rows)}",
        *_circumstances(report),
    ]
    tables = percentile_tables(report) if percentiles else figure_tables(report)
    for title, (head, *body) in [*tables, *_directions(report)]:
        lines += ["", f"# {title}", *align([[f"# {head[0]}", *head[1:]], *body], range(1, len(head)))]
    if not all(row["verified"] for row in rows):
        lines.append("# * not every byte was checked")
    if breakdown:
        for nic in _distinct(row["nic"] for row in rows):
            for size in _distinct(row["size_bytes"] for row in rows):
                lines += _stages(nic, size, [r for r in rows if (r["nic"], r["size_bytes"]) == (nic, size)])
    return "\n".join(lines) + "\n"


def _iterations(rows: Sequence[Row]) -> str:
    counts = sorted({row["iterations"] for row in rows})
    if not counts:
        return ""
    most = counts[-1]
    return f", {most if len(counts) == 1 else f'{counts[0]} to {most}'} iteration{'s' if most != 1 else ''} a size"


def _circumstances(report: Report) -> list[str]:
    """What is not as usual: the pattern, the topology, the noise."""
    manifest = report["manifest"]
    pattern, topology = manifest.get("pattern", "pair"), manifest.get("topology", "pair")
    lines = []
    if pattern == "bidirectional":
        lines.append("# bidirectional: ranks 0 and 1 send to each other at once; figures are of both together")
    elif pattern != "pair":
        senders = int(pattern.partition(":")[2])
        who = f"ranks 0 to {senders - 1} send" if senders > 1 else "rank 0 sends"
        lines.append(f"# {pattern}: {who} to rank {senders} at once; figures are of all together")
    if topology != "pair":
        lines.append(f"# topology {topology}")
    if manifest.get("noise"):
        lines.append(f"# noise {manifest['noise']}")
    if manifest.get("faults"):
        lines.append(f"# faults {faults_line(manifest['faults'])}")
    return lines


def figure_tables(report: Report) -> list[_Table]:
    """A report's figures as tables, each with its title: a row for each size, the first one with the columns' names."""
    return _tables(report, _UNITS[report["benchmark"]], lambda row: _figure(report, row, row["verified"]))


def percentile_tables(report: Report) -> list[_Table]:
    """A report's figures with minimum, percentiles and maximum, a table for each card and mode."""
    latency = report["benchmark"] == "latency"
    unit = _UNITS[report["benchmark"]] if latency else f"{_UNITS[report['benchmark']]}, and the time of a window (ns)"
    names = ["Size", _UNITS_SHORT[report["benchmark"]], *([] if latency else ["mean"])]
    names += ["min", "p50", "p99", "p99.9", "max"]
    tables: dict[tuple[str, str], list[list[str]]] = {}
    for row in report["rows"]:
        times = [row["min_ns"], row["p50_ns"], row["p99_ns"], row["p999_ns"], row["max_ns"]]
        if not latency:
            times.insert(0, row["window_ns"])
        cells = [str(row["size_bytes"]), _figure(report, row, row["verified"]), *(fixed(ns) for ns in times)]
        tables.setdefault((row["nic"], row["mode"]), [names]).append(cells)
    return [(f"{nic}, {mode}: {unit}", table) for (nic, mode), table in tables.items()]


def _directions(report: Report) -> list[_Table]:
    """What each direction of a pattern gets: both ways, or for an incast how far the senders are apart."""
    rows = report["rows"]
    if not all("flows" in row for row in rows):
        return []
    if any("fairness" in row for row in rows):
        title = "fairness, the smallest of the senders' figures over the largest"
        return _tables(report, title, lambda row: fixed(row["fairness"]))
    tables: list[_Table] = []
    for index, way in enumerate(rows[0]["flows"] if rows else []):
        title = f"{_UNITS[report['benchmark']]} from rank {way['source']} to rank {way['target']}"
        tables += _tables(report, title, partial(_flow_figure, report, index))
    return tables


def _tables(report: Report, what: str, cell: Callable[[Row], str]) -> list[_Table]:
    """Tables with a row for each size and a column for each mode of a card, or for each card of a single mode."""
    rows = report["rows"]
    modes = _distinct(row["mode"] for row in rows)
    nics = _distinct(row["nic"] for row in rows)
    if len(modes) == 1 and len(nics) > 1:
        by_nic = {(row["nic"], row["size_bytes"]): cell(row) for row in rows}
        return [(f"mode {modes[0]}: {what}", _grid(nics, by_nic))]
    tables = []
    for nic in nics:
        own = {(row["mode"], row["size_bytes"]): cell(row) for row in rows if row["nic"] == nic}
        tables.append((f"{nic}: {what}", _grid(_distinct(mode for mode, _size in own), own)))
    return tables


def _grid(columns: list[str], cells: dict[tuple[str, int], str]) -> list[list[str]]:
    sizes = _distinct(size for _column, size in cells)
    return [["Size", *columns], *([str(size), *(cells.get((c, size), "-") for c in columns)] for size in sizes)]


def _flow_figure(report: Report, index: int, row: Row) -> str:
    return _figure(report, row["flows"][index])


def _figure(report: Report, figures: Row | Flow, verified: bool = True) -> str:
    mark = "" if verified else "*"
    if report["benchmark"] == "latency":
        return fixed(figures["latency_ns"]) + mark
    if report["benchmark"] == "bandwidth":
        return fixed(figures["bandwidth_bytes_per_s"] / 1e6, 2) + mark
    return fixed(figures["messages_per_s"], 2) + mark


def _stages(nic: str, size: int, rows: Sequence[Row]) -> list[str]:
    rows = [row for row in rows if row.get("stages")]
    if not rows:
        return []
    columns = [_by_stage(row) for row in rows]
    table = [["# Stage", *(row["mode"] for row in rows)]]
    table += [
        [name, *(fixed(round(column[name], 6)) if name in column else "-" for column in columns)]
        for name in merged_order([list(column) for column in columns])
    ]
    # Exact to the femtosecond, so that the sum and the latency it equals are rounded alike.
    table.append(["sum", *(fixed(round(math.fsum(column.values()), 6)) for column in columns)])
    return ["", f"# {nic}, {size} B: where the time goes (ns)", *align(table, range(1, len(rows) + 1))]


def _by_stage(row: Row) -> dict[str, float]:
    """Nanoseconds by stage; a stage that was passed twice counts with both."""
    total: dict[str, float] = {}
    for stage in row.get("stages", []):
        total[stage["stage"]] = total.get(stage["stage"], 0.0) + stage["ns"]
    return total


def merged_order(orders: Sequence[Sequence[str]]) -> list[str]:
    """One order of all names that keeps a name behind the one it follows where it first appears."""
    merged: list[str] = []
    for order in orders:
        at = 0
        for name in order:
            if name in merged:
                at = merged.index(name) + 1
            else:
                merged.insert(at, name)
                at += 1
    return merged


def _distinct(items: Iterable[_T]) -> list[_T]:
    return list(dict.fromkeys(items))


_OF_RUN = {"nic", "rank", "time_ns", "host_memory", "faults", "transport"}


def program_text(report: ProgramReport) -> str:
    """What programs reported, as a table: a row for each card, and for each rank that reported."""
    manifest, rows = report["manifest"], report["rows"]
    circumstances = f"seed {report['seed']}, {manifest['nodes']} nodes, topology {manifest['topology']}"
    if manifest["noise"]:
        circumstances += f", noise {manifest['noise']}"
    if manifest.get("faults"):
        circumstances += f", faults {faults_line(manifest['faults'])}"
    names = _distinct(name for row in rows for name in row if name not in _OF_RUN)
    columns = ["nic", *(["rank"] if any(row["rank"] is not None for row in rows) else []), *names, "time_ns"]
    numeric = [i for i, name in enumerate(columns) if not any(isinstance(row.get(name), str) for row in rows)]
    table = [[f"# {columns[0]}", *columns[1:]], *([_value(row.get(name)) for name in columns] for row in rows)]
    title = f"# nicety run {report['program']} v{report['version']}"
    refused = [f"# {line}" for line in refused_on_ranks(report["refused_commands"])]
    return "\n".join([title, f"# {circumstances}", "", *align(table, numeric), *refused]) + "\n"


_SMALL = 0.001


def _value(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.3g}" if 0 < abs(value) < _SMALL else fixed(value)
    return str(value)
