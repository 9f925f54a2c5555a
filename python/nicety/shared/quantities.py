"""Quantities with units, read by the parser of specs: `64KiB`, `0.5 MiB` or `1/3 us`."""

from __future__ import annotations

from nicety import _native


def meaning(text: str) -> str:
    """A quantity in its base unit, in any notation: 100 ns, 100ns and 0.1 us are all `100000 ps`.

    A list with commas is a list of quantities. Other text stays unchanged.
    """
    return ",".join(map(_native.in_base_unit, text.split(",")))


def size_bytes(text: str) -> int:
    """A size, in bytes."""
    return _native.parse_quantity("size", text)


def whole_number(text: str) -> int:
    """A number of items."""
    return _native.parse_quantity("count", text)


def duration_ps(text: str) -> int:
    """A time, in picoseconds."""
    return _native.parse_quantity("time", text)
