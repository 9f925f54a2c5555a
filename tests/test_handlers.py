"""Handlers of the user, right and wrong."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

INCLUDE = "#include <pingpong.h>\n"
ANSWER = "PtlHandlerPutFromDevice(p.base, p.length, 0, PTL_NO_ACK_REQ, s->peer, s->match_bits, p.offset, NULL, 0);"


@pytest.fixture
def bench(nicety: Callable, tmp_path: Path) -> Callable:
    """Ping-pong of 64 bytes with handlers of these lines."""

    def run(source: str, *options: str) -> object:
        (tmp_path / "mine.c").write_text(source)
        command = ["bench", "latency", "--nic", "spin-discrete", "--mode", "spin-stream", "--sizes", "64"]
        return nicety(*command, "--iterations", "2", "--handlers", "mine.c", *options)

    return run


def payload_handler(*lines: str) -> str:
    body = "\n    ".join(lines)
    return f"{INCLUDE}__handler int payload_handler(const ptl_payload_t p, void *state) {{\n    {body}\n}}\n"


def test_handlers_that_answer(bench: Callable) -> None:
    result = bench(payload_handler("const pingpong_t *s = state;", ANSWER, "return SUCCESS;"), "--json")
    assert (result.status, result.stderr) == (0, "")
    (row,) = result.json()["rows"]
    assert row["verified"] is True
    assert result.json()["manifest"]["compiler"]["spin-discrete/spin-stream"]["source"] == "mine.c"


def test_a_slower_handler_takes_its_cycles(bench: Callable) -> None:
    lines = ["const pingpong_t *s = state;", "%s", ANSWER, "return SUCCESS;"]
    latencies = []
    for count in (0, 1000):
        loop = f'for (int i = 0; i < {count}; i++) __asm__ volatile("");'
        (row,) = bench(payload_handler(*lines) % loop, "--json").json()["rows"]
        latencies.append(row["latency_ns"])
    # A round of the loop is an addition and a taken branch, 4 cycles of 0.4 ns, once per round trip.
    assert latencies[1] - latencies[0] == pytest.approx(1000 * 4 * 0.4 / 2, rel=0.01)


def test_printf_says_when_and_where(bench: Callable) -> None:
    source = payload_handler(
        "const pingpong_t *s = state;", 'printf("%u bytes for %s\\n", p.length, "you");', ANSWER, "return SUCCESS;"
    )
    result = bench(source, "--json")
    assert result.status == 0
    lines = result.stderr.splitlines()
    assert lines
    assert all(re.match(r"\[[0-9.]+ us node 1 HPU [0-3]\] 64 bytes for you", line) for line in lines), lines


def test_64_bit_division_and_memcpy(bench: Callable) -> None:
    source = payload_handler(
        "const pingpong_t *s = state;",
        "uint8_t copy[64];",
        "memcpy(copy, p.base, p.length);",
        "volatile uint64_t big = 1000000000000u, by = 7;",
        "if (big / by != 142857142857u || big % by != 1) return FAIL;",
        ANSWER.replace("p.base", "copy"),
        "return SUCCESS;",
    )
    result = bench("#include <string.h>\n" + source, "--json")
    assert (result.status, result.stderr) == (0, "")


@pytest.mark.parametrize(
    ("source", "status", "words"),
    [
        (payload_handler("return undeclared;"), 2, ["mine.c:3:", "undeclared", "does not compile"]),
        ("int unrelated(int x) { return x; }\n", 2, ["payload_handler"]),
        (
            INCLUDE
            + "static volatile char table[8 << 20];\n"
            + payload_handler("return table[p.length];")[len(INCLUDE) :],
            2,
            ["memory"],
        ),
        (payload_handler("for (;;);"), 1, ["mine.c:3", "payload_handler", "cycle"]),
        (payload_handler("*(volatile int *)0x40000000 = 1;", "return SUCCESS;"), 1, ["mine.c:3", "0x40000000"]),
        (
            payload_handler("*(volatile int *)(p.base + 1) = 1;", "return SUCCESS;"),
            1,
            ["mine.c:3", "not a multiple of 4"],
        ),
        (payload_handler("p.base[1 << 20] = 1;", "return SUCCESS;"), 1, ["mine.c:3", "payload_handler"]),
        (payload_handler('__asm__ volatile(".word 0");', "return SUCCESS;"), 1, ["mine.c:3", "illegal"]),
        (payload_handler("return 77;"), 1, ["payload handler returned 77"]),
        (
            payload_handler("return SUCCESS;"),
            1,
            ["deadlock", "rank 0", "1 handler ran on the card of rank 1, which sent 0"],
        ),
        (payload_handler("const pingpong_t *s = state;", "p.base[0] ^= 1;", ANSWER, "return SUCCESS;"), 1, ["byte 0"]),
    ],
    ids=[
        "does not compile",
        "exports no handler",
        "does not fit",
        "loops for ever",
        "writes outside",
        "misaligned",
        "writes far behind the packet",
        "illegal instruction",
        "returns nonsense",
        "never answers",
        "answers a wrong byte",
    ],
)
def test_handlers_that_are_wrong(bench: Callable, source: str, status: int, words: list[str]) -> None:
    result = bench(source)
    assert result.status == status
    assert result.stdout == ""
    for word in words:
        assert word in result.stderr


def test_handlers_for_another_processor(bench: Callable, tool: Callable[[str], str]) -> None:
    result = bench(payload_handler("return SUCCESS;"), "--cc", tool("cc"))
    assert result.status == 2
    assert "cc" in result.stderr
