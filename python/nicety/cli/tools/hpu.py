"""`nicety hpu`: handler cores on their own."""

from __future__ import annotations

import codecs
import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from nicety.cli.options import GROUPS, Json, count, group

hpu = group(GROUPS["hpu"])

_REPORTED = ("exit_code", "instructions", "cycles", "trap")


@hpu.command("run")
def _run(
    file: Annotated[Path, typer.Argument(metavar="FILE.elf", help="A RISC-V program, as nicety cc writes it.")],
    entry: Annotated[
        str | None, typer.Option(metavar="SYMBOL", help="Where to start, instead of the file's entry point.")
    ] = None,
    max_cycles: Annotated[
        int | None, typer.Option(parser=count(1), metavar="N", help="Stop with a trap after N cycles. Default 10^9.")
    ] = None,
    spec: Annotated[str | None, typer.Option(metavar="NAME", help="The card with the processor.")] = None,
    as_json: Json = False,
) -> None:
    """Run a bare program until it ends by an ecall with a7 = 93 and the exit code in a0.

    An ecall with a7 = 64 writes a2 bytes at a1 to stdout. The status is 1 if the program trapped, used up its cycles or
    ended with an exit code other than 0. The return value of a function named with --entry is no exit code. With --json
    the program's output goes to stderr.
    """
    from nicety import _native
    from nicety.cli.output import note, print_json, say
    from nicety.cli.progress import progress
    from nicety.errors import InputError
    from nicety.shared.text import printable_text
    from nicety.show.columns import align

    try:
        elf = file.read_bytes()
    except OSError as error:
        raise InputError(f"{file}: cannot read it ({error.strerror})") from error
    stream = sys.stderr if as_json else sys.stdout
    written = b""

    decode = codecs.getincrementaldecoder("utf-8")(errors="backslashreplace").decode

    def take(part: bytes) -> None:
        nonlocal written
        written = part or written
        if stream.isatty():
            stream.write(printable_text(decode(part)))
        else:
            stream.buffer.write(part)

    stream.flush()
    try:
        with progress(f"running {file.name}"):
            text, _ = _native.hpu_run(elf, entry, max_cycles, spec, take)
    except InputError as error:
        # The error does not name the file, since the processor got only its bytes.
        raise InputError(f"{file}: {error}") from error
    if stream.isatty():
        stream.write(printable_text(decode(b"", True)))
    report = json.loads(text)
    stream.flush()
    if as_json:
        print_json({name: report[name] for name in _REPORTED})
    else:
        if written and not written.endswith(b"\n"):
            say("\n")
        rows = [[name, "-" if report[name] is None else str(report[name])] for name in _REPORTED]
        say("\n".join(align(rows)) + "\n")
    if report["trap"] is not None:
        limited = report["cycles"] >= report["cycle_limit"] and max_cycles is None
        note(f"{file}: {report['trap']}" + ("; --max-cycles sets another limit" if limited else ""))
        raise typer.Exit(1)
    # With --entry, the exit code is the function's return value, and may be any number.
    if entry is None and report["exit_code"] != 0:
        note(f"{file}: it ended with exit code {report['exit_code']}")
        raise typer.Exit(1)
