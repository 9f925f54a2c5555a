"""The benchmarks of channels: between threads of a host and processes of its card."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, NotRequired, TypedDict, cast

from nicety import _native
from nicety._checks import U32, U64, Names, Numbers, Overrides, changes, names, numbers, whole
from nicety._typed import checked
from nicety.benchmarks import Stage
from nicety.cardinality import compiled

ChannelBenchmark = Literal["channel-latency", "channel-bandwidth"]


class ChannelRow(TypedDict):
    """A card, a mode, a direction and a message size.

    Of `channel-latency`: `latency_ns` is how long a message takes, from the call to its return, when the other end's
    acknowledgement has come; the mean over `iterations` messages that follow each other. A percentile is the nearest
    rank: one that was measured.

    Of `channel-bandwidth`: what `processes` make together of `messages` of `message_bytes`, the mean over `runs`, and
    its standard deviation over them; runs differ in when threads begin, and in noise. `size_bytes` is what is sent at a
    time, which goes in parts of 56 bytes in mode direct. There at most 500 of them are sent by each process, as all of
    them are alike; `payload_bytes` is what was moved.

    `memory` is where on the card messages go to or come from: indirect ones of a latency that fit CTM go there, all
    others to EMEM. `verified` says that every byte was checked at the far end.
    """

    nic: str
    mode: str
    direction: str
    size_bytes: int
    memory: str
    verified: bool
    iterations: NotRequired[int]
    latency_ns: NotRequired[float]
    min_ns: NotRequired[float]
    p50_ns: NotRequired[float]
    p99_ns: NotRequired[float]
    p999_ns: NotRequired[float]
    max_ns: NotRequired[float]
    stages: NotRequired[list[Stage]]
    processes: NotRequired[int]
    message_bytes: NotRequired[int]
    messages: NotRequired[int]
    payload_bytes: NotRequired[int]
    runs: NotRequired[int]
    bandwidth_bytes_per_s: NotRequired[float]
    stddev_bytes_per_s: NotRequired[float]


class ChannelBenchReport(TypedDict):
    """What a benchmark of channels gives; `nicety bench channel-latency --json` prints just this."""

    benchmark: ChannelBenchmark
    version: str
    seed: int
    manifest: dict[str, Any]
    rows: list[ChannelRow]


class _Shown(dict[str, Any]):
    """A report that shows itself as tables in a notebook."""

    def _repr_html_(self) -> str:
        from nicety._notebook import channel_html

        return channel_html(cast(ChannelBenchReport, self))


@checked
def bench_channels(
    benchmark: ChannelBenchmark,
    *,
    nics: Names = ("nfp-4000",),
    modes: Names | None = None,
    directions: Names | None = None,
    sizes: Numbers,
    processes: Numbers = 1,
    payload: int | None = None,
    iterations: int | None = None,
    warmup: int | None = None,
    runs: int | None = None,
    overrides: Overrides = (),
    noise: str | None = None,
    seed: int = 1,
    cc: str | None = None,
    trace: Path | str | None = None,
    trace_scale: Literal["ns", "ps"] = "ns",
    progress: Callable[[int, int], None] | None = None,
) -> ChannelBenchReport:
    """Measure channels: how long a message takes, or how much some processes move together.

    Args:
        benchmark: `channel-latency` or `channel-bandwidth`.
        nics: cards with channels: names of specs, or paths of spec files.
        modes: `direct`, in mailboxes, or `indirect`, by DMA; both if left out.
        directions: `host-to-card` or `card-to-host`; both if left out.
        sizes: message sizes in bytes.
        processes: of the bandwidth: numbers of processes that move the payload at once, each with a thread of the host.
        payload: of the bandwidth: bytes that they move together; 100 Mi if left out.
        iterations: of the latency: how many messages are measured; 100 if left out.
        warmup: of the latency: how many go before these; 1 if left out.
        runs: of the bandwidth: how many runs are measured; 3 if left out.
        overrides: changes to the cards, `KEY=VALUE` with a unit where the key has one: `managers.read=4`.
        noise: background noise on the host's CPUs: `PERIOD,DURATION`, as in `1ms,25us`.
        seed: of every random stream; the same seed gives the same report to the last byte.
        cc: a compiler to use instead of the one in the `ziglang` package.
        trace: a file for a timeline of the first row's first run, to be opened with https://ui.perfetto.dev.
        trace_scale: what a tick of the timeline is, a nanosecond or a picosecond.
        progress: called with the number of rows that are done and that there will be.

    Raises:
        InputError: a card without channels, a mode, direction, size or number that cannot be.
        RunError: the run failed: a wrong byte at the far end, a DMA that failed too often.
    """
    for name, value, most in (
        ("payload", payload, U64),
        ("iterations", iterations, U64),
        ("warmup", warmup, U64),
        ("runs", runs, U32),
        ("seed", seed, U64),
    ):
        if value is not None or name == "seed":
            whole(value, name, most)
    request = json.dumps(
        {
            "benchmark": benchmark,
            "nics": names(nics, "a card", "nfp-4000"),
            "modes": None if modes is None else names(modes, "a mode", "direct"),
            "directions": None if directions is None else names(directions, "a direction", "host-to-card"),
            "sizes": numbers(sizes, "a size"),
            "processes": numbers(processes, "a number of processes", U32),
            "payload": payload,
            "iterations": iterations,
            "warmup": warmup,
            "runs": runs,
            "overrides": changes(overrides),
            "noise": noise,
            "seed": seed,
        }
    )
    elfs: dict[str, bytes] = {}
    compiler: dict[str, dict[str, Any]] = {}
    for item in json.loads(_native.channel_plan(request))["compile"]:
        elfs[item["key"]], compiler[item["key"]] = compiled(item["source"], item["isa"], cc)
    text, recording = _native.channel_bench(request, elfs, progress, trace is not None)
    if trace is not None and recording is not None:
        from nicety.results import write_trace

        write_trace(recording, trace, scale=trace_scale)
    report = json.loads(text)
    report["manifest"]["compiler"] = compiler
    return cast(ChannelBenchReport, _Shown(report))
