"""Requests of what Python runs itself: use cases, and what may be asked of each; see `nicety.shared.options`.

The first line of each is what its command says of itself.
"""

from __future__ import annotations

from typing import Annotated, Required, TypedDict

from nicety.shared.checks import U32, Names, Numbers, Overrides
from nicety.shared.options import Option
from nicety.shared.types import NetworkOptions

MOST_ITERATIONS = 10_000_000


class UseCaseOptions(NetworkOptions, total=False):
    """How a use case is measured.

    Where the network has faults, each row has `faults`, what happened on links, and where its flow control is named
    `ports`, what they dropped and paused; and with either `transport`, what each rank's card did about it, of all
    iterations together.

    Attributes:
        nics: Cards to compare: names of specs, or paths of spec files.
        modes: Who does the work; all modes of the use case if left out.
        iterations: Runs of each point, which differ where there is noise.
        overrides: Changes to the cards, `KEY=VALUE` with a unit where the key has one, for example hpu.cores=8.
        seed: Of every random stream; iteration i has seed + i.
    """

    nics: Required[Annotated[Names, Option(example="spin-discrete")]]
    modes: Annotated[Names | None, Option(metavar="M[,N]", example="rdma")]
    iterations: Annotated[int | None, Option(default=1, least=1, most=MOST_ITERATIONS)]
    overrides: Annotated[Overrides | None, Option()]


class ProgramOptions(NetworkOptions, total=False):
    """Programs of a file, on one card after the other.

    Where the network has faults, each row has `faults`, what happened on links, and where its flow control is named
    `ports`, what they dropped and paused; and with either `transport`, what each rank's card did about it.

    Attributes:
        nics: Cards to compare: names of specs, or paths of spec files.
        overrides: Changes to the cards, `KEY=VALUE` with a unit where the key has one, for example hpu.cores=8.
        nodes: Hosts, instead of what the file says.
    """

    nics: Annotated[Names | None, Option(default=["spin-discrete"], usual="spin-discrete")]
    overrides: Annotated[Overrides | None, Option()]
    nodes: Annotated[int | None, Option(least=1, most=U32)]


class BroadcastOptions(TypedDict, total=False):
    """Bytes of one process to all others, along a binomial tree.

    Attributes:
        nodes: Numbers of processes, one on each node: 2:1024 doubles.
        sizes: Bytes to broadcast.
    """

    nodes: Required[Annotated[Numbers, Option(usual="2:32")]]
    sizes: Required[Annotated[Numbers, Option(usual="8,64Ki")]]


class AccumulateOptions(TypedDict, total=False):
    """An arriving array multiplied into one in host memory.

    Attributes:
        sizes: Bytes of the arriving array, in whole numbers of 8 bytes.
    """

    sizes: Required[Annotated[Numbers, Option(usual="8:1Mi")]]


class DatatypeOptions(TypedDict, total=False):
    """Blocks of a message to places of their own in host memory.

    Attributes:
        size: Bytes of the message, as in 4Mi.
        blocks: Lengths of blocks in bytes, which divide the size; their mean for a `list`. Default: of 16:256Ki what
            divides it and fits.
        layout: `vector`, blocks twice their length apart, or `list`, of random lengths anywhere.
    """

    size: Required[Annotated[int, Option(usual="4Mi", metavar="BYTES")]]
    blocks: Annotated[Numbers | None, Option(each="the length of a block")]
    layout: Annotated[str | None, Option(default="vector", metavar="vector|list")]


class MatchingOptions(TypedDict, total=False):
    """A message with a tag: its matching, and fetching its bytes.

    Attributes:
        sizes: Bytes of a message.
        eager_bytes: The longest message that is sent at once; of a longer one only a request.
        arrivals: Receives posted before or after the message: `expected`, `unexpected`.
        overlap: How much of a transfer computing at the receiver hides.
    """

    sizes: Required[Annotated[Numbers, Option(usual="8:4Mi")]]
    eager_bytes: Annotated[int | None, Option(default=8192, metavar="BYTES", flag="--eager")]
    arrivals: Annotated[Names | None, Option(default=("expected", "unexpected"))]
    overlap: Annotated[bool | None, Option(default=False)]


class StorageOptions(TypedDict, total=False):
    """Blocks written to a RAID-5 array, read, and rebuilt.

    Attributes:
        sizes: Bytes of a block; of the server's contents where it is rebuilt.
        operations: What is measured: `write`, `read`, `rebuild`.
        servers: Data servers; one more has the parity, and one node is the client.
        requests: Writes or reads whose mean time is measured; before a server is rebuilt, writes to each.
    """

    sizes: Required[Annotated[Numbers, Option(usual="512:1Mi")]]
    operations: Annotated[Names | None, Option(default=("write", "read", "rebuild"))]
    servers: Annotated[int | None, Option(default=4)]
    requests: Annotated[int | None, Option(default=4)]


class KeyValueOptions(TypedDict, total=False):
    """Inserts into a hash table on a server, updates, and lookups.

    Attributes:
        clients: Numbers of clients, one on each node beside the server's: 1:4 doubles.
        operations: What is measured: `insert`, `update`, `lookup`; inserts come before the others.
        requests: Requests of each kind from each client, which inserts so many keys.
        key_bytes: Bytes of a key, a multiple of 8.
        value_bytes: Bytes of a value, a multiple of 8.
        buckets: Buckets of the table, as in 1Ki. Default: four for each key of the largest number of clients. A client
            whose key finds none hears so, and the row counts it as `refused`.
    """

    clients: Required[Annotated[Numbers, Option(usual="1:4")]]
    operations: Annotated[Names | None, Option(default=("insert", "update", "lookup"))]
    requests: Annotated[int | None, Option(default=64)]
    key_bytes: Annotated[int | None, Option(default=16, metavar="BYTES")]
    value_bytes: Annotated[int | None, Option(default=64, metavar="BYTES")]
    buckets: Annotated[int | None, Option(metavar="N")]
