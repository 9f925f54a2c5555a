"""The stubs of the extension module, for type checkers and editors, match the module."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent

# Right, but not visible: Python has no name for the buffer protocol before 3.12, and PyO3 generates `__all__`.
ALLOWED = ("nicety._native.HostMemory.__buffer__", "nicety._native.__all__")


def stubtest(folder: Path) -> subprocess.CompletedProcess[str]:
    (folder / "allowed").write_text("\n".join(ALLOWED))
    options = ["--ignore-unused-allowlist", "--allowlist", str(folder / "allowed")]
    command = [sys.executable, "-m", "mypy.stubtest", "nicety._native", *options]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)


def test_the_stubs_are_those_of_the_extension_module(tmp_path: Path) -> None:
    done = stubtest(tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "in 1 module" in done.stdout


def test_the_package_is_typed_and_so_are_programs(tmp_path: Path) -> None:
    assert (ROOT / "python/nicety/py.typed").exists()
    program = tmp_path / "program.py"
    program.write_text("""
import nicety


async def main(host: nicety.Host) -> float:
    buffer = host.alloc(8)
    received = await host.recv(buffer, source=0)
    reveal_type(received.length_bytes)
    return host.now_ns


run = nicety.Cluster(2, "spin-discrete").run(main)
reveal_type(run.nodes[0].portals.messages_matched)
report = nicety.run_benchmark("latency", nics=["spin-discrete"], sizes=[8])
reveal_type(report["rows"][0]["size_bytes"])
nicety.run_benchmark("speed", nics=["spin-discrete"], sizes=[8])
""")
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file=", "--cache-dir", str(tmp_path), str(program)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False)
    lines = [line for line in done.stdout.splitlines() if line.startswith("program.py")]
    assert len(lines) == 4, done.stdout
    assert all('Revealed type is "int"' in line for line in lines[:3]), done.stdout
    assert "error" in lines[3]
    assert "Literal['speed']" in lines[3]
