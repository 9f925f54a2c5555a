"""The benchmarks: latency, bandwidth and message rate between two hosts, with the cards' handlers compiled first."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, NotRequired, TypedDict, cast

from nicety import _native
from nicety._checks import MOST_ITERATIONS, MOST_WINDOW, U64, Names, Numbers, Overrides, changes, names, numbers, whole
from nicety._typed import checked
from nicety.compiler import compile_handlers, library_source
from nicety.failures import Allowed, PointFailure, allowed, require_report
from nicety.faults import Faults, faults_text

BenchmarkName = Literal["latency", "bandwidth", "message-rate"]
BENCHMARKS: tuple[BenchmarkName, ...] = ("latency", "bandwidth", "message-rate")


class Stage(TypedDict):
    """A part of a latency: its name, and nanoseconds."""

    stage: str
    ns: float


class HostMemory(TypedDict):
    """Bytes that a node's card read from its host's memory and wrote to it, in the measured iterations."""

    node: int
    read_bytes: int
    written_bytes: int


class Flow(TypedDict):
    """One direction of a pattern that has several: who sends to whom, and what came of it."""

    source: int
    target: int
    latency_ns: NotRequired[float]
    min_ns: NotRequired[float]
    max_ns: NotRequired[float]
    bandwidth_bytes_per_s: NotRequired[float]
    messages_per_s: NotRequired[float]


class Row(TypedDict):
    """One measurement: a card, a mode and a message size.

    Which of the figures it has depends on the benchmark; `verified` says that every byte was checked at its end.
    `min_ns`, `max_ns` and the percentiles are of half round trips in `latency`, whose mean is `latency_ns`, and of
    windows in the others, whose mean is `window_ns`. A percentile is the nearest rank: one that was measured.
    `flows` and, for an incast, `fairness` (the smallest of the senders' figures over the largest) are there where
    several ranks send.
    """

    nic: str
    mode: str
    size_bytes: int
    iterations: int
    verified: bool
    window: NotRequired[int]
    latency_ns: NotRequired[float]
    bandwidth_bytes_per_s: NotRequired[float]
    messages_per_s: NotRequired[float]
    window_ns: NotRequired[float]
    min_ns: float
    p50_ns: float
    p99_ns: float
    p999_ns: float
    max_ns: float
    stages: NotRequired[list[Stage]]
    flows: NotRequired[list[Flow]]
    fairness: NotRequired[float]
    host_memory: list[HostMemory]


class Report(TypedDict):
    """What a benchmark gives; `nicety bench --json` prints just this.

    The manifest names what the figures depend on: the cards' spec hashes, the overrides, the compiler and its flags.
    `failures` is what failed in handlers and was allowed to.
    """

    benchmark: BenchmarkName
    version: str
    seed: int
    manifest: dict[str, Any]
    rows: list[Row]
    failures: list[PointFailure]


class _Shown(dict[str, Any]):
    """A report that shows itself as tables in a notebook."""

    def _repr_html_(self) -> str:
        from nicety._notebook import report_html

        return report_html(cast(Report, self))


@checked
def run_benchmark(
    benchmark: BenchmarkName,
    *,
    nics: Names,
    modes: Names | None = None,
    sizes: Numbers,
    iterations: int | None = None,
    warmup: int | None = None,
    window: int | None = None,
    overrides: Overrides = (),
    pattern: str = "pair",
    topology: str | None = None,
    noise: str | None = None,
    faults: Faults | None = None,
    seed: int = 1,
    handlers: Path | str | None = None,
    cc: str | None = None,
    allow_failures: Allowed = (),
    trace: Path | str | None = None,
    trace_scale: Literal["ns", "ps"] = "ns",
    progress: Callable[[int, int], None] | None = None,
) -> Report:
    """Run a benchmark on one or several cards.

    Args:
        benchmark: `latency` is half a round trip of send and receive, `bandwidth` and `message-rate` are a window of
            messages one way, from the first post to the last completion.
        nics: cards: names of specs, or paths of spec files.
        modes: who answers, for example `rdma` or `spin-stream`; all that a card has where it is left out.
        sizes: message sizes in bytes.
        iterations: how many round trips, or windows, are measured.
        warmup: how many run before these.
        window: messages under way at once, in the two benchmarks that go one way.
        overrides: changes to the cards, `KEY=VALUE` with a unit where the key has one: `hpu.cores=8`.
        pattern: `pair`, rank 0 sends to rank 1; `bidirectional`, both send at once; or `incast:N`, N ranks send to one
            more at once.
        topology: how the hosts are joined: `pair`, `star`, or for example `fat-tree:36`; what the pattern needs
            where it is left out.
        noise: background noise on the hosts' CPUs: `PERIOD,DURATION`, and behind that `fixed` and `rank=N` where they
            are wanted, as in `1ms,25us`.
        faults: what goes wrong in the network, as for a `Cluster`.
        seed: of every random stream; the same seed gives the same report to the last byte.
        handlers: the user's own handlers in C, instead of nicety's.
        cc: a compiler to use instead of the one in the `ziglang` package.
        allow_failures: failures of handlers that are part of the experiment, as for a `Cluster`.
        trace: a file for a timeline of the first card's, mode's and size's run, to be opened with
            https://ui.perfetto.dev; `Run.trace` says what is in it.
        trace_scale: what a tick of the timeline is, a nanosecond or a picosecond.
        progress: called with the number of rows that are done and that there will be.

    Raises:
        InputError: a card, mode, size, override or handler that does not exist or cannot be.
        HandlerFailure: handlers failed that are not allowed to; its `report` is whole.
        RunError: the run failed: a deadlock, a trap in a handler, a wrong byte in a reply.
    """
    for name, value, most in (
        ("iterations", iterations, MOST_ITERATIONS),
        ("warmup", warmup, MOST_ITERATIONS),
        ("window", window, MOST_WINDOW),
        ("seed", seed, U64),
    ):
        if value is not None or name == "seed":
            whole(value, name, most)
    kinds = allowed(allow_failures)
    request = json.dumps(
        {
            "benchmark": benchmark,
            "nics": names(nics, "a card", "spin-discrete"),
            "modes": None if modes is None else names(modes, "a mode", "rdma"),
            "sizes": numbers(sizes, "a size"),
            "iterations": iterations,
            "warmup": warmup,
            "window": window,
            "overrides": changes(overrides),
            "pattern": pattern,
            "topology": topology,
            "noise": noise,
            "faults": faults_text(faults),
            "seed": seed,
            "handlers": handlers is not None,
        }
    )
    plan = json.loads(_native.bench_plan(request))["compile"]
    elfs: dict[str, bytes] = {}
    compiler: dict[str, dict[str, Any]] = {}
    for item in plan:
        source = Path(handlers) if handlers is not None else library_source(item["source"])
        program = compile_handlers([source], isa=item["isa"], cc=cc)
        elfs[item["key"]] = program.elf
        compiler[item["key"]] = {
            "source": str(source) if handlers is not None else source.name,
            "sha256": hashlib.sha256(source.read_bytes()).hexdigest(),
            "version": program.compiler,
            "flags": program.flags,
        }
    text, recording = _native.bench(request, elfs, progress, trace is not None)
    if trace is not None and recording is not None:
        from nicety.results import write_trace

        write_trace(recording, trace, scale=trace_scale)
    report = json.loads(text)
    report["manifest"]["compiler"] = compiler
    shown = cast(Report, _Shown(report))
    require_report(shown, kinds)
    return shown
