"""Pictures of benchmarks and runs, drawn with matplotlib. Colour-blind readers and grey prints can tell curves apart.

Functions import matplotlib themselves, since its import takes longer than most commands, and few commands draw.
"""

from __future__ import annotations

import functools
import io
import math
import textwrap
from collections.abc import Callable, Sequence
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any

from nicety.errors import InputError
from nicety.shared.files import PICTURES, write_whole
from nicety.shared.ranges import format_size

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


RC: dict[Any, Any] = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "svg.hashsalt": "nicety",  # so that drawing a picture again gives an identical file
    "svg.fonttype": "path",
}

# Pixels of an inch of a picture in a notebook. Screens with twice as many get a sharp picture, too.
_SCREEN = 84
# Distances of ticks, times a power of ten.
ROUND = (1, 2, 2.5, 5, 10)
# Minimum ratio of the largest to the smallest value for a logarithmic axis.
_LOGARITHMIC = 30
_MOST_TICKS = 11
# Inches of a picture's width for a tick with its text.
_TICK = 0.62
# Unit of time, its nanoseconds, and the minimum in nanoseconds of the largest value for which it is used.
_TIMES = (("s", 1e9, 1e10), ("ms", 1e6, 1e7), ("µs", 1e3, 1e4))
# Minimum bytes per second of the largest value for a scale in gigabytes per second.
GIGABYTES = 1e9


def house_style() -> AbstractContextManager[None]:
    """Return a context with the settings of matplotlib for all pictures."""
    import matplotlib as mpl

    return mpl.rc_context(RC)


def save(figure: Figure, path: str | PathLike[str]) -> None:
    """Write a picture in the format of its file's extension.

    Raises:
        InputError: the extension is none of `PICTURES`, or the file cannot be written.
    """
    check_ending(path)
    drawn = io.BytesIO()
    write_picture(figure, drawn, fspath(path)[-3:].lower())
    write_whole(path, drawn.getvalue())


def write_picture(figure: Figure, drawn: io.BytesIO, kind: str) -> None:
    """Draw a figure as `svg`, `png` or `pdf`."""
    # A picture file without a date is identical when it is drawn again.
    metadata = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(kind)
    with house_style():
        figure.savefig(drawn, format=kind, dpi=200, metadata=metadata)


def check_ending(path: str | PathLike[str]) -> None:
    """Raise an error if a file's extension is not that of a picture."""
    if not fspath(path).lower().endswith(PICTURES):
        raise InputError(f"{fspath(path)}: a picture's name ends with {', '.join(PICTURES[:-1])} or {PICTURES[-1]}")


@functools.cache
def _picture() -> type[Figure]:
    """Return the class of all pictures: a figure that a notebook shows, also without matplotlib's own set-up."""
    from matplotlib.figure import Figure

    class Picture(Figure):
        def _repr_png_(self) -> tuple[bytes, dict[str, int]]:
            drawn = io.BytesIO()
            with house_style():
                self.savefig(drawn, format="png", dpi=2 * _SCREEN)
            width, height = (round(_SCREEN * inches) for inches in self.get_size_inches())
            return drawn.getvalue(), {"width": width, "height": height}

    return Picture


def new_figure(width: float, height: float) -> Figure:
    """Return a figure without axes, with the given size in inches."""
    with house_style():
        return _picture()(figsize=(width, height), layout="constrained")


def empty_figure(width: float, height: float) -> tuple[Figure, Axes]:
    """Return a figure with the given size in inches, and its only axes."""
    figure = new_figure(width, height)
    with house_style():
        axes = figure.add_subplot()
    axes.set_axisbelow(True)
    return figure, axes


# Number of characters of notes per inch of a picture's width.
_LETTERS = 13


def set_titles(axes: Axes, title: str, notes: Sequence[str]) -> None:
    """Set the title of axes, and notes below the title in smaller letters."""
    figure = axes.get_figure(root=True)
    lines = _note_lines(figure.get_size_inches()[0], notes) if figure else []
    axes.set_title(title, loc="left", fontsize=10, pad=6 + 13 * len(lines))
    if lines:
        axes.annotate(
            "\n".join(lines),
            (0, 1),
            (0, 6),
            xycoords="axes fraction",
            textcoords="offset points",
            fontsize=8,
            color="#444444",
            annotation_clip=False,
        ).set_in_layout(False)


def set_figure_titles(figure: Figure, title: str, notes: Sequence[str]) -> None:
    """Set the title of a picture with several axes, and notes below the title."""
    lines = _note_lines(figure.get_size_inches()[0], notes)
    figure.suptitle("\n".join([title, *lines]), x=0.01, ha="left", fontsize=10)


def _note_lines(width: float, notes: Sequence[str]) -> list[str]:
    return textwrap.wrap(", ".join(note for note in notes if note), round(width * _LETTERS))


def time_unit(most_ns: float) -> tuple[float, str]:
    """Return the divisor of nanoseconds, and the name, of a readable time unit for times up to `most_ns`."""
    return next(((scale, unit) for unit, scale, least in _TIMES if most_ns >= least), (1.0, "ns"))


def size_axis(axes: Axes, sizes: Sequence[int], shown: Callable[[int], str] = format_size) -> None:
    """Set up a horizontal axis of sizes, logarithmic to base 2, with 0 before 1. First and last size have ticks."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    if sizes and sizes[0] == 0:
        axes.set_xscale("symlog", base=2, linthresh=1, linscale=0.5)
    else:
        axes.set_xscale("log", base=2)
    named = _named_sizes(sizes, _most_ticks(axes))
    axes.xaxis.set_major_locator(FixedLocator([float(tick) for tick in named]))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda size, _: shown(round(size))))
    if len(sizes) == 1:
        axes.set_xlim(max(sizes[0], 1) / 2, max(sizes[0], 1) * 2)
    axes.set_xlabel("Message size (B)")


def _most_ticks(axes: Axes) -> int:
    """Return the number of ticks that fit below axes, which share the width of their picture with those beside."""
    figure, place = axes.get_figure(root=True), axes.get_subplotspec()
    if figure is None or place is None:
        return _MOST_TICKS
    columns: int = place.get_gridspec().ncols
    return max(2, min(_MOST_TICKS, round(float(figure.get_size_inches()[0]) / columns / _TICK)))


def _named_sizes(sizes: Sequence[int], most: int = _MOST_TICKS) -> list[int]:
    """Return the sizes with a tick: the first, the last, and sizes with enough distance. Powers of 2 go first."""
    if len(sizes) <= 1:
        return list(sizes)
    place = [math.log2(max(size, 0.5)) for size in sizes]
    room = (place[-1] - place[0]) / most
    named = {sizes[0]: place[0], sizes[-1]: place[-1]}
    powers = [(size, at) for size, at in zip(sizes, place, strict=True) if size & (size - 1) == 0]
    least = max(1, math.ceil(len(powers) / most))
    # Take one step more if the ticks then end evenly at the last power.
    every = next((step for step in (least, least + 1) if (len(powers) - 1) % step == 0), least)
    for size, at in (*powers[::every], *zip(sizes, place, strict=True)):
        if all(abs(at - other) >= room for other in named.values()):
            named[size] = at
    return sorted(named)


def value_axis(axes: Axes, values: Sequence[float], label: str, *, share: bool = False) -> None:
    """Set up a vertical axis: from 0, or logarithmic if `values` differ by a large factor, or 0 to 1 for a share."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, MultipleLocator, NullLocator

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


# Percent of a deviation above which an axis of deviations is logarithmic beyond 1 %: two decades.
_LARGE_DEVIATION = 100
# Minimum percent at the end of an axis of deviations.
_LEAST_DEVIATION = 0.1


def deviation_axis(axes: Axes, values: Sequence[float], label: str) -> None:
    """Set up a horizontal axis of deviations in percent with 0, and with room for markers at its ends.

    It is linear, unless a deviation is more than two decades above 1 %. Then it is logarithmic beyond 1 %, and its
    label says so.
    """
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    least, most = min([0.0, *values]), max([0.0, *values])
    largest = max(-least, most, _LEAST_DEVIATION)
    if largest > _LARGE_DEVIATION:
        axes.set_xscale("symlog", linthresh=1)
        label = f"{label} (log scale beyond 1 %)"
        beyond = [float(f"{step}e{power}") for power in range(math.ceil(math.log10(largest)) + 1) for step in (1, 3)]
        axes.set_xlim(*(_beyond(end) for end in (least, most)))
    else:
        beyond = _even_ticks(largest)
        room = 0.04 * (most - least or largest)
        axes.set_xlim(least - room, most + room)
    low, high = axes.get_xlim()
    ticks = [*(-tick for tick in reversed(beyond) if tick), 0.0, *(tick for tick in beyond if tick)]
    shown = [tick for tick in ticks if low <= tick <= high]
    if axes.get_xscale() == "symlog" and len(shown) > _MOST_TICKS:
        shown = [tick for tick in shown if f"{abs(tick):e}".startswith(("0", "1"))]
    axes.xaxis.set_major_locator(FixedLocator(shown))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.grid(visible=True, axis="x", color="#dddddd", linewidth=0.6)
    axes.set_xlabel(label)


def _beyond(end: float) -> float:
    """Return the limit of a logarithmic axis beyond an outermost value."""
    return end * 1.3 if abs(end) > 1 else math.copysign(max(abs(end), _LEAST_DEVIATION) * 1.3, end)


def _even_ticks(most: float) -> list[float]:
    """Return ticks at equal distances, from 0 to the first tick that is not below `most`."""
    from matplotlib.ticker import MaxNLocator

    ticks = MaxNLocator(7, steps=ROUND).tick_values(0, most)
    last = next(at for at, tick in enumerate(ticks) if tick >= most * (1 - 1e-9))
    return [float(tick) for tick in ticks[: last + 1]]


def _decade_ticks(least: float, most: float) -> list[float]:
    """Return logarithmic ticks that enclose the values: 1, 2, 5, 10, ...; over more than three decades 1, 10, ..."""
    steps = (1,) if math.log10(most / least) > 3 else (1, 2, 5)  # noqa: PLR2004, see above
    first, last = math.floor(math.log10(least)), math.ceil(math.log10(most))
    ticks = [float(f"{step}e{power}") for power in range(first, last + 1) for step in steps]
    begin = max(at for at, tick in enumerate(ticks) if tick <= least * (1 + 1e-9))
    end = next(at for at, tick in enumerate(ticks) if tick >= most * (1 - 1e-9))
    return ticks[begin : end + 1]
