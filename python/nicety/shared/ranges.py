"""Lists of whole numbers in the notation of the command line.

    8            one number
    8:4Mi        8, 16, 32 and so on, doubling; the last one, 4 MiB, is always there; 0 is followed by 1
    1..4         1, 2, 3, 4
    8,64,1Ki:1Mi several of these, in this order

Numbers have the units of specs: `Ki`, `Mi` and `Gi` mean 1024, 1024^2 and 1024^3, and `k`, `M` and `G` powers of 1000.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

from nicety import _native
from nicety.errors import InputError

Quantity = Literal["bytes", "count"]
"""The meaning of numbers: bytes, which may have a unit such as KiB, or a count of anything else."""

_SUFFIXES = {"Gi": 1 << 30, "Mi": 1 << 20, "Ki": 1 << 10}

MAX_NUMBER = 2**63 - 1
MAX_COUNT = 65536


def parse_number(text: str, option: str, quantity: Quantity) -> int | None:
    """The number of an option; None if the text is a list or a range.

    Args:
        text: the number, up to 2^64 - 1, for example `64Ki`.
        option: the option with the number, for messages: `--size`.
        quantity: the quantity of the number.

    Raises:
        InputError: it is no number.
    """
    if any(sign in text for sign in (",", ":", "..")):
        return None
    return _number(text.strip(), text, option, quantity, most=2**64 - 1)


def parse_ranges(text: str, option: str, quantity: Quantity = "bytes") -> list[int]:
    """The numbers of a list, in its order, each once.

    Args:
        text: the list, for example `8:4Mi`.
        option: the option with the list, for messages: `--sizes`.
        quantity: the quantity of the numbers.

    Raises:
        InputError: it is no such list, a range is descending, or it has more than `MAX_COUNT` numbers.
    """
    numbers: dict[int, None] = {}
    for item in text.split(","):
        for number in _item(item.strip(), text, option, quantity):
            numbers[number] = None
            if len(numbers) > MAX_COUNT:
                raise InputError(f"{option} {text}: more than {MAX_COUNT} numbers; write 'a:b' to double from a to b")
    return list(numbers)


def _item(item: str, text: str, option: str, quantity: Quantity) -> Iterator[int]:
    if not item:
        raise InputError(
            f"{option} {text!r}: an empty item; write numbers or ranges between commas, as in 8,64,1Ki:1Mi"
        )
    for sign, expand in (("..", _step), (":", _double)):
        if sign in item:
            left, _, right = item.partition(sign)
            if not left or not right or sign in right:
                raise InputError(f"{option} {text}: {item!r} is not a range; write it as 8{sign}64")
            first, last = (_number(end.strip(), text, option, quantity) for end in (left, right))
            if first > last:
                raise InputError(f"{option} {text}: {item!r} runs downwards; write {right}{sign}{left}")
            return expand(first, last)
    return iter([_number(item, text, option, quantity)])


def _step(first: int, last: int) -> Iterator[int]:
    return iter(range(first, last + 1))


def _double(first: int, last: int) -> Iterator[int]:
    number = first
    while number < last:
        yield number
        number = number * 2 or 1
    yield last


def _number(word: str, text: str, option: str, quantity: Quantity, most: int = MAX_NUMBER) -> int:
    try:
        number = _native.parse_quantity(quantity, word)
    except ValueError as error:
        raise InputError(f"{option} {text}: {word!r} is not a number: {error}") from error
    if number > most:
        raise InputError(f"{option} {text}: {word} is too large; the largest number is {most}")
    return number


def format_size(number: int) -> str:
    """A number with the largest suffix that divides it: 4Mi for 4194304."""
    for suffix, factor in _SUFFIXES.items():
        if number and number % factor == 0:
            return f"{number // factor}{suffix}"
    return str(number)


def format_numbers(numbers: Sequence[int]) -> str:
    """Numbers as a list that `parse_ranges` reads: steps by one as a range, the others separated by commas."""
    first, last = numbers[0], numbers[-1]
    if last - first > 1 and list(numbers) == list(range(first, last + 1)):
        return f"{first}..{last}"
    return ",".join(map(format_size, numbers))
