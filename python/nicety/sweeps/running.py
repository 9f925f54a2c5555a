"""Runs of tasks on executors, and on processes of this machine."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future, ProcessPoolExecutor
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any

from nicety.errors import RunError
from nicety.sweeps.store import Outcome

Task = Callable[[Any], Outcome]
"""A function that runs the point of a payload. It never raises: an error is in the outcome."""
Finished = Callable[[int, Outcome], None]
"""A function that is called with a point's number and outcome when the point has run."""

_LOOK_S = 0.2
"""Maximum seconds of one wait for results. On some systems Python handles a signal only between two waits."""


def run_on(executor: Executor, task: Task, payloads: Mapping[int, Any], finished: Finished) -> dict[int, Any]:
    """Run tasks on an executor, which decides how many run concurrently.

    Returns:
        The number and the payload of each task that did not run because the executor broke.
    """
    ended: SimpleQueue[tuple[int, Future[Outcome]]] = SimpleQueue()
    futures: list[Future[Outcome]] = []
    left = dict(payloads)
    try:
        for number, payload in payloads.items():
            future = executor.submit(task, payload)
            futures.append(future)
            future.add_done_callback(partial(_put, ended, number))
        while left:
            number, future = _next(ended)
            finished(number, _outcome(future))
            del left[number]
    except BrokenExecutor:
        return left
    finally:
        for future in futures:
            future.cancel()
    return left


def _put(ended: SimpleQueue[tuple[int, Future[Outcome]]], number: int, future: Future[Outcome]) -> None:
    ended.put((number, future))


def _next(ended: SimpleQueue[tuple[int, Future[Outcome]]]) -> tuple[int, Future[Outcome]]:
    while True:
        try:
            return ended.get(timeout=_LOOK_S)
        except Empty:
            continue


def _outcome(future: Future[Outcome]) -> Outcome:
    try:
        return future.result()
    except BrokenExecutor:
        raise
    except (Exception, CancelledError) as error:
        # An error of the executor: it cannot send the task or its result, or a worker has ended.
        return {"status": "failed", "error": f"{type(error).__name__}: {error}", "elapsed_s": 0.0}


def run_locally(task: Task, payloads: Mapping[int, Any], jobs: int, finished: Finished) -> None:
    """Run tasks in processes of this machine. A task fails if its process ends, and the other tasks continue.

    Raises:
        RunError: processes do not start.
    """
    left = dict(payloads)
    while left := _in_pool(task, left, jobs, finished):
        # A task has ended its process, and any running task may be it. So run each of them in its own process.
        for number in list(left)[:jobs]:
            if _in_pool(task, {number: left.pop(number)}, 1, finished):
                text = "the process that ran it has ended: killed, or out of memory"
                finished(number, {"status": "failed", "error": text, "elapsed_s": 0.0})


def _in_pool(task: Task, payloads: Mapping[int, Any], jobs: int, finished: Finished) -> dict[int, Any]:
    if not payloads:
        return {}
    others = {child.pid for child in multiprocessing.active_children()}
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(min(jobs, len(payloads)), mp_context=context, initializer=_begin)
    try:
        _try(pool)
        return run_on(pool, task, payloads, finished)
    except BaseException:
        for child in multiprocessing.active_children():
            if child.pid not in others:
                child.terminate()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def _try(pool: ProcessPoolExecutor) -> None:
    try:
        pool.submit(_nothing).result()
    except BrokenExecutor as error:
        raise RunError(
            "the processes of the sweep end at their start; call sweep() under if __name__ == '__main__':, since "
            "they load the script, too"
        ) from error


def _nothing() -> None:
    pass


def _begin() -> None:
    """Ignore Ctrl-C, since the sweep's process ends this one. If the sweep's process was killed, end as well."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
