"""`nicety cc`."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Annotated, get_args

import typer

from nicety.build.toolchain import DEFAULT_ISA, Interface
from nicety.cli.options import Compiler, Defines, IncludeDirs, Unverified
from nicety.errors import InputError

_Flags = Annotated[
    bool,
    typer.Option(
        "--flags",
        help="Print options for clangd, one a line, for compile_flags.txt; with --host for any C compiler.",
    ),
]


def _cc(
    files: Annotated[
        list[Path] | None,
        typer.Argument(metavar="FILE.c...", help="C or assembler sources; or an eBPF object, for the card spin-100g."),
    ] = None,
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
        str, typer.Option(metavar="ISA", help="The instruction set, in the form of a card's hpu.isa.")
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
    flags: _Flags = False,
    unverified: Unverified = False,
) -> None:
    """Compile C handlers or a bare program to a RISC-V ELF file, a program of a host, or an XDP program."""
    if flags:
        own = [*(f"-I{folder}" for folder in include_dirs or []), *(f"-D{macro}" for macro in defines or [])]
        _print_flags(files, own, isa, interface, host=host, xdp=xdp)
        return
    if not files:
        raise InputError("no source to compile; name at least one, as in nicety cc FILE.c")
    if output is None:
        output = Path(files[0].name).with_suffix("" if host else ".o" if xdp else ".elf")
    if any(output.absolute() == file.absolute() for file in files):
        raise InputError(f"{output}: this would overwrite the source; name another file with -o")
    of_object = {"--host": host, "--isa": isa != DEFAULT_ISA, "--interface": interface != "nicety"}
    if xdp:
        from nicety.build.xdp import compile_xdp

        _alone(files, "--xdp", "an XDP program", of_object)
        compile_xdp(files[0], output=output, include_dirs=include_dirs or [], defines=defines or [], cc=cc)
        return
    if _is_object(files[0]):
        others = {"-I": bool(include_dirs), "-D": bool(defines)}
        _alone(files, str(files[0]), "an eBPF object", {**of_object, "--isa": False, **others})
        _compile_object(files[0], isa, output, cc, unverified=unverified)
        return
    if unverified:
        raise InputError(f"--unverified: for XDP programs, and {files[0]} is no eBPF object; leave it out")
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


def _alone(files: list[Path], place: str, what: str, others: dict[str, bool]) -> None:
    """Raise an error for a second source, and for options that an XDP program or an eBPF object does not take."""
    if other := next((option for option, given in others.items() if given), None):
        raise InputError(f"{place}: {what} has no {other}; leave it out")
    if len(files) > 1:
        raise InputError(f"{place}: {what} has one source; compile each on its own")


def _is_object(file: Path) -> bool:
    from nicety.build.card import is_object

    return is_object(file)


def _compile_object(file: Path, isa: str, output: Path, cc: str | None, *, unverified: bool) -> None:
    """Write an XDP program for the cores of spin-100g, or for the instruction set `isa` if it was given."""
    from nicety.build.card import XdpProgram, card_values
    from nicety.shared.files import write_whole

    card = card_values("spin-100g")
    program = XdpProgram(file, cc=cc, unverified=unverified)
    compiled = program.compile(card["isa"] if isa == DEFAULT_ISA else isa, card["xdp"])
    write_whole(output, compiled.elf, mode=0o777)


def _print_flags(files: list[Path] | None, own: list[str], isa: str, interface: str, *, host: bool, xdp: bool) -> None:
    """Print options of a compiler: those of handlers and XDP programs one a line, as clangd reads them."""
    if files:
        raise InputError(f"--flags: prints options and compiles nothing; leave {files[0]} out")
    if host:
        from nicety.build.hosts import host_flags

        sys.stdout.write(shlex.join([*own, *host_flags()]) + "\n")
        return
    if xdp:
        from nicety.build.xdp import xdp_flags

        found = xdp_flags()
    else:
        from nicety.build.compiler import handler_flags

        found = handler_flags(isa=isa, interface=_interface(interface))
    sys.stdout.write("\n".join([*found, *own]) + "\n")


def _interface(name: str) -> Interface:
    interfaces: dict[str, Interface] = {each: each for each in get_args(Interface)}
    if name not in interfaces:
        raise InputError(f"--interface {name}: write {' or '.join(interfaces)}")
    return interfaces[name]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("cc")(_cc)
