"""The page of columns has every heading that commands print, with fields that reports have."""

from __future__ import annotations

import contextlib
import importlib
import io
import pkgutil
import re
import runpy
import shlex
import sys
import tomllib
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import nicety
from nicety.bench import line_rate, verdicts
from nicety.program.script import report as script
from nicety.show import columns

ROOT = Path(__file__).parent.parent
FILE = tomllib.loads((ROOT / "docs/reference/columns.toml").read_text())
TABLES: list[dict[str, Any]] = FILE["table"]
RUNS = [(table["command"], run) for table in TABLES for run in table.get("runs", [])]

COUNT = """#include <nicety.h>
__handler int payload_handler(const ptl_payload_t p, void *state) {
    __atomic_fetch_add((uint32_t *)state, 1, __ATOMIC_RELAXED);
    return SUCCESS;
}
"""
WHOLE = COUNT + "__handler int header_handler(const ptl_header_t h, void *state) { return PROCESS_DATA; }\n"
BARE = "int main(void) { return 0; }\n"
SMALL = '#include <xdp.h>\nSEC("xdp") int small(struct xdp_md *context) { return XDP_DROP; }\n'
STUDY = 'run = "bench latency"\n[options]\nmode = "rdma"\nsizes = [8]\n[grid]\nnic = ["spin-discrete"]\n'
PINGPONG = """
from mpi4py import MPI
import numpy
world, ball = MPI.COMM_WORLD, numpy.zeros(8, dtype="b")
world.Barrier()
if world.rank == 0:
    world.Send(ball, 1)
else:
    world.Recv(ball, 0)
"""
TOWNS = "\n".join(f"{town} {town * town % 17} {town * 5 % 13}" for town in range(1, 9))
SQUARE = f"NAME: s\nTYPE: TSP\nDIMENSION: 8\nEDGE_WEIGHT_TYPE: EUC_2D\nNODE_COORD_SECTION\n{TOWNS}\nEOF\n"


def capture() -> bytes:
    """A capture of a frame of IP version 4 in pcap."""
    frame = bytes(12) + b"\x08\x00" + bytes.fromhex("4500002e00000000401100000a0000010a000002") + bytes(26)
    head = bytes.fromhex("d4c3b2a1020004000000000000000000ffff000001000000")
    length = len(frame).to_bytes(4, "little")
    return head + bytes(8) + length + length + frame


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder, with the input of all commands."""
    monkeypatch.chdir(tmp_path)
    readme = (ROOT / "README.md").read_text()
    texts = {
        "hello.py": readme.split('```python title="first.py"\n', 1)[1].split("```", 1)[0],
        "count.c": COUNT,
        "whole.c": WHOLE,
        "bare.c": BARE,
        "small.c": SMALL,
        "small.toml": STUDY,
        "pingpong.py": PINGPONG,
        "square.tsp": SQUARE,
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "small.pcap").write_bytes(capture())
    return tmp_path


@pytest.fixture
def printed(monkeypatch: pytest.MonkeyPatch) -> list[list[list[str]]]:
    """The tables that are printed from now on, as rows of cells."""
    tables: list[list[list[str]]] = []
    original = columns.align

    def align(rows: Sequence[Sequence[str]], *more: Any) -> list[str]:
        tables.append([[cell.removeprefix("# ") for cell in row] for row in rows])
        return original(rows, *more)

    for module in pkgutil.walk_packages(nicety.__path__, "nicety."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    for name, found in list(sys.modules.items()):
        if name.startswith("nicety.") and getattr(found, "align", None) is original:
            monkeypatch.setattr(found, "align", align)
    return tables


def command_line(arguments: str) -> tuple[int, str]:
    """The status of a command, and its errors. The command may replace the streams."""
    from nicety.cli import main

    errors = io.StringIO()
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(errors):
        # The package's own Python, wherever the path leads.
        words = [sys.executable if word == "python" else word for word in shlex.split(arguments)]
        status = main(words)
    return status, errors.getvalue() if status else ""


def names(command: str, kind: str) -> re.Pattern[str]:
    """A pattern of the headings, or of the names of lines, that the page has for a command."""
    found = [cell[0] for table in TABLES if table["command"] == command for cell in table.get(kind, [])]
    return re.compile("|".join(FILE["placeholders"].get(name, re.escape(name)) for name in found) or "(?!)")


def missing(command: str, table: list[list[str]]) -> list[str]:
    """The headings of a printed table, or the names of its lines, that the page lacks."""
    heading, line = names(command, "columns"), names(command, "rows")
    if line.fullmatch(table[0][0]):
        return [row[0] for row in table if not line.fullmatch(row[0])]
    heads = table[:2] if table[0][0] == "" else table[:1]
    return [cell for row in heads for cell in row if cell and not heading.fullmatch(cell)]


@pytest.mark.parametrize(("command", "run"), RUNS, ids=lambda value: value)
def test_every_printed_heading_is_in_the_page(
    command: str, run: str, folder: Path, printed: list[list[list[str]]]
) -> None:
    if run.startswith("exec"):
        pytest.importorskip("mpi4py")
    if "a.goal" in run:
        assert command_line("goal generate recursive-doubling --ranks 4 --size 1Ki -o a.goal") == (0, "")
    if "bare.elf" in run:
        assert command_line("cc bare.c -o bare.elf") == (0, "")
    if "small.o" in run:
        assert command_line("cc --xdp small.c") == (0, "")
    printed.clear()
    assert command_line(run) == (0, "")
    assert printed
    assert {name for table in printed for name in missing(command, table)} == set()


def test_headings_for_some_runs_alone_are_in_the_page() -> None:
    of_handlers = [*line_rate._FIGURES, *line_rate._LOAD_COLUMNS, "Bank", "Host", "Port", *line_rate._TRAFFIC_COLUMNS]
    of_handlers += [*line_rate._HANDLER_COLUMNS, *verdicts.SENSITIVE]
    heading = names("bench handlers", "columns")
    assert [name for name in of_handlers if not heading.fullmatch(name.replace("RATE", "line rate"))] == []
    heading = names("run", "columns")
    assert [name for name in [*script._DISPOSITIONS, *script._LATENCIES] if not heading.fullmatch(name)] == []


def test_every_measuring_command_has_a_section() -> None:
    import typer

    from nicety.cli.app import everything

    group: Any = typer.main.get_command(everything())
    bench: Any = group.commands["bench"]
    here = {word for table in TABLES for word in re.split(r",? ", table["command"])}
    assert set(bench.commands) - here == set()
    assert set(group.commands) - here - {"cc", "check", "debug", "man", "reproduce", "serve", "xdp"} == set()


def test_the_page_has_a_description_and_a_field_of_each_column() -> None:
    page = runpy.run_path(str(ROOT / "docs/generate.py"))["columns"]()
    rows = [
        line.strip().strip("|").split(" | ") for line in page.splitlines() if re.match(r" +\| (?!column|line)", line)
    ]
    assert len(rows) > 200
    assert [row for row in rows if len(row) != 4 or not row[1].strip()] == []
    # Sections of a command are not apart.
    commands = [table["command"] for table in TABLES]
    begun = [after for before, after in pairwise(["", *commands]) if before != after]
    assert len(begun) == len(set(begun))
