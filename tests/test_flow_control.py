"""Switches without credits through Python and the command line: their drops and pauses, and the ends of such runs."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conftest import Result
from nicety import Cluster, Deadlock, Host, InputError, RunError
from nicety.usecases import Broadcast, run_usecase

RELIABLE = {"transport.reliable": "true", "transport.timeout": "20 us", "transport.retries": "100"}
_MESSAGES = 6


async def _incast(host: Host) -> int | None:
    """Every other rank sends messages of 4000 bytes to rank 0."""
    if host.rank > 0:
        buffer = host.alloc(4000)
        buffer.array[:] = host.rank
        await host.barrier()
        for tag in range(_MESSAGES):
            await host.send(buffer, to=0, tag=tag)
        return None
    posted = []
    for rank in range(1, host.ranks):
        for tag in range(_MESSAGES):
            buffer = host.alloc(4000)
            posted.append((rank, buffer, await host.post_recv(buffer, source=rank, tag=tag)))
    await host.barrier()
    for rank, buffer, receive in posted:
        await receive
        assert set(buffer.array) == {rank}
    return len(posted)


def _cluster(nic: str, flow: str | None, **options: Any) -> Cluster:
    return Cluster(6, nic, topology="star", flow_control=flow, **options)


@pytest.mark.parametrize(
    ("nic", "flow"),
    [("spin-discrete", "none,buffer=12Ki"), ("apenet-v5", "none,buffer=12Ki"), ("qnix", "none,buffer=12Ki"),
     ("nfp-4000", "none,buffer=2Ki")],
)  # fmt: skip
def test_a_card_without_recovery_says_what_it_lost_and_where(nic: str, flow: str) -> None:
    with pytest.raises(RunError, match="packets were not delivered and not retransmitted") as raised:
        _cluster(nic, flow).run(_incast)
    assert "dropped by switch.0, with no room before its port 0 to hosts.0" in str(raised.value)


def test_reliable_transport_makes_up_for_drops() -> None:
    runs = [
        _cluster("spin-discrete", "none,buffer=16Ki", set=RELIABLE, shards=shards).run(_incast) for shards in (1, 3)
    ]
    assert runs[0] == runs[1]
    run = runs[0]
    assert run.results[0] == 5 * _MESSAGES
    dropped = [port for port in run.ports if port.dropped_packets]
    assert [(port.at, port.port, port.peer, port.reason) for port in dropped] == [
        ("switch.0", 0, "hosts.0", "queue full")
    ]
    lost = dropped[0].dropped_packets
    assert sum(node.portals.transport.retransmitted for node in run.nodes) >= lost > 0
    assert "ports that dropped packets or paused their senders" in run._repr_html_()
    assert _cluster("spin-discrete", None).run(_incast).ports == []


@pytest.mark.parametrize("nic", ["apenet-v5", "qnix"])
def test_pauses_lose_nothing(nic: str) -> None:
    run = _cluster(nic, "pfc,buffer=16Ki").run(_incast)
    assert run.results[0] == 5 * _MESSAGES
    assert all(port.dropped_packets == 0 for port in run.ports)
    switch = [port for port in run.ports if port.at == "switch.0"]
    hosts = {port.at: port for port in run.ports if port.at != "switch.0"}
    assert sum(port.pauses_sent for port in switch) > 0
    for port in switch:
        assert hosts[port.peer].pauses_received == port.pauses_sent
    assert sum(host.paused_ps for host in hosts.values()) > 0


async def _opposite(host: Host) -> None:
    peer = (host.rank + 2) % 4
    out, back = host.alloc(400_000), host.alloc(400_000)
    receive = await host.post_recv(back, source=peer, tag=1)
    await host.barrier()
    await host.send(out, to=peer, tag=1)
    await receive


def test_ports_that_pause_each_other_are_named() -> None:
    cluster = Cluster(4, "spin-discrete", topology="ring:4", flow_control="pfc,buffer=24Ki")
    with pytest.raises(Deadlock, match="ports pause one another in a cycle") as raised:
        cluster.run(_opposite)
    for at, peer in ((0, 1), (1, 2), (2, 3), (3, 0)):
        assert f"switch.{at} port 1 (paused by switch.{peer}) -> " in str(raised.value)


@pytest.mark.parametrize(
    ("flow", "wrong"),
    [
        ("rde", "^flow control: there is no 'rde'; write credits, none or pfc"),
        ("none,buffer=1Ki", "^flow control none: a buffer of 1024 B for each port has no room for a packet of 4096 B"),
        ("none,xoff=1Ki", "^flow control: xoff: only pfc has pauses"),
        ("pfc,buffer=64Ki,xoff=128Ki", "xoff=131072 is above the buffer of 65536 B"),
        ("pfc,buffer=64Ki,xon=60Ki,xoff=40Ki", "xon=61440 is not below xoff, 40960"),
        ("pfc,quanta=0", "quanta: '0' is no whole number from 1 to 65535"),
        (7, "flow_control"),
    ],
)
def test_flow_controls_that_cannot_be_are_said_at_once(flow: Any, wrong: str) -> None:
    with pytest.raises(InputError, match=wrong):
        _cluster("spin-discrete", flow)


@given(st.text(max_size=40))
def test_no_text_does_worse_than_raise(text: str) -> None:
    with contextlib.suppress(InputError):
        _cluster("spin-discrete", text)


def test_the_command_line(nicety: Callable[..., Result], tmp_path: Path) -> None:
    bench = [
        "bench",
        "bandwidth",
        "--nic",
        "spin-discrete",
        "--mode",
        "rdma",
        "--sizes",
        "4Ki",
        "--pattern",
        "incast:4",
    ]
    done = nicety(*bench, "--flow-control", "none,buffer=16Ki")
    assert (done.status, done.stdout) == (1, "")
    assert "dropped by switch.0, with no room before its port 4 to hosts.4" in done.stderr
    assert "Traceback" not in done.stderr
    reliable = ["--set", "transport.reliable=true", "--set", "transport.retries=100"]
    done = nicety(*bench, *reliable, "--flow-control", "none,buffer=16Ki", "--json")
    assert done.status == 0, done.stderr
    assert done.json()["manifest"]["flow_control"] == "none,buffer=16Ki"
    assert "# flow control pfc" in nicety(*bench, "--flow-control", "pfc").stdout
    done = nicety(*bench, "--flow-control", "none,buffer=1")
    assert (done.status, done.stdout) == (2, "")
    assert "write buffer=4096 or more" in done.stderr
    done = nicety("bench", "latency", "--nic", "spin-discrete", "--flow-control", "pfc")
    assert done.status == 2
    assert "this topology has no switches; write --topology star, fat-tree or ring" in done.stderr
    done = nicety("bench", "halo", "--nic", "spin-discrete", "--sizes", "1Ki", "--flow-control", "pfc", "--json")
    assert done.json()["manifest"]["flow_control"] == "pfc"


def test_programs_and_use_cases_report_their_ports(nicety: Callable[..., Result], tmp_path: Path) -> None:
    program = tmp_path / "incast.py"
    program.write_text(
        "nodes = 6\n"
        "async def main(host):\n"
        "    memory = host.alloc(100_000)\n"
        "    if host.rank:\n"
        "        await host.send(memory, to=0)\n"
        "    else:\n"
        "        for rank in range(1, 6):\n"
        "            await host.recv(memory, source=rank)\n"
        "    return {'done': 1}\n"
    )
    flow = ["--flow-control", "none,buffer=32Ki"]
    done = nicety("run", str(program), *flow)
    assert (done.status, done.stdout) == (1, "")
    assert "dropped by switch.0, with no room before its port 0 to hosts.0" in done.stderr
    reliable = ["--set", "transport.reliable=true", "--set", "transport.retries=100"]
    csv = tmp_path / "rows.csv"
    done = nicety("run", str(program), *flow, *reliable, "--json", "--csv", str(csv))
    assert done.status == 0, done.stderr
    row = done.json()["rows"][0]
    port = next(port for port in row["ports"] if port["at"] == "switch.0" and port["port"] == 0)
    assert sum(card["retransmitted"] for card in row["transport"]) >= port["dropped_packets"] > 0
    assert "ports_switch.0_0_dropped_packets" in csv.read_text()
    assert "faults" not in row
    report = run_usecase(
        Broadcast(nodes=[5], sizes=[20_000]),
        nics=["spin-discrete"],
        overrides=["transport.reliable=true"],
        flow_control="none,buffer=16Ki",
        iterations=2,
    )
    assert report["manifest"]["flow_control"] == "none,buffer=16Ki"
    assert all(row["verified"] and row["ports"] for row in report["rows"])


def test_a_benchmark_tells_of_packets_that_were_dropped(nicety: Callable[..., Result]) -> None:
    command = (
        "bench",
        "bandwidth",
        "--nic",
        "ethernet-100g",
        "--pattern",
        "incast:4",
        "--sizes",
        "256Ki",
        "--iterations",
        "1",
    )
    limited = (*command, "--warmup", "0", "--window", "4", "--flow-control", "none,buffer=32Ki")
    report = nicety(*limited, "--json").json()
    ports = [port for port in report["rows"][0]["ports"] if port["dropped_packets"]]
    assert [(port["at"], port["reason"]) for port in ports] == [("switch.0", "queue full")]
    [line] = [line for line in nicety(*limited).stdout.splitlines() if "dropped" in line]
    count = ports[0]["dropped_packets"]
    assert line == (
        f"# ethernet-100g, auto, 262144 B: {count} packets were dropped: {count} at switch.0 port 4 (queue full)"
    )
    assert "ports" not in nicety(*command, "--json").json()["rows"][0]
