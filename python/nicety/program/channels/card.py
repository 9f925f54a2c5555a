"""The interface of a card with microengines: `host.channels`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nicety import _native
from nicety.program.channels.channel import Device, card_of
from nicety.program.channels.processes import ProcessCalls
from nicety.shared.checks import U32, whole

if TYPE_CHECKING:
    from nicety.program.calls import Loaded


class Channels(ProcessCalls):
    """The processes on a host's card, their memories there, and channels to them: `host.channels`.

    A host has one card, or as many as `host.cards` of its card's specification. `host.channels` is card 0, and
    `host.channels.card(1)` the next one. Only card 0 has a port to the network.
    """

    def __init__(self, calls: _native.Calls, loaded: Loaded, card: int = 0) -> None:
        super().__init__(calls, loaded)
        self._card = card
        self._cards = {card: self}
        self._processes = _native.ProcessCalls(calls, card)
        self._channels = _native.ChannelCalls(calls, card)

    def card(self, number: int) -> Channels:
        """The same interface to another card of the host.

        Args:
            number: the card's number, from 0.

        Raises:
            InputError: the host has no such card.
        """
        if (known := self._cards.get(number)) is not None:
            return known
        other = Channels(self._calls, self._loaded, whole(number, "number", U32))
        other._processes.check_card()
        # All interfaces of the host know one another, so that a card has one.
        self._cards[number] = other
        other._cards = self._cards
        return other

    def open(self) -> Device:
        """Open the device through which the host subscribes to channels of this card. Takes no virtual time."""
        return Device(self._channels, self._calls.rank, self._card)

    def __repr__(self) -> str:
        return f"<Channels of {card_of(self._calls.rank, self._card)}>"
