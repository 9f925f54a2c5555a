"""The paper's future work: several cards in one host, and calls that go on while the program computes."""

from __future__ import annotations

from nicety.build.compiler import library_source
from nicety.build.sources import Processes
from nicety.program.channels.channel import Channel
from nicety.program.cluster import Cluster
from nicety.program.host import Host
from nicety.show.columns import fixed
from nicety.studies.claims import Ours
from nicety.studies.nfcomms.cardinality import CARD
from nicety.studies.study import Options

_BYTES = 56
"""Bytes of the largest direct message."""
_CHANNELS, _EXCHANGES = 16, 20
_CARDS = (1, 2, 4)
_COMPUTE_NS = 40_000
"""Nanoseconds for which a program computes while its message goes on: longer than the message takes."""
_GUIDE = "the guide on channels has the program"


def _programs() -> Processes:
    return Processes(library_source("nfp/channels.c"))


def _cards(options: Options, count: int) -> float:
    """Return the rate in Mb/s at which channels exchange direct messages with processes on `count` cards."""
    program = _programs()

    async def exchange(channel: Channel) -> None:
        for _ in range(_EXCHANGES):
            await channel.send(bytes(_BYTES))
            await channel.receive(_BYTES)

    async def main(host: Host) -> float:
        channels = []
        for number in range(_CHANNELS):
            card = host.channels.card(number % count)
            card.start(program, "channels_echo", microengine=number, args=(number, _BYTES, _EXCHANGES))
            channels.append(await card.open().subscribe(number))
        begin = host.now_ns
        await host.gather(*[exchange(channel) for channel in channels])
        return 2 * _CHANNELS * _EXCHANGES * _BYTES * 8e3 / (host.now_ns - begin)

    run = Cluster(1, CARD, set={"host.cards": count}, seed=options.seed, recording="summary").run(main)
    return float(run.results[0])


def _started(options: Options) -> tuple[float, float]:
    """Return the times in microseconds that a program spends to start a message, and to await it after computing."""
    program = _programs()

    async def main(host: Host) -> tuple[float, float]:
        host.channels.start(program, "channels_read", microengine=0, args=(1, _BYTES, 1))
        channel = await host.channels.open().subscribe(1)
        begin = host.now_ns
        sent = await channel.start_send(bytes(_BYTES))
        called = host.now_ns - begin
        await host.compute(ns=_COMPUTE_NS)
        computed = host.now_ns
        await sent
        return called / 1e3, (host.now_ns - computed) / 1e3

    run = Cluster(1, CARD, seed=options.seed, recording="summary").run(main)
    called, awaited = run.results[0]
    return float(called), float(awaited)


def future_work(options: Options) -> dict[str, Ours]:
    """Measure what the paper leaves to later work. It has no figures for it."""
    rates = {count: _cards(options, count) for count in _CARDS}
    called, awaited = _started(options)
    return {
        "future-cards": Ours(
            None,
            ", ".join(f"{fixed(rate, 1)} Mb/s with {count}" for count, rate in rates.items()),
            f"{_CHANNELS} channels that exchange messages of {_BYTES} B; each card has an interrupt of its own, and "
            f"with four the host's eight CPUs are busy; {_GUIDE} (host.cards)",
        ),
        "future-calls": Ours(
            None,
            f"{fixed(called, 2)} us in the call that starts a message, {fixed(awaited, 2)} to await it later",
            f"library, system call and driver are the program's; the rest continues while it computes; {_GUIDE}",
        ),
    }
