"""Processes of a host that share its card, each with its own virtual network interface.

    async def process(host, number):
        process = host.vni.process(number)
        interface = await process.open()
        out, back = process.alloc(4096), process.alloc(4096)
        receive = await interface.receive(back, source=(1 - host.rank, interface.number))
        send = await interface.send(out, to=(1 - host.rank, interface.number))
        await interface.wait(send)
        return await interface.wait(receive)

    async def main(host):
        return await host.gather(*(process(host, number) for number in range(1, 64)))

A process enters the kernel only to open and close an interface and to register a Buffer Pool. It also does so to lock
and translate the memory of a message outside the pool.
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

How = Literal["auto", "pio", "pool", "copy", "translate"]
"""The way in which a message passes between a process and its card.

`auto` takes the fastest way. `pio` is programmed I/O with the command (only for sends). `pool` is DMA from or to the
buffer itself, which is in the Buffer Pool. `copy` is DMA from or to the pool, with a copy between pool and buffer.
`translate` is DMA from or to the buffer, after the kernel has locked and translated its pages.
"""


@dataclass(frozen=True)
class Completed:
    """The result of a completed send or receive.

    Attributes:
        rank: the rank of the peer.
        vni: the number of the peer's interface.
        tag: the message's tag.
        length_bytes: the message's length in bytes.
        truncated: whether the receive was too short for the message.
    """

    rank: int
    vni: int
    tag: int
    length_bytes: int
    truncated: bool


class VniProcess:
    """A process of a host, made by `host.vni.process`. It has its own memory, and an interface after `open`."""

    def __init__(self, calls: _native.InterfaceCalls, rank: int, number: int) -> None:
        self._calls = calls
        self._rank = rank
        self._number = number

    @property
    def number(self) -> int:
        """The process's number on its host."""
        return self._number

    def alloc(self, length_bytes: int) -> Buffer:
        """Allocate zeroed memory of the process.

        Raises:
            RunError: the host has too little memory left.
        """
        return Buffer(self._calls.alloc(self._number, length_bytes))

    def open(self) -> Awaitable[Interface]:
        """Ask the kernel to register the process with the card, and return the process's interface.

        Raises:
            RunError: the process has an interface already, or the card has none left.
        """
        return self._calls.open(self._number, self.interface)

    def interface(self, number: int) -> Interface:
        """Return an interface of the host's card by its number. Calls on another process's interface are refused."""
        return Interface(self._calls, self, whole(number, "number", U32))

    def __repr__(self) -> str:
        return f"<VniProcess {self._number} of rank {self._rank}>"


class Interface:
    """A virtual network interface as a process sees it."""

    def __init__(self, calls: _native.InterfaceCalls, process: VniProcess, number: int) -> None:
        self._calls = calls
        self._process = process
        self._number = number
        self._vni = (process.number, number)

    @property
    def number(self) -> int:
        """The interface's number on the card. Other processes send to the interface by rank and this number."""
        return self._number

    def close(self) -> Awaitable[None]:
        """Ask the kernel to close the interface and its Buffer Pool.

        Raises:
            RunError: the interface is not the process's, or operations have not ended.
        """
        return self._calls.close(self._vni)

    def register_pool(self, length_bytes: int) -> Awaitable[Buffer]:
        """Register a Buffer Pool: memory with pages that the kernel locks and translates once.

        Raises:
            InputError: the pool is too large.
            RunError: the interface has a pool already, or it is not the process's.
        """
        return self._calls.register_pool(self._vni, length_bytes, Buffer)

    def send(self, buffer: Buffer, *, to: tuple[int, int], tag: int = 0, how: How = "auto") -> Awaitable[Operation]:
        """Post a send to an interface of a rank, `to=(rank, number)`. The send ends when the buffer may be reused.

        Raises:
            InputError: there is no such rank or interface, or the message is too long.
            RunError: the interface or the buffer is not the process's, or too many sends have not ended.
        """
        return self._calls.send(self._vni, buffer, _endpoint(to, "to"), tag, how, Operation)

    def receive(
        self, buffer: Buffer, *, source: tuple[int, int] | None = None, tag: int | None = None, how: How = "auto"
    ) -> Awaitable[Operation]:
        """Post a receive: from one interface, `source=(rank, number)`, or any; of one tag, or any.

        Raises:
            InputError: there is no such rank or interface, or the buffer is too long.
            RunError: the interface or the buffer is not the process's, or too many receives have not ended.
        """
        peer = None if source is None else _endpoint(source, "source")
        return self._calls.receive(self._vni, buffer, peer, tag, how, Operation)

    def test(self, operation: Operation) -> Awaitable[Completed | None]:
        """Read an operation's doorbell. Return the operation's result, once, or None if it has not ended.

        Raises:
            RunError: the interface is not the process's, or the interface has no such operation.
        """
        return self._calls.test(self._vni, operation_number(operation), Completed)

    def wait(self, operation: Operation) -> Awaitable[Completed]:
        """Wait for an operation's doorbell, and return the operation's result.

        Raises:
            RunError: the interface is not the process's, or the interface has no such operation.
        """
        return self._calls.wait(self._vni, operation_number(operation), Completed)

    def __repr__(self) -> str:
        return f"<Interface {self._number} of {self._process!r}>"


def _endpoint(end: tuple[int, int], name: str) -> tuple[int, int]:
    try:
        rank, number = end
    except (TypeError, ValueError):
        message = f"{name}: an interface is a rank and its number, as in {name}=(1, 0), not {end!r}"
        raise InputError(message) from None
    return whole(rank, f"{name}'s rank", U32), whole(number, f"{name}'s interface", U32)


class Vni:
    """The virtual network interfaces of a host's card, one for each process of the host: `host.vni`."""

    def __init__(self, calls: _native.Calls) -> None:
        self._calls = calls
        self._interfaces = _native.InterfaceCalls(calls)

    def process(self, number: int) -> VniProcess:
        """Return a process of this host. The program chooses its number.

        Number 0 is the process of `send` and `recv`. It has interface 0 and the largest Buffer Pool from the beginning,
        and the host's allocations are its memory.
        """
        return VniProcess(self._interfaces, self._calls.rank, whole(number, "number", U32))

    def __repr__(self) -> str:
        return f"<Vni of rank {self._calls.rank}>"
