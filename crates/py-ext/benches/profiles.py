"""Profiles nicety with call stacks during a named work: the time of each function alone, and with its callees.

`python crates/py-ext/benches/profiles.py WORK`; without WORK it lists the works. It needs perf (Debian's linux-perf).
Samples are taken by the CPU's clock, in all processes of the work, and in the kernel if the system allows it.
Inlined functions count for their callers. The folder target/profiles gets:

- `WORK.data`: for `perf report -i`, `perf annotate -i`;
- `WORK.folded`: one line for each stack with its samples, as flame graphs and speedscope.app read it;
- `WORK.txt`: the tables, with all functions.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from builds import torus
from measure import filled
from works import NICETY, SOURCES, WORKS, Work

ROOT = Path(__file__).parents[3]


def record(work: Work, count: int, hertz: int, data: Path) -> None:
    """Run a work under perf."""
    with tempfile.TemporaryDirectory() as folder:
        names = {"python": sys.executable}
        if "{torus}" in work.command:
            names["torus"] = torus()
        environment = os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}

        def run(text: str, *perf: str) -> None:
            words = [*perf, "/bin/sh", "-c", text]
            subprocess.run(words, cwd=folder, env=environment, stdout=subprocess.DEVNULL, check=True)

        for source, text in SOURCES.items():
            Path(folder, source).write_text(text)
        if work.prepare:
            run(filled(work.prepare, names, count))
        # Rust keeps no frame pointers, so each sample contains a part of the stack.
        options = ["-e", "cpu-clock", "-F", str(hertz), "--call-graph", "dwarf,16384", "-o", str(data)]
        run(filled(work.command, names, count), "perf", "record", "-q", *options, "--")


def frame(line: str) -> str:
    """Return the name of the function in a line of perf script; the library, if the name is unknown."""
    _, _, rest = line.strip().partition(" ")
    name, _, library = rest.rpartition(" (")
    name = re.sub(r"\+0x[0-9a-f]+$", "", name)
    name = re.sub(r"::h[0-9a-f]{16}$", "", name)
    return f"[{Path(library.rstrip(')')).name}]" if name == "[unknown]" else name.replace(";", ":")


def stacks(data: Path) -> Iterator[tuple[str, ...]]:
    """Return the stack of each sample, from the command on."""
    words = ["perf", "script", "-i", str(data), "--no-inline", "-F", "comm,ip,sym,dso"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as running:
        command, frames = "", list[str]()
        for line in chain(running.stdout or (), [""]):
            if not line.strip():
                if command:
                    yield (command, *reversed(frames))
                command, frames = "", []
            elif line[0].isspace() and command:
                frames.append(frame(line))
            else:
                command = line.strip()
    if running.returncode:
        raise SystemExit(f"perf script failed with status {running.returncode}")


def table(title: str, found: Counter[tuple[str, str]], total: int) -> list[str]:
    """Return the lines of a table of functions."""
    lines = [title]
    for (command, name), samples in found.most_common():
        lines.append(f"{100 * samples / total:7.2f} %  {command:16} {name}")
    return lines


def summarise(name: str, data: Path, most: int) -> None:
    """Write the folded stacks and the tables, and print the first lines of the tables."""
    folded, own, all_of = Counter[tuple[str, ...]](), Counter[tuple[str, str]](), Counter[tuple[str, str]]()
    for stack in stacks(data):
        folded[stack] += 1
        own[stack[0], stack[-1]] += 1
        for each in set(stack[1:]):
            all_of[stack[0], each] += 1
    total = folded.total()
    if not total:
        raise SystemExit(f"{name}: no samples; the work is too short")
    lines = (f"{';'.join(stack)} {samples}\n" for stack, samples in sorted(folded.items()))
    data.with_suffix(".folded").write_text("".join(lines))
    tables = [
        table("self     command          function", own, total),
        table("total    command          function, with its callees", all_of, total),
    ]
    data.with_suffix(".txt").write_text("\n".join("\n".join(each) for each in tables) + "\n")
    for rows in tables:
        print("\n".join(rows[: most + 1]), end="\n\n")
    print(f"{total} samples; {data}, and {data.with_suffix('.folded').name}, {data.with_suffix('.txt').name} beside it")


def main() -> None:
    """Profile."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("work", nargs="?", choices=WORKS, help="the works are listed if left out")
    arguments.add_argument("--count", type=int, help="the size of the work")
    arguments.add_argument("--hertz", type=int, default=499, help="samples a second of CPU time; 499 if left out")
    arguments.add_argument("--into", type=Path, default=ROOT / "target" / "profiles", help="the folder of the results")
    arguments.add_argument("--most", type=int, default=30, help="functions of a table that are printed")
    given = arguments.parse_args()
    if given.work is None:
        for name, work in WORKS.items():
            command = filled(work.command.replace(NICETY, "nicety"), {"python": "python", "torus": "torus"}, work.count)
            print(f"{name:20} {command}")
        return
    if shutil.which("perf") is None:
        raise SystemExit("profiles: there is no perf; on Debian: apt install linux-perf")
    given.into.mkdir(parents=True, exist_ok=True)
    data = given.into / f"{given.work}.data"
    work = WORKS[given.work]
    record(work, given.count or work.count, given.hertz, data)
    summarise(given.work, data, given.most)


if __name__ == "__main__":
    main()
