"""Options, fixtures and the profiles of the randomised tests."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from attached import refusal

settings.register_profile("default", deadline=None, derandomize=True)
settings.register_profile("soak", deadline=None, max_examples=2_000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))

PROGRAMS = Path(__file__).parent / "programs"

# The launcher of this environment comes before that of another MPI on the machine.
os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--no-skips", action="store_true", help="fail where a test was skipped")


def pytest_configure() -> None:
    # Tests interrupt runs. A shell makes its background jobs ignore the signal.
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_report_header() -> str | None:
    """Name the tests that the kernel refuses. Each machine runs all others, so these are no skipped tests."""
    reason = refusal()
    return f"not run: XDP programs that the kernel attaches ({reason})" if reason else None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Function]) -> None:
    """Leave out tests that the kernel refuses. Keep tests that share a module fixture in one process, where it is made
    once (`--dist loadgroup`).
    """
    asked = [item for item in items if item.get_closest_marker("kernel")]
    if asked and refusal():
        config.hook.pytest_deselected(items=asked)
        items[:] = [item for item in items if item not in asked]
    if not config.pluginmanager.hasplugin("xdist"):
        return
    for item in items:
        fixtures = item._fixtureinfo.name2fixturedefs.values()
        if any(each[-1].scope == "module" for each in fixtures):
            item.add_marker(pytest.mark.xdist_group(item.nodeid.partition("::")[0]))


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    if not session.config.getoption("--no-skips"):
        return
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter is not None and reporter.stats.get("skipped") and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.fixture(scope="session", autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A cache of this session, shared by its tests and their processes. They must neither find nor leave anything."""
    base = tmp_path_factory.getbasetemp()
    session = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NICETY_CACHE", str(session / "cache"))
        # Whether news is printed depends on the duration of a command.
        patch.setenv("NICETY_NEWS", "0")
        yield


@dataclass(frozen=True)
class Result:
    """The result of a run of the command line."""

    status: int
    stdout: str
    stderr: str

    def json(self) -> Any:
        return json.loads(self.stdout)


@pytest.fixture
def nicety(tmp_path: Path) -> Callable[..., Result]:
    """Run the command line in an empty folder."""

    def run(*arguments: str | Path) -> Result:
        command = [sys.executable, "-m", "nicety", *map(str, arguments)]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False)
        assert "Traceback" not in done.stderr, done.stderr
        return Result(done.returncode, done.stdout, done.stderr)

    return run


@pytest.fixture
def tool() -> Callable[[str], str]:
    """The path of a program for a comparison, or skip the test and name it."""

    def find(name: str) -> str:
        path = shutil.which(name)
        if path is None:
            pytest.skip(f"{name} is not installed")
        return path

    return find
