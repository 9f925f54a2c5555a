"""The benchmarks of latency, bandwidth and message rate between hosts. The cards' handlers are compiled first."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from html import escape
from typing import TYPE_CHECKING, Any, Unpack, cast, get_args

from nicety import _native
from nicety._generated.types import Flow, MessagesBenchmark, MessagesOptions, Report, Row
from nicety.bench.measured import Progress, Scale, measured
from nicety.build.compiler import compiled
from nicety.program.failures import Allowed, allowed, require_report
from nicety.shared.checks import Place
from nicety.shared.options import request_text
from nicety.shared.typed import checked
from nicety.show.circumstances import circumstances, dropped
from nicety.show.columns import align, distinct, fixed, merged_order
from nicety.show.html import table_html

if TYPE_CHECKING:
    from matplotlib.figure import Figure


BENCHMARKS: tuple[MessagesBenchmark, ...] = get_args(MessagesBenchmark)


@checked
def run_benchmark(
    benchmark: MessagesBenchmark,
    *,
    handlers: Place | None = None,
    cc: str | None = None,
    allow_failures: Allowed = (),
    trace: Place | None = None,
    trace_scale: Scale = "ns",
    progress: Progress | None = None,
    **given: Unpack[MessagesOptions],
) -> Report:
    """Run a benchmark on one or several cards.

    Args:
        benchmark: `latency` is half a round trip of send and receive. `bandwidth` and `message-rate` are a window of
            messages in one direction; its time is from the first post to the last completion.
        handlers: the user's own handlers in C, instead of nicety's.
        cc: a compiler to use instead of the one in the `ziglang` package.
        allow_failures: failures of handlers that are part of the experiment; see `Cluster`.
        trace: a file for a timeline of the first run (first card, mode and size), to be opened with
            https://ui.perfetto.dev; see `Run.trace` for its contents.
        trace_scale: the tick of the timeline, a nanosecond or a picosecond.
        progress: called with the number of rows done, and the total.
        given: the arguments of `MessagesOptions`.

    Raises:
        InputError: a card, mode, size, override or handler that does not exist or is invalid.
        HandlerFailure: handlers failed in a way that is not allowed; the exception's `report` is complete.
        RunError: the run failed: a deadlock, a trap in a handler, or a wrong byte in a reply.
    """
    kinds = allowed(allow_failures)
    shown = measured(
        request_text(MessagesOptions, given, benchmark=benchmark, handlers=handlers is not None),
        _native.bench_plan,
        _native.bench,
        lambda item: compiled(item["source"], item["isa"], cc, own=handlers),
        report_html,
        report_figure,
        trace=trace,
        trace_scale=trace_scale,
        progress=progress,
    )
    report = cast(Report, shown)
    require_report(report, kinds)
    return report


_TITLES = {"latency": "Latency Test", "bandwidth": "Bandwidth Test", "message-rate": "Message Rate Test"}
_UNITS = {"latency": "Latency (ns)", "bandwidth": "Bandwidth (MB/s)", "message-rate": "Messages/s"}
_MEANINGS = {
    "latency": "half a round trip of send and receive, host to host",
    "bandwidth": "payload of a window of messages one way, 10^6 bytes a second",
    "message-rate": "a window of messages one way, from the first post to the last completion",
}
_MEANINGS_OF_PUTS = {
    "latency": "half a round trip of a put and the put that answers it",
    "bandwidth": "payload of a window of puts up to the answer to the last, 10^6 bytes a second",
    "message-rate": "a window of puts, from the first post to the answer to the last",
}
_UNITS_SHORT = {"latency": "mean", "bandwidth": "MB/s", "message-rate": "messages/s"}
_Table = tuple[str, list[list[str]]]
"""A title, and rows of cells; row 0 names the columns."""


def _meaning(report: Report) -> str:
    """Return a line that describes the measured quantity."""
    puts = report["manifest"].get("puts")
    if puts is None:
        return _MEANINGS[report["benchmark"]]
    if puts["flush_receive"]:
        return "a window of puts, up to the last byte that the sender's card has read"
    pong = f" of {puts['pong_size_bytes']} B" if report["benchmark"] == "latency" else ""
    return _MEANINGS_OF_PUTS[report["benchmark"]] + pong


def benchmark_text(report: Report, *, breakdown: bool = False, percentiles: bool = False) -> str:
    """Return a report as text: a table per card; `breakdown` adds a table of stages per card and size.

    If every card ran the same single mode, the cards share a table. With `percentiles` each card and mode has its own
    table. A pattern with several senders adds a table per direction, or for an incast one of fairness.
    """
    rows = report["rows"]
    lines = [
        f"# nicety {_TITLES[report['benchmark']]} v{report['version']}",
        f"# {_meaning(report)}",
        f"# seed {report['seed']}{_iterations(rows)}",
        *_circumstances(report),
    ]
    tables = percentile_tables(report) if percentiles else figure_tables(report)
    for title, (head, *body) in [*tables, *_directions(report)]:
        lines += ["", f"# {title}", *align([[f"# {head[0]}", *head[1:]], *body], range(1, len(head)))]
    if not all(row["verified"] for row in rows):
        lines.append("# * not every byte was checked")
    for row in rows:
        lines += _unaccounted(row)
        lines += dropped(f"{row['nic']}, {row['mode']}, {row['size_bytes']} B", row)
    if breakdown:
        for nic in distinct(row["nic"] for row in rows):
            for size in distinct(row["size_bytes"] for row in rows):
                lines += _stages(nic, size, [r for r in rows if (r["nic"], r["size_bytes"]) == (nic, size)])
    return "\n".join(lines) + "\n"


def _unaccounted(row: Row) -> list[str]:
    """Return a note with the number of iterations in which loss or reordering hides stages."""
    many = row.get("unaccounted_iterations", 0)
    if not many:
        return []
    at = f"{row['nic']}, {row['mode']}, {row['size_bytes']} B"
    return [
        f"# {at}: loss or reordering hides stages of {many} iteration{'s' if many != 1 else ''} (not accounted for)"
    ]


def _iterations(rows: Sequence[Row]) -> str:
    counts = sorted({row["iterations"] for row in rows})
    if not counts:
        return ""
    most = counts[-1]
    return f", {most if len(counts) == 1 else f'{counts[0]} to {most}'} iteration{'s' if most != 1 else ''} a size"


def _circumstances(report: Report) -> list[str]:
    """Return lines about unusual circumstances, and about the senders of a pattern."""
    pattern = report["manifest"].get("pattern", "pair")
    lines = circumstances({**report["manifest"], "pattern": "pair"})
    if pattern == "bidirectional":
        lines.append("bidirectional: ranks 0 and 1 send to each other at once; figures are of both together")
    elif pattern != "pair":
        senders = int(pattern.partition(":")[2])
        who = f"ranks 0 to {senders - 1} send" if senders > 1 else "rank 0 sends"
        lines.append(f"{pattern}: {who} to rank {senders} at once; figures are of all together")
    return [f"# {line}" for line in lines]


def figure_tables(report: Report) -> list[_Table]:
    """Return a report's figures as titles and tables. Row 0 of a table names the columns."""
    return _tables(report, _UNITS[report["benchmark"]], lambda row: _figure(report, row, row["verified"]))


def percentile_tables(report: Report) -> list[_Table]:
    """Return titles and tables with minimum, percentiles and maximum, one per card and mode."""
    latency = report["benchmark"] == "latency"
    unit = _UNITS[report["benchmark"]] if latency else f"{_UNITS[report['benchmark']]}, and the time of a window (ns)"
    names = ["Size", _UNITS_SHORT[report["benchmark"]], *([] if latency else ["mean"])]
    names += ["min", "p50", "p99", "p99.9", "max"]
    tables: dict[tuple[str, str], list[list[str]]] = {}
    for row in report["rows"]:
        times = [row["min_ns"], row["p50_ns"], row["p99_ns"], row["p999_ns"], row["max_ns"]]
        if not latency:
            times.insert(0, row["window_ns"])
        cells = [str(row["size_bytes"]), _figure(report, row, row["verified"]), *(fixed(ns) for ns in times)]
        tables.setdefault((row["nic"], row["mode"]), [names]).append(cells)
    return [(f"{nic}, {mode}: {unit}", table) for (nic, mode), table in tables.items()]


def _directions(report: Report) -> list[_Table]:
    """Return a table per direction of a bidirectional pattern, or for an incast a table of fairness."""
    rows = report["rows"]
    if not all("flows" in row for row in rows):
        return []
    if any("fairness" in row for row in rows):
        title = "fairness, the smallest of the senders' figures over the largest"
        return _tables(report, title, lambda row: fixed(row["fairness"]))
    tables: list[_Table] = []
    for index, way in enumerate(rows[0]["flows"] if rows else []):
        title = f"{_UNITS[report['benchmark']]} from rank {way['source']} to rank {way['target']}"
        tables += _tables(report, title, partial(_flow_figure, report, index))
    return tables


_MOST_BESIDE = 6
"""Maximum number of cards with a column each in one table. More cards have a row each."""


def _tables(report: Report, what: str, cell: Callable[[Row], str]) -> list[_Table]:
    """Return titles and tables: a row per size and a column per mode, or per card if all cards ran one mode.

    More than `_MOST_BESIDE` cards in one table have a row each, and then each size has a column.
    """
    rows = report["rows"]
    modes = distinct(row["mode"] for row in rows)
    nics = distinct(row["nic"] for row in rows)
    if len(modes) == 1 and len(nics) > 1:
        by_nic = {(row["nic"], row["size_bytes"]): cell(row) for row in rows}
        table = _grid(nics, by_nic)
        if len(nics) > _MOST_BESIDE:
            table = [["Card", *row[1:]] if row[0] == "Size" else list(row) for row in zip(*table, strict=True)]
        return [(f"mode {modes[0]}: {what}", table)]
    tables = []
    for nic in nics:
        own = {(row["mode"], row["size_bytes"]): cell(row) for row in rows if row["nic"] == nic}
        tables.append((f"{nic}: {what}", _grid(distinct(mode for mode, _size in own), own)))
    return tables


def _grid(columns: list[str], cells: dict[tuple[str, int], str]) -> list[list[str]]:
    sizes = distinct(size for _column, size in cells)
    return [["Size", *columns], *([str(size), *(cells.get((c, size), "-") for c in columns)] for size in sizes)]


def _flow_figure(report: Report, index: int, row: Row) -> str:
    return _figure(report, row["flows"][index])


def _figure(report: Report, figures: Row | Flow, verified: bool = True) -> str:
    mark = "" if verified else "*"
    if report["benchmark"] == "latency":
        return fixed(figures["latency_ns"]) + mark
    if report["benchmark"] == "bandwidth":
        return fixed(figures["bandwidth_bytes_per_s"] / 1e6, 2) + mark
    return fixed(figures["messages_per_s"], 2) + mark


def _stages(nic: str, size: int, rows: Sequence[Row]) -> list[str]:
    rows = [row for row in rows if row.get("stages")]
    if not rows:
        return []
    columns = [_by_stage(row) for row in rows]
    table = [["# Stage", *(row["mode"] for row in rows)]]
    table += [
        [name, *(fixed(round(column[name], 6)) if name in column else "-" for column in columns)]
        for name in merged_order([list(column) for column in columns])
    ]
    # Stages are rounded to a femtosecond, so that their sum and the latency agree in the printed digits.
    table.append(["sum", *(fixed(round(math.fsum(column.values()), 6)) for column in columns)])
    return ["", f"# {nic}, {size} B: where the time goes (ns)", *align(table, range(1, len(rows) + 1))]


def _by_stage(row: Row) -> dict[str, float]:
    """Return nanoseconds by stage. The times of a stage that was passed several times are added."""
    total: dict[str, float] = {}
    for stage in row.get("stages", []):
        total[stage["stage"]] = total.get(stage["stage"], 0.0) + stage["ns"]
    return total


def report_html(report: Report) -> str:
    """Return a report for a notebook: its figures, in a table per card."""
    about = f"{report['benchmark']}, nicety {report['version']}, seed {report['seed']}"
    return f"<p>{escape(about)}</p>" + "".join(table_html(title, rows) for title, rows in figure_tables(report))


_FIGURE_TITLES = {
    "latency": "Latency: half a round trip, host to host",
    "bandwidth": "Bandwidth: payload of a window of messages one way",
    "message-rate": "Message rate: a window of messages one way",
}


def report_figure(report: Report, *, breakdown: bool = False, percentiles: bool = False) -> Figure:
    """Draw a benchmark's figure over the message size, with a line per card and mode.

    With `percentiles` a thin whisker at each point extends from the minimum to the maximum of the iterations, and a
    thick one from the median to the 99th percentile. With `breakdown` the picture has the stages instead.
    """
    from nicety.show.axes import empty_figure, house_style, set_titles, size_axis, time_unit, value_axis
    from nicety.show.bars import stages_figure
    from nicety.show.curves import mode_lines, spread_of

    if breakdown:
        return stages_figure(report)
    rows = report["rows"]
    value, label = _quantity(report)
    scale, _ = time_unit(max((row["max_ns"] for row in rows), default=0.0))

    def rates(row: Row) -> tuple[float, float, float, float]:
        # The longest window has the lowest rate.
        whole = value(row) * row["window_ns"]
        return whole / row["max_ns"], whole / row["p50_ns"], whole / row["p99_ns"], whole / row["min_ns"]

    spread: Callable[[Any], tuple[float, float, float, float]]
    spread = (lambda row: spread_of(row, scale)) if report["benchmark"] == "latency" else rates

    figure, axes = empty_figure(7.2, 4.4)
    with house_style():
        values = [value(row) for row in rows]
        value_axis(axes, [*values, *(end for row in rows for end in spread(row))] if percentiles else values, label)
        mode_lines(axes, rows, "size_bytes", value, spread=spread if percentiles else None)
        size_axis(axes, sorted({row["size_bytes"] for row in rows}))
        whiskers = ["thin: minimum to maximum, thick: median to p99"] if percentiles else []
        set_titles(axes, _FIGURE_TITLES[report["benchmark"]], [*circumstances(report["manifest"]), *whiskers])
    return figure


def _quantity(report: Report) -> tuple[Callable[[Row], float], str]:
    """Return a function from a row to the drawn figure in a readable unit, and the label of its axis."""
    from nicety.show.axes import GIGABYTES, time_unit

    rows = report["rows"]
    if report["benchmark"] == "latency":
        scale, unit = time_unit(max((row["max_ns"] for row in rows), default=0.0))
        return lambda row: row["latency_ns"] / scale, f"Latency ({unit})"
    if report["benchmark"] == "bandwidth":
        most = max((row["bandwidth_bytes_per_s"] for row in rows), default=0.0)
        scale, unit = (1e9, "GB/s") if most >= GIGABYTES else (1e6, "MB/s")
        return lambda row: row["bandwidth_bytes_per_s"] / scale, f"Bandwidth ({unit})"
    return lambda row: row["messages_per_s"] / 1e6, "Message rate (10⁶ messages/s)"
