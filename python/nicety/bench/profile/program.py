"""Profiles of the processes that a program of hosts starts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from typing import Any, Unpack, cast

from nicety._generated.types import ProfileReport
from nicety.bench.profile.text import profile_html
from nicety.errors import Error, RunError
from nicety.program.failures import Allowed
from nicety.program.script import run_program
from nicety.requests import ProgramOptions
from nicety.shared.typed import checked
from nicety.show.html import Shown


@checked
def profile_program(
    path: str | PathLike[str],
    *,
    arguments: Sequence[str] = (),
    allow_failures: Allowed = (),
    progress: Callable[[int, int, str], None] | None = None,
    **given: Unpack[ProgramOptions],
) -> ProfileReport:
    """Run a program of hosts on flow processors, and count the cycles of its processes by instruction and cause.

    Each cycle of a context is counted once, from the start of a process to its end, or to the end of the run. Among the
    processes are those that forward messages between hosts.

    Args:
        path: a Python file, as for `run_program`.
        arguments: the program's arguments.
        allow_failures: failures that are part of the experiment; see `Cluster`.
        progress: called with the number of cards done, the total, and the next card.
        given: the arguments of `ProgramOptions`.

    Returns:
        A report with a row for each card and program of processes.

    Raises:
        InputError: the file or a card is invalid, or a card has no processes.
        HandlerFailure: a process failed in a way that is not allowed; the exception's `report` is complete.
        RunError: the run failed otherwise, or no process has run.
    """
    try:
        ran = run_program(
            path, arguments=arguments, allow_failures=allow_failures, profile=True, progress=progress, **given
        )
    except (Error, KeyboardInterrupt) as failure:
        # The report has the rows of cards without a failure, and of those with one that is not allowed.
        report = getattr(failure, "report", None)
        if report is not None:
            vars(failure)["report"] = _report(report)
        raise
    return _required(_report(ran), ran["program"])


def _required(report: ProfileReport, program: str) -> ProfileReport:
    if not report["rows"]:
        raise RunError(f"{program}: no process has run on a card; start one with host.channels.start")
    return report


def _report(ran: Mapping[str, Any]) -> ProfileReport:
    """The profile in the report of a program."""
    report: dict[str, Any] = {
        "benchmark": "profile",
        "version": ran["version"],
        "seed": ran["seed"],
        "manifest": ran["manifest"],
        "rows": ran["profile"],
        "failures": ran["failures"],
    }
    if ran.get("failed_points"):
        report["failed_points"] = ran["failed_points"]
    return cast(ProfileReport, Shown(report, profile_html))
