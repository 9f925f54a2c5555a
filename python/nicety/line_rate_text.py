"""A line-rate check as text: a table for each card, and in words what happens where a card does not keep up."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

from nicety.refusals import refused_at_sizes
from nicety.tables import _distinct, align, fixed

if TYPE_CHECKING:
    from nicety.line_rate import LineRateReport, LineRateRow, Lock

_FIGURES = ("Cycles", "p99", "Instr.", "p99", "Time", "Budget", "HPUs", "of", "GB/s", "Of wire", "Keeps up")
_LOAD_COLUMNS = (
    "Packet",
    "Processed",
    "Dropped",
    "To host",
    "Failed",
    "Sent on",
    "HPUs",
    "Matching",
    "Link",
    "Bus in",
    "Bus out",
    "Lock",
)
_HANDLER_COLUMNS = ("Packet", "Handler", "Runs", "Cycles", "p99", "Instr.", "p99", "Time (ns)", "Queued (ns)")


def line_rate_text(report: LineRateReport) -> str:
    """A report as text."""
    rows = report["rows"]
    each, counts = rows[0]["message_packets"], _distinct(row["packets"] for row in rows)
    lines = [
        f"# nicety Line-Rate Check v{report['version']}",
        f"# packets as fast as the wire carries them, {each} to a message",
        f"# seed {report['seed']}, {counts[0]} packets a size",
    ]
    for nic in _distinct(row["nic"] for row in rows):
        own = [row for row in rows if row["nic"] == nic]
        for title, (head, *body) in tables_of(nic, own):
            lines += ["", f"# {title}", *align([[f"# {head[0]}", *head[1:]], *body], range(1, len(head)))]
        if refused := refused_at_sizes(own):
            lines += ["", *(f"# {line}" for line in refused)]
        for text in shortfalls(own):
            lines += ["", *textwrap.wrap(text, 100, initial_indent="# ", subsequent_indent="# ")]
    return "\n".join(lines) + "\n"


def tables_of(nic: str, rows: list[LineRateRow]) -> list[tuple[str, list[list[str]]]]:
    """A card's figures as tables, each with its title: the first row has the columns' names."""
    tables = [(f"{nic}: payload handlers, and handler time a packet (ns)", [["Packet", *_FIGURES], *map(_cells, rows)])]
    if any(figures["handler"] != "payload" for row in rows for figures in row["handlers"]):
        cells = [
            [
                str(row["packet_bytes"]),
                figures["handler"],
                str(figures["runs"]),
                fixed(figures["cycles_mean"], 1),
                str(figures["cycles_p99"]),
                fixed(figures["instructions_mean"], 1),
                str(figures["instructions_p99"]),
                fixed(figures["time_ns_mean"]),
                fixed(figures["queued_ns_mean"]),
            ]
            for row in rows
            for figures in row["handlers"]
        ]
        tables.append((f"{nic}: each handler", [list(_HANDLER_COLUMNS), *cells]))
    title = f"{nic}: what became of the packets, and the load of each part at the wire's rate (%)"
    tables.append((title, [list(_LOAD_COLUMNS), *map(_loads, rows)]))
    return tables


def _loads(row: LineRateRow) -> list[str]:
    fates, loads = row["packet_fates"], row["loads"]
    of_packets = [fates["processed"], fates["dropped"], fates["proceeded"], fates["failed"]]
    of_parts = [loads["hpus"], loads["matching"], loads["link"], loads["bus_to_card"], loads["bus_to_host"]]
    return [
        str(row["packet_bytes"]),
        *(fixed(100 * count / row["packets"], 1) for count in of_packets),
        fixed(100 * row["sent_per_packet"], 1),
        *(fixed(100 * load, 1) for load in of_parts),
        fixed(100 * loads["lock"], 1) if row["locks"] else "-",
    ]


def _cells(row: LineRateRow) -> list[str]:
    def mean(value: float | None) -> str:
        return "-" if value is None else fixed(value, 1)

    def most(value: int | None) -> str:
        return "-" if value is None else str(value)

    return [
        str(row["packet_bytes"]),
        mean(row["cycles_mean"]),
        most(row["cycles_p99"]),
        mean(row["instructions_mean"]),
        most(row["instructions_p99"]),
        fixed(row["handler_ns"]),
        fixed(row["handler_budget_ns"]),
        "-" if row["hpus_needed"] is None else str(row["hpus_needed"]),
        str(row["hpus"]),
        fixed(row["bandwidth_bytes_per_s"] / 1e9, 2),
        f"{fixed(100 * row['line_rate_fraction'], 1)}%",
        verdict(row),
    ]


def verdict(row: LineRateRow) -> str:
    """Whether a card keeps up, and with what, in a word or a few."""
    found = [("drops", row["packet_fates"]["dropped"]), ("fails", row["packet_fates"]["failed"])]
    parts = [f"{verb} {fixed(100 * count / row['packets'], 1)}%" for verb, count in found if count]
    return ", ".join(["yes" if row["sustains_line_rate"] else "no", *parts])


def shortfalls(rows: list[LineRateRow]) -> list[str]:
    """In words, what happens at the packet sizes at which a card does not keep up."""
    texts: dict[str, list[str]] = {}
    for row in rows:
        if not row["sustains_line_rate"]:
            texts.setdefault(_what_happens(row), []).append(str(row["packet_bytes"]))
    return [f"{', '.join(sizes)} B: {text}" for text, sizes in texts.items()]


def _what_happens(row: LineRateRow) -> str:
    comes = f"a packet comes every {fixed(row['packet_interval_ns'])} ns, and"
    limit = row["limited_by"]
    if limit == "handler processors":
        why = f"{comes} keeps a handler processor for {fixed(row['handler_ns'])} ns: {_enough(row)}"
    elif limit == "lock":
        lock = row["locks"][0]
        why = f"{comes} at that rate {_held(lock)}. {_at_most(row)}"
    elif limit == "packet buffer":
        few = "1 place is" if row["buffer_packets"] == 1 else f"{row['buffer_packets']} places are"
        return (
            f"{comes} keeps a place of the packet buffer from when it leaves until its credit is back; "
            f"{few} too few for that, and {_gets_through(row)}"
        )
    elif limit == "waiting":
        why = f"{comes} no part of the card has too much to do: handlers wait for one another."
    else:
        load = {
            "matching unit": row["loads"]["matching"],
            "link": row["loads"]["link"],
            "bus to card": row["loads"]["bus_to_card"],
            "bus to host": row["loads"]["bus_to_host"],
        }[limit or ""]
        name = {"link": "card's own link, with what handlers send,"}.get(limit or "", limit)
        why = f"{comes} at that rate the {name} would have {fixed(load, 2)} times as much to do as it can."
        if row["message_packets"] == 1 and limit == "matching unit":
            why += " Every packet is a message here, and is searched for; --message-packets has longer ones."
    return (
        f"{why} The packet buffer, of {row['buffer_packets']}, fills up; then the sender waits for credits, and "
        f"{_gets_through(row)}"
    )


def _enough(row: LineRateRow) -> str:
    """How many processors would do, and whether any number would."""
    few = f"the card has {row['hpus']}"
    if row["hpus_needed"] is None:
        lock = f" ({_held(row['locks'][0])})" if row["locks"] and row["loads"]["lock"] > 1 else ""
        return f"{few}, and no number would keep up{lock}. {_at_most(row)}"
    # With more of them handlers would wait longer for one another.
    least = "at least " if row["locks"] else ""
    return f"{least}{row['hpus_needed']} processors would keep up, and {few}."


def _held(lock: Lock) -> str:
    back = f", given back at {lock['given_back_at']}" if lock["given_back_at"] else ""
    times = f", {fixed(lock['load'], 2)} times as long as there is"
    return (
        f"each packet holds {lock['word']} for {fixed(lock['held_ns'])} ns (taken at {lock['taken_at']}{back}){times}, "
        f"and others wait for it at {lock['waited_at']}"
    )


def _at_most(row: LineRateRow) -> str:
    most = fixed(100 * row["reachable_fraction"], 1)
    return f"However many processors there are, at most {most}% of the wire's rate can get through."


def _gets_through(row: LineRateRow) -> str:
    return f"{fixed(100 * row['line_rate_fraction'], 1)}% of the wire's rate gets through. Nothing is lost."
