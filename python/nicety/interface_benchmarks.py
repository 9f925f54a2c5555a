"""The benchmarks of cards that many processes share: copy or register, and what each process gets."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Literal, TypedDict, cast

from nicety import _native
from nicety._checks import U64, Names, Numbers, Overrides, changes, names, numbers, whole
from nicety._typed import checked

Progress = Callable[[int, int], None]


class RegistrationRow(TypedDict):
    """What a size costs a CPU of the host.

    `copy_ns` is a copy into memory that the card may fetch from. `translate_ns` is a system call that locks and
    translates the `pages` pages of a buffer from the start of one on, and what it takes to give the card their
    descriptors where it wants any.
    """

    nic: str
    size_bytes: int
    pages: int
    copy_ns: float
    translate_ns: float


class Crossover(TypedDict):
    """Where translating begins to pay on a card.

    `crossover_bytes` is the smallest size, between the smallest and the largest of the rows, from which on it takes no
    longer than copying; null where copying is faster up to the largest.
    """

    nic: str
    crossover_bytes: int | None


class RegistrationReport(TypedDict):
    """What the benchmark of registration gives; `nicety bench registration --json` prints just this."""

    benchmark: Literal["registration"]
    version: str
    manifest: dict[str, Any]
    rows: list[RegistrationRow]
    crossovers: list[Crossover]


class FairnessRow(TypedDict):
    """A number of processes that send at once, each to a process of its own on the other host.

    `bandwidth_bytes_per_s` is that of all together, until the last one has received its last message;
    `process_*_bytes_per_s` is what a process gets until it has received its own: mean, least and most. `jain_index` is
    Jain's index of the latter: 1 where all get the same, 1/n where one of n gets everything. `verified` says that every
    byte was checked at its end.
    """

    nic: str
    processes: int
    size_bytes: int
    messages: int
    bandwidth_bytes_per_s: float
    process_mean_bytes_per_s: float
    process_min_bytes_per_s: float
    process_max_bytes_per_s: float
    jain_index: float
    verified: bool


class FairnessReport(TypedDict):
    """What the benchmark of fairness gives; `nicety bench fairness --json` prints just this."""

    benchmark: Literal["fairness"]
    version: str
    manifest: dict[str, Any]
    rows: list[FairnessRow]


class _Shown(dict[str, Any]):
    """A report that shows itself as tables in a notebook."""

    def _repr_html_(self) -> str:
        from nicety._notebook import interface_html

        return interface_html(cast("RegistrationReport | FairnessReport", self))


@checked
def bench_registration(
    *,
    nics: Names = ("qnix",),
    sizes: Numbers,
    overrides: Overrides = (),
    progress: Progress | None = None,
) -> RegistrationReport:
    """Measure what copying a message costs a CPU, and what letting the card use its own memory.

    Args:
        nics: cards that register memory: names of specs, or paths of spec files.
        sizes: sizes in bytes.
        overrides: changes to the cards, `KEY=VALUE` with a unit where the key has one: `kernel.pin=3 us`.
        progress: called with the number of rows that are done and that there will be.

    Raises:
        InputError: a card that does not register memory, a size that it cannot, an override that cannot be.
    """
    request = {
        "nics": names(nics, "a card", "qnix"),
        "sizes": numbers(sizes, "a size"),
        "overrides": changes(overrides),
    }
    return cast(RegistrationReport, _Shown(json.loads(_native.registration_bench(json.dumps(request), progress))))


@checked
def bench_fairness(
    *,
    nics: Names = ("qnix",),
    processes: Numbers,
    size: int = 64 << 10,
    messages: int = 16,
    overrides: Overrides = (),
    progress: Progress | None = None,
) -> FairnessReport:
    """Measure what each of many processes gets that send at once.

    Args:
        nics: cards with interfaces for processes: names of specs, or paths of spec files.
        processes: numbers of processes on each of two hosts, each a row.
        size: bytes of a message.
        messages: messages of each process.
        overrides: changes to the cards, `KEY=VALUE` with a unit where the key has one: `dma.channels=4`.
        progress: called with the number of rows that are done and that there will be.

    Raises:
        InputError: a card without interfaces for processes, or for so many; an override that cannot be.
    """
    request = {
        "nics": names(nics, "a card", "qnix"),
        "processes": numbers(processes, "a number of processes"),
        "size": whole(size, "size", U64),
        "messages": whole(messages, "messages", U64),
        "overrides": changes(overrides),
    }
    return cast(FairnessReport, _Shown(json.loads(_native.fairness_bench(json.dumps(request), progress))))
