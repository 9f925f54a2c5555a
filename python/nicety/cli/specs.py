"""`nicety specs`."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import Any

from nicety import _native
from nicety.cli.output import print_json
from nicety.show.columns import align


def list_specs(*, as_json: bool) -> None:
    """Print the names of the cards that come with nicety."""
    known = json.loads(_native.specs())
    if as_json:
        print_json(known)
        return
    sys.stdout.write("\n".join(align([[spec["name"], spec["title"]] for spec in known])) + "\n")


def show_spec(name: str, overrides: Sequence[str], *, as_json: bool) -> None:
    """Print every value of a card, with its source and kind."""
    spec = json.loads(_native.spec_show(name, list(overrides)))
    if as_json:
        print_json(spec)
        return
    heading = [f"# {spec['name']}: {spec['title']}"]
    heading += [f"# {what}: {spec[what]}" for what in ("paper", "source") if spec[what]]
    if spec["extends"]:
        heading.append(f"# extends {', '.join(spec['extends'])}")
    rows = [["# key", "value", "kind", "source"]]
    rows += [[p["key"], p["value"], p["kind"], _source(p)] for p in spec["parameters"]]
    sys.stdout.write("\n".join([*heading, f"# hash {spec['hash']}", "", *align(rows)]) + "\n")


def _source(parameter: dict[str, Any]) -> str:
    """Where a value comes from, and all else that is known of it."""
    extra = [
        f"{what} {parameter[key]}" if what else parameter[key]
        for what, key in (("against", "against"), ("instead of", "replaces"), ("", "note"))
        if parameter[key]
    ]
    source: str = parameter["source"]
    return f"{source} ({'; '.join(extra)})" if extra else source


def check_spec(file: str) -> None:
    """Check a spec file, and say so where nothing is wrong with it."""
    _native.spec_check(file)
    sys.stdout.write(f"{file}: ok\n")
