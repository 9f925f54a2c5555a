"""Pictures of benchmarks and runs, drawn with matplotlib: readable in colour, in grey, and to the colour-blind."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, MaxNLocator, NullLocator

from nicety import _native
from nicety.errors import InputError
from nicety.results import PICTURES

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from nicety.benchmarks import Report, Row
    from nicety.results import Breakdown

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
# From how wide a range of values on an axis is logarithmic.
_LOGARITHMIC = 30
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
    nics = list(dict.fromkeys(row["nic"] for row in rows))
    modes = list(dict.fromkeys(row["mode"] for row in rows))
    value, label = _quantity(report)
    figure, axes = _figure(7.2, 4.4)
    with mpl.rc_context(_RC):
        for nic_number, nic in enumerate(nics):
            for mode_number, mode in enumerate(modes):
                own = [row for row in rows if (row["nic"], row["mode"]) == (nic, mode)]
                if not own:
                    continue
                colour = _COLOURS[mode_number % len(_COLOURS)]
                name = ", ".join(part for part, several in ((nic, True), (mode, True)) if several)
                axes.plot(
                    [row["size_bytes"] for row in own],
                    [value(row) for row in own],
                    label=name,
                    color=colour,
                    marker=_MARKERS[mode_number % len(_MARKERS)],
                    # Where lines coincide, the ones below are seen as rings.
                    markersize=max(3.5, 6.5 - mode_number),
                    markerfacecolor=colour if nic_number % 2 == 0 else "white",
                    linestyle=_STYLES[nic_number % len(_STYLES)],
                    linewidth=1.3,
                )
        _size_axis(axes, sorted({row["size_bytes"] for row in rows}))
        _value_axis(axes, [value(row) for row in rows], label)
        axes.set_title(_TITLES[report["benchmark"]] + _circumstances(report), loc="left", fontsize=10)
        figure.legend(loc="outside right upper", frameon=False, fontsize=8, handlelength=3.2)
    return figure


def _circumstances(report: Report) -> str:
    manifest = report["manifest"]
    parts = [manifest[key] for key in ("pattern", "topology") if manifest.get(key, "pair") != "pair"]
    if manifest.get("noise"):
        parts.append(f"noise {manifest['noise']}")
    return f" ({', '.join(parts)})" if parts else ""


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


def _size_axis(axes: Axes, sizes: Sequence[int]) -> None:
    """Sizes doubling to the right; 0, which has no logarithm, a step before 1."""
    if sizes and sizes[0] == 0:
        axes.set_xscale("symlog", base=2, linthresh=1, linscale=0.5)
    else:
        axes.set_xscale("log", base=2)
    powers = [size for size in sizes if size & (size - 1) == 0]
    ticks = powers if len(powers) > 1 else list(sizes)
    step = max(1, math.ceil(len(ticks) / 11))
    axes.xaxis.set_major_locator(FixedLocator([float(tick) for tick in ticks[::step]]))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda size, _: size_text(size)))
    if len(sizes) == 1:
        axes.set_xlim(max(sizes[0], 1) / 2, max(sizes[0], 1) * 2)
    axes.set_xlabel("Message size (B)")


def _value_axis(axes: Axes, values: Sequence[float], label: str) -> None:
    """From 0 on, or logarithmic where the values are far apart."""
    least, most = min(values, default=0), max(values, default=1)
    if least > 0 and most / least > _LOGARITHMIC:
        axes.set_yscale("log")
        decades = math.log10(most / least)
        subs = (1.0,) if decades > 3 else (1.0, 2.0, 5.0)  # noqa: PLR2004, three decades of ticks are enough
        axes.yaxis.set_major_locator(LogLocator(subs=subs, numticks=20))
        axes.yaxis.set_minor_locator(NullLocator())
        axes.set_ylim(least / 1.4, most * 1.4)
    else:
        axes.set_ylim(0, most * 1.08 or 1)
        axes.yaxis.set_major_locator(MaxNLocator(7))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}".replace(",", " ")))
    axes.set_ylabel(label)
    axes.grid(visible=True, color="#dddddd", linewidth=0.6)


def breakdown_figure(breakdown: Breakdown) -> Figure:
    """Where the time of messages went: a bar for each stage."""
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
