"""The benchmarks of sockets: streams of many connections, and requests with their replies."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any, Unpack, cast

from nicety import _native
from nicety._generated.types import (
    ExchangeOptions,
    ExchangeReport,
    SocketsManifest,
    StreamOptions,
    StreamReport,
)
from nicety.bench.measured import Progress, reported
from nicety.shared.options import request_text
from nicety.shared.typed import checked
from nicety.show.circumstances import circumstances, dropped
from nicety.show.columns import align, fixed
from nicety.show.html import table_html

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@checked
def bench_stream(*, progress: Progress | None = None, **given: Unpack[StreamOptions]) -> StreamReport:
    """Measure streams of many connections between two hosts: throughput, and its cost in CPU time of one host.

    Args:
        progress: called with the number of rows done, and the total.
        given: the arguments of `StreamOptions`.

    Raises:
        InputError: a card without sockets, an invalid number, or a topology that does not fit two hosts.
        RunError: the run failed, for example because a connection timed out.
    """
    report = json.loads(_native.stream_bench(request_text(StreamOptions, given), progress))
    return cast(StreamReport, reported(report, socket_html, socket_figure))


@checked
def bench_request_response(*, progress: Progress | None = None, **given: Unpack[ExchangeOptions]) -> ExchangeReport:
    """Measure requests and their replies on many connections: requests per second, and latency.

    Args:
        progress: called with the number of rows done, and the total.
        given: the arguments of `ExchangeOptions`.

    Raises:
        InputError: a card without sockets, an invalid number, or a measured time in which no reply arrives.
        RunError: the run failed, for example because a connection timed out.
    """
    report = json.loads(_native.exchange_bench(request_text(ExchangeOptions, given), progress))
    return cast(ExchangeReport, reported(report, socket_html, socket_figure))


def socket_html(report: StreamReport | ExchangeReport) -> str:
    """Return a report for a notebook: a table per card and axis."""
    about = f"{report['benchmark']}, nicety {report['version']}, seed {report['seed']}"
    return f"<p>{escape(about)}</p>" + "".join(table_html(title, rows) for title, rows in socket_tables(report))


_TITLES = {"stream": "Stream", "request-response": "Request/Response"}


def socket_text(report: StreamReport | ExchangeReport) -> str:
    """Return a report as text: a table per card and axis, and a packet's CPU time by function group."""
    lines = [f"# nicety {_TITLES[report['benchmark']]} Test v{report['version']}", *_about(report)]
    for title, (head, *body) in [*socket_tables(report), *_breakdowns(report)]:
        lines += ["", f"# {title}", *align([[f"# {head[0]}", *head[1:]], *body], range(1, len(head)))]
    rows: Sequence[Mapping[str, Any]] = report["rows"]
    for row in rows:
        calls = f", {row['io_size_bytes']} B a call on {row['cpus']} CPUs" if "io_size_bytes" in row else ""
        lines += dropped(f"{row['nic']}, {row['connections']} connections{calls}", row)
    if report["benchmark"] != "stream":
        lines += _late(cast(ExchangeReport, report))
    return "\n".join(lines) + "\n"


_FEW = 3
"""Minimum number of requests per connection; with fewer a warning is printed."""


def _late(report: ExchangeReport) -> list[str]:
    """Return warnings: few requests were measured, or one without a reply took longer than all measured requests."""
    few = [
        f"# {row['nic']}, {row['connections']} connections: {row['requests']} requests are few; "
        "write a longer --duration"
        for row in report["rows"]
        if row["requests"] < _FEW * row["connections"]
    ]
    return few + [
        f"# {row['nic']}, {row['connections']} connections: {row['unanswered_requests']} requests had no reply at the "
        f"end; one of them waited {fixed(row['unanswered_max_ns'] / 1e3, 2)} us, and the figures include none of them"
        for row in report["rows"]
        if row.get("unanswered_max_ns", 0) > row["max_ns"]
    ]


def _about(report: StreamReport | ExchangeReport) -> list[str]:
    manifest: SocketsManifest = report["manifest"]
    peer = f"its peer has {manifest['peer']['nic']}" if "peer" in manifest else "its peer has the same card"
    times = f"measured for {manifest['duration_ns'] / 1e6:g} ms after a warm-up of {manifest['warmup_ns'] / 1e6:g} ms"
    row: Mapping[str, Any] = report["rows"][0]
    if report["benchmark"] == "stream":
        what = f"rank 0 {'receives' if row['direction'] == 'receive' else 'transmits'}; {peer}"
    else:
        think = f", after {row['think_ns'] / 1e3:g} us of thought" if row["think_ns"] else ""
        what = f"requests of {row['size_bytes']} B to rank 0, replies of {row['reply_bytes']} B{think}; {peer}"
    lines = [f"# {what}", f"# seed {report['seed']}, {times}; a packet's costs are rank 0's"]
    return [*lines, *(f"# {note}" for note in _around(report))]


def _around(report: StreamReport | ExchangeReport) -> list[str]:
    """Return lines about unusual circumstances, except for the peer: `_about` describes it."""
    return circumstances({key: value for key, value in report["manifest"].items() if key != "peer"})


_AXES = {"io_size_bytes": "Call (B)", "connections": "Connections", "cpus": "CPUs"}
"""Maps each axis of a sweep of streams, a field of its rows, to the title of its column."""


def socket_tables(report: StreamReport | ExchangeReport) -> list[tuple[str, list[list[str]]]]:
    """Return titles and tables: for streams one per card and axis, otherwise one per card. Row 0 names the columns."""
    if report["benchmark"] == "stream":
        head = ["Gb/s", "CPUs (%)", "ns/packet", "Instr.", "Switches", "Calls", "Intr.", "Resent", "Dropped"]
        return [
            (title, [[_AXES[axis], *head], *([str(row[axis]), *_stream_cells(row)] for row in rows)])
            for title, axis, rows in sweeps(cast(StreamReport, report))
        ]
    columns = ["Connections", "Requests/s", "Latency (us)", "p50", "p99", "max", "CPUs (%)", "CPU us/request", "Resent"]
    found = cast(ExchangeReport, report)["rows"]
    nics = dict.fromkeys(row["nic"] for row in found)
    return [(nic, [columns, *(_exchange_cells(row) for row in found if row["nic"] == nic)]) for nic in nics]


def sweeps(report: StreamReport) -> list[tuple[str, str, list[Mapping[str, Any]]]]:
    """Return a title, the axis and the rows for each card and axis.

    Along an axis, all other parameters of the rows have their most frequent values. Each row of the report is in a
    table.
    """
    rows: Sequence[Mapping[str, Any]] = report["rows"]
    found = []
    for nic in dict.fromkeys(row["nic"] for row in rows):
        own = [row for row in rows if row["nic"] == nic]
        base = {axis: _usual([row[axis] for row in own]) for axis in _AXES}
        for axis in _AXES:
            others = [other for other in _AXES if other != axis]
            along = [row for row in own if all(row[other] == base[other] for other in others)]
            if len(along) > 1 or (len(own) == 1 and axis == "io_size_bytes"):
                along.sort(key=lambda row: row[axis])
                rest = _parameters(base, others)
                found.append((f"{nic}: {rest}", axis, along))
        # A row that is alone on its axis is not in a table yet.
        shown = {id(row) for _, _, along in found for row in along}
        alone: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
        for row in own:
            if id(row) not in shown:
                axis = next((axis for axis in _AXES if row[axis] != base[axis]), "io_size_bytes")
                rest = _parameters(row, [other for other in _AXES if other != axis])
                alone.setdefault((axis, rest), []).append(row)
        found += [(f"{nic}: {rest}", axis, rows) for (axis, rest), rows in alone.items()]
    return found


_NAMES = {"io_size_bytes": "B a call", "connections": "connections", "cpus": "CPUs"}


def _parameters(row: Mapping[str, Any], axes: Iterable[str]) -> str:
    """Return the values of parameters of a row as words."""
    return ", ".join(f"{row[axis]} {_NAMES[axis]}" for axis in axes if axis in row)


def _usual(values: Sequence[int]) -> int:
    """Return the most frequent value. Of several equally frequent values, it is the one that appears last."""
    return max(dict.fromkeys(values), key=lambda value: (values.count(value), values.index(value)))


def _stream_cells(row: Mapping[str, Any]) -> list[str]:
    return [
        fixed(row["bandwidth_bits_per_s"] / 1e9, 3),
        fixed(100 * row["cpu_utilisation"], 1),
        fixed(row["cpu_ns_per_packet"], 1),
        fixed(row["instructions_per_packet"], 0),
        fixed(row["context_switches_per_packet"], 3),
        fixed(row["cross_calls_per_packet"], 3),
        fixed(row["interrupts_per_packet"], 3),
        str(row["retransmissions"]),
        str(row["dropped"]),
    ]


def _exchange_cells(row: Mapping[str, Any]) -> list[str]:
    return [
        str(row["connections"]),
        fixed(row["requests_per_s"], 0),
        *(fixed(row[name] / 1e3, 2) for name in ("latency_ns", "p50_ns", "p99_ns", "max_ns")),
        fixed(100 * row["cpu_utilisation"], 1),
        fixed(row["cpu_ns_per_request"] / 1e3, 2),
        str(row["retransmissions"]),
    ]


def _breakdowns(report: StreamReport | ExchangeReport) -> list[tuple[str, list[list[str]]]]:
    """Return a title and a table: a packet's CPU time by function group, in each card's last shown row."""
    last: dict[str, Mapping[str, Any]] = {row["nic"]: row for row in report["rows"]}
    if report["benchmark"] == "stream":
        last |= {rows[-1]["nic"]: rows[-1] for _, _, rows in sweeps(cast(StreamReport, report))}
    groups = [one["group"] for row in last.values() for one in row["breakdown"]]
    body = []
    for group in dict.fromkeys(groups):
        times = {
            nic: one["ns_per_packet"] for nic, row in last.items() for one in row["breakdown"] if one["group"] == group
        }
        if any(times.values()):
            body.append([group, *(fixed(times.get(nic, 0), 1) for nic in last)])
    body.append(["all", *(fixed(row["cpu_ns_per_packet"], 1) for row in last.values())])
    axes = _AXES if report["benchmark"] == "stream" else ["connections"]
    places = {nic: _parameters(row, axes) for nic, row in last.items()}
    if len(set(places.values())) == 1:
        place = next(iter(places.values()))
    else:
        place = "; ".join(f"{nic} at {each}" for nic, each in places.items())
    return [(f"CPU time of a packet (ns): {place}", [["Group", *last], *body])]


def socket_figure(report: StreamReport | ExchangeReport) -> Figure:
    """Draw a report: throughput and CPU utilisation of streams along each axis, or rate and latency of requests."""
    from nicety.show.axes import house_style, new_figure, set_figure_titles, size_axis, value_axis
    from nicety.show.lines import Curve, draw

    panels: list[tuple[str, str, list[tuple[str, dict[int, float]]]]] = []
    if report["benchmark"] == "stream":
        stream = cast(StreamReport, report)
        for axis, label in _AXES.items():
            rows = [(title.partition(":")[0], along) for title, of, along in sweeps(stream) if of == axis]
            if rows:
                bits = [(nic, {row[axis]: row["bandwidth_bits_per_s"] / 1e9 for row in along}) for nic, along in rows]
                busy = [(nic, {row[axis]: 100 * row["cpu_utilisation"] for row in along}) for nic, along in rows]
                panels += [(label, "Gb/s", bits), (label, "CPUs (%)", busy)]
    else:
        found = cast(ExchangeReport, report)["rows"]
        own = {nic: [row for row in found if row["nic"] == nic] for nic in dict.fromkeys(row["nic"] for row in found)}
        rates = [(nic, {row["connections"]: row["requests_per_s"] for row in rows}) for nic, rows in own.items()]
        times = [(nic, {row["connections"]: row["latency_ns"] / 1e3 for row in rows}) for nic, rows in own.items()]
        panels = [("Connections", "Requests a second", rates), ("Connections", "Latency (µs)", times)]
    with house_style():
        figure = new_figure(9.6, 3.4 * ((len(panels) + 1) // 2) + 0.4)
        axes = figure.subplots((len(panels) + 1) // 2, 2, squeeze=False).flat
        handles = []
        for place, (x, y, curves) in zip(axes, panels, strict=True):
            lines = [Curve(nic, points, colour=number, marker=number) for number, (nic, points) in enumerate(curves)]
            value_axis(place, [value for _, points in curves for value in points.values()], y)
            handles = draw(place, lines)
            size_axis(place, sorted({size for _, points in curves for size in points}))
            place.set_xlabel(x)
        what, *notes = [line.removeprefix("# ") for line in _about(report)]
        set_figure_titles(figure, f"{_TITLES[report['benchmark']]}: {what}", notes)
        figure.legend(handles=handles, frameon=False, fontsize=8, loc="outside lower left", ncols=2)
    return figure
