"""A sweep as one page of HTML without other files: plots, times by stage, the table, specs and hashes."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

from nicety.errors import InputError
from nicety.shared.checks import Place
from nicety.shared.files import check_place, write_whole
from nicety.shared.typed import checked
from nicety.show.html import table_html
from nicety.sweeps.grid import Point, named
from nicety.sweeps.results import Sweep
from nicety.sweeps.store import Damaged, Outcome, Store

MOST_CELLS = 200_000
"""Maximum number of table cells on a page, some 3 MB."""

_UNITS = {
    "bytes_per_s": "bytes/s",
    "bits_per_s": "bit/s",
    "per_s": "1/s",
    "percent": "%",
    "bytes": "bytes",
    "cycles": "cycles",
    **{unit: unit for unit in ("ps", "ns", "us", "ms", "s")},
}
_WORDS = {"nic": "card", "sizes": "size (bytes)"}


@checked
def sweep_report(folder: Place, output: Place) -> None:
    """Write a page about a sweep: plots, times by stage, the table, and the cards with their hashes.

    Args:
        folder: the folder of the sweep, which may not be complete yet.
        output: the file to write.

    Raises:
        InputError: the folder has no sweep, a file of it is damaged, or the page cannot be written.
    """
    path = Path(output)
    check_place(str(path), path)
    store = Store(Path(folder))
    about = store.about()
    points = [Point(each["values"], each["key"]) for each in about["points"]]
    found = Sweep(points, _outcomes(store, points), folder=store.folder)
    write_whole(path, _page(about, found).encode())


def _outcomes(store: Store, points: Sequence[Point]) -> list[Outcome | None]:
    """Return the outcome of each point, or None for a point that has not run.

    Raises:
        InputError: the files of some outcomes are damaged.
    """
    outcomes: list[Outcome | None] = []
    damaged: list[Damaged] = []
    for point in points:
        try:
            outcomes.append(store.outcome(point.key))
        except Damaged as error:
            damaged.append(error)
    if damaged:
        more = f"; {len(damaged) - 1} more points are damaged" if len(damaged) > 1 else ""
        raise InputError(f"{damaged[0]}{more}; run the sweep again with this folder to repeat damaged points")
    return outcomes


def _page(about: Mapping[str, Any], found: Sweep) -> str:
    table = found.table
    rows = [list(row) for row in zip(*(table.column(name) for name in table.columns), strict=True)]
    shown = rows[: max(1, MOST_CELLS // max(1, len(table.columns)))]
    left_out = "" if len(shown) == len(rows) else f" The page has the first {len(shown)} rows of {len(rows)}."
    axes = list(points[0].values) if (points := found.points) else []
    labels = {name: label(name) for name in table.columns}
    data = {"columns": table.columns, "rows": shown, "axes": axes, "labels": labels}
    options = named(about["options"])
    state = f"{found.done} of {len(found.points)} points are done, and {len(found.failed)} failed.{left_out}"
    parts = {
        "title": escape(f"nicety sweep: {about['run']}"),
        "about": escape(f"{options or 'Without further options'}. {state} nicety {about['nicety']}."),
        "library": _file("uPlot.iife.min.js"),
        "library_style": _file("uPlot.min.css"),
        "style": _file("page.css"),
        "script": _file("page.js"),
        "data": _script_json(data),
        "failures": _failures(found),
        "specs": _specs(found),
        "keys": _keys(found),
    }
    text = _file("page.html")
    # Marks are replaced in one pass, so that a mark in inserted text is not replaced.
    pieces = text.split("$$")
    return "".join(piece if at % 2 == 0 else parts[piece] for at, piece in enumerate(pieces))


def label(column: str) -> str:
    """Return a column's name in words with its unit: `Half round trip (ns)` for `half_round_trip_ns`."""
    for ending, unit in _UNITS.items():
        words = column.removesuffix(f"_{ending}")
        if words != column:
            return f"{_words(words)} ({unit})"
    return _words(_WORDS.get(column, column))


def _words(name: str) -> str:
    words = name.replace("_", " ").replace(".", " ")
    return words[:1].upper() + words[1:]


def _file(name: str) -> str:
    return files("nicety.sweeps").joinpath("assets", name).read_text(encoding="utf-8")


def _script_json(data: Any) -> str:
    """Return JSON for a script in a page. `<` is escaped, and numbers that JSON does not have become null."""
    finite = {**data, "rows": [[_finite(cell) for cell in row] for row in data["rows"]]}
    return json.dumps(finite, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")


def _finite(cell: Any) -> Any:
    return str(cell) if isinstance(cell, float) and cell - cell != 0 else cell


def _failures(found: Sweep) -> str:
    rows = [[named(point.values), text] for point, text in found.failed]
    return _section("Failures", "Points that failed", [["point", "error"], *rows]) if rows else ""


def _specs(found: Sweep) -> str:
    """Return a table of all cards in the results, with the hashes of their specs."""
    rows: dict[tuple[str, ...], None] = {}
    for outcome in found.outcomes:
        result = outcome.get("result") if outcome is not None else None
        manifest = result.get("manifest") if isinstance(result, Mapping) else None
        if isinstance(manifest, Mapping) and isinstance(manifest.get("specs"), Mapping):
            changes = ", ".join(map(str, manifest.get("overrides") or []))
            for name, spec in manifest["specs"].items():
                rows[name, str(spec.get("title", "")), changes, str(spec.get("spec_hash", ""))] = None
    if not rows:
        return ""
    return _section("Cards", "Specs and their hashes", [["card", "title", "changes", "hash"], *map(list, rows)])


def _keys(found: Sweep) -> str:
    pairs = zip(found.points, found.outcomes, strict=True)
    rows = [
        [str(number), outcome["status"] if outcome is not None else "not run", point.key]
        for number, (point, outcome) in enumerate(pairs)
    ]
    return _section("Points", "Points and the hashes of all that goes into them", [["point", "status", "key"], *rows])


def _section(heading: str, title: str, rows: Sequence[Sequence[str]]) -> str:
    return f"<details><summary>{escape(heading)}</summary>{table_html(title, rows)}</details>"
