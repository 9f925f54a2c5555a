"""The command line: all commands."""

from __future__ import annotations

from nicety.cli.commands import commands
from nicety.cli.sweep.commands import sweep

app = commands
app.add_typer(sweep, name="sweep")
