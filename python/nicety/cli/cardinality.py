"""`nicety bench pcsa`."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from nicety.cardinality import bench_pcsa
from nicety.cardinality_text import context_text
from nicety.cli.files import Files
from nicety.cli.output import parse_names, print_json
from nicety.cli.progress import progress
from nicety.ranges import parse_ranges


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
