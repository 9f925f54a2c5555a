"""Programs that the kernel attaches to a veth pair: `programs/attached.py` in a namespace of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

SCRIPT = Path(__file__).parent / "programs/attached.py"


def _ask(request: dict[str, Any]) -> subprocess.CompletedProcess[str]:
    command = ["unshare", "--net", sys.executable, str(SCRIPT)]
    return subprocess.run(command, input=json.dumps(request), capture_output=True, text=True, timeout=300, check=False)


@cache
def refusal() -> str | None:
    """The reason why the kernel attaches no program here, or None."""
    if sys.platform != "linux":
        return f"{sys.platform} has no XDP"
    try:
        done = _ask({})
    except OSError as error:
        return str(error)
    lines = done.stderr.strip().splitlines()
    return None if done.returncode == 0 else (lines[-1] if lines else f"status {done.returncode}")


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """The answer of the kernel to a request of `programs/attached.py`."""
    done = _ask(request)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found
