"""The benchmarks of programs on a grid of ranks: halo exchange and all-reduce."""

from __future__ import annotations

import json
from html import escape
from typing import TYPE_CHECKING, Unpack, cast

from nicety import _native
from nicety._generated.types import GridBenchmark, GridOptions, GridReport, GridRow
from nicety.bench.measured import Progress, reported
from nicety.shared.options import request_text
from nicety.shared.typed import checked
from nicety.show.circumstances import circumstances, dropped
from nicety.show.columns import align, fixed
from nicety.show.html import table_html

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@checked
def bench_grid(
    benchmark: GridBenchmark, *, progress: Progress | None = None, **given: Unpack[GridOptions]
) -> GridReport:
    """Measure a program on a grid, in which each rank communicates with its neighbours, and check its results.

    Args:
        benchmark: `halo` or `allreduce`.
        progress: called with the number of rows done, and the total.
        given: the arguments of `GridOptions`.

    Raises:
        InputError: a grid that does not fit the topology or the number of nodes, or a size that is no multiple of 8.
        RunError: the run failed, for example because a value was wrong.
    """
    text = request_text(GridOptions, given, benchmark=benchmark)
    return cast(GridReport, reported(json.loads(_native.grid_bench(text, progress)), grid_html, grid_figure))


def grid_html(report: GridReport) -> str:
    """Return a report for a notebook: a table per card."""
    about = f"{report['benchmark']}, nicety {report['version']}, seed {report['seed']}"
    return f"<p>{escape(about)}</p>" + "".join(table_html(title, rows) for title, rows in grid_tables(report))


_TITLES = {"halo": "Halo Exchange", "allreduce": "All-Reduce"}
_MEANINGS = {
    "halo": "an iteration: every rank exchanges faces with its neighbours; all values checked",
    "allreduce": "every rank gets the sum of all vectors, by rings along each dimension; all values checked",
}


def grid_text(report: GridReport) -> str:
    """Return a report as text: a table per card."""
    rows, manifest = report["rows"], report["manifest"]
    lines = [
        f"# nicety {_TITLES[report['benchmark']]} Test v{report['version']}",
        f"# {_MEANINGS[report['benchmark']]}",
        f"# seed {report['seed']}, {rows[0]['iterations']} iteration{'s' if rows[0]['iterations'] != 1 else ''} a size",
        f"# grid {manifest['grid']} on topology {manifest['topology']}: {rows[0]['nodes']} nodes",
    ]
    lines += [f"# {note}" for note in circumstances({**manifest, "topology": "pair"})]
    for title, (head, *body) in grid_tables(report):
        lines += ["", f"# {title}", *align([[f"# {head[0]}", *head[1:]], *body], range(1, len(head)))]
    for row in rows:
        lines += dropped(f"{row['nic']}, {row['size_bytes']} B", row)
    return "\n".join(lines) + "\n"


_HEADS = {
    "halo": ["Size", "Time (ns)", "Faces", "Sent (B)", "Sent (MB/s)", "Hops"],
    "allreduce": ["Size", "Time (ns)", "Bound (ns)", "Sent (B)", "Vector (MB/s)", "Hops"],
}


def grid_tables(report: GridReport) -> list[tuple[str, list[list[str]]]]:
    """Return a title and a table per card. Row 0 of a table names the columns."""
    head = _HEADS[report["benchmark"]]
    nics = dict.fromkeys(row["nic"] for row in report["rows"])
    return [(nic, [head, *(_cells(row) for row in report["rows"] if row["nic"] == nic)]) for nic in nics]


def _cells(row: GridRow) -> list[str]:
    if "lower_bound_ns" in row:
        middle, rate = fixed(row["lower_bound_ns"]), row["algorithm_bytes_per_s"]
    else:
        middle, rate = str(row["faces"]), row["sent_bytes_per_s"]
    return [
        *(str(row["size_bytes"]), fixed(row["time_ns"]), middle, str(row["sent_bytes"])),
        *(fixed(rate / 1e6, 1), fixed(row["hops_mean"], 2)),
    ]


def grid_figure(report: GridReport) -> Figure:
    """Draw the time of an iteration over the size; for an all-reduce also the lower bound of that time."""
    from nicety.show.axes import time_unit
    from nicety.show.curves import figure_of
    from nicety.show.lines import Curve

    rows = report["rows"]
    scale, unit = time_unit(max(row["time_ns"] for row in rows))
    curves = []
    for number, nic in enumerate(dict.fromkeys(row["nic"] for row in rows)):
        own = [row for row in rows if row["nic"] == nic]
        times = {row["size_bytes"]: row["time_ns"] / scale for row in own}
        curves.append(Curve(nic, times, colour=number, marker=number))
        bounds = {row["size_bytes"]: row["lower_bound_ns"] / scale for row in own if "lower_bound_ns" in row}
        if bounds:
            curves.append(Curve(f"{nic}: least time on its link", bounds, colour=number, style=1))
    around = [f"grid {report['manifest']['grid']}", *circumstances(report["manifest"])]
    what = "Face" if report["benchmark"] == "halo" else "Vector"
    title = f"{_TITLES[report['benchmark']]}: time of an iteration"
    return figure_of(curves, title=title, notes=around, x=f"{what} (B)", y=f"Time of an iteration ({unit})")
