"""Requests that Python executes itself: use cases, and their arguments; see `nicety.shared.options`.

The first line of each docstring is the help of its command.
"""

from __future__ import annotations

from typing import Annotated, Required, TypedDict

from nicety._generated.types import NetworkOptions
from nicety.shared.checks import U32, Names, Numbers, Overrides
from nicety.shared.options import Option

MOST_ITERATIONS = 10_000_000


class UseCaseOptions(NetworkOptions, total=False):
    """Options of a use case's measurement.

    If the network has faults, each row has `faults`: their effects on each link. If a flow control is named, each row
    has `ports`: drops and pauses of each port. With either of them each row has `transport`: the recovery by each
    rank's card. These counts cover all iterations together.

    Attributes:
        nics: Cards to compare: names of specs, or paths of spec files.
        modes: Modes of the use case, the parts that do the work; all modes by default.
        iterations: Runs per point. The runs differ if there is noise.
        overrides: Changes to the cards, `KEY=VALUE` with a unit if the key has one, for example hpu.cores=8.
        seed: Seed of every random stream; iteration i has seed + i.
    """

    nics: Required[Annotated[Names, Option(example="spin-discrete")]]
    modes: Annotated[Names | None, Option(metavar="M[,N]", example="rdma")]
    iterations: Annotated[int | None, Option(default=1, least=1, most=MOST_ITERATIONS)]
    overrides: Annotated[Overrides | None, Option()]


class ProgramOptions(NetworkOptions, total=False):
    """Programs of a file, on one card after the other.

    If the network has faults, each row has `faults`: their effects on each link. If a flow control is named, each row
    has `ports`: drops and pauses of each port. With either of them each row has `transport`: the recovery by each
    rank's card.

    Attributes:
        nics: Cards to compare: names of specs, or paths of spec files.
        overrides: Changes to the cards, `KEY=VALUE` with a unit if the key has one, for example hpu.cores=8.
        nodes: Number of hosts, instead of the file's.
    """

    nics: Annotated[Names | None, Option(default=["spin-discrete"], usual="spin-discrete")]
    overrides: Annotated[Overrides | None, Option()]
    nodes: Annotated[int | None, Option(least=1, most=U32)]


class BroadcastOptions(TypedDict, total=False):
    """Broadcast bytes of one process to all others, along a binomial tree.

    Attributes:
        nodes: Numbers of processes, one per node: 2:1024 doubles.
        sizes: Bytes to broadcast.
    """

    nodes: Required[Annotated[Numbers, Option(usual="2:32")]]
    sizes: Required[Annotated[Numbers, Option(usual="8,64Ki")]]


class AccumulateOptions(TypedDict, total=False):
    """Multiply an arriving array into an array in host memory.

    Attributes:
        sizes: Bytes of the arriving array, a multiple of 8.
    """

    sizes: Required[Annotated[Numbers, Option(usual="8:1Mi")]]


class DatatypeOptions(TypedDict, total=False):
    """Scatter blocks of a message to separate places in host memory.

    Attributes:
        size: Bytes of the message, as in 4Mi.
        blocks: Lengths of blocks in bytes, which divide the size; for a `list`, mean lengths. Default: the lengths in
            16:256Ki that divide the size and fit.
        layout: `vector`, blocks that begin twice their length apart, or `list`, blocks of random lengths at random
            places.
    """

    size: Required[Annotated[int, Option(usual="4Mi", metavar="BYTES")]]
    blocks: Annotated[Numbers | None, Option(each="the length of a block")]
    layout: Annotated[str | None, Option(default="vector", metavar="vector|list")]


class MatchingOptions(TypedDict, total=False):
    """Match a message with a tag, and fetch its bytes.

    Attributes:
        sizes: Bytes of a message.
        eager_bytes: Maximum size of a message that is sent at once; for a longer one only a request is sent.
        arrivals: Receives posted before or after the message: `expected`, `unexpected`.
        overlap: Measure the part of a transfer that computation at the receiver hides.
    """

    sizes: Required[Annotated[Numbers, Option(usual="8:4Mi")]]
    eager_bytes: Annotated[int | None, Option(default=8192, metavar="BYTES", flag="--eager")]
    arrivals: Annotated[Names | None, Option(default=("expected", "unexpected"))]
    overlap: Annotated[bool | None, Option(default=False)]


class StorageOptions(TypedDict, total=False):
    """Write blocks to a RAID-5 array, read them, and rebuild them.

    Attributes:
        sizes: Bytes of a block; for a rebuild, of the server's contents.
        operations: Measured operations: `write`, `read`, `rebuild`.
        servers: Data servers; one more has the parity, and one node is the client.
        requests: Number of writes or reads in the measured mean time; before a rebuild, number of writes to each
            server.
    """

    sizes: Required[Annotated[Numbers, Option(usual="512:1Mi")]]
    operations: Annotated[Names | None, Option(default=("write", "read", "rebuild"))]
    servers: Annotated[int | None, Option(default=4)]
    requests: Annotated[int | None, Option(default=4)]


class KeyValueOptions(TypedDict, total=False):
    """Insert into a hash table on a server, update, and look up.

    Attributes:
        clients: Numbers of clients, one per node beside the server's: 1:4 doubles.
        operations: Measured operations: `insert`, `update`, `lookup`; inserts precede the others.
        requests: Requests of each kind per client. Each client inserts this number of keys.
        key_bytes: Bytes of a key, a multiple of 8.
        value_bytes: Bytes of a value, a multiple of 8.
        buckets: Buckets of the table, as in 1Ki. Default: four for each key of the largest number of clients. A client
            with a key that finds no bucket gets an error, and the row counts it as `refused`.
    """

    clients: Required[Annotated[Numbers, Option(usual="1:4")]]
    operations: Annotated[Names | None, Option(default=("insert", "update", "lookup"))]
    requests: Annotated[int | None, Option(default=64)]
    key_bytes: Annotated[int | None, Option(default=16, metavar="BYTES")]
    value_bytes: Annotated[int | None, Option(default=64, metavar="BYTES")]
    buckets: Annotated[int | None, Option(metavar="N")]
