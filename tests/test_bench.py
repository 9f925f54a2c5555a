"""The benchmarks: worked examples to the picosecond, orderings of figures, and the form of reports."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import pytest

import nicety as package
from nicety._generated.types import Report, Row

MODES = ["rdma", "portals4", "spin-store", "spin-stream"]
CARDS = ["spin-discrete", "spin-integrated"]
SIZES = [8, 4096, 65536, 1 << 20]


@pytest.fixture(scope="module")
def report() -> Report:
    return package.run_benchmark("latency", nics=CARDS, modes=MODES, sizes=SIZES)


def rows_by_point(report: Report) -> dict[tuple[str, str, int], Row]:
    return {(row["nic"], row["mode"], row["size_bytes"]): row for row in report["rows"]}


def latency(report: Report, nic: str, mode: str, size: int) -> float:
    return rows_by_point(report)[nic, mode, size]["latency_ns"]


# The sums are those of the cards' numbers: post, bus, link, match, deposit and event, notice.
@pytest.mark.parametrize(
    ("mode", "size", "expected"),
    [
        ("rdma", 8, 65 + 250 + 0.160 + 33.4 + 30 + 0.125 + 250 + 65),
        ("rdma", 65536, 65 + 250 + 1310.72 + 33.4 + 2 + 63.898 + 250 + 65),
        ("portals4", 8, (65 + 250 + 33.56 + 30 + 0.125 + 500 + 33.56 + 30 + 250.125 + 65) / 2),
    ],
)
def test_worked_by_hand(report: Report, mode: str, size: int, expected: float) -> None:
    assert latency(report, "spin-discrete", mode, size) == pytest.approx(expected, abs=0.0011)


def test_a_handler_adds_its_own_time(report: Report) -> None:
    row = rows_by_point(report)["spin-discrete", "spin-stream", 8]
    (handler,) = [stage["ns"] for stage in row["stages"] if stage["stage"] == "handler"]
    without = 65 + 250 + 33.56 + 30 + 33.56 + 30 + 250.125 + 65
    assert handler > 0
    assert 2 * row["latency_ns"] == pytest.approx(without + 2 * handler, abs=0.0011)
    # Whole cycles of 0.4 ns; a ping-pong has one handler.
    assert (2 * handler / 0.4) == pytest.approx(round(2 * handler / 0.4), abs=1e-6)


def test_every_row_is_there_and_checked(report: Report) -> None:
    assert list(rows_by_point(report)) == [(nic, mode, size) for nic in CARDS for mode in MODES for size in SIZES]
    for row in report["rows"]:
        assert row["verified"] is True
        assert row["iterations"] > 0
        assert row["min_ns"] <= row["latency_ns"] <= row["max_ns"]


def test_stages_add_up_to_the_latency(report: Report) -> None:
    for row in report["rows"]:
        assert math.fsum(stage["ns"] for stage in row["stages"]) == pytest.approx(row["latency_ns"], abs=1e-6)
        assert all(stage["ns"] > 0 for stage in row["stages"])


@pytest.mark.parametrize("nic", CARDS)
def test_order_of_modes(report: Report, nic: str) -> None:
    assert latency(report, nic, "spin-store", 8) < latency(report, nic, "portals4", 8)
    assert latency(report, nic, "spin-stream", 8) < latency(report, nic, "portals4", 8)
    assert latency(report, nic, "portals4", 8) < latency(report, nic, "rdma", 8)
    for size in (65536, 1 << 20):
        assert latency(report, nic, "spin-stream", size) < latency(report, nic, "spin-store", size)
    # Single packets: within 5 % of streaming; several: within 5 % of Portals 4.
    assert latency(report, nic, "spin-store", 8) < 1.05 * latency(report, nic, "spin-stream", 8)
    assert latency(report, nic, "spin-store", 1 << 20) < 1.05 * latency(report, nic, "portals4", 1 << 20)


@pytest.mark.parametrize("mode", MODES[1:])
def test_a_discrete_card_gains_more(report: Report, mode: str) -> None:
    def gain(nic: str) -> float:
        return latency(report, nic, "rdma", 8) - latency(report, nic, mode, 8)

    assert gain("spin-discrete") > gain("spin-integrated") > 0 or mode == "portals4"


def test_the_manifest_says_what_the_figures_depend_on(report: Report) -> None:
    manifest = report["manifest"]
    assert set(manifest["specs"]) == set(CARDS)
    assert manifest["specs"]["spin-discrete"]["spec_hash"] != manifest["specs"]["spin-integrated"]["spec_hash"]
    assert set(manifest["compiler"]) == {f"{nic}/{mode}" for nic in CARDS for mode in MODES[2:]}
    handlers = manifest["compiler"]["spin-discrete/spin-stream"]
    assert handlers["source"] == "pingpong_stream.c"
    assert handlers["version"].startswith("ziglang ")
    assert "-O2" in handlers["flags"]


def test_the_same_seed_gives_the_same_bytes(nicety: Callable) -> None:
    command = ["bench", "latency", "--nic", "spin-discrete", "--sizes", "8,64Ki", "--json", "--seed"]
    first, second = nicety(*command, 7), nicety(*command, 7)
    assert first.status == 0
    assert first.stdout == second.stdout
    assert nicety(*command, 8).json()["seed"] == 8


def test_an_override_counts_and_is_on_record() -> None:
    changed = package.run_benchmark(
        "latency", nics=["spin-discrete"], modes=["rdma"], sizes=[8], overrides=["bus.latency=300 ns"]
    )
    assert latency(changed, "spin-discrete", "rdma", 8) == pytest.approx(693.685 + 100, abs=1e-6)
    assert "bus.latency=300 ns" in str(changed["manifest"]["overrides"])


def test_a_card_of_the_users_own(nicety: Callable, tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text('name = "mine"\nextends = "spin-discrete"\n[bus]\nlatency = "300 ns"\n')
    result = nicety("bench", "latency", "--nic", "./mine.toml", "--mode", "rdma", "--sizes", "8", "--json")
    assert result.status == 0, result.stderr
    (row,) = result.json()["rows"]
    assert row["nic"] == "mine"
    assert row["latency_ns"] == pytest.approx(693.685 + 100, abs=1e-6)


def test_bandwidth_comes_up_to_the_link() -> None:
    report = package.run_benchmark("bandwidth", nics=["spin-discrete"], sizes=[8, 1 << 20], iterations=2)
    for mode in MODES:
        rows = rows_by_point(report)
        # 20 ps per byte are 50 GB/s.
        assert 45e9 < rows["spin-discrete", mode, 1 << 20]["bandwidth_bytes_per_s"] < 50e9
        assert rows["spin-discrete", mode, 8]["bandwidth_bytes_per_s"] < 2e9
    assert all("stages" not in row for row in report["rows"])


def test_message_rate() -> None:
    report = package.run_benchmark(
        "message-rate", nics=["spin-discrete"], modes=["rdma"], sizes=[8], iterations=2, window=256
    )
    (row,) = report["rows"]
    # A post costs the host 65 ns, so a single one does not reach the card's 150 million per second.
    assert 10e6 < row["messages_per_s"] < 1e9 / 65


def test_text_and_json_agree(nicety: Callable) -> None:
    command = ["bench", "latency", "--nic", "spin-discrete", "--mode", "rdma,portals4", "--sizes", "8", "--breakdown"]
    text = nicety(*command)
    assert (text.status, text.stderr) == (0, "")
    lines = text.stdout.splitlines()
    rows = nicety(*command, "--json").json()["rows"]
    figures = [f"{row['latency_ns']:.3f}" for row in rows]
    assert ["8", *figures] in [line.split() for line in lines]
    assert ["sum", *figures] in [line.split() for line in lines]


def test_progress_counts_rows() -> None:
    seen: list[tuple[int, int]] = []
    package.run_benchmark(
        "latency", nics=["spin-discrete"], modes=["rdma"], sizes=[8, 16], progress=lambda *at: seen.append(at)
    )
    assert seen == [(0, 2), (1, 2), (2, 2)]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"nics": ["spin-discreet"]}, ["spin-discreet", "spin-discrete"]),
        ({"nics": ["./gone.toml"]}, ["gone.toml"]),
        ({"nics": []}, ["no card"]),
        ({"modes": ["spin-strem"]}, ["spin-strem", "spin-stream"]),
        ({"sizes": []}, ["no size"]),
        ({"sizes": [1 << 32]}, ["4294967296", "largest"]),
        ({"sizes": [0]}, ["0 bytes"]),
        ({"overrides": ["hpu.coers=8"]}, ["hpu.coers", "hpu.cores"]),
        ({"overrides": ["hpu.cores"]}, ["hpu.cores", "="]),
        ({"overrides": ["hpu.cores=8 ns"]}, ["hpu.cores", "8 ns"]),
        ({"overrides": ["hpu.cores=0"]}, ["hpu.cores", "0"]),
        ({"overrides": ["bus.latency=250"]}, ["bus.latency", "ns"]),
        ({"overrides": ["bus.latency=250 furlongs"]}, ["furlongs", "ns"]),
        ({"overrides": ["hpu.isa=rv128imac"]}, ["rv128imac"]),
        ({"modes": ["rdma"], "handlers": "mine.c"}, ["rdma", "spin-stream"]),
        ({"handlers": "gone.c"}, ["gone.c", "no such file"]),
    ],
)
def test_invalid_options_are_refused(options: dict, words: list[str]) -> None:
    with pytest.raises(package.InputError) as caught:
        package.run_benchmark("latency", **{"nics": ["spin-discrete"], "sizes": [8], **options})
    for word in words:
        assert word in str(caught.value)
