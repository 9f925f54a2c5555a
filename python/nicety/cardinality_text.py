"""Cardinality as text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nicety.tables import _distinct, align, fixed

if TYPE_CHECKING:
    from nicety.cardinality import ContextReport, ContextRow

_COLUMNS = ("Contexts", "Cycles", "Computing", "Asleep", "Switching", "M updates/s", "Gb/s of 64 B", "Settled")


def context_text(report: ContextReport) -> str:
    """What contexts do, as a table for each card."""
    rows = report["rows"]
    lines = [
        f"# nicety PCSA Test v{report['version']}",
        f"# {rows[0]['updates']} updates in all on one microengine, in cycles;",
        "# and updates a second of the whole card, with the Ethernet whose packets of 64 B they keep up with",
    ]
    for title, (head, *body) in context_tables(report):
        lines += ["", f"# {title}", *align([[f"# {head[0]}", *head[1:]], *body], range(1, len(head)))]
    return "\n".join(lines) + "\n"


def context_tables(report: ContextReport) -> list[tuple[str, list[list[str]]]]:
    """A table for each card with its title; the first row has the columns' names."""
    return [
        (nic, [list(_COLUMNS), *(_cells(row) for row in report["rows"] if row["nic"] == nic)])
        for nic in _distinct(row["nic"] for row in report["rows"])
    ]


def _cells(row: ContextRow) -> list[str]:
    return [
        *(str(row["contexts"]), str(row["cycles_total"]), str(row["cycles_computing"])),
        *(str(row["cycles_asleep"]), str(row["cycles_switching"])),
        fixed(row["updates_per_s"] / 1e6, 1),
        fixed(row["line_rate_bits_per_s"] / 1e9, 1),
        fixed(row["updates_per_s_settled"] / 1e6, 1),
    ]
