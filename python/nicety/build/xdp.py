"""C programs of XDP: `nicety cc --xdp`.

The result is an eBPF object, as Linux loads it: with BTF, which has types and lines. A source includes `xdp.h` of
nicety, or the headers of the kernel and of libbpf.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterable
from pathlib import Path

from nicety import _native
from nicety.build.compiler import checked_folder, checked_macro, checked_source, library_folder, read_symbols
from nicety.build.toolchain import Toolchain, find_toolchain
from nicety.errors import CompileError, InputError
from nicety.shared.typed import checked

_OPTIONS = ("-O2", "-g", "-Wall", "-ffreestanding", "-fno-asynchronous-unwind-tables")

# Clang for a freestanding target calls these, and eBPF has no library. Builtins of a constant size are instructions.
_MEMORY = ("memcpy", "memmove", "memset")


def xdp_flags() -> list[str]:
    """Return options with which clang and clangd find the headers of XDP programs, for a file `compile_flags.txt`."""
    return ["--target=bpf", *_OPTIONS, f"-I{library_folder() / 'include'}"]


@checked
def compile_xdp(
    source: Path | str,
    *,
    output: Path | str,
    include_dirs: Iterable[Path | str] = (),
    defines: Iterable[str] = (),
    cc: str | None = None,
) -> Path:
    """Compile a C source into an eBPF object.

    Args:
        source: a C (`.c`) file.
        output: the file for the object.
        include_dirs: folders to search for headers, before nicety's own.
        defines: macros, `NAME` or `NAME=VALUE`.
        cc: a clang with the target bpf, and arguments for it, instead of the one in the `ziglang` package.

    Returns:
        The object's path.

    Raises:
        CompileError: the compiler refused it, with its messages on stderr.
        InputError: a source, folder, macro or compiler that does not exist or is invalid; a source without a program.
    """
    path = checked_source(Path(source))
    own = [f"-I{checked_folder(Path(folder))}" for folder in include_dirs]
    own += [f"-D{checked_macro(define)}" for define in defines]
    output = Path(output)
    if not output.absolute().parent.is_dir():
        raise InputError(f"{output}: no folder {str(output.parent)!r} to write it in")
    toolchain = find_toolchain(cc)
    headers = ["-I", str(library_folder() / "include")]
    sys.stderr.flush()
    arguments = [*_target(toolchain), *_OPTIONS, *own, *headers, "-c", str(path), "-o", str(output)]
    status = toolchain.start(arguments)
    called = _called(output) if status == 0 else frozenset()
    if builtins := [f"-D{name}=__builtin_{name}" for name in _MEMORY if name in called]:
        # The first run has printed the warnings.
        status = toolchain.start([*arguments, *builtins, "-w"])
    if status != 0:
        raise CompileError(f"{path}: no XDP program; the compiler's messages are above")
    if not _has_program(output):
        output.unlink()
        raise InputError(f'{path}: no program in it; write SEC("xdp") in front of a function that is not static')
    return output


def _has_program(output: Path) -> bool:
    try:
        return _native.xdp_has_program(output.read_bytes())
    except (OSError, InputError):
        # Another kind of file, as of a function's name above.
        return True


def _called(output: Path) -> frozenset[str]:
    """Return the names that an object does not define."""
    try:
        return read_symbols(output.read_bytes()).undefined
    except (OSError, ValueError):
        # Another kind of file, by options of the user: a run of it tells the problem.
        return frozenset()


def _target(toolchain: Toolchain) -> list[str]:
    if toolchain.kind == "zig":
        return ["-target", "bpfel-freestanding"]
    if toolchain.kind == "clang":
        return ["-target", "bpf"]
    raise InputError(f"--cc {shlex.join(toolchain.argv)}: gcc has another target for eBPF; write a clang's name")
