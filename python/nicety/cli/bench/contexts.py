"""`nicety bench pcsa`: what contexts of microengines do for a program."""

from __future__ import annotations

from typing import Annotated

import typer

from nicety.cli.measure import Output, add
from nicety.cli.options import Compiler, Nics, Overrides
from nicety.shared.checks import U64


def _contexts(
    nic: Nics,
    contexts: Annotated[
        str, typer.Option(metavar="RANGE", help="Numbers of contexts: 1..8 steps by one, 1:8 doubles.")
    ] = "1..8",
    updates: Annotated[int, typer.Option(min=1, max=U64, metavar="N", help="Updates in all on one microengine.")] = 8,
    cc: Compiler = None,
    overrides: Overrides = None,
    *,
    output: Output,
) -> None:
    """The cardinality estimate: how contexts hide the latency of memory.

    Each row has the cycles in which one microengine finishes some updates in all, and the updates a second of the whole
    card with as many contexts on each.
    """
    from nicety.bench.contexts import bench_pcsa, context_figure, context_text
    from nicety.cli.output import parse_names
    from nicety.shared.ranges import parse_ranges

    output.of(
        lambda progress: bench_pcsa(
            nics=parse_names(nic, "--nic"),
            contexts=parse_ranges(contexts, "--contexts"),
            updates=updates,
            overrides=overrides or [],
            cc=cc,
            progress=progress,
        ),
        context_text,
        context_figure,
    )


def register(bench: typer.Typer) -> None:
    """Add the command."""
    add(bench, "pcsa", _contexts, traces=False)
