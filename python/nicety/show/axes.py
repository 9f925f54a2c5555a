"""Pictures of benchmarks and runs, drawn with matplotlib: readable in colour, in grey, and for the colour-blind.

Functions that draw import matplotlib themselves: its import takes longer than most commands, and few of them draw.
"""

from __future__ import annotations

import io
import math
import textwrap
from collections.abc import Callable, Sequence
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any

from nicety.errors import InputError
from nicety.shared.files import PICTURES, write_whole

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


RC: dict[Any, Any] = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "svg.hashsalt": "nicety",  # the same picture is the same file
    "svg.fonttype": "path",
}

# Ratio of values from which an axis is logarithmic.
_LOGARITHMIC = 30
_MOST_TICKS = 11
# Units of time, and the nanoseconds from which each is used: smaller values would have too many decimals.
_TIMES = (("s", 1e9, 1e10), ("ms", 1e6, 1e7), ("µs", 1e3, 1e4))
# Bytes per second from which gigabytes are used.
GIGABYTES = 1e9


def house_style() -> AbstractContextManager[None]:
    """The settings of matplotlib under which every picture is drawn and saved."""
    import matplotlib as mpl

    return mpl.rc_context(RC)


def save(figure: Figure, path: str | PathLike[str]) -> None:
    """Write a picture in the format of its file's extension.

    Raises:
        InputError: the extension is none of `PICTURES`, or the file cannot be written.
    """
    check_ending(path)
    ending = fspath(path)[-4:].lower()
    # Without a date, the same picture is the same file.
    metadata = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}.get(ending)
    drawn = io.BytesIO()
    with house_style():
        figure.savefig(drawn, format=ending[1:], dpi=200, metadata=metadata)
    write_whole(path, drawn.getvalue())


def check_ending(path: str | PathLike[str]) -> None:
    """Refuse a file that is no picture by its extension."""
    if not fspath(path).lower().endswith(PICTURES):
        raise InputError(f"{fspath(path)}: a picture's name ends with {', '.join(PICTURES[:-1])} or {PICTURES[-1]}")


def empty_figure(width: float, height: float) -> tuple[Figure, Axes]:
    """A figure of this size in inches, and its only axes."""
    from matplotlib.figure import Figure

    with house_style():
        figure = Figure(figsize=(width, height), layout="constrained")
        axes = figure.add_subplot()
    axes.set_axisbelow(True)
    return figure, axes


# Letters of notes per inch of a picture's width.
_LETTERS = 13


def set_titles(axes: Axes, title: str, notes: Sequence[str]) -> None:
    """A picture's title, and notes below it in smaller letters."""
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
    """The title of a picture with several axes, and notes below it."""
    lines = _note_lines(figure.get_size_inches()[0], notes)
    figure.suptitle("\n".join([title, *lines]), x=0.01, ha="left", fontsize=10)


def _note_lines(width: float, notes: Sequence[str]) -> list[str]:
    return textwrap.wrap(", ".join(note for note in notes if note), round(width * _LETTERS))


def size_text(size: float) -> str:
    """A size in short form: 8, 512, 4Ki, 1Mi."""
    whole = round(size)
    for power, suffix in ((30, "Gi"), (20, "Mi"), (10, "Ki")):
        if whole >= 1 << power and whole % (1 << power) == 0:
            return f"{whole >> power}{suffix}"
    return str(whole)


def time_unit(most_ns: float) -> tuple[float, str]:
    """The divisor and the name of the time unit that is readable for times up to this one."""
    return next(((scale, unit) for unit, scale, least in _TIMES if most_ns >= least), (1.0, "ns"))


def size_axis(axes: Axes, sizes: Sequence[int], shown: Callable[[int], str] = size_text) -> None:
    """A size axis, doubling to the right; 0 is a step before 1. The first and the last size are named."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

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
    """The sizes with a tick: the first, the last, and those between that have room, powers first."""
    if len(sizes) <= 1:
        return list(sizes)
    place = [math.log2(max(size, 0.5)) for size in sizes]
    room = (place[-1] - place[0]) / _MOST_TICKS
    named = {sizes[0]: place[0], sizes[-1]: place[-1]}
    powers = [(size, at) for size, at in zip(sizes, place, strict=True) if size & (size - 1) == 0]
    least = max(1, math.ceil(len(powers) / _MOST_TICKS))
    # At even distances up to the last, if these are hardly longer.
    every = next((step for step in (least, least + 1) if (len(powers) - 1) % step == 0), least)
    for size, at in (*powers[::every], *zip(sizes, place, strict=True)):
        if all(abs(at - other) >= room for other in named.values()):
            named[size] = at
    return sorted(named)


def value_axis(axes: Axes, values: Sequence[float], label: str, *, share: bool = False) -> None:
    """A vertical axis: from 0 on, or logarithmic if the values are far apart; from 0 to 1 for a share."""
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


def _even_ticks(most: float) -> list[float]:
    """Ticks from 0 to the first one that is not below `most`."""
    from matplotlib.ticker import MaxNLocator

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
