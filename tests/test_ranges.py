"""Lists of numbers on the command line."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nicety.errors import InputError
from nicety.shared.ranges import MAX_COUNT, MAX_NUMBER, format_size, parse_ranges

numbers = st.integers(0, MAX_NUMBER)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("8", [8]),
        ("8:64", [8, 16, 32, 64]),
        ("8:8", [8]),
        ("3:10", [3, 6, 10]),
        ("0:5", [0, 1, 2, 4, 5]),
        ("0:0", [0]),
        ("1..4", [1, 2, 3, 4]),
        ("5..5", [5]),
        ("64,8,1Ki:4Ki", [64, 8, 1024, 2048, 4096]),
        ("8:32,16..18", [8, 16, 32, 17, 18]),
        (" 1 , 2 : 4 ", [1, 2, 4]),
        ("1Mi,1Gi", [1 << 20, 1 << 30]),
        ("007", [7]),
        ("4M,4MB,4MiB,8 B,1.5Ki", [4_000_000, 4 << 20, 8, 1536]),
        ("1.5k..1502", [1500, 1501, 1502]),
        ("1kB:0.004 MB", [1000, 2000, 4000]),
    ],
)
def test_lists(text: str, expected: list[int]) -> None:
    assert parse_ranges(text, "--sizes") == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "--sizes '': an empty item"),
        ("8,,9", "an empty item"),
        ("4m", "4 M is 4000000 B, and 4 Mi is 4194304 B"),
        ("8kb", "'8kb' is not a number: \"kb\" has two readings: 8 kB is 8000 B, and 8 KiB is 8192 B"),
        ("8 ns", "'8 ns' is not a number: expected a size (B, KiB, MiB, GiB), but 8 ns is a time"),
        ("1.3 B", "'1.3 B' is not a number: 1.3 B is not a whole number of bytes"),
        ("-8", "'-8' is not a number"),
        ("0x10", "'0x10' is not a number"),
        ("٣", "is not a number"),
        ("64:8", "'64:8' runs downwards; write 8:64"),
        ("9..1", "'9..1' runs downwards; write 1..9"),
        ("8:", "'8:' is not a range; write it as 8:64"),
        ("1:2:3", "'1:2:3' is not a range"),
        ("1..2..3", "'1..2..3' is not a range"),
        ("9000000000Gi", "too large"),
        ("0..4Gi", f"more than {MAX_COUNT} numbers"),
    ],
)
def test_invalid_ranges_are_refused(text: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_ranges(text, "--sizes")
    assert message in str(caught.value)
    assert str(caught.value).startswith("--sizes")


@given(numbers, numbers)
def test_doubling_begins_and_ends_where_it_says(one: int, other: int) -> None:
    first, last = sorted((one, other))
    found = parse_ranges(f"{first}:{last}", "--sizes")
    assert found[0] == first
    assert found[-1] == last
    for before, after in pairwise(found):
        assert after in (before * 2 or 1, last)
    assert found == sorted(set(found))


@given(numbers, st.integers(0, 300))
def test_steps_are_by_one(first: int, count: int) -> None:
    last = min(first + count, MAX_NUMBER)
    assert parse_ranges(f"{first}..{last}", "--sizes") == list(range(first, last + 1))


@given(st.lists(numbers, min_size=1, max_size=20))
def test_a_list_keeps_its_order_and_drops_repeats(items: list[int]) -> None:
    assert parse_ranges(",".join(map(format_size, items)), "--sizes") == list(dict.fromkeys(items))


@given(numbers)
def test_a_size_reads_back(number: int) -> None:
    assert parse_ranges(format_size(number), "--sizes") == [number]


@given(st.text(alphabet="0123456789KMGi:.,- x", max_size=12))
def test_any_text_is_a_list_or_refused(text: str) -> None:
    try:
        found = parse_ranges(text, "--sizes")
    except InputError:
        return
    assert found
    assert all(0 <= number <= MAX_NUMBER for number in found)
