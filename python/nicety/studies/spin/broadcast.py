"""Broadcast along a binomial tree, on as many nodes as the paper has."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nicety.studies.claims import Ours
from nicety.studies.study import Measured, Options
from nicety.tables import fixed
from nicety.usecases import Broadcast, run_usecase

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_CARDS = ("spin-discrete", "spin-integrated")
_SIZES = (8, 64 << 10)
_NODES = 1024
_QUICK = 64
# Why ours is not the paper's. The parameters alone leave no room for a few percent where messages are short.
_SMALL_WHY = {
    "rdma": "with RDMA every level of the tree pays o twice and the way to the host's memory and back, 230 ns with "
    "integrated cards, where a handler pays a few; the paper's parameters leave more than 7 % of any level of 8 B",
    "portals4": "a triggered put fetches the bytes from the host's memory behind their deposit, 100 ns with integrated "
    "cards, where a handler has them on the card",
}
_LARGE_WHY = {
    "rdma": "streaming passes packets on while their message still comes, which overlaps the levels of the tree; "
    "handlers that store the message first gain {store} %",
    "portals4": "streaming overlaps the levels of the tree; handlers that store the message first wait for the same "
    "bytes as triggered puts, and their runs come on top: {store} %",
}


def broadcast(options: Options) -> Measured:
    """How much sooner the last process has the bytes, in a fat tree of 36-port switches."""
    most = _QUICK if options.quick else _NODES
    reports = {
        size: run_usecase(
            Broadcast(nodes=[nodes for nodes in (2, 8, 32, _QUICK, 256, _NODES) if nodes <= most], sizes=[size]),
            nics=_CARDS,
            topology="fat-tree:36",
            seed=options.seed,
        )
        for size in _SIZES
    }
    times: dict[tuple[str, str, int], float] = {
        (row["nic"], row["mode"], size): row["latency_ns"]
        for size, report in reports.items()
        for row in report["rows"]
        if row["nodes"] == most
    }

    def gain(nic: str, other: str, size: int) -> float:
        """How much sooner streaming is, in percent of the other."""
        return 100 * (1 - times[nic, "spin-stream", size] / times[nic, other, size])

    def ours(other: str, size: int) -> Ours:
        integrated = gain("spin-integrated", other, size)
        store = 100 * (1 - times["spin-integrated", "spin-store", size] / times["spin-integrated", other, size])
        text = f"{fixed(integrated, 1)} % (store {fixed(store, 1)} %)"
        why = _SMALL_WHY[other] if size == _SIZES[0] else _LARGE_WHY[other].format(store=fixed(store, 1))
        return Ours(round(integrated, 3), text if most == _NODES else f"{text}, {most} nodes", why)

    discrete, integrated = (gain(nic, "rdma", 8) for nic in _CARDS)

    def figure(nic: str, size: int) -> Figure:
        from nicety import plots

        report = reports[size].copy()
        report["rows"] = [row for row in report["rows"] if row["nic"] == nic]
        return plots.usecase_figure(report)

    return Measured(
        {
            "broadcast-rdma-8": ours("rdma", 8),
            "broadcast-portals4-8": ours("portals4", 8),
            "broadcast-rdma-64k": ours("rdma", _SIZES[1]),
            "broadcast-portals4-64k": ours("portals4", _SIZES[1]),
            "broadcast-discrete": Ours(
                discrete > integrated,
                f"8 B over RDMA: {fixed(discrete, 1)} % discrete, {fixed(integrated, 1)} % integrated",
            ),
        },
        figures={
            f"broadcast-{size}-{nic.removeprefix('spin-')}": (
                f"Broadcast of {size} B on {nic}",
                lambda nic=nic, size=size: figure(nic, size),  # type: ignore[misc]
            )
            for size in _SIZES
            for nic in _CARDS
        },
        data={f"broadcast-{size}": report for size, report in reports.items()},
    )
