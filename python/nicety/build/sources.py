"""C programs for cards: the places of their sources, and their compilation."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from nicety.shared.checks import names, text

if TYPE_CHECKING:
    from nicety.build.compiler import Compiled
    from nicety.build.toolchain import Interface


@dataclass(frozen=True, eq=False)
class Program:
    """A C program for a card, compiled on first use, and kept in the cache."""

    sources: str | PathLike[str] | Sequence[str | PathLike[str]]
    include_dirs: Iterable[str | PathLike[str]] = field(default=(), kw_only=True)
    defines: Iterable[str] = field(default=(), kw_only=True)
    cc: str | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        names(self.sources, "a source", "handlers.c")
        for name, example in (("include_dirs", "headers"), ("defines", "NAME=1")):
            given = names(getattr(self, name), f"each of {name}", example)
            # An iterator can be read only once, so its items are kept in a tuple.
            object.__setattr__(self, name, tuple(given))
        if self.cc is not None:
            text(self.cc, "cc", "riscv64-unknown-elf-gcc")

    def compile(self, *, isa: str, interface: Interface = "nicety") -> Compiled:
        """Compile for an instruction set, such as `rv32imac_zicsr`, and for an interface of handlers (`hpu.interface`).

        Raises:
            CompileError: the compiler refused the program; its messages went to stderr.
        """
        from nicety.build.compiler import compile_handlers

        return compile_handlers(
            self.paths(),
            include_dirs=[Path(folder) for folder in self.include_dirs],
            defines=self.defines,
            cc=self.cc,
            isa=isa,
            interface=interface,
        )

    def paths(self) -> list[Path]:
        """Return the source files."""
        given = [self.sources] if isinstance(self.sources, str | PathLike) else self.sources
        return [Path(source) for source in given]


@dataclass(frozen=True, eq=False)
class Handlers(Program):
    """A C program with handlers: `Handlers("f.c", payload="my_payload_handler")`.

    The program is compiled for a card when it is first attached to that card, and kept in the cache.

    Attributes:
        sources: the C file, or several. Relative paths start at the working folder of this process.
        header: the name of the header handler, if it is not `header_handler`.
        payload: the name of the payload handler, if it is not `payload_handler`.
        completion: the name of the completion handler, if it is not `completion_handler`.
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


@dataclass(frozen=True, eq=False)
class Processes(Program):
    """A C program with processes: `Processes("worker.c")`.

    The program is compiled for a card when its first process is started on that card, and kept in the cache.

    Attributes:
        sources: the C file, or several. Relative paths start at the working folder of this process.
        include_dirs: further folders for `#include`.
        defines: macros, `NAME` or `NAME=VALUE`.
        cc: a compiler to use instead of the one in the `ziglang` package.
    """
