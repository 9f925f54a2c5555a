"""What runs on the microengines of a network flow processor: commands and their options."""

from __future__ import annotations

from typing import Annotated

import typer

from nicety._checks import U64
from nicety.cli.options import Arrow, Compiler, Csv, Json, Nics, Overrides, Plot


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


def register(bench: typer.Typer) -> None:
    """Add the commands."""
    bench.command("pcsa")(_bench_pcsa)
