"""`nicety bench pcsa` and `nicety pcsa`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, cast

from nicety.apps.cardinality import count_sources, count_text
from nicety.bench.contexts import bench_pcsa, context_text
from nicety.cli.files import Files
from nicety.cli.output import note, parse_names, print_json
from nicety.cli.progress import progress
from nicety.errors import InputError
from nicety.shared.ranges import parse_ranges

_ENOUGH = 10
"""Addresses a sketch from which on the estimate has no bias that matters: 0.4% here, and less for more."""
_FEWEST = 16


def bench(
    nics: Sequence[str],
    contexts: str,
    updates: int,
    overrides: Sequence[str],
    cc: str | None,
    files: Files,
    *,
    as_json: bool,
) -> None:
    """Run the benchmark, print its table or its report as JSON, and write the files."""
    files.check()
    with progress("preparing") as bar:
        report = bench_pcsa(
            nics=parse_names(nics, "--nic"),
            contexts=parse_ranges(contexts, "--contexts"),
            updates=updates,
            overrides=overrides,
            cc=cc,
            progress=lambda done, total: bar.advance(done, total, "measuring"),
        )
    files.write(report)
    if as_json:
        print_json(report)
    else:
        sys.stdout.write(context_text(report))


def count(
    capture: Path,
    nic: str,
    sketches: int,
    through: str,
    overrides: Sequence[str],
    cc: str | None,
    *,
    as_json: bool,
) -> None:
    """Count a capture's sources, and print what it came to.

    Raises:
        InputError: where the capture is damaged, after what was read before has been printed.
    """
    if through not in {"port", "channels"}:
        raise InputError(f"--through {through}: packets come through the port, or addresses through channels")
    with progress("reading") as bar:
        report = count_sources(
            capture,
            nic=nic,
            sketches=sketches,
            through=cast(Literal["port", "channels"], through),
            overrides=overrides,
            cc=cc,
            progress=lambda done, total: bar.advance(done, total, "counting (kB of the capture)"),
        )
    if as_json:
        print_json(report)
    else:
        sys.stdout.write(count_text(report))
    distinct, sketches = report["distinct"], report["sketches"]
    if distinct < _ENOUGH * sketches:
        fewer = max(2 ** ((distinct // _ENOUGH).bit_length() - 1) if distinct >= _ENOUGH else 0, _FEWEST)
        note(
            f"{distinct} distinct addresses are few for {sketches} sketches: the estimate is too high"
            + (f"; --sketches {fewer} suits them" if fewer < sketches else "")
        )
    if (damage := report["damage"]) is not None:
        raise InputError(
            f"{capture}: at packet {damage['packet']}, byte {damage['byte']}: {damage['text']}; "
            "what was before it is counted"
        )
