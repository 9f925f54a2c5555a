"""Access to host memory over PCI Express (`nicety bench pcie`), and scores of cards (`nicety specs score`)."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import nicety
from nicety.bench.single.pcie import pcie_bench_csv, pcie_figure, pcie_text
from nicety.studies.score.rows import Published, read_rows
from nicety.studies.score.scoring import quantile, score, shipped_rows
from nicety.studies.score.text import score_figure, score_text
from sizes import examples

Command = Callable[..., Any]
HEAD = "card,test,size_bytes,published"
CARDS = ["nfp-6000", "nfp-6000-bdw-e5-2630v4", "nfp-6000-hsw-e5-2637v3", "nfp-6000-hsw-e3-1226v3"]


def test_the_command_measures_and_writes_files(nicety: Command, tmp_path: Path) -> None:
    files = {option: tmp_path / f"{option}.csv" for option in ("csv", "pcie-csv")}
    arguments = ["--nic", "nfp-6000", "--test", "LAT_DMA_RD,BW_DMA_RD", "--sizes", "8,64", "--samples", "16"]
    options = [word for option, path in files.items() for word in (f"--{option}", str(path))]
    result = nicety("bench", "pcie", *arguments, *options)
    assert (result.status, result.stderr) == (0, "")
    assert "# nfp-6000, LAT_DMA_RD: Latency (ns)" in result.stdout
    assert "# nfp-6000, BW_DMA_RD: Bandwidth, and transfers a second" in result.stdout
    rows, own = (list(csv.DictReader(io.StringIO(path.read_text()))) for path in files.values())
    assert [row["size_bytes"] for row in rows] == ["8", "64", "8", "64"]
    assert [own[0][name] for name in ("Test", "PAT", "Cache", "SZ")] == ["LAT_DMA_RD", "Seq", "HWarm", "8"]
    assert [bool(row["Med(ns)"]) for row in own] == [True, True, False, False]
    assert [bool(row["BW (GB/s)"]) for row in own] == [False, False, True, True]


def test_a_card_on_another_bus_is_refused(nicety: Command) -> None:
    result = nicety("bench", "pcie", "--nic", "spin-discrete", "--sizes", "8")
    assert (result.status, result.stdout) == (2, "")
    assert result.stderr.startswith("nicety: card spin-discrete is not on PCI Express; name one with bus.kind")
    result = nicety("bench", "pcie", "--nic", "nfp-6000", "--test", "LAT", "--sizes", "8")
    assert (result.status, result.stdout) == (2, "")
    assert result.stderr.startswith("nicety: --test LAT: write one of LAT_CMD_RD")


def test_any_card_on_pci_express_has_the_figures_of_its_link() -> None:
    report = nicety.bench_pcie(nics=["xeon-oplin"], sizes=[8, 64], samples=4, overrides=["bus.kind=pcie"])
    assert [row["median_ns"] for row in report["rows"]] == sorted(row["median_ns"] for row in report["rows"])
    assert "xeon-oplin, LAT_DMA_RD" in pcie_text(report)
    assert pcie_figure(report).axes[0].get_ylabel() == "Median latency (ns)"
    assert pcie_bench_csv(report).count("\n") == 3


def test_the_shipped_rows_say_what_they_were_used_for() -> None:
    rows = shipped_rows("nfp-6000")
    assert list(dict.fromkeys(row.card for row in rows)) == CARDS
    assert len(rows) > 9000
    calibrated = {(row.card, row.test, row.size) for row in rows if row.kind == "calibrated"}
    sandy = {("nfp-6000", test, size) for test in ("LAT_DMA_RD", "LAT_DMA_WRRD") for size in (8, 2048)}
    sandy |= {("nfp-6000", test, size) for test in ("LAT_CMD_RD", "LAT_CMD_WRRD") for size in (8, 64)}
    sandy |= {("nfp-6000", "BW_DMA_RD", 64), ("nfp-6000", "BW_DMA_WR", 64), ("nfp-6000", "BW_DMA_WR", 192)}
    assert calibrated == sandy | {(card, "LAT_DMA_RD", 8) for card in CARDS[1:]}
    assert shipped_rows(CARDS[1]) == [row for row in rows if row.card == CARDS[1]]
    with pytest.raises(nicety.InputError, match=r"^qnix: no published rows of this card are shipped; name nfp-6000"):
        shipped_rows("qnix")


def row(card: str, test: str, size: int, value: float, window: int = 8192, **given: Any) -> Published:
    kind = given.pop("kind", "predicted")
    return Published(card, test, "seq", "hwarm", 0, 0, window, size, value, kind, "", 2)


def test_a_score_by_hand() -> None:
    other = CARDS[2]
    rows = [
        row(CARDS[0], "LAT_DMA_RD", 8, 500, kind="calibrated"),
        row(CARDS[0], "LAT_DMA_RD", 2048, 1520, kind="calibrated"),
        row(other, "LAT_DMA_RD", 8, 540, kind="calibrated"),
        row(other, "LAT_DMA_RD", 1028, 1000),
        row(CARDS[0], "BW_DMA_RD", 64, 40),
        row(other, "BW_DMA_RD", 64, 50),
    ]
    report = score("mine", rows)
    assert report["counts"] == {"calibrated": 3, "seen": 0, "predicted": 3}
    # The line through the first card's rows is 0.5 ns a byte, and the other host is 40 ns slower: 500 + 510 + 40.
    scored = report["rows"][3]
    assert scored["baseline"] == pytest.approx(1050)
    assert scored["baseline_deviation_percent"] == pytest.approx(5)
    assert scored["deviation_percent"] == pytest.approx((scored["model"] / 1000 - 1) * 100)
    # The baseline of a bandwidth is the first card's row. That card has none.
    assert [row.get("baseline") for row in report["rows"][4:]] == [None, 40]
    groups = {(group["card"], group["test"]): group for group in report["groups"]}
    assert groups[other, "BW_DMA_RD"]["baseline_median_percent"] == pytest.approx(20)
    assert "baseline_median_percent" not in groups[CARDS[0], "BW_DMA_RD"]
    text = score_text(report, all_rows=True)
    assert "# 3 rows calibrated, 0 seen before, 3 predicted" in text
    assert len(score_figure(report).axes[0].get_lines()) == 3


def test_own_rows_are_scored(nicety: Command, tmp_path: Path) -> None:
    mine = tmp_path / "mine.csv"
    mine.write_text(f"{HEAD},cache,unit\nnfp-6000,LAT_DMA_RD,64,560,cold,ns\nnfp-6000,BW_DMA_WR,64,30,,Gb/s\n")
    result = nicety("specs", "score", "--rows", str(mine), "--json")
    assert result.status == 0
    report = json.loads(result.stdout)
    assert [row["published"] for row in report["rows"]] == [560, 30]
    assert report["counts"]["predicted"] == 2
    result = nicety("specs", "score", "nfp-6000", "--rows", str(mine), "--test", "BW_DMA_WR", "--all")
    assert result.status == 0
    assert "LAT_DMA_RD" not in result.stdout
    result = nicety("specs", "score", "nfp-4000", "--rows", str(mine))
    assert (result.status, result.stdout) == (2, "")
    assert "no row is of card nfp-4000" in result.stderr


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", "mine.csv: line 1: no column test; write test, size_bytes, published, card, pattern"),
        (f"{HEAD},colour\n", "mine.csv: line 1: no column is called 'colour'; "),
        (f"{HEAD},card\n", "mine.csv: line 1: a column appears twice; write it once"),
        (f"{HEAD}\n", "mine.csv: no row; write a line for each measurement"),
        (f"{HEAD}\nnfp-6000,LAT,8,1\n", "mine.csv: line 2: test is LAT_CMD_RD, "),
        (f"{HEAD}\nnfp-6000,LAT_DMA_RD,8\n", "mine.csv: line 2: the number of values differs"),
        (f"{HEAD}\nnfp-6000,LAT_DMA_RD,8,1,2\n", "mine.csv: line 2: the number of values differs"),
        (f"{HEAD}\nnfp-6000,LAT_DMA_RD,8,500\nnfp-6000,LAT_DMA_RD,-8,1\n", "mine.csv: line 3: size_bytes is a whole"),
        (
            f"{HEAD}\nnfp-6000,LAT_DMA_RD,8,nan\n",
            "mine.csv: line 2: published is a number of ns from 1e-06 to 1e+15, not 'nan'",
        ),
        (f"{HEAD}\nnfp-6000,LAT_DMA_RD,8,1e-320\n", "mine.csv: line 2: published is a number of ns from 1e-06"),
        (f"{HEAD}\nnfp-6000,LAT_DMA_RD,8,1_000\n", "mine.csv: line 2: published is a number of ns from 1e-06"),
        (f"{HEAD},unit\nnfp-6000,LAT_DMA_RD,8,1,us\n", "mine.csv: line 2: the unit of LAT_DMA_RD is ns, not 'us'"),
        (f"{HEAD}\n,LAT_DMA_RD,8,1\n", "mine.csv: line 2: no card; write the name or path of a spec"),
    ],
)
def test_wrong_rows_are_refused_by_line(text: str, error: str) -> None:
    with pytest.raises(nicety.InputError) as caught:
        read_rows(text, "mine.csv")
    assert str(caught.value).startswith(error)


def test_a_row_that_the_benchmark_refuses_has_its_line() -> None:
    with pytest.raises(nicety.InputError, match=r"^mine.csv: line 3: size_bytes 9000: with offset 0, a transfer"):
        score("mine", read_rows(f"{HEAD}\nnfp-6000,LAT_DMA_RD,64,1\nnfp-6000,LAT_DMA_RD,9000,1\n", "mine.csv"))


def test_a_ping_pong_of_a_card_with_several_modes_is_a_row() -> None:
    report = score("mine", read_rows(f"{HEAD}\nspin-discrete,LAT_PINGPONG,8,700\n", "mine.csv"))
    (row,) = nicety.run_benchmark("latency", nics=["spin-discrete"], modes=["rdma"], sizes=[8])["rows"]
    assert report["rows"][0]["model"] == row["latency_ns"]


@examples(100)
@given(st.lists(st.floats(0, 1e9), min_size=1, max_size=50), st.floats(0.01, 1))
def test_a_quantile_has_its_share_of_values_below(values: list[float], share: float) -> None:
    found = quantile(values, share)
    assert sum(value <= found for value in values) >= share * len(values)
    assert sum(value < found for value in values) < share * len(values)


names = st.sampled_from([*HEAD.split(","), "pattern", "cache", "kind", "unit", "source", "window_bytes"])
cells = st.text(st.characters(blacklist_categories=["Cs"]), max_size=8)


@examples(100)
@given(st.lists(st.lists(cells, max_size=8), max_size=4), st.lists(names, max_size=10))
def test_any_text_is_rows_or_an_input_error(lines: list[list[str]], head: list[str]) -> None:
    text = io.StringIO()
    csv.writer(text).writerows([head, *lines])
    refused = None
    try:
        rows = read_rows(text.getvalue(), "mine.csv")
    except nicety.InputError as error:
        refused = str(error)
    assert refused.startswith("mine.csv: ") if refused is not None else rows
