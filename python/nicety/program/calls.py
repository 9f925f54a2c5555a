"""The calls of a host's program: what of them is the Python package's own, and not the simulation's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nicety import _native

if TYPE_CHECKING:
    from nicety.build.sources import Handlers, Processes

Loaded = dict[tuple["Handlers | Processes", str], int]
"""Programs for cards that a run has, and the numbers that commands know them by."""


class Caller:
    """A host as far as its calls go. Each makes a command of its arguments, which the simulation carries out."""

    def __init__(self, calls: _native.Calls, uid: int, loaded: Loaded) -> None:
        self._calls = calls
        self._messages = _native.MessageCalls(calls)
        self._portals = _native.PortalsCalls(calls)
        self._handlers = _native.HandlerCalls(calls)
        self._processes = _native.ProcessCalls(calls)
        self._channels = _native.ChannelCalls(calls)
        self._interfaces = _native.InterfaceCalls(calls)
        self._uid = uid
        self._loaded = loaded

    @property
    def rank(self) -> int:
        """This host's number."""
        return self._calls.rank

    @property
    def uid(self) -> int:
        """The user on whose behalf its operations are (`PtlGetUid`); see `uids` of `Cluster`."""
        return self._uid

    @property
    def ranks(self) -> int:
        """How many hosts there are."""
        return self._calls.ranks
