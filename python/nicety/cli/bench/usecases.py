"""`nicety bench` of use cases."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nicety.cli.measure import Output, add, signature, take
from nicety.cli.options import (
    AllowFailures,
    Compiler,
    Faults,
    Iterations,
    Nics,
    Noise,
    Overrides,
    OwnHandlers,
    Seed,
    TopologyName,
)

if TYPE_CHECKING:
    from nicety.usecases import UseCase


def _add(bench: typer.Typer, name: str, text: str, build: Callable[..., UseCase]) -> None:
    """Add a use case's command: its options are those of `build`, which makes it, and of all use cases."""
    own = signature(build)

    def act(
        *,
        nic: Nics,
        mode: Annotated[
            list[str] | None, typer.Option(metavar="M[,N]", help="Who does the work; all modes if left out.")
        ] = None,
        iterations: Iterations = None,
        handlers: OwnHandlers = None,
        cc: Compiler = None,
        overrides: Overrides = None,
        topology: TopologyName = None,
        noise: Noise = None,
        faults: Faults = None,
        allow_failures: AllowFailures = None,
        seed: Seed = 1,
        percentiles: Annotated[
            bool, typer.Option("--percentiles", help="Show minimum, median, p99 and maximum of the iterations.")
        ] = False,
        output: Output,
        **parameters: Any,
    ) -> None:
        from nicety.cli.output import failed, note, parse_names
        from nicety.usecases import run_usecase
        from nicety.usecases.driver import incomplete_text
        from nicety.usecases.report import report_text, usecase_figure

        case = build(**parameters)
        report = output.of(
            lambda progress: run_usecase(
                case,
                nics=parse_names(nic, "--nic"),
                modes=None if mode is None else parse_names(mode, "--mode"),
                overrides=overrides or [],
                topology=topology,
                noise=noise,
                faults=faults,
                seed=seed,
                allow_failures=allow_failures or "",
                iterations=iterations or 1,
                handlers=handlers,
                cc=cc,
                trace=output.trace,
                trace_scale=output.scale,
                note=note,
                progress=progress,
            ),
            report_text,
            usecase_figure,
            percentiles=percentiles,
        )
        if report["incomplete"]:
            raise failed([incomplete_text(row) for row in report["incomplete"]])

    nic, *others = (parameter for name, parameter in signature(act).items() if name != "parameters")
    take(act, [nic, *own.values(), *others])
    add(bench, name, act, text=text)


def _broadcast(
    *,
    nodes: Annotated[
        str, typer.Option(metavar="RANGE", help="Numbers of processes, one on each node: 2:1024 doubles.")
    ] = "2:32",
    sizes: Annotated[str, typer.Option(metavar="RANGE", help="Bytes to broadcast.")] = "8,64Ki",
) -> Any:
    from nicety.shared.ranges import parse_ranges
    from nicety.usecases import Broadcast

    return Broadcast(nodes=parse_ranges(nodes, "--nodes"), sizes=parse_ranges(sizes, "--sizes"))


def _accumulate(
    *, sizes: Annotated[str, typer.Option(metavar="RANGE", help="Bytes of the arriving array.")] = "8:1Mi"
) -> Any:
    from nicety.shared.ranges import parse_ranges
    from nicety.usecases import Accumulate

    return Accumulate(sizes=parse_ranges(sizes, "--sizes"))


def _datatype(
    *,
    size: Annotated[str, typer.Option(metavar="BYTES", help="Of the message, as in 4Mi.")] = "4Mi",
    blocks: Annotated[
        str | None,
        typer.Option(
            metavar="RANGE",
            help="Lengths of a block in bytes, which divide the size; 16:256Ki, or what of it divides it and fits.",
        ),
    ] = None,
    layout: Annotated[
        str, typer.Option(metavar="vector|list", help="Blocks twice their length apart, or of random lengths anywhere.")
    ] = "vector",
) -> Any:
    from nicety.cli.output import parse_one
    from nicety.shared.ranges import parse_ranges
    from nicety.usecases import Datatype

    lengths = None if blocks is None else parse_ranges(blocks, "--blocks")
    return Datatype(
        size=parse_one(size, "--size", "one size, as in 4Mi; a range is for --blocks"), blocks=lengths, layout=layout
    )


def _matching(
    *,
    sizes: Annotated[str, typer.Option(metavar="RANGE", help="Bytes of a message.")] = "8:4Mi",
    eager: Annotated[
        str, typer.Option(metavar="BYTES", help="The longest message that is sent at once, without a request.")
    ] = "8Ki",
    arrival: Annotated[
        str, typer.Option(metavar="A[,B]", help="Receives posted before or after: expected, unexpected.")
    ] = "expected,unexpected",
    overlap: Annotated[
        bool, typer.Option("--overlap", help="How much of a transfer computing at the receiver hides.")
    ] = False,
) -> Any:
    from nicety.cli.output import parse_names, parse_one
    from nicety.shared.ranges import parse_ranges
    from nicety.usecases import Matching, Overlap

    return (Overlap if overlap else Matching)(
        sizes=parse_ranges(sizes, "--sizes"),
        eager_bytes=0 if eager == "0" else parse_one(eager, "--eager", "one number of bytes, as in 8Ki"),
        arrivals=parse_names([arrival], "--arrival"),
    )


def _storage(
    *,
    sizes: Annotated[str, typer.Option(metavar="RANGE", help="Bytes of a block.")] = "512:1Mi",
    operation: Annotated[
        str, typer.Option(metavar="O[,P]", help="What is measured: write, read, rebuild.")
    ] = "write,read,rebuild",
    servers: Annotated[int, typer.Option(metavar="N", help="Data servers; one more has the parity.")] = 4,
    requests: Annotated[int, typer.Option(metavar="N", help="Writes or reads whose mean is taken.")] = 4,
) -> Any:
    from nicety.cli.output import parse_names
    from nicety.shared.ranges import parse_ranges
    from nicety.usecases import Storage

    operations = parse_names([operation], "--operation")
    return Storage(sizes=parse_ranges(sizes, "--sizes"), operations=operations, servers=servers, requests=requests)


def _kv(
    *,
    clients: Annotated[str, typer.Option(metavar="RANGE", help="Numbers of clients: 1:4 doubles.")] = "1:4",
    operation: Annotated[
        str, typer.Option(metavar="O[,P]", help="What is measured: insert, update, lookup.")
    ] = "insert,update,lookup",
    requests: Annotated[int, typer.Option(metavar="N", help="Of each kind, from each client.")] = 64,
    key_bytes: Annotated[str, typer.Option(metavar="BYTES", help="Of a key, a multiple of 8.")] = "16",
    value_bytes: Annotated[str, typer.Option(metavar="BYTES", help="Of a value, a multiple of 8.")] = "64",
    buckets: Annotated[
        str | None, typer.Option(metavar="N", help="Of the table, as in 1Ki; four a key if left out.")
    ] = None,
) -> Any:
    from nicety.cli.output import parse_names, parse_one
    from nicety.shared.ranges import parse_ranges
    from nicety.usecases import KeyValue

    return KeyValue(
        clients=parse_ranges(clients, "--clients"),
        operations=parse_names([operation], "--operation"),
        requests=requests,
        key_bytes=parse_one(key_bytes, "--key-bytes"),
        value_bytes=parse_one(value_bytes, "--value-bytes"),
        buckets=None if buckets is None else parse_one(buckets, "--buckets"),
    )


def register(bench: typer.Typer) -> None:
    """Add the commands of all use cases."""
    _add(bench, "broadcast", "Bytes of one process to all others, along a binomial tree.", _broadcast)
    _add(bench, "accumulate", "An arriving array multiplied into one in host memory.", _accumulate)
    _add(bench, "datatype", "Blocks of a message to places of their own in host memory.", _datatype)
    _add(bench, "matching", "A message with a tag: who matches it, and who gets its bytes.", _matching)
    _add(bench, "storage", "Blocks written to a RAID-5 array, read, and rebuilt.", _storage)
    _add(bench, "kv", "Inserts into a hash table on a server, updates, and lookups.", _kv)
