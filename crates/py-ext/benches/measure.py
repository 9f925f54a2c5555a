"""Measures CPU time and real time of commands with all their processes, and the state of the machine."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from works import BENCHES, SOURCES, Work


@dataclass(frozen=True)
class Used:
    """CPU time and real time in seconds, and the number of units of work."""

    cpu_s: float
    wall_s: float
    units: float

    def less(self, other: Used) -> Used:
        """Return the difference to `other` in times and units."""
        return Used(self.cpu_s - other.cpu_s, self.wall_s - other.wall_s, self.units - other.units)


class Failed(Exception):
    """A command ended with an error."""


def shell(text: str, folder: Path, python: str) -> str:
    """Run a command in a folder, and return its output."""
    environment = os.environ | {"PATH": f"{Path(python).parent}:{os.environ['PATH']}"}
    run = subprocess.run(
        ["/bin/sh", "-c", text], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    if run.returncode:
        last = (run.stderr.strip() or run.stdout.strip()).splitlines()[-1:]
        raise Failed(f"{text}: status {run.returncode}: {' '.join(last)}")
    return run.stdout


def filled(text: str, names: dict[str, str], count: int) -> str:
    """Return a command with its names and its size filled in."""
    for name, value in (names | {"n": str(count), "benches": str(BENCHES)}).items():
        text = text.replace(f"{{{name}}}", value)
    return text


def used(work: Work, count: int, folder: Path, names: dict[str, str]) -> Used:
    """Run a work once."""
    before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    output = shell(filled(work.command, names, count), folder, names["python"])
    wall, after = time.monotonic() - begun, resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    units = work.units(count) if work.units else float(output.split()[-1])
    return Used(cpu, wall, units)


def prepare(work: Work, folder: Path, names: dict[str, str]) -> None:
    """Write the sources and make the files of a work."""
    for name, text in SOURCES.items():
        folder.joinpath(name).write_text(text)
    for count in {work.count, work.small or work.count}:
        if work.prepare:
            shell(filled(work.prepare, names, count), folder, names["python"])


def unit(work: Work, folder: Path, names: dict[str, str]) -> tuple[float, float]:
    """Return CPU and real seconds of a unit of a work, from one run at each of its sizes."""
    large = used(work, work.count, folder, names)
    spent = large.less(used(work, work.small, folder, names)) if work.small else large
    return spent.cpu_s / spent.units, spent.wall_s / spent.units


@dataclass(frozen=True)
class Side:
    """A work of one of the compared programs."""

    title: str
    work: Work
    names: dict[str, str]


def alternate(sides: list[Side], folder: Path, tries: int) -> list[tuple[float, float]]:
    """Return for each side the median CPU and real seconds of a unit. Runs of the sides alternate."""
    found: list[list[tuple[float, float]]] = [[] for _ in sides]
    for side in sides:
        prepare(side.work, folder, side.names)
    for _ in range(tries):
        for side, values in zip(sides, found, strict=True):
            values.append(unit(side.work, folder, side.names))
    return [(median(cpu for cpu, _ in values), median(wall for _, wall in values)) for values in found]


def probe() -> dict[str, float]:
    """Return the state of the machine: CPU and real time of a fixed loop, and the load of the last minute."""
    begun, cpu = time.monotonic(), time.process_time()
    total = 0
    for each in range(3_000_000):
        total ^= each * 2654435761
    return {
        "probe_cpu_ms": (time.process_time() - cpu) * 1e3,
        "probe_wall_ms": (time.monotonic() - begun) * 1e3,
        "load": os.getloadavg()[0],
    }


@contextmanager
def progress(name: str) -> Iterator[None]:
    """Say on stderr when a work is done."""
    begun = time.monotonic()
    yield
    print(f"{name}: {time.monotonic() - begun:.0f} s", file=sys.stderr)
