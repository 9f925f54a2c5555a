"""The line-rate check: handlers of known cycles on both sides of every limit, and refusals."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import nicety as package
from nicety._generated.types import LineRateReport, LineRateRow
from nicety.bench.line_rate import line_rate_text
from sizes import examples

# `li a0, 0` takes a cycle and `ret` two.
NOPS = """
#include <nicety.h>
#define TEXT(x) #x
#define REPEAT(x) ".rept " TEXT(x) " - 3\\n"
__handler __attribute__((naked)) int payload_handler(const ptl_payload_t p, void *state) {
    __asm__ volatile(REPEAT(CYCLES) "nop\\n .endr\\n li a0, 0\\n ret");
}
"""
# 8 processors at 2.5 GHz, and packets every 6.7 ns, or every 20 ps per byte if that is longer.
EIGHT = ("hpu.cores=8",)
CYCLE_NS = 0.4


@pytest.fixture
def nops(tmp_path: Path) -> Path:
    path = tmp_path / "nops.c"
    path.write_text(NOPS)
    return path


def write(folder: Path, text: str, name: str = "mine.c") -> Path:
    path = folder / name
    path.write_text("#include <nicety.h>\n" + text)
    return path


def check(source: Path, cycles: int, sizes: list[int], **more: Any) -> LineRateReport:
    options = {"nics": ["spin-discrete"], "overrides": EIGHT, **more}
    return package.check_line_rate(
        package.Handlers(source, defines=[f"CYCLES={cycles}"]), packet_sizes=sizes, **options
    )


# 8 x 6.7 ns are 134 cycles exactly, and 8 x 81.92 ns are 1638.4.
@pytest.mark.parametrize(
    ("cycles", "size", "keeps_up"),
    [
        (132, 64, True),
        (134, 64, True),
        (135, 64, False),
        (134, 1, True),
        (135, 335, False),
        (135, 340, True),
        (1625, 4096, True),
        (1638, 4096, True),
        (1639, 4096, False),
        (1638, 2048, False),
    ],
)
def test_both_sides_of_the_limit(nops: Path, cycles: int, size: int, keeps_up: bool) -> None:
    (row,) = check(nops, cycles, [size])["rows"]
    assert row["cycles_mean"] == row["cycles_p99"] == cycles
    assert row["instructions_mean"] == row["instructions_p99"] == cycles - 1
    assert row["handler_ns"] == pytest.approx(cycles * CYCLE_NS)
    assert row["sustains_line_rate"] is keeps_up
    assert row["hpus_needed"] == (8 if keeps_up else 9 if (cycles, size) != (1638, 2048) else 16)
    assert row["limited_by"] == (None if keeps_up else "handler cores")
    assert row["packet_interval_ns"] == max(6.7, size * 0.02)
    share = min(1, 8 * max(6.7, size * 0.02) / (cycles * CYCLE_NS))
    assert row["line_rate_fraction"] == pytest.approx(share, rel=2e-3)
    assert row["packets_per_s"] == pytest.approx(share * row["line_rate_packets_per_s"], rel=2e-3)
    assert row["bandwidth_bytes_per_s"] == pytest.approx(row["packets_per_s"] * size)


def test_the_gap_gives_way_to_the_bytes_at_335_bytes(nops: Path) -> None:
    rows = check(nops, 10, [334, 335, 336])["rows"]
    assert [row["packet_interval_ns"] for row in rows] == [6.7, 6.7, 6.72]
    # From there on the wire is full: 50 GB/s.
    assert [row["bandwidth_bytes_per_s"] for row in rows] == pytest.approx([334 / 6.7e-9, 5e10, 5e10])


def test_a_handler_of_53_ns_keeps_up_at_any_size(nops: Path) -> None:
    report = check(nops, 132, [1, 64, 335, 336, 1024, 4096])
    assert all(row["sustains_line_rate"] for row in report["rows"])
    # And one of 650 ns only for large packets.
    rows = check(nops, 1625, [64, 335, 1024, 4095, 4096])["rows"]
    assert [row["sustains_line_rate"] for row in rows] == [False, False, False, True, True]


@pytest.mark.parametrize("cores", [1, 3, 4, 7, 16])
def test_the_processors_needed_are_enough(nops: Path, cores: int) -> None:
    (row,) = check(nops, 300, [64], overrides=[f"hpu.cores={cores}"])["rows"]
    # 120 ns every 6.7 ns.
    assert row["hpus_needed"] == 18
    (row,) = check(nops, 300, [64], overrides=[f"hpu.cores={row['hpus_needed']}"])["rows"]
    assert row["sustains_line_rate"]
    (row,) = check(nops, 300, [64], overrides=["hpu.cores=17"])["rows"]
    assert not row["sustains_line_rate"]


@examples(30)
@given(
    cores=st.integers(1, 24),
    cycles=st.integers(3, 1200),
    size=st.integers(1, 4096),
    packets=st.integers(20, 200),
)
def test_it_keeps_up_where_its_cycles_fit(cores: int, cycles: int, size: int, packets: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "nops.c"
        source.write_text(NOPS)
        options = {"message_packets": packets, "overrides": [f"hpu.cores={cores}"]}
        (row,) = check(source, cycles, [size], **options)["rows"]
    # In picoseconds, to distinguish the two sides of the limit.
    takes, comes = 400 * cycles, max(6700, 20 * size)
    assert row["hpus_needed"] == -(-takes // comes)
    assert row["sustains_line_rate"] is (takes <= cores * comes)
    assert row["line_rate_fraction"] == pytest.approx(min(1, cores * comes / takes), rel=0.02)
    assert row["packets_per_s"] <= row["line_rate_packets_per_s"]


def test_a_message_a_packet_is_limited_by_matching(nops: Path) -> None:
    (row,) = check(nops, 10, [64], message_packets=1)["rows"]
    # Every header takes 30 ns of the matching unit, however fast its handler is.
    assert row["limited_by"] == "matching unit"
    assert row["loads"]["matching"] == pytest.approx(30 / 6.7)
    assert row["packets_per_s"] == pytest.approx(1e9 / 30, rel=1e-3)
    # Full, except for the credits in flight.
    assert 250 <= row["buffer_packets_used"] <= row["buffer_packets"] == 256
    (row,) = check(nops, 10, [64], message_packets=1, overrides=["match.first=6.7 ns"])["rows"]
    assert row["sustains_line_rate"]
    assert row["hpus_needed"] == 1


def test_a_bus_too_slow_is_named(tmp_path: Path) -> None:
    source = write(
        tmp_path,
        """__handler int payload_handler(const ptl_payload_t p, void *state) {
            PtlHandlerDMAToHostB(p.base, p.offset, p.length, PTL_ME_HOST_MEM);
            return SUCCESS;
        }""",
    )
    slow = ["bus.gap=40 ps/B"]
    (row,) = package.check_line_rate(source, packet_sizes=[4096], overrides=slow)["rows"]
    assert row["limited_by"] == "bus to host"
    assert row["line_rate_fraction"] == pytest.approx(0.5, rel=1e-2)
    # A handler that waits for the bus keeps its processor.
    assert row["handler_ns"] == pytest.approx(4 * 163.84, rel=2e-2)
    (row,) = package.check_line_rate(source, packet_sizes=[4096])["rows"]
    assert row["sustains_line_rate"]


def test_a_packet_buffer_too_small_is_named(nops: Path) -> None:
    (row,) = check(nops, 10, [4096], overrides=["buffer.packets=1"])["rows"]
    assert row["limited_by"] == "packet buffer"
    # One packet at a time: its bytes, the flight, a match, the handler, and the credit's return.
    assert row["packets_per_s"] == pytest.approx(1e9 / (81.92 + 33.4 + 2 + 4 + 33.4), rel=1e-2)
    text = line_rate_text(check(nops, 10, [4096], overrides=["buffer.packets=1"]))
    assert "1 place is too few for that" in text.replace("\n# ", " ")
    (row,) = check(nops, 10, [4096], overrides=["buffer.packets=2"])["rows"]
    # Two do, except for the first packet of each message.
    assert (row["limited_by"], row["capacity_fraction"]) == ("packet buffer", pytest.approx(0.996, abs=1e-3))
    (row,) = check(nops, 10, [4096], overrides=["buffer.packets=3"])["rows"]
    assert row["sustains_line_rate"]


def test_answers_that_do_not_fit_the_link(tmp_path: Path) -> None:
    source = write(
        tmp_path,
        """__handler int payload_handler(const ptl_payload_t p, void *state) {
            for (int i = 0; i < 2; i++)
                PtlHandlerPutFromDevice(p.base, p.length, 0, PTL_NO_ACK_REQ, 0, 0, 0, NULL, 0);
            return SUCCESS;
        }""",
    )
    (row,) = package.check_line_rate(source, packet_sizes=[4096])["rows"]
    assert row["limited_by"] == "link"
    assert row["line_rate_fraction"] == pytest.approx(0.5, rel=1e-2)


ALL_THREE = """
typedef struct { uint32_t packets, messages; uint32_t first; } state_t;
__handler int header_handler(const ptl_header_t h, void *state) {
    state_t *s = state;
    if (h.length != h.packet_length * 16 || s->first != 0x04030201 || h.base[0] != 0xaa || h.base[1] != 0xbb)
        return FAIL;
    return PROCESS_DATA;
}
__handler int payload_handler(const ptl_payload_t p, void *state) {
    __atomic_fetch_add(&((state_t *)state)->packets, 1, __ATOMIC_RELAXED);
    return SUCCESS;
}
__handler int completion_handler(int dropped_bytes, bool flow_control_triggered, void *state) {
    state_t *s = state;
    uint32_t messages = ++s->messages;
    return s->packets >= 16 * messages ? SUCCESS : FAIL;
}
"""


def test_three_handlers_each_by_itself(tmp_path: Path) -> None:
    source = write(tmp_path, ALL_THREE)
    report = package.check_line_rate(
        source,
        packet_sizes=[512],
        message_packets=16,
        messages=40,
        state=bytes(8) + bytes([1, 2, 3, 4]),
        user_header=b"\xaa\xbb",
    )
    (row,) = report["rows"]
    assert {figures["handler"]: figures["runs"] for figures in row["handlers"]} == {
        "header": 40,
        "payload": 640,
        "completion": 40,
    }
    by_name = {figures["handler"]: figures for figures in row["handlers"]}
    for figures in row["handlers"]:
        assert 0 < figures["instructions_mean"] <= figures["cycles_mean"] <= figures["cycles_max"]
        assert figures["time_ns_mean"] == pytest.approx(figures["cycles_mean"] * CYCLE_NS)
    assert row["cycles_mean"] == by_name["payload"]["cycles_mean"]
    of_message = sum(by_name[name]["time_ns_mean"] for name in ("header", "completion"))
    assert row["handler_ns"] == pytest.approx(by_name["payload"]["time_ns_mean"] + of_message / 16)
    text = line_rate_text(report)
    assert "completion" in text
    assert "16 to a message" in text


@pytest.mark.parametrize("decision", ["PROCEED", "DROP"])
def test_a_header_handler_may_decide_alone(tmp_path: Path, decision: str) -> None:
    source = write(
        tmp_path,
        f"""__handler int header_handler(const ptl_header_t h, void *state) {{ return {decision}; }}
            __handler int payload_handler(const ptl_payload_t p, void *state) {{ return FAIL; }}""",
    )
    (row,) = package.check_line_rate(source, packet_sizes=[1024])["rows"]
    assert row["cycles_mean"] is row["cycles_p99"] is row["instructions_mean"] is row["instructions_p99"] is None
    assert [figures["handler"] for figures in row["handlers"]] == ["header"]
    assert row["sustains_line_rate"]
    assert row["hpus_needed"] == 1


def test_a_fault_names_its_line_and_ends_the_run(nicety: Callable, tmp_path: Path) -> None:
    write(
        tmp_path,
        """__handler int payload_handler(const ptl_payload_t p, void *state) {
            return *(int *)(p.base + p.length) ? SUCCESS : DROP;
        }""",
    )
    result = nicety("bench", "handlers", "mine.c", "--nic", "spin-discrete", "--packet-sizes", "64")
    assert result.status == 1
    assert result.stdout == ""
    assert "spin-discrete, packets of 64 B: " in result.stderr
    assert "in payload_handler at mine.c:3" in result.stderr
    assert len(result.stderr.splitlines()) < 12


def test_a_handler_without_end_is_stopped(nicety: Callable, tmp_path: Path) -> None:
    write(tmp_path, "__handler int payload_handler(const ptl_payload_t p, void *state) { for (;;); }")
    options = ["--set", "hpu.cycle_limit=100000"]
    result = nicety("bench", "handlers", "mine.c", "--nic", "spin-discrete", "--packet-sizes", "64", *options)
    assert result.status == 1
    assert "100000 cycles" in result.stderr


def test_text_json_and_files(nicety: Callable, tmp_path: Path) -> None:
    (tmp_path / "nops.c").write_text(NOPS)
    command = ["bench", "handlers", "nops.c", "-D", "CYCLES=200", "--nic", "spin-discrete,spin-integrated"]
    text = nicety(*command, "--csv", "f.csv", "--arrow", "f.arrow", "--plot", "f.svg", "--trace", "f.pftrace")
    assert text.status == 0, text.stderr
    report = nicety(*command, "--json").json()
    assert report["benchmark"] == "handlers"
    assert [row["packet_bytes"] for row in report["rows"][:7]] == [64, 128, 256, 512, 1024, 2048, 4096]
    assert text.stdout == line_rate_text(report)
    assert "# 64, 128, 256 B: a packet comes every 6.700 ns" in text.stdout
    head, *lines = (tmp_path / "f.csv").read_text().splitlines()
    assert len(lines) == 14
    assert {"hpus_needed", "handlers_payload_cycles_mean", "loads_matching"} <= set(head.split(","))
    for name in ("f.arrow", "f.svg", "f.pftrace"):
        assert (tmp_path / name).stat().st_size > 1000
    assert nicety(*command, "--json").json() == report


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["gone.c"], ["gone.c", "no such file"]),
        (["empty.c"], ["exports no handler"]),
        (["frame.c"], ["the program has a frame_handler, which is for frames; name a card with frames"]),
        (["xdp.c"], ["xdp.c: an XDP program; compile it with nicety cc --xdp, and name the object"]),
        (["mine.c", "--packet-sizes", "8Ki"], ["8192", "4096", "packet.payload"]),
        (["mine.c", "--packet-sizes", "0"], ["0 bytes"]),
        (["mine.c", "--packet-sizes", "64:"], ["--packet-sizes"]),
        (["mine.c", "--payload", "other"], ["no function other"]),
        (["mine.c", "--state", "xyz"], ["--state xyz", "hexadecimal"]),
        (["mine.c", "--state", "00" * 9, "--state-bytes", "8"], ["--state-bytes 9"]),
        (["mine.c", "--state-bytes", "16Mi"], ["HPU memory"]),
        (["mine.c", "--state-bytes", "1,2"], ["--state-bytes 1,2: write one size"]),
        (["mine.c", "--user-header", "00" * 100, "--packet-sizes", "64", "--message-packets", "1"], ["100", "64"]),
        (["mine.c", "--messages", "1000000"], ["--messages 15625"]),
        (["mine.c", "--message-packets", "0"], ["--message-packets"]),
        (["mine.c", "--message-packets", str(1 << 20)], ["1000000"]),
        (["mine.c", "--message-packets", "600000"], ["2457600000", "too long"]),
        (["mine.c", "--set", "hpu.coers=8"], ["hpu.cores"]),
        (["mine.c", "--nic", "no-card"], ["no-card"]),
    ],
)
def test_invalid_options_are_refused(nicety: Callable, tmp_path: Path, options: list[str], words: list[str]) -> None:
    write(tmp_path, "__handler int payload_handler(const ptl_payload_t p, void *state) { return SUCCESS; }")
    write(tmp_path, "int no_handler(void) { return 1; }", "empty.c")
    frame = "__handler int frame_handler(const void *frame, void *state) { return SUCCESS; }"
    write(tmp_path, frame, "frame.c")
    write(tmp_path, 'SEC("xdp") int first(void *context) { return 1; }', "xdp.c")
    nic = [] if "--nic" in options else ["--nic", "spin-discrete"]
    result = nicety("bench", "handlers", *options, *nic)
    assert result.status == 2, result.stderr
    assert result.stdout == ""
    for word in words:
        assert word in result.stderr


def test_a_row_has_what_it_says(nops: Path) -> None:
    (row,) = check(nops, 10, [64])["rows"]
    assert set(row) == set(LineRateRow.__annotations__) - {"sensitivity", "traffic", "xdp"}
    assert "nicety" in check(nops, 200, [64])._repr_html_()  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("payloads", "sizes"),
    [
        (["1 KiB"], [64, 128, 256, 512, 1024]),
        (["1500 B"], [64, 128, 256, 512, 1024]),
        (["48 B"], [48]),
        (["4096 B"], [64, 128, 256, 512, 1024, 2048, 4096]),
        (["512 B", "2 KiB"], [64, 128, 256, 512]),
    ],
)
def test_sizes_of_packets_fit_the_cards(payloads: list[str], sizes: list[int], tmp_path: Path) -> None:
    source = write(tmp_path, "__handler int payload_handler(const ptl_payload_t p, void *state) { return SUCCESS; }")
    cards = []
    for number, payload in enumerate(payloads):
        card = tmp_path / f"card{number}.toml"
        card.write_text(
            f'extends = "spin-discrete"\nname = "card{number}"\n[packet]\npayload = {{ value = "{payload}", '
            'kind = "assumed", source = "a test" }\n'
        )
        cards.append(str(card))
    rows = package.check_line_rate(source, nics=cards, messages=1, message_packets=1)["rows"]
    assert [row["packet_bytes"] for row in rows if row["nic"] == "card0"] == sizes
    # Of one card, changed as well.
    if len(cards) == 1:
        changed = package.check_line_rate(
            source, overrides={"packet.payload": payloads[0]}, messages=1, message_packets=1
        )
        assert [row["packet_bytes"] for row in changed["rows"]] == sizes
