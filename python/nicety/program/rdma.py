"""RDMA: processes of a host put into, and get from, memory that others have registered.

    async def main(host):
        rdma, other = host.rdma, 1 - host.rank
        mine, theirs = host.alloc(4096), host.alloc(4096)
        await rdma.register(mine)
        region = await rdma.register(theirs)
        await host.barrier()
        # Hosts of one program allocate the same addresses.
        put = await rdma.put(mine, to=other, address=region.address)
        await rdma.wait(put)
        return await rdma.received()

Host and graphics processor have pages of their own size, and the card a TLB for both.
"""

from __future__ import annotations

from collections.abc import Awaitable
from dataclasses import dataclass
from typing import Literal

from nicety import _native
from nicety.errors import InputError
from nicety.program.buffers import Buffer
from nicety.program.calls import Operation, operation_number
from nicety.shared.checks import U32, whole

Notify = Literal["poll", "interrupt"]
"""How programs learn of events: the driver polls the card's queue, or an interrupt calls it."""

RdmaEventKind = Literal["sent", "fetched", "refused", "received", "rejected"]
"""What an event says.

`sent`: the card has read the bytes of a put or send, and the buffer may be used again. `fetched`: the bytes of a get
are in its buffer. `refused`: a put, send or get of this process was refused. `received`: the bytes of
another process's put or send are in memory. `rejected`: a put, send or get of another process was refused here.

Events `received` of one rank come in the order in which it has posted its puts and sends, each behind the bytes of all
before it, unless these were refused (on a fat tree with `hash-message`: in the order in which they came). Events of
other kinds are in no order, neither among each other nor to these.
"""


@dataclass(frozen=True)
class Region:
    """Memory that a process has registered.

    Attributes:
        number: its number on its card.
        address: its first address, for puts and gets of others.
        length_bytes: its length.
    """

    number: int
    address: int
    length_bytes: int


@dataclass(frozen=True)
class RdmaEvent:
    """An event of a process.

    Attributes:
        kind: what has happened.
        rank: the rank at the other end.
        address: where the bytes are on this host, or would have been. Of a send at its receiver, the address of its
            streaming buffer, 0 if there was none. Of a refused put or send at its sender, that of its buffer, 0 if
            `ring.entries` further descriptors have been written since.
        length_bytes: the message's length.
        data: what the sender added to a put or send.
        streaming: whether the bytes are in a streaming buffer.
        operation: the operation of this process that the event ends, if it ends one.
        reason: why, of what was refused: `unregistered`, `foreign` (registered by another process), `no streaming
            buffer`, `too long` for the next streaming buffer, `busy`, `no process` (of that number, for a message of no
            bytes), or `lost` (a packet of it).
        refused_by: the rank that refused it; this one where a get fails for its own destination, or for a packet of its
            reply that was lost.
    """

    kind: RdmaEventKind
    rank: int
    address: int
    length_bytes: int
    data: int
    streaming: bool
    operation: Operation | None
    reason: str | None
    refused_by: int | None


def _event(
    kind: RdmaEventKind,
    rank: int,
    address: int,
    length_bytes: int,
    data: int,
    streaming: bool,
    operation: int | None,
    reason: str | None,
    refused_by: int | None,
) -> RdmaEvent:
    ended = None if operation is None else Operation(operation)
    return RdmaEvent(kind, rank, address, length_bytes, data, streaming, ended, reason, refused_by)


class RdmaProcess:
    """A process of a host whose card has RDMA, made by `host.rdma.process`.

    It has registered memory, streaming buffers and events of its own, and exchanges messages with the process of its
    number on other hosts.
    """

    def __init__(self, calls: _native.Calls, number: int) -> None:
        self._calls = _native.RdmaCalls(calls)
        self._rank = calls.rank
        self._number = number

    @property
    def number(self) -> int:
        """Its number on its host."""
        return self._number

    @property
    def streaming(self) -> int:
        """How many of its streaming buffers are unused."""
        return self._calls.streaming(self._number)

    def register(self, buffer: Buffer) -> Awaitable[Region]:
        """Register a buffer, of the host or its graphics processor, so that messages may come from it and go to it.

        A system call locks its pages, and the embedded processor of the card enters them in its table.

        Raises:
            InputError: where the buffer is empty.
            RunError: where the card's table is full.
        """
        return self._calls.register(self._number, buffer, Region)

    def deregister(self, region: Region) -> Awaitable[None]:
        """End a registration. Transfers that have begun are waited for; messages that come later are refused.

        Raises:
            RunError: where the process has no such region.
        """
        if not isinstance(region, Region):
            raise InputError(f"a region is what register gives, not {region!r}")
        return self._calls.deregister(self._number, region.number)

    def put(self, buffer: Buffer, *, to: int, address: int, data: int = 0) -> Awaitable[Operation]:
        """Put a registered buffer to an address of a rank; `wait` tells when the buffer may be used again.

        Args:
            buffer: the bytes, in a region of this process.
            to: the rank, possibly this one.
            address: where they go: in a region of the process of this number there.
            data: a number for the event at the receiver.

        Raises:
            InputError: where there is no such rank, the message is too long, or the address is 0.
            RunError: where the buffer is not registered.
        """
        return self._calls.put(self._number, buffer, to, address, data, Operation)

    def send(self, buffer: Buffer, *, to: int, data: int = 0) -> Awaitable[Operation]:
        """Send a registered buffer into the first unused streaming buffer of the process of this number of a rank.

        Raises:
            InputError: where there is no such rank, or the message is too long.
            RunError: where the buffer is not registered.
        """
        return self._calls.send(self._number, buffer, to, data, Operation)

    def get(self, buffer: Buffer, *, source: int, address: int) -> Awaitable[Operation]:
        """Get bytes of a rank into a registered buffer; `wait` tells when they have come.

        Raises:
            InputError: where there is no such rank, or the message is too long.
            RunError: where the buffer is not registered, or too many gets wait for their replies.
        """
        return self._calls.get(self._number, buffer, source, address, Operation)

    def post_streaming(self, buffer: Buffer) -> Awaitable[None]:
        """Add a streaming buffer, which lies in a region, behind those that are unused. A send of no bytes takes none.

        Raises:
            RunError: where it is not registered, overlaps a streaming buffer that is unused, or too many are unused.
        """
        return self._calls.post_streaming(self._number, buffer)

    def wait(self, operation: Operation) -> Awaitable[RdmaEvent]:
        """Wait for the end of an operation of this process; other events stay in the queue.

        The buffer of a put or send may be used again, or the bytes of a get have come.

        Raises:
            RunError: where it has been refused by then (the error names the rank), where its end has been told already
                (by this call or as an event), or where events were lost because a queue was full.
        """
        return self._calls.wait(self._number, operation_number(operation), _event)

    def received(self) -> Awaitable[RdmaEvent]:
        """Wait for a put or send of another process; other events stay in the queue.

        Raises:
            RunError: where events were lost because a queue was full; reported once.
        """
        return self._calls.received(self._number, _event)

    def event(self) -> Awaitable[RdmaEvent]:
        """Wait for the next event.

        Raises:
            RunError: where events were lost because a queue was full; reported once.
        """
        return self._calls.event(self._number, _event)

    def poll(self) -> Awaitable[RdmaEvent | None]:
        """Look for an event, once.

        Raises:
            RunError: where events were lost because a queue was full; reported once.
        """
        return self._calls.poll(self._number, _event)

    def __repr__(self) -> str:
        return f"<RdmaProcess {self._number} of rank {self._rank}>"


class Rdma(RdmaProcess):
    """RDMA of a host's card, `host.rdma`: what process 0 of the host has, and what its processes share."""

    def __init__(self, calls: _native.Calls) -> None:
        super().__init__(calls, 0)
        self._host = calls

    def process(self, number: int) -> RdmaProcess:
        """A process of this host, by a number of the program's choice."""
        return RdmaProcess(self._host, whole(number, "number", U32))

    def __repr__(self) -> str:
        return f"<Rdma of rank {self._rank}>"

    def set_notify(self, notify: Notify) -> None:
        """Choose how programs of this host learn of events: `poll` or `interrupt`. Set-up, takes no time."""
        self._calls.set_notify(notify)

    def set_addressing(self, addressing: Literal["virtual", "physical"]) -> None:
        """Choose what puts and gets of this host name: physical addresses skip the receiver's TLB. Set-up.

        Virtual and physical addresses are equal numbers here, and both have to be registered.
        """
        if addressing not in ("virtual", "physical"):
            raise InputError(f"addressing is 'virtual' or 'physical', not {addressing!r}")
        self._calls.set_physical(addressing == "physical")

    def flush_receive(self, flush: bool = True) -> None:
        """Choose whether this host's card drops packets when they have come, to measure the transmit side of others."""
        self._calls.set_flushed(flush)


class Gpu:
    """The graphics processor of a host, `host.gpu`, whose memory the host's card reads and writes."""

    def __init__(self, calls: _native.Calls) -> None:
        self._calls = _native.RdmaCalls(calls)

    def alloc(self, length_bytes: int) -> Buffer:
        """Allocate zeroed memory of the graphics processor. Its bytes are the program's to see and change, in no time.

        Raises:
            RunError: where it has no more.
        """
        return Buffer(self._calls.alloc_gpu(length_bytes))
