"""Progress on stderr: on a terminal a bar that appears after 1 s, elsewhere a line every 10 s.

Lines of early results, the news, follow 0.5 s after the first one.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from nicety.shared.text import printable

if TYPE_CHECKING:
    import rich.progress

_AFTER_S = 1.0
_NEWS_AFTER_S = 0.5
_EVERY_S = 10.0
"""Seconds between two lines of progress if stderr is no terminal."""
_NEWS = "NICETY_NEWS"
"""The environment variable for lines if stderr is no terminal: progress and news. With 0 none is printed."""


class Bar:
    """A progress bar. It is shown if the work takes longer than a second."""

    def __init__(self, description: str, *, terminal: bool = True, percent: bool = False) -> None:
        self._terminal = terminal
        self._percent = percent
        self._description = description
        self._done = 0
        self._total: int | None = None
        self._lock = threading.Lock()
        self._ended = False
        self._shown: rich.progress.Progress | None = None
        # News that is not printed yet. None after 0.5 s: later news is printed at once.
        self._news: list[str] | None = []
        self._timer: threading.Timer | None = None
        self._stop = threading.Event()
        self._began = time.monotonic()

    @property
    def share(self) -> float:
        """The share of the work that is done, from 0 to 1."""
        return self._done / self._total if self._total else 0.0

    def advance(self, done: int, total: int, description: str | None = None) -> None:
        """Set the amount of work done, and the total."""
        with self._lock:
            self._done, self._total = done, total
            self._description = description or self._description
            self._update()

    def tell(self, news: str) -> None:
        """Show an early result, unless the work ends within 0.5 s of the first one: in the bar, or as a line."""
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

    def tell_regularly(self) -> None:
        """Print a line of progress every 10 s until the work has ended."""
        while not self._stop.wait(_EVERY_S):
            with self._lock:
                done = ""
                if self._total:
                    done = f" {self.share:.0%}," if self._percent else f" {self._done} of {self._total},"
                self._say(f"{self._description}:{done} {time.monotonic() - self._began:.0f} s")

    def _update(self) -> None:
        if self._shown is not None:
            task = self._shown.task_ids[0]
            self._shown.update(task, description=printable(self._description), completed=self._done, total=self._total)

    def show(self) -> None:
        """Draw the bar, unless the work has ended."""
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            Progress,
            TaskProgressColumn,
            TextColumn,
            TimeElapsedColumn,
        )

        text = TextColumn("{task.description}", markup=False)
        done = TaskProgressColumn() if self._percent else MofNCompleteColumn()
        columns = (text, BarColumn(), done, TimeElapsedColumn())
        with self._lock:
            if self._ended or self._shown is not None:
                return
            # Output of the user's program goes to its usual streams.
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
        self._stop.set()
        with self._lock:
            self._ended = True
            if self._timer is not None:
                self._timer.cancel()
            if self._shown is not None:
                self._shown.stop()


@contextlib.contextmanager
def progress(description: str, *, percent: bool = False) -> Iterator[Bar]:
    """Make a bar on stderr for the block. Without a terminal, lines tell the progress and news instead.

    Args:
        description: the work.
        percent: whether the bar shows the share of work that is done, in place of two numbers.
    """
    terminal = sys.stderr.isatty()
    bar = Bar(description, terminal=terminal, percent=percent)
    if not terminal:
        if os.environ.get(_NEWS) != "0":
            threading.Thread(target=bar.tell_regularly, daemon=True).start()
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
