"""Compilers that nicety can drive: the clang in the `ziglang` package, or any that the user names."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from nicety.build.cache import cache_dir, digest, find, keep, make_dir
from nicety.errors import InputError
from nicety.shared.text import printable_text

DEFAULT_ISA = "rv32imac_zicsr"

Kind = Literal["zig", "clang", "gcc"]

# The interface that handlers use: nicety.h, or the headers of PsPIN or FPsPIN.
Interface = Literal["nicety", "pspin", "fpspin"]

_ISA = re.compile(r"(?P<base>rv32|rv64)(?P<letters>i[a-y]*)(?P<rest>(?:_[a-z][a-z0-9]*)*)")

_BITS = ("b", "zba", "zbb", "zbs")

# The RISC-V extension of cores that execute misaligned loads and stores.
_UNALIGNED = "zicclsm"

_COMMON = (
    "-std=gnu17",
    "-O2",
    "-g",
    "-Wall",
    "-ffreestanding",
    "-fomit-frame-pointer",
    "-ffunction-sections",
    "-fdata-sections",
    "-fno-common",
    "-fno-pic",
    "-fno-stack-protector",
    "-fno-unwind-tables",
    "-fno-asynchronous-unwind-tables",
)

# Options for behaviour that C leaves undefined and the processor defines, at no cost. A null pointer is an address, at
# which no card has memory. Signed sums wrap round, and an endless loop continues.
_DEFINED = ("-fno-delete-null-pointer-checks", "-fwrapv", "-fno-finite-loops")

# Undefined behaviour that becomes a trap.
_TRAPS = "unreachable,integer-divide-by-zero,shift-exponent,vla-bound"

# The first release of clang that has a separate trap per check, and the reason for a trap in its line table.
_SEPARATE_TRAPS = 20

# The runtime's functions must not be replaced by calls of themselves: a loop in memcpy would become a call of memcpy. A
# program exports its author's names, and none of the runtime's.
_RUNTIME = ("-fno-builtin", "-fvisibility=hidden")
RUNTIME_FLAGS: dict[Kind, tuple[str, ...]] = {
    "zig": _RUNTIME,
    "clang": _RUNTIME,
    "gcc": (*_RUNTIME, "-fno-tree-loop-distribute-patterns"),
}


def isa_extensions(isa: str) -> list[str]:
    """Return the extensions in an isa string such as `rv32imac_zicsr`, without the base: `m`, `a`, `c`, `zicsr`.

    `b` is expanded to `zba`, `zbb` and `zbs`, since not every compiler knows it.

    Raises:
        InputError: the string is not a valid isa of RV32 or RV64.
    """
    match = _matched(isa)
    extensions = [*match["letters"][1:], *match["rest"].split("_")[1:]]
    if "b" in extensions:
        extensions = [*(name for name in extensions if name not in _BITS), *_BITS[1:]]
    return extensions


def is_wide(isa: str) -> bool:
    """Whether an isa string is of RV64.

    Raises:
        InputError: the string is not a valid isa of RV32 or RV64.
    """
    return _matched(isa)["base"] == "rv64"


def _matched(isa: str) -> re.Match[str]:
    match = _ISA.fullmatch(isa)
    if match is None:
        raise InputError(
            f"isa {isa!r}: not a RISC-V one; write rv32i or rv64i and extensions, for example {DEFAULT_ISA!r}"
        )
    return match


@dataclass(frozen=True)
class Toolchain:
    """A compiler.

    Attributes:
        argv: the command that starts it.
        kind: the family of compilers, which decides the form of options.
        version: the first line of the compiler's description of itself.
        environment: names and values of additional environment variables.
    """

    argv: tuple[str, ...]
    kind: Kind
    version: str
    environment: tuple[tuple[str, str], ...] = ()

    def target_flags(self, isa: str) -> list[str]:
        """Return options that select the processor. Code has misaligned accesses only if `isa` has Zicclsm."""
        extensions = isa_extensions(isa)
        unaligned = _UNALIGNED in extensions
        # Compilers have separate options for misaligned accesses.
        extensions = [name for name in extensions if name != _UNALIGNED]
        bits, abi = (64, "lp64") if is_wide(isa) else (32, "ilp32")
        if self.kind == "zig":
            cpu = "+".join([f"generic_rv{bits}", *extensions, *(["unaligned_scalar_mem"] if unaligned else [])])
            return ["-target", f"riscv{bits}-freestanding-none", f"-mcpu={cpu}"]
        letters = "".join(name for name in extensions if len(name) == 1)
        march = "_".join([f"rv{bits}i{letters}", *(name for name in extensions if len(name) > 1)])
        # Functions take floats in float registers. Handlers take no floats: the card passes integers alone.
        flags = [f"-march={march}", f"-mabi={abi}{'f' if 'f' in extensions else ''}"]
        # clang aligns every access by default.
        if unaligned:
            flags.append("-mno-strict-align")
        elif self.kind == "gcc":
            flags.append("-mstrict-align")
        return [f"--target=riscv{bits}-unknown-elf", *flags] if self.kind == "clang" else flags

    def compile_flags(self, isa: str, interface: Interface = "nicety") -> list[str]:
        """Return options for compiling one source, without include folders and macros."""
        if interface != "nicety":
            # PsPIN's code accesses packed structures by whole words, and passes pointers as integers.
            unaligned = isa if _UNALIGNED in isa_extensions(isa) else f"{isa}_{_UNALIGNED}"
            return [*self.compile_flags(unaligned), "-O3", "-Wno-error=int-conversion"]
        # zig defines NDEBUG in optimised code. Here the author decides whether assertions are active.
        own = ["-fno-sanitize=all", "-UNDEBUG"] if self.kind == "zig" else []
        return [*self.target_flags(isa), *_COMMON, *own]

    def check_flags(self, interface: Interface) -> list[str]:
        """Return options that make undefined behaviour do what the processor does, or trap where it happens."""
        flags = [*_DEFINED]
        if interface == "nicety":
            # Some of PsPIN's own examples have non-void functions without a return statement.
            flags.append("-Werror=return-type")
        if self.kind == "gcc":
            return [*flags, f"-fsanitize={_TRAPS},bounds", "-fsanitize-undefined-trap-on-error"]
        flags += [f"-fsanitize={_TRAPS},builtin,array-bounds", "-fsanitize-trap=all", "-mllvm", "-trap-unreachable"]
        return [*flags, "-fno-sanitize-merge"] if self._clang() >= _SEPARATE_TRAPS else flags

    def _clang(self) -> int:
        """Return the release of clang, or 0 if it is unknown."""
        found = re.search(r"clang version (\d+)", self.version)
        return int(found[1]) if found else 0

    def link_flags(self, isa: str, layout: Path) -> list[str]:
        """Return options for linking objects at the addresses in `layout`."""
        lld = ["-fuse-ld=lld"] if self.kind == "clang" else []
        # The compiler's own library is omitted: nicety's runtime is small, and takes the same cycles everywhere.
        target = self.target_flags(isa)
        if self.kind == "gcc":
            # gcc selects its own library by the isa's base and letters, and has none for longer extension names.
            target[0] = target[0].partition("_")[0]
        return [*target, *lld, "-static", "-nostdlib", "-Wl,--gc-sections", "-T", str(layout)]

    def library_flags(self, *, mathematics: bool) -> list[str]:
        """Return options that add the compiler's own library for missing functions, such as floating point in software.

        Args:
            mathematics: whether a function of math.h is missing as well.
        """
        if self.kind == "clang":
            return []
        # zig's library and its standard library have the functions of math.h.
        return ["-lm", "-lgcc"] if mathematics and self.kind == "gcc" else ["-lgcc"]

    def start(self, arguments: Sequence[str]) -> int:
        """Run the compiler, and return its exit status. Its messages go to stderr with control characters escaped.

        Raises:
            InputError: the compiler does not start.
        """
        environment = {**os.environ, **dict(self.environment)}
        try:
            ended = subprocess.run(
                [*self.argv, *arguments],
                env=environment,
                check=False,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
            )
        except OSError as error:
            raise InputError(f"{self.argv[0]}: cannot start this compiler ({error.strerror})") from error
        sys.stderr.write(printable_text(ended.stdout.decode(errors="backslashreplace")))
        return ended.returncode


def find_toolchain(cc: str | None) -> Toolchain:
    """Return the compiler that the user named, or by default the compiler in the `ziglang` package.

    Raises:
        InputError: there is no such program, or it is no C compiler.
    """
    return _named(cc) if cc is not None else _ziglang()


def _zig_environment() -> tuple[tuple[str, str], ...]:
    folder = str(make_dir(cache_dir() / "zig"))
    return (("ZIG_GLOBAL_CACHE_DIR", folder), ("ZIG_LOCAL_CACHE_DIR", folder))


def _ziglang() -> Toolchain:
    # Imported here, since reading package metadata costs some 20 ms, which a cached compilation saves.
    from importlib import metadata, util

    found = util.find_spec("ziglang")
    if found is None or not found.submodule_search_locations:
        raise InputError(
            "no C compiler: the Python package 'ziglang' is not installed; "
            "install it (pip install ziglang) or name a compiler with --cc"
        )
    folder = Path(next(iter(found.submodule_search_locations)))
    program = folder / ("zig.exe" if os.name == "nt" else "zig")
    release = metadata.version("ziglang")
    environment = _zig_environment()
    # Asking the compiler for its version costs as much as compiling a small handler, so the answer is cached.
    folder = cache_dir() / "toolchains" / digest([str(program), release])
    answer = find(folder, ".txt")
    if answer is not None:
        version = answer.read_text()
    else:
        clang = _ask_version((str(program), "cc"), environment)
        version = f"ziglang {release} ({clang})"
        keep(folder, version.encode(), ".txt")
    return Toolchain((str(program), "cc"), "zig", version, environment)


def _named(cc: str) -> Toolchain:
    try:
        argv = tuple(shlex.split(cc))
    except ValueError as error:
        raise InputError(f"--cc {cc!r}: {error}") from error
    if not argv:
        raise InputError("--cc: an empty name; write a compiler's, for example riscv64-unknown-elf-gcc")
    program = shutil.which(argv[0])
    if program is None:
        raise InputError(f"--cc {cc}: no program {argv[0]!r} on the PATH; write its name or path")
    argv = (program, *argv[1:])
    zig = any(Path(word).stem in ("zig", "ziglang") for word in argv)
    environment = _zig_environment() if zig else ()
    version = _ask_version(argv, environment)
    if zig:
        kind: Kind = "zig"
    elif "clang" in version:
        kind = "clang"
    elif "gcc" in version:
        kind = "gcc"
    else:
        raise InputError(f"--cc {cc}: says {version!r}, which is neither clang nor gcc; name one of them")
    return Toolchain(argv, kind, version, environment)


def _ask_version(argv: tuple[str, ...], environment: tuple[tuple[str, str], ...]) -> str:
    try:
        answer = subprocess.run(
            [*argv, "--version"],
            env={**os.environ, **dict(environment)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )
    except OSError as error:
        raise InputError(f"{argv[0]}: cannot start this compiler ({error.strerror})") from error
    lines = answer.stdout.strip().splitlines()
    if answer.returncode != 0 or not lines:
        raise InputError(f"{shlex.join(argv)}: not a C compiler: it does not answer to --version")
    return lines[0].strip()
