"""Quantities in the notation of specs, `64KiB`, `0.5 MiB` or `1/3 us`; the spec reader has refused everything else."""

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


_HERTZ = {"Hz": 1, "kHz": 10**3, "MHz": 10**6, "GHz": 10**9}
_PICOSECONDS_A_BYTE = {"ps/B": 1, "ns/B": 10**3, "us/B": 10**6}
_BITS = {"b/s": 1, "kb/s": 10**3, "Mb/s": 10**6, "Gb/s": 10**9, "Tb/s": 10**12}
_BYTES_A_SECOND = {f"{unit}/s": 8 * size for unit, size in _BYTES.items() if unit not in {"B", "TiB"}}
_UNITS = {
    "B": _BYTES,
    "ps": _PICOSECONDS,
    "Hz": _HERTZ,
    "ps/B": _PICOSECONDS_A_BYTE,
    "b/s": {**_BITS, **_BYTES_A_SECOND},
}
"""Units of each quantity, by its base unit."""
_QUANTITY = re.compile(r"\s*([0-9]+(?:[./][0-9]+)?)\s*([^\W\d_][\w/]*)\s*")


def meaning(text: str) -> str:
    """A quantity in its base unit, in any notation: 100 ns, 100ns and 0.1 us are all `100000 ps`.

    A list with commas is a list of quantities. Other text stays unchanged.
    """
    return ",".join(_meaning(item) for item in text.split(","))


def _meaning(text: str) -> str:
    match = _QUANTITY.fullmatch(text)
    if match is None:
        return text
    for base, units in _UNITS.items():
        if match[2] in units:
            try:
                value = Fraction(match[1]) * units[match[2]]
            except (ValueError, ZeroDivisionError):
                return text
            # A bandwidth is a gap.
            return f"{8 * 10**12 / value} ps/B" if base == "b/s" and value else f"{value} {base}"
    return text


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
