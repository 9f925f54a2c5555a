"""Hosts, as their programs see them."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Coroutine, Generator, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

from nicety import _native
from nicety.errors import InputError
from nicety.program.buffers import Buffer
from nicety.program.channels.card import Channels
from nicety.program.frames import Frames
from nicety.program.portals.card import Portals
from nicety.program.rdma import Gpu, Rdma
from nicety.program.sockets import Sockets
from nicety.program.vni import Vni

if TYPE_CHECKING:
    from nicety.program.calls import Loaded

_T = TypeVar("_T")

ANY = None
"""Any source, or any tag."""

Extent = Buffer | tuple[Buffer, Iterable[tuple[int, int]]]
"""Memory that a computation goes through: a buffer, or blocks of one, pairs of offset and length."""


@dataclass(frozen=True)
class Received:
    """A message that was received: the rank it came from, its tag, its length in bytes."""

    source: int
    tag: int
    length_bytes: int


class PendingRecv:
    """A receive that has been posted: `received = await pending` waits for its message, once.

    Raises, where it is awaited:
        RunError: where the message is longer than the buffer, or the card had no more match entries.
    """

    def __init__(self, calls: _native.MessageCalls, rank: int, posted: int) -> None:
        self._calls = calls
        self._rank = rank
        self._posted = posted
        self._awaited = False

    def __await__(self) -> Generator[Any, Any, Received]:
        # No generator of its own, so that the call behind it still finds the program's line.
        if self._awaited:
            raise InputError(f"{self!r} was awaited before; post another receive")
        self._awaited = True
        return self._calls.received(self._posted, Received).__await__()

    def __repr__(self) -> str:
        return f"<PendingRecv {self._posted} of rank {self._rank}>"


Program = Callable[["Host"], Coroutine[Any, Any, Any]]
"""An async function of one host."""


class Host:
    """A host of a cluster, as its program sees it: what a host has with any card.

    What only cards of one design have is behind `portals`, `channels`, `vni`, `rdma`, `socket` and `frames`. What
    is awaited takes virtual time; what is not is set-up, and takes none.
    """

    def __init__(self, calls: _native.Calls, loaded: Loaded, nic: str, uid: int) -> None:
        self._calls = calls
        self._messages = _native.MessageCalls(calls)
        self._loaded = loaded
        self._nic = nic
        self._uid = uid

    @property
    def rank(self) -> int:
        """This host's number."""
        return self._calls.rank

    @property
    def ranks(self) -> int:
        """How many hosts there are."""
        return self._calls.ranks

    @property
    def now_ps(self) -> int:
        """The current instant of virtual time in picoseconds."""
        return self._calls.now_ps

    @property
    def now_ns(self) -> float:
        """The current instant of virtual time in nanoseconds."""
        return self._calls.now_ps / 1000

    @cached_property
    def portals(self) -> Portals:
        """Portals, and handlers on the card, where the card has them.

        Raises:
            InputError: where it does not; it says what the card has, and which cards have Portals.
        """
        self._require("portals")
        return Portals(self._calls, self._loaded, self._uid)

    @cached_property
    def channels(self) -> Channels:
        """Processes on the card and channels to them, where the card has them.

        Raises:
            InputError: where it does not; it says what the card has, and which cards have channels.
        """
        self._require("channels")
        return Channels(self._calls, self._loaded)

    @cached_property
    def vni(self) -> Vni:
        """Virtual network interfaces for processes of this host, where the card has them.

        Raises:
            InputError: where it does not; it says what the card has, and which cards have virtual network interfaces.
        """
        self._require("vni")
        return Vni(self._calls)

    @cached_property
    def rdma(self) -> Rdma:
        """RDMA between registered memories, where the card has it.

        Raises:
            InputError: where it does not; it says what the card has, and which cards have RDMA.
        """
        self._require("rdma")
        return Rdma(self._calls)

    @cached_property
    def gpu(self) -> Gpu:
        """The graphics processor of this host, where the card reaches its memory.

        Raises:
            InputError: where it does not; it says which cards do.
        """
        self._require("gpu")
        return Gpu(self._calls)

    @cached_property
    def socket(self) -> Sockets:
        """Sockets of TCP and UDP, where the card is below the kernel's protocols.

        Raises:
            InputError: where it is not; it says what the card has, and which cards have sockets.
        """
        self._require("socket")
        return Sockets(self._calls)

    @cached_property
    def frames(self) -> Frames:
        """Handlers on frames, where the card is below the kernel's protocols and has processors for them.

        Raises:
            InputError: where it has none; it says what the card has.
        """
        self._require("frames")
        return Frames(self._calls, self._loaded)

    def _require(self, handle: str) -> None:
        try:
            self._calls.has(handle)
        except InputError as error:
            raise InputError(f"host.{handle} of rank {self.rank}, {self._nic}: {error}") from None

    def alloc(self, length_bytes: int) -> Buffer:
        """Allocate zeroed host memory.

        Raises:
            RunError: where the host has no more.
        """
        return Buffer(self._calls.alloc(length_bytes))

    def send(self, buffer: Buffer, *, to: int, tag: int = 0) -> Awaitable[None]:
        """Send a buffer to a rank's `recv` of the same tag, one's own included; it may be used again afterwards.

        A message waits for its receive. A long one may wait at its sender; `send` ends after `recv` has begun then.

        Args:
            buffer: the message.
            to: the rank.
            tag: a number of 63 bits.

        Raises:
            InputError: where there is no such rank, or the tag is too large.
        """
        return self._messages.send(buffer, to, tag)

    def recv(
        self, buffer: Buffer, *, source: int | None = ANY, tag: int | None = ANY, ignore: int = 0
    ) -> Awaitable[Received]:
        """Receive one message, from one rank or any, of one tag or any.

        A message that came before waits for it. One that finds its receive there takes less time: `post_recv`.

        Args:
            buffer: memory for the message.
            source: the rank it comes from.
            tag: its tag, a number of 63 bits.
            ignore: bits of the tag that are not compared: a message fits where `(its_tag ^ tag) & ~ignore` is 0. So a
                tag may have parts, as a kind above and a number in its lower byte; this takes any number of kind 5:

                    received = await host.recv(buffer, tag=0x500, ignore=0xFF)

        Raises:
            InputError: where there is no such rank, the tag is too large, or bits are ignored and there is no tag.
            RunError: where the message is longer than the buffer, or one was lost for want of room to wait in.
        """
        return self._messages.recv(buffer, source, tag, ignore, Received)

    def post_recv(
        self, buffer: Buffer, *, source: int | None = ANY, tag: int | None = ANY, ignore: int = 0
    ) -> Awaitable[PendingRecv]:
        """Post a receive, and do not wait for its message: `received = await pending` does that later.

        So a receive can be there before its message comes, which saves a copy or a way to the sender and back: post it,
        and let its sender know only then, by a `barrier` or a message. It stays there until a message comes; on a
        Portals card it is a match entry.

            pending = await host.post_recv(back, source=left)
            await host.barrier()
            await host.send(out, to=right)
            received = await pending

        `source`, `tag` and `ignore` say which messages fit, as with `recv`.

        Raises:
            InputError: see `recv`.
        """
        return self._messages.post_recv(buffer, source, tag, ignore, self._pending)

    def _pending(self, posted: int) -> PendingRecv:
        return PendingRecv(self._messages, self.rank, posted)

    def compute(
        self, *, ns: float = 0, cycles: int = 0, reads: Iterable[Extent] = (), writes: Iterable[Extent] = ()
    ) -> Awaitable[None]:
        """Compute on one of the host's CPUs.

        It takes `ns` and `cycles` together where it goes through no memory. Where it does, lines that are not in the
        cache come from memory meanwhile, and whatever takes longest counts; they are traffic of host memory. Only the
        time passes: the bytes are the program's to change.

        Args:
            ns: nanoseconds, rounded up to whole picoseconds.
            cycles: of the CPU's clock, `host.clock`.
            reads: what is read, in this order: buffers, or a buffer and blocks of it, pairs of offset and length.
            writes: what is written.
        """
        return self._messages.compute(ns, cycles, reads, writes)

    def copy(self, source: Buffer, to: Buffer) -> Awaitable[None]:
        """Copy a buffer with one of the host's CPUs, 16 bytes a cycle, or as memory has it; see `compute`.

        Raises:
            RunError: where the buffers differ in length.
        """
        return self._messages.copy(source, to)

    def barrier(self) -> Awaitable[None]:
        """Wait until every program of the cluster has come here, over the job launcher's own network."""
        return self._messages.barrier()

    def gather(self, *coroutines: Coroutine[Any, Any, _T]) -> Awaitable[list[_T]]:
        """Run coroutines at once, each as a thread of this host's program, and wait until all have ended.

            first, second = await host.gather(left(host), right(host))

        A thread has what the program has: the host, its buffers, its card. Each goes on where its own calls end, in
        virtual time. What is computed on the host's CPUs waits for a free one.

        Returns:
            What the coroutines returned, in the order in which they are given.

        Raises:
            Exception: what the first of them to fail raised, when all have ended.
        """
        given: tuple[object, ...] = coroutines
        for coroutine in given:
            if not isinstance(coroutine, Coroutine):
                what = f"not {type(coroutine).__name__}"
                raise InputError(f"gather takes coroutines, as in host.gather(send(host), receive(host)), {what}")
            if inspect.iscoroutine(coroutine) and inspect.getcoroutinestate(coroutine) != inspect.CORO_CREATED:
                raise InputError(f"gather: {coroutine!r} was given before, or awaited; call its function again")
        return self._calls.gather(list(coroutines))

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> object:
            raise AttributeError(f"a Host has no {name!r}{_instead(name)}", name=name, obj=self)

    def __repr__(self) -> str:
        return f"<Host, rank {self.rank} of {self.ranks}>"


_HANDLES = {"portals": Portals, "channels": Channels, "vni": Vni, "rdma": Rdma, "socket": Sockets, "frames": Frames}
"""The interfaces that only cards of one design have, by the name that a host has for them."""

_RENAMED = {"vni_process": ("vni", "process")}


def _instead(name: str) -> str:
    """A hint at the spelling, where a name that a host does not have is behind one of its handles."""
    found = [(handle, name) for handle, kind in _HANDLES.items() if not name.startswith("_") and hasattr(kind, name)]
    for handle, known in [_RENAMED[name]] if name in _RENAMED else found:
        member = getattr(_HANDLES[handle], known)
        if isinstance(member, property):
            return f"; write host.{handle}.{known}"
        awaited = str(inspect.signature(member).return_annotation).startswith("Awaitable")
        return f"; write {'await ' if awaited else ''}host.{handle}.{known}(...)"
    return ""
