"""Climbs by OpenCL, on any available device: a CPU suffices. Run by `pytest -m gpu`, if PyOpenCL finds one."""

from __future__ import annotations

import random
import zlib

import pytest

from nicety.apps.gpu import climbs
from nicety.errors import InputError

pytestmark = pytest.mark.gpu

Cities = list[tuple[int, int]]


def kind() -> str:
    for device in ("cpu", "gpu"):
        try:
            climbs([(0, 0), (1, 0), (2, 0), (2, 2), (0, 2)], [0], seed=1, device=device)
        except InputError:
            continue
        return device
    pytest.fail("OpenCL finds no device")


def distance(a: tuple[int, int], b: tuple[int, int]) -> int:
    return int(((a[0] - b[0]) ** 2 + (a[1] - b[1]) ** 2) ** 0.5 + 0.5)


def by_hand(cities: Cities, seed: int, number: int) -> tuple[int, list[int]]:
    """The climb of `handlers/nfp/tsp.c`."""
    n, x = len(cities), zlib.crc32(number.to_bytes(4, "little"), seed) | 1
    tour = list(range(n))
    for k in range(n - 1, 0, -1):
        x ^= (x << 13) & 0xFFFFFFFF
        x ^= x >> 17
        x ^= (x << 5) & 0xFFFFFFFF
        other = x * (k + 1) >> 32
        tour[k], tour[other] = tour[other], tour[k]

    def road(i: int, j: int) -> int:
        return distance(cities[tour[i]], cities[tour[j % n]])

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


@pytest.mark.parametrize("count", [5, 6, 17, 40])
def test_a_climb_is_the_one_of_the_card(count: int) -> None:
    dice = random.Random(count)
    cities = [(dice.randrange(4000), dice.randrange(4000)) for _ in range(count)]
    expected = [by_hand(cities, 7, number) for number in range(3, 9)]
    best = min(range(6), key=lambda at: expected[at][0])
    found = climbs(cities, range(3, 9), seed=7, device=kind())
    assert (found.length, found.tour) == expected[best]
    assert found.number == 3 + best


def test_climbs_of_several_calls_are_those_of_one(monkeypatch: pytest.MonkeyPatch) -> None:
    dice = random.Random(1)
    cities = [(dice.randrange(4000), dice.randrange(4000)) for _ in range(20)]
    whole = climbs(cities, range(50), seed=3, device=kind())
    monkeypatch.setattr("nicety.apps.gpu.AT_ONCE", 7)
    parts = climbs(cities, range(50), seed=3, device=kind())
    assert (whole.length, whole.number, whole.tour) == (parts.length, parts.number, parts.tour)
