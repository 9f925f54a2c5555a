"""The folder where nicety keeps compiled handlers between runs, and files written to it whole or not at all."""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
from collections.abc import Iterable
from pathlib import Path

from nicety.errors import InputError


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


def write_whole(path: Path, content: bytes, mode: int = 0o644) -> None:
    """Write a file so that other processes see all of it or the one before.

    Raises:
        InputError: it cannot be written.
    """
    try:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(content)
            Path(name).chmod(mode)
            Path(name).replace(path)
        except BaseException:
            with contextlib.suppress(OSError):
                Path(name).unlink()
            raise
    except OSError as error:
        raise InputError(f"{path}: cannot write it ({error.strerror})") from error


def digest(parts: Iterable[str | bytes]) -> str:
    """A name for a sequence of texts: 32 hexadecimal digits that differ where any part does."""
    total = hashlib.sha256()
    for part in parts:
        data = part.encode(errors="surrogateescape") if isinstance(part, str) else part
        total.update(len(data).to_bytes(8, "little"))
        total.update(data)
    return total.hexdigest()[:32]
