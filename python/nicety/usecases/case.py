"""The definition of a use case: the points to measure, a program for each mode, and the outcome of a run."""

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
from nicety.shared.quantities import duration_ps, size_bytes, whole_number

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

Point = Mapping[str, Any]
"""The parameters of one row, such as `{"nodes": 4, "size_bytes": 8}`."""


@dataclass(frozen=True)
class Figure:
    """A figure that tables and pictures have.

    Attributes:
        name: the figure's field in a row.
        label: the figure's label, with its unit.
        unit: the field's value that is shown as 1, such as 1e6 for MB/s.
        digits: number of decimals in a table.
    """

    name: str
    label: str
    unit: float = 1.0
    digits: int = 3


LATENCY = Figure("latency_ns", "Latency (ns)")
BANDWIDTH = Figure("bandwidth_bytes_per_s", "Bandwidth (MB/s)", 1e6, 2)


@dataclass(frozen=True)
class Card:
    """A card as a use case sees it: the values of its spec after overrides.

    Attributes:
        name: the card's name in results.
        nic: the user's name for the card: a spec's name, or a file's path.
        title: the title of the spec.
        spec_hash: the hash over all values.
        values: the key is a value's key in the spec, the value its text, with its unit.
    """

    name: str
    nic: str
    title: str
    spec_hash: str
    values: Mapping[str, str]

    def count(self, key: str) -> int:
        """Return a value that is a number, such as `hpu.cores`."""
        return whole_number(self.values[key])

    def size_bytes(self, key: str) -> int:
        """Return a value that is a size, such as `hpu.memory`, in bytes."""
        return size_bytes(self.values[key])

    def duration_ns(self, key: str) -> float:
        """Return a value that is a time, such as `host.post`, in nanoseconds."""
        return duration_ps(self.values[key]) / 1000

    @property
    def packet_bytes(self) -> int:
        """The maximum payload of a packet in bytes."""
        return self.size_bytes("packet.payload")

    @property
    def isa(self) -> str:
        """The handler cores' instruction set."""
        return self.values["hpu.isa"]

    @property
    def interface(self) -> Interface:
        """The interface that the card's handlers use."""
        return cast("Interface", self.values.get("hpu.interface", "nicety"))


@dataclass(frozen=True)
class Trial:
    """One run of a use case at one point.

    Attributes:
        card: the card.
        mode: the use case's mode, which names the part that does the work.
        point: the parameters of the row.
        handlers: the handlers of the mode, if any.
        seed: the seed of this run.
    """

    card: Card
    mode: str
    point: Point
    handlers: Handlers | None
    seed: int
    options: Mapping[str, Any]
    _clusters: list[Cluster] = field(default_factory=list, repr=False)

    def cluster(self, nodes: int) -> Cluster:
        """Make the cluster for the run."""
        self._clusters.append(cluster_of(nodes, self.card, self.seed, self.options))
        return self._clusters[-1]

    @property
    def fault_notes(self) -> str:
        """Notes on packets that faults lost in the last run and no card retransmitted, on separate lines."""
        return self._clusters[-1].fault_notes if self._clusters else ""

    def rng(self) -> np.random.Generator:
        """Return a generator of random numbers that depends on the seed alone."""
        import numpy as np

        return np.random.default_rng(self.seed)


@dataclass(frozen=True)
class Outcome:
    """The outcome of a run.

    Attributes:
        run: the run.
        time_ps: the measured time of the use case in the run, in picoseconds.
        figures: the key is the name of a further figure, the value its value. The mean over the iterations is a field
            of the row.
    """

    run: Run
    time_ps: int
    figures: Mapping[str, float] = field(default_factory=dict)


class UseCase(ABC):
    """A use case: the points to measure, and a program for each mode.

    Attributes:
        name: the use case's name on the command line.
        title: the use case's title above tables and pictures.
        meaning: a line that describes the figure.
        modes: the modes, in the order of tables. A mode names the part that does the work.
        axis: the parameter that differs between the lines of a table; pictures have it on the horizontal axis.
        figure: the figure in tables and pictures: `LATENCY`, `BANDWIDTH` or the use case's own.
        sources: the key is a mode, the value the name of the handlers in the library that it runs.
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
        """The points to measure, in the order of rows."""

    @abstractmethod
    def run(self, trial: Trial) -> Outcome:
        """Run one point and check its result.

        Raises:
            RunError: a resulting byte is wrong; see `require_equal`.
        """

    def source(self, mode: str) -> str | None:
        """Return the name of the handlers in the library that a mode runs, or None. By default it is in `sources`."""
        return self.sources.get(mode)

    def check(self, card: Card, mode: str, point: Point) -> None:  # noqa: B027, most have nothing to refuse
        """Raise an error if this card cannot run a point in this mode. All points are checked before the first run.

        Raises:
            InputError: the point is refused. The text has the correction.
        """

    def needs(self, _card: Card, _mode: str, _point: Point) -> Mapping[str, int]:
        """Return the maximum of each limited resource that a node uses, by its key: `{"limits.match_entries": 5}`.

        Sizes are in bytes. A card that has less is refused before the first run.
        """
        return {}

    def nodes(self, point: Point) -> int:
        """Return the number of nodes of a point."""
        return int(point.get("nodes", 2))

    def payload_bytes(self, _point: Point) -> int | None:
        """Return the bytes for the bandwidth figure, or None if there is no such figure."""
        return None

    def incomplete(self, _row: Mapping[str, Any]) -> str | None:
        """Return words on the requests of a row that were not completed, or None. Such a row has no wrong bytes."""
        return None

    def notes(self, _card: Card, _modes: Sequence[str]) -> Sequence[str]:
        """Return notes for the user on a sweep on this card, in addition to its result."""
        return ()


_PIECE = 1 << 24


def require_equal(found: npt.NDArray[Any], expected: npt.NDArray[Any], what: str) -> None:
    """Compare the result of a run with the result of a sequential reference computation, byte for byte.

    Args:
        found: the result of the run.
        expected: the expected result, of the same type and length.
        what: the beginning of the message, such as `rank 3 received`.

    Raises:
        RunError: the results differ. The text has the first wrong byte.
    """
    import numpy as np

    left, right = found.view(np.uint8), expected.view(np.uint8)
    if left.shape != right.shape:
        raise RunError(f"{what} {left.size} bytes instead of {right.size}")
    # The comparison is made piece by piece, since it needs as much memory as the bytes that it compares.
    if all(np.array_equal(left[at : at + _PIECE], right[at : at + _PIECE]) for at in range(0, left.size, _PIECE)):
        return
    wrong = np.flatnonzero(left != right)
    at = int(wrong[0])
    raise RunError(
        f"{what} a wrong byte at offset {at}: {left[at]:#04x} instead of {right[at]:#04x}; {wrong.size} of "
        f"{left.size} bytes are wrong"
    )


def cluster_of(nodes: int, card: Card, seed: int, options: Mapping[str, Any]) -> Cluster:
    """Make the cluster for a run on a card."""
    return Cluster(nodes, card.nic, seed=seed, **options)
