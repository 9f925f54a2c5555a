"""Broadcast along a binomial tree with the paper's numbers of nodes, and the parts of its time."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from functools import lru_cache, partial
from typing import TYPE_CHECKING

from nicety.show.columns import fixed
from nicety.studies.claims import Ours, Tried
from nicety.studies.study import Measured, Options, Table
from nicety.studies.tried import tried
from nicety.usecases import Broadcast, UseCaseReport, run_usecase

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DISCRETE, INTEGRATED = "spin-discrete", "spin-integrated"
MODES = ("rdma", "portals4", "spin-store", "spin-stream")
LARGE = 64 << 10
_SIZES = (8, LARGE)
_NODES, _QUICK = 1024, 64
_TREE = "fat-tree:36"
# Reasons for deviations. The card's parameters alone leave no room for a few percent with short messages.
_WHY = {
    "rdma": "a level of 8 B costs RDMA o twice and the bus twice, {saved} ns more than handlers; the authors' "
    "simulator charges RDMA neither bus nor matching, L + 2o a level; over that ours gains {free}",
    "portals4": "a triggered put fetches the bytes from the host's memory behind their deposit; a handler has them on "
    "the card, {saved} ns a level of 8 B; with 64 KiB streaming overlaps the levels of the tree, and handlers "
    "that store the message first gain {store} %",
}
_Times = dict[tuple[str, int], float]
"""Maps a mode and a message size to nanoseconds."""
# Maps a part of the card to overrides that make its time zero. The minimum latency of a wire is 1 ps.
_PARTS = {
    "o, posting and noticing": ("host.post=0 ns", "host.notice=0 ns"),
    "Bus": ("bus.latency=0 ns",),
    "Wires and switches": ("link.latency=1 ps", "switch.latency=0 ns"),
    "Matching": ("match.first=0 ns",),
}
# Overrides for RDMA as in the authors' simulator: a message takes the network's latency, and o at each end.
_FREE = ("bus.latency=0 ns", "bus.gap=0 ps/B", "match.first=0 ns", "match.further=0 ns")
_FLAT = ("switch.ports=1024",)
_UNCHANGED = "nothing"
# Maps an assumption that could differ to its overrides and its topology. The table's note has the numbers' sources.
_CHANGES = {
    "noticing is free": (("host.notice=0 ns",), _TREE),
    "starting handlers and commands take 18 ns": (("hpu.cycles.handler_start=45", "hpu.cycles.command=45"), _TREE),
    "link's and bus's gaps a byte add up": (("link.gap=26.7 ps/B",), _TREE),
    "all are 5 switches apart, 450 ns": ((*_FLAT, "switch.latency=250 ns", "link.latency=100 ns"), "star"),
    "all are 2.5 us apart": ((*_FLAT, "switch.latency=0 ns", "link.latency=1250 ns"), "star"),
}
_WITH_FREE_RDMA = (_UNCHANGED, "all are 5 switches apart, 450 ns", "all are 2.5 us apart")
"""The changes for which RDMA without bus and matching is measured as well."""


@lru_cache(maxsize=4)
def reports(options: Options) -> dict[int, UseCaseReport]:
    """Measure the broadcasts. The key is the message size in bytes, the value the report."""
    most = _nodes(options)
    return {
        size: run_usecase(
            Broadcast(nodes=[nodes for nodes in (2, 8, 32, _QUICK, 256, _NODES) if nodes <= most], sizes=[size]),
            nics=(DISCRETE, INTEGRATED),
            topology=_TREE,
            seed=options.seed,
        )
        for size in _SIZES
    }


def broadcast(options: Options) -> Measured:
    """Measure the broadcast's time until the last process has the bytes, in a fat tree of 36-port switches."""
    measured, most = reports(options), _nodes(options)
    times = {
        nic: {
            (row["mode"], row["size_bytes"]): row["latency_ns"]
            for report in measured.values()
            for row in report["rows"]
            if row["nodes"] == most and row["nic"] == nic
        }
        for nic in (DISCRETE, INTEGRATED)
    }
    ours = times[INTEGRATED]

    changed = _changed(options, ours)

    def both(times: _Times, mode: str, other: str) -> list[float]:
        return [_gain(times, mode, other, size) for size in _SIZES]

    def shown(gains: list[float]) -> str:
        return ", ".join(f"{size} {fixed(gain, 1)} %" for size, gain in zip(("8 B", "64 KiB"), gains, strict=True))

    def claim(other: str, paper: float) -> Ours:
        stream = both(ours, "spin-stream", other)
        saved = (ours[other, 8] - ours["spin-stream", 8]) / _levels(options)
        why = _WHY[other].format(
            saved=fixed(saved, 0),
            free=shown(both(changed[_free_of(_UNCHANGED)], "spin-stream", "rdma")),
            store=fixed(_gain(ours, "spin-store", other, LARGE), 1),
        )
        text = shown(stream) if most == _NODES else f"{shown(stream)}, {most} nodes"
        # The paper's text does not name the message size. The size with the nearer gain is taken.
        _, nearer = min((abs(gain - paper), gain) for gain in stream)
        return Ours(round(nearer, 3), text, why, _experiments(options, other))

    def seen(nic: str) -> Ours:
        slowest, fastest = (fixed(times[nic][mode, 8] / 1000, 2) for mode in ("rdma", "spin-stream"))
        longest, shortest = (fixed(times[nic][mode, LARGE] / 1000, 1) for mode in ("rdma", "spin-stream"))
        return Ours(None, f"{most} processes: 8 B {slowest} us, sPIN {fastest}; 64 KiB {longest} us, sPIN {shortest}")

    discrete, integrated = (_gain(times[nic], "spin-stream", "rdma", 8) for nic in (DISCRETE, INTEGRATED))
    parts = _parts(options, ours)

    def figure(nic: str, size: int) -> Figure:
        from nicety.usecases.report import usecase_figure

        report = measured[size].copy()
        report["rows"] = [row for row in report["rows"] if row["nic"] == nic]
        return usecase_figure(report)

    return Measured(
        {
            "broadcast-rdma": claim("rdma", 7),
            "broadcast-portals4": claim("portals4", 5),
            "broadcast-figure-discrete": seen(DISCRETE),
            "broadcast-figure-integrated": seen(INTEGRATED),
            "broadcast-discrete": Ours(
                discrete > integrated,
                f"8 B over RDMA: {fixed(discrete, 1)} % discrete, {fixed(integrated, 1)} % integrated",
                "handlers save the same crossings of the bus in each level, and a discrete card's take 250 ns, not 50",
            ),
        },
        tables=(_parts_table(options, parts), _changes_table(changed)),
        figures={
            **{
                f"broadcast-{size}-{nic.removeprefix('spin-')}": (
                    f"Broadcast of {size} B on {nic}",
                    partial(figure, nic, size),
                )
                for size in _SIZES
                for nic in (DISCRETE, INTEGRATED)
            },
            "broadcast-parts": ("Parts of a level of a broadcast of 8 B", partial(_parts_figure, most, parts)),
        },
        data={f"broadcast-{size}": report for size, report in measured.items()},
    )


def _parts_figure(most: int, parts: Mapping[str, Mapping[str, float]]) -> Figure:
    from nicety.show.bars import bars_figure

    return bars_figure(
        list(next(iter(parts.values()))),
        {part: list(values.values()) for part, values in parts.items()},
        title=f"A level of a broadcast of 8 B to {most} processes, spin-integrated",
        value="Time of a level (ns)",
        stacked=True,
    )


def _nodes(options: Options) -> int:
    return _QUICK if options.quick else _NODES


def _levels(options: Options) -> int:
    """Return the depth of the tree: the number of consecutive messages before the last process has the bytes."""
    return _nodes(options).bit_length() - 1


def _gain(times: _Times, mode: str, other: str, size: int) -> float:
    """Return the time that a mode saves, in percent of the time of mode `other`."""
    return 100 * (1 - times[mode, size] / times[other, size])


def _measure(
    options: Options,
    overrides: tuple[str, ...],
    topology: str,
    sizes: tuple[int, ...] = _SIZES,
    modes: tuple[str, ...] = MODES,
) -> _Times:
    """Measure broadcasts on the integrated card with overrides."""
    report = run_usecase(
        Broadcast(nodes=[_nodes(options)], sizes=sizes),
        nics=[INTEGRATED],
        modes=modes,
        overrides=overrides,
        topology=topology,
        seed=options.seed,
    )
    return {(row["mode"], row["size_bytes"]): row["latency_ns"] for row in report["rows"]}


def _experiments(options: Options, other: str) -> tuple[Tried, ...]:
    """Measure broadcasts of 8 B in two modes: on the card's network, and with LogGOPSim's default latency."""
    seed = "" if options.seed == 1 else f" --seed {options.seed}"
    flat, topology = _CHANGES["all are 2.5 us apart"]
    far = "".join(f" --set {shlex.quote(each)}" for each in flat) + f" --topology {topology}"
    free = "".join(f" --set {shlex.quote(each)}" for each in _FREE)
    command = f"nicety bench broadcast --nic {INTEGRATED} --nodes {_nodes(options)} --sizes 8{seed}"
    ways = [("spin-stream", f" --topology {_TREE}"), (other, f" --topology {_TREE}")]
    ways += [(other, f"{free} --topology {_TREE}")] if other == "rdma" else []
    ways += [("spin-stream", far), (other, far)]
    return tuple(tried(f"{command} --mode {mode}{way}", "latency_ns", 1e-3, "us") for mode, way in ways)


def _free_of(change: str) -> str:
    free = "RDMA takes L + 2o a level"
    return free if change == _UNCHANGED else f"{change}; {free}"


def _changed(options: Options, ours: _Times) -> dict[str, _Times]:
    """Measure broadcasts for each changed assumption; for some of them also RDMA without bus and matching."""
    changed = {}
    for change, (overrides, topology) in {_UNCHANGED: ((), _TREE), **_CHANGES}.items():
        times = ours if change == _UNCHANGED else _measure(options, overrides, topology)
        changed[change] = times
        if change in _WITH_FREE_RDMA:
            free = _measure(options, (*overrides, *_FREE), topology, modes=("rdma",))
            changed[_free_of(change)] = times | free
    return changed


def _parts(options: Options, ours: _Times) -> dict[str, dict[str, float]]:
    """Return each part's share of a tree level's time by mode: the time saved by a broadcast without the part."""
    without = {part: _measure(options, overrides, _TREE, (8,)) for part, overrides in _PARTS.items()}
    levels = _levels(options)
    parts = {
        part: {mode: (ours[mode, 8] - times[mode, 8]) / levels for mode in MODES} for part, times in without.items()
    }
    parts["Handlers, gaps, bytes"] = {
        mode: ours[mode, 8] / levels - sum(values[mode] for values in parts.values()) for mode in MODES
    }
    return parts


def _parts_table(options: Options, parts: dict[str, dict[str, float]]) -> Table:
    body = [[part, *(fixed(values[mode], 1) for mode in MODES)] for part, values in parts.items()]
    whole = [fixed(sum(values[mode] for values in parts.values()), 1) for mode in MODES]
    return Table(
        section="Broadcast",
        title=f"A level of 8 B, {_nodes(options)} processes, integrated (ns): a {_levels(options)}th of the broadcast",
        rows=[["Part", *MODES], *body, ["In all", *whole]],
        note="Each part is what the broadcast is sooner without it; the root's post and the last process's notice, o "
        "each, are in every mode",
    )


def _changes_table(changed: dict[str, _Times]) -> Table:
    """Return a table of the gains at both sizes, with a row for each changed assumption."""
    body = []
    for change, times in changed.items():
        gains = [
            f"{fixed(_gain(times, mode, 'rdma', size), 1)} / {fixed(_gain(times, mode, 'portals4', size), 1)}"
            for size in _SIZES
            for mode in ("spin-store", "spin-stream")
        ]
        body.append([change, *gains])
    return Table(
        section="Broadcast",
        title="Sooner than RDMA / Portals 4, integrated (%), with one change",
        rows=[["Changed", "store, 8 B", "stream, 8 B", "store, 64 KiB", "stream, 64 KiB"], *body],
        note="L + 2o is what the authors' simulator charges RDMA, without bus and matching; 18 ns is the most that it "
        "takes off what its CPU model spends; 5 switches are the longest way in the tree; 2.5 us is what LogGOPSim "
        "takes for the network's latency L where none is given",
    )
