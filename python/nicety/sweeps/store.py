"""The folder of a sweep: a file for each point that has run, written whole or not at all."""

from __future__ import annotations

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
        result: what ran there, as in JSON; a failed point has it where its report is whole all the same.
        error: of a failed point.
        notes: what was said on stderr.
        elapsed_s: time on the wall.
    """

    status: str
    result: NotRequired[Any]
    error: NotRequired[str]
    notes: NotRequired[str]
    elapsed_s: float


_ABOUT = "sweep.json"


class Store:
    """A folder of outcomes by their points' keys.

    Attributes:
        folder: where it is.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def begin(self, about: Mapping[str, Any]) -> None:
        """Make the folder, and write there what the sweep is.

        Raises:
            InputError: it cannot be made or written, or it is there and holds something else.
        """
        try:
            if self.folder.is_dir() and not (self.folder / _ABOUT).exists() and any(self.folder.iterdir()):
                raise InputError(f"{self.folder}: this folder holds no sweep; name another one, or an empty one")
            (self.folder / "points").mkdir(parents=True, exist_ok=True)
            check_folder(self.folder)
        except OSError as error:
            raise InputError(f"{self.folder}: no sweep can be written there ({error.strerror})") from error
        write_whole(self.folder / _ABOUT, (json.dumps(about, indent=2, ensure_ascii=False) + "\n").encode())

    def about(self) -> dict[str, Any]:
        """What the sweep is.

        Raises:
            InputError: there is none.
        """
        try:
            found = json.loads((self.folder / _ABOUT).read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise InputError(f"{self.folder}: there is no sweep; name a folder that nicety sweep made") from error
        if not isinstance(found, dict) or not {"run", "options", "points"} <= found.keys():
            raise InputError(f"{self.folder / _ABOUT}: this was not written by nicety sweep")
        return found

    def outcome(self, key: str) -> Outcome | None:
        """The outcome of a point that has run; None where there is none, or a file that is no outcome."""
        try:
            found = json.loads((self.folder / "points" / f"{key}.json").read_bytes())
        except (OSError, ValueError):
            return None
        whole = isinstance(found, dict) and found.get("key") == key and found.get("status") in {"done", "failed"}
        return cast(Outcome, found) if whole else None

    def keep(self, key: str, values: Mapping[str, object], outcome: Outcome) -> None:
        """Write the outcome of a point."""
        text = json.dumps({"key": key, "values": values, **outcome}, indent=1, ensure_ascii=False)
        write_whole(self.folder / "points" / f"{key}.json", text.encode(), safe=False)
