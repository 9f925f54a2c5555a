"""Captures of packets on links, as files for Wireshark and similar tools.

with nicety.Capture("run.pcapng"):
    nicety.Cluster(2, "spin-discrete").run({0: ping, 1: pong})
"""

from __future__ import annotations

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


def check_capture(label: str, path: Path) -> None:
    """Refuse a file that cannot be written, or with an extension of another format.

    Args:
        label: names the file in errors.
        path: the file.

    Raises:
        InputError: the file is refused.
    """
    if path.suffix.lower() != _ENDING:
        raise InputError(f"{label}: a capture's name ends with {_ENDING}, as in {path.stem or 'links'}{_ENDING}")
    check_place(label, path)


class Capture:
    """A pcapng file of the packets of links, in all runs of this thread inside a `with`.

    A run is `Cluster.run`, or one of the runs of a benchmark, a use case or a study. Each run adds its packets to the
    file at its end, also if it fails. Virtual time is the same as without a capture. Packets on a link between a card
    and its own router are excluded.
    """

    def __init__(self, path: str | PathLike[str], *, memory: int | None = None) -> None:
        """Check that the file can be written. The first run makes it, or replaces it.

        Args:
            path: the file, which ends with `.pcapng`.
            memory: bytes of memory for the packets of a run, in equal shares of all its nodes; 1 GiB by default. When a
                node has used its share, its packets are only counted.

        Raises:
            InputError: the file cannot be written, or has another extension.
        """
        self._path = fspath(path)
        check_capture(self._path, Path(path))
        self._capture = _native.Capture(self._path, None if memory is None else whole(memory, "memory"))

    @property
    def left_out(self) -> int:
        """Number of packets so far that did not fit into memory. The file has these numbers, by link."""
        return self._capture.left_out()

    @property
    def packets(self) -> int:
        """Number of packets on links so far, including those that did not fit."""
        return self._capture.packets()

    def __enter__(self) -> Self:
        """Capture the runs of this thread from now on."""
        self._capture.begin()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        """Capture no further runs. Warns if packets did not fit, or there were none."""
        self._capture.end()
        if not self.packets and error is None:
            warnings.warn(f"{self._path}: no packet was on a link", RecordingWarning, stacklevel=2)
        if self.left_out:
            text = f"{self._path}: {self.left_out} packets did not fit the memory for a capture, and are only counted"
            warnings.warn(text, RecordingWarning, stacklevel=2)
