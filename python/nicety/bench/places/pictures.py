"""The picture of a line-rate check: handler time and budget, utilisation, packet dispositions and sensitivity."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from nicety._generated.types import LineRateReport, LineRateRow
from nicety.bench.places.xdp_cards import (
    dispositions_of_place,
    draw_all_places,
    left_out_note,
    other_places,
    places_figure,
)
from nicety.bench.verdicts import (
    draw_dispositions,
    draw_loads,
    draw_sensitivity,
    loads_height,
    offered_text,
    program_files,
    sensitive,
)
from nicety.show.circumstances import circumstances

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from nicety.show.lines import Curve

# Number of computed points of a budget's curve between the smallest and the largest packet.
_STEPS = 64


def line_rate_figure(report: LineRateReport) -> Figure:
    """Draw a line-rate check: handler time and budget, utilisation, packet dispositions and sensitivity."""
    from nicety.show.axes import house_style, new_figure, set_titles, size_axis, time_unit, value_axis
    from nicety.show.lines import draw

    rows = report["rows"]
    if not rows:
        return places_figure(report)
    scale, unit = time_unit(max(max(row["handler_ns"], row["handler_budget_ns"]) for row in rows))
    curves = _curves(rows, scale)
    below = _panels_below(report)
    heights = [3.4, loads_height(rows), *(height for height, _ in below)]
    with house_style():
        figure = new_figure(9.0, 1.0 + sum(heights))
        # Each panel has its own margins, so that long labels of one panel leave the others their width.
        panels: Any = figure.subfigures(len(heights), 1, height_ratios=heights)
        first, second, *others = [panel.add_subplot() for panel in panels]
        value_axis(first, [value for curve in curves for value in curve.points.values()], f"Time a packet ({unit})")
        handles = draw(first, curves)
        size_axis(first, sorted({row["packet_bytes"] for row in rows}))
        first.set_xlabel("Packet size (B)")
        title = f"{program_files(report['manifest'])}: handler time per packet, and its budget"
        set_titles(first, title, [offered_text(rows), *circumstances(report["manifest"]), left_out_note(report)])
        first.legend(handles=handles, frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(1.02, 1.0))
        draw_loads(second, rows)
        for axes, (_, draw_what) in zip(others, below, strict=True):
            draw_what(axes)
        for axes in figure.axes:
            axes.set_axisbelow(True)
    return figure


def _panels_below(report: LineRateReport) -> list[tuple[float, Callable[[Axes], None]]]:
    """Return the heights in inches of the panels that only some reports have, and the functions that draw them."""
    rows, others = report["rows"], other_places(report)
    below: list[tuple[float, Callable[[Axes], None]]] = []
    if traffic := [row for row in rows if "traffic" in row]:
        shares = {f"{place['nic']}, {place['place']}": dispositions_of_place(place) for place in others}
        bars = sum(1 + len(row["traffic"].get("ports", [])) for row in traffic) + len(shares)
        below.append((0.8 + 0.8 * bars, partial(draw_dispositions, rows=rows, others=shares)))
    if others:
        below.append((0.8 + 0.35 * len(report["places"]), partial(draw_all_places, places=report["places"])))
    if varied := len(sensitive(rows)):
        below.append((0.8 + 0.24 * varied, partial(draw_sensitivity, rows=rows)))
    return below


def _curves(rows: Sequence[LineRateRow], scale: float) -> list[Curve]:
    """Return curves of the handler time and of its budget over the packet size, in units of `scale` nanoseconds."""
    from nicety.show.lines import COLOURS, Curve

    by_nic: dict[str, list[LineRateRow]] = {}
    for row in rows:
        by_nic.setdefault(row["nic"], []).append(row)
    curves = [
        Curve(
            f"{nic}: handler time (x: does not keep up)",
            {row["packet_bytes"]: row["handler_ns"] / scale for row in own},
            colour=number,
            crossed=frozenset(row["packet_bytes"] for row in own if not row["sustains_line_rate"]),
        )
        for number, (nic, own) in enumerate(by_nic.items())
    ]
    budgets = {nic: f"time between packets, times {own[0]['hpus']} HPUs" for nic, own in by_nic.items()}
    points = {nic: {size: budget / scale for size, budget in _budget(own).items()} for nic, own in by_nic.items()}
    if all(budget == points[rows[0]["nic"]] for budget in points.values()):
        # A budget that is the same for all cards is drawn once, in black.
        nic = next(iter(points))
        curves.append(Curve(budgets[nic], points[nic], colour=len(COLOURS) - 1, style=1, marked=len(points[nic]) == 1))
    else:
        curves += [
            Curve(f"{nic}: {text}", points[nic], colour=number, style=1, marked=len(points[nic]) == 1)
            for number, (nic, text) in enumerate(budgets.items())
        ]
    return curves


def _budget(rows: Sequence[LineRateRow]) -> dict[int, float]:
    """Return the budget of handler time per packet in nanoseconds by packet size, also for sizes between the rows.

    It is the number of processors times max(g, (bytes + header) x G). For small packets, g is the larger.
    """
    points = {row["packet_bytes"]: row["handler_budget_ns"] for row in rows}
    # Budgets are rounded to picoseconds. The largest packet gives the slope, since its relative error is the smallest.
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
