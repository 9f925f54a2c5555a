"""Quantities in Python have the same values as in the spec reader."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

import nicety
from nicety import _native
from nicety.shared.quantities import duration_ps, meaning, size_bytes
from nicety.usecases import Accumulate, Broadcast, Datatype, KeyValue, Matching, Storage, UseCase

SIZES = {"B": 1, "kB": 1000, "MB": 1000**2, "KiB": 1024, "MiB": 1024**2}
TIMES = {"ps": 1, "ns": 1000, "us": 10**6, "\u00b5s": 10**6, "\u03bcs": 10**6, "ms": 10**9}


def spellings(units: dict[str, int], least: int) -> st.SearchStrategy[tuple[str, int]]:
    """A quantity in the user's notation, and its value in the smallest unit."""

    def written(thousandths: int, unit: str, gap: str, *, fraction: bool) -> tuple[str, int]:
        whole, rest = divmod(thousandths, 1000)
        number = f"{thousandths}/1000" if fraction else f"{whole}.{rest:03}" if rest else str(whole)
        value, left = divmod(thousandths * units[unit], 1000)
        # Smaller units have no fractions of these.
        return (
            (f"{number}{gap}{unit}", value) if not left else (f"{value + least}{gap}{next(iter(units))}", value + least)
        )

    return st.builds(
        written,
        st.integers(1, 999_999),
        st.sampled_from(sorted(units)),
        st.sampled_from(["", " ", "  "]),
        fraction=st.booleans(),
    ).filter(lambda pair: pair[1] >= least)


def spec_hash(override: str) -> str:
    """The reader's result for a value: equal if the value is equal."""
    found: str = json.loads(_native.spec_show("spin-discrete", [override]))["hash"]
    return found


@given(spelling=spellings(SIZES, 64))
def test_sizes_are_those_of_the_reader(spelling: tuple[str, int]) -> None:
    text, value = spelling
    assert size_bytes(text) == value
    if value <= 64 << 20:
        assert spec_hash(f"hpu.memory={text}") == spec_hash(f"hpu.memory={value} B")


@given(spelling=spellings(TIMES, 0))
def test_times_are_those_of_the_reader(spelling: tuple[str, int]) -> None:
    text, value = spelling
    assert duration_ps(text) == value
    assert spec_hash(f"host.notice={text}") == spec_hash(f"host.notice={value} ps")


@pytest.mark.parametrize("text", ["64", "KiB", "64 ns", "1/3 B", "", "-1 B"])
def test_quantities_that_no_spec_has(text: str) -> None:
    with pytest.raises(ValueError, match=r"unit|whole|a time|negative"):
        size_bytes(text)


@pytest.mark.parametrize(
    ("case", "key", "spellings"),
    [
        (Storage(sizes=[512], requests=1), "hpu.memory", ["64 KiB", "64KiB", "0.0625 MiB", "1/16MiB", "65536B"]),
        (Datatype(size=1024, blocks=[256], layout="list"), "hpu.memory", ["16 KiB", "16KiB"]),
        (KeyValue(clients=[1], requests=2), "hpu.memory", ["0.5 MiB", "512KiB"]),
        (Accumulate(sizes=[4096]), "packet.payload", ["2 KiB", "2KiB", "0.002048MB"]),
        (Broadcast(nodes=[2], sizes=[4096]), "packet.payload", ["2 KiB", "2KiB"]),
        (KeyValue(clients=[1], requests=2), "packet.payload", ["2 KiB", "2KiB"]),
        (Matching(sizes=[8]), "host.notice", ["65 ns", "65ns", "0.065 us", "0.065\u00b5s", "13/200us"]),
    ],
)
def test_use_cases_read_any_spelling(case: UseCase, key: str, spellings: Sequence[str]) -> None:
    expected, *others = (
        nicety.run_usecase(case, nics=["spin-discrete"], overrides=[f"{key}={value}"])["rows"] for value in spellings
    )
    assert all(rows == expected for rows in others)


GAPS = ["15.6 ps/B", "0.0156ns/B", "400 Gb/s", "50GB/s", "50000 MB/s", "0.05 Tb/s", "6.25 GB/s", "1/3 ns/B", "3 GB/s"]
CLOCKS = ["2.5 GHz", "2500MHz", "2500000 kHz", "5/2 GHz", "2 GHz"]


@pytest.mark.parametrize(("key", "texts"), [("link.gap", GAPS), ("hpu.clock", CLOCKS)])
def test_two_texts_mean_the_same_where_the_reader_reads_the_same(key: str, texts: list[str]) -> None:
    pairs = [(one, other) for one in texts for other in texts]
    for one, other in pairs:
        same = spec_hash(f"{key}={one}") == spec_hash(f"{key}={other}")
        assert (meaning(one) == meaning(other)) == same, (one, other)


@given(spelling=spellings(TIMES, 0), other=spellings(TIMES, 0))
def test_times_mean_their_picoseconds(spelling: tuple[str, int], other: tuple[str, int]) -> None:
    assert meaning(spelling[0]) == f"{spelling[1]} ps"
    assert meaning(f"{spelling[0]},{other[0]}") == f"{spelling[1]} ps,{other[1]} ps"


@given(text=st.text())
def test_any_text_means_something_and_stays_what_it_means(text: str) -> None:
    assert meaning(meaning(text)) == meaning(text)


@pytest.mark.parametrize("text", ["", "8", "ns", "1/0 ns", "spin-discrete", "a 100 ns b", "100 nS", "-1 ns"])
def test_texts_without_quantities_are_unchanged(text: str) -> None:
    assert meaning(text) == text
