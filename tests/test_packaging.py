"""The project as others get it, and as its tests run it."""

from __future__ import annotations

import re

from console import ROOT


def test_random_tests_are_longer_in_long_runs() -> None:
    """A number of cases that is fixed stays what it is where somebody asks for a long run."""
    fixed = {
        "*.rs": re.compile(r"(?:with_cases\(|\bcases: )[\d_]+[,)]"),
        "*.py": re.compile(r"@settings\(.*max_examples|max_examples=\d"),
    }
    found = [
        f"{path.relative_to(ROOT)}: {match[0]}"
        for folder, pattern in (("crates", "*.rs"), ("tests", "test_*.py"))
        for path in sorted((ROOT / folder).rglob(pattern))
        for match in fixed[pattern.replace("test_", "")].finditer(path.read_text())
        if path.name != "test_packaging.py"
    ]
    assert found == []
