"""Programs in C of other projects on handler cores, beside qemu: Csmith's random ones, and CoreMark.

Csmith is a package of Debian, with its headers in /usr/include/csmith. `NICETY_COREMARK` names a copy of
github.com/eembc/coremark.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

HEADERS = Path("/usr/include/csmith")
COREMARK = os.environ.get("NICETY_COREMARK")
CORES = {32: ("rv32imac_zicsr", "spin-discrete"), 64: ("rv64imac_zicsr", "spin-100g-rv64")}
PROGRAMS = 20
"""Random programs of one test that end within `SECONDS`."""
SECONDS = 5

pytestmark = [
    pytest.mark.soak,
    pytest.mark.skipif(sys.platform != "linux", reason="qemu runs programs of Linux"),
    pytest.mark.skipif(shutil.which("qemu-riscv64") is None, reason="no qemu-user"),
]


def in_qemu(bits: int, arguments: list[str | Path], folder: Path) -> subprocess.CompletedProcess[str] | None:
    """Compile a program for Linux in a folder, and run it in qemu; None if it does not end."""
    target = [sys.executable, "-m", "ziglang", "cc", "-target", f"riscv{bits}-linux-musl", "-O2", "-w"]
    subprocess.run([*target, *arguments, "-o", f"qemu-{bits}"], check=True, cwd=folder)
    try:
        words = [f"qemu-riscv{bits}", f"./qemu-{bits}"]
        return subprocess.run(words, capture_output=True, text=True, timeout=SECONDS, check=False, cwd=folder)
    except subprocess.TimeoutExpired:
        return None


@pytest.mark.skipif(not HEADERS.is_dir(), reason="no Csmith")
@pytest.mark.parametrize("bits", CORES)
def test_random_programs_come_to_the_results_of_qemu(bits: int, nicety: Callable, tmp_path: Path) -> None:
    isa, card = CORES[bits]
    compared = 0
    for seed in range(4 * PROGRAMS):
        source = tmp_path / f"random-{seed}.c"
        words = ["csmith", "--seed", str(seed), "--max-funcs", "6", "--no-argc", "--output", str(source)]
        subprocess.run(words, check=True, cwd=tmp_path)
        expected = in_qemu(bits, [source, "-I", HEADERS], tmp_path)
        if expected is None:
            continue
        made = nicety("cc", source, "-I", HEADERS, "--isa", isa, "-o", "random.elf")
        assert made.status == 0, made.stderr
        done = nicety("hpu", "run", "random.elf", "--spec", card, "--json")
        assert (done.json()["exit_code"], done.json()["trap"]) == (expected.returncode, None), seed
        assert re.findall("checksum = .*", done.stderr) == expected.stdout.splitlines(), seed
        compared += 1
        if compared == PROGRAMS:
            return
    pytest.fail(f"only {compared} of {4 * PROGRAMS} programs ended in {SECONDS} s")


@pytest.mark.skipif(COREMARK is None, reason="NICETY_COREMARK names no copy of CoreMark")
@pytest.mark.parametrize("bits", CORES)
def test_coremark_comes_to_the_results_of_qemu(bits: int, nicety: Callable, tmp_path: Path) -> None:
    folder = Path(COREMARK or "")
    isa, card = CORES[bits]
    port = folder / ("simple" if bits == 32 else "posix")
    names = ["core_list_join.c", "core_main.c", "core_matrix.c", "core_state.c", "core_util.c"]
    sources: list[str | Path] = [*(folder / name for name in names), port / "core_portme.c"]
    values = {"PERFORMANCE_RUN": 1, "ITERATIONS": 10, "FLAGS_STR": '"-O2"', "USE_CLOCK": 1, "MEM_METHOD": "MEM_STACK"}
    given = ["-I", folder, "-I", port, *(f"-D{name}={value}" for name, value in values.items())]
    expected = in_qemu(bits, [*sources, *given], tmp_path)
    assert expected is not None
    # 10 s at least make a result valid: a second of 100 000 cycles makes them short.
    made = nicety("cc", *sources, *given, "-DCLOCKS_PER_SEC=100000", "--isa", isa, "-o", "coremark.elf")
    assert made.status == 0, made.stderr
    done = nicety("hpu", "run", "coremark.elf", "--spec", card, "--json")
    checks = re.compile(r"(?:seedcrc|\[0\]crc\w+) *: .*")
    assert len(checks.findall(expected.stdout)) == 5
    assert checks.findall(done.stderr) == checks.findall(expected.stdout)
    assert "Correct operation validated." in done.stderr
