"""The same program with and without collective operations on the card, in one table; see docs/guide/offload.md."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from os import PathLike, fspath
from typing import Any, TypedDict, Unpack, cast

from nicety._generated.types import ExecOptions, ExecReport
from nicety.apps.launchers import Launcher
from nicety.apps.processes import offload_text, plan_offload, run_conditions, run_processes
from nicety.errors import InputError, RunError
from nicety.shared.checks import Place
from nicety.shared.typed import checked
from nicety.show.columns import align, fixed
from nicety.show.html import Shown, text_html
from nicety.show.tables import Table


class OffloadRow(TypedDict):
    """The figures of one process, from the runs without and with offload.

    Attributes:
        rank: the rank of the process.
        finish_ns: the virtual time at which the process closed the network, without offload.
        offload_finish_ns: the virtual time at which the process closed the network, with offload.
        speedup: the ratio of `finish_ns` to `offload_finish_ns`.
        sends: number of messages that the process's host sent, without offload.
        offload_sends: number of messages that the process's host sent, with offload. Messages between cards do not
            count.
        sent_bytes: bytes in the messages of `sends`.
        offload_sent_bytes: bytes in the messages of `offload_sends`.
        offloaded_calls: number of collective calls that the card executed.
        fallback_calls: number of collective calls that the run with offload left to MPI.
    """

    rank: int
    finish_ns: float
    offload_finish_ns: float
    speedup: float
    sends: int
    offload_sends: int
    sent_bytes: int
    offload_sent_bytes: int
    offloaded_calls: int
    fallback_calls: int


class OffloadReport(TypedDict):
    """Two runs of one program, without and with offload.

    Attributes:
        version: the version of nicety.
        program: the program, and its arguments.
        max_finish_ns: the virtual time at which the last process closed the network, without offload.
        offload_max_finish_ns: the virtual time at which the last process closed the network, with offload.
        speedup: the ratio of `max_finish_ns` to `offload_max_finish_ns`.
        rows: the processes, by rank.
        without: the run with all operations left to MPI.
        offload: the run with the operations on the card.
    """

    version: str
    program: list[str]
    max_finish_ns: float
    offload_max_finish_ns: float
    speedup: float
    rows: list[OffloadRow]
    without: ExecReport
    offload: ExecReport


@checked
def compare_offload(
    program: Sequence[Place],
    *,
    ranks: int = 1,
    launcher: Launcher = "auto",
    to_stderr: bool = False,
    **given: Unpack[ExecOptions],
) -> OffloadReport:
    """Run a program twice, without and with the collective operations in `offload` on the card.

    If the program prints to stdout, a line before each run names the run.

    Args:
        program: the program, and its arguments.
        ranks: the number of its processes, 1 to 1024.
        launcher: see `run_processes`.
        to_stderr: whether the output of processes goes to stderr.
        given: the arguments of `ExecOptions`.

    Raises:
        InputError: see `run_processes`; also if nothing is offloaded.
        Deadlock: as `run_processes`.
        RunError: see `run_processes`; also if the program ended with a status other than 0, so that there is nothing to
            compare.
    """
    asked = given.get("offload") or ()
    names = [fspath(name) for name in ((asked,) if isinstance(asked, str | PathLike) else asked)]
    if not names:
        raise InputError("--compare-offload: nothing is offloaded; name the calls, as in --offload bcast,barrier")
        # Refuse an unsuitable card or option of the second run before the first run starts.
    plan_offload(program, ranks, given)
    runs = []
    for title, offload in (("without offload", None), (f"offload {', '.join(names)}", names)):
        print(f"# {title}", file=sys.stderr if to_stderr else sys.stdout, flush=True)
        options = given.copy()
        options["offload"] = offload
        runs.append(run_processes(program, ranks=ranks, launcher=launcher, to_stderr=to_stderr, **options))
        if status := runs[-1]["status"]:
            raise RunError(f"{title}: the program ended with status {status}, so that there is nothing to compare")
    without, offloaded = runs
    report: OffloadReport = {
        "version": without["version"],
        "program": without["program"],
        "max_finish_ns": without["max_finish_ns"],
        "offload_max_finish_ns": offloaded["max_finish_ns"],
        "speedup": _ratio(without["max_finish_ns"], offloaded["max_finish_ns"]),
        "rows": _rows(without, offloaded),
        "without": without,
        "offload": offloaded,
    }
    shown = Shown(report, lambda found: text_html(offload_comparison_text(found)), table=offload_table)
    return cast(OffloadReport, shown)


def _ratio(without_ns: float, offload_ns: float) -> float:
    return without_ns / offload_ns if offload_ns else 1.0


def _rows(without: ExecReport, offloaded: ExecReport) -> list[OffloadRow]:
    return [
        {
            "rank": before["rank"],
            "finish_ns": before["finish_ns"],
            "offload_finish_ns": after["finish_ns"],
            "speedup": _ratio(before["finish_ns"], after["finish_ns"]),
            "sends": before["sends"],
            "offload_sends": after["sends"],
            "sent_bytes": before["sent_bytes"],
            "offload_sent_bytes": after["sent_bytes"],
            "offloaded_calls": after["offload"]["offloaded_calls"],
            "fallback_calls": after["offload"]["fallback_calls"],
        }
        for before, after in zip(without["ranks"], offloaded["ranks"], strict=True)
    ]


def offload_table(report: OffloadReport) -> Table:
    """Return both runs as a table, with a row per process."""
    rows: list[dict[str, Any]] = [dict(row) for row in report["rows"]]
    return Table([(name, [row[name] for row in rows]) for name in OffloadRow.__annotations__])


def offload_comparison_text(report: OffloadReport) -> str:
    """Return both runs as text: a table with a row per process, its columns aligned."""
    run = report["offload"]
    head = f"# nicety exec v{report['version']}\n# {' '.join(report['program'])}: {run_conditions(run)}\n\n"
    above = ["", "without", "offload", "", "without", "offload", "without", "offload", "", ""]
    titles = ["Rank", *["finish (µs)"] * 2, "speed-up", *["sent"] * 2, *["bytes"] * 2, "offloaded", "left to MPI"]
    rows = [
        [
            str(row["rank"]),
            fixed(row["finish_ns"] / 1000, 3),
            fixed(row["offload_finish_ns"] / 1000, 3),
            fixed(row["speedup"], 3),
            *map(str, (row["sends"], row["offload_sends"], row["sent_bytes"], row["offload_sent_bytes"])),
            *map(str, (row["offloaded_calls"], row["fallback_calls"])),
        ]
        for row in report["rows"]
    ]
    last = (report["max_finish_ns"] / 1000, report["offload_max_finish_ns"] / 1000, report["speedup"])
    rows.append(["last", *(fixed(value, 3) for value in last), *[""] * (len(titles) - 4)])
    lines = align([above, titles, *rows], range(1, len(titles)))
    return head + "\n".join(line.rstrip() for line in lines) + "\n" + offload_text(run)
