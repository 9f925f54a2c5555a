"""The points of rows, run on the model: pcie-bench, XDP in the host's driver, ping-pongs, datapath accelerators."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from nicety._generated.types import PcieRow
from nicety.bench.measured import Progress
from nicety.bench.messages import run_benchmark
from nicety.bench.single.pcie import bench_pcie
from nicety.errors import InputError
from nicety.shared.cards import show
from nicety.studies.score.dpa import LOADS, REFLECT, aggregation_gain, load_cycles, rate_mpps
from nicety.studies.score.rows import DPA, PCIE, PINGPONG, XDP, Point, Published
from nicety.studies.xdp.flow import rate_on_contexts
from nicety.studies.xdp.rates import measure_xdp

_CHECK_SEQUENCE = 4
"""Bytes of a frame's check sequence, which traffic expressions leave out."""
_SHORTEST, _LONGEST = 64, 1518
_COLUMNS = {
    "--sizes": "size_bytes",
    "--cpus": "cpus",
    "--host-offsets": "host_offset_bytes",
    "--card-offsets": "card_offset_bytes",
    "--windows": "window_bytes",
}
"""The options of benchmarks, with the columns that rows have for them."""
_SHORTEST_PAIRS = 84
"""Bytes of a frame with its check sequence that has a pair, or two lines."""


def measured(
    rows: Sequence[Published], *, overrides: Sequence[str] = (), progress: Progress | None = None
) -> dict[tuple[str, Point], float]:
    """Return the model's figure of each row, by card and point.

    Args:
        rows: the rows. Those that differ only by size are run together.
        overrides: changes to the cards.
        progress: called with the number of points done, and the total.

    Raises:
        InputError: a row that the benchmark refuses. The message names its line.
    """
    together: dict[tuple[object, ...], dict[int, Published]] = defaultdict(dict)
    for row in rows:
        key = (row.card, row.test, row.pattern, row.cache, row.card_offset, row.window, row.host_offset, row.cpus)
        together[key][row.size] = row
    found: dict[tuple[str, Point], float] = {}
    total = sum(len(group) for group in together.values())
    for group in together.values():
        own = list(group.values())
        try:
            figures = _run(own, overrides)
        except InputError as error:
            raise _located(error, own, overrides) from error
        for row, figure in zip(own, figures, strict=True):
            found[row.card, row.point] = figure
        if progress is not None:
            progress(len(found), total)
    return found


def _located(error: InputError, group: Sequence[Published], overrides: Sequence[str]) -> InputError:
    """Return the error with the file and the line of the first row that is refused alone."""
    row = group[0]
    for each in group if len(group) > 1 else ():
        try:
            _run([each], overrides)
        except InputError as own:
            row, error = each, own
            break
    text = str(error)
    for option, column in _COLUMNS.items():
        text = text.replace(option, column)
    return InputError(f"{row.file}: line {row.line}: {text}" if row.file else f"line {row.line}: {text}")


def _run(group: Sequence[Published], overrides: Sequence[str]) -> list[float]:
    first = group[0]
    sizes = [row.size for row in group]
    if first.test in PCIE:
        report = bench_pcie(
            nics=[first.card],
            tests=[first.test],
            sizes=sizes,
            patterns=[first.pattern],
            caches=[first.cache],
            windows=[first.window],
            host_offsets=[first.host_offset],
            card_offsets=[first.card_offset],
            samples=64 if first.pattern == "seq" else 256,
            overrides=list(overrides),
        )
        return [_pcie_figure(row) for row in report["rows"]]
    if first.test == PINGPONG:
        # A card may have several modes; `auto` is one row for each size.
        found = run_benchmark("latency", nics=[first.card], modes=["auto"], sizes=sizes, overrides=list(overrides))
        rows = found["rows"]
        if len(rows) != len(sizes):
            raise InputError(
                f"{first.card} does not send messages of all sizes {sizes} B; leave out the sizes that it refuses"
            )
        return [row["latency_ns"] for row in rows]
    if first.test in DPA:
        return [_accelerated(row, overrides) for row in group]
    return [_rate(row, overrides) for row in group]


def _accelerated(row: Published, overrides: Sequence[str]) -> float:
    """Return the cycles of a load, or the rate or the gain of a program, on a datapath accelerator."""
    shortest = _SHORTEST if row.test == REFLECT else _SHORTEST_PAIRS
    if not shortest <= row.size <= _LONGEST:
        raise InputError(f"size_bytes of {row.test} is {shortest} to {_LONGEST}, not {row.size}")
    if not row.cpus:
        raise InputError(f"cpus of {row.test} is at least 1, not 0")
    if row.test in LOADS:
        return load_cycles(row.test, nic=row.card, size=row.size, overrides=overrides)
    if row.test == REFLECT:
        return rate_mpps("reflect", nic=row.card, size=row.size, threads=row.cpus, overrides=overrides)
    return aggregation_gain(nic=row.card, size=row.size, threads=row.cpus, overrides=overrides)


def _pcie_figure(row: PcieRow) -> float:
    return row["median_ns"] if "median_ns" in row else row["bandwidth_gbit_per_s"]


def _rate(row: Published, overrides: Sequence[str]) -> float:
    """Return the rate in Mpps of frames with a verdict, while frames arrive at the link's rate."""
    if not _SHORTEST <= row.size <= _LONGEST:
        raise InputError(f"size_bytes of {row.test} is {_SHORTEST} to {_LONGEST}, not {row.size}")
    if not row.cpus:
        raise InputError(f"cpus of {row.test} is at least 1, not 0")
    if show(row.card)["design"] == "nfp":
        return rate_on_contexts(row.test, nic=row.card, size=row.size - _CHECK_SEQUENCE, overrides=overrides)
    found = measure_xdp(
        XDP[row.test],
        nic=row.card,
        cpus=[row.cpus],
        size=row.size - _CHECK_SEQUENCE,
        overrides=overrides,
    )
    return found[0]["taken_pps"] / 1e6
