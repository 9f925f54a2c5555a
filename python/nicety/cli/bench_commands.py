"""`nicety bench`: its commands and their options."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nicety._checks import MOST_WINDOW
from nicety.cli.options import (
    Arrow,
    Compiler,
    Csv,
    Iterations,
    Json,
    Nics,
    Noise,
    Overrides,
    Plot,
    Seed,
    TopologyName,
    Warmup,
    group,
)
from nicety.cli.usecase_commands import register_all

if TYPE_CHECKING:
    from nicety.benchmarks import BenchmarkName

bench = group("Benchmarks: between two hosts, of use cases, or of what runs on a card.")


def _between_hosts(benchmark: BenchmarkName) -> Callable[..., None]:
    """The command of a benchmark between two hosts."""

    def command(
        nic: Nics,
        mode: Annotated[
            list[str] | None,
            typer.Option(metavar="M[,N]", help="Who answers; all modes of the card if left out."),
        ] = None,
        sizes: Annotated[
            str | None,
            typer.Option(
                metavar="RANGE",
                help="Message sizes in bytes: 8:4Mi doubles, 1..4 steps by one, commas list. "
                "Default 8:4Mi, and 8:4Ki for message-rate.",
            ),
        ] = None,
        iterations: Iterations = None,
        warmup: Warmup = None,
        window: Annotated[
            int | None,
            typer.Option(min=1, max=MOST_WINDOW, metavar="N", help="Messages under way at once; not for latency."),
        ] = None,
        handlers: Annotated[
            Path | None, typer.Option(metavar="FILE.c", help="Your own handlers, instead of nicety's.")
        ] = None,
        cc: Compiler = None,
        overrides: Overrides = None,
        pattern: Annotated[
            str,
            typer.Option(
                metavar="PATTERN", help="pair, bidirectional, or incast:N, in which N hosts send to one more at once."
            ),
        ] = "pair",
        topology: TopologyName = None,
        noise: Noise = None,
        seed: Seed = 1,
        percentiles: Annotated[
            bool, typer.Option("--percentiles", help="Show minimum, median, p99, p99.9 and maximum as well.")
        ] = False,
        breakdown: Annotated[bool, typer.Option("--breakdown", help="Show where the time goes, by stage.")] = False,
        plot: Plot = None,
        csv: Csv = None,
        arrow: Arrow = None,
        trace: Annotated[
            Path | None,
            typer.Option(metavar="FILE", help="Write a timeline of the first card, mode and size for ui.perfetto.dev."),
        ] = None,
        trace_scale: Annotated[
            str | None,
            typer.Option(metavar="ns|ps", help="What a tick of the timeline is; ps cuts nothing off. Default ns."),
        ] = None,
        as_json: Json = False,
    ) -> None:
        from nicety.cli.bench import Request, bench
        from nicety.cli.files import Files

        bench(
            Request(
                benchmark=benchmark,
                nics=nic,
                modes=mode,
                sizes=sizes,
                iterations=iterations,
                warmup=warmup,
                window=window,
                handlers=handlers,
                cc=cc,
                overrides=overrides or [],
                pattern=pattern,
                topology=topology,
                noise=noise,
                seed=seed,
            ),
            Files(plot=plot, csv=csv, arrow=arrow, trace=trace, trace_scale=trace_scale),
            breakdown=breakdown,
            percentiles=percentiles,
            as_json=as_json,
        )

    return command


bench.command("latency", help="Half a round trip between two hosts.")(_between_hosts("latency"))
bench.command("bandwidth", help="A window of messages one way, in bytes a second.")(_between_hosts("bandwidth"))
bench.command("message-rate", help="A window of messages one way, in messages a second.")(
    _between_hosts("message-rate")
)
register_all(bench)
