"""Applications on a card: their memory, their budgets, their shares, and handlers that leave entries open."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

import nicety

COUNT = """
    #include <nicety.h>
    static unsigned calls;
    __handler int payload_handler(const ptl_payload_t p, void *state) {
        unsigned *count = state;
        unsigned seen[2] = {__atomic_fetch_add(count, 1, __ATOMIC_RELAXED), calls++};
        return PtlHandlerDMAToHostB(seen, 0, sizeof seen, PTL_ME_HOST_MEM) == PTL_OK ? SUCCESS : FAIL;
    }
"""
LOOP = """
    #include <nicety.h>
    __handler int payload_handler(const ptl_payload_t p, void *state) {
        for (volatile int i = 0;; i++);
    }
"""
WORK = """
    #include <nicety.h>
    __handler int payload_handler(const ptl_payload_t p, void *state) {
        for (volatile int i = 0; i < 1000; i++);
        return SUCCESS;
    }
"""


@pytest.fixture
def handlers(tmp_path: Path) -> Callable[[str], nicety.Handlers]:
    """A program of these lines."""

    def write(source: str) -> nicety.Handlers:
        path = tmp_path / f"{abs(hash(source))}.c"
        path.write_text(source)
        return nicety.Handlers(path)

    return write


Receiver = Callable[[nicety.Host], Awaitable[Any]]


def run(receiver: Receiver, match_bits: list[int], *, first: bytes = b"\1" * 8, **options: Any) -> nicety.Run:
    """Rank 0 puts 8 bytes to these match bits of rank 1's entry 1, 20 us apart, after rank 1 is ready."""

    async def sender(host: nicety.Host) -> None:
        buffer = host.alloc(8)
        md = host.portals.md_bind(buffer, options=["event_send_disable"])
        await host.barrier()
        for number, bits in enumerate(match_bits):
            buffer.array[:] = first[number] if number < len(first) else 1
            await host.portals.put(md, 8, to=1, pt=1, match_bits=bits)
            await host.compute(ns=20_000)

    return nicety.Cluster(2, "spin-discrete", **options).run({0: sender, 1: receiver})


async def entries(host: nicety.Host, attached: list[int]) -> tuple[int, list[nicety.Buffer]]:
    """An entry per handler, with match bits 0, 1, ...; their queue and memories."""
    eq = host.portals.eq_alloc(64)
    host.portals.pt_alloc(pt=1, eq=eq)
    buffers = [host.alloc(8) for _ in attached]
    for bits, (handlers, buffer) in enumerate(zip(attached, buffers, strict=True)):
        options = ["op_put", "event_link_disable"]
        await host.portals.me_append(buffer, pt=1, match_bits=bits, options=options, handlers=handlers)
    await host.barrier()
    return eq, buffers


def test_states_are_shared_on_request_and_globals_by_an_application(handlers: Callable) -> None:
    count = handlers(COUNT)

    async def receiver(host: nicety.Host) -> list[list[int]]:
        other = host.portals.application("other")
        shared = host.portals.hpu_alloc(b"\5\0\0\0")
        attached = [
            host.portals.attach(count, state=shared),
            host.portals.attach(count, state=shared),
            host.portals.attach(count, state=bytes(4)),
            host.portals.attach(count, state=bytes(4), application=other),
        ]
        eq, buffers = await entries(host, [*attached, attached[0]])
        seen = []
        for entry in [0, 1, 2, 3, 4, 3]:
            await host.portals.eq_wait(eq)
            seen.append(buffers[entry].view("<u4").tolist())
        return seen

    result = run(receiver, [0, 1, 2, 3, 4, 3])
    # The state's previous count, and the program's: the other application has its own.
    assert result.results[1] == [[5, 0], [6, 1], [0, 2], [0, 0], [7, 3], [1, 1]]
    main, other = result.nodes[1].portals.applications
    assert (main.name, main.handler_runs, other.name, other.handler_runs) == ("default", 4, "other", 2)
    assert (main.handlers_failed, main.messages_refused) == (0, 0)
    assert main.handler_cycles + other.handler_cycles == result.nodes[1].portals.handler_cycles
    # A word of data and two states of one word, in pieces of 16 bytes; none is freed.
    assert (main.hpu_memory_bytes, main.hpu_memory_peak_bytes, other.hpu_memory_bytes) == (48, 48, 32)


def test_a_budget_stops_a_handler_and_no_other(handlers: Callable) -> None:
    loop, work = handlers(LOOP), handlers(WORK)

    async def receiver(host: nicety.Host) -> list[tuple[int, str]]:
        looping = host.portals.application("looping", cycles_per_run=3000, cycles=4000)
        attached = [host.portals.attach(loop, application=looping), host.portals.attach(work)]
        eq, _ = await entries(host, attached)
        events = [await host.portals.eq_wait(eq) for _ in range(5)]
        return [(event.match_bits, event.fail) for event in events]

    result = run(receiver, [0, 1, 0, 0, 1], allow_failures="budget")
    over = "PTL_NI_HANDLER_BUDGET"
    assert result.results[1] == [(0, over), (1, "PTL_NI_OK"), (0, over), (0, over), (1, "PTL_NI_OK")]
    main, looping = result.nodes[1].portals.applications
    assert (looping.handler_runs, looping.handlers_failed, looping.messages_refused) == (2, 2, 1)
    assert 4000 <= looping.handler_cycles < 4010
    assert (main.handler_runs, main.handlers_failed) == (2, 0)
    first, second, unserved = (failure.text for failure in result.nodes[1].failures)
    assert "the budget of application 'looping' is used up, 3000 cycles for a run, in payload_handler at " in first
    assert ".c:4 (pc 0x1d0000" in first
    assert "is used up, 4000 cycles in all, in payload_handler" in second
    assert unserved == "messages refused: the budget of application 'looping' is used up"


def test_hpu_memory_is_the_cards(handlers: Callable) -> None:
    count = handlers(COUNT)

    async def receiver(host: nicety.Host) -> None:
        other = host.portals.application("other", hpu_memory_bytes=1024)
        memory = host.portals.hpu_alloc(700 << 10)
        with pytest.raises(nicety.InputError, match=r"'default' asked for 716800 bytes of HPU memory, but 331776 are"):
            host.portals.hpu_alloc(700 << 10)
        with pytest.raises(nicety.InputError, match=r"'other' asked for 2000 bytes.*but its limit leaves"):
            host.portals.hpu_alloc(2000, application=other)
        with pytest.raises(nicety.InputError, match="applications cannot share HPU memory"):
            host.portals.attach(count, state=memory, application=other)
        attached = host.portals.attach(count, state=memory)
        with pytest.raises(nicety.InputError, match="the state of 1 attached handlers"):
            host.portals.hpu_free(memory)
        host.portals.detach(attached)
        host.portals.hpu_free(memory)
        with pytest.raises(nicety.InputError, match="it was freed"):
            host.portals.hpu_free(memory)
        with pytest.raises(nicety.InputError, match="asked for 1048577 bytes"):
            host.portals.attach(count, state=bytes((1 << 20) + 1))

    report = nicety.Cluster(2, "spin-discrete").run({1: receiver}).nodes[1].portals.applications[0]
    assert (report.hpu_memory_bytes, report.hpu_memory_peak_bytes) == (0, 716800 + 16)


def test_invalid_applications_and_memory_are_refused() -> None:
    async def main(host: nicety.Host) -> None:
        wrong: Any = 7
        for call, text in [
            (lambda: host.portals.hpu_free(wrong), r"made by host.portals.hpu_alloc\(...\), not 7"),
            (lambda: host.portals.hpu_alloc(8, application=wrong), r"made by host.portals.application\(...\), not 7"),
            (lambda: host.portals.application(""), "an application has a name"),
            (lambda: host.portals.application("default"), "there is an application 'default' already"),
            (lambda: host.portals.application("x", weight=0), "a weight is 1 to 1000000, not 0"),
            (lambda: host.portals.application("x", cycles=0), "at least one cycle"),
            (lambda: host.portals.hpu_alloc(0), "at least one byte"),
            (lambda: host.portals.detach(3), "no handlers were attached under number 3"),
        ]:
            with pytest.raises(nicety.InputError, match=text):
                call()
        foreign = nicety.Application("kv", 1, 1 - host.rank, 1)
        with pytest.raises(nicety.InputError, match=f"is on the card of rank {1 - host.rank}, not of {host.rank}"):
            host.portals.hpu_alloc(8, application=foreign)

    nicety.Cluster(2, "spin-discrete").run(main)


@pytest.mark.parametrize("name", ["payload_hander", "payload_handlers", "payloadHandler", "heade_handler"])
def test_a_misspelt_handler_is_refused(name: str, handlers: Callable) -> None:
    right = "header_handler" if "load" in name else "completion_handler"
    source = f"""
        #include <nicety.h>
        __handler int {name}(const ptl_payload_t p, void *state) {{ return SUCCESS; }}
        __handler int {
        "header_handler(const ptl_header_t h, void *state)"
        if right == "header_handler"
        else "completion_handler(int dropped_bytes, bool flow_control, void *state)"
    } {{ return SUCCESS; }}
    """

    async def main(host: nicety.Host) -> None:
        host.portals.attach(handlers(source))

    meant = "payload_handler" if "load" in name else "header_handler"
    with pytest.raises(nicety.InputError, match=f"a function {name} but no {meant}; call it {meant}, choose it by"):
        nicety.Cluster(2, "spin-discrete").run({0: main})


def test_the_host_hears_of_a_pending_message_when_a_later_one_ends(handlers: Callable) -> None:
    source = """
        #include <nicety.h>
        __handler int header_handler(const ptl_header_t h, void *state) {
            return h.base[0] ? PROCEED_PENDING : PROCEED;
        }
    """

    async def receiver(host: nicety.Host) -> tuple[float, list[int]]:
        eq, (buffer,) = await entries(host, [host.portals.attach(handlers(source))])
        begun = host.now_ns
        await host.portals.eq_wait(eq)
        return host.now_ns - begun, buffer.array.tolist()

    result = run(receiver, [0, 0, 0], first=b"\7\7\0")
    waited, memory = result.results[1]
    assert waited > 40_000
    assert memory == [0] * 8
    outcomes = result.messages.column("outcome")
    assert outcomes.count("pending") == 2


@pytest.mark.parametrize(("scheduling", "low", "high"), [("first-come", 0.9, 1.1), ("weighted-fair", 2.5, 3.5)])
def test_shares_of_the_processors(handlers: Callable, scheduling: str, low: float, high: float) -> None:
    work = handlers(WORK)

    async def sender(host: nicety.Host) -> None:
        md = host.portals.md_bind(host.alloc(8), options=["event_send_disable"])
        await host.barrier()
        for _ in range(100):
            for bits in (0, 1):
                await host.portals.put(md, 8, to=1, pt=1, match_bits=bits)

    async def receiver(host: nicety.Host) -> None:
        light, heavy = (host.portals.application(name, weight=weight) for name, weight in (("light", 1), ("heavy", 3)))
        attached = [host.portals.attach(work, application=light), host.portals.attach(work, application=heavy)]
        eq, _ = await entries(host, attached)
        for _ in range(200):
            await host.portals.eq_wait(eq)

    changes = {"hpu.scheduling": scheduling, "host.post": "0 ns", "host.notice": "0 ns"}
    cluster = nicety.Cluster(2, "spin-discrete", set=changes, recording="packets")
    runs = cluster.run({0: sender, 1: receiver}).handler_runs
    # All messages arrive within one run. Those to the heavy application have the odd numbers.
    order = [number for _, number in sorted(zip(runs.column("start_ps"), runs.column("sequence"), strict=True))]
    assert len(order) == 200
    heavy = sum(number % 2 for number in order[:80])
    assert low <= heavy / (80 - heavy) <= high


def test_messages_that_wait_for_a_context_cannot_block_the_one_that_has_it(handlers: Callable) -> None:
    work = handlers(WORK)

    async def receiver(host: nicety.Host) -> list[tuple[int, int]]:
        eq = host.portals.eq_alloc(64)
        host.portals.pt_alloc(pt=1, eq=eq)
        buffer = host.alloc(1 << 16)
        options = ["op_put", "event_link_disable"]
        await host.portals.me_append(
            buffer, pt=1, ignore_bits=0xFF, options=options, handlers=host.portals.attach(work)
        )
        await host.barrier()
        await host.compute(ns=1_000_000)
        event = await host.portals.eq_wait(eq)
        return [(event.initiator, event.rlength_bytes)]

    async def sender(host: nicety.Host) -> None:
        length = 1 << 16 if host.rank == 1 else 8
        md = host.portals.md_bind(host.alloc(length), options=["event_send_disable"])
        await host.barrier()
        if host.rank == 2:
            # After the first packet of the long message, and before its last.
            await host.compute(ns=200)
        for _ in range(1 if host.rank == 1 else 20):
            await host.portals.put(md, length, to=0, pt=1)

    changes = {"hpu.contexts": 1, "buffer.packets": 4, "host.post": "1 ns"}
    cluster = nicety.Cluster(3, "spin-discrete", topology="star", set=changes)
    report = cluster.run({0: receiver, 1: sender, 2: sender})
    # The long message has the only context, and the buffer fills with short ones. Some are dropped, so that the rest of
    # the long one comes through.
    assert report.results[0] == [(1, 1 << 16)]
    assert 0 < report.nodes[0].portals.messages_dropped < 20
    assert report.nodes[0].portals.messages_matched + report.nodes[0].portals.messages_dropped == 21
