"""Pictures of bars, side by side or stacked, for values that make no curve."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from nicety.errors import InputError
from nicety.shared.ranges import format_size
from nicety.show.axes import ROUND, empty_figure, house_style, new_figure, time_unit
from nicety.show.circumstances import circumstances
from nicety.show.columns import merged_order
from nicety.show.lines import COLOURS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from nicety.show.stages import Breakdown

# Maximum number of message sizes for which stages are drawn.
_MOST_PANELS = 9
# Bars differ by hatch as well as by colour, for prints in grey.
_HATCHES = ("", "//", "xx", "--", r"\\", "||", "++")


def bars_figure(
    groups: Sequence[str],
    series: Mapping[str, Sequence[float | None]],
    *,
    title: str,
    value: str,
    stacked: bool = False,
) -> Figure:
    """Draw groups of horizontal bars, one group below the other.

    Args:
        groups: the label of each group; the first group is on top.
        series: the key is a name in the legend, the value a list with a number for each group, or None for no bar.
        title: the text above the picture.
        value: the label of the axis of values, with its unit.
        stacked: whether the values of a group are the parts of one bar.
    """
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    count = 1 if stacked else len(series)
    figure, axes = empty_figure(7.6, 1.5 + len(groups) * (0.16 + 0.17 * max(count, 2)))
    with house_style():
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
        axes.xaxis.set_major_locator(MaxNLocator(7, steps=ROUND))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda shown, _: _shown(shown)))
        axes.set_xlabel(value)
        axes.set_title(title, loc="left", fontsize=10)
        axes.grid(visible=True, axis="x", color="#dddddd", linewidth=0.6)
        axes.legend(loc="upper left", bbox_to_anchor=(1.02, 1.0), borderaxespad=0, frameon=False, fontsize=8)
    return figure


def stacked_bars(panels: Mapping[str, Mapping[str, Mapping[str, float]]], *, title: str) -> Figure:
    """Draw stacked bars of times: axes for each panel, with a bar for each group.

    Bars that are shorter than others of their panel by a factor of `_SCALE` have axes of their own.

    Args:
        panels: maps a panel's title to its groups, a group's name to its bar, and a part's name to nanoseconds.
        title: the text above the picture.
    """
    drawn = [(name, groups) for name, whole in panels.items() for groups in _alike(whole)]
    # Bars may have different parts. The merged order keeps the order of parts in each bar.
    parts = merged_order([list(bar) for groups in panels.values() for bar in groups.values()])
    heights = [0.7 + 0.3 * len(groups) for _, groups in drawn]
    beside = len(parts) * _ENTRY <= sum(heights)
    columns = 1 if beside else _BELOW
    figure = new_figure(9.0, 0.9 + sum(heights) + (0 if beside else math.ceil(len(parts) / columns) * _ENTRY))
    with house_style():
        grid = figure.add_gridspec(len(drawn), height_ratios=heights)
    for at, (name, groups) in enumerate(drawn):
        with house_style():
            axes = figure.add_subplot(grid[at])
            _stack(axes, name, groups, parts)
    with house_style():
        place: Any = "outside right upper" if beside else "outside lower left"
        found = [axes.get_legend_handles_labels() for axes in figure.axes]
        handles = {label: handle for each in found for handle, label in zip(*each, strict=True)}
        figure.legend([handles[part] for part in parts], parts, loc=place, ncols=columns, frameon=False, fontsize=8)
        figure.suptitle(title, fontsize=10)
    return figure


# Inches of an entry of a legend, and the number of columns of a legend below a picture.
_ENTRY = 0.17
_BELOW = 4
# Minimum ratio of two bars that have axes of their own.
_SCALE = 8


def _alike(groups: Mapping[str, Mapping[str, float]]) -> list[dict[str, Mapping[str, float]]]:
    """Return the bars in groups of similar lengths, the longest bars first."""
    whole = {name: sum(bar.values()) for name, bar in groups.items()}
    limits: list[float] = []
    for length in sorted(whole.values(), reverse=True):
        if not limits or length * _SCALE < limits[-1]:
            limits.append(length)
    found: list[dict[str, Mapping[str, float]]] = [{} for _ in limits]
    for name, bar in groups.items():
        found[max(at for at, limit in enumerate(limits) if whole[name] <= limit)][name] = bar
    return found


def _stack(axes: Axes, name: str, groups: Mapping[str, Mapping[str, float]], parts: Sequence[str]) -> None:
    """Draw one bar for each group, of parts in their order."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator

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
    axes.xaxis.set_major_locator(MaxNLocator(7, steps=ROUND))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda shown, _: _shown(shown)))
    axes.set_title(f"{name} ({unit})", loc="left", fontsize=9)
    axes.grid(visible=True, axis="x", color="#dddddd", linewidth=0.6)


def hatch(number: int) -> str:
    """Return the hatch of a series. It differs between two series with the same colour."""
    return _HATCHES[(number + number // len(COLOURS)) % len(_HATCHES)]


def _shown(number: float) -> str:
    return f"{number:,.4g}".replace(",", " ")


def _bytes_text(size: int) -> str:
    text = format_size(size)
    return f"{text[:-2]} {text[-2:]}B" if text.endswith("i") else f"{text} B"


def stages_figure(report: Mapping[str, Any]) -> Figure:
    """Draw the time of a benchmark's messages by stage: axes for each size, with a bar for each card and mode."""
    panels: dict[int, dict[str, dict[str, float]]] = {}
    rows: list[dict[str, Any]] = [dict(row) for row in report["rows"]]
    for row in rows:
        if "stages" in row:
            name = ", ".join(str(row[key]) for key in ("nic", "mode", "direction") if key in row)
            stages = {stage["stage"]: stage["ns"] for stage in row["stages"]}
            panels.setdefault(row["size_bytes"], {})[name] = stages
    sizes = sorted(panels)
    shown = sizes[:: math.ceil(len(sizes) / _MOST_PANELS)]
    if len(sizes) > 1:
        shown[-1] = sizes[-1]
    title = "Where the time of a message goes"
    if len(shown) < len(sizes):
        title += f": {len(shown)} of {len(sizes)} sizes"
    title = "; ".join([title, *circumstances(report["manifest"])])
    return stacked_bars({_bytes_text(size): panels[size] for size in shown}, title=title)


def breakdown_figure(breakdown: Breakdown) -> Figure:
    """Draw the mean time of a message by stage, with a bar for each stage."""
    from matplotlib.ticker import MaxNLocator

    if not breakdown.messages:
        raise InputError("plot(): the run had no completed message to draw")
    stages = breakdown.stages
    whole = breakdown.total_ns / max(breakdown.messages, 1)
    scale, unit = time_unit(whole)
    means = [stage.total_ns / max(breakdown.messages, 1) / scale for stage in stages]
    figure, axes = empty_figure(6.4, 1.1 + 0.28 * max(len(stages), 1))
    with house_style():
        # Stages in which messages only wait are hatched.
        for at, (stage, mean) in enumerate(zip(stages, means, strict=True)):
            waits = stage.stage.endswith("queued") or stage.stage == "completion order"
            axes.barh(
                at,
                mean,
                color="white" if waits else COLOURS[0],
                edgecolor=COLOURS[0],
                hatch="////" if waits else None,
                height=0.7,
            )
            axes.annotate(f"{mean:,.3f}", (mean, at), (3, 0), textcoords="offset points", va="center", fontsize=8)
        axes.set_yticks(range(len(stages)), [stage.stage for stage in stages])
        axes.invert_yaxis()
        axes.set_xlim(0, max(means, default=1) * 1.18)
        axes.xaxis.set_major_locator(MaxNLocator(7, steps=ROUND))
        axes.set_xlabel(f"Mean time of a message ({unit})")
        count = f"{breakdown.messages} message{'s' if breakdown.messages != 1 else ''}"
        axes.set_title(f"Where the time of {count} went: {whole / scale:,.3f} {unit} each", loc="left", fontsize=10)
        axes.grid(visible=True, axis="x", color="#dddddd", linewidth=0.6)
    return figure
