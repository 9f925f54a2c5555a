"""The folder where nicety keeps compiled handlers between runs, and what is in it, checked before it is used.

A crash of the machine may leave any file there cut short or full of zeros, so the name of each says what it has to be.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from pathlib import Path

from nicety.errors import InputError
from nicety.shared.files import write_whole


def cache_dir() -> Path:
    """The cache folder: `NICETY_CACHE` where it is set, the platform's folder for caches otherwise."""
    named = os.environ.get("NICETY_CACHE")
    if named:
        return Path(named).expanduser().absolute()
    import platformdirs

    return Path(platformdirs.user_cache_dir("nicety", appauthor=False))


def make_dir(path: Path) -> Path:
    """Make a folder of the cache, and return it.

    Raises:
        InputError: it cannot be made.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            f"{path}: cannot make this cache folder ({error.strerror}); set NICETY_CACHE to a folder that you can write"
        ) from error
    return path


def keep(folder: Path, content: bytes, ending: str) -> Path:
    """Keep content in a folder of the cache, in a file that its digest names; return that.

    Raises:
        InputError: it cannot be written.
    """
    path = make_dir(folder) / f"{digest([content])}{ending}"
    write_whole(path, content, safe=False)
    return path


def kept(path: Path) -> bytes | None:
    """The contents that `keep` put into a file, unless it is gone or damaged."""
    try:
        content = path.read_bytes()
    except OSError:
        return None
    return content if path.stem == digest([content]) else None


def find(folder: Path, ending: str) -> Path | None:
    """A file that `keep` has made in a folder, and that is still what it was."""
    return next((path for path in sorted(folder.glob(f"*{ending}")) if kept(path) is not None), None)


def digest(parts: Iterable[str | bytes]) -> str:
    """A name for a sequence of texts: 32 hexadecimal digits that differ where any part does."""
    total = hashlib.sha256()
    for part in parts:
        data = part.encode(errors="surrogateescape") if isinstance(part, str) else part
        total.update(len(data).to_bytes(8, "little"))
        total.update(data)
    return total.hexdigest()[:32]
