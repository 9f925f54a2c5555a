"""Lost data that no program has missed: status 1 on every card, unless it is allowed; latencies under loss."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import pytest

import nicety as package
from conftest import Result
from nicety.program.failures import HandlerFailure

PUTS = """
async def main(host):
    if host.rank == 0:
        await host.barrier()
        buffer = host.alloc(64)
        for _ in range(20):
            await host.portals.put(host.portals.md_bind(buffer), 64, to=1, pt=3, match_bits=1)
        return None
    host.portals.pt_alloc(pt=3)
    buffer = host.alloc(64)
    counter = host.portals.ct_alloc()
    await host.portals.me_append(buffer, pt=3, match_bits=1, ct=counter)
    await host.barrier()
    await host.compute(ns=1e6)
    return {"done": 1}
"""


def test_puts_that_are_gone_are_no_success(nicety: Callable[..., Result], tmp_path: Path) -> None:
    (tmp_path / "puts.py").write_text(PUTS)
    command = ["run", "puts.py", "--nic", "spin-discrete", "--faults", "loss=0.5,seed=2"]
    failed = nicety(*command)
    assert failed.status == 1
    assert "packets were lost, and nothing retransmits them: " in failed.stderr
    assert "--allow-failures lost" in failed.stderr
    for kinds in ("lost", "all", "trap,lost"):
        allowed = nicety(*command, "--allow-failures", kinds, "--json")
        assert allowed.status == 0, allowed.stderr
        (failure,) = allowed.json()["failures"]
        assert failure["kind"] == "lost"
        assert 0 < failure["times"] < 40
    assert nicety(*command, "--allow-failures", "trap,fail,budget,refused").status == 1
    assert nicety(*command, "--set", "transport.reliable=true").status == 0
    assert nicety(*command[:4]).status == 0


@pytest.mark.parametrize("allowed", ["lost", "all"])
def test_an_outage_may_be_allowed(allowed: str) -> None:
    async def main(host: package.Host) -> int:
        buffer = host.alloc(8192)
        region = await host.rdma.register(buffer)
        await host.barrier()
        if host.rank == 0:
            for number in range(3):
                await host.rdma.put(buffer[:4096], to=1, address=region.address, data=number)
        await host.compute(ns=1e6)
        return host.rank

    faults = "fail=hosts.0 -> hosts.1@10us..500us"
    with pytest.raises(HandlerFailure, match=r"the link hosts.0 -> hosts.1 is down from 10 us to 500 us") as caught:
        package.Cluster(2, "apenet-v5", topology="torus:2", faults=faults).run(main)
    assert caught.value.run is not None
    assert caught.value.run.results == {0: 0, 1: 1}
    run = package.Cluster(2, "apenet-v5", topology="torus:2", faults=faults, allow_failures=allowed).run(main)
    assert [(failure.kind, failure.rank, failure.times) for failure in run.failures] == [("lost", 0, 3)]


@pytest.mark.parametrize("nic", ["ethernet-100g", "xeon-oplin", "niagara2-niu"])
def test_datagrams_that_are_gone_are_no_success(nic: str) -> None:
    async def main(host: package.Host) -> None:
        socket = host.socket.datagram()
        await socket.bind(9)
        await host.barrier()
        if host.rank == 0:
            for _ in range(10):
                await socket.sendto(b"x" * 100, 1, 9)
        await host.compute(ns=1e6)

    with pytest.raises(HandlerFailure, match=r"10 lost by chance"):
        package.Cluster(2, nic, faults="loss=1").run(main)
    run = package.Cluster(2, nic, faults="loss=1", allow_failures="lost").run(main)
    assert [(failure.kind, failure.times) for failure in run.failures] == [("lost", 10)]


@pytest.mark.parametrize("nic", ["ethernet-100g", "xeon-oplin", "niagara2-neptune"])
@pytest.mark.parametrize("faults", ["loss=0.02,seed=1", "reorder=0.2:30us,seed=2", "loss=0.05,duplicate=0.1,seed=4"])
def test_latencies_where_frames_are_lost_or_reordered_have_stages(nic: str, faults: str) -> None:
    report = package.run_benchmark("latency", nics=nic, sizes=[8, 1460, 20_000], iterations=30, faults=faults)
    assert [row["size_bytes"] for row in report["rows"]] == [8, 1460, 20_000]
    assert "failed_points" not in report
    for row in report["rows"]:
        stages = row["stages"]
        assert math.isclose(math.fsum(stage["ns"] for stage in stages), row["latency_ns"], rel_tol=1e-9)
        hidden = [stage["ns"] for stage in stages if stage["stage"] == "not accounted for"]
        assert bool(hidden) == ("unaccounted_iterations" in row)
        assert all(ns > 0 for ns in hidden)
        # A retransmission waits for a timer, which is a separate stage.
        assert math.fsum(hidden) < 0.5 * row["latency_ns"]
