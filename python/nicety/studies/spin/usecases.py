"""The paper's use cases: accumulate, matching, datatypes, storage and the key-value store."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from nicety.shared.ranges import format_size
from nicety.show.columns import fixed
from nicety.studies.claims import Ours, Tried
from nicety.studies.spin.application import application
from nicety.studies.study import Measured, Options, Table
from nicety.studies.tried import tried
from nicety.usecases import (
    Accumulate,
    Datatype,
    KeyValue,
    Matching,
    Overlap,
    Storage,
    UseCase,
    UseCaseReport,
    run_usecase,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DISCRETE, INTEGRATED = "spin-discrete", "spin-integrated"
CARDS = (DISCRETE, INTEGRATED)
WITH_F = ("hpu.isa=rv32imafc_zicsr",)
"""An override that adds a floating-point unit. The paper's processors have one; those of the shipped cards do not."""
OVERLAPPING = ("hpu.pipeline=out-of-order",)
"""An override with which processors overlap instructions, as the paper's do. Those of the shipped cards do not."""
PACKET, LARGE, LARGEST = 4096, 64 << 10, 1 << 20
_NEAR_LINE = 0.9


def _run(case: UseCase, options: Options, **more: Any) -> UseCaseReport:
    return run_usecase(case, nics=CARDS, seed=options.seed, **more)


@lru_cache(maxsize=2)
def accumulate_reports(options: Options) -> dict[str, UseCaseReport]:
    """Measure accumulate: with the card's processors, with F added, with F and out-of-order execution, and with 16."""
    sizes = [8, 512, PACKET, LARGE] if options.quick else [8, 64, 512, PACKET, 16 << 10, LARGE, 256 << 10, LARGEST]
    case = Accumulate(sizes=sizes)
    return {
        "4 HPUs": _run(Accumulate(sizes=[size for size in sizes if size <= LARGE]), options, modes=["spin"]),
        "4 HPUs with F": _run(case, options, overrides=WITH_F),
        "4 HPUs with F, out of order": _run(case, options, modes=["spin"], overrides=(*WITH_F, *OVERLAPPING)),
        "16 HPUs with F": _run(case, options, modes=["spin"], overrides=(*WITH_F, "hpu.cores=16")),
    }


@lru_cache(maxsize=2)
def datatype_report(options: Options) -> UseCaseReport:
    """Measure a strided receive."""
    return _run(Datatype(size=LARGEST if options.quick else 4 << 20, blocks=[16 << 2 * at for at in range(7)]), options)


@lru_cache(maxsize=2)
def matching_report(options: Options) -> UseCaseReport:
    """Measure messages with receives that were posted before they arrive."""
    sizes = (
        [8, PACKET, LARGE]
        if options.quick
        else [8, 64, 512, PACKET, 4 * PACKET, LARGE, 4 * LARGE, LARGEST, 4 * LARGEST]
    )
    return _run(Matching(sizes=sizes, arrivals=["expected"]), options)


@lru_cache(maxsize=2)
def storage_reports(options: Options) -> dict[str, UseCaseReport]:
    """Measure writes and reads of blocks. The key names the card's processors."""
    sizes = [512, PACKET] if options.quick else [512, PACKET, 16 << 10, LARGE, 256 << 10]
    case = Storage(sizes=sizes, operations=["write", "read"])
    return {
        "4 HPUs": _run(case, options),
        "4 HPUs, out of order": _run(case, options, modes=["spin"], overrides=OVERLAPPING),
        "32 HPUs": _run(case, options, modes=["spin"], overrides=["hpu.cores=32"]),
    }


@lru_cache(maxsize=2)
def kv_reports(options: Options) -> dict[str, UseCaseReport]:
    """Measure inserts of distinct keys into a store that stays three quarters empty. The key names the processors."""
    clients = [1, 4] if options.quick else [1, 2, 4, 8, 16]
    case = KeyValue(clients=clients, operations=["insert"])
    return {
        "4 HPUs": _run(case, options),
        "4 HPUs, out of order": _run(case, options, modes=["spin"], overrides=OVERLAPPING),
        "16 HPUs": _run(case, options, modes=["spin"], overrides=["hpu.cores=16"]),
    }


def row_of(report: UseCaseReport, **wanted: Any) -> dict[str, Any]:
    """Return the first row of a report with these values."""
    return next(row for row in report["rows"] if all(row[name] == value for name, value in wanted.items()))


def _figure(report: UseCaseReport) -> Figure:
    from nicety.usecases.report import usecase_figure

    return usecase_figure(report)


def _gigabytes(row: dict[str, Any]) -> str:
    return fixed(row["bandwidth_bytes_per_s"] / 1e9, 1)


def accumulate(options: Options) -> Measured:
    """Measure the multiplication of a complex array with an array in host memory."""
    reports = accumulate_reports(options)
    with_f, many = reports["4 HPUs with F"], reports["16 HPUs with F"]
    overlapping = reports["4 HPUs with F, out of order"]
    sizes = list(dict.fromkeys(row["size_bytes"] for row in with_f["rows"]))
    last = sizes[-1]
    host = {nic: row_of(with_f, nic=nic, mode="rdma", size_bytes=last) for nic in CARDS}
    spin = {nic: row_of(with_f, nic=nic, mode="spin", size_bytes=last) for nic in CARDS}
    more = {nic: row_of(many, nic=nic, size_bytes=last) for nic in CARDS}
    sooner = row_of(overlapping, nic=DISCRETE, size_bytes=last)

    def curve(nic: str, mode: str, name: str) -> dict[int, float]:
        rows = [row for row in reports[name]["rows"] if (row["nic"], row["mode"]) == (nic, mode)]
        return {row["size_bytes"]: row["bandwidth_bytes_per_s"] / 1e9 for row in rows}

    def cells(nic: str, size: int) -> list[str]:
        curves = [curve(nic, "rdma", "4 HPUs with F"), *(curve(nic, "spin", name) for name in reports)]
        return [fixed(points[size], 2) if size in points else "-" for points in curves]

    def figure() -> Figure:
        from nicety.show.curves import figure_of
        from nicety.show.lines import Curve

        curves = [
            Curve(f"{nic}, {label}", curve(nic, mode, name), colour=colour, style=style)
            for style, nic in enumerate(CARDS)
            for colour, (label, mode, name) in enumerate(
                [("rdma", "rdma", "4 HPUs with F"), *((f"spin, {name}", "spin", name) for name in reports)]
            )
        ]
        return figure_of(curves, title="Accumulate: arriving payload", x="Array (B)", y="Bandwidth (GB/s)")

    return Measured(
        {
            "accumulate": Ours(
                None,
                f"{_size(last)}, discrete: {_gigabytes(spin[DISCRETE])} GB/s with F, {_gigabytes(sooner)} out of "
                f"order, host {_gigabytes(host[DISCRETE])}",
                "our handlers multiply number by number on 4 in-order processors, even with F (hpu.isa), and a host's "
                f"core two at a time; out of order (hpu.pipeline) they reach {_gigabytes(sooner)} GB/s, and 16 in "
                f"order {_gigabytes(more[DISCRETE])}",
            ),
        },
        tables=[
            Table(
                section="Accumulate",
                title="Arriving payload (GB/s)",
                rows=[
                    ["Array", "rdma", *(f"spin, {name}" for name in reports)],
                    *(
                        [f"{nic}, {_size(size)}", *cells(nic, size)]
                        for nic in CARDS
                        for size in sorted({8, PACKET, LARGE, last})
                    ),
                ],
                note="",
            )
        ],
        figures={"accumulate": ("Accumulate: a complex array multiplied into one in host memory", figure)},
        data={f"accumulate-{_file_name(name)}": report for name, report in reports.items()},
    )


def matching(options: Options) -> Measured:
    """Measure matching and rendezvous, and the part of their time that computation hides."""
    report = matching_report(options)
    sizes = list(dict.fromkeys(row["size_bytes"] for row in report["rows"]))
    overlap = _run(Overlap(sizes=sizes, arrivals=["expected"]), options)
    long = [size for size in sizes if size >= LARGE]
    last = sizes[-1]

    def at(nic: str, mode: str, size: int, of: UseCaseReport = report) -> dict[str, Any]:
        return row_of(of, nic=nic, mode=mode, size_bytes=size)

    def hidden(nic: str, mode: str, size: int) -> float:
        return float(at(nic, mode, size, overlap)["overlap_ratio"])

    spin, host = (at(DISCRETE, mode, LARGE)["latency_ns"] for mode in ("spin", "host"))
    applications, table = application(options, CARDS)
    least = min(hidden(nic, "spin", size) for nic in CARDS for size in long)
    most = max(hidden(nic, "host", size) for nic in CARDS for size in long)
    return Measured(
        {
            "matching": Ours(
                None,
                f"64 KiB, discrete: {fixed(spin, 0)} ns, host {fixed(host, 0)}; computing hides "
                f"{fixed(100 * least, 0)} % and more, of the host's {fixed(100 * most, 0)} at most",
            ),
            "applications": applications,
        },
        tables=[table],
        figures={
            "matching": ("Messages with a receive posted before", lambda: _figure(report)),
            "overlap": (f"Share of a message that computing hides, up to {_size(last)}", lambda: _figure(overlap)),
        },
        data={"matching": report, "overlap": overlap},
    )


def datatypes(options: Options) -> Measured:
    """Measure a strided receive, by the length of a block."""
    report = datatype_report(options)
    blocks = list(dict.fromkeys(row["block_bytes"] for row in report["rows"]))
    at = {(row["nic"], row["mode"], row["block_bytes"]): row for row in report["rows"]}
    link = 50e9
    near = [
        block
        for block in blocks
        if all(at[nic, "spin", block]["bandwidth_bytes_per_s"] >= _NEAR_LINE * link for nic in CARDS)
    ]
    ours = {
        (mode, block): _gigabytes(at[DISCRETE, mode, block]) for mode in ("spin", "rdma") for block in (blocks[0], 256)
    }
    return Measured(
        {
            "datatype": Ours(
                None,
                ", ".join(
                    f"{block} B: {ours['spin', block]} GB/s, host {ours['rdma', block]}" for block in (blocks[0], 256)
                )
                + (f"; 90 % of 50 GB/s from {near[0]} B on" if near else "; never 90 % of 50 GB/s"),
            ),
        },
        figures={"datatype": ("A strided receive, by the length of a block", lambda: _figure(report))},
        data={"datatype": report},
    )


def _short_writes(options: Options) -> tuple[Tried, ...]:
    """Measure writes of a packet by the host, and by handlers on three kinds of processors."""
    seed = "" if options.seed == 1 else f" --seed {options.seed}"
    command = f"nicety bench storage --nic {DISCRETE} --sizes 4Ki --operation write{seed} --mode"
    many = "--set hpu.cores=32"
    ways = ("host", "spin", f"spin {many}", "spin " + " ".join(f"--set {each}" for each in OVERLAPPING))
    return tuple(tried(f"{command} {way}", "latency_ns", 1e-3, "us") for way in ways)


def storage(options: Options) -> Measured:
    """Measure RAID-5: blocks are written to data servers, and their parity to another server."""
    reports = storage_reports(options)
    four, overlapping, many = reports.values()
    sizes = list(dict.fromkeys(row["size_bytes"] for row in four["rows"]))

    def time(report: UseCaseReport, nic: str, mode: str, operation: str, size: int) -> float:
        return float(row_of(report, nic=nic, mode=mode, operation=operation, size_bytes=size)["latency_ns"])

    def sooner(operation: str, with_: UseCaseReport = four) -> bool:
        return all(
            time(with_, nic, "spin", operation, size) < time(four, nic, "host", operation, size)
            for nic in CARDS
            for size in sizes
        )

    def shown(operation: str) -> str:
        parts = []
        for size in sorted({first, PACKET, last}):
            spin, host = (fixed(time(four, DISCRETE, mode, operation, size) / 1000, 1) for mode in ("spin", "host"))
            parts.append(f"{_size(size)} {spin} us, host {host}")
        return "; ".join(parts)

    first, last = sizes[0], sizes[-1]
    body = [
        [
            f"{nic}, {operation} of {_size(size)}",
            fixed(time(four, nic, "host", operation, size) / 1000, 2),
            *(fixed(time(report, nic, "spin", operation, size) / 1000, 2) for report in reports.values()),
        ]
        for nic in CARDS
        for operation in ("write", "read")
        for size in sizes
    ]
    slow = fixed(time(many, DISCRETE, "spin", "write", last) / 1000, 1)
    in_order, out_of_order = (
        fixed(time(report, DISCRETE, "spin", "write", PACKET) / 1000, 1) for report in (four, overlapping)
    )
    host = fixed(time(four, DISCRETE, "host", "write", PACKET) / 1000, 1)
    now = (
        "the claim then holds" if sooner("write", overlapping) and sooner("read", overlapping) else "not all are faster"
    )
    return Measured(
        {
            "storage": Ours(
                sooner("write") and sooner("read"),
                "reads are, short writes are not" if sooner("read") and not sooner("write") else "",
                "handlers XOR word by word on an in-order processor, which takes longer than a full packet takes to "
                f"come, and each packet stays with one; out of order (hpu.pipeline) a write of {_size(PACKET)} takes "
                f"{out_of_order} us on a discrete card, in order {in_order}, on the host {host}: {now}; 32 in order "
                f"take {slow} us for {_size(last)}",
                _short_writes(options),
            ),
            "storage-figure": Ours(None, f"{shown('write')}; reads: {shown('read')}"),
            "storage-traces": Ours(None, "not measured: the traces are not at hand, and no trace is replayed here"),
        },
        tables=[
            Table(
                section="Storage",
                title="Time of an operation (us)",
                rows=[["Operation", "host", *(f"spin, {name}" for name in reports)], *body],
                note="",
            )
        ],
        figures={"storage": ("RAID-5: writes, parity included, and reads", lambda: _figure(four))},
        data={f"storage-{_file_name(name)}": report for name, report in reports.items()},
    )


def kv(options: Options) -> Measured:
    """Measure inserts of distinct keys into a hash table on a server."""
    reports = kv_reports(options)
    report = reports["4 HPUs"]
    most = max(row["clients"] for row in report["rows"])

    def rate(nic: str, mode: str, hpus: str = "4 HPUs") -> float:
        return float(row_of(reports[hpus], nic=nic, mode=mode, clients=most)[report["figure"]["name"]] / 1e6)

    text = "; ".join(
        f"{nic.removeprefix('spin-')} {fixed(rate(nic, 'spin'), 1)} million/s, host {fixed(rate(nic, 'host'), 1)}"
        for nic in CARDS
    )
    overlapping, more = (fixed(rate(DISCRETE, "spin", hpus), 1) for hpus in ("4 HPUs, out of order", "16 HPUs"))
    return Measured(
        {
            "kv": Ours(
                None,
                f"{text}; discrete out of order {overlapping}, with 16 HPUs {more}",
            ),
        },
        figures={"kv": ("Inserts of all clients into a key-value store", lambda: _figure(report))},
        data={f"kv-{_file_name(name)}": report for name, report in reports.items()},
    )


def _file_name(hpus: str) -> str:
    """Return the name of processors as a part of a file name, as in storage-4-hpus."""
    return hpus.replace(",", "").replace(" ", "-").lower()


def _size(size: int) -> str:
    """Return a size in short form: 512 B, 4 KiB."""
    shown = format_size(size)
    return f"{shown[:-2]} {shown[-2:]}B" if shown.endswith("i") else f"{shown} B"
