"""The growth of CPU time: exponents, and files of results that are compared."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

BENCHES = Path(__file__).parents[1] / "crates/py-ext/benches"


@pytest.fixture
def growth(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(BENCHES))
    import growth

    return growth


def run(script: str, *words: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, BENCHES / script, *words], capture_output=True, text=True, check=False, timeout=300
    )


@pytest.mark.parametrize("exponent", [0.0, 1.0, 1.5, 2.0])
def test_a_power_of_the_count_has_its_exponent(growth: Any, exponent: float) -> None:
    counts = [100, 200, 400, 800]
    assert growth.slope(counts, [3e-4 * count**exponent for count in counts]) == pytest.approx(exponent)


def test_start_up_is_subtracted_and_counts_double(growth: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    ran = []

    def spent(work: Any, count: int, _folder: Path, _names: dict[str, str]) -> Any:
        ran.append(work.command.replace("{n}", str(count)))
        return growth.Used(5.0 + 0.25 * count**2, 6.0, 1)

    monkeypatch.setattr(growth, "used", spent)
    monkeypatch.setattr(growth, "prepare", lambda work, *_: ran.append(work.prepare.replace("{n}", str(work.count))))
    work = growth.Work("work {n}", 0, 8, doublings=2, prepare="prepare {n}")
    rows, exponent = growth.measure("squares", work, tmp_path, 1)
    assert [(row.work, row.cpu_s) for row in rows] == [("squares-8", 21.0), ("squares-16", 69.0), ("squares-32", 261.0)]
    assert exponent == pytest.approx(2.0)
    assert ran[:4] == ["prepare 0", "work 0", "prepare 8", "work 8"]


def test_a_work_is_measured_and_written(tmp_path: Path) -> None:
    # The exponent is the machine's: the status may be 1.
    done = run("growth.py", "capture", "--tries", "1", "--json", tmp_path / "new.json")
    assert done.returncode in (0, 1), done.stderr
    assert done.stdout.startswith("capture ")
    rows = json.loads((tmp_path / "new.json").read_text())["rows"]
    assert [row["work"] for row in rows] == [f"capture-{count}" for count in (5000, 10_000, 20_000, 40_000)]
    assert all(row["cpu_s"] > 0 for row in rows)


def test_a_work_without_a_name_lists_those_there_are() -> None:
    done = run("growth.py", "ranke")
    assert done.returncode == 2
    assert "there is no work ranke; there are messages, sizes, ranks" in done.stderr


def results(file: Path, commit: str, rows: dict[str, float]) -> Path:
    each = [{"work": n, "unit": "command", "program": "nicety", "cpu_s": s, "wall_s": 2 * s} for n, s in rows.items()]
    file.write_text(json.dumps({"commit": commit, "rows": each}))
    return file


def test_results_of_two_commits_are_compared(tmp_path: Path) -> None:
    old = results(tmp_path / "old.json", "abc", {"ranks-64": 2.0, "ranks-128": 4.0})
    new = results(tmp_path / "new.json", "def", {"ranks-64": 0.5, "rules-32": 1.0})
    done = run("results.py", old, new)
    assert done.returncode == 0
    assert "CPU, abc    CPU, def" in done.stdout
    assert [line.split()[2:] for line in done.stdout.splitlines()[1:]] == [
        ["nicety", "2.000", "s", "500.000", "ms", "0.25", "0.25"],
        ["nicety", "4.000", "s", "-", "-", "-"],
        ["nicety", "-", "1.000", "s", "-", "-"],
    ]


@pytest.mark.parametrize("content", [None, "no JSON", "[]", '{"rows": []}'])
def test_a_file_that_has_no_results_is_named(tmp_path: Path, content: str | None) -> None:
    file = tmp_path / "bad.json"
    if content is not None:
        file.write_text(content)
    done = run("results.py", file, file)
    assert done.returncode != 0
    assert done.stderr.startswith(f"{file}: ")
    assert len(done.stderr.splitlines()) == 1


def peak_bytes(act: str) -> int:
    """The peak of resident memory of a process that does this. That of `getrusage` includes the parent's.

    The allocator returns freed pages at once, so that the peak is that of used memory.
    """
    code = f"import nicety; {act}; print(open('/proc/self/status').read())"
    env = os.environ | {"MIMALLOC_PURGE_DELAY": "0"}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300, env=env)
    (peak,) = re.findall(r"^VmHWM:\s+(\d+) kB$", done.stdout, re.MULTILINE)
    return int(peak) * 1024


@pytest.mark.skipif(sys.platform != "linux", reason="the peak of a process is read where Linux tells it")
def test_a_bandwidth_holds_a_message_in_two_memories_and_no_other_copy() -> None:
    bench = (
        "nicety.run_benchmark('bandwidth', nics=['spin-discrete'], modes=['rdma'], window=1, iterations=1, sizes=[{}])"
    )
    sizes = [8 << 20, 40 << 20]
    least, most = (peak_bytes(bench.format(size)) for size in sizes)
    assert most - least < 2.5 * (sizes[1] - sizes[0])


@pytest.mark.skipif(sys.platform != "linux", reason="the peak of a process is read where Linux tells it")
def test_a_packet_of_a_line_rate_check_takes_bounded_memory() -> None:
    source = Path(__file__).parents[1] / "handlers/pspin/empty.c"
    check = f"nicety.check_line_rate({str(source)!r}, nics=['pspin'], packet_sizes=[64], messages={{}})"
    least, most = (peak_bytes(check.format(messages)) for messages in (500, 4000))
    # 64 packets a message.
    assert (most - least) / (3500 * 64) < 480
