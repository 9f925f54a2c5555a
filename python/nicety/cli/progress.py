"""Progress on stderr: a bar on a terminal, after a second, and lines of early results, after half a second."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING

from nicety.shared.text import printable

if TYPE_CHECKING:
    import rich.progress

_AFTER_S = 1.0
_NEWS_AFTER_S = 0.5
_NEWS = "NICETY_NEWS"
"""The environment variable that suppresses news with 0 if stderr is no terminal."""


class Bar:
    """The work done, and the total; shown once the work has taken a while."""

    def __init__(self, description: str, *, terminal: bool = True) -> None:
        self._terminal = terminal
        self._description = description
        self._done = 0
        self._total: int | None = None
        self._lock = threading.Lock()
        self._ended = False
        self._shown: rich.progress.Progress | None = None
        # News that is not on stderr yet; None once the work has taken a while.
        self._news: list[str] | None = []
        self._timer: threading.Timer | None = None

    @property
    def share(self) -> float:
        """The share of the work that is done, from 0 to 1."""
        return self._done / self._total if self._total else 0.0

    def advance(self, done: int, total: int, description: str | None = None) -> None:
        """Report the work done."""
        with self._lock:
            self._done, self._total = done, total
            self._description = description or self._description
            self._update()

    def tell(self, news: str) -> None:
        """Report an early result, which is shown if the rest of the work takes a while."""
        with self._lock:
            self._description = news
            self._update()
            if self._news is None:
                self._say(news)
                return
            self._news.append(news)
            if self._timer is None:
                self._timer = threading.Timer(_NEWS_AFTER_S, self._say_all)
                self._timer.daemon = True
                self._timer.start()

    def _say_all(self) -> None:
        if self._terminal:
            self.show()
        with self._lock:
            news, self._news = self._news or [], None
            for text in news:
                self._say(text)

    def _say(self, news: str) -> None:
        if not self._terminal and not self._ended and os.environ.get(_NEWS) != "0":
            from nicety.cli.output import note

            note(news)

    def _update(self) -> None:
        if self._shown is not None:
            task = self._shown.task_ids[0]
            self._shown.update(task, description=printable(self._description), completed=self._done, total=self._total)

    def show(self) -> None:
        """Draw the bar, unless it has ended."""
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

        text = TextColumn("{task.description}", markup=False)
        columns = (text, BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        with self._lock:
            if self._ended or self._shown is not None:
                return
            # Output of a program goes to its usual place.
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
        """Remove the bar."""
        with self._lock:
            self._ended = True
            if self._timer is not None:
                self._timer.cancel()
            if self._shown is not None:
                self._shown.stop()


@contextlib.contextmanager
def progress(description: str) -> Iterator[Bar]:
    """A bar on stderr that appears after a second and disappears at the end; without a terminal, only news."""
    terminal = sys.stderr.isatty()
    bar = Bar(description, terminal=terminal)
    if not terminal:
        try:
            yield bar
        finally:
            bar.end()
        return
    timer = threading.Timer(_AFTER_S, bar.show)
    timer.daemon = True
    timer.start()
    try:
        yield bar
    finally:
        timer.cancel()
        bar.end()
