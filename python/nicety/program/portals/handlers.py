"""Resources of handlers on a card: applications, HPU memory, and programs with their state.

    kv = host.portals.application("kv", weight=3, cycles_per_run=100_000)
    table = host.portals.hpu_alloc(4096, application=kv)
    insert = host.portals.attach(nicety.Handlers("insert.c"), state=table)
    lookup = host.portals.attach(nicety.Handlers("lookup.c"), state=table)

All calls are set-up and take no virtual time, except for `hpu_read` and `hpu_write`.
"""

from __future__ import annotations

from collections.abc import Awaitable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from nicety.build.sources import Handlers
from nicety.errors import InputError
from nicety.program.calls import CardCalls
from nicety.shared.checks import U32, U64, text, whole

if TYPE_CHECKING:
    from nicety import _native
    from nicety.program.buffers import Buffer


@dataclass(frozen=True)
class Application:
    """An application on a host's card, made by `host.portals.application`."""

    name: str
    weight: int
    rank: int
    number: int


@dataclass(frozen=True)
class HpuMemory:
    """HPU memory of an application, made by `host.portals.hpu_alloc`, or a variable, by `host.portals.hpu_variable`."""

    length_bytes: int
    application: Application
    number: int
    variable: str | None = None


class Offload(CardCalls):
    """Handlers on the card, their memory, and their applications."""

    _handlers: _native.HandlerCalls

    def application(
        self,
        name: str,
        *,
        weight: int = 1,
        hpu_memory_bytes: int | None = None,
        cycles_per_run: int | None = None,
        cycles: int | None = None,
    ) -> Application:
        """Make an application: handlers that share accounting, limits and scheduling.

        Args:
            name: the application's name in reports.
            weight: the application's share of handler cores relative to other applications, if the card schedules
                by weight (`hpu.scheduling=weighted-fair`).
            hpu_memory_bytes: the application's maximum HPU memory; by default all that the card has left.
            cycles_per_run: maximum cycles of one handler run, after which it is stopped; by default `hpu.cycle_limit`.
            cycles: maximum cycles of all the application's handlers, after which none is run; by default unlimited.

        Raises:
            InputError: there is an application of this name, or no room for another (`hpu.applications`).
        """
        weight = whole(weight, "weight", U32)
        limits = {"memory": hpu_memory_bytes, "run_cycles": cycles_per_run, "total_cycles": cycles}
        checked = {limit: None if value is None else whole(value, limit, U64) for limit, value in limits.items()}
        number = self._handlers.application(text(name, "name", "kv"), weight, **checked)
        return Application(name, weight, self._calls.rank, number)

    def hpu_alloc(self, contents: int | bytes, *, application: Application | None = None) -> HpuMemory:
        """Allocate HPU memory (`PtlHPUAllocMem`): a number of zero bytes, or the given bytes.

        Raises:
            InputError: the card or the application has too little HPU memory left.
        """
        if not isinstance(contents, bytes | bytearray | memoryview):
            contents = bytes(whole(contents, "contents", _MOST_HPU_MEMORY))
        owner = self._application(application)
        return HpuMemory(len(contents), owner, self._handlers.hpu_alloc(owner.number, bytes(contents)))

    def hpu_variable(self, handlers: int, name: str) -> HpuMemory:
        """Return a variable of a program on the card, to be read and written by `hpu_read` and `hpu_write`.

        Args:
            handlers: attached handlers of the program.
            name: the variable's name in C; the variable must not be `static`.

        Raises:
            InputError: there are no such handlers, or their program has no such variable.
        """
        number, length_bytes = self._handlers.hpu_variable(handlers, text(name, "name", "counters"))
        return HpuMemory(length_bytes, self._application(None), number, name)

    def hpu_free(self, memory: HpuMemory) -> None:
        """Free HPU memory (`PtlHPUFreeMem`).

        Raises:
            InputError: the memory was freed before, or attached handlers have it as their state.
        """
        self._handlers.hpu_free(self._allocated(memory).number)

    def hpu_write(self, memory: HpuMemory, contents: bytes, *, offset_bytes: int = 0) -> Awaitable[None]:
        """Post a write of HPU memory, which handlers may have as their state.

        The bytes arrive after one crossing of the bus, and before later operations of this host have an effect.

        Raises:
            InputError: the memory was freed, or is too short.
        """
        if not isinstance(contents, bytes | bytearray | memoryview):
            raise InputError(f"contents are bytes, such as bytes(8), not {type(contents).__name__}")
        return self._handlers.hpu_write(self._hpu_memory(memory).number, offset_bytes, bytes(contents))

    def hpu_read(
        self, memory: HpuMemory, length_bytes: int | None = None, *, offset_bytes: int = 0
    ) -> Awaitable[bytes]:
        """Read HPU memory. The bytes are those at the time when the request has crossed the bus.

        The answer crosses the bus in turn, and then the host has to notice it.

        Args:
            memory: memory from `hpu_alloc`.
            length_bytes: the number of bytes; by default all from the offset on.
            offset_bytes: the offset of the first byte.

        Raises:
            InputError: the memory was freed, or is too short.
        """
        number, offset = self._hpu_memory(memory).number, whole(offset_bytes, "offset_bytes", U32)
        if length_bytes is None:
            length_bytes = max(0, memory.length_bytes - offset)
        return self._handlers.hpu_read(number, offset, length_bytes)

    def attach(
        self,
        handlers: Handlers,
        *,
        state: bytes | HpuMemory = b"",
        memory: Buffer | None = None,
        application: Application | None = None,
    ) -> int:
        """Attach handlers to the card with their state, for any number of match entries.

        Args:
            handlers: the program, which is compiled here for this card.
            state: the handlers' `state`: initial bytes for HPU memory of their own, or HPU memory that other handlers
                may share.
            memory: the second region of host memory, which only handlers use.
            application: the application of the handlers; by default the application that owns the state.

        Raises:
            InputError: the program does not compile, has no handler, or does not fit.
        """
        if not isinstance(handlers, Handlers):
            raise InputError(f"attach takes nicety.Handlers, not {type(handlers).__name__}")
        if not isinstance(state, bytes | bytearray | memoryview | HpuMemory):
            raise InputError(f"state is bytes, such as bytes(8), or HPU memory, not {type(state).__name__}")
        shared = self._allocated(state) if isinstance(state, HpuMemory) else None
        own = b"" if isinstance(state, HpuMemory) else bytes(state)
        owner = self._application(application or (shared.application if shared else None))
        isa, interface = self._calls.isa(), self._calls.interface()
        key = (handlers, f"{isa}, {interface}")
        number = self._loaded.get(key)
        if number is None:
            elf = handlers.compile(isa=isa, interface=interface).elf
            number = self._handlers.load(elf, handlers.header, handlers.payload, handlers.completion)
            self._loaded[key] = number
        return self._handlers.attach(
            number,
            state=own,
            shared=None if shared is None else shared.number,
            memory=memory,
            application=owner.number,
        )

    def detach(self, handlers: int) -> None:
        """Detach handlers from the card, and free the memory that only they use.

        Raises:
            InputError: there are no handlers of this number, or a match entry uses them.
        """
        self._handlers.detach(handlers)

    def _application(self, application: Application | None) -> Application:
        if application is None:
            return Application("default", 1, self._calls.rank, 0)
        if not isinstance(application, Application):
            raise InputError(f"an application is made by host.portals.application(...), not {application!r}")
        if application.rank != self._calls.rank:
            raise InputError(
                f"application '{application.name}' is on the card of rank {application.rank}, not of {self._calls.rank}"
            )
        return application

    def _allocated(self, memory: HpuMemory) -> HpuMemory:
        if self._hpu_memory(memory).variable is not None:
            raise InputError(f"'{memory.variable}' is a variable of a program; make memory with host.portals.hpu_alloc")
        return memory

    def _hpu_memory(self, memory: HpuMemory) -> HpuMemory:
        if not isinstance(memory, HpuMemory):
            raise InputError(f"HPU memory is made by host.portals.hpu_alloc(...), not {memory!r}")
        self._application(memory.application)
        return memory


_MOST_HPU_MEMORY = 64 << 20
"""The largest `hpu.memory` that a card may have, in bytes."""
