"""Runs the contents of pages: their commands, files and programs, each page in its own empty folder.

    ```console          commands behind `$ `, each followed by what it prints; a line `...` stands for any
                        lines, and elsewhere `...` for anything in a line
    ```c title="a.c"    a file, written before the blocks behind it run
    ```python           a program; the untitled ones of a page share their names, as in one notebook
    ```py               a part of a program, which only has to parse
    ```c                with an #include, it has to compile
    ```toml             it has to parse
    $ git clone ...     gives the folder this tree, as `nicety`
    <!-- part: COMMAND -->  before a console block: COMMAND prints a part of what its first command does, whole
                        paragraphs behind the first, which says what there is. It runs in that command's place,
                        except in long runs (`HYPOTHESIS_PROFILE=soak`) and where pages are written

A picture of docs/pictures is compared with the file of the same name that the page's commands draw.

A command fails only if `$ echo $?` follows and shows its status. In other blocks, lines that begin with `nicety ` are
run too, and must succeed.

    python tests/console.py [PAGE...]    write what the commands of pages print now into them
"""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import tempfile
import textwrap
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parent.parent
_FENCE = re.compile(r"^( *)```(\w*)([^\n]*)\n(.*?)^\1```$", re.DOTALL | re.MULTILINE)
_TITLE = re.compile(r'title="([^"]+)"')
_PART = re.compile(r"<!-- part: (.*) -->\n\Z")
_INDENTED = re.compile(r"(?:^ {4}.*\n)+", re.MULTILINE)
_COMMAND = re.compile(r"(?:\$ )?((?:\.venv/bin/)?nicety [^\[]*)")
_PICTURE = re.compile(r"!\[[^\]]+\]\((?:\.\./)*(?:docs/)?pictures/([\w.-]+)\)")
PICTURES = ROOT / "docs/pictures"
_GO = "/usr/local/go/bin"
"""The folder into which Go installs itself."""
# Commands that set up a machine are not run again for a test.
_SETS_UP = ("make", "git", "cd", "source", "pip", "apt", "sudo")
MAKE = re.compile(r"(?:\$ )?make ([a-z-]+)")


def pages() -> list[Path]:
    """The manually written pages."""
    return sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])


@dataclass
class Block:
    """A code block: its language, its file's name, its text, and its place in the page."""

    language: str
    title: str | None
    text: str
    start: int
    indent: str
    part: str | None = None


def blocks(page: str) -> Iterator[Block]:
    """The code blocks of a page, in order."""
    found, hidden = [], page
    for match in _FENCE.finditer(page):
        text = re.sub(f"^{match[1]}", "", match[4], flags=re.MULTILINE)
        title = _TITLE.search(match[3])
        part = _PART.search(page, 0, match.start())
        found.append(Block(match[2], title and title[1], text, match.start(4), match[1], part and part[1]))
        hidden = hidden[: match.start()] + " " * len(match[0]) + hidden[match.end() :]
    indented = (match for match in _INDENTED.finditer(hidden) if match[0].strip())
    found += [Block("", None, textwrap.dedent(match[0]), match.start(), "") for match in indented]
    yield from sorted(found, key=lambda block: block.start)


@dataclass
class Step:
    """A command, and the text that the page shows after it."""

    command: str
    shown: list[str] = field(default_factory=list)


def steps(console: str) -> list[Step]:
    """The commands of a console block."""
    done: list[Step] = []
    for line in console.splitlines():
        if line.startswith("$ "):
            done.append(Step(line[2:]))
        elif done and not done[-1].shown and done[-1].command.endswith("\\"):
            done[-1].command += f"\n{line}"
        else:
            done[-1].shown.append(line)
    return done


class Shell:
    """Runs commands in one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.status = 0
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"], _GO])
        self.environment = {**os.environ, "PATH": path, "COLUMNS": "80", "NO_COLOR": "1", "PYTHONSAFEPATH": ""}
        # Whether news is printed depends on the duration of a command.
        self.environment["NICETY_NEWS"] = "0"
        # Pages show what there is without programs that nicety does not ship.
        self.environment.pop("NICETY_HXDP_DUMPS", None)

    def run(self, command: str) -> list[str]:
        """Run a command; return the lines that it prints, messages included."""
        done = subprocess.run(
            ["bash", "-c", f"(exit {self.status}); {command}"],
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            text=True,
            # The longest study takes 220 s of CPU time.
            timeout=900,
            check=False,
        )
        self.status = done.returncode
        return done.stdout.splitlines()

    def must(self, command: str) -> list[str]:
        """Run a command that must succeed."""
        lines = self.run(command)
        assert self.status == 0, f"{command}: status {self.status}\n" + "\n".join(lines)
        return lines


_MEASURED_HERE = re.compile(r"[0-9.]+(?= s on one core of this machine)")
"""A time that differs from machine to machine."""


def same(shown: list[str], printed: list[str]) -> bool:
    """Whether printed lines match those of a page. `...` matches any lines, or a part of one.

    Times of this machine match any others.
    """
    shown, printed = ([_MEASURED_HERE.sub("T", line) for line in lines] for lines in (shown, printed))
    parts = (re.escape(line).replace(r"\.\.\.", ".*") + "\n" for line in shown)
    pattern = "".join("(?:.*\n)*?" if line.strip() == "..." else part for line, part in zip(shown, parts, strict=True))
    return re.fullmatch(pattern, "".join(f"{line}\n" for line in printed)) is not None


def holds_part(shown: list[str], printed: list[str]) -> bool:
    """Whether printed text has the shown paragraphs, in order, after its first paragraph and theirs."""
    (_, *there), (_, *given) = ("\n".join(lines).split("\n\n") for lines in (shown, printed))
    left = iter(there)
    return bool(given) and all(paragraph in left for paragraph in given)


def run_page(page: str, folder: Path, *, update: bool = False, whole: bool = False) -> str:
    """Run a page; return it, with the present output of its commands if `update` is set.

    `whole` runs the commands themselves if others print a part of the same.

    Raises:
        AssertionError: the result differs from the page.
    """
    shell, changes, script = Shell(folder), [], []
    for block in blocks(page):
        if block.title is not None:
            (folder / block.title).parent.mkdir(parents=True, exist_ok=True)
            (folder / block.title).write_text(block.text)
        elif block.language == "console":
            part = None if update or whole else block.part
            changes.append((block, _run_console(shell, block.text, part, update=update)))
        elif block.language == "python":
            script.append(block.text)
        else:
            _run_other(shell, block)
    if script:
        (folder / "blocks.py").write_text("\n\n".join(script))
        shell.must("python blocks.py")
    for picture in pictures(page):
        _check_picture(picture, folder, update=update)
    for block, text in reversed(changes):
        old = re.sub("^(?=.)", block.indent, block.text, flags=re.MULTILINE)
        new = re.sub("^(?=.)", block.indent, text, flags=re.MULTILINE)
        assert page[block.start : block.start + len(old)] == old, f"uneven indentation: {old}"
        page = page[: block.start] + new + page[block.start + len(old) :]
    return page


def pictures(page: str) -> list[str]:
    """The names of a page's pictures."""
    return _PICTURE.findall(page)


def _check_picture(name: str, folder: Path, *, update: bool) -> None:
    """Compare a picture with the one that a page's commands have drawn, if any."""
    drawn, kept = folder / name, PICTURES / name
    if not drawn.exists():
        return
    if update:
        kept.write_bytes(drawn.read_bytes())
    again = "write it with `python tests/console.py PAGE`"
    assert kept.exists(), f"docs/pictures/{name} is missing; {again}"
    assert kept.read_bytes() == drawn.read_bytes(), f"docs/pictures/{name} looks otherwise now; {again}"


def _run_console(shell: Shell, console: str, part: str | None, *, update: bool) -> str:
    todo, lines = steps(console), []
    for number, step in enumerate(todo):
        lines += f"$ {step.command}".splitlines()
        if step.command.split()[0] in _SETS_UP:
            if step.command.startswith("git clone ") and not (shell.folder / "nicety").exists():
                (shell.folder / "nicety").symlink_to(ROOT)
            lines += step.shown
            continue
        if part is not None:
            printed = shell.must(part)
            assert holds_part(step.shown, printed), "\n".join(
                [part, "prints", *printed, "and the page shows", *step.shown]
            )
            lines, part = lines + step.shown, None
            continue
        printed = shell.run(step.command)
        asked = number + 1 < len(todo) and todo[number + 1].command == "echo $?"
        assert asked or shell.status == 0, f"{step.command}: status {shell.status}\n" + "\n".join(printed)
        matches = same(step.shown, printed)
        assert matches or update, "\n".join([step.command, "prints", *printed, "and the page shows", *step.shown])
        lines += step.shown if matches else printed
    return "\n".join(lines) + "\n"


def _run_other(shell: Shell, block: Block) -> None:
    """A block that prints nothing."""
    if block.language == "py":
        compile(block.text, "fragment", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT | ast.PyCF_ONLY_AST)
    elif block.language == "c" and "#include" in block.text:
        (shell.folder / "block.c").write_text(block.text)
        shell.must("nicety cc block.c")
    elif block.language == "toml":
        tomllib.loads(block.text)
    elif block.language in {"", "sh", "bash", "shell"}:
        for line in block.text.replace("\\\n", " ").splitlines():
            match = _COMMAND.fullmatch(line.rstrip())
            if match is not None:
                shell.must(match[1].removeprefix(".venv/bin/"))


def main() -> None:
    """Write the present output of commands into pages."""
    for page in [Path(name) for name in sys.argv[1:]] or pages():
        with tempfile.TemporaryDirectory() as folder:
            before = page.read_text()
            after = run_page(before, Path(folder), update=True)
        if after != before:
            page.write_text(after)
            print(f"{page}: changed")


if __name__ == "__main__":
    main()
