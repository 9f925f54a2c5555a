"""Measured CPU times of commands, in files that can be compared.

`python crates/py-ext/benches/results.py OLD NEW` prints the times of two files, and their ratios.
`growth.py --json FILE` writes such a file.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import time
from dataclasses import asdict, dataclass
from pathlib import Path

ROOT = Path(__file__).parents[3]


@dataclass(frozen=True)
class Measured:
    """A work's name and count, and the median of its CPU time in seconds."""

    name: str
    count: int
    cpu_s: float


def commit() -> str:
    """The commit of the working tree, with a `+` if files differ from it; empty outside a repository."""
    words = ["git", "-C", str(ROOT), "describe", "--always", "--dirty=+", "--exclude=*"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    return done.stdout.strip()


def probe() -> float:
    """CPU seconds of a fixed computation: the state of the machine."""
    begun, state = time.process_time(), 1
    for _ in range(2_000_000):
        state = state * 48271 % 2147483647
    return time.process_time() - begun


def cpu_s(command: str, folder: Path) -> float:
    """CPU seconds of a line of the shell with its processes.

    Raises:
        SystemExit: it failed.
    """
    environment = os.environ | {"NICETY_NEWS": "0"}
    words = ["/bin/sh", "-c", command]
    with subprocess.Popen(words, cwd=folder, env=environment, stdout=subprocess.DEVNULL) as running:
        _, status, used = os.wait4(running.pid, 0)
        running.returncode = os.waitstatus_to_exitcode(status)
    if running.returncode:
        raise SystemExit(f"status {running.returncode}: {command}")
    return used.ru_utime + used.ru_stime


def write(file: Path, rows: list[Measured], probes: list[float]) -> None:
    """Write a file of results: the commit, the machine, the probe before and after, and the rows."""
    content = {
        "commit": commit(),
        "machine": f"{platform.machine()}, {os.cpu_count()} CPUs, Python {platform.python_version()}",
        "probe_s": probes,
        "rows": [asdict(row) for row in rows],
    }
    file.write_text(json.dumps(content, indent=1) + "\n")


def compared(old: dict[str, object], new: dict[str, object]) -> list[str]:
    """The lines of a table: each row of both files, and the new time over the old one."""
    before, after = ({(row["name"], row["count"]): row["cpu_s"] for row in each["rows"]} for each in (old, new))
    lines = [f"{'work':16} {'count':>9} {'old, s':>9} {'new, s':>9} {'new/old':>8}"]
    for name, count in sorted({*before, *after}):
        times = [each.get((name, count)) for each in (before, after)]
        shown = [f"{each:9.3f}" if each is not None else f"{'-':>9}" for each in times]
        ratio = f"{times[1] / times[0]:8.2f}" if None not in times and times[0] else f"{'-':>8}"
        lines.append(f"{name:16} {count:>9} {' '.join(shown)} {ratio}")
    return lines


def main() -> None:
    """Compare two files."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("old", type=Path)
    arguments.add_argument("new", type=Path)
    given = arguments.parse_args()
    files = []
    for file in (given.old, given.new):
        try:
            content = json.loads(file.read_text())
            print(f"{file}: commit {content['commit']}, {content['machine']}, probes {content['probe_s']}")
            compared(content, content)
        except OSError as error:
            raise SystemExit(f"{file}: cannot read it ({error.strerror}); write it by growth.py --json") from error
        except (ValueError, TypeError, KeyError) as error:
            raise SystemExit(f"{file}: no file of results; write one by growth.py --json") from error
        files.append(content)
    print("\n".join(compared(*files)))


if __name__ == "__main__":
    main()
