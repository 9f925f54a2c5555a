"""RDMA in host programs: puts, gets and sends between registered memories, of hosts and graphics processors."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import nicety
from sizes import examples


def run(program: Any, nodes: int = 2, **options: Any) -> nicety.Run:
    return nicety.Cluster(nodes, "apenet-v5", topology="pair" if nodes == 2 else "star", **options).run(program)


def error_of(program: Any) -> str:
    with pytest.raises(nicety.Error) as error:
        run(program)
    return str(error.value)


def test_puts_gets_and_sends_move_bytes() -> None:
    async def main(host: nicety.Host) -> list[nicety.RdmaEvent]:
        rdma, other = host.rdma, 1 - host.rank
        out, into, back, streaming = (host.alloc(10_000) for _ in range(4))
        out.array[:] = host.rank + 1
        region = await rdma.register(into)
        for buffer in (out, back, streaming):
            await rdma.register(buffer)
        await rdma.post_streaming(streaming[:5000])
        await rdma.post_streaming(streaming[5000:])
        assert rdma.streaming == 2
        await host.barrier()
        put = await rdma.put(out[:9000], to=other, address=region.address + 100, data=7)
        events = [await rdma.wait(put), await rdma.received()]
        assert (into.array == [0] * 100 + [other + 1] * 9000 + [0] * 900).all()
        await host.barrier()
        get = await rdma.get(back, source=other, address=region.address)
        events.append(await rdma.wait(get))
        assert (back.array == [0] * 100 + [host.rank + 1] * 9000 + [0] * 900).all()
        send = await rdma.send(out[:5000], to=other, data=9)
        events += [await rdma.wait(send), await rdma.received()]
        assert (streaming.array == [other + 1] * 5000 + [0] * 5000).all()
        assert (rdma.streaming, await rdma.poll()) == (1, None)
        assert events[1].address == region.address + 100
        assert events[4].address == streaming.address
        return events

    events = run(main).results[0]
    found = [(event.kind, event.rank, event.length_bytes, event.data, event.streaming) for event in events]
    assert found == [
        ("sent", 1, 9000, 7, False),
        ("received", 1, 9000, 7, False),
        ("fetched", 1, 10_000, 0, False),
        ("sent", 1, 5000, 9, False),
        ("received", 1, 5000, 9, True),
    ]
    assert [event.operation is None for event in events] == [False, True, False, False, True]


def test_memory_of_graphics_processors_at_either_end() -> None:
    async def main(host: nicety.Host) -> list[float]:
        rdma, other, took = host.rdma, 1 - host.rank, []
        buffers = [host.alloc(65_536), host.gpu.alloc(65_536)]
        for buffer in buffers:
            await rdma.register(buffer)
        for source in buffers:
            for sink in buffers:
                source.array[:] = 10 * host.rank + len(took)
                if sink is not source:
                    sink.array[:] = 0
                await host.barrier()
                begun = host.now_ns
                if host.rank == 0:
                    await rdma.put(source, to=other, address=sink.address)
                else:
                    await rdma.received()
                    assert (sink.array == len(took)).all()
                took.append(host.now_ns - begun)
                await host.barrier()
        return took

    host_host, host_gpu, gpu_host, gpu_gpu = run(main).results[1]
    # Reads of a graphics processor's memory are slower than those of the host's.
    assert host_host < gpu_host
    assert host_gpu < gpu_gpu


def test_a_second_wait_for_an_operation_fails_at_once() -> None:
    async def main(host: nicety.Host) -> None:
        rdma, buffer = host.rdma, host.alloc(64)
        await rdma.register(buffer)
        put = await rdma.put(buffer, to=host.rank, address=buffer.address)
        assert (await rdma.wait(put)).kind == "sent"
        begun = host.now_ps
        with pytest.raises(nicety.RunError, match=r"has no operation \d+; its completion was reported already"):
            await rdma.wait(put)
        assert host.now_ps == begun

    run(main)


def test_a_refused_put_is_reported_at_both_ends_and_writes_nothing() -> None:
    async def main(host: nicety.Host) -> tuple[Any, ...]:
        rdma = host.rdma
        mine, theirs = host.alloc(4096), host.alloc(4096)
        mine.array[:] = 5
        await rdma.register(mine)
        region = await rdma.register(theirs)
        await rdma.deregister(region)
        foreign = host.alloc(100)
        await host.rdma.process(3).register(foreign)
        await host.barrier()
        if host.rank == 1:
            first, second = await rdma.event(), await rdma.event()
            assert not theirs.array.any()
            assert not foreign.array.any()
            assert (first.address, first.length_bytes, first.data) == (region.address, 4096, 4097)
            assert (second.address, second.length_bytes, second.data) == (foreign.address, 100, 101)
            return first, second
        ends = []
        for length, address in ((4096, region.address), (100, foreign.address)):
            await rdma.put(mine[:length], to=1, address=address, data=length + 1)
            ends += [await rdma.event(), await rdma.event()]
        refused = [event for event in ends if event.kind == "refused"]
        assert [(event.address, event.length_bytes, event.data) for event in refused] == [
            (mine.address, 4096, 4097),
            (mine.address, 100, 101),
        ]
        return tuple(refused)

    ran = run(main, recording="messages")
    assert sorted(ran.messages.column("outcome")).count("unregistered") == 1
    results = ran.results
    assert [(event.kind, event.reason) for event in results[0]] == [("refused", "unregistered"), ("refused", "foreign")]
    assert [(event.kind, event.reason) for event in results[1]] == [
        ("rejected", "unregistered"),
        ("rejected", "foreign"),
    ]


def test_a_refusal_that_no_program_takes_fails_the_run() -> None:
    def program(takes: bool) -> Any:
        async def main(host: nicety.Host) -> None:
            buffer = host.alloc(64)
            await host.rdma.register(buffer)
            await host.barrier()
            if host.rank == 0:
                await host.rdma.put(buffer, to=1, address=buffer.address + 4096)
                while takes and (await host.rdma.event()).kind != "refused":
                    pass

        return main

    text = error_of(program(takes=False))
    assert "rank 0: RDMA refused: unregistered, by rank 1; no program has taken the event" in text
    run(program(takes=True))
    run(program(takes=False), allow_failures="refused")


def test_lost_events_that_no_program_has_heard_of_fail_the_run() -> None:
    async def main(host: nicety.Host) -> None:
        buffer = host.alloc(64)
        region = await host.rdma.register(buffer)
        await host.barrier()
        if host.rank == 0:
            for _ in range(8):
                await host.rdma.wait(await host.rdma.put(buffer, to=1, address=region.address))

    with pytest.raises(nicety.Error, match="event refused: no room in its queue, lost to process 0; raise events"):
        run(main, set={"events.user": 4})


def test_waiting_for_a_refused_get_raises() -> None:
    async def main(host: nicety.Host) -> None:
        buffer = host.alloc(64)
        await host.rdma.register(buffer)
        await host.barrier()
        if host.rank == 0:
            await host.rdma.wait(await host.rdma.get(buffer, source=1, address=buffer.address + 4096))

    assert error_of(main).startswith("node 1 has refused the message: the bytes are not registered there")


def test_polling_and_interrupts_differ_in_time_alone() -> None:
    def program(notify: str) -> Any:
        async def main(host: nicety.Host) -> float:
            host.rdma.set_notify(notify)  # type: ignore[arg-type]
            buffer = host.alloc(8)
            region = await host.rdma.register(buffer)
            await host.barrier()
            if host.rank == 0:
                await host.rdma.wait(await host.rdma.put(buffer, to=1, address=region.address))
            else:
                assert (await host.rdma.received()).length_bytes == 8
            return host.now_ns

        return main

    polled, interrupted = (run(program(notify)).results[1] for notify in ("poll", "interrupt"))
    assert polled < interrupted


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda host, buffer: host.rdma.put(buffer, to=2, address=8), "rank 2"),
        (lambda host, buffer: host.rdma.put(buffer, to=1, address=0), "use send instead"),
        (lambda host, buffer: host.rdma.put(buffer, to=1, address=4096), "register them first"),
        (lambda host, buffer: host.rdma.put(buffer, to=1, address=-1), "address"),
        (lambda host, buffer: host.rdma.send(buffer, to=1, data=1 << 64), "data"),
        (lambda host, buffer: host.rdma.register(buffer[:0]), "register at least 1 byte"),
        (lambda host, buffer: host.rdma.deregister(4), "a region is what register gives, not 4"),
        (lambda host, buffer: host.rdma.wait(4), "an operation is what a call that posts a transfer gives, not 4"),
        (lambda host, buffer: host.rdma.post_streaming(buffer), "register them first"),
        (lambda host, buffer: host.rdma.process(2**32 - 1).event(), "reserved for the message library"),
        (lambda host, buffer: host.rdma.process(-1).event(), "number"),
        (lambda host, buffer: host.rdma.set_notify("loud"), "notify is 'poll' or 'interrupt', not 'loud'"),
        (lambda host, buffer: host.rdma.set_addressing("real"), "addressing is 'virtual' or 'physical', not 'real'"),
        (lambda host, buffer: host.gpu.alloc(1 << 60), "raise gpu.memory"),
        (
            lambda host, buffer: host.copy(host.gpu.alloc(64), buffer),
            "in the memory of the graphics processor, which the host's CPUs do not reach; have a card move them",
        ),
    ],
)
def test_mistakes_are_named(call: Any, says: str) -> None:
    async def main(host: nicety.Host) -> None:
        await call(host, host.alloc(64))

    assert says in error_of(main)


def test_a_card_without_a_graphics_processor_says_which_has_one() -> None:
    async def main(host: nicety.Host) -> None:
        host.gpu.alloc(8)

    with pytest.raises(nicety.InputError) as error:
        nicety.Cluster(1, "qnix").run(main)
    assert "host.gpu of rank 0, qnix" in str(error.value)
    assert "for example apenet-v5" in str(error.value)


@given(
    st.lists(
        st.tuples(st.sampled_from(["put", "get", "send"]), st.integers(0, 3000), st.integers(0, 20_000)), max_size=8
    )
)
@example([("send", 0, 0), ("send", 0, 8961)])
@examples(20)
def test_any_transfers_move_every_byte(steps: list[tuple[str, int, int]]) -> None:
    async def main(host: nicety.Host) -> None:
        rdma = host.rdma
        memory, target = host.alloc(24_000), host.alloc(24_000)
        memory.array[:] = [(index * (host.rank + 3)) % 251 for index in range(24_000)]
        await rdma.register(memory)
        await rdma.register(target)
        for step, (kind, offset, length) in enumerate(steps):
            target.array[:] = 0
            if kind == "send" and host.rank == 1 and length > 0:
                await rdma.post_streaming(target[offset : offset + length])
            await host.barrier()
            if host.rank == 0:
                part = memory[offset : offset + length]
                if kind == "put":
                    await rdma.wait(await rdma.put(part, to=1, address=target.address + offset, data=step))
                elif kind == "send":
                    await rdma.wait(await rdma.send(part, to=1, data=step))
                else:
                    into = target[offset : offset + length]
                    await rdma.wait(await rdma.get(into, source=1, address=memory.address + offset))
            elif kind != "get":
                event = await rdma.received()
                assert (event.length_bytes, event.data) == (length, step)
            await host.barrier()
            if host.rank == (0 if kind == "get" else 1):
                factor = 4 if kind == "get" else 3
                expected = [0] * 24_000
                expected[offset : offset + length] = [
                    (index * factor) % 251 for index in range(offset, offset + length)
                ]
                assert target.array.tolist() == expected

    run(main)


def test_a_lost_put_that_no_program_waits_for_is_no_success() -> None:
    async def main(host: nicety.Host) -> None:
        rdma, buffer = host.rdma, host.alloc(8192)
        await rdma.register(buffer)
        await host.barrier()
        if host.rank == 1:
            await rdma.wait(await rdma.put(buffer, to=0, address=buffer.address))

    with pytest.raises(nicety.HandlerFailure) as error:
        run(main, set={"link.bit_error_rate": 1})
    (failure,) = error.value.failures
    assert (failure["kind"], failure["rank"], failure["times"]) == ("lost", 1, 2)
    assert "--allow-failures lost" in str(error.value)
    allowed = run(main, set={"link.bit_error_rate": 1}, allow_failures="lost")
    assert [failure.kind for failure in allowed.failures] == ["lost"]


def test_a_refusal_at_the_own_end_names_this_host() -> None:
    async def main(host: nicety.Host) -> list[Any]:
        rdma, buffer, other = host.rdma, host.alloc(65536), host.alloc(65536)
        region = await rdma.register(buffer)
        await rdma.register(other)
        await host.barrier()
        if host.rank == 1:
            return []
        events = []
        for address in (other.address, 64):
            get = await rdma.get(buffer, source=1, address=address)
            if address != 64:
                await rdma.deregister(region)
            events.append(await rdma.event())
            assert events[-1].operation == get
            region = region if address == 64 else await rdma.register(buffer)
        get = await rdma.get(buffer, source=1, address=other.address)
        await rdma.deregister(region)
        with pytest.raises(nicety.RunError, match="node 0 has refused the message: the bytes are not registered there"):
            await rdma.wait(get)
        return [(event.kind, event.reason, event.rank, event.refused_by) for event in events]

    own, there = run(main).results[0]
    assert own == ("refused", "unregistered", 1, 0)
    assert there == ("refused", "unregistered", 1, 1)


def test_a_streaming_buffer_is_posted_once_until_it_is_used() -> None:
    async def main(host: nicety.Host) -> str:
        rdma, room = host.rdma, host.alloc(256)
        await rdma.register(room)
        await rdma.post_streaming(room[64:128])
        await rdma.post_streaming(room[:64])
        await rdma.post_streaming(room[128:])
        with pytest.raises(nicety.RunError) as error:
            await rdma.post_streaming(room[120:130])
        for again in (room[64:128], room[:1], room[255:], room[60:70], room):
            with pytest.raises(nicety.RunError, match="overlap"):
                await rdma.post_streaming(again)
        assert rdma.streaming == 3
        # A used buffer may be posted again.
        await rdma.wait(await rdma.send(room[:8], to=host.rank))
        assert (await rdma.received()).address == room.address + 64
        await rdma.post_streaming(room[64:128])
        assert rdma.streaming == 3
        return str(error.value).replace(hex(room.address + 64), "A").replace(hex(room.address + 120), "B")

    text = run(main).results[0]
    assert "the 10 bytes at B overlap the streaming buffer of" in text


SIZES = [100_000, 8, 0, 5000, 64, 30_000, 1, 4096, 0, 70_000, 8]
"""Sizes of puts and sends, alternating by number, and the memory of each."""
SENDS = (3, 6)
ROOM = 1 << 17


async def post_all(host: nicety.Host, target: nicety.Buffer, out: list[nicety.Buffer]) -> list[str]:
    """Post them to rank 1, each followed by a get; return the kinds of the events."""
    rdma, got = host.rdma, host.alloc(8)
    await rdma.register(got)
    await host.barrier()
    for number, size in enumerate(SIZES):
        source = out[number % 3 == 0][:size]
        if number in SENDS:
            await rdma.send(source, to=1, data=number)
        else:
            await rdma.put(source, to=1, address=target.address + number * ROOM, data=number)
        await rdma.get(got, source=1, address=target.address)
    return [(await rdma.event()).kind for _ in range(2 * len(SIZES))]


async def take_all(host: nicety.Host, target: nicety.Buffer) -> None:
    """Take the events, and check the bytes of all earlier messages at each."""
    rdma, streaming = host.rdma, host.alloc(2 * ROOM)
    await rdma.register(streaming)
    for half in (streaming[:ROOM], streaming[ROOM:]):
        await rdma.post_streaming(half)
    await host.barrier()
    parts = [target.array[at * ROOM :][:size] for at, size in enumerate(SIZES)]
    for at, number in enumerate(SENDS):
        parts[number] = streaming.array[at * ROOM :][: SIZES[number]]
    for number, size in enumerate(SIZES):
        event = await rdma.event()
        assert (event.kind, event.data, event.length_bytes) == ("received", number, size)
        assert all((part == 1).all() for part in parts[: number + 1])


def test_received_events_of_a_rank_come_in_order_behind_all_earlier_bytes() -> None:
    async def main(host: nicety.Host) -> list[str]:
        # From memory of host and graphics processor.
        target, out = host.alloc(ROOM * len(SIZES)), [host.alloc(ROOM), host.gpu.alloc(ROOM)]
        for memory in (target, *out):
            await host.rdma.register(memory)
        if host.rank == 1:
            await take_all(host, target)
            return []
        for memory in out:
            memory.array[:] = 1
        return await post_all(host, target, out)

    kinds = run(main).results[0]
    # Ends of operations are not in the order of posting.
    assert kinds != ["sent", "fetched"] * len(SIZES)
    assert sorted(kinds) == ["fetched"] * len(SIZES) + ["sent"] * len(SIZES)
