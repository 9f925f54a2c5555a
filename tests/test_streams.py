"""Streams as a shell may leave them: closed, full, cut off, or with a limited encoding."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

BENCH = "bench latency --nic spin-discrete --mode rdma --sizes 8"
PROGRAM = """
async def main(host):
    print("gr\\u00fcn \\udcff")
    await host.barrier()
    return {"gr\\u00f6\\u00dfe \\u03bc": "\\u00fc" if host.rank else "\\udcff"}
"""

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="a POSIX shell's redirections")


@pytest.fixture
def shell(tmp_path: Path):
    """Run a line of a shell in which `nicety` is the command line; return status, stdout and stderr."""

    def run(line: str) -> tuple[int, bytes, bytes]:
        function = f'nicety() {{ "{sys.executable}" -m nicety "$@"; }}\n'
        done = subprocess.run(
            ["bash", "-c", function + line], cwd=tmp_path, capture_output=True, timeout=300, check=False
        )
        assert b"Traceback" not in done.stderr, done.stderr
        assert b"Exception ignored" not in done.stderr, done.stderr
        return done.returncode, done.stdout, done.stderr

    return run


@pytest.mark.parametrize("command", [BENCH, f"{BENCH} --json", "specs", "specs show qnix", "--help", "--version"])
def test_stdout_that_is_closed_or_full_is_an_error(shell, command: str) -> None:
    assert shell(f"nicety {command} >&-") == (1, b"", b"nicety: cannot write stdout: Bad file descriptor\n")
    if Path("/dev/full").exists():
        assert shell(f"nicety {command} >/dev/full") == (
            1,
            b"",
            b"nicety: cannot write stdout: No space left on device\n",
        )
    # A reader that closes the pipe early gets no message.
    assert shell(f"nicety {command} | true; exit ${{PIPESTATUS[0]}}") == (1, b"", b"")


def test_where_nothing_is_said_closed_streams_do_no_harm(shell, tmp_path: Path) -> None:
    (tmp_path / "a.c").write_text(
        "#include <nicety.h>\n__handler int payload_handler(const ptl_payload_t p, void *s) { return DROP; }\n"
    )
    assert shell("nicety cc a.c -o a.elf <&- >&- 2>&-") == (0, b"", b"")
    # No opened file has become stdout or stderr, and got their output.
    assert (tmp_path / "a.elf").read_bytes()[:4] == b"\x7fELF"
    (tmp_path / "b.c").write_text("int payload_handler(void) { int unused; return 0; }\n")
    assert shell("nicety cc b.c -o b.elf <&- >&- 2>&-") == (0, b"", b"")
    assert (tmp_path / "b.elf").read_bytes()[:4] == b"\x7fELF"
    assert shell("nicety cc gone.c >&- 2>&-") == (2, b"", b"")


@pytest.mark.parametrize("stderr", ["2>&-", "2>/dev/full"])
def test_messages_to_a_closed_stderr_change_no_status(shell, stderr: str) -> None:
    status, stdout, _ = shell(f"nicety {BENCH} --json {stderr}")
    assert status == 0
    assert json.loads(stdout)["rows"]
    assert shell(f"nicety nothing {stderr}") == (2, b"", b"")
    assert shell(f"nicety specs show nothing {stderr}") == (2, b"", b"")


def test_lines_of_handlers_to_a_closed_stderr(shell, tmp_path: Path) -> None:
    (tmp_path / "prints.c").write_text(
        '#include <nicety.h>\n__handler int payload_handler(const ptl_payload_t p, void *s) { printf("x\\n"); '
        "return DROP; }\n"
    )
    for stderr in ("2>&-", "2>/dev/full"):
        status, stdout, _ = shell(
            f"nicety bench handlers prints.c --nic spin-discrete --packet-sizes 64 --json {stderr}"
        )
        assert status == 0
        assert json.loads(stdout)["rows"]


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_letters_that_an_encoding_has_not(shell, tmp_path: Path, encoding: str) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    (tmp_path / "card.toml").write_text('name = "grün-μ"\nextends = "spin-discrete"\ntitle = "größer μ"\n')
    set_to = f"PYTHONIOENCODING={encoding}; export PYTHONIOENCODING; "
    status, stdout, stderr = shell(f"{set_to} nicety run program.py --json")
    assert (status, stderr.count(b"gr")) == (0, 2)
    rows = json.loads(stdout.decode(encoding))["rows"]
    assert [row["größe μ"] for row in rows] == ["\udcff", "ü"]
    for command in ("nicety run program.py", "nicety specs show ./card.toml", "nicety specs check ./card.toml"):
        status, stdout, stderr = shell(set_to + command)
        assert status == 0, stderr
        stdout.decode(encoding)
    status, stdout, _ = shell(f"{set_to} nicety specs show ./card.toml --json")
    assert status == 0
    assert json.loads(stdout.decode(encoding))["title"] == "größer μ"


@pytest.mark.parametrize(
    "command",
    [
        "specs show $'\\xff'",
        "bench latency --nic $'\\xff'",
        "bench latency --nic spin-discrete --set $'hpu.cores=\\xff'",
        "bench latency --nic spin-discrete --topology $'\\xff'",
        "run $'\\xff.py'",
        "cc $'\\xff.c'",
        "tsp $'\\xff'",
        "pcsa $'\\xff'",
        "reproduce $'\\xff'",
    ],
)
def test_arguments_that_are_no_text(shell, command: str) -> None:
    status, stdout, stderr = shell(f"nicety {command}")
    assert (status, stdout) == (2, b"")
    assert stderr.startswith((b"nicety: ", b"Usage: "))
