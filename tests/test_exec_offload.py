"""Collective operations of MPI that cards execute: values, times, calls left to MPI, and refusals."""

from __future__ import annotations

import csv
import json
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import nicety
from nicety.usecases.broadcast import Broadcast

pytest.importorskip("mpi4py")
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="programs run on simulated hosts only under Linux")

NICETY = [sys.executable, "-m", "nicety"]
SOURCE = Path(__file__).parent / "programs" / "collectives.c"
ALL = "bcast,barrier,allreduce=always"


def _mpicc(name: str) -> str:
    beside = Path(sys.executable).parent / name
    return str(beside) if beside.exists() else shutil.which(name) or name


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("collectives") / "collectives"
    subprocess.run([_mpicc("mpicc"), "-O1", "-o", path, SOURCE], check=True)
    return path


def run(
    program: Path, *words: str, ranks: int = 4, nic: str = "spin-discrete", offload: str | None = ALL, options: Any = ()
) -> tuple[int, str, str]:
    """Status, stdout and stderr of the program."""
    own = [] if offload is None else ["--offload", offload]
    command = [*NICETY, "exec", "-n", str(ranks), "--nic", nic, *own, *options, "--", str(program), *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    return done.returncode, done.stdout, done.stderr


def report(program: Path, *words: str, **more: Any) -> dict[str, Any]:
    status, out, err = run(program, *words, options=("--json", *more.pop("options", ())), **more)
    assert status == 0, err
    made: dict[str, Any] = json.loads(out)
    return made


def calls(made: dict[str, Any]) -> dict[str, tuple[int, dict[str, int]]]:
    """Calls that were offloaded, and those left to MPI by reason, by operation."""
    return {
        each["name"]: (each["offloaded_calls"], {passed["reason"]: passed["calls"] for passed in each["fallbacks"]})
        for each in made["offload"]
    }


@pytest.mark.parametrize("ranks", [2, 3, 4, 8])
def test_values_are_those_of_mpi(program: Path, ranks: int) -> None:
    made = report(program, "bcast", "ahead", "types", "allreduce", "mixed", "barrier", ranks=ranks)
    found = calls(made)
    assert all(offloaded > 0 for offloaded, _ in found.values())
    # Only the broadcast of no bytes.
    assert found["bcast"][1] == {"empty": ranks}
    assert not found["barrier"][1]
    assert not found["allreduce"][1]


def test_a_library_of_mpis_standard_interface_is_known(tmp_path: Path) -> None:
    path = tmp_path / "collectives"
    subprocess.run([_mpicc("mpicc_abi"), "-O1", "-o", path, SOURCE], check=True)
    found = calls(report(path, "types", "mixed", "passed", ranks=3))
    assert found["allreduce"] == (
        3 * (60 + 1),
        {"communicator": 3, "operator": 6, "datatype": 3, "length": 3, "empty": 3},
    )


def test_calls_that_cards_cannot_execute_are_left_to_mpi_and_counted(program: Path) -> None:
    made = report(program, "passed", ranks=4)
    assert calls(made) == {
        "bcast": (0, {"communicator": 4, "empty": 4}),
        "barrier": (0, {}),
        "allreduce": (4, {"communicator": 4, "operator": 8, "datatype": 4, "length": 4, "empty": 4}),
    }
    assert [row["offload"]["fallback_calls"] for row in made["ranks"]] == [8] * 4


def test_a_process_alone_has_nothing_to_offload(program: Path) -> None:
    found = calls(report(program, "mixed", ranks=1))
    assert found == {"bcast": (0, {"alone": 20}), "barrier": (0, {"alone": 15}), "allreduce": (0, {"alone": 60})}


def test_one_sided_operations_go_on_in_an_offloaded_barrier(program: Path) -> None:
    assert calls(report(program, "progress", ranks=3))["barrier"][0] >= 3


def test_memory_that_others_write_is_seen_at_once(program: Path) -> None:
    status, out, err = run(program, "window", ranks=3)
    assert status == 0, err
    # Not after the third rank's sleep, a millisecond later.
    assert 0 < float(out.split()[1]) < 5000


def test_only_what_is_named_is_offloaded(program: Path) -> None:
    made = report(program, "mixed", ranks=2, offload="barrier")
    assert [each["name"] for each in made["offload"]] == ["barrier"]
    assert made["offload"][0]["offloaded_calls"] == 2 * 15


def test_two_runs_are_alike(program: Path) -> None:
    assert report(program, "mixed", "ahead", ranks=3) == report(program, "mixed", "ahead", ranks=3)


PYTHON = """
from mpi4py import MPI
import numpy

world = MPI.COMM_WORLD
for root in range(world.size):
    values = numpy.arange(5000, dtype="d") * (root + 1) if world.rank == root else numpy.zeros(5000)
    world.Bcast(values, root)
    assert (values == numpy.arange(5000) * (root + 1)).all()
assert world.allreduce(world.rank) == sum(range(world.size))
total = numpy.empty(100)
world.Allreduce(numpy.full(100, world.rank + 0.5), total)
assert (total == sum(rank + 0.5 for rank in range(world.size))).all()
# Objects have a length, which goes first.
assert world.bcast({"a": [1, 2]} if world.rank == 0 else None) == {"a": [1, 2]}
world.Barrier()
"""


def test_python_programs_are_seen(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PYTHON)
    made = nicety.run_processes(
        [sys.executable, tmp_path / "program.py"],
        ranks=3,
        nic="spin-integrated",
        offload=["bcast", "barrier", "allreduce=always"],
        to_stderr=True,
    )
    assert made["status"] == 0
    found = calls(dict(made))
    # allreduce of objects is MPI's reduce of pickled bytes, and a broadcast of these.
    assert found["bcast"][0] >= 3 * 5
    assert found["barrier"][0] >= 3
    assert found["allreduce"][0] >= 3


# Several tests compare the same run.
@cache
def times(
    program: Path, ranks: int, nic: str, offload: str | None = ALL, options: tuple[str, ...] = ()
) -> dict[str, float]:
    """Nanoseconds of a barrier and of broadcasts from the first start to the last end."""
    free = ("--clock-cost", "1ps", *options)
    status, out, err = run(program, "latency", ranks=ranks, nic=nic, offload=offload, options=free)
    assert status == 0, err
    lines = [line.split() for line in out.split("#")[0].splitlines()]
    return {name: float(value) for name, value in lines}


@pytest.mark.parametrize("nic", ["spin-discrete", "spin-integrated"])
def test_a_barrier_of_two_takes_what_its_steps_take(program: Path, nic: str) -> None:
    # Rank 0 is last: it posts its arrival to its own card, which matches and counts it. The release goes over the link
    # to rank 1. Its card matches and counts the release, and its host notices that. If rank 1 is last, its arrival goes
    # over the link as well.
    bus_ns = {"spin-discrete": 250, "spin-integrated": 50}[nic]
    post_ns = notice_ns = 65
    match_ns, link_ns = 30, 33.4
    least_ns = post_ns + bus_ns + match_ns + link_ns + match_ns + bus_ns + notice_ns
    # Two handlers, at most 100 cycles of 0.4 ns.
    found = times(program, 2, nic)["barrier"]
    assert least_ns < found < least_ns + link_ns + 40


@pytest.mark.parametrize("nic", ["spin-discrete", "spin-integrated"])
def test_a_broadcast_takes_what_the_use_case_measures(program: Path, nic: str) -> None:
    case = Broadcast(nodes=[4, 8], sizes=[8, 4096])
    model = nicety.run_usecase(case, nics=[nic], modes=["spin-stream"])
    for row in model["rows"]:
        found = times(program, row["nodes"], nic)["bcast8" if row["size_bytes"] == 8 else "bcast4096"]
        # The copy out of the slot, a cycle of 0.4 ns per 16 bytes; and of a short one into it.
        copied_ns = 102.4 if row["size_bytes"] == 4096 else 0.8
        # The use case has one root, so its handlers compute less, and there are none for leaves.
        assert 0 < found - row["latency_ns"] - copied_ns < 30


def test_cards_make_it_quicker(program: Path) -> None:
    slow, quick = times(program, 8, "spin-discrete", offload=None), times(program, 8, "spin-discrete")
    assert all(quick[name] < 0.7 * slow[name] for name in quick)


REDUCTIONS = """
#include <mpi.h>
#include <stdio.h>

int main(int argc, char **argv) {
    static double own[8192], all[8192];
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    const MPI_Datatype types[] = {MPI_DOUBLE, MPI_INT, MPI_CHAR};
    for (int type = 0; type < 3; type++)
        for (int bytes = 8; bytes <= 32768; bytes *= 4) {
            int size;
            MPI_Type_size(types[type], &size);
            MPI_Barrier(MPI_COMM_WORLD);
            double begin = MPI_Wtime();
            for (int i = 0; i < 3; i++)
                MPI_Allreduce(own, all, bytes / size, types[type], MPI_SUM, MPI_COMM_WORLD);
            MPI_Barrier(MPI_COMM_WORLD);
            if (rank == 0)
                printf("= %d-%d %.3f\\n", type, bytes, (MPI_Wtime() - begin) / 3 * 1e6);
        }
    MPI_Finalize();
    return 0;
}
"""


@pytest.fixture(scope="module")
def reductions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("reductions")
    (folder / "reductions.c").write_text(REDUCTIONS)
    subprocess.run([_mpicc("mpicc"), "-O1", "-o", folder / "reductions", folder / "reductions.c"], check=True)
    return folder / "reductions"


@pytest.mark.parametrize(("nic", "ranks"), [("spin-discrete", 8), ("spin-integrated", 3)])
def test_reductions_are_left_to_mpi_where_it_is_quicker(reductions: Path, nic: str, ranks: int) -> None:
    took: dict[str | None, dict[str, float]] = {}
    for offload in (None, "allreduce", "allreduce=always"):
        status, out, err = run(reductions, ranks=ranks, nic=nic, offload=offload)
        assert status == 0, err
        found = [line.split() for line in out.splitlines() if line.startswith("= ")]
        took[offload] = {name: float(value) for _, name, value in found}
        assert ("for which MPI is faster" in out) == (offload == "allreduce")
    # It includes a few looks at the queue, of 25 ns each, and reads of a clock.
    for name, mpi in took[None].items():
        assert took["allreduce"][name] < 1.05 * mpi + 0.15, name
    # The card is quicker for short ones, and its sum of doubles is in software.
    assert took["allreduce"]["0-8"] < 0.9 * took[None]["0-8"]
    assert took["allreduce=always"]["0-8192"] > 2 * took[None]["0-8192"]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (
            ["--nic", "ethernet-100g", "--offload", "bcast"],
            "--offload: ethernet-100g cannot run handlers for messages (nicety.h); cards that can are",
        ),
        (["--nic", "qnix", "--offload", "barrier"], "--offload: qnix cannot run handlers for messages"),
        (["--nic", "apenet-v5", "--offload", "barrier"], "--offload: apenet-v5 cannot run handlers for messages"),
        (["--nic", "nfp-4000", "--offload", "barrier"], "--offload: nfp-4000 cannot run handlers for messages"),
        (["--nic", "pspin", "--offload", "barrier"], "--offload: pspin cannot run handlers for messages"),
        (
            ["--nic", "spin-discrete", "--offload", "bcast,reduce"],
            '--offload: "reduce" cannot be offloaded; name one or several of bcast, barrier, allreduce, with commas',
        ),
        (
            ["--nic", "spin-discrete", "--offload", "bcast", "--goal", "program.goal"],
            "--goal: a schedule cannot have operations that cards execute by themselves",
        ),
        (
            ["--nic", "spin-discrete", "--set", "packet.payload=1000B", "--offload", "bcast"],
            "1000 bytes (packet.payload), and a number cannot be split between packets; set a multiple of 16",
        ),
        (
            ["--nic", "spin-discrete", "--offload", "bcast", "--ranks-per-node", "2"],
            "--ranks-per-node: cards execute operations by themselves for only one process of a host",
        ),
        (
            ["--nic", "spin-discrete", "--compare-offload"],
            "--compare-offload: nothing is offloaded; name the calls, as in --offload bcast,barrier",
        ),
        (
            ["--nic", "spin-discrete", "--offload", "bcast", "--compare-offload", "--trace", "both.pftrace"],
            "--trace: a timeline is of one run",
        ),
    ],
)
def test_impossible_offloads_are_refused(program: Path, tmp_path: Path, words: list[str], told: str) -> None:
    command = [*NICETY, "exec", "-n", "2", *words, "--", str(program), "barrier"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 2
    assert told in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    "words",
    [
        ["--nic", "qnix", "--offload", "barrier"],
        ["--nic", "spin-discrete", "--offload", "bcast,reduce"],
        ["--nic", "spin-discrete", "--offload", "bcast", "--goal", "program.goal"],
        ["--nic", "spin-discrete", "--set", "packet.payload=1000B", "--offload", "bcast"],
        ["--nic", "spin-discrete", "--offload", "bcast", "--ranks-per-node", "2"],
    ],
)
def test_a_comparison_is_refused_before_its_first_run(program: Path, tmp_path: Path, words: list[str]) -> None:
    command = [*NICETY, "exec", "-n", "2", *words, "--compare-offload", "--", str(program), "barrier"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("nicety: ")
    assert list(tmp_path.iterdir()) == []


def test_a_handler_that_is_stopped_ends_the_run(program: Path) -> None:
    status, _, err = run(program, "barrier", ranks=2, options=("--set", "hpu.cycle_limit=20"))
    assert status == 1
    assert "header handler stopped: still running at its limit of 20 cycles" in err
    assert "at collectives.c:" in err


def test_a_card_without_room_leaves_all_to_mpi(program: Path) -> None:
    status, out, err = run(program, "mixed", ranks=2, options=("--json", "--set", "limits.counters=8"))
    assert status == 0, err
    assert "--offload: rank 0: MPI executes all operations: PTL_NO_SPACE" in err
    assert calls(json.loads(out))["allreduce"] == (0, {"set-up": 120})


def test_less_card_memory_takes_shorter_vectors(program: Path) -> None:
    # 64 KiB of vectors do not fit beside the rest, but 8 KiB do.
    made = report(program, "allreduce", ranks=2, options=("--set", "hpu.memory=16KiB"))
    offloaded, passed = calls(made)["allreduce"]
    # Of 12,004 and 65,536 bytes.
    assert passed == {"length": 2 * (10 + 10)}
    assert offloaded > 0


COLUMNS = [
    "rank",
    "finish_ns",
    "offload_finish_ns",
    "speedup",
    "sends",
    "offload_sends",
    "sent_bytes",
    "offload_sent_bytes",
    "offloaded_calls",
    "fallback_calls",
]


def test_both_runs_are_in_one_table(program: Path, tmp_path: Path) -> None:
    table = tmp_path / "both.csv"
    made = report(program, "mixed", options=("--compare-offload", "--csv", str(table)))
    without, offload = made["without"], made["offload"]
    assert "offload" not in without
    assert sum(each["offloaded_calls"] for each in offload["offload"]) == 4 * (60 + 20 + 15)
    assert made["speedup"] == pytest.approx(without["max_finish_ns"] / offload["max_finish_ns"])
    rows = list(csv.DictReader(table.read_text().splitlines()))
    assert list(rows[0]) == COLUMNS == list(made["rows"][0])
    for row, kept, before, after in zip(made["rows"], rows, without["ranks"], offload["ranks"], strict=True):
        assert row["finish_ns"] == before["finish_ns"] == float(kept["finish_ns"])
        assert row["offload_finish_ns"] == after["finish_ns"]
        assert row["sends"] == before["sends"] > row["offload_sends"] == after["sends"]
        assert row["offloaded_calls"] == 60 + 20 + 15
    status, out, err = run(program, "mixed", options=("--compare-offload",))
    assert status == 0, err
    lines = out.splitlines()
    assert lines[:2] == ["# without offload", "# offload bcast, barrier, allreduce=always"]
    assert lines[5].split() == ["without", "offload", *["without", "offload"] * 2]
    last = next(line.split() for line in lines if line.startswith("last"))
    assert last == [
        "last",
        *(f"{made[name] / 1000:.3f}" for name in ("max_finish_ns", "offload_max_finish_ns")),
        last[3],
    ]
    assert last[3] == f"{made['speedup']:.3f}"


def test_a_program_that_fails_is_not_compared(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text("from mpi4py import MPI\nMPI.Finalize()\nraise SystemExit(3)\n")
    command = [*NICETY, "exec", "-n", "2", "--nic", "spin-discrete", "--offload", "bcast", "--compare-offload", "--"]
    command += [sys.executable, "program.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 1
    assert "without offload: the program ended with status 3" in done.stderr
