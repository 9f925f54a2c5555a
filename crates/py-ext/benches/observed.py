"""Compares the CPU time of `nicety check` and `nicety profile` with that of the same packets without, in one run.

`python crates/py-ext/benches/observed.py [WORK...] [--tries 5]`. Runs alternate: plain, checked, profiled. Programs are
compiled before, and a row has the medians of the ratios.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from nicety import _native
from nicety._generated.types import LineRateOptions
from nicety.bench.check.program import check_program
from nicety.bench.line_rate import build_for, derived, on_cards_of, program_of
from nicety.bench.profile.program import profile_program
from nicety.build.xdp import compile_xdp
from nicety.program.script import run_program
from nicety.shared.options import request_text

HANDLERS = Path(__file__).parents[3] / "handlers"
LOCKED = """\
#include <nicety.h>
typedef struct { uint32_t lock, packets, bytes, table[16]; } state_t;
__handler int payload_handler(const ptl_payload_t p, void *state) {
    state_t *shared = state;
    while (__atomic_exchange_n(&shared->lock, 1, __ATOMIC_ACQUIRE)) {}
    shared->packets++;
    shared->bytes += p.length;
    shared->table[shared->packets % 16]++;
    __atomic_store_n(&shared->lock, 0, __ATOMIC_RELEASE);
    return SUCCESS;
}
"""
SUM = """\
#include <nicety.h>
__handler int payload_handler(const ptl_payload_t p, void *state) {
    uint32_t sum = 0, buckets[16] = {0};
    const uint32_t *words = (const uint32_t *)p.base;
    for (uint32_t i = 0; i < p.length / 4; i++) { sum += words[i]; buckets[words[i] % 16] += sum; }
    for (int i = 0; i < 16; i++) sum ^= buckets[i];
    __atomic_fetch_add((uint32_t *)state, sum, __ATOMIC_RELAXED);
    return SUCCESS;
}
"""
ORDERED = """\
#include <nfp.h>
__process uint32_t work(uint32_t first, uint32_t rounds) {
    volatile uint32_t *words = nfp_emem(4096 * first);
    uint32_t sum = 0;
    for (uint32_t i = 0; i < rounds; i++) { words[i % 64] = i; sum += words[(i + 1) % 64]; }
    return sum;
}
"""
COMPUTED = """\
#include <nfp.h>
__process uint32_t work(uint32_t first, uint32_t rounds) {
    volatile uint32_t table[32];
    for (uint32_t i = 0; i < 32; i++) table[i] = first;
    uint32_t value = first + 1;
    for (uint32_t i = 0; i < 20 * rounds; i++) {
        value ^= value << 13; value ^= value >> 17; value ^= value << 5;
        table[value % 32] += value;
    }
    return table[5];
}
"""
HOST = """\
import nicety
nodes = 1
program = nicety.Processes({source!r})
async def main(host):
    begun = [
        host.channels.start(program, "work", microengine=place // 4, context=place % 4, args=(place, {rounds}))
        for place in range(16)
    ]
    print(sum([await process.finished() for process in begun]))
"""


@dataclass(frozen=True)
class Work:
    """A program: a file of the library, or its text, and options of its packets. Processes have rounds instead."""

    source: str
    options: dict[str, Any] = field(default_factory=dict)
    rounds: int = 0


UDP = "udp src=10.0.0.0/16 dst=10.0.0.2 sport=1024-2047 dport=53 size=60 packets={packets}"
FRAMES = {"nics": ["spin-100g"], "traffic": [UDP.format(packets=20_000)]}
FEW = {"nics": ["spin-100g"], "traffic": [UDP.format(packets=5_000)]}
EQUAL = {"packet_sizes": [512], "messages": 64, "message_packets": 64}
WORKS = {
    "frames-count": Work("frames/count.c", FRAMES),
    "frames-firewall": Work("frames/firewall.c", {**FRAMES, "state_bytes": 1 << 20}),
    "xdp-counters": Work("xdp/counters.c", FEW),
    "xdp-balancer": Work("xdp/balancer.c", FEW),
    "xdp-bucket": Work("xdp/bucket.c", FEW),
    "accumulate": Work("accumulate.c", {"nics": ["spin-discrete"], **EQUAL}),
    "sink": Work("sink_store.c", {"nics": ["spin-discrete"], **EQUAL}),
    "pspin-sum": Work("pspin/sum.c", {"nics": ["pspin"], **EQUAL}),
    "lock": Work(LOCKED, {"nics": ["spin-discrete"], **EQUAL, "packet_sizes": [64]}),
    "sum": Work(SUM, {"nics": ["spin-discrete"], **EQUAL}),
    "processes-memory": Work(ORDERED, rounds=4000),
    "processes-compute": Work(COMPUTED, rounds=2000),
}

Run = Callable[[], Any]


def of_handlers(work: Work, folder: Path) -> dict[str, Run]:
    """The runs of handlers, compiled."""
    source = HANDLERS / work.source
    if "\n" in work.source:
        source = folder / "program.c"
        source.write_text(work.source)
    if "<xdp.h>" in source.read_text():
        source = compile_xdp(source, output=folder / "program.o")
    program = program_of(source, (), (), None)
    given = dict(work.options)
    on_cards = on_cards_of(program, {}, given)
    request = request_text(LineRateOptions, given, **derived(program, on_cards))
    items = json.loads(_native.line_rate_plan(request))["compile"]
    elfs = {item["key"]: build_for(program, on_cards, item)[0] for item in items}
    return {
        "plain": lambda: _native.plain_run(request, elfs, False),
        "check": lambda: _native.check_run(request, elfs, 1, None),
        "plain of profile": lambda: _native.plain_run(request, elfs, True),
        "profile": lambda: _native.profile_run(request, elfs, None),
    }


def of_processes(work: Work, folder: Path) -> dict[str, Run]:
    """The runs of a program of hosts."""
    (folder / "work.c").write_text(work.source)
    path = folder / "host.py"
    path.write_text(HOST.format(source=str(folder / "work.c"), rounds=work.rounds))

    def silent(run: Callable[..., Any]) -> Run:
        def silently() -> None:
            with contextlib.redirect_stdout(io.StringIO()):
                run(path, nics=["nfp-4000"])

        return silently

    return {
        "plain": silent(run_program),
        "check": silent(check_program),
        "plain of profile": silent(run_program),
        "profile": silent(profile_program),
    }


def cpu_of(run: Run) -> float:
    """CPU seconds of a run, with all threads."""
    begun = time.process_time()
    run()
    return time.process_time() - begun


def measure(work: Work, tries: int, folder: Path) -> dict[str, list[float]]:
    """CPU seconds of each kind of run. A first round warms up."""
    runs = (of_processes if work.rounds else of_handlers)(work, folder)
    times: dict[str, list[float]] = {kind: [] for kind in runs}
    for turn in range(tries + 1):
        for kind, run in runs.items():
            took = cpu_of(run)
            if turn > 0:
                times[kind].append(took)
    return times


def main() -> None:
    """Measure."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("works", nargs="*", metavar="WORK", help=f"of {', '.join(WORKS)}; all if left out")
    arguments.add_argument("--tries", type=int, default=5)
    given = arguments.parse_args()
    print(f"{'work':20}{'plain ms':>10}{'check ms':>10}{'ratio':>8}{'plain ms':>10}{'profile ms':>12}{'ratio':>8}")
    for name in given.works or WORKS:
        with tempfile.TemporaryDirectory() as folder:
            times = measure(WORKS[name], given.tries, Path(folder))
        cells = []
        for plain, observed in (("plain", "check"), ("plain of profile", "profile")):
            ratio = median(more / less for less, more in zip(times[plain], times[observed], strict=True))
            cells += [1e3 * median(times[plain]), 1e3 * median(times[observed]), ratio]
        a, b, c, d, e, f = cells
        print(f"{name:20}{a:10.1f}{b:10.1f}{c:8.2f}{d:10.1f}{e:12.1f}{f:8.2f}", flush=True)


if __name__ == "__main__":
    main()
