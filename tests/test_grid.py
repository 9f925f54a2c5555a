"""Halo exchange and all-reduce on a grid of ranks, as functions and as commands."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import nicety
from nicety.bench.ranks.grid import grid_figure

Command = Callable[..., Any]


@pytest.fixture
def command(request: pytest.FixtureRequest) -> Command:
    """The command line."""
    started: Command = request.getfixturevalue("nicety")
    return started


@pytest.mark.parametrize("benchmark", ["halo", "allreduce"])
def test_a_function_and_a_command_give_one_report(benchmark: Any, command: Command, tmp_path: Path) -> None:
    report = nicety.bench_grid(benchmark, nics=["spin-discrete", "qnix"], sizes=[64, 1024], grid="3x2", iterations=2)
    assert [row["size_bytes"] for row in report["rows"]] == [64, 1024] * 2
    assert all(row["verified"] and row["nodes"] == 6 for row in report["rows"])
    arguments = ["bench", benchmark, "--nic", "spin-discrete,qnix", "--sizes", "64,1Ki", "--grid", "3x2"]
    arguments += ["--iterations", "2"]
    assert json.loads(command(*arguments, "--json").stdout) == report
    table, picture = tmp_path / "a.csv", tmp_path / "a.svg"
    shown = command(*arguments, "--csv", str(table), "--plot", str(picture)).stdout
    assert "# grid 3x2 on topology star: 6 nodes" in shown
    rows = [line.split() for line in shown.splitlines() if line and not line.startswith("#")]
    assert [float(row[1]) for row in rows] == pytest.approx([row["time_ns"] for row in report["rows"]], abs=0.001)
    with table.open() as file:
        assert [float(row["time_ns"]) for row in csv.DictReader(file)] == [row["time_ns"] for row in report["rows"]]
    assert picture.stat().st_size > 1000
    assert "3x2" in nicety.bench_grid(benchmark, nics="qnix", sizes=64, grid="3x2")["manifest"]["grid"]
    assert "<table" in report._repr_html_()  # type: ignore[attr-defined]


def test_a_bound_is_drawn_beside_an_allreduce_only() -> None:
    labels = {}
    for benchmark in ("halo", "allreduce"):
        report = nicety.bench_grid(benchmark, nics="spin-discrete", sizes=[64, 128], nodes=4)
        (axes,) = grid_figure(report).axes
        labels[benchmark] = [line.get_label() for line in axes.get_lines()]
        assert [note.get_text() for note in axes.texts] == ["grid 2x2, topology star"]
    assert labels == {
        "halo": ["spin-discrete"],
        "allreduce": ["spin-discrete", "spin-discrete: least time on its link"],
    }


def test_the_bound_is_that_of_a_cards_own_link() -> None:
    router = ["router.latency=50ns", "router.buffer=32", "router.gap=5ps/B"]
    bounds = {}
    for topology in ("star", "torus:2x2"):
        report = nicety.bench_grid(
            "allreduce", nics="spin-discrete", sizes=1024, nodes=4, topology=topology, overrides=router
        )
        bounds[topology] = report["rows"][0]["lower_bound_ns"]
    # 3/2 of the vector, at 20 ps per byte on the link and 5 between card and router.
    assert bounds == pytest.approx({"star": 30.72, "torus:2x2": 7.68})


def test_a_wrong_value_fails_the_run(command: Command) -> None:
    arguments = ["bench", "allreduce", "--nic", "spin-discrete", "--sizes", "4Ki", "--faults", "corrupt=0.05"]
    done = [command(*arguments, "--seed", str(seed)) for seed in range(1, 5)]
    assert {each.status for each in done} == {1}
    assert any("is wrong from value" in each.stderr for each in done)
    assert not any("Traceback" in each.stderr for each in done)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--sizes", "0"], "--sizes 0: write a multiple of 8 bytes"),
        (["--sizes", "12"], "--sizes 12: write a multiple of 8"),
        (["--grid", "2x2", "--nodes", "5"], "--grid 2x2 has 4 ranks, but --nodes is 5"),
        (["--grid", "4*4"], "write for example 8, 4x4 or 4x4x2"),
        (["--grid", "1"], "a single rank has no neighbour"),
        (["--grid", "3", "--topology", "pair"], "a pair has 2 nodes, not 3"),
        (["--iterations", "0"], "--iterations is 1 to 10000"),
    ],
)
def test_mistakes_are_named(command: Command, arguments: list[str], expected: str) -> None:
    for benchmark in ("halo", "allreduce"):
        done = command("bench", benchmark, "--nic", "spin-discrete", *arguments)
        assert (done.status, expected in done.stderr) == (2, True), done.stderr
