"""Portals calls of host programs: their effects, their costs, and their errors."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nicety

PT = 1


def pair(ask: Callable[..., Coroutine[Any, Any, Any]], answer: Callable[..., Coroutine[Any, Any, Any]]) -> nicety.Run:
    """Run two programs. Each begins after a barrier that `answer` has prepared for."""
    return nicety.Cluster(2, "spin-discrete").run({0: ask, 1: answer})


async def offer(host: nicety.Host, contents: bytes) -> tuple[nicety.Buffer, int]:
    """Memory of rank 1 that any rank may put into, get from and work on, and the queue of its events."""
    buffer = host.alloc(len(contents))
    buffer.array[:] = np.frombuffer(contents, np.uint8)
    eq = host.portals.eq_alloc(64)
    host.portals.pt_alloc(pt=PT, eq=eq)
    await host.portals.me_append(buffer, pt=PT, match_bits=5, options=("op_put", "op_get", "event_link_disable"))
    await host.barrier()
    return buffer, eq


def test_a_get_takes_what_its_parts_take() -> None:
    async def ask(host: nicety.Host) -> tuple[int, bytes, nicety.Event]:
        buffer, ct, eq = host.alloc(8), host.portals.ct_alloc(), host.portals.eq_alloc(8)
        md = host.portals.md_bind(buffer, options=["event_ct_reply"], ct=ct, eq=eq)
        await host.barrier()
        start = host.now_ps
        await host.portals.get(md, 8, to=1, pt=PT, match_bits=5, user_ptr=9)
        await host.portals.ct_wait(ct, 1)
        end = host.now_ps
        event = await host.portals.eq_wait(eq)
        host.portals.md_release(md)
        return end - start, buffer.array.tobytes(), event

    async def answer(host: nicety.Host) -> None:
        await offer(host, bytes(range(8)))

    run = pair(ask, answer)
    ps, contents, event = run.results[0]
    # As in docs/timing.md: 65 + 250 + 33.4 + 30 + 500 + 33.56 + 2 + 250.125 + 65.
    assert ps == 1_229_085
    assert contents == bytes(range(8))
    assert (event.kind, event.fail, event.user_ptr, event.mlength_bytes) == ("PTL_EVENT_REPLY", "PTL_NI_OK", 9, 8)
    assert event.ok
    assert run.nodes[1].host_memory_read_bytes == 8
    kinds = run.messages.column("kind")
    assert sorted(kinds) == ["get", "reply"]


def test_atomics_fetches_and_swaps() -> None:
    async def ask(host: nicety.Host) -> list[Any]:
        data, found, ct = host.alloc(8), host.alloc(8), host.portals.ct_alloc()
        out = host.portals.md_bind(data, options=["event_send_disable"])
        back = host.portals.md_bind(found, options=["event_ct_reply"], ct=ct)
        await host.barrier()
        results = []
        to: dict[str, Any] = {"to": 1, "pt": PT, "match_bits": 5}
        data.view(np.float64)[0] = 2.5
        await host.portals.fetch_atomic(out, 8, get_md=back, operator="sum", datatype=np.float64, **to)
        await host.portals.ct_wait(ct, 1)
        results.append(float(found.view(np.float64)[0]))
        data.view(np.float64)[0] = -1.0
        seven = np.float64(3.5).tobytes()
        await host.portals.swap(out, 8, get_md=back, operator="cswap", datatype="double", operand=seven, **to)
        await host.portals.ct_wait(ct, 2)
        results.append(float(found.view(np.float64)[0]))
        await host.portals.atomic(out, 8, operator="prod", datatype="float64", **to)
        await host.portals.get(back, 8, **to)
        await host.portals.ct_wait(ct, 3)
        results.append(float(found.view(np.float64)[0]))
        return results

    async def answer(host: nicety.Host) -> list[tuple[str, str | None, str | None]]:
        _, eq = await offer(host, np.float64(1.0).tobytes())
        events = [await host.portals.eq_wait(eq) for _ in range(3)]
        return [(event.kind, event.operator, event.datatype) for event in events]

    run = pair(ask, answer)
    # 1 + 2.5 is the operand, so it is swapped for -1. The product may or may not still be with the card when the get is
    # answered from host memory: the two are not ordered.
    assert run.results[0][:2] == [1.0, 3.5]
    assert run.results[0][2] in (-1.0, 1.0)
    assert run.results[1] == [
        ("PTL_EVENT_FETCH_ATOMIC", "PTL_SUM", "PTL_DOUBLE"),
        ("PTL_EVENT_FETCH_ATOMIC", "PTL_CSWAP", "PTL_DOUBLE"),
        ("PTL_EVENT_ATOMIC", "PTL_PROD", "PTL_DOUBLE"),
    ]


def test_counters_trigger_one_another() -> None:
    async def main(host: nicety.Host) -> tuple[int, int, int]:
        first, second, third = host.portals.ct_alloc(), host.portals.ct_alloc(), host.portals.ct_alloc()
        await host.portals.triggered_ct_inc(second, 5, ct=first, threshold=2)
        await host.portals.triggered_ct_set(third, 9, ct=second, threshold=5)
        await host.portals.ct_inc(first, 2)
        assert await host.portals.ct_wait(third, 9) == 9
        await host.portals.ct_set(first, 0)
        # It is posted, and not visible yet.
        assert host.portals.ct_get(first) == 2
        await host.compute(ns=1000)
        assert await host.portals.ct_poll({first: 1}, timeout_ns=1000) is None
        await host.portals.ct_inc(first, failure=1)
        polled = await host.portals.ct_poll({second: 100, first: 1})
        assert polled == (first, nicety.Count(0, 1))
        await host.portals.triggered_ct_inc(second, 1, ct=first, threshold=7)
        await host.portals.ct_cancel_triggered(first)
        await host.compute(ns=1000)
        host.portals.ct_free(second)
        return host.portals.ct_get(first), host.portals.ct_failures(first), host.portals.ct_get(third)

    assert nicety.Cluster(2, "spin-discrete").run({0: main}).results[0] == (0, 1, 9)


def test_triggered_operations_start_on_the_card() -> None:
    async def ask(host: nicety.Host) -> bytes:
        buffer, go, done = host.alloc(16), host.portals.ct_alloc(), host.portals.ct_alloc()
        buffer.array[:8] = 1
        md = host.portals.md_bind(buffer, options=["event_ct_reply"], ct=done)
        to: dict[str, Any] = {"to": 1, "pt": PT, "match_bits": 5, "ct": go}
        await host.barrier()
        more: dict[str, Any] = {"get_md": md, "local_get_offset": 8, "operator": "bor", "datatype": "uint8"}
        await host.portals.triggered_fetch_atomic(md, 8, threshold=1, **more, **to)
        await host.portals.triggered_get(md, 8, local_offset=8, threshold=2, **to)
        await host.portals.triggered_put(md, 1, threshold=3, **to)
        await host.portals.triggered_atomic(md, 8, threshold=3, operator="bxor", datatype="uint8", **to)
        await host.portals.triggered_swap(md, 8, threshold=4, **{**more, "operator": "swap"}, **to)
        await host.portals.ct_inc(go, 1)
        await host.portals.ct_wait(done, 1)
        first = buffer.array[8:].tobytes()
        await host.portals.ct_inc(go, 1)
        await host.portals.ct_wait(done, 2)
        second = buffer.array[8:].tobytes()
        await host.portals.ct_inc(go, 2)
        await host.portals.ct_wait(done, 3)
        return first + second

    async def answer(host: nicety.Host) -> bytes:
        buffer, eq = await offer(host, b"\2" * 8)
        for _ in range(5):
            await host.portals.eq_wait(eq)
        return buffer.array.tobytes()

    run = pair(ask, answer)
    assert run.results[0] == b"\2" * 8 + b"\3" * 8
    assert run.results[1] == b"\1" * 8


def test_unexpected_messages_are_found_by_searches_and_appends() -> None:
    async def ask(host: nicety.Host) -> None:
        buffer = host.alloc(8)
        buffer.array[:] = 7
        md = host.portals.md_bind(buffer)
        await host.barrier()
        for bits in (5, 6):
            await host.portals.put(md, 8, to=1, pt=PT, match_bits=bits, hdr_data=bits)
        await host.barrier()

    async def answer(host: nicety.Host) -> list[tuple[str, str, int]]:
        eq, spare, wanted = host.portals.eq_alloc(64), host.alloc(64), host.alloc(8)
        host.portals.pt_alloc(pt=PT, eq=eq)
        quiet = ("op_put", "event_link_disable")
        options = (*quiet, "manage_local", "event_comm_disable")
        overflow = await host.portals.me_append(
            spare, pt=PT, ignore_bits=2**64 - 1, list="overflow", options=options, min_free=8
        )
        await host.barrier()
        await host.barrier()
        seen = []
        await host.portals.me_search(pt=PT, match_bits=6)
        seen.append(await host.portals.eq_wait(eq))
        await host.portals.me_search(pt=PT, match_bits=4)
        seen.append(await host.portals.eq_wait(eq))
        with pytest.raises(nicety.RunError, match="PTL_IN_USE"):
            await host.portals.me_unlink(overflow)
        await host.portals.me_append(wanted, pt=PT, match_bits=5, options=(*quiet, "use_once", "event_unlink_disable"))
        found = await host.portals.eq_wait(eq)
        seen.append(found)
        at = found.start - spare.address
        assert spare[at : at + 8].array.tobytes() == b"\7" * 8
        await host.portals.me_search(pt=PT, match_bits=6, delete=True)
        seen.append(await host.portals.eq_wait(eq))
        await host.portals.me_unlink(overflow)
        with pytest.raises(nicety.RunError, match="PTL_ARG_INVALID"):
            await host.portals.me_unlink(overflow)
        assert await host.portals.eq_get(eq) is None
        host.portals.pt_free(PT)
        host.portals.eq_free(eq)
        return [(event.kind, event.fail, event.hdr_data) for event in seen]

    assert pair(ask, answer).results[1] == [
        ("PTL_EVENT_SEARCH", "PTL_NI_OK", 6),
        ("PTL_EVENT_SEARCH", "PTL_NI_NO_MATCH", 0),
        ("PTL_EVENT_PUT_OVERFLOW", "PTL_NI_OK", 5),
        ("PTL_EVENT_PUT_OVERFLOW", "PTL_NI_OK", 6),
    ]


def test_a_sender_that_overruns_its_receiver_sends_again_and_nothing_is_lost() -> None:
    messages = 40

    async def ask(host: nicety.Host) -> int:
        buffer, eq = host.alloc(8 * messages), host.portals.eq_alloc(1024)
        buffer.view(np.uint64)[:] = np.arange(messages)
        md = host.portals.md_bind(buffer, options=["event_send_disable"], eq=eq)
        to_send, refused = list(range(messages)), 0
        await host.barrier()
        while to_send:
            for number in to_send:
                await host.portals.put(
                    md, 8, to=1, pt=PT, local_offset=8 * number, hdr_data=number, user_ptr=number, ack=True
                )
            acks = [await host.portals.eq_wait(eq) for _ in to_send]
            assert {ack.fail for ack in acks} <= {"PTL_NI_OK", "PTL_NI_PT_DISABLED"}
            to_send = [ack.user_ptr for ack in acks if not ack.ok]
            refused += len(to_send)
            await host.compute(ns=20_000)
        return refused

    async def answer(host: nicety.Host) -> tuple[list[int], int]:
        buffer, eq = host.alloc(8 * messages), host.portals.eq_alloc(8)
        host.portals.pt_alloc(pt=PT, eq=eq, options=["flowctrl"])
        await host.portals.me_append(buffer, pt=PT, options=["op_put", "manage_local", "event_link_disable"])
        await host.barrier()
        received, disabled = [], 0
        while len(received) < messages:
            event = await host.portals.eq_wait(eq)
            if event.kind == "PTL_EVENT_PT_DISABLED":
                disabled += 1
                await host.compute(ns=5_000)
                await host.portals.pt_enable(PT)
            else:
                received.append(event.hdr_data)
                await host.compute(ns=500)
        assert buffer.view(np.uint64).tolist() == received
        return received, disabled

    run = pair(ask, answer)
    received, disabled = run.results[1]
    assert sorted(received) == list(range(messages))
    assert disabled > 0
    assert run.results[0] > 0


def test_events_that_found_their_queue_full_are_reported_where_they_are_missing() -> None:
    async def ask(host: nicety.Host) -> None:
        md = host.portals.md_bind(host.alloc(8), options=["event_send_disable"])
        await host.barrier()
        for number in range(5):
            await host.portals.put(md, 8, to=1, pt=PT, hdr_data=number)
        await host.barrier()

    async def answer(host: nicety.Host) -> None:
        eq = host.portals.eq_alloc(2)
        host.portals.pt_alloc(pt=PT, eq=eq)
        await host.portals.me_append(host.alloc(8), pt=PT, options=["op_put", "event_link_disable"])
        await host.barrier()
        await host.barrier()
        assert [(await host.portals.eq_wait(eq)).hdr_data for _ in range(2)] == [0, 1]
        with pytest.raises(nicety.RunError, match=r"PTL_EQ_DROPPED: .* 3 events are lost"):
            await host.portals.eq_get(eq)
        assert await host.portals.eq_get(eq) is None

    pair(ask, answer)


def test_waiting_has_an_end() -> None:
    async def main(host: nicety.Host) -> tuple[int, int]:
        eqs = [host.portals.eq_alloc(4), host.portals.eq_alloc(4)]
        start = host.now_ps
        assert await host.portals.eq_poll(eqs, timeout_ns=1000) is None
        polled = host.now_ps - start
        assert await host.portals.eq_get(eqs[0]) is None
        return polled, host.now_ps - start - polled

    # The given timeout, and then o for a look in vain; a look alone is o.
    assert nicety.Cluster(2, "spin-discrete").run({0: main}).results[0] == (1_065_000, 65_000)


def test_an_entry_of_a_user_refuses_others() -> None:
    async def ask(host: nicety.Host) -> tuple[int, str]:
        eq = host.portals.eq_alloc(8)
        md = host.portals.md_bind(host.alloc(8), options=["event_send_disable"], eq=eq)
        await host.barrier()
        await host.portals.put(md, 8, to=0, pt=PT, match_bits=5, ack=True)
        return host.portals.uid, (await host.portals.eq_wait(eq)).fail

    async def answer(host: nicety.Host) -> int:
        eq = host.portals.eq_alloc(8)
        host.portals.pt_alloc(pt=PT, eq=eq)
        await host.portals.me_append(
            host.alloc(8), pt=PT, match_bits=5, uid=7, options=["op_put", "event_link_disable"]
        )
        await host.barrier()
        return (await host.portals.eq_wait(eq)).uid

    cluster = nicety.Cluster(3, "spin-discrete", topology="star", uids=[1, 7, 8])
    run = cluster.run({0: answer, 1: ask, 2: ask})
    assert run.results == {0: 7, 1: (7, "PTL_NI_OK"), 2: (8, "PTL_NI_PERM_VIOLATION")}
    assert run.nodes[0].portals.messages_dropped == 1


@pytest.mark.parametrize(
    ("uids", "text"),
    [
        ([1], "1 user ids for 2 hosts; give one for each rank, or none"),
        ([1, -1], "a user id is a whole number from 0 to"),
        ("12", "uids are numbers, one for each rank, as in"),
    ],
)
def test_users_that_cannot_be_are_refused(uids: Any, text: str) -> None:
    with pytest.raises(nicety.InputError, match=text):
        nicety.Cluster(2, "spin-discrete", uids=uids)


def test_a_disabled_entry_refuses_and_an_enabled_one_does_not() -> None:
    async def ask(host: nicety.Host) -> list[str]:
        eq = host.portals.eq_alloc(8)
        md = host.portals.md_bind(host.alloc(8), options=["event_send_disable"], eq=eq)
        fails = []
        for _ in range(2):
            await host.barrier()
            await host.portals.put(md, 8, to=1, pt=PT, match_bits=5, ack=True)
            fails.append((await host.portals.eq_wait(eq)).fail)
            await host.barrier()
        return fails

    async def answer(host: nicety.Host) -> None:
        eq = host.portals.eq_alloc(8)
        host.portals.pt_alloc(pt=PT, eq=eq)
        await host.portals.me_append(host.alloc(8), pt=PT, match_bits=5)
        await host.portals.pt_disable(PT)
        await host.barrier()
        await host.barrier()
        await host.portals.pt_enable(PT)
        await host.barrier()
        await host.barrier()

    assert pair(ask, answer).results[0] == ["PTL_NI_PT_DISABLED", "PTL_NI_OK"]


def refused(program: Callable[[nicety.Host], Any]) -> str:
    """The error of a refused call of rank 0."""

    async def main(host: nicety.Host) -> None:
        awaited = program(host)
        if awaited is not None:
            await awaited

    with pytest.raises(nicety.Error) as failed:
        nicety.Cluster(2, "spin-discrete").run({0: main})
    # Only a failure with a code of the specification, or one that only the card knows, is an error of the run.
    return f"{type(failed.value).__name__}: {failed.value}"


def test_mistakes_are_named() -> None:
    def md(host: nicety.Host) -> int:
        return host.portals.md_bind(host.alloc(16))

    to: dict[str, Any] = {"to": 1, "pt": PT}
    both = {"get_md": 0, **to}
    cases: list[tuple[Callable[[nicety.Host], Any], str]] = [
        (lambda h: h.portals.get(md(h), 17, **to), "PTL_ARG_INVALID: the message must lie inside"),
        (lambda h: h.portals.get(md(h), 8, to=2, pt=PT), "InputError: there is no rank 2"),
        (
            lambda h: h.portals.atomic(md(h), 8, operator="plus", datatype="uint64", **to),
            "InputError: 'plus' is no",
        ),
        (
            lambda h: h.portals.atomic(md(h), 8, operator="sum", datatype="uint128", **to),
            "InputError: 'uint128' is no",
        ),
        (lambda h: h.portals.atomic(md(h), 8, operator="bor", datatype="float", **to), "work on integers only"),
        (lambda h: h.portals.atomic(md(h), 9, operator="sum", datatype="uint64", **to), "whole items"),
        (lambda h: h.portals.atomic(md(h), 8, operator="sum", datatype=object(), **to), "datatype is a type such as"),
        (lambda h: h.portals.swap(md(h), 8, operator="cswap", datatype="uint64", **both), "PTL_ARG_INVALID"),
        (
            lambda h: h.portals.swap(md(h), 8, operator="cswap", datatype="uint64", operand=7, **both),
            "operand is the bytes",
        ),
        (lambda h: h.portals.put(md(h), 8, ack="maybe", **to), "'maybe' is no acknowledgement; there are no_ack, ack,"),
        (lambda h: h.portals.put(md(h), 8, ack=True, **to), "needs a descriptor with an event queue"),
        (
            lambda h: h.portals.me_append(h.alloc(8), pt=PT, list="middle"),
            "InputError: 'middle' is no list; there are ",
        ),
        (lambda h: h.portals.me_append(h.alloc(8), pt=9), "PTL_ARG_INVALID: this portal table index is not in use"),
        (lambda h: h.portals.pt_alloc(options=["flowctrl"]), "PTL_PT_EQ_NEEDED"),
        (lambda h: h.portals.pt_alloc(options=["flow"]), "InputError: 'flow' is no option of a portal table entry"),
        (lambda h: h.portals.pt_enable(9), "PTL_ARG_INVALID"),
        (lambda h: h.portals.ct_inc(12345, 1), "this handle names no counter"),
        (lambda h: h.portals.ct_get(12345), "this handle names no counter"),
        (lambda h: h.portals.ct_failures(12345), "this handle names no counter"),
        (lambda h: h.portals.eq_poll([]), "eq_poll takes at least one queue"),
        (
            lambda h: h.portals.eq_poll([h.portals.eq_alloc(4)], timeout_ns=-1),
            "timeout_ns=-1: a time is a number of nanoseconds",
        ),
        (lambda h: h.portals.ct_poll({}), "ct_poll takes counters"),
        (lambda h: h.portals.md_release(77), "this handle names no memory descriptor"),
        (lambda h: h.portals.eq_free(77), "this handle names no event queue"),
    ]
    for program, expected in cases:
        assert expected in refused(program)


def test_waits_take_handles_that_exist() -> None:
    async def freed_counter(host: nicety.Host) -> None:
        ct = host.portals.ct_alloc()
        host.portals.ct_free(ct)
        await host.portals.ct_wait(ct, 1)

    async def freed_queue(host: nicety.Host) -> None:
        eq = host.portals.eq_alloc(4)
        host.portals.eq_free(eq)
        await host.portals.eq_wait(eq)

    for program, what in [(freed_counter, "counter"), (freed_queue, "event queue")]:
        with pytest.raises(nicety.Error, match=f"PTL_ARG_INVALID: this handle names no {what}"):
            nicety.Cluster(1, "spin-discrete").run(program)


RENDEZVOUS = """
#include <nicety.h>

/* The message is four bytes long and says how many there are to get; its header data is what they match. */
__handler int header_handler(const ptl_header_t h, void *state) {
    uint32_t length = *(const uint32_t *)h.base;
    int got = PtlHandlerGetToHost(16, length, PTL_ME_HOST_MEM, 1, h.source_id, h.hdr_data, 8);
    return h.type == PTL_TYPE_PUT && got == PTL_OK ? DROP : FAIL;
}
"""


@pytest.mark.parametrize("length", [0, 8, 100_000])
def test_a_handler_gets_what_a_message_offers(length: int, tmp_path: Path) -> None:
    source = tmp_path / "rendezvous.c"
    source.write_text(RENDEZVOUS)

    async def offers(host: nicety.Host) -> str:
        memory, eq = host.alloc(length + 8), host.portals.eq_alloc(8)
        memory.array[:] = np.arange(length + 8) % 251
        host.portals.pt_alloc(pt=PT, eq=eq)
        await host.portals.me_append(memory, pt=PT, match_bits=9, options=["op_get", "event_link_disable", "use_once"])
        request = host.alloc(4)
        request.view(np.uint32)[0] = length
        await host.barrier()
        await host.portals.put(host.portals.md_bind(request), 4, to=1, pt=PT, match_bits=5, hdr_data=9)
        return (await host.portals.eq_wait(eq)).kind

    async def takes(host: nicety.Host) -> bytes:
        memory, done = host.alloc(length + 16), host.portals.ct_alloc()
        host.portals.pt_alloc(pt=PT)
        handlers = host.portals.attach(nicety.Handlers(source))
        await host.portals.me_append(memory, pt=PT, match_bits=5, ct=done, handlers=handlers)
        await host.barrier()
        await host.portals.ct_wait(done, 1)
        return memory.array[16:].tobytes()

    run = nicety.Cluster(2, "spin-discrete").run({0: offers, 1: takes})
    assert run.results[0] == "PTL_EVENT_GET"
    assert run.results[1] == (np.arange(8, length + 8) % 251).astype(np.uint8).tobytes()
    assert run.nodes[1].failures == []


def test_a_failure_sets_off_what_waits_for_a_counter() -> None:
    async def main(host: nicety.Host) -> tuple[int, int]:
        waited_for, set_off = host.portals.ct_alloc(), host.portals.ct_alloc()
        await host.portals.triggered_ct_inc(set_off, 5, ct=waited_for, threshold=2)
        await host.portals.ct_inc(waited_for, failure=1)
        await host.portals.ct_inc(waited_for, 1)
        await host.portals.ct_wait(set_off, 5)
        return host.portals.ct_get(waited_for), host.portals.ct_failures(waited_for)

    assert nicety.Cluster(1, "spin-discrete").run(main).results == {0: (1, 1)}


@pytest.mark.parametrize("nodes", [1, 2])
def test_a_put_to_itself_takes_what_is_not_the_link(nodes: int) -> None:
    async def main(host: nicety.Host) -> tuple[int, bytes, int]:
        memory, data, ct = host.alloc(8), host.alloc(8), host.portals.ct_alloc()
        data.array[:] = 3
        pt = host.portals.pt_alloc(pt=PT)
        await host.portals.me_append(memory, pt=pt, ct=ct, options=["op_put", "event_ct_comm"])
        await host.barrier()
        start = host.now_ps
        await host.portals.put(host.portals.md_bind(data), 8, to=host.rank, pt=PT)
        await host.portals.ct_wait(ct, 1)
        took = host.now_ps - start
        pending = await host.post_recv(memory, source=host.rank)
        await host.barrier()
        await host.send(data, to=host.rank)
        return took, memory.array.tobytes(), (await pending).source

    # Post 65, bus 250.125, match 30, deposit and count 250.125, notice 65.
    run = nicety.Cluster(nodes, "spin-discrete").run(main)
    assert run.results == {rank: (660_250, bytes([3] * 8), rank) for rank in range(nodes)}


def test_limits_and_status_of_the_interface() -> None:
    async def main(host: nicety.Host) -> list[int]:
        limits = host.portals.ni_limits()
        assert (limits["max_pt_index"], limits["features"]) == (63, ["get", "atomic"])
        assert limits["max_entries"] == 65_536
        pt, eq, memory = host.portals.pt_alloc(pt=PT), host.portals.eq_alloc(8), host.alloc(8)
        await host.portals.me_append(memory, pt=pt, match_bits=1, options=["op_get"])
        await host.portals.me_append(memory, pt=pt, match_bits=2, uid=9)
        for bits in (1, 2, 3):
            await host.portals.put(host.portals.md_bind(memory, eq=eq), 8, to=0, pt=PT, match_bits=bits, ack=True)
            while (await host.portals.eq_wait(eq)).kind != "PTL_EVENT_ACK":
                pass
        return [
            host.portals.ni_status(name) for name in ("drop_count", "operation_violations", "permission_violations")
        ]

    cluster = nicety.Cluster(1, "spin-discrete", set=["limits.match_entries=65536"])
    assert cluster.run(main).results == {0: [3, 1, 1]}

    async def unknown(host: nicety.Host) -> None:
        host.portals.ni_status("dropped")  # type: ignore[arg-type]

    said = "'dropped' is no status register; there are drop_count, permission_violations, operation_violations"
    with pytest.raises(nicety.InputError, match=said):
        cluster.run(unknown)


def test_list_entries_take_every_message() -> None:
    async def main(host: nicety.Host) -> list[Any]:
        eq = host.portals.eq_alloc(8)
        pt = host.portals.pt_alloc(pt=PT, eq=eq)
        first, second, data = host.alloc(8), host.alloc(8), host.alloc(8)
        silent = ["op_put", "event_link_disable", "event_unlink_disable"]
        await host.portals.le_append(first, pt=pt, options=[*silent, "use_once"])
        le = await host.portals.le_append(second, pt=pt, options=silent, list="overflow", user_ptr=4)
        md = host.portals.md_bind(data)
        found = []
        for bits in (77, 2**64 - 1):
            data.array[:] = bits % 251
            await host.portals.put(md, 8, to=0, pt=PT, match_bits=bits)
            event = await host.portals.eq_wait(eq)
            found.append((event.kind, event.user_ptr, event.match_bits))
        await host.portals.le_search(pt=pt, delete=True)
        found.append((await host.portals.eq_wait(eq)).kind)
        await host.portals.le_unlink(le)
        return [*found, int(first.array[0]), int(second.array[0])]

    results = nicety.Cluster(1, "spin-discrete").run(main).results[0]
    assert results == [
        ("PTL_EVENT_PUT", 0, 77),
        ("PTL_EVENT_PUT", 4, 2**64 - 1),
        "PTL_EVENT_PUT_OVERFLOW",
        77,
        (2**64 - 1) % 251,
    ]


def test_atomics_are_over_after_a_sync() -> None:
    async def main(host: nicety.Host) -> tuple[int, int, int]:
        memory, data, pt = host.alloc(8), host.alloc(8), host.portals.pt_alloc(pt=PT)
        data.view(np.uint64)[0] = 5
        await host.portals.me_append(memory, pt=pt)
        md = host.portals.md_bind(data, options=["event_send_disable"])
        for _ in range(20):
            await host.portals.atomic(md, 8, to=0, pt=PT, operator="sum", datatype=np.uint64)
        # Until the last of them has matched: they are consecutive, and take longer.
        await host.compute(ns=600)
        before, start = int(memory.view(np.uint64)[0]), host.now_ps
        await host.portals.atomic_sync()
        return before, int(memory.view(np.uint64)[0]), host.now_ps - start

    (before, after, took) = nicety.Cluster(1, "spin-discrete").run(main).results[0]
    assert before < 100
    assert after == 100
    assert took > 5_000_000
