"""Programs in C that run on cards: where their sources are, and how they are compiled."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from nicety._checks import names, text

if TYPE_CHECKING:
    from nicety.compiler import Compiled


@dataclass(frozen=True, eq=False)
class Program:
    """A C program for a card, compiled when it is first needed, and kept in the cache."""

    sources: str | PathLike[str] | Sequence[str | PathLike[str]]
    include_dirs: Iterable[str | PathLike[str]] = field(default=(), kw_only=True)
    defines: Iterable[str] = field(default=(), kw_only=True)
    cc: str | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        names(self.sources, "a source", "handlers.c")
        for name, example in (("include_dirs", "headers"), ("defines", "NAME=1")):
            given = names(getattr(self, name), f"each of {name}", example)
            # What is iterated once only is kept so.
            object.__setattr__(self, name, tuple(given))
        if self.cc is not None:
            text(self.cc, "cc", "riscv64-unknown-elf-gcc")

    def compile(self, *, isa: str) -> Compiled:
        """Compile for an instruction set, such as `rv32imac_zicsr`, the `isa` of a card's spec.

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
