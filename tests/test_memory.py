"""The memory of handler cores in a line-rate check: accesses to ideal memory, and the bottleneck bank."""

from __future__ import annotations

from pathlib import Path

import pytest

import nicety
from nicety._generated.types import LineRateReport
from nicety.bench.line_rate import line_rate_text

LOADS = """#include <nicety.h>
__handler int payload_handler(const ptl_payload_t p, void *state) {
    volatile uint32_t *words = state;
    (void)words[0]; /* first */
    (void)words[1];
    return SUCCESS;
}
"""
NO_FETCHES = {"instruction_cache_fills": 0, "fetch_wait_cycles": 0}
PIECES = ["state", "data", "packet", "stack", "constants", "arguments"]
ATOMICS = ["core", "bank", "memory"]


def check(folder: Path, *overrides: str, text: str = LOADS, size: int = 64) -> LineRateReport:
    source = folder / "loads.c"
    source.write_text(text)
    return nicety.check_line_rate(source, packet_sizes=[size], messages=8, overrides=overrides)


def test_a_report_says_what_rests_on_ideal_memory(tmp_path: Path) -> None:
    report = check(tmp_path)
    (row,) = report["rows"]
    ideal = {"ideal": PIECES, "ideal_cycles": "hpu.cycles", "uncontended": []}
    assert row["memory"] == ideal | {"accesses": 2, "shared_accesses": 0, "levels": [], "caches": []} | NO_FETCHES
    text = " ".join(line.removeprefix("# ") for line in line_rate_text(report).splitlines())
    assert "Rests on ideal memory" in text
    assert "in the cycles of hpu.cycles: state, data, packet, stack, constants, arguments" in text
    assert "outside contended levels: 2.0 at 64 B" in text
    assert "Bank" not in text


def test_out_of_order_ideal_memory_has_cycles_of_its_own(tmp_path: Path) -> None:
    report = check(tmp_path, "hpu.pipeline=out-of-order")
    assert "in the cycles of hpu.overlap: state" in line_rate_text(report).replace("\n# ", " ")


def test_memory_in_levels_rests_on_nothing(tmp_path: Path) -> None:
    places = [f"memory.{piece}=l1" for piece in PIECES]
    report = check(tmp_path, *places, "hpu.cores=8")
    (row,) = report["rows"]
    assert row["memory"]["ideal"] == []
    assert row["memory"]["accesses"] == row["memory"]["shared_accesses"] == 2
    assert "Rests on" not in line_rate_text(report)
    report = check(tmp_path, *places, "hpu.cores=8", "memory.l1.contended=false")
    (row,) = report["rows"]
    assert (row["memory"]["uncontended"], row["memory"]["shared_accesses"]) == (["l1"], 0)
    assert "Rests on a level of memory, l1, that several cores share" in line_rate_text(report).replace("\n# ", " ")


@pytest.mark.parametrize(("banks", "factor"), [(1, 2), (2, 1)])
def test_a_bank_bounds_any_number_of_processors(tmp_path: Path, banks: int, factor: int) -> None:
    # A packet arrives every 6.7 ns, and a load occupies its bank for 10 cycles of 0.4 ns.
    keys = ["memory.state=l1", f"memory.l1.banks={banks}", "memory.l1.occupancy=10", "memory.l1.load=4"]
    report = check(tmp_path, "hpu.cores=64", *keys)
    (row,) = report["rows"]
    (level,) = row["memory"]["levels"]
    load = factor * 10 * 0.4 / 6.7
    assert row["loads"]["memory_bank"] == level["load"] == pytest.approx(load)
    assert level["max_packets_per_s"] == pytest.approx(1e9 / (factor * 4))
    assert (level["level"], level["accesses"]) == ("l1", 2)
    assert (level["busiest"], level["busiest_accesses"]) == ("bank 0 of l1", factor)
    text = line_rate_text(report)
    assert "Bank" in text
    if load < 1:
        assert row["sustains_line_rate"]
        return
    assert row["limited_by"] == "memory bank"
    assert row["hpus_needed"] is None
    assert row["reachable_fraction"] == pytest.approx(1 / load)
    assert row["line_rate_fraction"] == pytest.approx(1 / load, rel=0.01)
    first = 1 + LOADS.splitlines().index("    (void)words[0]; /* first */")
    assert {line["line"] for line in level["lines"]} == {f"loads.c:{first}", f"loads.c:{first + 1}"}
    waited = sum(line["wait_cycles"] for line in level["lines"])
    assert waited == pytest.approx(level["wait_cycles"])
    words = " ".join(line.removeprefix("# ") for line in text.splitlines())
    assert "each packet occupies bank 0 of l1 2.0 times, for 1.19 x the available time" in words
    assert f"at loads.c:{first}" in words


# At the core a load of one cycle and a store of one, unless it is held for longer.
@pytest.mark.parametrize(
    ("atomics", "key", "occupied"), [("core", "atomic=8", 2)] + [(at, "atomic_occupancy=30", 30) for at in ATOMICS]
)
def test_an_atomic_operation_is_an_access(tmp_path: Path, atomics: str, key: str, occupied: int) -> None:
    text = LOADS.replace("(void)words[0];", "__atomic_fetch_add(&words[0], 1, __ATOMIC_RELAXED);")
    keys = ["memory.state=l1", "memory.l1.atomic=8", f"memory.l1.{key}", f"memory.l1.atomics={atomics}"]
    (row,) = check(tmp_path, "hpu.cores=64", "memory.l1.banks=2", *keys, text=text)["rows"]
    (level,) = row["memory"]["levels"]
    assert level["accesses"] == 2
    assert level["load"] == pytest.approx(occupied * 0.4 / 6.7)
    assert level["busiest"] == ("the atomic unit of l1" if atomics == "memory" else "bank 0 of l1")


def test_a_command_is_an_atomic_access(tmp_path: Path) -> None:
    text = LOADS.replace("(void)words[0];", "uint64_t before; PtlHandlerFAdd((uint64_t *)state, &before, 1);")
    keys = ["memory.state=l1", "memory.l1.banks=4", "memory.l1.atomic=9"]
    (plain,) = check(tmp_path, "hpu.cores=64", text=text)["rows"]
    (row,) = check(tmp_path, "hpu.cores=64", *keys, text=text)["rows"]
    # The command and a load are in the state, the rest on the stack.
    assert row["memory"]["shared_accesses"] == 2
    assert plain["memory"]["accesses"] == row["memory"]["accesses"]
    assert row["cycles_mean"] == pytest.approx((plain["cycles_mean"] or 0) + 9, abs=1)


def test_memories_that_do_not_divide_are_refused(tmp_path: Path) -> None:
    with pytest.raises(nicety.InputError, match="do not divide into 3 banks of 4 bytes"):
        check(tmp_path, "memory.state=l2", "memory.l2.banks=3")
    with pytest.raises(nicety.InputError, match="do not divide into clusters of 3"):
        check(tmp_path, "memory.cluster=3")


def test_code_is_fetched_through_a_cache(tmp_path: Path) -> None:
    text = """#include <nicety.h>
__handler __attribute__((naked)) int payload_handler(const ptl_payload_t p, void *state) {
    __asm__ volatile(".balign 64\\n .rept 30\\n addi a1, a1, 1\\n .endr\\n li a0, 0\\n ret");
}
"""
    (plain,) = check(tmp_path, "hpu.cores=8", text=text)["rows"]
    (large,) = check(tmp_path, "hpu.cores=8", *cache("4 KiB"), text=text)["rows"]
    packets = plain["packets"] + 1024
    # Compressed or not, the code has 4 to 8 lines, and one or two before it is aligned.
    lines = round(large["memory"]["instruction_cache_fills"] * packets)
    assert 4 <= lines <= 10
    # Accesses during a line's fill wait, too.
    assert 9 * lines <= large["memory"]["fetch_wait_cycles"] * packets + 1e-6 <= 8 * 9 * lines
    assert large["cycles_mean"] == plain["cycles_mean"]
    # A cache of one line: each line of the code is fetched for each packet, except for one that another packet waits
    # for.
    (small,) = check(tmp_path, "hpu.cores=1", *cache("16 B", ways=1), text=text)["rows"]
    assert small["memory"]["instruction_cache_fills"] == pytest.approx(lines, rel=0.01)
    waited = small["memory"]["fetch_wait_cycles"]
    assert waited == pytest.approx(9 * lines, rel=0.01)
    assert small["cycles_mean"] == pytest.approx((plain["cycles_mean"] or 0) + 9 * lines)
    assert "cycles in all for their code" in line_rate_text(check(tmp_path, *cache("16 B", ways=1), text=text))


def cache(size: str, ways: int = 4) -> list[str]:
    return [f"memory.instructions.{key}" for key in (f"size={size}", f"ways={ways}", "line=16 B", "fill=9")]


def test_a_cache_that_does_not_divide_is_refused(tmp_path: Path) -> None:
    with pytest.raises(nicety.InputError, match="4096 bytes do not divide into sets of 3 lines of 16 bytes"):
        check(tmp_path, *cache("4 KiB", ways=3))
    with pytest.raises(nicety.InputError, match="a line is a power of two"):
        check(tmp_path, "memory.instructions.size=4 KiB", "memory.instructions.line=24 B", "memory.instructions.fill=1")
