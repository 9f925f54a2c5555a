"""A recording of a line-rate check as columns for the page: a timeline, and the packets with their dispositions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from nicety.serve.work.columns import NONE, packed

if TYPE_CHECKING:
    from nicety import _native
    from nicety.serve.work.columns import Array

CARD = 1
"""The node of the card. The other nodes are senders, in the order of ports, and switches behind them."""
_PROGRAMS = "program"
_LANES = {"HPU": "core"}
"""Names of resources for the page, if others than in tables."""
_BINS = 60
"""Number of bins of a histogram, equally wide on a logarithmic scale."""

_OF_MESSAGES = {
    "frame": "to host",
    "sent on": "forwarded",
    "ring full": "dropped: no buffer at the host",
    "too long": "dropped: longer than the host's buffers",
    "check sequence": "damaged",
    "handler failed": "failed",
}
"""Dispositions by the outcome of a frame."""
_OF_RUNS = {"SUCCESS": "processed", "DROP": "dropped by handler", "PROCEED": "to host", "HOST": "to host"}
"""Dispositions by the first word of a handler's outcome."""
_NOT_ARRIVED = "dropped: packet buffer full"
_LOSSES = ("dropped: ", "damaged", "lost")


@dataclass(frozen=True)
class _Rows:
    """Columns of a table: whole numbers and times as real numbers, texts as codes."""

    table: _native.Table

    def reals(self, name: str) -> Array:
        return np.frombuffer(self.table.reals(name), dtype=np.float64)

    def texts(self, name: str) -> tuple[Array, list[str]]:
        codes, texts = self.table.codes(name)
        return np.frombuffer(codes, dtype=np.uint32), texts


@lru_cache(maxsize=4)
def _rows(recording: _native.Recording, name: str) -> _Rows:
    """Return a table of a recording. Each is made once: both messages of a recording need them."""
    return _Rows(getattr(recording, name)())


@dataclass(frozen=True)
class Numbers:
    """Numbers of packets for the page.

    With traffic each packet is a message, and packet n of port p has the number n times the ports, plus p. In equal
    traffic a message has several packets, which are numbered in their order.

    Attributes:
        ports: the number of ports.
        each: whether each packet is a message.
        source: the sender of each packet of the recording.
        sequence: its message.
        offset: its place in the message.
        number: its number.
    """

    ports: int
    each: bool
    source: Array
    sequence: Array
    offset: Array
    number: Array

    def of_messages(self, source: Array, sequence: Array) -> Array:
        """Return the numbers of messages with one packet; `NONE` for other messages."""
        found = np.full(len(source), NONE, dtype=np.uint32)
        if self.each:
            known = (source >= 0) & (source != CARD) & (sequence >= 0)
            port = source[known] - (source[known] > CARD)
            found[known] = (sequence[known] * self.ports + port).astype(np.uint32)
        return found

    def of_packets(self, source: Array, sequence: Array, offset: Array) -> Array:
        """Return the numbers of packets; `NONE` for unknown ones."""
        if self.each:
            return self.of_messages(source, sequence)
        found = np.full(len(source), NONE, dtype=np.uint32)
        scale = float(self.offset.max(initial=0)) + 1
        at = _find(self.sequence * scale + self.offset, sequence * scale + offset)
        same = (at >= 0) & (source != CARD)
        found[same] = self.number[at[same]]
        return found


def numbers_of(recording: _native.Recording) -> tuple[Numbers, Array]:
    """Return the numbers of a recording's packets, and which rows of its table of packets they have."""
    rows = _rows(recording, "packets")
    source, sequence, offset = (rows.reals(name) for name in ("source", "sequence", "offset_bytes"))
    sent = np.flatnonzero(source != CARD)
    source, sequence, offset = source[sent], sequence[sent], offset[sent]
    ports = len(np.unique(source)) or 1
    each = bool((offset == 0).all())
    if each:
        number = sequence * ports + (source - (source > CARD))
    else:
        number = np.empty(len(sent))
        number[np.lexsort((offset, sequence))] = np.arange(len(sent))
    return Numbers(ports, each, source, sequence, offset, number.astype(np.uint32)), sent


def timeline_message(recording: _native.Recording, about: Mapping[str, Any]) -> bytes:
    """Return the uses of resources as a message: lanes, labels, and columns with a row for each use."""
    numbers, _ = numbers_of(recording)
    rows = _rows(recording, "resources")
    node, unit, start, end = (rows.reals(name) for name in ("node", "unit", "start_ps", "end_ps"))
    resource, resources = rows.texts("resource")
    label, labels = rows.texts("what")
    packet = numbers.of_messages(*_causes(recording, rows.reals("source"), rows.reals("sequence")))
    _add_runs(recording, numbers, (node, unit, start), packet)
    # Programs of hosts only wait until the run begins.
    shown = resource != resources.index(_PROGRAMS) if _PROGRAMS in resources else np.ones(len(node), dtype=bool)
    node, unit, start, end, resource = (each[shown] for each in (node, unit, start, end, resource))
    keys = _joined(node, resource, unit)
    _, first, lane = np.unique(keys, return_index=True, return_inverse=True)
    lanes = list(zip(node[first], resource[first], unit[first], strict=True))
    several = {(one[0], one[1]) for one in lanes if one[2] > 0}
    described = [
        {
            "name": _lane(resources[int(kind)], int(number), numbered=(where, kind) in several),
            "group": resources[int(kind)],
            "node": _node(int(where), numbers.ports),
        }
        for where, kind, number in lanes
    ]
    header = {
        **about,
        "part": "timeline",
        "rows": len(start),
        "left_out": recording.left_out()["resources"],
        "start_ps": float(start.min()) if len(start) else 0.0,
        "end_ps": float(end.max()) if len(end) else 0.0,
        "lanes": described,
        "labels": labels,
    }
    order = np.argsort(start, kind="stable")
    columns = {
        "lane": lane.reshape(-1).astype(np.uint32)[order],
        "start_ps": start[order],
        "length_ps": (end - start)[order],
        "label": label[shown][order],
        "packet": packet[shown][order],
    }
    return packed(header, columns)


def _causes(recording: _native.Recording, source: Array, sequence: Array) -> tuple[Array, Array]:
    """Return the messages of uses; for a message of a handler, the message that caused it."""
    rows = _rows(recording, "messages")
    own, number, cause = (rows.reals(name) for name in ("source", "sequence", "cause_sequence"))
    known = np.flatnonzero((own == CARD) & ~np.isnan(cause))
    at = _find(number[known], sequence)
    same = (source == CARD) & (at >= 0)
    source, sequence = source.copy(), sequence.copy()
    source[same] = rows.reals("cause_source")[known[at[same]]]
    sequence[same] = cause[known[at[same]]]
    return source, sequence


def _add_runs(recording: _native.Recording, numbers: Numbers, uses: tuple[Array, Array, Array], packet: Array) -> None:
    """Set the packets of cores' uses, which name only messages, by the runs of handlers that began at these times."""
    if numbers.each:
        return
    rows = _rows(recording, "handler_runs")
    of_runs = numbers.of_packets(rows.reals("source"), rows.reals("sequence"), rows.reals("offset_bytes"))
    keys = zip(rows.reals("node"), rows.reals("hpu"), rows.reals("start_ps"), strict=True)
    runs = dict(zip(keys, of_runs, strict=True))
    for at, key in enumerate(zip(*uses, strict=True)):
        packet[at] = runs.get(key, packet[at])


def _lane(resource: str, number: int, *, numbered: bool) -> str:
    name = _LANES.get(resource, resource)
    return f"{name} {number}" if numbered or resource in _LANES else name


def _node(node: int, ports: int) -> str:
    if node == CARD:
        return "card"
    port = node - (node > CARD)
    if port >= ports:
        return "network"
    return "sender" if ports == 1 else f"sender of port {port}"


def packets_message(recording: _native.Recording, about: Mapping[str, Any]) -> tuple[bytes, dict[str, Array]]:
    """Return the packets as a message, with the disposition of each, and its columns."""
    numbers, sent = numbers_of(recording)
    rows = _rows(recording, "packets")
    times = {name: rows.reals(name)[sent] for name in ("sent_ps", "arrived_ps", "settled_ps")}
    runs, outcomes = _runs_of(recording, numbers)
    codes, names = _dispositions(recording, numbers, outcomes, ~np.isnan(times["arrived_ps"]))
    counts = np.bincount(codes, minlength=len(names)) if len(codes) else np.zeros(len(names), dtype=int)
    port = numbers.source - (numbers.source > CARD)
    columns = {
        "packet": numbers.number,
        "port": port.astype(np.uint32),
        "size_bytes": rows.reals("size_bytes")[sent].astype(np.uint32),
        "disposition": codes.astype(np.uint32),
        **times,
        "start_ps": runs["start_ps"],
        "end_ps": runs["end_ps"],
        "latency_ps": times["settled_ps"] - times["arrived_ps"],
        **{name: _whole(runs[name]) for name in ("hpu", "cycles", "instructions")},
    }
    columns["core"] = columns.pop("hpu")
    order = np.argsort(columns["sent_ps"], kind="stable")
    columns = {name: column[order] for name, column in columns.items()}
    header = {
        **about,
        "part": "packets",
        "rows": len(order),
        "left_out": recording.left_out()["packets"],
        "dispositions": [
            {
                "name": name,
                "is_failure": name.startswith("failed"),
                "is_loss": name.startswith(_LOSSES),
                "packets": int(count),
            }
            for name, count in zip(names, counts, strict=True)
        ],
    }
    return packed(header, columns), columns


def _whole(values: Array) -> Array:
    return np.where(np.isnan(values), NONE, values).astype(np.uint32)


def _joined(first: Array, second: Array, third: Array) -> Array:
    """Return three columns of small whole numbers as one column, which sorts faster."""
    first, second, third = (column.astype(np.int64) for column in (first, second, third))
    return (first << 48) | (second << 32) | third


def _find(keys: Array, wanted: Array) -> Array:
    """Return the index of each wanted value among some keys; -1 for a missing one."""
    if len(keys) == 0:
        return np.full(len(wanted), -1)
    order = np.argsort(keys, kind="stable")
    at = np.searchsorted(keys[order], wanted).clip(0, len(keys) - 1)
    return np.where(keys[order][at] == wanted, order[at], -1)


def _runs_of(recording: _native.Recording, numbers: Numbers) -> tuple[dict[str, Array], tuple[Array, list[str]]]:
    """Return the run of each packet's payload or header handler, and its outcome (-1: none) with names."""
    rows = _rows(recording, "handler_runs")
    kind, kinds = rows.texts("handler")
    outcome, outcomes = rows.texts("outcome")
    of_runs = numbers.of_packets(rows.reals("source"), rows.reals("sequence"), rows.reals("offset_bytes"))
    found = {
        name: np.full(len(numbers.number), np.nan) for name in ("start_ps", "end_ps", "hpu", "cycles", "instructions")
    }
    ended = np.full(len(numbers.number), -1)
    # Payload handlers come last, so that theirs replaces the header handler's.
    for wanted in ("header", "payload"):
        runs = np.flatnonzero(kind == kinds.index(wanted)) if wanted in kinds else np.empty(0, dtype=int)
        at = _find(of_runs[runs], numbers.number)
        some = at >= 0
        for name, values in found.items():
            values[some] = rows.reals(name)[runs[at[some]]]
        ended[some] = outcome[runs[at[some]]]
    return found, (ended, outcomes)


_SOURCES = float(1 << 44)
"""A factor for the source in a key of messages."""


def _dispositions(
    recording: _native.Recording, numbers: Numbers, runs: tuple[Array, list[str]], arrived: Array
) -> tuple[Array, list[str]]:
    """Return the disposition of each packet as a code, and the dispositions' names."""
    rows = _rows(recording, "messages")
    outcome, outcomes = rows.texts("outcome")
    keys = rows.reals("source") * _SOURCES + rows.reals("sequence")
    at = _find(keys, numbers.source * _SOURCES + numbers.sequence)
    of_message = np.full(len(at), -1)
    of_message[at >= 0] = outcome[at[at >= 0]]
    ended, names = runs
    _, first, code = np.unique(_joined(of_message + 1, ended + 1, arrived), return_index=True, return_inverse=True)
    kinds = zip(of_message[first], ended[first], arrived[first], strict=True)
    known = np.empty(len(first), dtype=int)
    found: dict[str, int] = {}
    for row, (message, run, came) in enumerate(kinds):
        name = disposition(
            outcomes[message] if message >= 0 else None, names[run] if run >= 0 else None, came=bool(came)
        )
        known[row] = found.setdefault(name, len(found))
    return known[code.reshape(-1)], list(found)


def disposition(message: str | None, run: str | None, *, came: bool) -> str:
    """Return the disposition of a packet.

    Args:
        message: the outcome of its message.
        run: the outcome of its handler, if one ran.
        came: whether it arrived in the packet buffer.
    """
    if not came:
        return _NOT_ARRIVED
    if message in _OF_MESSAGES:
        return _OF_MESSAGES[message]
    if message == "dropped by handler":
        return message
    if run is not None:
        word = run.partition("_")[0]
        return _OF_RUNS.get(word, f"failed: {run}")
    return "to host" if message in ("ok", None) else f"failed: {message}"


def latency_histogram(nic: str, packets: Mapping[str, Array]) -> dict[str, Any] | None:
    """Return the latencies of packets through the card as a histogram; None without one.

    A latency is the time from the last byte in the packet buffer until the packet has left it. The bins are equally
    wide on a logarithmic scale.
    """
    latencies = packets["latency_ps"]
    latencies = latencies[~np.isnan(latencies)] / 1000
    if len(latencies) == 0:
        return None
    least, most = max(float(latencies.min()), 0.001), max(float(latencies.max()), 0.001)
    # Rounded edges must not leave out the least and the greatest latency.
    edges = np.geomspace(least * (1 - 1e-9), most * (1 + 1e-9), _BINS + 1)
    counts, _ = np.histogram(latencies.clip(least, most), edges)
    return {"nic": nic, "packets": len(latencies), "edges_ns": edges.tolist(), "counts": counts.tolist()}
