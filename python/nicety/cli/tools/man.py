"""`nicety man`: the manual page, made of the command line itself."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import typer

_STATUS = (
    ("0", "success"),
    ("1", "the run failed: a deadlock, a trap, a wrong byte"),
    ("2", "the input was wrong"),
    ("129, 130, 143", "SIGHUP, Ctrl-C, SIGTERM"),
)
_VARIABLES = (
    ("NICETY_CACHE", "The folder of compiled handlers, instead of the cache folder of the system."),
    ("NICETY_HXDP_DUMPS", "The folder of the bytecode of the hXDP paper, for nicety specs score hxdp-sume."),
    ("NICETY_NEWS", "With 0, no progress and no early results are printed if stderr is no terminal."),
)


def _man(context: typer.Context) -> None:
    """Print the manual page of all commands, for man.

    In the folder man1 of a folder in MANPATH, such as ~/.local/share/man/man1/nicety.1, man nicety finds it.
    """
    from nicety.cli.output import say

    root = context.find_root()
    say("\n".join(_page(root.command, root)) + "\n")


def _page(command: Any, context: Any) -> Iterator[str]:
    from nicety import _native

    yield f'.TH NICETY 1 "" "nicety {_native.version()}" "User commands"'
    # Lines are not stretched to the margin, and no word is divided.
    yield from (".ad l", ".nh")
    yield ".SH NAME"
    yield rf"nicety \- {_escaped(_first(command))}"
    yield ".SH SYNOPSIS"
    yield r"\fBnicety\fR \fICOMMAND\fR [\fIOPTIONS\fR] [\fIARGUMENTS\fR]"
    yield ".SH DESCRIPTION"
    yield _escaped((command.help or "").strip())
    yield ".SH COMMANDS"
    for name in command.list_commands(context):
        yield from _command(command.get_command(context, name), name, context)
    for title, pairs in (("EXIT STATUS", _STATUS), ("ENVIRONMENT", _VARIABLES)):
        yield f".SH {title}"
        for name, text in pairs:
            yield from (".TP", rf"\fB{name}\fR", _escaped(text))


def _command(command: Any, name: str, parent: Any) -> Iterator[str]:
    """Yield the lines on a command and the commands below it."""
    context = typer.Context(command, info_name=name, parent=parent)
    below = command.list_commands(context) if hasattr(command, "list_commands") else []
    shown = [each for each in command.get_params(context) if not each.hidden and each.name != "help"]
    words = [each.metavar or str(each.name).upper() for each in shown if each.param_type_name == "argument"]
    yield f'.SS "{_escaped(" ".join([context.command_path, *words, *(["COMMAND"] if below else [])]))}"'
    yield "\n.PP\n".join(_escaped(" ".join(part.split())) for part in (command.help or "").split("\n\n"))
    for each in shown:
        declared, meaning = each.get_help_record(context) or ("", "")
        if each.param_type_name == "option":
            yield from (".TP", rf"\fB{_escaped(declared)}\fR", _escaped(" ".join(meaning.split())))
    for line in (command.epilog or "").splitlines()[2:]:
        yield from (".PP", ".nf", rf"\fI{_escaped(line.strip())}\fR", ".fi")
    for each in below:
        yield from _command(command.get_command(context, each), each, context)


def _first(command: Any) -> str:
    return str((command.help or "").strip().splitlines()[0])


def _escaped(text: str) -> str:
    """Return text for roff: hyphens stay hyphens, and no line is a request."""
    escaped = text.replace("\\", r"\e").replace("-", r"\-").replace('"', r"\(dq")
    return "\n".join(rf"\&{line}" if line[:1] in (".", "'") else line for line in escaped.splitlines())


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("man")(_man)
