"""A tour as text."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

from nicety.tables import align, fixed

if TYPE_CHECKING:
    from nicety.salesman import TourReport


def tour_text(report: TourReport) -> str:
    """The best tour, and how long it took to find it where."""
    jobs = f"{report['jobs']} job{'s' if report['jobs'] != 1 else ''} of {report['job_climbs']}"
    rows = [
        ["# Where", "Time (ms)", "Climbs/s", "Of"],
        [
            report["nic"],
            fixed(report["card_time_ns"] / 1e6, 3),
            fixed(report["card_climbs_per_s"], 1),
            f"{report['climbers']} climbers, card time",
        ],
    ]
    if (cpu := report.get("cpu")) is not None:
        of = f"{cpu['threads']} thread{'s' if cpu['threads'] != 1 else ''}, measured here: {cpu['processor'] or 'CPUs'}"
        rows.append(["this machine's CPUs", fixed(cpu["wall_time_s"] * 1e3, 3), fixed(cpu["climbs_per_s"], 1), of])
    if (gpu := report.get("gpu")) is not None:
        of = f"measured here, without moving data: {gpu['processor']}"
        rows.append(["this machine's GPU", fixed(gpu["device_time_s"] * 1e3, 3), fixed(gpu["climbs_per_s"], 1), of])
    lines = [
        f"# nicety TSP v{report['version']}",
        f"# {report['problem']}, {report['cities']} cities",
        f"# {report['restarts']} climbs in {jobs}, seed {report['seed']}",
        f"# distances: {'looked up in a table in CLS' if report['distances'] == 'table' else 'integer square roots'}",
        "",
        *align(rows, (1, 2)),
        "",
        f"# shortest tour: {report['length']}, from climb {report['climb']}",
        *textwrap.wrap(" ".join(map(str, report["tour"])), 100),
    ]
    return "\n".join(lines) + "\n"
