"""Handlers in C, ready to be attached to match entries."""

from __future__ import annotations

from dataclasses import dataclass

from nicety._checks import text
from nicety._program import Program


@dataclass(frozen=True, eq=False)
class Handlers(Program):
    """A C program with handlers: `Handlers("f.c", payload="my_payload_handler")`.

    Compiled when it is first attached, for the card it is attached to, and kept in the cache.

    Attributes:
        sources: the C file, or several, by their paths from the folder that the program runs in.
        header: its header handler, where that is not called `header_handler`.
        payload: its payload handler, where that is not called `payload_handler`.
        completion: its completion handler, where that is not called `completion_handler`.
        include_dirs: further folders for `#include`.
        defines: macros, `NAME` or `NAME=VALUE`.
        cc: a compiler to use instead of the one in the `ziglang` package.
    """

    header: str | None = None
    payload: str | None = None
    completion: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("header", "payload", "completion"):
            if (called := getattr(self, name)) is not None:
                text(called, name, f"my_{name}_handler")
