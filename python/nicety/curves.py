"""Pictures of curves over sizes or node counts: what line-rate checks and studies draw."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import matplotlib as mpl

from nicety.lines import COLOURS, Curve, draw
from nicety.plots import RC, empty_figure, size_axis, time_unit, value_axis

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from nicety.cardinality import ContextReport, ContextRow
    from nicety.line_rate import LineRateReport, LineRateRow

# How often a line that can be computed is, between the smallest and the largest size.
_STEPS = 64


def figure_of(curves: Sequence[Curve], *, title: str, x: str, y: str) -> Figure:
    """Curves over sizes."""
    figure, axes = empty_figure(7.2, 4.4)
    with mpl.rc_context(RC):
        value_axis(axes, [value for curve in curves for value in curve.points.values()], y)
        handles = draw(axes, curves)
        measured = [curve for curve in curves if curve.marked] or curves
        size_axis(axes, sorted({size for curve in measured for size in curve.points}))
        axes.set_xlabel(x)
        axes.set_title(title, loc="left", fontsize=10)
        axes.legend(
            handles=handles, frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(0, -0.14), handlelength=3.2
        )
    return figure


def line_rate_figure(report: LineRateReport) -> Figure:
    """A line-rate check: what packets take of handler processors, and what they may take."""
    scale, unit = time_unit(max(max(row["handler_ns"], row["handler_budget_ns"]) for row in report["rows"]))
    by_nic: dict[str, list[LineRateRow]] = {}
    for row in report["rows"]:
        by_nic.setdefault(row["nic"], []).append(row)
    curves = [
        Curve(
            f"{nic}: taken, x where it does not keep up",
            {row["packet_bytes"]: row["handler_ns"] / scale for row in rows},
            colour=number,
            crossed=frozenset(row["packet_bytes"] for row in rows if not row["sustains_line_rate"]),
        )
        for number, (nic, rows) in enumerate(by_nic.items())
    ]
    budgets = {nic: f"time between packets, times {rows[0]['hpus']} HPUs" for nic, rows in by_nic.items()}
    points = {nic: {size: budget / scale for size, budget in _budget(rows).items()} for nic, rows in by_nic.items()}
    if all(budget == points[report["rows"][0]["nic"]] for budget in points.values()):
        # The same line for all cards is drawn once, in black.
        nic = next(iter(points))
        curves.append(Curve(budgets[nic], points[nic], colour=len(COLOURS) - 1, style=1, marked=False))
    else:
        curves += [
            Curve(f"{nic}: {text}", points[nic], colour=number, style=1, marked=False)
            for number, (nic, text) in enumerate(budgets.items())
        ]
    title = "Line-rate check: handler time a packet, and the most it may be"
    return figure_of(curves, title=title, x="Packet size (B)", y=f"Time a packet ({unit})")


def context_figure(report: ContextReport) -> Figure:
    """What contexts do for a program: the cycles of its updates, and which of them something computed."""
    by_nic: dict[str, list[ContextRow]] = {}
    for row in report["rows"]:
        by_nic.setdefault(row["nic"], []).append(row)
    curves = []
    for number, (nic, rows) in enumerate(by_nic.items()):
        totals = {row["contexts"]: float(row["cycles_total"]) for row in rows}
        computing = {row["contexts"]: float(row["cycles_computing"]) for row in rows}
        curves.append(Curve(f"{nic}: all cycles", totals, colour=number))
        curves.append(Curve(f"{nic}: computing", computing, colour=number, style=1))
    title = f"{report['rows'][0]['updates']} updates in all on one microengine"
    return figure_of(curves, title=title, x="Contexts", y="Cycles")


def _budget(rows: Sequence[LineRateRow]) -> dict[int, float]:
    """What a packet may take of handler processors, at the sizes of rows and between them.

    That is as many times max(g, (bytes + header) x G) as there are processors: g where bytes do not matter.
    """
    points = {row["packet_bytes"]: row["handler_budget_ns"] for row in rows}
    # Times are rounded to picoseconds, which matters least in the longest.
    last, first = max(rows, key=_wire_bytes), min(rows, key=_wire_bytes)
    gap, least, longest = min(points.values()), first["packet_bytes"], last["packet_bytes"]
    if points[longest] == gap:
        return points
    header, slope = last["packet_wire_bytes"] - longest, points[longest] / last["packet_wire_bytes"]
    sizes = {round(least * (longest / least) ** (step / _STEPS)) for step in range(_STEPS)}
    sizes |= {round(gap / slope) - header}
    between = {size: max(gap, slope * (size + header)) for size in sizes if least < size < longest}
    return dict(sorted({**between, **points}.items()))


def _wire_bytes(row: LineRateRow) -> int:
    return row["packet_wire_bytes"]
