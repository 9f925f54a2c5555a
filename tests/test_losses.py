"""Frames that `nicety bench handlers` loses: a status of 1, unless the user allows losses."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nicety.build.xdp import compile_xdp

IN_C = """
#include <frame.h>
__handler int frame_handler(const frame_t *frame, void *state) {
    return FRAME_HOST;
}
"""
XDP = """
#include <xdp.h>
SEC("xdp") int passing(struct xdp_md *context) { return XDP_PASS; }
char _license[] SEC("license") = "GPL";
"""
WIRE, SLOW = "udp size=60 packets=4k", "udp size=60 packets=200 rate=0.1Mpps"


@pytest.fixture
def program(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    source = tmp_path / "own.c"
    source.write_text(IN_C if request.param == "c" else XDP)
    return source if request.param == "c" else compile_xdp(source, output=tmp_path / "own.o")


CASES = [("c", "spin-100g"), ("xdp", "spin-100g"), ("xdp", "ethernet-100g"), ("xdp", "hxdp-sume")]


@pytest.mark.parametrize(("program", "nic"), CASES, indirect=["program"])
def test_lost_frames_are_an_error_with_the_whole_report(nicety: Callable[..., Any], program: Path, nic: str) -> None:
    command = ["bench", "handlers", program, "--nic", nic, "--json", "--traffic"]
    lost = nicety(*command, WIRE)
    assert lost.status == 1
    (line,) = [line for line in lost.stderr.splitlines() if "frames were lost" in line]
    assert line.startswith(f"nicety: {nic}: ")
    assert line.endswith(" Mpps; write a lower rate in --traffic, or --lossy")
    allowed = nicety(*command, WIRE, "--lossy")
    assert (allowed.status, "frames were lost" in allowed.stderr) == (0, False)
    kept = nicety(*command, SLOW)
    assert (kept.status, "frames were lost" in kept.stderr) == (0, False)
    # The report is complete in each case.
    assert {key for each in (lost, allowed, kept) for key in [tuple(each.json())]} == {tuple(json.loads(kept.stdout))}


@pytest.mark.parametrize("program", ["xdp"], indirect=True)
def test_equal_packets_at_the_rate_of_the_wire_ask_for_a_rate_alone(nicety: Callable[..., Any], program: Path) -> None:
    result = nicety("bench", "handlers", program, "--nic", "hxdp-sume", "--packet-sizes", "60", "--messages", "2k")
    assert result.status == 0
    assert "found the input queue full" in result.stdout
