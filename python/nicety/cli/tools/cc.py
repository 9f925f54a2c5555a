"""`nicety cc`."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Annotated, get_args

import typer

from nicety.build.toolchain import DEFAULT_ISA, Interface
from nicety.cli.options import Compiler, Defines, IncludeDirs
from nicety.errors import InputError


def _cc(
    files: Annotated[list[Path] | None, typer.Argument(metavar="FILE.c...", help="C or assembler sources.")] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            metavar="FILE",
            help="Where to write it; by default FILE.elf in this folder, FILE with --host, FILE.o with --xdp.",
        ),
    ] = None,
    include_dirs: IncludeDirs = None,
    defines: Defines = None,
    isa: Annotated[
        str, typer.Option(metavar="ISA", help="The processor's extensions, as a card's hpu.isa has them.")
    ] = DEFAULT_ISA,
    interface: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="The interface of the handlers, as in a card's hpu.interface: nicety, pspin or fpspin.",
        ),
    ] = "nicety",
    cc: Compiler = None,
    *,
    host: Annotated[
        bool, typer.Option("--host", help="Compile a program of a host, with Portals, which nicety exec starts.")
    ] = False,
    xdp: Annotated[
        bool, typer.Option("--xdp", help="Compile an XDP program to an eBPF object, which nicety xdp and Linux load.")
    ] = False,
    flags: Annotated[
        bool, typer.Option("--flags", help="With --host: print the options for any other C compiler.")
    ] = False,
) -> None:
    """Compile C handlers or a bare program to a RISC-V ELF file, a program of a host, or an XDP program."""
    if flags:
        _print_flags(files, host=host)
        return
    if not files:
        raise InputError("no source to compile; name at least one, as in nicety cc FILE.c")
    if output is None:
        output = Path(files[0].name).with_suffix("" if host else ".o" if xdp else ".elf")
    if any(output.absolute() == file.absolute() for file in files):
        raise InputError(f"-o {output}: this would overwrite the source; name another file")
    if xdp:
        from nicety.build.xdp import compile_xdp

        if host or isa != DEFAULT_ISA or interface != "nicety":
            raise InputError("--xdp: an XDP program has no --host, --isa or --interface; leave them out")
        if len(files) > 1:
            raise InputError("--xdp: an object has one source; compile each on its own")
        compile_xdp(files[0], output=output, include_dirs=include_dirs or [], defines=defines or [], cc=cc)
        return
    if host:
        from nicety.build.hosts import compile_host

        if isa != DEFAULT_ISA or interface != "nicety":
            raise InputError("--host: a program of a host has no --isa and no --interface; leave them out")
        compile_host(files, output=output, include_dirs=include_dirs or [], defines=defines or [], cc=cc)
        return
    from nicety.build.compiler import compile_handlers

    compile_handlers(
        files,
        include_dirs=include_dirs or [],
        defines=defines or [],
        cc=cc,
        isa=isa,
        interface=_interface(interface),
        output=output,
    )


def _print_flags(files: list[Path] | None, *, host: bool) -> None:
    from nicety.build.hosts import host_flags

    if files or not host:
        raise InputError("--flags goes with --host alone, as in cc prog.c $(nicety cc --host --flags) -o prog")
    sys.stdout.write(shlex.join(host_flags()) + "\n")


def _interface(name: str) -> Interface:
    interfaces: dict[str, Interface] = {each: each for each in get_args(Interface)}
    if name not in interfaces:
        raise InputError(f"--interface {name}: write {' or '.join(interfaces)}")
    return interfaces[name]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("cc")(_cc)
