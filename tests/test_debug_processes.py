"""`nicety debug` on programs of hosts: GDB on the contexts of a flow processor."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from conftest import Result
from test_debug import Client, Debugged, debugged, gdb

__all__ = ["debugged"]

TALLY = """\
#include <nfp.h>

static volatile uint32_t total;

static __attribute__((noinline)) void add(uint32_t value) {
    total += value;
}

__process uint32_t tally(uint32_t first) {
    volatile uint32_t *words = nfp_emem(64);
    uint32_t sum = 0;
    for (uint32_t i = 0; i < 3; i++) {
        words[first + i] = first + i;
        sum += words[first + i];
        add(sum);
    }
    return sum;
}

__process uint32_t lost(void) { return *(volatile uint32_t *)64; }
"""
HOST = """\
import nicety

nodes = 1
program = nicety.Processes("tally.c")


async def main(host):
    begun = [
        host.channels.start(program, "tally", microengine=0, context=0, args=(0,)),
        host.channels.start(program, "tally", microengine=0, context=1, args=(8,)),
        host.channels.start(program, "tally", microengine=13, context=2, args=(16,)),
    ]
    values = [await process.finished() for process in begun]
    print("values", values)
    return host.now_ns, sum(values)
"""

TOGETHER = """\
#include <nfp.h>

static __attribute__((noinline)) void store(volatile uint32_t *words, uint32_t value) {
    words[0] = value;
    words[1] = value;
    words[2] = value;
}

__process uint32_t tally(uint32_t first) {
    volatile uint32_t *words = nfp_emem(64);
    for (uint32_t i = 0; i < 4; i++)
        store(words, first + i);
    return first;
}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder of the command, with a program."""
    (tmp_path / "tally.c").write_text(TALLY)
    (tmp_path / "host.py").write_text(HOST)
    (tmp_path / "lost.py").write_text(
        HOST.replace('"tally", microengine=0, context=0, args=(0,)', '"lost", microengine=0, context=0')
    )
    return tmp_path


@pytest.fixture
def session(folder: Path, debugged: Callable[..., Debugged]) -> Callable[..., Debugged]:
    """Start the command with a program of hosts."""
    return lambda *arguments, file="host.py": debugged(None, "--nic", "nfp-4000", *arguments, file=file)


def test_gdb_breaks_prints_and_goes_back(
    session: Callable[..., Debugged], tool: Callable[[str], str], nicety: Callable[..., Result]
) -> None:
    path = tool("gdb-multiarch")
    running = session()
    commands = ("break add", "continue", "continue", "backtrace", "info threads", "x/2wx 0x80000040", "print total")
    back = ("stepi", "reverse-stepi", "print total", "delete", "monitor cores", "monitor memory", "continue")
    shown = gdb(path, running, *commands, *back)
    assert re.search(r"#0 +add \(value=.*\) at tally.c:6", shown), shown
    assert re.search(r"#1 +.*tally \(first=\d+\) at tally.c:15", shown), shown
    assert "microengine 0, context 1: process tally" in shown, shown
    assert "microengine 13, context 2 (thread 107): process tally" in shown, shown
    assert re.search(r"0x80000040:\s+0x00000000\s+0x00000000", shown), shown
    assert re.search(r"0x80000000 +\d+ bytes  EMEM", shown), shown
    assert "exited normally" in shown, shown
    done = running.end()
    assert (done.status, done.stderr) == (0, "")
    assert done.stdout.count("values") == 1, "the repetitions print nothing"
    assert re.search(r"^processes +3$", done.stdout, re.MULTILINE), done.stdout


def test_gdb_watches_memory_of_the_card_and_changes_it(
    session: Callable[..., Debugged], tool: Callable[[str], str], folder: Path
) -> None:
    path = tool("gdb-multiarch")
    lines = HOST.splitlines(keepends=True)
    (folder / "one.py").write_text(
        "".join(line for line in lines if "args=(8,)" not in line and "args=(16,)" not in line)
    )
    running = session(file="one.py")
    changed = ("set var first = 4", "set var *(unsigned *)0x80000040 = 100", "x/wx 0x80000040")
    shown = gdb(path, running, *changed, "watch *(unsigned *)0x80000050", "continue", "delete", "continue")
    assert re.search(r"Old value = 0\s+New value = 4", shown), shown
    assert re.search(r"0x80000040:\s+0x00000064", shown), shown
    assert "exited normally" in shown, shown
    done = running.end()
    assert done.status == 0
    # The argument was changed, and the process stores 4, 5 and 6.
    assert "values [15]" in done.stdout, (shown, done.stdout)


@pytest.mark.parametrize(
    "stop",
    ["watch *(unsigned *)0x80000040", "awatch *(unsigned *)0x80000040", "break store"],
    ids=lambda stop: stop.split()[0],
)
def test_gdb_steps_one_context_while_others_reach_a_stop(
    session: Callable[..., Debugged], tool: Callable[[str], str], folder: Path, stop: str
) -> None:
    path = tool("gdb-multiarch")
    (folder / "tally.c").write_text(TOGETHER)
    running = session()
    shown = gdb(path, running, stop, *["continue"] * 20)
    assert "internal-error" not in shown, shown
    assert "exited normally" in shown, shown
    hits = re.findall(r"Thread (\d) hit (?:Breakpoint|Hardware \w+ ?\w*)", shown)
    # GDB does not show a store of a value that it has seen already, at the stop of another context.
    assert len(set(hits)) > 1, shown
    if stop == "break store":
        assert all(hits.count(thread) == 4 for thread in "123"), shown
    done = running.end()
    assert (done.status, done.stderr) == (0, "")
    assert "values [0, 8, 16]" in done.stdout


def test_a_client_steps_back_and_sees_all_contexts(session: Callable[..., Debugged]) -> None:
    running = session("--json")
    client = Client(running.port)
    assert client.ask("?").startswith("T05")
    first = client.ask("g")
    for _ in range(4):
        assert client.ask("vCont;s:1;c").startswith("T05")
    for _ in range(4):
        assert client.ask("bs").startswith("T05")
    assert client.ask("g") == first
    assert "replaylog:begin" in client.ask("bs")
    assert client.ask("vCont;c") == "W00"
    client.close()
    done = running.end()
    report = json.loads(done.stdout)
    assert (done.status, report["end"], report["simulations"], report["processes"]) == (0, "complete", 5, 3)


def test_a_session_changes_no_time(
    session: Callable[..., Debugged], nicety: Callable[..., Result], folder: Path
) -> None:
    plain = nicety("run", folder / "host.py", "--nic", "nfp-4000")
    text = (folder / "host.py").read_text()
    (folder / "host.py").write_text(text.replace('print("values", values)', 'print("at", host.now_ns)'))
    plain = nicety("run", "host.py", "--nic", "nfp-4000")
    running = session()
    client = Client(running.port)
    client.ask("?")
    assert client.ask("vCont;c") == "W00"
    client.close()
    at = re.search(r"at \S+", plain.stdout)
    assert at is not None
    assert at[0] in running.end().stdout


def test_a_trap_is_a_signal_and_status_1(session: Callable[..., Debugged]) -> None:
    running = session(file="lost.py")
    client = Client(running.port)
    client.ask("?")
    assert client.ask("vCont;c").startswith("T0b")
    client.ask("vCont;c")
    client.close()
    done = running.end()
    assert done.status == 1
    assert "load of 4 bytes from 0x40" in done.stderr
    assert "tally.c:20" in done.stderr


def test_bad_input_is_one_line(nicety: Callable[..., Result], folder: Path) -> None:
    (folder / "none.py").write_text("nodes = 1\n\n\nasync def main(host):\n    pass\n")
    for arguments, status, words in [
        (["host.py", "--nic", "nfp-4000", "--rank", "3"], 2, "there is no rank 3; the cluster has ranks 0 to 0"),
        (["host.py", "--nic", "spin-discrete"], 2, "a card of design"),
        (["host.py", "--nic", "nfp-4000,spin-discrete"], 2, "--nic: a debugger is of one card, and 2 are named"),
        (["host.py", "--nic", "nfp-4000", "--messages", "3"], 2, "--messages: for handlers; a program of hosts has"),
        (["none.py", "--nic", "nfp-4000"], 1, "no process has run on the card of rank 0"),
        (["tally.c", "--nic", "spin-discrete", "--rank", "1"], 2, "--rank 1: for a program of hosts, PROGRAM.py"),
    ]:
        done = nicety("debug", *arguments)
        assert done.status == status, (arguments, done.stderr)
        assert words in done.stderr, done.stderr
        assert "Traceback" not in done.stderr
