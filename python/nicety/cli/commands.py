"""The commands that run something once. A command's modules are imported when it runs, so that `--help` is quick."""

from __future__ import annotations

from typing import Annotated

import typer

from nicety.cli import reproduce, run
from nicety.cli.apps import execute, processors
from nicety.cli.apps.goal import goal
from nicety.cli.bench.commands import bench
from nicety.cli.options import group
from nicety.cli.tools import cc
from nicety.cli.tools.hpu import hpu
from nicety.cli.tools.specs import specs
from nicety.cli.tools.xdp import xdp

commands = group("Simulate programs that run on network cards: right, fast enough, and worth it?", completion=True)


def _version(wanted: bool) -> None:
    if wanted:
        from nicety import _native

        typer.echo(f"nicety {_native.version()}")
        raise typer.Exit


@commands.callback()
def _main(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and leave.")
    ] = False,
) -> None:
    pass


commands.add_typer(specs, name="specs", invoke_without_command=True, no_args_is_help=False)
commands.add_typer(hpu, name="hpu")
commands.add_typer(xdp, name="xdp")
commands.add_typer(bench, name="bench")
commands.add_typer(goal, name="goal")
for module in (cc, reproduce, run, execute, processors):
    module.register(commands)
