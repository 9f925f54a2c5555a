"""Untrusted JSON of the page: each key is read once, with its type and limits, and no other key is accepted."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from nicety.errors import InputError
from nicety.shared.checks import one_of
from nicety.shared.text import printable

_SHOWN = 60
"""Maximum characters of a refused key in a message."""


class Refused(InputError):
    """A request of the page that is invalid, with the key that is wrong."""

    def __init__(self, key: str, text: str) -> None:
        super().__init__(f"{key}: {text}" if key else text)
        self.key = key


def document(text: str | bytes) -> Any:
    """Return the value of a JSON text.

    Raises:
        Refused: the text is no JSON.
    """
    try:
        return json.loads(text, parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        raise Refused("", f"no JSON document ({str(error) or type(error).__name__})") from None


def _no_number(name: str) -> None:
    raise ValueError(f"{name} is no number of JSON")


class Fields:
    """A JSON object. `end` refuses the keys that were not read."""

    def __init__(self, value: object, where: str = "") -> None:
        if not isinstance(value, dict):
            raise Refused(where, "is an object such as {...}")
        self._left: dict[str, Any] = dict(value)
        self._where = where

    def place(self, key: str) -> str:
        """Return the place of a key, such as `input.nics`."""
        return f"{self._where}.{key}" if self._where else key

    def end(self) -> None:
        """Refuse the keys that were not read."""
        for key in self._left:
            raise Refused(self.place(printable(key[:_SHOWN])), "no such key; leave it out")

    def has(self, key: str) -> bool:
        """Return whether a key is there and not null."""
        return self._left.get(key) is not None

    def _take(self, key: str) -> Any:
        if key not in self._left:
            raise Refused(self.place(key), "it is missing")
        return self._left.pop(key)

    def peek(self, key: str) -> Any:
        """Return the value of a key without reading it; None if it is missing."""
        return self._left.get(key)

    def optional(self, key: str) -> bool:
        """Return whether a key has a value. A null is read as if the key were missing."""
        if self.has(key):
            return True
        self._left.pop(key, None)
        return False

    def text(self, key: str, most: int, *, least: int = 1) -> str:
        """Read a text of limited length."""
        return _text(self._take(key), self.place(key), most, least)

    def word(self, key: str, words: Sequence[str]) -> str:
        """Read one of some words."""
        value = self._take(key)
        if not isinstance(value, str) or value not in words:
            raise Refused(self.place(key), f"write {one_of(list(words))}")
        return value

    def whole(self, key: str, least: int, most: int) -> int:
        """Read a whole number."""
        return _whole(self._take(key), self.place(key), least, most)

    def flag(self, key: str) -> bool:
        """Read true or false."""
        value = self._take(key)
        if not isinstance(value, bool):
            raise Refused(self.place(key), "write true or false")
        return value

    def inner(self, key: str) -> Fields:
        """Read an object."""
        return Fields(self._take(key), self.place(key))

    def texts(self, key: str, most: int, *, longest: int, least: int = 0) -> list[str]:
        """Read a list of texts."""
        place = self.place(key)
        values = self._list(key, least, most)
        return [_text(value, f"{place}[{at}]", longest, 1) for at, value in enumerate(values)]

    def numbers(self, key: str, most: int, bounds: tuple[int, int]) -> list[int]:
        """Read a list of whole numbers."""
        place = self.place(key)
        return [_whole(value, f"{place}[{at}]", *bounds) for at, value in enumerate(self._list(key, 1, most))]

    def _list(self, key: str, least: int, most: int) -> list[Any]:
        value = self._take(key)
        if not isinstance(value, list) or not least <= len(value) <= most:
            raise Refused(self.place(key), f"is a list of {least} to {most} values")
        return value


def _text(value: object, place: str, most: int, least: int) -> str:
    if not isinstance(value, str):
        raise Refused(place, "is a text")
    if not least <= len(value) <= most:
        raise Refused(place, f"has {least} to {most} characters, not {len(value)}")
    if "\0" in value:
        raise Refused(place, "has a zero character; remove it")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise Refused(place, "is no text in UTF-8") from None
    return value


def _whole(value: object, place: str, least: int, most: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise Refused(place, "is a whole number")
    if not least <= value <= most:
        raise Refused(place, f"is {least} to {most}")
    return value


def error_body(error: InputError) -> Mapping[str, Any]:
    """Return an error of the user's input for the page."""
    key = {"key": error.key} if isinstance(error, Refused) and error.key else {}
    return {"message": str(error), "kind": "input", **key}
