"""Reads and writes files of measured works, and compares two of them.

`python crates/py-ext/benches/results.py OLD NEW` prints the times of both files and their ratios. A name without a
slash is a commit's file in target/bench. `rows.py` and `growth.py` write such files.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from nicety.show.columns import align, fixed

ROOT = Path(__file__).parents[3]
SCALES = [(1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns")]


@dataclass(frozen=True)
class Result:
    """CPU and real seconds that a program takes for a unit of a work."""

    work: str
    unit: str
    program: str
    cpu_s: float
    wall_s: float

    @property
    def key(self) -> tuple[str, str, str]:
        """The key of the result's row in a comparison."""
        return self.work, self.unit, self.program


def text(seconds: float) -> str:
    """Return a time in seconds as text, in a suitable unit."""
    scale, name = next((each for each in SCALES if abs(seconds) >= each[0]), SCALES[-1])
    return f"{fixed(seconds / scale, 3)} {name}"


def machine() -> str:
    """Return a description of this machine."""
    return f"{os.cpu_count()} CPUs, {platform.machine()}, {platform.system()} {platform.release()}"


def commit() -> str:
    """Return the commit of the checkout, followed by `-changed` if files differ from it."""
    git = shutil.which("git")
    if git is None:
        return "unknown"
    words = [git, "describe", "--always", "--abbrev=12", "--exclude=*", "--dirty=-changed"]
    return subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False).stdout.strip() or "unknown"


def write(
    file: Path | None, rows: Sequence[Result], probes: Sequence[dict[str, float]], notes: Sequence[str] = ()
) -> Path:
    """Write results with the commit, the machine and its state; by default into target/bench. Return the path."""
    named = file or ROOT / "target" / "bench" / f"{commit()}.json"
    named.parent.mkdir(parents=True, exist_ok=True)
    content = {"commit": commit(), "machine": machine(), "probes": list(probes), "notes": list(notes)}
    named.write_text(json.dumps(content | {"rows": [asdict(row) for row in rows]}, indent=1) + "\n")
    return named


def read(name: str) -> tuple[str, list[Result]]:
    """Return the commit and the rows of a file.

    Raises:
        SystemExit: there is no such file, or it has no results.
    """
    file = Path(name)
    if not file.exists() and "/" not in name:
        found = sorted((ROOT / "target" / "bench").glob(f"{name}*.json"))
        if len(found) != 1:
            here = ", ".join(each.stem for each in found) or "none"
            raise SystemExit(f"{name}: no file, and commits of target/bench with this name: {here}")
        (file,) = found
    try:
        content = json.loads(file.read_text())
        rows = [Result(**row) for row in content["rows"]]
        _ = [row.cpu_s + row.wall_s for row in rows]
        return str(content["commit"]), rows
    except OSError as error:
        raise SystemExit(
            f"{name}: cannot read it ({error.strerror}); rows.py and growth.py write such files"
        ) from error
    except (ValueError, TypeError, KeyError) as error:
        raise SystemExit(f"{name}: no file of results; rows.py and growth.py write such files") from error


def compared(old: tuple[str, list[Result]], new: tuple[str, list[Result]]) -> list[str]:
    """Return the lines of a table. Each has a row of both files, and the new time divided by the old one."""
    files = [{row.key: row for row in rows} for _, rows in (old, new)]
    table = [["work", "unit", "program", f"CPU, {old[0]}", f"CPU, {new[0]}", "new / old", "real new / old"]]
    for key in dict.fromkeys([*files[0], *files[1]]):
        before, after = (each.get(key) for each in files)
        ratios = ["-", "-"]
        if before and after and min(before.cpu_s, before.wall_s) > 0:
            ratios = [fixed(after.cpu_s / before.cpu_s, 2), fixed(after.wall_s / before.wall_s, 2)]
        table.append([*key, *(text(each.cpu_s) if each else "-" for each in (before, after)), *ratios])
    return align(table, (3, 4, 5, 6))


def main() -> None:
    """Compare two files."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("old")
    arguments.add_argument("new")
    given = arguments.parse_args()
    print("\n".join(compared(read(given.old), read(given.new))))


if __name__ == "__main__":
    main()
