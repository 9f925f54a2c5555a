"""Rooms import earlier ones only: those of the Python package in the order that ARCHITECTURE.md gives, and those of the
cards in the order at the top of their `mod.rs`."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "python/nicety"
MOST = 14
"""Most files and folders that a room shows."""


def rooms() -> dict[str, list[str]]:
    """The modules of each folder of the package, in the order of the tables of ARCHITECTURE.md."""
    text = (ROOT / "ARCHITECTURE.md").read_text()
    text = text.partition("\n## The rooms of the Python package\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| `python/(nicety[\w/]*)` \| (.*) \|$", text, re.MULTILINE)
    return {folder.replace("/", "."): re.findall(r"`(\w+)`", shown.rpartition("|")[2]) for folder, shown in rows}


ORDER = rooms()


def place(module: str) -> tuple[int, ...]:
    """Where a module stands in the order: before everything whose place is greater; a package after what is in it."""
    parts = module.split(".")
    places = [ORDER[".".join(parts[:at])].index(parts[at]) for at in range(1, len(parts))]
    return (*places, len(ORDER[module])) if module in ORDER else tuple(places)


def module_of(path: Path) -> str:
    return ".".join(["nicety", *path.relative_to(PACKAGE).with_suffix("").parts]).removesuffix(".__init__")


MODULES = {module_of(path): path for path in sorted(PACKAGE.rglob("*.py"))} | {
    "nicety._native": PACKAGE / "_native.pyi"
}


def imported(tree: ast.AST) -> Iterator[str]:
    """The modules of the package that a module imports, wherever in it, type checkers' imports included."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.partition(".")[0] == "nicety":
            for name in node.names:
                inner = f"{node.module}.{name.name}"
                yield inner if inner in MODULES else node.module
        elif isinstance(node, ast.Import):
            yield from (name.name for name in node.names if name.name.partition(".")[0] == "nicety")


def against(module: str, source: str) -> list[str]:
    """The imports of a module that run against the order."""
    found = dict.fromkeys(imported(ast.parse(source)))
    return [f"{module} imports {other}" for other in found if other == "nicety" or place(other) >= place(module)]


def test_the_order_names_every_room_and_file() -> None:
    folders: dict[str, set[str]] = {}
    for module in MODULES:
        parent, _, name = module.rpartition(".")
        if parent:
            folders.setdefault(parent, set()).add(name)
    assert {folder: set(shown) for folder, shown in ORDER.items()} == folders
    for folder, shown in ORDER.items():
        assert len(shown) == len(set(shown)) <= MOST, folder


def test_imports_run_from_later_rooms_to_earlier_ones() -> None:
    # The package itself is its face: it loads each public name from where it is.
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


CARDS = ROOT / "crates/nic/src"


def card_order(card: str, room: str = "") -> list[str]:
    """The modules of a card, or of one of its rooms, in the order of the table at the top of its `mod.rs`."""
    path = CARDS / card / room / "mod.rs"
    rows = re.findall(r"^//! \| (.*) \|$", path.read_text(), re.MULTILINE) if path.is_file() else []
    cells = (re.findall(r"(?:^|\| )((?:`\w+(?:\.rs)?`(?:, )?)+)(?=$| \|)", row) for row in rows)
    return [name for cell in cells for found in cell for name in re.findall(r"`(\w+)", found)]


def card_against(card: str, path: Path, source: str) -> list[str]:
    """The imports of a file of a card that run against the order; what the card re-exports counts for its room."""
    root = (CARDS / card / "mod.rs").read_text()
    exports = re.findall(r"^pub(?:\(crate\))? use ([\w:]+)::(\w+|\{[^}]*\});", root, re.MULTILINE)
    home = {name: room for room, names in exports for name in re.findall(r"\w+", names)}
    here = path.relative_to(CARDS / card).with_suffix("").parts
    wrong = []
    for name in re.findall(rf"\bcrate::{card}::(\{{[^}}]*\}}|[\w:]*\w)", source):
        found = [home.get(each, "") for each in re.findall(r"\w+", name)] if not name[0].islower() else [name]
        for other in filter(None, found):
            there = tuple(other.split("::"))
            level = int(there[0] == here[0])
            order = card_order(card, here[0] if level else "")
            if level < min(len(here), len(there)) and here[level] in order and there[level] in order:
                later = order.index(there[level]) > order.index(here[level])
                wrong += [f"{'/'.join(here)} imports {other}"] if later else []
    return wrong


@pytest.mark.parametrize(("card", "rooms"), [("spin", ["", "handlers", "programs"]), ("qnix", [""]), ("nfp", ["card"])])
def test_the_rooms_of_a_card_are_those_of_its_tables(card: str, rooms: list[str]) -> None:
    for room in rooms:
        shown = {path.stem for path in (CARDS / card / room).iterdir()} - {"mod"}
        assert set(card_order(card, room)) == shown
        assert len(shown) <= MOST


@pytest.mark.parametrize(("card", "room"), [("spin", ""), ("qnix", ""), ("nfp", "card")])
def test_imports_of_a_card_run_from_later_rooms_to_earlier_ones(card: str, room: str) -> None:
    folder = CARDS / card / room
    files = [path for path in sorted(folder.rglob("*.rs")) if path != folder / "mod.rs"]
    sources = {path: path.read_text() for path in files}
    assert [wrong for path, source in sources.items() for wrong in card_against(card, path, source)] == []
    # `super` would hide a room.
    assert [
        path.name for path, source in sources.items() if re.search(r"^use super::\{?[a-z]", source, re.MULTILINE)
    ] == []


@pytest.mark.parametrize(
    ("card", "file", "source", "count"),
    [
        ("spin", "receive/intake.rs", "use crate::spin::complete::finish;", 1),
        ("spin", "receive/intake.rs", "use crate::spin::{Card, CallError};", 1),
        ("spin", "receive/intake.rs", "let x = crate::spin::incoming::outcome(fail);", 0),
        ("spin", "handlers/codes.rs", "use crate::spin::handlers::run::{Slice, stopped};", 1),
        ("spin", "handlers/run.rs", "use crate::spin::handlers::codes::code;", 0),
        ("spin", "complete.rs", "use crate::spin::host::view::Seen;", 1),
        ("nfp", "card/calls.rs", "use crate::nfp::card::driver::Ended;", 1),
        ("nfp", "card/calls.rs", "use crate::nfp::{Nfp, card::record::Taken};", 0),
        ("qnix", "transmit.rs", "use crate::qnix::receive::Slot;", 1),
        ("qnix", "transmit.rs", "use crate::qnix::{Card, Process};", 1),
        ("qnix", "transmit.rs", "use crate::qnix::{Card, Completed};", 0),
    ],
)
def test_an_import_of_a_card_against_the_order_is_found(card: str, file: str, source: str, count: int) -> None:
    assert len(card_against(card, CARDS / card / file, source)) == count
