"""Captures of packets on links, as files for Wireshark and similar tools.

with nicety.Capture("run.pcapng"):
    nicety.Cluster(2, "spin-discrete").run({0: ping, 1: pong})
"""

from __future__ import annotations

import threading
import warnings
from os import PathLike, fspath
from pathlib import Path
from types import TracebackType
from typing import Self

from nicety import _native
from nicety.errors import InputError
from nicety.shared.checks import whole
from nicety.shared.files import check_place
from nicety.show.traces import RecordingWarning

_ENDING = ".pcapng"


class _Active(threading.local):
    """The captures in a `with` block of this thread, the innermost last."""

    def __init__(self) -> None:
        self.paths: list[str] = []


_active = _Active()


def active_capture() -> str | None:
    """Return the file of this thread's capture, or None without one."""
    return _active.paths[-1] if _active.paths else None


def check_capture(label: str, path: Path) -> None:
    """Raise an error if a capture cannot be written to a file, or if the file's extension is wrong.

    Args:
        label: the name of the file in error messages.
        path: the file.

    Raises:
        InputError: the file cannot be written, or has another extension than `.pcapng`.
    """
    if path.suffix.lower() != _ENDING:
        raise InputError(f"{label}: a capture's name ends with {_ENDING}, as in {path.stem or 'links'}{_ENDING}")
    check_place(label, path)


class Capture:
    """A pcapng file of the packets on links, for all runs of this thread inside a `with` block.

    A run is `Cluster.run`, or one of the runs of a benchmark, a use case or a study. At its end, each run appends its
    packets to the file, even if the run fails. A capture does not change virtual time. Packets on a link between a card
    and its own router are excluded.
    """

    def __init__(self, path: str | PathLike[str], *, memory: int | None = None) -> None:
        """Check that the file can be written. The first run makes it, or replaces it.

        Args:
            path: the file. Its name ends with `.pcapng`.
            memory: bytes of memory for the packets of a run, in equal shares for all nodes; 1 GiB by default. When a
                node has used its share, its further packets are only counted.

        Raises:
            InputError: the file cannot be written, or has another extension.
        """
        self._path = fspath(path)
        check_capture(self._path, Path(path))
        self._capture = _native.Capture(self._path, None if memory is None else whole(memory, "memory"))

    @property
    def left_out(self) -> int:
        """Number of packets so far that did not fit into memory. The file has this number for each link."""
        return self._capture.left_out()

    @property
    def packets(self) -> int:
        """Number of packets on links so far, including those that did not fit into memory."""
        return self._capture.packets()

    def __enter__(self) -> Self:
        """Start to capture the runs of this thread."""
        self._capture.begin()
        _active.paths.append(self._path)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        """Stop capturing. Warns if packets did not fit into memory, or if no packet was on a link."""
        self._capture.end()
        _active.paths.remove(self._path)
        if not self.packets and error is None:
            warnings.warn(f"{self._path}: no packet was on a link", RecordingWarning, stacklevel=2)
        if self.left_out:
            text = f"{self._path}: {self.left_out} packets did not fit the memory for a capture, and are only counted"
            warnings.warn(text, RecordingWarning, stacklevel=2)
