"""ARCHITECTURE.md has every file of the crates, with the first sentence of its own documentation.

`NICETY_WRITE=1 pytest tests/test_map.py` writes the list anew.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "ARCHITECTURE.md"
BEGIN = "<!-- files: written by tests/test_map.py -->\n"
END = "<!-- end of files -->\n"


def sentence(path: Path) -> str:
    """The first sentence of a module's documentation."""
    text = path.read_text(encoding="utf-8")
    lines = [
        line.removeprefix("//!").strip() for line in text.split("\n\n", 1)[0].splitlines() if line.startswith("//!")
    ]
    paragraph = " ".join(lines[: lines.index("")] if "" in lines else lines)
    assert paragraph, f"{path} does not say what it is"
    first = re.split(r"(?<=[a-z0-9)`\]])[.:](?: |$)", paragraph)[0]
    # Links have their targets in Rust, and bars would end a cell.
    return re.sub(r"\[([^\]]+)\](?:\([^)]*\))?", r"\1", first).replace("|", "\\|")


def files() -> str:
    """A table for each folder."""
    tables = []
    for crate in sorted((ROOT / "crates").iterdir()):
        for folder in sorted({path.parent for path in (crate / "src").rglob("*.rs")}):
            paths = sorted(folder.glob("*.rs"), key=lambda path: (path.stem not in {"lib", "mod"}, path.stem))
            paths = [path for path in paths if path.stem != "tests"]
            rows = [f"| `{path.name}` | {sentence(path)} |\n" for path in paths]
            if rows:
                tables.append(f"`{folder.relative_to(ROOT)}`\n\n| file | what is in it |\n|---|---|\n{''.join(rows)}")
    return "\n" + "\n".join(tables) + "\n"


def test_every_file_is_in_the_map() -> None:
    before, rest = PAGE.read_text(encoding="utf-8").split(BEGIN)
    found, after = rest.split(END)
    if os.environ.get("NICETY_WRITE"):
        PAGE.write_text(before + BEGIN + files() + END + after, encoding="utf-8")
    else:
        assert found == files(), "write it with NICETY_WRITE=1 pytest tests/test_map.py"
