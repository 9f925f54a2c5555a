"""A key-value store: clients insert into a hash table in a server's memory, change values there, and look keys up.

| mode | the table is kept by |
|---|---|
| `host` | the server's CPU: it notices a request, hashes the key, probes buckets, and posts the reply |
| `spin` | handlers: they do the same on the card, with the table in host memory, for several requests concurrently |

| operation | request of a client |
|---|---|
| `insert` | keys that are not in the table, each once |
| `update` | other values for keys inserted before, drawn with replacement |
| `lookup` | keys; half of them were never inserted |

A key is in the first bucket that was free when it was inserted; the search begins at the bucket of its hash. Each
client has one request in flight. First all clients insert. Then they do the measured operation, if it is not `insert`.
The time is from a client's post until the client has noticed the reply. An insert that finds no free bucket is refused
and counted.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, Any, ClassVar, Unpack

from nicety.errors import InputError, RunError
from nicety.program.buffers import Buffer
from nicety.program.host import Host
from nicety.requests import KeyValueOptions
from nicety.shared.options import arguments_of, asked
from nicety.shared.typed import checked
from nicety.usecases.case import Card, Figure, Outcome, Point, Trial, UseCase, require_equal

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

OPERATIONS: Sequence[str] = arguments_of(KeyValueOptions)["operations"].option.default
_PT = 1
_SERVER = 0
_WORD = 8
_EVENTS = 4
"""Number of events that a client's event queue holds."""
_LARGEST_TABLE = 1 << 31
"""Maximum size of the table in bytes: handlers count bytes in 32 bits."""
_MOST_REQUESTS, _MOST_CLIENTS = 100_000, 1024
_BUCKETS_A_KEY = 4
"""Default number of buckets per key. The table stays three quarters empty, so few keys probe the same bucket."""
_HASH_CYCLES = 4
"""Cycles of a CPU core per byte of a key in FNV-1a; assumed: a dependent XOR and multiplication."""
_PROBE_CYCLES = 8
"""Cycles of a CPU core per bucket in its cache; assumed: a load, two comparisons, and a correctly predicted branch."""


class Message(IntEnum):
    """The kinds of messages, with the numbers of kv.h."""

    INSERT = 1
    LOOKUP = 2
    REPLY = 3


class Answer(IntEnum):
    """The kinds of replies, with the numbers of kv.h."""

    INSERTED = 0
    UPDATED = 1
    FOUND = 2
    ABSENT = 3
    FULL = 4


_READY = 2
"""`KV_READY` of kv.h."""


def hash_of(key: bytes) -> int:
    """Return the FNV-1a hash of a key, with 32 bits."""
    value = 2166136261
    for byte in key:
        value = (value ^ byte) * 16777619 & 0xFFFFFFFF
    return value


@dataclass(frozen=True)
class Table:
    """A hash table that is processed sequentially, for reference.

    Attributes:
        memory: the table's buckets. A bucket has a word with the key's hash, the key, and the value.
        key_bytes: bytes of a key.
        value_bytes: bytes of a value.
    """

    memory: npt.NDArray[np.uint8]
    key_bytes: int
    value_bytes: int

    @property
    def bucket_bytes(self) -> int:
        """The size of a bucket in bytes."""
        return _WORD + self.key_bytes + self.value_bytes

    @property
    def buckets(self) -> int:
        """The number of buckets."""
        return len(self.memory) // self.bucket_bytes

    @property
    def used(self) -> int:
        """The number of buckets that have a key."""
        words = self.memory.reshape(self.buckets, self.bucket_bytes)[:, :_WORD]
        return int(words.any(axis=1).sum())

    def word(self, bucket: int) -> int:
        """Return a bucket's first word, which has the hash of its key."""
        return int.from_bytes(self._part(bucket, 0, _WORD), "little")

    def key(self, bucket: int) -> bytes:
        """Return a bucket's key."""
        return self._part(bucket, _WORD, self.key_bytes)

    def value(self, bucket: int) -> bytes:
        """Return a bucket's value."""
        return self._part(bucket, _WORD + self.key_bytes, self.value_bytes)

    def find(self, key: bytes) -> tuple[list[int], bool]:
        """Return the probed buckets, and whether the last of them has the key."""
        hashed, probed = hash_of(key), []
        for step in range(self.buckets):
            bucket = (hashed + step) % self.buckets
            probed.append(bucket)
            word = self.word(bucket)
            if word == 0:
                break
            if word == hashed << 32 | _READY and self.key(bucket) == key:
                return probed, True
        return probed, False

    def insert(self, key: bytes, value: bytes) -> tuple[Answer, list[int]]:
        """Insert a key with a value, or change the value of a key. Return the answer and the probed buckets."""
        import numpy as np

        probed, found = self.find(key)
        bucket = probed[-1]
        if not found and self.word(bucket) != 0:
            return Answer.FULL, probed
        content = struct.pack("<Q", hash_of(key) << 32 | _READY) + key + value
        self.memory[bucket * self.bucket_bytes :][: self.bucket_bytes] = np.frombuffer(content, np.uint8)
        return Answer.UPDATED if found else Answer.INSERTED, probed

    def _part(self, bucket: int, offset: int, length: int) -> bytes:
        start = bucket * self.bucket_bytes + offset
        return self.memory[start : start + length].tobytes()


class KeyValue(UseCase):
    """A key-value store, for each number of clients.

    Args:
        given: the arguments of `KeyValueOptions`.

    Raises:
        InputError: an argument is invalid, or the table is too large.
    """

    name: ClassVar[str] = "kv"
    title: ClassVar[str] = "Key-value store"
    meaning: ClassVar[str] = "requests of all clients that are answered in a second"
    modes: ClassVar[Sequence[str]] = ("host", "spin")
    axis: ClassVar[str] = "clients"
    figure: ClassVar[Figure] = Figure("operations_per_s", "Operations (10^6/s)", 1e6, 4)
    sources: ClassVar[dict[str, str]] = {"spin": "kv.c"}

    @checked
    def __init__(self, **given: Unpack[KeyValueOptions]) -> None:
        clients, operations, requests, key_bytes, value_bytes, buckets = asked(KeyValueOptions, given).values()
        for operation in operations:
            if operation not in OPERATIONS:
                raise InputError(f"--operation: there is no operation {operation!r}; there are {', '.join(OPERATIONS)}")
        for count in clients:
            if not 1 <= count <= _MOST_CLIENTS:
                raise InputError(f"--clients: a store has 1 to {_MOST_CLIENTS} clients, not {count}")
        if not 1 <= requests <= _MOST_REQUESTS:
            raise InputError(f"--requests: a client has 1 to {_MOST_REQUESTS} requests of each kind, not {requests}")
        for option, size in (("--key-bytes", key_bytes), ("--value-bytes", value_bytes)):
            if size % _WORD or size < _WORD:
                raise InputError(f"{option}: keys and values have 8, 16, 24 ... bytes, not {size}")
        bucket = _WORD + key_bytes + value_bytes
        if buckets is None:
            buckets = _BUCKETS_A_KEY * max(clients, default=1) * requests
        if buckets < 1 or buckets * bucket > _LARGEST_TABLE:
            raise InputError(
                f"--buckets: a table has 1 bucket or more, and {_LARGEST_TABLE} bytes or less, not {buckets} buckets "
                f"with {bucket} bytes each"
            )
        sizes = {"requests": requests, "key_bytes": key_bytes, "value_bytes": value_bytes, "buckets": buckets}
        self._points = [
            {"operation": operation, "clients": count, **sizes}
            for operation in dict.fromkeys(operations)
            for count in clients
        ]

    def points(self) -> Sequence[Point]:
        """The points: every measured operation with every number of clients."""
        return self._points

    def nodes(self, point: Point) -> int:
        """Return the number of clients, and 1 for the server."""
        return int(point["clients"]) + 1

    def check(self, card: Card, mode: str, point: Point) -> None:
        """Raise an error if a request is longer than a packet, or HPU memory has no room for a bucket per processor."""
        request = point["key_bytes"] + point["value_bytes"]
        if mode == "spin" and request > card.packet_bytes:
            raise InputError(
                f"a request with {request} bytes of key and value is longer than a packet of {card.packet_bytes}; name "
                "shorter ones with --key-bytes and --value-bytes, or set packet.payload"
            )
        needed, memory = len(_state(card, point)), card.size_bytes("hpu.memory")
        if mode == "spin" and needed > memory:
            raise InputError(f"handlers keep {needed} bytes in HPU memory, but the card has {memory}; set hpu.memory")

    def needs(self, _card: Card, mode: str, point: Point) -> Mapping[str, int]:
        """Return the needs of the server or a client: memory for the table and requests, and in mode `host` entries."""
        clients, request = point["clients"], point["key_bytes"] + point["value_bytes"]
        server, client = point["buckets"] * (_WORD + request), request + point["value_bytes"]
        needs = {"limits.portal_table": _PT + 1, "limits.event_queues": 2}
        if mode == "spin":
            return needs | {"limits.event_queue_depth": _EVENTS, "host.memory": max(server + request, client)}
        return needs | {
            "limits.match_entries": clients,
            "limits.descriptors": 2,
            "limits.event_queue_depth": max(_EVENTS, 2 * clients),
            "host.memory": max(server + clients * request, client),
        }

    def incomplete(self, row: Mapping[str, Any]) -> str | None:
        """Return a line with the number of refused requests, or None."""
        if not row["refused"]:
            return None
        keys = row["clients"] * row["requests"]
        return (
            f"{row['refused']:g} requests were refused: the table is full, with {row['buckets']} buckets for {keys} "
            f"keys; leave --buckets out for four buckets per key, or set it to {4 * keys}"
        )

    def run(self, trial: Trial) -> Outcome:
        """Insert, do the measured operation, and compare the final table and every reply with a dict."""
        import numpy as np

        point = trial.point
        store = _Store(trial)
        programs: dict[int, Any] = dict.fromkeys(range(1, point["clients"] + 1), store.client)
        run = trial.cluster(point["clients"] + 1).run({_SERVER: store.server, **programs})
        kept: dict[bytes, bytes] = {}
        for rank in programs:
            kept |= run.results[rank].kept
        left = Table(run.results[_SERVER].array, point["key_bytes"], point["value_bytes"])
        _compare(left, kept, full=store.refused > 0)
        if point["clients"] == 1:
            # With one client the order of inserts is known, so every byte of the table is known.
            plain = Table(np.zeros_like(left.memory), point["key_bytes"], point["value_bytes"])
            requests = store.requests(1)
            for key, value in requests.inserts + (requests.updates if point["operation"] == "update" else []):
                plain.insert(key, value)
            require_equal(left.memory, plain.memory, "the server's table has")
        phases = [run.results[rank].times[point["operation"]] for rank in programs]
        times = sorted(ended - begun for phase in phases for begun, ended in phase)
        wall_ps = max(phase[-1][1] for phase in phases) - min(phase[0][0] for phase in phases)
        return Outcome(
            run,
            -(-sum(times) // len(times)),
            {
                "operations_per_s": len(times) * 1e12 / wall_ps,
                "refused": store.refused,
                "operation_p99_ns": times[math.ceil(0.99 * len(times)) - 1] / 1000,
            },
        )


def _compare(left: Table, kept: dict[bytes, bytes], *, full: bool) -> None:
    """Compare a table with the keys and values that it must have according to the replies to clients.

    Raises:
        RunError: they differ. The text has the difference.
    """
    used = left.used
    if used != len(kept):
        raise RunError(f"the server's table has {used} keys instead of {len(kept)}")
    if full and used != left.buckets:
        raise RunError(f"a client was told that the table is full, but {left.buckets - used} buckets are empty")
    for key, value in kept.items():
        probed, found = left.find(key)
        if not found:
            raise RunError(f"the server's table lacks the key {key.hex()}")
        if left.value(probed[-1]) != value:
            raise RunError(f"the server's table has another value for the key {key.hex()}")


@dataclass(frozen=True)
class _Requests:
    """A client's requests in the order of sending: inserts of new keys, updates of some of these keys, and lookups."""

    inserts: list[tuple[bytes, bytes]]
    updates: list[tuple[bytes, bytes]]
    lookups: list[bytes]


@dataclass(frozen=True)
class _ClientResults:
    """A client's results: the keys and values that the table has by its replies, and request times by operation."""

    kept: dict[bytes, bytes]
    times: dict[str, list[tuple[int, int]]]


class _Store:
    """The programs of the server and of the clients."""

    def __init__(self, trial: Trial) -> None:
        self.trial = trial
        self.point = trial.point
        self.refused = 0

    def requests(self, client: int) -> _Requests:
        """Draw a client's requests. Half of the lookups are for keys that are never inserted.

        The keys of a client differ from each other, and from the keys of other clients.
        """
        import numpy as np

        count, key, value = (self.point[name] for name in ("requests", "key_bytes", "value_bytes"))
        rng = np.random.default_rng([self.trial.seed, client])
        # A key contains the client's number and its own number, so that all keys differ.
        drawn = rng.integers(0, 256, (2 * count, key), np.uint8)
        numbers = np.arange(2 * count, dtype="<u4") + client * 2 * _MOST_REQUESTS
        drawn[:, :4] = numbers.view(np.uint8).reshape(-1, 4)
        keys = [row.tobytes() for row in drawn]
        values = [row.tobytes() for row in rng.integers(0, 256, (2 * count, value), np.uint8)]
        changed = [keys[number] for number in rng.integers(0, count, count)]
        present, absent = rng.integers(0, count, count), count + rng.integers(0, count, count)
        chosen = np.where(rng.random(count) < 0.5, present, absent)  # noqa: PLR2004, half of them
        inserts = list(zip(keys[:count], values[:count], strict=True))
        return _Requests(inserts, list(zip(changed, values[count:], strict=True)), [keys[number] for number in chosen])

    async def client(self, host: Host) -> _ClientResults:
        """Insert, then do the measured operation, one request at a time. Check every reply against a dict."""
        portals = host.portals
        requests, seen = self.requests(host.rank), _ClientResults({}, {name: [] for name in OPERATIONS})
        out, back = (
            host.alloc(self.point["key_bytes"] + self.point["value_bytes"]),
            host.alloc(self.point["value_bytes"]),
        )
        md, eq = portals.md_bind(out, options=["event_send_disable"]), portals.eq_alloc(_EVENTS)
        portals.pt_alloc(pt=_PT, eq=eq)
        options = ["op_put", "event_link_disable"]
        await portals.me_append(back, pt=_PT, match_bits=Message.REPLY, options=options)
        own, measured = (md, eq, out, back), self.point["operation"]
        await host.barrier()
        await self._store(host, requests.inserts, own, seen, "insert")
        await host.barrier()
        if measured == "update":
            await self._store(host, requests.updates, own, seen, measured)
        for key in requests.lookups if measured == "lookup" else ():
            answer, found = await self._ask(host, Message.LOOKUP, key, own, seen.times[measured])
            _require(answer, [Answer.FOUND if key in seen.kept else Answer.ABSENT], key)
            if found != seen.kept.get(key, b""):
                raise RunError(f"the reply has another value for the key {key.hex()}")
        return seen

    async def _store(
        self,
        host: Host,
        pairs: list[tuple[bytes, bytes]],
        own: tuple[int, int, Buffer, Buffer],
        seen: _ClientResults,
        operation: str,
    ) -> None:
        """Send inserts of keys with their values, one at a time. Count the refused ones."""
        for key, value in pairs:
            answer, _ = await self._ask(host, Message.INSERT, key + value, own, seen.times[operation])
            if key in seen.kept:
                right = [Answer.UPDATED]
            else:
                # A full table stays full: a key that was refused once is refused again.
                right = [Answer.INSERTED, Answer.FULL] if operation == "insert" else [Answer.FULL]
            _require(answer, right, key)
            if answer != Answer.FULL:
                seen.kept[key] = value
            else:
                self.refused += 1

    async def _ask(
        self,
        host: Host,
        what: Message,
        request: bytes,
        own: tuple[int, int, Buffer, Buffer],
        times: list[tuple[int, int]],
    ) -> tuple[int, bytes]:
        """Send a request and wait for the reply. Return the answer and the value in the reply."""
        import numpy as np

        md, eq, out, back = own
        out.array[: len(request)] = np.frombuffer(request, np.uint8)
        begun = host.now_ps
        await host.portals.put(md, len(request), to=_SERVER, pt=_PT, match_bits=what, hdr_data=host.rank)
        event = await host.portals.eq_wait(eq)
        times.append((begun, host.now_ps))
        return event.hdr_data, back.array[: event.mlength_bytes].tobytes()

    async def server(self, host: Host) -> Buffer:
        """Make a table. Handlers or the CPU then serve requests from it."""
        portals = host.portals
        key, value, clients = (self.point[name] for name in ("key_bytes", "value_bytes", "clients"))
        table = host.alloc(self.point["buckets"] * (_WORD + key + value))
        if self.trial.handlers is not None:
            portals.pt_alloc(pt=_PT)
            state = _state(self.trial.card, self.point)
            attached = portals.attach(self.trial.handlers, state=state, memory=table)
            options = ["op_put", "event_comm_disable", "event_link_disable"]
            # The entry takes every request. Handlers read requests from packets, so its memory is never written.
            unused = host.alloc(key + value)
            await portals.me_append(unused, pt=_PT, ignore_bits=_ANYTHING, options=options, handlers=attached)
            await host.barrier()
            await host.barrier()
            return table
        eq, arrived = portals.eq_alloc(2 * clients), {}
        portals.pt_alloc(pt=_PT, eq=eq)
        for rank in range(1, clients + 1):
            arrived[rank] = host.alloc(key + value)
            options = ["op_put", "event_link_disable"]
            await portals.me_append(arrived[rank], pt=_PT, ignore_bits=_ANYTHING, source=rank, options=options)
        await host.barrier()
        await self._serve(host, eq, table, arrived)
        await host.barrier()
        if self.point["operation"] != "insert":
            await self._serve(host, eq, table, arrived)
        return table

    async def _serve(self, host: Host, eq: int, table: Buffer, arrived: dict[int, Buffer]) -> None:
        """Serve one request per key and client on the CPU."""
        portals = host.portals
        length = self.point["key_bytes"]
        plain = Table(table.array, length, self.point["value_bytes"])
        md = portals.md_bind(table, options=["event_send_disable"])
        for _ in range(self.point["requests"] * self.point["clients"]):
            event = await portals.eq_wait(eq)
            request = arrived[event.initiator][: event.mlength_bytes]
            key, value = request.array[:length].tobytes(), request.array[length:].tobytes()
            word, size = 0, 0
            if event.match_bits == Message.INSERT:
                answer, probed = plain.insert(key, value)
                writes = [] if answer == Answer.FULL else [probed[-1]]
            else:
                probed, found = plain.find(key)
                answer, writes = (Answer.FOUND if found else Answer.ABSENT), []
                if found:
                    word, size = probed[-1] * plain.bucket_bytes + _WORD + length, plain.value_bytes
            cycles = _HASH_CYCLES * length + _PROBE_CYCLES * len(probed)
            reads = [(bucket * plain.bucket_bytes, _WORD + length) for bucket in probed]
            written = [(bucket * plain.bucket_bytes, plain.bucket_bytes) for bucket in writes]
            await host.compute(cycles=cycles, reads=[request, (table, reads)], writes=[(table, written)])
            await portals.put(
                md, size, to=event.initiator, pt=_PT, match_bits=Message.REPLY, local_offset=word, hdr_data=answer
            )


_ANYTHING = (1 << 64) - 1


def _require(answer: int, right: Sequence[Answer], key: bytes) -> None:
    if answer not in right:
        names = " or ".join(one.name for one in right)
        raise RunError(f"the reply for the key {key.hex()} says {_name(answer)} instead of {names}")


def _name(answer: int) -> str:
    return Answer(answer).name if answer in list(Answer) else str(answer)


def _state(card: Card, point: Point) -> bytes:
    """Return `kv_t` of kv.h as bytes."""
    bucket = _WORD + point["key_bytes"] + point["value_bytes"]
    head = struct.pack("<4I", point["buckets"], point["key_bytes"], point["value_bytes"], bucket)
    return head + bytes(bucket * card.count("hpu.cores"))
