"""The rate that a card is said to sustain, beside the rate of first loss that a scan finds.

The scan sends a burst that nearly fills the packet buffer, and then packets at equal distances, without credits. It
looks for the lowest rate at which a packet is lost, and uses nothing of the search.
"""

from __future__ import annotations

import json
import math
import os
import time
from itertools import cycle, islice
from pathlib import Path

import pytest

import nicety
from nicety._generated.types import LineRateRow
from nicety.bench.verdicts import headrooms
from sustained import CASES, Case, write_capture

QUICK = ("100g-looks-wire", "100g-work-wire")
"""Those that are tried each time."""
_WITHIN = 0.03
_CHECKED = 10_000
"""Packets of a check."""
_FILLS = 0.75
"""The part of the packet buffer that the burst of the scan fills."""
_LONG = 6
"""Buffers of a burst that keeps the card saturated for a while."""
_WIRE_PPS = {"spin-100g": 148.8e6, "pspin": 1e9}
"""The most packets that a wire brings."""


def check(case: Case, folder: Path, traffic: str, *, lossy: bool = False) -> LineRateRow:
    file = folder / "mine.c"
    file.write_text(case.source)
    (row,) = nicety.check_line_rate(
        file,
        nics=case.nic,
        traffic=traffic,
        # An unfair lock may starve a handler, which the report says; the rate is that of first loss.
        overrides=[*case.sets, "hpu.cycle_limit=1000000000"],
        state_bytes=4096,
        lossy=lossy,
    )["rows"]
    return row


def at_rate(case: Case, folder: Path, rate_pps: float, packets: int, *, lossy: bool = False) -> LineRateRow:
    file = folder / f"{packets}.pcapng"
    if not file.exists():
        write_capture(file, case.packets.frames(packets), range(0, 1_000_000 * packets, 1_000_000))
    return check(case, folder, f"capture={file} rate={round(rate_pps)}pps", lossy=lossy)


def sustained_pps(row: LineRateRow) -> float:
    return row["capacity_fraction"] * row["line_rate_packets_per_s"]


def lost(case: Case, folder: Path, rate_pps: float, burst: int, packets: int) -> int:
    """The packets that are lost of a burst at the wire's rate and of `packets` more."""
    wire, file = 0.999 * _WIRE_PPS[case.nic], folder / "scan.pcapng"
    # The packets of the check, again and again: the busiest flow of others may have another share.
    frames = list(islice(cycle(case.packets.frames(_CHECKED)), burst + packets))
    times_s = [each / wire for each in range(burst)]
    times_s += [burst / wire + each / rate_pps for each in range(packets)]
    write_capture(file, frames, [round(1e12 * each) for each in times_s])
    traffic = check(case, folder, f"capture={file}", lossy=True)["traffic"]
    return traffic["dropped_by_overload"] + traffic["dropped_at_host"]


def first_loss_pps(case: Case, folder: Path, near_pps: float, places: tuple[int, int]) -> float:
    """The lowest rate with a loss, to a third of a percent.

    `places` are those of the buffer, and the packets of the scan for each. 0 or infinity where the rate is a tenth off,
    and the wire's rate without a loss.
    """
    buffer, scanned = places
    wire = 0.999 * _WIRE_PPS[case.nic]

    def loses(rate_pps: float) -> bool:
        if not case.overflows:
            return lost(case, folder, rate_pps, math.floor(_FILLS * buffer), scanned * buffer) > 0
        # The burst itself is too long for the buffer: the rate loses packets if losses go on.
        first, both = (lost(case, folder, rate_pps, _LONG * buffer, each * scanned * buffer) for each in (1, 2))
        return both > first

    low, high = 0.9 * near_pps, min(1.1 * near_pps, wire)
    if loses(low):
        return 0.0
    if not loses(high):
        return high if high == wire else math.inf
    while high / low > 1 + 1 / 300:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if loses(middle) else (middle, high)
    return high


def said_of(case: Case, folder: Path, base: float) -> LineRateRow:
    """The check at `base` x the sustained rate, as far as 2000 packets show that."""
    full = at_rate(case, folder, 1e6, 2_000)
    rate_pps = min(base * sustained_pps(full), 0.9 * _WIRE_PPS[case.nic])
    return at_rate(case, folder, rate_pps, _CHECKED, lossy=True)


@pytest.mark.parametrize("case", [case for case in CASES if case.name in QUICK], ids=str)
def test_the_sustained_rate_is_the_rate_of_first_loss(case: Case, tmp_path: Path) -> None:
    row = said_of(case, tmp_path, 0.4)
    loss = first_loss_pps(case, tmp_path, sustained_pps(row), (row["buffer_packets"], 25))
    assert sustained_pps(row) == pytest.approx(loss, rel=_WITHIN), row["trials"]
    assert row["sustained_fraction"] is not None
    assert row["sustained_fraction"] <= row["capacity_fraction"]


def test_a_lock_that_starves_a_handler_is_named(tmp_path: Path) -> None:
    case = next(case for case in CASES if case.name == "100g-two-locks")
    row = said_of(case, tmp_path, 0.1)
    starved = next(run for run in row["trials"] if run["starved_ns"] is not None)
    run_s = starved["packets"] / (row["line_rate_packets_per_s"] * starved["rate_fraction"])
    assert starved["starved_ns"] > 0.7e9 * run_s
    assert any("Unfair lock: at " in text for text in headrooms([row]))


@pytest.mark.soak
@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_sustained_rate_of_each_handler_is_the_rate_of_first_loss(case: Case, tmp_path: Path) -> None:
    """Where NICETY_SUSTAINED names a file, each figure is a line of JSON there."""
    loss = 0.0
    for base in (0.1, 0.4, 0.8):
        began = time.process_time()
        row = said_of(case, tmp_path, base)
        took = time.process_time() - began
        said = sustained_pps(row)
        loss = loss or first_loss_pps(case, tmp_path, said, (row["buffer_packets"], case.scanned))
        if table := os.environ.get("NICETY_SUSTAINED"):
            figures = {"case": case.name, "base": base, "said_mpps": said / 1e6, "loss_mpps": loss / 1e6}
            more = {"took_s": took, "runs": len(row["trials"]), "part": row["bottleneck"]}
            with Path(table).open("a") as file:
                file.write(json.dumps(figures | more) + "\n")
        # The scan goes no further than the wire.
        said = min(said, 0.999 * _WIRE_PPS[case.nic])
        assert said == pytest.approx(loss, rel=_WITHIN), row["trials"]
