"""Checks of arguments before they are passed to the extension module, which has integers of limited size."""

from __future__ import annotations

import difflib
import math
import operator
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any, SupportsIndex, cast

from nicety.errors import InputError

if TYPE_CHECKING:
    import numpy.typing as npt

U32 = 2**32 - 1
U63 = 2**63 - 1
U64 = 2**64 - 1

Numbers = int | Iterable[int]
"""One number, or several."""
Names = str | PathLike[str] | Iterable[str | PathLike[str]]
"""One name or path of a file, or several."""
Expressions = str | Iterable[str]
"""One expression, for example of traffic, or several. An expression may contain commas."""
Overrides = str | Iterable[str] | Mapping[str, object]
"""Changes to a card's spec: one text `KEY=VALUE`, several, or a dict of keys to values."""


Faults = str | PathLike[str] | Mapping[str, Any]
"""Faults on one line (`loss=1e-3,seed=7`), as TOML, as the path of a TOML file, or as a dict of the same keys."""
Place = str | PathLike[str]
"""A path of a file, or a name that stands for a file."""


def whole(value: object, name: str, most: int = U64, least: int = 0) -> int:
    """Return a whole number from `least` to `most` as a Python int.

    Raises:
        InputError: `value` is not such a number.
    """
    try:
        number = -1 if isinstance(value, bool) else operator.index(cast(SupportsIndex, value))
    except TypeError:
        number = -1
    if not least <= number <= most:
        raise InputError(f"{name} is a whole number from {least} to {shown(most)}, not {_short(value)}")
    return number


def picoseconds(ns: float, name: str) -> int:
    """Return a time in nanoseconds as whole picoseconds, rounded up.

    Raises:
        InputError: `ns` is no time.
    """
    try:
        # Converted from its decimal digits: 0.1 ns is 100 ps. Its binary fraction would be rounded up to 101 ps.
        ps = math.ceil(Decimal(str(ns)) * 1000)
    except (ArithmeticError, ValueError):
        ps = -1
    if not 0 <= ps <= U64:
        raise InputError(f"{name}: a time is a number of nanoseconds from 0 to 1.8e16, 2^64 picoseconds")
    return ps


def shown(most: int) -> str:
    """Return the maximum of a range as messages print it, for example `2^32 - 1`."""
    return {U32: "2^32 - 1", U63: "2^63 - 1", U64: "2^64 - 1"}.get(most, str(most))


def one_of(values: Sequence[str]) -> str:
    """Return the values as a choice in words, as in `a, b or c`."""
    return f"{', '.join(values[:-1])} or {values[-1]}" if len(values) > 1 else values[0]


_LONG = 60


def _short(value: object) -> str:
    try:
        text = repr(value)
    except ValueError:  # Python does not convert integers of more than 4300 digits to text
        text = "one of thousands of digits"
    return text if len(text) <= _LONG else f"{text[:_LONG]}..."


def meant(word: str, known: Iterable[str]) -> str:
    """Return `; did you mean WORD?` for the known word most similar to `word`. Empty if no known word is similar."""
    by_case = {each.lower(): each for each in known}
    near = difflib.get_close_matches(word.lower(), by_case, n=1)
    return f"; did you mean {by_case[near[0]]}?" if near else ""


def text(value: object, name: str, example: str) -> str:
    """Return `value` if it is a text.

    Raises:
        InputError: `value` is no text.
    """
    if not isinstance(value, str):
        raise InputError(f"{name} is a text such as {example!r}, not {_short(value)}")
    return value


def numbers(value: Numbers, name: str, most: int = U64) -> list[int]:
    """Return one whole number from 0 to `most`, or several, as a list.

    Raises:
        InputError: an item is not such a number.
    """
    try:
        given: list[object] = [value] if isinstance(value, str | bytes) else list(cast("Iterable[int]", value))
    except TypeError:
        given = [value]
    return [whole(each, name, most) for each in given]


def names(value: Names, name: str, example: str) -> list[str]:
    """Return one name or path, or several, as a list of texts.

    Raises:
        InputError: an item is neither a name nor a path.
    """
    try:
        given: list[object] = [value] if isinstance(value, str | PathLike) else list(value)
    except TypeError:
        given = [value]
    return [fspath(each) if isinstance(each, PathLike) else text(each, name, example) for each in given]


def changes(value: Overrides) -> list[str]:
    """Return changes to a card's spec as texts `KEY=VALUE`.

    Raises:
        InputError: the changes are no texts and no dict.
    """
    if isinstance(value, Mapping):
        # Booleans are written as in TOML.
        return [f"{key}={str(each).lower() if isinstance(each, bool) else each}" for key, each in value.items()]
    return names(value, "a change to the card", "hpu.cores=8")


_TYPES = {"float32": "float", "float64": "double", "complex64": "float_complex", "complex128": "double_complex"}
"""Maps numpy's name of an item type to its name in Portals, where the two differ."""


def item_operator(operator: str, datatype: npt.DTypeLike) -> tuple[str, str]:
    """Return the operator of an atomic operation, and the name that Portals has for the type of its items.

    Raises:
        InputError: the operator is no name, or `datatype` is no type.
    """
    if not isinstance(operator, str):
        raise InputError(f"operator is a name such as 'sum', not {operator!r}")
    if not isinstance(datatype, str):
        import numpy as np

        try:
            datatype = np.dtype(datatype).name
        except TypeError:
            raise InputError(f"datatype is a type such as 'uint64' or numpy.float32, not {datatype!r}") from None
    return operator, _TYPES.get(datatype, datatype)


def operand_bytes(operand: bytes | None) -> bytes:
    """Return the operand of a swap as bytes; empty without an operand.

    Raises:
        InputError: the operand is not bytes.
    """
    if operand is not None and not isinstance(operand, bytes | bytearray | memoryview):
        raise InputError(f"operand is the bytes of an item, such as np.uint64(7).tobytes(), not {operand!r}")
    return bytes(operand or b"")
