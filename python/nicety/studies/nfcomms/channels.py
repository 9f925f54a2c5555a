"""Channels between host and card: what was calibrated, and what bulk messages carry."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from nicety.channel_benchmarks import ChannelBenchReport, ChannelRow, bench_channels
from nicety.ranges import format_size
from nicety.studies.claims import Ours
from nicety.studies.nfcomms.cardinality import CARD, one_update
from nicety.studies.study import Measured, Options, Table
from nicety.tables import fixed

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DIRECT = 56
"""Bytes of the longest direct message."""
_TO_CARD, _TO_HOST = "host-to-card", "card-to-host"
_WAYS = {_TO_CARD: "host to card", _TO_HOST: "card to host"}
_MOST = 32
"""Channels at once, far more than what they share can serve."""
_MESSAGES = 2000
"""Direct messages of a channel, so that the way to the first and from the last hardly counts."""
_SAME = 0.01
"""Latencies that differ by less are the same."""
_PLATEAU = 0.95
"""Of the most that any size carries: what carries as much is on the plateau."""
_LARGEST = 20 << 20
_KEEPS = 2 << 20

_CHANGES: dict[str, tuple[str, ...]] = {
    "nothing": (),
    "card's memory twice as wide": ("memory.emem.width=16",),
    "PCIe with 16 lanes": ("bus.pcie.lanes=16",),
    "interrupts take half": ("kernel.interrupt=1960 ns",),
    "pinning is free": ("kernel.pin_page=0 ns", "kernel.unpin_page=0 ns"),
}


@lru_cache(maxsize=2)
def _latency(options: Options) -> ChannelBenchReport:
    """Messages of one channel, one behind the other, in the paper's batches of 100."""
    return bench_channels("channel-latency", nics=CARD, sizes=[8, 16, 32, DIRECT], seed=options.seed)


@lru_cache(maxsize=2)
def _direct(options: Options) -> ChannelBenchReport:
    """Direct messages over several channels at once."""
    return bench_channels(
        "channel-bandwidth",
        nics=CARD,
        modes="direct",
        directions=_TO_CARD,
        sizes=DIRECT,
        processes=[1, _MOST],
        payload=_MOST * _MESSAGES * DIRECT,
        seed=options.seed,
    )


def sizes_of(options: Options) -> list[int]:
    """Sizes of bulk messages, from 64 KiB to 20 MiB."""
    return [*((64 << 10) << power for power in range(0, 9, 4 if options.quick else 1)), _LARGEST]


@lru_cache(maxsize=2)
def _bulk(options: Options) -> ChannelBenchReport:
    """The four curves: one and eight processes, both ways."""
    return bench_channels(
        "channel-bandwidth",
        nics=CARD,
        modes="indirect",
        sizes=sizes_of(options),
        processes=[1, 8],
        payload=(20 << 20) if options.quick else None,
        seed=options.seed,
    )


def _of(options: Options, mode: str, direction: str, size: int = DIRECT) -> ChannelRow:
    return next(
        row
        for row in _latency(options)["rows"]
        if (row["mode"], row["direction"], row["size_bytes"]) == (mode, direction, size)
    )


def _gigabits(row: ChannelRow) -> float:
    return 8e-9 * row["bandwidth_bytes_per_s"]


def _peak(options: Options) -> ChannelRow:
    """The most that direct messages carry."""
    return max(_direct(options)["rows"], key=lambda row: row["bandwidth_bytes_per_s"])


def _times_direct(options: Options, direction: str) -> float:
    return _of(options, "indirect", direction)["latency_ns"] / _of(options, "direct", _TO_CARD)["latency_ns"]


def calibrated(options: Options) -> Measured:
    """What values of the card were chosen by."""
    peak = _peak(options)
    return Measured(
        {
            "direct-latency": Ours(round(_of(options, "direct", _TO_CARD)["latency_ns"] / 1000, 4)),
            "direct-peak": Ours(
                round(1000 * _gigabits(peak), 3), why=f"with {peak['processes']} channels, each begun and ended once"
            ),
            "bulk-small-to-card": Ours(round(_times_direct(options, _TO_CARD), 3)),
            "bulk-small-to-host": Ours(round(_times_direct(options, _TO_HOST), 3)),
            "pcsa-asleep": Ours(one_update()[1]),
        }
    )


def direct_messages(options: Options) -> Measured:
    """Direct messages, and where their time goes."""
    rows = [row for row in _latency(options)["rows"] if row["mode"] == "direct"]
    apart = 0.0
    for direction in _WAYS:
        times = [row["latency_ns"] for row in rows if row["direction"] == direction]
        apart = max(apart, max(times) / min(times) - 1)
    one = next(row for row in _direct(options)["rows"] if row["processes"] == 1)
    kinds = [(mode, direction) for mode in ("direct", "indirect") for direction in _WAYS]
    columns = [_of(options, *kind) for kind in kinds]
    stages = list(dict.fromkeys(stage["stage"] for row in columns for stage in row["stages"]))

    def of(row: ChannelRow, name: str) -> str:
        spent = sum(stage["ns"] for stage in row["stages"] if stage["stage"] == name)
        return fixed(spent / 1000, 3) if spent else "-"

    return Measured(
        {
            "direct-one-channel": Ours(
                round(1000 * _gigabits(one), 3), why="the way to the first message and from the last is in it"
            ),
            "direct-sizes": Ours(apart < _SAME, f"8 to 56 B are at most {fixed(100 * apart, 2)} % apart"),
        },
        tables=[
            Table(
                section="Direct messages",
                title="A message of 56 B, where its time goes (us)",
                rows=[
                    ["Stage", *(f"{mode}, {_WAYS[direction]}" for mode, direction in kinds)],
                    *([name, *(of(row, name) for row in columns)] for name in stages),
                    ["In all", *(fixed(row["latency_ns"] / 1000, 3) for row in columns)],
                ],
                note="Until whoever called on the host is out of the call; indirect is the paper's word for in bulk",
            )
        ],
        data={"channel-latency": _latency(options)},
    )


def bulk_messages(options: Options) -> Measured:
    """Bulk messages: the four curves."""
    report = _bulk(options)
    curves = {
        (processes, direction): {
            row["size_bytes"]: row
            for row in report["rows"]
            if (row["processes"], row["direction"]) == (processes, direction)
        }
        for processes in (1, 8)
        for direction in _WAYS
    }
    sizes = sizes_of(options)
    best = max((row for row in report["rows"] if row["processes"] == 8), key=_gigabits)  # noqa: PLR2004, the paper's eight
    peak = _peak(options)
    plateaus = [
        min(size for size in sizes if _gigabits(curve[size]) >= _PLATEAU * max(map(_gigabits, curve.values())))
        for (processes, _), curve in curves.items()
        if processes == 1
    ]
    more = all(_gigabits(curves[8, way][size]) > _gigabits(curves[1, way][size]) for way in _WAYS for size in sizes)
    one = max(_gigabits(row) for row in report["rows"] if row["processes"] == 1)
    changed = _changed(options, best)
    limit = max(list(_CHANGES)[1:], key=lambda name: changed[name][1])

    def cell(row: ChannelRow) -> str:
        return f"{fixed(_gigabits(row), 2)} +- {fixed(8e-9 * row['stddev_bytes_per_s'], 2)}"

    def figure() -> Figure:
        from nicety.curves import Curve, figure_of

        drawn = [
            Curve(
                f"{processes} process{'es' if processes > 1 else ''}, {_WAYS[direction]}",
                {size: _gigabits(row) for size, row in curve.items()},
                colour=list(_WAYS).index(direction),
                style=0 if processes == 1 else 1,
            )
            for (processes, direction), curve in curves.items()
        ]
        return figure_of(drawn, title="Bulk messages between host and card", x="Message (B)", y="Throughput (Gb/s)")

    return Measured(
        {
            "bulk-best": Ours(
                round(_gigabits(best), 2),
                why=f"the table below has what holds it: with the {limit} it is {fixed(changed[limit][1], 1)}",
            ),
            "bulk-over-direct": Ours(
                round(best["bandwidth_bytes_per_s"] / peak["bandwidth_bytes_per_s"], 1), why="as the best throughput"
            ),
            "bulk-plateau": Ours(
                max(plateaus) / (1 << 20),
                f"{', '.join(_size(size) for size in plateaus)} carry {fixed(100 * _PLATEAU, 0)} % of the most",
            ),
            "bulk-eight": Ours(more, f"at best {fixed(_gigabits(best), 1)} Gb/s with eight, {fixed(one, 1)} with one"),
        },
        tables=[
            Table(
                section="Bulk messages",
                title=f"Throughput by message size (Gb/s, mean and deviation of {best['runs']} runs)",
                rows=[
                    [
                        "Message",
                        *(
                            f"{processes} process{'es' if processes > 1 else ''}, {_WAYS[way]}"
                            for processes, way in curves
                        ),
                    ],
                    *([_size(size), *(cell(curve[size]) for curve in curves.values())] for size in sizes),
                ],
                note=f"Each point moves {_size(best['payload_bytes'])}, and every byte is checked at the far end",
            ),
            Table(
                section="Bulk messages",
                title=f"{_size(_KEEPS)} from host to card (Gb/s), where one thing is otherwise",
                rows=[
                    ["Changed", "1 process", "8 processes"],
                    *([name, *(fixed(value, 2) for value in values)] for name, values in changed.items()),
                ],
                note="What moves a figure is what holds it",
            ),
        ],
        figures={"bulk": ("Throughput of bulk messages by size", figure)},
        data={"channel-bandwidth": report, "direct-bandwidth": _direct(options)},
    )


def _changed(options: Options, best: ChannelRow) -> dict[str, list[float]]:
    """Throughput of one and of eight processes, where a value of the card is another."""
    found = {}
    for name, overrides in _CHANGES.items():
        report = bench_channels(
            "channel-bandwidth",
            nics=CARD,
            modes="indirect",
            directions=best["direction"],
            sizes=_KEEPS,
            processes=[1, 8],
            payload=32 << 20,
            runs=2,
            overrides=overrides,
            seed=options.seed,
        )
        found[name] = [_gigabits(row) for row in report["rows"]]
    return found


def _size(size: int) -> str:
    """As people write it: 512 B, 4 KiB."""
    shown = format_size(size)
    return f"{shown[:-2]} {shown[-2:]}B" if shown.endswith("i") else f"{shown} B"
