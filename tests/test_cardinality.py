"""The cardinality estimate on a network flow processor: the effect of contexts, and refusals."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import nicety as package
from nicety.show.tables import report_table

WIRE_BITS = 84 * 8


def test_contexts_hide_the_latency_of_memory() -> None:
    report = package.bench_pcsa(contexts=range(1, 9), updates=8)
    rows = report["rows"]
    assert [row["contexts"] for row in rows] == list(range(1, 9))
    one = rows[0]
    # One start for all, and updates that contexts share, as in the paper: 1129, 526 and 603.
    assert (one["cycles_total"], one["cycles_computing"], one["cycles_asleep"]) == (1103, 503, 600)
    assert one["time_ns"] == pytest.approx(1103 / 0.6, abs=0.001)
    # The paper: 616, 574 of them computing or switching.
    eight = rows[-1]
    assert (eight["cycles_total"], eight["cycles_computing"], eight["cycles_switching"]) == (691, 643, 48)
    for row in rows:
        parts = row["cycles_computing"] + row["cycles_asleep"] + row["cycles_switching"]
        assert parts == row["cycles_total"]
        assert row["line_rate_packets_per_s"] == row["updates_per_s"]
        assert row["line_rate_bits_per_s"] == pytest.approx(WIRE_BITS * row["updates_per_s"])
        assert row["updates_per_s"] < row["updates_per_s_bits_set"]
    assert rows[1]["cycles_total"] < 2 / 3 * one["cycles_total"]
    # A microengine cannot make an update in fewer cycles than it computes: 56.
    assert max(row["updates_per_s"] for row in rows) < 60 * 600e6 / 56
    # On one context an update takes 56 + 75 cycles, and its share of reading addresses.
    assert 131 < 60 * 600e6 / one["updates_per_s"] < 140


def test_the_same_again() -> None:
    first, again = (package.bench_pcsa(contexts=[3], updates=20) for _ in range(2))
    assert first == again
    assert "updates" in report_table(first).columns
    assert "<table>" in first._repr_html_()  # type: ignore[attr-defined]


def test_json_csv_and_a_picture(nicety: Callable[..., Any], tmp_path: Path) -> None:
    done = nicety(
        *("bench", "pcsa", "--nic", "nfp-4000", "--contexts", "1:4", "--updates", "8", "--json"),
        *("--csv", str(tmp_path / "rows.csv"), "--plot", str(tmp_path / "rows.svg")),
    )
    assert done.status == 0, done.stderr
    rows = done.json()["rows"]
    assert [row["contexts"] for row in rows] == [1, 2, 4]
    with (tmp_path / "rows.csv").open() as file:
        assert [int(row["cycles_total"]) for row in csv.DictReader(file)] == [row["cycles_total"] for row in rows]
    assert (tmp_path / "rows.svg").stat().st_size > 0


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--nic", "spin-discrete"], "spin-discrete: a card of design portals has no microengines"),
        (
            ["--nic", "nfp-4000", "--contexts", "9"],
            "--contexts 9: a microengine of nfp-4000 has 8 contexts; write 1 to 8",
        ),
        (["--nic", "nfp-4000", "--contexts", "0..2"], "--contexts 0: a microengine of nfp-4000 has 8"),
        (["--nic", "nfp-4000", "--updates", "257"], "--updates is 1 to 256, not 257"),
        (["--nic", "nfp-4000", "--set", "memory.cls.size=4 KiB"], "microengine 0, context 0: "),
    ],
)
def test_invalid_options_are_refused(nicety: Callable[..., Any], arguments: list[str], text: str) -> None:
    done = nicety("bench", "pcsa", *arguments)
    assert done.status == (1 if "microengine 0" in text else 2)
    assert text in done.stderr, done.stderr
    assert done.stdout == ""
