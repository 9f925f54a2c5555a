"""Random traffic on a torus, as a function and as a command."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import nicety
from nicety.bench.ranks.torus import torus_figure, torus_text

Command = Callable[..., Any]
GIVEN: dict[str, Any] = {"nics": "spin-discrete", "patterns": ["uniform", "tornado"], "topology": "torus:8"}
ARGUMENTS = ["bench", "torus", "--nic", "spin-discrete", "--pattern", "uniform,tornado", "--topology", "torus:8"]


@pytest.fixture
def command(request: pytest.FixtureRequest) -> Command:
    """The command line."""
    started: Command = request.getfixturevalue("nicety")
    return started


def test_a_function_and_a_command_give_one_report(command: Command, tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []
    report = nicety.bench_torus(**GIVEN, progress=lambda done, total: seen.append((done, total)))
    assert seen[0] == (0, 2000)
    assert seen[-1] == (2000, 2000)
    assert [row["offered_fraction"] for row in report["rows"]] == [tenth / 10 for tenth in range(1, 11)] * 2
    table, picture = tmp_path / "a.csv", tmp_path / "a.svg"
    assert json.loads(command(*ARGUMENTS, "--load", "0.1:1.0", "--json").stdout) == report
    shown = command(*ARGUMENTS, "--csv", str(table), "--plot", str(picture)).stdout
    assert shown == torus_text(report)
    rows = [line.split() for line in shown.splitlines() if line and not line.startswith("#")]
    assert [float(row[1]) for row in rows] == pytest.approx(
        [row["accepted_fraction"] for row in report["rows"]], abs=0.0006
    )
    with table.open() as file:
        assert [float(row["latency_ns"]) for row in csv.DictReader(file)] == [
            row["latency_ns"] for row in report["rows"]
        ]
    assert picture.stat().st_size > 1000
    assert "<table" in report._repr_html_()  # type: ignore[attr-defined]


def test_saturation_stands_below_its_table() -> None:
    report = nicety.bench_torus(**GIVEN, load="0.1,1.0")
    text = torus_text(report)
    uniform, tornado = (line for line in text.splitlines() if "by arithmetic" in line)
    assert uniform.startswith("# saturates at 0.875 by arithmetic (1.143 on the most loaded link, 1.143 on average)")
    assert tornado.startswith("# saturates at 0.333 by arithmetic (3.000 on the most loaded link, 1.500 on average)")
    assert tornado.endswith(f"measured {report['saturation'][1]['measured_saturation_fraction']:.3f}")
    slow = torus_text(nicety.bench_torus(**GIVEN, load="0.1"))
    assert slow.count("; not at these loads") == 2
    assert "longer than the warm-up" not in slow
    assert "few packets" not in slow


def test_times_too_short_for_a_card_are_told() -> None:
    given: dict[str, Any] = {"nics": "qnix", "topology": "torus:8", "load": "0.1,1.0"}
    report = nicety.bench_torus(**given, warmup="10us", duration="50us")
    first, second = (row["packets"] for row in report["rows"])
    alone, few = torus_text(report).splitlines()[-2:]
    assert alone.startswith("# one packet takes 21940.0 ns over the longest route, longer than the warm-up")
    assert few == f"# few packets were measured: {first} at load 0.1, {second} at load 1; write a longer --duration"
    assert "longer than the warm-up" not in torus_text(nicety.bench_torus(**given))


def test_buffers_that_short_packets_fill_are_told() -> None:
    report = nicety.bench_torus(nics="spin-discrete", topology="torus:4x4", load="0.5", packet=64)
    assert ", and routers' buffers suffice up to 0.200; measured 0.200" in torus_text(report)


def test_latency_and_accepted_load_are_drawn() -> None:
    figure = torus_figure(nicety.bench_torus(**GIVEN, load="0.1,0.5"))
    figure.draw_without_rendering()
    latency, accepted = figure.axes
    assert (latency.get_xlabel(), accepted.get_xlabel()) == ("Offered load", "Offered load")
    assert (latency.get_ylabel(), accepted.get_ylabel()) == ("Latency (µs)", "Accepted load")
    labels = [line.get_label() for line in latency.get_lines()]
    cards = [f"spin-discrete, {pattern}" for pattern in ("uniform", "tornado")]
    assert labels == [text for card in cards for text in (card, f"{card}: p99")]
    assert [text.get_text() for text in accepted.get_xticklabels()] == ["0", "0.2", "0.4", "0.6", "0.8", "1"]
    dotted = [line.get_ydata()[0] for line in accepted.get_lines() if line.get_linestyle() == ":"]
    assert dotted == pytest.approx([0.875, 1 / 3])
    # For a single load there is no line, and none is named.
    (legend,) = torus_figure(nicety.bench_torus(**GIVEN, load="0.5")).legends
    assert [text.get_text() for text in legend.get_texts()] == cards


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--topology", "star"], "--topology star: this is no torus; write for example --topology torus:8x8x8"),
        (["--topology", "torus"], "the number of nodes is missing"),
        (["--topology", "torus:8x4", "--pattern", "transpose"], "its dimensions have different sizes"),
        (["--topology", "torus:6", "--pattern", "bit-complement"], "is not a power of two"),
        (["--pattern", "spiral"], "no pattern 'spiral'; the patterns are neighbour, uniform, transpose"),
        (["--load", "-1"], "'-1' is below 0"),
        (["--csv", "-"], "--csv -: write the name of a file"),
        (["--load", "0"], "a load of 0 has no traffic"),
        (["--load", "2"], "a load or a step is at most 1, the full rate of the link"),
        (["--packet", "0"], "--packet is 1 to 1048576"),
        (["--duration", "20"], "--duration: "),
        (["--duration", "1s"], "write a shorter --duration"),
    ],
)
def test_mistakes_are_named(command: Command, arguments: list[str], expected: str) -> None:
    done = command("bench", "torus", "--nic", "spin-discrete", *arguments)
    assert done.status == 2
    assert expected in done.stderr
    assert "Traceback" not in done.stderr
