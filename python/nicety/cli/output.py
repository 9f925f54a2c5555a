"""What commands read and print."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import Any

from nicety._text import printable_json, printable_text
from nicety.cli.streams import can_write
from nicety.errors import InputError, RunError


def print_json(document: Any) -> None:
    """Print one JSON document on stdout; with letters as numbers where its encoding has not all of them."""
    text = json.dumps(document, indent=2, ensure_ascii=False)
    if not can_write(text):
        text = json.dumps(document, indent=2)
    sys.stdout.write(printable_json(text) + "\n")


def note(text: str) -> None:
    """Tell the user something on stderr."""
    sys.stderr.write(f"nicety: {printable_text(text)}\n")


_MOST = 8
"""Failures that are told."""


def failed(lines: Sequence[str]) -> RunError:
    """What a run did not come to, in lines: the first of them, and how many more there are."""
    more = [f"and {len(lines) - _MOST} more"] if len(lines) > _MOST else []
    return RunError("\n".join([*lines[:_MOST], *more]))


def parse_names(items: Sequence[str], option: str) -> list[str]:
    """The names of a list between commas, each once."""
    names = [name.strip() for item in items for name in item.split(",")]
    if not all(names):
        raise InputError(f"{option} {','.join(items)!r}: an empty name; write names between commas")
    return list(dict.fromkeys(names))
