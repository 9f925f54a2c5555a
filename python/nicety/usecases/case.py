"""The definition of a use case: points to measure, a program per mode, and the outcome of a run."""

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
"""The parameters of a row, such as `{"nodes": 4, "size_bytes": 8}`."""


@dataclass(frozen=True)
class Figure:
    """A figure in tables and pictures.

    Attributes:
        name: its field in a row.
        label: its label, with the unit.
        unit: the field's value that makes 1 in the label's unit, such as 1e6 for MB/s.
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
    """A card in the view of a use case: the values of its spec, overrides included.

    Attributes:
        name: its name in results.
        nic: the user's name for it: a spec's name, or a file's path.
        title: its title.
        spec_hash: the hash over all its values.
        values: each value as written, by its key.
    """

    name: str
    nic: str
    title: str
    spec_hash: str
    values: Mapping[str, str]

    def count(self, key: str) -> int:
        """A value that is a number, such as `hpu.cores`."""
        return whole_number(self.values[key])

    def size_bytes(self, key: str) -> int:
        """A value that is a size, such as `hpu.memory`, in bytes."""
        return size_bytes(self.values[key])

    def duration_ns(self, key: str) -> float:
        """A value that is a time, such as `host.post`, in nanoseconds."""
        return duration_ps(self.values[key]) / 1000

    @property
    def packet_bytes(self) -> int:
        """Maximum payload of a packet."""
        return self.size_bytes("packet.payload")

    @property
    def isa(self) -> str:
        """The handler processors' instruction set."""
        return self.values["hpu.isa"]

    @property
    def interface(self) -> Interface:
        """The interface of its handlers."""
        return cast("Interface", self.values.get("hpu.interface", "nicety"))


@dataclass(frozen=True)
class Trial:
    """One run of a use case at one point.

    Attributes:
        card: the card.
        mode: the part that does the work.
        point: the parameters.
        handlers: the mode's handlers, if any.
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
        """The cluster for the run."""
        self._clusters.append(cluster_of(nodes, self.card, self.seed, self.options))
        return self._clusters[-1]

    @property
    def fault_notes(self) -> str:
        """Effects of the network's faults in the last run, if cards did not recover from them, on separate lines."""
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
        time_ps: the picoseconds of the use case in the run.
        figures: further figures of the use case; their means over the iterations become fields of the row.
    """

    run: Run
    time_ps: int
    figures: Mapping[str, float] = field(default_factory=dict)


class UseCase(ABC):
    """A use case: points to measure, and a program per mode.

    Attributes:
        name: its name on the command line.
        title: its title above tables and pictures.
        meaning: the figure's meaning, as one line.
        modes: the parts that can do the work, in the order of tables.
        axis: the parameter of a table's lines, and of a picture's horizontal axis.
        figure: the figure of tables and pictures: `LATENCY`, `BANDWIDTH` or its own.
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
            RunError: a byte is wrong; see `require_equal`.
        """

    def source(self, mode: str) -> str | None:
        """The handlers in the library that a mode runs, if any: those of `sources`."""
        return self.sources.get(mode)

    def check(self, card: Card, mode: str, point: Point) -> None:  # noqa: B027, most have nothing to refuse
        """Refuse a point that this card cannot do in this mode; called for all points before anything runs.

        Raises:
            InputError: with the correction.
        """

    def needs(self, _card: Card, _mode: str, _point: Point) -> Mapping[str, int]:
        """The maximum of each limited resource that a node takes, by its key, as in `{"limits.match_entries": 5}`.

        Sizes are in bytes. Cards that have less are refused before anything runs.
        """
        return {}

    def nodes(self, point: Point) -> int:
        """Number of nodes of a point."""
        return int(point.get("nodes", 2))

    def payload_bytes(self, _point: Point) -> int | None:
        """The bytes of the bandwidth figure, if there is one."""
        return None

    def incomplete(self, _row: Mapping[str, Any]) -> str | None:
        """The requests that a row's runs did not complete, though every byte was right; None for a complete row."""
        return None

    def notes(self, _card: Card, _modes: Sequence[str]) -> Sequence[str]:
        """Notes for the user on a sweep on this card, besides its result."""
        return ()


_PIECE = 1 << 24


def require_equal(found: npt.NDArray[Any], expected: npt.NDArray[Any], what: str) -> None:
    """Compare the result of a run with that of a sequential reference computation, byte for byte.

    Args:
        found: the result of the run.
        expected: the expected result, of the same type and length.
        what: its place, for the message, as in `rank 3 received`.

    Raises:
        RunError: with the first wrong byte.
    """
    import numpy as np

    left, right = found.view(np.uint8), expected.view(np.uint8)
    if left.shape != right.shape:
        raise RunError(f"{what} {left.size} bytes instead of {right.size}")
    # In pieces: a comparison takes as much memory as the compared bytes.
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
