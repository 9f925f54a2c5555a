"""Checks of numbers before they go to the extension module, whose integers have ends."""

from __future__ import annotations

import operator
from typing import SupportsIndex, cast

from nicety.errors import InputError

U32 = 2**32 - 1
U64 = 2**64 - 1
MOST_ITERATIONS = 10_000_000
MOST_WINDOW = 65536


def whole(value: object, name: str, most: int = U64) -> int:
    """A whole number from 0 to `most`, as Python's own int.

    Raises:
        InputError: where it is anything else.
    """
    try:
        number = -1 if isinstance(value, bool) else operator.index(cast(SupportsIndex, value))
    except TypeError:
        number = -1
    if not 0 <= number <= most:
        raise InputError(f"{name} is a whole number from 0 to {_shown(most)}, not {_short(value)}")
    return number


def _shown(most: int) -> str:
    return {U32: "2^32 - 1", U64: "2^64 - 1"}.get(most, str(most))


_LONG = 60


def _short(value: object) -> str:
    try:
        text = repr(value)
    except ValueError:  # Python does not print integers of thousands of digits
        text = "one of thousands of digits"
    return text if len(text) <= _LONG else f"{text[:_LONG]}..."


def text(value: object, name: str, example: str) -> str:
    """A text.

    Raises:
        InputError: where it is anything else.
    """
    if not isinstance(value, str):
        raise InputError(f"{name} is a text such as {example!r}, not {_short(value)}")
    return value
