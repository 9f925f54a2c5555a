"""Runs of a study: from the study's file to the results of its points."""

from __future__ import annotations

from concurrent.futures import Executor
from pathlib import Path
from typing import Any

from nicety import _native
from nicety.bench.measured import Progress
from nicety.cli.sweep.study import read_study
from nicety.cli.sweep.work import run_command
from nicety.errors import InputError
from nicety.shared.checks import Place
from nicety.shared.typed import checked
from nicety.show.columns import align
from nicety.sweeps.grid import points_of
from nicety.sweeps.results import Sweep
from nicety.sweeps.store import Store
from nicety.sweeps.sweep import run_points


@checked
def sweep_study(
    study: Place,
    *,
    folder: Place | None = None,
    executor: Executor | None = None,
    jobs: int | None = None,
    progress: Progress | None = None,
) -> Sweep:
    """Run a study, a command at every point of a grid. The study is a file; `sweep` takes the grid as arguments.

    Args:
        study: the study's file.
        folder: the folder for results. The default has the file's name, without its extension, in the current folder.
        executor: runs the points, in processes that have nicety. The default is processes of this machine.
        jobs: the number of processes of this machine. The default is the number of CPUs.
        progress: called with the number of points done, and the total.

    Raises:
        InputError: a part of the study is invalid; the error names file, line and field.
        RunError: processes do not start.
    """
    path = Path(study)
    read = read_study(path)
    if folder is None and not path.suffix:
        raise InputError(f"{path}: the folder for results would have the same name; name another folder with -o")
    points = points_of(read.grid, list(read.words), read.options, read.words)
    payloads = [read.arguments(point.values) for point in points]
    about = {"run": read.run, "options": dict(read.options)}
    store = Store(Path(folder) if folder is not None else Path(path.stem))
    return run_points(run_command, payloads, points, about, store, executor=executor, jobs=jobs, progress=progress)


def summary(found: Sweep) -> dict[str, Any]:
    """Return the result of a sweep, as JSON."""
    failed = {point.key: error for point, error in found.failed}
    return {
        "version": _native.version(),
        "folder": str(found.folder),
        "points": len(found.points),
        "done": found.done,
        "reused": found.before,
        "failed": [
            {"point": number, "values": dict(point.values), "error": failed[point.key]}
            for number, point in enumerate(found.points)
            if point.key in failed
        ],
        "files": [str(file) for file in found.files],
    }


def study_text(study: Path, found: Sweep) -> str:
    """Return the result of a sweep, as text."""
    before = f", {found.before} of them before" if found.before else ""
    lines = [
        f"# nicety sweep v{_native.version()}",
        f"# {study}: {found.done} of {len(found.points)} points are done{before}",
        "",
    ]
    names = list(found.points[0].values)
    rows = [["point", *names, "status"]]
    for number, (point, outcome) in enumerate(zip(found.points, found.outcomes, strict=True)):
        status = outcome["status"] if outcome is not None else "not run"
        rows.append([str(number), *(str(point.values[name]) for name in names), status])
    files = ", ".join(str(file) for file in found.files)
    return "\n".join([*lines, *_some(align(rows)), "", files]) + "\n"


_MOST = 40
"""Maximum number of lines of the table of points; the rest are counted."""


def _some(lines: list[str]) -> list[str]:
    return lines if len(lines) <= _MOST else [*lines[:_MOST], f"... and {len(lines) - _MOST} more"]
