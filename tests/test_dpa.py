"""The datapath accelerator of BlueField-3: cycles of loads, its programs on hardware threads, and errors."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import nicety as package
from conftest import Result
from nicety.studies.score.dpa import LOADS, load_cycles, rate_mpps, spread
from nicety.studies.score.rows import read_rows
from nicety.studies.score.scoring import score, shipped_rows

ROOT = Path(__file__).parent.parent
PROGRAMS = ROOT / "handlers" / "dpa"
CARD = "bluefield3-dpa"
TRAFFIC = "udp src=10.0.0.0/8 size=60 packets=2000"
STATE = 256 << 10


def cycles(program: str, *overrides: str) -> float:
    report = package.check_line_rate(
        PROGRAMS / f"{program}.c", nics=[CARD], traffic=[TRAFFIC], state_bytes=STATE, overrides=overrides
    )
    (row,) = report["rows"]
    assert row["cycles_mean"] is not None
    return row["cycles_mean"]


def test_loads_take_the_medians_that_constants_were_fitted_to() -> None:
    rows = [row for row in shipped_rows(CARD) if row.test in LOADS]
    assert len(rows) == len(LOADS)
    for row in rows:
        assert (row.kind, load_cycles(row.test, nic=CARD, size=row.size)) == ("calibrated", row.value)


def test_a_load_is_the_sum_of_its_parts() -> None:
    # Reading the cycle counter, the load in L1, the use of its value, an addition, and the line from L2.
    for fill in (0, 10, 62):
        found = load_cycles("DPA_LOAD_L2", nic=CARD, size=1024, overrides=[f"memory.cache.second.fill={fill}"])
        assert found == 1 + 1 + 1 + 1 + fill


@pytest.mark.parametrize("program", ["aggregate", "flows", "header", "reflect", "rewrite"])
def test_programs_of_the_library_run_and_are_faster_from_nearer_memory(program: str) -> None:
    near = cycles(program)
    assert 100 < near < cycles(program, "memory.cache.deposit=third") < cycles(program, "memory.cache.deposit=none")


def test_sixteen_cores_reflect_sixteen_times_as_much_as_one() -> None:
    one = rate_mpps("reflect", nic=CARD, size=64, threads=1)
    many = rate_mpps("reflect", nic=CARD, size=64, threads=16)
    # The rates of the page. They are found to a few percent.
    assert one == pytest.approx(4.3, rel=0.03)
    assert many == pytest.approx(16 * one, rel=0.05)


def test_threads_of_one_core_share_its_issue() -> None:
    def rate(threads: int, *more: str) -> float:
        report = package.check_line_rate(
            PROGRAMS / "reflect.c",
            nics=[CARD],
            traffic=[f"udp src=10.0.0.0/8 size=60 packets={512 * threads}"],
            overrides=["hpu.cores=1", f"hpu.threads={threads}", *more],
        )
        (row,) = report["rows"]
        return row["capacity_fraction"] * row["line_rate_packets_per_s"] / 1e6

    instructions = 54
    one, sixteen = rate(1), rate(16)
    # Two threads hardly meet. Sixteen issue nearly an instruction a cycle of 1.8 GHz.
    assert rate(2) > 1.8 * one
    assert 6 * one < sixteen <= 1800 / instructions
    # With two ports more instructions issue.
    assert rate(16, "hpu.issue=2") > 1.2 * sixteen


def test_sums_are_those_of_the_pairs() -> None:
    pairs = [(5, 10), (7, 3), (5 + 65536, 4)]

    async def main(host: package.Host) -> bytes | None:
        socket = host.socket.datagram()
        if host.rank == 0:
            await host.barrier()
            for key, value in pairs:
                # Byte 56 of the frame is byte 14 of the datagram.
                await socket.sendto(bytes(14) + struct.pack("<QQQ", 1, key, value), 1, 9)
            await host.barrier()
            return None
        await socket.bind(9)
        rule = host.frames.install("udp dport=9", package.Handlers(PROGRAMS / "aggregate.c"), state=bytes(STATE))
        await host.barrier()
        await host.barrier()
        return rule.state

    state = package.Cluster(2, CARD).run(main).results[1]
    sums = struct.unpack(f"<{STATE // 4}I", state)
    assert {key: value for key, value in enumerate(sums) if value} == {5: 14, 7: 3}


@pytest.mark.parametrize(
    ("program", "findings"), [("flows", 0), ("header", 0), ("reflect", 0), ("rewrite", 0), ("aggregate", 1)]
)
def test_the_checker_finds_the_race_of_sums_alone(program: str, findings: int) -> None:
    given: dict[str, Any] = {"nics": [CARD], "packet_sizes": [84], "messages": 600, "state_bytes": STATE}
    assert len(package.check_handlers(PROGRAMS / f"{program}.c", **given)["findings"]) == findings


def test_profiles_have_waits_for_issue(nicety: Callable[..., Result]) -> None:
    command = ["profile", PROGRAMS / "reflect.c", "--nic", CARD, "--packet-sizes", "60", "--messages", "2000"]
    few = nicety(*command, "--set", "hpu.cores=1", "--json").json()
    (row,) = few["profiles"] if "profiles" in few else few["rows"]
    assert row["causes"]["ready"] > 0
    assert row["causes"]["cache"] > 0


@pytest.mark.parametrize(
    ("change", "part"),
    [
        ("hpu.threads=0", "hpu.threads=0: expected a whole number from 1 to 64"),
        ("hpu.threads=64", "1024 hardware threads cannot share a level at 1.8 GHz: the model orders at most"),
        ("hpu.issue=17", "a core issues at most one instruction of each thread in a cycle, and has 16"),
        ("hpu.ring=0", "hpu.ring=0"),
        ("memory.cache.deposit=fourth", "expected none, second or third"),
        ("memory.cache.second.size=1 MiB", "1048576 bytes do not divide into sets of 12 lines"),
        ("memory.cache.second.size=2304 KiB", "3072 sets of 12 lines of 64 bytes"),
        ("memory.cache.third.ways=7", "do not divide into sets of 7 lines"),
        ("memory.l2.outer=false", "no level is behind the second cache"),
        ("memory.l2.first=often", "memory.l2.first=often"),
    ],
)
def test_values_that_cannot_be_are_refused_in_a_line(nicety: Callable[..., Result], change: str, part: str) -> None:
    result = nicety("specs", "show", CARD, "--set", change)
    assert (result.status, result.stdout) == (2, "")
    assert part in result.stderr
    assert result.stderr.count("error: ") <= 1
    assert "Traceback" not in result.stderr


def test_threads_spread_evenly_or_are_refused() -> None:
    assert spread(1) == ["hpu.cores=1", "hpu.threads=1"]
    assert spread(48) == ["hpu.cores=16", "hpu.threads=3"]
    with pytest.raises(package.InputError, match="20 threads do not spread over 16 cores"):
        spread(20)


@pytest.mark.parametrize(
    ("row", "part"),
    [
        ("DPA_LOAD_L2,40,66", "line 2: size_bytes of DPA_LOAD_L2 is 84 to 1518, not 40"),
        ("DPA_REFLECT,40,4", "line 2: size_bytes of DPA_REFLECT is 64 to 1518, not 40"),
    ],
)
def test_rows_that_cannot_be_are_refused(row: str, part: str) -> None:
    rows = read_rows(f"test,size_bytes,published\n{row}\n", "mine.csv", CARD)
    with pytest.raises(package.InputError, match=part):
        score("mine.csv", rows)


@pytest.mark.soak
def test_the_row_of_aggregation_is_that_of_the_page() -> None:
    (row,) = score(CARD, tests=["DPA_AGGREGATE_GAIN"])["rows"]
    page = (ROOT / "docs" / "cards" / f"{CARD}.md").read_text(encoding="utf-8")
    shown = f"| {row['published']} | {row['model']:.2f} | {row['deviation_percent']:.1f} % | {row['kind']} |"
    assert f"| `DPA_AGGREGATE_GAIN` {shown}" in page


def test_rows_of_rates_are_scored() -> None:
    rows = read_rows("test,size_bytes,published,cpus\nDPA_REFLECT,64,4.3,1\n", "mine.csv", CARD)
    (row,) = score("mine.csv", rows)["rows"]
    assert row["unit"] == "Mpps"
    assert abs(row["deviation_percent"]) < 5


def test_each_program_is_shipped() -> None:
    shipped: Any = [path.name for path in PROGRAMS.glob("*.c")]
    assert sorted(shipped) == ["aggregate.c", "flows.c", "header.c", "loads.c", "reflect.c", "rewrite.c"]
