"""Hosts as their programs see them."""

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
from nicety.program.ethernet.frames import Frames
from nicety.program.ethernet.xdp import Xdp
from nicety.program.portals.card import Portals
from nicety.program.rdma import Gpu, Rdma
from nicety.program.sockets import Sockets
from nicety.program.vni import Vni

if TYPE_CHECKING:
    from nicety.program.calls import Loaded

_T = TypeVar("_T")

ANY = None
"""Matches every source, or every tag."""

Extent = Buffer | tuple[Buffer, Iterable[tuple[int, int]]]
"""Memory that a computation accesses: a buffer, or a buffer and pairs of offset and length in it."""


@dataclass(frozen=True)
class Received:
    """A received message: its source rank, its tag, its length in bytes."""

    source: int
    tag: int
    length_bytes: int


class PendingRecv:
    """A posted receive: `received = await pending` waits for its message. It can be awaited once.

    Raises, where it is awaited:
        RunError: the message is longer than the buffer, or the card had no more match entries.
    """

    def __init__(self, calls: _native.MessageCalls, rank: int, posted: int) -> None:
        self._calls = calls
        self._rank = rank
        self._posted = posted
        self._awaited = False

    def __await__(self) -> Generator[Any, Any, Received]:
        # A plain method, so that an error in the call below still finds the program's line.
        if self._awaited:
            raise InputError(f"{self!r} was awaited before; post another receive")
        self._awaited = True
        return self._calls.received(self._posted, Received).__await__()

    def __repr__(self) -> str:
        return f"<PendingRecv {self._posted} of rank {self._rank}>"


Program = Callable[["Host"], Coroutine[Any, Any, Any]]
"""An async function that takes its host."""


class Host:
    """A host of a cluster as its program sees it: the features that all cards have.

    The features that only some designs of card have are in `portals`, `channels`, `vni`, `rdma`, `socket`, `frames` and
    `xdp`.
    Awaited calls take virtual time; others are set-up, and take none.
    """

    def __init__(self, calls: _native.Calls, loaded: Loaded, nic: str, uid: int) -> None:
        self._calls = calls
        self._messages = _native.MessageCalls(calls)
        self._loaded = loaded
        self._nic = nic
        self._uid = uid

    @property
    def rank(self) -> int:
        """This host's rank, from 0."""
        return self._calls.rank

    @property
    def ranks(self) -> int:
        """The number of hosts."""
        return self._calls.ranks

    @property
    def now_ps(self) -> int:
        """The current virtual time in picoseconds."""
        return self._calls.now_ps

    @property
    def now_ns(self) -> float:
        """The current virtual time in nanoseconds."""
        return self._calls.now_ps / 1000

    @cached_property
    def portals(self) -> Portals:
        """Portals, and handlers on the card, if the card has them.

        Raises:
            InputError: the card has no Portals; the text has the card's features, and the cards with Portals.
        """
        self._require("portals")
        return Portals(self._calls, self._loaded, self._uid)

    @cached_property
    def channels(self) -> Channels:
        """Processes on the card and channels to them, if the card has them.

        Raises:
            InputError: the card has no channels; the text has the card's features, and the cards with channels.
        """
        self._require("channels")
        return Channels(self._calls, self._loaded)

    @cached_property
    def vni(self) -> Vni:
        """Virtual network interfaces for processes of this host, if the card has them.

        Raises:
            InputError: the card has no such interfaces; the text has the card's features, and the cards with
                interfaces.
        """
        self._require("vni")
        return Vni(self._calls)

    @cached_property
    def rdma(self) -> Rdma:
        """RDMA between registered memories, if the card has it.

        Raises:
            InputError: the card has no RDMA; the text has the card's features, and the cards with RDMA.
        """
        self._require("rdma")
        return Rdma(self._calls)

    @cached_property
    def gpu(self) -> Gpu:
        """The graphics processor of this host, if the card can access its memory.

        Raises:
            InputError: the card cannot access the memory of a graphics processor; the text has the cards that can.
        """
        self._require("gpu")
        return Gpu(self._calls)

    @cached_property
    def socket(self) -> Sockets:
        """Sockets of TCP and UDP, if the kernel's network stack uses the card.

        Raises:
            InputError: the card has no sockets; the text has the card's features, and the cards with sockets.
        """
        self._require("socket")
        return Sockets(self._calls)

    @cached_property
    def frames(self) -> Frames:
        """Handlers on frames, if the kernel's network stack uses the card and the card has processors for them.

        Raises:
            InputError: the card has no handlers on frames; the text has the card's features.
        """
        self._require("frames")
        return Frames(self._calls, self._loaded)

    @cached_property
    def xdp(self) -> Xdp:
        """XDP programs in the driver, if the kernel's network stack uses the card.

        Raises:
            InputError: the card is of another kind, or its spec has no costs of XDP; the text has the card's features.
        """
        self._require("xdp")
        return Xdp(self._calls)

    def _require(self, handle: str) -> None:
        try:
            self._calls.has(handle)
        except InputError as error:
            raise InputError(f"host.{handle} of rank {self.rank}, {self._nic}: {error}") from None

    def alloc(self, length_bytes: int) -> Buffer:
        """Allocate zeroed host memory.

        Raises:
            RunError: the host has too little memory left.
        """
        return Buffer(self._calls.alloc(length_bytes))

    def send(self, buffer: Buffer, *, to: int, tag: int = 0) -> Awaitable[None]:
        """Send a buffer to a rank's `recv` of the same tag. The buffer may be reused afterwards.

        The rank may be this one.

        A message waits for its receive. A long message may wait at its sender: its `send` ends after `recv` has begun.

        Args:
            buffer: the bytes to send.
            to: the rank that receives.
            tag: a number of 63 bits.

        Raises:
            InputError: there is no such rank, or the tag is too large.
        """
        return self._messages.send(buffer, to, tag)

    def recv(
        self, buffer: Buffer, *, source: int | None = ANY, tag: int | None = ANY, ignore: int = 0
    ) -> Awaitable[Received]:
        """Receive one message, from one rank or any, of one tag or any.

        A message that arrives before its receive is kept. A message with a posted receive takes less time: see
        `post_recv`.

        Args:
            buffer: memory for the message.
            source: the source rank.
            tag: the message's tag, a number of 63 bits.
            ignore: bits of the tag that are not compared: a message matches if `(its_tag ^ tag) & ~ignore` is 0. So a
                tag may have parts, such as a kind above and a number in its lower byte. This receives a message of kind
                5 with any number:

                    received = await host.recv(buffer, tag=0x500, ignore=0xFF)

        Raises:
            InputError: there is no such rank, the tag is too large, or bits are ignored without a tag.
            RunError: the message is longer than the buffer, or the card dropped a message for lack of room.
        """
        return self._messages.recv(buffer, source, tag, ignore, Received)

    def post_recv(
        self, buffer: Buffer, *, source: int | None = ANY, tag: int | None = ANY, ignore: int = 0
    ) -> Awaitable[PendingRecv]:
        """Post a receive without waiting for its message: `received = await pending` waits for it later.

        A receive that precedes its message saves a copy or a round trip to the sender. Post the receive, and then
        notify the sender by a `barrier` or a message. The receive stays posted until a message arrives; on a Portals
        card it is a match entry.

            pending = await host.post_recv(back, source=left)
            await host.barrier()
            await host.send(out, to=right)
            received = await pending

        `source`, `tag` and `ignore` select messages, as with `recv`.

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

        Without `reads` and `writes`, the computation takes `ns` plus `cycles`. With them, the CPU fetches missing cache
        lines during the computation, and the slowest part determines the time. These lines count as traffic of host
        memory. The call moves no data; the program writes the bytes itself.

        Args:
            ns: nanoseconds, rounded up to whole picoseconds.
            cycles: cycles of the CPU's clock, `host.clock`.
            reads: the memory that is read, in this order: buffers, or pairs of a buffer and its blocks. A block is a
                pair of offset and length.
            writes: the memory that is written, in the same form.
        """
        return self._messages.compute(ns, cycles, reads, writes)

    def copy(self, source: Buffer, to: Buffer) -> Awaitable[None]:
        """Copy a buffer on one of the host's CPUs: 16 bytes per cycle, or slower if memory limits; see `compute`.

        Raises:
            RunError: the buffers differ in length.
        """
        return self._messages.copy(source, to)

    def barrier(self) -> Awaitable[None]:
        """Wait until every program of the cluster has reached the barrier, over the job launcher's own network."""
        return self._messages.barrier()

    def gather(self, *coroutines: Awaitable[_T]) -> Awaitable[list[_T]]:
        """Run coroutines concurrently, each as a thread of this host's program, and wait until all have ended.

            first, second = await host.gather(left(host), right(host))

        A call of the host, such as `host.send(...)`, or a posted receive may take the place of a coroutine.

        A thread shares the program's host, buffers and card. Each thread continues when its own call ends, in virtual
        time. A computation waits for a free CPU of the host.

        Returns:
            The return values of the coroutines, in the given order.

        Raises:
            Exception: the exception of the first coroutine that failed. It is raised when all have ended.
        """
        given: tuple[object, ...] = coroutines
        for coroutine in given:
            if not isinstance(coroutine, Awaitable):
                what = f"not {type(coroutine).__name__}"
                raise InputError(f"gather takes coroutines, as in host.gather(send(host), receive(host)), {what}")
            if inspect.iscoroutine(coroutine) and inspect.getcoroutinestate(coroutine) != inspect.CORO_CREATED:
                raise InputError(f"gather: {coroutine!r} was given before, or awaited; call its function again")
        begun = [each if isinstance(each, Coroutine) else _awaiting(each) for each in coroutines]
        return self._calls.gather(begun)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> object:
            raise AttributeError(f"a Host has no {name!r}{_instead(name)}", name=name, obj=self)

    def __repr__(self) -> str:
        return f"<Host, rank {self.rank} of {self.ranks}>"


async def _awaiting(awaitable: Awaitable[_T]) -> _T:
    """Await an object in a thread of its own."""
    return await awaitable


_HANDLES = {
    "portals": Portals,
    "channels": Channels,
    "vni": Vni,
    "rdma": Rdma,
    "socket": Sockets,
    "frames": Frames,
    "xdp": Xdp,
}
"""Maps a property of `Host` to its interface, which only some designs of card have."""

_RENAMED = {"vni_process": ("vni", "process")}


def _instead(name: str) -> str:
    """Return advice if a name that a host does not have is a member of one of the host's interfaces."""
    found = [(handle, name) for handle, kind in _HANDLES.items() if not name.startswith("_") and hasattr(kind, name)]
    for handle, known in [_RENAMED[name]] if name in _RENAMED else found:
        member = getattr(_HANDLES[handle], known)
        if isinstance(member, property):
            return f"; write host.{handle}.{known}"
        awaited = str(inspect.signature(member).return_annotation).startswith("Awaitable")
        return f"; write {'await ' if awaited else ''}host.{handle}.{known}(...)"
    return ""
