"""Traffic for hosts' cards while programs run: `Cluster(traffic=...)` and `nicety run --traffic`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import nicety as package
from nicety.build.compiler import library_source

ECHO = library_source("frames/echo.c")
DROP = library_source("frames/drop.c")


def handler(tmp_path: Path, body: str) -> package.Handlers:
    path = tmp_path / "handler.c"
    path.write_text(
        f"#include <frame.h>\n__handler int frame_handler(const frame_t *frame, void *state) {{\n{body}\n}}\n"
    )
    return package.Handlers(path)


@pytest.mark.parametrize("nic", ["niagara2-niu", "spin-100g"])
def test_sockets_get_datagrams_of_traffic_when_they_are_due_and_answer_them(nic: str) -> None:
    async def main(host: package.Host) -> object:
        socket = host.socket.datagram()
        await socket.bind(9)
        got = []
        for _ in range(5):
            data, sender = await socket.recvfrom(2000)
            got.append((len(data), sender, host.now_ns))
            await socket.sendto(data, *sender)
        return got

    run = package.Cluster(1, nic, traffic="udp dport=9 size=100 packets=5 rate=10kpps start=300us").run(main)
    got = run.results[0]
    # 14 + 20 + 8 bytes are headers; the tester's addresses are those of a host after the last.
    assert [each[:2] for each in got] == [(58, ("10.0.0.2", 49152))] * 5
    # Not before it is due, and soon after that: an interrupt reports several frames at a time.
    stalled_ns = [each[2] - (300_000 + 100_000 * number) for number, each in enumerate(got)]
    assert all(0 < late < 500_000 for late in stalled_ns)
    (report,) = run.traffic
    assert (report.rank, report.offered, report.offered_bytes) == (0, 5, 500)
    # Four gaps, and the one after the last.
    assert report.offered_ns == 500_000
    assert report.stalled_ns == 0
    assert (report.handled, report.passed, report.to_wire) == (5, 5, 0)
    # The answers.
    assert (report.returned, report.returned_bytes) == (5, 500)
    dropped = (report.dropped_by_handler, report.dropped_by_overload, report.dropped_at_host, report.lost)
    assert dropped == (0, 0, 0, 0)


def test_handlers_meet_traffic_and_the_latency_is_that_of_the_parts() -> None:
    async def main(host: package.Host) -> None:
        host.frames.install("udp dport=7", package.Handlers(ECHO))
        host.frames.install("udp dport=9", package.Handlers(DROP))
        await host.compute(ns=100_000)

    expressions = ["udp dport=7 size=100 packets=10 rate=1Mpps", "udp dport=9 size=60 packets=20 rate=1Mpps start=5us"]
    run = package.Cluster(1, "spin-100g", traffic=expressions, recording="packets").run(main)
    echo, drop = run.traffic
    assert [
        (each.offered, each.handled, each.passed, each.to_wire, each.dropped_by_handler) for each in run.traffic
    ] == [
        (10, 10, 10, 10, 0),
        (20, 20, 0, 0, 20),
    ]
    assert (echo.returned, echo.returned_bytes, drop.returned) == (10, 1000, 0)
    rules = [(rule.rule, rule.frames) for rule in run.nodes[0].socket.rules]
    assert rules == [("udp dport=7", 10), ("udp dport=9", 20)]
    assert echo.latency_ns_p50 > drop.latency_ns_p50 > 2


@settings(deadline=None)
@given(
    seed=st.integers(0, 1000),
    flow=st.sampled_from([None, "none", "pfc"]),
    modulus=st.integers(1, 5),
    size=st.sampled_from(["60", "64-1500", "imix"]),
    lossy=st.booleans(),
)
def test_each_frame_that_is_offered_becomes_one_thing(
    tmp_path_factory: pytest.TempPathFactory, seed: int, flow: str | None, modulus: int, size: str, lossy: bool
) -> None:
    body = f"""
    uint32_t which = frame->data[35] % {modulus};
    if (which == 0) return FRAME_DROP;
    if (which == 1) return FRAME_HOST;
    if (which == 3) return FRAME_DROP;
    frame_swap(frame->data, frame->data + 6, 6);
    for (volatile int i = 0; i < 200; i++) {{}}
    return FRAME_WIRE;"""
    handlers = handler(tmp_path_factory.mktemp("handlers"), body)

    async def main(host: package.Host) -> None:
        if host.rank == 1:
            # Without a socket the host would answer that there is none.
            await host.socket.datagram().bind(9)
            host.frames.install("udp", handlers)
        await host.compute(ns=150_000)

    faults = "loss=0.01,corrupt=0.01" if lossy else None
    expression = f"udp sport=1-100 size={size} packets=1500 to=1"
    cluster = package.Cluster(
        2, "spin-100g", topology="star", traffic=expression, seed=seed, flow_control=flow, faults=faults
    )
    run = cluster.run(main)
    (of,) = run.traffic
    assert of.offered <= 1500
    assert of.offered == of.handled + of.dropped_by_overload + of.lost
    assert of.handled == of.passed + of.dropped_by_handler + of.failed + of.damaged
    if not lossy:
        assert (of.lost, of.damaged, of.returned) == (0, 0, of.to_wire)
    else:
        assert of.lost + of.damaged > 0
    # A lost pause frame pauses nobody.
    if flow != "none" and not (flow == "pfc" and lossy):
        assert of.dropped_by_overload == 0
    (rule,) = run.nodes[1].socket.rules
    assert (rule.frames, rule.to_wire, rule.dropped) == (of.handled - of.damaged, of.to_wire, of.dropped_by_handler)
    assert rule.to_host == of.passed - of.to_wire
    assert of.latency_ns_p50 <= of.latency_ns_p99 <= of.latency_ns_p999 <= of.latency_ns_max


def test_overload_drops_what_the_card_has_no_room_for(tmp_path: Path) -> None:
    handlers = handler(tmp_path, "for (volatile int i = 0; i < 2000; i++) {}\nreturn FRAME_DROP;")

    async def main(host: package.Host) -> None:
        host.frames.install("udp", handlers)
        await host.compute(ns=500_000)

    def run(flow: str) -> Any:
        expression = "udp size=64 packets=2000"
        (of,) = (
            package.Cluster(1, "spin-100g", topology="star", traffic=expression, flow_control=flow).run(main).traffic
        )
        return of

    lossy = run("none")
    assert lossy.offered == 2000
    assert lossy.dropped_by_overload > 1000
    assert lossy.handled == 2000 - lossy.dropped_by_overload
    assert lossy.stalled_ns == 0
    paused = run("pfc")
    assert (paused.dropped_by_overload, paused.handled) == (0, paused.offered)
    assert paused.handled == 2000
    assert paused.latency_ns_max >= lossy.latency_ns_p50 > 10_000


def test_a_run_ends_with_its_programs_and_traffic_does_not_hold_it() -> None:
    async def main(host: package.Host) -> float:
        await host.compute(ns=30_000 if host.rank else 20_000)
        return host.now_ns

    run = package.Cluster(2, "niagara2-niu", traffic="udp size=64 packets=1G rate=1Mpps to=1 start=1us").run(main)
    (of,) = run.traffic
    # The launcher learns of the end, and notifies the tester: twice 10 us.
    assert of.offered == pytest.approx(50 - 1, abs=3)
    # A thousand seconds of frames are left; timers of the hosts' protocols expire.
    assert run.time_ns < 10_000_000
    # No rank has programs that could end: all of it is sent.
    (whole,) = package.Cluster(1, "niagara2-niu", traffic="udp packets=200 rate=1Mpps").run({}).traffic
    assert whole.offered == whole.handled == 200


def test_traffic_does_not_depend_on_shards_and_differs_by_seed() -> None:
    async def main(host: package.Host) -> float:
        await host.compute(ns=200_000)
        return host.now_ns

    def run(shards: int, seed: int = 1) -> Any:
        expressions = [f"udp size=64-1500 rate=2Gbps arrivals=poisson to={rank}" for rank in (0, 2)]
        done = package.Cluster(3, "niagara2-niu", shards=shards, seed=seed, traffic=expressions).run(main)
        return done.traffic, done.time_ps, done.results

    whole = run(1)
    assert [run(shards) for shards in (2, 3)] == [whole] * 2
    assert run(1, seed=2)[0] != whole[0]
    # Two equal expressions do not make the same frames.
    first, second = whole[0]
    assert first.offered_bytes != second.offered_bytes


@pytest.mark.parametrize(
    ("nodes", "nic", "more", "text"),
    [
        (
            1,
            "spin-discrete",
            {"traffic": "udp"},
            "traffic consists of Ethernet frames, but spin-discrete, the card of rank 0, has a Portals interface",
        ),
        (1, "spin-100g", {"traffic": "udp to=1"}, "there is no rank 1; write to=RANK"),
        (
            1,
            "spin-100g",
            {"traffic": "udp start=5"},
            "column 11: a time needs a unit (ps, ns, us, ms, s); write for example start=20us",
        ),
        (1, "spin-100g", {"traffic": "udp size=9999"}, "frames of 9999 bytes, but a packet of the card carries"),
        (1, "spin-100g", {"traffic": "capture=none.pcap"}, "none.pcap: No such file"),
        (1, "spin-100g", {"traffic": ["udp"] * 65}, "65 expressions of traffic; the maximum is 64"),
        (
            2,
            "spin-100g",
            {"traffic": "udp", "topology": "pair"},
            "of 2 hosts and 1 traffic sender: a pair",
        ),
        (1, "spin-100g", {"traffic": "udp", "topology": "alone"}, "topology alone has 1 node, not 2"),
        (1, "spin-100g", {"traffic": 7}, "Cluster: traffic is"),
        (1, "spin-100g", {"traffic": [7]}, "traffic is"),
    ],
)
def test_impossible_traffic_is_refused(nodes: int, nic: str, more: dict[str, Any], text: str) -> None:
    with pytest.raises(package.InputError) as refused:
        package.Cluster(nodes, nic, **more)
    assert text in str(refused.value)


def test_a_capture_that_breaks_off_fails_the_run(tmp_path: Path) -> None:
    capture = tmp_path / "broken.pcap"
    head = b"".join(
        value.to_bytes(size, "big")
        for value, size in [(0xA1B2C3D4, 4), (2, 2), (4, 2), (0, 4), (0, 4), (65535, 4), (1, 4)]
    )
    record = b"".join(value.to_bytes(4, "big") for value in (1, 0, 60, 60)) + bytes(60)
    capture.write_bytes(head + record + record[:40])

    async def main(host: package.Host) -> None:
        await host.compute(ns=50_000)

    with pytest.raises(package.InputError, match=r"broken\.pcap"):
        package.Cluster(1, "niagara2-niu", traffic=f"capture={capture}").run(main)


def test_the_command_line_reports_traffic_and_refuses_it(nicety: Callable[..., Any], tmp_path: Path) -> None:
    program = """
async def main(host):
    socket = host.socket.datagram()
    await socket.bind(9)
    await host.barrier()
    for _ in range(3 if host.rank else 0):
        await socket.recvfrom(2000)
"""
    (tmp_path / "server.py").write_text(program)
    arguments = ("run", "server.py", "--nic", "niagara2-niu", "--traffic", "udp packets=3 to=1 start=200us rate=1Mpps")
    done = nicety(*arguments, "--trace", "t.pftrace", "--capture", "c.pcapng")
    assert done.status == 0, done.stderr
    assert "# niagara2-niu: packet disposition, and latency through the card (ns)" in done.stdout
    lines = done.stdout.splitlines()
    assert lines[-2].split()[:8] == ["#", "Rank", "Offered", "Handled", "Passed", "Dropped", "Failed", "Overload"]
    assert lines[-1].split()[:7] == ["1", "3", "3", "3", "0", "0", "0"]
    assert "topology star" in done.stdout
    assert (tmp_path / "t.pftrace").stat().st_size > 0
    assert b"hosts.2" in (tmp_path / "c.pcapng").read_bytes()
    report = json.loads(nicety(*arguments, "--json").stdout)
    (of,) = report["traffic"]
    assert (of["nic"], of["rank"], of["offered"], of["handled"]) == ("niagara2-niu", 1, 3, 3)
    assert report["manifest"]["traffic"] == ["udp packets=3 to=1 start=200us rate=1Mpps"]
    for wrong, text in [
        ("udp to=2", "there is no rank 2; write to=RANK with a rank from 0 to 1"),
        (
            "udp start=soon",
            "column 11: expected a time: a number and a unit (ps, ns, us, ms, s); write for example start=20us",
        ),
    ]:
        refused = nicety("run", "server.py", "--nic", "niagara2-niu", "--traffic", wrong)
        assert (refused.status, text in refused.stderr) == (2, True), refused.stderr
    (tmp_path / "drop.c").write_text(Path(DROP).read_text())
    bench = nicety("bench", "handlers", "drop.c", "--nic", "spin-100g", "--traffic", "udp to=1")
    assert bench.status == 2
    assert "to is for host programs" in bench.stderr


def test_a_rate_above_the_wire_is_refused() -> None:
    async def main(host: package.Host) -> None:
        await host.compute(ns=200_000)

    traffic = "udp dport=7 size=64 rate=200Gbps packets=1k"
    with pytest.raises(
        package.InputError, match=r"a rate of 200 Gbps exceeds the rate of the wire: 72\.73 Gbps of these"
    ):
        package.Cluster(1, "spin-100g", traffic=traffic).run(main)
