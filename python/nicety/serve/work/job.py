"""A work to do, as its process reads it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Job:
    """A work to do.

    Attributes:
        id: the page's name of the work.
        action: `run`, `profile` or `check`.
        source: the program's file.
        name: the program's name for the page.
        folders: further folders of its headers.
        is_edited: whether the text is the page's, so that its includes are checked.
        names: names of handlers.
        defines: macros of the program.
        given: arguments of the action's function.
        command: the command line that does the same.
    """

    id: str
    action: str
    source: str
    name: str
    folders: list[str]
    is_edited: bool
    names: dict[str, str]
    defines: list[str]
    given: dict[str, Any]
    command: dict[str, Any]
