"""`nicety bench registration` and `fairness`: cards that many processes share."""

from __future__ import annotations

from typing import Annotated

import typer

from nicety.cli.measure import Output, add
from nicety.cli.options import Nics, Overrides
from nicety.shared.checks import U64


def _registration(
    nic: Nics,
    sizes: Annotated[
        str, typer.Option(metavar="RANGE", help="Sizes in bytes: 64:2Mi doubles, commas list.")
    ] = "64:2Mi",
    overrides: Overrides = None,
    *,
    output: Output,
) -> None:
    """Copy a message into registered memory, or register its own.

    Each row has what a CPU spends until the card may fetch a message of that size; below is the size from which on
    locking and translating takes no longer than copying.
    """
    from nicety.bench.interfaces import bench_registration, interface_figure, interface_text
    from nicety.cli.output import parse_names
    from nicety.shared.ranges import parse_ranges

    output.of(
        lambda progress: bench_registration(
            nics=parse_names(nic, "--nic"),
            sizes=parse_ranges(sizes, "--sizes"),
            overrides=overrides or [],
            progress=progress,
        ),
        interface_text,
        interface_figure,
    )


def _fairness(
    nic: Nics,
    processes: Annotated[
        str, typer.Option(metavar="RANGE", help="Numbers of processes on each host: 1:64 doubles, 1..8 steps by one.")
    ] = "1:64",
    size: Annotated[str, typer.Option(metavar="SIZE", help="Bytes of a message.")] = "64Ki",
    messages: Annotated[int, typer.Option(min=1, max=U64, metavar="N", help="Messages of each process.")] = 16,
    overrides: Overrides = None,
    *,
    output: Output,
) -> None:
    """The bandwidth of each of many processes of a host that send at once.

    Each sends to a process of its own on the other host. Jain's index is 1 where all get the same, and 1/n where
    one of n gets everything.
    """
    from nicety.bench.interfaces import bench_fairness, interface_figure, interface_text
    from nicety.cli.output import parse_names, parse_one
    from nicety.shared.ranges import parse_ranges

    output.of(
        lambda progress: bench_fairness(
            nics=parse_names(nic, "--nic"),
            processes=parse_ranges(processes, "--processes"),
            size=parse_one(size, "--size", "one size, as in --size 64Ki"),
            messages=messages,
            overrides=overrides or [],
            progress=progress,
        ),
        interface_text,
        interface_figure,
    )


def register(bench: typer.Typer) -> None:
    """Add the commands."""
    add(bench, "registration", _registration, traces=False)
    add(bench, "fairness", _fairness, traces=False)
