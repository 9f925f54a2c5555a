"""`nicety run`."""

from __future__ import annotations

import contextlib
import sys
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nicety.cli.files import Files
from nicety.cli.output import note, print_json, with_report
from nicety.cli.progress import progress
from nicety.errors import InputError, RunError
from nicety.program.script import ProgramReport, program_csv, program_text, run_program
from nicety.shared.files import write_whole
from nicety.show.traces import RecordingWarning

_MOST = 8
"""Ranks whose dropped messages are told."""


@dataclass(frozen=True)
class Request:
    """What the user asked for."""

    program: Path
    nics: Sequence[str]
    overrides: Sequence[str]
    nodes: int | None
    topology: str | None
    seed: int
    noise: str | None
    faults: str | None
    arguments: Sequence[str]
    allow_failures: str


@contextlib.contextmanager
def _notes() -> Iterator[None]:
    """Tells of a recording that is not whole as a note; the program's own warnings are shown as ever."""
    with warnings.catch_warnings():
        warnings.simplefilter("always", RecordingWarning)
        usual = warnings.showwarning

        def show(message: Warning | str, category: type[Warning], *place: Any, **more: Any) -> None:
            if issubclass(category, RecordingWarning):
                note(str(message))
            else:
                usual(message, category, *place, **more)

        warnings.showwarning = show
        yield


def run(request: Request, files: Files, *, as_json: bool) -> None:
    """Run the programs of a file, print what they report, and write the files."""
    files.check()
    if files.trace is not None and len(request.nics) > 1:
        raise InputError(f"--trace {files.trace}: a timeline is of one card; name one with --nic")
    # Stdout is the document's alone.
    prints = contextlib.redirect_stdout(sys.stderr) if as_json else contextlib.nullcontext()
    with _notes(), progress("running") as bar, prints:
        try:
            report, failed = with_report(
                ProgramReport,
                run_program,
                request.program,
                nics=request.nics,
                overrides=request.overrides,
                nodes=request.nodes,
                topology=request.topology,
                seed=request.seed,
                noise=request.noise,
                faults=request.faults,
                arguments=request.arguments,
                allow_failures=request.allow_failures,
                trace=files.trace,
                trace_scale=files.scale,
                progress=lambda done, total, nic: bar.advance(done, total, f"running on {nic}"),
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
        sys.stdout.write(program_text(report))
    _tell_lost(report)
    if failed is not None:
        raise failed


def _tell_lost(report: ProgramReport) -> None:
    """Messages and frames that nobody took."""
    drops = report["messages_dropped"]
    for dropped in drops[:_MOST]:
        count, first = dropped["messages"], dropped["first"]
        what = f"1 message: {first}" if count == 1 else f"{count} messages, the first {first}"
        note(f"{dropped['nic']}: the card of rank {dropped['rank']} dropped {what}")
    if len(drops) > _MOST:
        others = sum(dropped["messages"] for dropped in drops[_MOST:])
        note(f"the cards of {len(drops) - _MOST} more ranks dropped {others}")
    for lost in report["frames_lost"][:_MOST]:
        of = ((lost["unclaimed"], "for queues that nobody had opened"), (lost["waiting"], "that no process took"))
        frames = [f"{count} frame{'s' if count > 1 else ''} {what}" for count, what in of if count]
        note(f"{lost['nic']}: the port of rank {lost['rank']} has lost {' and '.join(frames)}")
    if (more := len(report["frames_lost"]) - _MOST) > 0:
        note(f"the ports of {more} more ranks have lost frames")
