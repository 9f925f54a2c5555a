"""Handler cores of 64 bits: programs, handlers on cards, and their limits."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import nicety as package
from nicety.build.compiler import compile_handlers, library_source

ISA = "rv64imac_zicsr"
CARD = "spin-100g-rv64"
NARROW = "spin-100g"

# Sorts, hashes and divides numbers of 64 bits, and prints them.
MIX = """
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static uint64_t values[64];
static int by_value(const void *a, const void *b) {
  const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
  return x < y ? -1 : x > y;
}
int main(void) {
  uint64_t hash = 14695981039346656037u;
  for (uint32_t i = 0; i < 64; i++) {
    hash = (hash ^ i) * 1099511628211u;
    values[i] = hash;
  }
  qsort(values, 64, sizeof *values, by_value);
  int32_t small = -7;
  for (uint32_t i = 0; i < 64; i += 9) {
    small = small * 31 + (int32_t)(values[i] >> 40);
    printf("%" PRIu64 " %d %" PRIx64 "\\n", values[i] / (i + 3), small, values[i] % 1000003);
  }
  char text[40];
  snprintf(text, sizeof text, "%lld %u", (long long)hash, (unsigned)(hash >> 33));
  puts(text);
  return (int)strlen(text);
}
"""


def write(folder: Path, text: str, name: str = "handler.c") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def frame_handler(folder: Path, body: str) -> Path:
    text = f"#include <frame.h>\n__handler int frame_handler(const frame_t *frame, void *state) {{\n{body}\n}}\n"
    return write(folder, text)


def test_a_program_gives_the_same_at_both_widths(nicety: Callable[..., Any], tmp_path: Path) -> None:
    source = write(tmp_path, MIX)
    outputs = []
    for isa in (ISA, "rv32imac_zicsr"):
        elf = tmp_path / f"{isa}.elf"
        compile_handlers([source], isa=isa, output=elf)
        done = nicety("hpu", "run", elf)
        outputs.append(done.stdout[: done.stdout.index("exit_code")])
        assert done.status == 1, "its exit code is a length"
    assert outputs[0] == outputs[1]
    assert outputs[0].count("\n") >= 9


def test_output_and_instructions_are_those_of_qemu(
    nicety: Callable[..., Any], tool: Callable[[str], str], tmp_path: Path
) -> None:
    qemu = tool("qemu-riscv64")
    elf = tmp_path / "mix.elf"
    compile_handlers([write(tmp_path, MIX)], isa=ISA, output=elf)
    done = nicety("hpu", "run", elf, "--json", "--spec", CARD)
    report = done.json()
    for single in ("-one-insn-per-tb", "-singlestep"):  # the option has another name since QEMU 8.1
        command = [qemu, single, "-d", "nochain,exec", "-D", str(tmp_path / "log"), str(elf)]
        theirs = subprocess.run(command, capture_output=True, check=False)
        if theirs.stdout:
            break
    assert theirs.returncode == report["exit_code"]
    assert theirs.stdout.decode() in done.stderr
    instructions = sum(line.startswith("Trace ") for line in (tmp_path / "log").read_text().splitlines())
    assert report["instructions"] == instructions


def test_a_program_of_the_other_width_is_refused(nicety: Callable[..., Any], tmp_path: Path) -> None:
    elf = tmp_path / "mix.elf"
    compile_handlers([write(tmp_path, MIX)], isa=ISA, output=elf)
    done = nicety("hpu", "run", elf, "--spec", NARROW)
    assert done.status == 2
    assert "compiled for registers of 64 bits (RV64), which the core (rv32imac_zicsr) lacks" in done.stderr
    compile_handlers([write(tmp_path, MIX)], output=elf)
    done = nicety("hpu", "run", elf, "--spec", CARD)
    assert done.status == 2
    assert "compiled for registers of 32 bits (RV32), which the core (rv64imac_zicsr) lacks" in done.stderr


@pytest.mark.parametrize("name", ["drop", "vlan", "count", "echo"])
def test_handlers_on_frames_decide_alike_at_both_widths(name: str) -> None:
    rows = []
    for nic in (CARD, NARROW):
        report = package.check_line_rate(
            library_source(f"frames/{name}.c"),
            nics=nic,
            traffic="udp dport=7 src=10.0.0.0/8 size=imix flows=50 packets=400",
        )
        (row,) = report["rows"]
        rows.append(row)
    wide, narrow = rows
    assert wide["verdict"] == narrow["verdict"]
    assert wide["packet_dispositions"] == narrow["packet_dispositions"]
    assert wide["traffic"]["handled"] == narrow["traffic"]["handled"] == 400


# Grows and shrinks the frame, prints pointers and words, counts with atomic operations of both sizes.
FRAME = """
    static uint64_t runs;
    uint64_t *counters = state;
    const uint8_t first = frame->data[0];
    const uint32_t length = frame->length;
    uint8_t *data = frame_push(frame, 4);
    if (sizeof(void *) != 8 || data != frame->data || frame->length != length + 4 || frame_pull(frame, 4)[0] != first)
        return FRAME_FAIL;
    uint64_t before = 1;
    if (PtlHandlerFAdd(&counters[0], &before, 1ull << 40) != PTL_OK || (uint32_t)before != 0)
        return FRAME_FAIL;
    const uint64_t old = __atomic_fetch_add(&runs, 1ull << 33, __ATOMIC_SEQ_CST);
    __atomic_fetch_or(&counters[1], 1ull << (old >> 33), __ATOMIC_SEQ_CST);
    __atomic_fetch_sub((int32_t *)&counters[2], 1, __ATOMIC_SEQ_CST);
    counters[3] = (uint64_t)frame->length << 32 | frame->rule << 16 | frame->channel;
    if (old == 0)
        printf("%zu %ld %d %s %p %c", sizeof(long), -5000000000, -7, "text", (void *)0x1234, 'c');
    return FRAME_DROP;"""


def test_structures_commands_and_atomics_have_64_bits(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    async def main(host: package.Host) -> object:
        if host.rank == 0:
            await host.barrier()
            socket = host.socket.datagram()
            for _ in range(3):
                await socket.sendto(b"a line", 1, 9)
            await host.compute(ns=100_000)
            return None
        rule = host.frames.install("udp dport=9", package.Handlers(frame_handler(tmp_path, FRAME)), state=bytes(32))
        await host.barrier()
        await host.compute(ns=200_000)
        return [int.from_bytes(rule.state[at : at + 8], "little") for at in range(0, 32, 8)]

    run = package.Cluster(2, CARD).run(main)
    # An AMO of 4 bytes leaves the upper word alone.
    *counters, last = run.results[1]
    assert counters == [3 << 40, 0b111, 0xFFFFFFFD]
    # The length, rule 0, and the channel that a hash chooses.
    assert (last >> 32, last >> 16 & 0xFFFF) == (60, 0)
    assert last & 0xFFFF < 16
    assert "8 -5000000000 -7 text 0x1234 c" in capfd.readouterr().err


def test_a_pointer_beyond_the_cards_addresses_is_a_trap_with_its_line(
    nicety: Callable[..., Any], tmp_path: Path
) -> None:
    def message(body: str) -> str:
        source = frame_handler(tmp_path, body)
        done = nicety("bench", "handlers", source, "--nic", CARD, "--packet-sizes", "60", "--messages", "5")
        assert done.status == 1
        return str(done.stderr)

    far = "volatile uint64_t *far = (volatile uint64_t *)(0x1234567800000000u + (uintptr_t)state);"
    text = message(f"{far}\n*far = 1;\nreturn FRAME_DROP;")
    assert "store of 8 bytes to 0x1234567814000000: memory addresses have 32 bits" in text
    assert "handler.c:4" in text
    text = message(f"{far}\nuint64_t before;\nPtlHandlerFAdd((uint64_t *)far, &before, 1);\nreturn FRAME_DROP;")
    assert "ecall with the argument 0x1234567814000000, and addresses have 32 bits" in text
    # A null pointer is one at both widths.
    assert "(a null pointer?)" in message("*(volatile uint64_t *)0 = 1;\nreturn FRAME_DROP;")


# Use cases check each byte of their results.
@pytest.mark.parametrize(
    "case",
    [
        "accumulate --sizes 64,8Ki",
        "broadcast --nodes 5 --sizes 64,8Ki",
        "datatype",
        "matching --sizes 64,8Ki",
        "storage --sizes 4Ki --requests 4",
        "kv --clients 2 --requests 20",
    ],
)
def test_handlers_of_messages_run_on_rv64(nicety: Callable[..., Any], case: str) -> None:
    done = nicety("bench", *case.split(), "--nic", "spin-discrete", "--set", f"hpu.isa={ISA}")
    assert done.status == 0, done.stderr


def test_interfaces_for_rv32_refuse_rv64(nicety: Callable[..., Any]) -> None:
    for nic, text in [
        ("pspin", "handlers written for PsPIN are for RV32"),
        ("nfp-4000", "microengines have registers of 32 bits"),
    ]:
        done = nicety("specs", "show", nic, "--set", f"hpu.isa={ISA}")
        assert done.status == 2
        assert text in done.stderr
