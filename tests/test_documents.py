"""The documents' examples do what they show."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()
FIRST = 'python title="first.py"'


def block(after: str, language: str = "") -> str:
    """The first code block after a text."""
    return README.split(after, 1)[1].split(f"```{language}\n", 1)[1].split("```", 1)[0]


def test_the_demo_prints_what_the_readme_shows(nicety: Callable) -> None:
    makefile = (ROOT / "Makefile").read_text().replace("\\\n", " ")
    recipe = makefile.split("\ndemo:", 1)[1].split("\n\n", 1)[0]
    commands = [line.split("nicety ", 1)[1].split() for line in recipe.splitlines() if "/nicety bench" in line]
    assert len(commands) == 2
    printed = "".join(nicety(*command).stdout for command in commands).splitlines()
    shown = [line for line in block("make demo\n", "console").splitlines() if line != "..." and line[:2] != "$ "]
    assert len(shown) > 20
    assert [line for line in shown if line not in printed] == []


def test_the_first_program_prints_what_the_readme_shows(capsys: pytest.CaptureFixture[str]) -> None:
    program = block("## A first program", FIRST)
    assert len(program.splitlines()) <= 30
    exec(compile(program, "README.md", "exec"), {"__name__": "__main__"})
    command, printed = block("## A first program", "console").split("\n", 1)
    assert command == "$ python first.py"
    assert capsys.readouterr().out == printed


@pytest.mark.parametrize("card", ["qnix", "nfp-4000", "spin-integrated"])
def test_the_first_program_runs_unchanged_on_every_card(card: str, capsys: pytest.CaptureFixture[str]) -> None:
    program = block("## A first program", FIRST).replace("spin-discrete", card)
    exec(compile(program, "README.md", "exec"), {"__name__": "__main__"})
    assert capsys.readouterr().out.startswith("10 rounds of ")


def test_the_targets_of_make_exist() -> None:
    makefile = (ROOT / "Makefile").read_text()
    for document in ("README.md", "CONTRIBUTING.md"):
        for line in (ROOT / document).read_text().splitlines():
            if line.startswith("    make "):
                assert f"\n{line.split()[1]}:" in makefile, line


def test_links_lead_somewhere() -> None:
    for document in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md"):
        for part in (ROOT / document).read_text().split("](")[1:]:
            target = part.split(")", 1)[0]
            assert target.startswith("https://") or (ROOT / target).exists(), f"{document}: {target}"
