"""The server of the workbench: a socket on the loopback interface, until Ctrl-C."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import socket
import sys
import tempfile
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

import uvicorn

from nicety.errors import InputError
from nicety.serve.app import Site
from nicety.serve.cards import Cards
from nicety.serve.connection import MOST_MESSAGE_BYTES, Bench
from nicety.serve.programs import Programs
from nicety.serve.uploads import Uploads

_ADDRESS = "127.0.0.1"
_GRACE_S = 2
"""Seconds for open requests when the server ends."""
_MOST_REQUESTS = 64


class _Server(uvicorn.Server):
    """Tells the pages before it closes their connections."""

    bench: Bench

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.bench.workers.warm()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        await self.bench.end("nicety serve has ended")
        await super().shutdown(sockets)


def serve(
    file: Path | None, nics: Sequence[str], port: int, told: Callable[[str], None], *, opens: bool = True
) -> None:
    """Serve the workbench until Ctrl-C.

    Args:
        file: a C file to open.
        nics: cards to begin with: names, or paths of spec files.
        port: the port; 0 for any free one.
        told: called with the page's address.
        opens: whether to open the page in a browser.

    Raises:
        InputError: the file or a card is invalid, or the port is in use.
    """
    with tempfile.TemporaryDirectory(prefix="nicety-serve-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        programs = Programs(file, _made(folder / "programs"))
        bench = Bench(programs, Cards(nics), Uploads(_made(folder / "uploads")))
        token, code = secrets.token_urlsafe(32), secrets.token_urlsafe(32)
        with _bound(port) as listening:
            chosen = listening.getsockname()[1]
            config = uvicorn.Config(
                Site(bench, token, code).app(chosen),
                log_config=None,
                access_log=False,
                lifespan="off",
                server_header=False,
                proxy_headers=False,
                ws="websockets-sansio",
                ws_max_size=MOST_MESSAGE_BYTES,
                ws_per_message_deflate=False,
                limit_concurrency=_MOST_REQUESTS,
                timeout_graceful_shutdown=_GRACE_S,
            )
            server = _Server(config)
            server.bench = bench
            told(f"http://{_ADDRESS}:{chosen}/?token={token}")
            if opens:
                _open(f"http://{_ADDRESS}:{chosen}/open/{code}")
            # After Ctrl-C uvicorn ends its work, and then raises the interrupt again.
            with contextlib.suppress(KeyboardInterrupt):
                server.run(sockets=[listening])


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder


def _bound(port: int) -> socket.socket:
    """Return a socket that listens at a port of the loopback interface."""
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    if os.name == "posix":
        # A server that has just ended leaves connections that wait.
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((_ADDRESS, port))
        listening.listen()
    except OSError as error:
        listening.close()
        if error.errno == errno.EADDRINUSE:
            text = "another program listens at it; name another port, or write --port 0 for any free one"
        else:
            text = f"cannot listen at it ({error.strerror}); write --port 0 for any free one"
        raise InputError(f"--port {port}: {text}") from error
    listening.setblocking(False)
    return listening


def _open(address: str) -> None:
    """Open a page in the user's browser, if there is a screen for one."""
    screen = sys.platform in ("darwin", "win32") or os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    if screen:
        import webbrowser

        threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()
