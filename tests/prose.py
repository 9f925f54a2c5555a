"""Checks the words of this project by Vale: pages, comments, docstrings, messages, and the reasons in specs.

Run `.venv/bin/python tests/prose.py VALE [FILE...]`, as `make prose` does. Vale knows the sentences of Markdown
alone, so each source file becomes a Markdown file with its prose on the same lines. Rules: docs/contributing/style.md.
"""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Literal, TypeAlias

from pygments.lexer import Lexer
from pygments.lexers import CLexer, GoLexer, PythonLexer, RustLexer, TypeScriptLexer
from pygments.token import Comment, String, Whitespace

Kind: TypeAlias = Literal["comment", "trailing", "message"]
ROOT = Path(__file__).parent.parent
LEXERS: dict[str, type[Lexer]] = {
    ".rs": RustLexer,
    ".py": PythonLexer,
    ".go": GoLexer,
    ".c": CLexer,
    ".h": CLexer,
    ".ts": TypeScriptLexer,
    ".tsx": TypeScriptLexer,
}
NOT_OURS = ("third_party/", "/testdata/", "/tests/data/", "tests/programs/")
# A shorter string is a key or a word of a table.
_LEAST_WORDS = 5
_MARKS = re.compile(r"^\s*(///|//!|//|/\*+|\*/|\*|#+!?) ?|\s*\*/\s*$")
_DIRECTIVE = re.compile(r"^\s*(?:#!|# (?:type|noqa|ruff|mypy|pragma)\b|//go:|//export)")
_REASON = re.compile(r'\b(?:source|note|against) = "((?:[^"\\]|\\.)*)"')
# Text between tags; the lexer takes its words for names of the program.
_BETWEEN_TAGS = re.compile(r"(?<=>)[^<>{}=;()]+(?=[<{])")
_PLACE = re.compile(r"\{[^{}]*\}|%[-+#0-9.]*l*[a-z]|\\u\{[^}]*\}|\\[nrt]")


def strings_of(tree: ast.AST) -> Iterator[tuple[int, str, Kind]]:
    """The docstrings and other strings of a Python program, as `tokens` gives them. Pygments splits f-strings."""
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    parts = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            values = [part.value if isinstance(part, ast.Constant) else "{}" for part in node.values]
            yield node.lineno - 1, "".join(map(str, values)), "message"
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in parts:
            yield node.lineno - 1, node.value, "comment" if id(node) in docstrings else "message"


def tokens(path: Path) -> Iterator[tuple[int, str, Kind]]:
    """The comments and strings of a source file: first line from 0, text, and kind."""
    line, began, text, code, is_python = 0, 0, "", -1, path.suffix == ".py"
    if is_python:
        yield from strings_of(ast.parse(path.read_text()))
    elif path.suffix == ".tsx":
        for found in _BETWEEN_TAGS.finditer(path.read_text()):
            yield path.read_text().count("\n", 0, found.start()), " ".join(found[0].split()), "message"
    for kind, value in LEXERS[path.suffix](stripnl=False, ensurenl=False).get_tokens(path.read_text()):
        is_prose = kind in Comment and kind not in Comment.Preproc and kind not in Comment.PreprocFile
        is_prose |= kind in String.Doc and not is_python
        if kind in String and not is_prose and not is_python:
            began, text = (began, text + value) if text else (line, value)
        else:
            if text and kind not in Whitespace:
                yield began, text, "message"
                text = ""
            if is_prose:
                yield line, value, "comment" if code < line else "trailing"
        line += value.count("\n")
        if not is_prose and value.strip():
            code = line
    if text:
        yield began, text, "message"


def prose(path: Path) -> list[str]:
    """The prose of each line of a source file as Markdown, each sentence on its own lines."""
    lines = [""] * (path.read_text().count("\n") + 20)
    is_test = path.name.startswith("test_") or "/tests/" in str(path) or path.parent.name == "tests"
    tests = next((at for at, text in enumerate(path.read_text().splitlines()) if text == "#[cfg(test)]"), len(lines))
    for first, text, kind in tokens(path):
        if kind != "message":
            for at, part in enumerate(text.splitlines(), first):
                if not _DIRECTIVE.match(part):
                    # Comments behind lines of code are no paragraph together.
                    mark = "- " if kind == "trailing" and at == first else ""
                    lines[at] = mark + _MARKS.sub("", part)
        elif not is_test and first < tests:
            joined = re.sub(r"\\\n\s*", "", text)
            message = _PLACE.sub("X", joined).strip("\"'rf# ")
            is_program = joined.count("\\n") > 1 or "\n" in joined.rstrip("\n")
            if not is_program and len(re.findall(r"\b[A-Za-z]{2,}\b", message)) >= _LEAST_WORDS:
                # A message has its problem, its place and its advice behind colons and semicolons.
                for at, clause in enumerate(re.split(r"[;:] ", message), first):
                    lines[at] = f"{lines[at]}\n- {clause}" if lines[at] else f"- {clause}"
    return lines


def spec_prose(path: Path) -> list[str]:
    """The prose of each line of a spec as Markdown: its comment, or the parts of its reasons as items of a list."""
    lines = []
    for line in path.read_text().splitlines():
        if line.startswith("#"):
            # An item would go on in a comment right behind it.
            gap = "\n" if lines and lines[-1].startswith("- ") else ""
            lines.append(gap + _MARKS.sub("", line))
        else:
            parts = [part for text in _REASON.findall(line) for part in re.split(r"[;:] ", text)]
            lines.append("\n".join(f"- {part}" for part in parts))
    return lines


def notebook_prose(path: Path) -> list[str]:
    """The lines of a notebook's cells in Markdown, each on its line of the file."""
    raw = path.read_text().splitlines()
    lines, at = [""] * len(raw), 0
    for cell in json.loads(path.read_text())["cells"]:
        for text in cell["source"]:
            at = (
                next(number for number in range(at, len(raw)) if raw[number].strip().rstrip(",") == json.dumps(text))
                + 1
            )
            lines[at - 1] = text.rstrip("\n") if cell["cell_type"] == "markdown" else ""
    return lines


def main(vale: str, names: list[str]) -> int:
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", *names]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    files = [ROOT / name for name in listed.splitlines() if not any(part in f"/{name}" for part in NOT_OURS)]
    numbers: dict[str, list[int]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for path in files:
            is_spec = path.parent == ROOT / "specs" and path.suffix == ".toml" and path.name != "Cargo.toml"
            if path.suffix not in (".md", ".ipynb", *LEXERS) and not is_spec:
                continue
            name = str(path.relative_to(ROOT))
            place = Path(folder) / name
            place.parent.mkdir(parents=True, exist_ok=True)
            if path.suffix == ".md":
                place.write_text(path.read_text())
                continue
            read = spec_prose if is_spec else notebook_prose if path.suffix == ".ipynb" else prose
            lines = read(path)
            place.with_name(f"{place.name}.md").write_text("\n".join(lines) + "\n")
            numbers[name] = [number for number, text in enumerate(lines, 1) for _ in text.split("\n")]
        command = [str(Path(vale).absolute()), f"--config={ROOT / '.vale.ini'}", "--output=line", "."]
        done = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, text=True, check=False)
    for line in done.stdout.splitlines():
        name, number, finding = line.split(":", 2)
        source = name.removesuffix(".md")
        at = numbers[source][int(number) - 1] if source in numbers else number
        print(f"{source if source in numbers else name}:{at}:{finding}")
    return done.returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
