"""The folder of compiled handlers that nicety keeps between runs. A file's contents are checked before use.

A crash of the machine may truncate a cached file or fill it with zeros, so each file's name is a digest of its content.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from pathlib import Path

from nicety.errors import InputError
from nicety.shared.files import write_whole


def cache_dir() -> Path:
    """The cache folder: `NICETY_CACHE` if it is set, otherwise the platform's cache folder."""
    named = os.environ.get("NICETY_CACHE")
    if named:
        return Path(named).expanduser().absolute()
    import platformdirs

    return Path(platformdirs.user_cache_dir("nicety", appauthor=False))


def make_dir(path: Path) -> Path:
    """Make the folder `path` of the cache, and return `path`.

    Raises:
        InputError: the folder cannot be made.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            f"{path}: cannot make this cache folder ({error.strerror}); set NICETY_CACHE to a folder that you can write"
        ) from error
    return path


def keep(folder: Path, content: bytes, ending: str) -> Path:
    """Write content to a file in a folder of the cache, and return that file. The file's name is the content's digest.

    Raises:
        InputError: the file cannot be written.
    """
    path = make_dir(folder) / f"{digest([content])}{ending}"
    write_whole(path, content, safe=False)
    return path


def kept(path: Path) -> bytes | None:
    """Return the contents that `keep` wrote to a file, or None if the file is missing or damaged."""
    try:
        content = path.read_bytes()
    except OSError:
        return None
    return content if path.stem == digest([content]) else None


def find(folder: Path, ending: str) -> Path | None:
    """Find an undamaged file that `keep` has made in a folder."""
    return next((path for path in sorted(folder.glob(f"*{ending}")) if kept(path) is not None), None)


def digest(parts: Iterable[str | bytes]) -> str:
    """Return a name for a sequence of texts: 32 hexadecimal digits that differ if any of the texts differs."""
    total = hashlib.sha256()
    for part in parts:
        data = part.encode(errors="surrogateescape") if isinstance(part, str) else part
        total.update(len(data).to_bytes(8, "little"))
        total.update(data)
    return total.hexdigest()[:32]
