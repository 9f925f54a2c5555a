"""Checks of public functions' arguments by their annotations. A value of another type is an `InputError`."""

from __future__ import annotations

import functools
import inspect
import operator
import os
import sys
import types
import typing
from collections import abc
from collections.abc import Callable, Sequence
from numbers import Real
from typing import Any, Literal, TypeVar, Union

from nicety.errors import InputError
from nicety.shared.checks import _short
from nicety.shared.options import Argument, arguments_of, texts_of

_C = TypeVar("_C", bound=Callable[..., Any])

_OWN_CHECKS = ("Names", "Numbers", "Overrides", "Expressions", "Faults", "Cards", "Users", "Unpack")
"""Names of annotations that are not checked here: the function checks these arguments itself, with better errors."""

_WORDS: dict[object, str] = {
    str: "a text",
    int: "a whole number",
    float: "a number",
    bool: "True or False",
    bytes: "bytes",
    type(None): "None",
}


def checked(function: _C) -> _C:
    """Make a public function, or a class's `__init__`, raise an error for arguments of other types than annotated.

    The function itself checks what an annotation leaves open, such as the items of an iterator. For a function that
    takes `**given: Unpack[Request]`, the signature and the documentation name the request's arguments.
    """
    wanted: dict[str, object] | None = None
    signature = inspect.signature(function)
    taken = _taken(function, signature)
    if taken:
        signature = _named(signature, taken)
    optional = {each.name for each in taken if not each.required}
    what = function.__qualname__.removesuffix(".__init__")

    @functools.wraps(function)
    def call(*arguments: Any, **named: Any) -> Any:
        nonlocal wanted
        if wanted is None:
            wanted = _wanted(function) | _wanted_of(taken)
        try:
            bound = signature.bind(*arguments, **named)
        except TypeError as error:
            if taken:
                raise TypeError(f"{what}() {error}") from None
            # An argument too many, or an unknown name: Python's own message is right.
            return function(*arguments, **named)
        for name, value in bound.arguments.items():
            if name in wanted and not (value is None and name in optional) and not _is(value, wanted[name]):
                instead = _instead(value, wanted[name])
                raise InputError(f"{what}: {name} is {_described(wanted[name])}, not {_short(value)}{instead}")
        return function(*arguments, **named)

    if taken:
        call.__doc__ = _documented(function.__doc__ or "", taken)
        vars(call)["__signature__"] = signature
    return typing.cast(_C, call)


def _taken(function: Callable[..., Any], signature: inspect.Signature) -> list[Argument]:
    """Return the arguments of the request that a function takes as `**given: Unpack[Request]`."""
    last = [each for each in signature.parameters.values() if each.kind is inspect.Parameter.VAR_KEYWORD]
    texts = {each.name: each.annotation for each in last if str(each.annotation).startswith("Unpack[")}
    found = types.SimpleNamespace(__annotations__=texts)
    hints = typing.get_type_hints(found, vars(sys.modules[function.__module__]))
    return [each for hint in hints.values() for each in arguments_of(typing.get_args(hint)[0]).values()]


def _named(signature: inspect.Signature, taken: Sequence[Argument]) -> inspect.Signature:
    """Return a signature in which the arguments of a request replace `**given`."""
    own = [each for each in signature.parameters.values() if each.kind is not inspect.Parameter.VAR_KEYWORD]
    named = [
        inspect.Parameter(
            each.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=inspect.Parameter.empty if each.required else each.option.default,
            annotation=each.type if each.required else each.type | None,
        )
        for each in taken
    ]
    return signature.replace(parameters=[*own, *named])


def _wanted_of(taken: Sequence[Argument]) -> dict[str, object]:
    given = {each.name: each.required or each.option.default is not None for each in taken}
    return {each.name: each.type if given[each.name] else each.type | None for each in taken if not each.has_own_check}


def _documented(text: str, taken: Sequence[Argument]) -> str:
    """Return a docstring with the descriptions of a request's arguments after those of the function's own."""
    head, raises, end = text.partition("\n    Raises:\n")
    title = "" if "\n    Args:\n" in head else "\n    Args:\n"
    return f"{head.rstrip()}\n{title}{texts_of(taken)}{raises}{end}"


def _instead(value: object, wanted: object) -> str:
    """Return advice on the bytes to write, if the value is a text and bytes were expected."""
    if not (isinstance(value, str) and _is(b"", wanted)):
        return ""
    try:
        bytes.fromhex(value)
    except ValueError:
        return f"; write {_short(value)}.encode()"
    return f"; write bytes.fromhex({_short(value)})"


def _wanted(function: Callable[..., Any]) -> dict[str, object]:
    """Map the name of each checked parameter of a function to its type."""
    several = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    texts = {
        name: parameter.annotation
        for name, parameter in inspect.signature(function).parameters.items()
        if parameter.kind not in several and parameter.annotation is not parameter.empty
        if not any(own in str(parameter.annotation) for own in _OWN_CHECKS)
    }
    # The return type is left out, since it may be imported for type checkers only.
    taken = types.SimpleNamespace(__annotations__=texts)
    return typing.get_type_hints(taken, vars(sys.modules[function.__module__]))


def _is(value: object, wanted: object) -> bool:
    """Return whether a value is of a type. Items of an iterator and unknown types are not checked."""
    if wanted in _PLAIN:
        return _PLAIN[wanted](value)
    origin, inner = typing.get_origin(wanted), typing.get_args(wanted)
    if origin is None:
        return not isinstance(wanted, type) or isinstance(value, wanted)
    if origin in (Union, types.UnionType):
        return any(_is(value, each) for each in inner)
    if origin is Literal:
        return isinstance(value, str | int) and value in inner
    return callable(value) if origin is abc.Callable else _is_of(value, origin, inner)


def _is_of(value: object, origin: type, inner: tuple[Any, ...]) -> bool:
    """Return whether a value is a container of the type `origin`, with items of the types `inner`."""
    if issubclass(origin, os.PathLike):
        return isinstance(value, os.PathLike)
    if isinstance(value, str | bytes | bytearray) or not isinstance(value, origin):
        return False
    if isinstance(value, abc.Collection) and not isinstance(value, abc.Mapping) and len(inner) == 1:
        return all(_is(each, inner[0]) for each in value)
    return True


def _is_whole(value: object) -> bool:
    try:
        operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        return False
    return not isinstance(value, bool)


_PLAIN: dict[object, Callable[[Any], bool]] = {
    Any: lambda _: True,
    None: lambda value: value is None,
    type(None): lambda value: value is None,
    int: _is_whole,
    float: lambda value: isinstance(value, Real) and not isinstance(value, bool),
    # numpy's booleans are bool_ or bool.
    bool: lambda value: type(value).__name__ in {"bool", "bool_"},
    bytes: lambda value: isinstance(value, bytes | bytearray | memoryview),
}


def _described(wanted: object) -> str:
    """Return a type in words that continue `NAME is`."""
    origin, inner = typing.get_origin(wanted), typing.get_args(wanted)
    if origin in (Union, types.UnionType):
        return " or ".join(dict.fromkeys(_described(each) for each in inner))
    if origin is Literal:
        return " or ".join(map(repr, inner))
    if origin is abc.Callable:
        return "a function"
    if origin is not None and issubclass(origin, abc.Mapping):
        return "a dict"
    if origin is not None and not issubclass(origin, os.PathLike):
        return f"several, each {_described(inner[0])}" if inner else "several"
    if isinstance(origin or wanted, type) and issubclass(typing.cast(type, origin or wanted), os.PathLike):
        return "a path"
    if isinstance(wanted, type) and wanted not in _WORDS:
        return f"of type {wanted.__name__}"
    return _WORDS.get(wanted, "None" if wanted is None else str(wanted))
