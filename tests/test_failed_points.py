"""Points of a benchmark that fail: the rows of the others are shown and written, and the status reports it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nicety.bench.messages import run_benchmark
from nicety.errors import Deadlock

Run = Callable[..., Any]

# None of the few packets of the first size is lost; some of the many of the second are.
OPTIONS = {"nics": ["apenet-v5"], "iterations": 1, "warmup": 0, "window": 2, "faults": "loss=0.002"}
LOSSY = ("--nic", "apenet-v5", "--iterations", "1", "--warmup", "0", "--window", "2", "--faults", "loss=0.002")


def test_rows_that_were_measured_are_shown_and_written(nicety: Run, tmp_path: Path) -> None:
    files = ("--csv", "rows.csv", "--plot", "rows.png")
    result = nicety("bench", "bandwidth", *LOSSY, "--sizes", "8Mi,4Ki", "--set", "link.retries=0", *files)
    assert result.status == 1
    assert [line.split()[0] for line in result.stdout.splitlines() if line and not line.startswith("#")] == ["4096"]
    assert result.stderr.startswith("nicety: apenet-v5, mode put, 8388608 B: deadlock")
    assert [line.split(",")[2] for line in (tmp_path / "rows.csv").read_text().splitlines()[1:]] == ["4096"]
    assert (tmp_path / "rows.png").stat().st_size > 0


def test_the_report_names_points_that_failed(nicety: Run) -> None:
    result = nicety("bench", "bandwidth", *LOSSY, "--sizes", "8Mi,4Ki", "--set", "link.retries=0", "--json")
    report = result.json()
    assert result.status == 1
    assert [row["size_bytes"] for row in report["rows"]] == [4096]
    [failed] = report["failed_points"]
    assert (failed["point"], failed["kind"]) == ("apenet-v5, mode put, 8388608 B", "Deadlock")
    assert failed["text"].startswith("deadlock at ")


def test_the_exception_has_the_report() -> None:
    with pytest.raises(Deadlock, match="8388608 B: deadlock") as raised:
        run_benchmark("bandwidth", sizes=[8 << 20, 4096], overrides=["link.retries=0"], **OPTIONS)
    assert [row["size_bytes"] for row in vars(raised.value)["report"]["rows"]] == [4096]


def test_without_any_row_the_first_error_is_the_benchmarks() -> None:
    with pytest.raises(Deadlock, match="8388608 B: deadlock") as raised:
        run_benchmark("bandwidth", sizes=[8 << 20, 16 << 20], overrides=["link.retries=0"], **OPTIONS)
    assert not hasattr(raised.value, "report")


def test_ctrl_c_keeps_the_rows() -> None:
    def stop(done: int, _total: int) -> None:
        if done == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as raised:
        run_benchmark("latency", nics=["spin-discrete"], sizes=[8, *range(4 << 20, (4 << 20) + 200)], progress=stop)
    report = vars(raised.value)["report"]
    assert report["rows"][0]["size_bytes"] == 8
    assert len(report["rows"]) < 201
    assert report["failed_points"][-1]["kind"] == "KeyboardInterrupt"


def test_cards_that_can_run_a_program_do(nicety: Run, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "async def main(host):\n    if host.rank == 0:\n        return {'found': host.rdma is not None}\n"
    )
    result = nicety("run", program, "--nic", "qnix,apenet-v5,spin-discrete")
    assert result.status == 2
    assert [line.split()[:3] for line in result.stdout.splitlines()[4:]] == [["apenet-v5", "0", "yes"]]
    first, *_ = result.stderr.splitlines()
    assert first.startswith("nicety: qnix: host.rdma of rank 0")
    assert "\nspin-discrete: host.rdma of rank 0" in result.stderr
    report = nicety("run", program, "--nic", "qnix,apenet-v5", "--json").json()
    assert [(one["point"], one["kind"]) for one in report["failed_points"]] == [("qnix", "InputError")]
    # If none succeeds, there is no report.
    result = nicety("run", program, "--nic", "qnix,spin-discrete")
    assert (result.status, result.stdout) == (2, "")


def test_a_use_case_keeps_its_rows(nicety: Run) -> None:
    result = nicety(
        "bench",
        "broadcast",
        "--nic",
        "spin-discrete",
        "--nodes",
        "4",
        "--sizes",
        "8,64Ki",
        "--faults",
        "loss=0.02,seed=1",
    )
    assert result.status == 1
    report = nicety(
        "bench",
        "broadcast",
        "--nic",
        "spin-discrete",
        "--nodes",
        "4",
        "--sizes",
        "8,64Ki",
        "--faults",
        "loss=0.02,seed=1",
        "--json",
    ).json()
    assert {row["size_bytes"] for row in report["rows"]} == {8}
    assert all("size 65536" in one["point"] and one["kind"] == "Deadlock" for one in report["failed_points"])
