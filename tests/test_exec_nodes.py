"""Real programs with several processes on a host."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from test_exec import PING, report, run

pytest.importorskip("mpi4py")
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="programs run on simulated hosts only under Linux")

# Messages of each rank to each, with equal tags, short and long: each has different bytes.
ALL_TO_ALL = """
for size in (3, 40_000):
    for way in (1, -1):
        inbox = [numpy.zeros(size, dtype="i") for _ in range(ranks)]
        wanted = [world.Irecv(inbox[each], each, tag=7) for each in range(ranks)[::way]]
        sent = [world.Isend(numpy.full(size, 100 * rank + each, dtype="i"), each, tag=7) for each in range(ranks)]
        MPI.Request.Waitall(wanted + sent)
        for each in range(ranks):
            assert (inbox[each] == 100 * each + rank).all(), (rank, each, inbox[each][:3])
status = MPI.Status()
if rank == 0:
    seen = set()
    for _ in range(ranks - 1):
        got = world.recv(source=MPI.ANY_SOURCE, tag=MPI.ANY_TAG, status=status)
        assert got == (status.source, status.tag)
        seen.add(status.source)
    assert seen == set(range(1, ranks))
else:
    world.send((rank, 9), 0, tag=9)
"""


@pytest.mark.parametrize("nic", ["spin-discrete", "apenet-v5", "ethernet-100g", "qnix", "nfp-4000"])
@pytest.mark.parametrize(("ranks", "each"), [(4, 2), (5, 3), (4, 4)])
def test_messages_find_their_process(tmp_path: Path, nic: str, ranks: int, each: int) -> None:
    made = report(tmp_path, ALL_TO_ALL, "--ranks-per-node", str(each), ranks=ranks, nic=nic)
    assert made["ranks_per_node"] == each
    assert sum(row["sends"] for row in made["ranks"]) == sum(row["receives"] for row in made["ranks"])


def test_a_message_within_a_host_does_not_take_the_wire(tmp_path: Path) -> None:
    options = ["--capture", "one.pcapng"]
    within = report(tmp_path, PING, "--ranks-per-node", "2", *options)
    between = report(tmp_path, PING)
    assert within["max_finish_ns"] < between["max_finish_ns"]
    assert within == report(tmp_path, PING, "--ranks-per-node", "2")


def test_processes_of_a_host_share_its_card(tmp_path: Path) -> None:
    # Two processes of host 0 send 16 MiB each to two of host 1: twice the time of one of them alone.
    program = """
bulk = numpy.zeros(16 << 20, dtype="b")
world.Barrier()
start = MPI.Wtime()
if rank < {senders}:
    world.Send(bulk, rank + 2)
elif rank - 2 in range({senders}):
    world.Recv(bulk, rank - 2)
world.Barrier()
if rank == 0:
    print("took", MPI.Wtime() - start)
"""
    took = []
    for senders in (1, 2):
        status, out, err = run(tmp_path, program.format(senders=senders), "--ranks-per-node", "2", ranks=4)
        assert status == 0, err
        took.append(float(out.split("took ")[1].split()[0]))
    assert took[1] == pytest.approx(2 * took[0], rel=0.1)


@pytest.mark.parametrize("nic", ["apenet-v5", "nfp-4000"])
def test_no_pair_of_processes_waits_for_room_of_another(tmp_path: Path, nic: str) -> None:
    # Leaves of the gathers run ahead of their parents, as far as there is room for their messages.
    program = """
for number in range(30):
    assert world.alltoall([100 * rank + each for each in range(ranks)]) == [100 * each + rank for each in range(ranks)]
    everyone = world.gather(number, root=0)
    assert rank or everyone == [number] * ranks
for number in range(60):
    world.gather(number, root=0)
"""
    status, _, err = run(tmp_path, program, "--ranks-per-node", "8", ranks=16, nic=nic)
    assert status == 0, err


@pytest.mark.parametrize("nic", ["apenet-v5", "nfp-4000"])
def test_sends_that_wait_for_room_are_of_their_processes(tmp_path: Path, nic: str) -> None:
    program = """
ball = numpy.zeros(4, dtype="b")
for tag in range(40):
    if rank == 3: world.Send(ball, 1, tag=tag)
if rank == 1: world.Recv(ball, 3, tag=39)
"""
    status, _, err = run(tmp_path, program, "--ranks-per-node", "2", "--patience", "2000", ranks=4, nic=nic)
    assert status == 1
    assert re.search(r"at rank 3, \d+ sends? to rank 1 waits?: that rank holds 16 messages from this rank", err), err


def test_a_rank_is_named_by_its_own_number(tmp_path: Path) -> None:
    program = "if rank == 3: world.Recv(numpy.zeros(4, dtype='b'), 1, tag=7)\n"
    status, _, err = run(tmp_path, program, "--ranks-per-node", "2", "--patience", "2000", ranks=4)
    assert status == 1
    assert re.search(r"node 1, program 'rank 3', waits since \S+ \w+ for a completion", err), err
    assert "a receive of 4 bytes from rank 1" in err


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--ranks-per-node", "9"], "--ranks-per-node is 1 to 8, not 9"),
        (["--ranks-per-node", "4"], "the program has 2 processes"),
        (["--ranks-per-node", "2", "--topology", "pair"], "pair"),
        (["--ranks-per-node", "2", "--offload", "bcast"], "leave out --offload"),
    ],
)
def test_numbers_that_cannot_be_are_refused(tmp_path: Path, words: list[str], told: str) -> None:
    status, _, err = run(tmp_path, PING, *words)
    assert status == 2, err
    assert told in err
    assert "Traceback" not in err
