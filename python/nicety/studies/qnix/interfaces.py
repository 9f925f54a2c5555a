"""Messages between processes that have own interfaces: the card's parts, copies and translations, and fairness."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from nicety._generated.types import FairnessReport, RegistrationReport, RegistrationRow, Report, Row
from nicety.bench.interfaces import bench_fairness, bench_registration
from nicety.bench.messages import run_benchmark
from nicety.shared.ranges import format_size
from nicety.show.columns import fixed
from nicety.studies.claims import Ours, Tried
from nicety.studies.study import Measured, Options, Table
from nicety.studies.tried import tried

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CARD = "qnix"
_PAGE = 4096
_MOST = 2 << 20
"""Maximum size of a message in bytes."""
_SMALL, _LARGE = 256, 1024
"""Sizes of two messages in bytes. The rate of programmed I/O is their difference over the difference of times."""
_LINK = 200.0
"""The link's rate in MB/s."""
_HEADER = 32
"""Bytes of header and framing that a packet has on the link."""
_HEADER_NS = 1000 * _HEADER / _LINK
"""The link's time for an empty message, which has only header and framing, in nanoseconds."""
_CHANNEL_NS = 160.0
"""The control program's time to program a channel, in nanoseconds."""
_FAST = "link.gap=1000 MB/s"
_IDLE = ("program.header=0", "program.poll=1")
"""Overrides with which the link waits for the control program at most one cycle, the time of a poll."""
_STABLE = 0.95
"""Minimum share of its final rate that programmed I/O must reach at the size that the chapter calls stable."""
_PIO = (128, _SMALL, _LARGE)
_SHORT = {1000: "1 KB", 1500: "1.5 KB", 2000: "2 KB"}
_DECIMAL = {4000: "4 KB", 2_000_000: "2 MB"}
"""Sizes for which the chapter has a copy time, and the chapter's names for them. Its KB is 1000 bytes."""


@lru_cache(maxsize=16)
def _latency(options: Options, mode: str, sizes: tuple[int, ...], overrides: tuple[str, ...] = ()) -> dict[int, Row]:
    report = run_benchmark("latency", nics=CARD, modes=mode, sizes=sizes, overrides=overrides, seed=options.seed)
    return {row["size_bytes"]: row for row in report["rows"]}


@lru_cache(maxsize=32)
def _bandwidth(options: Options, overrides: tuple[str, ...] = ()) -> Report:
    """Measure the bandwidth of a window of messages, by DMA from Buffer Pools."""
    return run_benchmark(
        "bandwidth",
        nics=CARD,
        modes="dma",
        sizes=[_PAGE, 64 << 10, _MOST],
        iterations=1,
        window=16 if options.quick else None,
        overrides=overrides,
        seed=options.seed,
    )


@lru_cache(maxsize=2)
def _registration(options: Options) -> RegistrationReport:
    powers = range(6, 22, 3 if options.quick else 1)
    return bench_registration(
        nics=CARD, sizes=sorted({*(1 << power for power in powers), _PAGE, 64, _MOST, *_SHORT, *_DECIMAL})
    )


@lru_cache(maxsize=2)
def _fairness(options: Options) -> FairnessReport:
    processes, messages = ([1, 8, 64], 4) if options.quick else ([1, 2, 4, 8, 16, 32, 64], 8)
    return bench_fairness(nics=CARD, processes=processes, messages=messages)


def _stage(row: Row, *names: str) -> float:
    return sum(stage["ns"] for stage in row["stages"] if stage["stage"] in names)


def _better_up_to(options: Options, other: str = "dma", overrides: tuple[str, ...] = ()) -> int:
    """Return the largest size up to 4 KiB at which programmed I/O has no higher latency than mode `other`."""
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
                overrides=["pio.limit=4 KiB", *overrides],
                seed=options.seed,
            )["rows"][0]["latency_ns"]
            for mode in ("pio", other)
        ]
        least, most = (size, most) if times[0] <= times[1] else (least, size - 1)
    return least


def _pio_or_dma(options: Options, size: int, overrides: tuple[str, ...] = ()) -> tuple[Tried, ...]:
    """Measure a message's latency by programmed I/O, by DMA from a Buffer Pool, and by DMA from translated pages."""
    sets = "".join(f" --set {each!r}" for each in ("pio.limit=4 KiB", *overrides))
    seed = "" if options.seed == 1 else f" --seed {options.seed}"
    command = f"nicety bench latency --nic {CARD} --sizes {size} --iterations 4{sets}{seed} --mode"
    return tuple(tried(f"{command} {mode}", "latency_ns", 1e-3, "us") for mode in ("pio", "dma", "translate"))


_SET_UPS = {
    "16 and 58.5 cycles, as it is": (),
    "74 cycles, all of a doorbell's, by the processor": ("program.transfer=74", "dma.setup=5 ns"),
    "all of them by the channel": ("program.transfer=0", "dma.setup=745 ns"),
    "5 us by the channel": ("dma.setup=5 us",),
    "5 us, half by the processor": ("program.transfer=258", "dma.setup=2.58 us"),
    "5 us by the processor": ("program.transfer=516", "dma.setup=0 ns"),
}
"""Maps a division of a transfer's set-up to its overrides. The card's processor or the channel spends the time."""


def _set_ups(options: Options) -> Table:
    """Measure the effect of dividing a transfer's set-up between processor and channel."""
    rows = [["Set-up", "Doorbell (us)", "PIO is better up to, pool", "Translated", "2 MiB (MB/s)", "Link of 1 GB/s"]]
    for name, changes in list(_SET_UPS.items())[:: 3 if options.quick else 1]:
        empty = _latency(options, "auto", (0,), changes)[0]
        cycles = next((int(each.split("=")[1]) for each in changes if each.startswith("program.transfer")), 16)
        doorbell = 10 * cycles + _stage(empty, "doorbell", "deposit")
        found = [_bandwidth(options, sets)["rows"][-1] for sets in (changes, (*changes, _FAST))]
        limits = [_better_up_to(options, mode, changes) for mode in ("dma", "translate")]
        rates = [fixed(row["bandwidth_bytes_per_s"] / 1e6, 1) for row in found]
        rows.append([name, fixed(doorbell / 1000, 2), *(f"{limit} B" for limit in limits), *rates])
    return Table(
        section="Calibrated",
        title="A transfer's set-up, divided between processor and channel",
        rows=rows,
        note="--set program.transfer and --set dma.setup; a doorbell's 1 us leaves 745 ns for both, beside the bus; "
        "the chapter has 1 us, 1024 B, 180 MB/s and 285 MB/s",
    )


def calibrated(options: Options) -> Measured:
    """Measure the card's parts, by the stages of messages."""
    empty = _latency(options, "auto", (0,))[0]
    pio = _latency(options, "pio", (0, *_PIO))
    dma = _latency(options, "dma", (_PAGE,))[_PAGE]
    bytes_of_pio = _LARGE - _SMALL
    up_to = _better_up_to(options)
    pio_rate = 1000 * bytes_of_pio / (_stage(pio[_LARGE], "bus") - _stage(pio[_SMALL], "bus"))
    rates = {size: 1000 * size / (_stage(pio[size], "bus") - _stage(pio[0], "bus")) for size in _PIO}
    return Measured(
        {
            "post": Ours((_stage(empty, "post") + _stage(empty, "bus")) / 1000),
            "nic-to-nic": Ours((_stage(empty, "link") - _HEADER_NS) / 1000),
            "doorbell": Ours(
                (_stage(empty, "doorbell") + _stage(empty, "deposit") + _CHANNEL_NS) / 1000,
            ),
            "pio-rate": Ours(round(pio_rate, 1), why="a burst of 32 bytes takes whole clocks of the bus"),
            "pio-stable": Ours(
                rates[_PIO[0]] >= _STABLE * rates[_LARGE],
                f"{fixed(rates[_PIO[0]], 1)} MB/s at {_PIO[0]} B, {fixed(rates[_LARGE], 1)} at {_LARGE}",
                "a message is bursts of 32 bytes, which take equal clocks of the bus",
            ),
            "dma-rate": Ours(
                round(1000 * _PAGE / _stage(dma, "fetch"), 1), why="a burst of 128 bytes takes whole clocks of the bus"
            ),
            "pio-dma": Ours(
                up_to,
                f"{up_to} B, {_better_up_to(options, 'translate')} over DMA with translated pages",
                why="a transfer is set up in 745 ns, which the chapter's 1 us for a doorbell leaves; 1024 B take 5 us "
                "more by DMA, at 285 over 120 MB/s, and a doorbell would take 5.3",
                tried=(*_pio_or_dma(options, _LARGE), *_pio_or_dma(options, _LARGE, ("dma.setup=5 us",))),
            ),
        },
        tables=[_set_ups(options)],
    )


def copy_or_translate(options: Options) -> Measured:
    """Measure the CPU time of copying a message, and of registering it."""
    report = _registration(options)
    by_size = {row["size_bytes"]: row for row in report["rows"]}
    (crossing,) = report["crossovers"]
    crossover = crossing["crossover_bytes"] or 0

    def figure() -> Figure:
        from nicety.show.curves import figure_of
        from nicety.show.lines import Curve

        curves = [
            Curve("copy", {size: row["copy_ns"] / 1000 for size, row in by_size.items()}),
            Curve("lock and translate", {size: row["translate_ns"] / 1000 for size, row in by_size.items()}, 1),
        ]
        return figure_of(curves, title="Copy a message, or translate its pages", x="Message (B)", y="Time (us)")

    page, most = (round(by_size[size]["copy_ns"] / 1000, 3) for size in _DECIMAL)
    return Measured(
        {
            "copy-page": Ours(
                page,
                why="4000 B at 700 MB/s are 5.71 us, and a page of 4096 is 5.85; the chapter's 5.5 us are 3850 B",
                tried=(
                    _registered(3850, "copy_ns"),
                    _registered(4096, "copy_ns"),
                    _registered(4000, "copy_ns", "library.copy=727 MB/s"),
                ),
            ),
            "copy-short": Ours(
                None,
                ", ".join(f"{name} {fixed(by_size[size]['copy_ns'] / 1000, 2)} us" for size, name in _SHORT.items())
                + f"; a page translated {fixed(by_size[64]['translate_ns'] / 1000, 2)}",
                "a copy runs at 700 MB/s, the chapter's number",
            ),
            "copy-most": Ours(most, why="the chapter gives whole us"),
            "translate-page": Ours(
                round(by_size[64]["translate_ns"] / 1000, 3),
                why="the chapter's parts: 1.5 us in the kernel, and 1 us for the page's descriptor",
            ),
            "translate-most": Ours(
                round(by_size[_MOST]["translate_ns"] / 1000, 1),
                why="512 descriptors of 16 B at our rate of programmed I/O, and the system call; at 128 MB/s "
                "the descriptors alone are 64 us",
                tried=(
                    _registered(_MOST, "translate_ns", "kernel.call=0 ns", "kernel.pin=0 ns"),
                    _registered(_MOST, "translate_ns", "bus.pci.wait=10"),
                ),
            ),
            "crossover": Ours(
                crossover,
                why="the chapter's own numbers, 700 MB/s and 2.5 us for a page, are equal at 1750 B; it concludes 4 KB",
                tried=(
                    _registered(4096, "copy_ns"),
                    _registered(4096, "translate_ns"),
                    _registered(4096, "translate_ns", "kernel.pin=4.55 us"),
                ),
            ),
        },
        tables=[
            Table(
                section="Copy or translate",
                title="CPU time of the host for a message (us)",
                rows=[
                    ["Message", "Pages", "Copy", "Lock and translate"],
                    *(
                        [_size(size), str(row["pages"]), *(fixed(ns / 1000, 2) for ns in _both(row))]
                        for size, row in by_size.items()
                        if size not in (*_DECIMAL, *_SHORT)
                    ),
                ],
                note="",
            )
        ],
        figures={"registration": ("Copying a message or translating its pages", figure)},
        data={"registration": report},
    )


def _registered(size: int, figure: str, *overrides: str) -> Tried:
    """Measure the CPU time of a copy or of a registration."""
    sets = "".join(f" --set {each!r}" for each in overrides)
    return tried(f"nicety bench registration --nic {CARD} --sizes {size}{sets}", figure, 1e-3, f"us, {figure[:-3]}")


def _both(row: RegistrationRow) -> tuple[float, float]:
    return row["copy_ns"], row["translate_ns"]


def _empty(options: Options) -> tuple[dict[str, Ours], Table]:
    """Measure the empty message. Return the chapter's sum and the total time, and a table of its steps."""
    empty = _latency(options, "auto", (0,))[0]
    without = _latency(options, "auto", (0,), ("program.header=0",))[0]
    header = _stage(empty, "control program") - _stage(without, "control program")
    parts = {
        "posting the command": _stage(empty, "post", "bus"),
        "building the header": header,
        "card to card": _stage(empty, "link") - _HEADER_NS,
        "setting the doorbell": _CHANNEL_NS + _stage(empty, "doorbell", "deposit"),
    }
    notice = _stage(empty, "notice")
    rung = empty["latency_ns"] - notice
    beside = {
        "header on the link": _HEADER_NS,
        "taking the command, finding the receive": _stage(empty, "control program") - header - _CHANNEL_NS,
        "looks of the control program": _stage(empty, "control program, queued"),
    }
    added = sum(parts.values())
    ours = {
        "latency-parts": Ours(
            round(added / 1000, 3),
            why="only the part that this card's spec has; the chapter does not explain the other 0.3 us",
            tried=(_one_way(options), _one_way(options, "link.header=0 B", "program.command=0", "program.receive=0")),
        ),
        "latency": Ours(
            round(rung / 1000, 3),
            why="what the chapter does not add up: "
            + ", ".join(f"{name} {fixed(ns / 1000, 2)} us" for name, ns in beside.items()),
            tried=(_one_way(options), _one_way(options, "program.command=0", "program.receive=0", "program.poll=1")),
        ),
    }
    rows = [
        ["Stage", "In the chapter's sum", "Here"],
        *([name, fixed(ns, 0), fixed(ns, 0)] for name, ns in parts.items()),
        *([name, "-", fixed(ns, 0)] for name, ns in beside.items()),
        ["to the doorbell", fixed(added, 0), fixed(rung, 0)],
        ["noticing it", "-", fixed(notice, 0)],
        ["In all", fixed(added, 0), fixed(empty["latency_ns"], 0)],
    ]
    return ours, Table(section="Messages", title="An empty message one way (ns)", rows=rows, note="")


def _one_way(options: Options, *overrides: str) -> Tried:
    """Measure the latency of an empty message, including the notice of its doorbell."""
    sets = "".join(f" --set {each!r}" for each in overrides)
    seed = "" if options.seed == 1 else f" --seed {options.seed}"
    return tried(f"nicety bench latency --nic {CARD} --mode auto --sizes 0{sets}{seed}", "latency_ns", 1e-3, "us")


def _long(options: Options, *overrides: str) -> Tried:
    """Measure the bandwidth of long messages by DMA."""
    sets = "".join(f" --set {each!r}" for each in overrides)
    seed = "" if options.seed == 1 else f" --seed {options.seed}"
    command = f"nicety bench bandwidth --nic {CARD} --mode dma --sizes 2Mi --iterations 1 --window 16{sets}{seed}"
    return tried(command, "bandwidth_bytes_per_s", 1e-6, "MB/s", 1)


def _rates(options: Options) -> dict[str, dict[int, float]]:
    """Map a change of the card's spec, or none, to bytes per second by message size."""
    columns = {
        "as it is": (),
        "header in 0 cycles": ("program.header=0",),
        "in 1000": ("program.header=1000",),
        "one DMA channel": ("dma.channels=1",),
        "link of 1 GB/s": (_FAST,),
        "that, one channel": (_FAST, "dma.channels=1"),
    }
    return {
        name: {row["size_bytes"]: row["bandwidth_bytes_per_s"] / 1e6 for row in _bandwidth(options, changes)["rows"]}
        for name, changes in columns.items()
    }


def messages(options: Options) -> Measured:
    """Measure the empty message step by step, the bandwidth of long messages, and many processes."""
    ours, steps = _empty(options)
    rates = _rates(options)
    long = rates["as it is"][_MOST]
    idle = {row["size_bytes"]: row["bandwidth_bytes_per_s"] / 1e6 for row in _bandwidth(options, _IDLE)["rows"]}[_MOST]
    packet, bytes_on_link = _PAGE / long, (_PAGE + _HEADER) / _LINK
    sustained, one = rates["link of 1 GB/s"][_MOST], rates["that, one channel"][_MOST]
    fairness = _fairness(options)["rows"]
    return Measured(
        {
            **ours,
            "bandwidth": Ours(
                round(long, 1),
                why=f"a packet takes {fixed(packet, 2)} us here, {fixed(bytes_on_link, 2)} of them on the link, and "
                f"{fixed(_PAGE / 180, 2)} at 180 MB/s; beside the header no step in line with the link has a source; "
                "the programming of channels may delay a header, and the chapter does not say how much of it is the "
                "processor's: with all of a doorbell's 745 ns it is 186",
                tried=(
                    _long(options),
                    _long(options, "program.transfer=74", "dma.setup=5 ns"),
                    _long(options, "program.transfer=516", "dma.setup=0 ns"),
                    _long(options, "program.poll=50"),
                    _long(options, "program.header=200"),
                ),
            ),
            "share": Ours(
                round(100 * long / _LINK, 1),
                why="as the bandwidth",
                tried=(_long(options), _long(options, "program.header=200")),
            ),
            "attributed": Ours(
                idle - long > _LINK - idle,
                f"{fixed(_LINK - long, 1)} MB/s are missing, {fixed(idle - long, 1)} of them for header and looks",
                "the link waits while the control program builds a header or looks for a free link",
            ),
            "sustained": Ours(round(sustained, 1), why="a burst of 128 bytes takes whole clocks of the bus"),
        },
        tables=[
            steps,
            Table(
                section="Messages",
                title="Bandwidth by DMA (MB/s)",
                rows=[
                    ["Message", *rates],
                    *([_size(size), *(fixed(rates[name][size], 1) for name in rates)] for size in rates["as it is"]),
                ],
                note="Building the header and finding the link free are in line with a packet's bytes; programming DMA "
                f"mostly is not. Over a faster link two channels reach the rate of DMA, and one {fixed(one, 1)} MB/s",
            ),
            Table(
                section="Messages",
                title="Processes that send at the same time, each to its own receiver",
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
                note="The chapter has 64 as the limit, and no figure",
            ),
        ],
        data={"bandwidth": _bandwidth(options), "fairness": _fairness(options)},
    )


def _size(size: int) -> str:
    """Return a size in short form: 512 B, 4 KiB."""
    shown = format_size(size)
    return f"{shown[:-2]} {shown[-2:]}B" if shown.endswith("i") else f"{shown} B"
