"""Progress on stderr, on a terminal and after a second."""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING

from nicety.shared.text import printable

if TYPE_CHECKING:
    import rich.progress

_AFTER_S = 1.0


class Bar:
    """The work done, of how much; shown once it has taken a while."""

    def __init__(self, description: str) -> None:
        self._description = description
        self._done = 0
        self._total: int | None = None
        self._lock = threading.Lock()
        self._ended = False
        self._shown: rich.progress.Progress | None = None

    @property
    def share(self) -> float:
        """How much of the work is done, from 0 to 1."""
        return self._done / self._total if self._total else 0.0

    def advance(self, done: int, total: int, description: str | None = None) -> None:
        """So much is done."""
        with self._lock:
            self._done, self._total = done, total
            self._description = description or self._description
            self._update()

    def _update(self) -> None:
        if self._shown is not None:
            task = self._shown.task_ids[0]
            self._shown.update(task, description=printable(self._description), completed=self._done, total=self._total)

    def show(self) -> None:
        """Draw it, unless it has ended."""
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

        text = TextColumn("{task.description}", markup=False)
        columns = (text, BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        with self._lock:
            if self._ended:
                return
            # Output of a program goes where it always does.
            self._shown = Progress(
                *columns,
                console=Console(stderr=True),
                transient=True,
                redirect_stdout=False,
                redirect_stderr=False,
            )
            self._shown.add_task(printable(self._description), total=None)
            self._update()
            self._shown.start()

    def end(self) -> None:
        """Take it away."""
        with self._lock:
            self._ended = True
            if self._shown is not None:
                self._shown.stop()


@contextlib.contextmanager
def progress(description: str) -> Iterator[Bar]:
    """A bar on stderr that comes after a second and is gone at the end; nothing where stderr is no terminal."""
    bar = Bar(description)
    if not sys.stderr.isatty():
        yield bar
        return
    timer = threading.Timer(_AFTER_S, bar.show)
    timer.daemon = True
    timer.start()
    try:
        yield bar
    finally:
        timer.cancel()
        bar.end()
