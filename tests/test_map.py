"""ARCHITECTURE.md has every file of the crates, the Python package and the handlers, and what it says of itself first.

`NICETY_WRITE=1 pytest tests/test_map.py` writes the list anew.
"""

from __future__ import annotations

import ast
import os
import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "ARCHITECTURE.md"
BEGIN = "<!-- files: written by tests/test_map.py -->\n"
END = "<!-- end of files -->\n"
KINDS = {".rs", ".py", ".pyi", ".c", ".h", ".ld", ".zig"}


def sentence(path: Path) -> str:
    """The first sentence of a file's documentation."""
    text = path.read_text(encoding="utf-8")
    head = text.split("\n\n", 1)[0]
    if path.suffix in {".py", ".pyi"}:
        lines = (ast.get_docstring(ast.parse(text)) or "").splitlines()
    elif path.suffix in {".rs", ".zig"}:
        lines = [line.removeprefix("//!").strip() for line in head.splitlines() if line.startswith("//!")]
    else:
        lines = [line.removeprefix(" *").strip() for line in head.removeprefix("/* ").partition("*/")[0].splitlines()]
    paragraph = " ".join(lines[: lines.index("")] if "" in lines else lines).strip()
    assert paragraph, f"{path} does not say what it is"
    first = re.split(r"(?<=[a-zA-Z0-9)`\]])\.(?: |$)", paragraph.removeprefix(f"{path.name}: "))[0]
    # Links have their targets in Rust, and bars would end a cell.
    first = re.sub(r"\[([^\]]+)\](?:\([^)]*\))?", r"\1", first).replace("|", "\\|")
    # The name of a function of the file keeps its letters.
    word = re.match(r"[\w.]+", first)
    is_name = word is not None and ("." in word[0] or re.search(rf"\b{word[0]}\(", text))
    return first if is_name else first[0].upper() + first[1:]


def files() -> str:
    """A table for each folder."""
    tables = []
    crates = [crate / "src" for crate in sorted((ROOT / "crates").iterdir())]
    for tree in [*crates, ROOT / "python" / "nicety", ROOT / "handlers"]:
        paths = [path for path in tree.rglob("*") if path.suffix in KINDS and path.stem != "tests"]
        for folder in sorted({path.parent for path in paths}):
            own = sorted(folder.iterdir(), key=lambda path: (path.stem not in {"lib", "mod", "__init__"}, path.stem))
            rows = [f"| `{path.name}` | {sentence(path)} |\n" for path in own if path in paths]
            tables.append(f"`{folder.relative_to(ROOT)}`\n\n| file | what is in it |\n|---|---|\n{''.join(rows)}")
    return "\n" + "\n".join(tables) + "\n"


def test_every_file_is_in_the_map() -> None:
    before, rest = PAGE.read_text(encoding="utf-8").split(BEGIN)
    found, after = rest.split(END)
    if os.environ.get("NICETY_WRITE"):
        PAGE.write_text(before + BEGIN + files() + END + after, encoding="utf-8")
    else:
        assert found == files(), "write it with NICETY_WRITE=1 pytest tests/test_map.py"
