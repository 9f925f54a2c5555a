"""Output of handlers and compilers, and names from files: bounded, and without control characters."""

from __future__ import annotations

import json
import os
import pty
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import nicety
from nicety import _native
from nicety.build.compiler import compile_handlers
from nicety.shared.text import printable, printable_json, printable_text

RED = "\x1b[31m"
HOSTILE = f"{RED}\x9b\u202e"

PRINTS = r"""
#include <nicety.h>
__handler int payload_handler(const ptl_payload_t p, void *state) {
    (void)state;
    for (int i = 0; i < LINES; i++)
        printf("%d \033[31m\302\233\342\200\256\xff %u\n[0 ns node 0 HPU 0] mine\n", i, p.length);
    return SUCCESS;
}
"""

# A function and the names that it needs are not valid in C.
STRANGE = r"""
void wild(void) __asm__("\033[31mwild\342\200\256");
void __attribute__((noinline)) wild(void) { *(volatile int *)0x40000000 = 1; }
int main(void) { wild(); return 0; }
"""
UNDEFINED = r"""
void gone(void) __asm__("\033[31mgone\342\200\256");
int main(void) { gone(); return 0; }
"""


def obeyed(text: str) -> list[str]:
    """Characters that control a terminal, except line breaks."""
    return [c for c in text if c not in "\n\t" and printable(c) != c]


def test_text_for_a_terminal() -> None:
    assert printable("a\n" + HOSTILE + "\u2028\ud800ö") == "a\\n\\x1b[31m\\x9b\\u202e\\u2028\\ud800ö"
    assert printable_text("a\n\tb\r" + HOSTILE) == "a\n\tb\\r\\x1b[31m\\x9b\\u202e"
    assert printable_json('{"a": "\x9bö\u202e"}') == '{"a": "\\u009bö\\u202e"}'
    assert obeyed(printable_text("".join(map(chr, range(0x3000))))) == []


def run_printing(folder: Path, lines: int) -> nicety.Run:
    source = folder / "prints.c"
    source.write_text(PRINTS)
    handlers = nicety.Handlers(source, defines=[f"LINES={lines}"])

    async def sender(host: nicety.Host) -> None:
        await host.barrier()
        await host.portals.put(host.portals.md_bind(host.alloc(8)), 8, to=1, pt=1)

    async def receiver(host: nicety.Host) -> None:
        count = host.portals.ct_alloc()
        options = ["op_put", "event_ct_comm"]
        attached = host.portals.attach(handlers)
        await host.portals.me_append(
            host.alloc(8), pt=host.portals.pt_alloc(pt=1), options=options, ct=count, handlers=attached
        )
        await host.barrier()
        await host.portals.ct_wait(count, 1)

    return nicety.Cluster(2, "spin-discrete").run({0: sender, 1: receiver})


def test_lines_of_handlers_are_bounded_and_escaped(tmp_path: Path, capfd: pytest.CaptureFixture) -> None:
    run = run_printing(tmp_path, 700)
    shown = capfd.readouterr().err.splitlines()
    assert len(shown) == 1000 + 1
    assert obeyed("\n".join(shown)) == []
    assert shown[0].endswith("HPU 0] 0 \\x1b[31m\\x9b\\u{202e}\N{REPLACEMENT CHARACTER} 8")
    # A line that looks like another's has its origin in front, too.
    assert all(line.count("node 1 HPU") == 1 for line in shown[:-1])
    assert shown[-1] == "[node 1] 400 more lines of handlers are not shown; a card shows 1000"
    assert [(node.portals.handler_lines_printed, node.portals.handler_lines_suppressed) for node in run.nodes] == [
        (0, 0),
        (1000, 400),
    ]


def test_printing_costs_cycles(tmp_path: Path) -> None:
    # A line of 42 bytes and one digit: 60 and 20 a byte.
    one, two = (run_printing(tmp_path, lines).nodes[1].portals.handler_cycles for lines in (1, 2))
    text = b"0 \x1b[31m\xc2\x9b\xe2\x80\xae\xef\xbf\xbd 8\n[0 ns node 0 HPU 0] mine\n"
    assert 0 < two - one - 60 - 20 * len(text) < 60


def test_benchmarks_count_the_lines_of_handlers(nicety: Callable, tmp_path: Path) -> None:
    (tmp_path / "prints.c").write_text(PRINTS)
    options = ["--nic", "spin-discrete", "--packet-sizes", "64", "--message-packets", "1", "--messages", "10"]
    result = nicety("bench", "handlers", "prints.c", "-D", "LINES=100", *options, "--json")
    lines = result.json()["handler_lines"]
    assert lines["printed"] == 1000
    assert lines["suppressed"] >= 1000
    assert f"{lines['suppressed']} more lines of handlers are not shown" in result.stderr
    assert obeyed(result.stdout + result.stderr) == []
    quiet = nicety("bench", "handlers", "prints.c", "-D", "LINES=0", *options, "--json")
    assert "handler_lines" not in quiet.json()


def test_names_of_functions_are_escaped(nicety: Callable, tmp_path: Path) -> None:
    (tmp_path / "strange.c").write_text(STRANGE)
    assert nicety("cc", "strange.c").status == 0
    result = nicety("hpu", "run", "strange.elf", "--json")
    assert result.status == 1
    assert "x1b[31mwild" in result.stderr
    assert obeyed(result.stdout + result.stderr) == []
    missing = nicety("hpu", "run", "strange.elf", "--entry", HOSTILE)
    assert missing.status == 2
    assert obeyed(missing.stderr) == []
    (tmp_path / "undefined.c").write_text(UNDEFINED)
    refused = nicety("cc", "undefined.c")
    assert refused.status == 2
    assert "[31mgone" in refused.stderr
    assert obeyed(refused.stderr) == []


def test_names_of_files_are_escaped(nicety: Callable, tmp_path: Path) -> None:
    name = f"{RED}\u202e.c"
    (tmp_path / name).write_text("#include <nicety.h>\nint payload_handler(void) { return x; }\n")
    for command in (["cc", name], ["bench", "handlers", name, "--nic", "spin-discrete"], ["hpu", "run", name]):
        result = nicety(*command)
        assert result.status == 2
        assert obeyed(result.stdout + result.stderr) == []


WRITES = r"""
int main(void) {
    static const char text[] = "\033[31m\303\266\377\n";
    register long a0 __asm__("a0") = 1, a1 __asm__("a1") = (long)text, a2 __asm__("a2") = sizeof text - 1;
    register long a7 __asm__("a7") = 64;
    __asm__ volatile("ecall" : "+r"(a0) : "r"(a1), "r"(a2), "r"(a7) : "memory");
    return 0;
}
"""


def test_a_program_s_output_is_bytes_in_a_file_and_text_on_a_terminal(nicety: Callable, tmp_path: Path) -> None:
    (tmp_path / "writes.c").write_text(WRITES)
    assert nicety("cc", "writes.c").status == 0
    command = [sys.executable, "-m", "nicety", "hpu", "run", str(tmp_path / "writes.elf")]
    piped = subprocess.run(command, capture_output=True, check=True).stdout
    assert piped.startswith(b"\x1b[31m\xc3\xb6\xff\n")
    ours, terminal = pty.openpty()
    environment = os.environ | {"PYTHONIOENCODING": "utf-8"}
    subprocess.run(command, stdout=terminal, stderr=subprocess.DEVNULL, check=True, env=environment)
    os.close(terminal)
    shown = os.read(ours, 4096).decode()
    os.close(ours)
    assert shown.startswith("\\x1b[31mö\\xff\r\n")
    assert obeyed(shown.replace("\r\n", "\n")) == []


def test_hpu_run_names_its_limit(nicety: Callable, tmp_path: Path) -> None:
    (tmp_path / "loop.c").write_text('int main(void) { for (;;) __asm__ volatile(""); }\n')
    # A slow jump, so that the test is quick.
    (tmp_path / "slow.toml").write_text(
        'extends = "spin-discrete"\nname = "slow"\ntitle = "slow"\n'
        '[hpu.cycles]\njump = { value = 10_000, kind = "assumed", source = "of this test" }\n'
    )
    assert nicety("cc", "loop.c").status == 0
    result = nicety("hpu", "run", "loop.elf", "--spec", "./slow.toml")
    assert result.status == 1
    assert "still running at its limit of 1000000000 cycles" in result.stderr
    assert result.stderr.endswith("; --max-cycles sets another limit\n")
    named = nicety("hpu", "run", "loop.elf", "--spec", "./slow.toml", "--max-cycles", "100000")
    assert "its limit of 100000 cycles" in named.stderr
    assert "--max-cycles" not in named.stderr


def test_a_bare_program_that_writes_for_ever_is_stopped(tmp_path: Path) -> None:
    for_ever = WRITES.replace("return 0;", "").replace("__asm__ volatile", "for (;;) __asm__ volatile")
    for_ever = for_ever.replace("text[] =", "text[1 << 20] =")
    (tmp_path / "writes.c").write_text(for_ever)
    elf = compile_handlers([tmp_path / "writes.c"]).elf
    parts: list[int] = []
    for take in (None, lambda part: parts.append(len(part))):
        with pytest.raises(nicety.InputError, match="output could not be written: it is more than 67108864 bytes"):
            _native.hpu_run(elf, None, None, None, take)
    assert 0 < sum(parts) <= 64 << 20


def test_texts_of_specs_are_escaped_and_stay_on_their_lines(nicety: Callable, tmp_path: Path) -> None:
    title = json.dumps("my\n# hash 0000 " + HOSTILE)
    (tmp_path / "mine.toml").write_text(f'extends = "qnix"\nname = "mine"\ntitle = {title}\nsource = {title}\n')
    shown = nicety("specs", "show", "mine.toml")
    assert shown.status == 0, shown.stderr
    assert obeyed(shown.stdout) == []
    assert shown.stdout.startswith("# mine: my\\n# hash 0000 \\x1b[31m")
    assert [line.split()[1] for line in shown.stdout.splitlines() if line.startswith("# ")][-2:] == ["hash", "key"]
    assert json.loads(nicety("specs", "show", "mine.toml", "--json").stdout)["title"].endswith(HOSTILE)
    assert nicety("specs", "check", "mine.toml").status == 0


@pytest.mark.parametrize(
    "command",
    [
        ["goal", "info", "@"],
        ["goal", "run", "@"],
        ["specs", "check", "@"],
        ["sweep", "@", "-o", "out"],
        ["pcsa", "@"],
    ],
)
def test_names_of_inputs_are_escaped_in_results(nicety: Callable, tmp_path: Path, command: list[str]) -> None:
    contents = {
        "goal": b"num_ranks 1\nrank 0 {\n calc 5\n}\n",
        "specs": b'extends = "qnix"\nname = "mine"\ntitle = "mine"\n',
        "sweep": b'run = "bench latency --nic spin-discrete --mode rdma --iterations 1"\n[grid]\nsizes = [8]\n',
        "pcsa": struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 101)
        + struct.pack("<IIII", 0, 0, 20, 20)
        + b"\x45" * 20,
    }
    name = f"{RED}\u202e.toml"
    (tmp_path / name).write_bytes(contents[command[0]])
    done = nicety(*(name if word == "@" else word for word in command))
    assert done.status == 0, done.stderr
    assert obeyed(done.stdout + done.stderr) == []
    assert "\\x1b[31m" in done.stdout


def test_every_command_prints_through_what_escapes() -> None:
    """Stdout is written in one place. Flags for a shell, which quotes them, and bytes of programs are no texts."""
    cli = Path(nicety.__file__).parent / "cli"
    direct = {path.relative_to(cli).as_posix() for path in cli.rglob("*.py") if "sys.stdout.write(" in path.read_text()}
    assert direct == {"output.py", "tools/cc.py"}
