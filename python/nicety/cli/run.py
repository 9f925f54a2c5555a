"""`nicety run`."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from nicety.cli.output import print_json
from nicety.cli.progress import progress
from nicety.errors import RunError
from nicety.programs import run_program
from nicety.tables import program_text


@dataclass(frozen=True)
class Request:
    """What the user asked for."""

    program: Path
    nics: Sequence[str]
    overrides: Sequence[str]
    nodes: int | None
    topology: str | None
    seed: int
    noise: str | None
    arguments: Sequence[str]


def run(request: Request, *, as_json: bool) -> None:
    """Run the programs of a file, and print what they report."""
    # Stdout is the document's alone.
    prints = contextlib.redirect_stdout(sys.stderr) if as_json else contextlib.nullcontext()
    with progress("running") as bar, prints:
        try:
            report = run_program(
                request.program,
                nics=request.nics,
                overrides=request.overrides,
                nodes=request.nodes,
                topology=request.topology,
                seed=request.seed,
                noise=request.noise,
                arguments=request.arguments,
                progress=lambda done, total, nic: bar.advance(done, total, f"running on {nic}"),
            )
        except SystemExit as left:
            if isinstance(left.code, str):
                raise RunError(left.code) from left
            raise
    if as_json:
        print_json(report)
    else:
        sys.stdout.write(program_text(report))
