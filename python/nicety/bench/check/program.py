"""The checker of processes: a program of hosts, with each instruction of its processes observed."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, Unpack, cast

from nicety import _native
from nicety._generated.types import CheckReport
from nicety.bench.check.fuzz import key_of
from nicety.bench.check.handlers import MOST_SCHEDULES, check_table, check_text
from nicety.errors import InputError, RunError
from nicety.program.script import on_one_card
from nicety.requests import ProgramOptions
from nicety.shared.options import asked
from nicety.shared.typed import checked
from nicety.show.html import Shown, text_html


@checked
def check_program(
    path: str | PathLike[str],
    *,
    arguments: Sequence[str] = (),
    schedules: int = 1,
    progress: Callable[[int, int], None] | None = None,
    **given: Unpack[ProgramOptions],
) -> CheckReport:
    """Run a program of hosts on flow processors, with its processes under a checker of memory, races, locks and calls.

    The processes that forward messages between hosts are checked too. A process that traps does not end the check.

    Args:
        path: a Python file, as for `run_program`. It is loaded once for each interleaving.
        arguments: the program's arguments.
        schedules: interleavings to try: the first is the card's own, others delay contexts by random cycles.
        progress: called with the number of runs done, and the total.
        given: the arguments of `ProgramOptions`; one card.

    Returns:
        A report with `findings`, each once. It is empty for a program without findings. The report is a dict.

    Raises:
        InputError: the file or the card is invalid, or the card has no processes.
        RunError: the run failed without a finding, or no process has run.
        Exception: that of the program, without a finding.
    """
    if not 1 <= schedules <= MOST_SCHEDULES:
        raise InputError(f"schedules is 1 to {MOST_SCHEDULES}, not {schedules}")
    options = asked(ProgramOptions, given)
    path = Path(path)
    findings: dict[Any, Any] = {}
    covered: dict[str, set[int]] = {}
    missing: list[str] = []
    runs = instructions = 0
    for schedule in range(schedules):
        # The first interleaving has printed the output of the program.
        silent = contextlib.redirect_stdout(io.StringIO()) if schedule > 0 else contextlib.nullcontext()
        with silent, on_one_card(path, arguments, "a check", **given) as (cluster, programs):
            found = cluster.check(programs, schedule=schedule)
        runs += found["runs"]
        instructions += found["instructions"]
        for functions, addresses in found["covered"]:
            covered.setdefault(functions, set()).update(addresses)
        missing += [text for text in found["missing"] if text not in missing]
        for finding in found["findings"]:
            known = findings.setdefault(key_of(finding), finding)
            if known is not finding:
                known["times"] += finding["times"]
        if progress is not None:
            progress(schedule + 1, schedules)
    if not runs:
        raise RunError(f"{path}: no process has run on a card; start one with host.channels.start")
    report = {
        "version": _native.version(),
        "nic": options["nics"][0],
        "program": str(path),
        "seed": options["seed"],
        "schedules": schedules,
        "runs": runs,
        "instructions": instructions,
        "covered": sum(map(len, covered.values())),
        "findings": list(findings.values()),
        "missing": missing,
    }
    shown = Shown(report, lambda found: text_html(check_text(found)), table=check_table)
    return cast(CheckReport, shown)
