"""Programs of the workbench: the file of the command line, those of the library, and texts of the page."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypedDict

from nicety.build.cache import digest
from nicety.build.compiler import library_folder
from nicety.errors import InputError
from nicety.serve.fields import Fields, Refused

MOST_BYTES = 1 << 18
"""Maximum characters of a program's text."""
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]{0,80}\.c")
_FOLDERS = {"frames": "ethernet", "pspin": "pspin", "fpspin": "fpspin"}
"""Folders of the library with handlers for one kind of card; the others are for Portals."""
_WITHOUT = ("runtime", "include", "xdp", "nfp")
"""Folders of the library without handlers."""


class Program(TypedDict):
    """A program of the page: its origin, its name and its text."""

    origin: str
    name: str
    text: str


@dataclass(frozen=True)
class Placed:
    """A program as a file.

    Attributes:
        path: the file.
        name: the name for the page.
        folders: further folders of its headers.
        is_edited: whether the text is the page's, and not that of the file or the library.
        shown: the file for a command line.
    """

    path: Path
    name: str
    folders: tuple[Path, ...]
    is_edited: bool
    shown: str


def read_file(path: Path) -> Program:
    """Return the program of the command line.

    Raises:
        InputError: the file cannot be read, or is no C file.
    """
    if path.suffix != ".c":
        raise InputError(f"{path}: no C file; nicety serve opens handlers in C, such as count.c")
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"{path}: cannot read it ({error.strerror})") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: no text in UTF-8 ({error.reason}); save it as UTF-8") from error
    if len(text) > MOST_BYTES:
        raise InputError(f"{path}: has {len(text)} characters; the page takes {MOST_BYTES}")
    return {"origin": "file", "name": path.name, "text": text}


def library_programs() -> list[str]:
    """Return the names of the library's programs with handlers."""
    folder = library_folder()
    names = (path.relative_to(folder) for path in folder.rglob("*.c"))
    return sorted(name.as_posix() for name in names if name.parts[0] not in _WITHOUT)


def library_program(name: str) -> Program:
    """Return a program of the library.

    Raises:
        Refused: the library has no such program.
    """
    if name not in library_programs():
        raise Refused("name", f"the library has no program {name[:80]!r}; it has {', '.join(library_programs())}")
    return {"origin": "library", "name": name, "text": (library_folder() / name).read_text(encoding="utf-8")}


def read_program(fields: Fields) -> Program:
    """Read a program from a request.

    Raises:
        Refused: it is invalid.
    """
    origin = fields.word("origin", ("library", "file", "page"))
    name = fields.text("name", 100)
    text = fields.text("text", MOST_BYTES)
    fields.end()
    if origin == "library":
        library_program(name)
    elif not _NAME.fullmatch(name):
        raise Refused(fields.place("name"), "is a C file's name without a folder, such as count.c")
    return {"origin": origin, "name": name, "text": text}


class Programs:
    """The programs of one server."""

    def __init__(self, opened: Path | None, folder: Path) -> None:
        """Read the opened file.

        Args:
            opened: the file of the command line, if any.
            folder: a folder for texts of the page.

        Raises:
            InputError: the opened file cannot be read.
        """
        self.opened = opened
        self.file = read_file(opened) if opened is not None else None
        self._folder = folder

    def place(self, program: Program) -> Placed:
        """Return the program as a file: the user's or the library's if the text is the same, otherwise a new one."""
        name, text = program["name"], program["text"]
        if program["origin"] == "library":
            original = library_folder() / name
            if original.read_text(encoding="utf-8") == text:
                return Placed(original, name, (), is_edited=False, shown=str(original))
            return self._written(Path(name).name, text, (original.parent,))
        if program["origin"] == "file" and self.opened is not None and name == self.opened.name:
            # The file may have changed meanwhile.
            if read_file(self.opened)["text"] == text:
                return Placed(self.opened.absolute(), name, (), is_edited=False, shown=str(self.opened))
            return self._written(name, text, (self.opened.absolute().parent,))
        return self._written(name, text, ())

    def _written(self, name: str, text: str, folders: tuple[Path, ...]) -> Placed:
        # The same text has the same path, so that the compiler's cache knows it.
        folder = self._folder / digest([text])
        folder.mkdir(exist_ok=True)
        path = folder / name
        path.write_text(text, encoding="utf-8")
        return Placed(path, name, folders, is_edited=True, shown=name)

    def paths(self, placed: Placed) -> list[tuple[str, str]]:
        """Return the paths that a page does not see, with the names in their place."""
        pairs = [(str(placed.path), placed.name), (f"{placed.path.parent}/", ""), (f"{library_folder()}/", "")]
        return pairs + [(f"{folder}/", "") for folder in placed.folders]

    def state(self) -> dict[str, Any]:
        """Return the programs for the page."""
        library = [{"name": name, "cards": cards_of(name)} for name in library_programs()]
        return {"file": self.file, "library": library}


def cards_of(name: str) -> list[str]:
    """Return the kinds of cards that take a program of the library, such as `ethernet`."""
    return [_FOLDERS.get(Path(name).parts[0], "portals")]
