"""The profiles of named works: the recorded command, and stacks of samples."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SCRIPT = ROOT / "crates/py-ext/benches/profiles.py"
# Two equal samples and another one, as `perf script` prints them.
SAMPLES = """
python
\t    7f5a1c2d4e10 nicety_exec::run::run+0x1f (/x/_native.abi3.so)
\t    7f5a1c2d4e20 [unknown] (/usr/lib/libpython3.11.so.1.0)

python
\t    7f5a1c2d4e10 nicety_exec::run::run+0x2f (/x/_native.abi3.so)
\t    7f5a1c2d4e20 [unknown] (/usr/lib/libpython3.11.so.1.0)

mpi
\tffffffffa0b0c0d0 futex_wait+0x10 ([kernel.kallsyms])
\t    7f5a1c2d4e30 wait_for_turn+0x4 (/y/libnicety-fi.so)
"""
PERF = f"""#!/bin/sh
case $1 in
record) printf '%s\\n' "$@" >"$WORDS" ;;
script) cat <<'END'
{SAMPLES.strip()}
END
;;
esac
"""


def run(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, SCRIPT, *words],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | environment,
        timeout=120,
    )


def test_works_are_listed_with_their_commands() -> None:
    listed = run().stdout.splitlines()
    assert any(line.startswith("exec-pingpong ") and "nicety exec -n 2" in line for line in listed)


def test_stacks_of_samples_are_folded_and_counted(tmp_path: Path) -> None:
    tools, into = tmp_path / "tools", tmp_path / "into"
    tools.mkdir()
    (tools / "perf").write_text(PERF)
    (tools / "perf").chmod(0o755)
    path = f"{tools}:{os.environ['PATH']}"
    done = run("goal-ring", "--count=1", f"--into={into}", PATH=path, WORDS=str(tmp_path / "words"))
    assert done.returncode == 0, done.stderr
    recorded = (tmp_path / "words").read_text()
    assert "goal run ring-1.goal" in recorded
    assert "--call-graph\n" in recorded
    assert (into / "goal-ring.folded").read_text() == (
        "mpi;wait_for_turn;futex_wait 1\npython;[libpython3.11.so.1.0];nicety_exec::run::run 2\n"
    )
    own = done.stdout.splitlines()[1]
    assert own.split() == ["66.67", "%", "python", "nicety_exec::run::run"]
    assert " 33.33 %  mpi              wait_for_turn" in (into / "goal-ring.txt").read_text()


@pytest.mark.skipif(sys.platform != "linux", reason="perf is Linux's")
def test_without_perf_the_package_is_named(tmp_path: Path) -> None:
    done = run("goal-ring", PATH=str(tmp_path))
    assert done.returncode == 1
    assert "linux-perf" in done.stderr
