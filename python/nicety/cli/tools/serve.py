"""`nicety serve`: the workbench in the browser."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from nicety.cli.options import complete_cards, count

_MOST_PORT = 65535


def _serve(
    file: Annotated[Path | None, typer.Argument(metavar="[FILE.c]", help="The handlers in C to open.")] = None,
    nics: Annotated[
        list[str] | None,
        typer.Option(
            "--nic",
            metavar="NIC[,NIC]",
            help="Cards to begin with: names of specs, or paths of spec files.",
            autocompletion=complete_cards,
        ),
    ] = None,
    port: Annotated[
        int, typer.Option(parser=count(0, _MOST_PORT), metavar="N", help="The port of 127.0.0.1; 0 for any free one.")
    ] = 0,
    no_open: Annotated[bool, typer.Option("--no-open", help="Do not open the page in a browser.")] = False,
) -> None:
    """Edit handlers in the browser, next to the verdict, the profile, the timeline and the packets of a card.

    The command prints the address of the page and serves it until Ctrl-C, on this machine only. The address has a
    secret token: anyone with the address can compile and run programs.
    """
    import sys

    from nicety.cli.arguments import parse_names
    from nicety.cli.output import say
    from nicety.serve.server import serve

    def told(address: str) -> None:
        say(f"the workbench is at {address}\nCtrl-C ends it\n")
        sys.stdout.flush()

    serve(file, parse_names(nics, "--nic") if nics else [], port, told, opens=not no_open)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("serve")(_serve)
