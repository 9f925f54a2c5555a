"""`nicety bench`: its commands and their options."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nicety.cli.options import (
    AllowFailures,
    Arrow,
    Breakdown,
    Compiler,
    Csv,
    Defines,
    Faults,
    IncludeDirs,
    Iterations,
    Json,
    Nics,
    Noise,
    Overrides,
    OwnHandlers,
    Percentiles,
    Plot,
    Seed,
    TopologyName,
    Trace,
    TraceScale,
    Warmup,
    group,
)
from nicety.cli.usecase_commands import register_all
from nicety.shared.checks import MOST_WINDOW, U64

if TYPE_CHECKING:
    from nicety.bench.messages import BenchmarkName

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
        plot: Plot = None,
        csv: Csv = None,
        arrow: Arrow = None,
        trace: Trace = None,
        trace_scale: TraceScale = None,
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
                faults=faults,
                allow_failures=allow_failures or "",
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


@bench.command("handlers")
def _handlers(
    file: Annotated[Path, typer.Argument(metavar="FILE.c", help="The handlers, in C.")],
    nic: Nics,
    packet_sizes: Annotated[
        str | None,
        typer.Option(
            "--packet-sizes",
            metavar="RANGE",
            help="Payload bytes of a packet: 64:4Ki doubles. Default: that, as far as the packets of all cards carry.",
        ),
    ] = None,
    message_packets: Annotated[
        int | None, typer.Option(min=1, max=U64, metavar="N", help="Packets of a message. Default 64.")
    ] = None,
    messages: Annotated[
        int | None,
        typer.Option(min=1, max=U64, metavar="N", help="Messages measured. Default: as many as have 2048 packets."),
    ] = None,
    state: Annotated[
        str | None,
        typer.Option(metavar="HEX", help="What the handlers' state begins with, as in 0100ff."),
    ] = None,
    state_bytes: Annotated[
        str | None, typer.Option(metavar="SIZE", help="Bytes of the handlers' state. Default 1Ki.")
    ] = None,
    user_header: Annotated[
        str | None, typer.Option(metavar="HEX", help="What every message begins with; the rest is random.")
    ] = None,
    handler_memory: Annotated[
        str, typer.Option(metavar="SIZE", help="Bytes of host memory that only handlers use.")
    ] = "64Ki",
    header: Annotated[
        str | None, typer.Option(metavar="NAME", help="The header handler, if not header_handler.")
    ] = None,
    payload: Annotated[
        str | None, typer.Option(metavar="NAME", help="The payload handler, if not payload_handler.")
    ] = None,
    completion: Annotated[
        str | None, typer.Option(metavar="NAME", help="The completion handler, if not completion_handler.")
    ] = None,
    include_dirs: IncludeDirs = None,
    defines: Defines = None,
    cc: Compiler = None,
    overrides: Overrides = None,
    allow_failures: AllowFailures = None,
    seed: Seed = 1,
    plot: Plot = None,
    csv: Csv = None,
    arrow: Arrow = None,
    trace: Trace = None,
    trace_scale: TraceScale = None,
    as_json: Json = False,
) -> None:
    """Send packets to handlers at the rate of the wire: what each takes, and whether the card keeps up.

    The rate of the wire is a packet every max(g, bytes x G): the card's gap between messages, or the link's time for
    the bytes.
    """
    from nicety.build.sources import Handlers
    from nicety.cli.bench_handlers import Request, bench_handlers
    from nicety.cli.files import Files

    bench_handlers(
        Request(
            handlers=Handlers(
                file,
                header=header,
                payload=payload,
                completion=completion,
                include_dirs=include_dirs or [],
                defines=defines or [],
                cc=cc,
            ),
            nics=nic,
            packet_sizes=packet_sizes,
            message_packets=message_packets,
            messages=messages,
            overrides=overrides or [],
            state=state,
            state_bytes=state_bytes,
            user_header=user_header,
            handler_memory=handler_memory,
            allow_failures=allow_failures or "",
            seed=seed,
        ),
        Files(plot=plot, csv=csv, arrow=arrow, trace=trace, trace_scale=trace_scale),
        as_json=as_json,
    )


register_all(bench)
