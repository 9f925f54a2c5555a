"""Pictures of bars side by side or stacked: what studies draw where there is nothing to draw a curve over."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import matplotlib as mpl
from matplotlib.ticker import FuncFormatter, MaxNLocator

from nicety.plots import _COLOURS, _RC, _figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_HATCHES = ("", "////", "....", "xxxx", r"\\\\", "oo", "++")
# What is told apart by its hatch, too, as in print.


def bars_figure(
    groups: Sequence[str],
    series: Mapping[str, Sequence[float | None]],
    *,
    title: str,
    value: str,
    stacked: bool = False,
) -> Figure:
    """Bars along the horizontal axis, a group below the other.

    Args:
        groups: what each group of bars is about; the first is on top.
        series: values by what the legend calls them, one for each group; None where there is none.
        title: above the picture.
        value: the axis, with its unit.
        stacked: whether the values of a group are parts of a whole, and make one bar.
    """
    count = 1 if stacked else len(series)
    figure, axes = _figure(7.6, 1.5 + len(groups) * (0.16 + 0.17 * max(count, 2)))
    with mpl.rc_context(_RC):
        height = 0.8 / count
        ends = [0.0] * len(groups)
        for number, (label, values) in enumerate(series.items()):
            places = [at + (0 if stacked else (number - (count - 1) / 2) * height) for at in range(len(groups))]
            axes.barh(
                places,
                [0.0 if value is None else value for value in values],
                height=height * (1 if stacked else 0.9),
                left=list(ends) if stacked else None,
                label=label,
                color=_COLOURS[number % len(_COLOURS)],
                edgecolor="white",
                linewidth=0.5,
                hatch=_HATCHES[number % len(_HATCHES)],
            )
            for at, (place, each) in enumerate(zip(places, values, strict=True)):
                if stacked:
                    ends[at] += each or 0.0
                elif each is not None:
                    axes.annotate(
                        _shown(each), (each, place), (3, 0), textcoords="offset points", va="center", fontsize=7
                    )
        if stacked:
            for at, end in enumerate(ends):
                axes.annotate(_shown(end), (end, at), (3, 0), textcoords="offset points", va="center", fontsize=8)
        most = max([*ends, *(each or 0.0 for values in series.values() for each in values)])
        axes.set_xlim(0, most * 1.12 or 1)
        axes.set_yticks(range(len(groups)), list(groups))
        axes.invert_yaxis()
        axes.xaxis.set_major_locator(MaxNLocator(7))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda shown, _: _shown(shown)))
        axes.set_xlabel(value)
        axes.set_title(title, loc="left", fontsize=10)
        axes.grid(visible=True, axis="x", color="#dddddd", linewidth=0.6)
        axes.legend(loc="upper left", bbox_to_anchor=(1.02, 1.0), borderaxespad=0, frameon=False, fontsize=8)
    return figure


def _shown(number: float) -> str:
    return f"{number:,.4g}".replace(",", " ")
