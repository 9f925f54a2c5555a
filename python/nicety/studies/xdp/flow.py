"""Rates of XDP programs on the microengines of a network flow processor."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import as_file, files
from pathlib import Path
from tempfile import TemporaryDirectory

from nicety.bench.line_rate import check_line_rate
from nicety.build.card import XdpProgram
from nicety.build.xdp import compile_xdp
from nicety.errors import InputError

PROGRAMS = {"XDP_DROP": "drop", "XDP_TX": "tx"}
"""The tests of a network flow processor, with the program of each in the folder of hXDP's study."""


def rate_on_contexts(test: str, *, nic: str, size: int, overrides: Sequence[str] = ()) -> float:
    """Return the rate in Mpps of frames with a verdict, while frames arrive at the rate of the card's port.

    Args:
        test: a key of `PROGRAMS`.
        nic: the card.
        size: bytes of a frame without its check sequence.
        overrides: changes to the card.

    Raises:
        InputError: the card has no such program.
    """
    if test not in PROGRAMS:
        raise InputError(f"{test}: Linux offloads no redirects to {nic}; leave the row out")
    name = PROGRAMS[test]
    with as_file(files("nicety.studies.xdp.hxdp") / f"{name}.c") as source, TemporaryDirectory() as folder:
        program = XdpProgram(compile_xdp(source, output=Path(folder) / f"{name}.o"))
        traffic = [f"udp size={size} src=10.0.0.0/8 flows=1Ki packets=30k"]
        report = check_line_rate(program, nics=[nic], traffic=traffic, lossy=True, overrides=list(overrides))
    return report["flow_processors"][0]["taken_pps"] / 1e6
