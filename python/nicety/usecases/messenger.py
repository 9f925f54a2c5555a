"""Messages with tags between hosts, as in MPI. The receiving CPU matches them, or the card matches them by handlers.

A message up to a threshold is sent at once (eager). For a longer message only a request is sent. When the request has
matched a receive, the receiver gets the bytes (rendezvous). Receives match in the order in which they were posted, and
messages of one sender in the order in which they were sent.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

from nicety.errors import RunError
from nicety.program.buffers import Buffer
from nicety.program.host import Host
from nicety.program.portals.events import Event

_PT = 1
_DATA = 1 << 63
"""`MATCHING_DATA` of matching.h."""
_TAGS = (1 << 32) - 1
_SILENT = ["event_link_disable", "event_unlink_disable"]

ANY = None
"""Matches every source, or every tag."""
EVENTS = 4096
"""Number of events that a messenger's event queue holds."""


@dataclass(eq=False)
class Receive:
    """A posted receive.

    Attributes:
        buffer: the buffer for the message.
        wanted_source: the rank from which a message is accepted, or `ANY`.
        wanted_tag: the tag that is accepted, or `ANY`.
        source: the sender's rank, once a message has matched.
        tag: the message's tag, once a message has matched.
        length_bytes: the message's length, once a message has matched.
        getting: the counter of the get that fetches the bytes, if any.
        complete: whether the buffer has all bytes.
    """

    buffer: Buffer
    wanted_source: int | None
    wanted_tag: int | None
    source: int = -1
    tag: int = -1
    length_bytes: int = 0
    getting: int | None = None
    complete: bool = False

    def takes(self, event: Event) -> bool:
        """Return whether the message of an event matches the receive."""
        return self.wanted_source in (ANY, event.initiator) and self.wanted_tag in (ANY, event.match_bits)

    def matched(self, event: Event) -> None:
        """Record the message's source, tag and length. Raises an error if the message is longer than the buffer."""
        self.source, self.tag = event.initiator, event.match_bits
        self.length_bytes = event.hdr_data & _TAGS if event.hdr_data else event.rlength_bytes
        if not event.ok or self.length_bytes > len(self.buffer):
            raise RunError(
                f"a message of {self.length_bytes} bytes from rank {self.source} with tag {self.tag} into a buffer of "
                f"{len(self.buffer)}: {event.fail}"
            )


@dataclass(frozen=True)
class Send:
    """A posted send. For a rendezvous, the counter `served` is 1 once the receiver has got the bytes."""

    served: int | None


class Messenger(ABC):
    """Sends and receives the tagged messages of one host.

    Args:
        host: the host.
        eager_bytes: maximum size of a message that is sent at once, in bytes.
        unexpected_bytes: memory for eager messages that arrive before their receive, in bytes.
    """

    def __init__(self, host: Host, *, eager_bytes: int, unexpected_bytes: int) -> None:
        self.host, self.portals = host, host.portals
        self.eager_bytes = eager_bytes
        self.eq = host.portals.eq_alloc(EVENTS)
        self.unexpected = host.alloc(unexpected_bytes)
        self.numbers = 0
        host.portals.pt_alloc(pt=_PT, eq=self.eq)

    @abstractmethod
    async def set_up(self) -> None:
        """Prepare to receive messages. Must be called before any host sends."""

    @abstractmethod
    async def receive(self, buffer: Buffer, *, source: int | None = ANY, tag: int | None = ANY) -> Receive:
        """Post a receive."""

    @abstractmethod
    async def progress(self, event: Event) -> None:
        """Process an event of the event queue."""

    async def send(self, buffer: Buffer, *, to: int, tag: int) -> Send:
        """Send a buffer. The buffer must not change until `sent` has returned."""
        portals, size = self.portals, len(buffer)
        md = portals.md_bind(buffer, options=["event_send_disable"])
        if size <= self.eager_bytes:
            await portals.put(md, size, to=to, pt=_PT, match_bits=tag)
            return Send(None)
        number, served = self.numbers, portals.ct_alloc()
        self.numbers += 1
        # The card executes commands in order, so the match entry exists before the request is sent.
        await portals.me_append(
            buffer,
            pt=_PT,
            match_bits=_DATA | number,
            source=to,
            options=["op_get", "use_once", "event_comm_disable", "event_ct_comm", *_SILENT],
            ct=served,
            wait=False,
        )
        await portals.put(md, 0, to=to, pt=_PT, match_bits=tag, hdr_data=number << 32 | size)
        return Send(served)

    async def sent(self, send: Send) -> None:
        """Wait until the buffer of a send may change. For a long message, the receiver then has its bytes."""
        if send.served is not None:
            await self.portals.ct_wait(send.served, 1)

    async def wait(self, receive: Receive) -> None:
        """Wait until a receive is complete."""
        while not receive.complete:
            if receive.getting is None:
                await self.progress(await self.portals.eq_wait(self.eq))
            else:
                await self.portals.ct_wait(receive.getting, 1)
                receive.complete = True

    async def get(self, receive: Receive, event: Event) -> None:
        """Post the get of the bytes that a request announces."""
        done = self.portals.ct_alloc()
        md = self.portals.md_bind(receive.buffer, options=["event_ct_reply"], ct=done)
        await self.portals.get(
            md, receive.length_bytes, to=event.initiator, pt=_PT, match_bits=_DATA | event.hdr_data >> 32
        )
        receive.getting = done

    async def copy(self, receive: Receive, event: Event) -> None:
        """Copy a short message from the memory of unexpected messages to its buffer."""
        at = event.start - self.unexpected.address
        arrived, to = self.unexpected[at : at + event.mlength_bytes], receive.buffer[: event.mlength_bytes]
        if event.mlength_bytes:
            await self.host.copy(arrived, to)
            to.array[:] = arrived.array
        receive.complete = True


class CpuMessenger(Messenger):
    """A messenger that matches on the CPU, while the program is in one of its calls.

    The CPU copies short messages to their buffers.

    Args:
        match_ns: the CPU time of one search of a list, in nanoseconds.
    """

    def __init__(self, host: Host, *, eager_bytes: int, unexpected_bytes: int, match_ns: float) -> None:
        super().__init__(host, eager_bytes=eager_bytes, unexpected_bytes=unexpected_bytes)
        self.match_ns = match_ns
        self.posted: list[Receive] = []
        self.early: list[Event] = []

    async def set_up(self) -> None:
        """Append a match entry that takes every arriving message."""
        options = ["op_put", "manage_local", *_SILENT]
        await self.portals.me_append(self.unexpected, pt=_PT, ignore_bits=_DATA - 1, options=options)

    async def receive(self, buffer: Buffer, *, source: int | None = ANY, tag: int | None = ANY) -> Receive:
        """Post a receive. The messages that have arrived are searched first."""
        while (event := await self.portals.eq_get(self.eq)) is not None:
            await self.progress(event)
        receive = Receive(buffer, source, tag)
        await self.host.compute(ns=self.match_ns)
        for number, early in enumerate(self.early):
            if receive.takes(early):
                del self.early[number]
                await self._accept(receive, early)
                return receive
        self.posted.append(receive)
        return receive

    async def progress(self, event: Event) -> None:
        """Search the posted receives for the message of an event."""
        await self.host.compute(ns=self.match_ns)
        for number, receive in enumerate(self.posted):
            if receive.takes(event):
                del self.posted[number]
                await self._accept(receive, event)
                return
        self.early.append(event)

    async def _accept(self, receive: Receive, event: Event) -> None:
        receive.matched(event)
        await (self.get if event.hdr_data else self.copy)(receive, event)


class CardMessenger(Messenger):
    """A messenger that matches on the card. Handlers post the gets of long messages.

    The CPU helps only if a message arrives before its receive is posted.

    Args:
        handlers: the attached handlers of matching.c.
    """

    def __init__(self, host: Host, *, eager_bytes: int, unexpected_bytes: int, handlers: int) -> None:
        super().__init__(host, eager_bytes=eager_bytes, unexpected_bytes=unexpected_bytes)
        self.handlers = handlers
        self.receives: list[Receive] = []
        self.counters: list[int] = []
        self.linked: set[int] = set()

    async def set_up(self) -> None:
        """Append an entry to the overflow list for messages that arrive before their receive."""
        options = ["op_put", "manage_local", "event_comm_disable", *_SILENT]
        await self.portals.me_append(self.unexpected, pt=_PT, ignore_bits=_DATA - 1, options=options, list="overflow")

    async def receive(self, buffer: Buffer, *, source: int | None = ANY, tag: int | None = ANY) -> Receive:
        """Post a receive as a match entry. If its message had arrived before, process it."""
        portals, receive, number = self.portals, Receive(buffer, source, tag), len(self.receives)
        self.receives.append(receive)
        self.counters.append(portals.ct_alloc())
        await portals.me_append(
            buffer,
            pt=_PT,
            match_bits=tag or 0,
            ignore_bits=_TAGS if tag is ANY else 0,
            source=source,
            options=["op_put", "use_once", "event_unlink_disable"],
            ct=self.counters[number],
            handlers=self.handlers,
            user_ptr=number,
        )
        while number not in self.linked:
            await self.progress(await portals.eq_wait(self.eq))
        return receive

    async def progress(self, event: Event) -> None:
        """Record that an entry was appended, or that its message has matched."""
        number = event.user_ptr
        receive = self.receives[number]
        if event.kind == "PTL_EVENT_LINK":
            self.linked.add(number)
            return
        receive.matched(event)
        if event.kind == "PTL_EVENT_PUT_OVERFLOW":
            self.linked.add(number)
            await (self.get if event.hdr_data else self.copy)(receive, event)
        elif event.hdr_data:
            receive.getting = self.counters[number]
        else:
            receive.complete = True
