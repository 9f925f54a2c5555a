"""Pictures of bars side by side or stacked: what studies draw where there is nothing to draw a curve over."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import matplotlib as mpl
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from nicety.lines import COLOURS
from nicety.plots import RC, empty_figure, time_unit
from nicety.tables import merged_order

# Bars are told apart by their hatch, too, as in print.
_HATCHES = ("", "//", "xx", "--", r"\\", "||", "++")


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
    figure, axes = empty_figure(7.6, 1.5 + len(groups) * (0.16 + 0.17 * max(count, 2)))
    with mpl.rc_context(RC):
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
                color=COLOURS[number % len(COLOURS)],
                edgecolor="white",
                linewidth=0.5,
                hatch=hatch(number),
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


def stacked_bars(panels: Mapping[str, Mapping[str, Mapping[str, float]]], *, title: str) -> Figure:
    """Bars of parts, in nanoseconds: axes for each panel, on them a bar for each group.

    Args:
        panels: by title, the parts of each group's bar by name.
        title: above the picture.
    """
    # A bar may have parts that others lack: each goes where it is in its own.
    parts = merged_order([list(bar) for groups in panels.values() for bar in groups.values()])
    heights = [0.7 + 0.3 * len(groups) for groups in panels.values()]
    with mpl.rc_context(RC):
        figure = Figure(figsize=(9.0, 0.9 + sum(heights)), layout="constrained")
        grid = figure.add_gridspec(len(panels), height_ratios=heights)
    for at, (name, groups) in enumerate(panels.items()):
        with mpl.rc_context(RC):
            axes = figure.add_subplot(grid[at])
            axes.set_axisbelow(True)
            most = max(sum(bar.values()) for bar in groups.values())
            scale, unit = time_unit(most)
            ends = [0.0] * len(groups)
            for number, part in enumerate(parts):
                widths = [bar.get(part, 0.0) / scale for bar in groups.values()]
                axes.barh(
                    range(len(groups)),
                    widths,
                    left=ends,
                    height=0.7,
                    label=part,
                    color=COLOURS[number % len(COLOURS)],
                    edgecolor="white",
                    linewidth=0.5,
                    hatch=hatch(number),
                )
                ends = [end + width for end, width in zip(ends, widths, strict=True)]
            for place, end in enumerate(ends):
                axes.annotate(
                    f"{_shown(end)} {unit}", (end, place), (3, 0), textcoords="offset points", va="center", fontsize=8
                )
            axes.set_xlim(0, most / scale * 1.14 or 1)
            axes.set_yticks(range(len(groups)), list(groups))
            axes.invert_yaxis()
            axes.xaxis.set_major_locator(MaxNLocator(7))
            axes.xaxis.set_major_formatter(FuncFormatter(lambda shown, _: _shown(shown)))
            axes.set_title(f"{name} ({unit})", loc="left", fontsize=9)
            axes.grid(visible=True, axis="x", color="#dddddd", linewidth=0.6)
    with mpl.rc_context(RC):
        handles, labels = figure.axes[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside right upper", frameon=False, fontsize=8)
        figure.suptitle(title, fontsize=10)
    return figure


def hatch(number: int) -> str:
    """The hatch of a series: another one where colours come a second time."""
    return _HATCHES[(number + number // len(COLOURS)) % len(_HATCHES)]


def _shown(number: float) -> str:
    return f"{number:,.4g}".replace(",", " ")
