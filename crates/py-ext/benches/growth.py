"""Measures the growth of CPU time with the amount of work.

The amount is a number of messages, ranks, sizes, flows, rules, points, captures or timelines.

`python crates/py-ext/benches/growth.py [WORK...]`. Each work runs several times, and its count doubles each time. The
exponent is the slope of log CPU time over log count; 1 means linear. CPU time with a minimal count is subtracted first.
The exit status is 1 if an exponent is above 1.1.
"""

from __future__ import annotations

import argparse
import math
import statistics
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from measure import Failed, Used, prepare, probe, used
from results import ROOT, Result, write
from works import NICETY
from works import Work as Command

LIMIT = 1.1
"""The highest exponent that counts as linear."""

FILES = {
    "rules.py": """import os
import nicety
DROP = nicety.Handlers("frame.c")
def setup(host):
    for port in range(int(os.environ["RULES"])):
        host.frames.install(f"udp dport={port + 1}", DROP)
async def main(host):
    await host.compute(ns=3_000_000)
    return {}
""",
    "points.py": """import os
from pathlib import Path
seeds = list(range(int(os.environ["POINTS"])))
text = 'run = "goal run small.goal"\\n[options]\\nL = "1us"\\no = "200ns"\\ng = "100ns"\\nG = "0.04ns"\\n'
Path("points.toml").write_text(text + "[grid]\\nseed = " + repr(seeds) + "\\n")
""",
}


@dataclass(frozen=True)
class Work:
    """A command, its counts, and commands that prepare it. `{n}` in a command stands for the count.

    Attributes:
        least: the minimal count, with almost no work.
        count: the first count that is measured.
        doublings: the number of times that the count doubles.
    """

    command: str
    least: int
    count: int
    doublings: int = 3
    prepare: str = ""

    @property
    def counts(self) -> list[int]:
        """The counts that are measured."""
        return [self.count << step for step in range(self.doublings + 1)]


LATENCY = f"{NICETY} bench latency --nic spin-discrete --mode rdma --sizes 8 --iterations {{n}}"
WORKS = {
    "messages": Work(LATENCY, 10, 20_000),
    "sizes": Work(
        f"{NICETY} bench bandwidth --nic spin-discrete --mode rdma --window 8 --iterations 1 --sizes {{n}}",
        4096,
        8 << 20,
    ),
    "ranks": Work(
        f"{NICETY} goal run ranks.goal --nic spin-discrete",
        4,
        256,
        prepare=f"{NICETY} goal generate halo-2d --ranks {{n}} --size 1Ki --iterations 8 -o ranks.goal",
    ),
    "operations": Work(
        f"{NICETY} goal run all.goal --L 1us --o 200ns --g 100ns --G 0.04ns",
        1,
        20,
        prepare=f"{NICETY} goal generate linear-alltoall --ranks 64 --size 8 --iterations {{n}} -o all.goal",
    ),
    "packets": Work(
        f"{NICETY} bench handlers frame.c --nic spin-100g --traffic 'udp size=64 rate=wire packets={{n}}'", 100, 100_000
    ),
    "flows": Work(
        f"{NICETY} bench handlers frame.c --nic spin-100g"
        " --traffic 'udp src=10.0.0.0/8 size=64 rate=wire flows={n} packets={n}'",
        100,
        100_000,
    ),
    "connections": Work(
        f"{NICETY} bench stream --nic ethernet-100g --warmup 1ms --duration 3ms --connections {{n}}", 1, 16
    ),
    "rules": Work(
        f"RULES={{n}} {NICETY} run rules.py --nodes 1 --nic spin-100g --set hpu.rules=256"
        " --traffic 'udp dport=60000 size=64 rate=10Mpps packets=20k'",
        1,
        32,
    ),
    "points": Work(
        f"{NICETY} sweep run points.toml -o points",
        1,
        125,
        prepare=f"rm -rf points; POINTS={{n}} {{python}} points.py; "
        f"{NICETY} goal generate gather --ranks 4 --size 8 -o small.goal",
    ),
    "capture": Work(f"{LATENCY} --capture messages.pcapng", 10, 5000),
    "timeline": Work(f"{LATENCY} --trace messages.json", 10, 2000),
}


def slope(counts: Sequence[int], times: Sequence[float]) -> float:
    """Return the least-squares slope of the logarithms."""
    x, y = ([math.log(each) for each in values] for values in (counts, times))
    middle, level = statistics.fmean(x), statistics.fmean(y)
    return sum((a - middle) * (b - level) for a, b in zip(x, y, strict=True)) / sum((a - middle) ** 2 for a in x)


def run(work: Work, count: int, folder: Path) -> Used:
    """Prepare and run a work once."""
    command, names = Command(work.command, count, prepare=work.prepare), {"python": sys.executable}
    prepare(command, folder, names)
    return used(command, count, folder, names)


def measure(name: str, work: Work, folder: Path, tries: int) -> tuple[list[Result], float]:
    """Return the median times of a work at each count, and the exponent with which its CPU time grows."""

    def median(count: int) -> Result:
        times = [run(work, count, folder) for _ in range(tries)]
        cpu, wall = (statistics.median(values) for values in ([t.cpu_s for t in times], [t.wall_s for t in times]))
        return Result(f"{name}-{count}", "command", "nicety", cpu, wall)

    least = median(work.least)
    rows = [median(count) for count in work.counts]
    # At least a tick of the clock, so that work without any cost of its own has an exponent of zero.
    beyond = [max(row.cpu_s - least.cpu_s, 0.01) for row in rows]
    return rows, slope(work.counts, beyond)


def main() -> int:
    """Measure, and return the exit status."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("works", nargs="*", metavar="WORK", help=f"of {', '.join(WORKS)}; all if left out")
    arguments.add_argument("--tries", type=int, default=3, help="runs of each, for their median; 3 if left out")
    arguments.add_argument("--json", type=Path, metavar="FILE", help="target/bench/growth.json if left out")
    given = arguments.parse_args()
    if unknown := [name for name in given.works if name not in WORKS]:
        arguments.error(f"there is no work {unknown[0]}; there are {', '.join(WORKS)}")
    rows: list[Result] = []
    probes, steep = [probe()], []
    with tempfile.TemporaryDirectory() as folder:
        for name, text in FILES.items():
            Path(folder, name).write_text(text)
        for name in given.works or WORKS:
            try:
                found, exponent = measure(name, WORKS[name], Path(folder), given.tries)
            except Failed as error:
                raise SystemExit(f"{name}: {error}") from None
            rows += found
            steep += [name] if exponent > LIMIT else []
            times = ", ".join(f"{row.work.rpartition('-')[2]}: {row.cpu_s:.2f} s" for row in found)
            above = f" above {LIMIT}" if exponent > LIMIT else ""
            print(f"{name:12} exponent {exponent:5.2f}{above}   {times}", flush=True)
    probes.append(probe())
    print(f"# {write(given.json or ROOT / 'target' / 'bench' / 'growth.json', rows, probes)}")
    return int(bool(steep))


if __name__ == "__main__":
    sys.exit(main())
