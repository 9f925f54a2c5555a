"""Processes on a card with microengines: C functions that run on a context until they return.

    worker = nicety.Processes("worker.c")

    async def main(host):
        table = host.channels.card_memory("emem", length_bytes=4096)
        table.write(bytes(4096))
        process = host.channels.start(worker, "worker", microengine=0, context=0, args=(table.address, 1024))
        return await process.finished()

The start of processes and accesses to the card's memories are set-up. They take no virtual time.
"""

from __future__ import annotations

from collections.abc import Awaitable, Iterable
from typing import TYPE_CHECKING, Literal

from nicety.build.sources import Processes
from nicety.errors import InputError
from nicety.program.calls import CardCalls
from nicety.shared.checks import U32, U64, text, whole

if TYPE_CHECKING:
    from nicety import _native

MemoryName = Literal["cls", "ctm", "imem", "emem"]
"""The name of a memory of the card. The order is by distance from the microengines, nearest first."""


class Process:
    """A process started by `host.channels.start`."""

    def __init__(
        self, calls: _native.ProcessCalls, rank: int, number: int, name: str, microengine: int, context: int
    ) -> None:
        self._calls = calls
        self._rank = rank
        self._number = number
        self.name = name
        self.microengine = microengine
        self.context = context

    def finished(self) -> Awaitable[int]:
        """Wait for the process's end, and return the value that its function returned, from 0 to 2^32 - 1.

        Raises:
            HandlerTrap: the process was stopped; the text has the reason and the line.
            RunError: another process has been started on the same context in the meantime.
        """
        return self._calls.finished(self._number)

    def __repr__(self) -> str:
        return f"<Process {self.name} of rank {self._rank}, microengine {self.microengine}, context {self.context}>"


class CardMemory:
    """A part of a memory of the card, made by `host.channels.card_memory`. Reads and writes take no virtual time."""

    def __init__(self, calls: _native.ProcessCalls, rank: int, part: tuple[str, int, int, int], address: int) -> None:
        self._calls = calls
        self._rank = rank
        self._part = part
        self._address = address

    @property
    def address(self) -> int:
        """The first byte's address, for use by processes."""
        return self._address

    def __len__(self) -> int:
        """The number of bytes."""
        return self._part[3]

    def read(self) -> bytes:
        """The current bytes."""
        return self._calls.read_card(self._part)

    def write(self, contents: bytes) -> None:
        """Write bytes to the start of this memory.

        Raises:
            InputError: there are more bytes than this part of the memory has.
        """
        if not isinstance(contents, bytes | bytearray | memoryview):
            raise InputError(f"contents are bytes, such as bytes(8), not {type(contents).__name__}")
        self._calls.write_card(self._part, bytes(contents))

    def __repr__(self) -> str:
        return f"<CardMemory of rank {self._rank}, {len(self)} bytes of {self._part[0]} at {self.address:#x}>"


class ProcessCalls(CardCalls):
    """The calls of a host that concern the processes on its card."""

    _processes: _native.ProcessCalls

    def start(
        self,
        processes: Processes,
        name: str,
        *,
        microengine: int,
        context: int = 0,
        contexts: int | None = None,
        args: Iterable[int] = (),
    ) -> Process:
        """Start a process: a C function, on a context of a microengine.

        A microengine has one program. The first process on a microengine loads its program there, for `contexts`
        contexts. Another program can be loaded once no process runs on the microengine.

        Args:
            processes: the program, which is compiled here for this card.
            name: the name of the function.
            microengine: the number of the microengine.
            context: the number of the context on that microengine.
            contexts: the number of contexts for which the microengine is set up. The stacks of these contexts share the
                local memory that the program's variables leave. The default is all contexts.
            args: arguments of the function, at most eight words. A negative argument is passed as its two's complement.

        Raises:
            InputError: there is no such function, microengine or context, the context runs a process, or the program
                does not compile or fit.
        """
        if not isinstance(processes, Processes):
            raise InputError(f"start takes nicety.Processes, not {type(processes).__name__}")
        microengine, context = whole(microengine, "microengine", U32), whole(context, "context", U32)
        arguments = [_word(value) for value in args]
        isa = self._calls.isa()
        number = self._loaded.get((processes, isa))
        if number is None:
            number = self._processes.load(processes.compile(isa=isa).elf)
            self._loaded[processes, isa] = number
        place = (microengine, context, None if contexts is None else whole(contexts, "contexts", U32))
        made = self._processes.start(number, name, place, arguments)
        return Process(self._processes, self._calls.rank, made, name, microengine, context)

    def open_queue(self, queue: int) -> None:
        """Open a queue of the card's port: frames for it wait from now on until a process receives them.

        The first receive of a process from a queue also opens it. Frames that arrive before are dropped and counted.
        Queue 0 is open from the beginning.

        Args:
            queue: the queue's number, 0 to 254.

        Raises:
            InputError: there is no such queue, or the card has no processes.
        """
        self._processes.open_queue(queue)

    def card_memory(self, memory: MemoryName, offset: int = 0, *, length_bytes: int, island: int = 0) -> CardMemory:
        """Return a part of a memory of the card, to read and write.

        Args:
            memory: `cls`, `ctm`, `imem` or `emem`.
            offset: the offset of the part in the memory, in bytes.
            length_bytes: the length of the part in bytes.
            island: the island of the memory, if each island of microengines has one (`cls`, `ctm`).

        Raises:
            InputError: there is no such memory or island, or the part exceeds the memory.
        """
        part = (
            text(memory, "memory", "emem"),
            whole(island, "island", U64),
            whole(offset, "offset", U32),
            whole(length_bytes, "length_bytes", U32),
        )
        return CardMemory(self._processes, self._calls.rank, part, self._processes.card_memory(part))


def _word(value: int) -> int:
    """Return a number as a word of 32 bits; a negative number becomes its two's complement."""
    try:
        if -(2**31) <= value < 0:
            return value + 2**32
    except TypeError:
        pass
    return whole(value, "an argument of a process", U32)
