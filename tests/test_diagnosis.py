"""Errors for a user with a program that waits for a message that does not arrive."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

import nicety

PROGRAM = """
async def main(host):
    if host.rank == 0:
        md = host.portals.md_bind(host.alloc(8))
        for bits in (5, 6):
            await host.portals.put(md, 8, to=1, pt=2, match_bits=bits)
"""


COUNTING = """
#include <nicety.h>

__handler int completion_handler(int dropped_bytes, bool flow_control_triggered, void *state) {
    (void)dropped_bytes, (void)flow_control_triggered, (void)state;
    return PtlHandlerCTInc(1) == PTL_OK ? SUCCESS : FAIL;
}
"""


def stuck(main: Callable[[nicety.Host], Coroutine[Any, Any, None]], nodes: int = 2, topology: str = "pair") -> str:
    """The text of a deadlock."""
    with pytest.raises(nicety.Deadlock) as caught:
        nicety.Cluster(nodes, "spin-discrete", topology=topology).run(main)
    return str(caught.value)


def test_a_deadlock_of_a_thousand_ranks_is_told_in_a_page() -> None:
    async def ring(host: nicety.Host) -> None:
        await host.send(host.alloc(8), to=(host.rank + 1) % host.ranks)
        await host.recv(host.alloc(8), source=(host.rank - 1) % host.ranks, tag=1)

    lines = stuck(ring, 1024, "fat-tree:36").splitlines()
    assert lines[0].endswith("and 1024 programs wait")
    assert [line.split(",")[0] for line in lines[1:9]] == [f"  node {rank}" for rank in range(8)]
    assert lines[9] == "  and 1016 more"
    one = "  note: at rank 0, 1 message waits for a recv: one of 8 bytes from rank 1023, tag 0"
    assert lines[10] == one
    assert lines[18] == "  note: 1016 messages at 1016 more ranks wait for a recv"
    note = "  note: a recv takes messages of its source and tag; a recv without source or tag takes any message"
    assert lines[19] == note
    assert len(lines) == 20


def test_a_dropped_put_is_told_by_its_entry_and_bits(nicety: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "drop.py").write_text(PROGRAM)
    told = "the first a put from rank 0, pt 2, match bits 0x5: its portal table index is not in use"
    ended = nicety("run", "drop.py", "--json")
    assert f"spin-discrete: the card of rank 1 dropped 2 messages, {told}" in ended.stderr
    (drop,) = ended.json()["messages_dropped"]
    assert drop == {"nic": "spin-discrete", "rank": 1, "messages": 2, "first": told.removeprefix("the first ")}


def test_a_deadlock_for_a_dropped_put_says_which() -> None:
    async def main(host: nicety.Host) -> None:
        if host.rank == 0:
            await host.portals.put(host.portals.md_bind(host.alloc(8)), 8, to=1, pt=2, match_bits=5)
        else:
            await host.recv(host.alloc(8))

    text = stuck(main)
    what = "rank 1 dropped 1 message: a put from rank 0, pt 2, match bits 0x5: its portal table index is not in use"
    assert what in text
    assert "for a recv" not in text


def test_a_get_that_an_entry_does_not_allow_is_told_as_such() -> None:
    async def main(host: nicety.Host) -> None:
        memory, count = host.alloc(8), host.portals.ct_alloc()
        if host.rank == 1:
            await host.portals.me_append(memory, pt=host.portals.pt_alloc(pt=1), match_bits=3, options=["op_put"])
        md = host.portals.md_bind(memory, ct=count, options=["event_ct_reply"])
        await host.barrier()
        if host.rank == 0:
            await host.portals.get(md, 8, to=1, pt=1, match_bits=3)
            await host.portals.ct_wait(count, 1)

    failed = "an operation waited for failed: a get to rank 1, pt 1, match bits 0x3: PTL_NI_OP_VIOLATION, .* no op_get"
    with pytest.raises(nicety.RunError, match=failed):
        nicety.Cluster(2, "spin-discrete").run(main)


def test_of_several_failures_the_first_is_told() -> None:
    async def main(host: nicety.Host) -> None:
        count = host.portals.ct_alloc()
        md = host.portals.md_bind(host.alloc(8), ct=count, options=["event_ct_ack"])
        if host.rank == 0:
            for bits in (7, 8):
                await host.portals.put(md, 8, to=1, pt=4, match_bits=bits, ack="ct_ack")
            await host.compute(ns=100_000)
            await host.portals.ct_wait(count, 1)

    failed = "2 of the operations waited for failed, the first of them a put to rank 1, pt 4, match bits 0x7: PTL_NI_DR"
    with pytest.raises(nicety.RunError, match=failed):
        nicety.Cluster(2, "spin-discrete").run(main)


def test_a_counter_that_nothing_counts_into_is_told(tmp_path: Path) -> None:
    async def no_option(host: nicety.Host) -> None:
        count = host.portals.ct_alloc()
        host.portals.md_bind(host.alloc(8), ct=count)
        await host.portals.me_append(host.alloc(8), pt=host.portals.pt_alloc(pt=1), ct=count, options=["op_put"])
        await host.portals.ct_wait(count, 1)

    async def no_ack(host: nicety.Host) -> None:
        count = host.portals.ct_alloc()
        md = host.portals.md_bind(host.alloc(8), ct=count, options=["event_ct_ack"])
        if host.rank == 0:
            await host.portals.put(md, 8, to=1, pt=1)
            await host.portals.ct_wait(count, 1)

    async def counted(host: nicety.Host) -> None:
        count = host.portals.ct_alloc()
        await host.portals.me_append(
            host.alloc(8), pt=host.portals.pt_alloc(pt=1), ct=count, options=["op_put", "event_ct_comm"]
        )
        await host.portals.ct_wait(count, 1)

    source = tmp_path / "counting.c"
    source.write_text(COUNTING)

    async def by_handlers(host: nicety.Host) -> None:
        count = host.portals.ct_alloc()
        pt = host.portals.pt_alloc(pt=1)
        handlers = host.portals.attach(nicety.Handlers(source))
        await host.portals.me_append(host.alloc(8), pt=pt, ct=count, handlers=handlers, options=["op_put"])
        await host.barrier()
        if host.rank == 0:
            await host.portals.put(host.portals.md_bind(host.alloc(8)), 8, to=1, pt=1)
            await host.portals.ct_wait(count, 1)
        else:
            # A handler counts one, and not two: something is known to count.
            await host.portals.ct_wait(count, 2)

    told = stuck(by_handlers)
    assert "for a counter to reach 1; it is at 0, and only handlers count into it, with PtlHandlerCTInc" in told
    assert "for a counter to reach 2; it is at 1\n" in told

    waits = "for a counter to reach 1; it is at 0"
    assert f"{waits}, and nothing counts into it: set ct" in stuck(no_option)
    assert f"{waits}, and event_ct_ack counts only puts" in stuck(no_ack)
    assert f"{waits}\n" in stuck(counted)


def test_a_triggered_operation_whose_time_has_not_come_is_told() -> None:
    async def main(host: nicety.Host) -> None:
        count = host.portals.ct_alloc()
        md = host.portals.md_bind(host.alloc(8))
        if host.rank == 0:
            await host.portals.ct_inc(count, 1)
            await host.portals.triggered_put(md, 8, to=1, pt=1, ct=count, threshold=2)
            await host.portals.triggered_ct_inc(count, 1, ct=count, threshold=3)
        else:
            await host.recv(host.alloc(8))

    note = "on the card of rank 0, a triggered put waits for a counter to reach 2; it is at 1"
    assert f"{note}; 1 other triggered operation with it" in stuck(main)
