"""The score of a card as text and as a picture."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nicety.show.columns import align, counted, distinct, fixed, percent
from nicety.studies.score.scoring import ScoreGroup, ScoreReport, ScoreRow

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_GROUP = ("card", "rows", "median", "90 %", "baseline", "its 90 %")
_ALL = "All tests"
_BASELINE = (
    "# baseline, its 90 %: the same two of a simple guess: latencies on a line through two measured sizes, "
    "rates of the first card"
)
_ROW = (
    "test",
    "size",
    "host",
    "card",
    "window",
    "CPUs",
    "pattern",
    "cache",
    "published",
    "model",
    "%",
    "baseline %",
    "use",
)


def score_text(report: ScoreReport, *, all_rows: bool = False) -> str:
    """Return a score as text: a table of deviations for each test.

    Args:
        report: the score.
        all_rows: whether tables of all rows follow.
    """
    counts = report["counts"]
    calibrated = counted(counts["calibrated"], "row")
    lines = [
        f"# nicety score of {report['name']}, v{report['version']}",
        f"# {calibrated} calibrated, {counts['seen']} seen before, {counts['predicted']} predicted",
        "# absolute deviations of predicted rows in %: the median, and the value that 90 % of rows do not exceed",
    ]
    if any("baseline_median_percent" in group for group in report["groups"]):
        lines.append(_BASELINE)
    for test in distinct(group["test"] for group in report["groups"]):
        own = [_group(group) for group in report["groups"] if group["test"] == test]
        lines += ["", f"# {test or _ALL}", *align([[f"# {_GROUP[0]}", *_GROUP[1:]], *own], range(1, len(_GROUP)))]
    for card in distinct(row["card"] for row in report["rows"]) if all_rows else ():
        rows = [_row(row) for row in report["rows"] if row["card"] == card]
        right = [*range(1, 6), *range(8, len(_ROW) - 1)]
        lines += [
            "",
            f"# {card}: {' or '.join(distinct(row['unit'] for row in report['rows'] if row['card'] == card))}",
            *align([[f"# {_ROW[0]}", *_ROW[1:]], *rows], right),
        ]
    return "\n".join(lines) + "\n"


def _group(group: ScoreGroup) -> list[str]:
    simple = [_percent(group.get("baseline_median_percent")), _percent(group.get("baseline_p90_percent"))]
    own = [_percent(group["median_percent"]), _percent(group["p90_percent"])]
    return [group["card"], str(group["rows"]), *own, *simple]


def _row(row: ScoreRow) -> list[str]:
    numbers = (row["size_bytes"], row["host_offset_bytes"], row["card_offset_bytes"], row["window_bytes"], row["cpus"])
    point = [row["test"], *map(str, numbers), row["pattern"], row["cache"]]
    figures = [fixed(row["published"], 1), fixed(row["model"], 1), percent(row["deviation_percent"])]
    return [*point, *figures, _percent(row.get("baseline_deviation_percent")), row["kind"]]


def _percent(value: float | None) -> str:
    return "-" if value is None else percent(value)


def score_figure(report: ScoreReport) -> Figure:
    """Draw the shares of predicted rows over their absolute deviation: curves of model and baseline for each card."""
    from nicety.show.axes import deviation_axis, empty_figure, house_style, set_titles
    from nicety.show.lines import COLOURS

    figure, axes = empty_figure(7.2, 4.4)
    every: list[float] = []
    with house_style():
        for number, card in enumerate(distinct(row["card"] for row in report["rows"])):
            rows = [row for row in report["rows"] if row["card"] == card and row["kind"] == "predicted"]
            for key, style, what in (
                ("deviation_percent", "-", "model"),
                ("baseline_deviation_percent", ":", "baseline"),
            ):
                values = [dict[str, object](row).get(key) for row in rows]
                off = sorted(abs(value) for value in values if isinstance(value, float))
                every += off
                if off:
                    shares = [(at + 1) / len(off) * 100 for at in range(len(off))]
                    colour = COLOURS[number % len(COLOURS)]
                    axes.step(off, shares, where="post", color=colour, linestyle=style, label=f"{card}, {what}")
        deviation_axis(axes, every, "Absolute deviation (%)")
        axes.set_ylabel("Predicted rows (%)")
        axes.set_xlim(left=0)
        axes.grid(visible=True, axis="y", color="#dddddd", linewidth=0.6)
        axes.set_ylim(0, 101)
        tests = distinct(group["test"] for group in report["groups"] if group["test"])
        set_titles(axes, f"Score of {report['name']}: {', '.join(tests)}", [])
        axes.legend(frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(0, -0.14))
    return figure
