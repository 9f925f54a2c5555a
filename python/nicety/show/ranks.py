"""Pictures of ranks: what each spends its time with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import matplotlib as mpl
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from nicety.show.axes import RC, time_unit
from nicety.show.bars import hatch
from nicety.show.lines import COLOURS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PARTS = ("computing", "both", "communicating", "waiting")
"""What a rank does, in the order of the pictures' parts."""


@dataclass(frozen=True)
class RankTimes:
    """What ranks spend their time with until the last of them is done: nanoseconds of each rank, by `PARTS`."""

    parts: Mapping[str, Sequence[float]]
    end_ns: float


def ranks_figure(runs: Mapping[str, RankTimes], *, title: str) -> Figure:
    """The time of each rank, in parts: axes for each run.

    Args:
        runs: by what they are called.
        title: above the picture.
    """
    with mpl.rc_context(RC):
        figure = Figure(figsize=(9.0, 0.9 + 2.2 * len(runs)), layout="constrained")
        panels = figure.subplots(len(runs), 1, squeeze=False)[:, 0]
        for axes, (name, times) in zip(panels, runs.items(), strict=True):
            _draw(axes, name, times)
        panels[-1].set_xlabel("Rank")
        handles, labels = panels[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside right upper", frameon=False, fontsize=8)
        figure.suptitle(title, fontsize=10)
    return figure


def _draw(axes: Axes, name: str, times: RankTimes) -> None:
    scale, unit = time_unit(times.end_ns)
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
    axes.set_ylim(0, times.end_ns / scale or 1)
    axes.xaxis.set_major_locator(MaxNLocator(9, integer=True))
    axes.yaxis.set_major_locator(MaxNLocator(5))
    axes.set_ylabel(f"Time ({unit})")
    axes.set_title(name, loc="left", fontsize=9)
