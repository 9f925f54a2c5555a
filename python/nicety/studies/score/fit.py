"""Specs of users' own cards: keys of another card's spec, fitted to measurements."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import NotRequired, TypedDict

from nicety import _native
from nicety.bench.measured import Progress
from nicety.errors import InputError
from nicety.shared.cards import show, written
from nicety.studies.score.rows import Published
from nicety.studies.score.scoring import ScoreRow, quantile, scored
from nicety.studies.score.solve import Key, Model, effect, key_of, solve

ENOUGH = 10
"""The number of predicted rows for an interval. With fewer, 90 % of rows are all rows."""


class FittedRow(TypedDict):
    """A key that was fitted to a row.

    Attributes:
        line: the line of the row in the file.
        test: the test.
        size_bytes: the size.
        unit: the unit of the figures.
        key: the key.
        before: its value in the spec that was the base.
        value: the fitted value.
        published: the measured figure.
        model_before: the figure of the model with the base's values.
        model: the figure of the model with all fitted values.
        deviation_percent: the deviation of the model from the measured figure.
        effect_percent: the change of the model's figure from half the fitted value to the double.
    """

    line: int
    test: str
    size_bytes: int
    unit: str
    key: str
    before: str
    value: str
    published: float
    model_before: float
    model: float
    deviation_percent: float
    effect_percent: float


class Verdict(TypedDict):
    """The deviations of predicted rows, and an interval if there are enough.

    Attributes:
        predicted_rows: the number of predicted rows.
        needed_rows: the number of rows for an interval.
        median_percent: the median of the absolute deviations.
        p90_percent: 90 % of the absolute deviations are at most this; without enough rows it is missing.
        largest_percent: the largest absolute deviation.
        low: the factor from a figure of the model to the lower end of the interval.
        high: the factor to the upper end; missing if the deviation is 100 % or more.
    """

    predicted_rows: int
    needed_rows: int
    median_percent: NotRequired[float]
    p90_percent: NotRequired[float]
    largest_percent: NotRequired[float]
    low: NotRequired[float]
    high: NotRequired[float]


class FitReport(TypedDict):
    """A fitted spec.

    Attributes:
        name: the name of the new card.
        base: the card that it extends.
        version: the version of nicety.
        rows_file: the file of rows.
        fitted: the fitted rows.
        rows: the predicted rows.
        verdict: the deviations of the predicted rows.
        spec: the new card's file.
    """

    name: str
    base: str
    version: str
    rows_file: str
    fitted: list[FittedRow]
    rows: list[ScoreRow]
    verdict: Verdict
    spec: str


def fit(
    rows: Sequence[Published], base: str, name: str, *, place: str = "rows", progress: Progress | None = None
) -> FitReport:
    """Fit a card's spec to measurements.

    Args:
        rows: the measurements. A row with `fit` names a key, which is fitted to it; the other rows are predicted.
        base: the name or path of the spec that the new card extends.
        name: the name of the new card.
        place: the name of the rows' file in messages.
        progress: called with the number of steps done, and the total.

    Raises:
        InputError: no row names a key, two rows name one, or a row does not identify its key.
    """
    own, keys = _fitted_rows(rows, base, place)
    model = Model(keys, {name: key.number for name, key in keys.items()})
    before = {row.line: model.figure(row) for row in own}
    solve(model, own, place, progress)
    fitted = [_fitted(model, row, keys[row.fit], before[row.line]) for row in own]
    predicted = [row for row in rows if not row.fit]
    made = scored(predicted, overrides=model.overrides()) if predicted else []
    return {
        "name": name,
        "base": base,
        "version": _native.version(),
        "rows_file": place,
        "fitted": fitted,
        "rows": made,
        "verdict": verdict([row["deviation_percent"] for row in made]),
        "spec": _spec(base, name, fitted, keys, place),
    }


def _fitted_rows(rows: Sequence[Published], base: str, place: str) -> tuple[list[Published], dict[str, Key]]:
    for row in rows:
        if row.card != base:
            raise InputError(
                f"{place}: line {row.line}: the row is of {row.card}, and the spec of {base} is fitted; "
                "leave the column card out, or write --from"
            )
    own = [row for row in rows if row.fit]
    if not own:
        raise InputError(f"{place}: no row names a key in the column fit; write one, such as bus.pcie.read_latency")
    keys: dict[str, Key] = {}
    lines: dict[str, int] = {}
    for row in own:
        if row.fit in keys:
            raise InputError(
                f"{place}: line {row.line}: {row.fit} is fitted to line {lines[row.fit]} already; "
                "leave fit empty in one of them"
            )
        keys[row.fit], lines[row.fit] = key_of(base, row, f"{place}: line {row.line}"), row.line
    return own, keys


def _fitted(model: Model, row: Published, key: Key, before: float) -> FittedRow:
    figure = model.figure(row)
    return {
        "line": row.line,
        "test": row.test,
        "size_bytes": row.size,
        "unit": row.unit,
        "key": row.fit,
        "before": key.text(key.number),
        "value": key.text(model.values[row.fit]),
        "published": row.value,
        "model_before": before,
        "model": figure,
        "deviation_percent": (figure / row.value - 1) * 100,
        "effect_percent": effect(model, row, row.fit) * 100,
    }


def verdict(deviations_percent: Sequence[float]) -> Verdict:
    """Return the verdict of predicted rows' deviations.

    A true figure t and the model's m have a deviation d = m / t - 1. With 90 % of |d| at most p, t is between
    m / (1 + p) and m / (1 - p) for 90 % of rows.
    """
    off = [abs(value) for value in deviations_percent]
    made: Verdict = {"predicted_rows": len(off), "needed_rows": ENOUGH}
    if off:
        made["median_percent"], made["largest_percent"] = quantile(off, 0.5), max(off)
    if len(off) >= ENOUGH:
        share = quantile(off, 0.9) / 100
        made["p90_percent"], made["low"] = 100 * share, 1 / (1 + share)
        if share < 1:
            made["high"] = 1 / (1 - share)
    return made


def _spec(base: str, name: str, fitted: Sequence[FittedRow], keys: dict[str, Key], place: str) -> str:
    own = str(Path(base).absolute()) if base.endswith(".toml") else base
    title = f"{name}, fitted from {show(base)['name']}"
    lines = [
        f"# {name}: {show(base)['name']} with values that nicety specs fit fitted to measurements.",
        f"extends = {json.dumps(own, ensure_ascii=False)}",
        f"name = {json.dumps(name, ensure_ascii=False)}",
        f"title = {json.dumps(title, ensure_ascii=False)}",
    ]
    for row in fitted:
        section, _, key = row["key"].rpartition(".")
        value = written(row["value"], keys[row["key"]].quantity)
        source = json.dumps(f"nicety specs fit, {place}", ensure_ascii=False)
        size = f"{row['size_bytes']} B"
        against = json.dumps(f"{row['published']:g} {row['unit']}, {row['test']} of {size}, line {row['line']}")
        lines += [f"[{section}]"]
        lines += [f'{key} = {{ value = {value}, kind = "calibrated", source = {source}, against = {against} }}']
    return "\n".join(_joined(lines)) + "\n"


def _joined(lines: Sequence[str]) -> list[str]:
    """Return lines with one head for each section."""
    order: dict[str, list[str]] = {"": []}
    section = ""
    for line in lines:
        if line.startswith("["):
            section = line
            order.setdefault(section, [])
        else:
            order[section].append(line)
    head, *rest = order.pop("")
    return [head, "", *rest, *(text for head, body in order.items() for text in ("", head, *body))]
