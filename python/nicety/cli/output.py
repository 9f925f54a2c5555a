"""Output of commands: documents, text, notes and errors."""

from __future__ import annotations

import contextlib
import json
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from typing import Any, TypeVar, cast

from nicety.cli.streams import can_write
from nicety.errors import Error, RunError
from nicety.program.failures import HandlerFailure
from nicety.shared.text import printable_json, printable_text

R = TypeVar("R")


def with_report(act: Callable[..., R], *arguments: Any, **options: Any) -> tuple[R, BaseException | None]:
    """Call `act`. Return its report, and the error if parts of it failed (otherwise None).

    An error without a report is raised.
    """
    try:
        return act(*arguments, **options), None
    except (Error, KeyboardInterrupt) as failure:
        report = getattr(failure, "report", None)
        if report is None:
            raise
        return cast(R, report), failure


_printed: list[Any] = []
"""The documents that this process has printed."""
_collected: ContextVar[list[Any] | None] = ContextVar("_collected", default=None)


@contextlib.contextmanager
def collected() -> Iterator[list[Any]]:
    """Collect JSON documents in a list instead of printing them."""
    documents: list[Any] = []
    before = _collected.set(documents)
    try:
        yield documents
    finally:
        _collected.reset(before)


def is_collected() -> bool:
    """Return whether documents are collected, since the command is a point of a study."""
    return _collected.get() is not None


def print_error(error: Exception) -> None:
    """Print an error as the command's JSON document, unless the command has printed one."""
    if not _printed:
        failures = {"failures": error.failures} if isinstance(error, HandlerFailure) else {}
        print_json({"error": {"kind": type(error).__name__, "text": str(error), **failures}})


def print_json(document: Any) -> None:
    r"""Print one JSON document on stdout. Characters that stdout's encoding lacks are escaped as \u sequences."""
    documents = _collected.get()
    if documents is not None:
        documents.append(document)
        return
    _printed.append(document)
    text = json.dumps(document, indent=2, ensure_ascii=False)
    if not can_write(text):
        text = json.dumps(document, indent=2)
    sys.stdout.write(printable_json(text) + "\n")


def say(text: str) -> None:
    """Print text on stdout, with all terminal control characters escaped."""
    sys.stdout.write(printable_text(text))


@contextlib.contextmanager
def told_behind(words: Sequence[str], *, to_stderr: bool) -> Iterator[None]:
    """If the block raises an error, attach `words`, another program's message. It is printed after the error."""
    try:
        yield
    except Error as error:
        error.behind = ("".join(words), to_stderr)  # type: ignore[attr-defined]
        raise


def print_behind(text: str, *, to_stderr: bool) -> None:
    """Print text of another program unchanged, after all earlier output of that stream."""
    stream = sys.stderr if to_stderr else sys.stdout
    stream.write(text)
    stream.flush()


def note(text: str) -> None:
    """Print a note on stderr."""
    sys.stderr.write(f"nicety: {printable_text(text)}\n")


@contextlib.contextmanager
def recording_notes() -> Iterator[None]:
    """Report an incomplete recording as a note. Other warnings are shown as usual."""
    from nicety.show.traces import RecordingWarning

    with warnings.catch_warnings():
        warnings.simplefilter("always", RecordingWarning)
        usual = warnings.showwarning

        def show(message: Warning | str, category: type[Warning], *place: Any, **more: Any) -> None:
            if issubclass(category, RecordingWarning):
                note(str(message))
            else:
                usual(message, category, *place, **more)

        warnings.showwarning = show
        yield


_MOST = 8
"""Maximum number of failures that an error lists."""


def failed(lines: Sequence[str]) -> RunError:
    """Return an error with the first failures, a line each, and the number of further failures."""
    more = [f"and {len(lines) - _MOST} more"] if len(lines) > _MOST else []
    return RunError("\n".join([*lines[:_MOST], *more]))
