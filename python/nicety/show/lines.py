"""Curves over sizes or counts, drawn so that curves that coincide are all visible."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby, pairwise
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D

# The colours of Okabe and Ito, without their yellow, which is too faint for a line.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
_STYLES: tuple[Any, ...] = ("-", "--", ":", "-.", (0, (3, 1, 1, 1, 1, 1)))
_WIDTH = 1.3
_MARKER = 5
# Where curves coincide, the line and markers of each are larger by this amount than those of the curve drawn over it.
_WIDER = 1.8
_LARGER = 2.5
# Maximum distance, as a share of the axis, at which two points count as coinciding.
_CLOSE = 0.012


@dataclass(frozen=True)
class Curve:
    """A curve through points.

    Attributes:
        label: the curve's name in the legend.
        points: the key is a size or a count, the value the curve's value there.
        colour: a number from 0; curves with the same number have the same colour.
        style: a number from 0; curves with the same number have the same line style.
        marker: a number from 0; curves with the same number have the same marker. If it is None, colour and style
            decide.
        marked: whether the points have markers.
        crossed: the sizes at which points are crossed out.
        spread: the key is a size, the value minimum, median, 99th percentile and maximum, in the unit of the points.
    """

    label: str
    points: Mapping[int, float]
    colour: int = 0
    style: int = 0
    marker: int | None = None
    marked: bool = True
    crossed: frozenset[int] = field(default_factory=frozenset)
    spread: Mapping[int, tuple[float, float, float, float]] = field(default_factory=dict)

    @property
    def look(self) -> dict[str, Any]:
        """The curve's colour and markers, as arguments of matplotlib."""
        colour = COLOURS[self.colour % len(COLOURS)]
        marker = self.colour + 3 * self.style if self.marker is None else self.marker
        filled = marker // len(MARKERS) % 2 == 0
        return {
            "color": colour,
            "marker": MARKERS[marker % len(MARKERS)] if self.marked else "",
            "markersize": _MARKER,
            "markerfacecolor": colour if filled else "white",
        }


def draw(axes: Axes, curves: Sequence[Curve]) -> list[Line2D]:
    """Draw curves on axes. The scales must be set before. Return an entry of the legend for each curve."""
    from matplotlib.lines import Line2D

    together = _together([curve.points for curve in curves], logarithmic=axes.get_yscale() == "log")
    handles = []
    for number, (curve, groups) in enumerate(zip(curves, together, strict=True)):
        look, style = curve.look, _STYLES[curve.style % len(_STYLES)]
        _segments(axes, number, curve, groups, style)
        _markers(axes, number, curve, groups)
        if curve.spread:
            _whiskers(axes, curve, look["color"])
        if curve.crossed:
            crossed = {size: value for size, value in curve.points.items() if size in curve.crossed}
            axes.plot(list(crossed), list(crossed.values()), "x", color="black", markersize=9, clip_on=False, zorder=5)
        handles.append(Line2D([], [], label=curve.label, linestyle=style, linewidth=_WIDTH, **look))
    return handles


def _together(lines: Sequence[Mapping[int, float]], *, logarithmic: bool) -> list[list[tuple[int, ...]]]:
    """Return for each point of each curve the numbers of the curves that coincide there, including its own."""
    every = [value for points in lines for value in points.values()]
    most = max(every, default=0) or 1
    extent = math.log(most / min(every)) if logarithmic else most

    def meet(other: Mapping[int, float], size: int, value: float) -> bool:
        if size not in other:
            return False
        apart = abs(math.log(other[size] / value)) if logarithmic else abs(other[size] - value)
        return apart <= _CLOSE * extent

    return [
        [tuple(number for number, other in enumerate(lines) if meet(other, *point)) for point in points.items()]
        for points in lines
    ]


def _segments(axes: Axes, number: int, curve: Curve, together: Sequence[tuple[int, ...]], style: Any) -> None:
    """Draw a curve's lines. A line is wider for each coinciding curve that is drawn over it."""
    from matplotlib.collections import LineCollection

    ends = list(pairwise(zip(curve.points.items(), together, strict=True)))
    shared = [tuple(sorted(set(begin) & set(end))) for (_, begin), (_, end) in ends]
    paths, widths = [], []
    for others, parts in groupby(zip(shared, ends, strict=True), key=lambda part: part[0]):
        run = [(begin[0], end[0]) for _, (begin, end) in parts]
        paths.append([run[0][0], *(end for _, end in run)])
        widths.append(_WIDTH + _WIDER * _on_top(number, others))
    colour = COLOURS[curve.colour % len(COLOURS)]
    lines = LineCollection(paths, colors=[colour], linestyles=[style], linewidths=widths, zorder=3)
    axes.add_collection(lines, autolim=False)


def _markers(axes: Axes, number: int, curve: Curve, together: Sequence[tuple[int, ...]]) -> None:
    """Draw a curve's markers. A marker is larger for each coinciding curve that is drawn over it."""
    points: dict[int, dict[int, float]] = {0: dict(curve.points)}
    for (place, value), others in zip(curve.points.items(), together, strict=True):
        if above := _on_top(number, others):
            points.setdefault(above, {})[place] = value
    for above, own in points.items():
        axes.plot(
            list(own),
            list(own.values()),
            label="_below" if above else curve.label,
            linestyle="none",
            clip_on=False,
            zorder=4,
            **{**curve.look, "markersize": _MARKER + _LARGER * above},
        )


def _on_top(number: int, together: Sequence[int]) -> int:
    """Return the number of coinciding curves that are drawn over the curve `number`."""
    return len(together) - 1 - together.index(number)


def _whiskers(axes: Axes, curve: Curve, colour: str) -> None:
    """Draw the spread of a curve's points: a thin line from minimum to maximum, a thick one from median to p99."""
    from matplotlib.collections import LineCollection

    spread = curve.spread.items()
    thin = [[(size, least), (size, most)] for size, (least, _, _, most) in spread]
    thick = [[(size, median), (size, high)] for size, (_, median, high, _) in spread]
    for lines, width, alpha in ((thin, 0.8, 1.0), (thick, 5.0, 0.35)):
        axes.add_collection(
            LineCollection(lines, colors=[colour], linewidths=width, alpha=alpha, zorder=2), autolim=False
        )
