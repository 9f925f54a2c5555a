"""`nicety bench channel-latency` and `nicety bench channel-bandwidth`."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from dataclasses import dataclass

from nicety.bench.channels import ChannelBenchmark, bench_channels, channel_text
from nicety.cli.files import Files
from nicety.cli.output import note, parse_names, print_json
from nicety.cli.progress import progress
from nicety.errors import InputError
from nicety.shared.ranges import parse_ranges
from nicety.show.traces import RecordingWarning


@dataclass(frozen=True)
class Request:
    """What the user asked for, as it was written."""

    benchmark: ChannelBenchmark
    nics: Sequence[str]
    modes: Sequence[str] | None
    directions: Sequence[str] | None
    sizes: str
    overrides: Sequence[str]
    noise: str | None
    seed: int
    cc: str | None
    processes: str = "1"
    payload: str | None = None
    iterations: int | None = None
    warmup: int | None = None
    runs: int | None = None


def bench(request: Request, files: Files, *, breakdown: bool = False, percentiles: bool = False, as_json: bool) -> None:
    """Run a benchmark, print its table or its report as JSON, and write the files."""
    files.check()
    payload = None if request.payload is None else parse_ranges(request.payload, "--payload")
    if payload is not None and len(payload) != 1:
        raise InputError(f"--payload {request.payload}: one size, as in --payload 100Mi")
    with warnings.catch_warnings(record=True) as warned, progress("preparing") as bar:
        warnings.simplefilter("always", RecordingWarning)
        report = bench_channels(
            request.benchmark,
            nics=parse_names(request.nics, "--nic"),
            modes=None if request.modes is None else parse_names(request.modes, "--mode"),
            directions=None if request.directions is None else parse_names(request.directions, "--direction"),
            sizes=parse_ranges(request.sizes, "--sizes"),
            processes=parse_ranges(request.processes, "--processes"),
            payload=None if payload is None else payload[0],
            iterations=request.iterations,
            warmup=request.warmup,
            runs=request.runs,
            overrides=request.overrides,
            noise=request.noise,
            seed=request.seed,
            cc=request.cc,
            trace=files.trace,
            trace_scale=files.scale,
            progress=lambda done, total: bar.advance(done, total, "measuring"),
        )
    for warning in warned:
        note(str(warning.message))
    files.write(report, breakdown=breakdown, percentiles=percentiles)
    if as_json:
        print_json(report)
    else:
        sys.stdout.write(channel_text(report, breakdown=breakdown, percentiles=percentiles))
