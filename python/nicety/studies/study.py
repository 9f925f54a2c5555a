"""The definition of a study: the claims of a paper, and per section of them a function that measures."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypedDict

from nicety.studies.claims import Finding, Ours, Paper

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Options:
    """The options of a study's run.

    Attributes:
        quick: measure less: fewer sizes, fewer nodes. Claims at other points than the paper's say so.
        seed: the seed of every random stream.
        overrides: changes to the study's cards.
        cards: replacements of the study's cards, by role.
    """

    quick: bool = False
    seed: int = 1
    overrides: tuple[str, ...] = ()
    cards: tuple[tuple[str, str], ...] = ()

    def card(self, role: str, usual: str) -> str:
        """The card that has a role in the study."""
        return dict(self.cards).get(role, usual)


class Table(TypedDict):
    """Displayed figures behind the claims of a section.

    The first row names the columns. `note` explains it in a line, and is empty if it needs no explanation.
    """

    section: str
    title: str
    rows: list[list[str]]
    note: str


@dataclass
class Measured:
    """The results of a section.

    Attributes:
        ours: the measurements, by the claims' names.
        tables: further figures, below the claims.
        figures: pictures by name, each with its contents in a line; drawn only for a written report.
        data: benchmarks' reports by name, as written beside the pictures.
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
    """A paper's claims and their measurement.

    Attributes:
        name: its name for `nicety reproduce`.
        paper: the paper's statements.
        sections: in the order of the report; together they measure every claim.
        cards: cards with calibrated values that the report lists.
        roles: cards that can be replaced, by their role in the study.
    """

    name: str
    paper: Paper
    sections: Sequence[Section]
    cards: Sequence[str] = ()
    roles: Mapping[str, str] = field(default_factory=dict)


class Calibration(TypedDict):
    """A value of a card's spec that was chosen by a figure, and the figure."""

    nic: str
    key: str
    value: str
    against: str


class StudyReport(TypedDict):
    """The report of a study; `nicety reproduce --json` prints exactly this.

    `only` has the requested sections, and is empty for all. `overrides` and `cards` have the changes, and are empty if
    the cards are the paper's.
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
