"""XDP programs on a card with a core that executes eBPF: rates of the paper's programs, rows and errors."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import nicety as package
from conftest import Result
from nicety import _native
from nicety.build.xdp import compile_xdp

ROOT = Path(__file__).parent.parent
STUDY = ROOT / "python" / "nicety" / "studies" / "xdp" / "hxdp"
TEN = sorted(path.stem for path in (ROOT / "handlers" / "xdp").glob("*.c"))
CARD = "hxdp-sume"
BEYOND = {"bucket": "bpf_spin_lock", "queues": "xdp_adjust_meta", "redirect": "devmap_hash"}
"""Programs of nicety that the card refuses, and the reason."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("objects")


def of_study(name: str, folder: Path) -> Path:
    return compile_xdp(STUDY / f"{name}.c", output=folder / f"{name}.o")


def of_text(name: str, text: str, folder: Path) -> Path:
    (folder / f"{name}.c").write_text(f'#include <xdp.h>\n{text}\nchar _license[] SEC("license") = "GPL";\n')
    return compile_xdp(folder / f"{name}.c", output=folder / f"{name}.o")


def measured(program: Path, size: int = 60, **options: Any) -> dict[str, Any]:
    report = package.check_line_rate(program, nics=[CARD], packet_sizes=[size], messages=1000, **options)
    (row,) = report["ebpf_cores"]
    return dict(row)


@pytest.mark.parametrize(
    ("program", "overrides", "cycles"),
    [
        # A cycle with the first bytes, a row, and the handover.
        ("drop", [], 3),
        # The row has r0 = 1 and the exit, and the pipeline runs empty.
        ("drop", ["compiler.exit_values=false"], 7),
        # Rows: the pointer; two loads of six bytes, one after another in its lane; two stores and the exit.
        ("tx", [], 6),
        # Two rows more, for the call and the exit behind it, and the pipeline runs empty.
        ("redirect", [], 12),
    ],
)
def test_cycles_of_the_papers_small_programs(folder: Path, program: str, overrides: list[str], cycles: int) -> None:
    row = measured(of_study(program, folder), overrides=overrides)
    assert row["cycles_mean"] == cycles


def test_rates_of_the_small_programs_are_those_that_constants_were_fitted_to(folder: Path) -> None:
    published = {"drop": 52.0, "tx": 22.5, "redirect": 15.0}
    for program, rate in published.items():
        row = measured(of_study(program, folder))
        assert row["lossless_pps"] / 1e6 == pytest.approx(rate, rel=0.14 if program == "redirect" else 0.02)
    # The emission of a frame that leaves takes longer than its program.
    assert measured(of_study("tx", folder))["bottleneck"]["part"] == "emission"


def test_a_long_frame_hides_a_short_program(folder: Path) -> None:
    # 48 cycles for words of 32 bytes, and one for the handover: 313.6 ns. The wire of 40 Gb/s takes 307.6 ns.
    row = measured(of_study("drop", folder), 1514)
    assert row["cycles_mean"] == 49
    assert row["offered_pps"] == pytest.approx(1e9 / 307.6)
    # The search ends within 1 %.
    assert row["lossless_pps"] == pytest.approx(156.25e6 / 49, rel=0.01)


@pytest.mark.parametrize("name", TEN)
def test_the_ten_programs_have_rows_or_an_error_in_one_line(folder: Path, name: str) -> None:
    program = compile_xdp(ROOT / "handlers" / "xdp" / f"{name}.c", output=folder / f"{name}.o")
    if name in BEYOND:
        with pytest.raises(package.InputError, match=BEYOND[name]):
            _native.xdp_rows(program.read_bytes(), CARD)
        return
    report = json.loads(_native.xdp_rows(program.read_bytes(), CARD) or "{}")
    assert 0 < len(report["rows"]) <= report["slots"]
    assert report["operations"] <= report["slots"]
    assert all(len(row["lanes"]) == 4 for row in report["rows"])


@pytest.mark.parametrize(
    ("text", "part"),
    [
        (
            'SEC("xdp") int program(struct xdp_md *context) { return bpf_get_prandom_u32() & 1; }',
            ": the card has no helper bpf_get_prandom_u32; it has map_lookup_elem, ",
        ),
        (
            (
                "struct { __uint(type, BPF_MAP_TYPE_QUEUE); __uint(max_entries, 4); __type(value, __u32); } values"
                ' SEC(".maps"); SEC("xdp") int program(struct xdp_md *context) { __u32 value = 1;'
                " bpf_map_push_elem(&values, &value, 0); return XDP_DROP; }"
            ),
            "the card has no helper bpf_map_push_elem",
        ),
        (
            (
                "struct { __uint(type, BPF_MAP_TYPE_HASH); __uint(max_entries, 1000000); __type(key, __u32);"
                ' __type(value, __u64); } values SEC(".maps"); SEC("xdp") int program(struct xdp_md *context)'
                " { __u32 key = 1; return bpf_map_lookup_elem(&values, &key) ? XDP_DROP : XDP_PASS; }"
            ),
            "write a smaller max_entries, or raise maps.memory",
        ),
    ],
)
def test_programs_beyond_the_card_are_refused_in_one_line(
    nicety: Callable[..., Result], folder: Path, text: str, part: str
) -> None:
    program = of_text("beyond", text, folder)
    result = nicety("bench", "handlers", program, "--nic", CARD, "--packet-sizes", "60")
    assert (result.status, result.stdout) == (2, "")
    assert part in result.stderr
    assert result.stderr.startswith(f"nicety: {CARD}: program program")
    assert result.stderr.count("\n") == 1


def test_rows_are_printed(nicety: Callable[..., Result], folder: Path) -> None:
    result = nicety("xdp", "translate", of_study("tx", folder), "--nic", CARD)
    assert result.status == 0
    lines = result.stdout.splitlines()
    assert lines[0].split() == ["row", "check", "lane", "0", "lane", "1", "lane", "2", "lane", "3"]
    assert "below 14 B: exit 1" in result.stdout
    assert result.stdout.count("u48") == 4
    assert "instructions in 4 rows" in result.stdout


def test_one_table_has_the_core_beside_other_places(nicety: Callable[..., Result], folder: Path) -> None:
    program = of_study("tx", folder)
    command = ["bench", "handlers", program, "--nic", f"{CARD},spin-100g", "--packet-sizes", "60", "--messages", "500"]
    found = nicety(*command, "--json").json()
    assert [place["place"] for place in found["places"]] == ["eBPF core", "card cores"]
    # The core is slower than the wire, and the card loses frames that find its queue full.
    assert found["places"][0]["verdicts"] == {"XDP_TX": 500 - found["ebpf_cores"][0]["lost"]}
    assert 0 < found["ebpf_cores"][0]["lost"] < 500
    assert found["places"][1]["verdicts"] == {"XDP_TX": 500}
    text = nicety(*command).stdout
    assert text.count("\n# Card") == 1
    assert "hxdp-sume  eBPF core" in text


def test_the_card_has_no_host(nicety: Callable[..., Result]) -> None:
    result = nicety("bench", "latency", "--nic", CARD)
    assert (result.status, result.stdout) == (2, "")
    assert "a card of design hxdp runs only XDP programs" in result.stderr
