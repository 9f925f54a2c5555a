"""No command overwrites a file that it reads."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from nicety.cli.app import everything
from nicety.shared.overwrites import _WRITTEN

Command = Callable[..., Any]
HANDLERS = "#include <nicety.h>\n__handler int payload_handler(const ptl_payload_t p, void *s) { return DROP; }\n"
WRITES = ("Write", "Draw", "Keep", "Where to write", "The file to write")


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (
            "bench handlers a.c --nic spin-discrete --csv a.c",
            "--csv a.c: {}FILE.c|FILE.o; name another file, as in new.csv",
        ),
        ("bench handlers a.c --nic spin-discrete --trace link.c", "--trace link.c: {}FILE.c|FILE.o"),
        ("bench handlers a.c --nic spin-discrete --arrow hard.c", "--arrow hard.c: {}FILE.c|FILE.o"),
        ("bench handlers a.c --nic spin-discrete --user-header @t.bin --csv t.bin", "--csv t.bin: {}--user-header"),
        ("bench handlers a.c --nic ./card.toml --csv card.toml", "--csv card.toml: {}--nic"),
        (
            "bench handlers a.c --nic spin-100g --traffic capture=in.pcapng --capture in.pcapng",
            "--capture in.pcapng: {}--traffic",
        ),
        (
            "profile a.c --nic spin-discrete --html a.c",
            "--html a.c: {}FILE.c|FILE.o|PROGRAM.py; name another file, as in new.html",
        ),
        ("profile a.c --nic spin-discrete --against link.c --speedscope a.c", "--speedscope a.c: {}"),
        ("debug a.c --nic spin-discrete --elf a.c", "--elf a.c: {}"),
        ("cc a.c -o link.c", "-o link.c: {}FILE.c..."),
        ("xdp run o.o --packet 00 --map m=t.bin --dump m=t.bin", "--dump t.bin: {}--map"),
        ("specs fit --rows t.bin --from card.toml --csv t.bin", "--csv t.bin: {}--rows"),
        ("specs score --rows t.bin --csv t.bin", "--csv t.bin: {}--rows"),
        ("goal convert t.bin t.bin", "t.bin: {}IN"),
        ("exec --csv t.bin -- ./t.bin", "--csv t.bin: {}PROGRAM [ARGS]..."),
    ],
)
def test_an_output_that_is_an_input_is_refused(nicety: Command, tmp_path: Path, words: str, error: str) -> None:
    for name in ("a.c", "card.toml", "in.pcapng", "t.bin", "o.o"):
        (tmp_path / name).write_text(HANDLERS)
    (tmp_path / "link.c").symlink_to("a.c")
    os.link(tmp_path / "a.c", tmp_path / "hard.c")
    done = nicety(*words.split())
    assert (done.status, done.stdout) == (2, ""), done.stderr
    assert done.stderr.startswith(f"nicety: {error.format('this would overwrite an input, that of ')}"), done.stderr
    assert {path.read_text() for path in tmp_path.iterdir()} == {HANDLERS}


def _parameters(command: Any) -> Iterator[Any]:
    for each in getattr(command, "commands", {}).values():
        yield from _parameters(each)
    yield from command.params


def test_every_option_with_a_file_to_write_is_known() -> None:
    named = [
        each.opts
        for each in _parameters(typer.main.get_command(everything()))
        if "FILE" in (each.metavar or "") and (getattr(each, "help", None) or "").startswith(WRITES)
    ]
    assert len(named) > 20
    assert [opts for opts in named if not set(opts) & set(_WRITTEN)] == []
