"""A study's report: as text, as HTML, and as a folder with a page, pictures and data."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nicety.errors import InputError
from nicety.shared import files as _files
from nicety.show.columns import align, distinct
from nicety.show.tables import Table as Columns
from nicety.show.tables import csv_text, report_table
from nicety.studies.claims import KINDS, SEEN, Finding, deviation_text, shown_kind

if TYPE_CHECKING:
    from nicety.studies.study import Measured, StudyReport, Table

_WIDTH = 116
_HEAD = ("Claim", "Paper", "Ours", "Deviation", "Kind", "Met")


def study_text(report: StudyReport) -> str:
    """Return a report as text: a table per section, followed by explanations and further tables."""
    findings = report["claims"]
    lines = [f"# nicety reproduce {report['study']} v{report['version']}", f"# {report['paper']}"]
    lines += textwrap.wrap(f"{report['source']}", _WIDTH, initial_indent="# ", subsequent_indent="# ")
    if changed := _changed(report):
        lines += textwrap.wrap(changed, _WIDTH, initial_indent="# ", subsequent_indent="# ")
    lines += [f"# seed {report['seed']}{', quick' if report['quick'] else ''}{_only(report)}; {summary(findings)}"]
    for section in distinct(finding["section"] for finding in findings):
        own = [finding for finding in findings if finding["section"] == section]
        head, *body = _rows(own)
        lines += ["", f"# {section}", *align([[f"# {head[0]}", *head[1:]], *body])]
        for finding in own:
            if finding["explanation"]:
                text = f"{finding['title']}: {finding['explanation']}"
                lines += textwrap.wrap(text, _WIDTH, initial_indent="# ", subsequent_indent="#   ")
            lines += [f"#   {each['command']}: {each['result']}" for each in finding["tried"]]
        for seen in distinct(finding["seen"] for finding in own if shown_kind(finding) == "seen"):
            lines += textwrap.wrap(f"seen: {seen}", _WIDTH, initial_indent="# ", subsequent_indent="#   ")
        for table in report["tables"]:
            if table["section"] == section:
                lines += _table_text(table)
    if report["calibrated"]:
        lines += ["", f"# {_CALIBRATED}", *align([["# Value", *_CALIBRATED_HEAD[1:]], *_calibrated_rows(report)])]
    return "\n".join(lines) + "\n"


def _changed(report: StudyReport) -> str:
    changes = [*report["overrides"], *(f"{role} {nic}" for role, nic in report["cards"].items())]
    return f"Not of the paper's cards: with {', '.join(changes)}; the claims are the paper's." if changes else ""


def _only(report: StudyReport) -> str:
    return f", only {', '.join(report['only'])}" if report["only"] else ""


_CALIBRATED = "Values of the spec that were chosen by a figure"
_CALIBRATED_HEAD = ("Value", "Is", "Chosen by")


def _calibrated_rows(report: StudyReport) -> list[list[str]]:
    return [[f"{each['nic']}: {each['key']}", each["value"], each["against"]] for each in report["calibrated"]]


def _table_text(table: Table) -> list[str]:
    head, *body = table["rows"]
    lines = ["", f"# {table['title']}", *align([[f"# {head[0]}", *head[1:]], *body], range(1, len(head)))]
    return lines + textwrap.wrap(table["note"], _WIDTH, initial_indent="# ", subsequent_indent="#   ")


def summary(findings: Sequence[Finding]) -> str:
    """Return the number of claims that are met: of predictions, of seen ones, and of other claims that are judged."""
    judged = [finding for finding in findings if finding["met"] is not None]

    def met(own: Sequence[Finding]) -> str:
        return f"{sum(bool(finding['met']) for finding in own)} of {len(own)}"

    of_kind = {kind: [each for each in judged if shown_kind(each) == kind] for kind in ("predicted", "seen")}
    predicted, seen = of_kind["predicted"], of_kind["seen"]
    given = [finding for finding in judged if finding["kind"] != "predicted"]
    parts = [f"{met(predicted)} predictions are met"] if predicted else []
    parts += [f"{met(seen)} seen predictions are met"] if seen else []
    parts += [f"{met(given)} input numbers and their consequences are reproduced"] if given else []
    shown = len(findings) - len(judged)
    parts += [f"{shown} claim{'s are' if shown > 1 else ' is'} only shown"] if shown else []
    return "; ".join(parts)


def _rows(findings: Sequence[Finding]) -> list[list[str]]:
    cells = [
        [
            finding["title"],
            finding["paper_text"],
            finding["ours_text"],
            deviation_text(finding),
            shown_kind(finding),
            {True: "yes", False: "no", None: "-"}[finding["met"]],
        ]
        for finding in findings
    ]
    return [list(_HEAD), *cells]


def check_folder(folder: Path) -> None:
    """Make the report's folder before anything runs, and check that it is writable.

    Raises:
        InputError: the folder cannot be made or written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"--report {folder}: this cannot be made a folder ({error.strerror})") from error
    try:
        _files.check_folder(folder)
    except OSError as error:
        raise InputError(f"--report {folder}: no file can be written there ({error.strerror})") from error


def write_report(report: StudyReport, measured: Sequence[Measured], folder: Path) -> None:
    """Write `report.html`, `report.json`, the pictures as SVG, and the data as JSON and CSV."""
    from nicety.show.axes import save

    pictures: list[tuple[str, str]] = []
    for found in measured:
        for name, (caption, draw) in found.figures.items():
            save(draw(), folder / f"{name}.svg")
            pictures.append((f"{name}.svg", caption))
        for name, data in found.data.items():
            _files.write_whole(folder / f"{name}.json", _json(data))
            _files.write_whole(folder / f"{name}.csv", csv_text(report_table(data)).encode())
    _files.write_whole(folder / "report.json", _json(report))
    _files.write_whole(folder / "report.html", _page(report, pictures).encode())


def _json(document: object) -> bytes:
    return (json.dumps(document, indent=2, ensure_ascii=False) + "\n").encode()


def tables_html(report: StudyReport) -> str:
    """Return a report as tables in HTML."""
    text = f"<p>{escape(report['paper'])}. {escape(summary(report['claims']))}.</p>"
    if changed := _changed(report):
        text += f"<p>{escape(changed)}</p>"
    for section in distinct(finding["section"] for finding in report["claims"]):
        own = [finding for finding in report["claims"] if finding["section"] == section]
        head = "".join(f"<th>{escape(cell)}</th>" for cell in _HEAD)
        body = ""
        for finding, (title, *cells) in zip(own, _rows(own)[1:], strict=True):
            cell = f"<td><b>{escape(title)}</b><br>{escape(finding['says'])}"
            if finding["explanation"]:
                cell += f"<br><i>Ours: {escape(finding['explanation'])}</i>"
            if shown_kind(finding) == "seen":
                cell += f"<br><i>Seen: {escape(finding['seen'])}</i>"
            for each in finding["tried"]:
                cell += f"<br><code>{escape(each['command'])}</code>: {escape(each['result'])}"
            body += f"<tr>{cell}</td>" + "".join(f"<td>{escape(each)}</td>" for each in cells) + "</tr>"
        text += f"<h2>{escape(section)}</h2><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        text += "".join(_table_html(table) for table in report["tables"] if table["section"] == section)
    if report["calibrated"]:
        rows = [list(_CALIBRATED_HEAD), *_calibrated_rows(report)]
        text += _table_html({"section": "", "title": _CALIBRATED, "rows": rows, "note": ""})
    return text


def claims_table(report: StudyReport) -> Columns:
    """Return a report as a table, with a row per claim."""
    claims: Sequence[Mapping[str, Any]] = report["claims"]
    names = [name for name in claims[0] if name != "tried"] if claims else []
    return Columns([(name, [None if each[name] is None else str(each[name]) for each in claims]) for name in names])


def _table_html(table: Table) -> str:
    head, *body = (
        "<tr>" + "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in row) + "</tr>"
        for tag, row in zip(["th", *["td"] * (len(table["rows"]) - 1)], table["rows"], strict=True)
    )
    note = f"<p>{escape(table['note'])}.</p>" if table["note"] else ""
    text = f"<h3>{escape(table['title'])}</h3><table class=figures><thead>{head}</thead>"
    return f"{text}<tbody>{''.join(body)}</tbody></table>{note}"


_STYLE = """
body { font: 15px/1.45 sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem; color: #222 }
table { border-collapse: collapse; width: 100% }
td, th { border-top: 1px solid #ccc; padding: .35rem .6rem; text-align: left; vertical-align: top }
table.figures { width: auto } .figures td:nth-child(n+2), .figures th:nth-child(n+2) { text-align: right }
table:not(.figures) td:first-child { width: 45% }
table:not(.figures) td:nth-child(2), table:not(.figures) td:nth-child(n+4) { white-space: nowrap }
figure { margin: 1.5rem 0 } img { max-width: 100% } i { color: #555 }
"""


def _page(report: StudyReport, pictures: Sequence[tuple[str, str]]) -> str:
    title = escape(f"nicety reproduce {report['study']}")
    meanings: list[tuple[str, str]] = [*KINDS.items(), ("seen", SEEN)]
    kinds = "".join(f"<li><b>{kind}</b>: {escape(meaning)}.</li>" for kind, meaning in meanings)
    figures = "".join(
        f'<figure><img src="{escape(file)}" alt="{escape(text)}"><figcaption>{escape(text)}.</figcaption></figure>'
        for file, text in pictures
    )
    about = f"Source: {report['source']} nicety {report['version']}, seed {report['seed']}."
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        f"<style>{_STYLE}</style></head><body><h1>{title}</h1><p>{escape(about)}</p>"
        f"{tables_html(report)}<h2>Kinds of claims</h2><ul>{kinds}</ul><h2>Pictures</h2>{figures}</body></html>\n"
    )
