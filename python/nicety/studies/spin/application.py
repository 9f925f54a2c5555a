"""A whole application: a mini-application's trace becomes a schedule. The host or the card matches its messages."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from nicety._generated.types import MessageMode, ScheduleReport
from nicety.apps.goal import run_schedule, trace_schedule
from nicety.show.columns import fixed
from nicety.studies.claims import Ours
from nicety.studies.study import Options, Table

_SIDE = 4
"""Ranks in a row, and in a column, of the grid. The grid is a torus."""
_STEPS = 20
_COMPUTE_US = 20
"""Microseconds in which a rank computes its interior in a step, after posting its faces and before waiting for them."""
_FACES = {"4 KiB": 512, "64 KiB": 8192, "512 KiB": 65536}
"""Maps the size of a face to its number of doubles."""
_MODES: tuple[MessageMode, ...] = ("host", "card")
"""The places where messages are matched: the host, or the card."""
_COMMUNICATOR = "94853248035456"
_CALL_US = 1
_CAVEAT = (
    "a mini-application of this study, halos of a grid and a sum after each step; its trace is made here in the form "
    "of liballprof, and is none of the paper's applications"
)


def _calls(rank: int, doubles: int, *, during: bool) -> Iterator[str]:
    """Yield a rank's MPI calls as liballprof writes them. Computing the interior is a gap between calls.

    Args:
        rank: the rank.
        doubles: number of doubles in a face.
        during: whether the interior is computed before the waits for faces; otherwise it is computed after them.
    """
    row, column = divmod(rank, _SIDE)
    others = [
        (row * _SIDE + (column + step) % _SIDE, (row + down) % _SIDE * _SIDE + column)[down != 0]
        for step, down in ((-1, 0), (1, 0), (0, -1), (0, 1))
    ]
    own = f"{_COMMUNICATOR},{rank},{_SIDE * _SIDE}"
    now = 1000
    yield f"MPI_Init:-:140731:140730:{now}"
    for _ in range(_STEPS):
        for way, other in enumerate(others):
            request = 7104000 + 8 * way
            now += _CALL_US
            # The face from the left neighbour is that neighbour's right face, so tags of opposite ways are pairs.
            yield f"MPI_Irecv:{now}:94321:{doubles}:11,8,8:{other}:{way ^ 1}:{own}:{request}:{now}"
        for way, other in enumerate(others):
            now += _CALL_US
            yield f"MPI_Isend:{now}:94321:{doubles}:11,8,8:{other}:{way}:{own}:{7105000 + 8 * way}:{now}"
        if during:
            now += _COMPUTE_US
        for base in (7104000, 7105000):
            for way in range(len(others)):
                yield f"MPI_Wait:{now}:{base + 8 * way}:140734:{now}"
        if not during:
            now += _COMPUTE_US
        yield f"MPI_Allreduce:{now}:94321:94322:1:11,8,8:3:{own}:{now}"
        now += _CALL_US
    yield f"MPI_Finalize:{now}:-"


@lru_cache(maxsize=16)
def _run(doubles: int, nic: str, mode: MessageMode, *, during: bool = True) -> ScheduleReport:
    with tempfile.TemporaryDirectory() as folder:
        files = []
        for rank in range(_SIDE * _SIDE):
            file = Path(folder) / f"pmpi-trace-rank-{rank}.txt"
            file.write_text("\n".join(_calls(rank, doubles, during=during)) + "\n", encoding="utf-8")
            files.append(file)
        schedule = Path(folder) / "traced.goal"
        trace_schedule(files, schedule)
        return run_schedule(schedule, nic=nic, mode=mode)


def _time(doubles: int, nic: str, mode: MessageMode, *, during: bool = True) -> float:
    """Return the time at which the last rank finishes, in microseconds."""
    return max(float(ns) for ns in _run(doubles, nic, mode, during=during)["finish_ns"]) / 1000


def application(options: Options, nics: tuple[str, ...]) -> tuple[Ours, Table]:
    """Measure the application with messages matched by the hosts, and with messages matched by handlers on cards."""
    faces = dict(list(_FACES.items())[-1:]) if options.quick else _FACES
    rows = [["Face", *(f"{nic}, {mode}" for nic in nics for mode in _MODES), *(f"{nic}, less" for nic in nics)]]
    gains: list[str] = []
    behind: dict[str, float] = {}
    for name, doubles in faces.items():
        times = {(nic, mode): _time(doubles, nic, mode) for nic in nics for mode in _MODES}
        behind[name] = 1 - times[nics[0], "card"] / _time(doubles, nics[0], "host", during=False)
        less = [fixed(100 * (1 - times[nic, "card"] / times[nic, "host"]), 1) for nic in nics]
        gains.append(f"{name} {less[0]} %")
        rows.append([name, *(fixed(time, 1) for time in times.values()), *(f"{gain} %" for gain in less)])
    return (
        Ours(
            None,
            f"a mini-application on the discrete card takes less time by: {', '.join(gains)}",
            "in a schedule's run the host's library answers a rendezvous while its rank computes. Tried: a host that "
            "computes behind its waits, so that nothing moves meanwhile; over it the card takes less time by "
            + ", ".join(f"{name} {fixed(100 * gain, 1)} %" for name, gain in behind.items()),
        ),
        Table(
            section="Matching",
            title=f"A mini-application of {_SIDE * _SIDE} ranks, {_STEPS} steps of {_COMPUTE_US} us (us)",
            rows=rows,
            note="Messages executed by the host's library, and by handlers on the card (nicety goal run --mode); "
            f"{_CAVEAT}",
        ),
    )
