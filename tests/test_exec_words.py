"""The last words of programs and of their MPI, and processes that a run must withstand."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from test_exec import HEAD, NICETY
from test_exec_ends import SIGNAL, left_over

pytest.importorskip("mpi4py")
MPICC = shutil.which("mpicc", path=Path(sys.executable).parent)
pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or MPICC is None, reason="programs of MPICH run on simulated hosts only under Linux"
)
PROGRAMS = Path(__file__).parent / "programs"


def compiled(folder: Path, name: str) -> Path:
    subprocess.run([str(MPICC), "-O1", "-o", folder / name, PROGRAMS / f"{name}.c"], check=True)
    return folder / name


@pytest.fixture(scope="module")
def ends(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(tmp_path_factory.mktemp("ends"), "ends")


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(tmp_path_factory.mktemp("many"), "many")


def run(*words: object, nic: str = "spin-discrete", ranks: int = 2, options: tuple[str, ...] = ()) -> tuple[int, str]:
    """Status, and all output in its order."""
    command = [*NICETY, "exec", "-n", str(ranks), "--nic", nic, *options, "--", *map(str, words)]
    done = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=240,
        check=False,
    )
    return done.returncode, done.stdout


KINDS = {
    "abort": (r"MPI_Abort\(MPI_COMM_WORLD, 7\)", "rank 1 called MPI_Abort with code 7, which ends all processes"),
    "error": (r"Invalid rank has value 99", "MPI ended all processes after an error of rank 1"),
    "exit": ("", "the process of rank 1 ended with status 3 before it had closed the network"),
    "crash": ("", f"the process of rank 1 ended{SIGNAL} before it had closed the network"),
    "killed": ("", f"the process of rank 1 ended{SIGNAL.replace('11 (SIGSEGV)', '9 (SIGKILL)')} before it had closed"),
    "waits": ("", "deadlock at "),
}
"""Words of MPI, and nicety's sentence, by the end of a program."""


def check_words(ends: Path, how: str, *options: str) -> None:
    status, printed = run(ends, how, options=("--patience", "2000", *options))
    of_mpi, sentence = KINDS[how]
    assert status == 1, printed
    told = printed.find(f"nicety: {sentence}")
    assert told >= 0, printed
    # MPICH has stdout unbuffered, so puts writes the end of a line by itself, and another stream may come between.
    for words in ("last words of rank 1", "last words, not flushed"):
        assert 0 <= printed.find(words) < told, printed
    found = re.search(of_mpi, printed)
    assert found, printed
    assert found.start() < told, printed
    # The launcher's banner is after that, if at all. Nothing reports the end that nicety itself has requested.
    assert printed.find("BAD TERMINATION") == -1 or printed.find("BAD TERMINATION") > told
    assert how != "waits" or "BAD TERMINATION" not in printed


@pytest.mark.parametrize("how", KINDS)
def test_last_words_are_there_and_come_before_the_sentence(ends: Path, how: str) -> None:
    for _ in range(3):
        check_words(ends, how)


@pytest.mark.soak
@pytest.mark.parametrize("how", KINDS)
def test_last_words_are_never_lost(ends: Path, how: str) -> None:
    for _ in range(40):
        check_words(ends, how)


def test_with_json_all_that_is_printed_goes_to_stderr(ends: Path) -> None:
    command = [*NICETY, "exec", "-n", "2", "--nic", "spin-discrete", "--json", "--", str(ends), "crash"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 1
    assert done.stdout.startswith("{")
    assert "last words" not in done.stdout
    assert "BAD TERMINATION" not in done.stdout
    assert 0 <= done.stderr.find("last words, not flushed") < done.stderr.find("nicety: the process of rank 1 ended")


def test_output_redirected_by_a_shell_stays_there(ends: Path, tmp_path: Path) -> None:
    status, printed = run("sh", "-c", f"echo of the shell; {ends} none > {tmp_path}/out.$PMI_RANK 2>&1")
    assert status == 0, printed
    assert printed.count("of the shell\n") == 2
    assert "last words" not in printed
    assert "last words of rank 1\n" in (tmp_path / "out.1").read_text()


def test_a_long_output_is_whole(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(f"{HEAD}print(('%06d' % rank) * 500_000)\nworld.Barrier()\n")
    status, printed = run(sys.executable, tmp_path / "program.py")
    assert status == 0
    assert sorted(line[:6] for line in printed.splitlines() if len(line) == 3_000_000) == ["000000", "000001"]


@pytest.mark.parametrize("value", [0, 255, -3])
@pytest.mark.parametrize("how", ["over", "over-computes", "over-exits", "over-pauses"])
def test_a_process_that_writes_over_what_it_shares_is_named(ends: Path, how: str, value: int) -> None:
    rank = value % 2
    before = set(Path("/dev/shm").iterdir())
    status, printed = run(ends, how, rank, value)
    assert status == 1, printed
    assert f"nicety: the process of rank {rank} has overwritten memory that it shares with the simulation" in printed
    assert not left_over(ends.parent)
    # Other runs on this machine have their own shared memory.
    assert not [path for path in set(Path("/dev/shm").iterdir()) - before if is_without_processes(path)]


def is_without_processes(shared: Path) -> bool:
    """Whether no process has this shared memory."""
    for path in Path("/proc").glob("[0-9]*/maps"):
        try:
            if str(shared) in path.read_text():
                return False
        except OSError:
            continue
    return shared.exists()


def test_a_process_does_not_have_the_pages_of_others(tmp_path: Path) -> None:
    program = """
rights = {}
for line in open("/proc/self/maps"):
    if "memfd:nicety" in line:
        start, end = (int(each, 16) for each in line.split()[0].split("-"))
        rights[line.split()[1]] = rights.get(line.split()[1], 0) + (end - start) // 4096
assert rights == {"r--s": 1, "rw-s": 5}, rights
world.Barrier()
"""
    (tmp_path / "program.py").write_text(HEAD + program)
    status, printed = run(sys.executable, tmp_path / "program.py", ranks=3)
    assert status == 0, printed


def test_a_process_that_writes_over_all_by_the_file_is_named(tmp_path: Path) -> None:
    program = """
import os
world.Barrier()
if rank == 1:
    with open(os.environ["NICETY_EXEC"], "r+b") as pages:
        pages.write(b"x" * 4096 * 10)
world.Barrier()
"""
    (tmp_path / "program.py").write_text(HEAD + program)
    status, printed = run(sys.executable, tmp_path / "program.py")
    assert status == 1
    assert "nicety: the process of rank 1 has overwritten memory that it shares with the simulation" in printed


@pytest.mark.parametrize(
    ("ends_by", "status"), [("pass", 0), ("if rank == 0: world.Abort(3)", 1), ("world.recv(source=1 - rank)", 1)]
)
def test_a_process_in_a_session_of_its_own_ends_with_the_run(tmp_path: Path, ends_by: str, status: int) -> None:
    program = f"""
import os, sys
world.Barrier()
if rank == 1 and os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.execv(sys.executable, [sys.executable, "-c", "import time; time.sleep(600) # {tmp_path}"])
    os._exit(0)
world.Barrier()
{ends_by}
"""
    (tmp_path / "program.py").write_text(HEAD + program)
    found, printed = run(sys.executable, tmp_path / "program.py", options=("--patience", "2000"))
    assert found == status, printed
    assert not left_over(tmp_path)


def test_a_shell_goes_on_behind_its_program(ends: Path) -> None:
    status, printed = run("sh", "-c", f"{ends} none; sleep 1; echo behind $PMI_RANK")
    assert status == 0, printed
    assert "behind 0" in printed
    assert "behind 1" in printed


# spin-discrete has 4096 descriptors, match entries and unexpected headers.
@pytest.mark.parametrize("size", [8, 20_000])
@pytest.mark.parametrize("order", ["in-turn", "posted", "both-receive-first", "both-send-first"])
def test_more_messages_than_a_card_has_descriptors_arrive(many: Path, order: str, size: int) -> None:
    status, printed = run(many, order, 5000, size)
    assert status == 0, printed
    if size == 8:
        assert run(many, order, 5000, size) == (status, printed)


@pytest.mark.soak
@pytest.mark.parametrize("nic", ["qnix", "apenet-v5", "nfp-4000", "ethernet-100g"])
def test_many_messages_arrive_on_every_card(many: Path, nic: str) -> None:
    status, printed = run(many, "in-turn", 10_000, 8, nic=nic)
    assert status == 0, printed


def test_a_launcher_of_another_mpi_is_named(tmp_path: Path) -> None:
    source, library, program = PROGRAMS / "other_mpi.c", tmp_path / "libother.so", tmp_path / "program"
    subprocess.run(["cc", "-shared", "-fPIC", "-DLIBRARY", "-o", library, source], check=True)
    subprocess.run(["cc", "-o", program, source, library, f"-Wl,-rpath,{tmp_path}"], check=True)
    status, printed = run(program)
    assert status == 2, printed
    told = f"nicety: two MPIs: the launcher {Path(sys.executable).parent / 'mpiexec'} is from MPICH, but rank "
    assert told in printed
    rest = f"uses Open MPI, {library}; use the launcher of Open MPI, with --launcher openmpi, or a program for MPICH"
    assert rest in printed


@pytest.mark.parametrize("call", ["time.sleep(0.001)", "libc.usleep(1000)"])
def test_a_sleep_of_a_thread_beside_the_network_is_refused_by_name(tmp_path: Path, call: str) -> None:
    program = f"""
import ctypes, threading, time
libc = ctypes.CDLL(None)
thread = threading.Thread(target=lambda: {call})
world.Barrier()
if rank == 1: thread.start()
world.Barrier()
"""
    (tmp_path / "program.py").write_text(HEAD + program)
    status, printed = run(sys.executable, tmp_path / "program.py")
    assert status == 1, printed
    assert re.search(r"nicety: a second thread of rank 1 calls (clock_)?nanosleep: ", printed), printed


def test_a_thread_that_uses_the_network_sleeps_in_its_time(tmp_path: Path) -> None:
    program = """
import threading, time
def second():
    world.Iprobe(1 - rank)
    time.sleep(0.001)
    world.send(0, 1)
world.Barrier()
start = MPI.Wtime()
if rank == 0:
    thread = threading.Thread(target=second)
    thread.start()
    thread.join()
else:
    world.recv(source=0)
assert 1e-3 <= MPI.Wtime() - start < 1.1e-3
"""
    (tmp_path / "program.py").write_text(HEAD + program)
    status, printed = run(sys.executable, tmp_path / "program.py")
    assert status == 0, printed


@pytest.mark.parametrize("nic", ["spin-discrete", "qnix", "apenet-v5", "ethernet-100g"])
def test_processes_of_a_run_connect_by_ports_and_sockets(tmp_path: Path, nic: str) -> None:
    program = """
import os, socket
if rank == 0:
    port = MPI.Open_port()
    world.send(port, 1)
    other = MPI.COMM_SELF.Accept(port)
    MPI.Close_port(port)
else:
    other = MPI.COMM_SELF.Connect(world.recv(source=0))
assert other.remote_size == 1 and other.sendrecv(rank, 0, source=0) == 1 - rank
other.Free()
# The other end waits in accept, and then in connect, as a line of one is full.
place = f"{os.environ['PLACE']}/socket"
server = socket.socket(socket.AF_UNIX)
if rank == 0:
    server.bind(place)
    server.listen(0)
world.Barrier()
if rank == 0:
    ends = [server.accept()[0] for _ in range(3)]
    other = MPI.Comm.Join(ends[2].fileno())
else:
    ends = []
    for _ in range(3):
        ends.append(socket.socket(socket.AF_UNIX))
        ends[-1].connect(place)
    other = MPI.Comm.Join(ends[2].fileno())
assert other.sendrecv(rank, 0, source=0) == 1 - rank
other.Free()
"""
    (tmp_path / "program.py").write_text(HEAD + program.replace("{os.environ['PLACE']}", str(tmp_path)))
    status, printed = run(sys.executable, tmp_path / "program.py", nic=nic)
    assert status == 0, printed
