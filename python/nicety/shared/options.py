"""Options of requests: keyword arguments of Python functions, and options of the command line made from them.

A request is a TypedDict. An item's annotation has its type, and an `Option` with further properties. The request's
docstring describes each item. A function takes the items as `**given: Unpack[Request]`, under `typed.checked`.
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
from nicety.shared.ranges import parse_ranges

_T = TypeVar("_T")


@dataclass(frozen=True)
class Option:
    """Properties of an argument that its type does not have.

    Attributes:
        default: the argument's default value, if it is always the same.
        least: the minimum of a number.
        most: the maximum of a number.
        usual: the default on the command line, as the user would write it, if it differs from `default`. It is a dict
            by benchmark if benchmarks have different defaults. Without `default`, it is Python's default, too.
        metavar: the placeholder for the value in help texts.
        flag: the option's name on the command line, if it does not follow from the argument's name.
        each: the words for one of several values in messages, if they do not follow from the argument's name.
        example: an example of a value, for messages.
        only: the benchmark that has the argument, if other benchmarks do not have it.
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
    """An argument of a request: its name, type, description, whether it is required, and its further properties."""

    name: str
    type: Any
    text: str
    required: bool
    option: Option

    @property
    def each(self) -> str:
        """The words for one of several values in messages."""
        if self.option.each is not None:
            return self.option.each
        if self.name == "nics":
            return "a card"
        one = self.name.removesuffix("s").replace("_", " ")
        if self.type == Names or one.endswith("size"):
            return f"{'an' if one[0] in 'aeiou' else 'a'} {one}"
        return f"a number of {self.name}"

    def usual(self, benchmark: str) -> str | None:
        """Return the default on the command line, as the user would write it; None without one."""
        usual = self.option.usual
        return usual.get(benchmark) if isinstance(usual, Mapping) else usual

    @property
    def counts_bytes(self) -> bool:
        """Whether the argument's numbers are sizes in bytes."""
        return self.option.metavar in ("SIZE", "BYTES") or self.name.endswith(("sizes", "blocks"))

    @property
    def has_own_check(self) -> bool:
        """Whether `read` checks the type itself, with a more precise error than `typed.checked`."""
        return any(self.type == kind for kind in (Names, Numbers, Overrides, Expressions, Faults))

    def read(self, value: Any) -> Any:
        """Return the value in the form for JSON.

        Raises:
            InputError: the value is invalid.
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
"""Maps the name of an argument that several requests share to its description."""


def shared(request: _T) -> _T:
    """Make the descriptions of a request's arguments available to the requests that inherit from it."""
    _SHARED.update(_texts(request.__doc__ or ""))
    return request


@functools.cache
def arguments_of(request: type) -> Mapping[str, Argument]:
    """Map the name of each argument of a request to the argument."""
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
    """Map the name of each attribute in a docstring to its description."""
    _, _, attributes = docstring.partition("\n    Attributes:\n")
    items = re.findall(r"^ {8}(\w+): (.*(?:\n {12}.*)*)", attributes, re.MULTILINE)
    return {name: " ".join(words.split()) for name, words in items}


def values_of(request: type, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the given arguments of a request in the form for JSON. An argument that is None counts as not given.

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
    """Return a complete request: the given arguments, and the defaults of the others.

    Raises:
        InputError: see `values_of`.
    """
    return {name: each.option.default for name, each in arguments_of(request).items()} | values_of(request, given)


def request_text(request: type, given: Mapping[str, Any], **derived: object) -> str:
    """Return a request as JSON: the given arguments, and `derived`, further items that functions compute.

    Raises:
        InputError: see `values_of`.
    """
    return json.dumps({**derived, **_usual(request, str(derived.get("benchmark"))), **values_of(request, given)})


def _usual(request: type, benchmark: str) -> dict[str, list[int]]:
    """Return the command line's defaults of the arguments that have no other default."""
    found = {}
    for each in arguments_of(request).values():
        if (usual := each.usual(benchmark)) is not None and each.option.default is None and each.type == Numbers:
            found[each.name] = parse_ranges(usual, each.name, "bytes" if each.counts_bytes else "count")
    return found


def texts_of(arguments: Sequence[Argument]) -> str:
    """Return the arguments' descriptions as lines of a docstring."""
    return "".join(f"        {each.name}: {each.text[0].lower()}{each.text[1:]}\n" for each in arguments)
