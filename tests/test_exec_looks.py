"""Programs that poll for messages on simulated hosts: each look takes its time, and none takes more."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("mpi4py")
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="programs run on simulated hosts only under Linux")

NICETY = [sys.executable, "-m", "nicety"]
HEAD = "from mpi4py import MPI\nimport numpy\nworld = MPI.COMM_WORLD\nrank, ranks = world.rank, world.size\n"
# A look and a read of a clock, by default; the post of a receive on spin-discrete (host.post, the paper's o).
LOOK_NS, CLOCK_NS, POST_NS = 25, 25, 65
COUNTS = (1, 15, 16, 17, 20, 1000)


def run(folder: Path, program: str, *options: str, ranks: int = 2, nic: str = "spin-discrete") -> tuple[int, str, str]:
    """Status, stdout and stderr of a Python program on simulated hosts."""
    (folder / "program.py").write_text(HEAD + program)
    command = [*NICETY, "exec", "-n", str(ranks), "--nic", nic, *options, "--", sys.executable, "program.py"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=90, check=False)
    return done.returncode, done.stdout, done.stderr


def times(out: str) -> dict[int, int]:
    """A program's output about its loops: nanoseconds by number of looks."""
    return {int(count): int(ns) for count, ns in re.findall(r"(\d+) looks took (\d+) ns", out)}


# Rank 1 sends when all of rank 0's looks are over.
LOOPS = """
ball = numpy.zeros(8, dtype="b")
world.Barrier()
if rank == 0:
    for count in {counts}:
        start = MPI.Wtime()
        request = world.Irecv(ball, 1, tag=7)
        for _ in range(count):
            {look}
        print(count, "looks took", round((MPI.Wtime() - start) * 1e9), "ns")
        request.Cancel()
        request.Wait()
    world.Send(ball, 1)
else:
    world.Recv(ball, 0)
"""


@pytest.mark.parametrize(
    ("look", "each_ns"),
    [
        ("request.Test()", LOOK_NS),
        # Work between two looks takes its own time.
        ("request.Test(); MPI.Wtime()", LOOK_NS + CLOCK_NS),
        ("request.Test(); MPI.Wtime(); MPI.Wtime(); MPI.Wtime()", LOOK_NS + 3 * CLOCK_NS),
    ],
)
def test_a_look_takes_what_a_look_takes(tmp_path: Path, look: str, each_ns: int) -> None:
    status, out, err = run(tmp_path, LOOPS.format(counts=COUNTS, look=look))
    assert status == 0, err
    assert times(out) == {count: POST_NS + count * each_ns + CLOCK_NS for count in COUNTS}


def test_looks_take_the_same_while_messages_are_on_their_way(tmp_path: Path) -> None:
    long = 'sent = [world.Isend(numpy.zeros(1 << 20, dtype="b"), 1, tag=9) for _ in range(4)]'
    program = LOOPS.format(counts=COUNTS, look="request.Test()").replace("start =", f"{long}\n        start =")
    program = program.replace("request.Wait()", "request.Wait()\n        MPI.Request.Waitall(sent)")
    received = "world.Recv(numpy.zeros(1 << 20, dtype='b'), 0, tag=9)"
    program = program.replace(
        "    world.Recv(ball, 0)", f"    for _ in range({4 * len(COUNTS)}): {received}\n    world.Recv(ball, 0)"
    )
    status, out, err = run(tmp_path, program)
    assert status == 0, err
    made = times(out)
    assert {(made[count] - made[15]) / (count - 15) for count in COUNTS[2:]} == {LOOK_NS}


def test_a_probe_takes_the_same_each_time(tmp_path: Path) -> None:
    status, out, err = run(tmp_path, LOOPS.format(counts=COUNTS, look="world.Iprobe(1, 8)"))
    assert status == 0, err
    made = times(out)
    each = {(made[count] - made[1]) / (count - 1) for count in COUNTS[1:]}
    assert len(each) == 1, made
    assert min(each) > LOOK_NS, made


# Rank 1 sends each message later than rank 0 waits for it. One look of each MPI_Recv finds something.
LATE = """
ball = numpy.zeros(8, dtype="b")
for number in range({messages}):
    if rank:
        start = MPI.Wtime()
        while MPI.Wtime() - start < (1 + number % 3) * {late_us} * 1e-6:
            pass
        world.Send(ball, 0)
    else:
        world.Recv(ball, 1)
"""


def test_looks_of_a_wait_that_find_nothing_are_waiting(tmp_path: Path) -> None:
    polling = {}
    for messages, late_us in [(6, 3), (6, 7.77), (16, 3)]:
        status, out, err = run(tmp_path, LATE.format(messages=messages, late_us=late_us), "--json")
        assert status == 0, err
        polling[messages, late_us] = json.loads(out)["ranks"][0]["polling_ns"]
    assert polling[6, 3] == polling[6, 7.77]
    assert polling[16, 3] - polling[6, 3] == 10 * LOOK_NS


PORTALS = """
#include <nicety_exec.h>
#include <portals4.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#define OK(call) do { if ((call) != PTL_OK) { fprintf(stderr, "%s\\n", nicety_reason()); exit(3); } } while (0)

static long long now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000ll + time.tv_nsec;
}

int main(void) {
    static const int counts[] = {1, 15, 16, 17, 20, 1000};
    ptl_handle_ni_t ni;
    ptl_handle_eq_t eq;
    ptl_handle_ct_t ct;
    ptl_event_t event;
    ptl_ct_event_t count;
    OK(PtlInit());
    OK(PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_LOGICAL, PTL_PID_ANY, NULL, NULL, &ni));
    OK(PtlEQAlloc(ni, 8, &eq));
    OK(PtlCTAlloc(ni, &ct));
    for (int i = 0; i < 6; i++) {
        long long start = now();
        for (int looks = 0; looks < counts[i]; looks++)
            LOOK;
        printf("%d looks took %lld ns\\n", counts[i], now() - start);
    }
    PtlFini();
    return 0;
}
"""


# An event is noticed by o of the paper, host.notice; a counter is read by a look.
@pytest.mark.parametrize(
    ("look", "each_ns"),
    [("PtlEQGet(eq, &event), (void)ct, (void)count", 65), ("PtlCTGet(ct, &count), (void)event", 25)],
)
def test_looks_of_portals_take_the_same_each_time(tmp_path: Path, look: str, each_ns: int) -> None:
    (tmp_path / "looks.c").write_text(PORTALS.replace("LOOK;", f"{look};"))
    made = subprocess.run(
        [*NICETY, "cc", "--host", "looks.c", "-o", "looks"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert made.returncode == 0, made.stderr
    command = [
        *NICETY,
        "exec",
        "-n",
        "1",
        "--nic",
        "spin-discrete",
        "--launcher",
        "none",
        "--",
        "./looks",
    ]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=90, check=False)
    assert done.returncode == 0, done.stderr
    assert times(done.stdout) == {count: count * each_ns + CLOCK_NS for count in COUNTS}


# With and without a blocking call, which does not make its looks one by one.
EXCHANGE = """
def wait(request):
    {wait}
for size in (8, 3000):
    ball = numpy.zeros(size, dtype="b")
    world.Barrier()
    start = MPI.Wtime()
    for _ in range(2):
        if rank == 0:
            wait(world.Isend(ball, 1))
            wait(world.Irecv(ball, 1))
        else:
            wait(world.Irecv(ball, 0))
            wait(world.Isend(ball, 0))
    took = round((MPI.Wtime() - start) * 1e12)
    took = world.gather(took)
    if rank == 0: print(size, "took", *took)
"""


@pytest.mark.parametrize(
    ("nic", "options"),
    [(nic, ()) for nic in ("spin-discrete", "pspin", "apenet-v5", "ethernet-100g", "qnix", "nfp-4000")]
    + [("spin-discrete", ("--noise", "20us,5us"))],
)
def test_a_call_that_waits_takes_what_its_looks_take(tmp_path: Path, nic: str, options: tuple[str, ...]) -> None:
    made = []
    for wait in ("request.Wait()", "while not request.Test(): pass"):
        status, out, err = run(tmp_path, EXCHANGE.format(wait=wait), *options, nic=nic)
        assert status == 0, err
        made.append([[int(number) for number in line] for line in re.findall(r"(\d+) took (\d+) (\d+)", out)])
    assert len(made[0]) == 2
    if nic == "qnix":
        # The host has one core. Its first user, a look or the library, may differ if both need it at one instant.
        assert made[0] == [pytest.approx(line, rel=0.01) for line in made[1]]
    else:
        assert made[0] == made[1]


@pytest.mark.parametrize("nic", ["spin-discrete", "apenet-v5", "ethernet-100g", "qnix", "nfp-4000"])
def test_a_probe_that_waits_takes_what_its_looks_take(tmp_path: Path, nic: str) -> None:
    made = []
    for probe in ("world.Probe(0, 7)", "while not world.Iprobe(0, 7): pass"):
        program = f"""
import ctypes
ball = numpy.zeros(8, dtype="b")
world.Barrier()
if rank == 0:
    ctypes.CDLL(None).usleep(300)
    world.Send(ball, 1, tag=7)
else:
    start = MPI.Wtime()
    {probe}
    print("took", round((MPI.Wtime() - start) * 1e9), "ns")
    world.Recv(ball, 0)
"""
        status, out, err = run(tmp_path, program, nic=nic)
        assert status == 0, err
        made.append(int(re.findall(r"took (\d+) ns", out)[0]))
    # MPI_Probe looks at its queue once more.
    assert made[0] - made[1] in (0, LOOK_NS)


def test_processes_that_test_and_then_send_end(tmp_path: Path) -> None:
    program = """
ball = numpy.zeros(4, dtype="b")
for count in (10, 17, 300):
    request = world.Irecv(ball, (rank + 1) % ranks, tag=7)
    for _ in range(count * (rank + 1)): request.Test()
    world.Send(ball, (rank - 1) % ranks, tag=7)
    while not request.Test(): pass
print("ended", rank)
"""
    status, out, err = run(tmp_path, program, ranks=3)
    assert status == 0, err
    assert sorted(re.findall(r"ended \d", out)) == ["ended 0", "ended 1", "ended 2"]


def test_locks_in_the_memory_of_a_process_are_got(tmp_path: Path) -> None:
    program = """
from mpi4py.util.sync import Counter, Mutex
mutex, counter = Mutex(comm=world), Counter(comm=world)
drawn = []
for _ in range(3):
    with mutex: drawn.append(next(counter))
assert sorted(sum(world.allgather(drawn), [])) == list(range(3 * ranks))
for each in (counter, mutex): each.free()
print("ended", rank)
"""
    status, out, err = run(tmp_path, program)
    assert status == 0, err
    assert sorted(re.findall(r"ended \d", out)) == ["ended 0", "ended 1"]


NEVER = "request = world.Irecv(numpy.zeros(4, dtype='b'), (rank + 1) % ranks, tag=7)\nworld.Barrier()\n"
TESTS = "while not request.Test(): pass\n"


@pytest.mark.parametrize("nic", ["spin-discrete", "ethernet-100g", "qnix"])
@pytest.mark.parametrize(
    "waits",
    [
        TESTS,
        "request.Wait()\n",
        "if rank == 0:\n    " + TESTS + "request.Wait()\n",
        "if rank == 0: world.Probe(1, 8)\n" + TESTS,
    ],
)
def test_processes_that_all_look_in_vain_are_a_deadlock(tmp_path: Path, nic: str, waits: str) -> None:
    status, out, err = run(tmp_path, NEVER + waits + "print('went on')\n", "--patience", "4000", nic=nic)
    assert status == 1, err
    assert "went on" not in out
    assert "Traceback" not in err
    for rank in (0, 1):
        assert re.search(rf"'rank {rank}', waits since \S+ \w+ for a (completion|message)", err), err
    assert "a receive of 4 bytes from rank 0" in err
    if "Probe" in waits:
        assert "for a message from rank 1, tag 8, for which it probes" in err


@pytest.mark.parametrize("options", [("loss=1",), ("fail=hosts.1@2us",), ("loss=1", "--patience", "1000")])
@pytest.mark.parametrize("nic", ["spin-discrete", "qnix"])
def test_processes_whose_packets_are_all_lost_end(tmp_path: Path, nic: str, options: tuple[str, ...]) -> None:
    # The sends end without a completion. A host of qnix has one core, so its looks are simulated one by one.
    status, _, err = run(tmp_path, "world.Barrier()\n", "--faults", *options, nic=nic)
    assert status == 1, err
    assert "deadlock" in err
    assert "program 'rank 0', waits since" in err


def test_who_reads_a_clock_waits_for_a_time(tmp_path: Path) -> None:
    program = """
end = MPI.Wtime() + 0.001
while MPI.Wtime() < end: request.Test()
request.Cancel()
request.Wait()
print("ended", rank)
"""
    # A quarter of the looks that the loop makes.
    status, out, err = run(tmp_path, NEVER + program, "--patience", "5000")
    assert status == 0, err
    assert sorted(re.findall(r"ended \d", out)) == ["ended 0", "ended 1"]


def test_patience_decides_what_nobody_can_know(tmp_path: Path) -> None:
    program = """
for _ in range(2000): request.Test()
world.Send(numpy.zeros(4, dtype="b"), (rank - 1) % ranks, tag=7)
request.Wait()
"""
    assert run(tmp_path, NEVER + program, "--patience", "5000")[0] == 0
    status, _, err = run(tmp_path, NEVER + program, "--patience", "500")
    assert status == 1
    assert "a receive of 4 bytes from rank 1" in err


def test_who_is_outside_comes_back_while_others_test(tmp_path: Path) -> None:
    program = """
if rank == 1:
    # What it waits for is not simulated.
    import subprocess
    with subprocess.Popen(["sh", "-c", "sleep 0.3; echo"], stdout=subprocess.PIPE) as child:
        child.stdout.readline()
    world.Send(numpy.zeros(4, dtype="b"), 0, tag=7)
else:
    while not request.Test(): pass
    print("ended")
"""
    status, out, err = run(tmp_path, NEVER + program)
    assert status == 0, err
    assert "ended" in out


def test_a_message_takes_one_switch_to_each_process(tmp_path: Path) -> None:
    rounds = 500
    program = f"""
import resource
ball = numpy.zeros(8, dtype="b")
def bounce():
    for _ in range({rounds}):
        if rank == 0:
            world.Send(ball, 1)
            world.Recv(ball, 1)
        else:
            world.Recv(ball, 0)
            world.Send(ball, 0)
def switches():
    return resource.getrusage(resource.RUSAGE_SELF).ru_nvcsw
bounce()
before = switches()
bounce()
print("switches", switches() - before)
"""
    status, out, err = run(tmp_path, program)
    assert status == 0, err
    found = [int(count) for count in re.findall(r"switches (\d+)", out)]
    # A process spins in the place of a switch if each has a CPU.
    assert len(found) == 2
    assert max(found) < 1.4 * rounds


def test_a_call_that_returns_behind_a_look_has_looked(tmp_path: Path) -> None:
    """A completed send ends the call. The call also finds the message that has long been there, and so does a test."""
    program = """
import time
ball, other = numpy.zeros(8, dtype="b"), numpy.zeros(8, dtype="b")
if rank == 0:
    for number in range(4):
        requests = [world.Irecv(ball, 1, number)]
        time.sleep(50e-6)
        requests.append(world.Isend(other, 1, number))
        if number < 2:
            print("found", sorted(MPI.Request.Waitsome(requests)))
        else:
            print("tested", requests[1].Wait() and requests[0].Test())
        MPI.Request.Waitall(requests)
else:
    for number in range(4):
        world.Send(ball, 0, number)
    for number in range(4):
        world.Recv(ball, 0, number)
"""
    status, out, err = run(tmp_path, program)
    assert status == 0, err
    assert re.findall("found (.*)", out) == ["[0, 1]"] * 2
    assert re.findall("tested (.*)", out) == ["True"] * 2
