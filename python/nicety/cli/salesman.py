"""`nicety tsp`."""

from __future__ import annotations

import sys
from typing import Any

from nicety.apps.salesman import solve_tsp, tour_text
from nicety.cli.output import print_json
from nicety.cli.progress import progress
from nicety.errors import InputError


def solve(file: str, options: dict[str, Any], *, as_json: bool) -> None:
    """Climb, and print the best tour."""
    if options["distances"] not in {"table", "root"}:
        raise InputError(f"--distances {options['distances']}: table, which looks them up in CLS, or root")
    with progress("climbing") as bar:
        report = solve_tsp(file, **options, progress=lambda done, total: bar.advance(done, total, "climbing"))
    if as_json:
        print_json(report)
    else:
        sys.stdout.write(tour_text(report))
