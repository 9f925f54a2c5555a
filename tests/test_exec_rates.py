"""Bandwidth and message rates of MPI programs, compared with those of their cards, and their causes."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import nicety

pytest.importorskip("mpi4py")
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="programs run on simulated hosts only under Linux")

HEAD = """
from mpi4py import MPI
import numpy
world = MPI.COMM_WORLD
rank, ranks = world.rank, world.size

def pages(count):
    '''Memory that begins with a page.'''
    raw = numpy.zeros(count + 4096, dtype="b")
    start = -raw.ctypes.data % 4096
    return raw[start : start + count]
"""


def measured(folder: Path, program: str, *options: str, nic: str, ranks: int = 2) -> dict[str, float]:
    """Lines with a name and a number from a program."""
    (folder / "program.py").write_text(HEAD + program)
    command = [sys.executable, "-m", "nicety", "exec", "-n", str(ranks), "--nic", nic, *options]
    command += ["--", sys.executable, "program.py"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr
    return {name: float(value) for name, value in re.findall(r"^= (\S+) (\S+)$", done.stdout, re.MULTILINE)}


WINDOWS = """
WINDOW, ROUNDS = 8, 3
for size in (1 << 18, 1 << 20):
    for name, count in (("one", 1), ("many", WINDOW)):
        buffers = [pages(size) for _ in range(count)]
        ack = numpy.zeros(1, dtype="b")
        for number in range(ROUNDS + 1):
            if number == 1:
                world.Barrier()
                start = MPI.Wtime()
            parts = [buffers[i % count] for i in range(WINDOW)]
            if rank == 0:
                for part in parts:
                    part[:] = number
                MPI.Request.Waitall([world.Isend(part, 1, 1) for part in parts])
                world.Recv(ack, 1, 2)
            else:
                MPI.Request.Waitall([world.Irecv(part, 0, 1) for part in parts])
                world.Send(ack, 0, 2)
                assert all((part == number).all() for part in parts)
        if rank == 0:
            print("=", f"{name}-{size}", WINDOW * ROUNDS * size / (MPI.Wtime() - start) / 1e9)
"""


def test_one_buffer_is_one_set_of_pages(tmp_path: Path) -> None:
    # The TLB of apenet-v5 has 256 pages: one buffer of 1 MiB has this number, and eight of 256 KiB have 512.
    found = measured(tmp_path, WINDOWS, nic="apenet-v5")
    sizes = [1 << 18, 1 << 20]
    card = nicety.run_benchmark("bandwidth", nics=["apenet-v5"], sizes=sizes, window=8)
    for size, row in zip(sizes, card["rows"], strict=True):
        wire = row["bandwidth_bytes_per_s"] / 1e9
        assert found[f"one-{size}"] == pytest.approx(wire, rel=0.03)
        assert found[f"many-{size}"] < 0.6 * wire


SENDERS = """
# Both send into one buffer, and at a time: who has sent is known of each.
ball, status = pages(1 << 16), MPI.Status()
if rank == 0:
    requests = [world.Irecv(ball, MPI.ANY_SOURCE, 1) for _ in range(16)]
    sources = []
    for request in requests:
        request.Wait(status)
        assert status.Get_count() == (1 << 16) - 100 * status.source
        sources.append(status.source)
    assert sorted(sources) == [1] * 8 + [2] * 8
else:
    ball[:] = rank
    MPI.Request.Waitall([world.Isend(ball[100 * rank :], 0, 1) for _ in range(8)])
    # Bytes that change as soon as MPI says that they may.
    for number in range(4):
        ball[:] = number
        world.Send(ball, 3 - rank, 2) if rank == 1 else world.Recv(ball, 3 - rank, 2)
        assert (ball == number).all()
    two = [pages(1 << 16), pages(1 << 16)]
    for number in range(4):
        two[0][:] = number
        world.Sendrecv(two[0], 3 - rank, 3, two[1], 3 - rank, 3)
        assert (two[1] == number).all()
        two.reverse()
"""


def test_messages_that_share_memory_are_told_apart(tmp_path: Path) -> None:
    assert measured(tmp_path, SENDERS, nic="apenet-v5", ranks=3) == {}


RATES = """
WINDOW, ROUNDS = 64, 3
for size in (8, 64, 512, 2048, 4096):
    for name in ("early", "late"):
        ball, ack, took = numpy.zeros(size, dtype="b"), numpy.zeros(4, dtype="b"), 0
        for number in range(ROUNDS + 1):
            post = lambda: [world.Irecv(ball, 0, 1) for _ in range(WINDOW)]
            requests = post() if rank == 1 and name == "early" else []
            if name == "early":
                world.Barrier()
            start = MPI.Wtime()
            if rank == 0:
                MPI.Request.Waitall([world.Isend(ball, 1, 1) for _ in range(WINDOW)])
                world.Recv(ack, 1, 2)
            else:
                MPI.Request.Waitall(requests or post())
                world.Send(ack, 0, 2)
            took += (MPI.Wtime() - start) if number else 0
        if rank == 0:
            print("=", f"{name}-{size}", WINDOW * ROUNDS / took / 1e6)
"""


def test_receives_that_fall_behind_cost_messages_their_rate(tmp_path: Path) -> None:
    sizes = [8, 64, 512, 2048, 4096]
    # A CPU posts a receive in 65 ns (SC17, o), or here in 20 ns.
    for options, post_ns in (([], 65), (["--set", "host.post=20ns"], 20)):
        found = measured(tmp_path, RATES, *options, nic="spin-discrete")
        early, late = ({size: found[f"{name}-{size}"] for size in sizes} for name in ("early", "late"))
        # With posted receives, longer messages take longer.
        assert list(early.values()) == sorted(early.values(), reverse=True)
        for size in sizes[2:]:
            if 1000 / early[size] > post_ns:
                assert late[size] == pytest.approx(early[size], rel=0.02)
            else:
                # Messages arrive faster than receives are posted, and must be copied.
                assert late[size] < 0.6 * early[size]
