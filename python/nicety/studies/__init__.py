"""Studies: claims of papers about their cards. Each claim is compared with a measurement by nicety.

    import nicety

    report = nicety.reproduce("spin")
    for claim in report["claims"]:
        print(claim["title"], claim["paper_text"], claim["ours_text"], claim["met"])

A study is a package here. It has `paper.toml` with the paper's claims, and for each section of claims a function that
measures (`nicety.studies.study`). Figures come from the public benchmarks; no constant is fitted to a claim.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from os import PathLike, fspath
from pathlib import Path

from nicety.shared.checks import U64, Names, Overrides, changes, names, whole
from nicety.shared.typed import checked
from nicety.studies.study import STUDIES, StudyReport, load_study

__all__ = ["STUDIES", "load_study", "reproduce"]


@checked
def reproduce(
    name: str,
    *,
    report: str | PathLike[str] | None = None,
    quick: bool = False,
    only: Names = (),
    seed: int = 1,
    overrides: Overrides = (),
    cards: Mapping[str, str] | None = None,
    progress: Callable[[int, int, str], None] | None = None,
) -> StudyReport:
    """Measure the claims of a paper.

    Args:
        name: the study: `spin`, `nfcomms`, `qnix`, `apenet`, `niagara2`, `pspin`, `xdp` or `nfp-6000`.
        report: a folder for `report.html`, `report.json`, pictures and their data; made if necessary.
        quick: measure fewer sizes and nodes.
        only: the name of a section, or several, such as `"Line rate"`; all by default.
        seed: the seed of every random stream; the same seed gives the same report.
        overrides: changes to the study's cards, such as `"bus.pcie.generation=4"`; `niagara2` takes them.
        cards: the key is a card's role in the study, the value the name or spec file of the card that replaces it,
            such as `{"discrete": "mine.toml"}`.
        progress: called with the number of sections done, the total, and the name of the next section.

    Returns:
        The report. For every claim it has the paper's statement, the measurement, and the deviation.

    Raises:
        InputError: there is no such study, section or card, the study's cards cannot be changed, or the folder cannot
            be written.
        RunError: a run failed.
    """
    from nicety.studies.measure import check_cards, chosen, run_study
    from nicety.studies.report import check_folder, write_report

    whole(seed, "seed", U64)
    study = load_study(name)
    sections = names(only, "a section", "Line rate")
    chosen(study, sections)
    changed = changes(overrides)
    check_cards(study, changed, cards or {})
    folder = None if report is None else Path(fspath(report))
    if folder is not None:
        check_folder(folder)
    found, measured = run_study(
        study, quick=quick, only=sections, seed=seed, overrides=changed, cards=cards, progress=progress
    )
    if folder is not None:
        write_report(found, measured, folder)
    return found
