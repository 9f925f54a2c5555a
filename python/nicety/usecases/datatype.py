"""Strided and scattered receive: the blocks of a message are written to separate places in host memory.

| mode | the blocks are scattered by |
|---|---|
| `rdma` | the host's CPU, which copies block by block once the message is in host memory |
| `spin` | payload handlers, which write each part of a packet to its place |

The layouts are `vector`, blocks of one length that begin twice that length apart, and `list`, blocks of random lengths
at random distances. For a `list`, HPU memory has a list of offsets. The time is from the sender's post until the
receiving program knows that every block is in its place.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Unpack

from nicety.errors import InputError
from nicety.program.buffers import Buffer
from nicety.program.host import Host
from nicety.requests import DatatypeOptions
from nicety.shared.options import asked
from nicety.shared.typed import checked
from nicety.usecases.case import BANDWIDTH, Card, Figure, Outcome, Point, Trial, UseCase, require_equal
from nicety.usecases.transfer import arrival, transfer

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

LAYOUTS = ("vector", "list")
_LARGEST = 1 << 30
"""Maximum size of a message in bytes. Its layout spans twice that size, and handlers count bytes in 32 bits."""
_MOST_BLOCKS = 1 << 22
"""Maximum number of blocks by default: the number of bytes in a message of 4 MiB."""
_LONG_BLOCK, _TOGETHER = 256, 1 << 14
"""If the mean block is shorter than `_LONG_BLOCK` bytes, numpy places `_TOGETHER` blocks at a time."""
_UNTOUCHED = 0xA5
"""The value of the bytes between blocks. These bytes must be unchanged after a run."""
_BLOCK_CYCLES = 8
"""Cycles of a CPU core per block, in addition to its bytes. Assumed: the loop loads or computes an offset and a length,
calls a copy, and ends with a branch. These are some 16 instructions at 2 per cycle.
"""
_COPIED_A_CYCLE = 16
"""Bytes that a CPU core copies per cycle. Assumed: a load and a store of 128 bits."""


_DEFAULT_BLOCKS = [16 << power for power in range(15)]
"""The default lengths of blocks: 16 B to 256 KiB."""
_DEFAULT_LIST = 1 << 19
"""Maximum size of a list with the default lengths: half of the HPU memory of the shipped cards."""


def default_blocks(size: int, layout: str) -> list[int]:
    """Return the default lengths of blocks: the powers of two from 16 B to 256 KiB that divide the message.

    Lengths that give more than 4 Mi blocks are left out, and for a `list` those with a list above 512 KiB. If no length
    remains, the whole message is one block.
    """
    fitting = [
        block
        for block in _DEFAULT_BLOCKS
        if size % block == 0
        and size // block <= _MOST_BLOCKS
        and (layout == "vector" or _list_bytes(size // block) <= _DEFAULT_LIST)
    ]
    return fitting or [size]


def _list_bytes(blocks: int) -> int:
    """Return the bytes of HPU memory for a list of `blocks` blocks."""
    return 8 * (blocks + 2)


@dataclass(frozen=True)
class Layout:
    """The places of a message's blocks in host memory.

    Attributes:
        lengths: the length of each block in bytes, in the order of the message.
        places: the offset of each block's first byte in host memory.
    """

    lengths: npt.NDArray[np.int64]
    places: npt.NDArray[np.int64]

    @property
    def span_bytes(self) -> int:
        """The bytes from the start of the first block to the end of the last one."""
        return int(self.places[-1] + self.lengths[-1])

    def scatter(self, message: npt.NDArray[np.uint8], memory: npt.NDArray[np.uint8]) -> None:
        """Copy the blocks of a message to their places in memory."""
        import numpy as np

        ends = np.cumsum(self.lengths)
        starts = ends - self.lengths
        if message.size >= _LONG_BLOCK * len(ends):
            for start, end, place in zip(starts.tolist(), ends.tolist(), self.places.tolist(), strict=True):
                memory[place : place + end - start] = message[start:end]
            return
        # Short blocks are placed in groups by an index per byte. An index has 8 bytes, so a group is limited.
        for first in range(0, len(ends), _TOGETHER):
            some = slice(first, first + _TOGETHER)
            begin, end = int(starts[some][0]), int(ends[some][-1])
            offsets = np.repeat(self.places[some] - starts[some], self.lengths[some])
            memory[offsets + np.arange(begin, end)] = message[begin:end]

    def state(self, layout: str) -> bytes:
        """Return `vector_t` or `list_t` of datatype.h as bytes."""
        import numpy as np

        if layout == "vector":
            stride = self.places[1] if len(self.places) > 1 else 2 * self.lengths[0]
            return struct.pack("<2I", self.lengths[0], stride)
        ends = np.cumsum(self.lengths)
        table = np.zeros((len(self.lengths) + 1, 2), "<u4")
        table[1:, 0] = ends
        table[:-1, 1] = self.places
        return struct.pack("<2I", len(self.lengths), 0) + table.tobytes()


def layout_of(name: str, size: int, block: int, rng: np.random.Generator) -> Layout:
    """Return the layout of a message of `size` bytes. A block has `block` bytes, exactly or in the mean."""
    import numpy as np

    count = size // block
    if name == "vector":
        return Layout(np.full(count, block, np.int64), 2 * block * np.arange(count, dtype=np.int64))
    cuts = np.sort(rng.choice(size - 1, count - 1, replace=False) + 1)
    lengths = np.diff(np.concatenate(([0], cuts, [size])))
    gaps = rng.integers(0, 2 * block, count, endpoint=True)
    return Layout(lengths, np.cumsum(lengths + gaps) - lengths)


class Datatype(UseCase):
    """A strided or scattered receive, for each block length.

    Args:
        given: the arguments of `DatatypeOptions`.

    Raises:
        InputError: a size, a block length or the layout is invalid.
    """

    name: ClassVar[str] = "datatype"
    title: ClassVar[str] = "Datatype"
    meaning: ClassVar[str] = "payload over the time from the sender's post until every block is in place"
    modes: ClassVar[Sequence[str]] = ("rdma", "spin")
    axis: ClassVar[str] = "block_bytes"
    figure: ClassVar[Figure] = BANDWIDTH

    @checked
    def __init__(self, **given: Unpack[DatatypeOptions]) -> None:
        size, blocks, layout = asked(DatatypeOptions, given).values()
        if layout not in LAYOUTS:
            raise InputError(f"--layout: one of {' and '.join(LAYOUTS)} at a time, not {layout!r}")
        if not 0 < size <= _LARGEST:
            raise InputError(f"--size: a message has 1 to 1Gi bytes ({_LARGEST}), not {size}")
        if blocks is None:
            blocks = default_blocks(size, layout)
        for block in blocks:
            if not 0 < block <= size or size % block:
                raise InputError(
                    f"--blocks: blocks of {block} bytes do not divide a message of {size}; name divisors of it, as in "
                    "--size 4Mi --blocks 16:256Ki"
                )
            if size // block > _MOST_BLOCKS:
                raise InputError(
                    f"--blocks: a message has 4Mi blocks at most ({_MOST_BLOCKS}), not {size // block} of {block} "
                    f"bytes; name blocks of {-(-size // _MOST_BLOCKS)} bytes or more"
                )
        self._layout = layout
        self._points = [{"layout": layout, "size_bytes": size, "block_bytes": block} for block in blocks]

    def points(self) -> Sequence[Point]:
        """The points: one for each block length."""
        return self._points

    def source(self, mode: str) -> str | None:
        """Return the name of the handlers for the layout."""
        return f"datatype_{self._layout}.c" if mode == "spin" else None

    def payload_bytes(self, point: Point) -> int:
        """Return the size of the message in bytes."""
        return int(point["size_bytes"])

    def check(self, card: Card, mode: str, point: Point) -> None:
        """Raise an error if the list does not fit into HPU memory."""
        blocks = point["size_bytes"] // point["block_bytes"]
        needed, memory = _list_bytes(blocks), card.size_bytes("hpu.memory")
        if mode == "spin" and point["layout"] == "list" and needed > memory:
            raise InputError(
                f"the list of {blocks} blocks takes {needed} bytes of HPU memory, but the card has {memory}; name "
                "longer blocks, or set hpu.memory"
            )

    def needs(self, _card: Card, mode: str, point: Point) -> Mapping[str, int]:
        """Return a node's needs: a second portal table entry, and memory for the blocks and the gaps between them.

        A gap of a `list` is random, and at most twice the mean length of a block. In mode `rdma` the message is in
        host memory as well.
        """
        size, block = point["size_bytes"], point["block_bytes"]
        gaps = (size - block) * (2 if point["layout"] == "list" else 1)
        return {"limits.portal_table": 2, "host.memory": size + gaps + (size if mode == "rdma" else 0)}

    def run(self, trial: Trial) -> Outcome:
        """Scatter random bytes. Compare the whole memory with numpy's result, also the bytes between the blocks."""
        import numpy as np

        point, rng = trial.point, trial.rng()
        size, layout = point["size_bytes"], layout_of(self._layout, point["size_bytes"], point["block_bytes"], rng)
        content = rng.integers(0, 256, size, np.uint8)

        async def receiver(host: Host) -> Buffer:
            scattered = host.alloc(layout.span_bytes)
            scattered.array[:] = _UNTOUCHED
            if trial.handlers is not None:
                await arrival(host, scattered, host.portals.attach(trial.handlers, state=layout.state(self._layout)))
                return scattered
            contiguous = host.alloc(size)
            await arrival(host, contiguous)
            blocks = list(zip(layout.places.tolist(), layout.lengths.tolist(), strict=True))
            cycles = int((_BLOCK_CYCLES - (-layout.lengths // _COPIED_A_CYCLE)).sum())
            await host.compute(cycles=cycles, reads=[contiguous], writes=[(scattered, blocks)])
            layout.scatter(contiguous.array, scattered.array)
            return scattered

        outcome, scattered = transfer(trial, content, receiver)
        expected: npt.NDArray[Any] = np.full(layout.span_bytes, _UNTOUCHED, np.uint8)
        layout.scatter(content, expected)
        require_equal(scattered.array, expected, "rank 1 has")
        return outcome
