"""Schedules of applications in GOAL's formats: what they are made of, and what they take on a LogGOPS network.

A schedule has the operations of each rank, and which of them wait for which; see docs/guide/goal.md.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from os import fspath
from typing import Unpack, cast

from nicety import _native
from nicety.bench.measured import Progress
from nicety.shared.checks import Place, text
from nicety.shared.options import request_text
from nicety.shared.typed import checked
from nicety.shared.types import (
    Converted,
    Generated,
    GenerateOptions,
    ScheduleInfo,
    ScheduleOptions,
    ScheduleReport,
    Traced,
)
from nicety.show.columns import align, fixed
from nicety.show.tables import Table


@checked
def run_schedule(file: Place, *, progress: Progress | None = None, **given: Unpack[ScheduleOptions]) -> ScheduleReport:
    """Run a schedule, and say when each host is done.

    Args:
        file: a schedule, as text or binary.
        progress: called with the thousandths of its operations that are executed, and with 1000.
        given: as `ScheduleOptions` says.

    Raises:
        InputError: the file is no schedule, operations of it wait for each other, or an argument cannot be.
        Deadlock: a receive has no message, or a message no receive; the error names them.
    """
    request = request_text(ScheduleOptions, given, file=_path(file))
    return cast(ScheduleReport, json.loads(_native.goal_run(request, progress)))


@checked
def schedule_info(file: Place, *, progress: Progress | None = None) -> ScheduleInfo:
    """Say what a schedule is made of.

    Args:
        file: a schedule, as text or binary.
        progress: called with the thousandths of the file that are read, and with 1000.

    Raises:
        InputError: the file is no schedule, or operations of it wait for each other.
    """
    return cast(ScheduleInfo, json.loads(_native.goal_info(_path(file), progress)))


@checked
def convert_schedule(source: Place, target: Place, *, progress: Progress | None = None) -> Converted:
    """Write a schedule in another format.

    Args:
        source: a schedule, as text or binary.
        target: the file to write: `.bin` is binary, `.goal` and `.txt` are text, and any other name has the format
            that the source has not.
        progress: called with the thousandths of the file that are read, and with 1000.

    Raises:
        InputError: the file is no schedule, or the other one cannot be written.
    """
    return cast(Converted, json.loads(_native.goal_convert(_path(source), _path(target), progress)))


@checked
def generate_schedule(
    pattern: str, output: Place, *, progress: Progress | None = None, **given: Unpack[GenerateOptions]
) -> Generated:
    """Make the schedule of a communication pattern.

    Args:
        pattern: its name: binomial-broadcast, binomial-reduce, dissemination, recursive-doubling, ring-allreduce,
            pairwise-alltoall, linear-alltoall, gather, scatter, halo-2d, halo-3d, pipeline, data-parallel or
            mixture-of-experts.
        output: the file to write: `.bin` is binary, any other name text.
        progress: called with the thousandths of the ranks that are made, and with 1000.
        given: as `GenerateOptions` says.

    Raises:
        InputError: there is no such pattern, it would be too large, or the file cannot be written.
    """
    request = request_text(GenerateOptions, given, pattern=pattern, output=_path(output))
    return cast(Generated, json.loads(_native.goal_generate(request, progress)))


@checked
def trace_schedule(files: Iterable[Place], output: Place, *, progress: Progress | None = None) -> Traced:
    """Make the schedule of what an MPI program did.

    Args:
        files: the traces that liballprof wrote, one of each rank, whose names end with its number.
        output: the file to write: `.bin` is binary, any other name text.
        progress: called with the thousandths of the traces that are read, and with 1000.

    Raises:
        InputError: a trace is missing or is none, no schedule can be made of it, or the file cannot be written.
    """
    request = json.dumps({"files": [_path(file) for file in files], "output": _path(output)})
    return cast(Traced, json.loads(_native.goal_trace(request, progress)))


def unsaid_text(traced: Traced) -> list[str]:
    """What traces do not say, and what was made of it; a sentence each."""
    said = []
    if counts := ", ".join(f"{count} of {name}" for name, count in traced["unsaid"].items()):
        taken = "a test is taken to end none, and a wait for one the request that was posted first"
        said.append(f"traces do not say which requests calls ended ({counts}); {taken}")
    if back := traced["backwards"]:
        said.append(f"clocks went back {back} times, which is taken for no time")
    return said


def _path(file: Place) -> str:
    return text(fspath(file), "a schedule", "ring.goal")


def finish_table(report: ScheduleReport) -> Table:
    """When each rank is done: the columns `rank` and `finish_ns`."""
    finish = report["finish_ns"]
    return Table([("rank", list(range(len(finish)))), ("finish_ns", [float(ns) for ns in finish])])


def schedule_text(report: ScheduleReport) -> str:
    """A run as a table of names and values."""
    finish = report["finish_ns"]
    values = report["parameters"].values()
    parameters = ", ".join(f"{name} {value}" for name, value in zip("LogGOS", values, strict=True))
    rules = ", by the rules of LogGOPSim" if "compat" in report else ""
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
    lines = [f"# nicety goal v{report['version']}", f"# {report['file']}: LogGOPS, {parameters}{rules}", ""]
    return "\n".join([*lines, *align(rows)]) + "\n"


def info_text(info: ScheduleInfo) -> str:
    """What a schedule is made of, as a table of names and values."""
    rows = [[name.replace("_", " "), str(value)] for name, value in info.items()]
    return "\n".join(align(rows)) + "\n"
