"""Files that are written completely or not at all: into a temporary file in the same folder, which is then renamed."""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
from collections.abc import Iterator
from os import PathLike, fspath
from pathlib import Path

from nicety.errors import InputError

_ANY_MODE = 0o666
"""The permissions of a new file before the user's umask."""


def write_whole(path: str | PathLike[str], content: bytes, *, mode: int | None = None, safe: bool = True) -> None:
    """Write a file so that readers see either all of its previous content or all of its new content.

    A pipe or a device is written directly.

    Args:
        path: the file. If it is a link, the link's target is written.
        content: the file's new bytes.
        mode: the permissions before the user's umask. The default is the permissions of the previous file, if any.
        safe: whether the content is on the disk before the file gets its name, so that it survives a crash of the
            machine. A file that is checked before use does not need this.

    Raises:
        InputError: the file cannot be written.
    """
    try:
        _write(Path(path).resolve(), content, mode, safe=safe)
    except OSError as error:
        raise InputError(f"{fspath(path)}: cannot write it ({error.strerror or error})") from error
    except (ValueError, RuntimeError) as error:  # a zero byte in the name, links in a circle
        raise InputError(f"{fspath(path)!r}: cannot write it ({error})") from error


def check_place(label: str, path: Path) -> None:
    """Raise an error if a file cannot be written.

    Args:
        label: the name of the file in error messages.
        path: the file.

    Raises:
        InputError: the path is a folder or `-`, its folder is missing, or it is not writable.
    """
    folder = path.parent
    if path == Path("-"):
        raise InputError(f"{label}: write the name of a file; --json prints all results to stdout")
    if path.is_dir():
        raise InputError(f"{label}: this is a folder; name a file in it")
    if not folder.is_dir():
        raise InputError(f"{label}: there is no folder {folder}; make it first")
    if not os.access(path if path.exists() else folder, os.W_OK):
        raise InputError(f"{label}: it is not writable; name a file elsewhere")


def check_folder(folder: Path) -> None:
    """Test whether files can be made in a folder. No file is left there.

    Raises:
        OSError: no file can be made there.
    """
    handle, name = _beside(folder / "nothing", _ANY_MODE)
    os.close(handle)
    name.unlink()


def _write(path: Path, content: bytes, mode: int | None, *, safe: bool) -> None:
    before = _status(path)
    if before is not None and not stat.S_ISREG(before.st_mode):
        path.write_bytes(content)
        return
    try:
        handle, name = _beside(path, _ANY_MODE if mode is None else mode)
    except PermissionError:
        # The folder accepts no new file, but the existing file may be writable.
        if before is None:
            raise
        path.write_bytes(content)
        return
    with _removed(name), os.fdopen(handle, "wb") as file:
        file.write(content)
        file.flush()
        if before is not None and mode is None:
            with contextlib.suppress(OSError):
                name.chmod(stat.S_IMODE(before.st_mode))
        if safe:
            os.fsync(file.fileno())
    with _removed(name):
        name.replace(path)


def _status(path: Path) -> os.stat_result | None:
    try:
        return path.stat()
    except FileNotFoundError:
        return None


def _beside(path: Path, mode: int) -> tuple[int, Path]:
    """Make a temporary file in the folder of `path`, and return its descriptor and its path."""
    name = path.parent / f".nicety-{secrets.token_hex(8)}"
    flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)
    return os.open(name, flags, mode), name


@contextlib.contextmanager
def _removed(name: Path) -> Iterator[None]:
    """Remove the temporary file if the block raises an error."""
    try:
        yield
    except BaseException:
        with contextlib.suppress(OSError):
            name.unlink()
        raise


PICTURES = (".svg", ".png", ".pdf")
"""File extensions of pictures."""
