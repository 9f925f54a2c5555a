"""The score of a card by the studies' claims, as text and as a picture."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING

from nicety.show.columns import align, counted, distinct, fixed
from nicety.studies.score.cards import USES, CardScore, ClaimRow, Deviations
from nicety.studies.study import load_study

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_WIDTH = 116
_HEAD = ("# measurement", "published", "model", "deviation", "use", "met")


def card_text(report: CardScore) -> str:
    """Return a score as text: a table of all rows, reasons, deviations, and calibrated values."""
    counts = ", ".join(f"{report['counts'][use]} {use}" for use in USES)
    if without := sum(row["met"] is None for row in report["rows"]):
        counts += f"; {without} of them not measured"
    lines = [
        f"# nicety score of {report['name']}, v{report['version']}{', quick' if report['quick'] else ''}",
        f"# rows by use: {counts}",
        "# met: equal to the published number at its precision, within the published bound, or the claim holds",
    ]
    for which in ("predicted", "seen"):
        lines += _wrapped(f"{which}: {deviations_text(report[which])}")
    for study in distinct(row["study"] for row in report["rows"]):
        rows = [row for row in report["rows"] if row["study"] == study]
        lines += ["", *_wrapped(f"{study}: {_sources(rows)}"), *align([_HEAD, *(_cells(row) for row in rows)])]
    for reason in distinct(row["reason"] for row in report["rows"] if row["met"] is None and row["reason"]):
        lines += ["", *_wrapped(f"not measured: {reason}")]
    for seen in distinct(row["seen"] for row in report["rows"] if row["seen"]):
        lines += ["", *_wrapped(f"seen: {seen}")]
    if report["calibrated"]:
        values = [[each["key"], each["value"], each["against"]] for each in report["calibrated"]]
        lines += ["", *align([("# calibrated", "value", "against"), *values])]
    return "\n".join(lines) + "\n"


def _sources(rows: Sequence[ClaimRow]) -> str:
    """Return the paper, and the places of rows in it."""
    sources = distinct(row["source"] for row in rows)
    paper = load_study(rows[0]["study"]).paper.title
    places = [source.removeprefix(f"{paper}, ") for source in sources if source != paper]
    return f"{paper}, {'; '.join(places)}" if places else paper


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, _WIDTH, initial_indent="# ", subsequent_indent="#   ")


def deviations_text(found: Deviations) -> str:
    """Return deviations in words."""
    parts = [f"{counted(found['rows'], 'row')} with a number"]
    if "median_percent" in found:
        median, most = fixed(found["median_percent"], 1), fixed(found["p90_percent"], 1)
        parts.append(f"absolute deviation: median {median} %, 90 % of rows at most {most} %")
    if found["without_number"]:
        parts.append(f"{found['met_without_number']} of {found['without_number']} rows without a number are met")
    return "; ".join(parts)


def _cells(row: ClaimRow) -> list[str]:
    deviation = "-"
    if "deviation_percent" in row:
        deviation = f"{fixed(row['deviation_percent'], 1)} {'points' if row['unit'] == '%' else '%'}"
    met = {True: "yes", False: "no", None: "-"}[row["met"]]
    return [row["title"], row["published_text"], row["model_text"], deviation, row["use"], met]


def card_figure(report: CardScore) -> Figure:
    """Draw the deviation of each row with a published number, by use."""
    from nicety.show.axes import deviation_axis, empty_figure, house_style, set_figure_titles
    from nicety.show.lines import COLOURS, MARKERS

    rows = [row for row in report["rows"] if "deviation_percent" in row]
    figure, axes = empty_figure(7.2, 1.6 + 0.22 * len(rows))
    with house_style():
        axes.axvline(0, color="#444444", linewidth=0.8)
        for number, use in enumerate(USES):
            own = [(at, row["deviation_percent"]) for at, row in enumerate(rows) if row["use"] == use]
            if own:
                places, values = zip(*own, strict=True)
                axes.plot(values, places, MARKERS[number], color=COLOURS[number], linestyle="none", label=use)
        axes.set_yticks(range(len(rows)), [row["title"] for row in rows], fontsize=7)
        # Markers at the first and the last row have room.
        axes.set_ylim(len(rows) - 0.4, -0.6)
        deviations = [row["deviation_percent"] for row in rows]
        deviation_axis(axes, deviations, "Deviation (%, points for percentages)")
        set_figure_titles(figure, f"Score of {report['name']}", [f"predicted: {deviations_text(report['predicted'])}"])
        if rows:
            figure.legend(frameon=False, fontsize=8, loc="outside lower left", ncols=len(USES))
    return figure
