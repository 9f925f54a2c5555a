"""Processes of the workbench's works: their end."""

from __future__ import annotations

import asyncio
import sys
from asyncio.subprocess import PIPE
from typing import Any

import pytest

from nicety.serve.works import do

PARTS = """
import sys
part = bytes(1 << 16)
for _ in range(64):
    sys.stdout.buffer.write(len(part).to_bytes(4, "little") + b"B" + part)
sys.stderr.write("said\\n" * (1 << 16))
sys.stdin.read()
"""
"""A work that sends more bytes, in both pipes, than the pipes and their readers hold."""


async def cancelled() -> bool:
    """Cancel a work while the page takes a part of its results; return whether the work has ended."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", PARTS, stdin=PIPE, stdout=PIPE, stderr=PIPE, start_new_session=True
    )
    shown = asyncio.Event()

    async def tell(_: dict[str, Any]) -> None:
        await asyncio.Event().wait()

    async def show(_: bytes) -> None:
        shown.set()
        await asyncio.Event().wait()

    work = asyncio.create_task(do(process, {}, tell, show))
    await shown.wait()
    # The readers fill, and stop.
    await asyncio.sleep(0.2)
    work.cancel()
    done, _ = await asyncio.wait((work,), timeout=60)
    if not done:
        # A second cancellation ends the wait for the process.
        work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
    return bool(done) and process.returncode is not None


def test_a_work_ends_when_cancelled_with_full_pipes() -> None:
    assert asyncio.run(cancelled())
