"""The checker of processes: a program of hosts, with each instruction of its processes observed."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any, Unpack, cast

from nicety import _native
from nicety._generated.types import CheckReport
from nicety.bench.check.fuzz import key_of
from nicety.bench.check.handlers import MOST_SCHEDULES, check_seconds, check_table, check_text, extend
from nicety.bench.check.messages import MessageSearch, messages_of
from nicety.errors import InputError, RunError
from nicety.program.channels.outgoing import Outgoing
from nicety.program.script import on_one_card
from nicety.requests import ProgramOptions
from nicety.shared.options import asked
from nicety.shared.typed import checked
from nicety.show.html import Shown, text_html

_TIMES, _LONGEST = 20, 100_000
"""A run with mutated messages ends at this multiple of the program's instructions, and not before this number."""
_LONGEST_REPLAY = 10_000_000
"""Most instructions of a run with the messages of a capture."""


@dataclass
class _Total:
    """The results of all interleavings."""

    runs: int = 0
    instructions: int = 0
    findings: dict[Any, Any] = field(default_factory=dict)
    covered: dict[str, set[int]] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)

    def add(self, found: dict[str, Any]) -> None:
        """Add those of a run."""
        self.runs += found["runs"]
        self.instructions += found["instructions"]
        for functions, addresses in found["covered"]:
            self.covered.setdefault(functions, set()).update(addresses)
        self.missing += [text for text in found["missing"] if text not in self.missing]
        for finding in found["findings"]:
            known = self.findings.setdefault(key_of(finding), finding)
            if known is not finding:
                known["times"] += finding["times"]


@checked
def check_program(
    path: str | PathLike[str],
    *,
    arguments: Sequence[str] = (),
    schedules: int = 1,
    fuzz: float = 0,
    replay: Path | str | None = None,
    progress: Callable[[int, int], None] | None = None,
    **given: Unpack[ProgramOptions],
) -> CheckReport:
    """Run a program of hosts on flow processors, with its processes under a checker of memory, races, locks and calls.

    The processes that forward messages between hosts are checked too. A process that traps does not end the check.

    Args:
        path: a Python file, as for `run_program`. It is loaded once for each interleaving.
        arguments: the program's arguments.
        schedules: interleavings to try: the first is the card's own, others delay contexts by random cycles.
        fuzz: seconds for which mutated messages from hosts to processes are checked after these. For each of their
            findings a capture with the fewest messages that replay it is written into this folder.
        replay: such a capture. Its messages replace those of the program.
        progress: called with the number of runs done, and the total.
        given: the arguments of `ProgramOptions`; one card.

    Returns:
        A report with `findings`, each once. It is empty for a program without findings. The report is a dict.

    Raises:
        InputError: the file or the card is invalid, or the card has no processes.
        RunError: the run failed without a finding, or no process has run.
        Exception: that of the program, without a finding.
        KeyboardInterrupt: the user interrupted the check. While messages are mutated, this error and others of nicety
            have the attribute `report`: the report with the findings so far.
    """
    if not 1 <= schedules <= MOST_SCHEDULES:
        raise InputError(f"schedules is 1 to {MOST_SCHEDULES}, not {schedules}")
    check_seconds(fuzz)
    changes = {} if replay is None else messages_of(Path(replay))
    most = None if replay is None else _LONGEST_REPLAY
    options = asked(ProgramOptions, given)
    path = Path(path)

    def check(outgoing: Outgoing, *, silent: bool, **how: Any) -> dict[str, Any]:
        quiet = contextlib.redirect_stdout(io.StringIO()) if silent else contextlib.nullcontext()
        run = on_one_card(path, arguments, "a check", **given)
        with quiet, outgoing.active(), run as (cluster, programs):
            return cluster.check(programs, **how)

    total = _Total()
    for schedule in range(schedules):
        # The first interleaving has printed the output of the program.
        total.add(check(Outgoing(changes), silent=schedule > 0, schedule=schedule, instructions=most))
        if progress is not None:
            progress(schedule + 1, schedules)
    if not total.runs:
        raise RunError(f"{path}: no process has run on a card; start one with host.channels.start")
    report = {
        "version": _native.version(),
        "nic": options["nics"][0],
        "program": str(path),
        "seed": options["seed"],
        "schedules": schedules,
        "runs": total.runs,
        "instructions": total.instructions,
        "covered": sum(map(len, total.covered.values())),
        "findings": list(total.findings.values()),
        "failures": [],
        "missing": total.missing,
    }
    if fuzz:
        longest = max(_LONGEST, _TIMES * total.instructions // schedules)
        search = MessageSearch(
            partial(check, silent=True, instructions=longest, lenient=True), options["seed"], path.stem
        )
        extend(cast(CheckReport, report), search, fuzz)
    shown = Shown(report, lambda found: text_html(check_text(found)), table=check_table)
    return cast(CheckReport, shown)
