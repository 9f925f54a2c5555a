"""The commands and their options. What a command needs is imported when it runs, so that `--help` is quick."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from nicety.cli.bench_commands import bench
from nicety.cli.channel_commands import register as register_channels
from nicety.cli.interface_commands import register as register_interfaces
from nicety.cli.options import (
    AllowFailures,
    Compiler,
    Csv,
    Defines,
    Faults,
    IncludeDirs,
    Json,
    Noise,
    Overrides,
    Seed,
    TopologyName,
    TraceScale,
    group,
)
from nicety.cli.process_commands import register as register_processes
from nicety.shared.checks import U32, U64

app = group("Simulate programs that run on network cards: right, fast enough, and worth it?", completion=True)
specs = group("The cards that nicety knows, and the user's own.")
hpu = group("Handler processors on their own.")
app.add_typer(specs, name="specs", invoke_without_command=True, no_args_is_help=False)
app.add_typer(hpu, name="hpu")
app.add_typer(bench, name="bench")
register_channels(bench)
register_interfaces(bench)


def _version(wanted: bool) -> None:
    if wanted:
        from nicety import _native

        typer.echo(f"nicety {_native.version()}")
        raise typer.Exit


@app.callback()
def _main(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and leave.")
    ] = False,
) -> None:
    pass


@specs.callback()
def _list_specs(context: typer.Context, as_json: Json = False) -> None:
    if context.invoked_subcommand is None:
        from nicety.cli.specs import list_specs

        list_specs(as_json=as_json)


@specs.command("show")
def _show_spec(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A card's name, or the path of a spec file.")],
    overrides: Overrides = None,
    as_json: Json = False,
) -> None:
    """Print every value of a card, its source and how well it is founded."""
    from nicety.cli.specs import show_spec

    show_spec(name, overrides or [], as_json=as_json)


@specs.command("check")
def _check_spec(
    file: Annotated[str, typer.Argument(metavar="FILE", help="The path of a spec file.")],
) -> None:
    """Check a spec file; say where it is wrong and what to write."""
    from nicety.cli.specs import check_spec

    check_spec(file)


@app.command("cc")
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
    cc: Compiler = None,
) -> None:
    """Compile C handlers, or a bare program, to an RV32 ELF file."""
    from nicety.cli.cc import compile_files

    compile_files(files, output, include_dirs or [], defines or [], isa, cc)


@hpu.command("run")
def _run_program(
    file: Annotated[Path, typer.Argument(metavar="FILE.elf", help="An RV32 program, as nicety cc writes it.")],
    entry: Annotated[
        str | None, typer.Option(metavar="SYMBOL", help="Where to start, instead of the file's entry point.")
    ] = None,
    max_cycles: Annotated[
        int | None, typer.Option(min=1, max=U64, metavar="N", help="Stop with a trap after these. Default 1000000000.")
    ] = None,
    spec: Annotated[str | None, typer.Option(metavar="NAME", help="The card whose processor it runs on.")] = None,
    as_json: Json = False,
) -> None:
    """Run a bare program to its end: ecall with a7 = 93 and the exit code in a0.

    An ecall with a7 = 64 writes a2 bytes at a1 to stdout. The status is 1 where the program trapped, used up its
    cycles or ended with another exit code than 0; what a function named with --entry returns is no exit code. With
    --json the program's output goes to stderr.
    """
    from nicety.cli.hpu import run_program

    run_program(file, entry, max_cycles, spec, as_json=as_json)


@app.command("reproduce")
def _reproduce(
    study: Annotated[str, typer.Argument(metavar="STUDY", help="The study: spin, nfcomms or qnix.")],
    report: Annotated[
        Path | None, typer.Option(metavar="DIR", help="A folder for a page, pictures and the data behind them.")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Measure fewer sizes and nodes.")] = False,
    only: Annotated[
        list[str] | None,
        typer.Option(metavar="SECTION", help="Measure this section of the report alone; several by several of it."),
    ] = None,
    seed: Seed = 1,
    as_json: Json = False,
) -> None:
    """Measure what a paper claims, and print claim by claim what it says and what comes out.

    The status is 0 also where a claim is not met: that is a result.
    """
    from nicety.cli.reproduce import reproduce_study

    reproduce_study(study, report, only or [], quick=quick, seed=seed, as_json=as_json)


@app.command("run")
def _run(
    program: Annotated[
        Path, typer.Argument(metavar="PROGRAM.py", help="A file with 'async def main(host)', or programs = {0: ...}.")
    ],
    arguments: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[ARGS]...", help="The program's own, in sys.argv; behind -- where they begin with a dash."
        ),
    ] = None,
    nic: Annotated[
        list[str] | None,
        typer.Option(metavar="A[,B]", help="Cards: names, or paths of spec files. Default spin-discrete."),
    ] = None,
    overrides: Overrides = None,
    nodes: Annotated[
        int | None, typer.Option(min=1, max=U32, metavar="N", help="Hosts, instead of what the file says.")
    ] = None,
    topology: TopologyName = None,
    noise: Noise = None,
    faults: Faults = None,
    allow_failures: AllowFailures = None,
    seed: Seed = 1,
    csv: Csv = None,
    trace: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write a timeline for ui.perfetto.dev; of one card only.")
    ] = None,
    trace_scale: TraceScale = None,
    as_json: Json = False,
) -> None:
    """Run a program on one card or several, and tabulate what it returns."""
    from nicety.cli.files import Files
    from nicety.cli.output import parse_names
    from nicety.cli.run import Request, run

    run(
        Request(
            program=program,
            nics=parse_names(nic or ["spin-discrete"], "--nic"),
            overrides=overrides or [],
            nodes=nodes,
            topology=topology,
            seed=seed,
            noise=noise,
            faults=faults,
            allow_failures=allow_failures or "",
            arguments=arguments or [],
        ),
        Files(csv=csv, trace=trace, trace_scale=trace_scale),
        as_json=as_json,
    )


register_processes(app, bench)
