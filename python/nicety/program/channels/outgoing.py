"""The messages of hosts to processes, for a search that changes their bytes."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import NamedTuple


class Place(NamedTuple):
    """The place of a message in a run.

    Attributes:
        rank: the host that sends it.
        card: the number of the card in the host.
        target: the target of the channel.
        number: its number among those to this target, from 0.
    """

    rank: int
    card: int
    target: int
    number: int


@dataclass
class Outgoing:
    """The messages of a run.

    Attributes:
        changes: other bytes for some messages. Those of another length than the message are not used.
        sent: the messages that were sent, with the changes.
    """

    changes: Mapping[Place, bytes] = field(default_factory=dict)
    sent: dict[Place, bytes] = field(default_factory=dict)
    _numbers: Counter[tuple[int, int, int]] = field(default_factory=Counter)

    @contextlib.contextmanager
    def active(self) -> Iterator[None]:
        """Take the messages of runs in this block."""
        token = _ACTIVE.set(self)
        try:
            yield
        finally:
            _ACTIVE.reset(token)

    def passed(self, rank: int, card: int, target: int, contents: bytes) -> bytes:
        """Note a message. Return the bytes to send."""
        place = Place(rank, card, target, self._numbers[rank, card, target])
        self._numbers[rank, card, target] += 1
        changed = self.changes.get(place, contents)
        self.sent[place] = changed if len(changed) == len(contents) else contents
        return self.sent[place]


_ACTIVE: ContextVar[Outgoing | None] = ContextVar("outgoing", default=None)


def active() -> Outgoing | None:
    """The messages that are noted now, if any are."""
    return _ACTIVE.get()
