"""Faults of the network, as the user writes them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from os import PathLike, fspath
from pathlib import Path

from nicety import _native
from nicety.errors import InputError
from nicety.shared.checks import Faults

_FILE = "# of the file "
"""The beginning of a line with the file's name, which is appended to faults from a file. Reports print that name."""


def faults_line(faults: str) -> str:
    """Return a line that names the faults: the file's name, the faults themselves, or their number of lines."""
    lines = faults.strip().splitlines()
    if lines[-1].startswith(_FILE):
        return lines[-1].removeprefix(_FILE).removesuffix(" (TOML)")
    return lines[0] if len(lines) == 1 else f"of {len(lines)} lines"


def faults_text(faults: Faults | None) -> str | None:
    """Check faults, and return them as the text that the simulation reads.

    Raises:
        InputError: the faults are invalid; the error has the place and the correction.
    """
    if faults is None:
        return None
    if isinstance(faults, Mapping):
        try:
            text = json.dumps(dict(faults))
        except (TypeError, ValueError) as error:
            raise InputError(f"faults: {error}; write numbers, texts and lists, as in {{'loss': 1e-3}}") from error
        _native.faults_check(text)
        return text
    if not isinstance(faults, str | PathLike):
        raise InputError(f"faults are a text such as 'loss=1e-3', a file or a dict, not {type(faults).__name__}")
    if isinstance(faults, str) and not faults.strip().endswith(".toml"):
        _native.faults_check(faults)
        return faults
    path = Path(fspath(faults))
    try:
        # The parser takes a text with a newline for TOML, even if it has one line.
        text = path.read_text(encoding="utf-8") + "\n"
    except FileNotFoundError as error:
        raise InputError(f"{path}: no such file; name a TOML file, or write for example loss=1e-3,seed=7") from error
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot read it ({error})") from error
    try:
        _native.faults_check(text)
    except InputError as error:
        raise InputError(f"{path}: {error}") from error
    return f"{text.rstrip()}\n{_FILE}{path} (TOML)\n"
