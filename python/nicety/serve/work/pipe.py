"""Frames on the pipes of a process that does a work: four bytes of length, a byte of kind, and the content."""

from __future__ import annotations

import json
import threading
from typing import Any, BinaryIO

HEAD = 5
"""Bytes in front of a frame's content."""
MOST = 1 << 28
"""Maximum bytes of a frame."""
JSON, BYTES = b"J", b"B"
"""Kinds: a JSON document; bytes for the page."""


class Pipe:
    """Writes frames, from any thread."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._lock = threading.Lock()

    def tell(self, document: dict[str, Any]) -> None:
        """Write a JSON document."""
        self.write(JSON, json.dumps(document, allow_nan=False).encode())

    def write(self, kind: bytes, content: bytes) -> None:
        """Write a frame."""
        with self._lock:
            self._stream.write(len(content).to_bytes(4, "little") + kind)
            self._stream.write(content)
            self._stream.flush()


def frame_head(head: bytes) -> tuple[int, bytes]:
    """Return the length and the kind of a frame, from the bytes in front of its content."""
    return int.from_bytes(head[:4], "little"), head[4:HEAD]


def read_json(stream: BinaryIO) -> Any:
    """Read a frame with a JSON document. None at the end of the stream."""
    head = stream.read(HEAD)
    if len(head) < HEAD:
        return None
    length, _ = frame_head(head)
    content = stream.read(length)
    return json.loads(content) if len(content) == length else None
