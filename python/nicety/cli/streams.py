"""The command line's standard streams, as inherited from the shell: closed, full, or with a limited encoding."""

from __future__ import annotations

import contextlib
import io
import os
import sys
from typing import Any

_STDIN, _STDOUT, _STDERR = range(3)


class _Messages(io.TextIOWrapper):
    """Stderr that never fails: if it is not writable, a message is lost, and the command continues."""

    def write(self, text: str) -> int:
        try:
            return super().write(text)
        except (OSError, ValueError):
            discard(self)
            return len(text)

    def flush(self) -> None:
        try:
            super().flush()
        except (OSError, ValueError):
            discard(self)


def discard(stream: Any) -> None:
    """Discard a stream's pending output, so that Python does not write it again at exit."""
    with contextlib.suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)


def set_up() -> None:
    """Open the standard streams that this process has inherited closed.

    Otherwise the next opened file would get the descriptor of a closed stream. A closed stdout becomes unwritable, so
    that a command with output fails.
    """
    for number, mode in ((_STDIN, os.O_RDONLY), (_STDOUT, os.O_RDONLY), (_STDERR, os.O_WRONLY)):
        try:
            os.fstat(number)
        except OSError:
            # `open` returns the lowest free descriptor, which is `number`.
            os.open(os.devnull, mode)
            os.set_inheritable(number, True)
    if sys.stdin is None:
        sys.stdin = open(_STDIN, encoding="utf-8", closefd=False)  # noqa: SIM115, as long as the process
    if sys.stdout is None:
        sys.stdout = open(_STDOUT, "w", encoding="utf-8", closefd=False)  # noqa: SIM115, as long as the process
    if sys.stderr is None:
        sys.stderr = open(_STDERR, "w", encoding="utf-8", closefd=False)  # noqa: SIM115, as long as the process
    # Characters that an encoding lacks are written as escapes.
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    if isinstance(sys.stderr, io.TextIOWrapper) and not isinstance(sys.stderr, _Messages):
        encoding = sys.stderr.encoding
        sys.stderr = _Messages(
            sys.stderr.detach(), encoding=encoding, errors="backslashreplace", line_buffering=True, write_through=True
        )


def can_write(text: str) -> bool:
    """Return whether stdout's encoding has all characters of a text."""
    try:
        text.encode(sys.stdout.encoding or "utf-8")
    except UnicodeError:
        return False
    return True
