"""Streams and ping-pongs with both cards.

The cards differ only in the path to the host, the transmit channels, the interrupt vectors and the pages of buffers.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache

from nicety import _native
from nicety._generated.types import Row, StreamDirection, StreamOptions, StreamRow
from nicety.bench.messages import run_benchmark
from nicety.bench.sockets import bench_stream
from nicety.shared.ranges import format_size
from nicety.show.columns import fixed
from nicety.studies.claims import UNMEASURED, Ours, Tried
from nicety.studies.study import Measured, Options, Table
from nicety.studies.tried import DRIVER, tried

DISCRETE = "niagara2-neptune"
INTEGRATED = "niagara2-niu"
PEER = "xeon-oplin"
_CARDS = {"discrete": DISCRETE, "integrated": INTEGRATED}
ROLES = {**_CARDS, "peer": PEER}
"""Maps a role to the card that has it by default. The user may replace these cards."""
_LARGE = 64 << 10
_CONNECTIONS = 32
_CPUS = 64
_SAVES = 0.05
"""A card saves CPU time if it saves more than this share of a packet's CPU time. Thread phases cause less."""
_PEAK = 0.98
"""A bandwidth reaches the highest bandwidth if it is at least this share of it."""
_CLOCK_GHZ = 1.2
_LATER, _SOONER = 2000, -2100
"""Nanoseconds per packet that experiments add to a driver, or subtract. With either, the drivers differ as in the
paper.
"""
_LONG_STACK = "stack.receive=2010"
"""An override that adds 900 instructions to the stack. A soft ring then needs some 6 us more for a packet."""
_FIGURES = {
    "cpu_ns_per_packet": (1e-3, "us a packet", 2),
    DRIVER: (1e-3, "us a packet in the driver", 2),
    "bandwidth_bits_per_s": (1e-9, "Gb/s", 2),
    "cpu_utilisation": (100, "% of CPUs", 1),
    "interrupt_ns": (1e-3, "us in the handler", 2),
    "instructions_per_packet": (1, "instructions a packet", 0),
    "context_switches_per_packet": (1, "switches a packet", 3),
    "cross_calls_per_packet": (1, "cross-calls a packet", 3),
    "l1_misses_per_packet": (1, "first-level misses a packet", 1),
    "shared_cache_misses_per_packet": (1, "second-level misses a packet", 2),
}
"""Maps a figure of streams to its scale, its unit and its number of digits in experiments."""
_WARM = "100ms"
"""The warm-up. Until its end, timers of 50 ms (delayed acknowledgements and pushes) affect thread wake-ups."""

_READS = "two registers are read an interrupt; no step for each packet waits for the card; see the study's page"
_HOST = "the link limits; in the paper something in the host does, which no source at hand names"
_FOLLOWS = "it hardly rises with the driver's time: tried with 2 us more for each packet in the discrete card's"
_ALIKE = "the model's cards are alike in nearly all rows, so this shows little"
_COPIED = "the card writes frames to memory and the host copies them from memory, wherever the card is"
_UNMODELLED = f"{UNMEASURED}: the model counts a host's instructions, and does not execute them"
_NOTHING = "the model's integrated card saves little anywhere; tried with a driver that takes 2.1 us less"


@lru_cache(maxsize=128)
def _stream(
    options: Options,
    role: str,
    io_size: int = _LARGE,
    connections: int = _CONNECTIONS,
    cpus: int = _CPUS,
    direction: StreamDirection = "receive",
) -> StreamRow:
    """Measure a stream in which at most one of call size, connections and CPUs differs from its default."""
    given = StreamOptions(
        nics=options.card(role, _CARDS[role]),
        peer=options.card("peer", PEER),
        overrides=options.overrides,
        direction=direction,
        warmup=_WARM,
        duration="20ms" if options.quick else "50ms",
        seed=options.seed,
    )
    if io_size != _LARGE:
        given["io_sizes"] = (io_size,)
    if connections != _CONNECTIONS:
        given["connections"] = (connections,)
    if cpus != _CPUS:
        given["cpus"] = (cpus,)
    (row,) = bench_stream(**given)["rows"]
    return row


def _ran(options: Options, role: str, figure: str, *changes: str, points: str = "") -> tuple[Tried, ...]:
    """Measure a stream of one of the paper's cards with overrides. Empty if quick, or if the user changed the cards."""
    if options.quick or options.overrides or options.cards:
        return ()
    scale, unit, decimals = _FIGURES[figure]
    sets = "".join(f" --set {change!r}" for change in changes)
    seed = "" if options.seed == 1 else f" --seed {options.seed}"
    command = f"nicety bench stream --nic {_CARDS[role]} --peer {PEER} --warmup {_WARM} --duration 20ms{points}"
    return (tried(f"{command}{sets}{seed}", figure, scale, unit, decimals),)


@lru_cache(maxsize=1)
def _driver_takes(nanoseconds: int) -> str:
    """Return the override with which the discrete card's driver takes `nanoseconds` more for each packet."""
    spec = json.loads(_native.spec_show(DISCRETE, []))
    values = {each["key"]: each["value"] for each in spec["parameters"]}
    own, cycles = int(values["driver.receive"]), int(values["threads.cycles_per_instruction"])
    return f"driver.receive={own + round(nanoseconds * _CLOCK_GHZ / cycles)}"


def _group(row: StreamRow, name: str) -> float:
    """Return the CPU time per packet of a function group, in microseconds."""
    return sum(group["ns_per_packet"] for group in row["breakdown"] if group["group"] == name) / 1e3


def _percent(integrated: float, discrete: float) -> float:
    return round(100 * (integrated / discrete - 1), 1)


def receive(options: Options) -> Measured:
    """Measure received streams with calls of 64 KiB, 32 connections and 64 CPUs."""
    rows = {name: _stream(options, name) for name in _CARDS}
    discrete, integrated = rows["discrete"], rows["integrated"]
    ours = _times(options, discrete, integrated) | _counts(options, discrete, integrated) | _use(options, rows)
    ours |= {
        "mix": Ours(None, _UNMODELLED),
        "translation": Ours(None, _translations(rows)),
        "breakdown": Ours(None, "the table below"),
    }
    groups = [group["group"] for group in discrete["breakdown"]]
    body = [[group, *(fixed(_group(row, group), 2) for row in rows.values())] for group in groups]
    body.append(["all", *(fixed(row["cpu_ns_per_packet"] / 1e3, 2) for row in rows.values())])
    counted = [
        ["Instructions", *(fixed(row["instructions_per_packet"], 0) for row in rows.values())],
        ["First-level data misses", *(fixed(row["l1_misses_per_packet"], 2) for row in rows.values())],
        ["Second-level misses", *(fixed(row["shared_cache_misses_per_packet"], 2) for row in rows.values())],
        ["Misses of the TLB for data", *(fixed(row["tlb_misses_per_packet"], 3) for row in rows.values())],
        ["Misses of the TLB for code", *(fixed(row["code_tlb_misses_per_packet"], 3) for row in rows.values())],
        ["Context switches", *(fixed(row["context_switches_per_packet"], 3) for row in rows.values())],
        ["Cross-calls", *(fixed(row["cross_calls_per_packet"], 3) for row in rows.values())],
        ["Interrupts", *(fixed(row["interrupts_per_packet"], 3) for row in rows.values())],
    ]
    return Measured(
        ours,
        tables=[
            Table(section="Receive", title="CPU time a packet (us)", rows=[["Group", *rows], *body], note=""),
            Table(section="Receive", title="Counted for each packet", rows=[["Count", *rows], *counted], note=""),
        ],
        data={"receive": rows},
    )


def _translations(rows: Mapping[str, StreamRow]) -> str:
    """Return TLB misses per packet as text: for pages of frames, and for code."""
    data = " and ".join(fixed(row["tlb_misses_per_packet"], 3) for row in rows.values())
    code = " and ".join(fixed(row["code_tlb_misses_per_packet"], 3) for row in rows.values())
    return f"for pages of received frames {data} a packet, for code {code}"


def _crossings(options: Options, figure: str) -> tuple[Tried, ...]:
    """Measure each card: as it is, and with a bus of 800 ns, which is twice that of the discrete card."""
    return tuple(
        each
        for role in ("integrated", "discrete")
        for changes in ((), ("bus.latency=800 ns",))
        for each in _ran(options, role, figure, *changes)
    )


def _later(options: Options, figure: str) -> tuple[Tried, ...]:
    """Measure the discrete card with its own driver, and with a driver that takes 2 us more for each packet."""
    return tuple(
        each for changes in ((), (_driver_takes(_LATER),)) for each in _ran(options, "discrete", figure, *changes)
    )


def _sooner(options: Options, figure: str, points: str = "") -> tuple[Tried, ...]:
    """Measure the integrated card with its own driver, and with a driver that is faster by the paper's difference."""
    return tuple(
        each
        for changes in ((), (_driver_takes(_SOONER),))
        for each in _ran(options, "integrated", figure, *changes, points=points)
    )


def _times(options: Options, discrete: StreamRow, integrated: StreamRow) -> dict[str, Ours]:
    """Return the measurements of CPU time per packet, and of its parts."""
    of_discrete, of_integrated = (row["cpu_ns_per_packet"] / 1e3 for row in (discrete, integrated))
    drivers = {name: _group(row, "driver") for name, row in (("discrete", discrete), ("integrated", integrated))}
    copies = _group(discrete, "copy"), _group(integrated, "copy")
    saved = of_discrete - of_integrated
    outside = saved - (drivers["discrete"] - drivers["integrated"])
    handlers = discrete["interrupt_ns"] / 1e3, integrated["interrupt_ns"] / 1e3
    return {
        "packet-discrete": Ours(round(of_discrete, 2), why="instructions are whole numbers"),
        "driver-discrete": Ours(round(drivers["discrete"], 2), why="instructions are whole numbers"),
        "packet-integrated": Ours(round(of_integrated, 2), why=_READS, tried=_crossings(options, "cpu_ns_per_packet")),
        "driver-integrated": Ours(round(drivers["integrated"], 2), why=_READS, tried=_crossings(options, DRIVER)),
        "handler": Ours(
            round(handlers[0] / handlers[1], 2),
            f"{fixed(handlers[0] / handlers[1], 2)} x, {fixed(handlers[0], 1)} over {fixed(handlers[1], 1)} us",
            why="ours is the handler up to the first frame: two registers, and on PCI Express the calls that take an "
            "interrupt from the bridge's queue; its own instructions are the same on both",
            tried=(
                *_ran(options, "discrete", "interrupt_ns", "bus.latency=800 ns"),
                *_ran(options, "discrete", "interrupt_ns", "bus.interrupt=0", "bus.interrupt_time=0 ns"),
                *_ran(options, "discrete", "interrupt_ns", "driver.interrupt=0"),
                *_ran(options, "integrated", "interrupt_ns", "driver.interrupt=0"),
            ),
        ),
        "outside": Ours(
            saved > _SAVES * of_discrete and outside > saved / 2,
            f"saved {fixed(saved, 2)} us, {fixed(outside, 2)} outside",
            why="too little is saved for its parts to mean anything, and a driver that takes 2.1 us less saves little "
            "more than that",
            tried=_sooner(options, "cpu_ns_per_packet"),
        ),
        "copy": Ours(
            abs(copies[1] / copies[0] - 1) < _SAVES,
            f"{fixed(copies[0], 2)} and {fixed(copies[1], 2)} us",
            why=_COPIED,
        ),
    }


def _counts(options: Options, discrete: StreamRow, integrated: StreamRow) -> dict[str, Ours]:
    """Return the measurements of instructions, misses, context switches and cross-calls per packet."""
    counts = {
        count: round(_stream(options, "discrete", connections=count)["instructions_per_packet"])
        for count in (16, _CONNECTIONS, 64)
    }
    calls = discrete["cross_calls_per_packet"], integrated["cross_calls_per_packet"]
    return {
        "instructions-few": Ours(
            counts[16], why="instructions of a step are whole numbers, and threads wake by chance"
        ),
        "instructions": Ours(
            counts[64] > (1 + _SAVES) * counts[16],
            ", ".join(f"{number} with {count}" for count, number in counts.items()),
            why="a packet's own instructions are constants of the spec; those of looks at other CPUs are not",
            tried=(
                *_ran(options, "discrete", "instructions_per_packet", points=" --connections 64"),
                *_ran(
                    options,
                    "discrete",
                    "instructions_per_packet",
                    "threads.walk=0",
                    "threads.idle_walk=0",
                    points=" --connections 64",
                ),
            ),
        ),
        "cross-calls": Ours(
            calls[1] < (1 - _SAVES) * calls[0],
            f"{fixed(calls[0], 3)} and {fixed(calls[1], 3)}",
            why=_FOLLOWS,
            tried=_later(options, "cross_calls_per_packet"),
        ),
        "switches": Ours(
            _percent(integrated["context_switches_per_packet"], discrete["context_switches_per_packet"]),
            why=_FOLLOWS,
            tried=_later(options, "context_switches_per_packet"),
        ),
        "first-misses": Ours(
            _percent(integrated["l1_misses_per_packet"], discrete["l1_misses_per_packet"]),
            why=_FOLLOWS,
            tried=_later(options, "l1_misses_per_packet"),
        ),
        "second-misses": Ours(
            _percent(integrated["shared_cache_misses_per_packet"], discrete["shared_cache_misses_per_packet"]),
            why=_FOLLOWS,
            tried=_later(options, "shared_cache_misses_per_packet"),
        ),
    }


def _use(options: Options, rows: dict[str, StreamRow]) -> dict[str, Ours]:
    """Return the measurements of bandwidth and of CPU utilisation: of each card, and the ratio of the two."""
    discrete, integrated = rows["discrete"], rows["integrated"]
    ours = {
        "bandwidth-relative": Ours(
            _percent(integrated["bandwidth_bits_per_s"], discrete["bandwidth_bits_per_s"]),
            why=_HOST,
            tried=tuple(each for role in _CARDS for each in _ran(options, role, "bandwidth_bits_per_s", _LONG_STACK)),
        ),
        "cpus-relative": Ours(
            _percent(integrated["cpu_utilisation"], discrete["cpu_utilisation"]),
            why="as CPU time a packet",
            tried=_sooner(options, "cpu_utilisation"),
        ),
    }
    for name, row in rows.items():
        implied = "; the paper's share and bandwidth make 31.2 us a packet" if name == "discrete" else ""
        ours[f"bandwidth-{name}"] = Ours(
            round(row["bandwidth_bits_per_s"] / 1e9, 2),
            why=_HOST,
            tried=_ran(options, name, "bandwidth_bits_per_s", _LONG_STACK),
        )
        ours[f"cpus-{name}"] = Ours(
            round(100 * row["cpu_utilisation"], 1),
            why=f"CPU time a packet times packets{implied}",
            tried=_ran(options, name, "cpu_utilisation", _driver_takes(_LATER if implied else _SOONER)),
        )
    return ours


def where(options: Options) -> Measured:
    """Measure receiving over the call size, the number of connections and of CPUs; and measure transmitting."""
    base = (_LARGE, _CONNECTIONS, _CPUS)
    short = 64
    sizes = (short, _LARGE) if options.quick else (short, 1024, 8192, _LARGE)
    connections = (16, 32, 64) if options.quick else (1, 8, 16, 32, 64)
    cpus = (16, 64) if options.quick else (1, 8, 16, 32, 64)
    points = {(size, base[1], base[2]) for size in sizes}
    points |= {(base[0], count, base[2]) for count in connections} | {(base[0], base[1], count) for count in cpus}
    found = {point: {name: _stream(options, name, *point) for name in _CARDS} for point in sorted(points)}
    sent = {name: _stream(options, name, direction="transmit") for name in _CARDS}

    def rate(connections: int, name: str) -> float:
        return found[_LARGE, connections, _CPUS][name]["bandwidth_bits_per_s"]

    large = _saving(found[base])
    little = _saving(found[short, _CONNECTIONS, _CPUS])
    few = _saving(found[_LARGE, 16, _CPUS])
    few_cpus = _saving(found[_LARGE, _CONNECTIONS, 16])

    def only(elsewhere: float, place: str, points: str) -> Ours:
        text = f"saves {fixed(100 * large, 1)}%, and {fixed(100 * elsewhere, 1)}% with {place}"
        ran = _sooner(options, "cpu_ns_per_packet", points)
        return Ours(large > _SAVES > abs(elsewhere), text, why=_NOTHING, tried=ran)

    low = {name: rate(16, name) / max(rate(count, name) for count in connections) for name in _CARDS}
    transmitted = _saving(sent)
    return Measured(
        {
            "large": only(little, "calls of 64 B", " --io-sizes 64"),
            "small": Ours(abs(little) < _SAVES, f"saves {fixed(100 * little, 1)}%", why=_ALIKE),
            "connections": only(few, "16 connections", " --connections 16"),
            "many-cpus": only(few_cpus, "16 CPUs", " --cpus 16"),
            "peak": Ours(
                max(low.values()) < _PEAK,
                "16 reach " + " and ".join(f"{fixed(100 * share, 1)}%" for share in low.values()),
                why="16 connections spread over channels and soft rings are enough for the link here",
            ),
            "falls": Ours(
                _percent(rate(64, "discrete"), rate(32, "discrete")),
                why="ours has no cost that grows with connections but the caches', and copies where blocks are short",
                tried=tuple(
                    each
                    for changes in (("receive.entries=256",), ("receive.entries=128",))
                    for each in _ran(options, "discrete", "bandwidth_bits_per_s", *changes, points=" --connections 64")
                ),
            ),
            "transmit": Ours(abs(transmitted) < _SAVES, f"saves {fixed(100 * transmitted, 1)}%", why=_ALIKE),
            "transmit-efficiency": Ours(
                _percent(*(_per_gigahertz(sent[name]) for name in ("integrated", "discrete"))),
                why="the source opposes the paper's statement that transmitting gains nothing; both drivers are "
                "the same, and read a register for every 64 frames",
                tried=_transmitted(options),
            ),
            "curves": Ours(None, "the table below"),
        },
        tables=_where_tables(found, sent),
    )


def _per_gigahertz(row: StreamRow) -> float:
    """Return gigabits per second for each gigahertz of busy CPUs, up to a factor that all rows share."""
    return row["bandwidth_bits_per_s"] / (row["cpu_utilisation"] * row["cpus"])


def _transmitted(options: Options) -> tuple[Tried, ...]:
    """Measure transmitting with both cards, and with a discrete card that has its register read for each frame."""
    points = " --direction transmit"
    return (
        *(each for role in _CARDS for each in _ran(options, role, "cpu_utilisation", points=points)),
        *_ran(options, "discrete", "cpu_utilisation", "driver.reclaim=1", points=points),
    )


def _where_tables(
    found: Mapping[tuple[int, int, int], Mapping[str, StreamRow]], sent: Mapping[str, StreamRow]
) -> list[Table]:
    head = [
        "Call",
        "Connections",
        "CPUs",
        *(f"{name}, {what}" for what in ("Gb/s", "CPUs (%)", "us/packet") for name in _CARDS),
    ]
    body = [
        [
            _text(size),
            str(count),
            str(of),
            *(fixed(row["bandwidth_bits_per_s"] / 1e9, 2) for row in rows.values()),
            *(fixed(100 * row["cpu_utilisation"], 1) for row in rows.values()),
            *(fixed(row["cpu_ns_per_packet"] / 1e3, 2) for row in rows.values()),
        ]
        for (size, count, of), rows in found.items()
    ]
    return [
        Table(section="Where it helps", title="Receiving", rows=[head, *body], note=""),
        Table(
            section="Where it helps",
            title="Transmitting, calls of 64 KiB, 32 connections, 64 CPUs",
            rows=[
                ["Card", "Gb/s", "CPUs (%)", "us/packet"],
                *(
                    [
                        name,
                        fixed(row["bandwidth_bits_per_s"] / 1e9, 2),
                        fixed(100 * row["cpu_utilisation"], 1),
                        fixed(row["cpu_ns_per_packet"] / 1e3, 2),
                    ]
                    for name, row in sent.items()
                ),
            ],
            note="",
        ),
    ]


def _saving(rows: dict[str, StreamRow]) -> float:
    """Return the share of a packet's CPU time that the integrated card saves."""
    return 1 - rows["integrated"]["cpu_ns_per_packet"] / rows["discrete"]["cpu_ns_per_packet"]


def latency(options: Options) -> Measured:
    """Measure half a round trip of messages that fit into one frame."""
    sizes = (1, 1024) if options.quick else (1, 64, 256, 1024, 1400)
    curves = {
        name: {row["size_bytes"]: row["latency_ns"] / 1e3 for row in _ping_pong(options, name, sizes)}
        for name in _CARDS
    }
    less = curves["discrete"][sizes[0]] - curves["integrated"][sizes[0]]
    rows = [
        ["Message", *curves],
        *([_text(size), *(fixed(curve[size], 2) for curve in curves.values())] for size in sizes),
    ]
    return Measured(
        {
            "latency": Ours(
                round(less, 2),
                why="two reads, a doorbell, descriptors, frames and completions by DMA, the interrupt with its calls; "
                "the paper has more, or longer, crossings than the assumed values make",
                tried=_far(options),
            )
        },
        tables=[Table(section="Latency", title="Half a round trip (us)", rows=rows, note="")],
    )


def _far(options: Options) -> tuple[Tried, ...]:
    """Measure a ping-pong of the discrete card, and of a discrete card that is twice as far from the host."""
    if options.quick or options.overrides or options.cards:
        return ()
    seed = "" if options.seed == 1 else f" --seed {options.seed}"
    command = f"nicety bench latency --nic {DISCRETE} --peer {PEER} --sizes 1 --iterations 4"
    return tuple(
        tried(f"{command}{way}{seed}", "latency_ns", 1e-3, "us") for way in ("", " --set 'bus.latency=800 ns'")
    )


def _ping_pong(options: Options, role: str, sizes: tuple[int, ...]) -> list[Row]:
    return run_benchmark(
        "latency",
        nics=options.card(role, _CARDS[role]),
        peer=options.card("peer", PEER),
        overrides=options.overrides,
        sizes=sizes,
        iterations=4,
        seed=options.seed,
    )["rows"]


def _text(size: int) -> str:
    """Return a size in short form: 64 B, 64 KiB."""
    shown = format_size(size)
    return f"{shown[:-2]} {shown[-2:]}B" if shown.endswith("i") else f"{shown} B"
