"""Runs of a function at every point of a grid."""

from __future__ import annotations

import json
import multiprocessing
import os
import pickle
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Executor
from pathlib import Path
from typing import Any

from nicety import _native
from nicety.bench.measured import Progress
from nicety.errors import InputError
from nicety.shared.checks import Place, whole
from nicety.shared.typed import checked
from nicety.sweeps.grid import Point, given, identity, plain, points_of
from nicety.sweeps.results import Sweep
from nicety.sweeps.running import Task, run_locally, run_on
from nicety.sweeps.store import Damaged, Outcome, Store

MOST_JOBS = 1024


@checked
def sweep(
    fn: Callable[..., Any],
    grid: Mapping[str, Iterable[Any]],
    *,
    options: Mapping[str, Any] | None = None,
    folder: Place | None = None,
    executor: Executor | None = None,
    jobs: int | None = None,
    progress: Progress | None = None,
) -> Sweep:
    """Call a function at every point of a grid, several points concurrently, and collect the results in one table.

    If there is a folder, each result is stored there when it arrives, and a point with a result there is not run again.
    It is run again after a change of the function's source, its arguments, a card or a file that these name, or nicety.
    A point that failed runs again, and so does a point with a damaged result file. After Ctrl-C the folder has all
    results so far, and their table.

    Args:
        fn: called with the value of each parameter of the grid by name. It returns JSON data: a report with `rows`, a
            list of rows, one row, or a number. If it raises an exception, the point has failed.
        grid: the key is a parameter's name, the value its values: numbers, texts, True and False.
        options: further arguments, which are the same at all points.
        folder: the folder for results.
        executor: runs the points; by default processes of this machine do. The executor must be able to send `fn` to
            its workers, and stays open.
        jobs: number of processes of this machine; by default the number of CPUs.
        progress: called with the number of points done, and the total.

    Raises:
        InputError: a value or an option is invalid, the folder has other contents, or processes of this machine cannot
            load `fn`, since it was defined in a prompt or a notebook.
        RunError: processes do not start.
    """
    fixed = {name: plain(name, value) for name, value in (options or {}).items()}
    if twice := [name for name in fixed if name in grid]:
        raise InputError(f"sweep: {twice[0]} is in the grid and in the options")
    what = identity(fn)
    points = points_of(grid, what, fixed, given(fn).values())
    if executor is None:
        _check_sendable(fn)
    about = {"run": what[0], "options": fixed}
    payloads = [(fn, {**fixed, **point.values}) for point in points]
    store = Store(Path(folder)) if folder is not None else None
    return run_points(call, payloads, points, about, store, executor=executor, jobs=jobs, progress=progress)


def run_points(
    task: Task,
    payloads: Sequence[Any],
    points: Sequence[Point],
    about: Mapping[str, Any],
    store: Store | None,
    *,
    executor: Executor | None = None,
    jobs: int | None = None,
    progress: Progress | None = None,
) -> Sweep:
    """Run a task for each point without an outcome, store the outcomes, and write the table.

    Args:
        task: runs the point of a payload.
        payloads: the argument of `task` for each point.
        points: the points of the grid.
        about: the description of the sweep, which the folder gets.
        store: the folder, if there is one.
        executor: see `sweep`.
        jobs: see `sweep`.
        progress: see `sweep`.
    """
    count = _jobs(jobs, executor)
    outcomes: list[Outcome | None] = [None] * len(points)
    damaged: Sequence[str] = ()
    if store is not None:
        keys = [{"key": point.key, "values": point.values} for point in points]
        store.begin({"nicety": _native.version(), **about, "points": keys})
        outcomes, damaged = _known(store, points)
    before = sum(outcome is not None for outcome in outcomes)
    ended = before

    def finished(number: int, outcome: Outcome) -> None:
        nonlocal ended
        outcomes[number] = outcome
        if store is not None:
            store.keep(points[number].key, points[number].values, outcome)
        ended += 1
        if progress is not None:
            progress(ended, len(points))

    if progress is not None:
        progress(before, len(points))
    left = {number: payloads[number] for number, outcome in enumerate(outcomes) if outcome is None}
    folder = store.folder if store is not None else None
    result = Sweep(points, outcomes, before, folder, about["options"], damaged)
    try:
        if executor is None:
            run_locally(task, left, count, finished)
        else:
            for number in run_on(executor, task, left, finished):
                text = "the executor broke before it ran"
                finished(number, {"status": "failed", "error": text, "elapsed_s": 0.0})
    finally:
        result.write()
    return result


def _known(store: Store, points: Sequence[Point]) -> tuple[list[Outcome | None], list[str]]:
    """Return the outcome of each point that is done (otherwise None), and a message for each damaged file."""
    outcomes: list[Outcome | None] = []
    damaged: list[str] = []
    for point in points:
        try:
            found = store.outcome(point.key)
        except Damaged as error:
            found = None
            damaged.append(str(error))
        outcomes.append(found if found is not None and found["status"] == "done" else None)
    return outcomes, damaged


def call(payload: tuple[Callable[..., Any], Mapping[str, Any]]) -> Outcome:
    """Call a function with arguments by name, and return its outcome."""
    fn, arguments = payload
    begin = time.perf_counter()
    try:
        result = json.loads(json.dumps(fn(**arguments), default=_item))
    except (Exception, SystemExit) as error:
        text = f"{type(error).__name__}: {error}"
        return {"status": "failed", "error": text, "elapsed_s": time.perf_counter() - begin}
    return {"status": "done", "result": result, "elapsed_s": time.perf_counter() - begin}


def _item(value: object) -> object:
    """Convert an array or a number of numpy to Python's types."""
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"a result is what JSON has, not of type {type(value).__name__}")


def _jobs(jobs: int | None, executor: Executor | None) -> int:
    if jobs is None:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if executor is not None:
        raise InputError("jobs: the executor decides how many points run at once; leave one of the two out")
    return whole(jobs, "jobs", MOST_JOBS, 1)


def _check_sendable(fn: Callable[..., Any]) -> None:
    advice = "define it in a file that is imported, or name an executor such as concurrent.futures.ThreadPoolExecutor()"
    if multiprocessing.parent_process() is not None:
        raise InputError("sweep: this is a process of a sweep; call sweep() under if __name__ == '__main__':")
    home = getattr(fn, "__module__", None)
    if home == "__main__" and not hasattr(sys.modules["__main__"], "__file__"):
        raise InputError(f"sweep: processes cannot load a function of a prompt or a notebook; {advice}")
    try:
        pickle.dumps(fn)
    except Exception as error:
        raise InputError(f"sweep: the function cannot be sent to processes ({error}); {advice}") from error
