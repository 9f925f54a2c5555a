"""Signatures on the pages of the Python API: options of a request instead of `**given`, and no `Annotated`.

griffe reads the package's sources. This extension adds to them the information that the package has when it runs.
"""

from __future__ import annotations

import textwrap
import typing
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import griffe

from nicety.shared import checks
from nicety.shared.options import Argument, arguments_of, texts_of

_ALIASES = ("Names", "Numbers", "Overrides", "Expressions", "Faults", "Place")


class Signatures(griffe.Extension):
    """Changes the functions and classes of a loaded package."""

    def on_package(self, *, pkg: griffe.Module, **_: Any) -> None:
        """Change all functions with options of a request, and all items of requests."""
        for found in _members(pkg):
            if isinstance(found, griffe.Function):
                _expand(found)
            elif isinstance(found, griffe.Attribute):
                _simplify(found)


def _members(parent: griffe.Object) -> Iterator[griffe.Object]:
    for member in parent.members.values():
        if isinstance(member, griffe.Object):
            yield member
            yield from _members(member)


def _expand(function: griffe.Function) -> None:
    """Replace `**given: Unpack[Request]` by the arguments of the request, in the signature and the description."""
    last = list(function.parameters)[-1:]
    if not last or not str(last[0].annotation).startswith("Unpack["):
        return
    module = import_module(function.module.path)
    request = getattr(module, str(last[0].annotation).removeprefix("Unpack[").removesuffix("]"))
    del function.parameters[last[0].name]
    for argument in arguments_of(request).values():
        function.parameters.add(
            griffe.Parameter(
                argument.name,
                annotation=_type(argument),
                kind=griffe.ParameterKind.keyword_only,
                default=None if argument.required else _default(argument),
            )
        )
    # The arguments of a class are described by the class.
    own = textwrap.indent(textwrap.dedent(texts_of(list(arguments_of(request).values()))), "    ")
    for described in (function.docstring, function.parent.docstring if function.parent else None):
        if described is not None:
            lines = described.value.splitlines(keepends=True)
            described.value = "".join(own if line.startswith(f"    {last[0].name}: ") else line for line in lines)


def _type(argument: Argument) -> str:
    of = argument.type
    name = next((each for each in _ALIASES if of == getattr(checks, each)), None)
    if name is None:
        literal = typing.get_origin(of) is typing.Literal
        name = f"Literal[{', '.join(map(repr, typing.get_args(of)))}]" if literal else getattr(of, "__name__", str(of))
    return name if argument.required else f"{name} | None"


def _default(argument: Argument) -> str:
    """The default as the signature has it; the command line's, which may differ by benchmark, if there is no other."""
    option = argument.option
    if option.default is not None or option.usual is None:
        return repr(option.default)
    usual = [option.usual] if isinstance(option.usual, str) else list(dict.fromkeys(option.usual.values()))
    return " or ".join(map(repr, usual))


def _simplify(attribute: griffe.Attribute) -> None:
    """Replace `Annotated[TYPE, Option(...)]` by `TYPE`."""
    annotation = attribute.annotation
    if isinstance(annotation, griffe.ExprSubscript) and str(annotation.left) == "Required":
        annotation = annotation.slice
    if isinstance(annotation, griffe.ExprSubscript) and str(annotation.left) == "Annotated":
        attribute.annotation = typing.cast(griffe.ExprTuple, annotation.slice).elements[0]
