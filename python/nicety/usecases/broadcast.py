"""Broadcast: rank 0 sends bytes to every other rank, along a binomial tree.

| mode | the bytes are forwarded by |
|---|---|
| `rdma` | the host's CPU: it notices the message and posts a put to each child, which costs o per put |
| `portals4` | the card: triggered puts that were posted before fire once the message is in host memory |
| `spin-store` | handlers: from the card if the message is one packet, otherwise from host memory once it is complete |
| `spin-stream` | handlers: each packet from the card as it arrives |

The time is from the root's first post until the last process has noticed that it has every byte.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Unpack

from nicety.errors import InputError
from nicety.program.buffers import Buffer
from nicety.program.host import Host
from nicety.requests import BroadcastOptions
from nicety.shared.options import asked
from nicety.shared.typed import checked
from nicety.usecases.case import LATENCY, Card, Figure, Outcome, Point, Trial, UseCase, require_equal

_PT = 1
_MATCH_BITS = 7
_LARGEST = 1 << 31
"""Maximum size of a broadcast in bytes: handlers count bytes in 32 bits."""


def first_half(rank: int, ranks: int) -> int:
    """Return the distance from a rank to its first child in the binomial tree; 0 if the rank is a leaf.

    The next child is at half of that distance, and so on down to distance 1. If the number of ranks is no power of two,
    children beyond the last rank do not exist.
    """
    return 1 << (ranks - 1).bit_length() - 1 if rank == 0 else (rank & -rank) >> 1


def children(rank: int, ranks: int) -> list[int]:
    """Return a rank's children in the binomial tree. The child with the largest subtree is first."""
    half, found = first_half(rank, ranks), []
    while half:
        if rank + half < ranks:
            found.append(rank + half)
        half >>= 1
    return found


class Broadcast(UseCase):
    """A broadcast along a binomial tree, for each number of nodes and each size.

    Args:
        given: the arguments of `BroadcastOptions`.

    Raises:
        InputError: a number of nodes or a size is invalid.
    """

    name: ClassVar[str] = "broadcast"
    title: ClassVar[str] = "Broadcast"
    meaning: ClassVar[str] = "from the root's first post until the last process has noticed every byte"
    modes: ClassVar[Sequence[str]] = ("rdma", "portals4", "spin-store", "spin-stream")
    axis: ClassVar[str] = "nodes"
    figure: ClassVar[Figure] = LATENCY
    sources: ClassVar[dict[str, str]] = {
        "spin-store": "broadcast_store.c",
        "spin-stream": "broadcast_stream.c",
    }

    @checked
    def __init__(self, **given: Unpack[BroadcastOptions]) -> None:
        nodes, sizes = asked(BroadcastOptions, given).values()
        for count in nodes:
            if count < 2:  # noqa: PLR2004, a root and a receiver
                raise InputError(f"--nodes: a broadcast takes a root and a receiver, so 2 nodes or more, not {count}")
        for size in sizes:
            if not 1 <= size <= _LARGEST:
                raise InputError(f"--sizes: a broadcast has 1 to 2Gi bytes ({_LARGEST}), not {size}")
        self._points = [{"nodes": count, "size_bytes": size} for size in sizes for count in nodes]

    def points(self) -> Sequence[Point]:
        """The points: every number of nodes with every size."""
        return self._points

    def check(self, card: Card, mode: str, point: Point) -> None:
        """Raise an error if a process has more children than the card can hold triggered puts."""
        longest, triggered = len(children(0, point["nodes"])), card.count("limits.triggered")
        if mode == "portals4" and longest - 1 > triggered:
            raise InputError(
                f"--nodes {point['nodes']}: a process has up to {longest - 1} children, but the card holds {triggered} "
                "triggered puts; set limits.triggered"
            )

    def needs(self, _card: Card, _mode: str, point: Point) -> Mapping[str, int]:
        """Return a node's needs: a second portal table entry, and memory for the bytes."""
        return {"limits.portal_table": _PT + 1, "host.memory": point["size_bytes"]}

    def run(self, trial: Trial) -> Outcome:
        """Broadcast random bytes from rank 0, and compare them with the bytes that every other rank received."""
        nodes, size = trial.point["nodes"], trial.point["size_bytes"]
        content = trial.rng().integers(0, 256, size, "uint8")

        async def root(host: Host) -> int:
            portals = host.portals
            out = host.alloc(size)
            out.array[:] = content
            portals.pt_alloc(pt=_PT)
            md = portals.md_bind(out, options=["event_send_disable"])
            await host.barrier()
            begun = host.now_ps
            for child in children(0, nodes):
                await portals.put(md, size, to=child, pt=_PT, match_bits=_MATCH_BITS)
            return begun

        async def process(host: Host) -> tuple[Buffer, int]:
            return await _process(host, trial, size)

        programs: dict[int, Any] = dict.fromkeys(range(1, nodes), process)
        run = trial.cluster(nodes).run({0: root, **programs})
        begun = run.results[0]
        for rank in range(1, nodes):
            require_equal(run.results[rank][0].array, content, f"rank {rank} received")
        return Outcome(run, max(run.results[rank][1] for rank in range(1, nodes)) - begun)


async def _process(host: Host, trial: Trial, size: int) -> tuple[Buffer, int]:
    """Run a process other than the root. Return its buffer, and the time at which it noticed the last byte."""
    portals = host.portals
    below = children(host.rank, host.ranks)
    back, arrived = host.alloc(size), portals.ct_alloc()
    portals.pt_alloc(pt=_PT)
    # A node without children forwards nothing, and needs no handlers.
    handlers = trial.handlers if below else None
    state = _state(trial.card, host.rank, host.ranks)
    attached = None if handlers is None else portals.attach(handlers, state=state)
    # The counter counts bytes. The number of messages varies, since with streaming every packet arrives as a message.
    await portals.me_append(back, pt=_PT, match_bits=_MATCH_BITS, options=_COUNTED, ct=arrived, handlers=attached)
    if below and trial.mode == "portals4":
        md = portals.md_bind(back, options=["event_send_disable"])
        for child in below:
            await portals.triggered_put(md, size, to=child, pt=_PT, match_bits=_MATCH_BITS, ct=arrived, threshold=size)
    await host.barrier()
    await portals.ct_wait(arrived, size)
    if below and trial.mode == "rdma":
        md = portals.md_bind(back, options=["event_send_disable"])
        for child in below:
            await portals.put(md, size, to=child, pt=_PT, match_bits=_MATCH_BITS)
    return back, host.now_ps


_COUNTED = ["op_put", "event_comm_disable", "event_link_disable", "event_ct_comm", "event_ct_bytes"]


def _state(card: Card, rank: int, ranks: int) -> bytes:
    """Return `broadcast_t` of broadcast.h as bytes."""
    half = first_half(rank, ranks)
    return struct.pack("<Q5I4x", _MATCH_BITS, rank, ranks, half, card.packet_bytes, 0)
