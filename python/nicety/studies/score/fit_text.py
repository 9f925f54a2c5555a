"""A fitted spec as text."""

from __future__ import annotations

from nicety.show.columns import align, fixed, percent
from nicety.studies.score.fit import FitReport, Verdict

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
        f"# {report['rows_file']}: {len(fitted)} rows fitted, {len(predicted)} predicted",
        "",
        "# fitted rows; effect: change of the row from half the value to the double",
        *align([_FITTED, *fitted], (0, 2, 3, 4, 5, 6, 10)),
    ]
    if predicted:
        lines += ["", "# predicted rows", *align([_PREDICTED, *predicted], (1, 2, 5, 6, 7))]
    return "\n".join([*lines, "", f"# verdict: {verdict_text(report['verdict'])}"]) + "\n"


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
        f"too few rows for an interval: {count} predicted rows, {found['needed_rows']} needed; "
        f"largest deviation {fixed(found['largest_percent'], 1)} %"
    )
