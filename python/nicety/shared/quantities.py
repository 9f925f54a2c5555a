"""Quantities as specs write them, `64KiB`, `0.5 MiB` or `1/3 us`; the spec reader has refused everything else."""

from __future__ import annotations

import re
from fractions import Fraction

_BYTES = {
    "B": 1,
    "kB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "KiB": 1 << 10,
    "MiB": 1 << 20,
    "GiB": 1 << 30,
    "TiB": 1 << 40,
}
# The micro sign exists twice in Unicode.
_PICOSECONDS = {
    "ps": 1,
    "ns": 10**3,
    "us": 10**6,
    "\N{MICRO SIGN}s": 10**6,
    "\N{GREEK SMALL LETTER MU}s": 10**6,
    "ms": 10**9,
    "s": 10**12,
}


def size_bytes(text: str) -> int:
    """A size, in bytes."""
    return _scaled(text, _BYTES)


def duration_ps(text: str) -> int:
    """A time, in picoseconds."""
    return _scaled(text, _PICOSECONDS)


def _scaled(text: str, units: dict[str, int]) -> int:
    match = re.fullmatch(r"\s*([0-9./]+)\s*(\w+)\s*", text)
    if match is None or match[2] not in units:
        raise ValueError(f"{text!r} has no unit of {', '.join(units)}")
    value = Fraction(match[1]) * units[match[2]]
    if value.denominator != 1:
        raise ValueError(f"{text!r} is no whole number of {next(iter(units))}")
    return value.numerator
