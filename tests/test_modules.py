"""Modules import only earlier ones. Subpackages of the Python package have the order of ARCHITECTURE.md, modules of the
cards the order at the top of their `lib.rs` and `mod.rs`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "python/nicety"
MOST = 14
"""Maximum number of entries of a subpackage, or of a module of a card, without those that are made of Rust."""
LONGEST = 80
"""Maximum number of lines of a function."""


def modules_in_order() -> dict[str, list[str]]:
    """The modules of each folder of the package, in the order of the tables of ARCHITECTURE.md."""
    text = (ROOT / "ARCHITECTURE.md").read_text()
    text = text.partition("\n## The modules of the Python package\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| `python/(nicety[\w/]*)` \| (.*) \|$", text, re.MULTILINE)
    return {folder.replace("/", "."): re.findall(r"`(\w+)`", shown.rpartition("|")[2]) for folder, shown in rows}


ORDER = modules_in_order()


def place(module: str) -> tuple[int, ...]:
    """The place of a module in the order: before everything with a greater place; a package is after its contents."""
    parts = module.split(".")
    places = [ORDER[".".join(parts[:at])].index(parts[at]) for at in range(1, len(parts))]
    return (*places, len(ORDER[module])) if module in ORDER else tuple(places)


def module_of(path: Path) -> str:
    return ".".join(["nicety", *path.relative_to(PACKAGE).with_suffix("").parts]).removesuffix(".__init__")


MODULES = {module_of(path): path for path in sorted(PACKAGE.rglob("*.py"))} | {
    "nicety._native": PACKAGE / "_native.pyi"
}


def imported(tree: ast.AST) -> Iterator[str]:
    """The modules of the package that a module imports anywhere, type checkers' imports included."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.partition(".")[0] == "nicety":
            for name in node.names:
                inner = f"{node.module}.{name.name}"
                yield inner if inner in MODULES else node.module
        elif isinstance(node, ast.Import):
            yield from (name.name for name in node.names if name.name.partition(".")[0] == "nicety")


def against(module: str, source: str) -> list[str]:
    """The imports of a module that violate the order."""
    found = dict.fromkeys(imported(ast.parse(source)))
    return [f"{module} imports {other}" for other in found if other == "nicety" or place(other) >= place(module)]


def test_the_order_names_every_module() -> None:
    folders: dict[str, set[str]] = {}
    for module in MODULES:
        parent, _, name = module.rpartition(".")
        if parent:
            folders.setdefault(parent, set()).add(name)
    assert {folder: set(shown) for folder, shown in ORDER.items()} == folders
    for folder, shown in ORDER.items():
        assert len(shown) == len(set(shown)), folder
        assert len(set(shown) - {"_native", "_generated"}) <= MOST, folder


def test_modules_import_only_earlier_ones() -> None:
    # The package itself is its face: it loads each public name from its module.
    wrong = [
        each for module, path in MODULES.items() if module != "nicety" for each in against(module, path.read_text())
    ]
    assert wrong == []


@pytest.mark.parametrize(
    "source",
    [
        "from nicety.program.cluster import Cluster",
        "from nicety.program import cluster",
        "import nicety.program.cluster",
        "def later():\n    from nicety.cli.app import app",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from nicety.program.run import Run",
        "import nicety",
        "from nicety import Cluster",
        "from nicety.show.tables import Table",
    ],
)
def test_an_import_against_the_order_is_found(source: str) -> None:
    assert len(against("nicety.show.tables", source)) == 1


def test_an_import_along_the_order_is_none_against_it() -> None:
    assert (
        against("nicety.show.tables", "from nicety import _native\nfrom nicety.shared.files import write_whole") == []
    )


def sources(card: str) -> Path:
    """The sources of a card's crate."""
    return ROOT / f"crates/nic-{card}/src"


def face(module: Path) -> Path:
    """The file of a card, or of one of its modules, that has the table."""
    return module / ("lib.rs" if module.name == "src" else "mod.rs")


def card_order(module: Path) -> list[str]:
    """The modules of a card, or inside one of its modules, in the order of the table at its top."""
    rows = re.findall(r"^//! \| (.*) \|$", face(module).read_text(), re.MULTILINE)
    cells = (re.findall(r"(?:^|\| )((?:`\w+(?:\.rs)?`(?:, )?)+)(?=$| \|)", row) for row in rows)
    return [name for cell in cells for found in cell for name in re.findall(r"`(\w+)", found)]


def card_modules(card: str) -> list[Path]:
    """The card and its modules with a table of their files."""
    modules = [sources(card), *(path.parent for path in sorted(sources(card).rglob("mod.rs")))]
    return [module for module in modules if card_order(module)]


def branches(tree: str) -> list[str]:
    """The paths of a tree of imports: `a::{b, c::d}` is `a::b` and `a::c::d`."""
    head, brace, rest = tree.partition("{")
    if not brace:
        return [tree.strip()]
    parts, depth = [""], 0
    for letter in rest.rpartition("}")[0]:
        depth += {"{": 1, "}": -1}.get(letter, 0)
        if letter == "," and not depth:
            parts.append("")
        else:
            parts[-1] += letter
    return [(head + path).strip() for part in parts if part.strip() for path in branches(part.strip())]


def at_home(card: str, path: str) -> tuple[str, ...]:
    """The module of a card that defines the target of a path, through re-exports; a folder for definitions in its
    `mod.rs`.
    """
    names, found = path.split("::"), list[str]()
    while names:
        folder = sources(card).joinpath(*found)
        if (folder / f"{names[0]}.rs").is_file():
            return (*found, names[0])
        if (folder / names[0]).is_dir():
            found.append(names.pop(0))
            continue
        exports = re.findall(r"^pub(?:\([\w ]+(?:::\w+)*\))? use ([^;]*);", face(folder).read_text(), re.MULTILINE)
        homes = [each for tree in exports for each in branches(tree) if each.rpartition("::")[2] == names[0]]
        if not homes or homes[0].startswith("nicety_"):
            break
        names = homes[0].split("::")
    return tuple(found)


def card_against(card: str, path: Path, source: str) -> list[str]:
    """The imports of a file of a card that violate the order, through re-exports."""
    here = path.relative_to(sources(card)).with_suffix("").parts
    here = here[:-1] if here[-1] == "mod" else here
    code = re.sub(r"//.*", "", source)
    wrong = []
    for tree in re.findall(r"\bcrate::(\w+(?:::\w+)*(?:::\{[^;]*\})?|\{[^;]*\})", code):
        for name in branches(tree):
            there = at_home(card, name)
            level = next((at for at, (one, other) in enumerate(zip(here, there, strict=False)) if one != other), None)
            if level is not None:
                order = card_order(sources(card).joinpath(*here[:level]))
                if here[level] in order and there[level] in order:
                    later = order.index(there[level]) > order.index(here[level])
                    wrong += [f"{'/'.join(here)} imports {name}"] if later else []
    return wrong


ORDERED = ["processors", "spin", "qnix", "nfp", "apenet"]


@pytest.mark.parametrize("card", ORDERED)
def test_the_modules_of_a_card_are_those_of_its_tables(card: str) -> None:
    for module in card_modules(card):
        shown = {path.stem for path in module.iterdir() if path.suffix == ".rs" or path.is_dir()} - {"mod", "lib"}
        assert set(card_order(module)) == shown
        assert len(shown) <= MOST


@pytest.mark.parametrize("card", ORDERED)
def test_modules_of_a_card_import_only_earlier_ones(card: str) -> None:
    root = face(sources(card))
    found = {path: path.read_text() for path in sorted(sources(card).rglob("*.rs")) if path != root}
    assert [wrong for path, source in found.items() for wrong in card_against(card, path, source)] == []
    # `super` would hide a module.
    assert [
        path.name
        for path, source in found.items()
        if re.search(r"^use super::(?:super|\{?[a-z])", source, re.MULTILINE)
    ] == []


@pytest.mark.parametrize(
    ("card", "file", "source", "count"),
    [
        ("spin", "receive/intake.rs", "use crate::complete::finish;", 1),
        ("spin", "receive/intake.rs", "use crate::{Card, CallError};", 1),
        ("spin", "receive/intake.rs", "let x = crate::incoming::outcome(fail);", 0),
        ("processors", "commands/codes.rs", "use crate::run::{Slice, stopped};", 2),
        ("processors", "run/ahead.rs", "use crate::commands::codes::code;", 0),
        ("spin", "complete.rs", "use crate::host::view::ChangeOrigin;", 1),
        ("nfp", "card/calls.rs", "use crate::card::driver::Ended;", 1),
        ("nfp", "spec/mod.rs", "use crate::processor::{Memory, Reference};", 2),
        ("nfp", "spec/port.rs", "use crate::{Card, NfpSpec, card::{Device, Selected}};", 3),
        ("nfp", "processor/engine.rs", "use crate::Nfp;", 1),
        ("nfp", "processor/engine.rs", "use crate::processor::{Nfp, Program, nfp::Trapped};", 2),
        ("nfp", "messenger/envelope.rs", "use crate::messenger::{Arrival, Messenger, WINDOW};", 1),
        ("nfp", "messenger/send.rs", "use crate::messenger::{INLINE, here::Here};", 0),
        ("nfp", "card/calls.rs", "use crate::{Nfp, card::record::Taken};", 0),
        ("qnix", "transmit.rs", "use crate::receive::Slot;", 1),
        ("qnix", "transmit.rs", "use crate::{Card, Process};", 1),
        ("qnix", "transmit.rs", "use crate::{Card, Completed};", 0),
        ("apenet", "transmit/mod.rs", "use crate::receive::incoming::Incoming;", 1),
        ("apenet", "hints.rs", "use crate::{Node, messages::Messenger};", 1),
        ("apenet", "receive/streaming.rs", "use crate::receive::Incoming;", 1),
        ("apenet", "receive/lost.rs", "use crate::{Process, receive::{Getting, refusals::x}};", 1),
    ],
)
def test_an_import_of_a_card_against_the_order_is_found(card: str, file: str, source: str, count: int) -> None:
    assert len(card_against(card, sources(card) / file, source)) == count


def test_functions_fit_a_screen() -> None:
    long = []
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                lines = (node.end_lineno or 0) - node.lineno + 1
                if lines > LONGEST:
                    long.append(f"{path.relative_to(PACKAGE)}: {node.name} has {lines} lines")
    assert long == []
