"""The benchmarks of cards that many processes share: CPU costs of copies and registration, and process bandwidth."""

from __future__ import annotations

import json
from html import escape
from typing import TYPE_CHECKING, Unpack, cast

from nicety import _native
from nicety._generated.types import (
    FairnessOptions,
    FairnessReport,
    RegistrationOptions,
    RegistrationReport,
)
from nicety.bench.measured import Progress, reported
from nicety.shared.options import request_text
from nicety.shared.typed import checked
from nicety.show.circumstances import circumstances
from nicety.show.columns import align, fixed
from nicety.show.html import table_html

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@checked
def bench_registration(*, progress: Progress | None = None, **given: Unpack[RegistrationOptions]) -> RegistrationReport:
    """Measure the CPU costs of copying a message, and of registering its memory for the card.

    Args:
        progress: called with the number of rows done, and the total.
        given: the arguments of `RegistrationOptions`.

    Raises:
        InputError: a card that does not register memory, a size that the card does not support, or an invalid override.
    """
    report = json.loads(_native.registration_bench(request_text(RegistrationOptions, given), progress))
    return cast(RegistrationReport, reported(report, interface_html, interface_figure))


@checked
def bench_fairness(*, progress: Progress | None = None, **given: Unpack[FairnessOptions]) -> FairnessReport:
    """Measure the bandwidth of each of many processes that send concurrently.

    Args:
        progress: called with the number of rows done, and the total.
        given: the arguments of `FairnessOptions`.

    Raises:
        InputError: a card without interfaces for processes, or with too few; or an invalid override.
    """
    report = json.loads(_native.fairness_bench(request_text(FairnessOptions, given), progress))
    return cast(FairnessReport, reported(report, interface_html, interface_figure))


def interface_html(report: RegistrationReport | FairnessReport) -> str:
    """Return a report for a notebook: a table per card."""
    about = f"{report['benchmark']}, nicety {report['version']}"
    return f"<p>{escape(about)}</p>" + "".join(table_html(title, rows) for title, rows in interface_tables(report))


def interface_text(report: RegistrationReport | FairnessReport) -> str:
    """Return a report as text: a table per card."""
    if report["benchmark"] == "registration":
        about = "CPU time until the card may fetch a message: its copy, or the translation of its pages"
        head = ["Registration", about]
    else:
        rows = report["rows"]
        about = f"{rows[0]['messages']} messages of {rows[0]['size_bytes']} B each" if rows else "messages"
        head = ["Fairness", f"processes that send {about} at once to processes of another host"]
    lines = [f"# nicety {head[0]} Test v{report['version']}", f"# {head[1]}"]
    lines += [f"# {note}" for note in circumstances(report["manifest"])]
    for title, (columns, *body) in interface_tables(report):
        lines += ["", f"# {title}", *align([[f"# {columns[0]}", *columns[1:]], *body], range(1, len(columns)))]
    if report["benchmark"] == "registration":
        lines.append("")
        least = min(row["size_bytes"] for row in report["rows"])
        lines += [_crossover(one["nic"], one["crossover_bytes"], least) for one in report["crossovers"]]
    return "\n".join(lines) + "\n"


def interface_tables(report: RegistrationReport | FairnessReport) -> list[tuple[str, list[list[str]]]]:
    """Return a title and a table per card. Row 0 of a table names the columns."""
    nics = list(dict.fromkeys(row["nic"] for row in report["rows"]))
    if report["benchmark"] == "registration":
        head = ["Size", "Pages", "copy", "translate"]
        body = {
            nic: [
                [str(row["size_bytes"]), str(row["pages"]), fixed(row["copy_ns"]), fixed(row["translate_ns"])]
                for row in report["rows"]
                if row["nic"] == nic
            ]
            for nic in nics
        }
        return [(f"{nic}: time of a CPU (ns)", [head, *body[nic]]) for nic in nics]
    head = ["Processes", "all", "mean", "least", "most", "Jain's index"]
    return [
        (
            f"{nic}: Bandwidth (MB/s), of all and of a process",
            [
                head,
                *(
                    [
                        str(row["processes"]),
                        fixed(row["bandwidth_bytes_per_s"] / 1e6, 2),
                        fixed(row["process_mean_bytes_per_s"] / 1e6, 2),
                        fixed(row["process_min_bytes_per_s"] / 1e6, 2),
                        fixed(row["process_max_bytes_per_s"] / 1e6, 2),
                        fixed(row["jain_index"], 4),
                    ]
                    for row in report["rows"]
                    if row["nic"] == nic
                ),
            ],
        )
        for nic in nics
    ]


def _crossover(nic: str, size: int | None, least: int) -> str:
    if size is None:
        return f"# {nic}: copying is faster at every size measured"
    if size == least:
        return f"# {nic}: translating takes no longer at every size measured"
    return f"# {nic}: translating takes no longer from {size} B on"


def interface_figure(report: RegistrationReport | FairnessReport) -> Figure:
    """Draw a report: CPU costs over the message size, or shares of the bandwidth over the number of processes."""
    from nicety.show.axes import time_unit
    from nicety.show.curves import figure_of
    from nicety.show.lines import Curve

    curves, notes = [], circumstances(report["manifest"])
    if report["benchmark"] == "registration":
        scale, unit = time_unit(max(max(row["copy_ns"], row["translate_ns"]) for row in report["rows"]))
        for number, nic in enumerate(dict.fromkeys(row["nic"] for row in report["rows"])):
            rows = [row for row in report["rows"] if row["nic"] == nic]
            copies = {row["size_bytes"]: row["copy_ns"] / scale for row in rows}
            translations = {row["size_bytes"]: row["translate_ns"] / scale for row in rows}
            curves.append(Curve(f"{nic}: copy", copies, colour=number))
            curves.append(Curve(f"{nic}: translate", translations, colour=number, style=1))
        title = "Copy, or lock and translate"
        return figure_of(curves, title=title, notes=notes, x="Message size (B)", y=f"Time of a CPU ({unit})")
    for number, nic in enumerate(dict.fromkeys(row["nic"] for row in report["rows"])):
        shares = [row for row in report["rows"] if row["nic"] == nic]
        least = {row["processes"]: row["process_min_bytes_per_s"] / 1e6 for row in shares}
        most = {row["processes"]: row["process_max_bytes_per_s"] / 1e6 for row in shares}
        curves.append(Curve(f"{nic}: the least that one gets", least, colour=number))
        curves.append(Curve(f"{nic}: the most", most, colour=number, style=1))
    title = "Bandwidth of each of many processes"
    return figure_of(curves, title=title, notes=notes, x="Processes", y="Bandwidth (MB/s)")
