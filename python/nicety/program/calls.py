"""The calls of a host's program: what of them is the Python package's own, and not the simulation's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from nicety.errors import InputError

if TYPE_CHECKING:
    from nicety import _native
    from nicety.build.sources import Handlers, Processes

Loaded = dict[tuple["Handlers | Processes", str], int]
"""Programs for cards that a run has, by what they are compiled for, and the numbers that commands know them by."""


@dataclass(frozen=True)
class Operation:
    """A transfer of a process that was posted, and may not have ended."""

    number: int


def operation_number(operation: Operation) -> int:
    """The number of an operation, in commands."""
    if not isinstance(operation, Operation):
        raise InputError(f"an operation is what a call that posts a transfer gives, not {operation!r}")
    return operation.number


class CardCalls:
    """Calls of a host to its card. Each makes a command of its arguments, which the simulation carries out."""

    def __init__(self, calls: _native.Calls, loaded: Loaded) -> None:
        self._calls = calls
        self._loaded = loaded
