"""Real MPI programs on simulated hosts."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import nicety
from nicety.apps.launchers import find_launcher
from nicety.apps.processes import processes_text

pytest.importorskip("mpi4py")
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="programs run on simulated hosts only under Linux")

NICETY = [sys.executable, "-m", "nicety"]
HEAD = "from mpi4py import MPI\nimport numpy\nworld = MPI.COMM_WORLD\nrank, ranks = world.rank, world.size\n"


def run(folder: Path, program: str, *options: str, ranks: int = 2, nic: str = "spin-discrete") -> tuple[int, str, str]:
    """Status, stdout and stderr of a Python program on simulated hosts."""
    (folder / "program.py").write_text(HEAD + program)
    command = [*NICETY, "exec", "-n", str(ranks), "--nic", nic, *options, "--", sys.executable, "program.py"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=240, check=False)
    return done.returncode, done.stdout, done.stderr


def report(folder: Path, program: str, *options: str, **more: Any) -> dict[str, Any]:
    status, out, err = run(folder, program, "--json", *options, **more)
    assert status == 0, err
    return json.loads(out)


PING = """
ball = numpy.zeros(8, dtype="b")
world.Barrier()
start = MPI.Wtime()
for _ in range(10):
    if rank == 0:
        world.Send(ball, 1)
        world.Recv(ball, 1)
    else:
        world.Recv(ball, 0)
        world.Send(ball, 0)
if rank == 0:
    print("half", round((MPI.Wtime() - start) / 20 * 1e9, 1))
"""


def test_latency_is_the_cards(tmp_path: Path) -> None:
    status, out, err = run(tmp_path, PING)
    assert status == 0, err
    found = re.search(r"half (\S+)", out)
    assert found
    model = nicety.run_benchmark("latency", nics=["spin-discrete"], modes=["rdma"], sizes=[8])
    # A read of the clock, and the maximum cost of a poll.
    assert 0 <= float(found[1]) - model["rows"][0]["latency_ns"] < 25 + 25


def test_a_program_runs_on_several_cards(tmp_path: Path) -> None:
    one = report(tmp_path, PING)
    status, out, err = run(tmp_path, PING, "--plot", "p.svg", "--csv", "p.csv", nic="spin-discrete,qnix")
    assert (status, err) == (0, "")
    head, first, second = out.splitlines()[-3:]
    assert head.split() == ["Card", "finish", "(µs)", "of", "spin-discrete"]
    assert first.split() == ["spin-discrete", f"{one['max_finish_ns'] / 1000:.3f}", "1.000"]
    assert float(second.split()[2]) == pytest.approx(float(second.split()[1]) / float(first.split()[1]), abs=6e-4)
    rows = (tmp_path / "p.csv").read_text().splitlines()
    assert [row.split(",")[:2] for row in rows[1:]] == [[nic, str(rank)] for nic in CARDS for rank in (0, 1)]
    assert (tmp_path / "p.svg").read_bytes().startswith(b"<?xml")
    both = report(tmp_path, PING, nic="spin-discrete,qnix")
    assert [each["nic"] for each in both["cards"]] == CARDS
    assert both["cards"][0] == one


CARDS = ["spin-discrete", "qnix"]


def test_files_of_one_run_take_one_card(tmp_path: Path) -> None:
    for option in ("--trace", "--goal"):
        status, out, err = run(tmp_path, PING, option, "file", nic="spin-discrete,qnix")
        assert (status, out) == (2, "")
        assert f"{option}: a file of one run; name one card with --nic" in err


def test_a_failure_on_the_second_card_keeps_the_first(tmp_path: Path) -> None:
    # The second card accepts fewer early messages.
    program = """
if rank == 0:
    sent = [world.Isend(numpy.zeros(1), 1, tag=1) for _ in range(20)]
world.Barrier()
if rank:
    for _ in range(20): world.Recv(numpy.zeros(1), 0, tag=1)
"""
    status, out, err = run(tmp_path, program, nic="spin-discrete,apenet-v5")
    assert status == 1
    assert "python program.py: spin-discrete".replace("python", sys.executable) in out
    assert err.startswith("nicety: apenet-v5: deadlock")


def test_all_cards_are_checked_before_the_first_run(tmp_path: Path) -> None:
    status, out, err = run(tmp_path, PING, nic="spin-discrete,gone")
    assert (status, out) == (2, "")
    assert err.startswith('nicety: there is no card spec "gone"')


def test_a_picture_has_the_parts_of_each_process(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(HEAD + PING)
    found: Any = nicety.run_processes([sys.executable, str(tmp_path / "program.py")], ranks=2, nic="spin-discrete")
    figure = found.plot()
    ends = [patch.get_data().values for patch in figure.axes[0].patches]
    for rank, row in enumerate(found["ranks"]):
        assert max(end[rank] for end in ends) == pytest.approx(row["finish_ns"] / 1000)
    assert found.table("pyarrow").to_pydict()["finish_ns"] == [row["finish_ns"] for row in found["ranks"]]


@pytest.mark.parametrize("nic", ["spin-discrete", "apenet-v5", "ethernet-100g", "qnix", "nfp-4000"])
def test_collectives_move_the_right_bytes(tmp_path: Path, nic: str) -> None:
    program = """
mine = numpy.arange(ranks * 300, dtype="i") + 1000 * rank
theirs = numpy.zeros_like(mine)
world.Alltoall(mine, theirs)
for other in range(ranks):
    part = theirs[300 * other : 300 * other + 300]
    assert (part == numpy.arange(300) + 300 * rank + 1000 * other).all()
assert world.allreduce(rank + 1) == ranks * (ranks + 1) // 2
long = numpy.full(200_000, rank, dtype="b")
world.Bcast(long, root=ranks - 1)
assert (long == ranks - 1).all()
assert world.gather(str(rank) * 50) == ([str(each) * 50 for each in range(ranks)] if rank == 0 else None)
"""
    made = report(tmp_path, program, ranks=4, nic=nic)
    assert [row["rank"] for row in made["ranks"]] == [0, 1, 2, 3]
    assert sum(row["sends"] for row in made["ranks"]) == sum(row["receives"] for row in made["ranks"])


def test_two_runs_are_alike(tmp_path: Path) -> None:
    assert report(tmp_path, PING) == report(tmp_path, PING)


def test_one_sided_operations(tmp_path: Path) -> None:
    program = """
mine, theirs = numpy.zeros(16, dtype="i"), numpy.arange(16, dtype="i")
for world, other in ((MPI.COMM_SELF, 0), (world, 1 - rank)):
    window = MPI.Win.Create(mine, 4, comm=world)
    mine[:] = 0
    window.Fence()
    window.Put(theirs, other)
    window.Fence()
    window.Lock(other)
    window.Accumulate(theirs, other, op=MPI.SUM)
    window.Unlock(other)
    window.Fence()
    assert (mine == 2 * theirs).all()
    got = numpy.zeros_like(mine)
    window.Get(got, other)
    window.Fence()
    assert (got == 2 * theirs).all()
    # Fences of one process alone send nothing, and look at the queue all the same.
    for _ in range(3000 if world == MPI.COMM_SELF else 0):
        window.Fence()
    window.Free()
"""
    assert report(tmp_path, program)["status"] == 0


def test_wildcards_probes_and_order(tmp_path: Path) -> None:
    program = """
status = MPI.Status()
if rank == 0:
    for _ in range(2 * (ranks - 1)):
        got = world.recv(source=MPI.ANY_SOURCE, tag=MPI.ANY_TAG, status=status)
        assert got == (status.source, status.tag)
else:
    world.send((rank, 5), 0, tag=5)
    world.send((rank, 6), 0, tag=6)
"""
    assert report(tmp_path, program, ranks=3)["status"] == 0


def test_a_deadlock_names_what_is_waited_for(tmp_path: Path) -> None:
    status, _, err = run(tmp_path, "world.Recv(numpy.zeros(4, dtype='b'), 1 - rank, tag=7)\n", "--patience", "2000")
    assert status == 1
    assert "a receive of 4 bytes from rank 1" in err
    assert "Traceback" not in err


def test_a_deadlock_says_when_waits_began_and_not_the_last_of_many_looks(tmp_path: Path) -> None:
    program = """
import time
world.Barrier()
if rank == 0:
    time.sleep(0.001)
    world.Recv(numpy.zeros(4, dtype="b"), 1)
world.Probe(0)
"""
    begins = []
    for patience in ("1000", "2000"):
        status, _, err = run(tmp_path, program, "--patience", patience)
        assert status == 1
        begins.append(re.findall(r"'rank (\d)', waits since (\S+ \w+) for", err))
    assert begins[0] == begins[1]
    receive, probe = begins[0]
    assert re.fullmatch(r"1\.0\d+ ms", receive[1])
    assert re.fullmatch(r"\d\d\.\d+ us", probe[1])


LOOKS = {
    "Probe": "world.Probe(1 - rank, 7)\n",
    "Mprobe": "world.Mprobe(1 - rank, 7)\n",
    "Iprobe": "while not world.Iprobe(MPI.ANY_SOURCE, MPI.ANY_TAG): pass\n",
}


@pytest.mark.parametrize("nic", ["spin-discrete", "apenet-v5", "ethernet-100g", "qnix", "nfp-4000"])
def test_a_look_for_a_message_that_nobody_sends_is_a_deadlock(tmp_path: Path, nic: str) -> None:
    for name, look in LOOKS.items():
        status, _, err = run(tmp_path, "world.Barrier()\n" + look, nic=nic)
        assert status == 1, name
        wanted = "any rank, any tag" if name == "Iprobe" else "rank 1, tag 7"
        assert "'rank 0', waits since" in err, name
        assert f"for a message from {wanted}, for which it probes" in err, name


@pytest.mark.parametrize(
    "options", [[], ["--ranks-per-node", "2"], ["--noise", "20us,5us"]], ids=["hosts", "host", "noise"]
)
@pytest.mark.parametrize("nic", ["spin-discrete", "apenet-v5", "ethernet-100g", "qnix", "nfp-4000"])
def test_messages_of_one_tag_come_in_their_order(tmp_path: Path, nic: str, options: list[str]) -> None:
    # Long messages, some copied or registered first, before short ones, with and without receives. A receive between
    # them leaves another CPU free first.
    program = """
import time
sizes = [100_000, 4, 400, 4, 5000, 4, 100_000, 0, 64, 4, 5000, 4, 4]
if rank == 1:
    world.Recv(bytearray(1), 0)
    balls = [bytearray([at]) * size for at, size in enumerate(sizes)]
    sends = [world.Isend(ball, 0, tag=7) for ball in balls[:-1]]
    answer = world.Irecv(bytearray(1), 0, tag=8)
    MPI.Request.Waitall([*sends, world.Isend(balls[-1], 0, tag=7), answer])
else:
    status = MPI.Status()
    balls = [bytearray(100_000) for _ in sizes]
    posted = [world.Irecv(ball, MPI.ANY_SOURCE, tag=7) for ball in balls[:8]]
    world.Send(bytearray(1), 1)
    time.sleep(1e-3)
    posted += [world.Irecv(ball, MPI.ANY_SOURCE, tag=7) for ball in balls[8:]]
    for at, (size, ball, request) in enumerate(zip(sizes, balls, posted)):
        request.Wait(status)
        assert (status.count, ball[:1]) == (size, bytes([at]) if size else b"\\0"), at
    world.Send(bytearray(1), 1, tag=8)
"""
    status, _, err = run(tmp_path, program, *options, nic=nic)
    assert status == 0, err


@pytest.mark.parametrize("nic", ["apenet-v5", "nfp-4000"])
def test_messages_beyond_the_room_for_early_ones_are_told_of(tmp_path: Path, nic: str) -> None:
    program = """
ball = numpy.zeros(4, dtype="b")
for tag in range(20) if rank else range(19, -1, -1):
    world.Send(ball, 0, tag=tag) if rank else world.Recv(ball, 1, tag=tag)
"""
    status, _, err = run(tmp_path, program, nic=nic)
    assert status == 1
    assert "a receive of 4 bytes from rank 1, tag 19" in err
    found = re.search(r"at rank 1, (\d+) sends to rank 0 wait: that rank holds (\d+) messages from this rank", err)
    assert found, err
    # Messages of MPI_Init are among the untaken ones.
    assert int(found[2]) >= 16
    assert int(found[1]) + int(found[2]) >= 20


@pytest.mark.parametrize("nic", ["spin-discrete", "apenet-v5", "ethernet-100g", "qnix", "nfp-4000"])
@pytest.mark.parametrize("size", [8, 4000, 100_000])
def test_a_look_ends_when_the_message_comes(tmp_path: Path, nic: str, size: int) -> None:
    # Rank 2 constantly exchanges messages with rank 3. Other events do not matter to the polling rank.
    program = f"""
import time
ball, times = numpy.zeros({size}, dtype="b"), numpy.zeros(1)
world.Barrier()
if rank == 1:
    time.sleep(0.002)
    times[0] = MPI.Wtime()
    world.Send(ball, 0, tag=7)
    world.Send(times, 0, tag=8)
elif rank == 0:
    while not world.Iprobe(1, 7):
        pass
    found = MPI.Wtime()
    world.Recv(ball, 1, tag=7)
    received = MPI.Wtime()
    world.Recv(times, 1, tag=8)
    print("found", found - times[0], "received", received - times[0])
else:
    for _ in range(1500):
        world.Sendrecv_replace(bytearray(8), 5 - rank)
"""
    status, out, err = run(tmp_path, program, ranks=4, nic=nic)
    assert status == 0, err
    found, received = (float(out.split()[at]) for at in (1, 3))
    model = nicety.run_benchmark("latency", nics=[nic], sizes=[size])["rows"][0]["latency_ns"] * 1e-9
    assert 0 < found < received
    # The polling ends a few of its own looks after the arrival of the message, or of its header.
    assert found < 1.5 * model + 20e-6, (found, model)


def test_a_status_of_the_program_is_the_commands(tmp_path: Path) -> None:
    status, _, err = run(tmp_path, "world.Barrier()\nMPI.Finalize()\nimport os\nos._exit(9)\n")
    assert status == 9, err


def test_a_process_that_dies_leaves_nothing(tmp_path: Path) -> None:
    program = "import os, signal\nworld.Barrier()\nif rank: os.kill(os.getpid(), signal.SIGKILL)\nworld.Barrier()\n"
    status, _, err = run(tmp_path, program)
    assert status == 1
    assert "the process of rank 1 ended" in err
    listed = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
    assert str(tmp_path) not in listed


@pytest.mark.soak
def test_many_processes_start_and_finish(tmp_path: Path) -> None:
    program = "assert world.allreduce(rank) == ranks * (ranks - 1) // 2\nworld.Barrier()\n"
    made = report(tmp_path, program, ranks=64)
    assert made["status"] == 0
    assert [row["rank"] for row in made["ranks"]] == list(range(64))


def test_other_threads_have_the_clocks_of_the_machine(tmp_path: Path) -> None:
    program = """
import threading, time
seen = []
thread = threading.Thread(target=lambda: seen.append(time.time()))
thread.start()
thread.join()
here = time.time()
# The simulation's time begins with 2026.
assert 1767225600 <= here < 1767225700, here
assert abs(seen[0] - here) > 1000
world.Barrier()
"""
    assert report(tmp_path, program)["status"] == 0


def test_a_second_thread_on_the_network_is_told_of(tmp_path: Path) -> None:
    program = """
import threading
assert MPI.Query_thread() == MPI.THREAD_MULTIPLE
world.Barrier()
def talk():
    world.sendrecv(rank, 1 - rank, sendtag=3, source=1 - rank, recvtag=3)
thread = threading.Thread(target=talk)
{}
world.Barrier()
"""
    status, _, err = run(tmp_path, program.format("talk()"))
    assert (status, "thread" in err) == (0, False), err
    status, _, err = run(tmp_path, program.format("thread.start()\nthread.join()"))
    assert status == 0, err
    assert err.count("uses the network: the times of this run depend on how this machine schedules the threads") == 2


def test_time_is_none_measured_or_slept(tmp_path: Path) -> None:
    program = """
import time
before = MPI.Wtime()
time.sleep(2)
assert 2 <= MPI.Wtime() - before < 2.5
sum(range(3_000_000))
world.Barrier()
"""
    plain = report(tmp_path, program)["max_finish_ns"]
    measured = report(tmp_path, program, "--compute", "measured")["max_finish_ns"]
    assert 2e9 < plain < 2.01e9
    assert plain + 1e7 < measured


def test_waits_with_limits_pass_in_the_simulation(tmp_path: Path) -> None:
    program = """
import ctypes, os, select, threading, time
end, other = os.pipe()
libc, span, events = ctypes.CDLL(None), (ctypes.c_long * 2)(0, 10_000_000), ctypes.create_string_buffer(16)
poll, epoll = select.poll(), select.epoll()
poll.register(end, select.POLLIN)
epoll.register(end, select.EPOLLIN)
waits = [
    lambda: poll.poll(10),
    lambda: epoll.poll(0.010),
    lambda: select.select([end], [], [], 0.010)[0],
    lambda: libc.epoll_pwait2(epoll.fileno(), events, 1, span, None),
    lambda: libc.epoll_pwait(epoll.fileno(), events, 1, 10, None),
    lambda: select.select([], [], [], 0.010)[0],
    lambda: libc.thrd_sleep(span, None),
]
for wait in waits:
    world.Barrier()
    start = MPI.Wtime()
    if rank:
        # What others do meanwhile, for longer.
        for _ in range(27):
            time.sleep(0.001)
    else:
        assert not wait()
    spent = MPI.Wtime() - start
    assert abs(spent - (0.027 if rank else 0.010)) < 1e-5, spent
# What is there ends a wait at once, and what comes from elsewhere soon.
os.write(other, b"1")
start = MPI.Wtime()
assert all([wait() for wait in waits[:5]]) and MPI.Wtime() - start < 1e-6
# Neither what is there nor what is wrong takes time, also without a limit.
class Limit(ctypes.Structure):
    _fields_ = [("seconds", ctypes.c_long), ("us", ctypes.c_long)]
sets = (ctypes.c_ulong * 16)(*([0] * 16))
for limit in (None, Limit(0, 30_000), Limit(0, -1)):
    sets[end // 64] = 1 << end % 64
    found = libc.select(end + 1, sets, None, None, limit and ctypes.byref(limit))
    assert found == (-1 if limit and limit.us == -1 else 1)
    assert not limit or limit.us in (-1, 30_000) or limit.us == 29_999
assert libc.waitpid(-1, None, 0) == -1
assert MPI.Wtime() - start < 1e-5
world.Barrier()
child = os.fork()
if not child:
    time.sleep(0.2)
    os._exit(3)
start = MPI.Wtime()
assert os.waitpid(child, 0) == (child, 3 << 8) and MPI.Wtime() - start < 1e-5
os.read(end, 1)
# What is left of a limit is told.
limit = Limit(0, 30_000)
assert libc.select(0, None, None, None, ctypes.byref(limit)) == 0 and (limit.seconds, limit.us) == (0, 0)
threading.Timer(0.01, os.write, (other, b"2")).start()
assert poll.poll(60_000)
assert os.read(end, 1) == b"2"
world.Barrier()
"""
    assert report(tmp_path, program)["status"] == 0


def test_impossible_runs_are_refused(tmp_path: Path) -> None:
    static = tmp_path / "static"
    (tmp_path / "static.c").write_text("int main(void) { return 0; }\n")
    subprocess.run([shutil.which("cc") or "cc", "-static", "-o", static, tmp_path / "static.c"], check=True)
    other = tmp_path / "other"
    head = bytearray(Path(sys.executable).resolve().read_bytes()[:64])
    head[18] = 40
    other.write_bytes(head)
    other.chmod(0o755)
    for words, expected in [
        (["./nowhere"], "./nowhere: no such program"),
        ([str(static)], "linked statically"),
        ([str(other)], "the program is for ARM"),
        (["true"], "none of its processes has opened an endpoint of libfabric"),
        (["false"], "ended with exit status: 1; its output, or the launcher's, may say why"),
    ]:
        command = [*NICETY, "exec", "-n", "2", "--nic", "qnix", "--launcher", "none", "--", *words]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 2, done.stderr
        assert expected in done.stderr
        assert "Traceback" not in done.stderr


def test_a_report_names_the_options_that_determine_its_times(tmp_path: Path) -> None:
    options = ["--set", "hpu.cores=8", "--noise", "1ms,1us", "--topology", "star"]
    network = ["--faults", "reorder=1e-6:5us", "--flow-control", "pfc"]
    status, out, err = run(tmp_path, "world.Barrier()\n", *options, *network)
    assert status == 0, err
    assert out.splitlines()[1].endswith(
        ": spin-discrete, topology star, seed 1, flow control pfc, noise 1ms,1us, faults reorder=1e-6:5us, "
        "set hpu.cores=8, compute none, launcher mpich"
    )
    status, out, err = run(tmp_path, "world.Barrier()\n", "--offload", "barrier", "--compare-offload", *options)
    assert status == 0, err
    assert ", topology star, seed 1, noise 1ms,1us, set hpu.cores=8, compute none, launcher mpich\n" in out


def test_the_launcher_is_that_of_the_library_a_program_is_linked_with(tmp_path: Path) -> None:
    source = tmp_path / "ends.c"
    source.write_text("#include <mpi.h>\nint main(void) { MPI_Init(0, 0); return MPI_Finalize(); }\n")
    subprocess.run([Path(sys.executable).parent / "mpicc", "-o", tmp_path / "ends", source], check=True)
    other = tmp_path / "bin" / "mpiexec"
    other.parent.mkdir()
    other.write_text("#!/bin/sh\necho 'mpiexec (OpenRTE) 4.1.4'\n")
    other.chmod(0o755)
    path = {**os.environ, "PATH": f"{other.parent}:{os.environ['PATH']}"}
    for launcher, status in [("auto", 0), ("mpich", 0), ("openmpi", 2), ("none", 2)]:
        words = ["exec", "-n", "2", "--nic", "qnix", "--launcher", launcher, "--json", "--", str(tmp_path / "ends")]
        done = subprocess.run([*NICETY, *words], env=path, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == status, done.stderr
        if status == 0:
            made = json.loads(done.stdout)
            assert (len(made["ranks"]), made["launcher"]) == (2, "mpich")
            assert ", compute none, launcher mpich\n" in processes_text(made)
        else:
            assert f"nicety: --launcher {launcher}: {tmp_path / 'ends'} is linked with MPICH" in done.stderr
            assert "leave the option out" in done.stderr


def test_a_launcher_is_looked_for_where_the_library_really_lies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "usr" / "lib" / "machine").mkdir(parents=True)
    (tmp_path / "usr" / "bin").mkdir()
    (tmp_path / "lib").symlink_to("usr/lib")
    (tmp_path / "bin").symlink_to("usr/bin")
    mpiexec = tmp_path / "usr" / "bin" / "mpiexec"
    mpiexec.write_text("#!/bin/sh\necho 'mpiexec (OpenRTE) 4.1.4'\n")
    mpiexec.chmod(0o755)
    # The dynamic linker's list for a program.
    library = tmp_path / "lib" / "machine" / "libmpi.so.40"
    linker = tmp_path / "ld-test.so"
    linker.write_text(
        f"#!/bin/sh\necho 'libopen-pal.so.40 => {library} (0x1)'\necho 'libmpi.so.40 => {library} (0x2)'\n"
    )
    linker.chmod(0o755)
    program = tmp_path / "program"
    program.write_bytes(b"\x7fELF\0" + bytes(str(linker), "ascii") + b"\0")
    monkeypatch.setenv("PATH", "/nowhere")
    assert find_launcher("auto", program, 2) == ("openmpi", str(mpiexec))


def test_the_path_has_the_order_of_launchers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    versions = {"system": "mpiexec (OpenRTE) 4.1.4", "own": "HYDRA build details:", "apart": "HYDRA build details:"}
    for folder, version in versions.items():
        (tmp_path / folder).mkdir()
        for name, text in (("mpiexec", f"#!/bin/sh\necho '{version}'\n"), ("sh", "#!/bin/true\n")):
            (tmp_path / folder / name).write_text(text)
            (tmp_path / folder / name).chmod(0o755)

    def found(program: str, *folders: str) -> tuple[str, str]:
        monkeypatch.setenv("PATH", ":".join(str(tmp_path / folder) for folder in folders))
        return find_launcher("auto", tmp_path / program / "sh", 2)

    own, system, apart = (str(tmp_path / folder / "mpiexec") for folder in ("own", "system", "apart"))
    # A shell of the system is no sign of its MPI.
    assert found("system", "own", "system") == ("mpich", own)
    assert found("system", "system", "own") == ("openmpi", system)
    # An environment that is not on the path has its own launcher.
    assert found("apart", "system", "own") == ("mpich", apart)


def test_a_run_in_python(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(HEAD + "world.Barrier()\n")
    made = nicety.run_processes([sys.executable, tmp_path / "program.py"], ranks=2, nic="spin-discrete", to_stderr=True)
    assert made["status"] == 0
    assert len(made["ranks"]) == 2
    with pytest.raises(nicety.InputError, match='compute "fast": write none, measured, or a factor'):
        nicety.run_processes([sys.executable], nic="spin-discrete", compute="fast", launcher="none")
    assert not list(Path("/dev/shm").glob("*nicety*"))


def test_a_run_is_written_as_schedule_timeline_and_capture(tmp_path: Path) -> None:
    files = ["--goal", "ping.goal", "--trace", "ping.pftrace", "--capture", "ping.pcapng"]
    made = report(tmp_path, PING, *files)
    assert made["goal"]["file"] == "ping.goal"
    assert made["goal"]["unmatched_messages"] == 0
    again = report(tmp_path, PING)
    assert made["ranks"] == again["ranks"], "to watch a program does not change it"
    on_card = nicety.run_schedule(tmp_path / "ping.goal", nic="spin-discrete")
    assert on_card["messages"] == sum(rank["sends"] for rank in made["ranks"])
    # The schedule lacks looks at queues. Each takes at most 25 ns more than the arrivals.
    missing = made["max_finish_ns"] - on_card["max_finish_ns"]
    assert 0 <= missing < 25 * max(rank["calls"] for rank in made["ranks"])
    assert b"node 1" in (tmp_path / "ping.pftrace").read_bytes()
    assert (tmp_path / "ping.pcapng").stat().st_size > 0


@pytest.mark.parametrize("nic", ["apenet-v5", "ethernet-100g", "nfp-4000", "qnix", "spin-discrete"])
def test_a_schedule_takes_the_way_of_the_run(tmp_path: Path, nic: str) -> None:
    """Short and long messages, early and late ones, and collectives, which post a receive and a send at once."""
    program = """
for _ in range(3):
    if rank == 0:
        for _ in range((ranks - 1) * 3):
            ball, status = numpy.zeros(5000, "u1"), MPI.Status()
            world.Recv(ball, MPI.ANY_SOURCE, MPI.ANY_TAG, status)
            world.Send(ball[: status.Get_count()], status.source, 99)
    else:
        for size in (8, 700, 5000):
            world.Send(numpy.zeros(size, "u1"), 0, size)
            world.Recv(numpy.zeros(size, "u1"), 0, 99)
    sums = numpy.zeros(2000)
    world.Allreduce(numpy.ones(2000), sums)
"""
    made = report(tmp_path, program, "--goal", "run.goal", ranks=4, nic=nic)
    again = nicety.run_schedule(tmp_path / "run.goal", nic=nic, breakdown=True)
    # The schedule lacks looks at queues. Each takes at most 25 ns more than the arrivals.
    missing = abs(made["max_finish_ns"] - again["max_finish_ns"])
    assert missing < 25 * max(rank["calls"] for rank in made["ranks"])
    stages = {stage["stage"]: stage["ns"] for stage in again["stages"]}
    assert stages.get("not accounted for", 0) < 0.01 * again["max_finish_ns"]


def test_calculations_and_wildcards_are_in_a_schedule(tmp_path: Path) -> None:
    program = """
import time
if rank == 0:
    time.sleep(1e-3)
    for _ in range(ranks - 1):
        world.recv(source=MPI.ANY_SOURCE, tag=MPI.ANY_TAG)
else:
    world.send(b"x" * 1000 * rank, 0, tag=rank)
"""
    made = report(tmp_path, program, "--goal", "any.goal", ranks=3)
    text = (tmp_path / "any.goal").read_text()
    assert "from -1" not in text
    assert made["goal"]["operations"] > 0
    sizes = [int(found) for found in re.findall(r"recv (\d+)b", text)]
    assert sum(1 for size in sizes if size > 2000) == 1
    assert nicety.run_schedule(tmp_path / "any.goal", nic="spin-discrete")["max_finish_ns"] > 1e6


@pytest.mark.parametrize(
    ("files", "told"),
    [
        (["--goal", "missing/ping.goal"], "goal missing/ping.goal"),
        (["--trace", "missing/ping.json"], "missing"),
        (["--trace-scale", "ps"], "there is no timeline"),
    ],
)
def test_files_that_cannot_be_written(tmp_path: Path, files: list[str], told: str) -> None:
    status, _, err = run(tmp_path, PING, *files)
    assert status == 2, err
    assert told in err
    assert "Traceback" not in err


def test_clocks_show_what_is_computed_between_them(tmp_path: Path) -> None:
    program = """
world.Barrier()
start = MPI.Wtime()
sum(range(2_000_000))
print("spent", MPI.Wtime() - start)
world.Barrier()
"""
    spent = {}
    for compute in ("none", "measured", "0.001"):
        status, out, err = run(tmp_path, program, "--compute", compute, ranks=1)
        assert status == 0, err
        spent[compute] = float(out.split("spent ")[1].split()[0])
    assert spent["none"] == pytest.approx(25e-9, abs=1e-9)
    assert spent["measured"] > 1e-3
    assert 25e-9 < spent["0.001"] < spent["measured"] / 10


@pytest.mark.parametrize(
    ("options", "does"),
    [
        (("--compute", "1e12"), "sum(range(200_000))"),
        (("--compute", "1e18"), "sum(range(200_000))"),
        (("--compute", "1e300"), "sum(range(200_000))"),
        (("--clock-cost", "2000000s"), "for _ in range(20): time.time()"),
        (("--poll-cost", "18446744s"), "world.Barrier()"),
        ((), "time.sleep(18_446_745)"),
    ],
)
def test_time_ends(tmp_path: Path, options: tuple[str, ...], does: str) -> None:
    status, _, err = run(tmp_path, f"import time\nworld.Barrier()\n{does}\nworld.Barrier()\n", *options)
    assert (status, err.splitlines()[-1]) == (
        1,
        "nicety: virtual time ends after 2^64 ps (213 days), before this would end",
    )


def test_the_longest_sleep_is_as_long_as_it_says(tmp_path: Path) -> None:
    program = "import time\nworld.Barrier()\ntime.sleep(18_446_700)\nworld.Barrier()\n"
    assert report(tmp_path, program)["max_finish_ns"] > 18_446_700e9
