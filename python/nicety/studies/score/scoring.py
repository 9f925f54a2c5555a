"""The score of a card: deviations of the model from published measurements, and those of a simple baseline."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import cache
from typing import NotRequired, TypedDict, cast

from nicety import _native
from nicety.bench.measured import Progress
from nicety.errors import InputError
from nicety.studies.score.points import measured
from nicety.studies.score.rows import Kind, Point, Published, read_rows

_LINES = {"LAT_CMD_RD": (8, 64), "LAT_CMD_WRRD": (8, 64), "LAT_DMA_RD": (8, 2048), "LAT_DMA_WRRD": (8, 2048)}
"""The two sizes of the baseline's straight line."""
_HOST = ("LAT_DMA_RD", 8)
"""The test and the size that give the constant of a host."""
_TENTH = 0.9


class ScoreRow(TypedDict):
    """A published measurement beside the figure of the model.

    Attributes:
        card: the spec of the card in its host.
        test: the test.
        pattern: the pattern of addresses.
        cache: the state of the host's cache.
        host_offset_bytes: the offset from a line of the host.
        card_offset_bytes: the offset from a line of the card's memory.
        window_bytes: the window of host memory.
        cpus: the number of cores that take frames.
        size_bytes: the size of a transfer, a message or a frame.
        kind: calibrated, seen or predicted.
        unit: the unit of the figures: ns, Gb/s or Mpps.
        published: the published figure.
        model: the figure of the model.
        deviation_percent: the deviation of the model from the published figure.
        baseline: the figure of the baseline, if there is one.
        baseline_deviation_percent: the deviation of the baseline from the published figure.
        source: the table, figure or file of the published figure.
    """

    card: str
    test: str
    pattern: str
    cache: str
    host_offset_bytes: int
    card_offset_bytes: int
    window_bytes: int
    cpus: int
    size_bytes: int
    kind: Kind
    unit: str
    published: float
    model: float
    deviation_percent: float
    baseline: NotRequired[float]
    baseline_deviation_percent: NotRequired[float]
    source: str


class ScoreGroup(TypedDict):
    """The absolute deviations of the predicted rows of a card, of one test or of all.

    Attributes:
        card: the spec of the card in its host.
        test: the test, or empty for all tests together.
        rows: the number of predicted rows.
        median_percent: the median of the absolute deviations.
        p90_percent: 90 % of the absolute deviations are at most this.
        baseline_rows: the number of these rows that have a baseline.
        baseline_median_percent: the same median of the baseline, over its rows.
        baseline_p90_percent: the same 90 % of the baseline, over its rows.
    """

    card: str
    test: str
    rows: int
    median_percent: float
    p90_percent: float
    baseline_rows: int
    baseline_median_percent: NotRequired[float]
    baseline_p90_percent: NotRequired[float]


class ScoreReport(TypedDict):
    """The score of a card.

    Attributes:
        name: the name of the card, or of the file of rows.
        version: the version of nicety.
        counts: the number of rows by kind.
        groups: the deviations of predicted rows by card and test, and of several tests together by card.
        rows: all rows, in the order of their file.
    """

    name: str
    version: str
    counts: dict[Kind, int]
    groups: list[ScoreGroup]
    rows: list[ScoreRow]


@cache
def _shipped() -> Mapping[str, Sequence[Published]]:
    """Return the shipped rows by the name of their study."""
    return {study: read_rows(text, f"studies/{study}/rows.csv") for study, text in _native.score_rows()}


def scored_cards() -> list[str]:
    """Return the names of cards with shipped rows."""
    return list(dict.fromkeys(row.card for rows in _shipped().values() for row in rows))


def shipped_rows(name: str) -> list[Published]:
    """Return the shipped published rows of a card.

    Raises:
        InputError: there are none of this card.
    """
    for study, rows in _shipped().items():
        if name == study:
            return list(rows)
        if own := [row for row in rows if row.card == name]:
            return own
    known = ", ".join(_shipped())
    raise InputError(
        f"{name}: no published rows of this card are shipped; name {known}, or a file with --rows FILE.csv"
    )


def score(
    name: str,
    rows: Sequence[Published] | None = None,
    *,
    tests: Sequence[str] = (),
    progress: Progress | None = None,
) -> ScoreReport:
    """Run the published points of a card, and compare.

    Args:
        name: the card, or for given rows the name in the report.
        rows: the published rows; by default the shipped ones of the card.
        tests: the tests to compare; by default all.
        progress: called with the number of rows done, and the total.

    Raises:
        InputError: no rows, or a row that the benchmark refuses.
    """
    every = list(shipped_rows(name) if rows is None else rows)
    chosen = [row for row in every if not tests or row.test in tests]
    if not chosen:
        raise InputError(f"{name}: no published row is of {', '.join(tests)}; name a test that has rows")
    found = measured(chosen, progress=progress)
    known = {(row.card, row.point): row for row in every}
    made = [_scored(row, found[row.card, row.point], _baseline(row, known, every[0].card)) for row in chosen]
    several = len({row["test"] for row in made}) > 1
    counts = {kind: sum(row["kind"] == kind for row in made) for kind in ("calibrated", "seen", "predicted")}
    return {
        "name": name,
        "version": _native.version(),
        "counts": cast(dict[Kind, int], counts),
        "groups": [*_groups(made), *(_groups(made, together=True) if several and not tests else [])],
        "rows": made,
    }


Known = Mapping[tuple[str, Point], Published]


def _baseline(row: Published, known: Known, first: str) -> float | None:
    """Return the figure of the baseline for a row.

    For a latency: a straight line over the size through two rows of the first card, and the host's constant. The
    constant is the difference of the host's row of 8 B from the first card's. For a bandwidth: the row of the first
    card, unchanged.
    """
    if row.test not in _LINES:
        same = known.get((first, row.point)) if row.card != first else None
        return same.value if same is not None else None
    ends = _LINES[row.test]
    line = [_warm(known, first, row.test, size) for size in ends]
    host = [_warm(known, card, *_HOST) for card in (row.card, first)]
    if None in line or None in host:
        return None
    (low, high), (own, other) = cast(list[float], line), cast(list[float], host)
    return low + (high - low) * (row.size - ends[0]) / (ends[1] - ends[0]) + own - other


def _warm(known: Known, card: str, test: str, size: int) -> float | None:
    window = 4096 if "CMD" in test else 8192
    row = known.get((card, (test, "seq", "hwarm", 0, 0, window, 1, size)))
    return row.value if row is not None else None


def _scored(row: Published, model: float, baseline: float | None) -> ScoreRow:
    made: ScoreRow = {
        "card": row.card,
        "test": row.test,
        "pattern": row.pattern,
        "cache": row.cache,
        "host_offset_bytes": row.host_offset,
        "card_offset_bytes": row.card_offset,
        "window_bytes": row.window,
        "cpus": row.cpus,
        "size_bytes": row.size,
        "kind": row.kind,
        "unit": row.unit,
        "published": row.value,
        "model": model,
        "deviation_percent": (model / row.value - 1) * 100,
        "source": row.source,
    }
    if baseline is not None:
        made["baseline"] = baseline
        made["baseline_deviation_percent"] = (baseline / row.value - 1) * 100
    return made


def scored(rows: Sequence[Published], *, overrides: Sequence[str] = ()) -> list[ScoreRow]:
    """Return rows beside the figures of the model with changed values."""
    found = measured(rows, overrides=overrides)
    return [_scored(row, found[row.card, row.point], None) for row in rows]


def _groups(rows: Sequence[ScoreRow], *, together: bool = False) -> list[ScoreGroup]:
    groups: dict[tuple[str, str], list[ScoreRow]] = defaultdict(list)
    for row in rows:
        if row["kind"] == "predicted":
            groups[row["card"], "" if together else row["test"]].append(row)
    made = []
    for (card, test), own in groups.items():
        off = [abs(row["deviation_percent"]) for row in own]
        simple = [abs(row["baseline_deviation_percent"]) for row in own if "baseline_deviation_percent" in row]
        group: ScoreGroup = {
            "card": card,
            "test": test,
            "rows": len(own),
            "median_percent": quantile(off, 0.5),
            "p90_percent": quantile(off, _TENTH),
            "baseline_rows": len(simple),
        }
        if simple:
            group["baseline_median_percent"] = quantile(simple, 0.5)
            group["baseline_p90_percent"] = quantile(simple, _TENTH)
        made.append(group)
    return made


def quantile(values: Sequence[float], share: float) -> float:
    """Return the smallest value that at least a share of the values does not exceed."""
    ordered = sorted(values)
    at = next(number for number in range(1, len(ordered) + 1) if number >= share * len(ordered))
    return ordered[at - 1]
