"""Pictures of each rank's time, divided into activities."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from nicety.show.axes import ROUND, house_style, new_figure, time_unit
from nicety.show.bars import hatch
from nicety.show.columns import fixed
from nicety.show.lines import COLOURS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PARTS = ("computing", "both", "communicating", "waiting")
"""The activities of a rank, in their order in pictures. `both` is computing and communicating at the same time."""


@dataclass(frozen=True)
class RankTimes:
    """Times of all ranks. `parts` maps an activity to nanoseconds of each rank; `end_ns` is the last rank's finish."""

    parts: Mapping[str, Sequence[float]]
    end_ns: float


def ranks_figure(runs: Mapping[str, RankTimes], *, title: str) -> Figure:
    """Draw the time of each rank by activity: axes for each run, with the same time scale.

    Args:
        runs: the key is a run's name, the value its times.
        title: the text above the picture.
    """
    last_ns = max(times.end_ns for times in runs.values())
    scale, unit = time_unit(last_ns)
    present = [part for part in PARTS if any(any(times.parts[part]) for times in runs.values())]
    with house_style():
        figure = new_figure(9.0, 0.9 + 2.2 * len(runs))
        panels = figure.subplots(len(runs), 1, squeeze=False, sharex=True, sharey=True)[:, 0]
        for axes, (name, times) in zip(panels, runs.items(), strict=True):
            _draw(axes, times, scale, present)
            axes.set_ylabel(f"Time ({unit})")
            axes.set_title(f"{name}: {fixed(times.end_ns / scale)} {unit}", loc="left", fontsize=9)
        panels[0].set_ylim(0, last_ns / scale or 1)
        panels[-1].set_xlabel("Rank")
        handles, labels = panels[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside right upper", frameon=False, fontsize=8)
        figure.suptitle(title, fontsize=10)
    return figure


def _draw(axes: Axes, times: RankTimes, scale: float, present: Sequence[str]) -> None:
    from matplotlib.ticker import MaxNLocator

    ranks = len(next(iter(times.parts.values())))
    edges = [rank - 0.5 for rank in range(ranks + 1)]
    below = [0.0] * ranks
    for number, part in enumerate(PARTS):
        if part not in present:
            continue
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
    axes.xaxis.set_major_locator(MaxNLocator(9, integer=True, steps=[1, 2, 5, 10]))
    axes.yaxis.set_major_locator(MaxNLocator(5, steps=ROUND))
