"""Use cases take exactly the card resources that they declare."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import pytest

import nicety as package
from nicety.usecases import Accumulate, Broadcast, Datatype, KeyValue, Matching, Storage, UseCase, driver

CASES: dict[str, UseCase] = {
    "broadcast": Broadcast(nodes=[4], sizes=[4096]),
    "accumulate": Accumulate(sizes=[4096]),
    "vector": Datatype(size=4096, blocks=[256]),
    "write": Storage(sizes=[4096], operations=["write"], servers=3),
    "read": Storage(sizes=[4096], operations=["read"], servers=3),
    "rebuild": Storage(sizes=[4096], operations=["rebuild"], servers=4),
    "one client": KeyValue(clients=[1], requests=2, buckets=8),
    "more clients": KeyValue(clients=[5], requests=1, buckets=8),
    "eager": Matching(sizes=[4096], arrivals=["expected"]),
    "eager, unexpected": Matching(sizes=[4096], arrivals=["unexpected"]),
    "rendezvous": Matching(sizes=[16384], arrivals=["expected"]),
    "rendezvous, unexpected": Matching(sizes=[16384], arrivals=["unexpected"]),
}


MEMORY: dict[str, UseCase] = {
    "broadcast": Broadcast(nodes=[2], sizes=[(1 << 20) + 8]),
    "vector": Datatype(size=1 << 20, blocks=[1 << 18]),
    "write": Storage(sizes=[600_000], operations=["write"], servers=2, requests=1),
    "read": Storage(sizes=[600_000], operations=["read"], servers=2, requests=1),
    "rebuild": Storage(sizes=[600_000], operations=["rebuild"], servers=2, requests=1),
    "store": KeyValue(clients=[2], requests=1, buckets=12_000),
    "eager": Matching(sizes=[1 << 20], eager_bytes=1 << 20),
    "rendezvous": Matching(sizes=[1 << 20]),
}


def cases(which: dict[str, UseCase]) -> pytest.MarkDecorator:
    """All modes of use cases."""
    return pytest.mark.parametrize(
        ("case", "mode"),
        [pytest.param(case, mode, id=f"{name}-{mode}") for name, case in which.items() for mode in case.modes],
    )


def needs_of(case: UseCase, mode: str) -> dict[str, int]:
    """The declared maximum resources of a use case."""
    (card,) = driver._cards(["spin-discrete"], [])
    found: dict[str, int] = {}
    for point in case.points():
        for key, needed in case.needs(card, mode, point).items():
            found[key] = max(needed, found.get(key, 1))
    return found


def run(case: UseCase, mode: str, *overrides: str, seed: int = 1) -> None:
    package.run_usecase(case, nics=["spin-discrete"], modes=[mode], overrides=overrides, seed=seed)


@contextmanager
def unchecked(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Without the check of limits before anything runs."""
    with monkeypatch.context() as patch:
        patch.setattr(driver, "_check_limits", lambda _card, _needs: None)
        yield


@cases(CASES)
def test_a_use_case_takes_its_stated_resources(monkeypatch: pytest.MonkeyPatch, case: UseCase, mode: str) -> None:
    needs = needs_of(case, mode)
    del needs["host.memory"]
    run(case, mode, *(f"{key}={needed}" for key, needed in needs.items()))
    for key, needed in needs.items():
        if needed > 1:
            with pytest.raises(package.InputError, match=f"set {key} to {needed} or more"):
                run(case, mode, f"{key}={needed - 1}")
            # With this amount there is no run, so no possible run is refused.
            with unchecked(monkeypatch), pytest.raises(package.Error):
                run(case, mode, f"{key}={needed - 1}")


@cases(MEMORY)
def test_a_use_case_takes_its_stated_memory(monkeypatch: pytest.MonkeyPatch, case: UseCase, mode: str) -> None:
    needed = needs_of(case, mode)["host.memory"]
    run(case, mode, f"host.memory={needed} B")
    with pytest.raises(package.InputError, match=f"set host.memory to {needed} B or more"):
        run(case, mode, f"host.memory={needed - 1} B")
    if (case.name, mode) == ("storage", "spin") and case.points()[0]["operation"] == "rebuild":
        return  # the lengths of its blocks are random, and its declaration is the maximum
    with unchecked(monkeypatch), pytest.raises(package.Error, match=r"raise host\.memory"):
        run(case, mode, f"host.memory={needed - 1} B")


def test_a_list_has_room_for_every_gap() -> None:
    case = Datatype(size=1 << 19, blocks=[1 << 17], layout="list")
    needed = needs_of(case, "spin")["host.memory"]
    for seed in range(1, 20):
        run(case, "spin", f"host.memory={needed} B", seed=seed)


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (["storage", "--sizes", "64Ki", "--set", "limits.match_entries=1"], ["limits.match_entries to 5"]),
        (["storage", "--set", "limits.portal_table=1"], ["limits.portal_table to 2"]),
        (["storage", "--set", "limits.event_queue_depth=4"], ["limits.event_queue_depth to 256"]),
        (["kv", "--set", "limits.event_queue_depth=3"], ["limits.event_queue_depth to 4"]),
        (["matching", "--set", "limits.match_entries=1"], ["limits.match_entries to 2"]),
        (["matching", "--sizes", "4Mi", "--set", "host.memory=1MiB"], ["4202496 bytes", "host.memory", "1048576"]),
    ],
)
def test_invalid_options_are_refused(nicety: Callable, command: Sequence[str], words: Sequence[str]) -> None:
    result = nicety("bench", command[0], "--nic", "spin-discrete", *command[1:])
    assert (result.status, result.stdout) == (2, "")
    assert [word for word in words if word not in result.stderr] == []
