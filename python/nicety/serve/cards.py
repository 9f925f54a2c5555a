"""Cards for the page: all values with their units, allowed values, evidence and sources."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from nicety.errors import InputError
from nicety.serve.fields import Fields, Refused
from nicety.shared.cards import card_names, show
from nicety.shared.checks import one_of

MOST_CARDS = 6
"""Maximum number of cards of a request."""
_MOST_CHANGES = 64
_LONGEST = 200
_UNIT = re.compile(r"[-+]?[0-9][0-9._e+-]*\s*(?P<unit>\D.*)?")
_RANGE = re.compile(r"from (?P<least>\S.*) to (?P<most>\S.*)")
_DESIGNS = ("portals", "ethernet")
"""Designs with handlers on packets."""


class Cards:
    """The cards that pages of one server may use."""

    def __init__(self, opened: Sequence[str]) -> None:
        """Check the cards of the command line.

        Args:
            opened: names, and paths of spec files.

        Raises:
            InputError: there is no such card, an error in its file, or a card without handlers on packets.
        """
        self.opened = list(opened)
        for name in self.opened:
            if not takes_handlers(show(name)):
                known = one_of([each for each in card_names() if takes_handlers(show(each))])
                raise InputError(f"--nic {name}: no handlers run on packets there; name {known}")

    def names(self) -> list[str]:
        """Return the cards that a request may name."""
        return list(dict.fromkeys([*card_names(), *self.opened]))

    def read_names(self, fields: Fields, key: str) -> list[str]:
        """Read names of cards from a request."""
        names = fields.texts(key, MOST_CARDS, longest=4096, least=1)
        for at, name in enumerate(names):
            self._check(name, f"{fields.place(key)}[{at}]")
        if len(set(names)) < len(names):
            raise Refused(fields.place(key), "names a card twice")
        return names

    def _check(self, name: str, place: str) -> None:
        if name not in self.names():
            raise Refused(place, f"there is no card {name[:80]!r}; there are {', '.join(self.names())}")

    def card(self, fields: Fields) -> tuple[str, list[str]]:
        """Read a request for a card's values: its name and changes."""
        name = fields.text("nic", 4096)
        self._check(name, fields.place("nic"))
        changes = read_changes(fields)
        fields.end()
        return name, changes

    def described(self, name: str, changes: Sequence[str]) -> dict[str, Any]:
        """Return a card for the page.

        Raises:
            InputError: a change is invalid.
        """
        found = show(name, changes)
        facts = ("name", "title", "design", "paper", "source", "extends", "hash")
        return {
            "nic": name,
            **{fact: found[fact] for fact in facts},
            "takes_handlers": takes_handlers(found),
            "values": [value_of(each) for each in found["parameters"]],
        }

    def state(self) -> list[dict[str, Any]]:
        """Return the list of all cards for the page."""
        return [
            {
                "name": name,
                "title": found["title"],
                "design": found["design"],
                "takes_handlers": takes_handlers(found),
            }
            for name in self.names()
            for found in [show(name)]
        ]


def read_changes(fields: Fields) -> list[str]:
    """Read changes of cards from a request."""
    return fields.texts("set", _MOST_CHANGES, longest=_LONGEST) if fields.optional("set") else []


def takes_handlers(card: dict[str, Any]) -> bool:
    """Return whether a card runs handlers on packets."""
    return card["design"] in _DESIGNS and any(each["key"].startswith("hpu.") for each in card["parameters"])


def value_of(parameter: dict[str, Any]) -> dict[str, Any]:
    """Return a value of a card for the page."""
    number = _UNIT.fullmatch(parameter["value"])
    shown = ("key", "value", "exact", "quantity", "kind", "source", "doc", "allowed", "note", "against", "replaces")
    return {
        **{name: parameter[name] for name in shown},
        "unit": number["unit"] if number else None,
        **bounds(parameter["quantity"], parameter["allowed"]),
    }


def bounds(quantity: str, allowed: str | None) -> dict[str, Any]:
    """Return the least and the most value, or the choices, from the words for allowed values."""
    found: dict[str, Any] = {"least": None, "most": None, "choices": None}
    if quantity == "flag":
        return found | {"choices": ["true", "false"]}
    if allowed is None:
        return found
    if quantity == "choice":
        return found | {"choices": re.split(r", | or ", allowed)}
    match = _RANGE.fullmatch(allowed)
    return found if match is None else found | match.groupdict()
