"""Compilation of C handlers to RV32 and RV64 programs: `nicety cc`.

A program is compiled freestanding and linked with nicety's small runtime. The runtime has `memcpy` and its family,
64-bit division, and the functions of the C library that need neither files nor a heap. The link addresses are those
that a card expects. Read-only code and constants are at 0x1d000000, data in HPU memory at 0x10000000 (at 0x1c000000 for
a card of PsPIN). The linker keeps every function that is not `static`, so that a card finds handlers by their names.
Programs are kept in the cache folder (`NICETY_CACHE`, or the platform's own) under a digest of all inputs: sources,
headers, options, compiler and runtime.
"""

from __future__ import annotations

import hashlib
import json
import re
import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from os import PathLike
from pathlib import Path

from nicety import _native
from nicety._generated.types import ProgramManifest
from nicety.build.cache import cache_dir, digest, find, keep, kept, make_dir
from nicety.build.toolchain import (
    DEFAULT_ISA,
    RUNTIME_FLAGS,
    Interface,
    Toolchain,
    find_toolchain,
    isa_extensions,
)
from nicety.errors import CompileError, InputError
from nicety.shared.files import write_whole
from nicety.shared.typed import checked

__all__ = ["DEFAULT_ISA", "Compiled", "compile_handlers", "library_source"]

_SUFFIXES = (".c", ".s", ".S")
_RUNTIME = ("memory.c", "integer.c")
# A library file precedes the files with the functions that it calls.
_LIBRARY = ("output.c", "format.c", "text.c", "standard.c", "math.zig", "exact.c")
_LAYOUTS: dict[Interface, str] = {"nicety": "layout.ld", "pspin": "pspin.ld", "fpspin": "pspin.ld"}
# Folders of headers, in search order.
_HEADERS: dict[Interface, tuple[str, ...]] = {
    "nicety": ("include",),
    "pspin": ("include/pspin",),
    "fpspin": ("include/fpspin", "include/pspin"),
}
_HEAP = frozenset({"aligned_alloc", "calloc", "free", "malloc", "posix_memalign", "realloc", "strdup", "strndup"})
INSPECTIONS: list[Callable[[str], None]] = []
"""Functions that take the preprocessed text of each source before this process compiles it. They raise to refuse it."""
_XDP = re.compile(r'SEC\s*\(\s*"xdp')
_MACRO = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\(.*\))?(=.*)?", re.DOTALL)


@dataclass(frozen=True)
class Compiled:
    """A compiled program.

    Attributes:
        elf: the ELF file's bytes.
        path: the ELF file's path: the requested output, or a file of the cache.
        command: the command line that compiled the first source.
        compiler: the first line of the compiler's description of itself.
        flags: the compiler's options, with include folders and macros.
    """

    elf: bytes
    path: Path
    command: list[str]
    compiler: str
    flags: list[str]


@dataclass(frozen=True)
class Symbols:
    """The global names of one object file or program.

    Attributes:
        functions: names of the functions that the file defines.
        defined: all names that the file defines, functions included.
        undefined: names that the file uses and does not define.
    """

    functions: frozenset[str]
    defined: frozenset[str]
    undefined: frozenset[str]


@checked
def compile_handlers(
    sources: Sequence[Path | str],
    *,
    include_dirs: Iterable[Path | str] = (),
    defines: Iterable[str] = (),
    cc: str | None = None,
    isa: str = DEFAULT_ISA,
    interface: Interface = "nicety",
    output: Path | str | None = None,
) -> Compiled:
    """Compile C sources into one program for RV32 or RV64.

    Args:
        sources: C (`.c`) or assembler (`.s`, `.S`) files.
        include_dirs: folders to search for headers, before nicety's own.
        defines: macros, `NAME` or `NAME=VALUE`.
        cc: a clang or RISC-V gcc to use instead of the one in the `ziglang` package; arguments may follow its name.
        isa: the processor's extensions, as in a card's spec (`hpu.isa`).
        interface: the interface of the sources, as in a card's spec (`hpu.interface`): `nicety`, or `pspin` or `fpspin`
            for handlers that include the headers of PsPIN or FPsPIN.
        output: a file for the program; the cache has the program as well.

    Raises:
        CompileError: the compiler or the linker refused the program (its messages are on stderr), or it has no code.
        InputError: a source, folder, macro, isa or compiler does not exist or is invalid.
    """
    paths = [checked_source(Path(source)) for source in sources]
    if not paths:
        raise InputError("no source to compile; name at least one .c file")
    for path in paths:
        if _XDP.search(path.read_text(errors="replace")):
            raise InputError(f"{path}: an XDP program; compile it with nicety cc --xdp, and name the object")
    folders = [checked_folder(Path(folder)) for folder in include_dirs]
    macros = [checked_macro(define) for define in defines]
    isa_extensions(isa)
    toolchain = find_toolchain(cc)
    library = library_folder()
    own = [*(f"-I{folder}" for folder in folders), *(f"-D{macro}" for macro in macros)]
    # nicety's own handlers are tested. Checks would change their cycles, which match published figures.
    is_own = all(library in path.parents for path in paths)
    checks = [] if is_own else toolchain.check_flags(interface)
    flags = [*toolchain.compile_flags(isa, interface), *checks, *own]
    headers = [part for folder in _HEADERS[interface] for part in ("-I", str(library / folder))]
    bundled = [*headers, "-isystem", str(library / "runtime" / "include")]
    build = Build(toolchain, isa, interface, flags, [*flags, *bundled], library)
    program, elf = build.program(paths)
    if not _native.elf_has_code(elf):
        named = ", ".join(map(str, paths))
        raise CompileError(f"{named}: no code in it; write at least one function that is not static")
    if output is not None:
        output = Path(output)
        if not output.parent.is_dir():
            raise InputError(f"{output}: no folder {str(output.parent)!r} to write it in")
        write_whole(output, elf, mode=0o777)
        program = output
    return Compiled(elf, program, build.command(paths[0]), toolchain.version, flags)


@checked
def handler_flags(*, isa: str = DEFAULT_ISA, interface: Interface = "nicety") -> list[str]:
    """Return options with which clang and clangd find the headers of handlers, for a file `compile_flags.txt`.

    The function writes the headers into the cache folder.

    Args:
        isa: the processor's extensions, as in a card's spec (`hpu.isa`).
        interface: the interface of the sources, as in a card's spec (`hpu.interface`).

    Raises:
        InputError: the isa is invalid, or the cache folder cannot be written.
    """
    library = library_folder()
    return [
        *Toolchain(("clang",), "clang", "").compile_flags(isa, interface),
        *(f"-I{library / folder}" for folder in _HEADERS[interface]),
        f"-isystem{library / 'runtime' / 'include'}",
    ]


@checked
def library_source(name: str) -> Path:
    """Return the path of a handler in nicety's own library, for example `pingpong_stream.c` or `nfp/pcsa.c`.

    Raises:
        InputError: the library has no such handler.
    """
    library = library_folder()
    found = (path.relative_to(library) for path in library.rglob("*.c"))
    known = sorted(path.as_posix() for path in found if path.parts[0] != "runtime")
    if name not in known:
        raise InputError(f"no handler {name!r} in the library; it has {', '.join(known)}")
    return library / name


@dataclass(frozen=True)
class Build:
    """A program to be compiled and linked.

    Attributes:
        toolchain: the compiler.
        isa: the processor's extensions.
        interface: the interface of the sources.
        flags: the compiler's options, with include folders and macros.
        arguments: `flags`, and the folders of nicety's headers.
        library: the folder with nicety's handlers, headers and runtime.
        runtime: further sources of the runtime.
        runtime_defines: macros of the runtime's further sources.
        layout: the runtime's linker script, in place of that of the interface.
        kept: names of functions that the linker must keep although no code calls them.
        finish: takes the linked program's bytes, and returns the changed program.
        salt: the inputs of `finish`, as a part of the cache key.
    """

    toolchain: Toolchain
    isa: str
    interface: Interface
    flags: list[str]
    arguments: list[str]
    library: Path
    runtime: tuple[str, ...] = ()
    runtime_defines: Sequence[str] = ()
    layout: str | None = None
    kept: tuple[str, ...] = ()
    finish: Callable[[bytes], bytes] | None = None
    salt: bytes = b""

    def program(self, sources: Sequence[Path]) -> tuple[Path, bytes]:
        """Return the program's path in the cache, and its bytes. Compile it if the cache does not have it.

        Raises:
            CompileError: the compiler or the linker refused the program.
        """
        entry = make_dir(cache_dir() / "programs" / self.key(sources))
        return _lookup(entry) or self.run(sources, entry)

    def key(self, sources: Sequence[Path]) -> str:
        """Return a digest of all inputs of the program, except for the user's headers."""
        # The working folder is included because debug information names it.
        parts: list[str | bytes] = [self.toolchain.version, *self.toolchain.argv, str(Path.cwd())]
        parts += [self.library.name, *self.arguments, *self.runtime, *self.runtime_defines, *self.kept, self.salt]
        for source in sources:
            parts += [str(source), source.read_bytes()]
        return digest(parts)

    def command(self, source: Path) -> list[str]:
        return [*self.toolchain.argv, *self.arguments, "-c", str(source)]

    def run(self, sources: Sequence[Path], entry: Path) -> tuple[Path, bytes]:
        """Compile and link, keep the program in the cache folder `entry`, and return its path there and its bytes."""
        with tempfile.TemporaryDirectory(prefix="nicety-") as name:
            folder = Path(name)
            objects, used = [], set()
            for number, source in enumerate(sources):
                unit = folder / f"{number}.o"
                rules = folder / f"{number}.d"
                self._compile(source, unit, [*self.arguments, "-MMD", "-MF", str(rules)])
                objects.append(unit)
                used |= _dependencies(rules)
            program = folder / "program.elf"
            self._link(sources, objects, program)
            elf = program.read_bytes()
        if self.finish is not None:
            elf = self.finish(elf)
        program = keep(entry, elf, ".elf")
        # If a file changed during compilation, its digest here will not match, and the next use compiles again.
        files = {str(path.absolute()): _fingerprint(path) for path in used if self.library not in path.parents}
        record = {"program": program.name, "files": files}
        write_whole(entry / "record.json", json.dumps(record, sort_keys=True).encode(), safe=False)
        return program, elf

    def _compile(self, source: Path, unit: Path, arguments: Sequence[str]) -> None:
        status = self._inspect(source, unit.with_suffix(".i")) if INSPECTIONS else 0
        if status == 0:
            status = self.toolchain.start([*arguments, "-c", str(source), "-o", str(unit)])
        if status != 0:
            raise CompileError(f"{source}: does not compile; the compiler's messages are above{self._other(source)}")

    def _inspect(self, source: Path, text: Path) -> int:
        status = self.toolchain.start([*self.arguments, "-E", "-P", str(source), "-o", str(text)])
        if status == 0:
            for inspect in INSPECTIONS:
                inspect(text.read_text(encoding="utf-8", errors="replace"))
        return status

    def _other(self, source: Path) -> str:
        """Return words on included headers that belong to another interface. The compiler only says "not found"."""

        def has(interface: Interface, name: str) -> bool:
            folders = [self.library / folder for folder in (*_HEADERS[interface], "runtime/include")]
            return any((folder / name).exists() for folder in folders)

        included = re.findall(r'#\s*include\s*[<"]([\w./]+)[>"]', source.read_text(errors="replace"))
        missing = [name for name in included if not has(self.interface, name)]
        cards: dict[Interface, str] = {
            "pspin": 'cards with [hpu] interface = "pspin", such as pspin',
            "fpspin": 'cards with [hpu] interface = "fpspin"',
            "nicety": "cards without [hpu] interface, such as spin-discrete and spin-100g",
        }
        for interface, those in cards.items():
            found = [name for name in missing if interface != self.interface and has(interface, name)]
            if found:
                own = "no [hpu] interface" if self.interface == "nicety" else f'[hpu] interface = "{self.interface}"'
                return f". {', '.join(found)} is for {those}; this card has {own}"
        return ""

    def _link(self, sources: Sequence[Path], objects: Sequence[Path], program: Path) -> None:
        symbols = [_symbols(unit, source) for unit, source in zip(objects, sources, strict=True)]
        defined = frozenset[str]().union(*(each.defined for each in symbols))
        functions = frozenset[str]().union(*(each.functions for each in symbols))
        needed = frozenset[str]().union(*(each.undefined for each in symbols)) - defined
        functions |= set(self.kept)
        runtime = [self._runtime(name) for name in (*_RUNTIME, *self.runtime)]
        if self.interface != "nicety":
            runtime.append(self._runtime("pspin.S"))
        if self.interface == "fpspin":
            runtime.append(self._runtime("fpspin.c"))
        starts = "_start" in defined
        if "main" in functions and not starts:
            runtime.append(self._runtime("start.c"))
            starts = True
        provided = frozenset[str]().union(*(read_symbols(unit.read_bytes()).defined for unit in runtime))

        # The linker would drop functions that no code calls. The card calls handlers.
        layout = program.with_suffix(".ld")
        base = (self.library / "runtime" / (self.layout or _LAYOUTS[self.interface])).read_text()
        layout.write_text(f"EXTERN({' '.join(sorted(functions))})\n{base}" if functions else base)
        arguments = self.toolchain.link_flags(self.isa, layout)
        # A program of handlers alone has no entry point.
        arguments += ["-Wl,-e,_start" if starts else "-Wl,-e,0", *map(str, objects), *map(str, runtime)]
        for name in _LIBRARY:
            if not needed - provided:
                break
            if name.endswith(".zig") and self.toolchain.kind != "zig":
                continue
            unit = self._runtime(name)
            symbols_of_unit = read_symbols(unit.read_bytes())
            if (needed - provided) & symbols_of_unit.defined:
                arguments.append(str(unit))
                provided |= symbols_of_unit.defined
                needed |= symbols_of_unit.undefined
        self._refuse(sources, needed - provided)
        if needed - provided:
            header = (self.library / "runtime" / "include" / "math.h").read_text()
            mathematics = (needed - provided) & set(re.findall(r"(\w+)\(", header))
            arguments += self.toolchain.library_flags(mathematics=bool(mathematics))
        if self.toolchain.start([*arguments, "-o", str(program)]) != 0:
            names = ", ".join(map(str, sources))
            raise CompileError(f"{names}: does not link; the linker's messages are above")

    def _refuse(self, sources: Sequence[Path], missing: frozenset[str]) -> None:
        """Raise an error for a heap, or for atomic operations on a target without atomic instructions."""
        names = ", ".join(map(str, sources))
        atomics = sorted(name for name in missing if name.startswith("__atomic_"))
        if atomics and "a" not in isa_extensions(self.isa):
            raise CompileError(
                f"{names}: has atomic operations ({', '.join(atomics)}), but the card's processors have none"
                f" (hpu.isa = {self.isa}); give it an instruction set with A, such as rv32ia"
            )
        if heap := sorted(missing & _HEAP):
            raise CompileError(
                f"{names}: calls {', '.join(heap)}, but programs of cards have no heap; use an array of the largest"
                f" size, or define {heap[0]} on such an array"
            )

    def _runtime(self, name: str) -> Path:
        """Return the object file of one source of the runtime; compile it if the cache does not have it."""
        toolchain = self.toolchain
        runtime = self.library / "runtime"
        flags = [*toolchain.compile_flags(self.isa), *RUNTIME_FLAGS[toolchain.kind]]
        if "/" in name:
            # XDP programs have the headers of frames and of tasks, and maps with values of any type.
            folders = ["include", *(folder for folder in _HEADERS[self.interface] if folder != "include")]
            flags += [part for folder in folders for part in ("-I", str(self.library / folder))]
            flags += ["-fno-strict-aliasing", *(f"-D{define}" for define in self.runtime_defines)]
        # Debug information must not name a folder of this machine, such as that of zig's standard library.
        flags += [f"-ffile-prefix-map={self.library}=nicety", "-isystem", str(runtime / "include")]
        flags += ["-g0"] if name.endswith(".zig") else []
        key = digest([toolchain.version, *toolchain.argv, *flags, self.library.name, name])
        units = cache_dir() / "runtime" / key
        unit = find(units, ".o")
        if unit is None:
            with tempfile.TemporaryDirectory(prefix="nicety-") as folder:
                fresh = Path(folder) / "unit.o"
                self._compile(runtime / name, fresh, flags)
                unit = keep(units, fresh.read_bytes(), ".o")
        return unit


def checked_source(path: Path) -> Path:
    if not path.exists():
        raise InputError(f"{path}: no such file")
    if not path.is_file():
        raise InputError(f"{path}: not a file")
    if path.suffix == ".o":
        raise InputError(
            f"{path}: not a C source; name a file that ends in .c, or only an eBPF object for nicety bench handlers "
            "or cc"
        )
    if path.suffix not in _SUFFIXES:
        ends = ", ".join(_SUFFIXES)
        raise InputError(f"{path}: neither a C source nor an eBPF object; the name of a source must end in {ends}")
    try:
        path.read_bytes()
    except OSError as error:
        raise InputError(f"{path}: cannot read it ({error.strerror})") from error
    return path


def checked_folder(path: Path) -> Path:
    if not path.is_dir():
        raise InputError(f"-I {path}: no such folder")
    return path


def checked_macro(define: str) -> str:
    if not _MACRO.fullmatch(define):
        raise InputError(f"-D {define}: not a macro; write NAME or NAME=VALUE")
    return define


def read_symbols(image: bytes) -> Symbols:
    """Read the global names of an object file or program, of RISC-V or eBPF.

    Raises:
        ValueError: the bytes are no such file.
    """
    return Symbols(*map(frozenset, _native.elf_names(image)))


def _symbols(unit: Path, source: Path) -> Symbols:
    try:
        return read_symbols(unit.read_bytes())
    except (OSError, ValueError) as error:
        problem, _, _ = str(error).partition(";")
        raise InputError(
            f"{source}: the compiler's object is {problem}; name a compiler for RISC-V with --cc"
        ) from error


def _dependencies(rules: Path) -> set[Path]:
    """Return the files that a make rule written by -MMD names."""
    try:
        text = rules.read_text(errors="surrogateescape")
    except OSError:
        return set()  # an assembler source that is not preprocessed has no such rule
    text = text.replace("\\\n", " ")
    _target, _colon, files = text.partition(": ")
    names = re.findall(r"(?:\\.|[^\s\\])+", files)
    return {Path(re.sub(r"\\(.)", r"\1", name).replace("$$", "$")) for name in names}


def _fingerprint(path: Path) -> str:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError:
        return ""


def _lookup(entry: Path) -> tuple[Path, bytes] | None:
    """Return the program of a cache entry. None if it is missing or damaged, or if a source file has changed."""
    try:
        record = json.loads((entry / "record.json").read_bytes())
        if all(_fingerprint(Path(path)) == value for path, value in record["files"].items()):
            program = entry / record["program"]
            elf = kept(program)
            return None if elf is None else (program, elf)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        pass  # no record, or a damaged one: compile again
    return None


@cache
def _bundled() -> dict[str, str]:

    return _native.handler_sources()


def library_folder() -> Path:
    """Return the folder with nicety's own handlers, headers and runtime. Files missing in the cache are written."""
    sources = _bundled()
    folder = cache_dir() / "library" / digest(part for name in sorted(sources) for part in (name, sources[name]))
    for name, text in sources.items():
        path, content = folder / name, text.encode()
        if not path.is_file() or path.read_bytes() != content:
            make_dir(path.parent)
            write_whole(path, content, safe=False)
    return folder


def compiled(
    name: str, isa: str, cc: str | None, defines: tuple[str, ...] = (), own: PathLike[str] | str | None = None
) -> tuple[bytes, ProgramManifest]:
    """Compile a program of the library for a card, or `own` instead. Return its bytes and its manifest entry."""
    source = library_source(name) if own is None else Path(own)
    program = compile_handlers([source], isa=isa, cc=cc, defines=defines)
    return program.elf, {
        "source": name if own is None else str(own),
        "sha256": hashlib.sha256(source.read_bytes()).hexdigest(),
        "version": program.compiler,
        "flags": program.flags,
    }
