"""Make rows.csv, the published measurements of the card `nfp-6000`.

    python studies/nfp-6000/rows.py DATA > studies/nfp-6000/rows.csv

DATA is the folder of pcie-bench/data at b2abf2f with the results of the four hosts, see README.md.
"""

from __future__ import annotations

import csv
import sys
from pathlib import Path

FOLDERS = {
    "nfp-6000": "snb-Xeon-E5-2630_dell-t620",
    "nfp-6000-bdw-e5-2630v4": "bdw-Xeon-E5-2630v4-dell-t430-s0-s0-s0",
    "nfp-6000-hsw-e5-2637v3": "hsw-Xeon-E5-2637v3_supermicro",
    "nfp-6000-hsw-e3-1226v3": "hsw-Xeon-E3-1226v3_fujitsu-tx1310",
}
"""The folder of each card's host."""

COLUMNS = (
    "card",
    "test",
    "pattern",
    "cache",
    "host_offset_bytes",
    "card_offset_bytes",
    "window_bytes",
    "size_bytes",
    "published",
    "unit",
    "kind",
    "source",
)
Point = tuple[str, str, str, str, int, int, int, int]


def latency(card: str, test: str, size: int, window: int = 8192) -> Point:
    """Return the point of a latency in sequence, with the host's cache warm."""
    return (card, test, "seq", "hwarm", 0, 0, window, size)


def bandwidth(card: str, test: str, size: int) -> Point:
    """Return the point of a bandwidth at random addresses, with the host's cache warm."""
    return (card, test, "rand", "hwarm", 0, 0, 8192, size)


OTHERS = tuple(FOLDERS)[1:]
OFFSETS = (
    *((host, 0) for host in (0, 1, 2, 3, 4, 6, 8, 12, 16, 20, 25, 32, 41, 48, 63)),
    *((0, card) for card in (1, 2, 3, 4, 6, 8, 12, 16, 20, 25, 32, 41, 48)),
)
"""Offsets on host and card of rows that were read with the head of the table."""
CALIBRATED = {
    *(latency("nfp-6000", test, size) for test in ("LAT_DMA_RD", "LAT_DMA_WRRD") for size in (8, 2048)),
    *(latency("nfp-6000", test, size, 4096) for test in ("LAT_CMD_RD", "LAT_CMD_WRRD") for size in (8, 64)),
    bandwidth("nfp-6000", "BW_DMA_RD", 64),
    *(bandwidth("nfp-6000", "BW_DMA_WR", size) for size in (64, 192)),
    *(latency(card, "LAT_DMA_RD", 8) for card in OTHERS),
}
"""Rows that constants of the cards were fitted to."""

SEEN = {
    *(latency("nfp-6000", test, size) for test in ("LAT_DMA_RD", "LAT_DMA_WRRD") for size in (64, 256, 512, 1024)),
    *(latency(card, "LAT_DMA_RD", size) for card in OTHERS[1:] for size in (64, 256, 512, 1024, 2048)),
    *(bandwidth("nfp-6000-bdw-e5-2630v4", test, 2048) for test in ("BW_DMA_RD", "BW_DMA_WR")),
    *(
        bandwidth(card, f"BW_DMA_{way}", size)
        for card in OTHERS
        for way in ("RD", "WR", "RW")
        for size in (64, 256, 1024)
    ),
    *(latency(card, "LAT_DMA_WRRD", size) for card in OTHERS for size in (8, 64, 256, 512, 1024, 2048)),
    *(("nfp-6000", "BW_DMA_RD", "seq", "hwarm", *offsets, 8192, 64) for offsets in OFFSETS),
    ("nfp-6000", "LAT_DMA_RD", "rand", "cold", 0, 0, 8192, 64),
}
"""Rows that were known before the mechanisms were chosen. No constant was fitted to them."""

SEEN_FILES = {
    *(("nfp-6000", f"BW_DMA_{way}", "bw_dma_sz_sweep.csv") for way in ("RD", "WR", "RW")),
    *((card, "LAT_DMA_WRRD", f"lat_dma_{name}.csv") for card in FOLDERS for name in ("sizes_byte_inc", "off_wrrd")),
}
"""Tests of files with only such rows. Of the second line's, medians of deviations were read, and not the rows."""

XDP = (
    ("nfp-6000", "XDP_DROP", "seq", "hwarm", "0", "0", "8192", "64", "32.000", "Mpps", "seen", "hXDP section 5.2.2"),
)
"""A rate of XDP programs on a card of this family, from Brunella et al., hXDP, OSDI 2020: an NFP-4000 drops 32 Mpps."""


def rows(folder: Path, card: str) -> list[list[str]]:
    """Return the rows of a host's files. Files with distributions are left out."""
    made = []
    for path in sorted(folder.glob("*.csv")):
        if "details" in path.name:
            continue
        for row in csv.DictReader(path.open()):
            at = (row["Test"], row["PAT"].lower(), row["Cache"].lower())
            numbers = tuple(int(float(row[name])) for name in ("HO", "DO", "WinSZ", "SZ"))
            point = (card, *at, *numbers)
            seen = point in SEEN or (card, row["Test"], path.name) in SEEN_FILES
            kind = "calibrated" if point in CALIBRATED else "seen" if seen else "predicted"
            is_latency = row["Test"].startswith("LAT")
            value = float(row["Med(ns)"] if is_latency else row["BW (GB/s)"])
            unit = "ns" if is_latency else "Gb/s"
            made.append([card, *at, *map(str, numbers), f"{value:.3f}", unit, kind, path.name])
    return made


def main(data: Path) -> None:
    """Write the rows of all hosts to stdout."""
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(COLUMNS)
    for card, folder in FOLDERS.items():
        writer.writerows(rows(data / folder, card))
    writer.writerows(XDP)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
