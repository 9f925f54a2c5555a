"""Files that a program of the page may include: those of its folder and of the library.

The compiler reads any file that a program names. So the text is checked before it is compiled. `#include` with an
absolute path, a path that leaves these folders, or a macro for a path is refused. So are other ways to read a file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from nicety.errors import InputError

_MOST_FILES = 1000
"""Maximum number of included files that are checked."""
_COMPOSED = re.compile(r"\basm\b|\b__asm|##|%:%:|\?\?=")
"""Texts without which macros cannot compose assembly."""
_GAP = r"(?:\s|/\*.*?\*/)*"
_INCLUDE = re.compile(rf"(?:#|%:|\?\?=){_GAP}(?:include|include_next|import|embed)\b(?P<rest>{_GAP}[^\n]*)", re.DOTALL)
_HAS = re.compile(rf"\b__has_(?:include|include_next|embed)\b{_GAP}\((?P<rest>{_GAP}[^\n]*)", re.DOTALL)
_NAMED = re.compile(rf'{_GAP}(?:"(?P<own>[^"\n]*)"|<(?P<other>[^>\n]*)>)', re.DOTALL)
_ESCAPE = re.compile(r"\\(?:x([0-9a-fA-F]{1,2})|([0-7]{1,3}))")
_READS = re.compile(r"\.\s*(?:inc(?:bin|lude)|(?:alt)?macro|irpc?|rept)\b")
"""Directives that read a file, and directives that compose new text in the assembler."""


class IncludeError(InputError):
    """An include that is not allowed, with its line."""

    def __init__(self, text: str, line: int) -> None:
        super().__init__(text)
        self.line = line


def check_includes(name: str, text: str, folders: Sequence[Path], library: Path) -> bool:
    """Refuse a program that would make the compiler read other files than those of some folders.

    Return whether macros may compose assembly, so that `check_assembly` has to read the preprocessed text.

    Args:
        name: the program's name, for messages.
        text: its text.
        folders: the folders of the program and its headers.
        library: the folder of nicety's library.

    Raises:
        IncludeError: an include leaves these folders, or a file is read in another way.
    """
    known: set[Path] = set()
    composed = False
    left: list[tuple[str, str, Path | None]] = [(name, text, folders[0] if folders else None)]
    while left:
        shown, source, folder = left.pop()
        composed = composed or _COMPOSED.search(re.sub(r"\\[ \t\f\v\r]*\n", "", source)) is not None
        for path in _included(shown, source, folder, folders, library):
            if path in known or library.resolve() in path.parents:
                continue
            known.add(path)
            if len(known) > _MOST_FILES:
                raise IncludeError(f"{name}: includes more than {_MOST_FILES} files", 1)
            left.append((path.name, path.read_text(encoding="utf-8", errors="replace"), path.parent))
    return composed


def check_assembly(name: str, text: str) -> None:
    """Refuse a preprocessed program with assembly that reads files or has macros.

    Raises:
        IncludeError: it has such assembly.
    """
    if _READS.search(_assembly(text)) is not None:
        raise IncludeError(f"{name}: assembly must not read files or have macros; write it in C", 1)


def _included(name: str, text: str, folder: Path | None, folders: Sequence[Path], library: Path) -> Iterator[Path]:
    """Yield the files of these folders that a source names, also in comments: only the compiler knows all comments."""
    lines = re.sub(r"\r\n?", "\n", text)
    # A backslash at the end of a line joins it with the next one, also within a word.
    joined = re.sub(r"(?:\\|\?\?/)[ \t\f\v]*\n", "", lines)
    if (reads := _READS.search(_assembly(joined))) is not None:
        line = _line(lines, reads[0])
        raise IncludeError(f"{name}:{line}: assembly must not read files or have macros; write it in C", line)
    for found in (*_INCLUDE.finditer(joined), *_HAS.finditer(joined)):
        line = _line(lines, found[0])
        named = _NAMED.match(found["rest"])
        if named is None:
            raise IncludeError(f'{name}:{line}: name the file of an include itself, as in #include "table.h"', line)
        wanted = named["own"] if named["own"] is not None else named["other"]
        yield from _found(name, line, wanted, folder, folders, library)


def _assembly(text: str) -> str:
    """Return a text with adjacent literals joined and numeric escapes decoded, as the assembler gets them."""
    whole = re.sub(rf'"{_GAP}"', "", text, flags=re.DOTALL)
    return _ESCAPE.sub(lambda found: chr(int(found[1], 16) if found[1] else int(found[2], 8)), whole)


def _found(
    name: str, line: int, wanted: str, folder: Path | None, folders: Sequence[Path], library: Path
) -> Iterator[Path]:
    if Path(wanted).is_absolute() or "\\" in wanted or ":" in wanted:
        raise IncludeError(
            f"{name}:{line}: {wanted}: include a file of the program's folder or of nicety by a relative path", line
        )
    allowed = [each.resolve() for each in (*folders, library)]
    headers = [path for path in (library / "include", library / "runtime" / "include") if path.is_dir()]
    headers += [path for path in (library / "include").iterdir() if path.is_dir()]
    for base in [*([folder] if folder is not None else []), *folders, *headers]:
        path = (base / wanted).resolve()
        if not any(root == path or root in path.parents for root in allowed):
            if path.exists() or ".." in Path(wanted).parts:
                raise IncludeError(
                    f"{name}:{line}: {wanted}: it is outside the program's folder and nicety's library; move it there",
                    line,
                )
        elif path.is_file():
            yield path


def _line(text: str, part: str) -> int:
    """Return the line of a part of the joined text; the first one if it is in several lines of the source."""
    at = text.find(part)
    return text.count("\n", 0, at) + 1 if at >= 0 else 1
