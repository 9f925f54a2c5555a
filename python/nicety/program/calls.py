"""The calls of a host's program: the part in the Python package, outside the simulation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from nicety.errors import InputError

if TYPE_CHECKING:
    from nicety import _native
    from nicety.build.sources import Handlers, Processes

Loaded = dict[tuple["Handlers | Processes", str], int]
"""The loaded programs of a run, by program and compilation target, and the number of each in commands."""


@dataclass(frozen=True)
class Operation:
    """A posted transfer of a process, which may not have ended."""

    number: int


def operation_number(operation: Operation) -> int:
    """The number of an operation, in commands."""
    if not isinstance(operation, Operation):
        raise InputError(f"an operation is what a call that posts a transfer gives, not {operation!r}")
    return operation.number


class CardCalls:
    """Calls of a host to its card. Each makes a command from its arguments, which the simulation executes."""

    def __init__(self, calls: _native.Calls, loaded: Loaded) -> None:
        self._calls = calls
        self._loaded = loaded
