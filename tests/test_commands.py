"""Aids for users of commands: examples in their help, the manual page, completion, progress, and options of clangd."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
import ziglang

from conftest import Result
from nicety.cli import arguments, progress
from nicety.cli.app import everything
from nicety.cli.tools.examples import EXAMPLES
from nicety.usecases import Accumulate, Broadcast, Datatype, KeyValue, Matching, Storage


def leaves(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    if not hasattr(command, "commands"):
        yield path, command
    for name, inside in getattr(command, "commands", {}).items():
        yield from leaves(inside, (*path, name))


COMMANDS = {" ".join(path): command for path, command in leaves(typer.main.get_command(everything()))}


def test_every_command_has_an_example() -> None:
    assert set(EXAMPLES) == set(COMMANDS)


@pytest.mark.parametrize(("name", "line"), [(name, line) for name, lines in EXAMPLES.items() for line in lines])
def test_an_example_is_understood(name: str, line: str) -> None:
    assert line in COMMANDS[name].epilog
    words = shlex.split(re.split(" [>|] ", line)[0])
    path = name.removeprefix("sweep ").split() if name == "sweep run" else name.split()
    short = ["sweep"] if name == "sweep run" else path
    assert words[: len(short) + 1] == ["nicety", *short]
    COMMANDS[name].make_context(name, words[len(short) + 1 :])


def test_the_help_ends_with_examples(nicety: Callable[..., Result]) -> None:
    shown = nicety("bench", "latency", "--help").stdout
    assert shown.endswith("".join(f"  {line}\n" for line in EXAMPLES["bench latency"]).replace("  n", "    n"))


def test_the_manual_page_has_every_command_and_option(nicety: Callable[..., Result]) -> None:
    done = nicety("man")
    assert (done.status, done.stderr) == (0, "")
    assert done.stdout.startswith(".TH NICETY 1 ")
    plain = done.stdout.replace("\\", "")
    for name, command in COMMANDS.items():
        assert f'.SS "nicety {name}' in plain
        for parameter in command.params:
            if parameter.param_type_name == "option" and parameter.name != "help":
                assert parameter.opts[0] in plain, f"{name} {parameter.opts[0]}"


def test_the_manual_page_is_roff(nicety: Callable[..., Result]) -> None:
    groff = shutil.which("groff")
    if groff is None:
        pytest.skip("groff is not installed")
    page = nicety("man").stdout
    done = subprocess.run(
        [groff, "-man", "-Tutf8", "-ww", "-P-c", "-rLL=200n"], input=page, capture_output=True, text=True, check=True
    )
    assert done.stderr == ""
    text = re.sub(r".\x08", "", done.stdout)
    assert "nicety bench handlers FILE.c|FILE.o\n" in text
    assert "'udp dport=53 size=imix rate=40Gbps'" in text


@pytest.mark.parametrize(
    ("line", "wanted", "unwanted"),
    [
        ("nicety bench latency --nic spin-d", ["spin-discrete"], ["qnix"]),
        ("nicety bench latency --nic qnix,spin-i", ["qnix,spin-integrated"], []),
        ("nicety bench latency --nic ./", ["./mine.toml"], ["qnix"]),
        ("nicety specs diff qnix ap", ["apenet-v5"], ["qnix"]),
        ("nicety bench latency --mode rdma,spin-", ["rdma,spin-stream"], ["rdma,rdma"]),
        ("nicety bench kv --operation l", ["lookup"], ["insert"]),
        ("nicety bench datatype --layout l", ["list"], ["vector"]),
        ("nicety goal run x.goal --network p", ["packets"], ["loggops"]),
        ("nicety exec --nic spin-100", ["spin-100g", "spin-100g-rv64"], []),
    ],
)
def test_shells_complete_values(
    nicety: Callable[..., Result],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    line: str,
    wanted: list[str],
    unwanted: list[str],
) -> None:
    (tmp_path / "mine.toml").write_text("")
    monkeypatch.setenv("_NICETY_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", line)
    monkeypatch.setenv("COMP_CWORD", str(len(line.split()) - 1))
    found = nicety().stdout.split()
    assert set(wanted) <= set(found)
    assert not set(unwanted) & set(found)


def test_the_modes_that_shells_complete_exist(nicety: Callable[..., Result]) -> None:
    for case in (Accumulate, Broadcast, Datatype, KeyValue, Matching, Storage):
        assert arguments.WORDS[case.name, "modes"] == case.modes
    said = nicety("bench", "latency", "--nic", "spin-discrete", "--mode", "none").stderr
    assert f"the modes are {', '.join(arguments.WORDS['latency', 'modes'])}\n" in said
    for words in (("bench", "channel-latency", "--nic", "nfp-4000"), ("goal", "compare", "x.goal", "--nic", "qnix")):
        command = words[1]
        for mode in arguments.WORDS[command, "modes"]:
            assert f"mode '{mode}'" not in nicety(*words, "--mode", mode, "--help").stderr


def test_progress_off_a_terminal_is_a_line_at_times(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "_EVERY_S", 0.05)
    for news, expected in (("1", True), ("0", False)):
        monkeypatch.setenv("NICETY_NEWS", news)
        with progress.progress("measuring") as bar:
            bar.advance(3, 12)
            said = ""
            for _ in range(100 if expected else 4):
                time.sleep(0.05)
                said += capsys.readouterr().err
                if said:
                    break
        assert ("nicety: measuring: 3 of 12, 0 s\n" in said) == expected
    capsys.readouterr()
    time.sleep(0.2)
    assert capsys.readouterr().err == "", "nothing is told after the end"


def test_progress_of_a_share_is_in_percent(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NICETY_NEWS")
    monkeypatch.setattr(progress, "_EVERY_S", 0.05)
    with progress.progress("running", percent=True) as bar:
        bar.advance(770, 1000)
        said = ""
        while not said:
            time.sleep(0.05)
            said = capsys.readouterr().err
    assert said.startswith("nicety: running: 77%, 0 s\n")


HANDLERS = """#include <nicety.h>
#include <string.h>
__handler int payload_handler(const ptl_payload_t p, void *state) {
    memcpy(state, (const void *)p.base, 4);
    return SUCCESS;
}
"""
SMALL = '#include <xdp.h>\nSEC("xdp") int small(struct xdp_md *context) { return XDP_DROP; }\n'
PULP = "#include <handler.h>\n#include <packets.h>\n__handler__ void payload_handler(handler_args_t *args) {}\n"


# Every clang has these headers of its own, such as stdbool.h; clang inside of zig must be told their place.
OF_COMPILER = ("-isystem", str(Path(ziglang.__file__).parent / "lib" / "include"))


@pytest.mark.parametrize(
    ("options", "source"),
    [([], HANDLERS), (["--isa", "rv64imac_zicsr"], HANDLERS), (["--xdp"], SMALL), (["--interface", "pspin"], PULP)],
)
def test_clang_finds_headers_by_the_printed_flags(
    nicety: Callable[..., Result], tmp_path: Path, options: list[str], source: str
) -> None:
    done = nicety("cc", "--flags", "-D", "OWN=1", *options)
    assert (done.status, done.stderr) == (0, "")
    flags = done.stdout.splitlines()
    assert flags[-1] == "-DOWN=1"
    (tmp_path / "own.c").write_text(f"#ifndef OWN\n#error\n#endif\n{source}")
    command = [sys.executable, "-m", "ziglang", "clang", "-fsyntax-only", *flags, *OF_COMPILER, "own.c"]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")


def test_flags_compile_nothing(nicety: Callable[..., Result]) -> None:
    done = nicety("cc", "--flags", "own.c")
    assert (done.status, done.stdout) == (2, "")
    assert "--flags: prints options and compiles nothing; leave own.c out" in done.stderr


SUM = """#include <nicety.h>
__handler int payload_handler(const ptl_payload_t p, void *state) {
    uint32_t *table = state;
    if (table[1] != 7) return FAIL;
    return SUCCESS;
}
"""


def test_the_state_of_handlers_comes_from_a_file(nicety: Callable[..., Result], tmp_path: Path) -> None:
    (tmp_path / "sum.c").write_text(SUM)
    (tmp_path / "table.bin").write_bytes(bytes([1, 0, 0, 0, 7, 0, 0, 0]))
    line = ["bench", "handlers", "sum.c", "--nic", "spin-discrete", "--packet-sizes", "64", "--messages", "1", "--json"]
    failed = nicety(*line)
    assert failed.status == 1
    assert "FAIL" in failed.stderr
    done = nicety(*line, "--state", "@table.bin")
    assert done.status == 0, done.stderr
    done = nicety(*line, "--state", "@gone.bin")
    assert (done.status, done.stdout) == (2, "")
    assert done.stderr == "nicety: --state @gone.bin: cannot read gone.bin (No such file or directory)\n"


@pytest.mark.parametrize(
    ("words", "error"),
    [
        ("xdp translate nope.o", "nicety: nope.o: cannot read it (No such file or directory)"),
        ("specs check .", "nicety: .: this is a folder; name a spec file in it, such as card.toml"),
        ("debug a.c --nic spin-discrete --port 80x", """Error: Invalid value for '--port': "x" is not a prefix of a"""),
        ("exec -n 2x -- ls", """Error: Invalid value for '-n' / '--ranks': "x" is not a prefix of a number"""),
        ("sweep a.toml --jobs 2x", """Error: Invalid value for '--jobs': "x" is not a prefix of a number"""),
    ],
)
def test_errors_name_their_place_once(nicety: Callable[..., Result], words: str, error: str) -> None:
    done = nicety(*words.split())
    assert (done.status, done.stdout) == (2, "")
    assert done.stderr.splitlines()[-1].startswith(error), done.stderr


@pytest.mark.parametrize(("command", "cards"), [("check", "NIC"), ("debug", "NIC"), ("profile", "A[,B]")])
def test_help_has_what_a_command_takes(nicety: Callable[..., Result], command: str, cards: str) -> None:
    text = nicety(command, "--help").stdout
    assert "--sensitivity" not in text
    assert f"--nic {cards} " in text
    assert "--state HEX|@FILE" in text
    assert "b''" not in text
