"""`nicety goal`: schedules in GOAL's formats, and their simulated times."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nicety._generated.types import CompareOptions, GenerateOptions, ScheduleOptions
from nicety.cli.arguments import command
from nicety.cli.bench.measure import Output, add
from nicety.cli.options import GROUPS, Arrow, Csv, Json, group
from nicety.errors import InputError

if TYPE_CHECKING:
    from nicety.cli.progress import Bar

goal = group(GROUPS["goal"])

_Schedule = Annotated[Path, typer.Argument(metavar="FILE", help="A schedule, as text or binary.")]


def _run(file: _Schedule, csv: Csv = None, arrow: Arrow = None, *, as_json: Json = False, **given: Any) -> None:
    from nicety.apps.goal import finish_table, run_schedule, schedule_text
    from nicety.cli.bench.processes import processes
    from nicety.cli.files import Files
    from nicety.cli.output import note, print_json, say
    from nicety.cli.progress import progress
    from nicety.shared.files import write_whole
    from nicety.show.tables import csv_text, write_arrow

    files = Files(csv=csv, arrow=arrow)
    with (
        progress("running", percent=True) as bar,
        _interruptible(file, bar, as_json=as_json),
        processes(spread=True) as is_first,
    ):
        if is_first:
            files.check()
        report = run_schedule(file, progress=bar.advance, **given)
    if csv is not None:
        write_whole(csv, csv_text(finish_table(report)).encode())
    if arrow is not None:
        write_arrow(finish_table(report), arrow)
    if as_json:
        print_json(report)
    else:
        say(schedule_text(report))
    if report["threads"] < given.get("threads", 1) and report["threads"] < report["ranks"]:
        if "nic" in report:
            note(f"{file}: a run with a capture uses one thread")
        else:
            why = "by the rules of LogGOPSim" if "compat" in report else "without a latency"
            note(f"{file}: {why} events have one order, so the run uses one thread")
    if unexecuted := report.get("unexecuted", 0):
        note(f"{file}: {unexecuted} operations never ran, as in LogGOPSim; without --compat that is an error")


@contextlib.contextmanager
def _interruptible(file: Path, bar: Bar, *, as_json: bool) -> Iterator[None]:
    """If Ctrl-C or SIGTERM ends the run, report the share of operations that were executed."""
    from nicety.cli.bench.processes import Silent
    from nicety.cli.output import note, print_json

    try:
        yield
    except Silent:
        raise
    except (KeyboardInterrupt, SystemExit):
        text = f"{file}: {bar.share:.1%} of the operations were executed"
        note(text)
        if as_json:
            print_json({"error": {"kind": "Interrupted", "text": text, "executed": bar.share}})
        raise


def _compare(file: _Schedule, *, output: Output, **given: Any) -> None:
    from nicety.apps.goal import compare_figure, compare_schedule, compare_text

    output.of(partial(compare_schedule, file, **given), compare_text, compare_figure, spread=True, percent=True)


@goal.command("info")
def _info(file: _Schedule, as_json: Json = False) -> None:
    """Print the contents of a schedule: ranks, operations, bytes, depth, degree."""
    from nicety.apps.goal import info_text, schedule_info
    from nicety.cli.output import print_json, say
    from nicety.cli.progress import progress

    with progress("reading", percent=True) as bar:
        info = schedule_info(file, progress=bar.advance)
    if as_json:
        print_json(info)
    else:
        say(info_text(info))


@goal.command("convert")
def _convert(
    source: Annotated[Path, typer.Argument(metavar="IN", help="A schedule, as text or binary.")],
    target: Annotated[
        Path, typer.Argument(metavar="OUT", help="The file to write: .bin is binary, .goal and .txt are text.")
    ],
    as_json: Json = False,
) -> None:
    """Write a schedule in the other format, or in the format of OUT's extension."""
    from nicety.apps.goal import convert_schedule
    from nicety.cli.output import print_json
    from nicety.cli.progress import progress

    with progress("reading", percent=True) as bar:
        done = convert_schedule(source, target, progress=bar.advance)
    if as_json:
        print_json(done)


def _check_output(target: Path, *, as_json: bool) -> None:
    if as_json and target == Path("-"):
        raise InputError("--json prints its document on stdout, where the schedule would go; name its file by --output")


def _generate(
    pattern: Annotated[str, typer.Argument(metavar="PATTERN", help="The pattern's name.")],
    target: Annotated[
        Path,
        typer.Option("--output", "-o", metavar="FILE", help="The file to write; .bin is binary. Default: - (stdout)."),
    ] = Path("-"),
    *,
    as_json: Json = False,
    **given: Any,
) -> None:
    from nicety.apps.goal import generate_schedule
    from nicety.cli.output import print_json
    from nicety.cli.progress import progress

    _check_output(target, as_json=as_json)
    with progress("generating", percent=True) as bar:
        done = generate_schedule(pattern, target, progress=bar.advance, **given)
    if as_json:
        print_json(done)


@goal.command("trace")
def _trace(
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE...", help="Traces of all ranks; names end with the rank.")
    ],
    target: Annotated[
        Path,
        typer.Option("--output", "-o", metavar="FILE", help="The file to write; .bin is binary. Default: - (stdout)."),
    ] = Path("-"),
    as_json: Json = False,
) -> None:
    """Make a schedule from liballprof's traces of an MPI program."""
    from nicety.apps.goal import trace_schedule, unsaid_text
    from nicety.cli.output import note, print_json
    from nicety.cli.progress import progress

    _check_output(target, as_json=as_json)
    with progress("reading", percent=True) as bar:
        done = trace_schedule(files, target, progress=bar.advance)
    if as_json:
        print_json(done)
    for text in unsaid_text(done):
        note(text)


command(goal, "run", _run, ScheduleOptions, captures=True)
add(goal, "compare", _compare, CompareOptions, traces=False)
command(goal, "generate", _generate, GenerateOptions)
