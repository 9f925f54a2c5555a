"""Runs that keep an engine or a channel of the card `pspin` busy, compared with a bound from PsPIN's RTL."""

from __future__ import annotations

from dataclasses import dataclass

from nicety.build.compiler import library_source
from nicety.build.sources import Handlers
from nicety.show.columns import fixed
from nicety.studies.claims import Ours
from nicety.studies.pspin.runs import measure, rate, spread
from nicety.studies.study import Measured, Options, Table

_BEAT = 64
"""Maximum bytes per cycle on the link."""
_PACKETS = 449
"""Number of packets in a run: 64 x 7 after the first one, since an engine has 7 commands in flight."""


@dataclass(frozen=True)
class _Case:
    """A run that saturates an engine or a channel, and its bound.

    Attributes:
        define: the macro that selects the handler in `saturate.c`.
        size: bytes of a packet.
        commands: maximum number of commands in flight of the engine, and cycles that a command occupies its place.
        beats: beats on the limiting channel for each beat of a packet.
        changes: overrides of the card's spec.
        ahead: number of packets of other cores whose beats may be over before the first feedback.
    """

    define: str
    size: int
    commands: tuple[int, int]
    beats: int
    changes: tuple[str, ...] = ()
    ahead: int = 0

    def bound(self) -> float:
        """Return the maximum rate in Gb/s, limited by the engine's places or by the channel's beats."""
        beats = self.size // _BEAT * self.beats
        cycles = max(self.commands[1] / self.commands[0], beats)
        packets = _PACKETS - 1
        return 8 * self.size * packets / (cycles * (packets - self.ahead))


_BOUND = "the bound's commands in flight, their cycles and the channel's beats are in the card's spec"
_IN_FLIGHT = 7
_CLUSTER = ("hpu.cores=8",)
# A command occupies its place for 3 cycles fewer than its duration: 21, 36, 22 and 37 from issue to completion.
CASES = {
    "write-64": _Case("WRITE", 64, (_IN_FLIGHT, 18), 1),
    "to-host-64": _Case("TO_HOST", 64, (_IN_FLIGHT, 18), 1),
    "to-host-1024": _Case("TO_HOST", 1024, (_IN_FLIGHT, 33), 1),
    "from-host-64": _Case("FROM_HOST", 64, (_IN_FLIGHT, 19), 1),
    "from-host-1024": _Case("FROM_HOST", 1024, (_IN_FLIGHT, 34), 1),
    "store-and-send-1024": _Case("STORE_AND_SEND", 1024, (_IN_FLIGHT, 33), 2),
    "fetch-and-send-1024": _Case("FETCH_AND_SEND", 1024, (_IN_FLIGHT, 34), 2, _CLUSTER, ahead=7),
}
"""Maps the name of a claim to its run."""


def saturate(options: Options) -> Measured:
    """Send packets as fast as the link allows to handlers that issue commands. The card starts with cold caches."""
    ours: dict[str, Ours] = {}
    rows = [["Handler", "Packet", "HPUs", "Cycles", "avg", "max", "Latency", "avg", "max", "Gb/s", "Bound"]]
    data = {}
    for name, case in CASES.items():
        handlers = Handlers(library_source("pspin/saturate.c"), defines=[case.define])
        runs = measure(options, handlers, case.size, case.size / _BEAT, _PACKETS, case.changes)
        ours[f"saturated-{name}"] = Ours(round(rate(runs, case.size), 1), why=_BOUND)
        rows.append(
            [
                name.rpartition("-")[0],
                f"{case.size} B",
                str(runs.processors),
                *spread(runs.cycles),
                *spread(runs.latencies),
                fixed(rate(runs, case.size), 1),
                fixed(case.bound(), 1),
            ]
        )
        data[name] = {"cycles": runs.cycles, "latencies": runs.latencies, "settled": runs.settled}
    title = f"A message of {_PACKETS} packets at the link's rate: cycles of handlers and of packets, and rates"
    note = "rate: from the first feedback to the last, of all packets after the first"
    return Measured(ours, tables=[Table(section="Saturated", title=title, rows=rows, note=note)], data={"runs": data})
