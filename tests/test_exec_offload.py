"""Collective operations of MPI that cards execute: values, times, what is left to MPI, and what is refused."""

from __future__ import annotations

import csv
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import nicety
from nicety.build.compiler import library_source

pytest.importorskip("mpi4py")
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="programs run on simulated hosts under Linux alone")

NICETY = [sys.executable, "-m", "nicety"]
SOURCE = Path(__file__).parent / "programs" / "collectives.c"
ALL = "bcast,barrier,allreduce"


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
    return json.loads(out)


def calls(made: dict[str, Any]) -> dict[str, tuple[int, dict[str, int]]]:
    """Calls that were offloaded, and those left to MPI by reason, by operation."""
    return {
        each["name"]: (each["offloaded_calls"], {passed["reason"]: passed["calls"] for passed in each["passed"]})
        for each in made["offload"]
    }


@pytest.mark.parametrize("ranks", [2, 3, 4, 8])
def test_values_are_those_of_mpi(program: Path, ranks: int) -> None:
    made = report(program, "bcast", "ahead", "types", "allreduce", "mixed", "barrier", ranks=ranks)
    found = calls(made)
    assert all(offloaded > 0 for offloaded, _ in found.values())
    # The broadcast of no bytes alone.
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
    assert [row["offload"]["passed_calls"] for row in made["ranks"]] == [8] * 4


def test_a_process_alone_has_nothing_to_offload(program: Path) -> None:
    found = calls(report(program, "mixed", ranks=1))
    assert found == {"bcast": (0, {"alone": 20}), "barrier": (0, {"alone": 15}), "allreduce": (0, {"alone": 60})}


def test_one_sided_operations_go_on_in_an_offloaded_barrier(program: Path) -> None:
    assert calls(report(program, "progress", ranks=3))["barrier"][0] >= 3


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
        offload=["bcast", "barrier", "allreduce"],
        to_stderr=True,
    )
    assert made["status"] == 0
    found = calls(dict(made))
    # allreduce of objects is MPI's reduce of pickled bytes, and a broadcast of these.
    assert found["bcast"][0] >= 3 * 5
    assert found["barrier"][0] >= 3
    assert found["allreduce"][0] >= 3


def times(program: Path, ranks: int, nic: str, offload: str | None = ALL, options: tuple[str, ...] = ()) -> dict[str, float]:
    """Nanoseconds of a barrier and of broadcasts from the first start to the last end."""
    free = ("--clock-cost", "1ps", *options)
    status, out, err = run(program, "latency", ranks=ranks, nic=nic, offload=offload, options=free)
    assert status == 0, err
    lines = [line.split() for line in out.split("#")[0].splitlines()]
    return {name: float(value) for name, value in lines}
