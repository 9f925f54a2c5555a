"""What runs on the microengines of a network flow processor: commands and their options."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from nicety.cli.options import Arrow, Compiler, Csv, Json, Nics, Overrides, Plot
from nicety.shared.checks import U32, U64

Nic = Annotated[str, typer.Option("--nic", metavar="NAME", help="The card: the name of a spec, or a file's path.")]


def _bench_pcsa(
    nic: Nics,
    contexts: Annotated[
        str, typer.Option(metavar="RANGE", help="Numbers of contexts: 1..8 steps by one, 1:8 doubles.")
    ] = "1..8",
    updates: Annotated[int, typer.Option(min=1, max=U64, metavar="N", help="Updates in all on one microengine.")] = 8,
    cc: Compiler = None,
    overrides: Overrides = None,
    plot: Plot = None,
    csv: Csv = None,
    arrow: Arrow = None,
    as_json: Json = False,
) -> None:
    """The cardinality estimate: how contexts hide the latency of memory.

    Each row has the cycles in which one microengine finishes some updates in all, and the updates a second of the whole
    card with as many contexts on each.
    """
    from nicety.cli.cardinality import bench
    from nicety.cli.files import Files

    files = Files(plot=plot, csv=csv, arrow=arrow)
    bench(nic, contexts, updates, overrides or [], cc, files, as_json=as_json)


def _pcsa(
    capture: Annotated[Path, typer.Argument(metavar="CAPTURE.pcap", help="Packets, in pcap's or pcapng's format.")],
    nic: Nic = "nfp-4000",
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
    from nicety.cli.cardinality import count

    count(capture, nic, sketches, through, overrides or [], cc, as_json=as_json)


def _tsp(
    file: Annotated[
        str, typer.Argument(metavar="FILE.tsp", help="A problem in TSPLIB's format; kroA100 comes with nicety.")
    ],
    nic: Nic = "nfp-4000",
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
    from nicety.cli.output import parse_names
    from nicety.cli.salesman import solve

    options = {
        "nic": nic,
        "restarts": restarts,
        "climbers": climbers,
        "distances": distances,
        "compare": parse_names(compare, "--compare") if compare else [],
        "job": job,
        "resume": resume,
        "overrides": overrides or [],
        "seed": seed,
        "cc": cc,
    }
    solve(file, options, as_json=as_json)


def register(app: typer.Typer, bench: typer.Typer) -> None:
    """Add the commands."""
    bench.command("pcsa")(_bench_pcsa)
    app.command("pcsa")(_pcsa)
    app.command("tsp")(_tsp)
