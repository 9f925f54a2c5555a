"""The commands that run something once. Only the modules of the given command are imported, for a quick start."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from typing import Annotated

import typer

from nicety.cli.options import GROUPS, group


def _version(wanted: bool) -> None:
    if wanted:
        from nicety import _native

        typer.echo(f"nicety {_native.version()}")
        raise typer.Exit


def _main(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and leave.")
    ] = False,
) -> None:
    pass


def _cc(app: typer.Typer) -> None:
    from nicety.cli.tools import cc

    cc.register(app)


def _reproduce(app: typer.Typer) -> None:
    from nicety.cli import reproduce

    reproduce.register(app)


def _run(app: typer.Typer) -> None:
    from nicety.cli import run

    run.register(app)


def _execute(app: typer.Typer) -> None:
    from nicety.cli.apps import execute

    execute.register(app)


def _processors(app: typer.Typer) -> None:
    from nicety.cli.apps import processors

    processors.register(app)


def _specs(app: typer.Typer) -> None:
    from nicety.cli.tools.specs import specs

    app.add_typer(specs, name="specs", invoke_without_command=True, no_args_is_help=False)


def _hpu(app: typer.Typer) -> None:
    from nicety.cli.tools.hpu import hpu

    app.add_typer(hpu, name="hpu")


def _man(app: typer.Typer) -> None:
    from nicety.cli.tools import man

    man.register(app)


def _debug(app: typer.Typer) -> None:
    from nicety.cli.tools import debug

    debug.register(app)


def _xdp(app: typer.Typer) -> None:
    from nicety.cli.tools.xdp import xdp

    app.add_typer(xdp, name="xdp")


def _profile(app: typer.Typer) -> None:
    from nicety.cli.tools import profile

    profile.register(app)


def _check(app: typer.Typer) -> None:
    from nicety.cli.tools import check

    check.register(app)


def _serve(app: typer.Typer) -> None:
    from nicety.cli.tools import serve

    serve.register(app)


def _bench(app: typer.Typer) -> None:
    from nicety.cli.bench.commands import bench

    app.add_typer(bench, name="bench")


def _goal(app: typer.Typer) -> None:
    from nicety.cli.apps.goal import goal

    app.add_typer(goal, name="goal")


_COMMANDS: dict[str, Callable[[typer.Typer], None]] = {
    "cc": _cc,
    "reproduce": _reproduce,
    "run": _run,
    "exec": _execute,
    "pcsa": _processors,
    "tsp": _processors,
    "specs": _specs,
    "hpu": _hpu,
    "xdp": _xdp,
    "profile": _profile,
    "debug": _debug,
    "bench": _bench,
    "check": _check,
    "serve": _serve,
    "goal": _goal,
    "man": _man,
}
"""Maps a command's name to the function that adds it, in the order of the help."""


_TEXTS = {
    "cc": "Compile C handlers or a bare program to a RISC-V ELF file, a program of a host, or an XDP program.",
    "reproduce": "Measure the claims of a paper, and print each with its measured result.",
    "run": "Run a program on one card or several, and tabulate its results.",
    "exec": "Run a program on simulated hosts, with one host for each process.",
    "pcsa": "Estimate the distinct source addresses of a capture on a card, and count them exactly on the host.",
    "tsp": "Look for a short tour: many climbs by 2-opt on the microengines of a card.",
    "profile": "Count the cycles of handlers by instruction, line, function and call, with their causes.",
    "debug": "Stop a program on a card for GDB: breakpoints, watchpoints, steps forwards and back in time.",
    "check": "Check handlers for errors of memory, races, locks and commands, on the simulated cores of a card.",
    "serve": "Edit handlers in the browser, next to the verdict, the profile, the timeline and the packets of a card.",
    "man": "Print the manual page of all commands, for man.",
}
"""Maps a command to the first paragraph of its help, so that the help imports no command. A test compares them."""


def without_commands() -> typer.Typer:
    """Return the command line without any command."""
    app = group("Simulate programs that run on network cards: right, fast enough, and worth it?", completion=True)
    app.callback()(_main)
    return app


def _narrowed(inside: typer.Typer, word: str) -> typer.Typer:
    """Return a copy of a group with the command `word` alone, or the group itself if it has no such command."""
    named = [each for each in inside.registered_commands if each.name == word]
    if not named:
        return inside
    narrowed = copy(inside)
    narrowed.registered_commands = named
    return narrowed


def commands_for(words: Sequence[str] = ()) -> typer.Typer:
    """Return the command line with only the command that `words` begin with, or with all commands."""
    app = without_commands()
    name, word = [*words, "", ""][:2]
    # The manual page is of all commands.
    if name not in _COMMANDS or name == "man":
        for add in dict.fromkeys(_COMMANDS.values()):
            add(app)
        return app
    _COMMANDS[name](app)
    for inside in app.registered_groups:
        if inside.typer_instance is not None:
            inside.typer_instance = _narrowed(inside.typer_instance, word)
    return app


def _listed() -> None:
    pass


def outline() -> typer.Typer:
    """Return the command line for its help: commands have no options, and groups are empty."""
    app = without_commands()
    for name, text in _TEXTS.items():
        app.command(name, help=text)(_listed)
    for name, text in GROUPS.items():
        app.add_typer(group(text), name=name)
    return app
