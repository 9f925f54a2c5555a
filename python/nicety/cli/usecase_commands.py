"""`nicety bench` of use cases: their commands and options."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Annotated, Any

import typer

from nicety.cli.options import (
    AllowFailures,
    Arrow,
    Compiler,
    Csv,
    Faults,
    Iterations,
    Json,
    Nics,
    Noise,
    Overrides,
    OwnHandlers,
    Plot,
    Seed,
    TopologyName,
    Trace,
    TraceScale,
)


def _shared(
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
    plot: Plot = None,
    csv: Csv = None,
    arrow: Arrow = None,
    trace: Trace = None,
    trace_scale: TraceScale = None,
    as_json: Json = False,
) -> tuple[Any, Any, dict[str, bool]]:
    """The options of every use case, as the request, the files, and what is shown."""
    from nicety.cli.files import Files
    from nicety.cli.usecase import Request

    request = Request(
        nics=nic,
        modes=mode,
        iterations=iterations,
        handlers=handlers,
        cc=cc,
        overrides=overrides or [],
        topology=topology,
        noise=noise,
        faults=faults,
        allow_failures=allow_failures or "",
        seed=seed,
    )
    files = Files(plot=plot, csv=csv, arrow=arrow, trace=trace, trace_scale=trace_scale)
    return request, files, {"percentiles": percentiles, "as_json": as_json}


def register(bench: typer.Typer, name: str, text: str, build: Callable[..., Any]) -> None:
    """Add a use case's command: its options are those of `build`, which makes a `UseCase`, and of `_shared`."""
    own = inspect.signature(build, eval_str=True).parameters
    shared = inspect.signature(_shared, eval_str=True).parameters

    def command(**given: Any) -> None:
        from nicety.cli.usecase import usecase

        case = build(**{option: given.pop(option) for option in own})
        request, files, shown = _shared(**given)
        usecase(case, request, files, **shown)

    nic, *others = shared.values()
    parameters = [nic, *own.values(), *others]
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # typer reads it
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    bench.command(name, help=text)(command)


def _one(text: str, option: str, wanted: str = "one number, as in 1Ki") -> int:
    from nicety.errors import InputError
    from nicety.shared.ranges import parse_ranges

    numbers = parse_ranges(text, option)
    if len(numbers) != 1:
        raise InputError(f"{option} {text}: {wanted}")
    return numbers[0]


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
    from nicety.shared.ranges import parse_ranges
    from nicety.usecases import Datatype

    lengths = None if blocks is None else parse_ranges(blocks, "--blocks")
    return Datatype(
        size=_one(size, "--size", "one size, as in 4Mi; a range is for --blocks"), blocks=lengths, layout=layout
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
    from nicety.cli.output import parse_names
    from nicety.shared.ranges import parse_ranges
    from nicety.usecases import Matching, Overlap

    return (Overlap if overlap else Matching)(
        sizes=parse_ranges(sizes, "--sizes"),
        eager_bytes=0 if eager == "0" else _one(eager, "--eager", "one number of bytes, as in 8Ki"),
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
    from nicety.cli.output import parse_names
    from nicety.shared.ranges import parse_ranges
    from nicety.usecases import KeyValue

    return KeyValue(
        clients=parse_ranges(clients, "--clients"),
        operations=parse_names([operation], "--operation"),
        requests=requests,
        key_bytes=_one(key_bytes, "--key-bytes"),
        value_bytes=_one(value_bytes, "--value-bytes"),
        buckets=None if buckets is None else _one(buckets, "--buckets"),
    )


def register_all(bench: typer.Typer) -> None:
    """Add the commands of all use cases."""
    register(bench, "broadcast", "Bytes of one process to all others, along a binomial tree.", _broadcast)
    register(bench, "accumulate", "An arriving array multiplied into one in host memory.", _accumulate)
    register(bench, "datatype", "Blocks of a message to places of their own in host memory.", _datatype)
    register(bench, "matching", "A message with a tag: who matches it, and who gets its bytes.", _matching)
    register(bench, "storage", "Blocks written to a RAID-5 array, read, and rebuilt.", _storage)
    register(bench, "kv", "Inserts into a hash table on a server, updates, and lookups.", _kv)
