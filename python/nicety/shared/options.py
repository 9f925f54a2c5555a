"""Options of requests: keyword arguments of Python functions, and options of the command line made from them.

A request is a TypedDict. The annotation of an item has its type, and an `Option` with further facts. The docstring
describes the item. A function takes the items as `**given: Unpack[Request]`, under `typed.checked`.
"""

from __future__ import annotations

import functools
import json
import operator
import re
import types
import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import fspath
from typing import Any, TypeVar, Union

from nicety.shared.checks import (
    U64,
    Expressions,
    Faults,
    Names,
    Numbers,
    Overrides,
    Place,
    changes,
    names,
    numbers,
    text,
    whole,
)

_T = TypeVar("_T")


@dataclass(frozen=True)
class Option:
    """Facts of an argument that its type does not have.

    Attributes:
        default: its default value, if it is always the same.
        least: its minimum.
        most: its maximum.
        usual: the command line's default, in command-line form, if it differs from `default`; by benchmark, if
            benchmarks have different ones.
        metavar: the placeholder of its value in help texts.
        flag: its name on the command line, if it is not the usual one.
        each: the word for one of several in messages, if it is not the usual one.
        example: a value, for messages.
        only: the only benchmark that has the argument, if others do not.
    """

    default: Any = None
    least: int = 0
    most: int = U64
    usual: str | Mapping[str, str] | None = None
    metavar: str | None = None
    flag: str | None = None
    each: str | None = None
    example: str | None = None
    only: str | None = None


@dataclass(frozen=True)
class Argument:
    """An argument of a request: its name, type, documentation, whether it is required, and the rest."""

    name: str
    type: Any
    text: str
    required: bool
    option: Option

    @property
    def each(self) -> str:
        """The name of one of several values, in messages."""
        if self.option.each is not None:
            return self.option.each
        if self.name == "nics":
            return "a card"
        one = self.name.removesuffix("s").replace("_", " ")
        if self.type == Names or one.endswith("size"):
            return f"{'an' if one[0] in 'aeiou' else 'a'} {one}"
        return f"a number of {self.name}"

    @property
    def counts_bytes(self) -> bool:
        """Whether its numbers are of bytes."""
        return self.option.metavar in ("SIZE", "BYTES") or self.name.endswith(("sizes", "blocks"))

    @property
    def has_own_check(self) -> bool:
        """Whether `read` reports a wrong type in more detail than by its name."""
        return any(self.type == kind for kind in (Names, Numbers, Overrides, Expressions, Faults))

    def read(self, value: Any) -> Any:
        """The value as in JSON.

        Raises:
            InputError: it is invalid.
        """
        if self.type == Names:
            default = self.option.default or self.option.example or ""
            return names(value, self.each, default if isinstance(default, str) else default[0])
        if self.type == Expressions:
            return names(value, self.name, "udp size=64")
        if self.type == Numbers:
            return numbers(value, self.each, self.option.most)
        if self.type == Overrides:
            return changes(value)
        if self.type == Faults:
            from nicety.shared.faults import faults_text

            return faults_text(value)
        if self.type == Place:
            return text(fspath(value), self.name, str(self.option.default or "a file's path"))
        if self.type is int:
            return whole(value, self.name, self.option.most, self.option.least)
        return list(bytes(value)) if self.type is bytes else value


_SHARED: dict[str, str] = {}
"""Documentation of arguments that several requests share, by name."""


def shared(request: _T) -> _T:
    """Let requests that inherit from this one take over the descriptions of its arguments, after their own."""
    _SHARED.update(_texts(request.__doc__ or ""))
    return request


@functools.cache
def arguments_of(request: type) -> Mapping[str, Argument]:
    """The arguments of a request, by name."""
    own, hints = _texts(request.__doc__ or ""), typing.get_type_hints(request, include_extras=True)
    texts = own | {name: _SHARED.get(name, "") for name in hints if name not in own}
    return {name: _argument(name, hints[name], text) for name, text in texts.items() if name in hints}


def _argument(name: str, hint: Any, described: str) -> Argument:
    required = typing.get_origin(hint) is typing.Required
    of, option = typing.get_args(typing.get_args(hint)[0] if required else hint)
    if typing.get_origin(of) in (Union, types.UnionType):
        of = functools.reduce(operator.or_, [each for each in typing.get_args(of) if each is not type(None)])
    return Argument(name, of, described, required, option)


def _texts(docstring: str) -> dict[str, str]:
    """The documentation of each attribute in a docstring."""
    _, _, attributes = docstring.partition("\n    Attributes:\n")
    items = re.findall(r"^ {8}(\w+): (.*(?:\n {12}.*)*)", attributes, re.MULTILINE)
    return {name: " ".join(words.split()) for name, words in items}


def values_of(request: type, given: Mapping[str, Any]) -> dict[str, Any]:
    """The given arguments of a request, as in JSON; None counts as not given.

    Raises:
        InputError: a value of another type, or a number out of range.
    """
    arguments = arguments_of(request).values()
    return {
        each.name: each.read(given[each.name])
        for each in arguments
        if each.required or given.get(each.name) is not None
    }


def asked(request: type, given: Mapping[str, Any]) -> dict[str, Any]:
    """A complete request: the given arguments, and defaults for the others.

    Raises:
        InputError: see `values_of`.
    """
    return {name: each.option.default for name, each in arguments_of(request).items()} | values_of(request, given)


def request_text(request: type, given: Mapping[str, Any], **derived: object) -> str:
    """A request as JSON: the given arguments, and those derived from others.

    Raises:
        InputError: see `values_of`.
    """
    return json.dumps({**derived, **values_of(request, given)})


def texts_of(arguments: Sequence[Argument]) -> str:
    """Arguments as lines of a docstring."""
    return "".join(f"        {each.name}: {each.text[0].lower()}{each.text[1:]}\n" for each in arguments)
