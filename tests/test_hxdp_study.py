"""The study of hXDP: rows of the score, published bytecode in a folder, and rates of the server beside the card."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conftest import Result
from nicety import InputError, _native
from nicety.studies.claims import Claim, Ours, judge
from nicety.studies.score.cards import CardScore
from nicety.studies.score.cards_text import card_text
from nicety.studies.xdp.hxdp.card import CARD, DUMPS, TABLE, dumped
from nicety.studies.xdp.hxdp.server import server_rate
from sizes import examples

FOLDER = os.environ.get(DUMPS)
PAGE = Path(__file__).parent.parent / "docs" / "cards" / "hxdp-sume.md"
_ROW = re.compile(r"^\| (`?[\w ,]+`?(?:, \w.*)?) \| (?:section|table) [0-9.]+ \| [0-9.]+ \| ([0-9.]+) \|", re.MULTILINE)
DROP = "0: b7 00 00 00 01 00 00 00\tr0 = 1\n1: 95 00 00 00 00 00 00 00\texit\n"
"""A program that drops each frame, in two instructions and a row."""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in TABLE:
        (tmp_path / name).write_text(DROP)
    monkeypatch.setenv(DUMPS, str(tmp_path))
    return tmp_path


def test_the_score_has_rows_that_are_measured_and_rows_that_are_not(
    nicety: Callable[..., Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(DUMPS, raising=False)
    report = nicety("specs", "score", CARD, "--json").json()
    rows = {row["claim"]: row for row in report["rows"]}
    assert {name: rows[name]["use"] for name in ("drop", "tx", "firewall")} == {
        "drop": "calibrated",
        "tx": "calibrated",
        "firewall": "predicted",
    }
    assert rows["drop"]["met"] is True
    assert rows["firewall"]["deviation_percent"] < 0
    # The published programs are not shipped.
    assert set(TABLE.values()) < {name for name, row in rows.items() if row["met"] is None}
    assert rows["katran"]["model"] is None
    assert rows["katran"]["published"] == 2.62
    assert (report["predicted"]["rows"], report["predicted"]["without_number"]) == (1, 0)


def test_the_text_of_a_score_says_which_rows_are_not_measured() -> None:
    made: dict[str, Any] = {"study": "hxdp", "title": "a", "use": "predicted", "seen": "", "unit": "", "source": "p"}
    row = {**made, "published_text": "2", "model_text": "not measured: b", "met": None, "reason": "c names the folder"}
    none = {"rows": 0, "without_number": 0, "met_without_number": 0}
    counts = {"input": 0, "calibrated": 0, "consequence": 0, "seen": 0, "predicted": 1}
    report = {"name": "n", "version": "1", "quick": False, "counts": counts, "predicted": none, "seen": none}
    text = card_text(cast(CardScore, {**report, "calibrated": [], "rows": [row]}))
    assert "0 seen, 1 predicted; 1 of them not measured\n" in text
    assert "\na              2          not measured: b  -          predicted  -\n" in text
    assert text.endswith("\n# not measured: c names the folder\n")


@pytest.mark.usefixtures("folder")
def test_a_folder_of_bytecode_gives_its_rows(nicety: Callable[..., Result]) -> None:
    text = nicety("reproduce", "hxdp", "--only", "Instructions per row").stdout
    assert "not measured" not in text
    # Two instructions in a row.
    assert re.search(r"^Katran +2.62 +2 +-23.7% +predicted", text, re.MULTILINE)
    found = dumped()
    assert found["katran"] == {"slots": 2, "rows": 1, "rows_by_registers": 1, "slots_per_row": 2.0, "pps": None}
    assert found["nec_udp_firewall"]["pps"] == pytest.approx(156.25e6 / 7)


def test_a_missing_or_wrong_dump_is_named(folder: Path) -> None:
    (folder / "katran").write_text("nothing")
    with pytest.raises(InputError, match="dump katran: it has no instruction; write the output of llvm-objdump"):
        dumped()
    (folder / "xdp1").unlink()
    with pytest.raises(InputError, match=rf"^{DUMPS}: .*xdp1: cannot read it .*; name parallelizer/xdp_prog_dump"):
        dumped()


@examples(200)
@given(st.one_of(st.text(max_size=200), st.from_regex(r"(\d{1,3}: ([0-9a-f]{2} ){8,16}\n){1,6}", fullmatch=True)))
def test_any_text_is_a_program_or_an_input_error(text: str) -> None:
    refused = ""
    try:
        found = json.loads(_native.xdp_dump_rows("any", text, CARD) or "{}")
    except InputError as error:
        refused = str(error)
    assert "\n" not in refused if refused else found["slots"] > 0
    assert _native.xdp_dump_rows("any", text, "ethernet-100g") is None


def test_a_claim_with_a_number_may_be_unmeasured() -> None:
    claim = Claim("a", "s", "t", "says", "predicted", "equals", paper=2.5, unit="Mpps", printed=0.1)
    found = judge(claim, Ours(None, "not measured: no program"))
    assert (found["met"], found["deviation"], found["paper_text"]) == (None, None, "2.5 Mpps")
    with pytest.raises(ValueError, match="none of ours"):
        judge(claim, Ours(None))


def test_the_server_is_slower_with_a_slower_clock() -> None:
    fast, slow = server_rate("drop"), server_rate("drop", overrides=["host.clock=2.1 GHz"])
    assert slow / fast == pytest.approx(2.1 / 3.7, rel=0.01)


@pytest.mark.soak
@pytest.mark.skipif(FOLDER is None, reason=f"{DUMPS} names no folder with the paper's bytecode")
def test_the_page_has_the_figures_of_the_published_bytecode() -> None:
    found = dumped()
    rates = [found["nec_udp_firewall"]["pps"] / 1e6, *(each["slots_per_row"] for each in found.values())]
    rows = [float(here) for _, here in _ROW.findall(PAGE.read_text(encoding="utf-8"))]
    assert rows == [round(rate, 2) for rate in rates]
