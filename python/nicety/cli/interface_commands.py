"""The benchmarks of cards that many processes share: commands and their options."""

from __future__ import annotations

from typing import Annotated

import typer

from nicety.cli.options import Arrow, Csv, Json, Nics, Overrides, Plot
from nicety.shared.checks import U64


def _registration(
    nic: Nics,
    sizes: Annotated[
        str, typer.Option(metavar="RANGE", help="Sizes in bytes: 64:2Mi doubles, commas list.")
    ] = "64:2Mi",
    overrides: Overrides = None,
    plot: Plot = None,
    csv: Csv = None,
    arrow: Arrow = None,
    as_json: Json = False,
) -> None:
    """Copy a message into registered memory, or register its own.

    Each row has what a CPU spends until the card may fetch a message of that size; below is the size from which on
    locking and translating takes no longer than copying.
    """
    from nicety.cli.files import Files
    from nicety.cli.interfaces import registration

    registration(nic, sizes, overrides or [], Files(plot=plot, csv=csv, arrow=arrow), as_json=as_json)


def _fairness(
    nic: Nics,
    processes: Annotated[
        str, typer.Option(metavar="RANGE", help="Numbers of processes on each host: 1:64 doubles, 1..8 steps by one.")
    ] = "1:64",
    size: Annotated[str, typer.Option(metavar="SIZE", help="Bytes of a message.")] = "64Ki",
    messages: Annotated[int, typer.Option(min=1, max=U64, metavar="N", help="Messages of each process.")] = 16,
    overrides: Overrides = None,
    plot: Plot = None,
    csv: Csv = None,
    arrow: Arrow = None,
    as_json: Json = False,
) -> None:
    """What each of many processes of a host gets that send at once.

    Each sends to a process of its own on the other host. Jain's index is 1 where all get the same, and 1/n where
    one of n gets everything.
    """
    from nicety.cli.files import Files
    from nicety.cli.interfaces import fairness

    files = Files(plot=plot, csv=csv, arrow=arrow)
    fairness(nic, processes, size, messages, overrides or [], files, as_json=as_json)


def register(bench: typer.Typer) -> None:
    """Add the commands."""
    bench.command("registration")(_registration)
    bench.command("fairness")(_fairness)
