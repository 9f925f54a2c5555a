"""`nicety bench latency`, `bandwidth` and `message-rate`: between two hosts."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import typer

from nicety.cli.measure import Output, add
from nicety.cli.options import (
    AllowFailures,
    Breakdown,
    Compiler,
    Faults,
    Iterations,
    Nics,
    Noise,
    Overrides,
    OwnHandlers,
    Percentiles,
    Seed,
    TopologyName,
    Warmup,
)
from nicety.shared.checks import MOST_WINDOW

if TYPE_CHECKING:
    from nicety.shared.types import MessagesBenchmark


def _benchmark(benchmark: MessagesBenchmark, usual: str) -> Callable[..., None]:
    """A benchmark with the sizes that it has where none are named."""

    def act(
        nic: Nics,
        peer: Annotated[
            str | None,
            typer.Option(
                metavar="NIC",
                help="The card of every host but rank 0; --set does not change it.",
            ),
        ] = None,
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
        handlers: OwnHandlers = None,
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
        faults: Faults = None,
        allow_failures: AllowFailures = None,
        seed: Seed = 1,
        percentiles: Percentiles = False,
        breakdown: Breakdown = False,
        *,
        output: Output,
    ) -> None:
        from nicety.bench.messages import benchmark_text, report_figure, run_benchmark
        from nicety.cli.output import parse_names
        from nicety.errors import InputError
        from nicety.shared.ranges import parse_ranges

        if breakdown and benchmark != "latency":
            raise InputError(f"--breakdown: not for {benchmark}; only a latency has stages")
        if window is not None and benchmark == "latency":
            raise InputError("--window: not for latency, which has one message under way at a time")
        output.of(
            lambda progress: run_benchmark(
                benchmark,
                nics=parse_names(nic, "--nic"),
                peer=peer,
                modes=None if mode is None else parse_names(mode, "--mode"),
                sizes=parse_ranges(usual if sizes is None else sizes, "--sizes"),
                iterations=iterations,
                warmup=warmup,
                window=window,
                overrides=overrides or [],
                pattern=pattern,
                topology=topology,
                noise=noise,
                faults=faults,
                seed=seed,
                allow_failures=allow_failures or "",
                handlers=handlers,
                cc=cc,
                trace=output.trace,
                trace_scale=output.scale,
                progress=progress,
            ),
            benchmark_text,
            report_figure,
            breakdown=breakdown,
            percentiles=percentiles,
        )

    return act


def register(bench: typer.Typer) -> None:
    """Add the commands."""
    add(bench, "latency", _benchmark("latency", "8:4Mi"), text="Half a round trip between two hosts.")
    text = "A window of messages one way, in bytes a second."
    add(bench, "bandwidth", _benchmark("bandwidth", "8:4Mi"), text=text)
    text = "A window of messages one way, in messages a second."
    add(bench, "message-rate", _benchmark("message-rate", "8:4Ki"), text=text)
