"""`nicety cc`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, get_args

import typer

from nicety.build.toolchain import Interface
from nicety.cli.options import Compiler, Defines, IncludeDirs
from nicety.errors import InputError


def _cc(
    files: Annotated[list[Path], typer.Argument(metavar="FILE.c...", help="C or assembler sources.")],
    output: Annotated[
        Path | None,
        typer.Option("-o", metavar="FILE.elf", help="Where to write it; by default FILE.elf in this folder."),
    ] = None,
    include_dirs: IncludeDirs = None,
    defines: Defines = None,
    isa: Annotated[
        str, typer.Option(metavar="ISA", help="The processor's extensions, as a card's hpu.isa has them.")
    ] = "rv32imac_zicsr",
    interface: Annotated[
        str,
        typer.Option(
            metavar="NAME", help="What handlers are written for, as a card's hpu.interface has it: nicety or pspin."
        ),
    ] = "nicety",
    cc: Compiler = None,
) -> None:
    """Compile C handlers, or a bare program, to an RV32 ELF file."""
    from nicety.build.compiler import compile_handlers

    if output is None:
        output = Path(files[0].name).with_suffix(".elf")
    if any(output.absolute() == file.absolute() for file in files):
        raise InputError(f"-o {output}: this would overwrite the source; name another file")
    compile_handlers(
        files,
        include_dirs=include_dirs or [],
        defines=defines or [],
        cc=cc,
        isa=isa,
        interface=_interface(interface),
        output=output,
    )


def _interface(name: str) -> Interface:
    interfaces: dict[str, Interface] = {each: each for each in get_args(Interface)}
    if name not in interfaces:
        raise InputError(f"--interface {name}: write {' or '.join(interfaces)}")
    return interfaces[name]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("cc")(_cc)
