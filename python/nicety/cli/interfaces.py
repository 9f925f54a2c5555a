"""`nicety bench registration` and `nicety bench fairness`."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from nicety.bench.interfaces import (
    FairnessReport,
    RegistrationReport,
    bench_fairness,
    bench_registration,
    interface_text,
)
from nicety.cli.files import Files
from nicety.cli.output import parse_names, print_json
from nicety.cli.progress import progress
from nicety.errors import InputError
from nicety.shared.ranges import parse_ranges


def registration(nics: Sequence[str], sizes: str, overrides: Sequence[str], files: Files, *, as_json: bool) -> None:
    """Run the benchmark, print its table or its report as JSON, and write the files."""
    files.check()
    with progress("preparing") as bar:
        report = bench_registration(
            nics=parse_names(nics, "--nic"),
            sizes=parse_ranges(sizes, "--sizes"),
            overrides=overrides,
            progress=lambda done, total: bar.advance(done, total, "measuring"),
        )
    _show(report, files, as_json=as_json)


def fairness(
    nics: Sequence[str],
    processes: str,
    size: str,
    messages: int,
    overrides: Sequence[str],
    files: Files,
    *,
    as_json: bool,
) -> None:
    """Run the benchmark, print its table or its report as JSON, and write the files."""
    files.check()
    sizes = parse_ranges(size, "--size")
    if len(sizes) != 1:
        raise InputError(f"--size {size}: one size, as in --size 64Ki")
    with progress("preparing") as bar:
        report = bench_fairness(
            nics=parse_names(nics, "--nic"),
            processes=parse_ranges(processes, "--processes"),
            size=sizes[0],
            messages=messages,
            overrides=overrides,
            progress=lambda done, total: bar.advance(done, total, "measuring"),
        )
    _show(report, files, as_json=as_json)


def _show(report: RegistrationReport | FairnessReport, files: Files, *, as_json: bool) -> None:
    files.write(report)
    if as_json:
        print_json(report)
    else:
        sys.stdout.write(interface_text(report))
