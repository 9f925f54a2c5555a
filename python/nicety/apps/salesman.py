"""The travelling salesman on a network flow processor: the best tour of many climbs by 2-opt.

The card's programs are `nfp/tsp.c` and `nfp/tsp_table.c` of the library. Problems are files in TSPLIB's format.
"""

from __future__ import annotations

import hashlib
import json
import textwrap
from functools import partial
from os import fspath
from typing import Any, Unpack, cast

from nicety import _native
from nicety._generated.types import GpuFigures, TourOptions, TourReport
from nicety.bench.measured import Progress
from nicety.build.compiler import compiled
from nicety.errors import InputError, RunError
from nicety.shared.checks import Names, Place, names, text
from nicety.shared.options import request_text
from nicety.shared.typed import checked
from nicety.show.columns import align, fixed
from nicety.show.html import Shown, text_html


@checked
def solve_tsp(
    file: Place,
    *,
    compare: Names = (),
    cc: str | None = None,
    progress: Progress | None = None,
    **given: Unpack[TourOptions],
) -> TourReport:
    """Search for a short tour with many climbs on a card.

    Args:
        file: a symmetric problem in TSPLIB's format (type TSP), with 5 to 256 cities; `kroA100` is included in nicety.
        compare: `cpu` makes the same climbs on this machine's CPUs, `gpu` on its graphics processor.
        cc: a compiler to use instead of the one in the `ziglang` package.
        progress: called with the number of climbs made or begun, and the total.
        given: the arguments of `TourOptions`.

    Raises:
        InputError: the file is no such problem, or an argument is invalid.
        RunError: the run failed, or a comparison found another tour.
    """
    others = names(compare, "what to compare with", "cpu")
    for other in others:
        if other not in {"cpu", "gpu"}:
            raise InputError(f"--compare {other}: cpu or gpu")
    problem = text(fspath(file), "a problem", "kroA100.tsp")
    request = partial(request_text, TourOptions, given, file=problem, compare_cpu="cpu" in others)
    plan = json.loads(_native.tsp_plan(request()))
    if "gpu" in others:
        # Report a missing PyOpenCL before the run and not after it.
        from nicety.apps import gpu

        gpu.climbs(plan["distances"], [0], seed=plan["seed"])
    elf, manifest = compiled(plan["program"], plan["isa"], cc)
    program = hashlib.sha256(json.dumps(manifest, sort_keys=True).encode()).hexdigest()
    report = json.loads(_native.tsp_run(request(program=program), {"tsp": elf}, progress))
    report["manifest"]["compiler"] = {report["nic"]: manifest}
    if "gpu" in others:
        report["gpu"] = _on_gpu(report, plan["distances"], plan["nodes"])
    return cast(TourReport, Shown(report, lambda found: text_html(tour_text(found))))


@checked
def climb_lengths(file: Place, *, restarts: int, seed: int = 1) -> list[int]:
    """Make the climbs of `solve_tsp` on this machine's CPUs only, and return the length of each climb's tour.

    A climb with the same number finds the same tour on every processor.

    Args:
        file: a problem; see `solve_tsp`.
        restarts: total number of climbs.
        seed: the seed of the climbs' random numbers.

    Raises:
        InputError: the file is no such problem, or an argument is invalid.
    """
    given = {"restarts": restarts, "seed": seed, "climbers": 1, "job": max(1, restarts)}
    request = request_text(TourOptions, given, file=text(fspath(file), "a problem", "kroA100.tsp"))
    return cast("list[int]", json.loads(_native.tsp_lengths(request)))


def _on_gpu(report: dict[str, Any], distances: list[list[int]], nodes: list[int]) -> GpuFigures:
    from nicety.apps import gpu

    found = gpu.climbs(distances, range(report["restarts"]), seed=report["seed"])
    if (found.length, found.number, [nodes[city] for city in found.tour]) != (
        report["length"],
        report["climb"],
        report["tour"],
    ):
        raise RunError(
            f"the card's best tour is of length {report['length']}, from climb {report['climb']}, but that of "
            f"{found.device} is of length {found.length}, from climb {found.number}: one of the two programs is wrong"
        )
    return GpuFigures(
        processor=found.device,
        device_time_s=found.seconds,
        climbs_per_s=report["restarts"] / found.seconds,
        length=found.length,
    )


def _source(report: TourReport) -> str:
    table = report.get("table")
    if table is None:
        return "integer square roots"
    if table["made_by"] == "card":
        return f"looked up in a table in {table['memory']}"
    kind, each = report["edge_weight_type"], table["distance_bytes"]
    return f"{kind}, looked up in the host's table in {table['memory']}, {each} bytes each"


def tour_text(report: TourReport) -> str:
    """Return as text the best tour, and the time that each processor needed to find it."""
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
        f"# distances: {_source(report)}",
        "",
        *align(rows, (1, 2)),
        "",
        f"# shortest tour: {report['length']}, from climb {report['climb']}",
        *textwrap.wrap(" ".join(map(str, report["tour"])), 100),
    ]
    return "\n".join(lines) + "\n"
