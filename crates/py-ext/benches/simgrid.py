"""Compares ping-pong and all-to-all on SimGrid with the same schedules on nicety: simulated time and CPU time.

`python crates/py-ext/benches/simgrid.py`. All runs have the latency, bandwidth and overhead of spin-discrete. SimGrid
shares bandwidth between flows (CM02, without the limits of TCP). LogGOPS sends one message after the other, and
occupies the receiver's CPU for the bytes of a message. Cards send packets. If the compiler (`CXX`, otherwise `c++`)
finds no SimGrid, a line says so, and nothing is measured.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import nicety
from nicety._generated.types import ScheduleReport
from nicety.shared.ranges import parse_ranges
from nicety.show.columns import align, fixed

SOURCE = Path(__file__).with_suffix(".cpp")
# spin-discrete on a star: latency between programs without the CPUs' overhead, a CPU's overhead, and link bandwidth.
LATENCY_NS, OVERHEAD_NS, GAP_NS, GB_PER_S = 564, 65, 7, 50
# SimGrid's default precision of a nanosecond is too coarse here.
MODEL = ["network/model:CM02", "network/TCP-gamma:0", "network/crosstraffic:0", "surf/precision:1e-13"]
PLATFORM = f"""<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
  <cluster id="star" prefix="" suffix="" radical="0-%d" speed="1Gf" bw="{GB_PER_S}GBps" lat="{LATENCY_NS // 2}ns"
           sharing_policy="SPLITDUPLEX"/>
</platform>
"""


@dataclass(frozen=True)
class Case:
    """A pattern between `hosts` hosts, `rounds` times."""

    pattern: str
    hosts: int
    size: int
    rounds: int

    @property
    def messages(self) -> int:
        """The number of messages."""
        return 2 * self.rounds if self.pattern == "ping-pong" else self.hosts * (self.hosts - 1) * self.rounds

    def write(self, file: Path) -> None:
        """Write the pattern as a schedule."""
        if self.pattern == "alltoall":
            nicety.generate_schedule("linear-alltoall", file, ranks=self.hosts, size=self.size, iterations=self.rounds)
            return
        lines = ["num_ranks 2"]
        for rank in (0, 1):
            lines.append(f"rank {rank} {{")
            for turn in range(2 * self.rounds):
                what = "send" if turn % 2 == rank else "recv"
                lines.append(f"t{turn}: {what} {self.size}b {'to' if what == 'send' else 'from'} {1 - rank}")
                lines += [f"t{turn} requires t{turn - 1}"] if turn else []
            lines.append("}")
        file.write_text("\n".join(lines) + "\n")


def compiler() -> str | None:
    """Return the C++ compiler, if it finds SimGrid."""
    named = os.environ.get("CXX", "c++")
    if shutil.which(named) is None:
        return None
    include = "#include <simgrid/s4u.hpp>\n"
    found = subprocess.run([named, "-x", "c++", "-E", "-"], input=include, capture_output=True, text=True, check=False)
    return named if found.returncode == 0 else None


def build(named: str, folder: Path) -> Path:
    """Compile the program, and return its path."""
    program = folder / "simgrid"
    command = [named, "-std=c++17", "-O2", "-Wno-deprecated-declarations", str(SOURCE), "-lsimgrid", "-o", str(program)]
    if subprocess.run(command, check=False).returncode:
        raise SystemExit("simgrid: the program cannot be compiled, as said above")
    return program


def on_simgrid(program: Path, case: Case, folder: Path) -> tuple[str, float, float]:
    """Return SimGrid's version, the simulated microseconds, and the CPU seconds."""
    platform = folder / f"star-{case.hosts}.xml"
    platform.write_text(PLATFORM % (case.hosts - 1))
    words = [case.pattern, case.hosts, case.size, case.rounds, OVERHEAD_NS * 1e-9]
    options = [*(f"--cfg={each}" for each in MODEL), "--log=root.thresh:warning"]
    command = [str(program), str(platform), *map(str, words), *options]
    run = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if run.returncode:
        raise SystemExit(f"simgrid: {case.pattern} failed with status {run.returncode}, as said above")
    version, simulated, used = run.stdout.split()
    return version, float(simulated) * 1e6, float(used)


def timed(run: Callable[[], ScheduleReport]) -> tuple[float, float]:
    """Return the simulated microseconds and the CPU seconds of a run on nicety."""
    begun = time.process_time()
    report = run()
    return report["max_finish_ns"] / 1e3, time.process_time() - begun


def compare(program: Path, case: Case, folder: Path, tries: int) -> tuple[str, list[str]]:
    """Return SimGrid's version, and a row of the table."""
    file = folder / "schedule.goal"
    case.write(file)

    def loggops() -> ScheduleReport:
        return nicety.run_schedule(
            file,
            latency=f"{LATENCY_NS}ns",
            overhead=f"{OVERHEAD_NS}ns",
            gap=f"{GAP_NS}ns",
            gap_per_byte=f"{GB_PER_S}GB/s",
            eager_bytes=1 << 40,
        )

    def cards() -> ScheduleReport:
        return nicety.run_schedule(file, nic="spin-discrete", topology="star", overrides=[f"switch.ports={case.hosts}"])

    simulated, used = [], []
    found = [on_simgrid(program, case, folder) for _ in range(tries)]
    version = found[0][0]
    runs = [[pair[1:] for pair in found], *([timed(run) for _ in range(tries)] for run in (loggops, cards))]
    for each in runs:
        simulated.append(each[0][0] / (case.messages if case.pattern == "ping-pong" else case.rounds))
        used.append(min(cpu for _, cpu in each) / case.messages * 1e6)
    figures = [fixed(figure, 3) for figure in [*simulated, *used]]
    return version, [case.pattern, str(case.hosts), str(case.size), *figures]


def main() -> None:
    """Compare."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--sizes", default="8,4Ki,64Ki,1Mi", help="of a ping-pong's messages")
    arguments.add_argument("--rounds", type=int, default=1000, help="of a ping-pong")
    arguments.add_argument("--hosts", default="16,32,64,128", help="of an all-to-all of 4 KiB")
    arguments.add_argument("--tries", type=int, default=3, help="the best of how many; 3 if left out")
    given = arguments.parse_args()
    cases = [Case("ping-pong", 2, size, given.rounds) for size in parse_ranges(given.sizes, "--sizes")]
    cases += [Case("alltoall", hosts, 4096, 1) for hosts in parse_ranges(given.hosts, "--hosts")]
    named = compiler()
    if named is None:
        print(
            "simgrid: not compared with, since the C++ compiler finds no simgrid/s4u.hpp; on Debian and Ubuntu: "
            "apt install g++ libsimgrid-dev"
        )
        return
    names = ["simgrid", "loggops", "spin-discrete"]
    rows = [["pattern", "hosts", "bytes", *(f"{name} (µs)" for name in names), *(f"{name} (CPU µs)" for name in names)]]
    version = ""
    with tempfile.TemporaryDirectory() as folder:
        program = build(named, Path(folder))
        for case in cases:
            version, row = compare(program, case, Path(folder), given.tries)
            rows.append(row)
            print(f"simgrid: {case.pattern} of {case.hosts} hosts is done", file=sys.stderr)
    print(
        f"# SimGrid {version} ({', '.join(MODEL)}), nicety's LogGOPS, and its spin-discrete packet by packet\n"
        f"# latency {LATENCY_NS} ns, overhead {OVERHEAD_NS} ns, {GB_PER_S} GB/s\n"
        "# simulated: half a round trip, or the all-to-all; CPU time: for each message, files read included"
    )
    print("\n".join(align(rows, range(1, len(rows[0])))))


if __name__ == "__main__":
    main()
