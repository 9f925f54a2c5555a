"""Count lines of code by crate: no blank lines, comments and documentation; tests and generated files apart.

python tests/code_lines.py [--json] [REVISION]    the files of a revision, HEAD by default
"""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys
import tarfile
from collections import Counter, defaultdict
from pathlib import Path, PurePosixPath

from pygments.lexer import Lexer
from pygments.lexers import get_lexer_by_name
from pygments.token import Comment, String, Whitespace

ROOT = Path(__file__).parent.parent
LANGUAGES = {
    **dict.fromkeys((".c", ".h"), "c"),
    **dict.fromkeys((".py", ".pyi"), "python"),
    ".rs": "rust",
    ".go": "go",
    ".js": "javascript",
    ".S": "gas",
    ".zig": "zig",
}
_TESTS = {"tests", "benches", "examples", "nic-testing", "fuzz"}
_GENERATED = re.compile(r"not to be changed by hand|DO NOT EDIT|^// Generated", re.MULTILINE)
_UNIT_TESTS = re.compile(r"^#\[cfg\(test\)\]\nmod \w+ \{$", re.MULTILINE)


def lines(text: str, lexer: Lexer) -> int:
    """Number of lines with code."""
    found, line = set(), 0
    for kind, value in lexer.get_tokens(text):
        is_code = kind not in Comment and kind not in String.Doc and kind not in Whitespace and bool(value.strip())
        if is_code or kind in Comment.Preproc or kind in Comment.PreprocFile:
            found |= {line + at for at, part in enumerate(value.split("\n")) if part.strip()}
        line += value.count("\n")
    return len(found)


def unit(path: PurePosixPath) -> str:
    """The crate or folder that a file is counted for."""
    return "/".join(path.parts[:2]) if path.parts[0] in {"crates", "python", "go"} else path.parts[0]


def counts(path: PurePosixPath, text: str, lexer: Lexer) -> dict[str, int]:
    """Lines of a file's code, tests and generated code."""
    if _GENERATED.search(text[:600]):
        return {"generated": lines(text, lexer)}
    if _TESTS & set(path.parts) or path.name in {"tests.rs", "conftest.py"}:
        return {"tests": lines(text, lexer)}
    own = _UNIT_TESTS.search(text)
    start = own.start() if own else len(text)
    return {"code": lines(text[:start], lexer), "tests": lines(text[start:], lexer)}


def files(revision: str) -> dict[PurePosixPath, str]:
    """The source files of a revision."""
    command = ["git", "archive", "--format=tar", revision]
    archive = subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout
    found = {}
    with tarfile.open(fileobj=io.BytesIO(archive)) as tree:
        for member in tree:
            path = PurePosixPath(member.name)
            content = tree.extractfile(member) if member.isfile() else None
            if content is not None and path.suffix in LANGUAGES and not path.name.endswith(".min.js"):
                found[path] = content.read().decode()
    return found


def main(arguments: list[str]) -> None:
    revision = next((argument for argument in arguments if not argument.startswith("-")), "HEAD")
    lexers = {suffix: get_lexer_by_name(name, stripnl=False) for suffix, name in LANGUAGES.items()}
    table: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for path, text in files(revision).items():
        table[unit(path)].update(counts(path, text, lexers[path.suffix]))
    whole: Counter[str] = sum(table.values(), Counter())
    kinds = ("code", "tests", "generated")
    rows = {name: {kind: found[kind] for kind in kinds} for name, found in [*sorted(table.items()), ("sum", whole)]}
    if "--json" in arguments:
        print(json.dumps({"revision": revision, "lines": rows}, indent=1))
        return
    print(f"{'':24}{''.join(f'{kind:>11}' for kind in kinds)}")
    for name, row in rows.items():
        print(f"{name:24}{''.join(f'{row[kind]:11}' for kind in kinds)}")


if __name__ == "__main__":
    main(sys.argv[1:])
