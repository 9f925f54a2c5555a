"""A card's access to host memory over PCI Express: the benchmark `nicety bench pcie`, with the tests of pcie-bench."""

from __future__ import annotations

import csv
import io
import json
from html import escape
from typing import TYPE_CHECKING, Unpack, cast

from nicety import _native
from nicety._generated.types import PcieOptions, PcieReport, PcieRow
from nicety.bench.measured import Progress, reported
from nicety.shared.options import request_text
from nicety.shared.typed import checked
from nicety.show.circumstances import circumstances
from nicety.show.columns import align, distinct, fixed
from nicety.show.html import table_html

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@checked
def bench_pcie(*, progress: Progress | None = None, **given: Unpack[PcieOptions]) -> PcieReport:
    """Measure the latency and bandwidth of a card's access to host memory, by the tests of pcie-bench.

    Args:
        progress: called with the number of rows done, and the total.
        given: the arguments of `PcieOptions`.

    Raises:
        InputError: a card that is not on PCI Express, an unknown test, a transfer that does not fit, or an invalid
            override.
    """
    report = json.loads(_native.pcie_bench(request_text(PcieOptions, given), progress))
    return cast(PcieReport, reported(report, pcie_html, pcie_figure))


_POINT = ("Size", "Host", "Card", "Window", "Pattern", "Cache")
_LATENCY = ("Median", "p95", "p99.9", "Mean", "Least", "Most")
_BANDWIDTH = ("Gb/s", "M/s")


def pcie_text(report: PcieReport) -> str:
    """Return a report as text: a table per card and test."""
    lines = [
        f"# nicety PCIe Test v{report['version']}",
        "# tests of pcie-bench; sizes, offsets on host and card and windows in bytes",
        *(f"# {note}" for note in circumstances(report["manifest"])),
    ]
    for title, (head, *body) in pcie_tables(report):
        text = (len(_POINT) - 2, len(_POINT) - 1)
        right = [column for column in range(len(head)) if column not in text]
        lines += ["", f"# {title}", *align([[f"# {head[0]}", *head[1:]], *body], right)]
    return "\n".join(lines) + "\n"


def pcie_html(report: PcieReport) -> str:
    """Return a report for a notebook: a table per card and test."""
    about = f"{report['benchmark']}, nicety {report['version']}"
    return f"<p>{escape(about)}</p>" + "".join(table_html(title, rows) for title, rows in pcie_tables(report))


def pcie_tables(report: PcieReport) -> list[tuple[str, list[list[str]]]]:
    """Return a title and a table per card and test. Row 0 of a table names the columns."""
    tables = []
    for nic, test in distinct((row["nic"], row["test"]) for row in report["rows"]):
        rows = [row for row in report["rows"] if (row["nic"], row["test"]) == (nic, test)]
        is_latency = "median_ns" in rows[0]
        what, columns = ("Latency (ns)", _LATENCY) if is_latency else ("Bandwidth, and transfers a second", _BANDWIDTH)
        tables.append((f"{nic}, {test}: {what}", [[*_POINT, *columns], *(_cells(row) for row in rows)]))
    return tables


def _cells(row: PcieRow) -> list[str]:
    offsets = (row["host_offset_bytes"], row["card_offset_bytes"], row["window_bytes"])
    point = [str(row["size_bytes"]), *map(str, offsets), row["pattern"], row["cache"]]
    if "median_ns" in row:
        figures = (row["median_ns"], row["p95_ns"], row["p999_ns"], row["mean_ns"], row["min_ns"], row["max_ns"])
        return point + [fixed(figure, 1) for figure in figures]
    return [*point, fixed(row["bandwidth_gbit_per_s"]), fixed(row["transfers_per_s"] / 1e6)]


_NAMES = {"seq": "Seq", "rand": "Rand", "hwarm": "HWarm", "dwarm": "DWarm", "cold": "Cold", "dthrash": "DThrash"}
_SAME = ("Test", "PAT", "Cache", "HO", "DO", "WinSZ", "SZ")
_OF_LATENCY = ("Avg(ns)", "Med(ns)", "Min(ns)", "Max(ns)", "95%(ns)", "99.9%(ns)", "#samples")
_OF_BANDWIDTH = ("BW (GB/s)", "Trans/s")


def pcie_bench_csv(report: PcieReport) -> str:
    """Return the rows in columns of pcie-bench, which its own scripts and `nicety specs score --rows` read.

    Columns that a test does not have are empty. As in pcie-bench, `BW (GB/s)` is in Gb/s.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow((*_SAME, *_OF_LATENCY, *_OF_BANDWIDTH))
    for row in report["rows"]:
        numbers = (row["host_offset_bytes"], row["card_offset_bytes"], row["window_bytes"], row["size_bytes"])
        point = (row["test"], _NAMES[row["pattern"]], _NAMES[row["cache"]], *numbers)
        if "median_ns" in row:
            keys = ("mean_ns", "median_ns", "min_ns", "max_ns", "p95_ns", "p999_ns")
            figures = (*(fixed(cast(float, row.get(key))) for key in keys), row["transfers"], "", "")
        else:
            figures = (*[""] * 7, fixed(row["bandwidth_gbit_per_s"]), fixed(row["transfers_per_s"], 1))
        writer.writerow((*point, *figures))
    return text.getvalue()


def pcie_figure(report: PcieReport) -> Figure:
    """Draw a report over the size of transfers: latencies, or bandwidths where there are no latencies."""
    from nicety.show.curves import figure_of
    from nicety.show.lines import Curve

    is_latency = any("median_ns" in row for row in report["rows"])
    rows = [row for row in report["rows"] if ("median_ns" in row) == is_latency]
    curves = []
    points = {row["nic"]: None for row in rows}
    for number, (nic, *rest) in enumerate(distinct(_curve(row) for row in rows)):
        value = {
            row["size_bytes"]: row["median_ns"] if "median_ns" in row else row["bandwidth_gbit_per_s"]
            for row in rows
            if _curve(row) == (nic, *rest)
        }
        curves.append(Curve(", ".join((nic, *rest)), value, colour=number, style=list(points).index(nic)))
    title = "A card's access to host memory over PCI Express"
    unit = "Median latency (ns)" if is_latency else "Bandwidth (Gb/s)"
    return figure_of(curves, title=title, notes=circumstances(report["manifest"]), x="Transfer (B)", y=unit)


def _curve(row: PcieRow) -> tuple[str, ...]:
    offsets = f"offsets {row['host_offset_bytes']} and {row['card_offset_bytes']} B, window {row['window_bytes']} B"
    return (row["nic"], row["test"], row["pattern"], row["cache"], offsets)
