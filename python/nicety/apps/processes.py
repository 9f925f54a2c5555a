"""Real programs on simulated hosts: each process of a program is a host, in virtual time; see docs/guide/exec.md."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from os import fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack, cast

from nicety import _native
from nicety._generated.types import ExecOptions, ExecRank, ExecReport
from nicety.apps.launchers import LAUNCHERS, Launcher, find_launcher, refuse_launcher
from nicety.bench.measured import Scale
from nicety.build.compiler import compile_handlers, library_source
from nicety.build.hosts import libraries_folder
from nicety.errors import InputError
from nicety.shared.checks import Place, one_of, whole
from nicety.shared.files import check_place
from nicety.shared.options import request_text
from nicety.shared.typed import checked
from nicety.show.circumstances import circumstances
from nicety.show.columns import align, fixed
from nicety.show.html import Shown, text_html
from nicety.show.ranks import RankTimes, ranks_figure
from nicety.show.tables import Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MOST_RANKS = 1024


@checked
def run_processes(
    program: Sequence[Place],
    *,
    ranks: int = 1,
    launcher: Launcher = "auto",
    to_stderr: bool = False,
    launcher_words: Callable[[str], object] | None = None,
    trace: Place | None = None,
    trace_scale: Scale = "ns",
    **given: Unpack[ExecOptions],
) -> ExecReport:
    """Run a program with its processes as the programs of simulated hosts.

    Args:
        program: the program, and its arguments.
        ranks: the number of its processes, 1 to 1024.
        launcher: `mpich` and `openmpi` are the `mpiexec` of each. `none` starts processes one by one, without MPI.
            `auto` is the launcher of the MPI with which the program is linked. For a program without MPI it is the
            `mpiexec` beside the program, on the path, or beside Python. If the program's folder is on the path, the
            order of the path decides.
        to_stderr: whether the output of processes goes to stderr.
        launcher_words: called before the function returns or raises, with the launcher's output about a process that
            ended badly. Without it, that output goes where the output of processes goes.
        trace: a file for a timeline, to be opened with https://ui.perfetto.dev; see `Run.trace` for its contents.
        trace_scale: the tick of the timeline, a nanosecond or a picosecond.
        given: the arguments of `ExecOptions`.

    Raises:
        InputError: the program, its launcher, or the card cannot be used, or the program never uses the network.
        Deadlock: the program's processes wait for each other; the error describes the waits.
        RunError: a process ended early, or a limit of the card was reached.
    """
    if launcher not in LAUNCHERS:
        raise InputError(f"launcher is {one_of(LAUNCHERS)}, not {launcher}")
    ranks = whole(ranks, "ranks", _MOST_RANKS, 1)
    words = [fspath(word) for word in program]
    path = _program(words)
    if (goal := given.get("goal")) is not None:
        check_place(f"goal {fspath(goal)}", Path(goal))
    kind, mpiexec = find_launcher(launcher, path, ranks)
    derived = {
        "program": [fspath(path), *words[1:]],
        "ranks": ranks,
        "launcher": kind,
        "mpiexec": mpiexec,
        "to_stderr": to_stderr,
        "folder": fspath(libraries_folder()),
    }
    handlers = _offloaded(given, derived)
    if handlers is not None:
        derived["offload_program"] = handlers
    request = request_text(ExecOptions, given, **derived)
    usual = partial(print, end="", file=sys.stderr if to_stderr else sys.stdout)
    done, recording = _native.exec_run(request, trace is not None, launcher_words or usual)
    if trace is not None and recording is not None:
        from nicety.show.traces import write_trace

        write_trace(recording, trace, scale=trace_scale)
    report = json.loads(done)
    report["program"] = words
    shown = Shown(report, lambda found: text_html(processes_text(found)), processes_figure, processes_table)
    return cast(ExecReport, shown)


def plan_offload(program: Sequence[Place], ranks: int, given: ExecOptions) -> None:
    """Check that cards can execute the operations in `offload`, and compile their handlers. Nothing runs.

    Raises:
        InputError: see `run_processes`.
    """
    words = [fspath(word) for word in program]
    derived = {
        "program": [fspath(_program(words)), *words[1:]],
        "ranks": whole(ranks, "ranks", _MOST_RANKS, 1),
        "launcher": "none",
        "mpiexec": "",
        "to_stderr": False,
        "folder": "",
    }
    _offloaded(given, derived)


def _offloaded(given: ExecOptions, derived: Mapping[str, Any]) -> str | None:
    """Compile the handlers of offloaded operations. Return the program's path, or None without offload."""
    path = None
    if given.get("offload") is not None:
        for each in json.loads(_native.exec_plan(request_text(ExecOptions, given, **derived)))["compile"]:
            handlers = compile_handlers([library_source(each["source"])], isa=each["isa"])
            path = fspath(handlers.path.absolute())
    return path


_PARTS = ("computing_ns", "sleeping_ns", "calling_ns", "polling_ns", "waiting_ns", "external_wait_ns")
"""The parts into which a process's virtual time is divided."""


def processes_table(report: ExecReport) -> Table:
    """Return the report as a table, with a row per process."""
    rows = report["ranks"]
    columns: list[tuple[str, Sequence[int | float]]] = [
        ("rank", [row["rank"] for row in rows]),
        ("finish_ns", [row["finish_ns"] for row in rows]),
        ("sends", [row["sends"] for row in rows]),
        ("sent_bytes", [row["sent_bytes"] for row in rows]),
        ("receives", [row["receives"] for row in rows]),
        ("calls", [row["calls"] for row in rows]),
        *((part, [_part(row, part) for row in rows]) for part in _PARTS),
    ]
    if "offload" in report:
        own = [row["offload"] for row in rows]
        columns += [
            ("set_up_ns", [each["set_up_ns"] for each in own]),
            ("offloaded_calls", [each["offloaded_calls"] for each in own]),
            ("fallback_calls", [each["fallback_calls"] for each in own]),
        ]
    return Table(columns)


def cards_table(reports: Sequence[ExecReport]) -> Table:
    """Return the runs of a program on several cards as a table, with a row per card and process."""
    nics = [report["nic"] for report in reports for _ in report["ranks"]]
    parts = [processes_table(report) for report in reports]
    names = dict.fromkeys(name for part in parts for name in part.columns)
    cells = {
        name: [cell for part in parts for cell in (part.column(name) if name in part.columns else [None] * len(part))]
        for name in names
    }
    return Table([("nic", nics), *cells.items()])


def cards_text(reports: Sequence[ExecReport]) -> str:
    """Return the runs of a program on several cards as text: the last finish, and its ratio to the first card's."""
    base = reports[0]["max_finish_ns"]
    rows = [
        [
            report["nic"],
            fixed(report["max_finish_ns"] / 1000, 3),
            fixed(report["max_finish_ns"] / base, 3) if base else "-",
        ]
        for report in reports
    ]
    return "\n".join(align([["Card", "finish (µs)", f"of {reports[0]['nic']}"], *rows], (1, 2))) + "\n"


def processes_text(report: ExecReport, *, breakdown: bool = False) -> str:
    """Return the report as text: a line per process, with `breakdown` the parts of its time, and offloaded calls."""
    head = f"# nicety exec v{report['version']}\n# {' '.join(report['program'])}: {run_conditions(report)}\n\n"
    titles = ["Rank", "finish (µs)", "sent", "bytes", "received", "calls"]
    if "offload" in report:
        titles += ["offloaded", "left to MPI"]
    rows = [
        [
            str(row["rank"]),
            fixed(row["finish_ns"] / 1000, 3),
            *map(str, (row["sends"], row["sent_bytes"], row["receives"], row["calls"])),
            *(map(str, (own["offloaded_calls"], own["fallback_calls"])) if (own := row.get("offload")) else ()),
        ]
        for row in report["ranks"]
    ]
    text = head + "\n".join(align([titles, *rows], range(1, len(titles)))) + "\n"
    text = text + "\n" + _breakdown(report) if breakdown else text
    return text + offload_text(report)


def run_conditions(report: ExecReport) -> str:
    """Return words on the card of a run, its options, and the start of its processes."""
    manifest = report["manifest"]
    parts = [report["nic"], f"topology {manifest['topology']}", f"seed {manifest['seed']}"]
    if report["ranks_per_node"] > 1:
        parts.append(f"{report['ranks_per_node']} ranks a node")
    parts += _changes(report)
    return ", ".join([*parts, f"compute {report['compute']}", f"launcher {report['launcher']}"])


def _changes(report: ExecReport) -> list[str]:
    """Return words on flow control, noise, faults and changes to the card, if there are any."""
    return circumstances({name: value for name, value in report["manifest"].items() if name != "topology"})


def _part(row: ExecRank, part: str) -> float:
    return cast(dict[str, float], row)[part]


def _breakdown(report: ExecReport) -> str:
    """Return a table of the parts of each process's time. The parts add up to the process's finish time."""
    titles = ["Rank", *(f"{part.removesuffix('_ns').replace('_', ' ')} (µs)" for part in _PARTS), "finish (µs)"]
    rows = [
        [str(row["rank"]), *(fixed(_part(row, part) / 1000, 3) for part in (*_PARTS, "finish_ns"))]
        for row in report["ranks"]
    ]
    return "\n".join(align([titles, *rows], range(1, len(titles)))) + "\n"


_SHOWN = {
    "computing": ("computing_ns",),
    "communicating": ("calling_ns", "polling_ns"),
    "waiting": ("sleeping_ns", "waiting_ns", "external_wait_ns"),
}
"""Maps an activity in pictures to the parts of a process's time in it."""


def processes_figure(report: ExecReport) -> Figure:
    """Draw the time of each process by activity."""
    return several_figure({report["nic"]: report})


def several_figure(reports: Mapping[str, ExecReport]) -> Figure:
    """Draw the time of each process by activity in several runs of a program: axes for each, below its name."""
    runs = {}
    for name, report in reports.items():
        parts = {name: [sum(_part(row, part) for part in of) for row in report["ranks"]] for name, of in _SHOWN.items()}
        end = max(row["finish_ns"] for row in report["ranks"])
        runs[name] = RankTimes(parts | {"both": [0.0] * len(report["ranks"])}, end)
    first = next(iter(reports.values()))
    around = [f"topology {first['manifest']['topology']}", *_changes(first), f"compute {first['compute']}"]
    return ranks_figure(runs, title=f"{' '.join(first['program'])}: {', '.join(around)}")


_REASONS = {
    "communicator": "of other communicators than all ranks",
    "datatype": "of other types than handlers reduce",
    "operator": "by other operators than handlers have",
    "length": "longer than the card's memory for it",
    "empty": "without bytes",
    "arguments": "with invalid arguments",
    "alone": "of one process",
    "set-up": "without handlers on the card",
    "cost": "for which MPI is faster",
}
"""Maps a reason for leaving calls to MPI to words that follow the number of those calls."""


def offload_text(report: ExecReport) -> str:
    """Return lines on the calls that cards executed and the calls left to MPI. Empty without offload."""
    if "offload" not in report:
        return ""
    lines = []
    for each in report["offload"]:
        size = f" of {each['offloaded_bytes']} bytes" if each["offloaded_bytes"] else ""
        line = f"{each['name']}: {each['offloaded_calls']} calls{size} on the cards"
        left = ", ".join(f"{passed['calls']} {_REASONS[passed['reason']]}" for passed in each["fallbacks"])
        lines.append(line + (f"; left to MPI: {left}" if left else ""))
    set_up = max(row["offload"]["set_up_ns"] for row in report["ranks"])
    lines.append(f"set-up in MPI_Init: {fixed(set_up / 1000, 3)} µs")
    return "\n" + "\n".join(lines) + "\n"


def _program(words: Sequence[str]) -> Path:
    """Return the program's file, found on the path if its name has no folder."""
    if not words:
        raise InputError("no program; name one after --, as in nicety exec -n 2 --nic spin-discrete -- ./program")
    found = shutil.which(words[0])
    if found is None:
        raise InputError(f"{words[0]}: {_unusable(words[0])}")
    path = Path(found).absolute()
    refuse_launcher(words, path)
    _native.exec_check(path)
    return path


def _unusable(name: str) -> str:
    """Return the reason why a name cannot be started as a program, and advice."""
    path = Path(name)
    if path.is_file() and os.sep not in name:
        return f"there is no such program on the path; for the file here write ./{name}"
    if path.is_file():
        python = f", or run it by Python, as python {shlex.quote(name)}" if path.suffix == ".py" else ""
        return f"it is a file that may not be executed; chmod +x {shlex.quote(name)}{python}"
    if path.is_dir() and os.sep in name:
        return "it is a folder; name a program in it"
    return "no such program; name a file that can be executed, or one on the path"
