"""Several cards in one host: programs use each by its number, and each has its own bus, interrupt and memories."""

from __future__ import annotations

import pytest

import nicety

SOURCE = """\
#include <nfp.h>

/* Gives back direct messages of 8 bytes. */
__process int32_t echo(uint32_t target, uint32_t count) {
    uint8_t message[8];
    int32_t result = channel_register(target);
    while (result == CHANNEL_OK && count-- > 0) {
        result = channel_read(target, message, 8);
        if (result == CHANNEL_OK) result = channel_write(target, message, 8);
    }
    return result;
}

/* Reads one indirect message. */
__process int32_t keep(uint32_t target, uint32_t size) {
    int32_t result = channel_register(target);
    return result == CHANNEL_OK ? channel_read_ind(target, nfp_emem(0), size) : result;
}

/* Loads from no memory. */
__process int32_t wild(void) {
    return *(volatile int32_t *)16;
}
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> nicety.Processes:
    source = tmp_path_factory.mktemp("processes") / "echo.c"
    source.write_text(SOURCE)
    return nicety.Processes(source)


def cluster(cards: int, hosts: int = 1) -> nicety.Cluster:
    return nicety.Cluster(hosts, "nfp-4000", set={"host.cards": cards})


async def pingpongs(program: nicety.Processes, host: nicety.Host, cards: list[int], count: int) -> float:
    """The time of `count` round trips in a thread for each card of the list, all at once, in ns."""

    async def one(card: int, target: int) -> None:
        channel = await host.channels.card(card).open().subscribe(target)
        for number in range(count):
            message = number.to_bytes(8, "little")
            await channel.send(message)
            assert await channel.receive(8) == message
        await channel.close()

    for place, card in enumerate(cards):
        host.channels.card(card).start(program, "echo", microengine=place, args=(place, count))
    begin = host.now_ns
    await host.gather(*[one(card, place) for place, card in enumerate(cards)])
    return host.now_ns - begin


def test_a_further_card_is_as_fast_as_the_first(program: nicety.Processes) -> None:
    async def first(host: nicety.Host) -> float:
        return await pingpongs(program, host, [0], 5)

    async def second(host: nicety.Host) -> float:
        return await pingpongs(program, host, [1], 5)

    alone = cluster(1).run(first).results[0]
    assert cluster(2).run(first).results[0] == alone
    assert cluster(2).run(second).results[0] == alone


def test_two_cards_share_no_interrupt(program: nicety.Processes) -> None:
    """Threads that share a card wait for one another's interrupts. Threads of two cards do not."""

    async def shared(host: nicety.Host) -> float:
        return await pingpongs(program, host, [0, 0], 20)

    async def apart(host: nicety.Host) -> float:
        return await pingpongs(program, host, [0, 1], 20)

    async def alone(host: nicety.Host) -> float:
        return await pingpongs(program, host, [0], 20)

    together, separate, single = (cluster(2).run(main).results[0] for main in (shared, apart, alone))
    assert separate == single < together


def test_memories_and_targets_are_those_of_one_card(program: nicety.Processes) -> None:
    async def main(host: nicety.Host) -> list[bytes]:
        parts = [host.channels.card(card).card_memory("emem", length_bytes=4) for card in (0, 1)]
        for part, contents in zip(parts, (b"zero", b"one."), strict=True):
            part.write(contents)
        # Both cards have a target 3.
        for card in (0, 1):
            host.channels.card(card).start(program, "echo", microengine=0, args=(3, 1))
            channel = await host.channels.card(card).open().subscribe(3)
            await channel.send(bytes(8))
            await channel.receive(8)
        return [part.read() for part in parts]

    assert cluster(2).run(main).results[0] == [b"zero", b"one."]


def test_the_report_counts_each_card(program: nicety.Processes) -> None:
    async def main(host: nicety.Host) -> None:
        await pingpongs(program, host, [1], 3)

    run = cluster(3).run(main)
    counts = run.nodes[0].channels
    assert counts.posted == 0
    second, third = counts.further_cards
    assert (second.card, third.card) == (1, 2)
    # A subscription, three round trips and a close are the host's; the process's answers are pushed.
    assert second.posted > 0
    assert third.posted == 0
    assert [engine.processes[0].name for engine in second.microengines] == ["echo"]
    assert third.microengines == []


def test_messages_between_hosts_use_the_first_card(program: nicety.Processes) -> None:
    async def main(host: nicety.Host) -> bytes:
        await pingpongs(program, host, [1], 1)
        buffer = host.alloc(8)
        if host.rank == 0:
            buffer.array[:] = range(8)
            await host.send(buffer, to=1, tag=1)
        else:
            await host.recv(buffer, source=0, tag=1)
        return bytes(buffer.array)

    assert cluster(2, hosts=2).run(main).results == {0: bytes(range(8)), 1: bytes(range(8))}


def test_a_card_that_is_not_there() -> None:
    async def main(host: nicety.Host) -> None:
        host.channels.card(2)

    with pytest.raises(nicety.InputError, match=r"there is no card 2; the host has cards 0 to 1 \(host.cards\); set"):
        cluster(2).run(main)
    with pytest.raises(nicety.InputError, match=r"host.cards"):
        cluster(17)


def test_a_selection_is_of_one_card(program: nicety.Processes) -> None:
    async def main(host: nicety.Host) -> None:
        channels = []
        for card in (0, 1):
            host.channels.card(card).start(program, "echo", microengine=0, args=(card, 1))
            channels.append(await host.channels.card(card).open().subscribe(card))
        await host.channels.open().select([channel.message(8) for channel in channels])

    with pytest.raises(
        nicety.InputError,
        match="<Channel of rank 0, card 1 to target 1> is no channel of <Device of rank 0>; use the device that",
    ):
        cluster(2).run(main)


def test_a_trap_names_the_card(program: nicety.Processes) -> None:
    async def main(host: nicety.Host) -> None:
        await host.channels.card(1).start(program, "wild", microengine=4).finished()

    with pytest.raises(nicety.HandlerTrap, match="process wild on card 1, microengine 4, context 0"):
        cluster(2).run(main)


def test_each_card_draws_its_own_failures(program: nicety.Processes) -> None:
    async def main(host: nicety.Host) -> None:
        async def bulk(card: int) -> None:
            channel = await host.channels.card(card).open().subscribe(card)
            await channel.send_ind(host.alloc(200_000))

        for card in (0, 1):
            host.channels.card(card).start(program, "keep", microengine=0, args=(card, 200_000))
        await host.gather(bulk(0), bulk(1))

    run = nicety.Cluster(1, "nfp-4000", set={"host.cards": 2, "dma.errors": "0.1", "driver.retries": 50}).run(main)
    first = run.nodes[0].channels
    [second] = first.further_cards
    assert min(first.dma_errors, second.dma_errors) > 0
    assert first.dma_errors != second.dma_errors
