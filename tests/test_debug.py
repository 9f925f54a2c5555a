"""`nicety debug`: GDB on simulated cores, and a small client of its remote protocol."""

from __future__ import annotations

import json
import re
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from conftest import Result

COUNTS = """\
#include <nicety.h>

typedef struct {
    uint32_t packets;
    uint32_t bytes;
} counts_t;

__handler int payload_handler(const ptl_payload_t p, void *state) {
    counts_t *counts = state;
    __atomic_fetch_add(&counts->packets, 1, __ATOMIC_RELAXED);
    __atomic_fetch_add(&counts->bytes, p.length, __ATOMIC_RELAXED);
    return SUCCESS;
}
"""
FRAMES = """\
#include <frame.h>

__handler int frame_handler(const frame_t *frame, void *state) {
    uint32_t *count = state;
    __atomic_fetch_add(count, 1, __ATOMIC_RELAXED);
    return FRAME_DROP;
}
"""
HANDLERS = Path(__file__).parent.parent / "handlers"
PACKETS = ("--packet-sizes", "64", "--messages", "4", "--message-packets", "1")


@dataclass
class Debugged:
    """A running command that waits for a debugger.

    Attributes:
        process: the command.
        port: its port.
        elf: the compiled program.
    """

    process: subprocess.Popen[str]
    port: int
    elf: str

    def end(self) -> Result:
        """The end of the command."""
        out, err = self.process.communicate(timeout=120)
        assert "Traceback" not in err, err
        return Result(self.process.returncode, out, err)


@pytest.fixture
def debugged(tmp_path: Path) -> Iterator[Callable[..., Debugged]]:
    """Start `nicety debug`, and wait until it listens."""
    running = []

    def start(source: str | None, *arguments: str, file: str = "counts.c") -> Debugged:
        if source is not None:
            (tmp_path / file).write_text(source)
        command = [sys.executable, "-m", "nicety", "debug", file, *arguments]
        process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        running.append(process)
        assert process.stderr is not None
        for line in process.stderr:
            if found := re.search(r"type: gdb-multiarch (\S+) -ex 'target remote 127\.0\.0\.1:(\d+)'", line):
                return Debugged(process, int(found[2]), found[1])
        raise AssertionError(f"status {process.wait()}")

    yield start
    for process in running:
        process.kill()
        process.communicate()


class Client:
    """A client of GDB's remote protocol."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=120)
        self._file = self._socket.makefile("rb")

    def ask(self, packet: str) -> str:
        """Send a packet, and return the answer."""
        self._socket.sendall(f"${packet}#{sum(packet.encode()) % 256:02x}".encode())
        while self._file.read(1) != b"$":
            pass
        text = b""
        while (byte := self._file.read(1)) != b"#":
            text += byte
        assert int(self._file.read(2), 16) == sum(text) % 256
        self._socket.sendall(b"+")
        return re.sub(r"(.)\*(.)", lambda run: run[1] * (ord(run[2]) - 28), text.decode())

    def close(self) -> None:
        self._file.close()
        self._socket.close()


def gdb(path: str, session: Debugged, *commands: str) -> str:
    """The output of gdb with these commands, after its connection."""
    texts = ["set pagination off", "set confirm off", f"target remote 127.0.0.1:{session.port}", *commands]
    options = [option for text in texts for option in ("-ex", text)]
    done = subprocess.run(
        [path, "-nx", "-batch", *options, session.elf], capture_output=True, text=True, timeout=240, check=False
    )
    return done.stdout + done.stderr


@pytest.mark.parametrize(
    "card", [["spin-discrete"], ["spin-discrete", "--set", "hpu.isa=rv64imac_zicsr_zifencei"]], ids=["rv32", "rv64"]
)
def test_gdb_breaks_prints_and_goes_back(
    debugged: Callable[..., Debugged], tool: Callable[[str], str], card: list[str]
) -> None:
    path = tool("gdb-multiarch")
    session = debugged(COUNTS, "--nic", *card, *PACKETS)
    commands = ("break counts.c:11", "continue", "backtrace", "print *counts", "print p.length", "info threads")
    back = ("stepi", "print counts->bytes", "reverse-stepi", "print counts->bytes", "delete", "monitor packet 16")
    shown = gdb(path, session, *commands, *back, "continue")
    assert "payload_handler" in shown
    assert "#0  payload_handler" in shown
    assert "{packets = 1, bytes = 0}" in shown, shown
    assert "core 0: payload handler, run 1" in shown
    assert "64 bytes at 0x1c400000 to 0x1c400040" in shown
    assert "exited normally" in shown, shown
    done = session.end()
    assert (done.status, done.stderr) == (0, "")
    assert re.search(r"^end +complete$", done.stdout, re.MULTILINE), done.stdout


def test_gdb_watches_a_word(debugged: Callable[..., Debugged], tool: Callable[[str], str]) -> None:
    path = tool("gdb-multiarch")
    session = debugged(COUNTS, "--nic", "spin-discrete", *PACKETS)
    commands = ["watch *(unsigned *)0x14000004", *["continue"] * 2, "print *(unsigned *)0x14000004", "delete"]
    shown = gdb(path, session, *commands, "continue")
    assert re.search(r"Old value = 64\s+New value = 128", shown), shown
    assert session.end().status == 0


@pytest.mark.parametrize(
    ("source", "nic", "line", "function"),
    [("pspin/sum.c", "pspin", "break sum_ph", "sum_ph"), ("xdp/counters.c", "spin-100g", "break counters", "counters")],
    ids=["pspin", "xdp"],
)
def test_gdb_knows_lines_of_other_programs(
    debugged: Callable[..., Debugged],
    tool: Callable[[str], str],
    nicety: Callable[..., Result],
    source: str,
    nic: str,
    line: str,
    function: str,
) -> None:
    path = tool("gdb-multiarch")
    file = HANDLERS / source
    name = str(file)
    if source.startswith("xdp/"):
        assert nicety("cc", "--xdp", file).status == 0
        name = f"{file.stem}.o"
    session = debugged(None, "--nic", nic, "--traffic", "udp size=64 packets=3", file=name)
    shown = gdb(path, session, line, "continue", "backtrace", "monitor packet 16", "delete", "continue")
    assert re.search(rf"Breakpoint 1, .*{function}.* at .*{file.name}:\d+", shown), shown
    assert "exited normally" in shown, shown
    assert session.end().status == 0


def test_a_client_without_gdb_steps_back(debugged: Callable[..., Debugged]) -> None:
    session = debugged(COUNTS, "--nic", "spin-discrete", *PACKETS, "--json")
    client = Client(session.port)
    assert client.ask("?").startswith("T05")
    first = client.ask("g")
    assert len(first) == 2 * 4 * 33
    for _ in range(3):
        assert client.ask("vCont;s:1;c").startswith("T05")
    for _ in range(3):
        assert client.ask("bs").startswith("T05")
    assert client.ask("g") == first
    assert "replaylog:begin" in client.ask("bs")
    assert client.ask("vCont;c") == "W00"
    client.close()
    done = session.end()
    report = json.loads(done.stdout)
    # The last one ran to its end.
    assert (done.status, report["end"], report["lost"], report["simulations"]) == (0, "complete", None, 4)
    assert report["handler_runs"] > 4
    assert report["failures"] == []


@pytest.mark.parametrize(
    ("source", "nic", "more"),
    [
        (FRAMES, "spin-100g", ["--traffic", "udp size=64 packets=20"]),
        (COUNTS, "spin-integrated", list(PACKETS)),
    ],
    ids=["frames", "messages"],
)
def test_the_run_of_a_session_is_that_without_one(
    debugged: Callable[..., Debugged],
    nicety: Callable[..., Result],
    tmp_path: Path,
    source: str,
    nic: str,
    more: list[str],
) -> None:
    session = debugged(source, "--nic", nic, *more, "--json")
    client = Client(session.port)
    client.ask("?")
    assert client.ask("vCont;c") == "W00"
    client.close()
    report = json.loads(session.end().stdout)
    assert report["handler_runs"] > 0
    checked = json.loads(nicety("bench", "handlers", tmp_path / "counts.c", "--nic", nic, *more, "--json").stdout)
    (row,) = checked["rows"]
    (figures,) = row["handlers"]
    runs = report["handler_runs"]
    assert report["handler_instructions"] == pytest.approx(figures["instructions_mean"] * runs)


def test_a_lost_debugger_lets_the_run_end(debugged: Callable[..., Debugged]) -> None:
    session = debugged(COUNTS, "--nic", "spin-discrete", *PACKETS)
    client = Client(session.port)
    client.ask("?")
    client.close()
    done = session.end()
    assert done.status == 0
    assert re.fullmatch(r"nicety: the debugger disconnected \(.+\); the run continued to its end\n", done.stderr)


def test_a_trap_is_a_signal_and_status_1(debugged: Callable[..., Debugged]) -> None:
    source = COUNTS.replace("return SUCCESS", "return *(volatile int *)8")
    session = debugged(source, "--nic", "spin-discrete", *PACKETS)
    client = Client(session.port)
    client.ask("?")
    assert client.ask("vCont;c").startswith("T0b")
    client.ask("vCont;c")
    client.close()
    done = session.end()
    assert done.status == 1
    assert "load of 4 bytes from 0x8" in done.stderr
    assert "counts.c:12" in done.stderr


def test_bad_input_is_one_line(nicety: Callable[..., Result], tmp_path: Path) -> None:
    (tmp_path / "counts.c").write_text(COUNTS)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        for arguments, words in [
            (
                ["--port", str(port)],
                f"--port {port} is in use; choose another with --port, or a free one with --port 0",
            ),
            (["--port", "70000"], "--port is 0 to 65535, not 70000"),
            (["--nic", "spin-integrated"], "--nic: a debugger runs on one card, but 2 cards are named"),
            (["--elf", "/nowhere/a.elf"], "/nowhere/a.elf: cannot write it (No such file or directory)"),
        ]:
            done = nicety("debug", "counts.c", "--nic", "spin-discrete", *arguments)
            lines = [line for line in done.stderr.splitlines() if "waiting" not in line]
            assert (done.status, lines) == (2, [f"nicety: {words}"]), done.stderr


def test_gdb_without_line_tables_has_functions_and_instructions(
    debugged: Callable[..., Debugged], tool: Callable[[str], str], tmp_path: Path
) -> None:
    path = tool("gdb-multiarch")
    session = debugged(COUNTS, "--nic", "spin-discrete", *PACKETS, "--elf", "counts.elf")
    elf = tmp_path / "counts.elf"
    stripped = tmp_path / "stripped.elf"
    # Sections of other names are no line tables.
    stripped.write_bytes(elf.read_bytes().replace(b".debug_", b".nodbg_"))
    session.elf = str(stripped)
    commands = ("stepi", "x/i $pc", "info registers a0", "reverse-stepi", "x/i $pc", "print counts", "continue")
    shown = gdb(path, session, *commands)
    assert "0x1d000000 in payload_handler ()" in shown, shown
    assert re.search(r"=> 0x1d00000[24] <payload_handler\+[24]>:", shown), shown
    assert re.search(r"=> 0x1d000000 <payload_handler>:", shown), shown
    assert re.search(r"a0 +0x\w+", shown), shown
    assert "No symbol" in shown, shown
    assert "exited normally" in shown, shown
    assert session.end().status == 0
