"""The benchmarks of sockets as functions and as commands."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import nicety
from nicety.bench.sockets import socket_figure, socket_html, socket_tables, socket_text, sweeps

Command = Callable[..., Any]
SHORT: dict[str, Any] = {"nics": ["niagara2-niu", "niagara2-neptune"], "warmup": "1ms", "duration": "1ms"}
ARGUMENTS = ["--nic", "niagara2-niu,niagara2-neptune", "--warmup", "1ms", "--duration", "1ms"]


@pytest.fixture
def command(request: pytest.FixtureRequest) -> Command:
    """The command line."""
    started: Command = request.getfixturevalue("nicety")
    return started


def test_streams_as_a_function_and_as_a_command(command: Command, tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []
    given = {**SHORT, "io_sizes": [1024, 65536], "connections": [1, 32]}
    report = nicety.bench_stream(**given, progress=lambda done, total: seen.append((done, total)))
    assert seen == [(done, 6) for done in range(7)]
    options = ["--io-sizes", "1Ki,64Ki", "--connections", "1,32", "--direction", "receive"]
    files = ["--plot", str(tmp_path / "a.svg"), "--csv", str(tmp_path / "a.csv")]
    done = command("bench", "stream", *ARGUMENTS, *options, "--json", *files)
    assert json.loads(done.stdout) == report
    assert (tmp_path / "a.svg").stat().st_size > 1000
    assert (tmp_path / "a.csv").read_text().startswith("nic,direction,io_size_bytes,connections,cpus,bandwidth")
    assert command("bench", "stream", *ARGUMENTS, *options).stdout == socket_text(report)
    assert "<table" in socket_html(report)


def test_a_sweep_is_a_table_for_each_axis() -> None:
    report = nicety.bench_stream(**{**SHORT, "nics": "niagara2-niu"}, io_sizes=[1024, 65536], connections=[1, 32])
    assert [(title, axis, [row[axis] for row in rows]) for title, axis, rows in sweeps(report)] == [
        ("niagara2-niu: 32 connections, 64 CPUs", "io_size_bytes", [1024, 65536]),
        ("niagara2-niu: 65536 B a call, 64 CPUs", "connections", [1, 32]),
    ]
    text = socket_text(report)
    assert "# rank 0 receives; its peer has the same card" in text
    assert "# CPU time of a packet (ns): 65536 B a call, 32 connections, 64 CPUs\n" in text
    figure = socket_figure(report)
    figure.draw_without_rendering()
    assert [axes.get_xlabel() for axes in figure.axes] == ["Call (B)", "Call (B)", "Connections", "Connections"]


def test_requests_as_a_function_and_as_a_command(command: Command, tmp_path: Path) -> None:
    report = nicety.bench_request_response(**SHORT, connections=[1, 2], size=64, think="10us", peer="niagara2-niu")
    options = ["--connections", "1,2", "--size", "64", "--think", "10us", "--peer", "niagara2-niu"]
    done = command("bench", "request-response", *ARGUMENTS, *options, "--json", "--plot", str(tmp_path / "a.svg"))
    assert json.loads(done.stdout) == report
    text = command("bench", "request-response", *ARGUMENTS, *options).stdout
    assert text == socket_text(report)
    assert "# requests of 64 B to rank 0, replies of 1 B, after 10 us of thought; its peer has niagara2-niu" in text


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["stream", "--nic", "qnix"], "has no sockets"),
        (["stream", "--nic", "niagara2-niu", "--direction", "up"], "--direction is receive or transmit, not up"),
        (["stream", "--nic", "niagara2-niu", "--io-sizes", "0"], "--io-sizes is 1 to 16777216, not 0"),
        (["stream", "--nic", "niagara2-niu", "--cpus", "100"], "--cpus 100: expected a whole number from 1 to 64"),
        (["stream", "--nic", "niagara2-niu", "--duration", "1"], "--duration: "),
        (["request-response", "--nic", "niagara2-niu", "--size", "0"], "--size is 1 to 16777216, not 0"),
        (["request-response", "--nic", "spin-discrete"], "has no sockets"),
    ],
)
def test_mistakes_are_named(command: Command, arguments: list[str], expected: str) -> None:
    done = command("bench", *arguments)
    assert done.status == 2
    assert expected in done.stderr
    assert "Traceback" not in done.stderr


def test_a_row_whose_neighbours_failed_has_a_table() -> None:
    report = nicety.bench_stream(nics=["niagara2-niu"], connections=[1, 2], cpus=[8], warmup="1ms", duration="2ms")
    titles = [title for title, _ in socket_tables(report)]
    assert titles == ["niagara2-niu: 65536 B a call, 64 CPUs", "niagara2-niu: 65536 B a call, 32 connections"]
    text = socket_text(report)
    assert sum(line.split()[:1] == ["8"] for line in text.splitlines()) == 1


def test_rows_on_two_axes_are_both_shown() -> None:
    short = {"nics": ["ethernet-100g", "niagara2-niu"], "warmup": "1ms", "duration": "300us"}
    report = nicety.bench_stream(**short, io_sizes=[4096], connections=[8])
    places = {(row["nic"], row["io_size_bytes"], row["connections"]) for row in report["rows"]}
    assert len(places) == 4
    shown = [
        (title.partition(":")[0], row["io_size_bytes"], row["connections"])
        for title, _, rows in sweeps(report)
        for row in rows
    ]
    assert sorted(shown) == sorted(places)
    titles = [title for title, _ in socket_tables(report)]
    assert titles[:2] == ["ethernet-100g: 32 connections, 64 CPUs", "ethernet-100g: 8 connections, 64 CPUs"]
    last = report["rows"][-1]
    place = f"{last['io_size_bytes']} B a call, {last['connections']} connections, 64 CPUs"
    assert f"# CPU time of a packet (ns): {place}\n" in socket_text(report)
    report["rows"] = [*report["rows"][:2], next(row for row in report["rows"][2:] if row["connections"] == 32)]
    assert "(ns): ethernet-100g at 65536 B a call, 8 connections, 64 CPUs; niagara2-niu at 4096 B a call, 32" in (
        socket_text(report)
    )


def test_few_requests_are_told() -> None:
    report = nicety.bench_request_response(nics=["niagara2-niu"], connections=[1], warmup="1ms", duration="1ms")
    requests = report["rows"][0]["requests"]
    assert requests < 3
    assert f"1 connections: {requests} requests are few; write a longer --duration" in socket_text(report)
