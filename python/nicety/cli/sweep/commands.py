"""`nicety sweep` and `nicety sweep report`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from nicety.cli.options import GROUPS, Json, count, group

sweep = group(GROUPS["sweep"], runs=True)


@sweep.command("run")
def _run(
    study: Annotated[Path, typer.Argument(metavar="STUDY.toml", help="The command, its options, and the grid.")],
    folder: Annotated[
        Path | None,
        typer.Option("-o", metavar="DIR", help="Where results are kept; by default a folder named as the study."),
    ] = None,
    jobs: Annotated[
        int | None,
        typer.Option(
            parser=count(), metavar="N", help="Points that run at once on this machine; default: the number of CPUs."
        ),
    ] = None,
    executor: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="Where points run, in place of this machine: mpi, dask:ADDRESS or ray[:ADDRESS]."
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Run a study. Points with results in DIR are not run again.

    DIR gets a file per point, table.csv, and table.parquet if pyarrow is installed.
    """
    from nicety.cli.output import failed, note, print_json, say
    from nicety.cli.progress import progress
    from nicety.cli.sweep.driver import study_text, summary, sweep_study
    from nicety.sweeps.executors import open_executor
    from nicety.sweeps.grid import named

    ran = None

    def tell(done: int, total: int) -> None:
        nonlocal ran
        ran = f"{done} of {total} points have run"
        bar.advance(done, total)

    try:
        with open_executor(executor) as pool, progress("sweeping") as bar:
            found = sweep_study(study, folder=folder, executor=pool, jobs=jobs, progress=tell)
    except (KeyboardInterrupt, SystemExit):
        if ran is not None:
            note(f"{folder or study.stem}: {ran}; run the same command again for the others")
        raise
    for text in found.damaged:
        note(f"{text}; the point has run again")
    if as_json:
        print_json(summary(found))
    else:
        say(study_text(study, found))
    if found.failed:
        raise failed([f"{named(point.values)}: {error}" for point, error in found.failed])


@sweep.command("report")
def _report(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="The folder of a sweep, which may still be running.")],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="The page to write.")] = Path(
        "report.html"
    ),
) -> None:
    """Write a page about a sweep as one file: plots, breakdowns by stage, the table, cards and their hashes."""
    from nicety.sweeps.page import sweep_report

    sweep_report(folder, output)
