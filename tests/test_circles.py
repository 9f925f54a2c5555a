"""Files of a crate import one another in one direction, apart from a module and those inside it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from test_modules import branches

ROOT = Path(__file__).parent.parent
CRATES = sorted(path.parent.parent.name for path in (ROOT / "crates").glob("*/src/lib.rs"))
Module = tuple[str, ...]


@cache
def code(path: Path) -> str:
    """The code of a file, without comments and without its tests."""
    text = re.sub(r"//.*", "", path.read_text(encoding="utf-8"))
    return re.split(r"^#\[cfg\(test\)\]\nmod tests? \{", text, maxsplit=1, flags=re.MULTILINE)[0]


def inside(here: Module, names: list[str]) -> tuple[Module, list[str]]:
    """The module from which a path in `here` begins, and the rest of the path."""
    if names[:1] == ["crate"]:
        return (), names[1:]
    while names[:1] in (["super"], ["self"]):
        here = here[:-1] if names[0] == "super" else here
        names = names[1:]
    return here, names


def home(source: Path, found: Module, names: list[str]) -> Module:
    """The module that defines the target of a path, through imports and re-exports."""
    while names:
        folder = source.joinpath(*found)
        if (folder / f"{names[0]}.rs").is_file():
            return (*found, names[0])
        if (folder / names[0]).is_dir():
            found, names = (*found, names[0]), names[1:]
            continue
        face = folder / ("mod.rs" if found else "lib.rs")
        # A module without a file is part of the file around it.
        text = code(face) if face.is_file() else ""
        trees = re.findall(r"^(?:pub(?:\([\w: ]+\))? )?use ([^;]*);", text, re.MULTILINE)
        paths = [path.partition(" as ") for tree in trees for path in branches(tree)]
        targets = [path for path, _, alias in paths if (alias or path.rpartition("::")[2]) == names[0]]
        target = targets[0].split("::") if targets else names
        if target == names:
            break
        found, names = inside(found, target)
    return found


def imports(source: Path, here: Module, text: str) -> Iterator[Module]:
    """The modules that a module uses, without those around and inside it."""
    for tree in re.findall(r"\b((?:crate|super|self)::(?:\w+::)*(?:\w+|\{[^;]*?\}(?=;)|\*))", text):
        for path in branches(tree):
            start, names = inside(here, path.partition(" as ")[0].split("::"))
            there = home(source, start, [name for name in names if name not in ("*", "self")])
            if there != here[: len(there)] and here != there[: len(here)]:
                yield there


def circle(crate: str) -> list[str]:
    """A circle of modules of a crate, if there is one."""
    source = ROOT / "crates" / crate / "src"
    graph: dict[str, set[str]] = {}
    for path in sorted(source.rglob("*.rs")):
        names = path.relative_to(source).with_suffix("").parts
        if names[-1] != "tests" and names[0] != "bin":
            here = names[:-1] if names[-1] in ("mod", "lib") else names
            graph["/".join(here)] = {"/".join(there) for there in imports(source, here, code(path))}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


@pytest.mark.parametrize("crate", CRATES)
def test_modules_import_one_another_in_one_direction(crate: str) -> None:
    assert circle(crate) == []


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("use super::shard::Shard;", [("shard",)]),
        ("use crate::{Sim, queue::{Key, wheel::Wheel}};", [("sim",), ("queue",), ("queue", "wheel")]),
        ("fn f(x: crate::World<u8>) {}", [("world",)]),
        ("use super::*;", []),
    ],
)
def test_imports_are_found_through_re_exports(text: str, found: list[Module]) -> None:
    assert list(imports(ROOT / "crates/kernel/src", ("wire",), text)) == found


def order(face: Path) -> list[str]:
    """The files of a folder in the order of the table of its `lib.rs` or `mod.rs`, which names all."""
    rows = re.findall(r"^//! \| (`.*`) \| ", face.read_text(encoding="utf-8"), re.MULTILINE)
    names = [name for row in rows for name in re.findall(r"`(\w+)`", row)]
    assert sorted(names) == sorted({path.stem for path in face.parent.iterdir()} - {face.stem})
    return names


@pytest.mark.parametrize("face", ["line-rate/src/lib.rs", "portals/src/calls/mod.rs", "portals/src/state/mod.rs"])
def test_files_import_those_before_them_in_their_table(face: str) -> None:
    crate, _, *inner = Path(face).parent.parts
    source, folder = ROOT / "crates" / crate / "src", (ROOT / "crates" / face).parent
    names, outer = order(ROOT / "crates" / face), tuple(inner)
    for at, name in enumerate(names):
        paths = [folder / f"{name}.rs", *(folder / name).glob("*.rs")]
        found = (there for path in paths if path.is_file() for there in imports(source, (*outer, name), code(path)))
        used = {there[len(outer)] for there in found if there[: len(outer)] == outer and len(there) > len(outer)}
        assert used <= set(names[:at]), name


def test_methods_of_a_portals_interface_call_those_of_files_before_them() -> None:
    """The files that add methods to one type need no imports for calls of one another."""
    folder = ROOT / "crates/portals/src/calls"
    names = order(folder / "mod.rs")
    texts = [code(folder / f"{name}.rs").partition("\nimpl Interface {\n")[2].partition("\n}\n")[0] for name in names]
    defined = [
        set(re.findall(r"^    (?:pub(?:\(crate\))? )?(?:const )?fn (\w+)", text, re.MULTILINE)) for text in texts
    ]
    assert all(defined)
    for at, text in enumerate(texts):
        called = set(re.findall(r"\bself\s*\.\s*(\w+)\(", text))
        assert called & set().union(*defined[at + 1 :]) == set(), names[at]
