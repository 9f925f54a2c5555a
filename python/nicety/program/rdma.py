"""RDMA: a process puts into, and gets from, memory that other processes have registered.

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

Host and graphics processor have different page sizes. The card has one TLB for the pages of both.
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
"""The way in which programs get events: the driver polls the card's queue, or an interrupt calls the driver."""

RdmaEventKind = Literal["sent", "fetched", "refused", "received", "rejected"]
"""The kind of an event.

`sent`: the card has read the bytes of a put or send, and the buffer may be reused. `fetched`: the bytes of a get are in
its buffer. `refused`: another rank, or this one, refused a put, send or get of this process. `received`: the bytes of
another process's put or send are in memory. `rejected`: this host refused a put, send or get of another process.

`received` events from one rank are in the order in which that rank posted its puts and sends, except for refused ones.
A `received` event comes after the bytes of all earlier messages. On a fat tree with `hash-message` these events are in
order of arrival. Events of other kinds have no order, neither among each other nor relative to `received` events.
"""


@dataclass(frozen=True)
class Region:
    """Memory that a process has registered.

    Attributes:
        number: the region's number on its card.
        address: the region's first address, for puts and gets of other processes.
        length_bytes: the region's length in bytes.
    """

    number: int
    address: int
    length_bytes: int


@dataclass(frozen=True)
class RdmaEvent:
    """An event in the queue of a process.

    Attributes:
        kind: the kind of event.
        rank: the rank with which the message was exchanged.
        address: the address of the bytes on this host, or of the place for them. At the receiver of a send, it is the
            address of the streaming buffer, or 0 without one. At the sender of a refused put or send, it is the address
            of the sent buffer, or 0 if `ring.entries` further descriptors were written since.
        length_bytes: the message's length in bytes.
        data: the word that the sender gave its put or send.
        streaming: whether the bytes are in a streaming buffer.
        operation: the operation of this process that the event ends, if any.
        reason: the reason of a refusal: `unregistered`, `foreign` (registered by another process),
            `no streaming buffer`, `too long` for the next streaming buffer, `busy`, `no process` (there is no process
            with that number; for a message of no bytes), or `lost` (a packet of the message was lost).
        refused_by: the rank that refused the operation. It is this rank if a get fails for its own destination, or if
            a packet of its reply is lost.
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
    """A process of a host with an RDMA card, made by `host.rdma.process`.

    It has its own registered memory, streaming buffers and events, and exchanges messages with the process of the same
    number on other hosts.
    """

    def __init__(self, calls: _native.Calls, number: int) -> None:
        self._calls = _native.RdmaCalls(calls)
        self._rank = calls.rank
        self._number = number

    @property
    def number(self) -> int:
        """The process's number on its host."""
        return self._number

    @property
    def streaming(self) -> int:
        """The number of this process's unused streaming buffers."""
        return self._calls.streaming(self._number)

    def register(self, buffer: Buffer) -> Awaitable[Region]:
        """Register a buffer of the host or of its graphics processor, as a source and target of messages.

        A system call locks the buffer's pages, and the card's embedded processor enters them in the card's table.

        Raises:
            InputError: the buffer is empty.
            RunError: the card's table is full.
        """
        return self._calls.register(self._number, buffer, Region)

    def deregister(self, region: Region) -> Awaitable[None]:
        """End a registration. Returns when transfers that have begun are done; later messages are refused.

        Raises:
            RunError: the process has no such region.
        """
        if not isinstance(region, Region):
            raise InputError(f"a region is what register gives, not {region!r}")
        return self._calls.deregister(self._number, region.number)

    def put(self, buffer: Buffer, *, to: int, address: int, data: int = 0) -> Awaitable[Operation]:
        """Put a registered buffer to an address of a rank. `wait` returns when the buffer may be reused.

        Args:
            buffer: the bytes, in a region of this process.
            to: the rank, possibly this one.
            address: the target address, in a region of the process with this process's number on that rank.
            data: a number for the event at the receiver.

        Raises:
            InputError: there is no such rank, the message is too long, or the address is 0.
            RunError: the buffer is not registered.
        """
        return self._calls.put(self._number, buffer, to, address, data, Operation)

    def send(self, buffer: Buffer, *, to: int, data: int = 0) -> Awaitable[Operation]:
        """Send a registered buffer to a rank, into the first unused streaming buffer of the process with this number.

        Raises:
            InputError: there is no such rank, or the message is too long.
            RunError: the buffer is not registered.
        """
        return self._calls.send(self._number, buffer, to, data, Operation)

    def get(self, buffer: Buffer, *, source: int, address: int) -> Awaitable[Operation]:
        """Get bytes of a rank into a registered buffer. `wait` returns when the bytes have arrived.

        Raises:
            InputError: there is no such rank, or the message is too long.
            RunError: the buffer is not registered, or too many gets wait for their replies.
        """
        return self._calls.get(self._number, buffer, source, address, Operation)

    def post_streaming(self, buffer: Buffer) -> Awaitable[None]:
        """Post a streaming buffer, which must be in a region. Sends use streaming buffers in the order of posting.

        A send of no bytes uses none.

        Raises:
            RunError: the buffer is not registered, it overlaps an unused streaming buffer, or too many are unused.
        """
        return self._calls.post_streaming(self._number, buffer)

    def wait(self, operation: Operation) -> Awaitable[RdmaEvent]:
        """Wait for the end of an operation of this process. Other events stay in the queue.

        After a put or send the buffer may then be reused; after a get its bytes have arrived.

        Raises:
            RunError: the operation was refused (the error names the rank), its end was reported before (by this call or
                as an event), or events were lost because a queue was full.
        """
        return self._calls.wait(self._number, operation_number(operation), _event)

    def received(self) -> Awaitable[RdmaEvent]:
        """Wait for a put or send of another process. Other events stay in the queue.

        Raises:
            RunError: events were lost because a queue was full. The error is raised once.
        """
        return self._calls.received(self._number, _event)

    def event(self) -> Awaitable[RdmaEvent]:
        """Wait for the next event of any kind.

        Raises:
            RunError: events were lost because a queue was full. The error is raised once.
        """
        return self._calls.event(self._number, _event)

    def poll(self) -> Awaitable[RdmaEvent | None]:
        """Look once for an event, and return it, or None.

        Raises:
            RunError: events were lost because a queue was full. The error is raised once.
        """
        return self._calls.poll(self._number, _event)

    def __repr__(self) -> str:
        return f"<RdmaProcess {self._number} of rank {self._rank}>"


class Rdma(RdmaProcess):
    """RDMA of a host's card, `host.rdma`: process 0 of the host, and state shared by its processes."""

    def __init__(self, calls: _native.Calls) -> None:
        super().__init__(calls, 0)
        self._host = calls

    def process(self, number: int) -> RdmaProcess:
        """Return a process of this host. The program chooses its number."""
        return RdmaProcess(self._host, whole(number, "number", U32))

    def __repr__(self) -> str:
        return f"<Rdma of rank {self._rank}>"

    def set_notify(self, notify: Notify) -> None:
        """Choose how this host's programs get events: `poll` or `interrupt`. Set-up: takes no virtual time."""
        self._calls.set_notify(notify)

    def set_addressing(self, addressing: Literal["virtual", "physical"]) -> None:
        """Choose the kind of address in puts and gets of this host. Physical addresses skip the receiver's TLB.

        A virtual address and its physical address are equal numbers here, and memory must be registered for both.
        Set-up: takes no virtual time.
        """
        if addressing not in ("virtual", "physical"):
            raise InputError(f"addressing is 'virtual' or 'physical', not {addressing!r}")
        self._calls.set_physical(addressing == "physical")

    def flush_receive(self, flush: bool = True) -> None:
        """Choose whether this host's card drops arriving packets. That measures the transmit side of other hosts."""
        self._calls.set_flushed(flush)


class Gpu:
    """The graphics processor of a host, `host.gpu`, with memory that the host's card reads and writes."""

    def __init__(self, calls: _native.Calls) -> None:
        self._calls = _native.RdmaCalls(calls)

    def alloc(self, length_bytes: int) -> Buffer:
        """Allocate zeroed memory of the graphics processor. Python accesses its bytes in no virtual time.

        Raises:
            RunError: the graphics processor has too little memory left.
        """
        return Buffer(self._calls.alloc_gpu(length_bytes))
