"""C handlers to RV32 and RV64 programs: layout, symbols, cache and errors."""

from __future__ import annotations

import json
import math
import random
import struct
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import numpy as np
import platformdirs
import pytest

from nicety import _native
from nicety.build.cache import cache_dir
from nicety.build.compiler import compile_handlers, library_source, read_symbols
from nicety.build.toolchain import Kind, Toolchain, find_toolchain, isa_extensions
from nicety.errors import CompileError, InputError

PROGRAMS = Path(__file__).parent / "programs"

# The folder of the committed programs of the card and its tests, and the isa of nfp-4000.
CRATES = Path(__file__).parent.parent / "crates"
FLOW_ISA = "rv32ia_zicsr_zmmul_zba_zbb"

HANDLERS = """
#include <nicety.h>
#include <string.h>
#ifndef STEP
#define STEP 1
#endif
static uint32_t count = 7;
static uint32_t seen[16];
static const char text[] = "constant";
static int helper(int x) { return x + STEP; }
__handler int header_handler(const ptl_header_t h, void *state) { return helper((int)h.length) + (int)strlen(text); }
__handler int payload_handler(const ptl_payload_t p, void *state) { seen[p.length & 15]++; return (int)++count; }
int not_a_handler(uint64_t a, uint64_t b) { return (int)(a / b); }
"""


FLOATS = """
#include <stdint.h>
static volatile float weights[64];
/* A mean and a variance, as a handler that watches samples would keep them. */
static __attribute__((noinline)) float spread(float scale, uint32_t n) {
  float sum = 0, squares = 0;
  for (uint32_t i = 0; i < n; i++) {
    float x = weights[i] * scale;
    sum += x;
    squares += x * x;
  }
  float mean = sum / (float)n;
  return squares / (float)n - mean * mean;
}
int main(void) {
  for (int i = 0; i < 64; i++) weights[i] = (float)(i - 32) * 0.25f;
  float variance = spread(2.0f, 64);       /* 85.3125 exactly */
  if (variance != 85.3125f) return 1;
  if ((int)variance != 85 || (unsigned)(variance * 2) != 170) return 2;
  if (!(weights[3] < weights[4]) || weights[3] == weights[4]) return 3;
  double wide = variance;                  /* in software on either */
  return wide * 0.5 > 42.0 ? 42 : 4;
}
"""

BITS = """
#include <stdint.h>
static volatile uint32_t seed = 12345;
int main(void) {
  uint32_t set = 0, zeros = 0, x = seed;
  for (int i = 0; i < 64; i++) {
    x = (x << 7 | x >> 25) + 0x9e3779b9u;
    set += (uint32_t)__builtin_popcount(x);
    zeros += x ? (uint32_t)__builtin_clz(x) + (uint32_t)__builtin_ctz(x) : 64;
  }
  return set > 900 && set < 1150 && zeros > 60 && zeros < 250 ? 42 : 1;
}
"""


@pytest.fixture
def handlers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    source = Path("handlers.c")
    source.write_text(HANDLERS)
    return source


@pytest.fixture
def no_compiler(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """A function after which the start of a compiler fails the test."""

    def start(self: Toolchain, arguments: list[str]) -> int:
        pytest.fail(f"the compiler was started: {arguments}")

    return lambda: monkeypatch.setattr(Toolchain, "start", start)


def segments(elf: bytes) -> list[tuple[int, int, int]]:
    """Address, flags and size in memory of an ELF file's loaded segments."""
    at, size, count = struct.unpack_from("<I", elf, 28)[0], *struct.unpack_from("<HH", elf, 42)
    headers = (struct.unpack_from("<8I", elf, at + i * size) for i in range(count))
    return [(h[2], h[6], h[5]) for h in headers if h[0] == 1]


def run(elf: bytes, **options: Any) -> tuple[dict[str, Any], bytes]:
    text, written = _native.hpu_run(elf, options.get("entry"), options.get("max_cycles"), options.get("spec"))
    return json.loads(text), written


def test_code_and_data_lie_where_the_card_expects_them(handlers: Path) -> None:
    elf = compile_handlers([handlers]).elf
    (code, code_flags, _), (data, data_flags, data_size) = segments(elf)
    assert (code, code_flags) == (0x1D000000, 5)
    assert (data, data_flags) == (0x10000000, 6)
    assert data_size == 17 * 4
    assert struct.unpack_from("<I", elf, 24) == (0,), "handlers alone have no entry point"


def test_every_function_that_is_not_static_stays(handlers: Path) -> None:
    functions = read_symbols(compile_handlers([handlers]).elf).functions
    assert functions >= {"header_handler", "payload_handler", "not_a_handler"}
    assert "helper" not in functions


def test_several_sources_make_one_program(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
    one, two = tmp_path / "a" / "same.c", tmp_path / "b" / "same.c"
    one.write_text("int next(int);\nint main(void) { return next(41); }\n")
    two.write_text("int next(int x) { return x + 1; }\n")
    report, _ = run(compile_handlers([one, two]).elf)
    assert report["exit_code"] == 42


def test_a_program_may_bring_its_own_memcpy(tmp_path: Path) -> None:
    source = tmp_path / "own.c"
    source.write_text(
        "#include <string.h>\n"
        "static int calls;\n"
        "void *memcpy(void *restrict to, const void *restrict from, size_t n) { calls++; return to; }\n"
        "struct s { char c[500]; } a, b;\n"
        "int main(void) { a = b; memmove(&a, &b, 500); return calls; }\n"
    )
    report, _ = run(compile_handlers([source]).elf)
    assert report["exit_code"] == 1


def test_a_program_may_bring_its_own_start(tmp_path: Path) -> None:
    source = tmp_path / "start.s"
    source.write_text(".globl _start\n_start: li a0, 9\nli a7, 93\necall\n")
    report, _ = run(compile_handlers([source]).elf)
    assert (report["exit_code"], report["instructions"]) == (9, 3)


# Without M and A the runtime's own multiplication and division are called; the processor has them all the same.
@pytest.mark.parametrize("isa", ["rv32imac_zicsr", "rv32ic", "rv32i", "rv64imac_zicsr", "rv64ic", "rv64i"])
def test_the_runtime_computes_what_plain_c_does(isa: str) -> None:
    report, _ = run(compile_handlers([PROGRAMS / "runtime.c"], isa=isa).elf)
    assert report["trap"] is None
    assert report["exit_code"] == 42


@pytest.mark.parametrize("bits", [32, 64])
def test_the_runtime_agrees_under_qemu(bits: int, tmp_path: Path, tool: Callable[[str], str]) -> None:
    qemu = tool(f"qemu-riscv{bits}")
    output = tmp_path / "runtime.elf"
    compile_handlers([PROGRAMS / "runtime.c"], defines=["ROUNDS=20000"], isa=f"rv{bits}ic", output=output)
    assert subprocess.run([qemu, str(output)], check=False).returncode == 42


@pytest.mark.parametrize("isa", ["rv32imac_zicsr", "rv64imac_zicsr"])
@pytest.mark.parametrize("defines", [[], ["FLOATING"]])
def test_calls_and_tables_made_by_compilers(defines: list[str], isa: str) -> None:
    report, written = run(compile_handlers([PROGRAMS / "language.c"], defines=defines, isa=isa).elf)
    assert report["trap"] is None
    assert report["exit_code"] == 42
    assert written == b"checked\n"


def test_another_compiler(tool: Callable[[str], str]) -> None:
    compiled = compile_handlers([PROGRAMS / "runtime.c"], cc=tool("riscv64-unknown-elf-gcc"))
    assert "gcc" in compiled.compiler
    assert "-march=rv32imac_zicsr" in compiled.flags
    report, _ = run(compiled.elf)
    assert report["exit_code"] == 42
    report, _ = run(compile_handlers([PROGRAMS / "language.c"], cc=tool("riscv64-unknown-elf-gcc")).elf)
    assert report["exit_code"] == 42


PAPERS_FORM = """
#include <nicety.h>
typedef struct { ptl_process_t source; ptl_size_t length; bool stream; } info_t;
__handler int header_handler(const ptl_header_t h, void *state) {
    info_t *i = state;
    i->source = h.source_id;
    i->length = h.length;
    i->stream = h.length <= PTL_MAX_SIZE;
    return i->stream ? PROCESS_DATA : PROCEED;
}
__handler int payload_handler(const ptl_payload_t p, void *state) {
    info_t *i = state;
    PtlHandlerPutFromDevice(p.base, p.length, 1, 0, i->source, 10, 0, NULL, 0);
    return SUCCESS;
}
__handler int completion_handler(int dropped_bytes, bool flow_control_triggered, void *state) {
    info_t *i = state;
    if (!i->stream) PtlHandlerPutFromHost(0, i->length, 1, 0, i->source, 10, 0, NULL, 0);
    return SUCCESS;
}
"""
"""A ping-pong with the calls and the constant of the sPIN paper's."""


def test_handlers_in_the_papers_form_compile(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "ping.c"
    source.write_text(PAPERS_FORM, encoding="utf-8")
    for defines in ([], ["PTL_MAX_SIZE=1024"]):
        functions = read_symbols(compile_handlers([source], defines=defines).elf).functions
        assert {"header_handler", "payload_handler", "completion_handler"} <= set(functions)
    assert capfd.readouterr().err == ""


def test_the_library_compiles_without_a_warning(capfd: pytest.CaptureFixture[str]) -> None:
    for name in ("pingpong_store.c", "pingpong_stream.c"):
        functions = read_symbols(compile_handlers([library_source(name)]).elf).functions
        assert "payload_handler" in functions
    assert capfd.readouterr().err == ""


def code_of(elf: bytes) -> bytes:
    """The contents of the executable segments."""
    (start,), (size, count) = struct.unpack_from("<I", elf, 28), struct.unpack_from("<HH", elf, 42)
    headers = [struct.unpack_from("<8I", elf, start + size * number) for number in range(count)]
    return b"".join(elf[h[1] : h[1] + h[4]] for h in headers if h[0] == 1 and h[6] & 1)


@pytest.mark.parametrize("name", ["channels", "forward", "pcsa", "tsp", "tsp_table"])
def test_flow_processor_programs_are_those_that_the_card_and_its_tests_run(
    name: str, capfd: pytest.CaptureFixture[str]
) -> None:
    folder = {"forward": "nic-nfp/src", "channels": "nic-nfp/tests/data"}.get(name, "apps/tests/data")
    compiled = compile_handlers([library_source(f"nfp/{name}.c")], isa=FLOW_ISA)
    assert capfd.readouterr().err == ""
    assert code_of(compiled.elf) == code_of((CRATES / folder / f"{name}.elf").read_bytes()), (
        f"handlers/nfp/{name}.c has changed: nicety cc --isa {FLOW_ISA} -o crates/{folder}/{name}.elf"
    )


def test_the_handlers_of_messages_are_those_that_schedules_are_tested_with() -> None:
    compiled = compile_handlers([library_source("matching.c")])
    assert code_of(compiled.elf) == code_of((CRATES / "goal/tests/data/matching.elf").read_bytes()), (
        "handlers/matching.c has changed: make crates/goal/tests/data/matching.elf as the README.md beside it says"
    )


def test_a_flow_processor_divides_in_software(tmp_path: Path) -> None:
    source = tmp_path / "divide.c"
    source.write_text("#include <nfp.h>\n__process uint32_t divide(uint32_t a, uint32_t b) { return a / b + a * b; }\n")
    elf = compile_handlers([source], isa=FLOW_ISA).elf
    words = [word for (word,) in struct.iter_unpack("<I", code_of(elf)[: len(code_of(elf)) & ~3])]
    multiplications = [word >> 12 & 7 for word in words if word & 0xFE00_007F == 0x0200_0033]
    assert multiplications
    assert max(multiplications) < 4, "divisions"


def test_an_unknown_handler_of_the_library() -> None:
    with pytest.raises(InputError, match=r"no handler 'nope.c' in the library; it has .*pingpong_stream.c"):
        library_source("nope.c")


def test_the_result_says_how_it_was_made(handlers: Path, tmp_path: Path) -> None:
    compiled = compile_handlers([handlers], defines=["STEP=2"], output="out.elf")
    assert compiled.path == Path("out.elf")
    assert (tmp_path / "out.elf").read_bytes() == compiled.elf
    assert compiled.compiler.startswith("ziglang ")
    assert "-DSTEP=2" in compiled.flags
    assert compiled.command[-2:] == ["-c", "handlers.c"]


def test_a_program_is_compiled_once(handlers: Path, no_compiler: Callable[[], None]) -> None:
    first = compile_handlers([handlers])
    no_compiler()
    second = compile_handlers([handlers])
    assert second.elf == first.elf
    assert second.path == first.path


def test_the_key_has_all_inputs_of_the_program(handlers: Path) -> None:
    plain = compile_handlers([handlers]).elf
    assert compile_handlers([handlers], defines=["STEP=2"]).elf != plain
    assert compile_handlers([handlers], isa="rv32ima_zicsr").elf != plain
    handlers.write_text(HANDLERS.replace("count = 7", "count = 8"))
    assert compile_handlers([handlers]).elf != plain
    handlers.write_text(HANDLERS)
    assert compile_handlers([handlers]).elf == plain


def test_a_header_that_changes_is_noticed(handlers: Path, tmp_path: Path, no_compiler: Callable[[], None]) -> None:
    folder = tmp_path / "my headers"
    folder.mkdir()
    header = folder / "step.h"
    header.write_text("#define STEP 3\n")
    handlers.write_text('#include "step.h"\n' + HANDLERS)
    first = compile_handlers([handlers], include_dirs=[folder]).elf
    header.write_text("#define STEP 4\n")
    second = compile_handlers([handlers], include_dirs=[folder]).elf
    assert second != first
    no_compiler()
    assert compile_handlers([handlers], include_dirs=[folder]).elf == second


@pytest.mark.parametrize("damage", [b"", b"{", b"[]", b'{"files": {}}', b'{"files": {}, "program": "gone.elf"}'])
def test_a_damaged_record_costs_a_compilation(handlers: Path, damage: bytes) -> None:
    first = compile_handlers([handlers])
    (first.path.parent / "record.json").write_bytes(damage)
    assert compile_handlers([handlers]).elf == first.elf


def test_the_compilers_messages_reach_the_user(handlers: Path, capfd: pytest.CaptureFixture[str]) -> None:
    handlers.write_text("#include <nicety.h>\nint payload_handler(void) { return undeclared; }\n")
    with pytest.raises(CompileError, match=r"^handlers\.c: does not compile; the compiler's messages are above$"):
        compile_handlers([handlers])
    assert "handlers.c:2:" in capfd.readouterr().err


def test_a_warning_reaches_the_user(handlers: Path, capfd: pytest.CaptureFixture[str]) -> None:
    handlers.write_text("int payload_handler(void) { int unused; return 0; }\n")
    compile_handlers([handlers])
    assert "unused" in capfd.readouterr().err


def test_the_linkers_messages_reach_the_user(handlers: Path, capfd: pytest.CaptureFixture[str]) -> None:
    handlers.write_text("int elsewhere(void);\nint payload_handler(void) { return elsewhere(); }\n")
    with pytest.raises(CompileError, match=r"handlers\.c: does not link"):
        compile_handlers([handlers])
    assert "elsewhere" in capfd.readouterr().err


def test_there_is_no_heap(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "a.c"
    source.write_text("#include <stdlib.h>\nint main(void) { free(malloc(4)); return 0; }\n")
    with pytest.raises(CompileError, match=r"a\.c: calls free, malloc, but programs of cards have no heap; use an"):
        compile_handlers([source])
    assert capfd.readouterr().err == ""
    source.write_text(f"{source.read_text()}void *malloc(size_t size) {{ return 0; }}\nvoid free(void *old) {{}}\n")
    compile_handlers([source])


def test_an_unknown_extension_is_the_compilers_to_refuse(handlers: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(CompileError):
        compile_handlers([handlers], isa="rv32imac_znothing")
    assert "znothing" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"isa": "rv128i"}, "isa 'rv128i': not a RISC-V one; write rv32i or rv64i"),
        ({"defines": ["1X"]}, "-D 1X: not a macro; write NAME or NAME=VALUE"),
        ({"include_dirs": ["nowhere"]}, "-I nowhere: no such folder"),
        ({"output": "nowhere/out.elf"}, "nowhere/out.elf: no folder 'nowhere'"),
        ({"cc": "no-such-compiler -x"}, "--cc no-such-compiler -x: no program 'no-such-compiler' on the PATH"),
        ({"cc": ""}, "--cc: an empty name"),
        ({"cc": "'"}, '--cc "\'": No closing quotation'),
        ({"cc": "false"}, "not a C compiler"),
        ({"cc": "make"}, "which is neither clang nor gcc"),
    ],
)
def test_options_that_are_refused(handlers: Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as caught:
        compile_handlers([handlers], **options)
    assert message in str(caught.value)


def test_sources_that_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no source"):
        compile_handlers([])
    with pytest.raises(InputError, match=r"gone\.c: no such file"):
        compile_handlers([tmp_path / "gone.c"])
    (tmp_path / "folder.c").mkdir()
    with pytest.raises(InputError, match=r"folder\.c: not a file"):
        compile_handlers([tmp_path / "folder.c"])
    (tmp_path / "handlers.txt").touch()
    with pytest.raises(
        InputError, match=r"handlers\.txt: neither a C source nor an eBPF object; the name of a source must end in \.c"
    ):
        compile_handlers([tmp_path / "handlers.txt"])


def test_a_cache_that_cannot_be_made(handlers: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("NICETY_CACHE", str(tmp_path / "file" / "cache"))
    with pytest.raises(InputError, match=r"cannot make this cache folder .*; set NICETY_CACHE"):
        compile_handlers([handlers])


def test_an_output_that_cannot_be_written(handlers: Path, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(InputError, match=r"^folder: cannot write it \(Is a directory\)$"):
        compile_handlers([handlers], output="folder")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder", "handlers.c"], "nothing is left behind"


def test_the_cache_is_the_platforms_unless_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NICETY_CACHE", "~/mine")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_dir() == tmp_path / "mine"
    monkeypatch.delenv("NICETY_CACHE")
    assert cache_dir() == Path(platformdirs.user_cache_dir("nicety", appauthor=False))


@pytest.mark.parametrize(
    ("kind", "flags"),
    [
        ("zig", ["-target", "riscv32-freestanding-none", "-mcpu=generic_rv32+m+zicsr"]),
        ("clang", ["--target=riscv32-unknown-elf", "-march=rv32im_zicsr", "-mabi=ilp32"]),
        ("gcc", ["-march=rv32im_zicsr", "-mabi=ilp32", "-mstrict-align"]),
    ],
)
def test_each_compiler_is_told_the_processor_in_its_own_way(kind: Kind, flags: list[str]) -> None:
    toolchain = Toolchain(("cc",), kind, "a compiler")
    assert toolchain.target_flags("rv32im_zicsr") == flags
    assert toolchain.compile_flags("rv32im_zicsr")[: len(flags)] == flags
    linking = toolchain.link_flags("rv32im_zicsr", Path("layout.ld"))
    assert linking[-2:] == ["-T", "layout.ld"]
    assert ("-fuse-ld=lld" in linking) == (kind == "clang")


@pytest.mark.parametrize(
    ("kind", "flags"),
    [
        ("zig", ["-target", "riscv64-freestanding-none", "-mcpu=generic_rv64+m+f+zicsr"]),
        ("clang", ["--target=riscv64-unknown-elf", "-march=rv64imf_zicsr", "-mabi=lp64f"]),
        ("gcc", ["-march=rv64imf_zicsr", "-mabi=lp64f", "-mstrict-align"]),
    ],
)
def test_each_compiler_is_told_the_width(kind: Kind, flags: list[str]) -> None:
    assert Toolchain(("cc",), kind, "a compiler").target_flags("rv64imf_zicsr") == flags


def test_zig_may_be_named_as_any_compiler() -> None:
    program = find_toolchain(None).argv[0]
    named = find_toolchain(f"{program} cc")
    assert named.kind == "zig"
    assert "clang" in named.version
    assert run(compile_handlers([PROGRAMS / "language.c"], cc=f"{program} cc").elf)[0]["exit_code"] == 42


def test_floats_and_bits_of_an_isa_reach_every_compiler() -> None:
    isa = "rv32imafcb_zicsr"
    zig = Toolchain(("cc",), "zig", "a compiler").target_flags(isa)
    assert zig[-1] == "-mcpu=generic_rv32+m+a+f+c+zicsr+zba+zbb+zbs"
    for kind in ("clang", "gcc"):
        flags = Toolchain(("cc",), kind, "a compiler").target_flags(isa)
        assert {"-march=rv32imafc_zicsr_zba_zbb_zbs", "-mabi=ilp32f"} <= set(flags)


def test_misaligned_accesses_are_each_compilers_own_option() -> None:
    flags = {kind: Toolchain(("cc",), kind, "").target_flags("rv32im_zicclsm") for kind in get_args(Kind)}
    assert flags["zig"][-1] == "-mcpu=generic_rv32+m+unaligned_scalar_mem"
    assert flags["clang"][1:] == ["-march=rv32im", "-mabi=ilp32", "-mno-strict-align"]
    assert flags["gcc"] == ["-march=rv32im", "-mabi=ilp32", "-mno-strict-align"]


def card(folder: Path, isa: str) -> str:
    """A card with handler cores of that isa."""
    path = folder / f"{isa}.toml"
    path.write_text(
        f'extends = "spin-discrete"\n[hpu]\nisa = {{ value = "{isa}", kind = "assumed", source = "none" }}\n'
    )
    return str(path)


def test_floats_in_hardware_give_the_same_in_fewer_cycles(tmp_path: Path) -> None:
    source = tmp_path / "floats.c"
    source.write_text(FLOATS)
    reports = {}
    for isa in ("rv32imac_zicsr", "rv32imafc_zicsr", "rv32imafcb_zicsr"):
        reports[isa], _ = run(compile_handlers([source], isa=isa).elf, spec=card(tmp_path, isa))
        assert (reports[isa]["exit_code"], reports[isa]["trap"]) == (42, None), isa
    soft, hard = (reports[isa]["cycles"] for isa in ("rv32imac_zicsr", "rv32imafc_zicsr"))
    assert 4 * hard < soft


def test_a_program_with_floats_needs_a_processor_with_floats(tmp_path: Path) -> None:
    source = tmp_path / "floats.c"
    source.write_text(FLOATS)
    program = compile_handlers([source], isa="rv32imafc_zicsr").elf
    with pytest.raises(InputError, match="compiled for a floating-point calling convention"):
        run(program)


@pytest.mark.parametrize(("isa", "less"), [("rv32imac_zicsr", False), ("rv32imacb_zicsr", True)])
def test_bit_manipulation_is_used(isa: str, less: bool, tmp_path: Path) -> None:
    source = tmp_path / "bits.c"
    source.write_text(BITS)
    report, _ = run(compile_handlers([source], isa=isa).elf, spec=card(tmp_path, isa))
    assert (report["exit_code"], report["trap"]) == (42, None)
    assert (report["cycles"] < 1500) == less


def test_isa_extensions() -> None:
    assert isa_extensions("rv32i") == isa_extensions("rv64i") == []
    assert isa_extensions("rv32imac_zicsr_zba") == ["m", "a", "c", "zicsr", "zba"]
    assert isa_extensions("rv32imcb_zba") == ["m", "c", "zba", "zbb", "zbs"]


@pytest.mark.parametrize(
    ("image", "message"),
    [
        (b"", "not an ELF file"),
        (b"\x7fELF\x02\x02", "a big-endian ELF file, not a little-endian RISC-V ELF file"),
        (b"\x7fELF\x01\x01\x01" + bytes(11) + b"\x3e" + bytes(60), "an ELF file for x86-64"),
        (b"\x7fELF\x01\x01\x01", "damaged"),
    ],
)
def test_files_that_are_no_riscv_objects(image: bytes, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read_symbols(image)


@pytest.mark.parametrize("text", ["", "static int unused(void) { return 1; }", "int data = 7;"])
def test_a_source_without_code_is_named(text: str, tmp_path: Path) -> None:
    source, output = tmp_path / "nothing.c", tmp_path / "nothing.elf"
    source.write_text(text)
    with pytest.raises(
        CompileError, match=r"nothing\.c: no code in it; write at least one function that is not static"
    ):
        compile_handlers([source], output=output)
    assert not output.exists()


@pytest.mark.parametrize("isa", ["rv32imac_zicsr", "rv32i", "rv64imac_zicsr", "rv64i"])
def test_the_c_library_answers_as_the_standard_says(isa: str) -> None:
    report, written = run(compile_handlers([PROGRAMS / "library.c"], isa=isa).elf)
    assert report["trap"] is None
    assert (report["exit_code"], written) == (42, b"checked\n!")


def test_the_c_library_of_another_compiler_is_the_same(tool: Callable[[str], str], tmp_path: Path) -> None:
    output = tmp_path / "library.elf"
    compile_handlers([PROGRAMS / "library.c"], cc=tool("riscv64-unknown-elf-gcc"), output=output)
    done = subprocess.run([tool("qemu-riscv32"), str(output)], capture_output=True, check=False)
    assert (done.returncode, done.stdout) == (42, b"checked\n!")


ROOTS = """
#include <math.h>
#include <stdio.h>
#include <string.h>
static const unsigned long long given[] = {%s};
int main(void) {
  for (unsigned at = 0; at < sizeof given / sizeof *given; at++) {
    double value, root;
    memcpy(&value, &given[at], 8);
    root = sqrt(value);
    float small = sqrtf((float)value);
    for (unsigned byte = 0; byte < 8; byte++) putchar(((unsigned char *)&root)[byte]);
    for (unsigned byte = 0; byte < 4; byte++) putchar(((unsigned char *)&small)[byte]);
  }
  return 42;
}
"""


@pytest.mark.parametrize("isa", ["rv32imac_zicsr", "rv32imafc_zicsr", "rv64imac_zicsr"])
def test_square_roots_are_rounded_as_they_are_elsewhere(isa: str, tool: Callable[[str], str], tmp_path: Path) -> None:
    numbers = random.Random(7)  # of all magnitudes, including subnormal ones and those next to squares
    values = [struct.unpack("<d", numbers.randbytes(7) + bytes([numbers.randrange(128)]))[0] for _ in range(150)]
    values += [number * 2.0**-1074 for number in (1, 2, 3, 2**51 - 1, 2**52)]
    squares = [float(numbers.randrange(2**26)) ** 2 for _ in range(40)]
    values += [
        near for square in squares for near in (square, math.nextafter(square, 0), math.nextafter(square, 1e300))
    ]
    values = [value for value in values if math.isfinite(value)]
    source = tmp_path / "roots.c"
    source.write_text(ROOTS % ", ".join(f"{struct.unpack('<Q', struct.pack('<d', value))[0]}u" for value in values))
    output = tmp_path / "roots.elf"
    compile_handlers([source], isa=isa, output=output)
    done = subprocess.run([tool(f"qemu-riscv{isa[2:4]}"), str(output)], capture_output=True, check=False)
    assert done.returncode == 42
    roots = list(struct.iter_unpack("<df", done.stdout))
    with np.errstate(over="ignore"):
        wanted = [(math.sqrt(value), float(np.sqrt(np.float32(value)))) for value in values]
    assert roots == wanted


def test_an_assertion_that_fails_names_its_line(tmp_path: Path) -> None:
    source = tmp_path / "asserts.c"
    source.write_text("#include <assert.h>\nvolatile int zero;\nint main(void) {\n  assert(zero);\n  return 0;\n}\n")
    report, _ = run(compile_handlers([source]).elf)
    assert "asserts.c:4" in json.dumps(report["trap"])
    report, _ = run(compile_handlers([source], defines=["NDEBUG"]).elf)
    assert (report["trap"], report["exit_code"]) == (None, 0)


def test_uncalled_functions_are_not_in_a_program(handlers: Path) -> None:
    symbols = read_symbols(compile_handlers([handlers]).elf).functions
    assert not symbols & {"qsort", "strtok", "sqrt", "rand"}


def test_a_program_may_bring_its_own_function_of_the_library(tmp_path: Path) -> None:
    source = tmp_path / "own.c"
    source.write_text(
        "#include <stdlib.h>\n#include <string.h>\nint abs(int x) { return x + 1; }\n"
        'int main(void) { return abs(-3) + (int)strcspn("ab", "b") + atoi("44"); }\n'
    )
    report, _ = run(compile_handlers([source]).elf)
    assert report["exit_code"] == 43


def test_headers_of_another_interface_are_told(tmp_path: Path) -> None:
    source = tmp_path / "mine.c"
    source.write_text("#include <handler.h>\n")
    with pytest.raises(CompileError, match=r'handler\.h is for cards with \[hpu\] interface = "pspin"'):
        compile_handlers([source])
    source.write_text('#include "frame.h"\n#include <nowhere.h>\n')
    with pytest.raises(CompileError, match=r"frame\.h is for cards without \[hpu\] interface, such as spin"):
        compile_handlers([source], interface="pspin")
    source.write_text("#include <nowhere.h>\n")
    with pytest.raises(CompileError, match=r"messages are above$"):
        compile_handlers([source])


def test_atomic_operations_without_instructions_are_refused(tmp_path: Path) -> None:
    source = tmp_path / "mine.c"
    source.write_text("int count(int *n) { return __atomic_fetch_add(n, 1, __ATOMIC_RELAXED); }\n")
    with pytest.raises(CompileError, match=r"mine\.c: has atomic operations \(__atomic_fetch_add_4\).*such as rv32ia"):
        compile_handlers([source], isa="rv32i")
    compile_handlers([source], isa="rv32ia")
