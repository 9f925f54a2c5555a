"""The verdict of a line-rate check: barely between 90 and 100 % load, headroom by part, and sensitivity."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

import nicety as package
from nicety import _native
from nicety._generated.types import LineRateReport
from nicety.bench.line_rate import line_rate_text
from nicety.bench.places.pictures import line_rate_figure

NOPS = """
#include <nicety.h>
#define TEXT(x) #x
#define REPEAT(x) ".rept " TEXT(x) " - 3\\n"
__handler __attribute__((naked)) int payload_handler(const ptl_payload_t p, void *state) {
    __asm__ volatile(REPEAT(CYCLES) "nop\\n .endr\\n li a0, 0\\n ret");
}
"""


@pytest.fixture
def nops(tmp_path: Path) -> Path:
    path = tmp_path / "nops.c"
    path.write_text(NOPS)
    return path


def check(source: Path, cycles: int, *overrides: str, sensitivity: bool = False) -> LineRateReport:
    handlers = package.Handlers(source, defines=[f"CYCLES={cycles}"])
    return package.check_line_rate(
        handlers, packet_sizes=[64], messages=8, overrides=["hpu.cores=8", *overrides], sensitivity=sensitivity
    )


# 8 processors have 134 cycles of 0.4 ns between two packets.
@pytest.mark.parametrize(
    ("cycles", "verdict", "cell"),
    [
        (120, "yes", "yes"),
        (121, "barely", "barely, handler cores"),
        (134, "barely", "barely, handler cores"),
        (135, "no", "no"),
    ],
)
def test_a_card_keeps_up_barely_between_90_and_100_percent(nops: Path, cycles: int, verdict: str, cell: str) -> None:
    report = check(nops, cycles)
    (row,) = report["rows"]
    assert (row["verdict"], row["bottleneck"]) == (verdict, "handler cores")
    assert row["sustains_line_rate"] is (verdict != "no")
    assert row["capacity_fraction"] == pytest.approx(134 / cycles)
    most = row["parts"][0]
    assert (most["part"], most["name"]) == ("handler cores", None)
    assert most["headroom"] == pytest.approx(1 - cycles / 134)
    assert [part["load"] for part in row["parts"]] == sorted((part["load"] for part in row["parts"]), reverse=True)
    # A full buffer does not count as a part if processors are too few.
    assert ("packet buffer" in [part["part"] for part in row["parts"]]) is (verdict != "no")
    text = line_rate_text(report)
    assert next(line for line in text.splitlines() if line.startswith("64 ")).endswith(f"  {cell}")
    joined = text.replace("\n# ", " ")
    assert f"64 B: {verdict}: bottleneck: " in joined
    assert f"sustainable rate {134 / cycles:.2f} x line rate" in joined
    assert "Idle: link, bus to card, bus to host, send engine." in joined


def test_a_lock_and_a_bank_have_their_names(tmp_path: Path) -> None:
    source = tmp_path / "mine.c"
    source.write_text(
        "#include <nicety.h>\n__handler int payload_handler(const ptl_payload_t p, void *state) {\n"
        "    uint32_t *lock = state;\n"
        "    while (__atomic_exchange_n(lock, 1, __ATOMIC_ACQUIRE));\n"
        "    for (volatile int i = 0; i < 20; i++);\n"
        "    __atomic_store_n(lock, 0, __ATOMIC_RELEASE);\n    return SUCCESS;\n}\n"
    )
    report = package.check_line_rate(
        source, packet_sizes=[64], messages=8, overrides=["hpu.cores=16", "memory.state=l1", "memory.l1.banks=4"]
    )
    parts = {part["part"]: part["name"] for part in report["rows"][0]["parts"]}
    assert parts["lock"] == "byte 0 of the state, acquired at mine.c:4"
    assert parts["memory bank"] == "bank 0 of l1"
    text = line_rate_text(report).replace("\n# ", " ")
    assert "lock (byte 0 of the state, acquired at mine.c:4)" in text
    assert "(bank 0 of l1)" in text


def test_sensitivity_agrees_with_separate_runs(nops: Path, tmp_path: Path) -> None:
    told: list[tuple[int, int]] = []
    handlers = package.Handlers(nops, defines=["CYCLES=100"])
    report = package.check_line_rate(
        handlers,
        packet_sizes=[64],
        messages=8,
        overrides=["hpu.cores=8"],
        sensitivity=True,
        progress=lambda done, total: told.append((done, total)),
    )
    (row,) = report["rows"]
    found = row["sensitivity"]
    # The clock and the cores are documented or set; nops are the alu's, and `ret` is 2 cycles of 100.
    first = found["values"][0]
    assert (first["key"], first["value"], first["halved"]) == ("hpu.cycles.alu", "1", None)
    assert first["doubled"] is not None
    assert (first["doubled"]["value"], first["doubled"]["verdict"]) == ("2", "no")
    (varied,) = check(nops, 100, "hpu.cycles.alu=2")["rows"]
    assert varied["verdict"] == first["doubled"]["verdict"]
    assert varied["capacity_fraction"] == pytest.approx(first["doubled"]["capacity_fraction"])
    rate = varied["capacity_fraction"] * varied["line_rate_packets_per_s"]
    assert rate == pytest.approx(first["doubled"]["capacity_packets_per_s"])
    assert len(found["values"]) <= 3
    assert "hpu.cores" not in [value["key"] for value in found["values"]]
    assert "hpu.isa" in found["not_varied"]
    # All of them except those of another pipeline.
    parameters = json.loads(_native.spec_show("spin-discrete", ["hpu.cores=8"]))["parameters"]
    assumed = [each["key"] for each in parameters if each["kind"] == "assumed"]
    used = [key for key in assumed if not key.startswith("hpu.overlap.")]
    assert 20 < len(used) < len(assumed)
    assert found["varied"] + len(found["not_varied"]) == len(used)
    # Progress counts the runs.
    total = told[-1][1]
    assert told == [(done, total) for done in range(total + 1)]
    assert total > found["varied"]
    text = line_rate_text(report)
    assert "2: no, 0.68 x, handler cores" in text
    both = found["varied"] - found["varied_one_way"]
    assert 0 < both < found["varied"]
    told_varied = f"{both} assumed values of the spec were halved and doubled, one at a time, and "
    assert f"{told_varied}{found['varied_one_way']} were varied in one direction" in text.replace("\n# ", " ")
    figure = line_rate_figure(report)
    figure.draw_without_rendering()
    assert len(figure.axes) == 3
    assert len(line_rate_figure(check(nops, 100)).axes) == 2


def test_sensitivity_is_in_files_and_the_same_again(nicety: Callable, tmp_path: Path, nops: Path) -> None:
    command = ["bench", "handlers", str(nops), "-D", "CYCLES=100", "--nic", "spin-discrete", "--packet-sizes", "64"]
    command += ["--messages", "2", "--set", "hpu.cores=8", "--sensitivity"]
    result = nicety(*command, "--json", "--csv", "f.csv")
    assert result.status == 0, result.stderr
    assert result.json() == nicety(*command, "--json").json()
    head = (tmp_path / "f.csv").read_text().splitlines()[0].split(",")
    assert {"verdict", "bottleneck", "parts_handler_cores_load", "sensitivity_varied"} <= set(head)
    assert "sensitivity_values_hpu.cycles.alu_doubled_verdict" in head


def test_values_that_stop_a_run_are_named(nops: Path) -> None:
    handlers = package.Handlers(nops, defines=["CYCLES=10"])
    report = package.check_line_rate(handlers, packet_sizes=[64], messages=1, state_bytes=600 << 10, sensitivity=True)
    (row,) = report["rows"]
    (memory,) = [each for each in row["sensitivity"]["stopped"] if each["key"] == "hpu.memory"]
    assert memory["value"] == "512 KiB"
    assert "HPU memory" in memory["error"]
    assert "hpu.memory=512 KiB" in line_rate_text(report).replace("\n# ", " ")


@pytest.mark.parametrize(("end", "words"), [("FAIL", "returned FAIL"), ("*(volatile int *)0", "load of 4 bytes")])
def test_a_moved_card_on_which_handlers_trap_or_fail_is_named(tmp_path: Path, end: str, words: str) -> None:
    """A handler that ends badly with longer instructions: the values report it, and the rows stay."""
    source = tmp_path / "deep.c"
    source.write_text(
        "#include <nicety.h>\n"
        "__handler int payload_handler(const ptl_payload_t p, void *state) {\n"
        "    uint32_t from, to;\n"
        '    __asm__ volatile("csrr %0, cycle\\n nop\\n nop\\n csrr %1, cycle" : "=r"(from), "=r"(to));\n'
        "    return to - from > 3 ? END : SUCCESS;\n}\n"
    )
    handlers = package.Handlers(source, defines=[f"END={end}"])
    card = tmp_path / "assumed.toml"
    card.write_text(
        'name = "assumed"\nextends = "spin-discrete"\n[packet]\n'
        'payload = { value = "4096 B", kind = "assumed", source = "this test" }\n'
    )
    report = package.check_line_rate(handlers, nics=[str(card)], packet_sizes=[64, 4096], messages=1, sensitivity=True)
    for row in report["rows"]:
        stopped = {(each["key"], each["value"]): each["error"] for each in row["sensitivity"]["stopped"]}
        assert words in stopped["hpu.cycles.alu", "2"]
        assert all(each["key"] != "hpu.cycles.alu" for each in row["sensitivity"]["values"] if each["doubled"])
    # A packet that a changed card does not carry.
    stopped = {(each["key"], each["value"]): each["error"] for each in report["rows"][1]["sensitivity"]["stopped"]}
    payload = [error for (key, _), error in stopped.items() if key == "packet.payload"]
    assert payload
    assert all("carries 2048 bytes at most" in error for error in payload)


def test_a_trap_at_one_size_leaves_the_others(tmp_path: Path) -> None:
    source = tmp_path / "trap.c"
    source.write_text(
        "#include <nicety.h>\n"
        "__handler int payload_handler(const ptl_payload_t p, void *state) {\n"
        "    return p.length == 128 ? *(volatile int *)0 : SUCCESS;\n}\n"
    )
    with pytest.raises(package.HandlerTrap, match="packets of 128 B") as error:
        package.check_line_rate(package.Handlers(source), packet_sizes=[64, 128, 256], messages=1)
    report = error.value.report
    assert [row["packet_bytes"] for row in report["rows"]] == [64, 256]
    assert [failed["point"] for failed in report["failed_points"]] == ["spin-discrete, packets of 128 B"]


@pytest.mark.parametrize(("buffer", "message"), [(103, 64), (96, 64), (100, 2000), (300, 64)])
def test_a_little_short_of_the_wire_is_no(nops: Path, buffer: int, message: int) -> None:
    """A handler of 600 ns and a packet every 6.7 ns: about 100 places of the packet buffer are used at once."""
    handlers = package.Handlers(nops, defines=["CYCLES=1500"])
    (row,) = package.check_line_rate(
        handlers,
        packet_sizes=[64],
        message_packets=message,
        messages=4 if message > 64 else 60,
        overrides=["hpu.cores=1024", f"buffer.packets={buffer}"],
    )["rows"]
    loads = {part["part"]: part["load"] for part in row["parts"]}
    assert "packet buffer" in loads
    if buffer == 300:
        assert (row["verdict"], row["limited_by"]) == ("yes", None)
        assert max(loads.values()) <= 1
        assert row["capacity_fraction"] >= 1
        return
    assert row["line_rate_fraction"] < 1
    assert (row["verdict"], row["limited_by"]) == ("no", "packet buffer")
    assert row["capacity_fraction"] <= row["line_rate_fraction"]


def test_packets_take_time_on_the_wire(nops: Path) -> None:
    with pytest.raises(package.InputError, match=r"write a send\.gap or a link\.gap above 0"):
        check(nops, 100, "send.gap=0 ns", "link.gap=0 ps/B")
