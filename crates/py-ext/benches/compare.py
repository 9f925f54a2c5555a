"""The figures of two files of rows.py, and their ratios.

`python crates/py-ext/benches/compare.py OLD NEW`; a name without a slash is a commit's file in target/bench.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from rows import ROOT, text

from nicety.show.columns import align, fixed


def read(name: str) -> dict[str, Any]:
    """Read a file of results."""
    file = Path(name)
    if not file.exists():
        found = sorted((ROOT / "target" / "bench").glob(f"{name}*.json"))
        if len(found) != 1:
            here = ", ".join(each.stem for each in found) or "none"
            raise SystemExit(f"compare: '{name}' is no file, and of target/bench the files are: {here}")
        file = found[0]
    try:
        document = json.loads(file.read_text())
        return {"commit": document["commit"], "figures": figures(document)}
    except (ValueError, KeyError, TypeError) as error:
        raise SystemExit(f"compare: {file} is no file of rows.py: {error}") from None


def figures(document: dict[str, Any]) -> dict[tuple[str, str, str], tuple[float, float]]:
    """CPU and real seconds by work, unit and program."""
    return {
        (row["work"], row["unit"], each["program"]): (each["cpu_s"], each["wall_s"])
        for row in document["rows"]
        for each in row["programs"]
    }


def main() -> None:
    """Print the table."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("old")
    arguments.add_argument("new")
    given = arguments.parse_args()
    old, new = read(given.old), read(given.new)
    table = [
        ["work", "unit", "program", f"CPU, {old['commit']}", f"CPU, {new['commit']}", "new / old", "real new / old"]
    ]
    for key, (cpu, wall) in new["figures"].items():
        earlier = old["figures"].get(key)
        ratios = ["-", "-"]
        if earlier and min(earlier) > 0:
            ratios = [fixed(cpu / earlier[0], 2), fixed(wall / earlier[1], 2)]
        table.append([*key, text(earlier[0]) if earlier else "-", text(cpu), *ratios])
    print("\n".join(align(table, (3, 4, 5, 6))))


if __name__ == "__main__":
    main()
