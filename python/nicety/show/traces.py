"""Timelines of recordings as files."""

from __future__ import annotations

import warnings
from os import PathLike, fspath

from nicety import _native
from nicety.shared.files import write_whole


class RecordingWarning(UserWarning):
    """A warning that a recording or a capture is incomplete."""


def write_trace(recording: _native.Recording, path: str | PathLike[str], *, scale: str = "ns") -> None:
    """Write a recording's timeline to a file. Warns if the recording is incomplete."""
    left_out = recording.left_out()["resources"]
    if left_out:
        text = f"{fspath(path)}: {left_out} uses of resources did not fit the recording, so the timeline lacks its end"
        warnings.warn(text, RecordingWarning, stacklevel=3)
    write_whole(path, recording.timeline(scale))
