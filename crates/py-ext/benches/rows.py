"""Measures the CPU and real time of a unit of each work, for nicety, other simulators and another build, in one run.

`python crates/py-ext/benches/rows.py [WORK...]`; without WORK, all works except the slow ones. `--before PYTHON` names
the interpreter of another checkout's environment. Runs of the programs alternate, and the figures are medians. They are
saved in `target/bench/COMMIT.json`; results.py compares two such files.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import peers
from builds import torus
from measure import Failed, Side, alternate, probe, progress
from results import Result, machine, text, write
from works import WORKS

from nicety.show.columns import align, fixed


@dataclass(frozen=True)
class Row:
    """The figures of the programs that do a work, and the reasons why other programs cannot run here."""

    name: str
    sides: list[Side]
    figures: list[tuple[float, float]]
    missing: list[str]

    @property
    def results(self) -> list[Result]:
        """The figures of each program."""
        unit = WORKS[self.name].unit
        pairs = zip(self.sides, self.figures, strict=True)
        return [Result(self.name, unit, side.title, cpu, wall) for side, (cpu, wall) in pairs]


def sides_of(name: str, given: argparse.Namespace, names: dict[str, str]) -> tuple[list[Side], list[str]]:
    """Return the programs that do a work, and the reasons why other programs cannot."""
    work = WORKS[name]
    sides, absent = [Side("nicety", work, names)], []
    if given.before and "{python}" in work.command:
        sides.append(Side("before", work, names | {"python": given.before}))
    for each in work.peers:
        peer = peers.PEERS[each]
        reason = peers.missing(peer, given.peers)
        if reason:
            absent.append(f"{name}: no {peer.title}: {reason}")
        else:
            sides.append(Side(peer.title, peers.work_of(peer, given.peers), names))
    return sides, absent


def measure(name: str, given: argparse.Namespace, names: dict[str, str]) -> Row:
    """Measure a work and its peers."""
    sides, absent = sides_of(name, given, names)
    with tempfile.TemporaryDirectory() as folder:
        peers.platform(Path(folder))
        return Row(name, sides, alternate(sides, Path(folder), given.tries), absent)


def lines_of(rows: list[Row]) -> list[str]:
    """Return the lines of the table of all rows."""
    table = [["work", "unit", "program", "CPU", "real", "CPU ratio"]]
    for row in rows:
        for side, (cpu, wall) in zip(row.sides, row.figures, strict=True):
            ratio = "" if side.title == "nicety" else fixed(row.figures[0][0] / cpu, 2) if cpu > 0 else "-"
            first = [row.name, WORKS[row.name].unit] if side.title == "nicety" else ["", ""]
            table.append([*first, side.title, text(cpu), text(wall), ratio])
    return align(table, (3, 4, 5))


def parse() -> argparse.Namespace:
    """The command line."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument(
        "works", nargs="*", metavar="WORK", help=f"of {', '.join(WORKS)}; all but slow ones if left out"
    )
    arguments.add_argument("--slow", action="store_true", help="the slow ones, too")
    arguments.add_argument("--tries", type=int, default=5, help="runs of each program; 5 if left out")
    arguments.add_argument("--before", metavar="PYTHON", help="the interpreter of another build's environment")
    arguments.add_argument(
        "--peers", type=Path, metavar="FOLDER", help="the folder of LogGOPSim, booksim and htsim_ndp"
    )
    arguments.add_argument("--json", type=Path, metavar="FILE", help="target/bench/COMMIT.json if left out")
    given = arguments.parse_args()
    if unknown := [name for name in given.works if name not in WORKS]:
        arguments.error(f"no work is called {', '.join(unknown)}; there are {', '.join(WORKS)}")
    if given.peers and not given.peers.is_dir():
        arguments.error(f"--peers: there is no folder {given.peers}")
    if given.tries < 1:
        arguments.error("--tries is at least 1")
    given.works = given.works or [name for name, work in WORKS.items() if given.slow or not work.slow]
    return given


def main() -> None:
    """Measure, print and save."""
    given = parse()
    names = {"python": sys.executable}
    if any("{torus}" in WORKS[name].command for name in given.works):
        names["torus"] = torus()
    before, rows, failed = probe(), [], []
    for name in given.works:
        with progress(name):
            try:
                rows.append(measure(name, given, names))
            except Failed as error:
                failed.append(f"{name}: {error}")
    states = [before, probe()]
    print("\n".join(lines_of(rows)))
    print(f"# medians of {given.tries}; {machine()}; CPU ratio: nicety's over the program's")
    for when, state in zip(["before", "after"], states, strict=True):
        print(f"# probe {when}: " + ", ".join(f"{name} {fixed(value, 2)}" for name, value in state.items()))
    notes = [reason for row in rows for reason in row.missing] + failed
    print("\n".join(f"# {line}" for line in notes), end="\n" if notes else "")
    print(f"# {write(given.json, [each for row in rows for each in row.results], states, notes)}")
    if failed:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
