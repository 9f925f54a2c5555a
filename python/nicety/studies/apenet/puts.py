"""Puts between registered memories: TLB misses by message size, engines, GPU memory, and latency."""

from __future__ import annotations

import math
import shlex
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from nicety._generated.types import Report, Row
from nicety.bench.messages import run_benchmark
from nicety.program.cluster import Cluster
from nicety.shared.ranges import format_size
from nicety.show.columns import fixed
from nicety.studies.claims import UNMEASURED, Ours, Tried
from nicety.studies.study import Measured, Options, Table
from nicety.studies.tried import report_of, tried

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from nicety.program.host import Host

CARD = "apenet-v5"
OLDER = "apenet-v4"
_PAGE = 4096
_GPU_PAGE = 64 << 10
_HEADER = 64
"""Bytes of header and footer in a packet."""
_MI = 1 << 20
_LARGE = 4 * _MI
"""The size of the largest message in the paper's curves, in bytes."""
_KEEPS = 0.95
"""A bandwidth has not fallen if it is at least this share of the best bandwidth of smaller messages."""
_SAME = 0.99
"""Two bandwidths are equal if their ratio is at least this: parallel engines with shifted phases differ that much."""
_GPU_KEEPS = 0.99
"""As `_KEEPS`, for GPU pages: only one packet of sixteen misses the TLB, so bandwidth falls slightly."""
_FLAT = 1.1
"""Latency of small messages is flat if the ratio of the largest to the smallest latency is below this."""
_SMALL = (8, 64, 128, 256)
_PAGE_SET_UP = "297 ns"
"""Half of `dma.setup`. With it the peak read rate remains 4.8 GB/s if the card writes a completion per page read."""
_COMPLETIONS = {
    "of each received packet, of each sent message": (),
    "of each message": ("events.received=message",),
    "by no engine": ("events.writer=bus",),
    "of each packet on both sides": ("events.sent=packet",),
    "that, the set-up calibrated for it": ("events.sent=packet", f"dma.setup={_PAGE_SET_UP}"),
    "that, sent ones by a receive engine": ("events.sent=packet", "events.writer=receive"),
}
"""Maps a policy for the completions that the card writes to its overrides. The first policy is the card's own."""
_BOTH_SIDES: tuple[tuple[str, ...], ...] = (
    (),
    ("events.sent=packet",),
    ("events.sent=packet", f"dma.setup={_PAGE_SET_UP}"),
)
"""Overrides of the card: none, a completion for each sent packet, and the set-up that is calibrated for it."""
_WINDOW = "nicety bench bandwidth --nic apenet-v5 --sizes 1Mi --iterations 1 --window 8"
_WAYS = {"two nodes": "", "flushed": "--flush-receive", "loop-back": "--loopback", "physical": "--addressing physical"}
_MEMORIES = ("host", "gpu")


@lru_cache(maxsize=64)
def _bandwidth(options: Options, nic: str, sizes: tuple[int, ...], changes: tuple[tuple[str, Any], ...] = ()) -> Report:
    """Measure windows of puts. `changes` has further options of the benchmark."""
    given: dict[str, Any] = dict(changes)
    return run_benchmark("bandwidth", nics=nic, sizes=sizes, iterations=1, window=8, seed=options.seed, **given)


def _rates(options: Options, nic: str, sizes: tuple[int, ...], **changes: Any) -> dict[int, float]:
    """Map a message size to the measured bytes per second."""
    rows = _bandwidth(options, nic, sizes, tuple(sorted(changes.items())))["rows"]
    return {row["size_bytes"]: row["bandwidth_bytes_per_s"] for row in rows}


@lru_cache(maxsize=16)
def _latency(options: Options, sizes: tuple[int, ...], changes: tuple[tuple[str, Any], ...] = ()) -> dict[int, Row]:
    given: dict[str, Any] = dict(changes)
    report = run_benchmark("latency", nics=CARD, sizes=sizes, seed=options.seed, **given)
    return {row["size_bytes"]: row for row in report["rows"]}


def _stage(row: Row, name: str) -> float:
    return sum(stage["ns"] for stage in row["stages"] if stage["stage"] == name)


def _doubling(first: int, last: int) -> tuple[int, ...]:
    return tuple(first << step for step in range((last // first).bit_length()))


def _knee(rates: dict[int, float], keeps: float = _KEEPS) -> int | None:
    """Return the size of the largest message before bandwidth falls, or None if it does not fall."""
    best, before = 0.0, None
    for size, rate in sorted(rates.items()):
        if rate < keeps * best:
            return before
        best, before = max(best, rate), size
    return None


_OPTICAL, _COPPER = 2.36e-14, 1.10e-13
"""The paper's bit error rates: 10 m of optical cable at 11.3 Gb/s a lane, 1 m of copper at 10.0 Gb/s."""
_OPTICAL_GAP = "177 ps/B"
"""Time per byte of a link with 11.3 Gb/s a lane. The card's link has 200 ps/B and 10.0 Gb/s a lane."""
_SCALE = 1e7
"""Factor on the paper's bit error rates. Without it, one packet in hundreds of millions would have an error."""


def _streams(
    options: Options, changes: dict[str, Any], nodes: int, topology: str, receivers: tuple[int, ...]
) -> dict[str, float]:
    """Send from rank 0 to neighbours over links with bit errors.

    Returns:
        The bit error rate of each link from rank 0, by the link's name. It is derived from retransmissions.
    """
    length, count = 16 * _MI, 16

    async def main(host: Host) -> None:
        rdma = host.rdma
        buffer = host.alloc(length)
        region = await rdma.register(buffer)
        await host.barrier()
        for _ in range(count):
            if host.rank == 0:
                for to in receivers:
                    await rdma.wait(await rdma.put(buffer, to=to, address=region.address))
            elif host.rank in receivers:
                await rdma.received()

    changes = {**changes, "tlb.entries": length // _PAGE}
    run = Cluster(nodes, CARD, topology=topology, set=changes, seed=options.seed, recording="summary").run(main)
    used = [
        link for link in run.links if link.link.startswith("hosts.0") and link.packets > count * length // _PAGE // 2
    ]
    share = {link.link: link.resent / link.packets for link in used}
    return {link: -math.log1p(-each) / (8 * (_PAGE + _HEADER)) / _SCALE for link, each in share.items()}


def _errors(options: Options, rate: float) -> float:
    """Return the measured bit error rate of a link for a given rate."""
    (share,) = _streams(options, {"link.bit_error_rate": f"{rate * _SCALE:e}"}, 2, "pair", (1,)).values()
    return share


def _media(options: Options) -> str:
    """Return the measured bit error rates of two axes of one torus, as text."""
    changes = {
        "link.bit_error_rate": f"{_COPPER * _SCALE:e}",
        "link.x.bit_error_rate": f"{_OPTICAL * _SCALE:e}",
        "link.x.gap": _OPTICAL_GAP,
    }
    shares = _streams(options, changes, 4, "torus:2x2", (1, 2))
    # Rank 1 is the neighbour of rank 0 along x, and rank 2 the neighbour along y.
    axes = {"hosts.1": "x", "hosts.2": "y"}
    named = [f"{axes[link.split()[-1]]} {fixed(share * 1e14, 1)}" for link, share in shares.items()]
    return f"{', '.join(named)} in 10^14 of the bits"


def _fall(rates: dict[int, float]) -> str:
    """Return the decrease of bandwidth at the largest message, in percent of the best bandwidth."""
    return f"{fixed(100 * (1 - rates[max(rates)] / max(rates.values())), 1)}%"


def _window(options: Options, way: str = "", overrides: tuple[str, ...] = ()) -> str:
    """Return the command that measures a window of messages of 1 MiB."""
    sets = " ".join(f"--set {shlex.quote(each)}" for each in overrides)
    seed = "" if options.seed == 1 else f"--seed {options.seed}"
    return " ".join(filter(None, (_WINDOW, way, sets, seed)))


def _completions(options: Options) -> Table:
    """Measure bandwidth for each policy of completions."""
    rows = [["Completions", *_WAYS]]
    for name, overrides in _COMPLETIONS.items():
        found = [report_of(_window(options, way, overrides))["rows"][-1] for way in _WAYS.values()]
        rows.append([name, *(fixed(row["bandwidth_bytes_per_s"] / 1e9, 2) for row in found)])
    changes = [f"{name}: {' '.join(f'--set {each!r}' for each in sets)}" for name, sets in _COMPLETIONS.items() if sets]
    return Table(
        section="Engines",
        title="Bandwidth of messages of 1 MiB by completions (GB/s)",
        rows=rows,
        note=f"{_WINDOW}; {'; '.join(changes)}; flushed, loop-back and physical: --flush-receive, --loopback, "
        "--addressing physical",
    )


def _both_sides(options: Options) -> Ours:
    """Measure bandwidth and transmit rate if the card also writes a completion for each sent packet."""
    ways = [(way, overrides) for overrides in _BOTH_SIDES for way in ("", "--flush-receive")]
    found = [tried(_window(options, way, overrides), "bandwidth_bytes_per_s", 1e-9, "GB/s") for way, overrides in ways]
    own, own_sent, both, both_sent, fitted, fitted_sent = (each.result.split()[0] for each in found)
    return Ours(
        None,
        f"{both} GB/s, transmits {both_sent}; with a set-up of {_PAGE_SET_UP} {fitted}, transmits {fitted_sent}; "
        f"of received packets only {own}, transmits {own_sent}",
        why="'the read' may mean a page's; the peak of reading then calibrates another set-up, with which the transmit "
        "side limits",
        tried=tuple(found),
    )


def _peaks(options: Options) -> tuple[float, float]:
    """Return the card's peak transmit rate, and its peak receive rate from a card with more transmit engines."""
    transmit = _rates(options, CARD, (_LARGE,), flush_receive=True)[_LARGE]
    four = ("dma.transmit_engines=4",)
    return transmit, _rates(options, CARD, (_LARGE,), overrides=four, peer=CARD, addressing="physical")[_LARGE]


def _receive_tried(options: Options) -> tuple[Tried, ...]:
    """Measure the receive rate of a card to which four transmit engines send, for three specs of the card."""
    fed = "nicety bench bandwidth --nic apenet-v5 --sizes 4Mi --iterations 1 --window 8 --addressing physical"
    fed += " --set dma.transmit_engines=4"
    fed += "" if options.seed == 1 else f" --seed {options.seed}"
    changes = ("", "events.received=message", f"dma.setup={_PAGE_SET_UP}")
    ways = [f" --set {shlex.quote(change)}" if change else "" for change in changes]
    return tuple(tried(fed + way, "bandwidth_bytes_per_s", 1e-9, "GB/s") for way in ways)


def parts(options: Options) -> Measured:
    """Measure each of the card's parts: engines, link, bit errors and TLB."""
    transmit, fed = _peaks(options)
    small, page = (_latency(options, (size,), (("pong_size", size),))[size] for size in (8, _PAGE))
    link = (_PAGE - 8) / (_stage(page, "link") - _stage(small, "link"))
    missed = _latency(options, (2 * _PAGE,), (("overrides", ("tlb.entries=1",)), ("pong_size", 2 * _PAGE)))[2 * _PAGE]
    return Measured(
        {
            "transmit-peak": Ours(round(transmit / 1e9, 3), why="the set-up of an engine is in whole ns"),
            "receive-peak": Ours(
                round(fed / 1e9, 3),
                why="a page's set-up, write and completion, 598 + 580 + 598 ns, on two engines; the completion of each "
                "packet takes what is missing, and without it the link's 64 B of header and footer are",
                tried=_receive_tried(options),
            ),
            "link": Ours(round(link, 3)),
            **{
                name: Ours(
                    round(_errors(options, rate) * 1e14, 2),
                    why="a sample of some 500 errors, and 2400 on copper, at ten million times the rate",
                )
                for name, rate in (("errors-optical", _OPTICAL), ("errors-copper", _COPPER))
            },
            "media": Ours(None, _media(options)),
            "tlb-hit": Ours(round(_stage(small, "tlb"), 3)),
            "tlb-miss": Ours(round(_stage(missed, "translation") / 1000, 3)),
        }
    )


def tlb(options: Options) -> Measured:
    """Measure the message sizes from which on the TLB misses translations."""
    sizes = _doubling(64 << 10, _LARGE)
    long = _doubling(_MI if options.quick else 256 << 10, 32 * _MI)
    curves = {
        "v5": _rates(options, CARD, sizes, loopback=True),
        "v5, physical": _rates(options, CARD, sizes, loopback=True, addressing="physical"),
        "v4": _rates(options, OLDER, sizes, loopback=True),
        "v4, physical": _rates(options, OLDER, sizes, loopback=True, addressing="physical"),
        "v5, 64 entries": _rates(options, CARD, sizes, loopback=True, overrides=("tlb.entries=64",)),
    }
    gpu = {
        "v5": _rates(options, CARD, long, loopback=True, sink="gpu"),
        "v4": _rates(options, OLDER, long, loopback=True, sink="gpu"),
    }
    knees = {name: _knee(rates) for name, rates in curves.items()}
    far = {name: _knee(rates, _GPU_KEEPS) for name, rates in gpu.items()}
    near = {
        name: _knee({size: rate for size, rate in rates.items() if size <= sizes[-1]}) for name, rates in gpu.items()
    }
    never_below = all(
        curves[f"{card}, physical"][size] > _SAME * curves[card][size] for card in ("v5", "v4") for size in sizes
    )
    same = all(
        abs(curves["v5, 64 entries"][size] / curves["v5"][size] - 1) < 1 - _KEEPS
        for size in sizes
        if size <= (knees["v5, 64 entries"] or 0) or size > (knees["v5"] or 0)
    )

    def figure() -> Figure:
        from nicety.show.curves import figure_of
        from nicety.show.lines import Curve

        shown = {**curves, "v5, GPU pages": gpu["v5"], "v4, GPU pages": gpu["v4"]}
        lines = [
            Curve(name, {size: rate / 1e9 for size, rate in rates.items()}, number)
            for number, (name, rates) in enumerate(shown.items())
        ]
        return figure_of(lines, title="Loop-back: bandwidth by message size", x="Message (B)", y="GB/s")

    return Measured(
        {
            "knee": Ours((knees["v5"] or 0) / _MI),
            "knee-older": Ours((knees["v4"] or 0) / _MI),
            "gpu-none": Ours(
                near["v4"] is None and near["v5"] is None,
                f"version 4 falls beyond {_text(near['v4'])}, version 5 beyond {_text(near['v5'])}, up to "
                f"{_text(sizes[-1])}",
                f"pages of {_text(_GPU_PAGE)}: the older card's 64 entries hold {_text(64 * _GPU_PAGE)}, the largest "
                "message here",
            ),
            "gpu-knee": Ours(
                None,
                f"version 5 falls beyond {_text(far['v5'])} and version 4 beyond {_text(far['v4'])}, by "
                f"{_fall(gpu['v5'])} and {_fall(gpu['v4'])} at {_text(long[-1])}",
            ),
            "physical": Ours(
                never_below and knees["v5, physical"] is None and knees["v4, physical"] is None,
                why="a packet with a physical address needs no look-up, so no page misses",
            ),
            "point": Ours(
                same and knees["v5, 64 entries"] == knees["v4"],
                f"with 64 entries version 5 falls beyond {_text(knees['v5, 64 entries'])}, to the same bandwidth",
                "the TLB replaces the least recently used entry, so a message's pages all hit or all miss",
            ),
        },
        tables=[
            _by_size("TLB", "Bandwidth in loop-back, host pages (GB/s)", curves),
            _by_size("TLB", "The same to pages of a GPU (GB/s)", gpu),
        ],
        figures={"tlb": ("Bandwidth by message size, with two TLBs and without", figure)},
        data={"tlb": _bandwidth(options, CARD, sizes, (("loopback", True),))},
    )


def engines(options: Options) -> Measured:
    """Measure bandwidth with one engine and with two, with and without the receive side."""
    sizes = _doubling(_PAGE, _MI)
    curves = {
        "two nodes": _rates(options, CARD, sizes),
        "one receive engine": _rates(options, CARD, sizes, overrides=("dma.receive_engines=1",)),
        "one transmit engine": _rates(options, CARD, sizes, overrides=("dma.transmit_engines=1",)),
        "flushed": _rates(options, CARD, sizes, flush_receive=True),
        "flushed, one transmit engine": _rates(
            options, CARD, sizes, flush_receive=True, overrides=("dma.transmit_engines=1",)
        ),
        "loop-back": _rates(options, CARD, sizes, loopback=True),
        "loop-back, one receive engine": _rates(
            options, CARD, sizes, loopback=True, overrides=("dma.receive_engines=1",)
        ),
    }

    transmit, fed = _peaks(options)
    received = curves["two nodes"][_MI]

    def above(first: str, second: str) -> bool:
        return all(curves[first][size] > curves[second][size] for size in sizes)

    return Measured(
        {
            "two-receive": Ours(
                above("two nodes", "one receive engine") and above("loop-back", "loop-back, one receive engine")
            ),
            "two-transmit": Ours(
                above("flushed", "flushed, one transmit engine"),
                why="one engine is set up (dma.setup) while the other reads; a single engine does both in turn",
            ),
            "receive-limits": Ours(
                fed < transmit and above("flushed", "two nodes"),
                f"it receives {fixed(received / 1e9, 2)} GB/s, and transmits {fixed(transmit / 1e9, 2)}",
                why="a received packet has a look-up, and a completion with its own set-up; a sent packet has neither"
                if fed < transmit
                else "the transmit side is the limit",
                tried=(tried(_window(options), "bandwidth_bytes_per_s", 1e-9, "GB/s"),),
            ),
            "completions": _both_sides(options),
            "engines": Ours(None, "the table below"),
        },
        tables=[_by_size("Engines", "Bandwidth by message size (GB/s)", curves), _completions(options)],
    )


def memories(options: Options) -> Measured:
    """Measure bandwidth from and to host memory and GPU memory."""
    sizes = _doubling(_PAGE, _LARGE)
    curves = {
        f"{source} to {sink}": _rates(options, CARD, sizes, source=source, sink=sink)
        for source in _MEMORIES
        for sink in _MEMORIES
    }
    slower = all(
        curves[f"gpu to {sink}"][size] < curves[f"host to {sink}"][size] for sink in _MEMORIES for size in sizes
    )
    return Measured(
        {
            "gpu-read": Ours(
                slower,
                why="a GPU's first bytes take 1.8 us and the others 3.5 GB/s at most, by the spec (gpu.read_latency, "
                "gpu.read_gap); host memory takes less on the same bus",
            ),
            "memories": Ours(None, "the table below"),
            "gpu-protocols": Ours(
                None,
                f"{UNMEASURED}: the card reads GPUs in one way; figures of both ways were not found, and a paper of "
                "2013 could not be checked",
            ),
        },
        tables=[_by_size("Memories", "Bandwidth between two nodes (GB/s)", curves)],
    )


def latency(options: Options) -> Measured:
    """Measure latency of small messages. The reply has 8 bytes."""
    sizes = (*_SMALL, 1024, _PAGE)
    curves = {
        f"{source} to {sink}": {
            size: row["latency_ns"]
            for size, row in _latency(options, sizes, (("sink", sink), ("source", source))).items()
        }
        for source in _MEMORIES
        for sink in _MEMORIES
    }
    small = [curves["host to host"][size] for size in _SMALL]
    interrupt = _latency(options, (8,), (("interrupt", True),))[8]["latency_ns"]
    rows = [
        ["Message", *curves],
        *([_text(size), *(fixed(curve[size] / 1000, 2) for curve in curves.values())] for size in sizes),
    ]
    return Measured(
        {
            "flat": Ours(
                max(small) < _FLAT * min(small),
                f"{fixed(min(small) / 1000, 2)} to {fixed(max(small) / 1000, 2)} us from {_SMALL[0]} to {_SMALL[-1]} B",
            ),
            "latency": Ours(
                None,
                f"{fixed(small[0] / 1000, 3)} us with polling, {fixed(interrupt / 1000, 2)} by interrupts, "
                f"{fixed(curves['gpu to gpu'][8] / 1000, 2)} between GPUs with polling",
            ),
            "latency-memories": Ours(None, "the table below"),
        },
        tables=[
            Table(
                section="Latency", title="Latency with a pong of 8 B from host to host memory (us)", rows=rows, note=""
            )
        ],
    )


def _by_size(section: str, title: str, curves: dict[str, dict[int, float]]) -> Table:
    """Return a table of bandwidths by message size, with a column per curve."""
    sizes = next(iter(curves.values()))
    rows = [
        ["Message", *curves],
        *([_text(size), *(fixed(rates[size] / 1e9, 2) for rates in curves.values())] for size in sizes),
    ]
    return Table(section=section, title=title, rows=rows, note="")


def _text(size: int | None) -> str:
    """Return a size in short form: 512 B, 4 KiB."""
    if size is None:
        return "no size"
    shown = format_size(size)
    return f"{shown[:-2]} {shown[-2:]}B" if shown.endswith("i") else f"{shown} B"
