"""printf and math.h of `nicety cc`, compared with Python's."""

from __future__ import annotations

import json
import math
import random
import re
import struct
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from nicety import _native
from nicety.build.compiler import compile_handlers

ROOT = Path(__file__).parent.parent


def printed(folder: Path, body: str, before: str = "", **options: Any) -> bytes:
    """The output of a bare program of these statements, which must succeed."""
    source = folder / "prints.c"
    source.write_text(f"#include <stdio.h>\n{before}\nint main(void) {{\n{body}\nreturn 0;\n}}\n")
    text, written = _native.hpu_run(compile_handlers([source], **options).elf, None, None, None)
    report = json.loads(text)
    assert (report["trap"], report["exit_code"]) == (None, 0), report
    return written


def bits(values: Iterable[float]) -> str:
    return ", ".join(f"{struct.unpack('<Q', struct.pack('<d', value))[0]}u" for value in values)


# Conversion, arguments in C, the result by the standard.
CONVERSIONS = [
    ("%d %i %u", "-5, 7, -1", "-5 7 4294967295"),
    ("%d %d", "2147483647, -2147483647 - 1", "2147483647 -2147483648"),
    ("[%5d] [%-5d] [%05d] [%+d] [% d]", "42, 42, -42, 42, 42", "[   42] [42   ] [-0042] [+42] [ 42]"),
    (
        "[%.3d] [%6.3d] [%-6.3d] [%06.3d] [%.0d] [%.d] [%+.0d]",
        "7, -7, 7, 7, 0, 0, 0",
        "[007] [  -007] [007   ] [   007] [] [] [+]",
    ),
    (
        "%x %X %#x %#X %o %#o %#o %#.2o %#.3o %#x",
        "48879, 48879, 48879, 48879, 8, 8, 0, 8, 8, 0",
        "beef BEEF 0xbeef 0XBEEF 10 010 0 010 010 0",
    ),
    ("[%#8x] [%#08x] [%-#8x] [%08x]", "255, 255, 255, 255", "[    0xff] [0x0000ff] [0xff    ] [000000ff]"),
    ("%hhd %hhu %hd %hu %hhx", "255, 511, 65535, 65537, -1", "-1 255 -1 1 ff"),
    ("%ld %lu %zu %td %lx", "-9L, 9UL, (size_t)9, (ptrdiff_t)-9, 16UL", "-9 9 9 -9 10"),
    (
        "%lld %llu %llx %jd",
        "-9223372036854775807LL - 1, ~0ULL, ~0ULL, (intmax_t)-1",
        "-9223372036854775808 18446744073709551615 ffffffffffffffff -1",
    ),
    ("%d %lld %d", "1, 5000000000LL, 2", "1 5000000000 2"),
    ("%llu %020llu", "4294967296ULL, 10000000000ULL", "4294967296 00000000010000000000"),
    (
        "[%s] [%8s] [%-8s] [%.2s] [%8.2s] [%.0s] [%s]",
        '"hello", "hello", "hello", "hello", "hello", "hello", ""',
        "[hello] [   hello] [hello   ] [he] [      he] [] []",
    ),
    ("[%c%c] [%3c] [%-3c] %%", "'o', 'k', 'x', 'y'", "[ok] [  x] [y  ] %"),
    ("[%*d] [%-*d] [%*d] [%.*d] [%.*d]", "4, 1, 3, 2, -3, 2, 3, 7, -1, 7", "[   1] [2  ] [2  ] [007] [7]"),
    ("%p %10p", "(void *)4096, (void *)0", "0x1000        0x0"),
    ("%.*s|%s", '2, "abc", "def"', "ab|def"),
]


def test_integers_and_text_are_printed_as_the_standard_says(tmp_path: Path) -> None:
    body = "".join(f'printf("{form}\\n", {arguments});\n' for form, arguments, _wanted in CONVERSIONS)
    wanted = [wanted for _form, _arguments, wanted in CONVERSIONS]
    assert printed(tmp_path, body, "#include <stdint.h>").decode().splitlines() == wanted


def test_unknown_conversions_are_printed_unchanged(tmp_path: Path) -> None:
    body = 'const char *volatile odd = "100%! %y %-5q| %a %Lg %d %"; printf(odd, 1.5L, 7);'
    assert printed(tmp_path, body) == b"100%! %y %-5q| %a %Lg 7 %"


def test_doubles_are_rounded_once(tmp_path: Path) -> None:
    numbers = random.Random(3)
    forms = ["%f", "%e", "%g", "%.0f", "%.0e", "%.0g", "%#.0f", "%#g", "%.17g", "%.3G", "%+.2E", "% .1f", "%025.3f"]
    forms += ["%-20.10e|", "%.30f", "%.25e", "%.1100f", "%.800e", "%F", "%20g"]
    values = [0.0, -0.0, 1.0, 0.5, 1.5, 2.5, 0.125, 9.5, 99.5, 999999.5, 0.1, 1e5, 1e6, 123456.5, 1e-4, 9.9999e-5]
    values += [5e-324, 2.0**-1022, 2.0**1023, 1.7976931348623157e308, 1e21, 1e22, 1e23, 2.0**53 + 2, 1e9, 1e18, 5e8]
    values += [struct.unpack("<d", numbers.randbytes(8))[0] for _ in range(10)]
    values += [numbers.randrange(1 << 20) / (1 << numbers.randrange(20)) for _ in range(10)]
    pairs = [(form, value) for value in values for form in numbers.sample(forms, 6) if math.isfinite(value)]
    pairs += [(form, value) for form in forms for value in (0.0, 0.5, 999999.5, 5e-324, -1.7976931348623157e308)]
    # Just above a tie, and a carry through a word of nine digits.
    pairs += [("%.0f", 2.5 + 2.0**-40), ("%.0f", 999999999.5), ("%.3e", 999999999999999999.0), ("%.9f", 1 - 2.0**-40)]
    wanted = [form % value for form, value in pairs]
    pairs += [("[%8f]", math.inf), ("[%-8.1E]", -math.inf), ("[%08g]", math.nan)]
    wanted += ["[     inf]", "[-INF    ]", "[     nan]"]
    before = f"""#include <string.h>
        static const unsigned long long given[] = {{{bits(value for _form, value in pairs)}}};
        static const char *const forms[] = {{{", ".join(f'"{form}"' for form, _value in pairs)}}};"""
    body = """for (unsigned at = 0; at < sizeof given / sizeof *given; at++) {
        double value;
        memcpy(&value, &given[at], 8);
        printf(forms[at], value);
        putchar('\\n');
    }"""
    assert printed(tmp_path, body, before).decode().splitlines() == wanted


def test_text_in_memory_ends_where_the_memory_does(tmp_path: Path) -> None:
    body = """char to[8] = "xxxxxxx";
    printf("%d %s|", snprintf(to, sizeof to, "%d-%s", 12, "3456789"), to);
    printf("%d %s|", snprintf(to, 3, "%d", 5), to);
    printf("%d|", snprintf(0, 0, "%080d", 1));
    printf("%d %s|", sprintf(to, "%s", "abc"), to);
    to[0] = 'q';
    printf("%d %c|", snprintf(to, 0, "abc"), to[0]);
    memset(to, 'x', sizeof to);
    printf("%d %.2s%c%c", snprintf(to, 3, "%s", "abc"), to, to[2] + '0', to[3]);"""
    assert printed(tmp_path, body, "#include <string.h>") == b"10 12-3456|1 5|80|3 abc|3 q|3 ab0x"


def test_text_of_any_length_leaves_whole_and_in_order(tmp_path: Path) -> None:
    long = "x" * 127
    body = f"""fputs("a", stdout); printf("{long}"); fprintf(stderr, "%s%c%0200d", "{long}", 'b', 7);
    fwrite("cdefg", 2, 2, stdout); putc('h', stdout); fputc('i', stdout); puts("j"); fflush(stdout);
    printf("%d", printf("%s%s", "{long}", "{long}{long}"));"""
    wanted = "a" + long + long + "b" + "7".rjust(200, "0") + "cdefhij\n" + 3 * long + "381"
    assert printed(tmp_path, body).decode() == wanted


def test_printing_costs_cycles(tmp_path: Path) -> None:
    def cycles(statement: str) -> int:
        source = tmp_path / "costs.c"
        source.write_text(f"#include <stdio.h>\nint main(void) {{ {statement} return 0; }}\n")
        return json.loads(_native.hpu_run(compile_handlers([source]).elf, None, None, None)[0])["cycles"]

    none, text, number, double = map(cycles, ["", 'printf("a");', 'printf("%d", 12345);', 'printf("%f", 0.1);'])
    assert none + 50 < text < number < double


def test_errors_have_a_number_and_a_name(tmp_path: Path) -> None:
    before = "#include <errno.h>\n#include <stdlib.h>\n#include <string.h>\n#include <limits.h>"
    body = """char *end;
    errno = 0;
    if (strtol("12", &end, 10) != 12 || strtoul("0", &end, 10) || strtol("-2147483648", &end, 10) != LONG_MIN) return 1;
    if (errno) return 2;
    if (strtol("2147483648", &end, 10) != LONG_MAX || errno != ERANGE) return 3;
    perror("read");
    errno = 0;
    if (strtol("-2147483649", &end, 10) != LONG_MIN || errno != ERANGE) return 4;
    errno = 0;
    if (strtoull("18446744073709551616", &end, 10) != ULLONG_MAX || errno != ERANGE) return 5;
    if (strtol("q", &end, 10) || errno != EINVAL) return 6;
    perror("");
    printf("%s, %s", strerror(EDOM), strerror(0));"""
    wanted = b"read: result out of range\ninvalid argument\nargument without a result, no error"
    assert printed(tmp_path, body, before) == wanted


def test_the_clock_counts_cycles(tmp_path: Path) -> None:
    before = "#include <time.h>"
    body = """clock_t before = clock();
    for (volatile int at = 0; at < 1000; at++);
    clock_t after = clock();
    if (after - before < 2000 || after - before > 50000) return 1;
    time_t now;
    return time(&now) == -1 && now == -1 && CLOCKS_PER_SEC == 1000 ? 0 : 2;"""
    assert printed(tmp_path, body, before, defines=["CLOCKS_PER_SEC=1000"]) == b""


HANDLER = r"""
%s
#include <string.h>
__handler int payload_handler(const ptl_payload_t p, void *state) {
  char text[32];
  int length = snprintf(text, sizeof text, "%%u bytes, %%.1f", p.length, p.length * 0.5);
  printf("%%s\n", text);
  return length == (int)strlen(text) ? SUCCESS : FAIL;
}
"""


@pytest.mark.parametrize(
    "headers", ["#include <nicety.h>\n#include <stdio.h>", "#include <stdio.h>\n#include <nicety.h>"]
)
def test_a_handler_formats_text_and_prints_it_to_the_log(headers: str, nicety: Callable, tmp_path: Path) -> None:
    (tmp_path / "says.c").write_text(HANDLER % headers)
    result = nicety("bench", "handlers", "says.c", "--nic", "spin-discrete", "--packet-sizes", "64", "--json")
    assert result.status == 0, result.stderr
    assert re.search(r"^\[.* us node 1 HPU 0\] 64 bytes, 32\.0$", result.stderr, re.MULTILINE)


# Functions of math.h of one argument, and numbers to try. Python has all of them but these.
EDGES = (
    0.0,
    -0.0,
    0.3,
    0.5,
    -0.5,
    1.5,
    -2.5,
    0.49999999999999994,
    2.0**52 + 1,
    -(2.0**51) - 0.5,
    1e300,
    math.inf,
    -math.inf,
)
WHOLE = (0.0, 0.5, -0.5, 1.5, -2.5, 0.49999999999999994, 1e9, -123456.75)
ONE = {
    **dict.fromkeys(("fabs", "trunc", "floor", "ceil", "round", "rint", "nearbyint"), EDGES),
    **dict.fromkeys(("lround", "llround", "lrint", "llrint"), WHOLE),
    "sqrt": (0.0, 2.0, 1e-310),
    **dict.fromkeys(("asin", "acos"), (0.0, 0.3, -0.7, 1.0, -1.0)),
    "atanh": (0.0, 0.3, -0.7),
    "acosh": (1.0, 1.5, 30.0, 1e10),
    **dict.fromkeys(("log", "log2", "log10"), (1e-30, 0.1, 1.0, 2.0, 1000.0, 1e30)),
    "log1p": (-0.5, 1e-10, 0.1, 5.0),
    **dict.fromkeys(("sin", "cos", "tan"), (0.0, 0.5, -3.0, 100.0, 1e6)),
    **dict.fromkeys(("atan", "asinh", "tanh", "cbrt"), (0.0, 1e-5, 0.5, -3.0, 100.0)),
    **dict.fromkeys(("sinh", "cosh", "exp", "exp2", "expm1"), (0.0, 1e-5, 0.5, -3.0, 30.0)),
}
TWO = {
    "copysign": ((3.0, -0.0), (-3.0, 1.0)),
    "pow": ((2.0, 10.0), (0.3, 1 / 3), (1e10, -3.5), (-2.0, 3.0), (0.0, 0.0)),
    "atan2": ((1.0, -1.0), (-0.0, -1.0), (3.0, 4.0), (-2.0, 0.0)),
    "hypot": ((3.0, 4.0), (1e20, 1e10), (1e-3, 1e5)),
    "fmod": ((7.5, 2.0), (-7.5, 2.0), (1e18, 3.0)),
    **dict.fromkeys(("fmax", "fmin"), ((1.0, 2.0), (math.nan, 2.0), (2.0, math.nan), (0.0, -0.0), (-0.0, 0.0))),
    "fdim": ((3.0, 1.5), (1.0, 2.0)),
}
LIFTED = (
    (1.5, 3),
    (1.0, -1074),
    (3.0, -1075),
    (1.5, -1075),
    (5e-324, 2000),
    (5e-324, 2090),
    (1.0, 5000),
    (-1e308, -5000),
    (1.3e-308, -3),
)
OTHERS = {"modf", "frexp", "ldexp", "scalbn", "fma"}


def away(x: float) -> float:
    return x if math.isinf(x) else math.copysign(math.floor(abs(x)) + (abs(x) % 1 >= 0.5), x)


def even(x: float) -> float:
    return x if math.isinf(x) else math.copysign(round(x), x)


def whole(of: Callable[[float], int]) -> Callable[[float], float]:
    return lambda x: x if math.isinf(x) else math.copysign(of(x), x)


REFERENCE: dict[str, Callable[..., float]] = {
    **{name: whole(getattr(math, name)) for name in ("trunc", "floor", "ceil")},
    **dict.fromkeys(("round", "lround", "llround"), away),
    **dict.fromkeys(("rint", "nearbyint", "lrint", "llrint"), even),
    "fmax": lambda x, y: (
        y if math.isnan(x) else x if math.isnan(y) else max(x, y, key=lambda z: (z, math.copysign(1, z)))
    ),
    "fmin": lambda x, y: (
        y if math.isnan(x) else x if math.isnan(y) else min(x, y, key=lambda z: (z, math.copysign(1, z)))
    ),
    "fdim": lambda x, y: max(x - y, 0.0),
}

APART = """
#include <math.h>
#include <stdint.h>
#include <string.h>
static void show(double value) {
  unsigned long long bits;
  memcpy(&bits, &value, 8);
  printf("%llx\\n", bits);
}
static double number(unsigned long long bits) {
  double value;
  memcpy(&value, &bits, 8);
  return value;
}
"""


def literal(value: float) -> str:
    return f"number({bits([value])}LL)"


def shown(folder: Path, calls: Iterable[str], **options: Any) -> list[float]:
    body = "".join(f"show({call});\n" for call in calls)
    lines = printed(folder, body, APART, **options).decode().split()
    return [struct.unpack("<d", int(line, 16).to_bytes(8, "little"))[0] for line in lines]


def single(value: float) -> float:
    return struct.unpack("<f", struct.pack("<f", value))[0] if abs(value) < 3e38 else value * math.inf


def close(ours: float, wanted: float, unit: float) -> bool:
    """To two units in the last place, including signs of zeros and NaN."""
    if math.isnan(wanted):
        return math.isnan(ours)
    same = ours == wanted or abs(ours - wanted) <= 2 * unit * abs(wanted)
    return same and math.copysign(1, ours) == math.copysign(1, wanted)


def test_mathematics_is_what_it_is_elsewhere(tmp_path: Path) -> None:
    header = (ROOT / "handlers" / "runtime" / "include" / "math.h").read_text()
    declared = set(re.findall(r"^(?:double|float|long|long long) (\w+)\(", header, re.MULTILINE))
    tried = {*ONE, *TWO, *OTHERS}
    assert declared == tried | {f"{name}f" for name in tried}
    calls, wanted = [], []
    given = [(name, (x,)) for name, values in ONE.items() for x in values]
    given += [(name, pair) for name, pairs in TWO.items() for pair in pairs]
    given.append(("fma", (1.0 + 2.0**-20, 1.0 - 2.0**-20, -1.0)))
    for name, arguments in given:
        reference = REFERENCE.get(name, getattr(math, name, None)) or (lambda x, y, z: -(2.0**-40))
        calls.append(f"{name}({', '.join(map(literal, arguments))})")
        wanted.append((reference(*arguments), 2.0**-52))
        if all(x == single(x) for x in arguments if not math.isnan(x)):
            calls.append(f"{name}f({', '.join(f'(float){literal(x)}' for x in arguments)})")
            wanted.append((single(reference(*arguments)), 2.0**-23))
    # lround and similar functions have no zero below zero.
    unsigned = [call.startswith(("l", "ll")) and "r" in call.partition("(")[0] for call in calls]
    for call, ours, (reference, unit), plain in zip(calls, shown(tmp_path, calls), wanted, unsigned, strict=True):
        assert close(ours, reference + 0.0 if plain else reference, unit), (call, ours, reference)


def test_numbers_come_apart_and_together_exactly(tmp_path: Path) -> None:
    values = (0.0, -0.0, 1.0, -3.75, 5e-324, 1e300, 0.1, math.inf)
    calls, wanted = [], []
    for value in values:
        calls += [f"({{int e; double f = frexp({literal(value)}, &e); show(e); f;}})"]
        wanted += [float(math.frexp(value)[1]), math.frexp(value)[0]]
        calls += [f"({{double w, f = modf({literal(value)}, &w); show(w); f;}})"]
        wanted += [math.modf(value)[1], math.modf(value)[0]]
        if value == single(value):
            calls += [f"({{int e; float f = frexpf((float){literal(value)}, &e); show(e); f;}})"]
            wanted += [float(math.frexp(value)[1]), math.frexp(value)[0]]
            calls += [f"({{float w, f = modff((float){literal(value)}, &w); show(w); f;}})"]
            wanted += [math.modf(value)[1], math.modf(value)[0]]
    for value, exponent in LIFTED:
        calls += [f"{name}({literal(value)}, {exponent})" for name in ("ldexp", "scalbn")]
        try:
            wanted += 2 * [math.ldexp(value, exponent)]
        except OverflowError:
            wanted += 2 * [math.copysign(math.inf, value)]
    calls += ["ldexpf(1.5f, -149)", "scalbnf(3.0f, 4)", "ldexpf(1.0f, 128)"]
    wanted += [math.ldexp(2.0, -149), 48.0, math.inf]
    ours = shown(tmp_path, calls)
    assert list(map(repr, ours)) == list(map(repr, wanted))
