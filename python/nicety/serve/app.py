"""The routes of the workbench, and the guard in front of them."""

from __future__ import annotations

import asyncio
import hmac
import re
from collections.abc import Iterable
from importlib.resources import files
from typing import Any
from urllib.parse import parse_qs

from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from starlette.websockets import WebSocket

from nicety import _native
from nicety.errors import InputError
from nicety.serve.cards import MOST_CARDS
from nicety.serve.commands import card_command
from nicety.serve.connection import MOST_MESSAGE_BYTES, MOST_WORKS, Bench, Connection
from nicety.serve.fields import Fields, Refused, document, error_body
from nicety.serve.programs import MOST_BYTES, library_program
from nicety.serve.uploads import MOST_KEPT_BYTES, MOST_PACKETS, MOST_UPLOADS, TooLarge

_TYPES = {
    "html": "text/html; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "svg": "image/svg+xml",
    "txt": "text/plain; charset=utf-8",
}
_ASSET = re.compile(r"/[A-Za-z0-9_-]+\.(?P<kind>html|js|css|svg|txt)")
_HEADERS = {
    # Editors make style elements, and bars have widths; scripts are files of this server alone.
    "content-security-policy": (
        "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; object-src 'none'"
    ),
    "cache-control": "no-store",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
}
_PORT_OF_HTTP = 80
"""Browsers leave this port out of the names of host and origin."""
_TIMELINE_EVENTS = 1 << 20


class Guard:
    """Refuses requests of other sites, and those without the token.

    A page of another site can reach a server on the loopback interface by its address, or by a name that resolves to
    it. So the names of host and origin are checked, and only the printed address has the token.
    """

    def __init__(self, app: ASGIApp, port: int, token: str) -> None:
        self._app, self._token = app, token.encode()
        self._hosts = {f"{name}:{port}" for name in ("127.0.0.1", "localhost")}
        if port == _PORT_OF_HTTP:
            self._hosts |= {"127.0.0.1", "localhost"}
        self._origins = {f"http://{host}" for host in self._hosts}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        why = self._refusal(scope)
        if why is None:
            await self._app(scope, receive, _with_headers(send))
        elif scope["type"] == "websocket":
            # Before it is accepted, a closed WebSocket is answered with status 403.
            await send({"type": "websocket.close", "code": 1008})
        else:
            answer = JSONResponse({"error": {"message": why, "kind": "input"}}, status_code=403)
            await answer(scope, receive, _with_headers(send))

    def _refusal(self, scope: Scope) -> str | None:
        """Return the reason for a refusal; None if the request is allowed."""
        hosts = _values(scope, b"host")
        if len(hosts) != 1 or hosts[0] not in self._hosts:
            return "this host is not the workbench's; open the printed address"
        origins = _values(scope, b"origin")
        if any(origin not in self._origins for origin in origins):
            return "a page of another site must not use the workbench"
        if is_static(scope) or self._has_token(scope):
            return None
        return "the token is missing or wrong; open the printed address"

    def _has_token(self, scope: Scope) -> bool:
        given = _values(scope, b"x-nicety-token")
        given += parse_qs(scope["query_string"].decode("latin-1")).get("token", [])
        # Each comparison takes the same time, so that none tells how much of a wrong token is right.
        return any(hmac.compare_digest(value.encode(errors="surrogateescape"), self._token) for value in given)


def is_static(scope: Scope) -> bool:
    """Return whether a request is for a file of the page, or for the page's address by a code."""
    path: str = scope["path"]
    if scope["type"] != "http" or scope["method"] not in ("GET", "HEAD"):
        return False
    return path == "/" or path.startswith("/open/") or _ASSET.fullmatch(path) is not None


def _values(scope: Scope, name: bytes) -> list[str]:
    return [value.decode("latin-1") for key, value in scope["headers"] if key == name]


def _with_headers(send: Send) -> Send:
    async def sent(message: Message) -> None:
        if message["type"] == "http.response.start":
            given: Iterable[tuple[bytes, bytes]] = message.get("headers", [])
            added = [(name.encode(), value.encode()) for name, value in _HEADERS.items()]
            message = {**message, "headers": [*given, *added]}
        await send(message)

    return sent


class Site:
    """The routes."""

    def __init__(self, bench: Bench, token: str, code: str) -> None:
        self._bench, self._token = bench, token
        self._code: str | None = code

    def app(self, port: int) -> ASGIApp:
        """Return the application for a server at a port."""
        routes = [
            Route("/api/state", self._state),
            Route("/api/program", self._program, methods=["POST"]),
            Route("/api/card", self._card, methods=["POST"]),
            Route("/api/uploads", self._upload, methods=["POST"]),
            Route("/open/{code}", self._open),
            Route("/{name:path}", self._asset),
            WebSocketRoute("/ws", self._socket),
        ]
        handlers: dict[Any, Any] = {InputError: _refused, Exception: _broken}
        return Guard(Starlette(routes=routes, exception_handlers=handlers), port, self._token)

    async def _asset(self, request: Request) -> Response:
        path = "/index.html" if request.url.path == "/" else request.url.path
        found = _ASSET.fullmatch(path)
        file = files("nicety.serve").joinpath("assets", path[1:])
        if found is None or not file.is_file():
            return JSONResponse({"error": {"message": f"{path}: no such file", "kind": "input"}}, status_code=404)
        return Response(file.read_bytes(), media_type=_TYPES[found["kind"]])

    async def _open(self, request: Request) -> Response:
        """Lead a browser to the page's address. The browser's command line has only a code, which is valid once."""
        given = request.path_params["code"].encode(errors="surrogateescape")
        if self._code is None or not hmac.compare_digest(given, self._code.encode()):
            return RedirectResponse("/", status_code=303)
        self._code = None
        return RedirectResponse(f"/?token={self._token}", status_code=303)

    async def _state(self, _request: Request) -> Response:
        return JSONResponse(await asyncio.to_thread(self._described))

    def _described(self) -> dict[str, Any]:
        bench = self._bench
        return {
            "version": _native.version(),
            **bench.programs.state(),
            "cards": bench.cards.state(),
            "nics": bench.cards.opened,
            "limits": {
                "works_per_connection": MOST_WORKS,
                "message_bytes": MOST_MESSAGE_BYTES,
                "program_bytes": MOST_BYTES,
                "cards_per_request": MOST_CARDS,
                "upload_bytes": MOST_KEPT_BYTES,
                "capture_packets": MOST_PACKETS,
                "timeline_events": _TIMELINE_EVENTS,
                "uploads": MOST_UPLOADS,
            },
        }

    async def _program(self, request: Request) -> Response:
        fields = Fields(document(await _body(request)))
        name = fields.text("name", 100)
        fields.end()
        return JSONResponse(library_program(name))

    async def _card(self, request: Request) -> Response:
        name, changes = self._bench.cards.card(Fields(document(await _body(request))))
        card = self._bench.cards.described(name, changes)
        return JSONResponse({**card, "command": card_command(name, changes)})

    async def _upload(self, request: Request) -> Response:
        name = request.query_params.get("name", "capture.pcap")
        try:
            upload = await self._bench.uploads.receive(name, request.stream())
        except ClientDisconnect:
            # Nobody reads the answer.
            return Response(status_code=400)
        return JSONResponse(await asyncio.to_thread(self._bench.uploads.add, upload))

    async def _socket(self, socket: WebSocket) -> None:
        await Connection(self._bench, socket).run()


async def _body(request: Request) -> bytes:
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > MOST_MESSAGE_BYTES:
            raise TooLarge(f"a request has at most {MOST_MESSAGE_BYTES} bytes")
    return body


async def _broken(_request: Request, error: Exception) -> Response:
    # A fault of nicety: Starlette raises it again, and the terminal gets the traceback.
    text = f"internal error: {type(error).__name__}; the terminal of nicety serve has more"
    return JSONResponse({"error": {"message": text, "kind": "run"}}, status_code=500)


async def _refused(_request: Request, error: Exception) -> Response:
    status = 413 if isinstance(error, TooLarge) else 400
    shown = error if isinstance(error, InputError) else Refused("", str(error))
    return JSONResponse({"error": error_body(shown)}, status_code=status)
