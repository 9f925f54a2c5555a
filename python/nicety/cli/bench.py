"""`nicety bench`."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from nicety.bench.messages import BenchmarkName, Report, benchmark_text, run_benchmark
from nicety.cli.files import Files
from nicety.cli.output import note, parse_names, print_json, with_report
from nicety.cli.progress import progress
from nicety.errors import InputError
from nicety.shared.ranges import parse_ranges
from nicety.show.traces import RecordingWarning

_SIZES: dict[BenchmarkName, str] = {"latency": "8:4Mi", "bandwidth": "8:4Mi", "message-rate": "8:4Ki"}


@dataclass(frozen=True)
class Request:
    """What the user asked for, as it was written."""

    benchmark: BenchmarkName
    nics: Sequence[str]
    modes: Sequence[str] | None
    sizes: str | None
    iterations: int | None
    warmup: int | None
    window: int | None
    handlers: Path | None
    cc: str | None
    overrides: Sequence[str]
    pattern: str
    topology: str | None
    noise: str | None
    faults: str | None
    seed: int
    allow_failures: str


def bench(request: Request, files: Files, *, breakdown: bool, percentiles: bool, as_json: bool) -> None:
    """Run a benchmark, print its table or its report as JSON, and write the files."""
    if breakdown and request.benchmark != "latency":
        raise InputError(f"--breakdown: not for {request.benchmark}; only a latency has stages")
    if request.window is not None and request.benchmark == "latency":
        raise InputError("--window: not for latency, which has one message under way at a time")
    files.check()
    sizes = request.sizes if request.sizes is not None else _SIZES[request.benchmark]
    with warnings.catch_warnings(record=True) as warned, progress("preparing") as bar:
        warnings.simplefilter("always", RecordingWarning)
        report, failed = with_report(
            Report,
            run_benchmark,
            request.benchmark,
            nics=parse_names(request.nics, "--nic"),
            modes=None if request.modes is None else parse_names(request.modes, "--mode"),
            sizes=parse_ranges(sizes, "--sizes"),
            iterations=request.iterations,
            warmup=request.warmup,
            window=request.window,
            overrides=request.overrides,
            pattern=request.pattern,
            topology=request.topology,
            noise=request.noise,
            faults=request.faults,
            seed=request.seed,
            allow_failures=request.allow_failures,
            handlers=request.handlers,
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
        sys.stdout.write(benchmark_text(report, breakdown=breakdown, percentiles=percentiles))
    if failed is not None:
        raise failed
