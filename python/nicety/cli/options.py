"""Options of several commands, and the construction of command groups."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from nicety import _native
from nicety.errors import Error
from nicety.shared.checks import U64, meant

SETTINGS = {"help_option_names": ["-h", "--help"]}
UsageError: type[Exception] = typer.BadParameter.__bases__[0]
"""Errors in the use of the command line: an unknown option, or a word instead of a number."""


def error_text(error: BaseException) -> str:
    """Return the text of an error that ended a command."""
    if isinstance(error, UsageError):
        worded: Any = error
        return str(worded.format_message())
    return str(error) if isinstance(error, Error) else f"{type(error).__name__}: {error}"


class _Command(TyperCommand):
    """Refuses outputs that are files of the command's inputs, before it does anything."""

    def invoke(self, ctx: Any) -> Any:
        from nicety.shared.overwrites import check_overwrites

        check_overwrites(self.params, ctx.params)
        return super().invoke(ctx)


class _Commands(typer.Typer):
    """A group; each of its commands is a `_Command`."""

    def command(self, *given: Any, **options: Any) -> Callable[[Any], Any]:
        return super().command(*given, **{"cls": _Command, **options})


class _Group(TyperGroup):
    """If a command or a card is missing, lists those that exist. In the help, a command's text is a whole sentence."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args and self.get_command(ctx, args[0]) is None:
            names = self.list_commands(ctx)
            ctx.fail(f"{ctx.command_path} has no command {args[0]!r}; it has {', '.join(names)}{meant(args[0], names)}")
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except typer.BadParameter as error:
            if "--nic" in getattr(error.param, "opts", ()) and not error.message:
                from nicety import _native

                cards = ", ".join(spec["name"] for spec in json.loads(_native.specs()))
                error.message = f"Name a card or several, or the path of a spec file; there are {cards}."
            raise

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        commands = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        with formatter.section("Commands"):
            formatter.write_dl(
                [
                    (name, " ".join((command.help or "").split("\n\n")[0].split()))
                    for name, command in commands
                    if command is not None
                ]
            )


class _RunGroup(_Group):
    """Has a command `run`. Arguments that name no command go to `run`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args and args[0] not in {*self.commands, *SETTINGS["help_option_names"]}:
            args = ["run", *args]
        return super().parse_args(ctx, args)


GROUPS = {
    "specs": "The cards that nicety knows, and the user's own.",
    "hpu": "Handler cores on their own.",
    "xdp": "XDP programs: eBPF objects, as Linux loads them.",
    "bench": "Benchmarks: between two hosts, of use cases, or of programs on a card.",
    "goal": "Schedules of applications in GOAL's formats, and their times on LogGOPS or on cards.",
    "sweep": "Run a command at every point of a grid: nicety sweep STUDY.toml, short for nicety sweep run STUDY.toml.",
}
"""Maps the name of a command group to its description."""


def group(text: str, *, completion: bool = False, runs: bool = False) -> typer.Typer:
    """Make a command with subcommands.

    Args:
        text: the group's description.
        completion: whether the group has `--install-completion` and `--show-completion`.
        runs: whether `run` is the default command.
    """
    return _Commands(
        cls=_RunGroup if runs else _Group,
        help=text,
        no_args_is_help=True,
        add_completion=completion,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings=SETTINGS,
    )


def complete_cards(incomplete: str) -> list[str]:
    """Complete the last of comma-separated cards: names, and spec files of this folder."""
    from nicety.shared.cards import card_names

    return complete_words(incomplete, [*card_names(), *(f"./{path.name}" for path in sorted(Path().glob("*.toml")))])


def complete_words(incomplete: str, words: Iterable[str]) -> list[str]:
    """Complete the last of comma-separated words; those that are there already are left out."""
    before, comma, last = incomplete.rpartition(",")
    given = before.split(",")
    return [f"{before}{comma}{word}" for word in words if word.startswith(last) and word not in given]


Json = Annotated[bool, typer.Option("--json", help="Print one JSON document on stdout.")]
Overrides = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Change a value of the card, for example hpu.cores=8."),
]
Compiler = Annotated[
    str | None,
    typer.Option("--cc", metavar="PROGRAM", help="A clang or RISC-V gcc, instead of the ziglang package's."),
]
IncludeDirs = Annotated[list[Path] | None, typer.Option("-I", metavar="DIR", help="A folder to look for headers in.")]
Unverified = Annotated[
    bool, typer.Option("--unverified", help="Check each access of an XDP program that Linux's verifier refuses.")
]
Defines = Annotated[list[str] | None, typer.Option("-D", metavar="X=Y", help="A macro.")]
AnyProgram = Annotated[
    Path,
    typer.Argument(
        metavar="FILE.c|FILE.o|PROGRAM.py",
        help="The handlers in C, an eBPF object with an XDP program, or a program of hosts, as for nicety run.",
    ),
]
ProgramArguments = Annotated[
    list[str] | None,
    typer.Argument(metavar="[ARGS]...", help="Arguments of PROGRAM.py; put -- before one with a dash."),
]
ProgramFile = Annotated[
    Path, typer.Argument(metavar="FILE.c|FILE.o", help="The handlers in C, or an eBPF object with an XDP program.")
]
HeaderName = Annotated[
    str | None, typer.Option(metavar="NAME", help="Name of the header handler; default: header_handler.")
]
PayloadName = Annotated[
    str | None, typer.Option(metavar="NAME", help="Name of the payload handler; default: payload_handler.")
]
CompletionName = Annotated[
    str | None, typer.Option(metavar="NAME", help="Name of the completion handler; default: completion_handler.")
]
XdpName = Annotated[str | None, typer.Option(metavar="NAME", help="The XDP program, where the object has several.")]
MapFiles = Annotated[
    list[str] | None,
    typer.Option(
        "--map", metavar="NAME=FILE", help="Entries of an XDP map before the first packet, as JSON of bpftool."
    ),
]
OwnHandlers = Annotated[
    Path | None, typer.Option("--handlers", metavar="FILE.c", help="Your own handlers, instead of nicety's.")
]
Percentiles = Annotated[
    bool, typer.Option("--percentiles", help="Show minimum, median, p99, p99.9 and maximum as well.")
]
Breakdown = Annotated[bool, typer.Option("--breakdown", help="Show where the time goes, by stage.")]
Plot = Annotated[
    Path | None, typer.Option("--plot", metavar="FILE", help="Draw the figures into a file: .svg, .png or .pdf.")
]
Csv = Annotated[Path | None, typer.Option("--csv", metavar="FILE", help="Write the rows as CSV.")]
Arrow = Annotated[
    Path | None, typer.Option("--arrow", metavar="FILE", help="Write the rows as an Arrow file, for polars and others.")
]
Trace = Annotated[
    Path | None,
    typer.Option("--trace", metavar="FILE", help="Write a timeline of the first measurement for ui.perfetto.dev."),
]
TraceScale = Annotated[
    str | None,
    typer.Option(
        "--trace-scale",
        metavar="ns|ps",
        help="Unit of the timeline's ticks; with ps no time is truncated. Default ns.",
    ),
]
Capture = Annotated[
    Path | None,
    typer.Option("--capture", metavar="FILE.pcapng", help="Write the packets of all links, for Wireshark and tshark."),
]
AllowFailures = Annotated[
    str | None,
    typer.Option(
        "--allow-failures",
        metavar="KIND[,KIND]",
        help="Failures that are allowed: trap, fail, budget, refused, lost, or all. Others end with status 1.",
    ),
]


def count(least: int = 0, most: int = U64) -> Callable[[str | int], int]:
    """Return a parser of an option's whole number, from `least` to `most`, with an optional prefix as in 10k."""

    def read(text: str | int) -> int:
        try:
            number = text if isinstance(text, int) else _native.parse_quantity("count", text)
        except ValueError as error:
            raise typer.BadParameter(str(error)) from None
        if not least <= number <= most:
            raise typer.BadParameter(f"a number from {least} to {most}, not {text}")
        return number

    return read


Seed = Annotated[int, typer.Option("--seed", parser=count(), metavar="N", help="Seed of every random stream.")]
