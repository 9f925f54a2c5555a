"""`nicety debug`."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nicety._generated.types import LineRateOptions
from nicety.cli.arguments import command, named_as_options
from nicety.cli.files import OF_PROGRAMS, check_kind
from nicety.cli.options import (
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

if TYPE_CHECKING:
    from nicety.apps.debug import DebugReport
    from nicety.apps.debug_program import DebugProgramReport

_MULTIARCH = "gdb-multiarch"


def _document(*, as_json: Json = False) -> bool:
    """Whether stdout is one JSON document."""
    return as_json


def _debug(
    file: AnyProgram,
    arguments: ProgramArguments = None,
    port: Annotated[
        int,
        typer.Option(parser=count(), metavar="N", help="The port of 127.0.0.1 for the debugger; 0 for any free one."),
    ] = 0,
    elf: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Keep the compiled program, which the debugger reads, in this file."),
    ] = None,
    header: HeaderName = None,
    payload: PayloadName = None,
    completion: CompletionName = None,
    include_dirs: IncludeDirs = None,
    defines: Defines = None,
    cc: Compiler = None,
    program: XdpName = None,
    maps: MapFiles = None,
    rank: Annotated[
        int, typer.Option(parser=count(), metavar="N", help="The host of PROGRAM.py with the debugged processes.")
    ] = 0,
    *,
    output: bool,
    **given: Any,
) -> None:
    """Stop a program on a card for GDB: breakpoints, watchpoints, steps forwards and back in time.

    The command prints the gdb command to type. The packets are those of nicety bench handlers, sent once. The status is
    1 if a handler failed, or the debugger ended the run.

    With a program of hosts, PROGRAM.py, the debugger has the processes on a flow processor, a thread for each context.
    It has the options --nic, --set, --seed, --port, --elf, --rank and its own arguments.
    """
    from nicety.apps.debug import debug
    from nicety.apps.debug_program import debug_program
    from nicety.cli.files import program_of
    from nicety.cli.output import note
    from nicety.errors import InputError

    named = {"header": header, "payload": payload, "completion": completion}
    build: dict[str, Any] = {"-I": include_dirs, "-D": defines, "--cc": cc, "--program": program, "--map": maps}
    check_kind(file, arguments, {f"--{name}": value for name, value in named.items()} | build, given)
    of_hosts = file.suffix == ".py"
    if rank and not of_hosts:
        raise InputError(f"--rank {rank}: for a program of hosts, PROGRAM.py; leave it out")

    def listening(found: int, compiled: Path) -> None:
        note(f"waiting for a debugger; type: {_MULTIARCH} {compiled} -ex 'target remote 127.0.0.1:{found}'")

    report: DebugProgramReport | DebugReport
    with named_as_options({"port", "rank"}):
        if of_hosts:
            own = {name: given[name] for name in OF_PROGRAMS if name in given}
            # With --json, stdout has only the document, so the program's own output goes to stderr.
            with contextlib.redirect_stdout(sys.stderr) if output else contextlib.nullcontext():
                report = debug_program(
                    file, arguments=arguments or [], port=port, rank=rank, elf=elf, listening=listening, **own
                )
        else:
            handlers = program_of(file, named, include_dirs, defines, cc, program=program, maps=maps)
            report = debug(handlers, port=port, elf=elf, listening=listening, **given)
    _show(report, as_json=output)


def _show(report: DebugProgramReport | DebugReport, *, as_json: bool) -> None:
    """Print the end of a session, and end the command with its status."""
    from nicety.cli.output import note, print_json, say
    from nicety.show.columns import align

    if report["lost"] is not None:
        note(f"the debugger disconnected ({report['lost']}); the run continued to its end")
    if report["end"] == "killed":
        note("the debugger ended the run")
    if as_json:
        print_json(report)
    elif report["end"] != "killed":
        shown = ("end", "stops", "simulations", "handler_runs", "handler_instructions", "processes")
        values: Mapping[str, object] = report
        lines = [[name, str(values[name])] for name in shown if name in values]
        say("\n".join(align(lines)) + "\n")
    for line in report["failures"]:
        note(line)
    if report["end"] == "killed" or report["failures"]:
        raise typer.Exit(1)


def register(app: typer.Typer) -> None:
    """Add the command."""
    command(
        app,
        "debug",
        _debug,
        LineRateOptions,
        text=_debug.__doc__,
        more=_document,
        one_card=True,
        without={"sensitivity"},
    )
