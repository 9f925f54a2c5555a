"""A picture of the uses of resources over time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from nicety import _native
from nicety.errors import InputError
from nicety.show.axes import empty_figure, house_style, time_unit
from nicety.show.lines import COLOURS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MOST_TRACKS = 64
_MOST_SLICES = 20_000


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
    """Draw a timeline of resources: a line for each resource of each node, with a bar for each use.

    Raises:
        InputError: there are too many resources or uses for a picture.
    """
    from matplotlib.colors import to_rgb

    tracks: dict[tuple[int, str, int], list[tuple[int, int]]] = {}
    columns = [resources.column(name) for name in ("node", "resource", "unit", "start_ps", "end_ps")]
    for node, resource, unit, start, end in zip(*columns, strict=True):
        tracks.setdefault((node, resource, unit), []).append((start, end))
    if not tracks:
        raise InputError("plot(): the run used no resource that a plot can show")
    if len(tracks) > _MOST_TRACKS or len(resources) > _MOST_SLICES:
        raise InputError(
            f"{len(resources)} uses of {len(tracks)} resources are too many for a picture (at most {_MOST_SLICES} of "
            f"{_MOST_TRACKS}); write a timeline with run.trace(), or plot(kind='breakdown')"
        )
    # Programs may wait long before anything happens, for example for a barrier. The picture begins after that wait.
    # Set-up before it is cut off as well.
    first, last = _extent(tracks.values())
    moves = [bar for (_, resource, _), bars in tracks.items() if resource != "program" for bar in bars]
    first = _after_the_longest_wait(moves, first, last)
    scale, unit = time_unit(last - first)
    figure, axes = empty_figure(9.0, 1.0 + 0.24 * max(len(tracks), 3))
    several = {(node, resource) for node, resource, number in tracks if number > 0} | {
        (node, resource) for node, resource, _ in tracks if resource in {"HPU", "switch port"}
    }
    with house_style():
        names, before = [], None
        for at, ((node, resource, number), bars) in enumerate(tracks.items()):
            name = f"{resource} {number}" if (node, resource) in several else resource
            if resource == "DMA":
                # There is one engine. Uses that overlap have separate lines only so that they are visible.
                name = resource if number == 0 else f"{resource}, also in flight ({number})"
            names.append(f"node {node}: {name}")
            if before not in (None, node):
                axes.axhline(at - 0.5, color="#666666", linewidth=0.6)
            before = node
            # A use that takes no time must be visible, too.
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
                    # A use inside another use is lighter.
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
    """Return the start of the last use after an idle time of more than half the run, or else `first`."""
    before, found = first, first
    for start, end in sorted((start / 1000, end / 1000) for start, end in bars):
        if start - before > (last - first) / 2:
            found = start
        before = max(before, end)
    return found


def _by_depth(bars: Sequence[tuple[int, int]]) -> list[list[tuple[int, int]]]:
    """Return uses by nesting depth, such as a call inside a call, or a command inside a handler."""
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
    """Return the first start and the last end of all uses, in nanoseconds."""
    bars = [bar for track in tracks for bar in track]
    first = min((start for start, _ in bars), default=0)
    return first / 1000, max((end for _, end in bars), default=first + 1000) / 1000
