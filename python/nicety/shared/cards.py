"""The cards: their list, the values in which two of them differ, new files, and the schema of files."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypedDict

from nicety import _native
from nicety.errors import InputError
from nicety.shared.checks import Overrides, changes


@dataclass(frozen=True)
class CardInfo:
    """A card that nicety has.

    Attributes:
        name: the name, as `nics` and `--nic` take it.
        title: a description in one line.
        design: the design: `portals`, `nfp`, `qnix`, `apenet` or `ethernet`.
        source: the source of the facts about the card.
        paper: the paper about the card, or None.
        extends: the cards that it extends, nearest first.
    """

    name: str
    title: str
    design: str
    source: str | None
    paper: str | None
    extends: tuple[str, ...]


def cards() -> list[CardInfo]:
    """Return the cards that nicety has, by name. `nicety specs show NAME` prints all values of one."""
    found = [show(each["name"]) for each in json.loads(_native.specs())]
    return [
        CardInfo(
            name=card["name"],
            title=card["title"],
            design=card["design"],
            source=card["source"],
            paper=card["paper"],
            extends=tuple(card["extends"]),
        )
        for card in found
    ]


def card_names() -> list[str]:
    """Return the names of the cards that nicety has."""
    return [each["name"] for each in json.loads(_native.specs())]


def show(name: str, overrides: Sequence[str] = ()) -> dict[str, Any]:
    """Return a card with all its values.

    Args:
        name: the card's name, or the path of its file.
        overrides: changes to the card.

    Raises:
        InputError: there is no such card, or an error in its file.
    """
    found: dict[str, Any] = json.loads(_native.spec_show(name, list(overrides)))
    return found


class Difference(TypedDict):
    """A key with different values on two cards.

    `values` has the values of both, as their files write them; None for a card without the key.
    """

    key: str
    values: list[str | None]
    quantity: str
    doc: str


def differences(one: str, other: str, *, overrides: Overrides = ()) -> list[Difference]:
    """Return the keys in which two cards differ. Values such as 1 us and 1000 ns are equal.

    Args:
        one: a card's name, or the path of its file.
        other: the other card.
        overrides: changes to the other card.

    Raises:
        InputError: there is no such card, or an error in its file.
    """
    both = [show(one), show(other, changes(overrides))]
    values = [{value["key"]: value for value in card["parameters"]} for card in both]
    found: list[Difference] = []
    for key in dict.fromkeys([*values[0], *values[1]]):
        each = [card.get(key) for card in values]
        if len({None if value is None else (value["quantity"], value["exact"]) for value in each}) > 1:
            known = next(value for value in each if value is not None)
            texts = [None if value is None else str(value["value"]) for value in each]
            found.append({"key": key, "values": texts, "quantity": known["quantity"], "doc": known["doc"]})
    return found


_NUMBERS = {"count", "ratio", "flag"}
"""Quantities that a file writes without quotes."""


def written(value: str, quantity: str) -> str:
    """Return a value as a file of a card has it."""
    return value if quantity in _NUMBERS else json.dumps(value, ensure_ascii=False)


def new_text(base: str, name: str) -> str:
    """Return the text of a file for a new card that extends another one. Its values are comments, to be changed.

    Args:
        base: the card to extend: its name, or the path of its file.
        name: the new card's name.

    Raises:
        InputError: there is no such card, or an error in its file.
    """
    card = show(base)
    title = f"{name}, from {card['title']}"
    lines = [
        f"# {name}: a card with the values of {card['name']}, except for the lines that are no comments.",
        "# Remove the `# ` before a key to change its value; give its source as",
        '#     key = { value = ..., kind = "measured", source = "..." }',
        "",
        f"extends = {json.dumps(base, ensure_ascii=False)}",
        f"name = {json.dumps(name, ensure_ascii=False)}",
        f"title = {json.dumps(title, ensure_ascii=False)}",
    ]
    sections: dict[str, list[dict[str, Any]]] = {}
    for value in card["parameters"]:
        sections.setdefault(value["key"].rpartition(".")[0], []).append(value)
    for section, values in sections.items():
        lines += ["", f"[{section}]"]
        for value in values:
            allowed = f" ({value['allowed']})" if value["allowed"] else ""
            doc = " ".join(f"{value['doc']}{allowed}; {value['kind']}: {value['source']}".split())
            key = value["key"].rpartition(".")[2]
            lines += [f"## {doc}", f"# {key} = {written(value['value'], value['quantity'])}"]
    return "\n".join(lines) + "\n"


_VARIANTS: Sequence[tuple[str, Sequence[str]]] = (
    ("spin-discrete", ("link.ports=2",)),
    ("spin-discrete", ("router.latency=1 ns",)),
    ("spin-discrete", ("link.x.latency=1 ns", "link.y.latency=1 ns", "link.z.latency=1 ns")),
    ("spin-discrete", ("link.stuffing=16 B", "link.stuffing_every=256 B")),
    ("spin-discrete", ("bus.kind=pcie",)),
    ("qnix", ("bus.kind=pci",)),
)
"""Cards with parts that no card of nicety has. Their keys are in the schema, too."""

_SCALARS: Mapping[str, Mapping[str, Any]] = {
    "count": {"type": ["integer", "string"]},
    "ratio": {"type": ["number", "string"]},
    "flag": {"type": "boolean"},
}
_UNITS = {
    "time": "a time such as 250 ns",
    "gap": "a time a byte such as 15.6 ps/B, or a bandwidth such as 400 Gb/s",
    "rate": "a rate such as 10 Gb/s",
    "frequency": "a frequency such as 2.5 GHz",
    "size": "a size such as 4096 B or 8 MiB",
    "count": "a whole number",
    "ratio": "a number without a unit",
}
_MEASURED = re.compile(r"^\s*[0-9.]+(e-?[0-9]+)?\s*[^0-9\s].*$")
_HEAD = {
    "name": "The card's name, by which reports call it.",
    "title": "The card in one line.",
    "design": "The design: the interface and the course of a packet.",
    "extends": "The card with the values that this one takes: its name, or the path of its file.",
    "paper": "The paper about the card.",
    "source": "The source of the facts about the card.",
}


def schema() -> dict[str, Any]:
    """Return the JSON schema of a card's file, for editors with taplo such as VS Code with Even Better TOML.

    It has the keys of all cards that nicety has, with their meanings and allowed values. A key may depend on the design
    and on other values, so `nicety specs check` finds more errors.
    """
    known: dict[str, list[tuple[str, Mapping[str, Any]]]] = {}
    designs: list[str] = []
    for name, overrides in [*((name, ()) for name in card_names()), *_VARIANTS]:
        card = show(name, overrides)
        designs.append(card["design"])
        for value in card["parameters"]:
            known.setdefault(value["key"], []).append((card["design"], value))
    root: dict[str, Any] = {name: {"type": "string", "description": text} for name, text in _HEAD.items()}
    root["design"]["enum"] = sorted(set(designs))
    for key, uses in known.items():
        *path, last = key.split(".")
        section = root
        for part in path:
            section = section.setdefault(part, {"type": "object", "properties": {}})["properties"]
        section[last] = _key(uses)
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "A card of nicety",
        "type": "object",
        "required": ["name", "title"],
        "properties": root,
        "definitions": dict(_FACTS),
    }


_FACTS: Mapping[str, Any] = {
    "kind": {"enum": ["measured", "documented", "calibrated", "assumed"], "description": "The evidence for the value."},
    "source": {"type": "string", "description": "The source of the value, or the reason for an assumed one."},
    "note": {"type": "string", "description": "A remark."},
    "against": {"type": "string", "description": "For a calibrated value, the figure to which it was fitted."},
}


def _key(uses: Sequence[tuple[str, Mapping[str, Any]]]) -> dict[str, Any]:
    """Return the schema of a key: a value, or a table with the value and its evidence."""
    values = [value for _, value in uses]
    texts = dict.fromkeys(_described(value) for value in values)
    forms = _distinct(_value(value) for value in values)
    form = forms[0] if len(forms) == 1 else {"anyOf": forms}
    whole = {
        "type": "object",
        "required": ["value"],
        "properties": {"value": form, **{name: {"$ref": f"#/definitions/{name}"} for name in _FACTS}},
        "additionalProperties": False,
    }
    return {"description": "\n".join(texts), "anyOf": [*forms, whole]}


def _distinct(forms: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for form in forms:
        if form not in found:
            found.append(form)
    return found


def _described(value: Mapping[str, Any]) -> str:
    unit = _UNITS.get(value["quantity"])
    facts = "; ".join(part for part in (unit, value["allowed"]) if part)
    return f"{value['doc']} ({facts})" if facts else str(value["doc"])


def _value(value: Mapping[str, Any]) -> dict[str, Any]:
    quantity, allowed = value["quantity"], value["allowed"]
    if quantity == "choice" and allowed:
        return {"enum": re.split(r", | or ", allowed)}
    if quantity == "count" and allowed and (bounds := re.fullmatch(r"from (\d+) to (\d+)", allowed)):
        return {"type": ["integer", "string"], "minimum": int(bounds[1]), "maximum": int(bounds[2])}
    if quantity in _SCALARS:
        return dict(_SCALARS[quantity])
    return {"type": "string"} if quantity == "text" else {"type": "string", "pattern": _MEASURED.pattern}


def write_new(base: str, file: Path) -> None:
    """Write the file of a new card that extends another one; see `new_text`.

    Raises:
        InputError: there is no such card, the file exists, has another extension, or cannot be written.
    """
    own = base
    if base.endswith(".toml") and not Path(base).is_absolute():
        # A file names the file that it extends from its own folder.
        own = str(Path(base).absolute())
    check_new(file)
    new_file(file, new_text(own, file.stem))


def check_new(file: Path) -> None:
    """Check the name of a new card's file.

    Raises:
        InputError: the file exists, or has another extension.
    """
    if file.suffix != ".toml":
        raise InputError(f"{file}: a card's file ends with .toml; write {file.stem or 'mine'}.toml")
    if file.exists():
        raise InputError(f"{file}: it is there already; name another file")


def new_file(file: Path, text: str) -> None:
    """Write a new card's file.

    Raises:
        InputError: the file exists, or cannot be written.
    """
    try:
        with file.open("x", encoding="utf-8") as out:
            out.write(text)
    except FileExistsError as error:
        raise InputError(f"{file}: it is there already; name another file") from error
    except OSError as error:
        raise InputError(f"{file}: cannot write it ({error.strerror})") from error
