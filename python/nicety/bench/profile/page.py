"""A profile as one HTML file without scripts, which needs no network."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any

from nicety._generated.types import ProfiledLine, ProfileReport, ProfileRow
from nicety.bench.profile.calls import Call, call_tree
from nicety.bench.profile.sources import by_line, function_of, place_of, text_of
from nicety.bench.profile.text import about, banks, causes, each, functions, locks, per, processes, waits
from nicety.show.columns import fixed

_STYLE = """
body { font: 14px/1.4 system-ui, sans-serif; margin: 1.5em; max-width: 90em; color: #222; background: #fff }
h1 { font-size: 1.4em } h2 { font-size: 1.15em; margin-top: 1.6em } h3 { font-size: 1em; margin: 1em 0 0.3em }
table { border-collapse: collapse } th { text-align: right; font-weight: 600; border-bottom: 1px solid #999 }
td, th { padding: 0.1em 0.7em; text-align: right; white-space: pre; font-variant-numeric: tabular-nums }
td:first-child, th:first-child, td.text, th.text { text-align: left }
td.text, .flame, tr.instruction td { font-family: ui-monospace, monospace; font-size: 12px }
tr.instruction td { color: #555 } tr.none td { color: #aaa }
.flame div { position: relative } .flame .call { position: absolute; box-sizing: border-box; height: 1.5em;
overflow: hidden; white-space: nowrap; border: 1px solid #fff; padding: 0 0.3em; background: #f2a65a }
.flame .call.inlined { background: #f6d186 }
@media (prefers-color-scheme: dark) { body { color: #ddd; background: #1c1c1c } tr.instruction td { color: #aaa }
tr.none td { color: #666 } .flame .call { color: #222; border-color: #1c1c1c } }
"""
_CONTEXT = 2
"""Lines without cycles that are shown around those with some."""
_NARROW = 0.002
"""Calls with a smaller share of all cycles are not drawn."""
_LEVEL = 1.5
"""The height of a level of calls, in em."""


def profile_page(report: ProfileReport) -> bytes:
    """The page of a report."""
    body = "".join(_card(row) for row in report["rows"])
    head = f"nicety profile {report['version']}, seed {report['seed']}"
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>nicety profile</title>'
        f"<style>{_STYLE}</style></head><body><h1>{escape(head)}</h1>{body}</body></html>\n"
    ).encode()


def _card(row: ProfileRow) -> str:
    parts = [f"<h2>{escape(about(row))}</h2>"]
    parts += [f"<p>{escape(words)}</p>" for words in row["missing"]]
    if row["processes"]:
        parts.append(f"<h3>Cycles of contexts</h3>{_table(processes(row))}")
    parts.append(f"<h3>Cycles {per(row)}, by cause</h3>{_table(causes(row))}")
    parts.append(f"<h3>Functions, {per(row)}</h3>{_table(functions(row), last_is_text=True)}")
    if row["locks"]:
        parts.append(f"<h3>Locks, cycles a packet</h3>{_table(locks(row))}")
    if row["banks"]:
        parts.append(f"<h3>Banks that handlers wait for, a packet</h3>{_table(banks(row, len(row['banks'])))}")
    parts.append(f"<h3>Calls: widths are cycles</h3>{_flame(row)}")
    parts += [f"<h3>{escape(file)}</h3>{table}" for file, table in _files(row)]
    return "".join(parts)


def _table(rows: Sequence[Sequence[str]], *, last_is_text: bool = False) -> str:
    head, *body = rows

    def cells(row: Sequence[str], tag: str) -> str:
        kinds = [' class="text"' if last_is_text and at == len(row) - 1 else "" for at in range(len(row))]
        return "".join(f"<{tag}{kind}>{escape(text)}</{tag}>" for kind, text in zip(kinds, row, strict=True))

    lines = "".join(f"<tr>{cells(row, 'td')}</tr>" for row in body)
    return f"<table><thead><tr>{cells(head, 'th')}</tr></thead><tbody>{lines}</tbody></table>"


def _flame(row: ProfileRow) -> str:
    """The call tree as boxes: callees are below their callers."""
    root, total = call_tree(row), max(row["cycles"], 1)
    boxes: list[str] = []
    depth = _boxes(root, 0.0, 0, (total, row), boxes)
    return f'<div class="flame"><div style="height: {_LEVEL * depth:.1f}em">{"".join(boxes)}</div></div>'


def _boxes(call: Call, left: float, level: int, whole: tuple[int, ProfileRow], boxes: list[str]) -> int:
    """Add the boxes of a function's calls; return the number of levels."""
    deepest, (total, row) = level, whole
    for called in call.hottest():
        width = called.cycles / total
        if width >= _NARROW:
            text = f"{called.name}: {each(called.cycles, row)} cycles {per(row)}, {fixed(100 * width, 1)} %"
            kind = "call inlined" if called.inlined else "call"
            place = f"left: {100 * left:.3f}%; width: {100 * width:.3f}%; top: {_LEVEL * level:.1f}em"
            boxes.append(f'<div class="{kind}" style="{place}" title="{escape(text)}">{escape(called.name)}</div>')
            deepest = max(deepest, _boxes(called, left, level + 1, whole, boxes), level + 1)
        left += width
    return deepest


def _files(row: ProfileRow) -> Iterator[tuple[str, str]]:
    """The annotated source files, those with the most cycles first."""
    instructions = by_line(row)
    files: dict[str, dict[int, list[int]]] = {}
    for at, line in enumerate(row["lines"]):
        files.setdefault(line["file"] or "(no source file)", {}).setdefault(line["line"] or 0, []).append(at)
    for file, lines in files.items():
        body: list[str] = []
        before = 0
        for number in _numbers(file, lines):
            if before and number > before + 1:
                body.append('<tr class="none"><td>...</td></tr>')
            before = number
            own = lines.get(number, [])
            if not own:
                body.append(_source(number, None, row, text_of(file, number) or ""))
            for at in own:
                line = row["lines"][at]
                text = text_of(file, number)
                body.append(_source(number, line, row, function_of(row, line) if text is None else text))
                body += [_instruction(of, row) for of in instructions[at]]
        head = "<tr><th>Line</th><th>Instr.</th><th>Cycles</th><th>p99</th><th>%</th>"
        head += '<th class="text">Waits</th><th class="text">Source</th></tr>'
        yield file, f"<table><thead>{head}</thead><tbody>{''.join(body)}</tbody></table>"


def _numbers(file: str, lines: Mapping[int, list[int]]) -> list[int]:
    """The numbers of lines with cycles, and of those around them."""
    near = {number + off for number in lines for off in range(-_CONTEXT, _CONTEXT + 1)}
    return sorted(set(lines) | {number for number in near if text_of(file, number) is not None})


def _cells(cost: Mapping[str, Any], row: ProfileRow) -> str:
    share = 100 * cost["cycles"] / max(row["cycles"], 1)
    numbers = [
        each(cost["executions"], row),
        each(cost["cycles"], row),
        str(cost["cycles_p99"]),
        fixed(share, 1),
    ]
    text = "".join(f"<td>{number}</td>" for number in numbers)
    return f'{text}<td class="text">{escape(waits(cost, row))}</td>'


def _source(number: int, line: ProfiledLine | None, row: ProfileRow, text: str) -> str:
    if line is None:
        blank = "<td></td>" * 5
        return f'<tr class="none"><td>{number}</td>{blank}<td class="text">{escape(text)}</td></tr>'
    # The share of all cycles, from white to red.
    heat = min(0.6, 1.5 * line["cycles"] / max(row["cycles"], 1))
    place = escape(place_of(line).rpartition(":")[2] if number else place_of(line))
    colour = f"background: rgba(230, 60, 30, {heat:.3f})"
    return f'<tr style="{colour}"><td>{place}</td>{_cells(line, row)}<td class="text">{escape(text)}</td></tr>'


def _instruction(of: Mapping[str, Any], row: ProfileRow) -> str:
    text = f"    {of['address']:08x}  {of['text']}"
    return f'<tr class="instruction"><td></td>{_cells(of, row)}<td class="text">{escape(text)}</td></tr>'
