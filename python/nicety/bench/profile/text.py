"""Profiles as text: causes, functions, lines with their instructions, and the call tree."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from nicety._generated.types import ProfileReport, ProfileRow
from nicety.bench.profile.calls import Call, call_tree
from nicety.bench.profile.sources import by_line, function_of, place_of, text_of
from nicety.bench.verdicts import program_files
from nicety.show.circumstances import circumstances
from nicety.show.columns import align, counted, fixed
from nicety.show.html import table_html
from nicety.show.tables import Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LINES = 12
"""Lines that a text shows."""
_CAUSES = 3
"""Causes in a row of a table."""
_FEW_CYCLES = 0.05
"""Waits of fewer cycles a packet are not shown."""
_SHARE = 0.005
"""Calls with a smaller share of all cycles are not shown."""
_OF_PROCESSES = ("Processes", "Computing", "Asleep", "Ready", "Instr.", "References")
_NUMBERS = {"Instr.", "Cycles", "p99", "%", "Own", "Wait", "Held", "Handover", *_OF_PROCESSES}
_COLUMNS = ("Instr.", "Cycles", "p99", "%", "Waits")

Cost = Mapping[str, Any]
"""The cycles of an instruction, a line or a function."""


def per(row: ProfileRow) -> str:
    """The unit of figures: a packet for handlers, and the whole run for processes."""
    return "in all" if row["processes"] else "a packet"


def each(count: float, row: ProfileRow) -> str:
    """A count, divided by the packets."""
    return str(count) if row["processes"] else fixed(count / row["packets"], 1)


def waits(cost: Cost, row: ProfileRow, most: int = _CAUSES) -> str:
    """The causes of cycles except the first cycle of each instruction: the largest ones."""
    shown = {cause: cycles for cause, cycles in cost["causes"].items() if cycles >= _FEW_CYCLES * row["packets"]}
    found = sorted(((cycles, cause) for cause, cycles in shown.items() if cause != "issue"), reverse=True)
    return ", ".join(f"{cause} {each(cycles, row)}" for cycles, cause in found[:most]) or "-"


def _figures(cost: Cost, row: ProfileRow) -> list[str]:
    """The cells of a cost: instructions and cycles a packet, p99, share and waits."""
    share = 100 * cost["cycles"] / max(row["cycles"], 1)
    return [
        each(cost["executions"], row),
        each(cost["cycles"], row),
        str(cost["cycles_p99"]),
        fixed(share, 1),
        waits(cost, row),
    ]


def causes(row: ProfileRow) -> list[list[str]]:
    """A table of the causes of cycles."""
    total = max(row["cycles"], 1)
    ordered = sorted(row["causes"].items(), key=lambda item: -item[1])
    body = [[cause, each(cycles, row), fixed(100 * cycles / total, 1)] for cause, cycles in ordered]
    return [["Cause", "Cycles", "%"], *body, ["all", each(row["cycles"], row), "100.0"]]


def processes(row: ProfileRow) -> list[list[str]]:
    """A table of the processes of a flow processor, with the cycles that the card has counted."""
    keys = ("processes", "cycles_computing", "cycles_asleep", "cycles_ready", "instructions", "references")
    body = []
    for process in row["processes"]:
        counts: Cost = process
        place = f"{process['microengine']}.{process['context']}"
        body.append([process["function"] or "(no name)", place, *(str(counts[key]) for key in keys)])
    return [["Process", "Context", *_OF_PROCESSES], *body]


def functions(row: ProfileRow) -> list[list[str]]:
    """A table of functions."""
    body = [[of["function"] or "(no name)", *_figures(of, row)] for of in row["functions"]]
    return [["Function", *_COLUMNS], *body]


def lines(row: ProfileRow, most: int) -> list[list[str]]:
    """A table of the hottest lines, each with its source text and its instructions."""
    body, instructions = [], by_line(row)
    for line, own in list(zip(row["lines"], instructions, strict=True))[:most]:
        text = text_of(line["file"], line["line"])
        shown = function_of(row, line) if text is None else text.strip()
        body.append([place_of(line), *_figures(line, row), shown])
        body += [[f"  {of['address']:08x}", *_figures(of, row), f"    {of['text']}"] for of in own]
    return [["Line", *_COLUMNS, "Source"], *body]


def _branches(call: Call, row: ProfileRow, depth: int = 0) -> Iterator[list[str]]:
    for called in call.hottest():
        if called.cycles < _SHARE * row["cycles"]:
            continue
        share = 100 * called.cycles / max(row["cycles"], 1)
        name = "  " * depth + called.name + (" (inlined)" if called.inlined else "")
        yield [name, each(called.cycles, row), each(called.own, row), fixed(share, 1)]
        yield from _branches(called, row, depth + 1)


def calls(row: ProfileRow) -> list[list[str]]:
    """A table of the call tree."""
    return [["Call", "Cycles", "Own", "%"], *_branches(call_tree(row), row)]


def locks(row: ProfileRow) -> list[list[str]]:
    """A table of words that handlers wait for, with the lines of holders and waiters."""
    body = [
        [
            lock["variable"] or lock["word"],
            lock["acquired_at"],
            lock["released_at"] or "-",
            lock["waited_at"],
            str(lock["waits"]),
            *(fixed(lock[key], 1) for key in ("wait_cycles", "held_cycles", "handover_cycles")),
        ]
        for lock in row["locks"]
    ]
    return [["Lock", "Acquired", "Released", "Waited", "Waits", "Wait", "Held", "Handover"], *body]


def banks(row: ProfileRow, most: int) -> list[list[str]]:
    """A table of the banks that handlers wait for, with the data in them."""
    clusters = len({bank["cluster"] for bank in row["banks"]}) > 1
    body = []
    for bank in row["banks"][:most]:
        level = f"{bank['level']} of cluster {bank['cluster']}" if clusters else bank["level"]
        body.append([f"{bank['bank']} of {level}", bank["data"], str(bank["waits"]), fixed(bank["wait_cycles"], 2)])
    return [["Bank", "Data", "Waits", "Cycles"], *body]


def about(row: ProfileRow) -> str:
    """The card, and the number of packets and runs, or of processes."""
    cycle = fixed(row["cycle_ns"], 3)
    if row["processes"]:
        return f"{row['nic']}, {row['place']}: {row['runs']} process{'es' * (row['runs'] != 1)}, a cycle of {cycle} ns"
    sampled = "all runs" if row["sampled_runs"] == row["runs"] else counted(row["sampled_runs"], "run")
    runs = counted(row["runs"], "run")
    packets = f"{counted(row['packets'], 'packet')} of {row['packet_bytes']} B"
    return f"{row['nic']}: {packets}, {runs} of handlers, a cycle of {cycle} ns; p99 of {sampled}"


def tables(row: ProfileRow, most: int = LINES) -> list[tuple[str, list[list[str]]]]:
    """The tables of a card, with their titles."""
    shown = min(most, len(row["lines"]))
    return [
        *([("Cycles of contexts", processes(row))] if row["processes"] else []),
        (f"Cycles {per(row)}, by cause", causes(row)),
        (f"Functions, {per(row)}", functions(row)),
        (f"Lines and their instructions, {per(row)}: the hottest {shown} of {len(row['lines'])}", lines(row, most)),
        (f"Calls, {per(row)}", calls(row)),
        *([("Locks, cycles a packet", locks(row))] if row["locks"] else []),
        *([("Banks that handlers wait for, a packet", banks(row, most))] if row["banks"] else []),
    ]


def profile_text(report: ProfileReport, most: int = LINES) -> str:
    """A report as text.

    Args:
        report: the report.
        most: the number of lines to show.
    """
    rows: Sequence[ProfileRow] = report["rows"]
    head = [f"nicety Profile v{report['version']}", f"seed {report['seed']}", *circumstances(report["manifest"])]
    text = [f"# {line}" for line in head]
    for row in rows:
        text += ["", f"# {about(row)}"]
        for title, (columns, *body) in tables(row, most):
            right = [at for at, name in enumerate(columns) if name in _NUMBERS]
            text += ["", f"# {title}", *align([[f"# {columns[0]}", *columns[1:]], *body], right)]
        for words in row["missing"]:
            text += ["", *textwrap.wrap(words, 100, initial_indent="# ", subsequent_indent="# ")]
    return "\n".join(text) + "\n"


def profile_html(report: ProfileReport) -> str:
    """A report in a notebook."""
    text = f"<p>profile, nicety {escape(report['version'])}, seed {report['seed']}</p>"
    for row in report["rows"]:
        text += f"<p>{escape(about(row))}</p>"
        text += "".join(table_html(title, table) for title, table in tables(row))
        text += "".join(f"<p>{escape(words)}</p>" for words in row["missing"])
    return text


def profile_table(report: ProfileReport) -> Table:
    """A report as a table, with a row per line of source on each card, and a column per cause of cycles."""
    found = [(row, line) for row in report["rows"] for line in row["lines"]]
    names = sorted({cause for _, line in found for cause in line["causes"]})
    columns: list[tuple[str, list[Any]]] = [
        ("nic", [row["nic"] for row, _ in found]),
        ("file", [line["file"] for _, line in found]),
        ("line", [line["line"] for _, line in found]),
        ("function", [function_of(row, line) for row, line in found]),
        *((name, [line[name] for _, line in found]) for name in ("executions", "cycles", "cycles_mean", "cycles_p99")),
        *((f"cycles_{name.replace(' ', '_')}", [line["causes"].get(name, 0) for _, line in found]) for name in names),
    ]
    return Table(columns)


def profile_figure(report: ProfileReport) -> Figure:
    """Draw the cycles of the hottest lines by cause, for each card."""
    from nicety.show.axes import set_figure_titles
    from nicety.show.bars import bars_figure

    hottest = [(row, line) for row in report["rows"] for line in row["lines"][:LINES]]
    names = [cause for row in report["rows"] for cause in row["causes"]]
    several = len(report["rows"]) > 1
    groups = []
    for row, line in hottest:
        text = text_of(line["file"], line["line"])
        source = function_of(row, line) if text is None else text.strip()
        place = f"{row['nic']}, {place_of(line)}" if several else place_of(line)
        groups.append(f"{place}: {textwrap.shorten(source, _SOURCE, placeholder=' ...')}")
    series = {
        cause: [line["causes"].get(cause, 0) / row["packets"] for row, line in hottest]
        for cause in dict.fromkeys(names)
        if any(cause in line["causes"] for _, line in hottest)
    }
    figure = bars_figure(groups, series, title="", value="Cycles a packet", stacked=True)
    files = program_files(report["manifest"])
    set_figure_titles(figure, f"{files}: cycles of the hottest lines", [about(row) for row in report["rows"]])
    return figure


_SOURCE = 40
"""Characters of a line of source in a picture."""
