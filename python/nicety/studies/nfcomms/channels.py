"""Channels between host and card: the figures to which the card was calibrated, and the throughput of bulk messages."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache, partial
from typing import TYPE_CHECKING

from nicety._generated.types import ChannelBenchReport, ChannelRow
from nicety.bench.channels import bench_channels
from nicety.shared.ranges import format_size
from nicety.show.columns import fixed
from nicety.studies.claims import Ours, Tried
from nicety.studies.nfcomms.cardinality import CARD, one_update
from nicety.studies.nfcomms.future import future_work
from nicety.studies.study import Measured, Options, Table
from nicety.studies.tried import tried

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DIRECT = 56
"""Bytes of the largest direct message."""
_TO_CARD, _TO_HOST = "host-to-card", "card-to-host"
_WAYS = {_TO_CARD: "host to card", _TO_HOST: "card to host"}
_MOST = 32
"""Number of concurrent channels; far fewer saturate the shared resources."""
_MESSAGES = 2000
"""Number of direct messages per channel. With this number, the latency of the first and the last hardly matters."""
_SAME = 0.01
"""Two latencies are equal if they differ by less than this share."""
_MORE = 0.05
"""Two throughputs are equal if they differ by less than this share. Repeated runs may differ by this share, too."""
_PROCESSES = 8
"""The larger number of processes in the paper's figure 4; the smaller one is 1."""
_LARGEST = 20 << 20
_KEEPS = 2 << 20
_RISES = 8 << 20

_Curves = Mapping[tuple[int, str], Mapping[int, ChannelRow]]
"""Maps a number of processes and a direction to the rows of that curve, by message size."""

_WIDTH = "memory.emem.width"
_NARROW, _WIDE = f"card's memory of 4 B a cycle ({_WIDTH}=4)", f"card's memory of 16 B a cycle ({_WIDTH}=16)"
_CHANGES: dict[str, tuple[str, ...]] = {
    "nothing": (),
    _NARROW: (f"{_WIDTH}=4",),
    _WIDE: (f"{_WIDTH}=16",),
    "reads of 128 B (bus.pcie.mrrs)": ("bus.pcie.mrrs=128 B",),
    "reads of 4096 B": ("bus.pcie.mrrs=4096 B",),
    "4 lanes (bus.pcie.lanes)": ("bus.pcie.lanes=4",),
    "16 lanes": ("bus.pcie.lanes=16",),
    "2 cores (host.cores)": ("host.cores=2",),
    "4 cores": ("host.cores=4",),
    "16 cores": ("host.cores=16",),
    "interrupts take half (kernel.interrupt)": ("kernel.interrupt=1960 ns",),
    "interrupts take twice as long": ("kernel.interrupt=7840 ns",),
    "waking a thread takes nothing (kernel.wake)": ("kernel.wake=0 ns",),
    "asking takes nothing (managers.ask)": ("managers.ask=0",),
    "pinning takes nothing (kernel.pin_page, unpin_page)": ("kernel.pin_page=0 ns", "kernel.unpin_page=0 ns"),
}
"""Maps a change to its overrides: values of the spec without a source, and other values that may matter."""


@lru_cache(maxsize=2)
def _latency(options: Options) -> ChannelBenchReport:
    """Measure latency on one channel: consecutive messages in the paper's batches of 100."""
    return bench_channels("channel-latency", nics=CARD, sizes=[8, 16, 32, DIRECT], seed=options.seed)


@lru_cache(maxsize=2)
def _direct(options: Options) -> ChannelBenchReport:
    """Measure the throughput of direct messages over concurrent channels."""
    return bench_channels(
        "channel-bandwidth",
        nics=CARD,
        modes="direct",
        directions=_TO_CARD,
        sizes=DIRECT,
        processes=_MOST,
        payload=_MOST * _MESSAGES * DIRECT,
        seed=options.seed,
    )


def sizes_of(options: Options) -> list[int]:
    """Return the sizes of bulk messages in bytes, from 64 KiB to 20 MiB."""
    return [*((64 << 10) << power for power in range(0, 9, 4 if options.quick else 1)), _LARGEST]


@lru_cache(maxsize=2)
def _bulk(options: Options) -> ChannelBenchReport:
    """Measure the paper's four curves: one process and eight, in both directions."""
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
    """Return the row with the highest throughput of direct messages."""
    return max(_direct(options)["rows"], key=lambda row: row["bandwidth_bytes_per_s"])


def _times_direct(options: Options, direction: str) -> float:
    return _of(options, "indirect", direction)["latency_ns"] / _of(options, "direct", _TO_CARD)["latency_ns"]


def calibrated(options: Options) -> Measured:
    """Measure the figures to which values of the card's spec were calibrated."""
    peak = _peak(options)
    return Measured(
        {
            "direct-latency": Ours(round(_of(options, "direct", _TO_CARD)["latency_ns"] / 1000, 4)),
            "direct-peak": Ours(
                round(1000 * _gigabits(peak), 3), why=f"with {peak['processes']} channels, each started and ended once"
            ),
            "bulk-small-to-card": Ours(round(_times_direct(options, _TO_CARD), 3)),
            "bulk-small-to-host": Ours(round(_times_direct(options, _TO_HOST), 3)),
            "pcsa-asleep": Ours(one_update()[1]),
        }
    )


def direct_messages(options: Options) -> Measured:
    """Measure the latency of direct messages, and their time by stage."""
    rows = [row for row in _latency(options)["rows"] if row["mode"] == "direct"]
    apart = 0.0
    for direction in _WAYS:
        times = [row["latency_ns"] for row in rows if row["direction"] == direction]
        apart = max(apart, max(times) / min(times) - 1)
    kinds = [(mode, direction) for mode in ("direct", "indirect") for direction in _WAYS]
    columns = [_of(options, *kind) for kind in kinds]
    stages = list(dict.fromkeys(stage["stage"] for row in columns for stage in row["stages"]))

    def of(row: ChannelRow, name: str) -> str:
        spent = sum(stage["ns"] for stage in row["stages"] if stage["stage"] == name)
        return fixed(spent / 1000, 3) if spent else "-"

    return Measured(
        {
            "direct-sizes": Ours(
                apart < _SAME,
                f"mailboxes have 64 bytes: 8 to 56 B are at most {fixed(100 * apart, 2)} % apart",
                "a message of any such size moves a whole mailbox",
            ),
            **future_work(options),
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
                note="Until the call on the host has returned; indirect is the paper's word for in bulk",
            )
        ],
        data={"channel-latency": _latency(options)},
    )


def bulk_messages(options: Options) -> Measured:
    """Measure the throughput of bulk messages: the paper's four curves."""
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
    changed = _changed(options)
    return Measured(
        _bulk_claims(options, report, curves, changed),
        tables=_bulk_tables(report, curves, changed),
        figures={"bulk": ("Throughput of bulk messages by size", partial(_bulk_figure, curves))},
        data={"channel-bandwidth": report, "direct-bandwidth": _direct(options)},
    )


def _best(report: ChannelBenchReport) -> ChannelRow:
    """Return the row with the highest throughput of eight processes, for which the paper has a number."""
    return max((row for row in report["rows"] if row["processes"] == _PROCESSES), key=_gigabits)


def _bulk_claims(
    options: Options, report: ChannelBenchReport, curves: _Curves, changed: Mapping[str, list[float]]
) -> dict[str, Ours]:
    sizes = list(next(iter(curves.values())))
    best = _best(report)
    narrow, wide = (changed[name][2:] for name in (_NARROW, _WIDE))
    largest = {key: _gigabits(curve[_LARGEST]) for key, curve in curves.items()}
    kept = min((size for size in sizes if size >= _KEEPS), default=_LARGEST)
    rise = {key: _gigabits(curve[kept]) / _gigabits(curve[sizes[0]]) - 1 for key, curve in curves.items()}
    after = {key: largest[key] / _gigabits(curve[kept]) - 1 for key, curve in curves.items()}
    late = [
        largest[8, way] / _gigabits(curves[8, way][max(size for size in sizes if size <= _RISES)]) - 1 for way in _WAYS
    ]
    spread = max(
        row["stddev_bytes_per_s"] / row["bandwidth_bytes_per_s"]
        for row in report["rows"]
        if row["processes"] == _PROCESSES and row["size_bytes"] < _RISES
    )
    memory = (
        f"the card's memory limits it, and no source gives its width: with 4 to 16 bytes a cycle in place of 8 it is "
        f"{fixed(min(narrow), 1)} to {fixed(max(wide), 1)}"
    )
    ones = [(1, way) for way in _WAYS]

    return {
        "bulk-one-to-card": Ours(
            round(largest[1, _TO_CARD], 2),
            why="with messages of 20 MiB; an interrupt, a wake-up and pinning for each list of pages are its steps; "
            "reads of 128 B come near the paper's rate, but the source has 512 B (bus.pcie.mrrs)",
            tried=(
                _moved(options, 1, _TO_CARD),
                *(
                    _moved(options, 1, _TO_CARD, change)
                    for change in (
                        *("kernel.wake=4.4 us", "kernel.interrupt=4.5 us", "managers.ask=0"),
                        *("bus.pcie.mrrs=128 B", "bus.pcie.mrrs=4096 B"),
                    )
                ),
            ),
        ),
        "bulk-one-to-host": Ours(round(largest[1, _TO_HOST], 2), why="with messages of 20 MiB"),
        "bulk-eight-to-card": Ours(
            20 <= largest[8, _TO_CARD] <= 30,  # noqa: PLR2004, the paper's range
            f"{fixed(largest[8, _TO_CARD], 1)} Gb/s with messages of 20 MiB",
            memory,
            _eight(options, _TO_CARD),
        ),
        "bulk-eight-to-host": Ours(round(largest[8, _TO_HOST], 1), why=memory, tried=_eight(options, _TO_HOST)),
        **_beside(options, best, memory),
        "bulk-plateau": Ours(
            all(rise[one] > _MORE > abs(after[one]) for one in ones),
            f"from {_size(sizes[0])} to {_size(kept)} "
            + " and ".join(f"{fixed(100 * rise[one], 0)} %" for one in ones)
            + " more, and from there "
            + " and ".join(f"{fixed(100 * after[one], 1)} %" for one in ones),
        ),
        "bulk-rise": Ours(
            min(late) > _MORE,
            f"{fixed(100 * min(late), 1)} and {fixed(100 * max(late), 1)} % from 8 to 20 MiB",
            "nothing of a longer message is cheaper here than of one of 8 MiB; a fixed cost of 1 ms for each message "
            "(kernel.pin) gives a rise",
            tuple(
                _moved(options, _PROCESSES, _TO_HOST, *changes, size=size)
                for changes in ((), ("kernel.pin=1 ms",))
                for size in ("8Mi", "20Mi")
            ),
        ),
        "bulk-spread": Ours(
            spread > _MORE,
            f"a standard deviation of {fixed(100 * spread, 2)} % at most",
            "nothing varies between runs here but when processes begin; the paper's host had an operating system with "
            "other work, and such work (--noise) makes runs vary",
            (
                _moved(options, _PROCESSES, _TO_CARD, size="1Mi", figure="stddev_bytes_per_s"),
                _moved(
                    options, _PROCESSES, _TO_CARD, size="1Mi", figure="stddev_bytes_per_s", more="--noise 1ms,250us "
                ),
            ),
        ),
    }


def _beside(options: Options, best: ChannelRow, memory: str) -> dict[str, Ours]:
    """Return the measurements for the claims that compare the best throughput with other figures."""
    local = {way: 100 * _share(_of(options, "indirect", way), "card memory") for way in _WAYS}
    return {
        "bulk-best": Ours(round(_gigabits(best), 2), why=memory, tried=_eight(options, _TO_HOST)),
        "bulk-times": Ours(
            round(_gigabits(best) / _gigabits(_peak(options)), 1),
            why="as the best, over the peak of direct messages, which is the paper's",
            tried=_eight(options, _TO_HOST),
        ),
        "bulk-local": Ours(
            round(max(local.values()), 2),
            " and ".join(f"{fixed(share, 2)} % {_WAYS[way]}" for way, share in local.items()) + ", of 56 B",
            "a message of 56 B makes one access to CTM, of 75 cycles",
        ),
        "bulk-memories": _memories(options),
    }


def _memories(options: Options) -> Ours:
    """Measure bulk messages to and from CTM, IMEM and EMEM: processes give an address in one of these memories."""
    cases = (("ctm", "256Ki", 1), ("imem", "2Mi", 1), ("ctm", "32Ki", _PROCESSES), ("imem", "512Ki", _PROCESSES))
    found = {
        (memory, size, processes): [
            _moved(options, processes, way, size=size, more=f"--memory {memory} ") for way in _WAYS
        ]
        for of_case, size, processes in cases
        for memory in (of_case, "emem")
    }

    def rates(memory: str, size: str, processes: int) -> str:
        return " and ".join(each.result.removesuffix(" Gb/s") for each in found[memory, size, processes])

    texts = [
        f"{size[:-2]} {size[-2:]}B: {memory.upper()} {rates(memory, size, 1)}, EMEM {rates('emem', size, 1)}"
        for memory, size, processes in cases
        if processes == 1
    ]
    return Ours(
        None,
        f"one process, Gb/s to and from the card, {'; '.join(texts)}",
        "for one process the steps of a list of pages take longer than the memory; all memories have the assumed width "
        "of 8 bytes a cycle, which limits eight",
        tuple(each for tries in found.values() for each in tries),
    )


def _share(row: ChannelRow, name: str) -> float:
    """Return a stage's share in the latency of a row's messages."""
    return sum(stage["ns"] for stage in row["stages"] if stage["stage"] == name) / row["latency_ns"]


def _moved(
    options: Options,
    processes: int,
    way: str,
    *overrides: str,
    size: str = "2Mi",
    figure: str = "bandwidth_bytes_per_s",
    more: str = "",
) -> Tried:
    """Measure the throughput of bulk messages, with overrides, by a command."""
    sets = "".join(f" --set {each!r}" for each in overrides)
    seed = "" if options.seed == 1 else f" --seed {options.seed}"
    command = (
        f"nicety bench channel-bandwidth --nic {CARD} --mode indirect --direction {way} --processes {processes} {more}"
        f"--sizes {size} --payload {160 if size == '20Mi' else 64 if size == '8Mi' else 16}Mi --runs 3{sets}{seed}"
    )
    return tried(command, figure, 8e-9, "Gb/s" if figure.startswith("bandwidth") else "Gb/s, deviation")


def _eight(options: Options, way: str) -> tuple[Tried, ...]:
    """Measure eight processes: with the card's spec, a narrower card memory, two host cores, and slow interrupts."""
    changes = ("", f"{_WIDTH}=4", "host.cores=2", "kernel.interrupt=7840 ns")
    return tuple(_moved(options, _PROCESSES, way, *filter(None, (change,))) for change in changes)


def _bulk_tables(report: ChannelBenchReport, curves: _Curves, changed: Mapping[str, list[float]]) -> list[Table]:
    best = _best(report)

    def cell(row: ChannelRow) -> str:
        return f"{fixed(_gigabits(row), 2)} +- {fixed(8e-9 * row['stddev_bytes_per_s'], 2)}"

    return [
        Table(
            section="Bulk messages",
            title=f"Throughput by message size (Gb/s, mean and deviation of {best['runs']} runs)",
            rows=[
                [
                    "Message",
                    *(f"{processes} process{'es' if processes > 1 else ''}, {_WAYS[way]}" for processes, way in curves),
                ],
                *(
                    [_size(size), *(cell(curve[size]) for curve in curves.values())]
                    for size in next(iter(curves.values()))
                ),
            ],
            note=f"Each point moves {_size(best['payload_bytes'])}, and every byte is checked at the far end",
        ),
        Table(
            section="Bulk messages",
            title=f"Messages of {_size(_KEEPS)} (Gb/s), where one value of the card or its host is another",
            rows=[
                ["Changed", *(f"{n} process{'es' if n > 1 else ''}, {_WAYS[way]}" for n, way in curves)],
                *([name, *(fixed(value, 2) for value in values)] for name, values in changed.items()),
            ],
            note="A value that changes a figure limits it; nothing was chosen by these figures",
        ),
    ]


def _bulk_figure(curves: _Curves) -> Figure:
    from nicety.show.curves import figure_of
    from nicety.show.lines import Curve

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


@lru_cache(maxsize=2)
def _changed(options: Options) -> dict[str, list[float]]:
    """Measure the throughput of one process and of eight, in both directions, for each change in `_CHANGES`."""
    found = {}
    for name, overrides in _CHANGES.items():
        report = bench_channels(
            "channel-bandwidth",
            nics=CARD,
            modes="indirect",
            sizes=_KEEPS,
            processes=[1, 8],
            payload=16 << 20,
            runs=1,
            overrides=overrides,
            seed=options.seed,
        )
        rows = {(row["processes"], row["direction"]): _gigabits(row) for row in report["rows"]}
        found[name] = [rows[processes, way] for processes in (1, 8) for way in _WAYS]
    return found


def _size(size: int) -> str:
    """Return a size in short form: 512 B, 4 KiB."""
    shown = format_size(size)
    return f"{shown[:-2]} {shown[-2:]}B" if shown.endswith("i") else f"{shown} B"
