"""The calls of a host's program: what of them is the Python package's own, and not the simulation's."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nicety import _native
    from nicety.build.sources import Handlers, Processes

Loaded = dict[tuple["Handlers | Processes", str], int]
"""Programs for cards that a run has, and the numbers that commands know them by."""


class CardCalls:
    """Calls of a host to its card. Each makes a command of its arguments, which the simulation carries out."""

    def __init__(self, calls: _native.Calls, loaded: Loaded) -> None:
        self._calls = calls
        self._loaded = loaded
