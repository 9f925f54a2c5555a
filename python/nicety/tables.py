"""Reports as text: benchmarks in the style of the OSU micro-benchmarks, and plain aligned columns."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from typing import TypeVar

from nicety.benchmarks import Report, Row

_TITLES = {"latency": "Latency Test", "bandwidth": "Bandwidth Test", "message-rate": "Message Rate Test"}
_UNITS = {"latency": "Latency (ns)", "bandwidth": "Bandwidth (MB/s)", "message-rate": "Messages/s"}
_MEANINGS = {
    "latency": "half a round trip of send and receive, host to host",
    "bandwidth": "payload of a window of messages one way, 10^6 bytes a second",
    "message-rate": "a window of messages one way, from the first post to the last completion",
}
_GAP = "  "

_T = TypeVar("_T", bound=Hashable)


def align(rows: Sequence[Sequence[str]], right: Iterable[int] = ()) -> list[str]:
    """Lines with the cells of each column under one another; the columns named in `right` flush right."""
    flush = set(right)
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))] if rows else []
    lines = []
    for row in rows:
        cells = [
            cell.rjust(width) if i in flush else cell.ljust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append(_GAP.join(cells).rstrip())
    return lines


def benchmark_text(report: Report, *, breakdown: bool = False) -> str:
    """A benchmark's report as text: a table for each card, and with `breakdown` one of stages for each size.

    Where every card ran one mode and the same one, the cards share a table.
    """
    rows = report["rows"]
    lines = [
        f"# nicety {_TITLES[report['benchmark']]} v{report['version']}",
        f"# {_MEANINGS[report['benchmark']]}",
        f"# seed {report['seed']}{_iterations(rows)}",
    ]
    for title, (head, *body) in figure_tables(report):
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


def figure_tables(report: Report) -> list[tuple[str, list[list[str]]]]:
    """A report's figures as tables, each with its title: a row for each size, the first one with the columns' names."""
    rows = report["rows"]
    modes = _distinct(row["mode"] for row in rows)
    nics = _distinct(row["nic"] for row in rows)
    if len(modes) == 1 and len(nics) > 1:
        return [_figures(report, f"mode {modes[0]}", nics, {(row["nic"], row["size_bytes"]): row for row in rows})]
    tables = []
    for nic in nics:
        own = {(row["mode"], row["size_bytes"]): row for row in rows if row["nic"] == nic}
        tables.append(_figures(report, nic, _distinct(mode for mode, _size in own), own))
    return tables


def _figures(
    report: Report, title: str, columns: list[str], cells: dict[tuple[str, int], Row]
) -> tuple[str, list[list[str]]]:
    table = [["Size", *columns]]
    for size in _distinct(size for _column, size in cells):
        found = (cells.get((column, size)) for column in columns)
        table.append([str(size), *("-" if row is None else _figure(report, row) for row in found)])
    return f"{title}: {_UNITS[report['benchmark']]}", table


def _figure(report: Report, row: Row) -> str:
    mark = "" if row["verified"] else "*"
    if report["benchmark"] == "latency":
        return f"{row['latency_ns']:.3f}{mark}"
    if report["benchmark"] == "bandwidth":
        return f"{row['bandwidth_bytes_per_s'] / 1e6:.2f}{mark}"
    return f"{row['messages_per_s']:.2f}{mark}"


def _stages(nic: str, size: int, rows: Sequence[Row]) -> list[str]:
    rows = [row for row in rows if row.get("stages")]
    if not rows:
        return []
    columns = [_by_stage(row) for row in rows]
    table = [["# Stage", *(row["mode"] for row in rows)]]
    table += [
        [name, *(f"{column[name]:.3f}" if name in column else "-" for column in columns)]
        for name in _merged([list(column) for column in columns])
    ]
    # Exact to the femtosecond, so that the sum and the latency it equals are rounded alike.
    table.append(["sum", *(f"{round(math.fsum(column.values()), 6):.3f}" for column in columns)])
    return ["", f"# {nic}, {size} B: where the time goes (ns)", *align(table, range(1, len(rows) + 1))]


def _by_stage(row: Row) -> dict[str, float]:
    """Nanoseconds by stage; a stage that was passed twice counts with both."""
    total: dict[str, float] = {}
    for stage in row.get("stages", []):
        total[stage["stage"]] = total.get(stage["stage"], 0.0) + stage["ns"]
    return total


def _merged(orders: Sequence[Sequence[str]]) -> list[str]:
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
