"""Receives that are posted before their messages."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import nicety
from console import ROOT, blocks

WITH_HOSTS = [card.name for card in nicety.cards() if card.design != "hxdp"]
"""The cards with a path to a host."""


def program(page: str, title: str) -> str:
    """A program from a page."""
    return next(block.text for block in blocks((ROOT / page).read_text()) if block.title == title)


def test_a_posted_receive_takes_the_time_of_a_receive() -> None:
    async def ping(host: nicety.Host) -> None:
        await host.send(host.alloc(8), to=1, tag=5)

    async def pong(host: nicety.Host) -> tuple[float, nicety.Received, float]:
        pending = await host.post_recv(host.alloc(8), source=0, tag=5)
        posted = host.now_ns
        return posted, await pending, host.now_ns

    # Posting is o; the message arrives as for a recv: post 65, bus 250, link 0.160 + 33.4, match 30, deposit 0.125 +
    # 250, notice 65.
    run = nicety.Cluster(2, "spin-discrete").run({0: ping, 1: pong})
    assert run.results[1] == (65, nicety.Received(source=0, tag=5, length_bytes=8), 693.685)


@pytest.mark.parametrize("noise", [None, "20us,5us"])
@pytest.mark.parametrize("nic", WITH_HOSTS)
def test_messages_of_one_tag_come_in_the_order_in_which_they_are_sent(nic: str, noise: str | None) -> None:
    sizes = [60_000, 4, 400, 4, 5000, 4, 64, 4, 4, 4, 4, 4]

    async def sender(host: nicety.Host) -> None:
        buffers = [host.alloc(size) for size in sizes]
        for number, buffer in enumerate(buffers):
            buffer.array[:] = number
        await host.barrier()

        async def send(buffer: nicety.Buffer) -> None:
            await host.send(buffer, to=1, tag=5)

        async def other() -> None:
            await host.post_recv(host.alloc(4), source=1, tag=6)

        # All at once: some must be copied or registered first, for different times, and there are more than CPUs.
        # Another call or noise leaves CPUs free at other times.
        sends = [send(buffer) for buffer in buffers]
        await host.gather(*sends[:-1], other(), sends[-1])

    async def receiver(host: nicety.Host) -> list[tuple[int, int]]:
        buffer, found = host.alloc(60_000), []
        await host.barrier()
        for _ in sizes:
            received = await host.recv(buffer, source=0, tag=5)
            found.append((int(buffer.array[0]), received.length_bytes))
        await host.send(host.alloc(4), to=0, tag=6)
        return found

    run = nicety.Cluster(2, nic, topology="pair", noise=noise).run({0: sender, 1: receiver})
    assert run.results[1] == list(enumerate(sizes))


@pytest.mark.parametrize("noise", [None, "20us,5us"])
@pytest.mark.parametrize("nic", WITH_HOSTS)
def test_receives_of_one_tag_take_messages_in_the_order_in_which_they_are_posted(nic: str, noise: str | None) -> None:
    count = 20

    async def sender(host: nicety.Host) -> None:
        buffer = host.alloc(4)
        await host.barrier()
        for number in range(count):
            buffer.array[:] = number
            await host.send(buffer, to=1, tag=5)

    async def receiver(host: nicety.Host) -> list[int]:
        buffers = [host.alloc(4) for _ in range(count)]

        async def take(buffer: nicety.Buffer) -> None:
            await (await host.post_recv(buffer, source=0, tag=5))

        async def begin() -> None:
            await host.barrier()

        await host.gather(*(take(buffer) for buffer in buffers), begin())
        return [int(buffer.array[0]) for buffer in buffers]

    run = nicety.Cluster(2, nic, topology="pair", noise=noise).run({0: sender, 1: receiver})
    assert run.results[1] == list(range(count))


def test_a_program_may_wait_for_its_receives_in_any_order() -> None:
    async def sender(host: nicety.Host) -> None:
        out = host.alloc(8)
        await host.barrier()
        for tag in (1, 2, 2):
            out.array[:] += 1
            await host.send(out, to=1, tag=tag)

    async def receiver(host: nicety.Host) -> list[tuple[int, int]]:
        buffers = [host.alloc(8) for _ in range(3)]
        # With the same tag, in order of their post.
        one, two, three = [await host.post_recv(b, tag=t) for b, t in zip(buffers, (2, 2, 1), strict=True)]
        await host.barrier()
        tags = [(await pending).tag for pending in (three, two, one)]
        return [(tag, int(b.array[0])) for tag, b in zip(tags, reversed(buffers), strict=True)]

    run = nicety.Cluster(2, "spin-discrete").run({0: sender, 1: receiver})
    assert run.results[1] == [(1, 1), (2, 3), (2, 2)]


@pytest.mark.parametrize("nic", ["spin-discrete", "nfp-4000", "qnix", "apenet-v5", "niagara2-niu"])
def test_a_receive_may_ignore_bits_of_tags(nic: str) -> None:
    async def sender(host: nicety.Host) -> None:
        for tag in (2**63 - 1, 0x501, 0x502, 0x601):
            await host.send(host.alloc(8), to=1, tag=tag)

    async def receiver(host: nicety.Host) -> list[int]:
        buffer = host.alloc(8)
        second = await host.post_recv(buffer, source=0, tag=0x502, ignore=0x300)
        received = [await host.recv(buffer, tag=0x5FF, ignore=0xFF), await second]
        received += [await host.recv(buffer, tag=1, ignore=2**63 - 2), await host.recv(buffer)]
        return [each.tag for each in received]

    run = nicety.Cluster(2, nic).run({0: sender, 1: receiver})
    assert run.results[1] == [0x501, 0x502, 2**63 - 1, 0x601]

    async def waiting(host: nicety.Host) -> None:
        await host.recv(host.alloc(8), source=0, tag=0x500, ignore=0xFF)

    with pytest.raises(nicety.Deadlock, match="a message from rank 0, tag 0x500 except for the bits 0xff"):
        nicety.Cluster(2, nic).run({1: waiting})


def test_an_unawaited_receive_is_no_deadlock() -> None:
    async def main(host: nicety.Host) -> None:
        await host.post_recv(host.alloc(8))

    nicety.Cluster(2, "spin-discrete").run(main)


def test_errors_of_a_posted_receive_are_reported() -> None:
    async def twice(host: nicety.Host) -> None:
        pending = await host.post_recv(host.alloc(8), source=1)
        await host.barrier()
        await pending
        await pending

    async def other(host: nicety.Host) -> None:
        await host.barrier()
        await host.send(host.alloc(8), to=0)

    async def forgotten(host: nicety.Host) -> None:
        host.post_recv(host.alloc(8))
        await host.compute(ns=1)

    async def stranger(host: nicety.Host) -> None:
        await host.post_recv(host.alloc(8), source=2)

    async def never(host: nicety.Host) -> None:
        await (await host.post_recv(host.alloc(8), source=1, tag=4))

    async def too_many(host: nicety.Host) -> None:
        await [await host.post_recv(host.alloc(8)) for _ in range(3)][-1]

    pair = nicety.Cluster(2, "spin-discrete")
    for programs, error, text in (
        ({0: twice, 1: other}, nicety.InputError, "awaited before; post another receive"),
        ({0: forgotten}, nicety.InputError, r"write await host.post_recv\(\.\.\.\)"),
        ({0: stranger}, nicety.InputError, "there is no rank 2"),
        ({0: never}, nicety.Deadlock, "a message from rank 1, tag 4"),
    ):
        with pytest.raises(error, match=text):
            pair.run(programs)
    with pytest.raises(nicety.RunError, match=r"PTL_NO_SPACE|PTL_LIST_TOO_LONG"):
        nicety.Cluster(2, "spin-discrete", set={"limits.match_entries": 2}).run({0: too_many})


def test_a_message_may_be_too_long_for_a_posted_receive() -> None:
    async def sender(host: nicety.Host) -> None:
        await host.barrier()
        await host.send(host.alloc(9), to=1)

    async def receiver(host: nicety.Host) -> None:
        pending = await host.post_recv(host.alloc(8))
        await host.barrier()
        await pending

    with pytest.raises(nicety.RunError, match="9 bytes from rank 0 arrived at a recv of 8 bytes"):
        nicety.Cluster(2, "spin-discrete").run({0: sender, 1: receiver})


# With each of these, programs used to deadlock: a message preceded its receive.
TROUBLES: tuple[dict[str, Any], ...] = (
    {"set": {"transport.reliable": "true"}, "faults": "loss=0.1"},
    {"noise": "20us,5us"},
    {"set": {"transport.reliable": "true"}, "faults": "loss=0.1", "noise": "20us,5us"},
)


@pytest.mark.parametrize("trouble", TROUBLES)
@pytest.mark.parametrize(
    ("page", "title", "nodes", "topology"),
    [
        ("README.md", "first.py", 2, "pair"),
        ("docs/guide/run.md", "exchange.py", 2, "pair"),
        ("docs/guide/python.md", "ring.py", 4, "star"),
    ],
)
def test_programs_of_the_pages_need_no_luck(
    page: str, title: str, nodes: int, topology: str, trouble: dict[str, Any]
) -> None:
    names: dict[str, Any] = {"__name__": title}
    exec(compile(program(page, title), title, "exec"), names)
    for seed in range(1, 21):
        nicety.Cluster(nodes, "spin-discrete", topology=topology, seed=seed, **trouble).run(names["main"])


@given(st.integers(0, 2**32), st.sampled_from(TROUBLES), st.sampled_from(["spin-discrete", "spin-integrated"]))
def test_an_exchange_in_a_loop_needs_no_luck(seed: int, trouble: dict[str, Any], nic: str) -> None:
    page = (ROOT / "docs/guide/python.md").read_text()
    part = next(block.text for block in blocks(page) if "async def exchange" in block.text)
    names: dict[str, Any] = {}
    exec(part, names)

    async def main(host: nicety.Host) -> int:
        out, back = host.alloc(64), host.alloc(64)
        for count in range(100):
            out.array[:] = count
            await names["exchange"](host, out, back)
            assert (back.array == count).all()
        return 100

    cluster = nicety.Cluster(2, nic, seed=seed, **trouble)
    assert cluster.run(main).results == {0: 100, 1: 100}
