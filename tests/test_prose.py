"""The prose of source files that Vale reads: comments, docstrings and messages on their own lines, and no code."""

from __future__ import annotations

from pathlib import Path

import pytest

from prose import prose, spec_prose

RUST = """//! Describes the module.
/// Returns bytes.
fn f(bytes: u64) -> String { // of a packet
    let key = "one two three";
    format!("{bytes} bytes do not fit the buffer: {}; write {most} or \\
             less", 1)
}
#[cfg(test)]
mod tests { const TEXT: &str = "a text that only tests have in them"; }
"""
PYTHON = '''"""Describes the module."""
# Why it is so.
SOURCE = """
int main(void) { return 0; } of a program in C
"""
raise InputError(f"--set {key}: the key is in no section of the spec")
'''
C = """/* A list:
 * - first */
#define MOST 4 /* the most commands in flight */
static const char *at = "lw a0, 0(a1)\\nsw a0, 4(a1)\\nnop and some more words here";
"""


@pytest.mark.parametrize(
    ("name", "source", "lines"),
    [
        (
            "a.rs",
            RUST,
            ["Describes the module.", "Returns bytes.", "- of a packet", "", "- X bytes do not fit the buffer", "- X"],
        ),
        ("a.py", PYTHON, ["Describes the module.", "Why it is so.", "", "", "", "- --set X"]),
        ("a.c", C, ["A list:", "- first", "- the most commands in flight", ""]),
    ],
)
def test_prose_has_the_lines_of_its_source(tmp_path: Path, name: str, source: str, lines: list[str]) -> None:
    path = tmp_path / name
    path.write_text(source)
    found = prose(path)
    assert "\n".join(found).splitlines()[: len(lines)] == lines
    assert "tests have" not in "\n".join(found)
    assert "int main" not in "\n".join(found)


def test_prose_of_a_spec_has_its_comments_and_reasons(tmp_path: Path) -> None:
    path = tmp_path / "a.toml"
    path.write_text(
        'gap = { value = "1 ns", kind = "assumed", source = "no source gives one; half of g", note = "g: the gap" }\n'
        "# The next section.\n[bus]\n"
    )
    assert spec_prose(path) == ["- no source gives one\n- half of g\n- g\n- the gap", "\nThe next section.", ""]
