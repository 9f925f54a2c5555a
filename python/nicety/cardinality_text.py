"""Cardinality as text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nicety.tables import _distinct, align, fixed

if TYPE_CHECKING:
    from nicety.cardinality import ContextReport, ContextRow, CountReport

_THROUGH = {
    "port": "packets through the port, their addresses found by the card",
    "channels": "addresses by channels, found by the host",
}
_WHOLE = 0.9999
"""Of the time until the last packet has gone, how much the wire is busy where nothing holds packets up."""

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


def count_text(report: CountReport) -> str:
    """What was counted, as a table of names and values."""
    ipv6, skipped = report["ipv6_packets"], report["packets"] - report["ipv4_packets"] - report["ipv6_packets"]
    reasons = {"not of IP": "other_packets", "cut off": "cut_packets", "of other links": "unknown_link_packets"}
    parts = [f"{report[key]} {name}" for name, key in reasons.items() if report[key]]  # type: ignore[literal-required]
    why = f" ({', '.join(parts)})" if parts else ""
    wire = []
    if report["sent_ns"] is not None and report["wire_ns"] is not None:
        busy = report["wire_ns"] / report["sent_ns"] if report["sent_ns"] else 1.0
        wire = [["wire busy", f"{fixed(100 * busy, 1)}%" + ("" if busy > _WHOLE else ", the card held packets up")]]
    rows = [
        ["packets", f"{report['packets']}"],
        ["of IP, counted", f"{report['packets'] - skipped}" + (f" ({ipv6} of version 6)" if ipv6 else "")],
        *([["skipped", f"{skipped}{why}"]] if skipped else []),
        *([["shortened", f"{report['shortened_packets']}"]] if report["shortened_packets"] else []),
        ["estimate", fixed(report["estimate"], 1)],
        ["distinct sources", f"{report['distinct']}"],
        ["error", f"{fixed(100 * report['relative_error'], 2)}%"],
        ["expected error", f"{fixed(100 * report['expected_error'], 2)}%, 0.78 / sqrt({report['sketches']})"],
        *wire,
        ["card time", f"{fixed(report['card_time_ns'] / 1e6, 3)} ms"],
        ["packets/s", f"{fixed(report['card_packets_per_s'] / 1e6, 1)} million, of card time"],
    ]
    lines = [
        f"# nicety PCSA v{report['version']}",
        f"# {report['capture']}, {report['format']}; {report['nic']}, {report['sketches']} sketches",
        f"# {_THROUGH[report['through']]}",
        "",
        *align(rows),
    ]
    return "\n".join(lines) + "\n"
