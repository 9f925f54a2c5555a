"""The command line that does the same as a request of the page."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from nicety.serve.inputs import Start
from nicety.serve.programs import Placed
from nicety.shared.ranges import format_numbers

_COMMANDS = {"run": "bench handlers", "profile": "profile", "check": "check"}
_VALUES = {
    "message_packets": "--message-packets",
    "messages": "--messages",
    "state_bytes": "--state-bytes",
    "seed": "--seed",
    "schedules": "--schedules",
}
_FLAGS = ("lossy", "pfc", "sensitivity")
_LISTS = {"overrides": "--set", "rules": "--rule", "traffic": "--traffic"}


def command_of(start: Start, placed: Placed) -> dict[str, Any]:
    """Return a command line, and a note if the user has to save a file for it."""
    words = ["nicety", *_COMMANDS[start.action].split(), placed.shown]
    words += options({**start.input.shown(), **start.more})
    words += [word for key, name in start.input.names.items() for word in (f"--{key}", name)]
    words += [word for define in start.input.defines for word in ("-D", define)]
    notes = []
    if placed.is_edited:
        notes.append(f"save the program as {placed.name}")
    if (upload := start.input.upload) is not None:
        notes.append(f"{upload.name} is your capture")
    return {"text": shlex.join(words), "note": "; ".join(notes) or None}


def card_command(name: str, changes: Sequence[str]) -> dict[str, Any]:
    """Return the command line that shows a card."""
    words = ["nicety", "specs", "show", name, *(word for change in changes for word in ("--set", change))]
    return {"text": shlex.join(words), "note": None}


def options(given: Mapping[str, Any]) -> list[str]:
    """Return arguments of `LineRateOptions` as words of a command line."""
    words = ["--nic", ",".join(given["nics"])]
    if "packet_sizes" in given:
        words += ["--packet-sizes", format_numbers(given["packet_sizes"])]
    for name, option in _LISTS.items():
        words += [word for value in given.get(name, ()) for word in (option, value)]
    for name, option in _VALUES.items():
        if name in given:
            words += [option, str(given[name])]
    return words + [f"--{name}" for name in _FLAGS if given.get(name)]
