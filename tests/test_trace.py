"""Timelines, decoded with Perfetto's own protobuf classes: slices nest, begins have ends, flows pair."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace, TrackEvent

import nicety as package
from conftest import Result
from nicety.show.traces import RecordingWarning
from test_recording import ping_pong

BEGIN, END = TrackEvent.TYPE_SLICE_BEGIN, TrackEvent.TYPE_SLICE_END


@dataclass
class Slice:
    track: str
    name: str
    begin: int
    end: int
    depth: int
    arguments: dict[str, Any]
    flows: list[int] = field(default_factory=list)
    ended_flows: list[int] = field(default_factory=list)


def decode(data: bytes) -> list[Slice]:
    """The slices of a timeline in the order of their begins; fails if they are not well formed."""
    trace = Trace()
    trace.ParseFromString(data)
    names: dict[int, str] = {}
    open_slices: dict[int, list[Slice]] = defaultdict(list)
    found: list[Slice] = []
    before = 0
    for packet in trace.packet:
        assert packet.trusted_packet_sequence_id == 1
        if packet.HasField("track_descriptor"):
            track = packet.track_descriptor
            assert track.uuid not in names
            if track.HasField("process"):
                names[track.uuid] = track.process.process_name
            else:
                names[track.uuid] = f"{names[track.parent_uuid]}: {track.name}"
        if not packet.HasField("track_event"):
            continue
        event = packet.track_event
        assert packet.timestamp >= before
        before = packet.timestamp
        stack = open_slices[event.track_uuid]
        if event.type == BEGIN:
            arguments = {
                a.name: a.uint_value if a.HasField("uint_value") else a.string_value for a in event.debug_annotations
            }
            one = Slice(
                names[event.track_uuid],
                event.name,
                packet.timestamp,
                -1,
                len(stack),
                arguments,
                list(event.flow_ids),
                list(event.terminating_flow_ids),
            )
            if stack:
                outer = stack[-1].arguments
                assert outer["start_ps"] <= arguments["start_ps"] <= arguments["end_ps"] <= outer["end_ps"]
            stack.append(one)
            found.append(one)
        else:
            assert event.type == END
            stack.pop().end = packet.timestamp
    assert not any(open_slices.values()), "a begin without an end"
    assert len(set(names.values())) == len(names)
    return found


def flows(slices: list[Slice]) -> dict[int, list[Slice]]:
    """The slices of each flow; each flow ends once, at its last slice."""
    ways: dict[int, list[Slice]] = defaultdict(list)
    ended: set[int] = set()
    for one in slices:
        for flow in [*one.flows, *one.ended_flows]:
            assert flow not in ended, "a flow goes on behind its end"
            ways[flow].append(one)
        ended.update(one.ended_flows)
    assert ended == set(ways)
    assert all(len(way) > 1 for way in ways.values())
    return ways


def of_run(run: package.Run, path: Path, **arguments: Any) -> list[Slice]:
    run.trace(path, **arguments)
    return decode(path.read_bytes())


def test_a_message_flows_from_its_post_to_its_notice(tmp_path: Path) -> None:
    slices = of_run(ping_pong("everything"), tmp_path / "run.pftrace")
    ways = flows(slices)
    tracks = [[(s.track, s.name) for s in way] for way in ways.values()]
    assert tracks[0] == [
        ("node 0: host CPU 0", "post"),
        ("node 0: link", "link"),
        ("node 1: matching", "match"),
        ("node 1: DMA", "deposit"),
        ("node 1: host CPU 0", "notice"),
    ]
    assert len(ways) == 2
    for way in ways.values():
        assert len({s.arguments["message"] for s in way}) == 1


def test_calls_lie_inside_calls(tmp_path: Path) -> None:
    slices = of_run(ping_pong("everything"), tmp_path / "run.pftrace")
    program = [(s.name, s.depth) for s in slices if s.track == "node 0: program"]
    assert program == [
        ("barrier", 0),
        ("send", 0),
        ("put", 1),
        ("wait for an event", 1),
        ("recv", 0),
        ("append an entry", 1),
        ("wait for an event", 1),
    ]
    exclusive = [s for s in slices if s.begin < s.end and "program" not in s.track and "HPU" not in s.track]
    assert exclusive
    assert all(s.depth == 0 for s in exclusive)


@pytest.mark.parametrize("scale", ["ns", "ps"])
def test_times_are_exact(tmp_path: Path, scale: str) -> None:
    run = ping_pong("everything")
    slices = of_run(run, tmp_path / "run.pftrace", scale=scale)
    ticks = 1000 if scale == "ns" else 1
    for one in slices:
        arguments = one.arguments
        assert (one.begin, one.end) == (arguments["start_ps"] // ticks, arguments["end_ps"] // ticks)
        assert arguments["duration_ps"] == arguments["end_ps"] - arguments["start_ps"]
    rows = zip(run.resources.column("start_ps"), run.resources.column("end_ps"), strict=True)
    assert sorted((s.arguments["start_ps"], s.arguments["end_ps"]) for s in slices) == sorted(rows)


@pytest.mark.parametrize("mode", ["rdma", "portals4", "spin-store", "spin-stream"])
@pytest.mark.parametrize("size", [8, 20_000])
def test_a_benchmark_writes_a_timeline(tmp_path: Path, mode: str, size: int) -> None:
    path = tmp_path / "bench.pftrace"
    arguments: dict[str, Any] = {"nics": ["spin-discrete"], "modes": [mode], "sizes": [size, 64], "iterations": 3}
    report = package.run_benchmark("latency", **arguments, trace=path)
    assert report == package.run_benchmark("latency", **arguments)
    slices = decode(path.read_bytes())
    ways = flows(slices)
    # A ping and at least one reply in each of four rounds, warm-up included.
    assert len(ways) >= 8
    tracks = {one.track.split(": ")[1].partition(",")[0].rstrip("0123456789 ") for one in slices}
    expected = {"program", "host CPU", "bus to card", "bus to host", "DMA", "link", "matching"}
    if mode == "spin-stream":
        expected -= {"DMA"} - tracks
    assert tracks - {"HPU"} == expected
    assert ("HPU" in tracks) == mode.startswith("spin")
    if mode == "spin-stream":
        # A reply's flow comes out of the handler that sent it.
        replies = [way for way in ways.values() if way[0].track.startswith("node 1: HPU")]
        assert replies
        assert all(way[1].track == "node 1: link" for way in replies)


def test_a_switch_is_on_the_timeline(tmp_path: Path) -> None:
    path = tmp_path / "incast.pftrace"
    package.run_benchmark(
        "bandwidth", nics=["spin-discrete"], modes=["rdma"], sizes=[4096], window=4, pattern="incast:3", trace=path
    )
    slices = decode(path.read_bytes())
    ports = {one.track for one in slices if "switch port" in one.track}
    assert any("(switch): switch port 3" in port for port in ports), ports
    flows(slices)


def test_the_command_line_writes_it_too(nicety: Callable[..., Result], tmp_path: Path) -> None:
    command = ["bench", "latency", "--nic", "spin-discrete", "--mode", "rdma", "--sizes", "8", "--iterations", "1"]
    assert nicety(*command, "--trace", "t.pftrace", "--trace-scale", "ps").status == 0
    slices = decode((tmp_path / "t.pftrace").read_bytes())
    assert all(one.begin == one.arguments["start_ps"] for one in slices)


def test_a_recording_that_is_not_whole_is_told_of(nicety: Callable[..., Result], tmp_path: Path) -> None:
    part = ping_pong("everything", recorded_rows=10)
    with pytest.warns(RecordingWarning, match="uses of resources did not fit the recording"):
        part.trace(tmp_path / "part.pftrace")
    flows_of_part = decode((tmp_path / "part.pftrace").read_bytes())
    assert len(flows_of_part) == 20
    command = ["bench", "message-rate", "--nic", "spin-discrete", "--mode", "rdma", "--sizes", "1"]
    done = nicety(*command, "--window", "10000", "--iterations", "10", "--trace", "t.pftrace")
    assert done.status == 0
    assert "t.pftrace: " in done.stderr
    assert "did not fit the recording" in done.stderr


def test_scales_and_places_that_are_none(tmp_path: Path) -> None:
    run = ping_pong("everything")
    with pytest.raises(package.InputError, match="no time scale 'us' for a timeline; the scales are ns and ps"):
        run.trace(tmp_path / "x", scale="us")  # type: ignore[arg-type]
    with pytest.raises(package.InputError, match="cannot write it"):
        run.trace(tmp_path / "no" / "x")
