"""Compares the cost of calls in a Python program with the same program in Rust: the CPU time of both, in one run.

`python crates/py-ext/benches/calls.py`; `--all-to-all 1024` sets the number of hosts in the all-to-all.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import time
from collections.abc import Callable

from builds import benchmark

import nicety

COUNTED = ["op_put", "event_comm_disable", "event_link_disable", "event_ct_comm"]


def compute(count: int) -> nicety.Run:
    """Awaited calls that do almost nothing."""

    async def main(host: nicety.Host) -> None:
        for _ in range(count):
            await host.compute(ns=1)

    return nicety.Cluster(1, "spin-discrete", recording="summary").run(main)


async def ends(host: nicety.Host, bits: int, out: int, back: int) -> tuple[int, int]:
    """Return a counter of received messages, and the memory descriptor of the send buffer."""
    sent, came, count = host.alloc(out), host.alloc(back), host.portals.ct_alloc()
    await host.portals.me_append(came, pt=host.portals.pt_alloc(pt=1), match_bits=bits, options=COUNTED, ct=count)
    md = host.portals.md_bind(sent, options=["event_send_disable"])
    await host.barrier()
    return count, md


def ping_pong(count: int) -> nicety.Run:
    """Exchange messages of 64 B for `count` rounds."""

    async def main(host: nicety.Host) -> None:
        own, other = host.rank, 1 - host.rank
        came, md = await ends(host, own, 64, 64)
        for turn in range(1, count + 1):
            if own == 0:
                await host.portals.put(md, 64, to=other, pt=1, match_bits=other)
            await host.portals.ct_wait(came, turn)
            if own == 1:
                await host.portals.put(md, 64, to=other, pt=1, match_bits=other)

    return nicety.Cluster(2, "spin-discrete", recording="summary").run(main)


def all_to_all(count: int) -> nicety.Run:
    """Send 8 B from each of `count` hosts to every other host."""

    async def main(host: nicety.Host) -> None:
        rank, ranks = host.rank, host.ranks
        came, md = await ends(host, 0, 8, 8 * ranks)
        for step in range(1, ranks):
            await host.portals.put(md, 8, to=(rank + step) % ranks, pt=1, remote_offset=8 * rank)
        await host.portals.ct_wait(came, ranks - 1)

    return nicety.Cluster(count, "spin-discrete", topology="fat-tree", recording="summary").run(main)


def idle(count: int) -> nicety.Run:
    """Run hosts that do nothing."""

    async def main(host: nicety.Host) -> None:
        del host

    return nicety.Cluster(count, "spin-discrete", topology="fat-tree", recording="summary").run(main)


def in_python(program: Callable[[int], nicety.Run], count: int) -> tuple[float, int]:
    """Return CPU seconds, and the virtual time of the run's end in picoseconds."""
    begun = time.process_time()
    end = program(count).time_ps
    return time.process_time() - begun, end


def build() -> str:
    """Build the programs in Rust with the profile of the working tree's extension module, and return their path."""
    return benchmark("nicety", "programs", "--profile", "tree")


def in_rust(program: str, name: str, count: int) -> tuple[float, int]:
    """Return CPU seconds, and the virtual time of the run's end in picoseconds, for the program in Rust."""
    with subprocess.Popen([program, name, str(count)], stdout=subprocess.PIPE, text=True) as running:
        printed = running.stdout.read() if running.stdout else ""
        _, status, used = os.wait4(running.pid, 0)
        running.returncode = os.waitstatus_to_exitcode(status)
    if running.returncode:
        raise SystemExit(f"{name} in Rust failed with status {running.returncode}")
    end = int(printed)
    return used.ru_utime + used.ru_stime, end


def compare(name: str, program: Callable[[int], nicety.Run], rust: str, count: int, calls: int, tries: int) -> None:
    """Measure a program of `calls` calls in both languages, and print the best of `tries` tries."""
    measured = [(in_python(program, count), in_rust(rust, name, count)) for _ in range(tries)]
    if len({end for pair in measured for _, end in pair}) > 1:
        raise SystemExit(f"{name}: the programs end at different times, so they are not the same")
    python, other = (min(pair[which][0] for pair in measured) for which in (0, 1))
    print(
        f"python {name}: cpu_s {python:.3f}, in rust {other:.3f}, ratio {python / other:.2f}, "
        f"more_us_per_call {(python - other) / calls * 1e6:.2f}"
    )


def main() -> None:
    """Compare."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--all-to-all", type=int, metavar="HOSTS", default=64, help="how many hosts")
    arguments.add_argument("--tries", type=int, default=3, help="the best of how many; 3 if left out")
    given = arguments.parse_args()
    hosts, tries = given.all_to_all, given.tries
    rust = build()
    compare("compute", compute, rust, 200_000, 200_000, tries)
    compare("ping-pong", ping_pong, rust, 20_000, 80_000, tries)
    compare("all-to-all", all_to_all, rust, hosts, hosts * hosts, tries)


if __name__ == "__main__":
    main()
