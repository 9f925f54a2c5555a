"""The interface of a card with microengines: `host.channels`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nicety import _native
from nicety.program.channels.channel import Device
from nicety.program.channels.processes import ProcessCalls

if TYPE_CHECKING:
    from nicety.program.calls import Loaded


class Channels(ProcessCalls):
    """The processes on a host's card, their memories there, and channels to them: `host.channels`."""

    def __init__(self, calls: _native.Calls, loaded: Loaded) -> None:
        super().__init__(calls, loaded)
        self._processes = _native.ProcessCalls(calls)
        self._channels = _native.ChannelCalls(calls)

    def open(self) -> Device:
        """Open the device through which the host subscribes to channels. Takes no virtual time."""
        return Device(self._channels, self._calls.rank)

    def __repr__(self) -> str:
        return f"<Channels of rank {self._calls.rank}>"
