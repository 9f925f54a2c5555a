"""The interface of a card with Portals: `host.portals`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nicety import _native
from nicety._generated.operations import Operations
from nicety.program.portals.handlers import Offload
from nicety.program.portals.matching import Matching

if TYPE_CHECKING:
    from nicety.program.calls import Loaded


class Portals(Operations, Matching, Offload):
    """The Portals interface of a host's card, with handlers and their memory: `host.portals`.

    Awaited calls take virtual time; others are set-up, and take none. A refused call raises a `RunError` with a text
    that begins with the return code of the specification, such as `PTL_IN_USE`.
    """

    def __init__(self, calls: _native.Calls, loaded: Loaded, uid: int) -> None:
        super().__init__(calls, loaded)
        self._portals = _native.PortalsCalls(calls)
        self._handlers = _native.HandlerCalls(calls)
        self._uid = uid

    @property
    def uid(self) -> int:
        """The user number of the host's operations (`PtlGetUid`); see `uids` of `Cluster`."""
        return self._uid

    def __repr__(self) -> str:
        return f"<Portals of rank {self._calls.rank}>"
