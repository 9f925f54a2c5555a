"""The definition of a study: the claims of a paper, and for each section of them a function that measures."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypedDict

from nicety.studies.claims import Finding, Ours, Paper

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Options:
    """How a study is run.

    Attributes:
        quick: measure less: fewer sizes, fewer nodes. Claims at other points than the paper's say so.
        seed: of every random stream.
        overrides: changes to the study's cards.
        cards: others in the place of the study's, by what they are in it.
    """

    quick: bool = False
    seed: int = 1
    overrides: tuple[str, ...] = ()
    cards: tuple[tuple[str, str], ...] = ()

    def card(self, role: str, usual: str) -> str:
        """The card that has a role in the study."""
        return dict(self.cards).get(role, usual)


class Table(TypedDict):
    """Figures behind the claims of a section, as they are shown.

    The first row names the columns; `note` says in a line how to read it, and is empty where that needs no explanation.
    """

    section: str
    title: str
    rows: list[list[str]]
    note: str


@dataclass
class Measured:
    """The results of a section.

    Attributes:
        ours: what was measured, by the claims' names.
        tables: further figures, below the claims.
        figures: pictures by name, each with what it shows in a line; drawn only where a report is written.
        data: benchmarks' reports by name, as they are written beside the pictures.
    """

    ours: Mapping[str, Ours]
    tables: Sequence[Table] = ()
    figures: Mapping[str, tuple[str, Callable[[], Figure]]] = field(default_factory=dict)
    data: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Section:
    """Claims that are measured together: the section's name in the paper's data, and the function."""

    name: str
    measure: Callable[[Options], Measured]


@dataclass(frozen=True)
class Study:
    """A paper's claims and how they are measured.

    Attributes:
        name: as `nicety reproduce` has it.
        paper: what the paper says.
        sections: in the order of the report; between them they measure every claim.
        cards: those whose calibrated values the report lists.
        roles: cards that others can take the place of, by what they are in the study.
    """

    name: str
    paper: Paper
    sections: Sequence[Section]
    cards: Sequence[str] = ()
    roles: Mapping[str, str] = field(default_factory=dict)


class Calibration(TypedDict):
    """A value of a card's spec that was chosen by a figure, and by which."""

    nic: str
    key: str
    value: str
    against: str


class StudyReport(TypedDict):
    """The report of a study; `nicety reproduce --json` prints just this.

    `only` has the sections that were asked for, and is empty where all were. `overrides` and `cards` have what was
    changed, and are empty where the cards are the paper's.
    """

    study: str
    paper: str
    source: str
    version: str
    seed: int
    quick: bool
    only: list[str]
    overrides: list[str]
    cards: dict[str, str]
    calibrated: list[Calibration]
    claims: list[Finding]
    tables: list[Table]
