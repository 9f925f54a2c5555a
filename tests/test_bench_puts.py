"""Benchmarks of puts between registered memories: latency and windows, at either end's memory, in loop-back."""

from __future__ import annotations

from typing import Any

import pytest

import nicety

MI = 1 << 20


def rows(benchmark: str, sizes: list[int], **options: Any) -> list[Any]:
    options = {"nics": "apenet-v5", "iterations": 1, "warmup": 1, **options}
    report = nicety.run_benchmark(benchmark, sizes=sizes, **options)
    return list(report["rows"])


def bandwidths(sizes: list[int], **options: Any) -> list[float]:
    return [row["bandwidth_bytes_per_s"] for row in rows("bandwidth", sizes, window=4, **options)]


def test_a_put_is_measured_with_a_pong_of_fixed_size() -> None:
    small, large = rows("latency", [8, 4096])
    assert [row["mode"] for row in (small, large)] == ["put", "put"]
    assert all(row["verified"] for row in (small, large))
    same = rows("latency", [4096], pong_size=4096)[0]
    # Half of a round trip: a long pong costs the same as a long ping.
    assert same["latency_ns"] - large["latency_ns"] == pytest.approx(large["latency_ns"] - small["latency_ns"])
    stages = {stage["stage"]: stage["ns"] for stage in large["stages"]}
    assert sum(stages.values()) == pytest.approx(large["latency_ns"])
    assert stages["tlb"] == 124.0


def test_bandwidth_falls_where_the_tlb_ends() -> None:
    within, beyond = bandwidths([MI, 2 * MI])
    assert beyond < 0.6 * within
    older = bandwidths([MI // 4, MI // 2], nics="apenet-v4")
    assert older[1] < 0.8 * older[0]
    physical = bandwidths([MI, 2 * MI], addressing="physical")
    assert physical[1] >= physical[0] >= within
    assert bandwidths([2 * MI], overrides=["tlb.entries=512"])[0] > 0.95 * within
    # Pages of a graphics processor are sixteen times as large.
    gpu = bandwidths([MI, 2 * MI], sink="gpu")
    assert gpu[1] > 0.95 * gpu[0]


def test_a_flushed_receive_side_translates_nothing() -> None:
    size = [2 * MI]
    assert bandwidths(size, flush_receive=True)[0] > 2 * bandwidths(size)[0]
    row = rows("bandwidth", [4096], flush_receive=True)[0]
    assert not row["verified"]
    assert bandwidths([65536], overrides=["dma.receive_engines=1"])[0] < bandwidths([65536])[0]


def test_reading_a_graphics_processor_is_slower_than_reading_the_host() -> None:
    by_ends = {
        (source, sink): bandwidths([65536], source=source, sink=sink)[0]
        for source in ("host", "gpu")
        for sink in ("host", "gpu")
    }
    assert by_ends["gpu", "host"] < by_ends["host", "host"]
    assert by_ends["gpu", "gpu"] < by_ends["host", "gpu"]


def test_a_host_puts_to_itself_in_loop_back() -> None:
    report = nicety.run_benchmark("bandwidth", nics="apenet-v5", sizes=65536, loopback=True, source="gpu", poll=True)
    assert report["manifest"]["topology"] == "alone"
    assert report["manifest"]["puts"] == {
        "loopback": True,
        "source": "gpu",
        "sink": "host",
        "addressing": "virtual",
        "flush_receive": False,
        "notify": "poll",
        "pong_size_bytes": 8,
    }
    assert [row["verified"] for row in report["rows"]] == [True]
    latency = rows("latency", [0, 8], loopback=True, interrupt=True)
    assert latency[0]["latency_ns"] < latency[1]["latency_ns"]
    assert rows("message-rate", [8], loopback=True, window=8)[0]["messages_per_s"] > 0


@pytest.mark.parametrize("nic", ["apenet-v5", "apenet-v4", "apenet-6"])
@pytest.mark.parametrize("addressing", ["virtual", "physical"])
def test_a_round_trip_of_any_size_in_loop_back_has_its_stages(nic: str, addressing: str) -> None:
    sizes = [8, 100 << 10, 108 << 10, 112 << 10, 256 << 10, 1020 << 10, 4 << 20]
    report = nicety.run_benchmark(
        "latency", nics=[nic], loopback=True, addressing=addressing, sizes=sizes, iterations=2
    )
    rows = report["rows"]
    assert [row["size_bytes"] for row in rows] == sizes
    for row in rows:
        assert sum(stage["ns"] for stage in row["stages"] or ()) == pytest.approx(row["latency_ns"])


def test_polling_is_faster_than_interrupts() -> None:
    polled, interrupted = (rows("latency", [8], **{how: True})[0]["latency_ns"] for how in ("poll", "interrupt"))
    assert polled < interrupted


def test_beside_cards_of_other_designs_send_and_recv_are_measured() -> None:
    report = nicety.run_benchmark("latency", nics=["apenet-v5", "spin-discrete"], sizes=8, iterations=1)
    assert [row["mode"] for row in report["rows"]] == ["auto", "auto"]
    assert "puts" not in report["manifest"]
    both = nicety.run_benchmark("bandwidth", nics="apenet-v5", sizes=4096, pattern="bidirectional", iterations=1)
    assert [row["mode"] for row in both["rows"]] == ["auto"]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"nics": "qnix", "loopback": True}, "--loopback is for mode put of cards with RDMA"),
        ({"nics": "spin-discrete", "sink": "gpu"}, "--sink is for mode put"),
        ({"modes": "auto", "poll": True}, "write --mode put, or leave out --poll"),
        ({"loopback": True, "pattern": "incast:3"}, "leave out --pattern incast:3, or --loopback"),
        ({"loopback": True, "topology": "star"}, "leave out --topology star"),
        ({"topology": "torus:4x4x4"}, "torus:4x4x4 has 64 nodes, not 2; write --topology torus:2x1x1"),
        ({"modes": "put", "pattern": "bidirectional"}, "mode put has one sender; write --mode auto"),
        ({"poll": True, "interrupt": True}, "by --poll or by --interrupt, not by both"),
        ({"loopback": True, "peer": "apenet-v4"}, "--loopback uses one host"),
        ({"flush_receive": True}, "--flush-receive: not for latency"),
        ({"sink": "tape"}, "sink"),
        ({"pong_size": -1}, "pong_size"),
    ],
)
def test_options_that_do_not_fit_are_refused(options: dict[str, Any], says: str) -> None:
    with pytest.raises(nicety.InputError) as error:
        nicety.run_benchmark("latency", **{"nics": "apenet-v5", "sizes": 8, **options})
    assert says in str(error.value)


def test_a_pong_is_for_latency() -> None:
    with pytest.raises(nicety.InputError, match="--pong-size is for latency only"):
        nicety.run_benchmark("bandwidth", nics="apenet-v5", sizes=8, pong_size=8)


LOSSES: list[tuple[str, dict[str, Any]]] = [
    ("message-rate", {"overrides": ["link.bit_error_rate=1"]}),
    ("bandwidth", {"overrides": ["link.retries=0"], "faults": "loss=0.05"}),
    ("bandwidth", {"overrides": ["link.retries=0"], "faults": "corrupt=0.05"}),
]


@pytest.mark.parametrize(("benchmark", "options"), LOSSES)
def test_a_loss_that_no_program_sees_is_no_success(benchmark: str, options: dict[str, Any]) -> None:
    with pytest.raises(nicety.HandlerFailure) as error:
        rows(benchmark, [4096], flush_receive=True, window=64, **options)
    (failure,) = error.value.failures
    assert (failure["kind"], failure["rank"], failure["nic"]) == ("lost", 0, "apenet-v5")
    assert ", and nothing retransmits them: " in failure["text"]
    # Two windows of 64 packets.
    lost = failure["times"]
    assert lost == 128 if "faults" not in options else 0 < lost < 20
    report = error.value.report
    assert report is not None
    assert [row["verified"] for row in report["rows"]] == [False]
    assert len(rows(benchmark, [4096], flush_receive=True, window=64, allow_failures="lost", **options)) == 1


def test_a_failed_link_ends_a_flushed_window() -> None:
    with pytest.raises(nicety.Error, match=r"the link hosts.0 -> hosts.1 is down from 1 us on"):
        rows("bandwidth", [4096], flush_receive=True, faults="fail=hosts.0->hosts.1@1us")


@pytest.mark.parametrize(
    ("options", "most", "events"),
    [({}, 31, 33), ({"flush_receive": True}, 32, 33), ({"loopback": True}, 16, 34)],
)
@pytest.mark.parametrize("field", ["events.entries", "events.user"])
def test_a_window_whose_events_find_no_room_is_refused(
    options: dict[str, Any], most: int, events: int, field: str
) -> None:
    few = {"overrides": [f"{field}=32"], **options}
    for size in (0, 8, 16384):
        assert len(rows("bandwidth", [size], window=most, **few)) == 1
    with pytest.raises(nicety.InputError) as error:
        rows("bandwidth", [8], window=most + 1, **few)
    text = f"a window of puts causes {events} events, but an event queue of apenet-v5 has room for 32 ({field})"
    end = f"write --window {most} or less, or --set {field}={events}"
    assert str(error.value) == f"--window {most + 1}: {text}; {end}"
    # With events taken at their arrival there is no such limit.
    assert len(rows("bandwidth", [8], window=most + 1, overrides=[f"{field}=32"], modes="auto")) == 1
