"""Pictures of benchmarks and runs, drawn with matplotlib: readable in colour, in grey, and to the colour-blind."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
from matplotlib.collections import LineCollection
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, MaxNLocator, MultipleLocator, NullLocator

from nicety import _native
from nicety.errors import InputError
from nicety.results import PICTURES

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from nicety.benchmarks import Report, Row
    from nicety.results import Breakdown
    from nicety.usecases import UseCaseReport

# The palette of Okabe and Ito, without its yellow, which is too faint for a line: one colour a mode.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
_MARKERS = ("o", "s", "^", "D", "v", "P", "X")
# One line style a card.
_STYLES: tuple[Any, ...] = ("-", "--", ":", "-.", (0, (3, 1, 1, 1, 1, 1)))

_RC: dict[Any, Any] = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "svg.hashsalt": "nicety",  # the same picture is the same file
    "svg.fonttype": "path",
}

_TITLES = {
    "latency": "Latency: half a round trip, host to host",
    "bandwidth": "Bandwidth: payload of a window of messages one way",
    "message-rate": "Message rate: a window of messages one way",
}
_MOST_TRACKS = 64
_MOST_SLICES = 20_000
# The width of a line in points; by how much a line under another is wider, and the most that this comes to.
_WIDTH = 1.3
_STEP = 2.2
_MOST_WIDTH = 8.0
# From which part of an axis on two points are seen as two.
_CLOSE = 0.012
# From how wide a range of values on an axis is logarithmic.
_LOGARITHMIC = 30
# Most axes beside each other, and most sizes that are named on one of them.
_MOST_BESIDE = 3
_MOST_TICKS = 11
# From when on nanoseconds have too many digits, and bytes a second.
_MICROSECONDS = 1e4
_GIGABYTES = 1e9


def save(figure: Figure, path: str | PathLike[str]) -> None:
    """Write a picture, as its file's ending says.

    Raises:
        InputError: where the ending is none of `PICTURES`, or the file cannot be written.
    """
    check_ending(path)
    ending = fspath(path)[-4:].lower()
    # Without a date, the same picture is the same file.
    metadata = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}.get(ending)
    try:
        with mpl.rc_context(_RC):
            figure.savefig(path, dpi=200, metadata=metadata)
    except OSError as error:
        raise InputError(f"{fspath(path)}: cannot write it ({error.strerror or error})") from error


def check_ending(path: str | PathLike[str]) -> None:
    """Refuse a file that is none of a picture's kinds."""
    if not fspath(path).lower().endswith(PICTURES):
        raise InputError(f"{fspath(path)}: a picture's name ends with {', '.join(PICTURES[:-1])} or {PICTURES[-1]}")


def _figure(width: float, height: float) -> tuple[Figure, Axes]:
    with mpl.rc_context(_RC):
        figure = Figure(figsize=(width, height), layout="constrained")
        axes = figure.add_subplot()
    axes.set_axisbelow(True)
    return figure, axes


def size_text(size: float) -> str:
    """A size as people say it: 8, 512, 4Ki, 1Mi."""
    whole = round(size)
    for power, suffix in ((30, "Gi"), (20, "Mi"), (10, "Ki")):
        if whole >= 1 << power and whole % (1 << power) == 0:
            return f"{whole >> power}{suffix}"
    return str(whole)


def report_figure(report: Report) -> Figure:
    """A benchmark as a picture: the figure over the message size, a line for each card and mode."""
    rows = report["rows"]
    value, label = _quantity(report)
    figure, axes = _figure(7.2, 4.4)
    with mpl.rc_context(_RC):
        _value_axis(axes, [value(row) for row in rows], label)
        _lines(axes, rows, "size_bytes", value)
        _size_axis(axes, sorted({row["size_bytes"] for row in rows}))
        _titles(axes, report)
    return figure


def usecase_figure(report: UseCaseReport) -> Figure:
    """A use case as a picture: the figure over the parameter that is its axis, a line for each card and mode.

    Where other parameters have several values, each of them has axes of its own, over the same range.
    """
    from nicety.usecases.show import axis_name, group_title, groups

    axis, shown = report["axis"], report["figure"]
    beside: dict[str, list[dict[str, Any]]] = {}
    for group, rows in groups(report):
        del group["nic"]
        beside.setdefault(group_title(group), []).extend(rows)
    scale, label = _usecase_unit(report)

    def value(row: Mapping[str, Any]) -> float:
        return float(row[shown["name"]] / scale)

    values = [value(row) for row in report["rows"]]
    columns = min(len(beside), _MOST_BESIDE)
    lines = math.ceil(len(beside) / columns)
    with mpl.rc_context(_RC):
        figure = Figure(figsize=(2.6 + 4.6 * columns, 4.4 if lines == 1 else 0.5 + 3.5 * lines), layout="constrained")
    for at, (title, rows) in enumerate(beside.items()):
        with mpl.rc_context(_RC):
            axes = figure.add_subplot(lines, columns, at + 1)
            axes.set_axisbelow(True)
            _value_axis(axes, values, label, share=shown["name"].endswith("_ratio"))
            _lines(axes, rows, axis, value, legend=at + 1 == columns)
            _size_axis(axes, sorted({row[axis] for row in rows}), size_text if axis.endswith("_bytes") else str)
            axes.set_xlabel(f"{axis_name(axis)}{' (B)' if axis.endswith('_bytes') else ''}")
            axes.set_title(title, loc="left", fontsize=9)
    with mpl.rc_context(_RC):
        circumstances = _circumstances(report)
        whole = f"{report['title']}: {report['meaning']}" + (f" ({circumstances})" if circumstances else "")
        figure.suptitle(whole, fontsize=10)
    return figure


def _usecase_unit(report: UseCaseReport) -> tuple[float, str]:
    """A unit that makes readable numbers of a use case's figure, and what the axis says of it."""
    shown = report["figure"]
    most = max((row[shown["name"]] for row in report["rows"]), default=0.0)
    if shown["name"] == "latency_ns" and most >= _MICROSECONDS:
        return 1e3, "Latency (µs)"
    if shown["name"] == "bandwidth_bytes_per_s" and most >= _GIGABYTES:
        return 1e9, "Bandwidth (GB/s)"
    return shown["unit"], shown["label"]


def _lines(
    axes: Axes,
    rows: Sequence[Mapping[str, Any]],
    axis: str,
    value: Callable[[Any], float],
    *,
    legend: bool = True,
) -> None:
    """A line for each card and mode, drawn so that lines on top of each other are all seen."""
    nics = list(dict.fromkeys(row["nic"] for row in rows))
    modes = list(dict.fromkeys(row["mode"] for row in rows))
    lines = [
        (nic, mode, {row[axis]: value(row) for row in rows if (row["nic"], row["mode"]) == (nic, mode)})
        for nic in nics
        for mode in modes
    ]
    lines = [line for line in lines if line[2]]
    stacks = _stacks([points for _, _, points in lines], logarithmic=axes.get_yscale() == "log")
    for (nic, mode, points), stack in zip(lines, stacks, strict=True):
        nic_number, mode_number = nics.index(nic), modes.index(mode)
        colour = _COLOURS[mode_number % len(_COLOURS)]
        axes.plot(
            list(points),
            list(points.values()),
            label=f"{nic}, {mode}",
            color=colour,
            marker=_MARKERS[mode_number % len(_MARKERS)],
            markersize=5,
            markerfacecolor=colour if nic_number % 2 == 0 else "white",
            markevery=_turns(stack),
            linestyle=_STYLES[nic_number % len(_STYLES)],
            linewidth=_WIDTH,
            zorder=3,
        )
        _underlay(axes, points, stack, colour)
    if legend:
        # Beside the axes and below their top, where no title reaches.
        axes.legend(
            loc="upper left",
            bbox_to_anchor=(1.02, 1.0),
            borderaxespad=0,
            frameon=False,
            fontsize=8,
            handlelength=3.2,
        )


@dataclass(frozen=True)
class _Place:
    """How many lines lie under and on top of a line at one of its points."""

    below: int
    above: int

    @property
    def height(self) -> int:
        return self.below + 1 + self.above


def _stacks(lines: Sequence[Mapping[int, float]], *, logarithmic: bool) -> list[list[_Place]]:
    """Where lines lie on top of each other, for each line and point of it, in the order they are drawn in."""
    every = [value for points in lines for value in points.values()]
    most = max(every, default=0) or 1
    extent = math.log(most / min(every)) if logarithmic else most

    def meet(other: Mapping[int, float], size: int, value: float) -> bool:
        if size not in other:
            return False
        apart = abs(math.log(other[size] / value)) if logarithmic else abs(other[size] - value)
        return apart <= _CLOSE * extent

    return [
        [
            _Place(
                below=sum(meet(other, size, value) for other in lines[:at]),
                above=sum(meet(other, size, value) for other in lines[at + 1 :]),
            )
            for size, value in points.items()
        ]
        for at, points in enumerate(lines)
    ]


def _turns(stack: Sequence[_Place]) -> list[int]:
    """The points at which a line has its marker: lines on top of each other take turns."""
    if any(place.height > len(stack) for place in stack):
        return list(range(len(stack)))
    return [at for at, place in enumerate(stack) if at % place.height == place.below]


def _underlay(axes: Axes, points: Mapping[int, float], stack: Sequence[_Place], colour: str) -> None:
    """Where other lines lie on a line, widen it, so that it is seen on both sides of them."""
    places, segments, widths = list(points.items()), [], []
    for (one, begin), (other, end) in pairwise(zip(places, stack, strict=True)):
        above = min(begin.above, end.above)
        if above:
            segments.append([one, other])
            widths.append(_WIDTH + min(_STEP, _MOST_WIDTH / max(begin.height, end.height)) * above)
    axes.add_collection(
        LineCollection(segments, colors=[colour], linewidths=widths, capstyle="round", zorder=2), autolim=False
    )


def _titles(axes: Axes, report: Report) -> None:
    """What is drawn, and in a smaller line what is not as usual."""
    circumstances = _circumstances(report)
    axes.set_title(_TITLES[report["benchmark"]], loc="left", fontsize=10, pad=19 if circumstances else 6)
    if circumstances:
        axes.annotate(
            circumstances,
            (0, 1),
            (0, 6),
            xycoords="axes fraction",
            textcoords="offset points",
            fontsize=8,
            color="#444444",
            annotation_clip=False,
        ).set_in_layout(False)


def _circumstances(report: Report | UseCaseReport) -> str:
    manifest = report["manifest"]
    parts = [manifest[key] for key in ("pattern", "topology") if manifest.get(key, "pair") != "pair"]
    if manifest.get("noise"):
        parts.append(f"noise {manifest['noise']}")
    return ", ".join(parts)


def _quantity(report: Report) -> tuple[Callable[[Row], float], str]:
    """What is drawn, in a unit that makes readable numbers, and what the axis says of it."""
    rows = report["rows"]
    if report["benchmark"] == "latency":
        most = max((row["latency_ns"] for row in rows), default=0.0)
        scale, unit = (1e3, "µs") if most >= _MICROSECONDS else (1.0, "ns")
        return lambda row: row["latency_ns"] / scale, f"Latency ({unit})"
    if report["benchmark"] == "bandwidth":
        most = max((row["bandwidth_bytes_per_s"] for row in rows), default=0.0)
        scale, unit = (1e9, "GB/s") if most >= _GIGABYTES else (1e6, "MB/s")
        return lambda row: row["bandwidth_bytes_per_s"] / scale, f"Bandwidth ({unit})"
    return lambda row: row["messages_per_s"] / 1e6, "Message rate (10⁶ messages/s)"


def _size_axis(axes: Axes, sizes: Sequence[int], shown: Callable[[int], str] = size_text) -> None:
    """Sizes doubling to the right; 0, which has no logarithm, a step before 1. The first and the last are named."""
    if sizes and sizes[0] == 0:
        axes.set_xscale("symlog", base=2, linthresh=1, linscale=0.5)
    else:
        axes.set_xscale("log", base=2)
    powers = [size for size in sizes if size & (size - 1) == 0]
    ticks = powers if len(powers) > 1 else list(sizes)
    named = ticks[:: max(1, math.ceil(len(ticks) / _MOST_TICKS))]
    if len(named) > 1:
        # The one before would be too near to it.
        named[-1] = ticks[-1]
    axes.xaxis.set_major_locator(FixedLocator([float(tick) for tick in named]))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda size, _: shown(round(size))))
    if len(sizes) == 1:
        axes.set_xlim(max(sizes[0], 1) / 2, max(sizes[0], 1) * 2)
    axes.set_xlabel("Message size (B)")


def _value_axis(axes: Axes, values: Sequence[float], label: str, *, share: bool = False) -> None:
    """From 0 on, or logarithmic where the values are far apart; from 0 to 1 for a share of something."""
    least, most = min(values, default=0), max(values, default=1)
    if share:
        axes.set_ylim(-0.03, 1.03)
        axes.yaxis.set_major_locator(MultipleLocator(0.2))
    elif least > 0 and most / least > _LOGARITHMIC:
        axes.set_yscale("log")
        decades = math.log10(most / least)
        subs = (1.0,) if decades > 3 else (1.0, 2.0, 5.0)  # noqa: PLR2004, three decades of ticks are enough
        axes.yaxis.set_major_locator(LogLocator(subs=subs, numticks=20))
        axes.yaxis.set_minor_locator(NullLocator())
        axes.set_ylim(least / 1.4, most * 1.4)
    else:
        axes.set_ylim(0, most * 1.08 or 1)
        axes.yaxis.set_major_locator(MaxNLocator(7, steps=[1, 2, 2.5, 5, 10]))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}".replace(",", " ")))
    axes.set_ylabel(label)
    axes.grid(visible=True, color="#dddddd", linewidth=0.6)


def breakdown_figure(breakdown: Breakdown) -> Figure:
    """Where the time of messages went: a bar for each stage."""
    if not breakdown.messages:
        raise InputError("plot(): the run had no message to its end whose time could be drawn")
    stages = breakdown.stages
    means = [stage.total_ns / max(breakdown.messages, 1) for stage in stages]
    figure, axes = _figure(6.4, 1.1 + 0.28 * max(len(stages), 1))
    with mpl.rc_context(_RC):
        # What only waits is hatched.
        for at, (stage, mean) in enumerate(zip(stages, means, strict=True)):
            waits = stage.stage.endswith("queued") or stage.stage == "completion order"
            axes.barh(
                at,
                mean,
                color="white" if waits else _COLOURS[0],
                edgecolor=_COLOURS[0],
                hatch="////" if waits else None,
                height=0.7,
            )
            axes.annotate(f"{mean:,.3f}", (mean, at), (3, 0), textcoords="offset points", va="center", fontsize=8)
        axes.set_yticks(range(len(stages)), [stage.stage for stage in stages])
        axes.invert_yaxis()
        axes.set_xlim(0, max(means, default=1) * 1.18)
        axes.xaxis.set_major_locator(MaxNLocator(7))
        axes.set_xlabel("Mean time of a message (ns)")
        count = f"{breakdown.messages} message{'s' if breakdown.messages != 1 else ''}"
        total = breakdown.total_ns / max(breakdown.messages, 1)
        axes.set_title(f"Where the time of {count} went: {total:,.3f} ns each", loc="left", fontsize=10)
        axes.grid(visible=True, axis="x", color="#dddddd", linewidth=0.6)
    return figure


_OF_RESOURCE = {
    "program": "#999999",
    "host CPU": _COLOURS[0],
    "bus to card": _COLOURS[1],
    "bus to host": _COLOURS[1],
    "DMA": _COLOURS[4],
    "link": _COLOURS[2],
    "switch port": _COLOURS[2],
    "matching": _COLOURS[3],
    "HPU": _COLOURS[5],
}


def timeline_figure(resources: _native.Table) -> Figure:
    """What each resource did when: a bar for each use, a line for each resource of each node.

    Raises:
        InputError: where there are too many resources or uses for a picture.
    """
    tracks: dict[tuple[int, str, int], list[tuple[int, int]]] = {}
    columns = [resources.column(name) for name in ("node", "resource", "unit", "start_ps", "end_ps")]
    for node, resource, unit, start, end in zip(*columns, strict=True):
        tracks.setdefault((node, resource, unit), []).append((start, end))
    if not tracks:
        raise InputError("plot(): nothing was used in the run that could be drawn")
    if len(tracks) > _MOST_TRACKS or len(resources) > _MOST_SLICES:
        raise InputError(
            f"{len(resources)} uses of {len(tracks)} resources are too many for a picture (at most {_MOST_SLICES} of "
            f"{_MOST_TRACKS}); write a timeline with run.trace(), or plot(kind='breakdown')"
        )
    # What programs wait for before anything moves, such as a barrier, is cut off.
    first, last = _extent(
        [bars for (_, resource, _), bars in tracks.items() if resource != "program"] or tracks.values()
    )
    last = max(last, _extent(tracks.values())[1])
    scale, unit = (1000.0, "µs") if last - first >= _MICROSECONDS else (1.0, "ns")
    figure, axes = _figure(9.0, 1.0 + 0.24 * max(len(tracks), 3))
    several = {(node, resource) for node, resource, number in tracks if number > 0} | {
        (node, resource) for node, resource, _ in tracks if resource in {"HPU", "switch port"}
    }
    with mpl.rc_context(_RC):
        names, before = [], None
        for at, ((node, resource, number), bars) in enumerate(tracks.items()):
            name = f"{resource} {number}" if (node, resource) in several else resource
            if resource == "DMA":
                # One engine; what overlaps is told apart only to be seen.
                name = resource if number == 0 else f"{resource}, also under way ({number})"
            names.append(f"node {node}: {name}")
            if before not in (None, node):
                axes.axhline(at - 0.5, color="#666666", linewidth=0.6)
            before = node
            # An instant is seen too.
            least = (last - first) / 800
            colour = _OF_RESOURCE.get(resource, "#999999")
            for depth, spans in enumerate(_by_depth(bars)):
                axes.broken_barh(
                    [
                        ((start / 1000 - first) / scale, max((end - start) / 1000, least) / scale)
                        for start, end in spans
                    ],
                    (at - 0.36 + 0.16 * depth, 0.72 - 0.16 * depth),
                    # What lies inside is lighter.
                    facecolor=[1 - (1 - part) * 0.5**depth for part in to_rgb(colour)],
                    edgecolor="black",
                    linewidth=0.3,
                )
        axes.set_yticks(range(len(names)), names, fontsize=7.5)
        axes.set_ylim(len(names) - 0.4, -0.6)
        axes.set_xlim(0, max((last - first) / scale, 1e-3) * 1.01)
        start = f", from {first:,.3f} ns on" if first > 0 else ""
        axes.set_xlabel(f"Virtual time ({unit}{start})")
        axes.grid(visible=True, axis="x", color="#dddddd", linewidth=0.6)
    return figure


def _by_depth(bars: Sequence[tuple[int, int]]) -> list[list[tuple[int, int]]]:
    """Uses by how many others they lie inside of: a call inside a call, a command inside a handler."""
    levels: list[list[tuple[int, int]]] = []
    ends: list[int] = []
    for start, end in sorted(bars, key=lambda bar: (bar[0], -bar[1])):
        while ends and ends[-1] <= start:
            ends.pop()
        while len(levels) <= len(ends):
            levels.append([])
        levels[len(ends)].append((start, end))
        ends.append(end)
    return levels


def _extent(tracks: Iterable[Sequence[tuple[int, int]]]) -> tuple[float, float]:
    """From the first start to the last end, in nanoseconds."""
    bars = [bar for track in tracks for bar in track]
    first = min((start for start, _ in bars), default=0)
    return first / 1000, max((end for _, end in bars), default=first + 1000) / 1000
