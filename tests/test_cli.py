"""The command line: its output, and its exit status."""

from __future__ import annotations

import ast
import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import typer

from nicety.cli.app import app_for, everything

PROGRAMS = Path(__file__).parent / "programs"


def test_help_is_quick_to_load() -> None:
    own = ("nicety.build.compiler", "nicety.bench.messages", "nicety.program.cluster")
    heavy = ("numpy", "rich", "platformdirs", *own)
    code = f"import sys, nicety.cli.app; nicety.cli.app.everything(); print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("line", "loaded"),
    [
        ([], []),
        (["--version"], []),
        (["goal", "info", "--help"], ["apps.goal"]),
        (["bench", "latency", "--help"], ["bench.commands"]),
        (["cc", "--help"], ["tools.cc"]),
        (["specs", "show", "--help"], ["tools.specs"]),
        (["sweep", "run", "--help"], ["sweep.commands"]),
        (["bnch"], ["apps.execute", "apps.goal", "bench.commands", "tools.cc", "tools.specs"]),
    ],
)
def test_a_line_loads_its_own_commands(line: list[str], loaded: list[str]) -> None:
    code = f"""
import sys
from nicety.cli import main
main({line!r})
parts = ["apps.execute", "apps.goal", "bench.commands", "sweep.commands", "tools.cc", "tools.specs"]
print([part for part in parts if f"nicety.cli.{{part}}" in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    found = set(ast.literal_eval(done.stdout.splitlines()[-1]))
    # The list of all commands is where none of the line's is known.
    assert found == {*loaded, *(["sweep.commands"] if line == ["bnch"] else [])}


def test_a_part_of_the_command_line_is_as_the_whole() -> None:
    def helps(command: Any, path: list[str], context: Any) -> None:
        for name in getattr(command, "commands", {}):
            words = [*path, name]
            whole = command.commands[name]
            part = typer.main.get_command(app_for(words))
            for word in words:
                part = part.commands[word]
            inner = typer.Context(whole, info_name=name, parent=context)
            assert part.get_help(typer.Context(part, info_name=name, parent=context)) == whole.get_help(inner)
            helps(whole, words, inner)

    root: Any = typer.main.get_command(everything())
    shown: Any = typer.main.get_command(app_for(["--help"]))
    assert shown.get_help(typer.Context(shown, info_name="nicety")) == root.get_help(
        typer.Context(root, info_name="nicety")
    )
    helps(root, [], typer.Context(root, info_name="nicety"))


@pytest.mark.parametrize(
    "command", [[], ["specs"], ["specs", "show"], ["cc"], ["hpu", "run"], ["bench"], ["bench", "latency"], ["run"]]
)
def test_help(nicety: Callable, command: list[str]) -> None:
    result = nicety(*command, "--help")
    assert result.status == 0
    assert result.stdout.startswith(f"Usage: {' '.join(['nicety', *command])} [OPTIONS]")
    assert result.stderr == ""


def test_version(nicety: Callable) -> None:
    result = nicety("--version")
    assert result.status == 0
    assert result.stdout.startswith("nicety 0.")


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (["fly"], "fly"),
        (["bench"], "Benchmarks"),
        (["bench", "speed", "--nic", "spin-discrete"], "message-rate"),
        (["bench", "latency"], "--nic"),
        (["bench", "latency", "--nic", "spin-discrete", "--iterations", "0"], "--iterations"),
        (["bench", "latency", "--nic", "spin-discrete", "--iterations", "10000001"], "10000000"),
        (["bench", "latency", "--nic", "spin-discrete", "--warmup", str(2**64)], "64 bits"),
        (["hpu", "run", "x.elf", "--max-cycles", str(2**64)], "--max-cycles"),
        (["bench", "latency", "--nic", "spin-discrete", "--seed", "-1"], "--seed"),
        (["bench", "latency", "--nic", "spin-discrete", "--fast"], "--fast"),
        (["bench", "latency", "--nic", "spin-discrete", "--sizes", "4m"], "4 M is 4000000 B, and 4 Mi is 4194304 B"),
        (["bench", "latency", "--nic", "spin-discrete", "--sizes", "64:8"], "runs downwards; write 8:64"),
        (["bench", "latency", "--nic", "spin-discrete,,x"], "--nic 'spin-discrete,,x': an empty name"),
        (["bench", "latency", "--nic", "spin-discrete", "--mode", ""], "--mode '': an empty name"),
        (["bench", "latency", "--nic", "spin-discrete", "--window", "4"], "--window: not for latency"),
        (["bench", "bandwidth", "--nic", "spin-discrete", "--breakdown"], "--breakdown: not for bandwidth"),
        (["bench", "latency", "--nic", "no-card"], "no-card"),
        (["bench", "latency", "--nic", "spin-discrete", "--mode", "spin-strem"], "spin-strem"),
        (["bench", "latency", "--nic", "spin-discrete", "--set", "hpu.coers=8"], "hpu.coers"),
        (["bench", "latency", "--nic", "spin-discrete", "--set", "nonsense"], "nonsense"),
        (
            ["bench", "latency", "--nic", "spin-discrete", "--mode", "rdma", "--handlers", "mine.c"],
            "mode rdma runs no handlers",
        ),
        (
            ["bench", "latency", "--nic", "spin-discrete", "--mode", "spin-stream", "--handlers", "mine.c"],
            "mine.c: no such file",
        ),
        (["specs", "show", "no-card"], "no-card"),
        (["specs", "show", "spin-discrete", "--set", "hpu.cores=8 ns"], "hpu.cores"),
        (["specs", "check", "gone.toml"], "gone.toml"),
        (["cc"], "FILE.c"),
        (["cc", "gone.c"], "gone.c: no such file"),
        (["hpu", "run", "gone.elf"], "gone.elf: cannot read it (No such file or directory)"),
        (["hpu", "run", "gone.elf", "--max-cycles", "0"], "--max-cycles"),
    ],
)
def test_mistakes_of_the_user(nicety: Callable, command: list[str], message: str) -> None:
    result = nicety(*command)
    assert result.status == 2
    assert message in result.stderr
    assert result.stdout == ""


def test_cc_writes_beside_the_user(nicety: Callable, tmp_path: Path) -> None:
    result = nicety("cc", PROGRAMS / "language.c")
    assert (result.status, result.stdout, result.stderr) == (0, "", "")
    assert (tmp_path / "language.elf").read_bytes()[:4] == b"\x7fELF"


def test_cc_takes_what_a_compiler_takes(nicety: Callable, tmp_path: Path) -> None:
    (tmp_path / "headers").mkdir()
    (tmp_path / "headers" / "value.h").write_text("#define VALUE (BASE + OTHER)\n")
    (tmp_path / "main.c").write_text("#include <value.h>\nint main(void) { return VALUE; }\n")
    result = nicety("cc", "main.c", "-o", "out.elf", "-I", "headers", "-DBASE=40", "-D", "OTHER=2")
    assert (result.status, result.stderr) == (0, "")
    assert nicety("hpu", "run", "out.elf", "--json").json()["exit_code"] == 42


def test_cc_says_what_the_compiler_said(nicety: Callable, tmp_path: Path) -> None:
    (tmp_path / "broken.c").write_text("int payload_handler(void) { return undeclared; }\n")
    result = nicety("cc", "broken.c")
    assert result.status == 2
    assert "broken.c:1:36: error: " in result.stderr
    assert result.stderr.endswith("nicety: broken.c: does not compile; the compiler's messages are above\n")
    assert not (tmp_path / "broken.elf").exists()


def test_cc_does_not_overwrite_its_source(nicety: Callable, tmp_path: Path) -> None:
    (tmp_path / "main.c").write_text("int main(void) { return 0; }\n")
    result = nicety("cc", "main.c", "-o", "main.c")
    assert result.status == 2
    assert "would overwrite an input" in result.stderr
    assert (tmp_path / "main.c").read_text().startswith("int main")


def test_hpu_run(nicety: Callable) -> None:
    assert nicety("cc", PROGRAMS / "language.c", "-o", "p.elf").status == 0
    result = nicety("hpu", "run", "p.elf")
    assert result.status == 1
    assert result.stderr == "nicety: p.elf: it ended with exit code 42\n"
    lines = [line.split() for line in result.stdout.splitlines()]
    assert lines[:2] == [["checked"], ["exit_code", "42"]]
    assert [line[0] for line in lines[2:]] == ["instructions", "cycles", "trap"]

    result = nicety("hpu", "run", "p.elf", "--json")
    assert result.status == 1
    report = result.json()
    assert (report["exit_code"], report["trap"]) == (42, None)
    assert 0 < report["instructions"] <= report["cycles"]
    assert result.stderr == "checked\nnicety: p.elf: it ended with exit code 42\n"


def test_hpu_run_to_a_limit(nicety: Callable, tmp_path: Path) -> None:
    (tmp_path / "loop.c").write_text('int main(void) { for (;;) __asm__ volatile(""); }\n')
    assert nicety("cc", "loop.c").status == 0
    result = nicety("hpu", "run", "loop.elf", "--max-cycles", "1000", "--json")
    assert result.status == 1
    report = result.json()
    assert report["exit_code"] is None
    assert report["trap"] in result.stderr
    assert "loop.c:1" in report["trap"]


def test_hpu_run_to_a_trap(nicety: Callable, tmp_path: Path) -> None:
    (tmp_path / "wild.c").write_text("int main(void) {\n    *(volatile int *)0x40000000 = 1;\n    return 0;\n}\n")
    assert nicety("cc", "wild.c").status == 0
    result = nicety("hpu", "run", "wild.elf")
    assert result.status == 1
    assert "wild.c:2" in result.stderr
    assert "main" in result.stderr


def test_hpu_run_from_another_symbol(nicety: Callable, tmp_path: Path) -> None:
    (tmp_path / "other.s").write_text(
        ".globl _start, other\n_start: li a0, 1\nj end\nother: li a0, 2\nend: li a7, 93\necall\n"
    )
    assert nicety("cc", "other.s").status == 0
    assert nicety("hpu", "run", "other.elf", "--json").json()["exit_code"] == 1
    assert nicety("hpu", "run", "other.elf", "--json", "--entry", "other").json()["exit_code"] == 2
    result = nicety("hpu", "run", "other.elf", "--entry", "nowhere")
    assert result.status == 2
    assert "nowhere" in result.stderr


@pytest.mark.parametrize("content", [b"", b"#!/bin/sh\n", b"\x7fELF\x02\x01\x01" + bytes(60)])
def test_hpu_run_of_something_else(nicety: Callable, tmp_path: Path, content: bytes) -> None:
    (tmp_path / "odd.elf").write_bytes(content)
    result = nicety("hpu", "run", "odd.elf")
    assert result.status == 2
    assert result.stderr.startswith("nicety: odd.elf: ")


def test_specs(nicety: Callable) -> None:
    lines = nicety("specs").stdout.splitlines()
    assert [line.split()[0] for line in lines] == sorted(line.split()[0] for line in lines)
    names = [spec["name"] for spec in nicety("specs", "--json").json()]
    assert names == [line.split()[0] for line in lines]
    assert {"spin-discrete", "spin-integrated"} <= set(names)


def test_specs_show(nicety: Callable) -> None:
    spec = nicety("specs", "show", "spin-discrete", "--json").json()
    assert spec["name"] == "spin-discrete"
    assert spec["hash"]
    text = nicety("specs", "show", "spin-discrete").stdout
    for parameter in spec["parameters"]:
        assert parameter["source"], f"{parameter['key']} has no source"
        assert parameter["key"] in text
    changed = nicety("specs", "show", "spin-discrete", "--set", "hpu.cores=8", "--json").json()
    assert changed["hash"] != spec["hash"]
    (cores,) = [p for p in changed["parameters"] if p["key"] == "hpu.cores"]
    assert (str(cores["value"]), cores["kind"]) == ("8", "override")


def test_specs_check(nicety: Callable, tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text('extends = "spin-discrete"\n[hpu]\ncores = 8\n')
    result = nicety("specs", "check", "mine.toml")
    assert (result.status, result.stdout, result.stderr) == (0, "mine.toml: ok\n", "")
    (tmp_path / "wrong.toml").write_text('extends = "spin-discrete"\n[hpu]\ncoers = 8\n')
    result = nicety("specs", "check", "wrong.toml")
    assert (result.status, result.stdout) == (2, "")
    assert "wrong.toml:3" in result.stderr
    assert "cores" in result.stderr


def test_stdout_that_is_closed_early() -> None:
    command = f"{sys.executable} -m nicety specs show spin-discrete | head -n 1"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("what", ["bench", "bare program", "handler"])
def test_ctrl_c(what: str, nicety: Callable, tmp_path: Path) -> None:
    latency = ["bench", "latency", "--nic", "spin-discrete", "--sizes", "8"]
    (tmp_path / "main.c").write_text("int main(void) { for (volatile int i = 0;; i++) ; }")
    (tmp_path / "loop.c").write_text("""#include <nicety.h>
__handler int payload_handler(const ptl_payload_t p, void *state) { for (volatile int i = 0;; i++) ; }""")
    assert nicety("cc", "main.c", "-o", "main.elf").status == 0
    arguments = {
        "bench": [*latency, "--mode", "rdma", "--iterations", "10000000"],
        "bare program": ["hpu", "run", str(tmp_path / "main.elf"), "--max-cycles", "1000000000000"],
        "handler": [*latency, "--handlers", str(tmp_path / "loop.c"), "--set", "hpu.cycle_limit=1000000000000"],
    }[what]
    begins = "import sys; from nicety.cli import main; print('begun', flush=True); sys.exit(main())"
    command = [sys.executable, "-c", begins, *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "begun\n"
        time.sleep(2)
        assert process.poll() is None, "it ended before it could be interrupted"
        process.send_signal(signal.SIGINT)
        stdout, stderr = process.communicate(timeout=20)
    assert process.returncode == 130
    assert (stdout, stderr) == ("", "nicety: interrupted\n")


def test_json_is_one_document(nicety: Callable) -> None:
    result = nicety("bench", "latency", "--nic", "spin-discrete", "--mode", "rdma", "--sizes", "8", "--json")
    assert (result.status, result.stderr) == (0, "")
    assert json.loads(result.stdout)["benchmark"] == "latency"


@pytest.mark.parametrize(
    ("command", "meant"),
    [(["bnech"], "bench"), (["bench", "latncy"], "latency"), (["SPECS"], "specs"), (["specs", "shwo"], "show")],
)
def test_a_misspelt_command_gets_a_suggestion(nicety: Callable, command: list[str], meant: str) -> None:
    result = nicety(*command)
    assert result.status == 2
    assert f"has no command '{command[-1]}'; it has " in result.stderr
    assert f"; did you mean {meant}?" in result.stderr


def test_a_command_like_no_other_gets_none(nicety: Callable) -> None:
    assert "did you mean" not in nicety("zzz").stderr


def test_shells_complete_commands_and_options(nicety: Callable, monkeypatch: pytest.MonkeyPatch) -> None:
    # The shell in question is the one that runs it: `exit` keeps it there.
    in_bash = ["bash", "-c", f"{sys.executable} -m nicety --show-completion; exit $?"]
    script = subprocess.run(in_bash, capture_output=True, text=True, check=True)
    assert "_NICETY_COMPLETE=complete_bash" in script.stdout
    assert "--install-completion" in nicety("--help").stdout
    # The script's request when Tab is pressed.
    monkeypatch.setenv("_NICETY_COMPLETE", "complete_bash")
    for words, wanted in (
        ("nicety be", "bench"),
        ("nicety bench mess", "message-rate"),
        ("nicety run --nod", "--nodes"),
    ):
        monkeypatch.setenv("COMP_WORDS", words)
        monkeypatch.setenv("COMP_CWORD", str(len(words.split()) - 1))
        assert wanted in nicety().stdout.split()
