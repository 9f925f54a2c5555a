"""Clusters and benchmarks of hosts with different cards."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import nicety
from nicety.bench.messages import report_figure
from nicety.errors import InputError

MIXED = ("spin-discrete", "spin-integrated")


async def ping_pong(host: nicety.Host) -> float:
    """Half a round trip of rank 0, and rank 1's wait."""
    peer, out, back = 1 - host.rank, host.alloc(8), host.alloc(8)
    coming = await host.post_recv(back, source=peer)
    await host.barrier()
    begun = host.now_ps
    if host.rank == 0:
        await host.send(out, to=peer)
    await coming
    ended = host.now_ps
    if host.rank == 1:
        await host.send(out, to=peer)
    return (ended - begun) / 1000


def test_each_card_takes_its_own_time() -> None:
    run = nicety.Cluster(2, MIXED).run(ping_pong)
    # Post, bus, link, match, deposit and event, notice: over the discrete bus and into the integrated one.
    there = 65 + 250 + 0.160 + 33.4 + 30 + 0.054 + 50 + 65
    back = 65 + 50 + 0.160 + 33.4 + 30 + 0.125 + 250 + 65
    assert run.results == {0: pytest.approx(there + back, abs=1e-9), 1: pytest.approx(there, abs=1e-9)}
    assert [node.nic for node in run.nodes] == list(MIXED)
    assert nicety.Cluster(2, ["spin-discrete"] * 2).run(ping_pong).results == (
        nicety.Cluster(2, "spin-discrete").run(ping_pong).results
    )


SLOW = """
extends = "spin-discrete"
name = "slow"
title = "a card whose stores take long"

[hpu.cycles]
store = { value = 50, kind = "assumed", source = "made up" }
"""

STORES = """
#include <nicety.h>

int payload_handler(const ptl_payload_t p, void *state) {
    *(volatile int *)state = 1;
    return SUCCESS;
}
"""


def test_a_program_of_handlers_costs_on_each_card_what_that_card_says(tmp_path: Path) -> None:
    (tmp_path / "slow.toml").write_text(SLOW)
    (tmp_path / "stores.c").write_text(STORES)

    async def main(host: nicety.Host) -> None:
        into, out = host.alloc(8), host.alloc(8)
        handlers = nicety.Handlers(tmp_path / "stores.c")
        attached = host.portals.attach(handlers, state=bytes(4))
        count, pt = host.portals.ct_alloc(), host.portals.pt_alloc(pt=1)
        options = ["op_put", "event_ct_comm", "event_comm_disable", "event_link_disable"]
        await host.portals.me_append(into, pt=pt, options=options, ct=count, handlers=attached)
        await host.barrier()
        await host.portals.put(host.portals.md_bind(out, options=["event_send_disable"]), 8, to=1 - host.rank, pt=pt)
        await host.portals.ct_wait(count, 1)

    def cycles(*nics: str | Path) -> list[int]:
        return [node.portals.handler_cycles for node in nicety.Cluster(2, nics).run(main).nodes]

    fast, slow = cycles("spin-discrete", tmp_path / "slow.toml")
    assert slow == fast + 49
    assert cycles(tmp_path / "slow.toml", "spin-discrete") == [slow, fast]


def test_cards_that_cannot_be_are_refused() -> None:
    for nic, text in (
        (["spin-discrete"], "nic names 1 card for 2 hosts; name one for each rank, or one for all without a list"),
        (["spin-discrete"] * 3, "nic names 3 cards for 2 hosts"),
        ([], "nic names 0 cards for 2 hosts"),
        (["spin-discrete", 4], "nic names a card for each rank, by name or by the path of its file, not 4"),
        ({"spin-discrete": 1}, "or a list of these, not {'spin-discrete': 1}"),
        (b"spin-discrete", "nic is the name of a card or the path of its file"),
        (["spin-discrete", "gone"], 'there is no card spec "gone"'),
        (
            ["spin-discrete", "qnix"],
            "rank 0 has card spin-discrete, which sends Portals 4 packets, and rank 1 has qnix",
        ),
    ):
        with pytest.raises(InputError) as raised:
            nicety.Cluster(2, nic)  # type: ignore[arg-type]
        assert text in str(raised.value)
    with pytest.raises(InputError, match="no Portals interface"):
        nicety.Cluster(2, ["qnix", "qnix"], uids=[1, 2])


def test_errors_name_the_card() -> None:
    async def main(host: nicety.Host) -> None:
        if host.rank == 1:
            await host.recv(host.alloc(8), source=0)

    with pytest.raises(nicety.Deadlock, match=r"rank 1 \(spin-integrated\)"):
        nicety.Cluster(2, MIXED).run(main)


def test_a_benchmark_has_a_peer(nicety: Callable) -> None:
    pair = ["--nic", "spin-discrete", "--peer", "spin-integrated", "--sizes", "8"]
    report = nicety("bench", "latency", *pair, "--mode", "rdma,spin-stream", "--json").json()
    assert report["manifest"]["peer"]["nic"] == "spin-integrated"
    assert list(report["manifest"]["compiler"]) == ["peer spin-integrated/spin-stream"]
    assert [row["nic"] for row in report["rows"]] == ["spin-discrete"] * 2
    assert report["rows"][0]["latency_ns"] == pytest.approx((493.614 + 493.685) / 2, abs=1e-9)
    text = nicety("bench", "latency", *pair).stdout
    assert "\n# the other hosts have card spin-integrated\n" in text
    for breakdown in (False, True):
        figure = report_figure(report, breakdown=breakdown)
        texts = [figure.get_suptitle(), *(text.get_text() for axes in figure.axes for text in axes.texts)]
        assert any("the other hosts have card spin-integrated" in text for text in texts), texts
    refused = nicety("bench", "bandwidth", "--nic", "spin-discrete", "--peer", "nfp-4000")
    assert refused.status == 2
    assert refused.stderr.startswith(
        "nicety: with --peer: rank 0 has card spin-discrete, which sends Portals 4 packets"
    )
