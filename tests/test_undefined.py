"""Undefined behaviour in handlers: the table in docs/reference/handlers.md, row by row."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

import nicety
from nicety.build.compiler import compile_handlers
from nicety.errors import CompileError

PAGE = Path(__file__).parent.parent / "docs/reference/handlers.md"

# For each row of the table: the beginning of the error, and statements with constants and with values that the compiler
# does not know. They are in a handler with `p`, its packet of 64 bytes, `state`, and `zero`, `one` and `minus`, all
# volatile.
NULL = "outside its memory (a null pointer?)"
UNDEFINED = "undefined behaviour: "
TRAPS: dict[str, tuple[str, list[str]]] = {
    "a load or a store through a null pointer": (
        NULL,
        [
            "uint32_t *q = NULL; *q = 1;",
            "uint32_t *q = NULL; if (p.length > 4) *q = 1;",
            "uint32_t *q = NULL; one = *q;",
            "struct { int a, b[9]; } *q = NULL; q->b[3] = 7;",
            "uint32_t *q = (uint32_t *)zero; *q = 1;",
        ],
    ),
    "a call of a null pointer": (
        "jump to 0x0 outside the code (a null pointer?)",
        ["void (*f)(void) = NULL; f();", "void (*f)(void) = (void (*)(void))zero; f();"],
    ),
    "an integer divided by zero, or the remainder": (
        UNDEFINED + "a division by zero",
        [
            "one = one / 0;",
            "one = one % 0;",
            "one = one / zero;",
            "one = one % (uint8_t)zero;",
            "one = one / (uint64_t)zero;",
        ],
    ),
    "a shift by a negative number of bits, or by at least the width of the type": (
        UNDEFINED + "a shift by a negative number of bits",
        [
            "one = one << 32;",
            "one = one >> -1;",
            "one = 1u << (one * 40);",
            "one = one >> minus;",
            "one = 1ull << (one * 64);",
        ],
    ),
    "an index outside an array with its length in its type": (
        UNDEFINED + "an index outside its array",
        [
            "static volatile int t[4]; t[5] = 1;",
            "static volatile int t[4]; t[one * 4] = 1;",
            "volatile int t[4]; t[minus] = 1;",
            "struct { volatile int a[4], b; } *q = state; q->a[one * 4] = 1;",
        ],
    ),
    "an array with a computed length that is zero or negative": (
        UNDEFINED,
        ["volatile int t[zero]; t[0] = 1;", "volatile int t[minus]; t[0] = 1;"],
    ),
    "`__builtin_unreachable()`, if it is reached": (
        UNDEFINED + "execution reached __builtin_unreachable()",
        ["__builtin_unreachable();", "if (one) __builtin_unreachable();"],
    ),
    "`__builtin_clz(0)`, `__builtin_ctz(0)`": (
        UNDEFINED,
        ["one = __builtin_clz(0);", "one = __builtin_ctz(zero);"],
    ),
    "a loop that never ends and has no effect": (
        "still running at its limit of",
        [
            "while (1) {}",
            "for (unsigned i = 1; i != 0; i += 2) {}",
            "const uint8_t *b = p.base; while (*b != 0x5a || one) {}",
        ],
    ),
}
# The results of defined operations: a statement, and the word that it leaves in `out`.
DEFINED: dict[str, list[tuple[str, int]]] = {
    "a signed sum, difference or product that overflows": [
        ("int a = 2147483647 + one; out = a > 0 ? 7u : (uint32_t)a;", 0x80000000),
        ("int a = -2147483647 - 1 - one; out = (uint32_t)a;", 0x7FFFFFFF),
        ("int a = (one + 65535) * 65536; out = (uint32_t)a;", 0),
        ("int a = one; out = 0; for (int i = 2147483640; i > 0; i += a) out++;", 8),
    ],
}
NOT_COMPILED = "a function with a result, if its end is reached without `return`"

CODE = """#include <nicety.h>
static volatile int zero = 0, one = 1, minus = -1;

static __attribute__((noinline, unused)) uint32_t defined(void) {{
    uint32_t out = 1;
    {defined}
    return out;
}}

__handler int payload_handler(const ptl_payload_t p, void *state) {{
    (void)zero, (void)one, (void)minus;
    {statement} /* line 12 */
    {check}
    return SUCCESS;
}}
"""


def write(folder: Path, statement: str = "", defined: str = "", check: str = "") -> Path:
    source = folder / "mine.c"
    source.write_text(CODE.format(statement=statement, defined=defined, check=check))
    return source


def fails(source: Path, nic: str = "spin-discrete", cc: str | None = None) -> str:
    with pytest.raises(nicety.HandlerTrap) as caught:
        nicety.check_line_rate(source, nics=nic, packet_sizes=[64], messages=1, cc=cc)
    return str(caught.value)


@pytest.mark.parametrize(
    ("row", "statement"), [(row, each) for row, (_, statements) in TRAPS.items() for each in statements]
)
def test_undefined_statements_trap(tmp_path: Path, row: str, statement: str) -> None:
    error = fails(write(tmp_path, statement))
    assert TRAPS[row][0] in error
    assert "in payload_handler at mine.c:12" in error


@pytest.mark.parametrize(("statement", "word"), [each for rows in DEFINED.values() for each in rows])
def test_defined_statements_have_values(tmp_path: Path, statement: str, word: int) -> None:
    check = f"if (defined() != {word}u) return FAIL;"
    (row,) = nicety.check_line_rate(
        write(tmp_path, "", statement, check), nics="spin-discrete", packet_sizes=[64], messages=1
    )["rows"]
    assert row["packet_dispositions"]["failed"] == 0


def test_a_missing_return_does_not_compile(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "mine.c"
    source.write_text("#include <nicety.h>\n__handler int payload_handler(const ptl_payload_t p, void *state) {\n}\n")
    with pytest.raises(CompileError):
        compile_handlers([source])
    assert "mine.c:3:1: error: non-void function does not return a value" in capfd.readouterr().err


def test_the_table_has_these_rows() -> None:
    table = PAGE.read_text().partition("## Undefined behaviour")[2].partition("```")[0]
    rows = [row for row in re.findall(r"^\| (.+?) \|", table, re.MULTILINE) if row != "in the source"]
    assert rows == [*list(TRAPS)[:-1], *DEFINED, "a loop that never ends and has no effect", NOT_COMPILED]


def test_a_function_may_go_without(tmp_path: Path) -> None:
    source = write(tmp_path, "static volatile int t[8][4]; t[0][one * 4] = 1;")
    assert TRAPS["an index outside an array with its length in its type"][0] in fails(source)
    text = source.read_text().replace("__handler int", '__handler __attribute__((no_sanitize("undefined"))) int')
    source.write_text(text)
    nicety.check_line_rate(source, nics="spin-discrete", packet_sizes=[64], messages=1)


PSPIN = """#include <handler.h>
static volatile int one = 1;
__handler__ void f(handler_args_t *args) {{
    task_t *task = args->task;
    uint64_t host = (uint64_t)task->host_mem_high << 32 | task->host_mem_low;
    (void)host;
    {} /* line 7 */
}}
void init_handlers(handler_fn *hh, handler_fn *ph, handler_fn *th, void **handler_mem_ptr) {{
    *hh = NULL, *ph = f, *th = NULL, *handler_mem_ptr = NULL;
}}
"""


@pytest.mark.parametrize(
    ("statement", "error", "place"),
    [
        ("spin_write_to_host(host, 1, NULL);", NULL, "in spin_write_to_host, called in f at mine.c:7"),
        ("uint32_t *q = NULL; if (one) *q = 1;", NULL, "in f at mine.c:7"),
        ("one = one / (one - 1);", UNDEFINED + "a division by zero", "in f at mine.c:7"),
        ("one = 1 << (one * 40);", UNDEFINED + "a shift by", "in f at mine.c:7"),
        ("static volatile int t[4]; t[one * 4] = 1;", UNDEFINED + "an index", "in f at mine.c:7"),
        ("volatile int t[4]; t[one * 4] = 1;", UNDEFINED + "an index", "in f at mine.c:7"),
        ("while (one) {}", "still running", "in f at mine.c:7"),
        ("TERMINATE", "the program ends the simulation (TERMINATE)", "in f at mine.c:7"),
        ("ASSERT(one == 2)", "assertion failed: one == 2", "in f at mine.c:7"),
    ],
)
def test_traps_in_handlers_for_pspin(tmp_path: Path, statement: str, error: str, place: str) -> None:
    source = tmp_path / "mine.c"
    source.write_text("#define CHECK_ASSERTS\n" + PSPIN.format(statement).replace("line 7", "line 8"))
    found = fails(source, "pspin")
    assert error in found
    assert place.replace(":7", ":8") in found


@pytest.mark.parametrize("statement", ["uint32_t *q = NULL; *q = 1;", "one = one / zero;", "one = one << (one * 40);"])
def test_a_gcc_traps_too(tmp_path: Path, statement: str) -> None:
    gcc = "riscv64-unknown-elf-gcc"
    if shutil.which(gcc) is None:
        pytest.skip(f"no {gcc}")
    error = fails(write(tmp_path, statement), cc=gcc)
    assert ":12 (pc" in error
