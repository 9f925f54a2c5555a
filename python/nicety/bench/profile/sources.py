"""Source lines and names of a profile."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from nicety._generated.types import ProfiledInstruction, ProfiledLine, ProfiledPath, ProfileRow

UNKNOWN = "(no line)"
"""The place of an instruction without a line."""


@lru_cache(maxsize=64)
def _lines_of(file: str) -> tuple[str, ...]:
    """The lines of a file, none if it is not here or is no text."""
    try:
        return tuple(Path(file).read_text(encoding="utf-8", errors="replace").splitlines())
    except (OSError, ValueError):
        return ()


def text_of(file: str | None, line: int | None) -> str | None:
    """The text of a line; None where the file is not here, or has changed and is shorter."""
    if file is None or not line:
        return None
    lines = _lines_of(file)
    return lines[line - 1].rstrip() if line <= len(lines) else None


def place_of(line: ProfiledLine) -> str:
    """The file's name and the line, such as `kv.c:12`."""
    if line["file"] is None:
        return UNKNOWN
    name = line["file"].replace("\\", "/").rpartition("/")[2]
    return f"{name}:{line['line']}" if line["line"] else name


def function_of(row: ProfileRow, line: ProfiledLine) -> str:
    """The name of a line's function."""
    return row["functions"][line["function"]]["function"] or "(no name)"


def path_name(path: ProfiledPath) -> str:
    """The name of a call path's function, or its address."""
    return path["symbol"] or f"{path['address']:#x}"


def by_line(row: ProfileRow) -> list[list[ProfiledInstruction]]:
    """The instructions of each line, by address."""
    found: list[list[ProfiledInstruction]] = [[] for _ in row["lines"]]
    for instruction in row["instructions"]:
        found[instruction["line"]].append(instruction)
    return found
