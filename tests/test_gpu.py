"""Climbs by OpenCL, on any available device: a CPU suffices. Run by `pytest -m gpu`, if PyOpenCL finds one."""

from __future__ import annotations

import random
import zlib

import pytest

from nicety.apps.gpu import climbs
from nicety.errors import InputError

pytestmark = pytest.mark.gpu

Distances = list[list[int]]


def kind() -> str:
    for device in ("cpu", "gpu"):
        try:
            climbs([[0 if a == b else 1 for b in range(5)] for a in range(5)], [0], seed=1, device=device)
        except InputError:
            continue
        return device
    pytest.fail("OpenCL finds no device")


def matrix(count: int, end: int) -> Distances:
    dice = random.Random(count)
    drawn = {(a, b): dice.randrange(end) for a in range(count) for b in range(a + 1, count)}
    return [[0 if a == b else drawn[min(a, b), max(a, b)] for b in range(count)] for a in range(count)]


def by_hand(distances: Distances, seed: int, number: int) -> tuple[int, list[int]]:
    """The climb of `handlers/nfp/tsp_climb.h`."""
    n, x = len(distances), zlib.crc32(number.to_bytes(4, "little"), seed) | 1
    tour = list(range(n))
    for k in range(n - 1, 0, -1):
        x ^= (x << 13) & 0xFFFFFFFF
        x ^= x >> 17
        x ^= (x << 5) & 0xFFFFFFFF
        other = x * (k + 1) >> 32
        tour[k], tour[other] = tour[other], tour[k]

    def road(i: int, j: int) -> int:
        return distances[tour[i]][tour[j % n]]

    while True:
        most, move = 0, (0, 0)
        for i in range(n - 2):
            for j in range(i + 2, n if i > 0 else n - 1):
                saved = road(i, i + 1) + road(j, j + 1) - road(i, j) - road(i + 1, j + 1)
                if saved > most:
                    most, move = saved, (i, j)
        if most == 0:
            return sum(road(k, k + 1) for k in range(n)), tour
        first, last = move
        tour[first + 1 : last + 1] = tour[first + 1 : last + 1][::-1]


@pytest.mark.parametrize("end", [4000, 100_000_000])
@pytest.mark.parametrize("count", [5, 6, 17, 40])
def test_a_climb_is_the_one_of_the_card(count: int, end: int) -> None:
    distances = matrix(count, end)
    expected = [by_hand(distances, 7, number) for number in range(3, 9)]
    best = min(range(6), key=lambda at: expected[at][0])
    found = climbs(distances, range(3, 9), seed=7, device=kind())
    assert (found.length, found.tour) == expected[best]
    assert found.number == 3 + best


def test_the_longest_distances_do_not_overflow() -> None:
    long = (1 << 30) - 1
    distances = [[0 if a == b else 1 if 4 in (a, b) else long for b in range(5)] for a in range(5)]
    assert climbs(distances, [0], seed=1, device=kind()).length == 3 * long + 2


def test_climbs_of_several_calls_are_those_of_one(monkeypatch: pytest.MonkeyPatch) -> None:
    distances = matrix(20, 4000)
    whole = climbs(distances, range(50), seed=3, device=kind())
    monkeypatch.setattr("nicety.apps.gpu.AT_ONCE", 7)
    parts = climbs(distances, range(50), seed=3, device=kind())
    assert (whole.length, whole.number, whole.tour) == (parts.length, parts.number, parts.tour)
