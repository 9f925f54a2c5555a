"""The checker of processes with mutated messages: its findings, their captures, and its ends."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conftest import Result
from nicety import InputError, check_program
from nicety.bench.check.messages import capture_of, messages_of, mutated
from nicety.program.channels.outgoing import Place

LOOKUP = """\
#include <nfp.h>

/* Answers lookups: a letter, the number of an entry, and bytes that are not used. */
__process int32_t lookup(uint32_t target, uint32_t count) {
    uint32_t table[8];
    uint8_t text[CHANNEL_DIRECT];
    for (uint32_t i = 0; i < 8; i++) table[i] = i * i;
    int32_t result = channel_register(target);
    while (result == CHANNEL_OK && count-- > 0) {
        result = channel_read(target, text, 8);
        uint32_t answer = 0;
        if (text[0] == 'q') {
            if (text[1] == 0) while (text[2] == 1) {}
            if (LIMIT) answer = *(volatile uint32_t *)(64 + 4 * text[1]);
            else answer = table[text[1] & 7];
        }
        if (result == CHANNEL_OK) result = channel_write(target, &answer, 4);
    }
    return result;
}
"""
HOST = """\
import sys

import nicety

nodes = 1
program = nicety.Processes("lookup.c", defines=[f"LIMIT={sys.argv[1]}"])


async def main(host):
    host.channels.start(program, "lookup", microengine=0, args=(7, 3))
    channel = await host.channels.open().subscribe(7)
    for number in range(3):
        await channel.send(b"a packet")
        answer = await channel.receive(4)
        print("answer", int.from_bytes(answer, "little"))
"""
BUGGY, RIGHT = "(text[1]&128)", "0"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with a program of hosts."""
    (tmp_path / "lookup.c").write_text(LOOKUP)
    (tmp_path / "host.py").write_text(HOST)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_mutated_messages_reach_a_bug_and_a_capture_replays_it(folder: Path, nicety: Callable[..., Result]) -> None:
    assert nicety("check", "host.py", "--nic", "nfp-4000", BUGGY).status == 0
    found = nicety("check", "host.py", "--nic", "nfp-4000", "--fuzz", "20", "--json", BUGGY)
    report = json.loads(found.stdout)
    assert (found.status, [finding["kind"] for finding in report["findings"]]) == (1, ["out-of-bounds"]), found.stdout
    assert found.stderr.count("answer") == 3, "the search prints nothing"
    (capture,) = report["fuzz"]["captures"]
    line = LOOKUP[: LOOKUP.index("if (LIMIT)")].count("\n") + 1
    assert (capture["file"], capture["packets"]) == (f"host.out-of-bounds.{line}.pcap", 1)
    ((place, contents),) = messages_of(folder / capture["file"]).items()
    assert (place[:3], contents[0], contents[1] >= 128) == ((0, 0, 7), ord("q"), True)
    replayed = nicety("check", "host.py", "--nic", "nfp-4000", "--replay", capture["file"], BUGGY)
    assert replayed.status == 1
    assert f"lookup.c:{line}: out-of-bounds: process lookup" in replayed.stdout, replayed.stdout
    mended = nicety("check", "host.py", "--nic", "nfp-4000", "--replay", capture["file"], RIGHT)
    assert mended.status == 0, mended.stdout


def test_a_process_without_end_does_not_end_the_search(folder: Path, nicety: Callable[..., Result]) -> None:
    capture = folder / "endless.pcap"
    capture.write_bytes(capture_of({Place(0, 0, 7, 0): b"q\0\1acket"}))
    began = time.monotonic()
    endless = nicety("check", "host.py", "--nic", "nfp-4000", "--replay", capture, RIGHT)
    assert (endless.status, time.monotonic() - began < 60) == (0, True), endless.stderr
    searched = nicety("check", "host.py", "--nic", "nfp-4000", "--fuzz", "3", RIGHT)
    assert searched.status == 0, searched.stdout
    assert re.search(r"^mutated: \d+ messages in \d+ runs$", searched.stdout, re.MULTILINE), searched.stdout


def test_an_interrupted_search_keeps_its_findings(folder: Path) -> None:
    command = [sys.executable, "-m", "nicety", "check", "host.py", "--nic", "nfp-4000", "--fuzz", "300", BUGGY]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True) as running:
        ends = time.monotonic() + 60
        while not list(folder.glob("host.*.pcap")) and time.monotonic() < ends:
            time.sleep(0.05)
        time.sleep(0.5)
        os.kill(running.pid, signal.SIGINT)
        shown, _ = running.communicate(timeout=60)
    assert "out-of-bounds: process lookup" in shown, shown
    assert re.search(r"host\.out-of-bounds\.\d+\.pcap: replays out-of-bounds", shown), shown
    assert running.returncode != 0


INDIRECT = """\
import nicety

nodes = 1
program = nicety.Processes("sum.c")


async def main(host):
    host.channels.start(program, "sum", microengine=0, args=(7,))
    channel = await host.channels.open().subscribe(7)
    buffer = host.alloc(256)
    buffer.array[:] = 1
    await channel.send_ind(buffer)
    print(int.from_bytes(await channel.receive(4), "little"))
"""
SUM = """\
#include <nfp.h>

__process int32_t sum(uint32_t target) {
    int32_t result = channel_register(target);
    volatile uint8_t *bytes = (volatile uint8_t *)nfp_emem(0);
    if (result == CHANNEL_OK) result = channel_read_ind(target, (void *)bytes, 256);
    uint32_t sum = bytes[0] == 2 ? *(volatile uint32_t *)64 : bytes[0];
    if (result == CHANNEL_OK) result = channel_write(target, &sum, 4);
    return result;
}
"""


def test_indirect_messages_are_mutated_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sum.c").write_text(SUM)
    (tmp_path / "host.py").write_text(INDIRECT)
    capture = tmp_path / "one.pcap"
    capture.write_bytes(capture_of({Place(0, 0, 7, 0): bytes([2] * 256)}))
    (finding,) = check_program("host.py", nics=["nfp-4000"], replay=capture)["findings"]
    assert (finding["kind"], finding["at"]["place"]["line"]) == ("out-of-bounds", 7)
    # A message of another length is not that of the program.
    capture.write_bytes(capture_of({Place(0, 0, 7, 0): bytes([2] * 8)}))
    assert check_program("host.py", nics=["nfp-4000"], replay=capture)["findings"] == []


def test_invalid_captures_and_programs_without_messages_are_refused(tmp_path: Path) -> None:
    silent = tmp_path / "silent.py"
    (tmp_path / "none.c").write_text("#include <nfp.h>\n__process uint32_t none(void) { return 0; }\n")
    silent.write_text(
        f"import nicety\n\nnodes = 1\nprogram = nicety.Processes({str(tmp_path / 'none.c')!r})\n\n\n"
        "async def main(host):\n    host.channels.start(program, 'none', microengine=0)\n"
    )
    with pytest.raises(InputError, match="fuzz: hosts send no messages to processes"):
        check_program(silent, nics=["nfp-4000"], fuzz=1)
    with pytest.raises(InputError, match=r"replay: .*missing\.pcap: cannot read it"):
        check_program(silent, nics=["nfp-4000"], replay=tmp_path / "missing.pcap")
    whole = capture_of({Place(0, 0, 7, 0): b"packet"})
    for number, damaged in enumerate([b"", whole[:20], whole[:-1], whole[:30], whole + b"x"]):
        path = tmp_path / f"{number}.pcap"
        path.write_bytes(damaged)
        with pytest.raises(InputError, match="is no capture of messages"):
            check_program(silent, nics=["nfp-4000"], replay=path)


PLACES: Any = st.builds(Place, *[st.integers(0, 2**32 - 1)] * 4)


@given(changes=st.dictionaries(PLACES, st.binary(min_size=1, max_size=80)))
def test_a_capture_has_its_messages(tmp_path_factory: pytest.TempPathFactory, changes: dict[Place, bytes]) -> None:
    path = tmp_path_factory.mktemp("captures") / "one.pcap"
    path.write_bytes(capture_of(changes))
    assert messages_of(path) == changes


@given(contents=st.binary(min_size=1, max_size=80), other=st.binary(min_size=1, max_size=80), seed=st.integers(0, 1000))
def test_a_mutated_message_has_its_length(contents: bytes, other: bytes, seed: int) -> None:
    assert len(mutated(contents, other, random.Random(seed))) == len(contents)
