"""A line-rate check in words, for a card that does not keep up: its bottleneck and the packet dispositions."""

from __future__ import annotations

from nicety._generated.types import LineRateRow, Lock, MemoryLevel, Part, Retries
from nicety.bench.verdicts import named, offered
from nicety.show.columns import fixed


def shortfalls(rows: list[LineRateRow]) -> list[str]:
    """Return the reasons why a card does not keep up, in words. Sizes with the same reason share a sentence."""
    texts: dict[str, list[str]] = {}
    for row in rows:
        if not row["sustains_line_rate"]:
            texts.setdefault(_shortfall(row), []).append(named(row).removesuffix(" B"))
    return [f"{', '.join(rows)}{'' if rows == ['traffic'] else ' B'}: {text}" for text, rows in texts.items()]


def _shortfall(row: LineRateRow) -> str:
    mean = ", in the mean," if "traffic" in row else ","
    comes = f"a packet comes every {fixed(row['packet_interval_ns'])} ns{mean} and"
    limit = row["limited_by"]
    if limit == "handler cores":
        growth = row["growth"]
        for_ns = fixed(growth["last_ns"] if growth else row["handler_ns"])
        why = f"{comes} keeps a handler core for {for_ns} ns{' at the end' if growth else ''}: {_enough(row)}"
    elif limit == "lock":
        lock = row["locks"][0]
        why = f"{comes} at that rate {_held(lock)}. {_at_most(row)}"
    elif limit == "contended word":
        why = f"{comes} at that rate {_changing(row['retries'])}. {_at_most(row)}"
    elif limit == "cache misses":
        waited = sum(cache["wait_cycles"] for cache in row["memory"]["caches"])
        why = (
            f"{comes} keeps a handler core for {fixed(row['handler_ns'])} ns, in which its handlers wait "
            f"{fixed(waited, 1)} cycles for lines of data caches; with hits only, the cores would keep up."
        )
    elif limit == "memory bank":
        why = f"{comes} at that rate {_occupied(_busiest(row))}. {_at_most(row)}"
    elif limit == "packet buffer" and _lost(row):
        why = f"{comes} no part of the card is overloaded in the mean, but packets come in bursts."
    elif limit == "packet buffer":
        few = "1 place is" if row["buffer_packets"] == 1 else f"{row['buffer_packets']} places are"
        return (
            f"{comes} occupies a place of the packet buffer {_keeps_a_place(row)}; "
            f"{few} too few for that, and {_gets_through(row)}"
        )
    elif limit == "host":
        return f"{comes} {_of_host(row)}"
    elif limit == "waiting":
        why = (
            f"{comes} {_idle(row)}: handlers wait for one another, or packets wait for a part without a measured load."
        )
    else:
        why = f"{comes} {_too_much(row)}"
    return f"{why} {_full_buffer(row)}"


_PLACES: dict[Part, str] = {
    "packets in flight": "places in clusters",
    "packet slots": "slots",
    "message contexts": "message contexts",
}
"""Maps a bottleneck to the resource that is too small for the packets."""


def _too_much(row: LineRateRow) -> str:
    """Return a sentence: the overloaded part, or the link that is overloaded only in bursts."""
    limit = row["limited_by"] or row["bottleneck"]
    if limit == "link" and row["loads"]["link"] <= 1:
        return "no part of the card is overloaded in the mean, but frames leave by a port in bursts."
    (part,) = [part for part in row["parts"] if part["part"] == limit]
    if limit in _PLACES:
        times = f"{fixed(part['load'], 2)} times as many {_PLACES[limit]} as there are"
        return f"at that rate packets would need {times} ({part['name']})."
    names: dict[Part, str] = {
        "link": "card's own link, with what handlers send,",
        "packet writer": "writer of the packet buffer",
        "cluster DMA": f"DMA engine of {part['name']}",
        "packet sender": "sender of handlers' packets",
    }
    why = f"at that rate the {names.get(limit, limit)} needs {fixed(part['load'], 2)} x its capacity."
    if (
        row["message_packets"] == 1
        and limit == "matching unit"
        and "traffic" not in row
        and row["loads"]["host"] is None
    ):
        why += " Every packet is a message here and needs a search; --message-packets makes longer messages."
    return why


def _full_buffer(row: LineRateRow) -> str:
    lost = row["traffic"]["dropped_at_link"] if "traffic" in row else 0
    if lost and row["limited_by"] == "link":
        return f"{lost} frames that handlers sent found no room before their port, and were lost."
    # Places with credits in flight also count in a full buffer.
    if row["buffer_packets_used"] < row["buffer_packets"] / 2 and not _lost(row):
        held = f"has held {row['buffer_packets_used']} packets at most, and fills up in a longer run"
    else:
        held = "fills up"
    return f"The packet buffer, of {row['buffer_packets']}, {held}; {_when_full(row)}{_gets_through(row)}"


def _idle(row: LineRateRow) -> str:
    """Return words for a limit that no utilisation explains: no part is overloaded, or such a part idles at times."""
    most = max((part for part in row["parts"] if part["part"] != "packet buffer"), key=lambda part: part["load"])
    if most["load"] > 1:
        times = f"{fixed(most['load'], 2)} x its capacity, and yet is idle at times"
        return f"at that rate {most['part']} needs {times}"
    return "no part of the card is overloaded"


def _of_host(row: LineRateRow) -> str:
    """Return a sentence about the host as the limit: it is overloaded, or frames come in bursts and fill its rings."""
    (part,) = [part for part in row["parts"] if part["part"] == "host"]
    lost = row["traffic"]["dropped_at_host"] if "traffic" in row else 0
    if part["load"] <= 1:
        few = f"{lost} frames" if lost else "some"
        return (
            "no part of the card or of the host is overloaded in the mean; frames come to the host in bursts, "
            f"and {few} found no buffer in its rings."
        )
    left = (
        f"{lost} frames found no buffer in its rings, and were dropped."
        if lost
        else "Frames without a buffer in its rings are dropped."
    )
    return (
        f"at that rate the host ({part['name']}) needs {fixed(part['load'], 2)} x its capacity, "
        f"with the frames that come to it. {left}"
    )


def _enough(row: LineRateRow) -> str:
    """Return a sentence: the number of cores that would keep up, or that no number would."""
    few = f"the card has {row['hpus']}"
    if row["hpus_needed"] is None:
        why = ""
        if row["locks"] and row["loads"]["lock"] > 1:
            why = f" ({_held(row['locks'][0])})"
        elif row["loads"]["contended_word"] > 1:
            why = f" ({_changing(row['retries'])})"
        elif row["loads"]["memory_bank"] > 1:
            why = f" ({_occupied(_busiest(row))})"
        return f"{few}, and no number would keep up{why}. {_at_most(row)}"
    # With more cores, handlers would wait longer for locks or for memory.
    least = "at least " if any(lock["waits"] for lock in row["locks"]) or row["memory"]["shared_accesses"] else ""
    return f"{least}{row['hpus_needed']} cores would keep up, but {few}."


def _held(lock: Lock) -> str:
    back = f", given back at {lock['released_at']}" if lock["released_at"] else ""
    over = f" and hands it over in {fixed(lock['handover_ns'])} ns" if lock["handover_ns"] else ""
    times = f", {fixed(lock['load'], 2)} x the available time"
    return (
        f"each packet holds {lock['word']} for {fixed(lock['held_ns'])} ns (taken at {lock['acquired_at']}{back}){over}"
        f"{times}, and others wait for it at {lock['waited_at']}"
    )


def _changing(word: Retries | None) -> str:
    if word is None:
        return "handlers try to change a word that other handlers have changed first"
    over = f", with {fixed(word['handover_ns'])} ns between a change and the next load" if word["handover_ns"] else ""
    return (
        f"each packet changes {word['word']} {fixed(word['update_ns'])} ns after it has loaded it{over}, "
        f"{fixed(word['load'], 2)} x the available time: meanwhile no other handler succeeds, and handlers retry "
        f"{fixed(word['retries_per_packet'], 1)} times a packet, at {word['retried_at']}"
    )


def _busiest(row: LineRateRow) -> MemoryLevel:
    return max(row["memory"]["levels"], key=lambda level: level["load"])


def _occupied(level: MemoryLevel) -> str:
    times = f"{fixed(level['busiest_accesses'], 1)} times, for {fixed(level['load'], 2)} x the available time"
    return f"each packet occupies {level['busiest']} {times}"


def _at_most(row: LineRateRow) -> str:
    most = fixed(100 * row["reachable_fraction"], 1)
    return f"With any number of cores, at most {most}% of the {offered([row])} can get through."


def _lost(row: LineRateRow) -> int:
    return row["traffic"]["dropped_by_overload"] if "traffic" in row else 0


def _overload(row: LineRateRow) -> str:
    return row["traffic"]["overload_policy"] if "traffic" in row else "credits"


def _keeps_a_place(row: LineRateRow) -> str:
    if _overload(row) == "credits":
        return "from its departure until its credit returns"
    return "from its arrival until the card frees the place"


def _when_full(row: LineRateRow) -> str:
    return {
        "lossy": "packets that find it full are dropped, and ",
        "pfc": "then the wire is paused, and ",
        "credits": "then the sender waits for credits, and ",
    }[_overload(row)]


def _gets_through(row: LineRateRow) -> str:
    through = fixed(100 * row["line_rate_fraction"], 1)
    if _lost(row):
        return f"{through}% of the traffic gets through. {_lost(row)} packets are lost."
    if "traffic" in row:
        # The measured rate includes the start and the end of the run, and may exceed the offered rate.
        most = fixed(100 * min(row["capacity_fraction"], 1.0), 1)
        return f"{most}% of the offered rate can get through. Nothing is lost."
    return f"{through}% of the line rate gets through. Nothing is lost."
