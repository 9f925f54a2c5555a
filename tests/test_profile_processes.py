"""`nicety profile` on programs of hosts: each cycle of the processes of a flow processor once, with its cause."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nicety import Cluster, Processes, profile_program
from nicety._generated.types import ProfileRow
from nicety.bench.profile.calls import call_tree
from nicety.errors import InputError, RunError

ASLEEP = ("memory", "bank", "signal", "channel", "port")

WORK = """#include <nfp.h>
static uint32_t table[16];
static __attribute__((noinline)) uint32_t mixed(uint32_t value) { return value / 7 * 31 ^ nfp_crc32(value, 5); }
__process uint32_t work(uint32_t rounds) {
    uint32_t block[16], sum = 0;
    nfp_wait_all(1 << 2);
    while (rounds-- > 0) {
        nfp_read(block, nfp_emem(0), sizeof block);
        for (int i = 0; i < 16; i++) sum += mixed(block[i] + i);
        table[sum % 16]++;
        __atomic_fetch_add(&table[0], 1, __ATOMIC_RELAXED);
        nfp_fetch_add((volatile uint32_t *)nfp_emem(64), 1);
        ((volatile uint32_t *)NFP_CTM)[nfp_context()] = sum;
        sum += ((volatile uint32_t *)NFP_CTM)[0];
        nfp_yield();
    }
    return sum;
}
__process uint32_t start(uint32_t contexts) {
    for (uint32_t context = 1; context < contexts; context++) nfp_signal(nfp_microengine(), context, 2);
    return 0;
}
__process uint32_t trap(void) { return *(volatile uint32_t *)64; }
__process uint32_t refused(void) {
    nfp_wait_all(0);
    return 0;
}
"""
HOST = """import nicety

nodes = 1
program = nicety.Processes("work.c")


async def main(host):
    workers = [host.channels.start(program, "work", microengine=0, context=c, args=(20,)) for c in (1, 2, 3)]
    await host.compute(ns=5000)
    host.channels.start(program, "start", microengine=0, context=0, args=(4,))
    for worker in workers:
        await worker.finished()
    # A context has several processes.
    await host.channels.start(program, "start", microengine=0, context=1, args=(0,)).finished()
"""
MESSAGES = """async def main(host):
    buffer = host.alloc(100_000)
    if host.rank == 0:
        await host.send(buffer, to=1)
    else:
        await host.recv(buffer, source=0)
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder, with the programs."""
    monkeypatch.chdir(tmp_path)
    for name, text in {"work.c": WORK, "work.py": HOST, "messages.py": MESSAGES}.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def check(row: ProfileRow) -> None:
    """Each sum is that of the card's own counters, by the cause of cycles too."""
    card, processes = row["card"], row["processes"]
    computing, asleep, ready = (
        sum(process[key] for process in processes) for key in ("cycles_computing", "cycles_asleep", "cycles_ready")
    )
    assert card["cycles"] == row["cycles"] == computing + asleep + ready
    assert row["executions"] == card["instructions"] == sum(process["instructions"] for process in processes)
    assert row["runs"] == card["runs"] == sum(process["processes"] for process in processes)
    for parts in (row["instructions"], row["lines"], row["functions"]):
        assert sum(part["cycles"] for part in parts) == row["cycles"]
        assert sum(part["executions"] for part in parts) == row["executions"]
    assert call_tree(row).cycles == row["cycles"]
    causes = row["causes"]
    assert sum(causes.get(cause, 0) for cause in ASLEEP) == asleep
    assert causes.get("ready", 0) == ready
    assert sum(cycles for cause, cycles in causes.items() if cause not in (*ASLEEP, "ready")) == computing


def line_of(row: ProfileRow, text: str) -> Any:
    """The costs of the line of `WORK` with a text."""
    number = next(at for at, line in enumerate(WORK.splitlines(), 1) if text in line)
    (line,) = (line for line in row["lines"] if line["line"] == number)
    return line


def test_sums_are_those_of_the_contexts(folder: Path) -> None:
    (row,) = profile_program("work.py", nics=["nfp-4000"], overrides=["memory.emem.gap=200"])["rows"]
    check(row)
    assert {(process["function"], process["context"]) for process in row["processes"]} == {
        ("work", 1),
        ("work", 2),
        ("work", 3),
        ("start", 0),
        ("start", 1),
    }
    assert row["causes"]["bank"] > 0, "three contexts wait for each other in the queue of EMEM"
    assert set(line_of(row, "nfp_read(block")["causes"]) >= {"memory", "issue", "ready"}
    assert "memory" in line_of(row, "nfp_fetch_add((volatile")["causes"]
    assert "memory" not in line_of(row, "__atomic_fetch_add")["causes"], "local memory has no latency"
    assert "signal" in line_of(row, "nfp_wait_all(1 << 2)")["causes"]
    crc = line_of(row, "mixed(uint32_t value)")
    assert crc["causes"]["execute"] > 0
    assert "memory" not in crc["causes"]
    assert {path["symbol"] for path in row["paths"]} >= {"work", "start", "mixed"}


def test_the_processes_that_forward_messages_are_profiled(folder: Path) -> None:
    rows = profile_program("messages.py", nics=["nfp-4000"])["rows"]
    assert [row["place"] for row in rows] == ["rank 0", "rank 1"]
    for row in rows:
        check(row)
        assert {"forward_port", "forward_out", "forward_in"} <= {process["function"] for process in row["processes"]}
        assert {"port", "channel", "signal"} <= set(row["causes"])
        assert any((line["file"] or "").endswith("forward.c") for line in row["lines"])


@pytest.mark.parametrize("name", ["trap", "refused"])
def test_a_process_that_traps_has_its_cycles(folder: Path, name: str) -> None:
    async def main(host: Any) -> None:
        host.channels.start(Processes("work.c"), name, microengine=0)

    run = Cluster(1, "nfp-4000", profile=True, allow_failures="trap").run(main)
    (row,) = run.profile
    check(row)
    assert [failure.kind for failure in run.failures] == ["trap"]


def test_a_profile_changes_no_time(folder: Path) -> None:
    async def main(host: Any) -> float:
        process = host.channels.start(Processes("work.c"), "start", microengine=0, context=0, args=(1,))
        await process.finished()
        return float(host.now_ns)

    profiled, plain = (Cluster(1, "nfp-4000", profile=profile).run(main) for profile in (True, False))
    assert (profiled.time_ps, profiled.events) == (plain.time_ps, plain.events)
    assert profiled.nodes == plain.nodes
    assert plain.profile == []


def test_several_cards_of_a_host_have_rows_of_their_own(folder: Path) -> None:
    async def main(host: Any) -> None:
        program = Processes("work.c")
        for number in range(2):
            await host.channels.card(number).start(program, "start", microengine=3, args=(1,)).finished()

    rows = Cluster(1, "nfp-4000", set={"host.cards": 2}, profile=True).run(main).profile
    assert [row["place"] for row in rows] == ["rank 0, card 0", "rank 0, card 1"]
    for row in rows:
        check(row)


def test_other_cards_and_programs_are_refused(folder: Path) -> None:
    with pytest.raises(InputError, match="no processes and channels"):
        profile_program("messages.py", nics=["spin-discrete"])
    (folder / "idle.py").write_text("nodes = 1\nasync def main(host): pass\n")
    with pytest.raises(RunError, match=r"idle\.py: no process has run on a card"):
        profile_program("idle.py", nics=["nfp-4000"])
    with pytest.raises(InputError, match="one shard"):
        Cluster(2, "nfp-4000", shards=2, profile=True)


def test_the_command_has_text_files_and_one_document(nicety: Callable[..., Any], folder: Path) -> None:
    files = ["--html", "a.html", "--speedscope", "a.json", "--pprof", "a.pb.gz"]
    done = nicety("profile", "work.py", "--nic", "nfp-4000", "--json", *files)
    assert (done.status, done.stderr) == (0, "")
    (row,) = json.loads(done.stdout)["rows"]
    check(row)
    assert all((folder / name).stat().st_size > 0 for name in ("a.html", "a.json", "a.pb.gz"))
    text = nicety("profile", "work.py", "--nic", "nfp-4000").stdout
    assert "# Cycles of contexts" in text
    assert "a packet" not in text
    assert str(row["cycles"]) in text


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["work.py", "--packet-sizes", "64"], "--packet-sizes: for handlers; a program of hosts has --nic"),
        (["work.py", "-D", "X"], "-D: for handlers"),
        (["work.c", "1"], "1: arguments are for a program of hosts, PROGRAM.py; leave it out"),
        (["messages.py", "--pprof", "a.pb.gz"], "--pprof: for one profile, and the run has 2: nfp-4000, rank 0"),
    ],
)
def test_wrong_arguments_have_one_line(
    nicety: Callable[..., Any], folder: Path, arguments: list[str], error: str
) -> None:
    done = nicety("profile", *arguments, "--nic", "nfp-4000")
    assert (done.status, done.stdout) == (2, "")
    assert error in done.stderr
    assert done.stderr.count("\n") == 1
