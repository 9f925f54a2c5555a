"""The benchmarks of cards that many processes share, as text and as pictures."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nicety.tables import align, fixed

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from nicety.interface_benchmarks import FairnessReport, RegistrationReport


def interface_text(report: RegistrationReport | FairnessReport) -> str:
    """A report as text: a table for each card."""
    if report["benchmark"] == "registration":
        head = ["Registration", "what a CPU spends until the card may fetch a message: a copy, or its pages translated"]
    else:
        rows = report["rows"]
        about = f"{rows[0]['messages']} messages of {rows[0]['size_bytes']} B each" if rows else "messages"
        head = ["Fairness", f"processes that send {about} at once to processes of another host"]
    lines = [f"# nicety {head[0]} Test v{report['version']}", f"# {head[1]}"]
    for title, (names, *body) in interface_tables(report):
        lines += ["", f"# {title}", *align([[f"# {names[0]}", *names[1:]], *body], range(1, len(names)))]
    if report["benchmark"] == "registration":
        lines.append("")
        lines += [_crossover(one["nic"], one["crossover_bytes"]) for one in report["crossovers"]]
    return "\n".join(lines) + "\n"


def interface_tables(report: RegistrationReport | FairnessReport) -> list[tuple[str, list[list[str]]]]:
    """A table for each card with its title; the first row has the columns' names."""
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


def _crossover(nic: str, size: int | None) -> str:
    if size is None:
        return f"# {nic}: copying is faster at every size"
    return f"# {nic}: translating takes no longer from {size} B on"


def interface_figure(report: RegistrationReport | FairnessReport) -> Figure:
    """A report as a picture: the costs over the size, or what processes get over their number."""
    from nicety.curves import figure_of
    from nicety.lines import Curve
    from nicety.plots import time_unit

    curves = []
    if report["benchmark"] == "registration":
        scale, unit = time_unit(max(max(row["copy_ns"], row["translate_ns"]) for row in report["rows"]))
        for number, nic in enumerate(dict.fromkeys(row["nic"] for row in report["rows"])):
            rows = [row for row in report["rows"] if row["nic"] == nic]
            copies = {row["size_bytes"]: row["copy_ns"] / scale for row in rows}
            translations = {row["size_bytes"]: row["translate_ns"] / scale for row in rows}
            curves.append(Curve(f"{nic}: copy", copies, colour=number))
            curves.append(Curve(f"{nic}: translate", translations, colour=number, style=1))
        return figure_of(curves, title="Copy, or lock and translate", x="Message size (B)", y=f"Time of a CPU ({unit})")
    for number, nic in enumerate(dict.fromkeys(row["nic"] for row in report["rows"])):
        shares = [row for row in report["rows"] if row["nic"] == nic]
        least = {row["processes"]: row["process_min_bytes_per_s"] / 1e6 for row in shares}
        most = {row["processes"]: row["process_max_bytes_per_s"] / 1e6 for row in shares}
        curves.append(Curve(f"{nic}: the least that one gets", least, colour=number))
        curves.append(Curve(f"{nic}: the most", most, colour=number, style=1))
    return figure_of(curves, title="What each of many processes gets", x="Processes", y="Bandwidth (MB/s)")
