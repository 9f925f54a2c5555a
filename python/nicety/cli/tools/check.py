"""`nicety check`: handlers under the checker."""

from __future__ import annotations

import contextlib
import sys
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from nicety._generated import types
from nicety.cli.arguments import command, named_as_options
from nicety.cli.files import OF_PROGRAMS, check_kind
from nicety.cli.options import (
    AllowFailures,
    AnyProgram,
    Compiler,
    CompletionName,
    Defines,
    HeaderName,
    IncludeDirs,
    Json,
    MapFiles,
    PayloadName,
    ProgramArguments,
    XdpName,
    count,
)

_TEXT = """Check handlers for errors of memory, races, locks and commands, on the simulated cores of a card.

The status is 1 if there are findings, or if handlers fail without one. The packets are those of nicety bench handlers,
but fewer. With a program of hosts, PROGRAM.py, the processes on its flow processors are checked. The command then has
only the options --nic, --set, --seed, --schedules, --fuzz and --replay, and the program's own arguments."""


def _check(
    file: AnyProgram,
    arguments: ProgramArguments = None,
    schedules: Annotated[
        int,
        typer.Option(
            parser=count(), metavar="N", help="Interleavings to try, from the seed. The first is the card's own."
        ),
    ] = 1,
    fuzz: Annotated[
        float,
        typer.Option(
            metavar="SECONDS",
            help="Check mutated packets, or messages to processes, as well, and write captures that replay findings.",
        ),
    ] = 0,
    replay: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Send the messages of a capture of --fuzz to processes, instead of the hosts' own."
        ),
    ] = None,
    header: HeaderName = None,
    payload: PayloadName = None,
    completion: CompletionName = None,
    include_dirs: IncludeDirs = None,
    defines: Defines = None,
    cc: Compiler = None,
    allow_failures: AllowFailures = None,
    program: XdpName = None,
    maps: MapFiles = None,
    as_json: Json = False,
    **given: Any,
) -> None:
    from nicety.bench.check.handlers import check_handlers, check_text
    from nicety.bench.check.program import check_program
    from nicety.cli.files import program_of
    from nicety.cli.output import print_json, say, with_report
    from nicety.cli.progress import progress
    from nicety.errors import InputError

    named = {"header": header, "payload": payload, "completion": completion}
    build: dict[str, Any] = {"-I": include_dirs, "-D": defines, "--cc": cc, "--program": program, "--map": maps}
    build["--allow-failures"] = allow_failures
    of_handlers = {f"--{name}": value for name, value in named.items()} | build
    check_kind(file, arguments, of_handlers, given)
    if replay is not None and file.suffix != ".py":
        raise InputError(f"--replay {replay}: for a program of hosts, PROGRAM.py; leave it out")
    with named_as_options({"schedules", "fuzz", "replay"}), progress("preparing") as bar:
        advance = partial(bar.advance, description="checking")
        if file.suffix == ".py":
            own = {name: given[name] for name in OF_PROGRAMS if name in given}
            more = {"arguments": arguments or [], "schedules": schedules, "fuzz": fuzz, "replay": replay}
            # With --json, stdout has only the document, so the program's own output goes to stderr.
            with contextlib.redirect_stdout(sys.stderr) if as_json else contextlib.nullcontext():
                report, failure = with_report(check_program, file, **more, progress=advance, **own)
        else:
            handlers = program_of(file, named, include_dirs, defines, cc, program=program, maps=maps)
            search: dict[str, Any] = {"schedules": schedules, "fuzz": fuzz, "allow_failures": allow_failures or ""}
            report, failure = with_report(check_handlers, handlers, **search, progress=advance, **given)
    if as_json:
        print_json(report)
    else:
        say(check_text(report))
    if failure is not None:
        raise failure
    if report["findings"]:
        raise typer.Exit(1)


def register(app: typer.Typer) -> None:
    """Add the command."""
    command(app, "check", _check, types.LineRateOptions, text=_TEXT, one_card=True, without={"sensitivity"})
