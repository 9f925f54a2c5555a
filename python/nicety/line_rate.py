"""Do handlers keep up with the wire? A card is sent packets as fast as its link takes them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Literal, TypedDict, cast

from nicety import _native
from nicety._checks import U64, Names, Numbers, Overrides, changes, names, numbers, whole
from nicety._typed import checked
from nicety.errors import InputError
from nicety.failures import Allowed, PointFailure, allowed, require_report
from nicety.handlers import Handlers
from nicety.quantities import size_bytes
from nicety.refusals import Refused

MOST_STATE = 64 << 20
MOST_MEMORY = 1 << 30


class HandlerFigures(TypedDict):
    """What the runs of one handler took; `handler` is `header`, `payload` or `completion`.

    Cycles and time are those on its processor, waiting for transfers and commands included; `queued_ns_mean` is how
    long it waited for a processor before. A percentile is the nearest rank: one that was measured. `returned` counts
    the runs by what they returned.
    """

    handler: str
    runs: int
    cycles_mean: float
    cycles_p99: int
    cycles_max: int
    instructions_mean: float
    instructions_p99: int
    instructions_max: int
    time_ns_mean: float
    time_ns_p99: float
    queued_ns_mean: float
    returned: dict[str, int]


class PacketFates(TypedDict):
    """What became of the packets measured, each of which is in one of these.

    `processed`: its payload handler returned `SUCCESS`. `dropped`: it returned `DROP`, or its message's header handler
    did. `proceeded`: it went on to host memory, since the header handler returned `PROCEED`, or there is no payload
    handler. `failed`: its handler failed, or one of its message did before.
    """

    processed: int
    dropped: int
    proceeded: int
    failed: int


class Loads(TypedDict):
    """What packets at the wire's rate ask of each resource of the card, over what it has.

    `lock` is the word of memory that handlers hold longest, each for itself.
    """

    hpus: float
    matching: float
    link: float
    bus_to_card: float
    bus_to_host: float
    lock: float


class Lock(TypedDict):
    """A word of memory that handlers have waited for, in the whole run: a lock, mostly.

    `word` says which: `byte 8 of the state`. `taken_at` is the line that takes it, `given_back_at` the one that gives
    it back, where it is another, and `waited_at` the one at which handlers wait. `held_ns` is how long a packet has it,
    and `handed_over_ns` how long it lies free for a packet although a handler waits. Since two cannot hold it, all
    processors together bring at most `most_packets_per_s` through, however many there are.
    """

    word: str
    taken_at: str
    given_back_at: str | None
    waited_at: str
    waits: int
    held_ns: float
    handed_over_ns: float
    load: float
    most_packets_per_s: float


class LineRateRow(TypedDict):
    """One measurement: a card and a packet size.

    `cycles_*` and `instructions_*` are of payload handlers, and None where none ran; `handlers` has each kind.
    `handler_ns` is the time that a packet keeps handler processors in all, and `handler_budget_ns` what it may be.
    `limited_by` names the resource that cannot keep up: `handler processors`, `matching unit`, `link`, `bus to card`,
    `bus to host`; `lock`, a word of memory that one handler at a time has; `packet buffer` where none of them has too
    much to do and there are too few places for the packets under way; or `waiting`. `hpus_needed` is None where no
    number of processors would do, and `reachable_fraction` is what any number of them would reach of the wire's rate.
    `packet_fates` is what became of the packets, and `sent_per_packet` how many the card sent for each that came.
    `refused_commands` are those that handlers gave and the card refused, in the whole run: messages before and after
    those measured are in it. `packet_wire_bytes` is what a packet takes of the link, its header among it.
    """

    nic: str
    packet_bytes: int
    message_packets: int
    messages: int
    packets: int
    cycles_mean: float | None
    cycles_p99: int | None
    instructions_mean: float | None
    instructions_p99: int | None
    packet_fates: PacketFates
    sent_per_packet: float
    handlers: list[HandlerFigures]
    handler_ns: float
    handler_budget_ns: float
    hpus_needed: int | None
    hpus: int
    sustains_line_rate: bool
    limited_by: str | None
    reachable_fraction: float
    packet_interval_ns: float
    packet_wire_bytes: int
    line_rate_packets_per_s: float
    packets_per_s: float
    line_rate_fraction: float
    bandwidth_bytes_per_s: float
    buffer_packets_used: int
    buffer_packets: int
    loads: Loads
    locks: list[Lock]
    refused_commands: list[Refused]


class LineRateReport(TypedDict):
    """What a line-rate check gives; `nicety bench handlers --json` prints just this.

    `failures` is what failed in handlers, in the whole run, and was allowed to.
    """

    benchmark: Literal["handlers"]
    version: str
    seed: int
    manifest: dict[str, Any]
    rows: list[LineRateRow]
    failures: list[PointFailure]


class _Shown(dict[str, Any]):
    """A report that shows itself as tables in a notebook."""

    def _repr_html_(self) -> str:
        from nicety._notebook import line_rate_html

        return line_rate_html(cast(LineRateReport, self))


_USUAL_SIZES = (64, 128, 256, 512, 1024, 2048, 4096)


def _fitting(cards: Sequence[str], overrides: Sequence[str]) -> list[int]:
    """The usual packet sizes that the packets of all cards carry, or the most that they do where that is less."""
    payloads = [
        size_bytes(parameter["value"])
        for card in cards
        for parameter in json.loads(_native.spec_show(card, list(overrides)))["parameters"]
        if parameter["key"] == "packet.payload"
    ]
    most = min(payloads, default=_USUAL_SIZES[-1])
    return [size for size in _USUAL_SIZES if size <= most] or [most]


@checked
def check_line_rate(
    handlers: Handlers | Path | str,
    *,
    nics: Names = ("spin-discrete",),
    packet_sizes: Numbers | None = None,
    message_packets: int | None = None,
    messages: int | None = None,
    overrides: Overrides = (),
    state: bytes = b"",
    state_bytes: int | None = None,
    user_header: bytes = b"",
    handler_memory: int = 65536,
    include_dirs: Iterable[Path | str] = (),
    defines: Iterable[str] = (),
    cc: str | None = None,
    allow_failures: Allowed = (),
    seed: int = 1,
    trace: Path | str | None = None,
    trace_scale: Literal["ns", "ps"] = "ns",
    progress: Callable[[int, int], None] | None = None,
) -> LineRateReport:
    """Send packets to handlers at the rate of the wire, and see whether they keep up.

    The rate of the wire is a packet every max(g, bytes x G): the card's gap between messages, or the link's time for
    the bytes. The handlers serve one persistent match entry, to which messages come one behind the other.

    Args:
        handlers: a C file, or `Handlers` with the names of what is in it.
        nics: cards: names of specs, or paths of spec files.
        packet_sizes: payload bytes of a packet, each a row; by default 64 to 4096, doubled, as far as packets of all
            cards carry.
        message_packets: packets of a message, 64 by default.
        messages: how many messages are measured; by default as many as have 2048 packets. Others come before and after.
        overrides: changes to the cards, `KEY=VALUE` with a unit where the key has one: `hpu.cores=8`.
        state: what the handlers' state begins with; zeros follow.
        state_bytes: size of the state in HPU memory; 1024, or that of `state`, by default.
        user_header: what every message begins with; the rest is random.
        handler_memory: bytes of the second host memory region, which only handlers use.
        include_dirs: further folders for `#include`.
        defines: macros, `NAME` or `NAME=VALUE`.
        cc: a compiler to use instead of the one in the `ziglang` package.
        allow_failures: failures of handlers that are part of the experiment, as for a `Cluster`.
        seed: of every random stream; the same seed gives the same report to the last byte.
        trace: a file for a timeline of the first row's run, to be opened with https://ui.perfetto.dev.
        trace_scale: what a tick of the timeline is, a nanosecond or a picosecond.
        progress: called with the number of rows that are done and that there will be.

    Raises:
        InputError: a card, size, override or handler that does not exist or cannot be.
        HandlerTrap: a handler failed; the text says in which line.
        HandlerFailure: handlers failed that are not allowed to; its `report` is whole.
        RunError: the run failed otherwise.
    """
    state, user_header = bytes(state), bytes(user_header)
    if state_bytes is None:
        state_bytes = max(1024, len(state))
    for name, value, most in (
        ("message_packets", message_packets, U64),
        ("messages", messages, U64),
        ("state_bytes", state_bytes, MOST_STATE),
        ("handler_memory", handler_memory, MOST_MEMORY),
        ("seed", seed, U64),
    ):
        if value is not None:
            whole(value, name, most)
    program = handlers if isinstance(handlers, Handlers) else Handlers(handlers)
    if include_dirs or defines or cc is not None:
        if isinstance(handlers, Handlers):
            raise InputError("include_dirs, defines and cc are those of the Handlers; give them there")
        program = Handlers(handlers, include_dirs=include_dirs, defines=defines, cc=cc)
    called = {"header": program.header, "payload": program.payload, "completion": program.completion}
    cards, changed = names(nics, "a card", "spin-discrete"), changes(overrides)
    sizes = _fitting(cards, changed) if packet_sizes is None else numbers(packet_sizes, "a packet size")
    kinds = allowed(allow_failures)
    request = json.dumps(
        {
            "nics": cards,
            "packet_sizes": sizes,
            "message_packets": message_packets,
            "messages": messages,
            "overrides": changed,
            "state_bytes": state_bytes,
            "state": list(state),
            "user_header": list(user_header),
            "handler_memory": handler_memory,
            "names": called,
            "seed": seed,
        }
    )
    elfs: dict[str, bytes] = {}
    compiler: dict[str, dict[str, Any]] = {}
    for item in json.loads(_native.line_rate_plan(request))["compile"]:
        compiled = program.compile(isa=item["isa"])
        elfs[item["key"]] = compiled.elf
        compiler[item["key"]] = {
            "sources": [_source(path) for path in program.paths()],
            "version": compiled.compiler,
            "flags": compiled.flags,
        }
    text, recording = _native.line_rate_run(request, elfs, progress, trace is not None)
    if trace is not None and recording is not None:
        from nicety.results import write_trace

        write_trace(recording, trace, scale=trace_scale)
    report = json.loads(text)
    report["manifest"]["compiler"] = compiler
    shown = cast(LineRateReport, _Shown(report))
    require_report(shown, kinds)
    return shown


def _source(path: Path) -> dict[str, str]:
    return {"source": str(path), "sha256": hashlib.sha256(path.read_bytes()).hexdigest()}
