"""Pictures of curves over sizes or counts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from nicety.show.axes import empty_figure, house_style, set_titles, size_axis, value_axis
from nicety.show.lines import Curve, draw

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def figure_of(curves: Sequence[Curve], *, title: str, x: str, y: str, notes: Sequence[str] = ()) -> Figure:
    """Draw curves over sizes, below a title and notes."""
    figure, axes = empty_figure(7.2, 4.4)
    with house_style():
        value_axis(axes, [value for curve in curves for value in curve.points.values()], y)
        handles = draw(axes, curves)
        measured = [curve for curve in curves if curve.marked] or curves
        size_axis(axes, sorted({size for curve in measured for size in curve.points}))
        axes.set_xlabel(x)
        set_titles(axes, title, notes)
        axes.legend(
            handles=handles, frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(0, -0.14), handlelength=3.2
        )
    return figure


def spread_of(row: Mapping[str, Any], scale: float) -> tuple[float, float, float, float]:
    """Return minimum, median, 99th percentile and maximum of a row's latencies, in units of `scale` nanoseconds."""
    return row["min_ns"] / scale, row["p50_ns"] / scale, row["p99_ns"] / scale, row["max_ns"] / scale


def mode_lines(
    axes: Axes,
    rows: Sequence[Mapping[str, Any]],
    axis: str,
    value: Callable[[Any], float],
    *,
    spread: Callable[[Any], tuple[float, float, float, float]] | None = None,
    legend: bool = True,
) -> None:
    """Draw a line for each card and mode. Modes differ by colour; if all cards have the same mode, cards do."""
    nics = list(dict.fromkeys(row["nic"] for row in rows))
    modes = list(dict.fromkeys(row["mode"] for row in rows))
    curves: list[Curve] = []
    for nic, mode in dict.fromkeys((row["nic"], row["mode"]) for row in rows):
        own = [row for row in rows if (row["nic"], row["mode"]) == (nic, mode)]
        curves.append(
            Curve(
                f"{nic}, {mode}",
                {row[axis]: value(row) for row in own},
                colour=modes.index(mode) if len(modes) > 1 else nics.index(nic),
                style=nics.index(nic),
                marker=len(curves),
                spread={row[axis]: spread(row) for row in own} if spread else {},
            )
        )
    handles = draw(axes, curves)
    if legend:
        # The legend is beside the axes and below their top, since a title may extend above that place.
        axes.legend(
            handles=handles,
            loc="upper left",
            bbox_to_anchor=(1.02, 1.0),
            borderaxespad=0,
            frameon=False,
            fontsize=8,
            handlelength=3.2,
        )
