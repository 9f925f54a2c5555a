"""A page's WebSocket: requests, works and their messages. All works end with the page."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
import time
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING, Any

from nicety import _native
from nicety._generated.types import LineRateOptions
from nicety.errors import InputError
from nicety.serve.cards import Cards
from nicety.serve.commands import command_of
from nicety.serve.fields import Fields, Refused, document, error_body
from nicety.serve.inputs import Input, Start, read_id, read_start
from nicety.serve.programs import Placed, Programs
from nicety.serve.uploads import Uploads
from nicety.serve.work.headers import layers
from nicety.serve.work.job import Job
from nicety.serve.works import Workers, do
from nicety.shared.cards import show as show_card
from nicety.shared.options import request_text

if TYPE_CHECKING:
    from starlette.websockets import WebSocket

MOST_WORKS = 4
"""Maximum number of works of a page at once."""
MOST_MESSAGE_BYTES = 1 << 20
"""Maximum bytes of a message of the page."""
_KEPT = 32
"""Number of works, the latest ones, that answer questions about packets."""
_MOST_PACKET = (1 << 20) - 1
"""Maximum number of a packet. Its bytes come from a repetition of the traffic up to it, which nothing interrupts."""


class Bench:
    """The parts of one server that its pages share."""

    def __init__(self, programs: Programs, cards: Cards, uploads: Uploads) -> None:
        self.programs, self.cards, self.uploads = programs, cards, uploads
        self.workers = Workers()
        self.connections: set[Connection] = set()

    async def end(self, reason: str) -> None:
        """Tell all pages that the server ends, and end their works."""
        for connection in list(self.connections):
            await connection.end(reason)
        await self.workers.end()


class Connection:
    """One page."""

    def __init__(self, bench: Bench, socket: WebSocket) -> None:
        self._bench, self._socket = bench, socket
        self._works: dict[str, asyncio.Task[None]] = {}
        self._answers: set[asyncio.Task[None]] = set()
        self._inputs: OrderedDict[str, Input] = OrderedDict()
        self._lock = asyncio.Lock()
        self._open = True

    async def run(self) -> None:
        """Take messages until the page goes away."""
        from starlette.websockets import WebSocketDisconnect

        await self._socket.accept()
        self._bench.connections.add(self)
        try:
            while True:
                await self._take(await self._socket.receive_text())
        except (WebSocketDisconnect, KeyError, RuntimeError):
            # A message of bytes has no text. Starlette has no error of its own for a socket that is closed.
            pass
        finally:
            self._bench.connections.discard(self)
            self._open = False
            await self._cancel_all()
            with contextlib.suppress(Exception):
                await self._socket.close(1008)

    async def end(self, reason: str) -> None:
        """Tell the page that the server ends, and close the connection."""
        await self._tell({"type": "closing", "reason": reason})
        self._open = False
        await self._cancel_all()
        with contextlib.suppress(Exception):
            await self._socket.close(1001, reason)

    async def _cancel_all(self) -> None:
        tasks = [*self._works.values(), *self._answers]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _tell(self, message: Mapping[str, Any]) -> None:
        await self._send(text=json.dumps(message, allow_nan=False))

    async def _send(self, *, text: str = "", content: bytes | None = None) -> None:
        async with self._lock:
            if not self._open:
                return
            try:
                if content is None:
                    await self._socket.send_text(text)
                else:
                    await self._socket.send_bytes(content)
            except Exception:
                # The page is gone; `run` ends, too.
                self._open = False

    async def _take(self, text: str) -> None:
        """Act on a message. An invalid one is answered with an error."""
        name: str | None = None
        try:
            fields = Fields(document(text))
            kind = fields.word("type", ("start", "cancel", "packet"))
            if isinstance(given := fields.peek("id"), str):
                name = given[:64]
            if kind == "start":
                self._start(read_start(fields, self._bench.cards, self._bench.uploads))
                # The work begins before the next message, which may cancel it: a task that has not begun has no end.
                await asyncio.sleep(0)
            elif kind == "cancel":
                name = read_id(fields)
                fields.end()
                self._cancel(name)
            else:
                self._answer(fields)
        except InputError as error:
            await self._tell({"type": "failed", "id": name, "error": error_body(error)})

    def _start(self, start: Start) -> None:
        if start.id in self._works:
            raise Refused("id", "a job of this name is running; choose another name")
        if len(self._works) >= MOST_WORKS:
            raise Refused("", f"{MOST_WORKS} jobs are running; wait for one, or cancel it")
        placed = self._bench.programs.place(start.input.program)
        task = asyncio.create_task(self._work(start, placed))
        self._works[start.id] = task
        self._inputs[start.id] = start.input
        while len(self._inputs) > _KEPT:
            self._inputs.popitem(last=False)

    def _forget(self, name: str, task: asyncio.Task[None] | None) -> None:
        # The page may have started another work of this name meanwhile.
        if self._works.get(name) is task:
            self._works.pop(name, None)

    def _cancel(self, name: str) -> None:
        if name not in self._works:
            raise Refused("id", "no job of this name is running")
        self._works[name].cancel()

    async def _work(self, start: Start, placed: Placed) -> None:
        """Do a work, and tell the page."""
        began = time.monotonic()
        upload = start.input.upload
        forget = partial(self._forget, start.id, asyncio.current_task())

        async def tell(message: dict[str, Any]) -> None:
            if (trace := message.pop("trace", None)) is not None:
                sys.stderr.write(trace)
            if message["type"] != "output":
                message["elapsed_ms"] = round(1000 * (time.monotonic() - began), 1)
            if message["type"] in ("result", "failed"):
                # The page may start another work as soon as it has this message.
                forget()
            await self._tell({"id": start.id, **message})

        if upload is not None:
            upload.users += 1
        try:
            job = self._job(start, placed)
            await self._tell({"type": "accepted", "id": start.id, "command": job.command})
            request = {"job": asdict(job), "paths": self._paths(start, placed)}
            process = await self._bench.workers.take()
            await do(process, request, tell, lambda content: self._send(content=content))
        except asyncio.CancelledError:
            forget()
            await self._tell({"type": "cancelled", "id": start.id})
        except OSError as error:
            text = f"cannot start a process for this job ({error.strerror})"
            await tell({"type": "failed", "error": {"message": text, "kind": "run"}})
        finally:
            forget()
            if upload is not None:
                upload.users -= 1
            self._bench.workers.warm()

    def _job(self, start: Start, placed: Placed) -> Job:
        return Job(
            id=start.id,
            action=start.action,
            source=str(placed.path),
            name=placed.name,
            folders=[str(folder) for folder in placed.folders],
            is_edited=placed.is_edited,
            names=start.input.names,
            defines=start.input.defines,
            given={**start.input.arguments(), **start.more},
            command=command_of(start, placed),
        )

    def _paths(self, start: Start, placed: Placed) -> list[tuple[str, str]]:
        """Return the paths that the page does not see, with the names in their place."""
        upload = start.input.upload
        own = [] if upload is None else [(str(upload.path), upload.name)]
        return [*own, *self._bench.programs.paths(placed)]

    def _answer(self, fields: Fields) -> None:
        """Answer a question about a packet, without a delay of other messages."""
        name, work = read_id(fields), read_id(fields, "work")
        number = fields.whole("number", 0, _MOST_PACKET)
        fields.end()
        if work not in self._inputs:
            raise Refused("work", "the server no longer has the packets of this job; run it again")
        if len(self._answers) >= MOST_WORKS:
            raise Refused("", f"{MOST_WORKS} packets are being made; wait for one")
        task = asyncio.create_task(self._packet(name, work, number))
        self._answers.add(task)
        task.add_done_callback(self._answers.discard)

    async def _packet(self, name: str, work: str, number: int) -> None:
        request = self._inputs[work]
        try:
            found = await asyncio.to_thread(packet, request, number)
            await self._tell({"type": "packet", "id": name, "work": work, "number": number, **found})
        except InputError as error:
            upload = request.upload
            text = str(error) if upload is None else str(error).replace(str(upload.path), upload.name)
            await self._tell({"type": "failed", "id": name, "error": {"message": text, "kind": "input"}})


def packet(request: Input, number: int) -> dict[str, Any]:
    """Return a packet of a work for the page: its bytes and headers.

    Packets of several ports are numbered in turn: packet n of port p is n times the ports, plus p.

    Raises:
        InputError: there is no such packet.
    """
    given = request.arguments()
    if "traffic" not in given:
        note = (
            "The page shows bytes of traffic from a form, an expression or a capture. Equal packets have no bytes to "
            "show."
        )
        return {"size_bytes": 0, "bytes_hex": "", "layers": [], "note": note}
    names = {key: request.names.get(key) for key in ("header", "payload", "completion")}
    given["nics"] = given["nics"][:1]
    sequence, port = divmod(number, len(given["traffic"]))
    frame = _native.line_rate_frame(request_text(LineRateOptions, given, names=names), port, sequence)
    if frame is None:
        raise InputError(f"packet {number}: the traffic ends before it")
    # A card with PsPIN's interface gives its handlers IP packets with fields in the byte order of its cores.
    values = {value["key"]: value["value"] for value in show_card(given["nics"][0])["parameters"]}
    is_frame = values.get("hpu.interface") != "pspin"
    return {
        "size_bytes": len(frame),
        "bytes_hex": frame.hex(),
        "layers": layers(frame, "Ethernet" if is_frame else None),
        "note": None if is_frame else "The card gives its handlers IP packets in the byte order of its cores.",
    }
