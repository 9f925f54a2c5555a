"""`nicety reproduce`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from nicety.cli.arguments import command
from nicety.cli.options import Json, Overrides, Seed


def _reproduce(
    study: Annotated[
        str,
        typer.Argument(
            metavar="STUDY", help="The study: spin, nfcomms, qnix, apenet, niagara2, pspin, xdp, nfp-6000 or hxdp."
        ),
    ],
    report: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="A folder for a page, pictures and their data; it is created if missing.",
        ),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Measure fewer sizes and nodes.")] = False,
    only: Annotated[
        list[str] | None,
        typer.Option(metavar="SECTION", help="Measure only this section of the report; may be given again."),
    ] = None,
    seed: Seed = 1,
    overrides: Overrides = None,
    card: Annotated[
        list[str] | None,
        typer.Option(metavar="ROLE=NIC", help="Another card in the place of the study's, such as discrete=mine.toml."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Measure the claims of a paper, and print each with its measured result.

    The status is 0 even if a claim is not met: that is a result.
    """
    from nicety.cli.output import note, print_json, say
    from nicety.cli.progress import progress
    from nicety.errors import InputError
    from nicety.studies import reproduce
    from nicety.studies.report import study_text

    cards = {}
    for given in card or []:
        role, equals, nic = given.partition("=")
        if not (role and equals and nic):
            raise InputError(f"--card {given}: this is ROLE=NIC, such as discrete=mine.toml")
        cards[role] = nic
    with progress(f"reproducing {study}") as bar:
        found = reproduce(
            study,
            report=report,
            quick=quick,
            only=only or [],
            seed=seed,
            overrides=overrides or [],
            cards=cards,
            progress=bar.advance,
        )
    if as_json:
        print_json(found)
    else:
        say(study_text(found))
    if report is not None:
        note(f"the report is {report / 'report.html'}")


def register(app: typer.Typer) -> None:
    """Add the command."""
    command(app, "reproduce", _reproduce, text=_reproduce.__doc__, captures=True)
