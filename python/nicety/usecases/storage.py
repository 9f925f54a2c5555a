"""RAID-5 storage: data servers, a server with the parity of their contents, and a client that writes and reads blocks.

A write changes the parity by the XOR of old and new contents. The data server computes this difference and sends it to
the parity server. The parity server XORs it into the parity and sends an acknowledgement. Then the data server notifies
the client.

| mode | a server's work is done by |
|---|---|
| `host` | its CPU: it notices a message, XORs in memory, and posts the next message |
| `spin` | handlers, packet by packet: read the old bytes, write the new ones, send the difference from the card |

| operation | timed period |
|---|---|
| `write` | from the client's post until it has noticed that the block is stored, and its difference is in the parity |
| `read` | from the client's post until it has noticed that the block has arrived |
| `rebuild` | from the first post of a server that has lost its contents until it has rebuilt them |
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import TYPE_CHECKING, Any, ClassVar, Unpack

from nicety.build.sources import Handlers
from nicety.errors import InputError
from nicety.program.buffers import Buffer
from nicety.program.host import Host
from nicety.requests import StorageOptions
from nicety.shared.options import arguments_of, asked
from nicety.shared.typed import checked
from nicety.usecases.case import LATENCY, Card, Figure, Outcome, Point, Trial, UseCase, require_equal

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

OPERATIONS: Sequence[str] = arguments_of(StorageOptions)["operations"].option.default
_PT = 1
_CLIENT = 0
_SOURCES, _LOCKS = 64, 64
"""`STORAGE_SOURCES` and `STORAGE_LOCKS` of storage.h."""
_EVENTS = 4 * _SOURCES
"""Number of events that a server's event queue holds."""
_LARGEST = 256 << 20
_MOST_REQUESTS = 10_000
_XORED_A_CYCLE = 8
"""Bytes that a CPU core XORs per cycle with all operands in its cache. Assumed: two loads of 128 bits for 16 bytes, and
one load per cycle.
"""


class Message(IntEnum):
    """The kinds of messages, with the numbers of storage.h."""

    READ = 1
    WRITE = 2
    DIFF = 3
    ACK = 4
    DONE = 5
    BLOCK = 6


class Storage(UseCase):
    """Writes to a RAID-5 array, reads from it, and the rebuild of one of its data servers, for each size.

    Args:
        given: the arguments of `StorageOptions`.

    Raises:
        InputError: an argument of the array is invalid.
    """

    name: ClassVar[str] = "storage"
    title: ClassVar[str] = "Storage"
    meaning: ClassVar[str] = "time of a write, of a read, and until a lost server has its contents again"
    modes: ClassVar[Sequence[str]] = ("host", "spin")
    axis: ClassVar[str] = "size_bytes"
    figure: ClassVar[Figure] = LATENCY
    sources: ClassVar[dict[str, str]] = {"spin": "storage.c"}

    @checked
    def __init__(self, **given: Unpack[StorageOptions]) -> None:
        sizes, operations, servers, requests = asked(StorageOptions, given).values()
        for operation in operations:
            if operation not in OPERATIONS:
                raise InputError(f"--operation: there is no operation {operation!r}; there are {', '.join(OPERATIONS)}")
        if not 2 <= servers <= _SOURCES - 2:  # noqa: PLR2004, with one data server the parity would be a copy
            raise InputError(
                f"--servers: an array has 2 to {_SOURCES - 2} data servers and one with the parity, not {servers}"
            )
        if not 1 <= requests <= _MOST_REQUESTS:
            raise InputError(f"--requests: 1 to {_MOST_REQUESTS} writes or reads are measured, not {requests}")
        for size in sizes:
            if not 1 <= size <= _LARGEST:
                raise InputError(f"--sizes: a block has 1 to 256Mi bytes ({_LARGEST}), not {size}")
        self._points = [
            {"operation": operation, "servers": servers, "requests": requests, "size_bytes": size}
            for operation in dict.fromkeys(operations)
            for size in sizes
        ]

    def points(self) -> Sequence[Point]:
        """The points: every operation with every size."""
        return self._points

    def nodes(self, point: Point) -> int:
        """Return the number of data servers, and 2 for the client and the parity server."""
        return int(point["servers"]) + 2

    def payload_bytes(self, point: Point) -> int:
        """Return the bytes of the block, or of the rebuilt contents."""
        return int(point["size_bytes"])

    def check(self, card: Card, mode: str, point: Point) -> None:
        """Raise an error if HPU memory has no room for the handlers' locks and a packet per processor."""
        needed, memory = len(parity_state(card)), card.size_bytes("hpu.memory")
        # During a rebuild, a server has the handlers of a data server and those of the parity server.
        both = needed + len(data_state(card, 0))
        if mode == "spin" and (both if point["operation"] == "rebuild" else needed) > memory:
            raise InputError(
                f"the servers' handlers keep up to {both} bytes in HPU memory, a packet for each of "
                f"{card.count('hpu.cores')} processors among them, and the card has {memory}; set hpu.memory"
            )

    def needs(self, _card: Card, mode: str, point: Point) -> Mapping[str, int]:
        """Return the needs of a server or of the client, whichever node needs more.

        A server needs memory for its contents. In mode `host` it also needs a match entry and a buffer per other node.
        The client needs memory for its blocks. Before a rebuild, the lengths of blocks are random, and at most those of
        the server's contents.
        """
        size, servers, rebuilt = point["size_bytes"], point["servers"], point["operation"] == "rebuild"
        region = size if rebuilt else 2 * size
        if mode == "spin":
            blocks = size if point["operation"] == "read" else servers * size
            return {
                "limits.portal_table": _PT + 1,
                "limits.match_entries": 4 if rebuilt else 3,
                "host.memory": max(region, blocks),
            }
        return {
            "limits.portal_table": _PT + 1,
            "limits.match_entries": servers + 1,
            "limits.descriptors": 3 if rebuilt else 2,
            "limits.event_queues": 2,
            "limits.event_queue_depth": _EVENTS,
            "host.memory": (servers + 3) * region,
        }

    def run(self, trial: Trial) -> Outcome:
        """Run an operation. Compare every server's contents and all bytes read with a sequential reference."""
        plan = _Plan.of(trial)
        array = _Array(trial, plan)
        programs: dict[int, Any] = {_CLIENT: array.client, plan.parity: array.parity_server}
        run = trial.cluster(plan.parity + 1).run(programs | dict.fromkeys(plan.data, array.data_server))
        expected = plan.contents.copy()
        for round_ in plan.writes:
            for write in round_:
                expected[write.server - 1, write.offset : write.offset + len(write.block)] = write.block
        for server in plan.data:
            require_equal(run.results[server].array, expected[server - 1], f"data server {server} has")
        parity = parity_of(expected)
        require_equal(run.results[plan.parity].array, parity, "the parity server has")
        return Outcome(run, -(-sum(array.times) // len(array.times)))


def parity_of(rows: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """Return the parity of rows, which is their XOR."""
    import numpy as np

    parity: npt.NDArray[np.uint8] = np.bitwise_xor.reduce(rows, axis=0)
    return parity


@dataclass(frozen=True)
class _Write:
    server: int
    offset: int
    block: npt.NDArray[np.uint8]


@dataclass(frozen=True)
class _Plan:
    """The initial contents of the servers, and the client's operations.

    The writes of one round go to different servers and are in flight concurrently.
    """

    operation: str
    parity: int
    contents: npt.NDArray[np.uint8]
    writes: list[list[_Write]]
    reads: list[tuple[int, int, int]]
    lost: int | None

    @property
    def data(self) -> range:
        """The ranks of the data servers."""
        return range(1, self.parity)

    @staticmethod
    def of(trial: Trial) -> _Plan:
        point, rng = trial.point, trial.rng()
        operation, size, requests, parity = (
            point["operation"],
            point["size_bytes"],
            point["requests"],
            point["servers"] + 1,
        )
        rebuilt = operation == "rebuild"
        # The places of blocks are random in a region of twice a block, so blocks overlap.
        region = size if rebuilt else 2 * size
        contents = rng.integers(0, 256, (parity - 1, region), "uint8")

        def write(server: int, length: int) -> _Write:
            return _Write(server, int(rng.integers(0, region - length + 1)), rng.integers(0, 256, length, "uint8"))

        writes, reads = [], []
        if operation == "write":
            writes = [[write(1 + number % (parity - 1), size)] for number in range(requests)]
        elif rebuilt:
            lengths = rng.integers(1, size + 1, (requests, parity - 1))
            writes = [[write(1 + i, int(length)) for i, length in enumerate(row)] for row in lengths]
        else:
            reads = [(1 + number % (parity - 1), int(rng.integers(0, size + 1)), size) for number in range(requests)]
        lost = int(rng.integers(1, parity)) if rebuilt else None
        return _Plan(operation, parity, contents, writes, reads, lost)

    def arrivals(self, rank: int) -> tuple[int, int]:
        """Return the number of messages that a server's CPU serves before a server is lost, and after that."""
        if rank == self.parity:
            before = sum(map(len, self.writes))
        else:
            # Each write causes two messages: the write, and the parity server's acknowledgement.
            before = 2 * sum(write.server == rank for round_ in self.writes for write in round_)
            before += sum(server == rank for server, _, _ in self.reads)
        return before, int(self.lost not in (None, rank))


class _Array:
    """The programs of an array's nodes."""

    def __init__(self, trial: Trial, plan: _Plan) -> None:
        self.trial = trial
        self.plan = plan
        self.times: list[int] = []

    async def client(self, host: Host) -> None:
        """Write or read all blocks, and record the times."""
        portals = host.portals
        plan, finished, done = self.plan, 0, portals.ct_alloc()
        longest = max((len(write.block) for round_ in plan.writes for write in round_), default=0)
        out = host.alloc(longest * len(plan.data))
        back = host.alloc(max((length for _, _, length in plan.reads), default=0))
        md = portals.md_bind(out, options=_SILENT)
        portals.pt_alloc(pt=_PT)
        for bits, buffer in ((Message.DONE, out[:0]), (Message.BLOCK, back)):
            await portals.me_append(buffer, pt=_PT, match_bits=bits, options=_COUNTED, ct=done)
        await host.barrier()
        for round_ in plan.writes:
            for number, write in enumerate(round_):
                out.array[number * longest :][: len(write.block)] = write.block
            begun = host.now_ps
            for number, write in enumerate(round_):
                await portals.put(
                    md,
                    len(write.block),
                    to=write.server,
                    pt=_PT,
                    match_bits=Message.WRITE,
                    local_offset=number * longest,
                    hdr_data=write.offset,
                )
            finished += len(round_)
            await portals.ct_wait(done, finished)
            if plan.operation == "write":
                self.times.append(host.now_ps - begun)
        for server, offset, length in plan.reads:
            begun = host.now_ps
            await _ask(host, md, server, offset, length)
            finished += 1
            await portals.ct_wait(done, finished)
            self.times.append(host.now_ps - begun)
            require_equal(back.array, plan.contents[server - 1, offset : offset + length], "the client has read")
        await host.barrier()

    async def data_server(self, host: Host) -> Buffer:
        """Serve the client. If the plan loses this server, clear its contents and rebuild them."""
        disk = host.alloc(self.plan.contents.shape[1])
        disk.array[:] = self.plan.contents[host.rank - 1]
        state = data_state(self.trial.card, self.plan.parity)
        cpu = await self._set_up(host, disk, "data", (Message.READ, Message.WRITE, Message.ACK), state)
        arrived = await self._blocks_are_merged(host, disk) if host.rank == self.plan.lost else None
        await self._serve(host, cpu, wait_for_client=True)
        if host.rank != self.plan.lost:
            await self._serve(host, cpu)
            return disk
        disk.array[:] = 0  # the replacement disk is empty
        md = host.portals.md_bind(disk, options=_SILENT)
        others = [rank for rank in range(1, self.plan.parity + 1) if rank != host.rank]
        begun = host.now_ps
        for rank in others:
            await _ask(host, md, rank, 0, len(disk))
        if cpu is not None:
            await cpu.serve(len(others))
        elif arrived is not None:
            await host.portals.ct_wait(arrived, len(others))
        self.times.append(host.now_ps - begun)
        return disk

    async def parity_server(self, host: Host) -> Buffer:
        """Serve the data servers: keep the parity."""
        disk = host.alloc(self.plan.contents.shape[1])
        disk.array[:] = parity_of(self.plan.contents)
        cpu = await self._set_up(host, disk, "parity", (Message.READ, Message.DIFF), parity_state(self.trial.card))
        await self._serve(host, cpu, wait_for_client=True)
        await self._serve(host, cpu)
        return disk

    async def _set_up(self, host: Host, disk: Buffer, role: str, takes: Sequence[int], state: bytes) -> _Cpu | None:
        """Attach handlers for a server's messages. Without handlers, return the object that serves them on the CPU."""
        portals = host.portals
        if self.trial.handlers is None:
            return await _Cpu.of(host, disk, self.plan.parity)
        portals.pt_alloc(pt=_PT)
        attached = portals.attach(_role(self.trial.handlers, role), state=state)
        for bits in takes:
            await portals.me_append(disk, pt=_PT, match_bits=bits, options=_QUIET, handlers=attached)
        return None

    async def _blocks_are_merged(self, host: Host, disk: Buffer) -> int | None:
        """Attach handlers that XOR arriving blocks into the disk. Return the counter of blocks; None in mode `host`."""
        portals = host.portals
        if self.trial.handlers is None:
            return None
        attached, arrived = (
            portals.attach(_role(self.trial.handlers, "parity"), state=parity_state(self.trial.card)),
            portals.ct_alloc(),
        )
        await portals.me_append(disk, pt=_PT, match_bits=Message.BLOCK, options=_COUNTED, ct=arrived, handlers=attached)
        return arrived

    async def _serve(self, host: Host, cpu: _Cpu | None, *, wait_for_client: bool = False) -> None:
        """Serve messages on the CPU until the client is done, or for a rebuild. In mode `spin` the card serves them."""
        before, afterwards = self.plan.arrivals(host.rank)
        if wait_for_client:
            await host.barrier()
        if cpu is not None:
            await cpu.serve(before if wait_for_client else afterwards)
        if wait_for_client:
            await host.barrier()


_SILENT = ["event_send_disable"]
_QUIET = ["op_put", "event_comm_disable", "event_link_disable"]
_COUNTED = [*_QUIET, "event_ct_comm"]


@dataclass(frozen=True)
class _Cpu:
    """A server's CPU, which serves messages in mode `host`.

    Each sender's bytes arrive in a buffer of their own, since the disk's old contents are needed for the difference.
    """

    host: Host
    eq: int
    parity: int
    disk: Buffer
    disk_md: int
    changes: Buffer
    changes_md: int
    arrived: dict[int, Buffer]

    @staticmethod
    async def of(host: Host, disk: Buffer, parity: int) -> _Cpu:
        """Append a match entry for each of the other ranks."""
        portals = host.portals
        eq, changes = portals.eq_alloc(_EVENTS), host.alloc(len(disk))
        portals.pt_alloc(pt=_PT, eq=eq)
        arrived = {rank: host.alloc(len(disk)) for rank in range(host.ranks) if rank != host.rank}
        for rank, buffer in arrived.items():
            options = ["op_put", "event_link_disable"]
            await portals.me_append(buffer, pt=_PT, ignore_bits=(1 << 64) - 1, source=rank, options=options)
        disk_md, changes_md = (portals.md_bind(buffer, options=_SILENT) for buffer in (disk, changes))
        return _Cpu(host, eq, parity, disk, disk_md, changes, changes_md, arrived)

    async def serve(self, messages: int) -> None:
        """Serve `messages` messages."""
        host = self.host
        for _ in range(messages):
            event = await host.portals.eq_wait(self.eq)
            sender, word, new = event.initiator, event.hdr_data, self.arrived[event.initiator][: event.mlength_bytes]
            match event.match_bits:
                case Message.READ:
                    offset, length = divmod(word, 1 << 32)
                    await self._put(sender, Message.BLOCK, (self.disk_md, offset, length))
                case Message.WRITE:
                    await self._xor(new, self.disk[word : word + len(new)], keep_changes=True)
                    await self._put(self.parity, Message.DIFF, (self.changes_md, 0, len(new)), word)
                case Message.DIFF:
                    await self._xor(new, self.disk[word : word + len(new)])
                    await self._put(sender, Message.ACK)
                case Message.ACK:
                    await self._put(_CLIENT, Message.DONE)
                case _:
                    await self._xor(new, self.disk)

    async def _put(self, to: int, what: Message, part: tuple[int, int, int] | None = None, word: int = 0) -> None:
        """Post a message. `part` is a memory descriptor, an offset and a length; without it the message is empty."""
        md, offset, length = part or (self.disk_md, 0, 0)
        await self.host.portals.put(md, length, to=to, pt=_PT, match_bits=what, local_offset=offset, hdr_data=word)

    async def _xor(self, new: Buffer, place: Buffer, *, keep_changes: bool = False) -> None:
        """XOR arrived bytes into a place of the disk. With `keep_changes`, store the bytes and keep the XOR instead."""
        changes = [self.changes[: len(new)]] if keep_changes else []
        cycles = -(-len(new) // _XORED_A_CYCLE)
        await self.host.compute(cycles=cycles, reads=[new, place], writes=[place, *changes])
        if keep_changes:
            changes[0].array[:] = place.array ^ new.array
            place.array[:] = new.array
        else:
            place.array[:] ^= new.array


async def _ask(host: Host, md: int, server: int, offset: int, length: int) -> None:
    """Request a block from a server."""
    await host.portals.put(md, 0, to=server, pt=_PT, match_bits=Message.READ, hdr_data=offset << 32 | length)


def _role(handlers: Handlers, role: str) -> Handlers:
    """Return the handlers for a role: `data` for a data server, or `parity`."""
    return replace(handlers, header=f"{role}_header", payload=f"{role}_payload")


def _room(card: Card) -> tuple[int, bytes]:
    """Return the length of a packet, rounded up as handlers store it, and zeroed bytes for a packet per processor."""
    packet = -(-card.packet_bytes // 16) * 16
    return packet, bytes(packet * card.count("hpu.cores"))


def data_state(card: Card, parity: int) -> bytes:
    """Return `data_t` of storage.h as bytes."""
    packet, room = _room(card)
    return struct.pack("<2I24x", parity, packet) + room


def parity_state(card: Card) -> bytes:
    """Return `parity_t` of storage.h as bytes."""
    packet, room = _room(card)
    return struct.pack("<I12x", packet) + bytes(8 * (_SOURCES + _LOCKS)) + room
