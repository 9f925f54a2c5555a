"""`nicety bench`."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from nicety.benchmarks import BenchmarkName, run_benchmark
from nicety.cli.output import print_json
from nicety.errors import InputError
from nicety.ranges import parse_ranges
from nicety.tables import benchmark_text

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
    seed: int


def bench(request: Request, *, breakdown: bool, as_json: bool) -> None:
    """Run a benchmark and print its table, or its report as JSON."""
    if breakdown and request.benchmark != "latency":
        raise InputError(f"--breakdown: not for {request.benchmark}; only a latency has stages")
    if request.window is not None and request.benchmark == "latency":
        raise InputError("--window: not for latency, which has one message under way at a time")
    sizes = request.sizes if request.sizes is not None else _SIZES[request.benchmark]
    with _progress() as progress:
        report = run_benchmark(
            request.benchmark,
            nics=_names(request.nics, "--nic"),
            modes=None if request.modes is None else _names(request.modes, "--mode"),
            sizes=parse_ranges(sizes, "--sizes"),
            iterations=request.iterations,
            warmup=request.warmup,
            window=request.window,
            overrides=request.overrides,
            seed=request.seed,
            handlers=request.handlers,
            cc=request.cc,
            progress=progress,
        )
    if as_json:
        print_json(report)
    else:
        sys.stdout.write(benchmark_text(report, breakdown=breakdown))


def _names(items: Sequence[str], option: str) -> list[str]:
    """The names of a list between commas, each once."""
    names = [name.strip() for item in items for name in item.split(",")]
    if not all(names):
        raise InputError(f"{option} {','.join(items)!r}: an empty name; write names between commas")
    return list(dict.fromkeys(names))


@contextlib.contextmanager
def _progress() -> Iterator[Callable[[int, int], None] | None]:
    """A bar on stderr that is gone at the end; nothing where nobody watches."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("measuring", total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
