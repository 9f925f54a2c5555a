"""Pictures of ranks: the parts of each rank's time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from nicety.show.axes import house_style, time_unit
from nicety.show.bars import hatch
from nicety.show.columns import fixed
from nicety.show.lines import COLOURS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PARTS = ("computing", "both", "communicating", "waiting")
"""The activities of a rank, in the order of the pictures' parts."""


@dataclass(frozen=True)
class RankTimes:
    """The time of ranks until the last of them is done: nanoseconds of each rank, by `PARTS`."""

    parts: Mapping[str, Sequence[float]]
    end_ns: float


def ranks_figure(runs: Mapping[str, RankTimes], *, title: str) -> Figure:
    """The time of each rank, in parts: axes per run, all with one time scale.

    Args:
        runs: by name.
        title: above the picture.
    """
    from matplotlib.figure import Figure

    last_ns = max(times.end_ns for times in runs.values())
    scale, unit = time_unit(last_ns)
    with house_style():
        figure = Figure(figsize=(9.0, 0.9 + 2.2 * len(runs)), layout="constrained")
        panels = figure.subplots(len(runs), 1, squeeze=False, sharex=True, sharey=True)[:, 0]
        for axes, (name, times) in zip(panels, runs.items(), strict=True):
            _draw(axes, times, scale)
            axes.set_ylabel(f"Time ({unit})")
            axes.set_title(f"{name}: {fixed(times.end_ns / scale)} {unit}", loc="left", fontsize=9)
        panels[0].set_ylim(0, last_ns / scale or 1)
        panels[-1].set_xlabel("Rank")
        handles, labels = panels[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside right upper", frameon=False, fontsize=8)
        figure.suptitle(title, fontsize=10)
    return figure


def _draw(axes: Axes, times: RankTimes, scale: float) -> None:
    from matplotlib.ticker import MaxNLocator

    ranks = len(next(iter(times.parts.values())))
    edges = [rank - 0.5 for rank in range(ranks + 1)]
    below = [0.0] * ranks
    for number, part in enumerate(PARTS):
        above = [low + value / scale for low, value in zip(below, times.parts[part], strict=True)]
        colour = "#e8e8e8" if part == "waiting" else COLOURS[number % len(COLOURS)]
        axes.stairs(
            above,
            edges,
            baseline=below,
            fill=True,
            label=part,
            facecolor=colour,
            edgecolor="white",
            hatch=hatch(number),
        )
        below = above
    axes.set_xlim(-0.5, ranks - 0.5)
    axes.xaxis.set_major_locator(MaxNLocator(9, integer=True))
    axes.yaxis.set_major_locator(MaxNLocator(5))
