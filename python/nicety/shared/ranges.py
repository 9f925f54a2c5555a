"""Lists of whole numbers in the notation of the command line.

    8            one number
    8:4Mi        8, 16, 32, ... doubled up to 4 MiB, which is always included; 0:4 is 0, 1, 2, 4
    1..4         1, 2, 3, 4
    8,64,1Ki:1Mi several of these, in this order

Numbers have the prefixes of specs: `Ki`, `Mi`, `Gi` are 1024, 1024^2, 1024^3; `k`, `M`, `G` are powers of 1000.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

from nicety import _native
from nicety.errors import InputError

Quantity = Literal["bytes", "count"]
"""The meaning of numbers: `bytes` may have a unit such as KiB; `count` is a number of other things."""

_SUFFIXES = {"Gi": 1 << 30, "Mi": 1 << 20, "Ki": 1 << 10}

MAX_NUMBER = 2**63 - 1
MAX_COUNT = 65536


def parse_number(text: str, option: str, quantity: Quantity) -> int | None:
    """Parse the number of an option. Return None if the text is a list or a range.

    Args:
        text: the number, up to 2^64 - 1, for example `64Ki`.
        option: the option's name, such as `--size`, for error messages.
        quantity: the meaning of the number.

    Raises:
        InputError: the text is no such number.
    """
    if any(sign in text for sign in (",", ":", "..")):
        return None
    return _number(text.strip(), text, option, quantity, most=2**64 - 1)


def parse_ranges(text: str, option: str, quantity: Quantity = "bytes") -> list[int]:
    """Parse a list. Return its numbers in the order of the list, without repetitions.

    Args:
        text: the list, for example `8:4Mi`.
        option: the option's name, such as `--sizes`, for error messages.
        quantity: the meaning of the numbers.

    Raises:
        InputError: the text is no such list, a range is descending, or there are more than `MAX_COUNT` numbers.
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
    """Return a number as text with the largest binary prefix that divides it: 4Mi for 4194304."""
    for suffix, factor in _SUFFIXES.items():
        if number and number % factor == 0:
            return f"{number // factor}{suffix}"
    return str(number)


def format_numbers(numbers: Sequence[int]) -> str:
    """Return numbers as a list that `parse_ranges` reads: `1..4` for consecutive numbers, otherwise `1,2,8`."""
    first, last = numbers[0], numbers[-1]
    if last - first > 1 and list(numbers) == list(range(first, last + 1)):
        return f"{first}..{last}"
    return ",".join(map(format_size, numbers))
