"""Schedules of applications in GOAL's formats: their contents, and their times on LogGOPS or on cards.

A schedule has the operations of each rank, and the dependencies between operations; see docs/guide/goal.md.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from os import fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack, cast

from nicety import _native
from nicety._generated.types import (
    CompareOptions,
    CompareReport,
    CompareRow,
    Converted,
    Generated,
    GenerateOptions,
    ScheduleInfo,
    ScheduleOptions,
    ScheduleReport,
    Traced,
)
from nicety.bench.measured import Progress
from nicety.build.compiler import compiled
from nicety.errors import InputError
from nicety.shared.checks import Place, text
from nicety.shared.options import request_text
from nicety.shared.typed import checked
from nicety.show.axes import time_unit
from nicety.show.circumstances import circumstances
from nicety.show.columns import align, fixed, merged_order
from nicety.show.html import Shown, table_html, text_html
from nicety.show.tables import Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@checked
def run_schedule(file: Place, *, progress: Progress | None = None, **given: Unpack[ScheduleOptions]) -> ScheduleReport:
    """Run a schedule on LogGOPS or, if `nic` is named, on cards, and return the finish time of each host.

    Args:
        file: a schedule, as text or binary.
        progress: called with the share of executed operations in thousandths, and the total, 1000.
        given: the arguments of `ScheduleOptions`.

    Raises:
        InputError: the file is no schedule, its operations wait for each other, or an argument is invalid. Several
            cards are an invalid argument: `compare_schedule` takes them.
        Deadlock: a receive without a message, or a message without a receive; the error names them.
        RunError: on cards: a message was longer than its receive, a limit of the card was reached, or the network lost
            messages.
    """
    _check_card(given)
    request = request_text(ScheduleOptions, given, file=_path(file))
    report = _executed(request, _native.goal_run_plan, _native.goal_run, progress)
    return cast(ScheduleReport, Shown(report, lambda found: text_html(schedule_text(found)), table=finish_table))


@checked
def compare_schedule(
    file: Place, *, progress: Progress | None = None, **given: Unpack[CompareOptions]
) -> CompareReport:
    """Run a schedule on several cards, and return the times that each card's hosts compute, communicate and wait.

    Args:
        file: a schedule, as text or binary.
        progress: called with the share of executed operations of all runs in thousandths, and the total, 1000.
        given: the arguments of `CompareOptions`.

    Raises:
        InputError: see `run_schedule`.
        Deadlock: as `run_schedule`.
        RunError: see `run_schedule`; the error names the card.
    """
    request = request_text(CompareOptions, given, file=_path(file))
    report = _executed(request, _native.goal_compare_plan, _native.goal_compare, progress)
    return cast(CompareReport, Shown(report, compare_html, compare_figure))


_ON_CARDS = {
    "overrides": "--set",
    "topology": "--topology",
    "flow_control": "--flow-control",
    "faults": "--faults",
    "mode": "--mode",
    "breakdown": "--breakdown",
}
"""Maps each argument of runs on cards to its option."""


def _check_card(given: ScheduleOptions) -> None:
    """Check that a run has one card, or no argument of runs on cards.

    Raises:
        InputError: there are several cards, or an argument is only for a run on a card.
    """
    nic = given.get("nic")
    if nic is not None and "," in fspath(nic) and not Path(nic).exists():
        raise InputError(
            f"--nic {fspath(nic)}: goal run takes one card; use goal compare for several, or compare_schedule in Python"
        )
    if nic is None and given.get("network") != "packets":
        for name, option in _ON_CARDS.items():
            if given.get(name):
                raise InputError(f"{option}: only for a run on a card; add a card, as in --nic spin-discrete")


def _executed(
    request: str,
    plan: Callable[[str], str],
    run: Callable[[str, dict[str, bytes], Progress | None], str],
    progress: Progress | None,
) -> dict[str, Any]:
    """Compile the handlers that execute messages, run, and return the report."""
    built = {item["key"]: compiled(item["source"], item["isa"], None) for item in json.loads(plan(request))["compile"]}
    report: dict[str, Any] = json.loads(run(request, {key: elf for key, (elf, _) in built.items()}, progress))
    if built:
        report["manifest"]["compiler"] = {key: manifest for key, (_, manifest) in built.items()}
    return report


@checked
def schedule_info(file: Place, *, progress: Progress | None = None) -> ScheduleInfo:
    """Return the contents of a schedule.

    Args:
        file: a schedule, as text or binary.
        progress: called with the share of the file that was read in thousandths, and the total, 1000.

    Raises:
        InputError: the file is no schedule, or its operations wait for each other.
    """
    return cast(ScheduleInfo, json.loads(_native.goal_info(_path(file), progress)))


@checked
def convert_schedule(source: Place, target: Place, *, progress: Progress | None = None) -> Converted:
    """Write a schedule in another format.

    Args:
        source: a schedule, as text or binary.
        target: the file to write: `.bin` is binary, `.goal` and `.txt` are text. With any other name, a source in text
            becomes binary, and a binary source text.
        progress: called with the share of the file that was read in thousandths, and the total, 1000.

    Raises:
        InputError: the file is no schedule, or the target cannot be written.
    """
    return cast(Converted, json.loads(_native.goal_convert(_path(source), _path(target), progress)))


@checked
def generate_schedule(
    pattern: str, output: Place, *, progress: Progress | None = None, **given: Unpack[GenerateOptions]
) -> Generated:
    """Make the schedule of a communication pattern.

    Args:
        pattern: the pattern's name: binomial-broadcast, binomial-reduce, dissemination, recursive-doubling,
            ring-allreduce, pairwise-alltoall, linear-alltoall, gather, scatter, halo-2d, halo-3d, pipeline,
            data-parallel or mixture-of-experts.
        output: the file to write: `.bin` is binary, any other name text; `-` is stdout.
        progress: called with the share of ranks that were made in thousandths, and the total, 1000.
        given: the arguments of `GenerateOptions`.

    Raises:
        InputError: there is no such pattern, it would be too large, or the file cannot be written.
    """
    request = request_text(GenerateOptions, given, pattern=pattern, output=_path(output))
    return cast(Generated, json.loads(_native.goal_generate(request, progress)))


@checked
def trace_schedule(files: Iterable[Place], output: Place, *, progress: Progress | None = None) -> Traced:
    """Make the schedule of an MPI program from its traces.

    Args:
        files: the traces that liballprof wrote, one per rank, with names that end in the rank.
        output: the file for the schedule; `-` is stdout.
        progress: called with the thousandths of the traces read, and the total, 1000.

    Raises:
        InputError: a trace is missing or invalid, no schedule can be made of it, or the file cannot be written.
    """
    request = json.dumps({"files": [_path(file) for file in files], "output": _path(output)})
    return cast(Traced, json.loads(_native.goal_trace(request, progress)))


def unsaid_text(traced: Traced) -> list[str]:
    """Return sentences about information that traces lack, and about the assumptions instead."""
    said = []
    if counts := ", ".join(f"{count} of {name}" for name, count in traced["ambiguous_calls"].items()):
        taken = "a test completes no request here, and a wait for one completes the oldest"
        said.append(f"traces do not record the requests that calls completed ({counts}); {taken}")
    if back := traced["out_of_order_calls"]:
        said.append(f"a clock went back {back} times; these steps take no time")
    return said


def _path(file: Place) -> str:
    return text(fspath(file), "a schedule", "ring.goal")


def finish_table(report: ScheduleReport) -> Table:
    """Return the finish time of each rank as a table with the columns `rank` and `finish_ns`."""
    finish = report["finish_ns"]
    return Table([("rank", list(range(len(finish)))), ("finish_ns", [float(ns) for ns in finish])])


def schedule_text(report: ScheduleReport) -> str:
    """Return a run as a table of names and values; for cards also the critical path, if requested."""
    finish = report["finish_ns"]
    unexecuted = report.get("unexecuted", 0)
    rows = [
        ["ranks", f"{report['ranks']}"],
        ["operations", f"{report['operations']}" + (f", and {unexecuted} never ran" if unexecuted else "")],
        ["messages", f"{report['messages']}"],
        ["events", f"{report['events']}"],
        ["first done", f"{fixed(min(finish))} ns"],
        ["mean", f"{fixed(sum(finish) / len(finish))} ns"],
        ["last done", f"{fixed(report['max_finish_ns'])} ns, rank {report['max_host']}"],
    ]
    for name, values in (
        ("computing", report.get("computing_ns")),
        ("communicating", report.get("communicating_ns")),
        ("both", report.get("overlapped_ns")),
    ):
        if values:
            rows.append([name, f"{fixed(sum(values) / len(values))} ns a rank"])
    lines = [f"# nicety goal v{report['version']}", f"# {report['file']}: {_network(report)}", "", *align(rows)]
    if "stages" in report:
        lines += ["", *_stages_text({report["nic"]: {each["stage"]: each["ns"] for each in report["stages"]}})]
    return "\n".join(lines) + "\n"


def _network(report: ScheduleReport) -> str:
    """Return words that describe the network of a run."""
    if "manifest" in report:
        mode = ["mode card"] if report["mode"] == "card" else []
        return ", ".join(
            [report["nic"], *mode, *circumstances(report["manifest"]), f"seed {report['manifest']['seed']}"]
        )
    parameters = ", ".join(f"{name} {value}" for name, value in zip("LogGOS", _values(report), strict=True))
    rules = ", by the rules of LogGOPSim" if "compat" in report else ""
    noise = f", noise {report['noise']}, seed {report['seed']}" if "noise" in report else ""
    return f"LogGOPS, {parameters}{rules}{noise}"


def _some(count: int, what: str) -> str:
    return f"{count} {what}{'s' if count != 1 else ''}"


def _values(report: ScheduleReport | CompareReport) -> list[object]:
    """Return the values of the parameters of LogGOPS in the order L, o, g, G, O, S."""
    given = report["parameters"]
    names = ("latency", "overhead", "gap", "gap_per_byte", "overhead_per_byte", "eager_bytes")
    return [cast(dict[str, object], given)[name] for name in names]


def compare_text(report: CompareReport) -> str:
    """Return a comparison as text: a table of times, and the critical paths by stage."""
    parts = (report["ranks"], "rank"), (report["operations"], "operation"), (report["messages"], "message")
    counts = ", ".join(_some(count, what) for count, what in parts)
    seed = f"seed {report['manifest']['seed']}"
    lines = [
        f"# nicety goal compare v{report['version']}",
        f"# {report['file']}: {counts}",
        f"# {', '.join([*circumstances(report['manifest']), seed])}",
    ]
    if "parameters" in report:
        values = ", ".join(f"{name} {value}" for name, value in zip("LogGOS", _values(report), strict=True))
        lines.append(f"# LogGOPS: {values}")
    for title, (head, *body) in compare_tables(report):
        lines += ["", f"# {title}", *align([[f"# {head[0]}", *head[1:]], *body], range(1, len(head)))]
    return "\n".join(lines) + "\n"


def compare_html(report: CompareReport) -> str:
    """Return a comparison as HTML, with the same tables as its text."""
    return "".join(table_html(title, rows) for title, rows in compare_tables(report))


def compare_tables(report: CompareReport) -> list[tuple[str, list[list[str]]]]:
    """Return titles and tables of a comparison, with a column per card: times of ranks, and critical paths by stage."""
    rows = report["rows"]
    scale, unit = time_unit(max(row["finish_ns"] for row in rows))
    columns = [_times(row, scale) for row in rows]
    names = ["done", "last rank"]
    names += [f"{what}, {of}" for what in ("computing", "communicating", "exposed") for of in ("min", "mean", "max")]
    times = [[f"Time ({unit})", *(row["nic"] for row in rows)]]
    times += [[name, *cells] for name, *cells in zip([*names, "overlap"], *columns, strict=True)]
    paths = _paths(report)
    return [("Time of ranks by activity", times)] + ([(_PATH, _path_rows(paths))] if paths else [])


_PATH = "Critical path to the end of the last rank"


def _times(row: CompareRow, scale: float) -> list[str]:
    spreads = (row["computing"], row["communicating"], row["exposed"])
    times = [each for spread in spreads for each in (spread["min_ns"], spread["mean_ns"], spread["max_ns"])]
    done = fixed(row["finish_ns"] / scale)
    return [done, str(row["last_rank"]), *(fixed(each / scale) for each in times), f"{row['overlap']:.1%}"]


def _paths(report: CompareReport) -> dict[str, dict[str, float]]:
    """Map a card's name to its critical path: nanoseconds by stage."""
    return {
        row["nic"]: {each["stage"]: each["ns"] for each in row["stages"]} for row in report["rows"] if "stages" in row
    }


def _path_rows(paths: dict[str, dict[str, float]]) -> list[list[str]]:
    scale, unit = time_unit(max(sum(path.values()) for path in paths.values()))
    rows = [["Stage", *(f"{nic} ({unit})" for nic in paths)]]
    stages = merged_order([list(path) for path in paths.values()])
    rows += [
        [stage, *(fixed(path[stage] / scale) if stage in path else "" for path in paths.values())] for stage in stages
    ]
    return [*rows, ["sum", *(fixed(sum(path.values()) / scale) for path in paths.values())]]


def _stages_text(paths: dict[str, dict[str, float]]) -> list[str]:
    head, *body = _path_rows(paths)
    return [f"# {_PATH}", *align([[f"# {head[0]}", *head[1:]], *body], range(1, len(head)))]


def compare_figure(report: CompareReport) -> Figure:
    """Draw the parts of each rank's time, with axes for each card."""
    from nicety.show.ranks import RankTimes, ranks_figure

    runs = {}
    for row in report["rows"]:
        own, end = report["by_rank"][row["nic"]], row["finish_ns"]
        each = list(zip(own["computing_ns"], own["communicating_ns"], own["overlapped_ns"], strict=True))
        parts = {
            "computing": [computing - both for computing, _, both in each],
            "both": [both for *_, both in each],
            "communicating": [communicating - both for _, communicating, both in each],
            "waiting": [max(0.0, end - computing - communicating + both) for computing, communicating, both in each],
        }
        runs[row["nic"]] = RankTimes(parts, end)
    around = [_some(report["ranks"], "rank"), *circumstances(report["manifest"])]
    return ranks_figure(runs, title=f"{report['file']}: {', '.join(around)}")


def info_text(info: ScheduleInfo) -> str:
    """Return the contents of a schedule as lines of names and values."""
    rows = [[name.replace("_", " "), str(value)] for name, value in info.items()]
    return "\n".join(align(rows)) + "\n"
