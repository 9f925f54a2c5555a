"""Pictures of benchmarks and runs, drawn with matplotlib: readable in colour, in grey, and to the colour-blind."""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, MultipleLocator, NullLocator

from nicety import _native
from nicety._files import write_whole
from nicety.errors import InputError
from nicety.lines import COLOURS, Curve, draw
from nicety.results import PICTURES

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from nicety.benchmarks import Report, Row
    from nicety.channel_benchmarks import ChannelBenchReport
    from nicety.results import Breakdown
    from nicety.usecases import UseCaseReport

RC: dict[Any, Any] = {
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
# From how wide a range of values on an axis is logarithmic.
_LOGARITHMIC = 30
# Most axes beside each other, and most sizes that are named on one of them.
_MOST_BESIDE = 3
_MOST_TICKS = 11
# Most sizes whose stages are drawn.
_MOST_PANELS = 9
# Units of time, and from how many nanoseconds on each is used: below, it would have too many decimals.
_TIMES = (("s", 1e9, 1e10), ("ms", 1e6, 1e7), ("µs", 1e3, 1e4))
# From how many bytes a second on they are counted in gigabytes.
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
    drawn = io.BytesIO()
    with mpl.rc_context(RC):
        figure.savefig(drawn, format=ending[1:], dpi=200, metadata=metadata)
    write_whole(path, drawn.getvalue())


def check_ending(path: str | PathLike[str]) -> None:
    """Refuse a file that is none of a picture's kinds."""
    if not fspath(path).lower().endswith(PICTURES):
        raise InputError(f"{fspath(path)}: a picture's name ends with {', '.join(PICTURES[:-1])} or {PICTURES[-1]}")


def empty_figure(width: float, height: float) -> tuple[Figure, Axes]:
    """A figure of this size in inches, and its only axes."""
    with mpl.rc_context(RC):
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


def time_unit(most_ns: float) -> tuple[float, str]:
    """Nanoseconds in the unit that makes readable numbers of times up to this one, and the unit's name."""
    return next(((scale, unit) for unit, scale, least in _TIMES if most_ns >= least), (1.0, "ns"))


def _bytes_text(size: int) -> str:
    text = size_text(size)
    return f"{text[:-2]} {text[-2:]}B" if text.endswith("i") else f"{text} B"


def report_figure(report: Report, *, percentiles: bool = False) -> Figure:
    """A benchmark as a picture: the figure over the message size, a line for each card and mode.

    With `percentiles` a thin whisker at each point goes from the minimum to the maximum of the iterations, and a thick
    one from the median to the 99th percentile.
    """
    rows = report["rows"]
    value, label = _quantity(report)
    scale, _ = time_unit(max((row["max_ns"] for row in rows), default=0.0))

    def rates(row: Row) -> tuple[float, float, float, float]:
        # Of a window that takes longer, the rate is lower.
        whole = value(row) * row["window_ns"]
        return whole / row["max_ns"], whole / row["p50_ns"], whole / row["p99_ns"], whole / row["min_ns"]

    spread: Callable[[Any], tuple[float, float, float, float]]
    spread = (lambda row: spread_of(row, scale)) if report["benchmark"] == "latency" else rates

    figure, axes = empty_figure(7.2, 4.4)
    with mpl.rc_context(RC):
        values = [value(row) for row in rows]
        value_axis(axes, [*values, *(end for row in rows for end in spread(row))] if percentiles else values, label)
        _lines(axes, rows, "size_bytes", value, spread=spread if percentiles else None)
        size_axis(axes, sorted({row["size_bytes"] for row in rows}))
        _titles(axes, report, ["thin: minimum to maximum, thick: median to p99"] if percentiles else [])
    return figure


def spread_of(row: Mapping[str, Any], scale: float) -> tuple[float, float, float, float]:
    """Minimum, median, 99th percentile and maximum of a row's latencies, in units of so many nanoseconds."""
    return row["min_ns"] / scale, row["p50_ns"] / scale, row["p99_ns"] / scale, row["max_ns"] / scale


def stages_figure(report: Report | ChannelBenchReport) -> Figure:
    """Where the time of messages went: axes for each size, on them a bar for each card and mode, stage by stage."""
    from nicety.bars import stacked_bars

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
    return stacked_bars({_bytes_text(size): panels[size] for size in shown}, title=title)


def usecase_figure(report: UseCaseReport, *, percentiles: bool = False) -> Figure:
    """A use case as a picture: the figure over the parameter that is its axis, a line for each card and mode.

    With `percentiles` the points of a latency have whiskers, as in `report_figure`. Where other parameters have several
    values, each of them has axes of its own, over the same range.
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

    spread = (lambda row: spread_of(row, scale)) if percentiles and shown["name"] == "latency_ns" else None
    values = [value(row) for row in report["rows"]]
    if spread:
        values += [end for row in report["rows"] for end in spread(row)]
    columns = min(len(beside), _MOST_BESIDE)
    lines = math.ceil(len(beside) / columns)
    with mpl.rc_context(RC):
        figure = Figure(figsize=(2.6 + 4.6 * columns, 4.4 if lines == 1 else 0.5 + 3.5 * lines), layout="constrained")
    for at, (title, rows) in enumerate(beside.items()):
        with mpl.rc_context(RC):
            axes = figure.add_subplot(lines, columns, at + 1)
            axes.set_axisbelow(True)
            value_axis(axes, values, label, share=shown["name"].endswith("_ratio"))
            _lines(axes, rows, axis, value, spread=spread, legend=at + 1 == columns)
            size_axis(axes, sorted({row[axis] for row in rows}), size_text if axis.endswith("_bytes") else str)
            axes.set_xlabel(f"{axis_name(axis)}{' (B)' if axis.endswith('_bytes') else ''}")
            axes.set_title(title, loc="left", fontsize=9)
    with mpl.rc_context(RC):
        circumstances = _circumstances(report)
        whole = f"{report['title']}: {report['meaning']}" + (f" ({circumstances})" if circumstances else "")
        figure.suptitle(whole, fontsize=10)
    return figure


def _usecase_unit(report: UseCaseReport) -> tuple[float, str]:
    """A unit that makes readable numbers of a use case's figure, and what the axis says of it."""
    shown = report["figure"]
    most = max((row[shown["name"]] for row in report["rows"]), default=0.0)
    if shown["name"].endswith("_ns"):
        scale, unit = time_unit(most)
        return scale, f"{shown['label'].partition(' (')[0]} ({unit})"
    if shown["name"] == "bandwidth_bytes_per_s" and most >= _GIGABYTES:
        return 1e9, "Bandwidth (GB/s)"
    return shown["unit"], shown["label"]


def _lines(
    axes: Axes,
    rows: Sequence[Mapping[str, Any]],
    axis: str,
    value: Callable[[Any], float],
    *,
    spread: Callable[[Any], tuple[float, float, float, float]] | None = None,
    legend: bool = True,
) -> None:
    """A line for each card and mode: a colour for each mode, or for each card where all have the same one."""
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
        # Beside the axes and below their top, where no title reaches.
        axes.legend(
            handles=handles,
            loc="upper left",
            bbox_to_anchor=(1.02, 1.0),
            borderaxespad=0,
            frameon=False,
            fontsize=8,
            handlelength=3.2,
        )


def _titles(axes: Axes, report: Report, notes: Sequence[str]) -> None:
    """The benchmark's title, and in a smaller line the circumstances that are not the usual ones, and notes."""
    circumstances = ", ".join(part for part in (_circumstances(report), *notes) if part)
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
        scale, unit = time_unit(max((row["max_ns"] for row in rows), default=0.0))
        return lambda row: row["latency_ns"] / scale, f"Latency ({unit})"
    if report["benchmark"] == "bandwidth":
        most = max((row["bandwidth_bytes_per_s"] for row in rows), default=0.0)
        scale, unit = (1e9, "GB/s") if most >= _GIGABYTES else (1e6, "MB/s")
        return lambda row: row["bandwidth_bytes_per_s"] / scale, f"Bandwidth ({unit})"
    return lambda row: row["messages_per_s"] / 1e6, "Message rate (10⁶ messages/s)"


def size_axis(axes: Axes, sizes: Sequence[int], shown: Callable[[int], str] = size_text) -> None:
    """Sizes doubling to the right; 0, which has no logarithm, a step before 1. The first and the last are named."""
    if sizes and sizes[0] == 0:
        axes.set_xscale("symlog", base=2, linthresh=1, linscale=0.5)
    else:
        axes.set_xscale("log", base=2)
    named = _named_sizes(sizes)
    axes.xaxis.set_major_locator(FixedLocator([float(tick) for tick in named]))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda size, _: shown(round(size))))
    if len(sizes) == 1:
        axes.set_xlim(max(sizes[0], 1) / 2, max(sizes[0], 1) * 2)
    axes.set_xlabel("Message size (B)")


def _named_sizes(sizes: Sequence[int]) -> list[int]:
    """The sizes that have a tick: the first, the last, and of those between them what has room, powers first."""
    if len(sizes) <= 1:
        return list(sizes)
    place = [math.log2(max(size, 0.5)) for size in sizes]
    room = (place[-1] - place[0]) / _MOST_TICKS
    named = {sizes[0]: place[0], sizes[-1]: place[-1]}
    powers = [(size, at) for size, at in zip(sizes, place, strict=True) if size & (size - 1) == 0]
    every = max(1, math.ceil(len(powers) / _MOST_TICKS))
    for size, at in (*powers[::every], *zip(sizes, place, strict=True)):
        if all(abs(at - other) >= room for other in named.values()):
            named[size] = at
    return sorted(named)


def value_axis(axes: Axes, values: Sequence[float], label: str, *, share: bool = False) -> None:
    """From 0 on, or logarithmic where the values are far apart; from 0 to 1 for a share of something."""
    least, most = min(values, default=0), max(values, default=1)
    if share:
        axes.set_ylim(-0.03, 1.03)
        axes.yaxis.set_major_locator(MultipleLocator(0.2))
    else:
        logarithmic = least > 0 and most / least > _LOGARITHMIC
        ticks = _decade_ticks(least, most) if logarithmic else _even_ticks(most or 1)
        axes.set_yscale("log" if logarithmic else "linear")
        axes.yaxis.set_major_locator(FixedLocator(ticks))
        axes.yaxis.set_minor_locator(NullLocator())
        axes.set_ylim(ticks[0], ticks[-1])
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}".replace(",", " ")))
    axes.set_ylabel(label)
    axes.grid(visible=True, color="#dddddd", linewidth=0.6)


def _even_ticks(most: float) -> list[float]:
    """Ticks from 0 to the first one that is not below `most`."""
    ticks = MaxNLocator(7, steps=[1, 2, 2.5, 5, 10]).tick_values(0, most)
    last = next(at for at, tick in enumerate(ticks) if tick >= most * (1 - 1e-9))
    return [float(tick) for tick in ticks[: last + 1]]


def _decade_ticks(least: float, most: float) -> list[float]:
    """Ticks 1, 2, 5, 10, ... around these values; over more than three decades 1, 10, 100, ..."""
    steps = (1,) if math.log10(most / least) > 3 else (1, 2, 5)  # noqa: PLR2004, see above
    first, last = math.floor(math.log10(least)), math.ceil(math.log10(most))
    ticks = [float(f"{step}e{power}") for power in range(first, last + 1) for step in steps]
    begin = max(at for at, tick in enumerate(ticks) if tick <= least * (1 + 1e-9))
    end = next(at for at, tick in enumerate(ticks) if tick >= most * (1 - 1e-9))
    return ticks[begin : end + 1]


def breakdown_figure(breakdown: Breakdown) -> Figure:
    """Where the time of messages went: a bar for each stage."""
    if not breakdown.messages:
        raise InputError("plot(): the run had no message to its end whose time could be drawn")
    stages = breakdown.stages
    whole = breakdown.total_ns / max(breakdown.messages, 1)
    scale, unit = time_unit(whole)
    means = [stage.total_ns / max(breakdown.messages, 1) / scale for stage in stages]
    figure, axes = empty_figure(6.4, 1.1 + 0.28 * max(len(stages), 1))
    with mpl.rc_context(RC):
        # What only waits is hatched.
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
        axes.xaxis.set_major_locator(MaxNLocator(7))
        axes.set_xlabel(f"Mean time of a message ({unit})")
        count = f"{breakdown.messages} message{'s' if breakdown.messages != 1 else ''}"
        axes.set_title(f"Where the time of {count} went: {whole / scale:,.3f} {unit} each", loc="left", fontsize=10)
        axes.grid(visible=True, axis="x", color="#dddddd", linewidth=0.6)
    return figure


_OF_RESOURCE = {
    "program": "#999999",
    "host CPU": COLOURS[0],
    "bus to card": COLOURS[1],
    "bus to host": COLOURS[1],
    "DMA": COLOURS[4],
    "link": COLOURS[2],
    "switch port": COLOURS[2],
    "matching": COLOURS[3],
    "HPU": COLOURS[5],
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
    # Programs may wait long before anything moves, for a barrier for one: that is cut off, and what sets them up.
    first, last = _extent(tracks.values())
    moves = [bar for (_, resource, _), bars in tracks.items() if resource != "program" for bar in bars]
    first = _after_the_longest_wait(moves, first, last)
    scale, unit = time_unit(last - first)
    figure, axes = empty_figure(9.0, 1.0 + 0.24 * max(len(tracks), 3))
    several = {(node, resource) for node, resource, number in tracks if number > 0} | {
        (node, resource) for node, resource, _ in tracks if resource in {"HPU", "switch port"}
    }
    with mpl.rc_context(RC):
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
                        if end / 1000 >= first
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
        start = f", from {first / scale:,.3f} {unit} on" if first > 0 else ""
        axes.set_xlabel(f"Virtual time ({unit}{start})")
        axes.grid(visible=True, axis="x", color="#dddddd", linewidth=0.6)
    return figure


def _after_the_longest_wait(bars: Sequence[tuple[int, int]], first: float, last: float) -> float:
    """When something moves again behind a wait of more than half the time; `first` where there is none."""
    before, found = first, first
    for start, end in sorted((start / 1000, end / 1000) for start, end in bars):
        if start - before > (last - first) / 2:
            found = start
        before = max(before, end)
    return found


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
