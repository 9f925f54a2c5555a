"""Channels to processes from host programs: messages, selection, timeouts, and errors at either end."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import nicety
from nicety.show.recordings import LEVELS
from sizes import examples

SOURCE = """\
#include <nfp.h>

/* Gives back direct messages, each byte plus one. */
__process int32_t plus_one(uint32_t target, uint32_t size, uint32_t count) {
    uint8_t message[56];
    int32_t result = channel_register(target);
    while (result == CHANNEL_OK && count-- > 0) {
        result = channel_read(target, message, size);
        for (uint32_t i = 0; i < size; i++) message[i]++;
        if (result == CHANNEL_OK) result = channel_write(target, message, size);
    }
    return result;
}

/* Writes one direct message of `size` bytes after so many cycles. */
__process int32_t later(uint32_t target, uint32_t size, uint32_t cycles) {
    uint8_t message[56];
    channel_register(target);
    for (uint32_t i = 0; i < 56; i++) message[i] = (uint8_t)(target + i);
    for (uint32_t begun = nfp_cycle(); nfp_cycle() - begun < cycles;) nfp_yield();
    return channel_write(target, message, size);
}

/* Reads one direct message, with a timeout. */
__process int32_t reads(uint32_t target, uint32_t size, uint32_t timeout_ns) {
    uint8_t message[56];
    channel_register(target);
    return channel_read_for(target, message, size, timeout_ns);
}

/* Copies an indirect message back. */
__process int32_t copy(uint32_t target, uint32_t size, uint32_t memory) {
    int32_t result = channel_register(target);
    if (result == CHANNEL_OK) result = channel_read_ind(target, (volatile void *)memory, size);
    if (result == CHANNEL_OK) result = channel_write_ind(target, (volatile void *)memory, size);
    return result;
}

/* Registers, and does not come. */
__process int32_t away(uint32_t target) {
    channel_register(target);
    return (int32_t)nfp_wait_all(1);
}

/* Reads from whichever of two targets is written to first, twice; gives which, in order. */
__process int32_t either(uint32_t first, uint32_t second) {
    uint8_t message[8];
    channel_register(first);
    channel_register(second);
    int32_t taken = 0;
    for (int i = 0; i < 2; i++) {
        struct channel_guard guards[2] = {{first, message, 8, 0, 0}, {second, message, 8, 0, 0}};
        taken = 10 * taken + 1 + channel_select(guards, 2);
    }
    return taken;
}
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> nicety.Processes:
    source = tmp_path_factory.mktemp("processes") / "channels.c"
    source.write_text(SOURCE)
    return nicety.Processes(source)


def alone(main: Any, **options: Any) -> nicety.Run:
    return nicety.Cluster(1, "nfp-4000", **options).run(main)


def test_direct_messages_go_both_ways(program: nicety.Processes) -> None:
    async def main(host: nicety.Host) -> Any:
        process = host.channels.start(program, "plus_one", microengine=0, args=(7, 5, 3))
        channel = await host.channels.open().subscribe(7)
        assert channel.target == 7
        replies = []
        for message in (b"hello", b"there", b"\xff\0\1\2\3"):
            await channel.send(message)
            replies.append(await channel.receive(5))
        return replies, await process.finished()

    run = alone(main)
    assert run.results[0] == ([b"ifmmp", b"uifsf", b"\0\1\2\3\4"], 0)
    [node] = run.nodes
    assert (node.channels.dropped, node.channels.pages_pinned, node.channels.transfers) == (0, 0, 0)
    # A call for the subscription and for each send and receive.
    assert node.kernel.calls == 7
    assert node.kernel.pins == 0


@examples(8)
@given(st.data())
def test_indirect_messages_of_any_size_and_place_arrive_whole(program: nicety.Processes, data: st.DataObject) -> None:
    size = data.draw(st.one_of(st.integers(1, 100), st.integers(4000, 4200), st.integers(24_000, 60_000)))
    offset = data.draw(st.integers(0, 5000))
    rng = np.random.default_rng(size)
    contents = rng.integers(0, 256, size, dtype=np.uint8)

    async def main(host: nicety.Host) -> int:
        process = host.channels.start(program, "copy", microengine=0, args=(7, size, 0x8000_0000 + offset))
        channel = await host.channels.open().subscribe(7)
        out, back = host.alloc(offset + size), host.alloc(offset + size + 1)
        out.array[offset:] = contents
        await channel.send_ind(out[offset:])
        await channel.receive_ind(back[offset : offset + size])
        assert (back.array[offset : offset + size] == contents).all()
        assert not back.array[:offset].any()
        assert back.array[-1] == 0
        return await process.finished()

    run = alone(main)
    assert run.results[0] == 0
    [node] = run.nodes
    assert node.channels.transferred_bytes == 2 * size
    assert node.channels.pages_pinned == 0
    assert node.kernel.pins == node.kernel.unpins == 2


def test_neither_end_goes_on_before_the_other_has_come(program: nicety.Processes) -> None:
    async def main(host: nicety.Host) -> Any:
        late = host.channels.start(program, "later", microengine=0, args=(1, 8, 60_000))  # 100 us
        slow = host.channels.start(program, "reads", microengine=1, args=(2, 8, 2**32 - 1))
        device = host.channels.open()
        first, second = await device.subscribe(1), await device.subscribe(2)
        message = await first.receive(8)
        received_ns = host.now_ns
        await host.compute(ns=100_000)
        sent_ns = host.now_ns
        await second.send(bytes(8))
        return message, received_ns, sent_ns, await late.finished(), await slow.finished()

    run = alone(main)
    message, received_ns, sent_ns, late, slow = run.results[0]
    assert message == bytes(range(1, 9))
    assert (late, slow) == (0, 0)
    assert received_ns > 100_000, "the host waits for the process"
    [_, reader] = run.nodes[0].channels.microengines
    assert reader.processes[0].cycles_asleep > sent_ns * 0.6, "the process waits for the host"


def test_select_takes_whichever_process_writes_first(program: nicety.Processes) -> None:
    async def main(host: nicety.Host) -> Any:
        host.channels.start(program, "later", microengine=0, args=(1, 8, 90_000))
        host.channels.start(program, "later", microengine=1, args=(2, 12, 60_000))
        device = host.channels.open()
        slow, fast = await device.subscribe(1), await device.subscribe(2)
        taken = [await device.select([slow.message(8), fast.message(12)]), await device.select([slow.message(8)])]
        with pytest.raises(nicety.TimedOut, match="select: the other end did not take part"):
            await device.select([fast.message(12), slow.message(8)], timeout_ns=1000)
        return taken

    [first, second] = alone(main).results[0]
    assert first == (1, bytes(range(2, 14)))
    assert second == (0, bytes(range(1, 9)))


def test_a_process_selects_too(program: nicety.Processes) -> None:
    async def main(host: nicety.Host) -> int:
        process = host.channels.start(program, "either", microengine=0, args=(1, 2))
        device = host.channels.open()
        first, second = await device.subscribe(1), await device.subscribe(2)
        await second.send(bytes(8))
        await first.send(bytes(8))
        return await process.finished()

    assert alone(main).results[0] == 21


def test_a_timeout_ends_the_wait_and_the_channel_goes_on(program: nicety.Processes) -> None:
    async def main(host: nicety.Host) -> Any:
        host.channels.start(program, "away", microengine=0, args=(1,))
        process = host.channels.start(program, "plus_one", microengine=0, context=1, args=(2, 8, 1))
        device = host.channels.open()
        channel, other = await device.subscribe(1), await device.subscribe(2)
        buffer = host.alloc(10_000)
        begun = host.now_ns
        for call in (
            lambda: channel.send(bytes(8), timeout_ns=50_000),
            lambda: channel.receive(8, timeout_ns=50_000),
            lambda: channel.send_ind(buffer, timeout_ns=50_000),
            lambda: channel.receive_ind(buffer, timeout_ns=50_000),
        ):
            with pytest.raises(nicety.TimedOut, match="target 1: the other end did not take part before the deadline"):
                await call()
        waited = host.now_ns - begun
        await other.send(bytes(8))
        return waited, await other.receive(8), await process.finished()

    run = alone(main)
    waited, reply, result = run.results[0]
    assert waited > 200_000
    assert (reply, result) == (b"\1" * 8, 0)
    assert run.nodes[0].channels.pages_pinned == 0


@pytest.mark.parametrize(
    ("call", "process", "message"),
    [
        ("send", ("reads", 9), "the sender has 8 bytes and the receiver expects 9"),
        ("receive", ("later", 9), "the sender has 9 bytes and the receiver expects 8"),
        ("send_ind", ("reads", 8), "the sender's message is indirect, but the receiver expects a direct message"),
        ("receive_ind", ("later", 8), "the sender's message is direct, but the receiver expects an indirect message"),
    ],
)
def test_both_ends_are_told_where_they_differ(
    program: nicety.Processes, call: str, process: tuple[str, int], message: str
) -> None:
    async def main(host: nicety.Host) -> int:
        name, size = process
        started = host.channels.start(program, name, microengine=0, args=(1, size, 2**32 - 1 if name == "reads" else 0))
        channel = await host.channels.open().subscribe(1)
        given = {"send": bytes(8), "receive": 8}.get(call, host.alloc(8))
        with pytest.raises(nicety.RunError, match=f"target 1: {message}"):
            await getattr(channel, call)(given)
        return await started.finished()

    assert alone(main).results[0] - 2**32 == (-1 if "bytes" in message else -2)


async def _target(host: nicety.Host) -> None:
    await host.channels.open().subscribe(5)


async def _twice(host: nicety.Host) -> None:
    device = host.channels.open()
    await device.subscribe(1)
    await device.subscribe(1)


async def _closed(host: nicety.Host) -> None:
    channel = await host.channels.open().subscribe(1)
    await channel.close()
    await channel.send(b"x")


@pytest.mark.parametrize(
    ("main", "message"),
    [
        (_target, "subscribe to target 5: no process of the card has the ID 5"),
        (_twice, "subscribe to target 1: another channel is subscribed to target 1; close that channel first"),
        (_closed, "send to target 1: this channel is not open"),
    ],
)
def test_channels_that_are_none(program: nicety.Processes, main: Any, message: str) -> None:
    async def whole(host: nicety.Host) -> None:
        host.channels.start(program, "away", microengine=0, args=(1,))
        await main(host)

    with pytest.raises(nicety.RunError, match=message):
        alone(whole)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda channel, _: channel.send(b""), "at least 1 byte"),
        (lambda channel, _: channel.send(bytes(57)), "at most 56 bytes, not 57; use the indirect call"),
        (lambda channel, host: channel.send(host.alloc(57)), "at most 56 bytes, not 57"),
        (lambda channel, _: channel.receive(0), "at least 1 byte"),
        (lambda channel, _: channel.receive(57), "at most 56 bytes, not 57"),
        (lambda channel, host: channel.send_ind(host.alloc(0)), "at least 1 byte"),
        (lambda channel, _: channel.send("text"), "a message is bytes"),
        (lambda channel, _: channel.send_ind(b"bytes"), "a buffer made by host.alloc"),
        (lambda channel, _: channel.send(b"x", timeout_ns=-1), "a time is a number of nanoseconds"),
        (lambda channel, host: host.channels.open().select([]), "at least one channel"),
        (lambda channel, host: host.channels.open().select([channel]), "select takes channel.message"),
        (
            lambda channel, host: host.channels.open().select([channel.message(1), channel.message(2)]),
            "guard 1 of the selection names a channel that an earlier guard names",
        ),
        (lambda channel, host: host.channels.open().subscribe(-1), "target is a whole number"),
    ],
)
def test_messages_that_cannot_be(program: nicety.Processes, call: Any, message: str) -> None:
    async def main(host: nicety.Host) -> None:
        host.channels.start(program, "away", microengine=0, args=(1,))
        await call(await host.channels.open().subscribe(1), host)

    with pytest.raises(nicety.InputError, match=message):
        alone(main)


def test_a_card_without_channels_says_what_it_has() -> None:
    async def main(host: nicety.Host) -> None:
        host.channels.open()

    with pytest.raises(
        nicety.InputError, match="design portals has no processes and channels, but a Portals interface"
    ):
        nicety.Cluster(1, "spin-discrete").run(main)


def test_a_process_that_never_comes_is_a_deadlock_that_says_so(program: nicety.Processes) -> None:
    async def main(host: nicety.Host) -> None:
        host.channels.start(program, "away", microengine=0, args=(1,))
        await (await host.channels.open().subscribe(1)).send(bytes(8))

    with pytest.raises(nicety.Deadlock, match=r"rank 0.*the process at target 1 to read 8 bytes") as raised:
        alone(main)
    note = "note: on the card of rank 0, process away on microengine 0, context 0, waits for all of its signals 0"
    assert note in str(raised.value)


def test_a_process_that_has_ended_too_early_explains_a_deadlock(program: nicety.Processes) -> None:
    async def main(host: nicety.Host) -> None:
        for number in range(10):
            host.channels.start(program, "reads", microengine=number, args=(number, 8, 1000))
        channel = await host.channels.open().subscribe(1)
        await host.compute(ns=100_000)
        await channel.send(bytes(8))

    with pytest.raises(nicety.Deadlock) as raised:
        alone(main)
    text = str(raised.value)
    assert "process reads on microengine 1, context 0, has returned -3" in text
    assert "note: and there are 2 more processes on the cards" in text


def test_dma_errors_are_made_up_for_or_told(program: nicety.Processes) -> None:
    size = 200_000

    async def main(host: nicety.Host) -> int:
        process = host.channels.start(program, "copy", microengine=0, args=(7, size, 0x8000_0000))
        channel = await host.channels.open().subscribe(7)
        out, back = host.alloc(size), host.alloc(size)
        out.array[:] = np.arange(size) % 251
        await channel.send_ind(out)
        await channel.receive_ind(back)
        assert (back.array == out.array).all()
        return await process.finished()

    few = alone(main, set={"dma.errors": "0.05", "driver.retries": 20})
    assert few.results[0] == 0
    assert few.nodes[0].channels.retries > 0
    assert few.nodes[0].channels.dma_errors > 0
    assert few.time_ps > alone(main).time_ps
    with pytest.raises(nicety.RunError, match="send_ind to target 7: DMA failed too often: 0 bytes are done"):
        alone(main, set={"dma.errors": "1"})


def test_threads_use_channels_at_once(program: nicety.Processes) -> None:
    async def talk(host: nicety.Host, channel: nicety.Channel) -> bytes:
        await channel.send(bytes([channel.target] * 8))
        return await channel.receive(8)

    async def main(host: nicety.Host) -> Any:
        device = host.channels.open()
        channels = []
        for target in range(8):
            host.channels.start(program, "plus_one", microengine=target, args=(target, 8, 3))
            channels.append(await device.subscribe(target))
        begun = host.now_ns
        alone = await talk(host, channels[3])
        one = host.now_ns - begun
        replies = await host.gather(*(talk(host, channel) for channel in channels))
        return alone, replies, one, host.now_ns - begun - one

    alone_reply, replies, one, eight = alone(main).results[0]
    assert alone_reply == b"\4" * 8
    assert replies == [bytes([target + 1] * 8) for target in range(8)]
    assert one < eight < 6 * one, "they overlap"


def test_runs_with_channels_do_not_depend_on_shards(program: nicety.Processes) -> None:
    async def main(host: nicety.Host) -> Any:
        process = host.channels.start(program, "plus_one", microengine=host.rank, args=(7, 5, 1))
        channel = await host.channels.open().subscribe(7)
        await host.barrier()
        await channel.send(b"hello")
        return await channel.receive(5), await process.finished(), host.now_ps

    def run(shards: int) -> nicety.Run:
        return nicety.Cluster(3, "nfp-4000", topology="star", shards=shards, noise="10us,2us").run(main)

    assert run(1).results == run(3).results
    assert run(1).nodes == run(2).nodes


def test_messages_are_recorded(program: nicety.Processes) -> None:
    async def main(host: nicety.Host) -> int:
        host.channels.start(program, "plus_one", microengine=0, args=(1, 8, 3))
        host.channels.start(program, "copy", microengine=1, args=(2, 50_000, 0x8000_0000))
        device = host.channels.open()
        short, long = await device.subscribe(1), await device.subscribe(2)
        for _ in range(3):
            await short.send(bytes(8))
            await short.receive(8)
        buffer = host.alloc(50_000)
        await long.send_ind(buffer)
        await host.compute(ns=100_000)
        await long.receive_ind(buffer)
        return host.now_ps

    runs = {level: nicety.Cluster(1, "nfp-4000", recording=level).run(main) for level in LEVELS}
    assert len({run.results[0] for run in runs.values()}) == 1
    frame = pl.DataFrame(runs["messages"].messages)
    assert frame.equals(pl.DataFrame(runs["everything"].messages))
    names = ["source", "target", "kind", "started_by", "size_bytes", "outcome"]
    there, back = [0, 0, "direct", "host", 8, "received"], [0, 0, "direct", "process", 8, "received"]
    bulk = [[0, 0, "indirect", by, 50_000, "received"] for by in ("host", "process")]
    assert [list(row) for row in frame.select(names).rows()] == [there, back] * 3 + bulk
    stages = frame.columns[frame.columns.index("latency_ps") + 1 :]
    assert frame.select(pl.sum_horizontal(stages)).to_series().equals(frame["latency_ps"])
    assert (frame["noticed_ps"] == frame["completed_ps"]).all()
    breakdown = runs["messages"].breakdown()
    assert breakdown.messages == 8
    assert round(breakdown.total_ns * 1000) == frame["latency_ps"].sum()


def test_a_host_sends_itself_messages() -> None:
    async def main(host: nicety.Host) -> bool:
        there, back = host.alloc(100_000), host.alloc(100_000)
        there.array[:] = np.arange(100_000) % 251
        pending = await host.post_recv(back, source=host.rank)
        await host.send(there, to=host.rank)
        await pending
        await host.send(there[0:20], to=host.rank, tag=5)
        received = await host.recv(back)
        assert (received.source, received.tag, received.length_bytes) == (host.rank, 5, 20)
        return bytes(back.array) == bytes(there.array)

    for nodes in (1, 2):
        run = nicety.Cluster(nodes, "nfp-4000").run(main)
        assert list(run.results.values()) == [True] * nodes
        assert run.messages.column("outcome") == ["received"] * 2 * nodes
        assert run.nodes[0].channels.port.frames_sent == 0


def test_messages_between_hosts_are_one_row_each() -> None:
    async def main(host: nicety.Host) -> None:
        buffer = host.alloc(100_000)
        if host.rank == 0:
            await host.send(buffer, to=1)
        else:
            await host.recv(buffer)

    messages = nicety.Cluster(2, "nfp-4000").run(main).messages
    assert messages.column("kind") == ["send"]
    assert messages.column("size_bytes") == [100_000]
