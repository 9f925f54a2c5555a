"""The benchmarks of channels between threads of a host and processes of its card."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Unpack, cast

from nicety import _native
from nicety._generated.types import ChannelBenchmark, ChannelBenchReport, ChannelOptions, ChannelRow
from nicety.bench.measured import Progress, Scale, measured
from nicety.build.compiler import compiled
from nicety.shared.checks import Place
from nicety.shared.options import request_text
from nicety.shared.typed import checked
from nicety.show.circumstances import circumstances
from nicety.show.columns import align, fixed
from nicety.show.html import table_html

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@checked
def bench_channels(
    benchmark: ChannelBenchmark,
    *,
    cc: str | None = None,
    trace: Place | None = None,
    trace_scale: Scale = "ns",
    progress: Progress | None = None,
    **given: Unpack[ChannelOptions],
) -> ChannelBenchReport:
    """Measure channels: the latency of a message, or the total throughput of all processes that send or receive.

    Args:
        benchmark: `channel-latency` or `channel-bandwidth`.
        cc: a compiler to use instead of the one in the `ziglang` package.
        trace: a file for a timeline of the first row's first run, to be opened with https://ui.perfetto.dev.
        trace_scale: the tick of the timeline, a nanosecond or a picosecond.
        progress: called with the number of rows done, and the total.
        given: the arguments of `ChannelOptions`.

    Raises:
        InputError: a card without channels, or an invalid mode, direction, size or number.
        RunError: the run failed: the receiver got a wrong byte, or a DMA failed too often.
    """
    shown = measured(
        request_text(ChannelOptions, given, benchmark=benchmark),
        _native.channel_plan,
        _native.channel_bench,
        lambda item: compiled(item["source"], item["isa"], cc),
        channel_html,
        channel_figure,
        trace=trace,
        trace_scale=trace_scale,
        progress=progress,
    )
    return cast(ChannelBenchReport, shown)


def channel_html(report: ChannelBenchReport) -> str:
    """Return a report of channels for a notebook: a table per card and mode."""
    about = f"{report['benchmark']}, nicety {report['version']}, seed {report['seed']}"
    return f"<p>{escape(about)}</p>" + "".join(table_html(title, rows) for title, rows in channel_tables(report))


_TITLES = {"channel-latency": "Channel Latency Test", "channel-bandwidth": "Channel Bandwidth Test"}


_MEANINGS = {
    "channel-latency": "a message between host and card, from the call to its return, acknowledgement included",
    "channel-bandwidth": "payload of some processes together, 10^6 bytes a second, and its standard deviation",
}


_UNITS = {"channel-latency": "Latency (ns)", "channel-bandwidth": "Bandwidth (MB/s)"}


def channel_text(report: ChannelBenchReport, *, breakdown: bool = False, percentiles: bool = False) -> str:
    """Return a report as text: a table per card and mode. `breakdown` adds a table of stages per card and size."""
    rows, benchmark = report["rows"], report["benchmark"]
    lines = [
        f"# nicety {_TITLES[benchmark]} v{report['version']}",
        f"# {_MEANINGS[benchmark]}",
        f"# seed {report['seed']}, {_counts(rows)}",
    ]
    lines += [f"# {note}" for note in circumstances(report["manifest"])]
    for title, (head, *body) in percentile_tables(report) if percentiles else channel_tables(report):
        lines += ["", f"# {title}", *align([[f"# {head[0]}", *head[1:]], *body], range(1, len(head)))]
    if breakdown:
        for nic in dict.fromkeys(row["nic"] for row in rows):
            for size in dict.fromkeys(row["size_bytes"] for row in rows):
                lines += _stages(nic, size, [r for r in rows if (r["nic"], r["size_bytes"]) == (nic, size)])
    return "\n".join(lines) + "\n"


def channel_tables(report: ChannelBenchReport) -> list[tuple[str, list[list[str]]]]:
    """Return titles and tables of a report, one per card and mode. Row 0 names the columns; other rows are sizes."""
    unit = _UNITS[report["benchmark"]]
    by_table: dict[str, list[ChannelRow]] = {}
    for row in report["rows"]:
        by_table.setdefault(f"{row['nic']}, {row['mode']}: {unit}", []).append(row)
    tables = []
    for title, rows in by_table.items():
        columns = list(dict.fromkeys(_way(row) for row in rows))
        cells = {(row["size_bytes"], _way(row)): _figure(row) for row in rows}
        sizes = list(dict.fromkeys(row["size_bytes"] for row in rows))
        body = [[str(size), *(cells.get((size, column), "-") for column in columns)] for size in sizes]
        tables.append((title, [["Size", *columns], *body]))
    return tables


def percentile_tables(report: ChannelBenchReport) -> list[tuple[str, list[list[str]]]]:
    """Return titles and tables of a latency: mean, minimum, percentiles and maximum, per card and kind of message."""
    head = ["Size", "mean", "min", "p50", "p99", "p99.9", "max"]
    tables: dict[str, list[list[str]]] = {}
    for row in report["rows"]:
        times = [row["latency_ns"], row["min_ns"], row["p50_ns"], row["p99_ns"], row["p999_ns"], row["max_ns"]]
        title = f"{row['nic']}, {_kind(row)}: {_UNITS[report['benchmark']]}"
        tables.setdefault(title, [head]).append([str(row["size_bytes"]), *map(fixed, times)])
    return list(tables.items())


def channel_figure(report: ChannelBenchReport, *, breakdown: bool = False, percentiles: bool = False) -> Figure:
    """A report as a picture: the figure over the message size, a line per card and kind of message.

    With `percentiles` the points of a latency have whiskers from minimum to maximum and from median to p99. With
    `breakdown` the picture has the stages instead.
    """
    from nicety.show.axes import time_unit
    from nicety.show.bars import stages_figure
    from nicety.show.curves import figure_of, spread_of
    from nicety.show.lines import Curve

    if breakdown:
        return stages_figure(report)
    # A colour per mode and direction, a line style per card and number of processes.
    rows = report["rows"]
    latency = report["benchmark"] == "channel-latency"
    scale, unit = time_unit(max((row["max_ns"] for row in rows), default=0.0)) if latency else (1.0, "MB/s")
    kinds = list(dict.fromkeys((row["mode"], row["direction"]) for row in rows))
    styles = list(dict.fromkeys((row["nic"], row.get("processes")) for row in rows))
    curves: list[Curve] = []
    for label in dict.fromkeys(f"{row['nic']}, {_kind(row)}" for row in rows):
        own = [row for row in rows if f"{row['nic']}, {_kind(row)}" == label]
        spread = {row["size_bytes"]: spread_of(row, scale) for row in own if latency and percentiles}
        curves.append(
            Curve(
                label,
                {row["size_bytes"]: _value(row) / scale for row in own},
                colour=kinds.index((own[0]["mode"], own[0]["direction"])),
                style=styles.index((own[0]["nic"], own[0].get("processes"))),
                marker=len(curves),
                spread=spread,
            )
        )
    title = "Latency of a message, acknowledgement included" if latency else "Payload of all processes together"
    return figure_of(
        curves,
        title=title,
        notes=circumstances(report["manifest"]),
        x="Message size (B)",
        y=f"{'Latency' if latency else 'Bandwidth'} ({unit})",
    )


def _kind(row: ChannelRow) -> str:
    return f"{row['mode']}, {_way(row)}"


def _way(row: ChannelRow) -> str:
    if "processes" not in row:
        return row["direction"]
    return f"{row['direction']}, {row['processes']} process{'es' if row['processes'] != 1 else ''}"


def _value(row: ChannelRow) -> float:
    return row["latency_ns"] if "latency_ns" in row else row["bandwidth_bytes_per_s"] / 1e6


def _figure(row: ChannelRow) -> str:
    if "latency_ns" in row:
        return fixed(row["latency_ns"])
    mean = fixed(row["bandwidth_bytes_per_s"] / 1e6)
    return f"{mean} ± {fixed(row['stddev_bytes_per_s'] / 1e6)}" if "stddev_bytes_per_s" in row else mean


def _counts(rows: list[ChannelRow]) -> str:
    if "iterations" in rows[0]:
        count, what = rows[0]["iterations"], "message"
    else:
        count, what = rows[0]["runs"], "run"
    return f"{count} {what}{'s' if count != 1 else ''} a size"


def _stages(nic: str, size: int, rows: list[ChannelRow]) -> list[str]:
    """Return lines with a table of stages for messages of one size: a row per stage, a column per kind of message."""
    names = list(dict.fromkeys(stage["stage"] for row in rows for stage in row["stages"]))
    parts = [{stage["stage"]: stage["ns"] for stage in row["stages"]} for row in rows]
    head = ["# stage (ns)", *(_kind(row) for row in rows)]
    body = [[name, *(fixed(part[name]) if name in part else "" for part in parts)] for name in names]
    total = ["sum", *(fixed(row["latency_ns"]) for row in rows)]
    return ["", f"# {nic}, {size} B: where the time goes", *align([head, *body, total], range(1, len(head)))]
