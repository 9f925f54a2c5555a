"""One-sided operations of MPI programs on simulated hosts."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import nicety

pytest.importorskip("mpi4py")
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="programs run on simulated hosts only under Linux")

HEAD = """
from mpi4py import MPI
import numpy, time
world = MPI.COMM_WORLD
rank, ranks = world.rank, world.size
info = MPI.Info.Create()
# Without it MPICH has accumulates done by CPUs where that is quicker, among them the target's own.
info.Set("disable_shm_accumulate", "true")
"""


def run(folder: Path, program: str, *options: str, ranks: int = 2, nic: str = "spin-discrete") -> tuple[int, str, str]:
    """Status, stdout and stderr of a Python program on simulated hosts."""
    (folder / "program.py").write_text(HEAD + program)
    command = [sys.executable, "-m", "nicety", "exec", "-n", str(ranks), "--nic", nic, *options]
    command += ["--", sys.executable, "program.py"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=240, check=False)
    return done.returncode, done.stdout, done.stderr


def report(folder: Path, program: str, *options: str, **more: Any) -> dict[str, Any]:
    status, out, err = run(folder, program, "--json", *options, **more)
    assert status == 0, err
    made: dict[str, Any] = json.loads(out)
    return made


VALUES = """
memory = numpy.full(64, -1, dtype="q")
window = MPI.Win.Create(memory, 8, info, world)
right, left = (rank + 1) % ranks, (rank - 1) % ranks
mine, theirs = numpy.arange(8, dtype="q") + 100 * rank, numpy.zeros(8, dtype="q")

window.Fence()
window.Put(mine, right, target=[4, 8, MPI.LONG_LONG])
window.Fence()
assert memory[4:12].tolist() == [100 * left + i for i in range(8)], memory
assert (memory[:4] == -1).all() and (memory[12:] == -1).all()
window.Get(theirs, right, target=[4, 8, MPI.LONG_LONG])
window.Fence()
assert theirs.tolist() == mine.tolist()

memory[:] = 0
world.Barrier()
window.Lock_all()
for _ in range(5):
    window.Accumulate(numpy.full(4, rank + 1, dtype="q"), 0, target=[0, 4, MPI.LONG_LONG], op=MPI.SUM)
one, old, drawn = numpy.ones(1, dtype="q"), numpy.zeros(1, dtype="q"), []
for _ in range(10):
    window.Fetch_and_op(one, old, 0, 16, MPI.SUM)
    window.Flush(0)
    drawn.append(int(old[0]))
before = numpy.zeros(2, dtype="q")
window.Get_accumulate(numpy.full(2, 1 << rank, dtype="q"), before, 0, target=[24, 2, MPI.LONG_LONG], op=MPI.BOR)
window.Flush(0)
assert not (before & (1 << rank)).any()

# A lock in memory of rank 0, and a number beside it that is read and written by whoever has the lock.
for _ in range(3):
    while True:
        window.Compare_and_swap(numpy.full(1, rank + 1, dtype="q"), numpy.zeros(1, dtype="q"), old, 0, 32)
        window.Flush(0)
        if old[0] == 0:
            break
    window.Get(old, 0, target=[33, 1, MPI.LONG_LONG])
    window.Flush(0)
    old += 1
    window.Put(old, 0, target=[33, 1, MPI.LONG_LONG])
    window.Flush(0)
    window.Accumulate(numpy.zeros(1, dtype="q"), 0, target=[32, 1, MPI.LONG_LONG], op=MPI.REPLACE)
    window.Flush(0)
window.Unlock_all()
world.Barrier()
every = sorted(number for each in world.allgather(drawn) for number in each)
assert every == list(range(10 * ranks)) and drawn == sorted(drawn)
if rank == 0:
    assert memory[:4].tolist() == [5 * ranks * (ranks + 1) // 2] * 4
    assert memory[16] == 10 * ranks and memory[24:26].tolist() == [(1 << ranks) - 1] * 2
    assert memory[32] == 0 and memory[33] == 3 * ranks, memory
window.Free()
"""


@pytest.mark.parametrize("ranks", [2, 4])
@pytest.mark.parametrize("nic", ["spin-discrete", "apenet-v5"])
def test_operations_have_their_values(tmp_path: Path, nic: str, ranks: int) -> None:
    report(tmp_path, VALUES, ranks=ranks, nic=nic)


def test_cards_without_registered_memory_have_them_by_messages(tmp_path: Path) -> None:
    report(tmp_path, VALUES, nic="ethernet-100g")


def test_memory_that_is_used_for_several_targets_is_registered_for_each(tmp_path: Path) -> None:
    # MPICH registers the origin of a long accumulate once per target.
    program = """
memory, mine = numpy.zeros(6000, dtype="q"), numpy.arange(6000, dtype="q") + rank
window = MPI.Win.Create(memory, 8, info, world)
window.Fence()
for target in range(ranks):
    window.Accumulate(mine, target, op=MPI.SUM)
    window.Accumulate(mine[:4000], target, target=[2000, 4000, MPI.LONG_LONG], op=MPI.SUM)
window.Fence()
wanted = ranks * numpy.arange(6000) + ranks * (ranks - 1) // 2
wanted[2000:] += wanted[:4000]
assert (memory == wanted).all()
window.Free()
"""
    report(tmp_path, program, ranks=3, nic="apenet-v5")
    report(tmp_path, program.replace("info, world", "MPI.INFO_NULL, world"), ranks=3, nic="apenet-v5")


DRAWN = """
# All operators are the card's then; those that it names behind lxor, MPICH 5.0 takes for others.
info.Set("which_accumulate_ops", "sum")
window = MPI.Win.Create(numpy.zeros(8, dtype="i"), 4, INFO, world)
window.Lock_all()
world.Barrier()
one, old = numpy.ones(1, dtype="i"), numpy.zeros(1, dtype="i")
for number in range(20 if rank == 0 else 0):
    window.Fetch_and_op(one, old, 1, 0, MPI.SUM)
    window.Flush(1)
    assert old[0] == number
window.Unlock_all()
window.Free()
"""


def test_atomic_operations_are_the_cards_where_a_window_allows_it(tmp_path: Path) -> None:
    by_card = report(tmp_path, DRAWN.replace("INFO", "info"))["ranks"]
    by_messages = report(tmp_path, DRAWN.replace("INFO", "MPI.INFO_NULL"))["ranks"]
    # Each takes a message there and one back; with the card neither is needed.
    assert by_messages[1]["receives"] == by_card[1]["receives"] + 20
    assert by_messages[1]["sends"] == by_card[1]["sends"] + 20
    assert by_messages[0]["sends"] == by_card[0]["sends"], "as many accesses as messages"
    assert by_card[0]["finish_ns"] < by_messages[0]["finish_ns"]


def test_the_same_seed_is_the_same_run(tmp_path: Path) -> None:
    assert report(tmp_path, VALUES) == report(tmp_path, VALUES)


ASIDE = """
memory = numpy.zeros(1 << 16, dtype="b")
window = MPI.Win.Create(memory, comm=world)
window.Lock_all()
world.Barrier()
start = MPI.Wtime()
if rank == 0:
    window.Put(numpy.full(1 << 16, 7, dtype="b"), 1)
    window.Flush(1)
    print("put", (MPI.Wtime() - start) * 1e6)
else:
    time.sleep(1e-3)
    assert (memory == 7).all()
window.Unlock_all()
window.Free()
"""


@pytest.mark.parametrize("nic", ["spin-discrete", "apenet-v5"])
def test_a_target_takes_no_part(tmp_path: Path, nic: str) -> None:
    status, out, err = run(tmp_path, ASIDE, nic=nic)
    assert status == 0, err
    found = re.search(r"put (\S+)", out)
    assert found
    assert float(found[1]) < 500, "while the target sleeps for 1000 us"


FLUSHED = """
memory = numpy.zeros(8, dtype="b")
window = MPI.Win.Create(memory, comm=world)
window.Lock_all()
world.Barrier()
byte = numpy.full(8, 1, dtype="b")
for _ in range(3):
    start = MPI.Wtime()
    if rank == 0:
        window.Put(byte, 1)
        window.Flush(1)
        print("flushed", round((MPI.Wtime() - start) * 1e9, 1))
window.Unlock_all()
window.Free()
"""


def acknowledged() -> float:
    """The time of a put of 8 bytes and the wait for its acknowledgement in a program with Portals, in ns."""

    async def puts(host: nicety.Host) -> float:
        portals = host.portals
        counter = portals.ct_alloc()
        descriptor = portals.md_bind(host.alloc(8), ct=counter, options=["event_ct_ack"])
        await host.barrier()
        start = host.now_ps
        await portals.put(descriptor, 8, to=1, pt=1, match_bits=7, ack="ct_ack")
        await portals.ct_wait(counter, 1)
        return (host.now_ps - start) / 1000

    async def has_memory(host: nicety.Host) -> None:
        portals = host.portals
        portals.pt_alloc(pt=1)
        await portals.me_append(host.alloc(8), pt=1, match_bits=7, options=["op_put"])
        await host.barrier()

    result: float = nicety.Cluster(2, "spin-discrete").run({0: puts, 1: has_memory}).results[0]
    return result


def test_a_put_and_its_flush_take_what_the_card_takes(tmp_path: Path) -> None:
    status, out, err = run(tmp_path, FLUSHED)
    assert status == 0, err
    flushed = [float(found) for found in re.findall(r"flushed (\S+)", out)]
    assert len(flushed) == 3
    # The same put by Portals, a read of the clock, and a look at the queue that finds it, or began before it was there.
    for took in flushed:
        assert 25 < took - acknowledged() <= 25 + 2 * 25 + 0.1


def test_an_access_outside_a_window_ends_the_program(tmp_path: Path) -> None:
    program = """
window = MPI.Win.Create(numpy.zeros(64, dtype="b"), comm=world)
window.Lock_all()
if rank == 0:
    window.Put(numpy.zeros(8, dtype="b"), 1, target=[60, 8, MPI.BYTE])
    window.Flush(1)
window.Unlock_all()
world.Barrier()
"""
    status, _, err = run(tmp_path, program)
    assert status == 1, err
    assert "Permission denied" in err
    assert "MPI_Win_flush(rank=1" in err


def test_a_schedule_says_what_it_lacks(tmp_path: Path) -> None:
    made = report(
        tmp_path, ASIDE.replace('print("put"', '"".format("put"'), "--goal", "aside.goal", "--trace", "aside.pftrace"
    )
    assert made["goal"]["accesses"] == 1
    assert made["ranks"] == report(tmp_path, ASIDE.replace('print("put"', '"".format("put"'))["ranks"]
    status, _, err = run(tmp_path, ASIDE, "--goal", "aside.goal")
    assert status == 0
    assert "1 access to registered memory left out" in err
