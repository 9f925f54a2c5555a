"""`nicety bench channel-latency` and `channel-bandwidth`: their reports, and their refusals."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import nicety as package

CALIBRATED_NS = 14_660.0


def measure(benchmark: Any = "channel-latency", **options: Any) -> Any:
    return package.bench_channels(benchmark, **{"sizes": 56, **options})


def test_progress_counts_rows() -> None:
    seen: list[tuple[int, int]] = []
    measure(sizes=[8, 16, 56], iterations=1, progress=lambda *at: seen.append(at))
    assert seen == [(done, 12) for done in range(13)]


def by_kind(report: Any, value: str) -> dict[tuple[str, str], float]:
    return {(row["mode"], row["direction"]): row[value] for row in report["rows"]}


def test_a_latency_is_the_sum_of_its_stages_and_what_was_calibrated() -> None:
    report = measure(sizes=[8, 56])
    assert [(row["nic"], row["size_bytes"]) for row in report["rows"]] == [("nfp-4000", 8), ("nfp-4000", 56)] * 4
    for row in report["rows"]:
        assert row["verified"]
        assert row["iterations"] == 100
        assert sum(stage["ns"] for stage in row["stages"]) == pytest.approx(row["latency_ns"], rel=1e-12)
        assert all(stage["ns"] > 0 for stage in row["stages"])
        assert row["min_ns"] <= row["p50_ns"] <= row["p99_ns"] <= row["p999_ns"] <= row["max_ns"]
        assert row["memory"] == ("ctm" if row["mode"] == "indirect" else "emem")
    latency = by_kind(measure(), "latency_ns")
    assert latency["direct", "host-to-card"] == pytest.approx(CALIBRATED_NS, rel=1e-3)
    assert latency["indirect", "host-to-card"] == pytest.approx(2 * CALIBRATED_NS, rel=2e-3)
    assert latency["indirect", "card-to-host"] == pytest.approx(1.73 * CALIBRATED_NS, rel=2e-3)


def test_the_bandwidth_of_messages_and_of_processes() -> None:
    report = measure("channel-bandwidth", sizes=[65536, 262144], processes=[1, 8], payload=2**21)
    rows = report["rows"]
    assert len(rows) == 16
    assert all(row["verified"] and row["runs"] == 3 for row in rows)
    for row in rows:
        moved = row["payload_bytes"]
        assert moved == row["messages"] * row["message_bytes"]
        assert row["messages"] % row["processes"] == 0
        if row["mode"] == "indirect":
            assert (moved, row["message_bytes"]) == (2**21, row["size_bytes"])
        else:
            assert (row["message_bytes"], row["messages"]) == (56, 500 * row["processes"])
    figure = {
        (row["mode"], row["direction"], row["processes"], row["size_bytes"]): row["bandwidth_bytes_per_s"]
        for row in rows
    }
    for direction in ("host-to-card", "card-to-host"):
        # The shared interrupt bounds direct messages: 114.3 Mb/s, a calibration target of the card.
        assert figure["direct", direction, 8, 65536] * 8 == pytest.approx(114.3e6, rel=0.01)
        assert figure["indirect", direction, 1, 262144] > figure["indirect", direction, 1, 65536]
        for size in (65536, 262144):
            one, eight = (figure["indirect", direction, count, size] for count in (1, 8))
            # Eight are more than one, and no more than PCI Express Gen3 x8 carries.
            assert one < eight < 7.88e9
    assert any(row["stddev_bytes_per_s"] > 0 for row in rows if row["processes"] == 8)


def test_indirect_messages_use_the_requested_memory_and_no_other() -> None:
    # Fourteen processes are on two islands. Each island has a CTM.
    options = {"modes": "indirect", "sizes": 16384, "processes": 14, "payload": 2**19, "runs": 1}
    for memory, other in (("ctm", "imem"), ("imem", "emem"), ("emem", "ctm")):
        usual, slow, same = (
            measure("channel-bandwidth", memory=memory, overrides=changes, **options)["rows"]
            for changes in ({}, {f"memory.{memory}.width": 1}, {f"memory.{other}.width": 1})
        )
        assert all(row["verified"] and row["memory"] == memory for row in usual)
        assert same == usual
        for before, after in zip(usual, slow, strict=True):
            assert after["bandwidth_bytes_per_s"] < 0.7 * before["bandwidth_bytes_per_s"]
    [direct] = measure("channel-bandwidth", memory="ctm", modes="direct", directions="host-to-card", processes=1)[
        "rows"
    ]
    assert direct["memory"] == "emem"


def test_runs_of_one_process_differ_by_noise_alone() -> None:
    options = {
        "modes": "indirect",
        "directions": "host-to-card",
        "sizes": 65536,
        "payload": 2**20,
        "runs": 4,
        "processes": 1,
    }
    [quiet] = measure("channel-bandwidth", **options)["rows"]
    [noisy] = measure("channel-bandwidth", noise="50us,5us", **options)["rows"]
    assert quiet["stddev_bytes_per_s"] < 1e-5 * quiet["bandwidth_bytes_per_s"]
    assert noisy["stddev_bytes_per_s"] > 1e-4 * noisy["bandwidth_bytes_per_s"]
    assert noisy["bandwidth_bytes_per_s"] < quiet["bandwidth_bytes_per_s"]


def test_the_same_seed_is_the_same_report() -> None:
    options = {"sizes": 100_000, "processes": 8, "payload": 2**21, "noise": "50us,5us", "modes": "indirect"}
    first, again = (measure("channel-bandwidth", seed=5, **options) for _ in range(2))
    assert first == again
    assert measure("channel-bandwidth", seed=6, **options)["rows"] != first["rows"]


def test_dma_errors_cost_time_and_no_bytes() -> None:
    options = {"modes": "indirect", "sizes": 262144, "payload": 2**21, "runs": 1}
    slow = {"dma.errors": "0.02", "driver.retries": 50}
    for clean, broken in zip(
        measure("channel-bandwidth", **options)["rows"],
        measure("channel-bandwidth", overrides=slow, **options)["rows"],
        strict=True,
    ):
        assert broken["verified"]
        assert broken["bandwidth_bytes_per_s"] < 0.99 * clean["bandwidth_bytes_per_s"]
    with pytest.raises(package.RunError, match=r"nfp-4000, indirect, host-to-card, 262144 B: .*DMA failed too often"):
        measure("channel-bandwidth", overrides={"dma.errors": "1"}, **options)


def test_the_command_line(nicety: Callable[..., Any], tmp_path: Path) -> None:
    command = ["bench", "channel-latency", "--nic", "nfp-4000", "--mode", "direct,indirect"]
    command += ["--direction", "host-to-card,card-to-host", "--sizes", "8:56"]
    files = [tmp_path / name for name in ("a.csv", "a.svg", "a.pftrace")]
    options = [word for pair in zip(("--csv", "--plot", "--trace"), map(str, files), strict=True) for word in pair]
    document = nicety(*command, "--json", *options).json()
    assert document["benchmark"] == "channel-latency"
    assert [row["size_bytes"] for row in document["rows"]] == [8, 16, 32, 56] * 4
    assert set(document["manifest"]) == {"specs", "overrides", "noise", "compiler"}
    table = list(csv.DictReader(io.StringIO(files[0].read_text())))
    assert len(table) == 16
    assert float(table[0]["stages_driver_ns"]) == 5400
    assert files[1].read_text().startswith("<?xml")
    assert files[2].stat().st_size > 1000
    text = nicety(*command, "--breakdown").stdout
    assert "# nfp-4000, direct: Latency (ns)" in text
    assert "# nfp-4000, 56 B: where the time goes" in text
    percentiles = nicety(*command, "--percentiles").stdout
    assert "p99.9" in percentiles
    command = ["bench", "channel-bandwidth", "--nic", "nfp-4000", "--processes", "1,8", "--sizes", "64Ki"]
    text = nicety(*command, "--payload", "1Mi", "--runs", "2").stdout
    assert "2 runs a size" in text
    assert "host-to-card, 8 processes" in text
    assert " ± " in text
    alone = nicety(*command, "--payload", "1Mi", "--runs", "1")
    assert " ± " not in alone.stdout
    assert all(
        "stddev" not in name
        for row in nicety(*command, "--payload", "1Mi", "--runs", "1", "--json").json()["rows"]
        for name in row
    )


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (["channel-latency", "--sizes", "0:8"], ["1 byte at least", "--sizes 1"]),
        (["channel-latency", "--sizes", "8:64"], ["56 bytes at most, not 64", "--mode indirect"]),
        (["channel-latency", "--direction", "sideways"], ["no direction 'sideways'", "host-to-card, card-to-host"]),
        (["channel-latency", "--mode", "rdma"], ["channels have no mode 'rdma'", "direct, indirect"]),
        (["channel-latency", "--warmup", "0"], ["--warmup is 1 to"]),
        (["channel-bandwidth", "--processes", "481"], ["480 contexts"]),
        (["channel-bandwidth", "--processes", "0"], ["--processes is 1 at least"]),
        (["channel-bandwidth", "--payload", "0"], ["--payload is 1 to"]),
        (["channel-bandwidth", "--payload", "1Mi,2Mi"], ["one size, as in --payload 100Mi"]),
        (["channel-bandwidth", "--sizes", "2Gi"], ["limits.message"]),
        (["channel-bandwidth", "--sizes", "1Gi", "--processes", "3"], ["do not fit EMEM"]),
        (["channel-bandwidth", "--sizes", "512Ki", "--memory", "ctm"], ["do not fit CTM", "memory.ctm.size"]),
        (["channel-bandwidth", "--memory", "cls"], ["the memories are ctm, imem, emem"]),
        (["channel-bandwidth", "--plot", "a.txt"], ["--plot a.txt", ".png"]),
    ],
)
def test_impossible_benchmarks_are_refused(nicety: Callable[..., Any], arguments: list[str], parts: list[str]) -> None:
    done = nicety("bench", arguments[0], "--nic", "nfp-4000", *arguments[1:])
    assert done.status == 2
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    for part in parts:
        assert part in done.stderr


def test_a_card_without_channels(nicety: Callable[..., Any]) -> None:
    done = nicety("bench", "channel-latency", "--nic", "spin-discrete")
    assert done.status == 2
    assert "design portals has no processes and channels" in done.stderr
    assert "nfp-4000" in done.stderr


def test_a_card_with_channels_takes_its_natural_path_between_hosts(nicety: Callable[..., Any]) -> None:
    report = nicety("bench", "latency", "--nic", "nfp-4000", "--sizes", "8,4Ki", "--json").json()
    assert [(row["nic"], row["mode"]) for row in report["rows"]] == [("nfp-4000", "channels")] * 2
    for row in report["rows"]:
        assert sum(stage["ns"] for stage in row["stages"]) == pytest.approx(row["latency_ns"], rel=1e-9)
    done = nicety("bench", "latency", "--nic", "nfp-4000", "--mode", "rdma")
    assert done.status == 2
    assert "nfp-4000 has no mode rdma" in done.stderr


def test_a_report_shows_itself_in_a_notebook() -> None:
    html = measure()._repr_html_()
    assert "<table" in html
    assert "nfp-4000, direct" in html
