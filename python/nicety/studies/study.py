"""What a study is: the claims of a paper, and for each section of them a function that measures."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypedDict, cast

from nicety import _native
from nicety._checks import meant
from nicety.errors import InputError
from nicety.studies.claims import Finding, Ours, Paper, judge

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Options:
    """How a study is run.

    Attributes:
        quick: measure less: fewer sizes, fewer nodes. Claims at other points than the paper's say so.
        seed: of every random stream.
    """

    quick: bool = False
    seed: int = 1


class Table(TypedDict):
    """Figures behind the claims of a section, as they are shown.

    The first row names the columns; `note` says in a line how to read it, and is empty where nobody needs that.
    """

    section: str
    title: str
    rows: list[list[str]]
    note: str


@dataclass
class Measured:
    """What a section gives.

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
    """

    name: str
    paper: Paper
    sections: Sequence[Section]
    cards: Sequence[str] = ()


class Calibration(TypedDict):
    """A value of a card's spec that was chosen by a figure, and by which."""

    nic: str
    key: str
    value: str
    against: str


class StudyReport(TypedDict):
    """What a study gives; `nicety reproduce --json` prints just this.

    `only` has the sections that were asked for, and is empty where all were.
    """

    study: str
    paper: str
    source: str
    version: str
    seed: int
    quick: bool
    only: list[str]
    calibrated: list[Calibration]
    claims: list[Finding]
    tables: list[Table]


class _Shown(dict[str, Any]):
    """A report that shows itself as tables in a notebook."""

    def _repr_html_(self) -> str:
        from nicety.studies.report import tables_html

        return tables_html(cast(StudyReport, self))


def calibrations(nic: str) -> list[Calibration]:
    """The values of a card that were chosen by a figure."""
    spec = json.loads(_native.spec_show(nic, []))
    return [
        Calibration(nic=spec["name"], key=value["key"], value=value["value"], against=value["against"])
        for value in spec["parameters"]
        if value["kind"] == "calibrated"
    ]


def run_study(
    study: Study,
    *,
    quick: bool = False,
    only: Sequence[str] = (),
    seed: int = 1,
    progress: Callable[[int, int, str], None] | None = None,
) -> tuple[StudyReport, list[Measured]]:
    """Measure the claims of a study.

    Args:
        study: the study.
        quick: measure less.
        only: names of sections, in any case; all where none is named.
        seed: of every random stream; the same seed gives the same report.
        progress: called with the number of sections that are done, of how many, and the name of the next.

    Returns:
        The report, and what each section gave.

    Raises:
        InputError: there is no such section.
        RunError: a run failed.
    """
    options, findings, measured = Options(quick=quick, seed=seed), [], []
    sections = chosen(study, only)
    for number, section in enumerate(sections):
        if progress is not None:
            progress(number, len(sections), section.name)
        found = section.measure(options)
        claims = study.paper.of(section.name)
        odd = {claim.id for claim in claims} ^ set(found.ours)
        if odd:
            raise ValueError(f"study {study.name}, {section.name}: {odd} are claimed or measured only")
        findings += [judge(claim, found.ours[claim.id]) for claim in claims]
        measured.append(found)
    if progress is not None:
        progress(len(sections), len(sections), "done")
    report = StudyReport(
        study=study.name,
        paper=study.paper.title,
        source=study.paper.source,
        version=_native.version(),
        seed=seed,
        quick=quick,
        only=[section.name for section in sections] if only else [],
        calibrated=[value for nic in study.cards for value in calibrations(nic)],
        claims=findings,
        tables=[table for found in measured for table in found.tables],
    )
    return cast(StudyReport, _Shown(cast(dict[str, Any], report))), measured


def chosen(study: Study, only: Sequence[str]) -> list[Section]:
    """The sections of these names, in the study's order; all where there are no names.

    Raises:
        InputError: there is no such section.
    """
    names = [section.name for section in study.sections]
    wanted = {name.lower() for name in only}
    for name in only:
        if name.lower() not in map(str.lower, names):
            raise InputError(
                f"the study {study.name} has no section {name!r}; it has {', '.join(names)}{meant(name, names)}"
            )
    return [section for section in study.sections if not wanted or section.name.lower() in wanted]
