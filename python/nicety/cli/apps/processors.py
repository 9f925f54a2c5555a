"""`nicety pcsa` and `nicety tsp`: applications on network flow processors."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from nicety._generated.types import CountOptions, TourOptions
from nicety.cli.arguments import command
from nicety.cli.options import Compiler, Json

_ENOUGH = 10
"""Addresses per sketch above which the bias of the estimate is negligible: 0.4% here, and less for more."""
_FEWEST = 16


def _document(*, as_json: Json = False) -> bool:
    """Whether stdout is one JSON document."""
    return as_json


def _pcsa(
    capture: Annotated[
        Path, typer.Argument(metavar="CAPTURE.pcap", help="Packets as pcap or pcapng, also compressed by gzip or zstd.")
    ],
    cc: Compiler = None,
    *,
    output: bool,
    **given: Any,
) -> None:
    from nicety.apps.cardinality import count_sources, count_text
    from nicety.cli.output import print_json, say
    from nicety.cli.progress import progress
    from nicety.errors import InputError

    with progress("reading") as bar:
        tell = partial(bar.advance, description="counting (kB of the capture)")
        report = count_sources(capture, cc=cc, progress=tell, **given)
    if output:
        print_json(report)
    else:
        say(count_text(report))
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
    compare: Annotated[
        list[str] | None, typer.Option(metavar="cpu[,gpu]", help="The same climbs on this machine, too.")
    ] = None,
    cc: Compiler = None,
    *,
    output: bool,
    **given: Any,
) -> None:
    from nicety.apps.salesman import solve_tsp, tour_text
    from nicety.cli.arguments import parse_names
    from nicety.cli.output import print_json, say
    from nicety.cli.progress import progress

    others = parse_names(compare, "--compare") if compare else []
    with progress("climbing") as bar:
        report = solve_tsp(file, compare=others, cc=cc, progress=partial(bar.advance, description="climbing"), **given)
    if output:
        print_json(report)
    else:
        say(tour_text(report))


def register(app: typer.Typer) -> None:
    """Add the commands."""
    command(app, "pcsa", _pcsa, CountOptions, more=_document)
    command(app, "tsp", _tsp, TourOptions, more=_document)
