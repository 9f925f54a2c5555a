"""The benchmark of the simulator's cost per handler: its runs, and the consistency of its figures."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / "crates/py-ext/benches/handlers.py"


def test_packets_and_cycles_a_second_are_of_busy_cards() -> None:
    run = subprocess.run(
        [sys.executable, SCRIPT, "--packets=2000", "--long-packets=3000", "--short-packets=30000", "--tries=1"],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert (run.returncode, run.stderr) == (0, "")
    messages, frames, long, *short = run.stdout.splitlines()
    for line, nic in ((messages, "spin-discrete"), (frames, "spin-100g")):
        found = re.fullmatch(
            rf"{nic}, a capture to a handler of (\d+) instructions: packets_per_s (\d+), us_per_packet ([\d.]+)", line
        )
        assert found, line
        assert 20 <= int(found[1]) <= 60
        assert int(found[2]) * float(found[3]) == pytest.approx(1e6, rel=0.02)
    # By the calibration of sum.c: 1997 instructions in some 3001 cycles, 61 in 84.
    kinds = [(long, (3001, 1997), ""), *((line, (84, 61), r", [\d.]+ of long runs") for line in short)]
    assert len(kinds) == 3
    for line, (cycles, executed), share in kinds:
        found = re.fullmatch(
            r"pspin, udp [^,]+, runs of (\d+) cycles, ([\d.]+) of 32 cores busy: core_cycles_per_s (\d+), "
            rf"cycles_per_s (\d+), instructions_per_s (\d+){share}",
            line,
        )
        assert found, line
        each, busy, of_cores, of_clock, instructions = map(float, found.groups())
        assert each == pytest.approx(cycles, rel=0.05)
        assert 31 <= busy <= 32
        assert of_cores / of_clock == pytest.approx(busy, abs=0.1)
        assert instructions / of_cores == pytest.approx(executed / cycles, rel=0.05)
