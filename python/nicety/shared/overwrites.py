"""Options that write files: none may name a file that the command reads."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from nicety.errors import InputError

_WRITTEN = {
    "--plot": ".svg",
    "--csv": ".csv",
    "--pcie-csv": ".csv",
    "--arrow": ".arrow",
    "--trace": ".pftrace",
    "--capture": ".pcapng",
    "--dump": ".json",
    "--html": ".html",
    "--speedscope": ".json",
    "--pprof": ".pb.gz",
    "--elf": ".elf",
    "--goal": ".goal",
    "--output": "",
    "-o": "",
    "target": ".goal",
}
"""Maps an option or an argument that names a file to write to the usual extension of that file."""


def check_overwrites(parameters: Sequence[Any], values: Mapping[str, Any]) -> None:
    """Raise an error before the run if a command would overwrite one of its own inputs.

    Args:
        parameters: the command's parameters.
        values: their values by name.

    Raises:
        InputError: an output is the same file as an input.
    """
    named = [(_written(each), each, values.get(each.name)) for each in parameters]
    outputs = [(option, path) for option, _, value in named if option for path in _outputs(option, value)]
    if not outputs:
        return
    read = [
        (_label(each), path) for option, each, value in named if not option and value for path in _candidates(value)
    ]
    for option, path in outputs:
        for label, other in read:
            if _is_same(path, other):
                ending = _WRITTEN[option] or path.suffix
                shown = f"{option} {path}" if option.startswith("-") else str(path)
                raise InputError(
                    f"{shown}: this would overwrite an input, that of {label}; name another file, as in new{ending}"
                )


def _written(parameter: Any) -> str:
    """Return the name of an option that names a file to write; empty for others."""
    return next((each for each in parameter.opts if each in _WRITTEN), "")


def _label(parameter: Any) -> str:
    flag: str = parameter.opts[0]
    return flag if flag.startswith("-") else parameter.metavar or flag


def _outputs(option: str, value: Any) -> Iterator[Path]:
    for each in value if isinstance(value, list | tuple) else [value]:
        if isinstance(each, str | Path) and str(each):
            # An option such as --dump has NAME=FILE.
            yield Path(str(each).partition("=")[2] if option == "--dump" else each)


def _candidates(value: Any) -> Iterator[Path]:
    """Yield the files that a value may name: all of it, and files in lists, NAME=FILE, @FILE and traffic."""
    if isinstance(value, list | tuple):
        for each in value:
            yield from _candidates(each)
    elif isinstance(value, Path):
        yield value
    elif isinstance(value, str):
        for word in {value, *re.split(r"[\s,]+", value)}:
            yield from (Path(part) for part in (word, word.partition("=")[2], word.removeprefix("@")) if part)


def _is_same(one: Path, other: Path) -> bool:
    """Return whether both are one regular file. A device may be read and written at once."""
    try:
        return one.is_file() and other.is_file() and one.samefile(other)
    except (OSError, ValueError):
        # A value may be no possible name of a file, such as a packet in hex.
        return False
