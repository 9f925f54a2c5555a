"""The definition of a use case: points to measure, a program for each of its modes, and what a run of it came to."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, cast

from nicety.build.sources import Handlers
from nicety.build.toolchain import Interface
from nicety.errors import RunError
from nicety.program.cluster import Cluster
from nicety.program.run import Run
from nicety.shared.quantities import duration_ps, size_bytes

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

Point = Mapping[str, Any]
"""The parameters of a row, such as `{"nodes": 4, "size_bytes": 8}`."""


@dataclass(frozen=True)
class Figure:
    """A figure as tables and pictures show it.

    Attributes:
        name: its field in a row.
        label: what it is called, with its unit.
        unit: how much of the field is one of that unit.
        digits: decimals in a table.
    """

    name: str
    label: str
    unit: float = 1.0
    digits: int = 3


LATENCY = Figure("latency_ns", "Latency (ns)")
BANDWIDTH = Figure("bandwidth_bytes_per_s", "Bandwidth (MB/s)", 1e6, 2)


@dataclass(frozen=True)
class Card:
    """A card as a use case sees it: the values of its spec, overrides included.

    Attributes:
        name: what it is called in results.
        nic: how it was named: a spec's name, or a file's path.
        title: its title.
        spec_hash: the hash over all its values.
        values: each value as it is written, by its key.
    """

    name: str
    nic: str
    title: str
    spec_hash: str
    values: Mapping[str, str]

    def count(self, key: str) -> int:
        """A value that is a number, such as `hpu.cores`."""
        return int(self.values[key])

    def size_bytes(self, key: str) -> int:
        """A value that is a size, such as `hpu.memory`, in bytes."""
        return size_bytes(self.values[key])

    def duration_ns(self, key: str) -> float:
        """A value that is a time, such as `host.post`, in nanoseconds."""
        return duration_ps(self.values[key]) / 1000

    @property
    def packet_bytes(self) -> int:
        """Most payload that a packet carries."""
        return self.size_bytes("packet.payload")

    @property
    def isa(self) -> str:
        """The handler processors' instruction set."""
        return self.values["hpu.isa"]

    @property
    def interface(self) -> Interface:
        """What handlers are written for."""
        return cast("Interface", self.values.get("hpu.interface", "nicety"))


@dataclass(frozen=True)
class Trial:
    """One run of a use case at one point.

    Attributes:
        card: the card.
        mode: the part that does the work.
        point: the parameters.
        handlers: the mode's handlers, where it has any.
        seed: of this run.
    """

    card: Card
    mode: str
    point: Point
    handlers: Handlers | None
    seed: int
    options: Mapping[str, Any]
    _clusters: list[Cluster] = field(default_factory=list, repr=False)

    def cluster(self, nodes: int) -> Cluster:
        """The cluster that the run is to use."""
        self._clusters.append(cluster_of(nodes, self.card, self.seed, self.options))
        return self._clusters[-1]

    @property
    def fault_notes(self) -> str:
        """Effects of the network's faults in the last run where cards did not make up for them, on lines of its own."""
        return self._clusters[-1].fault_notes if self._clusters else ""

    def rng(self) -> np.random.Generator:
        """Random numbers that depend on the seed alone."""
        import numpy as np

        return np.random.default_rng(self.seed)


@dataclass(frozen=True)
class Outcome:
    """The outcome of a run.

    Attributes:
        run: the run.
        time_ps: the picoseconds that the use case took in it.
        figures: figures of its own, whose means over the iterations become fields of the row.
    """

    run: Run
    time_ps: int
    figures: Mapping[str, float] = field(default_factory=dict)


class UseCase(ABC):
    """A use case: points to measure, and a program for each of its modes.

    Attributes:
        name: as on the command line.
        title: as above tables and pictures.
        meaning: what the figure is, in a line.
        modes: the parts that can do the work, in the order of tables.
        axis: the parameter that a table has a line for, and a picture its horizontal axis.
        figure: the figure of tables and pictures: `LATENCY`, `BANDWIDTH` or one of its own.
        sources: the handlers in the library that a mode runs.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    meaning: ClassVar[str]
    modes: ClassVar[Sequence[str]]
    axis: ClassVar[str]
    figure: ClassVar[Figure]
    sources: ClassVar[dict[str, str]] = {}

    @abstractmethod
    def points(self) -> Sequence[Point]:
        """The points of the sweep, in the order of rows."""

    @abstractmethod
    def run(self, trial: Trial) -> Outcome:
        """Run one point and check its result.

        Raises:
            RunError: where a byte is wrong; see `require_equal`.
        """

    def source(self, mode: str) -> str | None:
        """The handlers in the library that a mode runs, where it runs any: those of `sources`."""
        return self.sources.get(mode)

    def check(self, card: Card, mode: str, point: Point) -> None:  # noqa: B027, most have nothing to refuse
        """Refuse a point that this card cannot do in this mode; called for all points before anything runs.

        Raises:
            InputError: with what to write instead.
        """

    def needs(self, _card: Card, _mode: str, _point: Point) -> Mapping[str, int]:
        """The most of each limited resource that a node takes, by its key, as in `{"limits.match_entries": 5}`.

        Sizes are in bytes. Cards that have less are refused before anything runs.
        """
        return {}

    def nodes(self, point: Point) -> int:
        """How many nodes a point takes."""
        return int(point.get("nodes", 2))

    def payload_bytes(self, _point: Point) -> int | None:
        """The bytes whose bandwidth is a figure, where it is one."""
        return None

    def incomplete(self, _row: Mapping[str, Any]) -> str | None:
        """The requests that the runs of a row did not do though every byte was right; None where they did all."""
        return None

    def notes(self, _card: Card, _modes: Sequence[str]) -> Sequence[str]:
        """Notes for the user on a sweep on this card, beside its result."""
        return ()


_PIECE = 1 << 24


def require_equal(found: npt.NDArray[Any], expected: npt.NDArray[Any], what: str) -> None:
    """Compare what a run left with what a plain computation gives, byte for byte.

    Args:
        found: what the run left.
        expected: what it should have left, of the same type and length.
        what: the place where it was found, for the message, as in `rank 3 received`.

    Raises:
        RunError: with the first wrong byte.
    """
    import numpy as np

    left, right = found.view(np.uint8), expected.view(np.uint8)
    if left.shape != right.shape:
        raise RunError(f"{what} {left.size} bytes instead of {right.size}")
    # Piece by piece: a comparison takes as many bytes as it compares.
    if all(np.array_equal(left[at : at + _PIECE], right[at : at + _PIECE]) for at in range(0, left.size, _PIECE)):
        return
    wrong = np.flatnonzero(left != right)
    at = int(wrong[0])
    raise RunError(
        f"{what} a wrong byte at offset {at}: {left[at]:#04x} instead of {right[at]:#04x}; {wrong.size} of "
        f"{left.size} bytes are wrong"
    )


def cluster_of(nodes: int, card: Card, seed: int, options: Mapping[str, Any]) -> Cluster:
    """The cluster for a run on a card."""
    return Cluster(nodes, card.nic, seed=seed, **options)
