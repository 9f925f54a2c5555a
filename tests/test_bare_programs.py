"""Freestanding programs, like those of benchmark suites for small processors, on a handler core."""

from __future__ import annotations

import base64
import heapq
import math
import re
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

SUITE = Path(__file__).parent / "programs" / "suite"


def numbers(seed: int) -> Iterator[int]:
    """The numbers of board.c."""
    state = seed
    while True:
        state = (state * 1103515245 + 12345) % 2**32
        yield state >> 16 & 0x7FFF


def matmult() -> str:
    given = numbers(7)
    left, right = (np.array([[next(given) % 8095 for _ in range(16)] for _ in range(16)]) for _ in range(2))
    product = left @ right
    return f"{product[0, 0]} {product[15, 3]} {product[5, 5] * product[6, 6]}"


def crc32() -> str:
    given = numbers(3)
    return f"{zlib.crc32(bytes(next(given) & 0xFF for _ in range(1024))):08X}"


def states() -> str:
    return "16 words: 4 whole, 3 broken, 2 scaled, 1 words, 6 wrong; -2147483643, 1 too large"


def sorting() -> str:
    (text,) = re.findall(r'text\[\] = "(.*)"', (SUITE / "sorting.c").read_text())
    words = sorted(Counter(text.split()).items(), key=lambda word: (-word[1], word[0]))
    return ", ".join(f"{word} {count}" for word, count in words)


def filtered() -> str:
    places = [tap - 7 for tap in range(15)]
    taps = [0.25 if at == 0 else math.sin(math.pi * at / 4) / (math.pi * at) for at in places]
    taps = [tap * (0.5 - 0.5 * math.cos(2 * math.pi * (at + 8) / 16)) for tap, at in zip(taps, places, strict=True)]
    tone = np.arange(96)
    samples = np.sin(2 * np.pi * tone / 32) + 0.5 * np.sin(2 * np.pi * tone * 7 / 16)
    through = np.convolve(samples, taps, "valid")  # the taps are the same in both directions
    effective = math.sqrt(np.mean(through**2))
    return f"{effective:.9f} {through.max():.6e} {round(effective, 2):g}"


def huffman() -> str:
    given = numbers(11)
    message = []
    for _ in range(600):
        most = next(given) % 32
        message.append(next(given) % (most + 1))
    # For any resolution of ties, all optimal codes have the same length.
    counts = Counter(message)
    heap, bits = [counts[symbol] for symbol in range(32)], 0
    heapq.heapify(heap)
    while len(heap) > 1:
        joined = heapq.heappop(heap) + heapq.heappop(heap)
        bits += joined
        heapq.heappush(heap, joined)
    return f"{bits} bits of 3000"


def base64_lines() -> str:
    given = numbers(5)
    coded = base64.b64encode(bytes(next(given) >> 3 & 0xFF for _ in range(100))).decode()
    return "\n".join(re.findall(".{1,60}", coded))


def cubic() -> str:
    lines = []
    for row in re.findall(r"\{(-?\d[^{}]*)\}", (SUITE / "cubic.c").read_text()):
        roots = np.roots([float(number) for number in row.split(",")])
        lines.append(sorted(f"{root.real:.8f}" for root in roots if abs(root.imag) < 1e-9))
    return "\n".join(" ".join(line) for line in lines)


PROGRAMS: dict[str, Callable[[], str]] = {
    "matmult": matmult,
    "crc32": crc32,
    "states": states,
    "sorting": sorting,
    "filter": filtered,
    "huffman": huffman,
    "base64": base64_lines,
    "cubic": cubic,
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_of_the_suite_comes_to_its_result(name: str, nicety: Callable) -> None:
    made = nicety("cc", SUITE / f"{name}.c", SUITE / "board.c", "-o", "program.elf")
    assert (made.status, made.stderr) == (0, "")
    done = nicety("hpu", "run", "program.elf", "--spec", "spin-discrete", "--json")
    assert done.status == 0, done.stderr
    report = done.json()
    assert (report["exit_code"], report["trap"]) == (0, None)
    *lines, last = done.stderr.splitlines()
    if name == "cubic":  # in any order
        lines = [" ".join(sorted(line.split())) for line in lines]
    assert "\n".join(lines) == PROGRAMS[name]()
    (cycles,) = re.findall(rf"^{name}: right, in (\d+) cycles$", last)
    assert 5000 < int(cycles) < report["cycles"]


def test_every_program_of_the_suite_is_run() -> None:
    assert {path.stem for path in SUITE.glob("*.c")} == {*PROGRAMS, "board"}


def test_a_program_whose_result_is_wrong_fails(nicety: Callable) -> None:
    assert nicety("cc", SUITE / "base64.c", SUITE / "board.c", "-D", "BROKEN", "-o", "program.elf").status == 0
    done = nicety("hpu", "run", "program.elf")
    assert done.status == 1
    assert "base64: the result is wrong\nexit_code     1\n" in done.stdout
    assert done.stderr == "nicety: program.elf: it ended with exit code 1\n"
    assert nicety("hpu", "run", "program.elf", "--json").json()["exit_code"] == 1
    # A function's value is no exit code.
    assert nicety("hpu", "run", "program.elf", "--entry", "next_number").status == 0
