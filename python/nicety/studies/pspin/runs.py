"""The runs by which PsPIN was calibrated: a handler gets one message of 32 packets, with a packet every 20 cycles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from nicety.build.compiler import library_source
from nicety.build.sources import Handlers
from nicety.program.cluster import Cluster
from nicety.program.host import Host
from nicety.show.columns import fixed
from nicety.studies.claims import Ours, read_paper
from nicety.studies.study import Measured, Options, Table

CARD = "pspin"
PAPER = read_paper("nicety.studies.pspin")
_PT, _BITS = 1, 5
_PACKETS = 32
_PACKETS_ALONE = 12
"""Number of packets in a run in which each packet is alone on the card. Only with this number, one cold run gives both
averages of the RTL: 6.3 cycles, and a latency of 33.3 cycles. So these averages follow from the RTL's other numbers,
and are no predictions.
"""
_GAP = 20
"""Cycles of 1 ns between the starts of two packets."""
_ALONE = 2000
"""Cycles between the starts of two packets, so that each is alone on the card."""
_AFTER = 4
"""Cycles of a recorded run after the handler: a second read of the cycle counter, and `hpu.cycles.handler_end`."""

_LINES = "two lines that are not in the instruction cache take 17 cycles; on the RTL they take 16"
_SUM = "the stages and the handler's instructions take cycles that are in the card's spec"
_ORDER = "which accesses DMA holds up depends on the order of GCC's instructions, which is not known"
_REASONS = {
    "unloaded-cycles-min": _SUM,
    "unloaded-latency-min": _SUM,
    "empty-cycles-min": _SUM,
    "empty-latency-min": _SUM,
    "unloaded-cycles-avg": "the cold run is a cycle longer than the RTL's",
    "unloaded-latency-avg": "the cold run is a cycle longer than the RTL's",
    "unloaded-cycles-max": _LINES,
    "empty-cycles-max": _LINES,
    "pingpong-1024-cycles-min": _ORDER,
    "pingpong-1024-cycles-avg": _ORDER,
}


@dataclass(frozen=True)
class Runs:
    """The runs of one handler for one message. A list has a number per packet; times are in cycles of 1 ns."""

    cycles: list[int]
    instructions: list[int]
    processors: int
    latencies: list[int]
    settled: list[int]
    ended: int
    """The time at which the last packet has left and the completion handler's writes, if any, are done."""


def _measure(options: Options, name: str, size: int, gap: int = _GAP) -> Runs:
    """Send packets of `size` bytes, one every `gap` cycles, to a handler of the library."""
    # The sum's completion handler writes the sum to host memory. The other programs have no completion handler.
    handlers = Handlers(library_source(f"pspin/{name}.c"), defines=["COMPLETION"])
    return measure(options, handlers, size, gap, _PACKETS_ALONE if gap == _ALONE else _PACKETS)


def measure(
    options: Options, program: Handlers, size: int, gap: float, packets_sent: int, changes: Sequence[str] = ()
) -> Runs:
    """Send a message of `packets_sent` packets of `size` bytes, one every `gap` cycles, to a program's handlers."""
    overrides = [*options.overrides, f"packet.payload={size}B", f"link.gap={1000 * gap / size}ps/B", *changes]
    cluster = Cluster(2, options.card("card", CARD), set=overrides, recording="packets", seed=options.seed)
    length = packets_sent * size

    async def send(host: Host) -> None:
        message, answers = host.alloc(length), host.alloc(length)
        for packet in range(packets_sent):
            # The packet has an IP header of five words with the packet's length, and words to add.
            begin = packet * size
            message.array[begin : begin + size] = (packet + 1) & 0xFF
            message.array[begin : begin + 4] = [0x54, 0, size & 0xFF, size >> 8]
        host.portals.pt_alloc(pt=_PT)
        await host.portals.me_append(answers, pt=_PT, match_bits=_BITS, options=["op_put", "event_link_disable"])
        md = host.portals.md_bind(message, options=["event_send_disable"])
        await host.barrier()
        await host.portals.put(md, length, to=1, pt=_PT, match_bits=_BITS)

    async def receive(host: Host) -> None:
        handlers = host.portals.attach(program)
        host.portals.pt_alloc(pt=_PT)
        memory = host.alloc(length)
        wanted = ["op_put", "event_link_disable"]
        await host.portals.me_append(memory, pt=_PT, match_bits=_BITS, handlers=handlers, options=wanted)
        await host.barrier()

    run = cluster.run({0: send, 1: receive})
    runs, packets = run.handler_runs, run.packets
    payload = [row for row, handler in enumerate(runs.column("handler")) if handler == "payload"]
    ours = [row for row, source in enumerate(packets.column("source")) if source == 0]
    arrived = [packets.column("arrived_ps")[row] for row in ours]
    settled = [packets.column("settled_ps")[row] for row in ours]
    ended = settled if len(payload) == len(runs) else [*settled, *filter(None, run.messages.column("completed_ps"))]
    return Runs(
        cycles=[runs.column("cycles")[row] - _AFTER for row in payload],
        instructions=[runs.column("instructions")[row] for row in payload],
        processors=len({runs.column("hpu")[row] for row in payload}),
        latencies=[(end - begin) // 1000 for begin, end in zip(arrived, settled, strict=True)],
        settled=[end // 1000 for end in settled],
        ended=max(ended) // 1000,
    )


def rate(runs: Runs, size: int) -> float:
    """Return the rate in Gb/s at which packets leave: from the first departure on, without the first packet."""
    return 8 * size * (len(runs.settled) - 1) / (runs.ended - min(runs.settled))


def _ours(key: str, runs: Runs, size: int) -> dict[str, Ours]:
    """Return the measurements by the names of their claims."""
    found: dict[str, float] = {
        "instructions": max(runs.instructions),
        "hpus": runs.processors,
        "rate": round(rate(runs, size), 1),
    }
    for name, values in (("cycles", runs.cycles), ("latency", runs.latencies)):
        found |= {
            f"{name}-min": min(values),
            f"{name}-avg": round(sum(values) / len(values), 1),
            f"{name}-max": max(values),
        }
    return {f"{key}-{name}": Ours(value, why=_REASONS.get(f"{key}-{name}", "")) for name, value in found.items()}


def _section(options: Options, section: str, measured: Sequence[tuple[str, str, int, int]]) -> Measured:
    """Measure a section. Each run has its claims' name, its handler, bytes of a packet, and cycles between packets."""
    ours: dict[str, Ours] = {}
    rows = [["Handler", "Packet", "HPUs", "Cycles", "avg", "max", "Instr.", "Latency", "avg", "max", "Gb/s"]]
    data = {}
    for key, name, size, gap in measured:
        runs = _measure(options, name, size, gap)
        ours |= _ours(key, runs, size)
        rows.append(
            [
                name,
                f"{size} B{', alone' if gap == _ALONE else ''}",
                str(runs.processors),
                *spread(runs.cycles),
                str(max(runs.instructions)),
                *spread(runs.latencies),
                fixed(rate(runs, size), 1),
            ]
        )
        data[key] = {"cycles": runs.cycles, "latencies": runs.latencies}
    claimed = {claim.id for claim in PAPER.of(section)}
    ours = {name: value for name, value in ours.items() if name in claimed}
    # The run with single packets is in the same section as the run with 32 packets.
    many = "32 packets, or of 12 that are alone" if any(gap == _ALONE for *_, gap in measured) else "32 packets"
    title = f"A message of {many}: cycles of handlers, and of packets from the first beat to the feedback"
    return Measured(ours, tables=[Table(section=section, title=title, rows=rows, note="")], data={"runs": data})


def spread(values: Sequence[int]) -> list[str]:
    """Return minimum, mean and maximum as cells of a table."""
    return [str(min(values)), fixed(sum(values) / len(values), 1), str(max(values))]


def empty(options: Options) -> Measured:
    """Measure a handler that only returns."""
    runs = [("unloaded", "empty", 64, _ALONE), ("empty", "empty", 1024, _GAP)]
    return _section(options, "Empty handler", runs)


def pingpong(options: Options) -> Measured:
    """Measure a handler that sends its packet back from L1."""
    return _section(options, "Ping-pong", [(f"pingpong-{size}", "pingpong", size, _GAP) for size in (64, 1024)])


def total(options: Options) -> Measured:
    """Measure a handler that adds up the words of its packet."""
    return _section(options, "Sum of words", [(f"sum-{size}", "sum", size, _GAP) for size in (64, 512, 1024)])
