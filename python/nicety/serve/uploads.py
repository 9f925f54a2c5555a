"""Captures that pages upload: temporary files with their first packets, deleted when the server ends."""

from __future__ import annotations

import re
import secrets
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nicety import _native
from nicety.errors import InputError
from nicety.serve.fields import Refused
from nicety.serve.work.headers import summary

MOST_KEPT_BYTES = 1 << 26
"""Maximum bytes of an upload that are kept; the rest is read and dropped."""
MOST_BYTES = 1 << 34
"""Maximum bytes of an upload."""
MOST_PACKETS = 1_000_000
"""Maximum number of packets that are read of an upload."""
MOST_PACKET_BYTES = 1 << 30
"""Maximum bytes of these packets, also of a compressed capture."""
MOST_UPLOADS = 8
"""Maximum number of uploads that a server keeps."""
_SHOWN = 20
"""Packets that the page gets at once."""
_ETHERNET = 1
_NAME = re.compile(r"[^A-Za-z0-9_.-]")


class TooLarge(InputError):
    """An upload that is larger than a server reads."""


@dataclass
class Upload:
    """A capture of a page.

    Attributes:
        path: its file.
        name: its name on the user's machine, without a folder.
        size_bytes: its size there.
        kept_bytes: bytes in the file.
        packets: packets that a run uses.
        is_complete: whether these are all packets.
        described: the description for the page.
        users: works that use it now.
    """

    path: Path
    name: str
    size_bytes: int
    kept_bytes: int
    packets: int = 0
    is_complete: bool = True
    described: dict[str, Any] = field(default_factory=dict)
    users: int = 0


class Uploads:
    """The captures of one server."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._kept: dict[str, Upload] = {}

    def get(self, key: str, place: str) -> Upload:
        """Return an upload.

        Raises:
            Refused: there is none of this key.
        """
        if key not in self._kept:
            raise Refused(place, "this capture is not on the server; upload it again")
        return self._kept[key]

    async def receive(self, name: str, chunks: AsyncIterator[bytes]) -> Upload:
        """Write a capture to a temporary file.

        Args:
            name: its name on the user's machine.
            chunks: its bytes.

        Raises:
            TooLarge: it has more bytes than a server reads.
        """
        self._make_room()
        shown = _NAME.sub("_", name.replace("\\", "/").rpartition("/")[2])[-80:] or "capture.pcap"
        path = self._folder / f"{secrets.token_hex(8)}.capture"
        size = kept = 0
        try:
            with path.open("wb") as out:
                async for chunk in chunks:
                    part = chunk[: MOST_KEPT_BYTES - kept]
                    out.write(part)
                    size, kept = size + len(chunk), kept + len(part)
                    _check_size(shown, size)
        except BaseException:
            path.unlink(missing_ok=True)
            raise
        return Upload(path, shown, size, kept)

    def add(self, upload: Upload) -> dict[str, Any]:
        """Read the packets of an upload, keep it, and return its description for the page.

        Raises:
            InputError: it is no capture, or damaged.
        """
        try:
            described = _read(upload)
        except InputError:
            upload.path.unlink(missing_ok=True)
            raise
        key = secrets.token_hex(8)
        upload.described = {"upload": key, **described}
        self._kept[key] = upload
        return upload.described

    def _make_room(self) -> None:
        """Forget the oldest upload without a work, if there are as many as the server keeps."""
        while len(self._kept) >= MOST_UPLOADS:
            oldest = next((key for key, upload in self._kept.items() if not upload.users), None)
            if oldest is None:
                raise InputError(f"{MOST_UPLOADS} captures are in use; wait until a job has ended")
            self._kept.pop(oldest).path.unlink(missing_ok=True)


def _check_size(name: str, size: int) -> None:
    if size > MOST_BYTES:
        raise TooLarge(f"{name}: has more than {MOST_BYTES >> 30} GiB; upload a part of it")


def _read(upload: Upload) -> dict[str, Any]:
    """Count the packets of an upload, and return its description."""
    whole = upload.kept_bytes == upload.size_bytes
    first: list[dict[str, Any]] = []
    begin = end = None
    packets = total = 0
    complete = whole
    try:
        for link, time_ps, length, data in _native.CapturedPackets(str(upload.path)):
            total += len(data)
            if packets == MOST_PACKETS or total > MOST_PACKET_BYTES:
                complete = False
                break
            packets += 1
            if time_ps is not None:
                begin = time_ps if begin is None else begin
                end = time_ps
            if len(first) < _SHOWN:
                time_ns = 0.0 if time_ps is None or begin is None else (time_ps - begin) / 1000
                words = summary(data) if link == _ETHERNET else f"link type {link}"
                first.append({"number": packets - 1, "time_ns": time_ns, "size_bytes": length, "summary": words})
    except InputError as error:
        # The end of the kept bytes may cut a packet, which is not damage.
        if whole or packets == 0:
            raise InputError(f"{upload.name}: {error}") from error
    if packets == 0:
        raise InputError(f"{upload.name}: the capture has no packets; upload one with packets")
    upload.packets, upload.is_complete = packets, complete
    note = None
    if not complete:
        of = f"{upload.size_bytes / 1e6:.1f} MB" if not whole else "the capture"
        note = f"Runs use the first {packets} packets of {of}; an upload has at most {MOST_KEPT_BYTES >> 20} MiB"
        note += f" and {MOST_PACKETS} packets."
    return {
        "name": upload.name,
        "size_bytes": upload.size_bytes,
        "kept_bytes": upload.kept_bytes,
        "packets": packets,
        "first_packets": first,
        "duration_ns": 0.0 if begin is None or end is None else (end - begin) / 1000,
        "truncated": not complete,
        "note": note,
    }
