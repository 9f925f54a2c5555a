"""The folder of a sweep: a file for each point that has run. A file is written completely or not at all."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NotRequired, TypedDict, cast

from nicety.errors import InputError
from nicety.shared.files import check_folder, write_whole


class Outcome(TypedDict):
    """The result of a point.

    Attributes:
        status: `done` or `failed`.
        result: the result in the form for JSON. A failed point has one if its report is complete.
        error: the error of a failed point.
        notes: the text that the run printed on stderr.
        elapsed_s: wall-clock time of the run in seconds.
    """

    status: str
    result: NotRequired[Any]
    error: NotRequired[str]
    notes: NotRequired[str]
    elapsed_s: float


_ABOUT = "sweep.json"
_CHECKSUM = "checksum"


class Damaged(InputError):
    """An error about a file in the folder that is not as a sweep wrote it."""


def _text(document: Mapping[str, Any]) -> str:
    """Return a document as a file's text. The text ends with the checksum of the document."""
    return json.dumps({**document, _CHECKSUM: _checksum(document)}, indent=1, ensure_ascii=False)


def _checksum(document: Mapping[str, Any]) -> str:
    """Return the SHA-256 of a document without its checksum, as hexadecimal digits."""
    return hashlib.sha256(json.dumps(document, indent=1, ensure_ascii=False).encode(errors="replace")).hexdigest()


def _read(path: Path, *names: str) -> dict[str, Any]:
    """Read the document in a file, and check that it has the fields `names`.

    Raises:
        FileNotFoundError: the file or its folder does not exist.
        Damaged: the file cannot be read, or has been changed.
    """
    try:
        found = json.loads(path.read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        raise
    except OSError as error:
        raise Damaged(f"{path}: cannot read it ({error.strerror})") from error
    except (ValueError, RecursionError) as error:
        raise Damaged(f"{path}: damaged: the file is not JSON") from error
    if not isinstance(found, dict) or not found.keys() >= {*names}:
        raise Damaged(f"{path}: nicety sweep did not write this file")
    if _CHECKSUM not in found:
        raise Damaged(f"{path}: damaged: there is no checksum")
    if found.pop(_CHECKSUM) != _checksum(found):
        raise Damaged(f"{path}: damaged: the checksum does not match the contents")
    return found


class Store:
    """A folder with the outcome of each point under the point's key.

    Attributes:
        folder: the path of the folder.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def begin(self, about: Mapping[str, Any]) -> None:
        """Make the folder, and write the description of the sweep there.

        Raises:
            InputError: the folder cannot be made or written, or it has other contents.
        """
        try:
            if self.folder.is_dir() and not (self.folder / _ABOUT).exists() and any(self.folder.iterdir()):
                raise InputError(f"{self.folder}: this folder holds no sweep; name another folder, or an empty one")
            (self.folder / "points").mkdir(parents=True, exist_ok=True)
            check_folder(self.folder)
        except OSError as error:
            raise InputError(f"{self.folder}: no sweep can be written there ({error.strerror})") from error
        write_whole(self.folder / _ABOUT, _text(about).encode())

    def about(self) -> dict[str, Any]:
        """Return the description of the sweep.

        Raises:
            InputError: there is no description, or it is damaged.
        """
        path = self.folder / _ABOUT
        try:
            return _read(path, "nicety", "run", "options", "points")
        except (FileNotFoundError, NotADirectoryError) as error:
            raise InputError(f"{self.folder}: there is no sweep; name a folder that nicety sweep made") from error
        except Damaged as error:
            raise InputError(f"{error}; run the sweep again with this folder to rewrite the file") from error

    def outcome(self, key: str) -> Outcome | None:
        """Return the outcome of a point, or None if the point has not run.

        Raises:
            Damaged: the point's file has been changed.
        """
        path = self.folder / "points" / f"{key}.json"
        try:
            found = _read(path, "key", "status")
        except (FileNotFoundError, NotADirectoryError):
            return None
        if found.get("key") != key or found.get("status") not in {"done", "failed"}:
            raise Damaged(f"{path}: damaged: the file describes another point")
        return cast(Outcome, found)

    def keep(self, key: str, values: Mapping[str, object], outcome: Outcome) -> None:
        """Write the outcome of a point."""
        text = _text({"key": key, "values": values, **outcome})
        write_whole(self.folder / "points" / f"{key}.json", text.encode(errors="replace"), safe=False)
