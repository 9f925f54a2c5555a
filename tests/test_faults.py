"""Faults of the network through Python and the command line: their notation, and the ends of runs with them."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conftest import Result
from nicety import Cluster, Host, InputError, RunError
from nicety.shared.faults import faults_text
from nicety.usecases import Broadcast, KeyValue, Matching, Storage, run_usecase

RELIABLE = {"transport.reliable": "true", "transport.timeout": "10 us"}


async def _message(host: Host) -> bytes | None:
    memory = host.alloc(20_000)
    if host.rank == 0:
        memory.array[:] = [i % 251 for i in range(20_000)]
        await host.send(memory, to=1)
        return None
    if host.rank == 1:
        await host.recv(memory, source=0)
        return bytes(memory.array)
    return None


@pytest.mark.parametrize(
    "faults",
    [
        "loss=0.2,corrupt=0.1,duplicate=0.1,reorder=0.1:2us,burst=2,seed=4",
        {"loss": 0.2, "corrupt": 0.1, "duplicate": 0.1, "reorder": "0.1:2us", "burst": 2, "seed": 4},
        "loss = 0.2\ncorrupt = 0.1\nduplicate = 0.1\nreorder = '0.1:2 us'\nburst = 2\nseed = 4",
    ],
)
def test_a_message_arrives_whatever_the_network_does(faults: Any) -> None:
    runs = [
        Cluster(3, "spin-discrete", topology="star", set=RELIABLE, faults=faults, shards=shards).run(_message)
        for shards in (1, 3)
    ]
    assert runs[0] == runs[1]
    run = runs[0]
    assert run.results[1] == bytes(i % 251 for i in range(20_000))
    assert len(run.links) == 6
    assert run.links[0].link == "hosts.0 -> switch.0"
    assert sum(link.lost for link in run.links) > 0
    assert run.nodes[0].portals.transport.retransmitted > 0
    assert run.nodes[1].portals.transport.acknowledgements > 0
    stages = {stage.stage for stage in run.breakdown().stages}
    assert "transport, retransmit" in stages


def test_a_run_without_faults_has_no_reports_of_links() -> None:
    run = Cluster(2, "spin-discrete").run(_message)
    assert run.links == []
    assert run.nodes[0].portals.transport.retransmitted == run.nodes[1].portals.transport.acknowledgements == 0


def test_failures_are_named() -> None:
    cluster = Cluster(3, "spin-discrete", topology="star", set=RELIABLE, faults={"fail": "hosts.1@0us"})
    with pytest.raises(RunError, match=r"^hosts\.1 is down from 0 ns on; 1 message was not delivered") as raised:
        cluster.run(_message)
    assert "of rank 0 to rank 1: 20000 B not acknowledged" in str(raised.value)


@pytest.mark.parametrize(
    ("faults", "wrong"),
    [
        ("loss=2", r"^faults: loss: 2\.? is no rate"),
        ("fail=hosts.7@1us", r"^faults: there is no hosts\.7; there are hosts\.0 to hosts\.1$"),
        ({"los": 1}, "^faults: los: there is no such key"),
        ({"loss": {1, 2}}, "^faults: .*not JSON serializable"),
        (7, "^faults are a text such as 'loss=1e-3', a file or a dict, not int$"),
        ("nowhere.toml", r"^nowhere\.toml: no such file"),
        (Path("nowhere"), r"^nowhere: no such file"),
    ],
)
def test_faults_that_cannot_be_are_said_at_once(faults: Any, wrong: str) -> None:
    with pytest.raises(InputError, match=wrong):
        Cluster(2, "spin-discrete", faults=faults)


def test_a_file_s_errors_have_its_name_and_line(tmp_path: Path) -> None:
    file = tmp_path / "bad.toml"
    file.write_text("seed = 1\nloss = 'much'\n")
    with pytest.raises(InputError, match=r"bad\.toml: faults, line 2: loss: 'much' is no number"):
        faults_text(file)
    file.write_text("loss = 0.5")
    assert faults_text(str(file)) == f"loss = 0.5\n# of the file {file} (TOML)\n"


@given(st.text(max_size=60))
def test_no_text_does_worse_than_raise(text: str) -> None:
    with contextlib.suppress(InputError):
        faults_text(text)


def test_the_command_line(nicety: Callable[..., Result], tmp_path: Path) -> None:
    args = ["bench", "latency", "--nic", "spin-discrete", "--mode", "rdma", "--sizes", "8"]
    reliable = ["--set", "transport.reliable=true"]
    done = nicety(*args, *reliable, "--faults", "loss=0.1,seed=2", "--iterations", "100", "--json")
    assert done.status == 0
    report = done.json()
    assert report["manifest"]["faults"] == "loss=0.1,seed=2"
    assert report["rows"][0]["max_ns"] > 50_000
    file = tmp_path / "faults.toml"
    file.write_text("loss = 0.1\nseed = 2\n")
    again = nicety(*args, *reliable, "--faults", str(file), "--iterations", "100", "--json")
    assert again.json()["rows"] == report["rows"]
    done = nicety(*args, *reliable, "--faults", "fail=hosts.1@0us")
    assert (done.status, done.stdout) == (1, "")
    assert "hosts.1 is down from 0 ns on" in done.stderr
    assert "Traceback" not in done.stderr
    done = nicety(*args, "--faults", "loss=1.5")
    assert (done.status, done.stdout) == (2, "")
    assert "faults: loss: 1.5 is no rate; write a number from 0 to 1" in done.stderr
    program = tmp_path / "program.py"
    program.write_text(
        "async def main(host):\n"
        "    memory = host.alloc(50_000)\n"
        "    if host.rank == 0:\n"
        "        await host.send(memory, to=1)\n"
        "    else:\n"
        "        await host.recv(memory, source=0)\n"
        "    return {'done': 1}\n"
    )
    csv = tmp_path / "rows.csv"
    run = nicety("run", str(program), *reliable, "--faults", "loss=0.1", "--json", "--csv", str(csv))
    assert run.status == 0, run.stderr
    row = run.json()["rows"][0]
    assert [link["link"] for link in row["faults"]] == ["hosts.0 -> hosts.1", "hosts.1 -> hosts.0"]
    assert row["transport"][0]["retransmitted"] >= row["faults"][0]["lost"] > 0
    assert "transport_0_retransmitted" in csv.read_text()


def test_a_use_case_on_damaged_bytes_says_what_damaged_them() -> None:
    """Each run is right, or ends with the error and the network's faults; no reply is mistaken for another."""
    said: list[str] = []
    for case in (
        KeyValue(clients=[2], operations=["update"], requests=16),
        Storage(sizes=[512], operations=["write", "read"], requests=10),
        Matching(sizes=[64, 9000]),
        Broadcast(nodes=[4], sizes=[8192]),
    ):
        for seed in range(6):
            try:
                run_usecase(case, nics="spin-discrete", faults=f"corrupt=0.05,seed={seed}")
            except RunError as error:
                said.append(str(error))
    for text in said:
        failed = len(re.findall("^spin-discrete, mode ", text, flags=re.MULTILINE))
        assert len(re.findall("note: of the packets, the network damaged [0-9]+", text)) == failed > 0, text
    # The run is completed, and is not checked any further.
    assert any("packets were damaged, and nothing retransmits them" in text for text in said)
    assert any("a program cannot continue with the received data (ValueError: " in text for text in said)
    assert any("deadlock" in text for text in said)


@pytest.mark.parametrize(
    "case",
    [
        Broadcast(nodes=[5], sizes=[20_000]),
        Matching(sizes=[64, 200_000]),
        Storage(sizes=[8192]),
        KeyValue(clients=[2], requests=8),
    ],
    ids=lambda case: case.name,
)
def test_use_cases_verify_their_bytes_whatever_the_network_does(case: Any) -> None:
    overrides = ["transport.retries=40", *(f"{key}={value}" for key, value in RELIABLE.items())]
    faults = "loss=0.1,corrupt=0.1,duplicate=0.1,reorder=0.1:2us,burst=2,seed=3"
    report = run_usecase(case, nics=["spin-discrete"], overrides=overrides, faults=faults, iterations=2)
    assert {row["mode"] for row in report["rows"]} == set(case.modes)
    for row in report["rows"]:
        assert row["verified"]
    assert sum(link["lost"] for row in report["rows"] for link in row["faults"]) > 0
    assert sum(card["retransmitted"] for row in report["rows"] for card in row["transport"]) > 0
