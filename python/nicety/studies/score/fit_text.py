"""A fitted spec as text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from nicety.show.columns import align, counted, distinct, fixed, percent
from nicety.show.tables import Table
from nicety.studies.score.fit import FitReport, FittedRow, Verdict
from nicety.studies.score.rows import Published

_FITTED = ("# line", "test", "size", "measured", "before", "after", "%", "key", "from", "to", "effect %")
_PREDICTED = ("# test", "size", "CPUs", "pattern", "cache", "measured", "model", "%", "unit")


def fit_text(report: FitReport) -> str:
    """Return a fit as text: the fitted rows, the predicted rows, and the verdict."""
    fitted = [
        [
            str(row["line"]),
            row["test"],
            str(row["size_bytes"]),
            f"{fixed(row['published'], 1)} {row['unit']}",
            fixed(row["model_before"], 1),
            fixed(row["model"], 1),
            percent(row["deviation_percent"]),
            row["key"],
            row["before"],
            row["value"],
            fixed(row["effect_percent"], 1),
        ]
        for row in report["fitted"]
    ]
    predicted = [
        [
            row["test"],
            *map(str, (row["size_bytes"], row["cpus"], row["pattern"], row["cache"])),
            *(fixed(value, 1) for value in (row["published"], row["model"])),
            percent(row["deviation_percent"]),
            row["unit"],
        ]
        for row in report["rows"]
    ]
    lines = [
        f"# nicety fit of {report['name']} from {report['base']}, v{report['version']}",
        f"# {report['rows_file']}: {counted(len(fitted), 'row')} fitted, {len(predicted)} predicted",
        "",
        "# fitted rows; effect: change of the row from half the value to the double",
        *align([_FITTED, *fitted], (0, 2, 3, 4, 5, 6, 10)),
    ]
    if predicted:
        lines += ["", "# predicted rows", *align([_PREDICTED, *predicted], (1, 2, 5, 6, 7))]
    return "\n".join([*lines, "", f"# verdict: {verdict_text(report['verdict'])}"]) + "\n"


def fit_table(report: FitReport, rows: Sequence[Published]) -> Table:
    """Return a fit as a table: the fitted rows, of kind `calibrated` and with their keys, and the predicted rows.

    Args:
        report: the fit.
        rows: the measurements.
    """
    given = {row.line: row for row in rows}
    made: list[dict[str, Any]] = [_as_row(each, given[each["line"]]) for each in report["fitted"]]
    made += [dict(row) for row in report["rows"]]
    return Table([(name, [row.get(name) for row in made]) for name in distinct(name for row in made for name in row)])


def _as_row(fitted: FittedRow, row: Published) -> dict[str, Any]:
    return {
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
        **{name: fitted[name] for name in ("unit", "published", "model", "deviation_percent")},
        "source": row.source,
        **{name: fitted[name] for name in ("key", "before", "value", "model_before", "effect_percent")},
    }


def verdict_text(found: Verdict) -> str:
    """Return a verdict in words."""
    count = found["predicted_rows"]
    if "p90_percent" in found:
        high = f"{fixed(100 * found['high'], 1)} %" if "high" in found else "any value"
        return (
            f"90 % of {count} predicted rows deviate by at most {fixed(found['p90_percent'], 1)} %, "
            f"median {fixed(found['median_percent'], 1)} %;\n"
            f"#   interval of a figure: {fixed(100 * found['low'], 1)} % to {high} of the model's"
        )
    if not count:
        return f"no row is predicted; an interval needs {found['needed_rows']} rows without fit"
    return (
        f"too few rows for an interval: {counted(count, 'predicted row')}, {found['needed_rows']} needed; "
        f"largest deviation {fixed(found['largest_percent'], 1)} %"
    )
