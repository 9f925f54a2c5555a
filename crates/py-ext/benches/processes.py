"""Calls of real programs, beside two processes that only wake each other: real time, in one run.

`python crates/py-ext/benches/processes.py`. A call takes a turn of the simulation, unless the process can post it or
knows that it finds nothing.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
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
    words = [os.environ.get("CC", "cc"), "-O2", f"-I{ROOT / 'shim'}", "-o", into, SOURCE, "-ldl"]
    subprocess.run(words, check=True)
    return into


def times(words: list[str | Path]) -> dict[str, float]:
    """The nanoseconds of each case in a run's output."""
    done = subprocess.run(words, stdout=subprocess.PIPE, text=True, check=True)
    lines = [line.split() for line in done.stdout.splitlines()]
    return {line[0]: float(line[1]) for line in lines if line and line[0] in CASES}


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
    print(f"{os.cpu_count()} CPUs, 2 processes")
    for case, what in CASES.items():
        print(f"{what:52} {found[case]:10.0f} ns {found[case] / found['futex']:8.3f} of the first")


if __name__ == "__main__":
    main()
