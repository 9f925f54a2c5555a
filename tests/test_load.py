"""Patterns of load, percentiles, background noise, and traffic of host memory, in every mode."""

from __future__ import annotations

from collections.abc import Callable
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import nicety as package
from nicety._generated.types import MessagesBenchmark, Row
from nicety.bench.messages import BENCHMARKS
from sizes import examples

MODES = ["rdma", "portals4", "spin-store", "spin-stream"]
NIC = "spin-discrete"


def rows(benchmark: MessagesBenchmark = "latency", **arguments: object) -> list[Row]:
    return package.run_benchmark(benchmark, **{"nics": [NIC], "modes": MODES, "sizes": [8], **arguments})["rows"]


def by_mode(found: list[Row]) -> dict[str, Row]:
    return {row["mode"]: row for row in found}


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("size", [8, 9000])
@pytest.mark.parametrize("noise", ["10us,2us,rank=1", "10us,2us,fixed,rank=1"])
def test_noise_delays_the_host_that_answers_and_no_card_that_does(seed: int, size: int, noise: str) -> None:
    quiet = by_mode(rows(sizes=[size], seed=seed, iterations=60))
    loud = by_mode(rows(sizes=[size], seed=seed, iterations=60, noise=noise))
    assert loud["rdma"]["latency_ns"] > quiet["rdma"]["latency_ns"]
    assert "noise" in {stage["stage"] for stage in loud["rdma"]["stages"]}
    for mode in MODES[1:]:
        assert loud[mode] == quiet[mode]


def test_noise_on_all_hosts_delays_rdma_most() -> None:
    def added(mode: str) -> float:
        return loud[mode]["latency_ns"] - quiet[mode]["latency_ns"]

    quiet, loud = by_mode(rows()), by_mode(rows(noise="100us,10us", iterations=3000))
    # The post and the notice at one end are half of the work that noise can delay at two.
    for mode in MODES[1:]:
        assert 0 < added(mode) < 0.7 * added("rdma")


def test_percentiles_of_noise() -> None:
    (row,) = rows(modes=["rdma"], noise="100us,1us", iterations=5000)
    ordered = [row["min_ns"], row["p50_ns"], row["p99_ns"], row["p999_ns"], row["max_ns"]]
    assert ordered == sorted(ordered)
    assert row["min_ns"] == row["p50_ns"] == 693.685
    # A round trip has 260 ns of work on CPUs, which 1 us of noise delays about once in 80.
    assert row["p99_ns"] > row["p50_ns"]
    assert row["p50_ns"] < row["latency_ns"] < row["p99_ns"]


@pytest.mark.parametrize("benchmark", BENCHMARKS)
@pytest.mark.parametrize("pattern", ["pair", "bidirectional", "incast:3"])
def test_every_mode_has_every_pattern(benchmark: MessagesBenchmark, pattern: str) -> None:
    sizes = [8, 4096, 20_000]
    found = rows(benchmark, pattern=pattern, sizes=sizes)
    assert [(row["mode"], row["size_bytes"]) for row in found] == [(mode, size) for mode in MODES for size in sizes]
    for row in found:
        assert row["verified"]
        assert ("flows" in row, "fairness" in row) == (pattern != "pair", pattern.startswith("incast"))
        if "fairness" in row:
            assert 0 < row["fairness"] <= 1
            assert [(flow["source"], flow["target"]) for flow in row["flows"]] == [(0, 3), (1, 3), (2, 3)]


@pytest.mark.parametrize("mode", MODES)
def test_an_incast_of_one_is_a_pair(mode: str) -> None:
    arguments = {"modes": [mode], "sizes": [8, 20_000], "topology": "star"}
    pair, incast = rows(pattern="pair", **arguments), rows(pattern="incast:1", **arguments)
    assert [{**row, "flows": None, "fairness": None} for row in incast] == [
        {**row, "flows": None, "fairness": None} for row in pair
    ]


@examples(15)
@given(
    size=st.integers(1, 20_000),
    iterations=st.integers(1, 5),
    warmup=st.integers(0, 3),
    senders=st.integers(1, 4),
    mode=st.sampled_from(MODES),
)
def test_every_measured_byte_is_counted_and_no_other(
    size: int, iterations: int, warmup: int, senders: int, mode: str
) -> None:
    arguments = {"modes": [mode], "sizes": [size], "iterations": iterations, "warmup": warmup}
    (row,) = rows("bandwidth", pattern=f"incast:{senders}", window=3, **arguments)
    sent = 3 * size * iterations
    expected = [{"node": node, "read_bytes": sent, "written_bytes": 0} for node in range(senders)]
    assert row["host_memory"] == [*expected, {"node": senders, "read_bytes": 0, "written_bytes": senders * sent}]

    (row,) = rows("latency", **arguments)
    ping, pong = row["host_memory"]
    moved = size * iterations
    assert ping == {"node": 0, "read_bytes": moved, "written_bytes": moved}
    # Streaming leaves the far host's memory alone; storing does if the message is one packet.
    touched = mode in MODES[:2] or (mode == "spin-store" and size > 4096)
    assert pong == {"node": 1, "read_bytes": moved if touched else 0, "written_bytes": moved if touched else 0}


def test_no_noise_and_a_pair_are_what_there_is_without_a_word() -> None:
    assert rows() == rows(pattern="pair", topology="pair", noise=None)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"pattern": "incast"}, ["--pattern incast", "incast:4"]),
        ({"pattern": "incast:0"}, ["one sender"]),
        ({"pattern": "ring"}, ["ring", "bidirectional"]),
        ({"pattern": "incast:4", "topology": "pair"}, ["5 nodes", "--topology star"]),
        ({"pattern": "incast:99"}, ["100 nodes", "switch.ports"]),
        ({"topology": "rink"}, ["rink", "star"]),
        ({"noise": "1ms"}, ["1ms", "PERIOD,DURATION"]),
        ({"noise": "no.txt"}, ["no.txt", "No such file", "PERIOD,DURATION"]),
        ({"noise": "25us,1ms"}, ["not shorter"]),
        ({"noise": "1,2"}, ["period", "ns"]),
        ({"noise": "1ms,25us,rank=7"}, ["rank 7", "ranks 0 to 1"]),
    ],
)
def test_invalid_options_are_refused(nicety: Callable, arguments: dict[str, str], words: list[str]) -> None:
    with pytest.raises(package.InputError) as caught:
        rows(modes=["rdma"], **arguments)
    options = [part for name, value in arguments.items() for part in (f"--{name}", value)]
    result = nicety("bench", "latency", "--nic", NIC, "--mode", "rdma", "--sizes", "8", *options)
    assert result.status == 2
    for word in words:
        assert word in str(caught.value)
        assert word in result.stderr


def test_the_text_has_the_load_and_the_share_of_each_sender(nicety: Callable) -> None:
    command = ["bench", "bandwidth", "--nic", NIC, "--mode", "rdma,portals4", "--sizes", "8,4Ki", "--pattern"]
    result = nicety(*command, "incast:3", "--noise", "1ms,25us")
    assert (result.status, result.stderr) == (0, "")
    assert "# incast:3: ranks 0 to 2 send to rank 3 at once; figures are of all together\n" in result.stdout
    assert "# topology star\n# noise 1ms,25us\n" in result.stdout
    found = nicety(*command, "incast:3", "--noise", "1ms,25us", "--json").json()["rows"]
    fairness = [f"{row['fairness']:.3f}" for row in found if row["size_bytes"] == 8]
    assert ["8", *fairness] in [line.split() for line in result.stdout.splitlines()]

    result = nicety(*command, "bidirectional")
    for way in ("from rank 0 to rank 1", "from rank 1 to rank 0"):
        assert f"# {NIC}: Bandwidth (MB/s) {way}\n" in result.stdout
    assert "topology" not in result.stdout


def test_percentiles_as_text(nicety: Callable) -> None:
    command = ["bench", "latency", "--nic", NIC, "--mode", "rdma", "--sizes", "8,64", "--noise", "10us,1us"]
    text = nicety(*command, "--percentiles").stdout
    assert f"# {NIC}, rdma: Latency (ns)\n" in text
    lines = [line.split() for line in text.splitlines()]
    assert ["#", "Size", "mean", "min", "p50", "p99", "p99.9", "max"] in lines
    for row in nicety(*command, "--json").json()["rows"]:
        names = ("latency_ns", "min_ns", "p50_ns", "p99_ns", "p999_ns", "max_ns")
        # Halves of a picosecond are rounded up in text.
        exact = [Decimal(str(row[name])).quantize(Decimal("0.001"), ROUND_HALF_UP) for name in names]
        assert [str(row["size_bytes"]), *map(str, exact)] in lines
    rate = nicety("bench", "message-rate", "--nic", NIC, "--mode", "rdma", "--sizes", "8", "--percentiles").stdout
    assert f"# {NIC}, rdma: Messages/s, and the time of a window (ns)\n" in rate
    assert "messages/s      mean       min" in rate


def test_noise_on_hosts_of_ones_own(tmp_path: Path) -> None:
    async def program(host: package.Host) -> float:
        await host.compute(ns=990_000)
        return host.now_ns

    run = package.Cluster(2, NIC, noise="100us,1us,fixed,rank=1").run(program)
    assert run.results[0] == 990_000
    assert 999_000 <= run.results[1] <= 1_001_000
    trace = tmp_path / "trace.txt"
    trace.write_text("0 1000\n99999 1\n")
    run = package.Cluster(2, NIC, noise=f"{trace},rank=1", shards=2).run(program)
    assert run.results[0] == 990_000
    assert 999_000 <= run.results[1] <= 1_001_000
    with pytest.raises(package.InputError, match="noise '1ms': no duration"):
        package.Cluster(2, NIC, noise="1ms")
