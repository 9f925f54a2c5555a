"""`nicety tsp`."""

from __future__ import annotations

import sys
from typing import Any

from nicety.cli.output import print_json
from nicety.cli.progress import progress
from nicety.salesman import solve_tsp
from nicety.salesman_text import tour_text


def solve(file: str, options: dict[str, Any], *, as_json: bool) -> None:
    """Climb, and print the best tour."""
    with progress("climbing") as bar:
        report = solve_tsp(file, **options, progress=lambda done, total: bar.advance(done, total, "climbing"))
    if as_json:
        print_json(report)
    else:
        sys.stdout.write(tour_text(report))
