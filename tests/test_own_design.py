"""A card design that nicety does not know, in a separate extension module."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SPEC = ROOT / "examples/ring/ring.toml"
COMMAND = "import sys; import own_design; from nicety.cli import main; sys.exit(main())"

# The module is built once.
pytestmark = pytest.mark.xdist_group("own design")


@pytest.fixture(scope="module")
def command(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., subprocess.CompletedProcess[str]]:
    """The command line of a Python that has imported the extension module; it runs in a folder with a program."""
    folder = tmp_path_factory.mktemp("own")
    # Like the extension module itself, so that common parts are compiled once.
    maturin = [Path(sys.executable).parent / "maturin", "build", "--profile", "tree", "--locked", "--quiet"]
    maturin += ["--interpreter", sys.executable]
    manifest = ROOT / "crates/py-ext/tests/own_design/Cargo.toml"
    subprocess.run([*maturin, "--manifest-path", manifest, "--out", folder], check=True)
    with zipfile.ZipFile(next(folder.glob("*.whl"))) as wheel:
        wheel.extractall(folder / "modules")

    def run(*arguments: str, code: str = COMMAND) -> subprocess.CompletedProcess[str]:
        environment = os.environ | {"PYTHONPATH": f"{folder / 'modules'}{os.pathsep}{ROOT / 'python'}"}
        done = [sys.executable, "-c", code, *arguments]
        return subprocess.run(done, cwd=folder, env=environment, capture_output=True, text=True, check=False)

    readme = (ROOT / "README.md").read_text()
    (folder / "hello.py").write_text(readme.split('```python title="first.py"\n', 1)[1].split("```", 1)[0])
    return run


def test_the_readmes_program_runs_on_it(command: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    done = command("run", "hello.py", "--nic", str(SPEC))
    assert done.returncode == 0, done.stderr
    rows = [line.split() for line in done.stdout.splitlines() if line.startswith("ring")]
    assert [(rank, rounds) for _, rank, _, rounds, _ in rows] == [("0", "10"), ("1", "10")]
    # Another card than that of the cluster in the program itself.
    assert rows[0][4] == rows[1][4]
    assert f"took {rows[0][4]} ns" not in done.stdout


def test_commands_know_it(command: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path) -> None:
    timeline = tmp_path / "timeline.pftrace"
    latency = ["bench", "latency", "--nic", f"{SPEC},spin-discrete", "--sizes", "8", "--breakdown", "--json"]
    done = command(*latency, "--trace", str(timeline))
    assert (done.returncode, done.stderr) == (0, "")
    rows = {row["nic"]: row for row in json.loads(done.stdout)["rows"]}
    own = {stage["stage"]: stage["ns"] for stage in rows["ring"]["stages"]}
    assert list(own) == ["copy", "post", "bus", "dma set-up", "fetch", "link", "deposit", "notice"]
    assert (own["bus"], own["link"], sum(own.values())) == (250.0, 33.88, pytest.approx(1255.323))
    assert rows["spin-discrete"]["latency_ns"] == 693.685
    assert timeline.stat().st_size > 0

    shown = command("specs", "show", str(SPEC))
    assert (shown.returncode, shown.stderr) == (0, "")
    assert f"ring.buffers         32         user     {SPEC}:40" in shown.stdout
    wrong = command("run", "hello.py", "--nic", str(SPEC), "--set", "ring.buffers=0")
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert "ring.buffers" in wrong.stderr


def test_it_comes_before_nicety(command: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    done = command(code="import nicety.cli.app, nicety._native, own_design")
    assert "ImportError: nicety was imported before; import the extension module with designs of its own" in done.stderr
