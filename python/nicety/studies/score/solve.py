"""Values of keys that give measured figures: bisection on the simulation."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from nicety.errors import InputError, RunError
from nicety.shared.cards import show
from nicety.shared.checks import meant
from nicety.show.columns import fixed
from nicety.studies.score.points import measured
from nicety.studies.score.rows import Published

_NUMBER = re.compile(r"([0-9.]+(?:e-?[0-9]+)?)\s*(.*)")
_WHOLE = {"count", "size"}
"""Quantities with whole numbers."""
_NUMBERS = {*_WHOLE, "ratio", "time", "gap", "rate", "frequency"}
_DOUBLINGS = 10
"""The search ends at the value's 1024-fold, at its 1024th part, and at 0."""
_MOVES = 0.01
"""A row identifies a key if halving or doubling the key moves the row by at least this share."""
_ALIKE = 0.05
"""Two keys are told apart if the determinant of their effects is at least this share of the products in it."""
_CLOSE = 1e-4
_NEAR = 0.02
"""The largest deviation of a row that a key was fitted to."""
_BISECTIONS = 40
_ROUNDS = 8


@dataclass(frozen=True)
class Key:
    """A number of a spec that is fitted.

    Attributes:
        name: the key.
        number: its number in the spec.
        unit: its unit, or empty.
        whole: whether it is a whole number.
        quantity: its quantity.
    """

    name: str
    number: float
    unit: str
    whole: bool
    quantity: str

    def text(self, number: float) -> str:
        """Return the key's value with a number, as in a spec."""
        digits = str(round(number)) if self.whole else f"{float(f'{number:.5g}'):f}".rstrip("0").rstrip(".")
        return f"{digits} {self.unit}".strip()


@dataclass
class Model:
    """The model of a card, with changed values.

    Attributes:
        keys: the fitted keys, by name.
        values: their present numbers.
        known: figures that were measured already, by values and line.
    """

    keys: Mapping[str, Key]
    values: dict[str, float]
    known: dict[tuple[object, ...], float] = field(default_factory=dict)

    def overrides(self, changed: Mapping[str, float] | None = None) -> list[str]:
        """Return the present values as overrides, some of them changed."""
        numbers = {**self.values, **(changed or {})}
        return [f"{name}={key.text(numbers[name])}" for name, key in self.keys.items()]

    def figure(self, row: Published, changed: Mapping[str, float] | None = None) -> float:
        """Return the model's figure of a row."""
        overrides = self.overrides(changed)
        at = (row.line, *overrides)
        if at not in self.known:
            self.known[at] = measured([row], overrides=overrides)[row.card, row.point]
        return self.known[at]


def key_of(card: str, row: Published, place: str) -> Key:
    """Return the key that is fitted to a row.

    Raises:
        InputError: the card has no such key, or the key is no number above 0.
    """
    found: dict[str, dict[str, Any]] = {value["key"]: value for value in show(card)["parameters"]}
    if row.fit not in found:
        raise InputError(f"{place}: {card} has no key {row.fit!r}{meant(row.fit, found)}; see nicety specs show {card}")
    value = found[row.fit]
    match = _NUMBER.fullmatch(value["value"].strip())
    if value["quantity"] not in _NUMBERS or match is None:
        raise InputError(f"{place}: {row.fit} is no number but {value['value']!r}; name a key with a number")
    if not float(match[1]):
        raise InputError(f"{place}: {row.fit} is 0 in {card}, which turns a part off; name a key above 0")
    whole = value["quantity"] in _WHOLE
    return Key(row.fit, float(match[1]), match[2], whole, value["quantity"])


def solve(model: Model, rows: Sequence[Published], place: str, step: Callable[[int, int], None] | None = None) -> None:
    """Fit each row's key to the row, one after another, until all rows have their nearest figures.

    Figures in steps do not reach every value, so a row within `_NEAR` of its value is met.

    Args:
        model: the model; its values are changed.
        rows: the rows, each with a key of its own.
        place: the file's name in messages.
        step: called with the number of fits done, and the largest total.

    Raises:
        InputError: a row does not identify its key, two keys are not told apart, or a row is out of reach.
    """
    _check_effects(model, rows, place)
    solved: dict[int, dict[str, float]] = {}
    for turn in range(_ROUNDS):
        before = dict(model.values)
        for number, row in enumerate(rows):
            if step is not None:
                step(turn * len(rows) + number, _ROUNDS * len(rows))
            # Another search with the same other values begins at other numbers, and may end on another step.
            others = {name: value for name, value in model.values.items() if name != row.fit}
            if _off(model, row) > _CLOSE and solved.get(row.line) != others:
                model.values[row.fit] = _solved(model, row, f"{place}: line {row.line}")
                solved[row.line] = others
        if model.values == before:
            break
    if all(_off(model, row) <= _NEAR for row in rows):
        return
    worst = max(rows, key=lambda row: _off(model, row))
    raise InputError(
        f"{place}: line {worst.line}: after {_ROUNDS} rounds of all keys the model gives "
        f"{_shown(model.figure(worst), worst)}, not {_shown(worst.value, worst)}; fit fewer keys"
    )


def effect(model: Model, row: Published, key: str) -> float:
    """Return the relative change of a row from half a key's value to the double."""
    number = model.values[key]
    low, high = (_try(model, row, key, number * factor) for factor in (0.5, 2))
    here = model.figure(row)
    low, high = (here if value is None else value for value in (low, high))
    return (high - low) / here


def _off(model: Model, row: Published, changed: Mapping[str, float] | None = None) -> float:
    return abs(model.figure(row, changed) / row.value - 1)


def _try(model: Model, row: Published, key: str, number: float) -> float | None:
    """Return a row's figure with another value of a key, or None where the spec refuses the value or the run fails."""
    try:
        return model.figure(row, {key: number})
    except (InputError, RunError):
        return None


def _check_effects(model: Model, rows: Sequence[Published], place: str) -> None:
    own = {(row.line, key.fit): effect(model, row, key.fit) for row in rows for key in rows}
    for row in rows:
        if abs(own[row.line, row.fit]) < _MOVES:
            low, high = (model.keys[row.fit].text(model.values[row.fit] * factor) for factor in (0.5, 2))
            raise InputError(
                f"{place}: line {row.line}: {row.test} does not identify {row.fit}: from {low} to {high} the model's "
                f"{_shown(model.figure(row), row)} move by {fixed(100 * own[row.line, row.fit], 2)} %; name another key"
            )
    for number, one in enumerate(rows):
        for other in rows[number + 1 :]:
            same = own[one.line, one.fit] * own[other.line, other.fit]
            crossed = own[one.line, other.fit] * own[other.line, one.fit]
            if abs(same - crossed) < _ALIKE * (abs(same) + abs(crossed)):
                raise InputError(
                    f"{place}: lines {one.line} and {other.line}: {one.fit} and {other.fit} move both rows alike, so "
                    "neither is identified; fit one of them, or measure another quantity"
                )


def _solved(model: Model, row: Published, place: str) -> float:
    """Return the number of a row's key with the nearest figure; the present one if none is nearer."""
    key = model.keys[row.fit]
    tried = _ladder(model, row)
    ends = next(
        (
            (one, other)
            for (one, first), (other, second) in pairwise(tried)
            if (first - row.value) * (second - row.value) <= 0
        ),
        None,
    )
    if ends is None:
        (low, at_low), (high, at_high) = tried[0], tried[-1]
        raise InputError(
            f"{place}: {row.fit} from {key.text(low)} to {key.text(high)} gives {_shown(at_low, row)} to "
            f"{_shown(at_high, row)}, not {_shown(row.value, row)}; another value of the spec or the row itself is "
            "wrong"
        )
    number, _, _ = plateau(model, row, *ends)
    if _off(model, row) <= _off(model, row, {row.fit: number}):
        number = model.values[row.fit]
    if _off(model, row, {row.fit: number}) > _NEAR:
        raise InputError(
            f"{place}: {row.fit} moves {row.test} in steps: the nearest is "
            f"{_shown(model.figure(row, {row.fit: number}), row)} at {key.text(number)}, not "
            f"{_shown(row.value, row)}; name another key"
        )
    return number


def plateau(model: Model, row: Published, low: float, high: float) -> tuple[float, float, float]:
    """Return the number of a row's key between two others with the nearest figure, and the ends of such numbers.

    Figures in steps, as those of timestamps, are equal for a range of numbers; its middle is the result. At the edges
    of steps figures may go up and down, so the nearest one is taken from all numbers of the search.
    """
    key = model.keys[row.fit]
    figures: dict[float, float] = {}

    def figure(number: float) -> float:
        figures[number] = model.figure(row, {row.fit: number})
        return figures[number]

    sign = 1 if figure(high) >= figure(low) else -1
    _edge(key, low, high, lambda number: sign * (figure(number) - row.value) < 0)
    nearest = min(figures, key=lambda number: abs(figures[number] - row.value))
    there = figures[nearest]

    def has_it(number: float) -> bool:
        return abs(model.figure(row, {row.fit: number}) - there) <= _CLOSE * row.value

    _, first = _edge(key, low, nearest, lambda number: not has_it(number))
    last, _ = _edge(key, nearest, high, has_it)
    middle = float(key.text((first + last) / 2).split()[0])
    return middle if has_it(middle) else nearest, first, last


def _edge(key: Key, low: float, high: float, is_low: Callable[[float], bool]) -> tuple[float, float]:
    """Return the last number on the low side and the first one that is not, between two numbers."""
    if not is_low(low):
        return low, low
    if is_low(high):
        return high, high
    for _ in range(_BISECTIONS):
        middle = float(round((low + high) / 2)) if key.whole else (low + high) / 2
        if key.text(middle) in {key.text(low), key.text(high)}:
            break
        low, high = (middle, high) if is_low(middle) else (low, middle)
    return low, high


def _ladder(model: Model, row: Published) -> list[tuple[float, float]]:
    """Return numbers of a row's key, in order, with the row's figures, until the row's value is between two of them."""
    key, number = model.keys[row.fit], model.values[row.fit]
    here = model.figure(row)
    tried = [(number, here)]
    ends = [False, False]
    for power in range(1, _DOUBLINGS + 1):
        for side, factor in ((0, 0.5**power), (1, 2.0**power)):
            if ends[side]:
                continue
            at = max(1.0, number * factor) if key.whole else number * factor
            found = None if at in {value for value, _ in tried} else _try(model, row, row.fit, at)
            if found is None:
                ends[side] = True
                continue
            tried = sorted([*tried, (at, found)])
            if (found - row.value) * (here - row.value) <= 0:
                return tried
    zero = _try(model, row, row.fit, 0.0)
    return [(0.0, zero), *tried] if zero is not None else tried


def _shown(value: float, row: Published) -> str:
    return f"{fixed(value, 2)} {row.unit}"
