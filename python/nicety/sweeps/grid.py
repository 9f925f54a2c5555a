"""Points of a grid of parameters, and the keys of their results."""

from __future__ import annotations

import functools
import hashlib
import inspect
import itertools
import json
import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from nicety import _native
from nicety.errors import Error, InputError
from nicety.shared.checks import _short
from nicety.shared.quantities import meaning

Value = bool | int | float | str
"""A parameter's value at a point."""

MOST_POINTS = 1_000_000


@dataclass(frozen=True)
class Point:
    """A point of a grid.

    Attributes:
        values: the key is a parameter's name, the value its value at the point.
        key: a hash over the values, the function or command, the cards and files that they name, and nicety's version.
            Equal quantities have the same key: 100 ns, 100ns and 0.1 us.
    """

    values: Mapping[str, Value]
    key: str


def points_of(
    grid: Mapping[str, Iterable[object]], what: object, options: Mapping[str, object], named: Iterable[object] = ()
) -> list[Point]:
    """Return all combinations of a grid's values. The last parameter changes fastest.

    Args:
        grid: the key is a parameter's name, the value its values.
        what: the function or command, in the form for JSON.
        options: the key is a parameter's name, the value its value at all points.
        named: further values that may name cards and files.

    Raises:
        InputError: a parameter has no values, a value is repeated or is no number, text or boolean, or there are more
            than a million points.
    """
    axes = {name: _axis(name, values) for name, values in grid.items()}
    count = math.prod(map(len, axes.values()))
    if count > MOST_POINTS:
        raise InputError(f"the grid has {count} points; a sweep has at most {MOST_POINTS}")
    inputs = _Inputs()
    common = {
        "nicety": _native.version(),
        "what": what,
        "options": {name: meant_by(value) for name, value in options.items()},
        "inputs": inputs.of([*options.values(), *named]),
    }
    points = []
    for chosen in itertools.product(*axes.values()):
        values = dict(zip(axes, chosen, strict=True))
        meant = {name: meant_by(value) for name, value in values.items()}
        document = {**common, "values": meant, "named": inputs.of(chosen)}
        digest = hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()
        points.append(Point(values, digest[:32]))
    return points


def _axis(name: str, values: Iterable[object]) -> list[Value]:
    if isinstance(values, str | bytes | Mapping) or not isinstance(values, Iterable):
        raise InputError(f"{name}: the values of a parameter are several, as in [8, 64], not {_short(values)}")
    axis = [plain(name, value) for value in values]
    if not axis:
        raise InputError(f"{name}: there is no value; write at least one")
    seen: dict[str, Value] = {}
    for value in axis:
        text = json.dumps(meant_by(value))
        if text in seen:
            first = "" if seen[text] == value else f", first as {_short(seen[text])}"
            raise InputError(f"{name}: {_short(value)} appears twice{first}")
        seen[text] = value
    return axis


def meant_by(value: object) -> object:
    """Return a value; a text that is a quantity is converted to its base unit."""
    return meaning(value) if isinstance(value, str) else value


def plain(name: str, value: object) -> Value:
    """Return a value in the form for JSON: numpy's numbers become Python's, and paths become texts.

    Raises:
        InputError: the value is no finite number, text, boolean or path.
    """
    if isinstance(value, PathLike):
        value = fspath(value)
    elif hasattr(value, "item") and not isinstance(value, bool | int | float | str):
        value = value.item()
    if not isinstance(value, bool | int | float | str) or (isinstance(value, float) and not math.isfinite(value)):
        raise InputError(f"{name}: a value is a number, a text, True or False, not {_short(value)}")
    return value


def named(values: Mapping[str, object]) -> str:
    """Return values with their names as one line."""
    texts = {name: str(value).lower() if isinstance(value, bool) else value for name, value in values.items()}
    return ", ".join(f"{name} {text}" for name, text in texts.items())


def given(fn: Callable[..., Any]) -> dict[str, Value]:
    """Map name or position of each argument of a `functools.partial` to its value. Empty for another function."""
    if not isinstance(fn, functools.partial):
        return {}
    own = {str(at): value for at, value in enumerate(fn.args)} | fn.keywords
    return {**given(fn.func), **{name: plain(name, value) for name, value in own.items()}}


def identity(fn: Callable[..., Any]) -> list[object]:
    """Return a function's name and source, and the arguments of a `functools.partial`, in the form for JSON."""
    if isinstance(fn, functools.partial):
        return [*identity(fn.func), given(fn)]
    named = fn if hasattr(fn, "__qualname__") else type(fn)
    try:
        source = inspect.getsource(named)
    except (OSError, TypeError):
        source = ""
    return [f"{named.__module__}.{named.__qualname__}", source]


class _Inputs:
    """Hashes of the cards and files that values name. Each card and file is read once."""

    def __init__(self) -> None:
        self._known: dict[str, str | None] = {}
        self._cards = {spec["name"] for spec in json.loads(_native.specs())}

    def of(self, values: Iterable[object]) -> dict[str, str]:
        """Map the name of each card or file in `values` to its hash."""
        texts = [text for value in values if isinstance(value, str) for text in [value, *re.split("[,=]", value)]]
        found = {text: self._hash(text) for text in texts}
        return {text: digest for text, digest in found.items() if digest is not None}

    def _hash(self, text: str) -> str | None:
        if text not in self._known:
            self._known[text] = self._read(text)
        return self._known[text]

    def _read(self, text: str) -> str | None:
        if text in self._cards or text.endswith(".toml"):
            try:
                digest: str = json.loads(_native.spec_show(text, []))["hash"]
            except Error:
                pass
            else:
                return digest
        try:
            return hashlib.sha256(Path(text).read_bytes()).hexdigest()
        except (OSError, ValueError):
            return None
