"""The benchmarks of channels: commands and their options."""

from __future__ import annotations

from typing import Annotated

import typer

from nicety.cli.options import (
    Arrow,
    Breakdown,
    Compiler,
    Csv,
    Iterations,
    Json,
    Nics,
    Noise,
    Overrides,
    Percentiles,
    Plot,
    Seed,
    Trace,
    TraceScale,
    Warmup,
)

_Modes = Annotated[
    list[str] | None, typer.Option("--mode", metavar="M[,N]", help="direct, indirect; both if left out.")
]
_Directions = Annotated[
    list[str] | None,
    typer.Option("--direction", metavar="D[,E]", help="host-to-card, card-to-host; both if left out."),
]


def _latency(
    nic: Nics,
    mode: _Modes = None,
    direction: _Directions = None,
    sizes: Annotated[str, typer.Option(metavar="RANGE", help="Message sizes in bytes: 8:56 doubles.")] = "8:56",
    iterations: Iterations = None,
    warmup: Warmup = None,
    overrides: Overrides = None,
    noise: Noise = None,
    seed: Seed = 1,
    cc: Compiler = None,
    percentiles: Percentiles = False,
    breakdown: Breakdown = False,
    plot: Plot = None,
    csv: Csv = None,
    arrow: Arrow = None,
    trace: Trace = None,
    trace_scale: TraceScale = None,
    as_json: Json = False,
) -> None:
    """Channels to the card's processes: how long a message takes, its acknowledgement included.

    Messages follow each other on one channel, 100 of them unless told otherwise; a figure is their mean.
    """
    from nicety.cli.channels import Request, bench
    from nicety.cli.files import Files

    request = Request(
        benchmark="channel-latency",
        nics=nic,
        modes=mode,
        directions=direction,
        sizes=sizes,
        iterations=iterations,
        warmup=warmup,
        overrides=overrides or [],
        noise=noise,
        seed=seed,
        cc=cc,
    )
    files = Files(plot=plot, csv=csv, arrow=arrow, trace=trace, trace_scale=trace_scale)
    bench(request, files, breakdown=breakdown, percentiles=percentiles, as_json=as_json)


def _bandwidth(
    nic: Nics,
    mode: _Modes = None,
    direction: _Directions = None,
    processes: Annotated[
        str, typer.Option(metavar="RANGE", help="Processes at once, each with a thread of the host.")
    ] = "1,8",
    sizes: Annotated[
        str, typer.Option(metavar="RANGE", help="Message sizes in bytes: 64Ki:20Mi doubles.")
    ] = "64Ki:20Mi",
    payload: Annotated[
        str, typer.Option(metavar="SIZE", help="Bytes that all processes move together in a run.")
    ] = "100Mi",
    runs: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Runs, which differ in when threads begin. Default 3.")
    ] = None,
    overrides: Overrides = None,
    noise: Noise = None,
    seed: Seed = 1,
    cc: Compiler = None,
    plot: Plot = None,
    csv: Csv = None,
    arrow: Arrow = None,
    trace: Trace = None,
    trace_scale: TraceScale = None,
    as_json: Json = False,
) -> None:
    """Channels to the card's processes: bytes a second of a payload in messages of one size.

    In mode direct a message goes in parts of 56 bytes, 500 of them at most for each process, as all are alike.
    """
    from nicety.cli.channels import Request, bench
    from nicety.cli.files import Files

    request = Request(
        benchmark="channel-bandwidth",
        nics=nic,
        modes=mode,
        directions=direction,
        sizes=sizes,
        processes=processes,
        payload=payload,
        runs=runs,
        overrides=overrides or [],
        noise=noise,
        seed=seed,
        cc=cc,
    )
    files = Files(plot=plot, csv=csv, arrow=arrow, trace=trace, trace_scale=trace_scale)
    bench(request, files, as_json=as_json)


def register(bench: typer.Typer) -> None:
    """Add the commands."""
    bench.command("channel-latency")(_latency)
    bench.command("channel-bandwidth")(_bandwidth)
