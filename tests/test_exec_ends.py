"""Programs that cannot run, and processes that end badly: their reports, and that nothing is left."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import nicety
from test_exec import HEAD, NICETY, run

pytest.importorskip("mpi4py")
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="programs run on simulated hosts only under Linux")


def left_over(folder: Path) -> list[str]:
    """Processes of programs in this folder."""
    listed = subprocess.run(["ps", "-eww", "-o", "args"], capture_output=True, text=True, check=True).stdout
    return [line for line in listed.splitlines() if str(folder) in line]


# Named shared memory of a process, and its launcher's file, which it has reported to the simulator.
NOTE = """
with open("/proc/self/maps") as maps, open(f"shared.{rank}", "w") as file:
    file.writelines(line.split()[5] + "\\n" for line in maps if "/dev/shm/" in line)
    import os, re
    with open(os.environ["NICETY_EXEC"], "rb") as pages:
        names = re.findall(rb"/tmp/hydra_hwloc_xmlfile_\\w+", pages.read())
        assert names and all(map(os.path.exists, names))
        file.writelines(name.decode() + "\\n" for name in names)
"""


@pytest.fixture(autouse=True)
def nothing_is_left(tmp_path: Path) -> Iterator[None]:
    yield
    assert not left_over(tmp_path)
    names = {name for file in tmp_path.glob("shared.*") for name in file.read_text().split()}
    assert not [name for name in names if Path(name).exists()]


# The end of a process, if its parent has noted it before.
SIGNAL = ", by signal 11 (SIGSEGV)," if tuple(map(int, os.uname().release.split(".")[:2])) >= (6, 15) else ""


FATAL = "world.Set_errhandler(MPI.ERRORS_ARE_FATAL)\nball = numpy.zeros(8)\n"
ERROR = "MPI ended all processes after an error of rank 1; the output of the rank says why"


@pytest.mark.parametrize(
    ("program", "status", "told"),
    [
        # A crash, an abort, errors of MPI, and ends without MPI_Finalize.
        ("if rank == 1: os.kill(os.getpid(), signal.SIGSEGV)", 1, f"the process of rank 1 ended{SIGNAL}"),
        ("if rank == 1: world.Abort(7)", 1, "rank 1 called MPI_Abort with code 7, which ends all processes"),
        ("world.Abort(0)", 1, "called MPI_Abort with code 0"),
        (f"{FATAL}if rank == 1: world.Send(numpy.zeros(1), 5)", 1, f"nicety: {ERROR}"),
        (f"{FATAL}world.Send(ball, 1) if rank == 0 else world.Recv(ball[:1], 0)", 1, f"nicety: {ERROR}"),
        ("if rank == 1: os._exit(3)", 1, "rank 1 ended with status 3 before it had closed the network"),
        ("os._exit(0)", 1, "ended with status 0 before it had closed the network"),
        ("raise SystemError('of the program')", 1, "of the program"),
    ],
)
def test_ends_in_the_middle(tmp_path: Path, program: str, status: int, told: str) -> None:
    found, _, err = run(tmp_path, f"import os, signal\n{NOTE}world.Barrier()\n{program}\nworld.Barrier()\n")
    assert found == status, err
    assert told in err


@pytest.mark.parametrize("number", [signal.SIGSEGV, signal.SIGKILL])
def test_a_process_that_dies_behind_the_network_is_named(tmp_path: Path, number: signal.Signals) -> None:
    program = f"import os, time\nworld.Barrier()\nMPI.Finalize()\nif rank == 1: os.kill(os.getpid(), {int(number)})\n"
    status, out, err = run(tmp_path, program)
    # MPICH's launcher handles signals in its own way.
    assert status != 0
    assert "finish" in out
    if SIGNAL:
        # The launcher ends rank 0 by SIGKILL as well.
        who = "process of rank 1" if number == signal.SIGSEGV else "(process of rank|processes of ranks 0,) 1"
        told = rf"the {who} ended, by signal {int(number)} \({number.name}\), after the network was closed"
        assert re.search(told, err.splitlines()[-1]), err


@pytest.mark.parametrize(("failed", "who"), [("rank == 1", "process of rank 1"), ("True", "processes of ranks 0, 1")])
def test_a_process_that_fails_behind_the_network_is_named(tmp_path: Path, failed: str, who: str) -> None:
    status, out, err = run(tmp_path, f"import sys\nworld.Barrier()\nMPI.Finalize()\nsys.exit(5 if {failed} else 0)\n")
    assert status == 5, err
    assert "finish" in out
    assert f"nicety: the {who} ended with status 5, after the network was closed" in err.splitlines()


def test_a_fork_may_not_use_the_network(tmp_path: Path) -> None:
    program = """
import os, sys
world.Barrier()
if rank == 1:
    world.Set_errhandler(MPI.ERRORS_RETURN)
    child = os.fork()
    if child == 0:
        try:
            world.Send(numpy.zeros(4, dtype="b"), 0)
            world.Recv(numpy.zeros(4, dtype="b"), 0)
        except MPI.Exception:
            os._exit(5)
        os._exit(6)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 5
world.Barrier()
"""
    status, _, err = run(tmp_path, program)
    assert status == 0, err
    assert "is a fork of rank 1; only one process of a rank can use the network" in err


def test_a_fork_is_not_blamed_for_another_rank_that_crashes_later(tmp_path: Path) -> None:
    program = """
import os, signal
world.Barrier()
if rank == 1 and os.fork() == 0:
    try:
        world.Barrier()
    except MPI.Exception:
        os._exit(0)
world.Barrier()
if rank == 1: os.wait()
world.Barrier()
if rank == 0: os.kill(os.getpid(), signal.SIGSEGV)
world.Barrier()
"""
    status, _, err = run(tmp_path, program)
    assert status == 1
    assert err.splitlines()[-1].startswith(f"nicety: the process of rank 0 ended{SIGNAL}"), err


def test_a_fork_that_ends_the_run_by_its_use_of_the_network_is_named(tmp_path: Path) -> None:
    program = """
import os
world.Set_errhandler(MPI.ERRORS_ARE_FATAL)
world.Barrier()
if rank == 1 and os.fork() == 0: world.Barrier()
world.Barrier()
"""
    status, _, err = run(tmp_path, program)
    assert status == 1
    last = err.splitlines()[-1]
    assert re.match(r"nicety: process \d+, a fork of rank 1, tried to open the network", last), err


def test_a_stopped_process_is_noticed(tmp_path: Path) -> None:
    program = "import os, signal\nworld.Barrier()\nif rank: os.kill(os.getpid(), signal.SIGSTOP)\nworld.Barrier()\n"
    status, _, err = run(tmp_path, program)
    assert status == 1
    assert "the process of rank 1 has been stopped for 5 s" in err


def test_a_process_that_is_continued_goes_on(tmp_path: Path) -> None:
    program = """
import os, signal, subprocess
world.Barrier()
if rank:
    subprocess.Popen(["sh", "-c", f"sleep 2; kill -CONT {os.getpid()}"])
    os.kill(os.getpid(), signal.SIGSTOP)
world.Barrier()
"""
    status, _, err = run(tmp_path, program)
    assert status == 0, err


def test_an_mpi_on_another_network_is_refused(tmp_path: Path) -> None:
    for name, value in (("MPIR_CVAR_CH4_NETMOD", "ucx"), ("FI_PROVIDER", "tcp")):
        (tmp_path / "program.py").write_text(f"import os\nos.environ[{name!r}] = {value!r}\n{HEAD}world.Barrier()\n")
        command = [*NICETY, "exec", "-n", "2", "--nic", "spin-discrete", "--", sys.executable, "program.py"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=240, check=False)
        assert done.returncode == 2, (name, done.stderr)
        assert "none of its processes has opened an endpoint of libfabric" in done.stderr


def test_more_processes_than_hosts_are_refused(tmp_path: Path) -> None:
    program = (
        "import sys\nif rank == 1: MPI.COMM_SELF.Spawn(sys.executable, ['program.py'], maxprocs=3)\nworld.Barrier()\n"
    )
    status, _, err = run(tmp_path, program)
    assert status == 1, err
    assert "rank 1 calls MPI_Comm_spawn, but processes that it starts have no host" in err
    words = ["--launcher", "none", "--", "sh", "-c", "NICETY_RANK=2 /bin/true"]
    command = [*NICETY, "exec", "-n", "2", "--nic", "spin-discrete", *words]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 2, done.stderr
    assert (
        "rank 2 has no host: the run has 2 processes; give nicety exec -n the number that the program starts"
        in done.stderr
    )


def test_files_that_are_no_programs_are_refused(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("no program\n")
    (tmp_path / "script").write_text("#!/nowhere/python\n")
    (tmp_path / "script").chmod(0o755)
    (tmp_path / "mine.py").write_text("")
    (tmp_path / "folder").mkdir()
    for name, told in (
        ("data", "./data: it is a file that may not be executed; chmod +x ./data\n"),
        ("mine.py", "chmod +x ./mine.py, or run it by Python, as python ./mine.py"),
        ("folder", "it is a folder; name a program in it"),
        ("gone", "no such program"),
        ("script", "script"),
    ):
        command = [*NICETY, "exec", "--nic", "spin-discrete", "--launcher", "none", "--", f"./{name}"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 2, done.stderr
        assert told in done.stderr
        assert "Traceback" not in done.stderr


def test_programs_for_others_and_cut_ones_are_refused(tmp_path: Path) -> None:
    program = Path("/bin/true").read_bytes()
    short, order = "the program file is truncated or damaged", "big" if program[5] == 2 else "little"
    this = re.escape(os.uname().machine.replace("_", "-").replace("aarch", "AArch"))
    for contents, told in (
        (program[:32] + b"\xff" * 32 + program[64:], short),
        (program[:32] + b"\xff" * 8 + bytes(24) + program[64:], "it is linked statically"),
        *((program[:size], short) for size in (4, 5, 6, 19, 20, 62, 63, 64, 500, len(program) // 2)),
        (
            program[:4] + b"\1" + program[5:],
            rf"the program is for 32-bit {this}, but this machine is {this}; compile it for this machine",
        ),
        (program[:18] + (3).to_bytes(2, order) + program[20:], rf"the program is for x86, but this machine is {this};"),
    ):
        (tmp_path / "program").write_bytes(contents)
        (tmp_path / "program").chmod(0o755)
        with pytest.raises(nicety.InputError, match=rf"^{re.escape(str(tmp_path))}/program: {told}"):
            nicety.run_processes([str(tmp_path / "program")], nic="spin-discrete", launcher="none")


def test_a_program_of_the_path_is_no_file_here(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("#!/bin/sh\n")
    command = [*NICETY, "exec", "--nic", "spin-discrete", "--", "mine"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "mine: there is no such program on the path; for the file here write ./mine" in done.stderr


def test_a_launcher_is_no_program(tmp_path: Path) -> None:
    (tmp_path / "orterun").write_text("#!/bin/sh\nsleep 60\n")
    (tmp_path / "orterun").chmod(0o755)
    (tmp_path / "mine").symlink_to("orterun")
    (tmp_path / "mpiexec.hydra").symlink_to("orterun")
    for name in ("orterun", "mine", "mpiexec.hydra"):
        command = [*NICETY, "exec", "-n", "3", "--nic", "spin-discrete", "--", f"./{name}", "-n", "3", "./program"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 2
        assert f"./{name}: this launcher starts the processes of another program, as nicety exec does" in done.stderr


def test_options_are_named_as_they_are_written(tmp_path: Path) -> None:
    for options, told in (
        (["--clock-cost", "3"], '--clock-cost "3": a time needs a unit'),
        (["--poll-cost", "0ns"], "--poll-cost: virtual time would stand still"),
        (["--compute", "x"], '--compute "x": write none, measured, or a factor'),
        (["--goal", "gone/x.goal"], "--goal gone/x.goal: there is no folder gone"),
        (["--ranks-per-node", "3"], "--ranks-per-node 3: the program has 1 processes"),
        (["--launcher", "x"], "--launcher is auto, mpich, openmpi or none, not x"),
        (["-n", "2000"], "--ranks is a whole number from 1 to 1024, not 2000"),
    ):
        command = [*NICETY, "exec", "--nic", "spin-discrete", *options, "--", "true"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
        assert (done.returncode, done.stderr.split(told)[0]) == (2, "nicety: "), done.stderr
    with pytest.raises(nicety.InputError, match=r'^clock_cost "3": a time needs a unit'):
        nicety.run_processes(["true"], nic="spin-discrete", clock_cost="3")


def test_a_program_that_fails_before_the_network_is_told_of_first(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text("raise SystemError('of the program')\n")
    command = [*NICETY, "exec", "-n", "2", "--nic", "spin-discrete", "--", sys.executable, "program.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2
    told = done.stderr.splitlines()[-1]
    assert told.startswith("nicety: the program ended with exit status: 1; its output, or the launcher's, may")
    assert told.endswith("; none of its processes has opened an endpoint of libfabric")


def test_a_message_that_is_too_long_for_the_card_is_told(tmp_path: Path) -> None:
    program = "ball = numpy.zeros(3 << 20, dtype='b')\nworld.Send(ball, 1) if rank == 0 else world.Recv(ball, 0)\n"
    status, _, err = run(tmp_path, program, nic="qnix")
    assert status == 2
    told = "a message of 3145732 bytes; the maximum is 2097152: send several messages, or raise limits.message"
    assert re.search(rf"rank [01]: {told}", err), err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupted_run_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    places = tmp_path / "temporary"
    places.mkdir()
    monkeypatch.setenv("TMPDIR", str(places))
    (tmp_path / "program.py").write_text(
        HEAD + NOTE + "open(f'started.{rank}', 'w').close()\nwhile True: world.Barrier()\n"
    )
    command = [*NICETY, "exec", "-n", "2", "--nic", "spin-discrete", "--", sys.executable, str(tmp_path / "program.py")]
    # The test runner may ignore the signal, as nohup does, and child processes inherit that.
    heed = f"import os, signal, sys; signal.signal({int(number)}, signal.SIG_DFL); os.execv(sys.argv[1], sys.argv[1:])"
    command = [sys.executable, "-c", heed, *command]
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as running:
        until = time.monotonic() + 60
        while not (tmp_path / "started.1").exists() and time.monotonic() < until:
            time.sleep(0.1)
        were_there = left_over(tmp_path)
        os.kill(running.pid, number)
        try:
            _, err = running.communicate(timeout=60)
        finally:
            running.kill()
    assert were_there
    assert running.returncode == 128 + number, err
    assert not left_over(tmp_path)
    assert not list(places.iterdir())
