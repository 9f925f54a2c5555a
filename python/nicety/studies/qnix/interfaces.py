"""Messages between processes with interfaces of their own: the card's parts, copying or translating, and the rest."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from nicety.benchmarks import Report, Row, run_benchmark
from nicety.interface_benchmarks import (
    FairnessReport,
    RegistrationReport,
    RegistrationRow,
    bench_fairness,
    bench_registration,
)
from nicety.ranges import format_size
from nicety.studies.claims import Ours
from nicety.studies.study import Measured, Options, Table
from nicety.tables import fixed

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CARD = "qnix"
_PAGE = 4096
_MOST = 2 << 20
"""Bytes of the longest message."""
_SMALL, _LARGE = 256, 1024
"""Messages whose difference is programmed I/O at its rate."""
_LINK = 200.0
"""The link's rate in MB/s."""
_HEADER_NS = 1000 * 32 / _LINK
"""What the link takes for the bytes of an empty message: its header and framing."""
_CHANNEL_NS = 160.0
"""What the control program takes to program a channel."""
_FAST = "link.gap=1000 MB/s"
_HIDDEN = 1.1
"""By how much two channels have to be faster."""
_FAIR = 0.99
"""Jain's index of processes that get the same."""


@lru_cache(maxsize=4)
def _latency(options: Options, mode: str, sizes: tuple[int, ...]) -> dict[int, Row]:
    report = run_benchmark("latency", nics=CARD, modes=mode, sizes=sizes, seed=options.seed)
    return {row["size_bytes"]: row for row in report["rows"]}


@lru_cache(maxsize=4)
def _bandwidth(options: Options, overrides: tuple[str, ...] = ()) -> Report:
    """Bytes a second by DMA from Buffer Pools."""
    sizes = [_PAGE, 64 << 10, _MOST]
    return run_benchmark("bandwidth", nics=CARD, modes="dma", sizes=sizes, overrides=overrides, seed=options.seed)


@lru_cache(maxsize=2)
def _registration(options: Options) -> RegistrationReport:
    powers = range(6, 22, 3 if options.quick else 1)
    return bench_registration(nics=CARD, sizes=sorted({*(1 << power for power in powers), _PAGE, 64, _MOST}))


@lru_cache(maxsize=2)
def _fairness(options: Options) -> FairnessReport:
    processes, messages = ([1, 8, 64], 4) if options.quick else ([1, 2, 4, 8, 16, 32, 64], 8)
    return bench_fairness(nics=CARD, processes=processes, messages=messages)


def _stage(row: Row, *names: str) -> float:
    return sum(stage["ns"] for stage in row["stages"] if stage["stage"] in names)


def _better_up_to(options: Options) -> int:
    """The longest message, up to the limit of programmed I/O, that it brings no later than DMA does."""
    least, most = 1, 4096
    while least < most:
        size = (least + most + 1) // 2
        times = [
            run_benchmark(
                "latency",
                nics=CARD,
                modes=mode,
                sizes=size,
                iterations=4,
                overrides=["pio.limit=4 KiB"],
                seed=options.seed,
            )["rows"][0]["latency_ns"]
            for mode in ("pio", "dma")
        ]
        least, most = (size, most) if times[0] <= times[1] else (least, size - 1)
    return least


def calibrated(options: Options) -> Measured:
    """The card's parts, read off the stages of messages."""
    empty = _latency(options, "auto", (0,))[0]
    pio = _latency(options, "pio", (_SMALL, _LARGE))
    dma = _latency(options, "dma", (_PAGE,))[_PAGE]
    bytes_of_pio = _LARGE - _SMALL
    pio_rate = 1000 * bytes_of_pio / (_stage(pio[_LARGE], "bus") - _stage(pio[_SMALL], "bus"))
    return Measured(
        {
            "post": Ours((_stage(empty, "post") + _stage(empty, "bus")) / 1000),
            "nic-to-nic": Ours((_stage(empty, "link") - _HEADER_NS) / 1000),
            "doorbell": Ours(
                (_stage(empty, "doorbell") + _stage(empty, "deposit") + _CHANNEL_NS) / 1000,
            ),
            "pio-rate": Ours(round(pio_rate, 1), why="a burst of 32 bytes takes whole clocks of the bus"),
            "dma-rate": Ours(
                round(1000 * _PAGE / _stage(dma, "fetch"), 1), why="a burst of 128 bytes takes whole clocks of the bus"
            ),
            "pio-dma": Ours(
                _better_up_to(options),
                why="the set-up of DMA was chosen by rates alone; a burst is whole clocks of the bus",
            ),
        }
    )


def copy_or_translate(options: Options) -> Measured:
    """What copying a message costs a CPU, and letting the card have it."""
    report = _registration(options)
    by_size = {row["size_bytes"]: row for row in report["rows"]}
    (crossing,) = report["crossovers"]
    crossover = crossing["crossover_bytes"] or 0

    def figure() -> Figure:
        from nicety.curves import Curve, figure_of

        curves = [
            Curve("copy", {size: row["copy_ns"] / 1000 for size, row in by_size.items()}),
            Curve("lock and translate", {size: row["translate_ns"] / 1000 for size, row in by_size.items()}, 1),
        ]
        return figure_of(curves, title="Copy a message, or translate its pages", x="Message (B)", y="Time (us)")

    binary = "the paper counts 1000 bytes a KB here, and ours are pages of 4096"
    return Measured(
        {
            "copy-page": Ours(
                round(by_size[_PAGE]["copy_ns"] / 1000, 3), why=f"{binary}: 4096 B at 700 MB/s are 5.85 us"
            ),
            "copy-most": Ours(round(by_size[_MOST]["copy_ns"] / 1000, 1), why=binary),
            "translate-page": Ours(round(by_size[64]["translate_ns"] / 1000, 3)),
            "translate-most": Ours(
                round(by_size[_MOST]["translate_ns"] / 1000, 1),
                why="512 descriptors of 16 B at our rate of programmed I/O, and the system call",
            ),
            "crossover": Ours(
                crossover,
                f"{crossover} B; 700 MB/s x 2.5 us are 1750",
                why="the paper's numbers have the two equal at 1750 B; it concludes 4 KB",
            ),
        },
        tables=[
            Table(
                section="Copy or translate",
                title="What a CPU of the host spends on a message (us)",
                rows=[
                    ["Message", "Pages", "Copy", "Lock and translate"],
                    *(
                        [_size(size), str(row["pages"]), *(fixed(ns / 1000, 2) for ns in _both(row))]
                        for size, row in by_size.items()
                    ),
                ],
                note="",
            )
        ],
        figures={"registration": ("Copying a message or translating its pages", figure)},
        data={"registration": report},
    )


def _both(row: RegistrationRow) -> tuple[float, float]:
    return row["copy_ns"], row["translate_ns"]


def messages(options: Options) -> Measured:
    """The empty message step by step, the bandwidth, and many processes."""
    empty = _latency(options, "auto", (0,))[0]
    columns = {
        "as it is": (),
        "one DMA channel": ("dma.channels=1",),
        "link of 1 GB/s": (_FAST,),
        "both": (_FAST, "dma.channels=1"),
    }
    rates = {
        name: {row["size_bytes"]: row["bandwidth_bytes_per_s"] / 1e6 for row in _bandwidth(options, changes)["rows"]}
        for name, changes in columns.items()
    }
    fairness = _fairness(options)["rows"]
    most = fairness[-1]
    best = max(rates["as it is"].values())
    two, one = rates["link of 1 GB/s"][_MOST], rates["both"][_MOST]
    return Measured(
        {
            "peak": Ours(round(best, 1), f"{fixed(best, 1)} MB/s, {fixed(100 * best / _LINK, 1)} % of it"),
            "overlap": Ours(
                two > _HIDDEN * one,
                f"over a faster link {fixed(two, 1)} MB/s with two channels, {fixed(one, 1)} with one",
            ),
            "processes": Ours(
                most["verified"] and most["jain_index"] >= _FAIR,
                f"{most['processes']} processes: {fixed(most['bandwidth_bytes_per_s'] / 1e6, 1)} MB/s together, Jain's "
                f"index {fixed(most['jain_index'], 3)}, every byte checked",
            ),
        },
        tables=[
            Table(
                section="Messages",
                title="An empty message one way, from posting it to its receiver's knowing it (ns)",
                rows=[
                    ["Stage", "Time"],
                    *([stage["stage"], fixed(stage["ns"], 0)] for stage in empty["stages"]),
                    ["In all", fixed(empty["latency_ns"], 0)],
                ],
                note="A result, not an input: the paper does not give it",
            ),
            Table(
                section="Messages",
                title="Bandwidth by DMA (MB/s)",
                rows=[
                    ["Message", *columns],
                    *([_size(size), *(fixed(rates[name][size], 1) for name in columns)] for size in rates["as it is"]),
                ],
                note="A packet of 4 KiB has 32 bytes of header on the link, which leave 99.2 % of its 200; one channel "
                "hides its set-up behind that, and a faster link shows what two are for",
            ),
            Table(
                section="Messages",
                title="Processes that send at once, each to one of its own",
                rows=[
                    ["Processes", "Together (MB/s)", "Least of one", "Most of one", "Jain's index"],
                    *(
                        [
                            str(row["processes"]),
                            fixed(row["bandwidth_bytes_per_s"] / 1e6, 1),
                            fixed(row["process_min_bytes_per_s"] / 1e6, 2),
                            fixed(row["process_max_bytes_per_s"] / 1e6, 2),
                            fixed(row["jain_index"], 4),
                        ]
                        for row in fairness
                    ),
                ],
                note="",
            ),
        ],
        data={"bandwidth": _bandwidth(options), "fairness": _fairness(options)},
    )


def _size(size: int) -> str:
    """As people write it: 512 B, 4 KiB."""
    shown = format_size(size)
    return f"{shown[:-2]} {shown[-2:]}B" if shown.endswith("i") else f"{shown} B"
