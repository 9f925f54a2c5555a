"""`nicety bench` of a use case."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from nicety.cli.files import Files
from nicety.cli.output import failed, note, parse_names, print_json
from nicety.cli.progress import progress
from nicety.show.traces import RecordingWarning
from nicety.usecases import UseCase, run_usecase
from nicety.usecases.driver import failure_text
from nicety.usecases.report import report_text


@dataclass(frozen=True)
class Request:
    """What the user asked for beside the use case's own parameters, as it was written."""

    nics: Sequence[str]
    modes: Sequence[str] | None
    iterations: int | None
    handlers: Path | None
    cc: str | None
    overrides: Sequence[str]
    topology: str | None
    noise: str | None
    faults: str | None
    seed: int
    allow_failures: str


def usecase(case: UseCase, request: Request, files: Files, *, percentiles: bool, as_json: bool) -> None:
    """Run a use case, print its tables or its report as JSON, and write the files."""
    files.check()
    with warnings.catch_warnings(record=True) as warned, progress("preparing") as bar:
        warnings.simplefilter("always", RecordingWarning)
        report = run_usecase(
            case,
            nics=parse_names(request.nics, "--nic"),
            modes=None if request.modes is None else parse_names(request.modes, "--mode"),
            overrides=request.overrides,
            topology=request.topology,
            noise=request.noise,
            faults=request.faults,
            seed=request.seed,
            allow_failures=request.allow_failures,
            iterations=request.iterations or 1,
            handlers=request.handlers,
            cc=request.cc,
            trace=files.trace,
            trace_scale=files.scale,
            note=note,
            progress=lambda done, total: bar.advance(done, total, "measuring"),
        )
    for warning in warned:
        note(str(warning.message))
    files.write(report, percentiles=percentiles)
    if as_json:
        print_json(report)
    else:
        sys.stdout.write(report_text(report, percentiles=percentiles))
    if report["failures"]:
        raise failed([failure_text(failure) for failure in report["failures"]])
