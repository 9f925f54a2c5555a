"""Commands that MPI starts several times concurrently: the same results, printed once."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip("mpi4py")

BIN = Path(sys.executable).parent
NICETY = [sys.executable, "-m", "nicety"]
UNMATCHED = "num_ranks 4\nrank 0 {\nrecv 9b from 3\n}\nrank 1 {\n}\nrank 2 {\n}\nrank 3 {\n}\n"


def run(folder: Path, *arguments: str, processes: int = 1) -> tuple[int, str, str]:
    """Status, stdout and stderr of a command in `processes` processes."""
    started = [] if processes == 1 else [str(BIN / "mpiexec"), "-n", str(processes)]
    done = subprocess.run(
        [*started, *NICETY, *arguments], cwd=folder, capture_output=True, text=True, timeout=240, check=False
    )
    return done.returncode, done.stdout, done.stderr


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("processes")
    (made / "unmatched.goal").write_text(UNMATCHED)
    assert run(made, "goal", "generate", "pairwise-alltoall", "--ranks", "16", "--size", "9000", "-o", "a.bin")[0] == 0
    return made


ON_CARDS = ("--nic", "spin-discrete", "--topology", "fat-tree:4")


@pytest.mark.parametrize(
    "command",
    [
        ("goal", "run", "a.bin"),
        ("goal", "run", "a.bin", *ON_CARDS, "--breakdown"),
        ("goal", "run", "a.bin", *ON_CARDS, "--mode", "card"),
        ("goal", "compare", "a.bin", "--nic", "spin-discrete,apenet-v5", "--network", "loggops"),
        ("bench", "allreduce", *ON_CARDS, "--nodes", "16", "--sizes", "1Ki"),
    ],
    ids=" ".join,
)
def test_a_command_says_the_same_in_several_processes(folder: Path, command: tuple[str, ...]) -> None:
    one = run(folder, *command, "--json")
    assert one[0] == 0
    assert run(folder, *command, "--json", processes=2 if "--mode" in command else 4) == one


def test_files_are_written_once(folder: Path) -> None:
    written = run(folder, "goal", "run", "a.bin", "--csv", "a.csv", processes=3)
    assert (written[0], written[1].count("last done")) == (0, 1)
    assert len((folder / "a.csv").read_text().splitlines()) == 17


@pytest.mark.parametrize(
    ("command", "status", "said"),
    [
        (("goal", "run", "none.goal"), 2, "nicety: none.goal: cannot read it"),
        (("goal", "run", "unmatched.goal"), 1, "nicety: unmatched.goal: the schedule cannot finish"),
        (("goal", "run", "unmatched.goal", "--nic", "qnix"), 1, "nicety: unmatched.goal: the schedule cannot finish"),
        (("goal", "run", "a.bin", "--threads", "2"), 2, "nicety: --threads: not possible in several processes"),
        (("goal", "run", "a.bin", *ON_CARDS, "--capture", "a.pcapng"), 2, "nicety: --capture: not possible in several"),
    ],
    ids=["missing", "unmatched", "unmatched on cards", "threads", "capture"],
)
def test_an_error_is_told_once(folder: Path, command: tuple[str, ...], status: int, said: str) -> None:
    found, out, told = run(folder, *command, processes=3)
    assert (found, out) == (status, "")
    assert told.startswith(said)
    assert told.count("nicety:") == 1


def test_a_failed_run_has_one_document(folder: Path) -> None:
    one = run(folder, "goal", "run", "unmatched.goal", "--json")
    assert run(folder, "goal", "run", "unmatched.goal", "--json", processes=2) == one
    assert json.loads(one[1])["error"]["kind"] == "Deadlock"


def test_the_error_of_any_process_is_told(folder: Path) -> None:
    """A machine may have other files than the first."""
    here = folder / "elsewhere"
    here.mkdir(exist_ok=True)
    both = [*NICETY, "goal", "run", "a.bin"]
    command = [BIN / "mpiexec", "-n", "1", *both, ":", "-n", "1", "-wdir", str(here), *both]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=240, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "nicety: a.bin: cannot read it (No such file or directory)\n"


def test_other_files_are_refused(folder: Path) -> None:
    other = folder / "other"
    other.mkdir(exist_ok=True)
    assert run(other, "goal", "generate", "linear-alltoall", "--ranks", "16", "--size", "9000", "-o", "a.bin")[0] == 0
    both = [*NICETY, "goal", "run", "a.bin", *ON_CARDS]
    command = [BIN / "mpiexec", "-n", "1", *both, ":", "-n", "1", "-wdir", str(other), *both]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=240, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("nicety: process 1 has another schedule or card than process 0")


def test_one_process_ends_between_the_points_of_others(folder: Path) -> None:
    """Only the first process has the card."""
    here = folder / "elsewhere"
    here.mkdir(exist_ok=True)
    (folder / "my.toml").write_text('extends = "spin-discrete"\n')
    both = [*NICETY, "bench", "allreduce", "--nic", "./my.toml", "--nodes", "4", "--sizes", "8,16"]
    command = [BIN / "mpiexec", "-n", "1", *both, ":", "-n", "1", "-wdir", str(here), *both]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=240, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert "my.toml" in done.stderr


def test_only_the_first_process_needs_folders_for_files(folder: Path) -> None:
    here = folder / "elsewhere"
    here.mkdir(exist_ok=True)
    (folder / "out").mkdir(exist_ok=True)
    (here / "a.bin").write_bytes((folder / "a.bin").read_bytes())
    both = [*NICETY, "goal", "run", "a.bin", "--csv", "out/a.csv"]
    command = [BIN / "mpiexec", "-n", "1", *both, ":", "-n", "1", "-wdir", str(here), *both]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=240, check=False)
    (here / "a.bin").unlink()
    assert done.returncode == 0, done.stderr
    assert (folder / "out/a.csv").exists()


def test_hosts_are_really_spread(folder: Path) -> None:
    """Each process learns of the others in many rounds."""
    script = (
        "import atexit, os, pathlib, sys\n"
        "from nicety.cli.bench import processes\n"
        "call, rounds = processes._Exchange.__call__, []\n"
        "processes._Exchange.__call__ = lambda own, given: rounds.append(sum(map(len, given))) or call(own, given)\n"
        "counts = pathlib.Path('rounds.' + os.environ['PMI_RANK'])\n"
        "atexit.register(lambda: counts.write_text(f'{len(rounds)} {sum(rounds)}'))\n"
        "from nicety.cli import main\n"
        "sys.exit(main())\n"
    )
    (folder / "counts.py").write_text(script)
    for command in (["goal", "run", "a.bin"], ["goal", "run", "a.bin", *ON_CARDS]):
        done = subprocess.run(
            [BIN / "mpiexec", "-n", "2", sys.executable, "counts.py", *command],
            cwd=folder, capture_output=True, text=True, timeout=240, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        for rank in range(2):
            rounds, sent = map(int, (folder / f"rounds.{rank}").read_text().split())
            assert rounds > 10
            assert sent > 1000


def test_processes_of_other_commands_are_refused(folder: Path) -> None:
    one, other = ([*NICETY, "goal", "run", file] for file in ("a.bin", "unmatched.goal"))
    command = [BIN / "mpiexec", "-n", "1", *one, ":", "-n", "1", *other]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=240, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("nicety: process 1 runs another command or version of nicety than process 0")


def test_a_command_that_is_not_spread_says_so(folder: Path) -> None:
    status, out, told = run(folder, "bench", "latency", "--nic", "spin-discrete", "--sizes", "8", processes=2)
    assert (status, out.count("693.685")) == (0, 1)
    assert told == "nicety: this benchmark is not spread over processes; 1 of 2 have nothing to do\n"


@pytest.mark.parametrize(
    "number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL], ids=["interrupted", "terminated", "killed"]
)
def test_a_process_that_ends_early_ends_all(folder: Path, number: signal.Signals) -> None:
    long = folder / "long.bin"
    if not long.exists():
        made = run(folder, "goal", "generate", "linear-alltoall", "--ranks", "128", "--size", "1Mi", "-o", "long.bin")
        assert made[0] == 0
    script = (
        "import os, sys\n"
        "from nicety.cli import main\n"
        "from nicety.cli.bench import processes\n"
        "call, rounds = processes._Exchange.__call__, []\n"
        "def counted(own, given):\n"
        "    rounds.append(1)\n"
        "    if len(rounds) == 100 and os.environ['PMI_RANK'] == '1':\n"
        f"        os.kill(os.getpid(), {int(number)})\n"
        "    return call(own, given)\n"
        "processes._Exchange.__call__ = counted\n"
        "sys.exit(main())\n"
    )
    (folder / "ends.py").write_text(script)
    begun = time.monotonic()
    command = [BIN / "mpiexec", "-n", "2", sys.executable, "ends.py", "goal", "run", "long.bin", *ON_CARDS]
    command[command.index("fat-tree:4")] = "fat-tree:8"
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=240, check=False, env=dict(os.environ)
    )
    assert done.returncode != 0
    assert "last done" not in done.stdout
    if number == signal.SIGKILL:
        assert "KILLED" in done.stdout.upper()
    else:
        # Another process ends by itself, and reports it.
        assert (done.returncode, done.stderr.count("nicety: interrupted")) == (130, 1)
    assert "Traceback" not in done.stderr
    # Far less than the time of the run.
    assert time.monotonic() - begun < 120
