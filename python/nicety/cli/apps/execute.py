"""`nicety exec`."""

from __future__ import annotations

import sys
from typing import Annotated, Any, cast

import typer

from nicety.cli.arguments import command
from nicety.cli.options import Arrow, Csv, Json
from nicety.shared.types import ExecOptions


def _exec(
    program: Annotated[
        list[str], typer.Argument(metavar="PROGRAM [ARGS]...", help="The program, behind --, and its arguments.")
    ],
    ranks: Annotated[int, typer.Option("-n", "--ranks", metavar="N", help="How many processes of it run.")] = 1,
    launcher: Annotated[
        str, typer.Option(metavar="auto|mpich|openmpi|none", help="What starts the processes.")
    ] = "auto",
    csv: Csv = None,
    arrow: Arrow = None,
    *,
    as_json: Json = False,
    **given: Any,
) -> None:
    """Run a real program, such as an MPI program, on simulated hosts: each of its processes is one."""
    from nicety.apps.processes import Launcher, processes_table, processes_text, run_processes
    from nicety.cli.files import Files
    from nicety.cli.output import print_json
    from nicety.shared.files import write_whole
    from nicety.show.tables import csv_text, write_arrow

    Files(csv=csv, arrow=arrow).check()
    sys.stdout.flush()
    report = run_processes(program, launcher=cast(Launcher, launcher), to_stderr=as_json, ranks=ranks, **given)
    if csv is not None:
        write_whole(csv, csv_text(processes_table(report)).encode())
    if arrow is not None:
        write_arrow(processes_table(report), arrow)
    if as_json:
        print_json(report)
    else:
        sys.stdout.write(processes_text(report))
    if report["status"]:
        raise typer.Exit(report["status"])


def register(app: typer.Typer) -> None:
    """Add the command."""
    command(app, "exec", _exec, ExecOptions)
