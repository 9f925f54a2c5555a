"""C programs of hosts with Portals: `nicety cc --host`.

Such a program runs natively on this machine. It includes `portals4.h`; `portals4_spin.h` gives it handlers, and
`nicety_exec.h` its rank. It is linked with `libportals`, which `nicety exec` loads into its processes.
"""

from __future__ import annotations

import shlex
import shutil
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from nicety import _native
from nicety.build.cache import cache_dir, make_dir
from nicety.build.compiler import checked_folder, checked_macro, checked_source
from nicety.build.toolchain import Toolchain, find_toolchain
from nicety.errors import CompileError, InputError
from nicety.shared.typed import checked

_OPTIONS = ("-std=gnu17", "-O2", "-g", "-Wall")


def libraries_folder() -> Path:
    """Return the cache folder for the libraries that nicety loads into processes. Each build of nicety has its own."""
    return make_dir(cache_dir() / "exec" / f"{_native.version()}-{_native.exec_build()}")


@checked
def host_flags() -> list[str]:
    """Return compiler options for a program of a host: the folders of `portals4.h` and `libportals`, and `-lportals`.

    The function writes these files into the cache folder.

    Raises:
        InputError: this is not Linux, or the folder cannot be written.
    """
    folder = libraries_folder()
    _native.exec_install(str(folder))
    library = folder / "lib"
    return [f"-I{folder / 'include'}", f"-L{library}", f"-Wl,-rpath,{library}", "-lportals"]


@checked
def compile_host(
    sources: Sequence[Path | str],
    *,
    output: Path | str,
    include_dirs: Iterable[Path | str] = (),
    defines: Iterable[str] = (),
    cc: str | None = None,
) -> Path:
    """Compile C sources into one program of a host, which `nicety exec` starts.

    Args:
        sources: C (`.c`) or assembler (`.s`, `.S`) files.
        output: the file for the program.
        include_dirs: folders to search for headers, before nicety's own.
        defines: macros, `NAME` or `NAME=VALUE`.
        cc: the compiler, and arguments for it. The default is `cc` of the path, or else the one in the `ziglang`
            package.

    Returns:
        The program's path.

    Raises:
        CompileError: the compiler or the linker refused the program; its messages are on stderr.
        InputError: a source, folder, macro or compiler does not exist or is invalid; or this is not Linux.
    """
    paths = [checked_source(Path(source)) for source in sources]
    if not paths:
        raise InputError("no source to compile; name at least one .c file")
    own = [f"-I{checked_folder(Path(folder))}" for folder in include_dirs]
    own += [f"-D{checked_macro(define)}" for define in defines]
    output = Path(output)
    if not output.absolute().parent.is_dir():
        raise InputError(f"{output}: no folder {str(output.parent)!r} to write it in")
    if output.is_dir():
        raise InputError(f"{output}: this is a folder; name the program after -o")
    arguments = [*_OPTIONS, *own, *map(str, paths), "-o", str(output), *host_flags(), "-lm"]
    sys.stderr.flush()
    if _compiler(cc).start(arguments) != 0:
        named = ", ".join(map(str, paths))
        raise CompileError(f"{named}: no program of a host; the compiler's messages are above")
    return output


def _compiler(cc: str | None) -> Toolchain:
    """Return the compiler for this machine's programs."""
    if cc is None:
        path = shutil.which("cc")
        return find_toolchain(None) if path is None else Toolchain((path,), "gcc", "")
    try:
        words = shlex.split(cc)
    except ValueError as error:
        raise InputError(f"--cc {cc!r}: {error}") from error
    path = shutil.which(words[0]) if words else None
    if path is None:
        raise InputError(f"--cc {cc}: no such program on the PATH; write a C compiler's name or path, such as gcc")
    if Path(path).stem in ("zig", "ziglang"):
        return Toolchain((path, *words[1:]), "zig", "", find_toolchain(None).environment)
    return Toolchain((path, *words[1:]), "gcc", "")
