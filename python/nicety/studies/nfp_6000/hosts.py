"""Latencies and bandwidths by size in four hosts, as the paper's figures have them, out of the shipped rows."""

from __future__ import annotations

from collections.abc import Callable

from nicety.show.columns import fixed
from nicety.studies.claims import UNMEASURED, Claim, Ours, Paper
from nicety.studies.score.points import measured
from nicety.studies.score.rows import Published
from nicety.studies.score.scoring import shipped_rows
from nicety.studies.study import Measured, Options

HOSTS = {
    "nfp-6000": "Sandy Bridge, E5-2630",
    "nfp-6000-bdw-e5-2630v4": "Broadwell, E5-2630 v4",
    "nfp-6000-hsw-e5-2637v3": "Haswell, E5-2637 v3",
    "nfp-6000-hsw-e3-1226v3": "Haswell, E3-1226 v3",
}
"""The measured hosts, by the card's spec in each."""
_SIZES = {
    "LAT_CMD_RD": (8, 64),
    "LAT_CMD_WRRD": (8, 64),
    "LAT_DMA_RD": (8, 64, 256, 512, 1024, 2048),
    "LAT_DMA_WRRD": (8, 64, 256, 512, 1024, 2048),
    "BW_DMA_RD": (64, 256, 1024),
    "BW_DMA_WR": (64, 256, 1024),
    "BW_DMA_RW": (64, 256, 1024),
}
_FILES = ("lat_cmd_sizes.csv", "lat_dma_sizes.csv", "bw_dma_sz_sweep.csv")
_STEP_NS = 13.5
"""A timestamp counts 16 cycles of 1.2 GHz, 13.3 ns, so a median may be a step off; rounding included."""
_GBPS = 0.05
_SEEN = "mechanisms of the card's DMA engines were chosen after the row was read; the card's page names them"
_UNMODELLED = {
    "spread": (
        "Latencies of 95 and 99.9 % of samples",
        "The data have 95 and 99.9 % of latencies.",
        "the model's spread is that of timestamps and of the cache; its sources in the host are not modelled",
    ),
    "iommu": (
        "IOMMU: pages of 4 KiB and larger",
        "The paper measures transfers through an IOMMU.",
        "[bus.iommu] is not checked here: the four hosts' data have no such configuration",
    ),
    "remote": (
        "Memory of a remote socket",
        "The paper measures transfers to the memory of another socket.",
        "bus.memory.remote is not checked here: the four hosts' data have no such configuration",
    ),
}
_NONE = "no mechanism was found"
_WIRE = f"{_NONE} beyond the turns of the card's way to the host"
_COMMANDS = "one constant of a host does not fit both commands and DMA"
_REASONS = {
    "BW_DMA_RD": f"{_NONE}; published rates peak at 512 B",
    "BW_DMA_WR": _WIRE,
    "BW_DMA_RW": _WIRE,
    "LAT_CMD_RD": _COMMANDS,
    "LAT_CMD_WRRD": _COMMANDS,
    "LAT_DMA_RD": _NONE,
    "LAT_DMA_WRRD": _NONE,
}
"""The reasons of deviations of more than a step of timestamps, by test."""
_STEPS = "a step of timestamps"
_ODD = (
    "not modelled: the host's constant is no latency of its memory; its command reads take 440 ns, its DMA reads 1227"
)


def _rows(card: str) -> list[Published]:
    every = (row for row in shipped_rows(card) if row.card == card)
    return [row for row in every if row.source in _FILES and row.size in _SIZES[row.test]]


def _claim(row: Published) -> Claim:
    what = "takes" if row.unit == "ns" else "carries"
    return Claim(
        id=f"{row.card}-{row.test}-{row.size}",
        section=HOSTS[row.card],
        title=f"{HOSTS[row.card]}: {row.test}, {row.size} B",
        says=f"A transfer of {row.size} B {what} {fixed(row.value, 1)} {row.unit} (median, cache warmed by the host).",
        kind="calibrated" if row.kind == "calibrated" else "predicted",
        test="equals",
        paper=round(row.value, 1),
        unit=row.unit,
        printed=_STEP_NS if row.unit == "ns" else _GBPS,
        cards=(row.card,),
        at=row.source,
        seen=_SEEN if row.kind == "seen" else "",
    )


def _shown(name: str) -> Claim:
    title, says, _ = _UNMODELLED[name]
    return Claim(name, "Not modelled", title, says, "predicted", "shown", cards=tuple(HOSTS))


PAPER = Paper(
    "Neugebauer et al.: Understanding PCIe performance for end host networking, SIGCOMM 2018",
    "The repository pcie-bench/data at b2abf2f, rows of studies/nfp-6000/rows.csv; cards nfp-6000 and its other hosts.",
    (*(_claim(row) for card in HOSTS for row in _rows(card)), *map(_shown, _UNMODELLED)),
)


def measure(card: str) -> Callable[[Options], Measured]:
    """Return a function that measures the rows of a host."""

    def run(_: Options) -> Measured:
        rows = _rows(card)
        found = measured(rows)
        figures = {row: found[card, row.point] for row in rows}
        return Measured(
            {
                f"{card}-{row.test}-{row.size}": Ours(round(figure, 1), why=_reason(row, figure))
                for row, figure in figures.items()
            }
        )

    return run


def _reason(row: Published, figure: float) -> str:
    if row.unit == "ns" and abs(figure - row.value) < _STEP_NS:
        return _STEPS
    return _ODD if row.card == "nfp-6000-hsw-e3-1226v3" else _REASONS[row.test]


def unmodelled(_: Options) -> Measured:
    """Return the reasons why rows of the paper are not measured."""
    return Measured({name: Ours(None, f"{UNMEASURED}: {why}") for name, (_, _, why) in _UNMODELLED.items()})
