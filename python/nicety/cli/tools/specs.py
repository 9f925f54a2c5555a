"""`nicety specs`: the cards."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

from nicety.cli.options import GROUPS, Json, Overrides, group

specs = group(GROUPS["specs"])


@specs.callback()
def _list(context: typer.Context, as_json: Json = False) -> None:
    if context.invoked_subcommand is not None:
        return
    from nicety import _native
    from nicety.cli.output import print_json, say
    from nicety.show.columns import align

    known = json.loads(_native.specs())
    if as_json:
        print_json(known)
        return
    say("\n".join(align([[spec["name"], spec["title"]] for spec in known])) + "\n")


@specs.command("show")
def _show(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A card's name, or the path of a spec file.")],
    overrides: Overrides = None,
    as_json: Json = False,
) -> None:
    """Print every value of a card with its source and the evidence for it."""
    from nicety import _native
    from nicety.cli.output import print_json, say
    from nicety.shared.text import printable
    from nicety.show.columns import align

    spec = json.loads(_native.spec_show(name, overrides or []))
    if as_json:
        print_json(spec)
        return
    heading = [f"{spec['name']}: {spec['title']}"]
    heading += [f"{what}: {spec[what]}" for what in ("paper", "source") if spec[what]]
    if spec["extends"]:
        heading.append(f"extends {', '.join(spec['extends'])}")
    heading.append(f"hash {spec['hash']}")
    rows = [["# key", "value", "kind", "source"]]
    rows += [[p["key"], p["value"], p["kind"], _source(p)] for p in spec["parameters"]]
    # Each is one line, even if a title has several.
    lines = [f"# {printable(line)}" for line in heading]
    say("\n".join([*lines, "", *align(rows)]) + "\n")


def _source(parameter: dict[str, Any]) -> str:
    """The source of a value, and all other known facts about it."""
    extra = [
        f"{what} {parameter[key]}" if what else parameter[key]
        for what, key in (("against", "against"), ("instead of", "replaces"), ("", "note"))
        if parameter[key]
    ]
    source: str = parameter["source"]
    return f"{source} ({'; '.join(extra)})" if extra else source


@specs.command("check")
def _check(
    file: Annotated[str, typer.Argument(metavar="FILE", help="The path of a spec file.")],
) -> None:
    """Check a spec file, and report the place and the correction of each error."""
    from nicety import _native
    from nicety.cli.output import say

    _native.spec_check(file)
    say(f"{file}: ok\n")
