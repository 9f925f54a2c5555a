"""Text in aligned columns, and numbers as text."""

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
    """Return a line for each row, with aligned columns. The columns in `right` are flush right.

    Control characters in a cell are escaped, so that a cell is one line and a terminal does not act on it.
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
    """Return a number with `digits` decimals. Halves of its decimal form are rounded up: 0.6225 becomes 0.623.

    Rounding the binary fraction would turn 0.6225 to .622 and 5.6225 to .623.
    """
    if not math.isfinite(value):
        return str(value)
    exact = Decimal(repr(float(value)))
    return f"{exact.quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP, _WIDE):f}"


def percent(value: float) -> str:
    """Return a percentage with a decimal place. A zero has no sign."""
    # The sum with 0 takes the sign from a rounded zero.
    return fixed(round(value, 1) + 0.0, 1)


def merged_order(orders: Sequence[Sequence[str]]) -> list[str]:
    """Merge several orders of names. A new name is inserted behind the name that precedes it in its own order."""
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
    """Return the items without repetitions, in the order of their first appearance."""
    return list(dict.fromkeys(items))


def counted(count: int, noun: str, plural: str = "") -> str:
    """Return a count with its noun in the singular or the plural: 1 row, 2 rows. The plural is by default with an s."""
    return f"{count} {noun}" if count == 1 else f"{count} {plural or f'{noun}s'}"
