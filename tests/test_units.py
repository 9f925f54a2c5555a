"""Sizes, counts, times and rates have the same spellings at every entrance: `docs/reference/units.md`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nicety import _native
from nicety._generated import types
from nicety.cli.arguments import CommandOption
from nicety.errors import InputError
from nicety.shared.options import arguments_of
from nicety.shared.quantities import duration_ps, meaning, size_bytes
from nicety.shared.ranges import parse_ranges
from nicety.sweeps.grid import meant_by

SIZES = {
    8000: ["8k", "8K", "8kB", "8KB", "8 kB", "8000 B", "0.008MB"],
    8192: ["8Ki", "8 Ki", "8KiB", "8 KiB", "8192 B", "1/128 MiB"],
}
TIMES = {100_000: ["100ns", "100 ns", "0.1us", "0.1 \u00b5s", "100000ps", "1/10 us"]}
BANDWIDTHS = ["100Gb/s", "100Gbps", "100 Gbit/s", "12.5GB/s", "12.5 GBps", "80 ps/B", "0.1Tbps"]
CLOCKS = ["2.5GHz", "2500 MHz", "2500000KHz"]
COUNTS = ["2k", "2K", "2000", "0.002M"]


def option(request: type, name: str) -> CommandOption:
    """An argument of a request as an option of a command."""
    return CommandOption(arguments_of(request)[name], "latency")


def spec_hash(override: str) -> str:
    found: str = json.loads(_native.spec_show("spin-discrete", [override]))["hash"]
    return found


@pytest.mark.parametrize(("size", "text"), [(size, text) for size, texts in SIZES.items() for text in texts])
def test_a_size_is_the_same_everywhere(size: int, text: str) -> None:
    assert size_bytes(text) == size
    assert parse_ranges(text, "--sizes") == [size]
    assert parse_ranges(f"8:{text}", "--sizes")[-1] == size
    assert option(types.MessagesOptions, "sizes").read(text) == [size]
    assert option(types.LineRateOptions, "state_bytes").read(text) == size
    assert option(types.LineRateOptions, "packet_sizes").read(text) == [size]
    assert option(types.MessagesOptions, "pong_size").read(text) == size
    assert spec_hash(f"messages.buffer={text}") == spec_hash(f"messages.buffer={size} B")
    assert meant_by(text) == str(size)


def test_a_number_of_bytes_needs_a_unit_only_where_it_may_be_another() -> None:
    assert parse_ranges("4096", "--sizes") == [4096]
    with pytest.raises(InputError, match=r"a size needs a unit .* --set messages\.buffer=4096B"):
        spec_hash("messages.buffer=4096")


@pytest.mark.parametrize("text", COUNTS)
def test_a_count_is_the_same_everywhere(text: str) -> None:
    assert parse_ranges(text, "--nodes", "count") == [2000]
    assert option(types.MessagesOptions, "iterations").read(text) == 2000
    assert option(types.ExchangeOptions, "connections").read(text) == [2000]
    assert spec_hash(f"limits.match_entries={text}") == spec_hash("limits.match_entries=2000")


@pytest.mark.parametrize(("time", "text"), [(time, text) for time, texts in TIMES.items() for text in texts])
def test_a_time_is_the_same_everywhere(time: int, text: str) -> None:
    assert duration_ps(text) == time
    assert spec_hash(f"host.notice={text}") == spec_hash(f"host.notice={time} ps")
    assert meaning(text) == f"{time} ps"


@pytest.mark.parametrize(("key", "texts"), [("link.gap", BANDWIDTHS), ("hpu.clock", CLOCKS)])
def test_rates_are_the_same_everywhere(key: str, texts: list[str]) -> None:
    assert len({spec_hash(f"{key}={text}") for text in texts}) == 1
    assert len({meaning(text) for text in texts}) == 1


@pytest.mark.parametrize(
    ("override", "readings"),
    [
        ("link.gap=100gb/s", "100 Gb/s is 80 ps/B, and 100 GB/s is 10 ps/B"),
        ("messages.buffer=8kb", "8 kB is 8000 B, and 8 KiB is 8192 B"),
    ],
)
def test_two_readings_are_in_one_error(override: str, readings: str) -> None:
    with pytest.raises(InputError, match=readings):
        spec_hash(override)


def test_a_card_file_has_counts_with_prefixes(tmp_path: Path) -> None:
    hashes = set()
    for count in ["2000", '"2k"']:
        file = tmp_path / "mine.toml"
        file.write_text(f'extends = "spin-discrete"\n[limits]\nmatch_entries = {count}\n')
        hashes.add(json.loads(_native.spec_show(str(file), []))["hash"])
    assert len(hashes) == 1
