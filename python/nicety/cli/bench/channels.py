"""`nicety bench channel-latency` and `channel-bandwidth`: channels to the card's processes."""

from __future__ import annotations

from typing import Annotated

import typer

from nicety.cli.measure import Output, add
from nicety.cli.options import Breakdown, Compiler, Iterations, Nics, Noise, Overrides, Percentiles, Seed, Warmup

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
    *,
    output: Output,
) -> None:
    """Channels to the card's processes: how long a message takes, its acknowledgement included.

    Messages follow each other on one channel, 100 of them unless told otherwise; a figure is their mean.
    """
    from nicety.bench.channels import bench_channels, channel_figure, channel_text
    from nicety.cli.output import parse_names
    from nicety.shared.ranges import parse_ranges

    output.of(
        lambda progress: bench_channels(
            "channel-latency",
            nics=parse_names(nic, "--nic"),
            modes=None if mode is None else parse_names(mode, "--mode"),
            directions=None if direction is None else parse_names(direction, "--direction"),
            sizes=parse_ranges(sizes, "--sizes"),
            iterations=iterations,
            warmup=warmup,
            overrides=overrides or [],
            noise=noise,
            seed=seed,
            cc=cc,
            trace=output.trace,
            trace_scale=output.scale,
            progress=progress,
        ),
        channel_text,
        channel_figure,
        breakdown=breakdown,
        percentiles=percentiles,
    )


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
    *,
    output: Output,
) -> None:
    """Channels to the card's processes: bytes a second of a payload in messages of one size.

    In mode direct a message goes in parts of 56 bytes, 500 of them at most for each process, as all are alike.
    """
    from nicety.bench.channels import bench_channels, channel_figure, channel_text
    from nicety.cli.output import parse_names, parse_one
    from nicety.shared.ranges import parse_ranges

    output.of(
        lambda progress: bench_channels(
            "channel-bandwidth",
            nics=parse_names(nic, "--nic"),
            modes=None if mode is None else parse_names(mode, "--mode"),
            directions=None if direction is None else parse_names(direction, "--direction"),
            sizes=parse_ranges(sizes, "--sizes"),
            processes=parse_ranges(processes, "--processes"),
            payload=parse_one(payload, "--payload", "one size, as in --payload 100Mi"),
            runs=runs,
            overrides=overrides or [],
            noise=noise,
            seed=seed,
            cc=cc,
            trace=output.trace,
            trace_scale=output.scale,
            progress=progress,
        ),
        channel_text,
        channel_figure,
    )


def register(bench: typer.Typer) -> None:
    """Add the commands."""
    add(bench, "channel-latency", _latency)
    add(bench, "channel-bandwidth", _bandwidth)
