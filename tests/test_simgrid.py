"""The comparison with SimGrid: without it, with it, and its compilation."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[1] / "crates/py-ext/benches/simgrid.py"
NONE = (
    "simgrid: not compared with, since the C++ compiler finds no simgrid/s4u.hpp; "
    "on Debian and Ubuntu: apt install g++ libsimgrid-dev\n"
)
QUICK = ["--sizes=8,64Ki", "--rounds=4", "--hosts=3", "--tries=1"]
# A compiler that finds everything, and makes a program that needs a microsecond per message of a ping-pong.
COMPILER = """#!/bin/bash
echo "$@" >> "$0.log"
[[ " $* " == *" -E "* ]] && exit
while [[ $1 != -o ]]; do shift; done
printf '#!/bin/bash\\necho "$@" >> "%s.log"; cp "$1" "%s.xml"; echo 3.32.0 0.000008 0.002\\n' "$0" "$0" > "$2"
chmod +x "$2"
"""


def compared(**environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, SCRIPT, *QUICK],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def table(text: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines() if line.startswith(("ping-pong", "alltoall"))]


def test_without_simgrid_a_line_says_so(tmp_path: Path) -> None:
    for compiler in (str(tmp_path / "none"), "false"):
        run = compared(CXX=compiler)
        assert (run.returncode, run.stdout, run.stderr) == (0, NONE, "")


def test_times_of_simgrid_stand_beside_the_same_schedules(tmp_path: Path) -> None:
    compiler = tmp_path / "compiler"
    compiler.write_text(COMPILER)
    compiler.chmod(0o755)
    run = compared(CXX=str(compiler))
    assert run.returncode == 0, run.stderr
    assert run.stdout.startswith("# SimGrid 3.32.0 (network/model:CM02, ")
    log = Path(f"{compiler}.log").read_text().splitlines()
    assert any("benches/simgrid.cpp -lsimgrid -o " in line for line in log)
    assert any("star-3.xml alltoall 3 4096 1 6.5" in line and "--cfg=network/model:CM02" in line for line in log)
    assert 'radical="0-2" speed="1Gf" bw="50GBps" lat="282ns"' in Path(f"{compiler}.xml").read_text()
    rows = table(run.stdout)
    assert [row[:3] for row in rows] == [
        ["ping-pong", "2", "8"],
        ["ping-pong", "2", "65536"],
        ["alltoall", "3", "4096"],
    ]
    assert [row[3] for row in rows] == ["1.000", "1.000", "8.000"], "of 8 messages, or of one all-to-all"
    # Two overheads, the latency, and 20 ps per byte except the first.
    assert [row[4] for row in rows[:2]] == ["0.694", "2.005"]
    assert [row[6] for row in rows] == ["250.000", "250.000", "333.333"]
    assert all(float(cell) > 0 for row in rows for cell in row[3:])


def test_a_program_that_cannot_be_compiled_is_a_failure(tmp_path: Path) -> None:
    compiler = tmp_path / "compiler"
    compiler.write_text('#!/bin/bash\n[[ " $* " == *" -E "* ]] && exit\necho "no such library" >&2; exit 1\n')
    compiler.chmod(0o755)
    run = compared(CXX=str(compiler))
    assert run.returncode == 1
    assert run.stderr == "no such library\nsimgrid: the program cannot be compiled, as said above\n"


def test_a_message_alone_takes_on_simgrid_what_it_takes_on_loggops() -> None:
    """If this machine has SimGrid; if not, the script must report that with its own compiler."""
    run = compared()
    assert run.returncode == 0, run.stderr
    rows = table(run.stdout)
    if not rows:
        assert run.stdout == NONE
        return
    assert [row[3] for row in rows[:2]] == [row[4] for row in rows[:2]] == ["0.694", "2.005"]
    # LogGOPS occupies the receiver's CPU for the bytes, too.
    assert 0.7 < float(rows[2][3]) < float(rows[2][4])
