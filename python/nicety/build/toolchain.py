"""The compilers that nicety can drive: the clang inside the `ziglang` package, or any the user names."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import metadata, util
from pathlib import Path
from typing import Literal

from nicety.build.cache import cache_dir, digest, find, keep, make_dir
from nicety.errors import InputError
from nicety.shared.text import printable_text

DEFAULT_ISA = "rv32imac_zicsr"

Kind = Literal["zig", "clang", "gcc"]

# What handlers are written for: nicety.h, or the headers of PsPIN or FPsPIN.
Interface = Literal["nicety", "pspin", "fpspin"]

_ISA = re.compile(r"rv32(?P<letters>i[a-y]*)(?P<rest>(?:_[a-z][a-z0-9]*)*)")

_BITS = ("b", "zba", "zbb", "zbs")

# The extension whose cores make misaligned accesses themselves.
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

# Undefined behaviour in C that the processor defines, at no cost: a null pointer is an address, which no memory of a
# card has; sums wrap round; a loop without end goes on.
_DEFINED = ("-fno-delete-null-pointer-checks", "-fwrapv", "-fno-finite-loops")

# And what becomes a trap.
_TRAPS = "unreachable,integer-divide-by-zero,shift-exponent,vla-bound"

# The first clang with a trap of its own, and with the reason in its line table, for each check.
_SEPARATE_TRAPS = 20

# Folding a loop into a call of the function that the loop implements would never end. And a program exports what its
# author wrote, nothing of ours.
_RUNTIME = ("-fno-builtin", "-fvisibility=hidden")
RUNTIME_FLAGS: dict[Kind, tuple[str, ...]] = {
    "zig": _RUNTIME,
    "clang": _RUNTIME,
    "gcc": (*_RUNTIME, "-fno-tree-loop-distribute-patterns"),
}


def isa_extensions(isa: str) -> list[str]:
    """The extensions of an isa string such as `rv32imac_zicsr`, without the base: `m`, `a`, `c`, `zicsr`.

    `b` is given as what it stands for, `zba`, `zbb` and `zbs`: not every compiler knows it.

    Raises:
        InputError: the string is not one of RV32.
    """
    match = _ISA.fullmatch(isa)
    if match is None:
        raise InputError(
            f"isa {isa!r}: not a 32-bit RISC-V one; write rv32i and extensions, for example {DEFAULT_ISA!r}"
        )
    extensions = [*match["letters"][1:], *match["rest"].split("_")[1:]]
    if "b" in extensions:
        extensions = [*(name for name in extensions if name not in _BITS), *_BITS[1:]]
    return extensions


@dataclass(frozen=True)
class Toolchain:
    """A compiler.

    Attributes:
        argv: how it is started.
        kind: whose options it takes.
        version: the first line it says about itself.
        environment: variables it is started with, beside the process's own.
    """

    argv: tuple[str, ...]
    kind: Kind
    version: str
    environment: tuple[tuple[str, str], ...] = ()

    def target_flags(self, isa: str) -> list[str]:
        """Options that choose the processor; misaligned access is generated for Zicclsm alone."""
        extensions = isa_extensions(isa)
        unaligned = _UNALIGNED in extensions
        # Compilers know it by options of their own.
        extensions = [name for name in extensions if name != _UNALIGNED]
        if self.kind == "zig":
            cpu = "+".join(["generic_rv32", *extensions, *(["unaligned_scalar_mem"] if unaligned else [])])
            return ["-target", "riscv32-freestanding-none", f"-mcpu={cpu}"]
        letters = "".join(name for name in extensions if len(name) == 1)
        march = "_".join([f"rv32i{letters}", *(name for name in extensions if len(name) > 1)])
        # Floats pass in the registers that hold them. Handlers get none: what starts them knows integers alone.
        flags = [f"-march={march}", f"-mabi={'ilp32f' if 'f' in extensions else 'ilp32'}"]
        # clang aligns every access unless it is told that the processor need not.
        if unaligned:
            flags.append("-mno-strict-align")
        elif self.kind == "gcc":
            flags.append("-mstrict-align")
        return ["--target=riscv32-unknown-elf", *flags] if self.kind == "clang" else flags

    def compile_flags(self, isa: str, interface: Interface = "nicety") -> list[str]:
        """Options for compiling one source, include folders and macros apart."""
        if interface != "nicety":
            # Its packed structures are accessed by whole words; its compiler warns of pointers given as addresses.
            unaligned = isa if _UNALIGNED in isa_extensions(isa) else f"{isa}_{_UNALIGNED}"
            return [*self.compile_flags(unaligned), "-O3", "-Wno-error=int-conversion"]
        # zig leaves assertions out of whatever is optimised; whether they are in is the author's to say.
        own = ["-fno-sanitize=all", "-UNDEBUG"] if self.kind == "zig" else []
        return [*self.target_flags(isa), *_COMMON, *own]

    def check_flags(self, interface: Interface) -> list[str]:
        """Options that have undefined behaviour do what the processor does, or trap where it stands."""
        flags = [*_DEFINED]
        if interface == "nicety":
            # PsPIN's own examples have functions without a result that should have one.
            flags.append("-Werror=return-type")
        if self.kind == "gcc":
            return [*flags, f"-fsanitize={_TRAPS},bounds", "-fsanitize-undefined-trap-on-error"]
        flags += [f"-fsanitize={_TRAPS},builtin,array-bounds", "-fsanitize-trap=all", "-mllvm", "-trap-unreachable"]
        return [*flags, "-fno-sanitize-merge"] if self._clang() >= _SEPARATE_TRAPS else flags

    def _clang(self) -> int:
        """The release of clang, 0 where it does not say."""
        found = re.search(r"clang version (\d+)", self.version)
        return int(found[1]) if found else 0

    def link_flags(self, isa: str, layout: Path) -> list[str]:
        """Options for linking objects at the addresses that `layout` gives."""
        lld = ["-fuse-ld=lld"] if self.kind == "clang" else []
        # The compiler's own library is left out: ours is small, the same for all, and known to the last cycle.
        target = self.target_flags(isa)
        if self.kind == "gcc":
            # gcc finds its own library by the base and its letters, and has none where more is named.
            target[0] = target[0].partition("_")[0]
        return [*target, *lld, "-static", "-nostdlib", "-Wl,--gc-sections", "-T", str(layout)]

    def library_flags(self, *, mathematics: bool) -> list[str]:
        """Options that bring in the compiler's own library, for what ours lacks: floating point in software.

        Args:
            mathematics: a function of math.h as well.
        """
        if self.kind == "clang":
            return []
        # zig has those in this library and in its standard library.
        return ["-lm", "-lgcc"] if mathematics and self.kind == "gcc" else ["-lgcc"]

    def start(self, arguments: Sequence[str]) -> int:
        """Run the compiler and pass its messages on to stderr, names out of files escaped; return its exit status.

        Raises:
            InputError: it cannot be started.
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
    """The compiler that the user named, or the one of the `ziglang` package.

    Raises:
        InputError: there is no such program, or it is no C compiler.
    """
    return _named(cc) if cc is not None else _ziglang()


def _zig_environment() -> tuple[tuple[str, str], ...]:
    folder = str(make_dir(cache_dir() / "zig"))
    return (("ZIG_GLOBAL_CACHE_DIR", folder), ("ZIG_LOCAL_CACHE_DIR", folder))


def _ziglang() -> Toolchain:
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
    # Asking costs as much as compiling a small handler, so the answer is kept.
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
