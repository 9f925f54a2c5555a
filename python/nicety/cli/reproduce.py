"""`nicety reproduce`."""

from __future__ import annotations

import sys
from pathlib import Path

from nicety.cli.output import note, print_json
from nicety.cli.progress import progress
from nicety.studies import reproduce
from nicety.studies.report import study_text


def reproduce_study(name: str, report: Path | None, only: list[str], *, quick: bool, seed: int, as_json: bool) -> None:
    """Run a study, print its claims, and write its report."""
    with progress(f"reproducing {name}") as bar:
        found = reproduce(
            name,
            report=report,
            quick=quick,
            only=only,
            seed=seed,
            progress=bar.advance,
        )
    if as_json:
        print_json(found)
    else:
        sys.stdout.write(study_text(found))
    if report is not None:
        note(f"the report is {report / 'report.html'}")
