"""Runs of studies: measure each section, and judge each claim."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import cast

from nicety import _native
from nicety.errors import InputError
from nicety.shared.checks import meant
from nicety.show.html import Shown
from nicety.studies.claims import judge
from nicety.studies.report import claims_table, tables_html
from nicety.studies.study import Calibration, Measured, Options, Section, Study, StudyReport


def calibrations(nic: str, overrides: Sequence[str] = ()) -> list[Calibration]:
    """Return the values in a card's spec that were calibrated, each with the figure that it was fitted to."""
    spec = json.loads(_native.spec_show(nic, list(overrides)))
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
    overrides: Sequence[str] = (),
    cards: Mapping[str, str] | None = None,
    progress: Callable[[int, int, str], None] | None = None,
) -> tuple[StudyReport, list[Measured]]:
    """Measure the claims of a study.

    Args:
        study: the study.
        quick: whether to measure fewer points.
        only: names of sections, in any case; all by default.
        seed: the seed of every random stream; the same seed gives the same report.
        overrides: changes to the study's cards.
        cards: the key is a card's role in the study, the value the card that replaces it.
        progress: called with the number of sections done, the total, and the name of the next section.

    Returns:
        The report, and the measurement of each section.

    Raises:
        InputError: there is no such section, or the study has no card with such a role.
        RunError: a run failed.
    """
    others = check_cards(study, overrides, cards or {})
    options = Options(quick=quick, seed=seed, overrides=tuple(overrides), cards=tuple(others.items()))
    findings, measured = [], []
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
    roles = {nic: role for role, nic in study.roles.items()}
    used = [options.card(roles.get(nic, ""), nic) for nic in study.cards]
    report = StudyReport(
        study=study.name,
        paper=study.paper.title,
        source=study.paper.source,
        version=_native.version(),
        seed=seed,
        quick=quick,
        only=[section.name for section in sections] if only else [],
        overrides=list(overrides),
        cards=others,
        calibrated=[value for nic in used for value in calibrations(nic, overrides)],
        claims=findings,
        tables=[table for found in measured for table in found.tables],
    )
    return cast(StudyReport, Shown(report, tables_html, table=claims_table)), measured


def check_cards(study: Study, overrides: Sequence[str], cards: Mapping[str, str]) -> dict[str, str]:
    """Return the cards that replace those of a study, by role.

    Raises:
        InputError: the study's cards cannot be changed, or no card has that role.
    """
    if not study.roles and (overrides or cards):
        raise InputError(f"the study {study.name} is only for its paper's cards: it has no --set and no --card")
    for role in cards:
        if role not in study.roles:
            raise InputError(
                f"the study {study.name} has no card {role!r}; it has {', '.join(study.roles)}"
                f"{meant(role, list(study.roles))}"
            )
    return dict(cards)


def chosen(study: Study, only: Sequence[str]) -> list[Section]:
    """Return the sections with these names in the order of the study; all sections if no name is given.

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
