"""The command line: all commands, or only those that its arguments need."""

from __future__ import annotations

from collections.abc import Sequence

import typer

from nicety.cli.commands import commands_for, outline, without_commands


def _add_sweep(app: typer.Typer) -> typer.Typer:
    from nicety.cli.sweep.commands import sweep

    app.add_typer(sweep, name="sweep")
    return app


def app_for(arguments: Sequence[str]) -> typer.Typer:
    """The command line with the parts that these arguments need."""
    match list(arguments):
        case [] | ["--help" | "-h"]:
            return outline()
        case ["--version"]:
            return without_commands()
        case ["sweep", *_]:
            return _add_sweep(without_commands())
    part = commands_for(arguments)
    # All commands, since the line names none.
    return _add_sweep(part) if len(part.registered_groups) > 1 else part


def everything() -> typer.Typer:
    """The command line with all commands."""
    return _add_sweep(commands_for())
