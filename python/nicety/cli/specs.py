"""`nicety specs`."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence

from nicety import _native
from nicety.cli.output import print_json
from nicety.tables import align


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
    rows = [["# key", "value", "kind", "source"]]
    for parameter in spec["parameters"]:
        value = " ".join(str(part) for part in (parameter["value"], parameter["unit"]) if part not in (None, ""))
        source = parameter["source"] or ""
        if parameter["note"]:
            source = f"{source} ({parameter['note']})" if source else parameter["note"]
        rows.append([parameter["key"], value, parameter["kind"], source])
    heading = [f"# {spec['name']}: {spec['title']}", f"# {spec['source']}", f"# hash {spec['hash']}", ""]
    sys.stdout.write("\n".join([*heading, *align(rows)]) + "\n")


def check_spec(file: str) -> None:
    """Check a spec file, and say so where nothing is wrong with it."""
    _native.spec_check(file)
    sys.stdout.write(f"{file}: ok\n")
