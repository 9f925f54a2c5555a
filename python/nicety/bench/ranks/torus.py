"""The benchmark of a torus: latency and accepted load of random traffic over the offered load."""

from __future__ import annotations

import json
from html import escape
from typing import TYPE_CHECKING, Unpack, cast

from nicety import _native
from nicety._generated.types import Saturation, TorusOptions, TorusReport, TorusRow
from nicety.bench.measured import Progress, reported
from nicety.shared.options import request_text
from nicety.shared.typed import checked
from nicety.show.circumstances import circumstances
from nicety.show.columns import align, fixed
from nicety.show.html import table_html

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


@checked
def bench_torus(*, progress: Progress | None = None, **given: Unpack[TorusOptions]) -> TorusReport:
    """Measure random traffic on a torus of routers: latency and accepted load, over the offered load.

    Args:
        progress: called with the work done, and the total, both in hundredths of a row.
        given: the arguments of `TorusOptions`.

    Raises:
        InputError: a topology that is no torus, a pattern that does not fit it, an invalid load, or too many packets.
        RunError: the run failed: a deadlock, or a lost packet.
    """
    report = json.loads(_native.torus_bench(request_text(TorusOptions, given), progress))
    return cast(TorusReport, reported(report, torus_html, torus_figure))


def torus_html(report: TorusReport) -> str:
    """Return a report for a notebook: a table per card and pattern."""
    about = f"torus, nicety {report['version']}, {report['manifest']['topology']}, seed {report['seed']}"
    return f"<p>{escape(about)}</p>" + "".join(table_html(title, rows) for title, rows in torus_tables(report))


def torus_text(report: TorusReport) -> str:
    """Return a report as text: a table per card and pattern, and the load at which the torus saturates."""
    manifest = report["manifest"]
    times = f"measured for {manifest['duration_ns'] / 1e3:g} us after a warm-up of {manifest['warmup_ns'] / 1e3:g} us"
    lines = [
        f"# nicety Torus Test v{report['version']}",
        f"# random packets of {manifest['packet_bytes']} B on {manifest['topology']}, {manifest['nodes']} nodes",
        f"# seed {report['seed']}, {times}; loads are fractions of a link's bandwidth",
    ]
    lines += [f"# {note}" for note in _around(report)]
    for (title, (head, *body)), one in zip(torus_tables(report), report["saturation"], strict=True):
        lines += ["", f"# {title}", *align([[f"# {head[0]}", *head[1:]], *body], range(1, len(head)))]
        rows = _rows_of(report, one)
        lines += [f"# {_saturation(one)}", *_short(report, one, rows), *_undelivered(rows)]
    return "\n".join(lines) + "\n"


def _around(report: TorusReport) -> list[str]:
    """Return lines about unusual circumstances, except for the topology: the head of the text has it."""
    return circumstances({**report["manifest"], "topology": "pair"})


def torus_tables(report: TorusReport) -> list[tuple[str, list[list[str]]]]:
    """Return a title and a table per card and pattern. Row 0 of a table names the columns."""
    head = ["Offered", "Accepted", "GB/s", "Latency (ns)", "p50", "p99", "max", "Hops"]
    return [
        (f"{one['nic']}, {one['pattern']}", [head, *(_cells(row) for row in _rows_of(report, one))])
        for one in report["saturation"]
    ]


def _rows_of(report: TorusReport, one: Saturation) -> list[TorusRow]:
    return [row for row in report["rows"] if (row["nic"], row["pattern"]) == (one["nic"], one["pattern"])]


def _cells(row: TorusRow) -> list[str]:
    times = [row["latency_ns"], row["p50_ns"], row["p99_ns"], row["max_ns"]]
    return [
        *(fixed(row["offered_fraction"]), fixed(row["accepted_fraction"]), fixed(row["accepted_bytes_per_s"] / 1e9, 1)),
        *(fixed(time, 1) for time in times),
        fixed(row["hops_mean"], 2),
    ]


def _saturation(one: Saturation) -> str:
    if "saturation_fraction" in one:
        loads = f"{one['channel_load_max']:.3f} on the most loaded link, {one['channel_load_mean']:.3f} on average"
        arithmetic = f"saturates at {one['saturation_fraction']:.3f} by arithmetic ({loads})"
    else:
        arithmetic = "too many routes to say where it saturates by arithmetic"
    if "buffer_limit_fraction" in one:
        arithmetic += f", and routers' buffers suffice up to {one['buffer_limit_fraction']:.3f}"
    if "measured_saturation_fraction" in one:
        return f"{arithmetic}; measured {one['measured_saturation_fraction']:.3f}"
    return f"{arithmetic}; not at these loads"


_FEW = 100
"""Minimum number of packets; with fewer a warning is printed, as their 99th percentile is their maximum."""


def _short(report: TorusReport, one: Saturation, rows: list[TorusRow]) -> list[str]:
    """Return warnings: the warm-up is shorter than a packet's latency, or few packets were measured."""
    alone, warmup = one["zero_load_latency_ns"], report["manifest"]["warmup_ns"]
    few = [row for row in rows if row["packets"] < _FEW]
    lines = []
    if warmup < alone:
        lines.append(
            f"# one packet takes {fixed(alone, 1)} ns over the longest route, longer than the warm-up, so the "
            "accepted load is too low; write a longer --warmup"
        )
    if few:
        loads = ", ".join(f"{row['packets']} at load {row['offered_fraction']:g}" for row in few)
        lines.append(f"# few packets were measured: {loads}; write a longer --duration")
    return lines


def _undelivered(rows: list[TorusRow]) -> list[str]:
    left = [row for row in rows if row["undelivered_packets"]]
    return [
        f"# at load {row['offered_fraction']:g} {row['undelivered_packets']} packets were given up in their queues"
        for row in left
    ]


_WHOLE = 1_000_000
"""Millionths in the full load: a curve's x coordinates are loads as whole numbers of millionths."""


def torus_figure(report: TorusReport) -> Figure:
    """Draw latency and accepted load over the offered load, with a colour per card and pattern.

    Dashed lines are the 99th percentile of latencies. A dotted line marks the load at which a link saturates.
    """
    from nicety.show.axes import house_style, new_figure, set_figure_titles, time_unit, value_axis
    from nicety.show.lines import COLOURS, Curve, draw

    rows = report["rows"]
    scale, unit = time_unit(max(row["p99_ns"] for row in rows))
    latencies, accepted = [], []
    for number, one in enumerate(report["saturation"]):
        own = {round(row["offered_fraction"] * _WHOLE): row for row in _rows_of(report, one)}
        label = f"{one['nic']}, {one['pattern']}"
        means = {load: row["latency_ns"] / scale for load, row in own.items()}
        tails = {load: row["p99_ns"] / scale for load, row in own.items()}
        latencies.append(Curve(label, means, colour=number, marker=number))
        # With a single load there is no dashed line, so the legend must not name it.
        if len(own) > 1:
            latencies.append(Curve(f"{label}: p99", tails, colour=number, style=1, marked=False))
        shares = {load: row["accepted_fraction"] for load, row in own.items()}
        accepted.append(Curve(label, shares, colour=number, marker=number))
    with house_style():
        figure = new_figure(9.6, 3.8 + 0.1 * len(latencies))
        left, right = figure.subplots(1, 2)
        value_axis(left, [value for curve in latencies for value in curve.points.values()], f"Latency ({unit})")
        handles = draw(left, latencies)
        value_axis(right, [], "Accepted load", share=True)
        draw(right, accepted)
        for number, one in enumerate(report["saturation"]):
            if "saturation_fraction" in one:
                right.axhline(one["saturation_fraction"], color=COLOURS[number % len(COLOURS)], linestyle=":", zorder=1)
        for axes in (left, right):
            _load_axis(axes)
        what = f"Random packets of {report['manifest']['packet_bytes']} B on {report['manifest']['topology']}"
        set_figure_titles(figure, what, _around(report))
        right.set_title("dotted: saturation, by the loads of links", loc="left", fontsize=8)
        figure.legend(handles=handles, frameon=False, fontsize=8, loc="outside lower left", ncols=2)
    return figure


def _load_axis(axes: Axes) -> None:
    from matplotlib.ticker import FixedLocator, FuncFormatter

    axes.set_axisbelow(True)
    axes.set_xlim(0, _WHOLE)
    axes.xaxis.set_major_locator(FixedLocator([_WHOLE / 5 * fifth for fifth in range(6)]))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda load, _: f"{load / _WHOLE:g}"))
    axes.set_xlabel("Offered load")
