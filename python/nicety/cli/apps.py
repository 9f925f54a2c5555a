"""`nicety pcsa` and `nicety tsp`: applications on network flow processors."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Literal, cast

import typer

from nicety.cli.options import Compiler, Json, Overrides
from nicety.shared.checks import U32

_Nic = Annotated[str, typer.Option("--nic", metavar="NAME", help="The card: the name of a spec, or a file's path.")]

_ENOUGH = 10
"""Addresses a sketch from which on the estimate has no bias that matters: 0.4% here, and less for more."""
_FEWEST = 16


def _pcsa(
    capture: Annotated[Path, typer.Argument(metavar="CAPTURE.pcap", help="Packets, in pcap's or pcapng's format.")],
    nic: _Nic = "nfp-4000",
    sketches: Annotated[
        int, typer.Option(min=1, max=U32, metavar="N", help="Words that stand for the addresses: a power of two.")
    ] = 2048,
    through: Annotated[
        str,
        typer.Option(
            metavar="port|channels", help="Packets through the card's port, or addresses from the host by channels."
        ),
    ] = "port",
    cc: Compiler = None,
    overrides: Overrides = None,
    as_json: Json = False,
) -> None:
    """Count the distinct source addresses of a capture on a card, and one by one beside it.

    A capture that is damaged is counted up to there; what comes of it is printed, and the status is 2.
    """
    from nicety.apps.cardinality import count_sources, count_text
    from nicety.cli.output import print_json
    from nicety.cli.progress import progress
    from nicety.errors import InputError

    if through not in {"port", "channels"}:
        raise InputError(f"--through {through}: packets come through the port, or addresses through channels")
    with progress("reading") as bar:
        report = count_sources(
            capture,
            nic=nic,
            sketches=sketches,
            through=cast(Literal["port", "channels"], through),
            overrides=overrides or [],
            cc=cc,
            progress=lambda done, total: bar.advance(done, total, "counting (kB of the capture)"),
        )
    if as_json:
        print_json(report)
    else:
        sys.stdout.write(count_text(report))
    _tell_bias(report["distinct"], report["sketches"])
    if (damage := report["damage"]) is not None:
        raise InputError(
            f"{capture}: at packet {damage['packet']}, byte {damage['byte']}: {damage['text']}; "
            "what was before it is counted"
        )


def _tell_bias(distinct: int, sketches: int) -> None:
    from nicety.cli.output import note

    if distinct < _ENOUGH * sketches:
        fewer = max(2 ** ((distinct // _ENOUGH).bit_length() - 1) if distinct >= _ENOUGH else 0, _FEWEST)
        note(
            f"{distinct} distinct addresses are few for {sketches} sketches: the estimate is too high"
            + (f"; --sketches {fewer} suits them" if fewer < sketches else "")
        )


def _tsp(
    file: Annotated[
        str, typer.Argument(metavar="FILE.tsp", help="A problem in TSPLIB's format; kroA100 comes with nicety.")
    ],
    nic: _Nic = "nfp-4000",
    restarts: Annotated[int, typer.Option(min=1, max=U32, metavar="N", help="Climbs in all.")] = 200,
    climbers: Annotated[
        int, typer.Option(min=1, max=U32, metavar="N", help="Processes that climb, each on a microengine.")
    ] = 59,
    distances: Annotated[
        str, typer.Option(metavar="table|root", help="Looked up in CLS, or an integer root each time.")
    ] = "table",
    compare: Annotated[
        list[str] | None, typer.Option(metavar="cpu[,gpu]", help="The same climbs on this machine, too.")
    ] = None,
    job: Annotated[
        int | None,
        typer.Option(min=1, max=U32, metavar="N", help="Climbs given to the card at once. Default: ten a climber."),
    ] = None,
    resume: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Keep what is done in a file, and go on with what is there.")
    ] = None,
    cc: Compiler = None,
    overrides: Overrides = None,
    seed: Annotated[int, typer.Option("--seed", min=0, max=U32, metavar="N", help="Of the random tours.")] = 1,
    as_json: Json = False,
) -> None:
    """Look for a short tour: many climbs by 2-opt on the microengines of a card."""
    from nicety.apps.salesman import Distances, solve_tsp, tour_text
    from nicety.cli.output import parse_names, print_json
    from nicety.cli.progress import progress
    from nicety.errors import InputError

    if distances not in {"table", "root"}:
        raise InputError(f"--distances {distances}: table, which looks them up in CLS, or root")
    with progress("climbing") as bar:
        report = solve_tsp(
            file,
            nic=nic,
            restarts=restarts,
            climbers=climbers,
            distances=cast(Distances, distances),
            compare=parse_names(compare, "--compare") if compare else [],
            job=job,
            resume=resume,
            overrides=overrides or [],
            seed=seed,
            cc=cc,
            progress=lambda done, total: bar.advance(done, total, "climbing"),
        )
    if as_json:
        print_json(report)
    else:
        sys.stdout.write(tour_text(report))


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command("pcsa")(_pcsa)
    app.command("tsp")(_tsp)
