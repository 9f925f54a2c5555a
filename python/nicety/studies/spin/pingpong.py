"""What a ping-pong shows of the sPIN cards: their parameters, its modes, noise, and what goes through host memory."""

from __future__ import annotations

from functools import lru_cache
from importlib.resources import as_file, files
from typing import TYPE_CHECKING

from nicety.benchmarks import Report, Row, run_benchmark
from nicety.line_rate import check_line_rate
from nicety.studies.claims import Ours
from nicety.studies.study import Measured, Options
from nicety.tables import fixed

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DISCRETE, INTEGRATED = "spin-discrete", "spin-integrated"
CARDS = (DISCRETE, INTEGRATED)
MODES = ("rdma", "portals4", "spin-store", "spin-stream")
PACKET = 4096
_NOISE = "100us,10us,rank=1"
_SMALL, _LARGE = 8, 64 << 10


def _sizes(options: Options) -> list[int]:
    doubling = [8 << power for power in range(0, 18, 3 if options.quick else 1)]
    return sorted({*doubling, PACKET, _LARGE})


@lru_cache(maxsize=4)
def _latency(options: Options) -> Report:
    """Ping-pong in every mode on both cards: what most sections look at."""
    return run_benchmark("latency", nics=CARDS, modes=MODES, sizes=_sizes(options), iterations=2, seed=options.seed)


def _rows(report: Report) -> dict[tuple[str, str, int], Row]:
    return {(row["nic"], row["mode"], row["size_bytes"]): row for row in report["rows"]}


def _stage(row: Row, name: str) -> float:
    return next((stage["ns"] for stage in row["stages"] if stage["stage"] == name), 0.0)


def parameters(options: Options) -> Measured:
    """The cards' parameters, read off the stages of messages and the rate of the wire."""
    rows = _rows(_latency(options))
    discrete, integrated = rows[DISCRETE, "rdma", _SMALL], rows[INTEGRATED, "rdma", _SMALL]
    # Two hosts with a switch between them.
    star = run_benchmark("latency", nics=[DISCRETE], modes=["rdma"], sizes=[_SMALL], topology="star", seed=options.seed)
    with as_file(files("nicety.studies.spin") / "keep_busy.c") as handler:
        wire = check_line_rate(handler, nics=[DISCRETE], packet_sizes=[_SMALL, PACKET], seed=options.seed)
    small, large = wire["rows"]

    def deposit_gap(nic: str) -> Ours:
        """Picoseconds a byte, by two messages of one packet."""
        one, other = rows[nic, "rdma", _SMALL], rows[nic, "rdma", PACKET]
        gap = (_stage(other, "deposit") - _stage(one, "deposit")) * 1000 / (PACKET - _SMALL)
        return Ours(round(gap, 3), why="a time is rounded up to whole picoseconds")

    link_gap = 1e12 / large["bandwidth_bytes_per_s"]
    return Measured(
        {
            "o": Ours(_stage(discrete, "post")),
            "bus-discrete": Ours(_stage(discrete, "bus")),
            "bus-integrated": Ours(_stage(integrated, "bus")),
            "bus-gap-discrete": deposit_gap(DISCRETE),
            "bus-gap-integrated": deposit_gap(INTEGRATED),
            "wire": Ours(round(_stage(discrete, "link") - _SMALL * link_gap / 1000, 6)),
            "switch": Ours(_stage(star["rows"][0], "switch")),
            "match-first": Ours(_stage(discrete, "match")),
            "match-further": Ours(_stage(rows[DISCRETE, "rdma", _LARGE], "match")),
            "g": Ours(round(1e9 / small["packets_per_s"], 6)),
            "G": Ours(round(link_gap, 6)),
        }
    )


def ping_pong(options: Options) -> Measured:
    """The modes of a ping-pong, beside one another."""
    report = _latency(options)
    rows = _rows(report)

    def latency(nic: str, mode: str, size: int) -> float:
        return rows[nic, mode, size]["latency_ns"]

    def most_over(mode: str, other: str, sizes: list[int]) -> tuple[float, str]:
        """By how much a mode is over another at most, in percent, and where."""
        over = [
            (100 * abs(latency(nic, mode, size) / latency(nic, other, size) - 1), f"{nic}, {size} B")
            for nic in CARDS
            for size in sizes
        ]
        return max(over)

    single = [size for size in _sizes(options) if size <= PACKET]
    several = [size for size in _sizes(options) if size > PACKET]
    one, where_one = most_over("spin-store", "spin-stream", single)
    more, where_more = most_over("spin-store", "portals4", several)
    saved = {nic: latency(nic, "rdma", _SMALL) - latency(nic, "spin-stream", _SMALL) for nic in CARDS}

    def figure(nic: str) -> Figure:
        from nicety import plots

        own = [row for row in report["rows"] if row["nic"] == nic]
        return plots.report_figure({**report, "rows": own})

    return Measured(
        {
            "store-single": Ours(one, f"at most {fixed(one, 1)} % ({where_one})"),
            "store-multi": Ours(more, f"at most {fixed(more, 1)} % ({where_more})"),
            "pingpong-discrete": Ours(
                saved[DISCRETE] > saved[INTEGRATED],
                f"8 B: {fixed(saved[DISCRETE], 0)} ns discrete, {fixed(saved[INTEGRATED], 0)} integrated",
            ),
        },
        figures={
            f"ping-pong-{nic.removeprefix('spin-')}": (f"Ping-pong on {nic}", lambda nic=nic: figure(nic))  # type: ignore[misc]
            for nic in CARDS
        },
        data={"ping-pong": report},
    )


def noise(options: Options) -> Measured:
    """Noise on the host that answers, 10 µs every 100 µs at random."""
    modes = ("rdma", "portals4", "spin-stream")
    with_noise = run_benchmark(
        "latency",
        nics=[DISCRETE],
        modes=modes,
        sizes=[_SMALL],
        iterations=200 if options.quick else 2000,
        noise=_NOISE,
        seed=options.seed,
    )
    quiet = _rows(_latency(options))
    delay, worst = {}, {}
    for row in with_noise["rows"]:
        without = quiet[DISCRETE, row["mode"], _SMALL]["latency_ns"]
        delay[row["mode"]] = 100 * (row["latency_ns"] / without - 1)
        worst[row["mode"]] = row["max_ns"] - without

    def ours(mode: str, *, delayed: bool) -> Ours:
        text = f"{fixed(delay[mode], 1)} % on average, {fixed(worst[mode], 0)} ns at worst"
        return Ours(worst[mode] > 0 if delayed else worst[mode] == 0, text)

    return Measured(
        {
            "noise-rdma": ours("rdma", delayed=True),
            "noise-portals4": ours("portals4", delayed=False),
            "noise-spin": ours("spin-stream", delayed=False),
        },
        data={"noise": with_noise},
    )


def host_memory(options: Options) -> Measured:
    """What a pong moves through the memory of the host that answers."""
    report = _latency(options)
    rows = _rows(report)

    def moved(mode: str, size: int) -> float:
        """Bytes that the answering host's memory reads and writes for each byte of a message."""
        row = rows[DISCRETE, mode, size]
        (memory,) = [each for each in row["host_memory"] if each["node"] == 1]
        return (memory["read_bytes"] + memory["written_bytes"]) / row["iterations"] / size

    sizes = _sizes(options)
    saves = all(moved("spin-stream", size) < moved("rdma", size) for size in sizes)

    def figure() -> Figure:
        from nicety.curves import Curve, figure_of

        curves = [
            Curve(mode, {size: moved(mode, size) for size in sizes}, colour=number, style=number)
            for number, mode in enumerate(MODES)
        ]
        return figure_of(
            curves, title="A pong's way through host memory", x="Message size (B)", y="Bytes read and written, a byte"
        )

    text = ", ".join(f"{mode} {fixed(moved(mode, _LARGE), 0)}" for mode in MODES)
    return Measured(
        {"memory": Ours(saves, f"bytes a byte at 64Ki: {text}")},
        figures={"host-memory": ("What a pong moves through the answering host's memory", figure)},
    )
