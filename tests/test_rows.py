"""The table of works beside other programs: its figures, its file, and the comparison of two files."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

BENCHES = Path(__file__).parents[1] / "crates/py-ext/benches"


def run(script: str, *words: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, BENCHES / script, *words],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | environment,
        timeout=120,
    )


def test_a_work_is_measured_beside_the_build_of_before(tmp_path: Path) -> None:
    file = tmp_path / "now.json"
    done = run("rows.py", "help", "--tries=1", f"--before={sys.executable}", f"--json={file}")
    assert done.returncode == 0, done.stderr
    document = json.loads(file.read_text())
    rows = document["rows"]
    assert [(row["work"], row["unit"], row["program"]) for row in rows] == [
        ("help", "command", "nicety"),
        ("help", "command", "before"),
    ]
    assert all(row["cpu_s"] > 0 and row["wall_s"] > 0 for row in rows)
    assert len(document["probes"]) == 2
    assert any(line.split()[:3] == ["help", "command", "nicety"] for line in done.stdout.splitlines())


def test_an_absent_peer_is_named_and_the_others_are_measured(tmp_path: Path) -> None:
    done = run("rows.py", "goal-loggops", "--tries=1", f"--peers={tmp_path}", f"--json={tmp_path / 'now.json'}")
    assert done.returncode == 0, done.stderr
    assert f"# goal-loggops: no LogGOPSim: no LogGOPSim in PATH, and none in {tmp_path}" in done.stdout
    (row,) = json.loads((tmp_path / "now.json").read_text())["rows"]
    # Less than the work as a whole, and more than nothing: its unit is a message.
    assert (row["unit"], row["program"]) == ("message", "nicety")
    assert 0 < row["cpu_s"] < 1e-3


def test_a_peer_in_the_users_folder_takes_turns(tmp_path: Path) -> None:
    # It prints the output that the work reads, and takes no time.
    booksim = tmp_path / "booksim2" / "src" / "booksim"
    booksim.parent.mkdir(parents=True)
    booksim.write_text("#!/bin/sh\ngrep -q 'k = 4; n = 3' $1 && echo Accepted packet rate average = 0.25\n")
    booksim.chmod(0o755)
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); from pathlib import Path; import peers, measure\n"
        "work = peers.work_of(peers.PEERS['booksim-64'], Path(sys.argv[2])); folder = Path(sys.argv[2])\n"
        "names = {'python': sys.executable}; measure.prepare(work, folder, names)\n"
        "print(measure.used(work, work.small, folder, names).units)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, BENCHES, tmp_path], capture_output=True, text=True, check=False, timeout=60
    )
    # 64 nodes, 2000 cycles, 3 links and so 4 routers for a mean packet.
    assert done.stdout.strip() == str(64 * 2000 * 0.25 * 4), done.stderr


def test_wrong_input_is_named() -> None:
    unknown = run("rows.py", "hepl")
    assert unknown.returncode == 2
    assert "no work is called hepl; there are exec-pingpong" in unknown.stderr
    assert "commits of target/bench with this name" in run("results.py", "no-such-commit", "other").stderr
