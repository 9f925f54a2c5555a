"""Messages of a work: the compiler's output, and errors with their places."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Sequence
from typing import Any

from nicety.errors import CompileError, Error, InputError

MOST_OUTPUT = 1 << 16
"""Maximum characters of output that a page gets of one work."""
MOST_DIAGNOSTICS = 100
"""Maximum number of the compiler's messages that a page gets of one work."""

_DIAGNOSTIC = re.compile(
    r"^(?P<file>[^\s:][^:\n]*):(?P<line>\d+):(?P<column>\d+): "
    r"(?P<severity>fatal error|error|warning|note): (?P<message>.*)$",
    re.MULTILINE,
)


class Names:
    """Names of files for the page, in place of their paths."""

    def __init__(self, pairs: Sequence[tuple[str, str]]) -> None:
        # A folder's path begins the paths of its files, so longer ones come first.
        self._pairs = sorted(pairs, key=lambda pair: -len(pair[0]))

    def text(self, text: str) -> str:
        """Return a text with names in place of paths."""
        for path, name in self._pairs:
            text = text.replace(path, name)
        return text

    def all(self, value: Any) -> Any:
        """Return a JSON value with names in place of paths in all its texts."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return {key: self.all(inner) for key, inner in value.items()}
        return [self.all(inner) for inner in value] if isinstance(value, list) else value


class Said(io.TextIOBase):
    """A text stream in place of stderr: it keeps the compiler's messages, and passes them on."""

    def __init__(self, names: Names, tell: Callable[[str], None]) -> None:
        self.names = names
        self._tell = tell
        self._kept = ""

    def write(self, text: str) -> int:
        """Take a text."""
        shown = self.names.text(text)
        room = MOST_OUTPUT - len(self._kept)
        if shown and room > 0:
            self._kept += shown[:room]
            self._tell(shown[:room])
        return len(text)

    def diagnostics(self) -> list[dict[str, Any]]:
        """Return the compiler's messages so far."""
        found = []
        for match in _DIAGNOSTIC.finditer(self._kept):
            severity = match["severity"].removeprefix("fatal ")
            place = {"file": match["file"], "line": int(match["line"]), "column": int(match["column"])}
            found.append({**place, "severity": severity, "message": match["message"]})
        return found[:MOST_DIAGNOSTICS]


def error_info(error: Error, name: str, said: Said) -> dict[str, Any]:
    """Return an error for the page, with its line in the program `name` if it has one."""
    info: dict[str, Any] = {
        "message": said.names.text(str(error)),
        "kind": "input" if isinstance(error, InputError) else "run",
    }
    if isinstance(error, CompileError):
        info["diagnostics"] = said.diagnostics()
        wrong = (each for each in info["diagnostics"] if each["severity"] == "error" and each["file"] == name)
        if (first := next(wrong, None)) is not None:
            info |= {"line": first["line"], "column": first["column"]}
    elif (line := getattr(error, "line", None)) is not None:
        info["line"] = line
    elif (place := re.search(rf"(?<![\w.]){re.escape(name)}:(\d+)", info["message"])) is not None:
        info["line"] = int(place[1])
    return info
