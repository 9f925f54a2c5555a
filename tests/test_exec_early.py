"""Processes that end before they open the network: they are named, and nobody waits for them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import nicety
from test_exec import HEAD, NICETY

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="programs run on simulated hosts only under Linux")

SOURCE = Path(__file__).parent / "programs" / "early.c"


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return nicety.compile_host([SOURCE], output=tmp_path_factory.mktemp("early") / "early")


def run(*words: str) -> tuple[int, str]:
    """Status and stderr."""
    command = [*NICETY, "exec", "-n", "2", "--nic", "spin-discrete", *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    return done.returncode, done.stderr


BEFORE = "before it had opened the network (by MPI_Init, PtlInit, or nicety.Main in Go); its output may say why"


@pytest.mark.parametrize(
    ("does", "told"), [("0", " with status 0"), ("5", " with status 5"), ("crash", ", by signal 6 (SIGABRT),")]
)
def test_without_a_launcher(program: Path, does: str, told: str) -> None:
    status, err = run("--launcher", "none", "--", str(program), does)
    assert (status, err.splitlines()[-1]) == (1, f"nicety: the process of rank 1 ended{told} {BEFORE}")


@pytest.mark.parametrize(
    ("does", "told"),
    [
        ("os._exit(0)", " with status 0"),
        ("sys.exit(5)", " with status 5"),
        ("os.kill(os.getpid(), signal.SIGSEGV)", ", by signal 11 (SIGSEGV),"),
    ],
)
def test_under_a_launcher(tmp_path: Path, does: str, told: str) -> None:
    pytest.importorskip("mpi4py")
    early = f"import os, signal, sys\nif os.environ['PMI_RANK'] == '1': {does}\n"
    (tmp_path / "program.py").write_text(f"{early}{HEAD}world.Barrier()\n")
    status, err = run("--", sys.executable, str(tmp_path / "program.py"))
    last = err.splitlines()[-1]
    # Whether the system reports a signal depends on its version.
    assert last in {f"nicety: the process of rank 1 ended{each} {BEFORE}" for each in (told, told.partition(",")[0])}
    assert status == 1


@pytest.mark.parametrize(
    "script",
    [
        # A helper before the program, and a shell that stays, or becomes the program.
        "/bin/true; {program} go; exit $?",
        "/bin/true; exec {program} go",
        # The shell of rank 1 is gone before its program takes part.
        "if [ $NICETY_RANK = 0 ]; then exec {program} go; fi; (sleep 0.3; exec {program} go) & exit 0",
    ],
)
def test_the_first_process_of_a_rank_need_not_be_the_one_that_takes_part(program: Path, script: str) -> None:
    status, err = run("--launcher", "none", "--", "sh", "-c", script.format(program=program))
    assert status == 0, err


def test_the_end_of_the_later_process_of_a_rank_is_reported(program: Path) -> None:
    script = "if [ $NICETY_RANK = 0 ]; then exec {program} 5; fi; (sleep 0.3; exec {program} 5) & exit 0"
    status, err = run("--launcher", "none", "--", "sh", "-c", script.format(program=program))
    assert (status, err.splitlines()[-1]) == (1, f"nicety: the process of rank 1 ended with status 5 {BEFORE}")


def test_a_started_process_may_leave_the_program_to_another(tmp_path: Path) -> None:
    pytest.importorskip("mpi4py")
    (tmp_path / "program.py").write_text(f"{HEAD}world.Barrier()\n")
    # The shell, which is noted first, becomes another program, and has ended when Python starts.
    script = '(sleep 0.3; exec "$@") & exec sleep 0.1'
    status, err = run("--", "sh", "-c", script, "sh", sys.executable, str(tmp_path / "program.py"))
    assert status == 0, err
