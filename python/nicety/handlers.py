"""Handlers in C, ready to be attached to match entries."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nicety.compiler import Compiled


@dataclass(frozen=True, eq=False)
class Handlers:
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

    sources: str | PathLike[str] | Sequence[str | PathLike[str]]
    header: str | None = None
    payload: str | None = None
    completion: str | None = None
    include_dirs: Iterable[str | PathLike[str]] = field(default=(), kw_only=True)
    defines: Iterable[str] = field(default=(), kw_only=True)
    cc: str | None = field(default=None, kw_only=True)

    def compile(self, *, isa: str) -> Compiled:
        """Compile for an instruction set, such as `rv32imac_zicsr`.

        Raises:
            CompileError: where the compiler refuses it; its messages have gone to stderr.
        """
        from nicety.compiler import compile_handlers

        return compile_handlers(
            self.paths(),
            include_dirs=[Path(folder) for folder in self.include_dirs],
            defines=self.defines,
            cc=self.cc,
            isa=isa,
        )

    def paths(self) -> list[Path]:
        """The source files."""
        given = [self.sources] if isinstance(self.sources, str | PathLike) else self.sources
        return [Path(source) for source in given]
