"""Accumulate: an arriving array of complex numbers is multiplied into an array in host memory, element by element.

| mode | the multiplication is done by |
|---|---|
| `rdma` | the host's CPU, which processes both arrays once the message is in host memory |
| `spin` | payload handlers, which fetch their part of the array from host memory, and write the products back |

The time is from the sender's post until the receiving program knows that the products are in host memory. A complex
number is two 32-bit floats.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, Unpack

from nicety.errors import InputError
from nicety.program.buffers import Buffer
from nicety.program.host import Host
from nicety.requests import AccumulateOptions
from nicety.shared.options import asked
from nicety.shared.typed import checked
from nicety.usecases.case import BANDWIDTH, Card, Figure, Outcome, Point, Trial, UseCase, require_equal
from nicety.usecases.transfer import arrival, transfer

_NUMBER_BYTES = 8
_LARGEST = 1 << 31
"""Maximum size of an array in bytes: handlers count bytes in 32 bits."""
_PAIR_CYCLES = 3
"""Cycles of a CPU core for two products with all operands in its cache. Assumed: a vector of 128 bits holds two
numbers. Their product takes two multiplications, an alternating addition and three shuffles; a core has one shuffle
unit.
"""


class Accumulate(UseCase):
    """An array that is multiplied into another array, for each size.

    Args:
        given: the arguments of `AccumulateOptions`.

    Raises:
        InputError: a size is no multiple of a complex number's size.
    """

    name: ClassVar[str] = "accumulate"
    title: ClassVar[str] = "Accumulate"
    meaning: ClassVar[str] = "payload over the time from the sender's post until the products are in place"
    modes: ClassVar[Sequence[str]] = ("rdma", "spin")
    axis: ClassVar[str] = "size_bytes"
    figure: ClassVar[Figure] = BANDWIDTH
    sources: ClassVar[dict[str, str]] = {"spin": "accumulate.c"}

    @checked
    def __init__(self, **given: Unpack[AccumulateOptions]) -> None:
        sizes = asked(AccumulateOptions, given)["sizes"]
        for size in sizes:
            if size % _NUMBER_BYTES or not 0 < size <= _LARGEST:
                raise InputError(f"--sizes: an array of complex numbers has 8, 16, 24 ... bytes, up to 2Gi, not {size}")
        self._points = [{"size_bytes": size} for size in sizes]

    def points(self) -> Sequence[Point]:
        """The points: one for each size."""
        return self._points

    def payload_bytes(self, point: Point) -> int:
        """Return the size of the arriving array in bytes."""
        return int(point["size_bytes"])

    def check(self, card: Card, mode: str, _point: Point) -> None:
        """Raise an error if packets would split a complex number."""
        if mode == "spin" and card.packet_bytes % _NUMBER_BYTES:
            raise InputError(
                f"packets of {card.packet_bytes} bytes split complex numbers of {_NUMBER_BYTES}; set packet.payload to "
                f"a multiple, such as {card.packet_bytes // _NUMBER_BYTES * _NUMBER_BYTES} B"
            )

    def needs(self, _card: Card, mode: str, point: Point) -> Mapping[str, int]:
        """Return a node's needs: a second portal table entry, and memory for one array (mode `rdma`: for two)."""
        return {"limits.portal_table": 2, "host.memory": point["size_bytes"] * (2 if mode == "rdma" else 1)}

    def notes(self, card: Card, modes: Sequence[str]) -> Sequence[str]:
        """Return a note if the handler cores have no floating-point unit."""
        if "spin" in modes and "f" not in card.isa.partition("_")[0][4:]:
            text = (
                f"{card.name}: hpu.isa is {card.isa}, without F, so handlers multiply floats in software, many "
                "instructions each; --set hpu.isa=rv32imafc_zicsr gives them a floating-point unit"
            )
            return [text]
        return ()

    def run(self, trial: Trial) -> Outcome:
        """Multiply random numbers into other random numbers, and compare the result with numpy's products."""
        import numpy as np

        size = trial.point["size_bytes"]
        # The numbers are small and whole, so that products are exact and rounding has no effect.
        drawn = trial.rng().integers(1, 1024, (2, size // 4)) * trial.rng().choice([-1, 1], (2, size // 4))
        arriving, present = (part.astype(np.float32).view(np.complex64) for part in drawn)

        async def receiver(host: Host) -> Buffer:
            numbers = host.alloc(size)
            numbers.view(np.complex64)[:] = present
            if trial.handlers is not None:
                await arrival(host, numbers, host.portals.attach(trial.handlers))
                return numbers
            temporary = host.alloc(size)
            await arrival(host, temporary)
            cycles = -(-_PAIR_CYCLES * (size // _NUMBER_BYTES) // 2)
            await host.compute(cycles=cycles, reads=[temporary, numbers], writes=[numbers])
            numbers.view(np.complex64)[:] *= temporary.view(np.complex64)
            return numbers

        outcome, numbers = transfer(trial, arriving, receiver)
        require_equal(numbers.view(np.complex64), arriving * present, "rank 1 has")
        return outcome
