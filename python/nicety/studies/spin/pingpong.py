"""A ping-pong on the sPIN cards: parameters of the cards, and latencies of the modes."""

from __future__ import annotations

from functools import lru_cache, partial
from importlib.resources import as_file, files
from typing import TYPE_CHECKING

from nicety._generated.types import Report, Row
from nicety.bench.line_rate import check_line_rate
from nicety.bench.messages import run_benchmark
from nicety.show.columns import fixed
from nicety.studies.claims import Ours
from nicety.studies.study import Measured, Options

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DISCRETE, INTEGRATED = "spin-discrete", "spin-integrated"
CARDS = (DISCRETE, INTEGRATED)
MODES = ("rdma", "portals4", "spin-store", "spin-stream")
PACKET = 4096
SMALL, LARGE = 8, 64 << 10


def sizes_of(options: Options) -> list[int]:
    """Return the message sizes in bytes; 4 KiB and 64 KiB are among them."""
    doubling = [8 << power for power in range(0, 18, 3 if options.quick else 1)]
    return sorted({*doubling, PACKET, LARGE})


@lru_cache(maxsize=4)
def latency_report(options: Options) -> Report:
    """Measure a ping-pong in every mode on both cards. Most sections use this report."""
    return run_benchmark("latency", nics=CARDS, modes=MODES, sizes=sizes_of(options), iterations=2, seed=options.seed)


def rows_of(report: Report) -> dict[tuple[str, str, int], Row]:
    """Map card, mode and size in bytes to the row of a report."""
    return {(row["nic"], row["mode"], row["size_bytes"]): row for row in report["rows"]}


def _stage(row: Row, name: str) -> float:
    return next((stage["ns"] for stage in row["stages"] if stage["stage"] == name), 0.0)


def parameters(options: Options) -> Measured:
    """Measure the cards' parameters, from the stages of messages and the rate of the wire."""
    rows = rows_of(latency_report(options))
    discrete, integrated = rows[DISCRETE, "rdma", SMALL], rows[INTEGRATED, "rdma", SMALL]
    # Two hosts, with a switch between them.
    star = run_benchmark("latency", nics=[DISCRETE], modes=["rdma"], sizes=[SMALL], topology="star", seed=options.seed)
    with as_file(files("nicety.studies.spin") / "keep_busy.c") as handler:
        wire = check_line_rate(handler, nics=[DISCRETE], packet_sizes=[SMALL, PACKET], seed=options.seed)
    small, large = wire["rows"]

    def deposit_gap(nic: str) -> Ours:
        """Return the deposit's picoseconds per byte, from two messages of one packet each."""
        one, other = rows[nic, "rdma", SMALL], rows[nic, "rdma", PACKET]
        gap = (_stage(other, "deposit") - _stage(one, "deposit")) * 1000 / (PACKET - SMALL)
        return Ours(round(gap, 3), why="a time is rounded up to whole picoseconds")

    link_gap = 1e12 / large["bandwidth_bytes_per_s"]
    return Measured(
        {
            "o": Ours(_stage(discrete, "post")),
            "bus-discrete": Ours(_stage(discrete, "bus")),
            "bus-integrated": Ours(_stage(integrated, "bus")),
            "bus-gap-discrete": deposit_gap(DISCRETE),
            "bus-gap-integrated": deposit_gap(INTEGRATED),
            "wire": Ours(round(_stage(discrete, "link") - SMALL * link_gap / 1000, 6)),
            "switch": Ours(_stage(star["rows"][0], "switch")),
            "match-first": Ours(_stage(discrete, "match")),
            "match-further": Ours(_stage(rows[DISCRETE, "rdma", LARGE], "match")),
            "g": Ours(round(1e9 / small["packets_per_s"], 6)),
            "G": Ours(round(link_gap, 6)),
        }
    )


def ping_pong(options: Options) -> Measured:
    """Measure the latencies of all modes of a ping-pong."""
    report = latency_report(options)
    rows = rows_of(report)

    def latency(nic: str, mode: str, size: int) -> float:
        return rows[nic, mode, size]["latency_ns"]

    def most_over(mode: str, other: str, sizes: list[int]) -> tuple[float, str]:
        """Return the largest difference of a mode's latency from mode `other`'s in percent, and its card and size."""
        over = [
            (100 * abs(latency(nic, mode, size) / latency(nic, other, size) - 1), f"{nic}, {size} B")
            for nic in CARDS
            for size in sizes
        ]
        return max(over)

    single = [size for size in sizes_of(options) if size <= PACKET]
    several = [size for size in sizes_of(options) if size > PACKET]
    one, where_one = most_over("spin-store", "spin-stream", single)
    more, where_more = most_over("spin-store", "portals4", several)
    saved = {nic: latency(nic, "rdma", SMALL) - latency(nic, "spin-stream", SMALL) for nic in CARDS}

    def seen(nic: str) -> Ours:
        at = ", ".join(f"{mode} {fixed(latency(nic, mode, SMALL), 0)}" for mode in MODES)
        return Ours(None, f"8 B (ns): {at}")

    def figure(nic: str) -> Figure:
        from nicety.bench.messages import report_figure

        own = [row for row in report["rows"] if row["nic"] == nic]
        return report_figure({**report, "rows": own})

    return Measured(
        {
            "store-single": Ours(one, f"at most {fixed(one, 1)} % ({where_one})"),
            "store-multi": Ours(more, f"at most {fixed(more, 1)} % ({where_more})"),
            "pingpong-discrete": Ours(
                saved[DISCRETE] > saved[INTEGRATED],
                f"8 B: {fixed(saved[DISCRETE], 0)} ns discrete, {fixed(saved[INTEGRATED], 0)} integrated",
                "a reply by RDMA crosses the bus once more, 250 ns discrete and 50 integrated, and takes o, 65 ns",
            ),
            "pingpong-figure-discrete": seen(DISCRETE),
            "pingpong-figure-integrated": seen(INTEGRATED),
        },
        figures={
            f"ping-pong-{nic.removeprefix('spin-')}": (f"Ping-pong on {nic}", partial(figure, nic)) for nic in CARDS
        },
        data={"ping-pong": report},
    )
