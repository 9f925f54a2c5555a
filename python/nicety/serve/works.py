"""Works in processes of their own: started, relayed to the page, and killed."""

from __future__ import annotations

import asyncio
import codecs
import contextlib
import json
import os
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Awaitable, Callable
from typing import Any

from nicety.serve.work.pipe import HEAD, JSON, MOST, frame_head

_COMMAND = (sys.executable, "-m", "nicety.serve.work.worker")
_MOST_OUTPUT = 1 << 16
"""Maximum characters of handlers' output that a page gets of one work."""
_CHUNK = 1 << 14
ENDS = ("result", "failed")
"""Types of the last message of a work."""

Tell = Callable[[dict[str, Any]], Awaitable[None]]
Show = Callable[[bytes], Awaitable[None]]


class Workers:
    """Processes for works. One waits, with its modules loaded, so that the next work begins at once."""

    def __init__(self) -> None:
        self._spare: asyncio.Task[Process] | None = None
        self._ended = False

    def warm(self) -> None:
        """Start the process for the next work, unless there is one."""
        if self._spare is None and not self._ended:
            self._spare = asyncio.create_task(_started())

    async def take(self) -> Process:
        """Return a process that waits for its work."""
        spare, self._spare = self._spare, None
        if spare is not None:
            process = await spare
            if process.returncode is None:
                return process
        return await _started()

    async def end(self) -> None:
        """Kill the process that waits."""
        self._ended = True
        spare, self._spare = self._spare, None
        if spare is not None:
            with contextlib.suppress(OSError):
                await kill(await spare)


async def _started() -> Process:
    # A session of its own: Ctrl-C in the terminal is for the server, and a kill reaches the compiler, too.
    return await asyncio.create_subprocess_exec(*_COMMAND, stdin=PIPE, stdout=PIPE, stderr=PIPE, start_new_session=True)


async def kill(process: Process) -> None:
    """Kill a process and those that it has started, and wait for its end."""
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if hasattr(os, "killpg"):
                os.killpg(process.pid, signal.SIGKILL)
            else:
                process.kill()
    # asyncio sees the end only behind the last byte of each pipe, and a full reader has stopped reading its pipe.
    await asyncio.gather(*(_discard(pipe) for pipe in (process.stdout, process.stderr) if pipe is not None))
    await process.wait()


async def _discard(pipe: asyncio.StreamReader) -> None:
    """Read a pipe to its end."""
    while await pipe.read(_CHUNK):
        pass


async def do(process: Process, request: dict[str, Any], tell: Tell, show: Show) -> None:
    """Do a work in a process, and pass on what it says. When cancelled, kill the process.

    Args:
        process: a process that waits for its work.
        request: the work, as the process reads it.
        tell: takes messages. The last one has a type of `ENDS`.
        show: takes bytes for the page.
    """
    relay = asyncio.create_task(_relay_output(process, tell))
    try:
        end = await _exchange(process, request, tell, show)
        with contextlib.suppress(TimeoutError):
            # Handlers' output is complete before the result.
            await asyncio.wait_for(asyncio.shield(relay), 2)
        await tell(end or _died(await process.wait()))
    finally:
        relay.cancel()
        # A pipe has one reader at a time.
        await asyncio.wait((relay,))
        await kill(process)


async def _exchange(process: Process, request: dict[str, Any], tell: Tell, show: Show) -> dict[str, Any] | None:
    """Send the work, and pass on messages. Return the last one; None if the process died before."""
    stdin, stdout = process.stdin, process.stdout
    if stdin is None or stdout is None:
        return None
    content = json.dumps(request).encode()
    try:
        stdin.write(len(content).to_bytes(4, "little") + JSON + content)
        await stdin.drain()
        while True:
            length, kind = frame_head(await stdout.readexactly(HEAD))
            if length > MOST:
                text = f"the results have more than {MOST >> 20} MiB; send fewer packets, or name fewer cards"
                return {"type": "failed", "error": {"message": text, "kind": "run"}}
            frame = await stdout.readexactly(length)
            if kind != JSON:
                await show(frame)
                continue
            message: dict[str, Any] = json.loads(frame)
            if message["type"] in ENDS:
                return message
            if message["type"] != "ready":
                await tell(message)
    except (asyncio.IncompleteReadError, ConnectionError):
        return None


def _died(status: int) -> dict[str, Any]:
    text = f"the process of this job ended with status {status}; the terminal of nicety serve may have more"
    if status == -signal.SIGKILL:
        text = "the process of this job was killed; it may have lacked memory: send fewer packets"
    return {"type": "failed", "error": {"message": text, "kind": "run"}}


async def _relay_output(process: Process, tell: Tell) -> None:
    """Pass on the lines that handlers print."""
    if process.stderr is None:
        return
    decode = codecs.getincrementaldecoder("utf-8")("replace").decode
    room = _MOST_OUTPUT
    while data := await process.stderr.read(_CHUNK):
        text = decode(data)
        if text and room > 0:
            await tell({"type": "output", "text": text[:room]})
            if len(text) >= room:
                await tell({"type": "output", "text": "\nnicety: further output is left out\n"})
        room -= len(text)
