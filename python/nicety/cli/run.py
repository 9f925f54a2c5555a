"""`nicety run`."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nicety.cli.arguments import command
from nicety.cli.options import AllowFailures, Csv, Json, TraceScale
from nicety.requests import ProgramOptions

if TYPE_CHECKING:
    from nicety.program.script.report import ProgramReport

_MOST = 8
"""Maximum number of ranks with reported drops; the rest are counted."""


def _run(
    program: Annotated[
        Path, typer.Argument(metavar="PROGRAM.py", help="A file with 'async def main(host)', or programs = {0: ...}.")
    ],
    arguments: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[ARGS]...", help="The program's own arguments, in sys.argv; put -- before one with a dash."
        ),
    ] = None,
    allow_failures: AllowFailures = None,
    csv: Csv = None,
    traffic: Annotated[
        list[str] | None,
        typer.Option(
            metavar="EXPR", help="Frames for a host's card, as in 'udp dport=53 rate=10Gbps to=1'; may be given again."
        ),
    ] = None,
    trace: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write a timeline of one card for ui.perfetto.dev.")
    ] = None,
    trace_scale: TraceScale = None,
    as_json: Json = False,
    **given: Any,
) -> None:
    """Run a program on one card or several, and tabulate its results."""
    from nicety.cli.files import Files
    from nicety.cli.output import print_json, recording_notes, say, with_report
    from nicety.cli.progress import progress
    from nicety.errors import InputError, RunError
    from nicety.program.script import run_program
    from nicety.program.script.report import program_csv, program_text
    from nicety.shared.files import write_whole

    nics = given["nics"]
    files = Files(csv=csv, trace=trace, trace_scale=trace_scale)
    files.check()
    if files.trace is not None and len(nics) > 1:
        raise InputError(f"--trace {files.trace}: a timeline is of one card; name one with --nic")
    # With --json, stdout has only the document, so the program's own output goes to stderr.
    prints = contextlib.redirect_stdout(sys.stderr) if as_json else contextlib.nullcontext()
    with recording_notes(), progress("running") as bar, prints:
        try:
            report, failed = with_report(
                run_program,
                program,
                arguments=arguments or [],
                allow_failures=allow_failures or "",
                traffic=traffic or [],
                trace=files.trace,
                trace_scale=files.scale,
                progress=lambda done, total, nic: bar.advance(done, total, f"running on {nic}"),
                **given,
            )
        except SystemExit as left:
            if isinstance(left.code, str):
                raise RunError(left.code) from left
            raise
    if files.csv is not None:
        write_whole(files.csv, program_csv(report).encode())
    if as_json:
        print_json(report)
    else:
        say(program_text(report))
    _tell_lost(report)
    if failed is not None:
        raise failed


def _tell_lost(report: ProgramReport) -> None:
    """Print notes on messages that cards dropped, and on frames that ports lost."""
    from nicety.cli.output import note

    drops = report["messages_dropped"]
    for dropped in drops[:_MOST]:
        count, first = dropped["messages"], dropped["first"]
        what = f"1 message: {first}" if count == 1 else f"{count} messages, the first {first}"
        note(f"{dropped['nic']}: the card of rank {dropped['rank']} dropped {what}")
    if len(drops) > _MOST:
        others = sum(dropped["messages"] for dropped in drops[_MOST:])
        note(f"the cards of {len(drops) - _MOST} more ranks dropped {others}")
    for lost in report["frames_lost"][:_MOST]:
        of = ((lost["unclaimed"], "for queues that no process had opened"), (lost["waiting"], "that no process took"))
        frames = [f"{count} frame{'s' if count > 1 else ''} {what}" for count, what in of if count]
        note(f"{lost['nic']}: the port of rank {lost['rank']} lost {' and '.join(frames)}")
    if (more := len(report["frames_lost"]) - _MOST) > 0:
        note(f"the ports of {more} more ranks have lost frames")


def register(app: typer.Typer) -> None:
    """Add the command."""
    command(app, "run", _run, ProgramOptions, text=_run.__doc__, captures=True)
