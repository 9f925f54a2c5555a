"""Processes of a host that share its card, each with a virtual network interface of its own.

    async def process(host, number):
        process = host.vni_process(number)
        interface = await process.open()
        out, back = process.alloc(4096), process.alloc(4096)
        receive = await interface.receive(back, source=(1 - host.rank, interface.number))
        send = await interface.send(out, to=(1 - host.rank, interface.number))
        await interface.wait(send)
        return await interface.wait(receive)

    async def main(host):
        return await host.gather(*(process(host, number) for number in range(1, 64)))

The kernel is entered to open and close an interface, to register a Buffer Pool, and where a message's own memory is
locked and translated; for nothing else.
"""

from __future__ import annotations

from collections.abc import Awaitable
from dataclasses import dataclass
from typing import Literal

from nicety._calls import Caller, OfHost
from nicety._checks import U32, U64, whole
from nicety.buffers import Buffer
from nicety.errors import InputError

How = Literal["auto", "pio", "pool", "copy", "translate"]
"""How a message gets between a process and its card.

`auto` takes what takes least time, `pio` programmed I/O with the command (only what is sent), `pool` DMA from or to the
Buffer Pool in which the buffer lies, `copy` DMA with a copy to or from the pool, and `translate` DMA from or to the
buffer, whose pages the kernel locks.
"""


@dataclass(frozen=True)
class InterfaceReport:
    """What a card with virtual network interfaces counted.

    Attributes:
        sends: Send commands taken.
        programmed: of these, messages that came by programmed I/O.
        receives: Receive commands taken.
        packets_sent: packets handed to the link, or to an interface of the same card.
        packets_received: packets that came.
        buffered: packets put into the card's memory because nothing received them yet.
        held_back: times that a packet found no memory and had to stay where it came in.
        strays: messages for an interface that nobody had open, which are dropped.
        unusable: packets that came damaged or out of place.
        doorbells: doorbells set.
        refused: calls of processes that were refused because something is not theirs.
    """

    sends: int
    programmed: int
    receives: int
    packets_sent: int
    packets_received: int
    buffered: int
    held_back: int
    strays: int
    unusable: int
    doorbells: int
    refused: int


@dataclass(frozen=True)
class Completed:
    """How a send or receive ended.

    Attributes:
        rank: the other end's rank.
        vni: the number of its interface there.
        tag: the message's tag.
        length_bytes: the message's length.
        truncated: whether the receive had no room for all of it.
    """

    rank: int
    vni: int
    tag: int
    length_bytes: int
    truncated: bool


@dataclass(frozen=True)
class Operation:
    """A send or receive that was posted, for `Interface.test` and `Interface.wait`."""

    number: int


class VniProcess(OfHost):
    """A process of a host, made by `host.vni_process`: it has memory of its own, and an interface once it opens one."""

    def __init__(self, host: Caller, number: int) -> None:
        super().__init__(host)
        self._number = number

    @property
    def number(self) -> int:
        """Its number on its host."""
        return self._number

    def alloc(self, length_bytes: int) -> Buffer:
        """Allocate zeroed memory of its own.

        Raises:
            RunError: where the host has no more.
        """
        length_bytes = whole(length_bytes, "length_bytes")
        made, memory = self._ask("vni_alloc", process=self._number, bytes=length_bytes)
        return Buffer(self._host, made["buffer"], made["address"], memory, 0, length_bytes)

    def open(self) -> Awaitable[Interface]:
        """Have the kernel register it with the card.

        Raises:
            RunError: where it has an interface, or none is left.
        """
        return self._call("vni_open", self.interface, process=self._number)

    def interface(self, number: int) -> Interface:
        """An interface of its host's card by its number; calls on one that is not the process's are refused."""
        return Interface(self._host, self, whole(number, "number", U32))

    def __repr__(self) -> str:
        return f"<VniProcess {self._number} of rank {self._host.rank}>"


class Interface(OfHost):
    """A virtual network interface, as a process sees it."""

    def __init__(self, host: Caller, process: VniProcess, number: int) -> None:
        super().__init__(host)
        self._process = process
        self._number = number

    @property
    def number(self) -> int:
        """Its number on the card: what others name beside the rank to send to it."""
        return self._number

    def close(self) -> Awaitable[None]:
        """Have the kernel take it away again, and the Buffer Pool with it.

        Raises:
            RunError: where it is not the process's, or operations have not ended.
        """
        return self._call("vni_close", **self._named())

    def register_pool(self, length_bytes: int) -> Awaitable[Buffer]:
        """Register a Buffer Pool: memory whose pages the kernel locks and translates once.

        Raises:
            InputError: where it is too large.
            RunError: where there is one already, or the interface is not the process's.
        """
        length_bytes = whole(length_bytes, "length_bytes")
        return self._call("vni_pool", self._pool, bytes=length_bytes, **self._named())

    def _pool(self, buffer: int) -> Buffer:
        made, memory = self._ask("buffer_memory", buffer=buffer)
        return Buffer(self._host, buffer, made["address"], memory, 0, made["bytes"])

    def send(self, buffer: Buffer, *, to: tuple[int, int], tag: int = 0, how: How = "auto") -> Awaitable[Operation]:
        """Post a send to an interface of a rank, `to=(rank, number)`. It ends when the buffer may be used again.

        Raises:
            InputError: where there is no such rank or interface, or the message is too long.
            RunError: where the interface or the buffer is not the process's, or too many sends have not ended.
        """
        return self._call(
            "vni_send",
            Operation,
            part=self._own(buffer),
            peer=_endpoint(to, "to"),
            tag=whole(tag, "tag", U64),
            how=how,
            **self._named(),
        )

    def receive(
        self, buffer: Buffer, *, source: tuple[int, int] | None = None, tag: int | None = None, how: How = "auto"
    ) -> Awaitable[Operation]:
        """Post a receive: from one interface, `source=(rank, number)`, or any; of one tag, or any.

        Raises:
            InputError: where there is no such rank or interface, or the buffer is too long.
            RunError: where the interface or the buffer is not the process's, or too many receives have not ended.
        """
        return self._call(
            "vni_receive",
            Operation,
            part=self._own(buffer),
            peer=None if source is None else _endpoint(source, "source"),
            tag=None if tag is None else whole(tag, "tag", U64),
            how=how,
            **self._named(),
        )

    def test(self, operation: Operation) -> Awaitable[Completed | None]:
        """Look at an operation's doorbell: how it ended, once, or nothing while it has not.

        Raises:
            RunError: where the interface is not the process's, or it has no such operation.
        """
        return self._call(
            "vni_test",
            lambda done: None if done is None else Completed(**done),
            operation=_number(operation),
            **self._named(),
        )

    def wait(self, operation: Operation) -> Awaitable[Completed]:
        """Wait for an operation's doorbell: how it ended.

        Raises:
            RunError: where the interface is not the process's, or it has no such operation.
        """
        return self._call("vni_wait", lambda done: Completed(**done), operation=_number(operation), **self._named())

    def _named(self) -> dict[str, int]:
        return {"process": self._process.number, "vni": self._number}

    def __repr__(self) -> str:
        return f"<Interface {self._number} of {self._process!r}>"


def _number(operation: Operation) -> int:
    if not isinstance(operation, Operation):
        raise InputError(f"an operation is what send and receive give, not {operation!r}")
    return operation.number


def _endpoint(end: tuple[int, int], name: str) -> list[int]:
    try:
        rank, number = end
    except (TypeError, ValueError):
        message = f"{name}: an interface is a rank and its number, as in {name}=(1, 0), not {end!r}"
        raise InputError(message) from None
    return [whole(rank, f"{name}'s rank", U32), whole(number, f"{name}'s interface", U32)]


class InterfaceCalls(Caller):
    """The calls of a host that has virtual network interfaces."""

    def vni_process(self, number: int) -> VniProcess:
        """A process of this host, by a number of the program's choice.

        Number 0 is the one that `send` and `recv` belong to: it has interface 0 and the largest Buffer Pool from the
        beginning, and what the host allocates is its memory.
        """
        return VniProcess(self, whole(number, "number", U32))
