"""The sustainable rate of a card, compared with the rate of first loss in a scan.

The scan sends the same packets in bursts that nearly fill the packet buffer, at the rate of the wire and without
credits. It looks for the lowest mean rate at which a packet is lost. It uses no part of the search.
"""

from __future__ import annotations

import json
import math
import os
import time
from pathlib import Path

import pytest

import nicety
from nicety.shared.types import LineRateRow
from sustained import CASES, Case

QUICK = ("100g-buckets-one", "100g-looks-wire", "100g-work-wire", "pspin-swap")
"""Those tested each time."""
_WITHIN = 0.03
# The part of the packet buffer that a burst of the scan fills.
_FILLS = 0.9
_WIRE_PPS = {"spin-100g": 148.8e6, "pspin": 1e9}
"""The maximum packet rate of a wire."""


def check(
    case: Case, folder: Path, rate_pps: float, packets: int, more: str = "", *, lossy: bool = False
) -> LineRateRow:
    file = folder / "mine.c"
    file.write_text(case.source)
    traffic = f"{case.traffic} rate={round(rate_pps)}pps packets={packets}{more}"
    (row,) = nicety.check_line_rate(
        file, nics=case.nic, traffic=traffic, overrides=list(case.sets), state_bytes=4096, lossy=lossy
    )["rows"]
    return row


def sustained_pps(row: LineRateRow) -> float:
    return row["capacity_fraction"] * row["line_rate_packets_per_s"]


def first_loss_pps(case: Case, folder: Path, near_pps: float, buffer: int, packets: int) -> float:
    """The lowest mean rate with a loss, to a third of a percent.

    0 or infinity if that is a tenth off, and the wire's rate if nothing is lost at it.
    """
    # Packets leave during a burst.
    at_once = math.floor(_FILLS * buffer / (1 - 0.9 * near_pps / _WIRE_PPS[case.nic]))

    def loses(rate_pps: float) -> bool:
        try:
            row = check(case, folder, rate_pps, packets, f" arrivals=burst:{at_once}", lossy=True)
        except nicety.HandlerTrap:
            # A starved handler never ends.
            return True
        traffic = row["traffic"]
        return traffic["dropped_by_overload"] + traffic["dropped_at_host"] > 0

    wire = 0.999 * _WIRE_PPS[case.nic]
    low, high = 0.9 * near_pps, min(1.1 * near_pps, wire)
    if loses(low):
        return 0.0
    if not loses(high):
        return high if high == wire else math.inf
    while high / low > 1 + 1 / 300:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if loses(middle) else (middle, high)
    return high


def error_of(case: Case, folder: Path, base: float) -> tuple[float, float, float, LineRateRow]:
    """The card's sustainable rate, the rate of first loss, and the CPU time of the check."""
    full = check(case, folder, 1e6, 2_000)
    began = time.process_time()
    row = check(case, folder, base * sustained_pps(full), 10_000, lossy=True)
    took = time.process_time() - began
    said = sustained_pps(row)
    packets = 20_000 if case.nic == "spin-100g" else 40_000
    loss = first_loss_pps(case, folder, said, row["buffer_packets"], packets)
    return said, loss, took, row


@pytest.mark.parametrize("case", [case for case in CASES if case.name in QUICK], ids=str)
def test_what_is_sustained_is_where_loss_begins(case: Case, tmp_path: Path) -> None:
    said, loss, _, row = error_of(case, tmp_path, 0.4)
    assert said == pytest.approx(loss, rel=_WITHIN), row["tried"]
    assert row["sustained_fraction"] is not None
    assert row["sustained_fraction"] <= row["capacity_fraction"]


@pytest.mark.soak
@pytest.mark.parametrize("case", CASES, ids=str)
def test_what_each_of_many_handlers_sustains_is_where_loss_begins(case: Case, tmp_path: Path) -> None:
    for base in (0.1, 0.4, 0.8):
        said, loss, took, row = error_of(case, tmp_path, base)
        if table := os.environ.get("NICETY_SUSTAINED"):
            figures = {
                "case": case.name,
                "base": base,
                "said_mpps": said / 1e6,
                "loss_mpps": loss / 1e6,
                "took_s": took,
            }
            with Path(table).open("a") as file:
                file.write(json.dumps({**figures, "runs": len(row["tried"]), "part": row["limiting_part"]}) + "\n")
        assert said == pytest.approx(loss, rel=_WITHIN), row["tried"]
