"""The calls of a host's program to its card: the part in Python. The simulation executes the calls."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from nicety.errors import InputError

if TYPE_CHECKING:
    from nicety import _native
    from nicety.build.sources import Handlers, Processes

Loaded = dict[tuple["Handlers | Processes", str], int]
"""Maps a program and its compilation target to the number that commands use for the loaded program."""


@dataclass(frozen=True)
class Operation:
    """A transfer that a process has posted. It may not have ended yet."""

    number: int


def operation_number(operation: Operation) -> int:
    """Return the number that commands use for an operation."""
    if not isinstance(operation, Operation):
        raise InputError(f"an operation is what a call that posts a transfer gives, not {operation!r}")
    return operation.number


class CardCalls:
    """Calls of a host to its card. Each call makes a command from its arguments, and the simulation executes it."""

    def __init__(self, calls: _native.Calls, loaded: Loaded) -> None:
        self._calls = calls
        self._loaded = loaded
