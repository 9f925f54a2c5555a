"""The longest handlers that keep up with the wire, found by bisection to the cycle, and the break-even packet size."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib.resources import as_file, files
from pathlib import Path
from typing import TYPE_CHECKING

from nicety._generated.types import LineRateRow
from nicety.bench.line_rate import check_line_rate
from nicety.studies.claims import Ours
from nicety.studies.study import Measured, Options

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_EIGHT = ("hpu.cores=8",)
_CARD = "spin-discrete"
_PACKET = 4096
_SMALLEST = 1
_MOST_NOPS = 4096


def _last(first: int, last: int, holds: Callable[[int], bool]) -> int:
    """Return the last number from `first` to `last` for which a monotonic condition holds."""
    while first < last:
        middle = (first + last + 1) // 2
        first, last = (middle, last) if holds(middle) else (first, middle - 1)
    return first


def line_rate(options: Options) -> Measured:
    """Measure the break-even size, and the longest handlers that keep up."""
    with as_file(files("nicety.studies.spin") / "keep_busy.c") as handler:
        return _line_rate(handler, options)


def _line_rate(handler: Path, options: Options) -> Measured:
    @cache
    def row(nops: int, size: int) -> LineRateRow:
        state = nops.to_bytes(4, "little")
        report = check_line_rate(
            handler, nics=[_CARD], packet_sizes=[size], overrides=_EIGHT, state=state, seed=options.seed
        )
        return report["rows"][0]

    def longest(size: int) -> float:
        """Return the time in nanoseconds of the longest handler that keeps up with packets of this size."""
        nops = _last(0, _MOST_NOPS, lambda nops: row(nops, size)["sustains_line_rate"])
        return row(nops, size)["handler_ns"]

    message_rate = row(0, _SMALLEST)["packets_per_s"]
    break_even = _last(_SMALLEST, _PACKET, lambda size: row(0, size)["packets_per_s"] >= message_rate * (1 - 1e-9))
    # The time between packets never falls with the packet size, so the smallest size has the shortest time. A test
    # checks other sizes.
    any_size = min(longest(size) for size in (_SMALLEST, break_even, break_even + 1))
    full = longest(_PACKET)
    sizes = [1 << power for power in range(13)]
    budgets = {size: row(0, size)["handler_budget_ns"] for size in sorted({*sizes, break_even})}

    def level(time_ns: float) -> dict[int, float]:
        return dict.fromkeys(budgets, time_ns)

    def figure() -> Figure:
        from nicety.show.curves import figure_of
        from nicety.show.lines import Curve

        curves = [
            Curve("8 HPUs: the time between packets, times 8", budgets),
            Curve("the longest handler that keeps up at any size", level(any_size), 1, 1, marked=False),
            Curve("the longest that keeps up with 4 KiB packets", level(full), 2, 1, marked=False),
        ]
        return figure_of(curves, title="Time for a handler between packets", x="Packet size (B)", y="Handler time (ns)")

    return Measured(
        {
            "break-even": Ours(break_even, why="g over G: 6.7 ns are 335 bytes at 20 ps/B"),
            "any-size": Ours(any_size, why="8 x 6.7 ns are 53.6 ns; the paper cuts the decimals off"),
            "full-packets": Ours(
                full, why="8 x 4096 B x 20 ps/B are 655.36 ns, rounded down to cycles of 0.4 ns; the paper rounds"
            ),
        },
        figures={"line-rate": ("Time budget of handlers, with 8 handler cores", figure)},
    )
