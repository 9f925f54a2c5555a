"""The command line: all commands, or only those that its arguments need."""

from __future__ import annotations

from collections.abc import Sequence

import typer

from nicety.cli.commands import commands_for, outline, without_commands


def _add_sweep(app: typer.Typer) -> typer.Typer:
    from nicety.cli.sweep.commands import sweep

    app.add_typer(sweep, name="sweep")
    return app


def _with_examples(app: typer.Typer) -> typer.Typer:
    from nicety.cli.tools.examples import add_examples

    add_examples(app)
    return app


def app_for(arguments: Sequence[str]) -> typer.Typer:
    """Return the command line with only the commands that these arguments need."""
    match list(arguments):
        case [] | ["--help" | "-h"]:
            return outline()
        case ["--version"]:
            return without_commands()
        case ["sweep", *_]:
            return _with_examples(_add_sweep(without_commands()))
    part = commands_for(arguments)
    # With several groups, `part` has all commands but sweep.
    return _with_examples(_add_sweep(part) if len(part.registered_groups) > 1 else part)


def everything() -> typer.Typer:
    """Return the command line with all commands."""
    return _with_examples(_add_sweep(commands_for()))
