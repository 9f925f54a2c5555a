"""Quantities with units, such as `64KiB`, `0.5 MiB` or `1/3 us`. The parser is that of specs."""

from __future__ import annotations

from nicety import _native


def meaning(text: str) -> str:
    """Return a quantity in its base unit: 100 ns, 100ns and 0.1 us all become `100000 ps`.

    Each item of a list with commas is converted. Text that is no quantity stays unchanged.
    """
    return ",".join(map(_native.in_base_unit, text.split(",")))


def size_bytes(text: str) -> int:
    """Return the number of bytes of a size such as `64KiB`."""
    return _native.parse_quantity("size", text)


def whole_number(text: str) -> int:
    """Return the number in a count such as `10k`."""
    return _native.parse_quantity("count", text)


def duration_ps(text: str) -> int:
    """Return the picoseconds of a time such as `1.5 us`."""
    return _native.parse_quantity("time", text)
