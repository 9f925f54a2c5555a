"""The definition of a study: the claims of a paper, and a function for each section of claims that measures them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypedDict, cast

from nicety.errors import InputError
from nicety.shared.checks import meant
from nicety.shared.typed import checked
from nicety.studies.claims import Finding, Ours, Paper

if TYPE_CHECKING:
    from matplotlib.figure import Figure


STUDIES = ("spin", "nfcomms", "qnix", "apenet", "niagara2", "pspin", "xdp", "nfp-6000", "hxdp")
"""The names of the studies."""
_INNER = {"hxdp": "xdp.hxdp"}
"""The modules of studies with another name than theirs."""


@dataclass(frozen=True)
class Options:
    """The options of a study's run.

    Attributes:
        quick: whether to measure fewer sizes and nodes. Findings say so if their points differ from the paper's.
        seed: the seed of every random stream.
        overrides: changes to the study's cards.
        cards: pairs of a card's role in the study and the card that replaces it.
    """

    quick: bool = False
    seed: int = 1
    overrides: tuple[str, ...] = ()
    cards: tuple[tuple[str, str], ...] = ()

    def card(self, role: str, usual: str) -> str:
        """Return the card that has a role in the study. `usual` is the card if it is not replaced."""
        return dict(self.cards).get(role, usual)


class Table(TypedDict):
    """Figures that support the claims of a section.

    Row 0 names the columns. `note` is a line of explanation, or empty.
    """

    section: str
    title: str
    rows: list[list[str]]
    note: str


@dataclass
class Measured:
    """The results of a section.

    Attributes:
        ours: the key is a claim's name, the value the measurement.
        tables: further figures, which the report has below the claims.
        figures: the key is a picture's name, the value its caption and the function that draws it. It is called only
            for a written report.
        data: the key is a name, the value the report of a benchmark. It is written beside the pictures.
    """

    ours: Mapping[str, Ours]
    tables: Sequence[Table] = ()
    figures: Mapping[str, tuple[str, Callable[[], Figure]]] = field(default_factory=dict)
    data: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Section:
    """Claims that are measured together by one function. `name` is the section's name in the paper's data."""

    name: str
    measure: Callable[[Options], Measured]


@dataclass(frozen=True)
class Study:
    """A paper's claims and their measurement.

    Attributes:
        name: the study's name for `nicety reproduce`.
        paper: the paper and its claims.
        sections: the sections in the order of the report; together they measure every claim.
        cards: the cards whose calibrated values the report lists.
        roles: the key is a role in the study, the value the card that has it by default and can be replaced.
    """

    name: str
    paper: Paper
    sections: Sequence[Section]
    cards: Sequence[str] = ()
    roles: Mapping[str, str] = field(default_factory=dict)


class Calibration(TypedDict):
    """A calibrated value of a card's spec, and the figure `against` which it was fitted."""

    nic: str
    key: str
    value: str
    against: str


class StudyReport(TypedDict):
    """The report of a study; `nicety reproduce --json` prints exactly this.

    `only` has the names of the requested sections, and is empty if all were requested. `overrides` and `cards` have the
    changes to the study's cards, and are empty without changes.
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


@checked
def load_study(name: str) -> Study:
    """Return the study with this name.

    Raises:
        InputError: there is no such study.
    """
    if name not in STUDIES:
        raise InputError(f"there is no study {name!r}; there are {', '.join(STUDIES)}{meant(name, STUDIES)}")
    module = _INNER.get(name, name.replace("-", "_"))
    return cast("Study", import_module(f"nicety.studies.{module}").STUDY)
