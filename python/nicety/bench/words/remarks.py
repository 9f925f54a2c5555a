"""Remarks on a line-rate check in sentences: conditions under which its figures are valid."""

from __future__ import annotations

from collections.abc import Iterator

from nicety._generated.types import LineRateRow, TrafficFigures
from nicety.bench.verdicts import named
from nicety.show.columns import fixed


def remarks(rows: list[LineRateRow]) -> Iterator[str]:
    """The remarks on a card's rows."""
    for row in rows:
        if "traffic" in row:
            yield from (f"{named(row)}: {remark}" for remark in _of_traffic(row["traffic"]))
    yield from _growing(rows)
    yield from _maybe_locks(rows)
    yield from _at_higher_rates(rows)
    yield from _retries(rows)


def unused(rows: list[LineRateRow]) -> list[str]:
    """Return sentences for rows in which no handler ran: their verdict is that of the card without handlers."""
    return [
        f"{named(row)}: no handler ran, since no frame has matched a rule (--rule): all went on to the host, and the "
        "verdict is that of the card without handlers."
        for row in rows
        if not row["handlers"]
    ]


def _of_traffic(traffic: TrafficFigures) -> Iterator[str]:
    """Yield the conditions under which figures of traffic are valid."""
    if traffic["loads_from_lossless_run"]:
        # The packets that came through are not those offered.
        others = f", not only of the {traffic['handled']} that came through, which may be a different mix"
        if traffic["handled"] == traffic["offered"]:
            others = f", including the {traffic['dropped_at_link']} that found no room before their port"
        yield (
            f"loads are those of all {traffic['offered']} packets{others}: they were measured in a second run, in "
            "which the sender waits and nothing is lost."
        )
    if lost := traffic["unknown_destination"]:
        yield (
            f"{lost} frames that handlers sent have a destination address that no station here has, such as that of a "
            "next hop or a broadcast: each leaves by the port at which its packet arrived."
        )
    if traffic["recorded_above_wire_rate"]:
        yield (
            "packets of a capture were recorded faster than this wire takes them. They arrive at the wire's rate, "
            "and the verdict is for that rate."
        )


def _growing(rows: list[LineRateRow]) -> Iterator[str]:
    """Yield sentences for rows in which the handler time per packet grows during the run."""
    for row in rows:
        if growth := row["growth"]:
            yield (
                f"{named(row)}: handlers take longer and longer: {fixed(growth['first_ns'], 1)} ns a packet in the "
                f"first quarter of the packets, {fixed(growth['last_ns'], 1)} ns at the end. The load of handler "
                "cores is that of the end; a run with more packets shows later times."
            )


def _maybe_locks(rows: list[LineRateRow]) -> list[str]:
    """Return sentences about words in memory that may be locks, and would then be the bottleneck.

    No handler had to wait for such a word in the run.
    """
    words = []
    for row in rows:
        most = max((part["load"] for part in row["parts"]), default=0.0)
        maybe = [lock for lock in row["locks"] if not lock["waits"]]
        for lock in maybe[:1]:
            if lock["load"] > most:
                back = lock["released_at"] or lock["acquired_at"]
                words.append(
                    f"{named(row)}: {lock['word']} may be a lock for which no handler had to wait: a handler that "
                    f"changes or finds it at {lock['acquired_at']} changes it again at {back}, before any other "
                    "handler does. If handlers have to wait for it, it is the bottleneck, with a load of "
                    f"{fixed(100 * lock['load'], 1)}%; Poisson arrivals or a higher rate show whether they wait."
                )
    return words


def _at_higher_rates(rows: list[LineRateRow]) -> Iterator[str]:
    """Yield sentences for rows in which the bottleneck may need more time per packet at an untried, higher rate."""
    for row in rows:
        if row["trials"]:
            continue
        parts = {part["part"]: part["load"] for part in row["parts"]}
        first = max(parts, key=parts.__getitem__, default=None)
        if row["verdict"] != "no" and first == "lock":
            yield (
                f"{named(row)}: near the full load of its lock the card may sustain less than that: accesses by "
                "waiting handlers delay its holder, so each holds it for longer. A run at that rate shows this."
            )
        if row["verdict"] == "yes" and parts.get("cache misses"):
            yield (
                f"{named(row)}: cache misses are those at this rate. At a higher rate more cores are busy, and lines "
                "that they share move between their caches more often. A run at that rate shows this."
            )


# Minimum number of retries per packet that is mentioned.
_FEW_RETRIES = 0.01


def _retries(rows: list[LineRateRow]) -> list[str]:
    """Return sentences for rows in which handlers retry an update, since another handler changed the word first."""
    words = []
    for row in rows:
        retries = row["retries"]
        if retries and retries["retries_per_packet"] >= _FEW_RETRIES:
            text = (
                f"{named(row)}: {fixed(retries['retries_per_packet'], 2)} times a packet a handler retries an access "
                f"to {retries['word']}, at {retries['retried_at']}: another handler changed it first, or it does not "
                "have the expected value yet."
            )
            if row["verdict"] != "no" and not row["trials"]:
                text += " At a higher rate that may be far more often, so that the card may sustain far less than loads"
                text += " say."
            words.append(text)
    return words
