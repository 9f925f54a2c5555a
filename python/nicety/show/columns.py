"""Text in aligned columns, and numbers in it."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import TypeVar

from nicety.shared.text import printable

_GAP = "  "
_WIDE = Context(prec=400)


_T = TypeVar("_T", bound=Hashable)


def align(rows: Sequence[Sequence[str]], right: Iterable[int] = ()) -> list[str]:
    """Lines with aligned cells; the columns in `right` are flush right.

    A cell is one line, and safe for a terminal: control characters in it are escaped.
    """
    flush = set(right)
    rows = [[printable(cell) for cell in row] for row in rows]
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))] if rows else []
    lines = []
    for row in rows:
        cells = [
            cell.rjust(width) if i in flush else cell.ljust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append(_GAP.join(cells).rstrip())
    return lines


def fixed(value: float, digits: int = 3) -> str:
    """A number with `digits` decimals, with halves of its decimal form rounded up, so that equal figures look equal.

    Rounding the binary fraction would turn 0.6225 to .622 and 5.6225 to .623.
    """
    if not math.isfinite(value):
        return str(value)
    exact = Decimal(repr(float(value)))
    return f"{exact.quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP, _WIDE):f}"


def merged_order(orders: Sequence[Sequence[str]]) -> list[str]:
    """One order of all names. Each name comes after the name that precedes it at its first appearance."""
    merged: list[str] = []
    for order in orders:
        at = 0
        for name in order:
            if name in merged:
                at = merged.index(name) + 1
            else:
                merged.insert(at, name)
                at += 1
    return merged


def distinct(items: Iterable[_T]) -> list[_T]:
    """Items in their order, each once."""
    return list(dict.fromkeys(items))
