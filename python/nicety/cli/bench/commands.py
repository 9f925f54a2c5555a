"""`nicety bench`: commands with the arguments of requests as their options."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nicety import requests
from nicety._generated import types
from nicety.cli.bench.measure import Output, add
from nicety.cli.options import (
    GROUPS,
    AllowFailures,
    Breakdown,
    Compiler,
    CompletionName,
    Defines,
    HeaderName,
    IncludeDirs,
    MapFiles,
    OwnHandlers,
    PayloadName,
    Percentiles,
    ProgramFile,
    Unverified,
    XdpName,
    group,
)
from nicety.shared.options import arguments_of

if TYPE_CHECKING:
    from nicety.usecases import UseCase

bench = group(GROUPS["bench"])


def _messages(
    benchmark: types.MessagesBenchmark,
    *,
    handlers: OwnHandlers = None,
    cc: Compiler = None,
    allow_failures: AllowFailures = None,
    percentiles: Percentiles = False,
    breakdown: Breakdown = False,
    output: Output,
    **given: Any,
) -> None:
    from nicety.bench.messages import benchmark_text, report_figure, run_benchmark
    from nicety.errors import InputError

    if breakdown and benchmark != "latency":
        raise InputError(f"--breakdown: not for {benchmark}; only a latency has stages")
    own: dict[str, Any] = {"handlers": handlers, "cc": cc, "allow_failures": allow_failures or ""}
    output.of(
        partial(run_benchmark, benchmark, **own, **output.timeline, **given),
        benchmark_text,
        report_figure,
        breakdown=breakdown,
        percentiles=percentiles,
    )


def _handlers(
    file: ProgramFile,
    header: HeaderName = None,
    payload: PayloadName = None,
    completion: CompletionName = None,
    include_dirs: IncludeDirs = None,
    defines: Defines = None,
    cc: Compiler = None,
    allow_failures: AllowFailures = None,
    program: XdpName = None,
    maps: MapFiles = None,
    dumps: Annotated[
        list[str] | None,
        typer.Option("--dump", metavar="NAME=FILE", help="Write the entries of an XDP map after the run as JSON."),
    ] = None,
    *,
    unverified: Unverified = False,
    output: Output,
    **given: Any,
) -> None:
    from nicety.bench.line_rate import check_line_rate, line_rate_text
    from nicety.bench.places.losses import lossless
    from nicety.bench.places.pictures import line_rate_figure
    from nicety.cli.files import dump_files, program_of

    named = {"header": header, "payload": payload, "completion": completion}
    own_program: dict[str, Any] = {"program": program, "maps": maps, "dumps": dumps, "unverified": unverified}
    handlers = program_of(file, named, include_dirs, defines, cc, **own_program)
    own: dict[str, Any] = {"dumps": dump_files(file, dumps)}
    allow = allow_failures or ""
    check = partial(check_line_rate, handlers, **own, allow_failures=allow, **output.timeline, **given)
    lossy = not given.get("traffic") or bool(given.get("lossy"))
    output.of(partial(lossless, check, lossy), line_rate_text, line_rate_figure, tells=True)


def _channel_latency(
    cc: Compiler = None,
    percentiles: Percentiles = False,
    breakdown: Breakdown = False,
    *,
    output: Output,
    **given: Any,
) -> None:
    """Measure the latency of messages over channels to the card's processes, including the acknowledgement.

    Messages follow each other on one channel; a figure is their mean.
    """
    from nicety.bench.channels import bench_channels, channel_figure, channel_text

    run = partial(bench_channels, "channel-latency", cc=cc, **output.timeline, **given)
    output.of(run, channel_text, channel_figure, breakdown=breakdown, percentiles=percentiles)


def _channel_bandwidth(cc: Compiler = None, *, output: Output, **given: Any) -> None:
    """Measure the throughput of channels to the card's processes, for a payload in messages of one size.

    In mode direct a message has parts of 56 bytes, at most 500 of them per process, as all parts are alike.
    """
    from nicety.bench.channels import bench_channels, channel_figure, channel_text

    run = partial(bench_channels, "channel-bandwidth", cc=cc, **output.timeline, **given)
    output.of(run, channel_text, channel_figure)


def _registration(*, output: Output, **given: Any) -> None:
    from nicety.bench.interfaces import bench_registration, interface_figure, interface_text

    output.of(partial(bench_registration, **given), interface_text, interface_figure)


def _fairness(*, output: Output, **given: Any) -> None:
    from nicety.bench.interfaces import bench_fairness, interface_figure, interface_text

    output.of(partial(bench_fairness, **given), interface_text, interface_figure)


def _grid(benchmark: types.GridBenchmark, *, output: Output, **given: Any) -> None:
    from nicety.bench.ranks.grid import bench_grid, grid_figure, grid_text

    output.of(partial(bench_grid, benchmark, **given), grid_text, grid_figure, spread=True)


def _torus(*, output: Output, **given: Any) -> None:
    from nicety.bench.ranks.torus import bench_torus, torus_figure, torus_text

    output.of(partial(bench_torus, **given), torus_text, torus_figure)


def _stream(*, output: Output, **given: Any) -> None:
    from nicety.bench.sockets import bench_stream, socket_figure, socket_text

    output.of(partial(bench_stream, **given), socket_text, socket_figure)


def _request_response(*, output: Output, **given: Any) -> None:
    from nicety.bench.sockets import bench_request_response, socket_figure, socket_text

    output.of(partial(bench_request_response, **given), socket_text, socket_figure)


def _xdp(
    file: Annotated[
        Path, typer.Argument(metavar="FILE.o", help="An eBPF object, of nicety cc --xdp or clang -target bpf.")
    ],
    maps: Annotated[
        list[str] | None,
        typer.Option("--map", metavar="NAME=FILE", help="Entries of a map before each run, as bpftool -j prints them."),
    ] = None,
    dumps: Annotated[
        list[str] | None,
        typer.Option("--dump", metavar="NAME=FILE", help="Write the entries of a map after the run as JSON."),
    ] = None,
    *,
    output: Output,
    **given: Any,
) -> None:
    from nicety.bench.xdp import bench_xdp, xdp_figure, xdp_text
    from nicety.cli.files import dump_files, fills

    entries, files = fills(maps), dict(dump_files(file, dumps))
    output.of(partial(bench_xdp, file, maps=entries, dumps=files, **given), xdp_text, xdp_figure)


def _pcie(
    pcie_csv: Annotated[
        Path | None,
        typer.Option("--pcie-csv", metavar="FILE", help="Write the rows as CSV in the columns of pcie-bench."),
    ] = None,
    *,
    output: Output,
    **given: Any,
) -> None:
    from nicety.bench.single.pcie import bench_pcie, pcie_bench_csv, pcie_figure, pcie_text
    from nicety.shared.files import check_place, write_whole

    if pcie_csv is not None:
        check_place(f"--pcie-csv {pcie_csv}", pcie_csv)
    report = output.of(partial(bench_pcie, **given), pcie_text, pcie_figure)
    if pcie_csv is not None:
        write_whole(pcie_csv, pcie_bench_csv(report).encode())


def _contexts(cc: Compiler = None, *, output: Output, **given: Any) -> None:
    from nicety.bench.single.contexts import bench_pcsa, context_figure, context_text

    output.of(partial(bench_pcsa, cc=cc, **given), context_text, context_figure)


def _usecase(
    request: type,
    *,
    handlers: OwnHandlers = None,
    cc: Compiler = None,
    allow_failures: AllowFailures = None,
    percentiles: Annotated[
        bool, typer.Option("--percentiles", help="Show minimum, median, p99 and maximum of the iterations.")
    ] = False,
    output: Output,
    **given: Any,
) -> None:
    from nicety.cli.output import failed, note
    from nicety.usecases import run_usecase
    from nicety.usecases.driver import incomplete_text
    from nicety.usecases.report import report_text, usecase_figure

    case = _case(request, {name: given.pop(name) for name in arguments_of(request) if name in given})
    own: dict[str, Any] = {"handlers": handlers, "cc": cc, "allow_failures": allow_failures or "", "note": note}
    run = partial(run_usecase, case, **own, **output.timeline, **given)
    report = output.of(run, report_text, usecase_figure, percentiles=percentiles)
    if report["incomplete"]:
        raise failed([incomplete_text(row) for row in report["incomplete"]])


def _case(request: type, given: dict[str, Any]) -> UseCase:
    from nicety import usecases

    name = request.__name__.removesuffix("Options")
    if given.pop("overlap", False):
        name = "Overlap"
    case: UseCase = getattr(usecases, name)(**given)
    return case


_MESSAGES: dict[types.MessagesBenchmark, str] = {
    "latency": "Half a round trip between two hosts.",
    "bandwidth": "A window of messages one way, in bytes a second.",
    "message-rate": "A window of messages one way, in messages a second.",
}
for _benchmark, _text in _MESSAGES.items():
    add(bench, _benchmark, partial(_messages, _benchmark), types.MessagesOptions, text=_text)
add(bench, "handlers", _handlers, types.LineRateOptions)
add(bench, "xdp", _xdp, types.XdpOptions, traces=False)
for _name, _request in (
    ("broadcast", requests.BroadcastOptions),
    ("accumulate", requests.AccumulateOptions),
    ("datatype", requests.DatatypeOptions),
    ("matching", requests.MatchingOptions),
    ("storage", requests.StorageOptions),
    ("kv", requests.KeyValueOptions),
):
    add(bench, _name, partial(_usecase, _request), _request, requests.UseCaseOptions)
add(bench, "channel-latency", _channel_latency, types.ChannelOptions, text=_channel_latency.__doc__)
add(bench, "channel-bandwidth", _channel_bandwidth, types.ChannelOptions, text=_channel_bandwidth.__doc__)
add(bench, "registration", _registration, types.RegistrationOptions, traces=False)
add(bench, "fairness", _fairness, types.FairnessOptions, traces=False)
_GRID: dict[types.GridBenchmark, str] = {
    "halo": "Faces exchanged by each rank with its neighbours on a grid, and every value checked.",
    "allreduce": "The sum of all ranks' vectors on every rank, by rings along each dimension of a grid, checked.",
}
for _program, _text in _GRID.items():
    add(bench, _program, partial(_grid, _program), types.GridOptions, text=_text, traces=False)
add(bench, "torus", _torus, types.TorusOptions, traces=False)
add(bench, "stream", _stream, types.StreamOptions, traces=False)
add(bench, "request-response", _request_response, types.ExchangeOptions, traces=False)
add(bench, "pcsa", _contexts, types.ContextOptions, traces=False, captures=False)
add(bench, "pcie", _pcie, types.PcieOptions, traces=False, captures=False)
