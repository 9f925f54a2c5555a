"""`nicety pcsa` and `nicety tsp`: applications on network flow processors."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from nicety._generated.types import CountOptions, TourOptions
from nicety.cli.arguments import command
from nicety.cli.options import Compiler, Json, complete_words
from nicety.shared.checks import one_of

_FEWEST = 16


def _document(*, as_json: Json = False) -> bool:
    """Return whether stdout is one JSON document."""
    return as_json


def _complete_hashes(incomplete: str) -> list[str]:
    return complete_words(incomplete, ("mixed", "crc"))


def _pcsa(
    capture: Annotated[
        Path, typer.Argument(metavar="CAPTURE.pcap", help="Packets as pcap or pcapng, also compressed by gzip or zstd.")
    ],
    hash_name: Annotated[
        str,
        typer.Option(
            "--hash",
            metavar="mixed|crc",
            help="The hash of an address: crc is the paper's CRC-32, which does not spread addresses in order.",
            autocompletion=_complete_hashes,
        ),
    ] = "mixed",
    cc: Compiler = None,
    *,
    output: bool,
    **given: Any,
) -> None:
    from nicety.apps.cardinality import HASHES, count_sources, count_text
    from nicety.cli.output import print_json, say
    from nicety.cli.progress import progress
    from nicety.errors import InputError

    found = next((each for each in HASHES if each == hash_name), None)
    if found is None:
        raise InputError(f"--hash is {one_of(HASHES)}, not {hash_name}")
    with progress("reading") as bar:
        tell = partial(bar.advance, description="counting (kB of the capture)")
        report = count_sources(capture, hash=found, cc=cc, progress=tell, **given)
    if output:
        print_json(report)
    else:
        say(count_text(report))
    _tell_bias(report["distinct"], report["sketches"])
    if (damage := report["damage"]) is not None:
        raise InputError(
            f"{capture}: at packet {damage['packet']}, byte {damage['byte']}: {damage['text']}; "
            "the packets before it are counted"
        )


def _tell_bias(distinct: int, sketches: int) -> None:
    from nicety.apps.cardinality import ENOUGH
    from nicety.cli.output import note

    if distinct < ENOUGH * sketches:
        fewer = max(2 ** ((distinct // ENOUGH).bit_length() - 1) if distinct >= ENOUGH else 0, _FEWEST)
        note(
            f"{distinct} distinct addresses are few for {sketches} sketches: the estimate is too high"
            + (f"; use --sketches {fewer}" if fewer < sketches else "")
        )


def _tsp(
    file: Annotated[
        str, typer.Argument(metavar="FILE.tsp", help="A problem in TSPLIB's format; kroA100 comes with nicety.")
    ],
    compare: Annotated[
        list[str] | None, typer.Option(metavar="cpu[,gpu]", help="Run the same climbs on this machine, too.")
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
