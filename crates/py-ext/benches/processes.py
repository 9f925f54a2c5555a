"""Compares the real time of a real program's calls with that of two processes that only wake each other, in one run.

`python crates/py-ext/benches/processes.py`. A call takes a turn of the simulation, unless the process can post it, or
knows that the call would find nothing. With an MPI (`mpicc` beside Python or in PATH), CPU and real time of MPI's
messages follow.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[3]
SOURCE = Path(__file__).with_suffix(".c")
CASES = {
    "futex": "there and back between two processes, by futexes",
    "clock": "a read of a clock",
    "post": "a post, carried out",
    "look": "a look at an empty queue",
    "message": "a message of 8 B to itself, with its receive",
    "ping-pong": "a ping-pong of 8 B between two processes",
}


def compiled(folder: Path) -> Path:
    """Compile the program, and return its path."""
    into = folder / "processes"
    words: list[str | Path] = [os.environ.get("CC", "cc"), "-O2", f"-I{ROOT / 'shim'}", "-o", into, SOURCE, "-ldl"]
    subprocess.run(words, check=True)
    return into


def times(words: list[str | Path]) -> dict[str, float]:
    """Return the nanoseconds of each case from the output of a run."""
    done = subprocess.run(words, stdout=subprocess.PIPE, text=True, check=True)
    lines = [line.split() for line in done.stdout.splitlines()]
    return {line[0]: float(line[1]) for line in lines if line and line[0] in CASES}


def used(words: list[str | Path]) -> tuple[float, float]:
    """Return the CPU and real seconds of a command with all its processes."""
    before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    subprocess.run(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=True)
    took, after = time.monotonic() - begun, resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, took


def mpi(folder: Path, count: int) -> list[str]:
    """Return lines about MPI: ping-pong messages, without the command's start, and the command of an all-to-all."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    compiler = shutil.which("mpicc", path=path)
    if compiler is None:
        return ["MPI: not measured, since there is no mpicc"]
    program = folder / "mpi"
    subprocess.run([compiler, "-O2", "-o", program, SOURCE.with_name("mpi.c")], check=True)

    def run(ranks: int, what: str, rounds: int) -> tuple[float, float]:
        command = [sys.executable, "-m", "nicety", "exec", "-n", str(ranks), "--nic", "spin-discrete", "--"]
        return used([*command, program, what, str(rounds)])

    none, all_of, alltoall = run(2, "ping-pong", 1), run(2, "ping-pong", count + 1), run(64, "alltoall", 10)
    cpu, real = ((more - less) / (2 * count) * 1e6 for less, more in zip(none, all_of, strict=True))
    return [
        f"MPI, a message of 8 B in a ping-pong of 2 ranks: cpu_us {cpu:.1f}, real_us {real:.1f}",
        f"MPI, the command of 10 all-to-alls of 64 ranks: cpu_s {alltoall[0]:.2f}, real_s {alltoall[1]:.2f}",
    ]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=20_000, help="how often each")
    count = str(parser.parse_args().count)
    with tempfile.TemporaryDirectory() as folder:
        program = compiled(Path(folder))
        found = times([program, count])
        command = [sys.executable, "-m", "nicety", "exec", "-n", "2", "--nic", "spin-discrete", "--launcher", "none"]
        found |= times([*command, "--", program, count])
        lines = mpi(Path(folder), int(count))
    print(f"{os.cpu_count()} CPUs, 2 processes")
    for case, what in CASES.items():
        print(f"{what:52} {found[case]:10.0f} ns {found[case] / found['futex']:8.3f} of the first")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
