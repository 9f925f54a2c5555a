"""The map of ARCHITECTURE.md has every folder, crate and top-level module, and the dependencies of the manifests."""

from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
TEXT = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
PARTS = sorted(path.name for path in (ROOT / "crates").iterdir() if (path / "Cargo.toml").is_file())
MEMBERS = tomllib.loads((ROOT / "Cargo.toml").read_text(encoding="utf-8"))["workspace"]["members"]
# Crates that hold the files of a folder beside `crates`.
FOLDERS = sorted(member for member in MEMBERS if "/" not in member)
CRATES = sorted([*PARTS, *FOLDERS])


def section(title: str) -> str:
    """A section of the page, with its subsections."""
    level, _, _ = title.partition(" ")
    return re.split(rf"\n#{{1,{len(level)}}} ", TEXT.split(f"\n{title}\n")[1])[0]


def rows(title: str) -> list[list[str]]:
    """The cells of the rows of a section's first table."""
    table = re.findall(r"(?:^\|.*\n)+", section(title), re.MULTILINE)[0]
    return [[cell.strip() for cell in row.strip("|").split(" |")] for row in table.splitlines()[2:]]


def names(cell: str) -> set[str]:
    return set(re.findall(r"`([^`]+)`", cell))


def dependencies(crate: str) -> set[str]:
    """The crates of this project in a crate's manifest, without those of tests."""
    folder = ROOT / crate if crate in FOLDERS else ROOT / "crates" / crate
    manifest = tomllib.loads((folder / "Cargo.toml").read_text(encoding="utf-8"))
    every = {**manifest.get("dependencies", {}), **manifest.get("build-dependencies", {})}
    found = (name for name in every if re.match(r"nicety(-|$)", name))
    return {name.removeprefix("nicety-") for name in found}


def modules(crate: str) -> set[str]:
    paths = [path for path in (ROOT / "crates" / crate / "src").iterdir() if path.is_dir() or path.suffix == ".rs"]
    return {path.stem for path in paths} - {"lib", "tests"}


def test_every_folder_is_in_the_map() -> None:
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    folders = {name.partition("/")[0] for name in listed if "/" in name}
    assert {name for row in rows("### Other folders") for name in names(row[0])} == folders - {"crates", *FOLDERS}


def test_dependencies_are_those_of_the_manifests() -> None:
    table = {row[0].strip("`").removeprefix("crates/"): names(row[2]) for row in rows("### Crates")}
    assert table == {crate: dependencies(crate) for crate in CRATES}


def test_crates_depend_on_lower_rows() -> None:
    picture = section("### Crates").split("```")[1].splitlines()[1:]
    row_of = {crate: at for at, line in enumerate(picture) for crate in line.split()}
    assert sorted(row_of) == CRATES
    pairs = [(crate, other) for crate in CRATES for other in dependencies(crate)]
    assert [pair for pair in pairs if row_of[pair[1]] <= row_of[pair[0]]] == []


@pytest.mark.parametrize("crate", PARTS)
def test_top_level_modules_are_in_the_map(crate: str) -> None:
    (cell,) = (row[1] for row in rows("## Where things are") if row[0] == f"`{crate}`")
    named = {name for name in names(cell) if re.fullmatch(r"\w+", name)}
    assert named == modules(crate)


def test_every_source_file_says_what_it_is() -> None:
    kinds: dict[str, str | tuple[str, ...]] = {
        ".rs": "//!",
        ".zig": "//!",
        ".py": '"""',
        ".pyi": '"""',
        ".c": ("/*", "//"),
        ".h": ("/*", "//"),
        ".ld": "/*",
    }
    trees = [*(ROOT / "crates").glob("*/src"), ROOT / "python" / "nicety", *(ROOT / folder for folder in FOLDERS)]
    paths = [path for tree in trees for path in tree.rglob("*") if path.suffix in kinds and path.stem != "tests"]
    assert len(paths) > 500
    silent = [path for path in paths if not path.read_text(encoding="utf-8").startswith(kinds[path.suffix])]
    assert [str(path.relative_to(ROOT)) for path in silent] == []
