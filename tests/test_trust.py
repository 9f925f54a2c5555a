"""The page with the deviations of all cards is that of the studies' and the cards' pages."""

from __future__ import annotations

import pytest

from nicety.shared.cards import card_names
from nicety.studies.score.cards import known_cards
from studies import Row
from trust import PAGE, Judged, deviations, judged, scored, section, summary, worst, written

ROW = Row("S", "c", "10 us", "11 us", "+10.0%", "predicted", "no", "slow; `nicety bench latency`: 11 us")


def test_the_page_has_the_tables_of_the_pages() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert written(page) == page, "write it by tests/trust.py"


def test_every_card_has_a_row_and_a_section() -> None:
    lines = summary().splitlines()[2:]
    assert [line.split("[")[1].split("]")[0] for line in lines] == card_names()
    page = PAGE.read_text(encoding="utf-8")
    assert [name for name in card_names() if f"\n### {name}\n" not in page] == []


def test_cards_with_measurements_have_rows() -> None:
    found = judged()
    assert set(scored()) == {name for name in card_names() if name.startswith("nfp-6000")}
    with_rows = {name for name, own in found.items() if own}
    # A card may have inputs and consequences alone.
    assert with_rows <= set(known_cards())
    assert set(known_cards()) - with_rows == {"apenet-v4", "bluefield3-dpa"}


@pytest.mark.parametrize(
    ("text", "deviation"), [("-", None), ("none", 0.0), ("+10.0%", 10.0), ("-83.6%", -83.6), ("-9.3 points", -9.3)]
)
def test_deviations_are_read_from_reports(text: str, deviation: float | None) -> None:
    assert Judged("s", Row("S", "c", "p", "o", text, "predicted", "no")).deviation == deviation


def test_deviations_by_hand() -> None:
    def each(deviation: str, kind: str = "predicted", met: str = "no") -> Judged:
        return Judged("s", Row("S", "c", "p", "o", deviation, kind, met))

    own = [each("+1.0%"), each("-3.0%"), each("+2.0 points"), each("-", met="yes"), each("-"), each("+9.0%", "seen")]
    assert deviations(own, "predicted") == ["3", "2.0", "3.0", "1 of 2"]
    assert deviations(own, "seen") == ["1", "9.0", "9.0", "-"]
    assert deviations([], "seen") == ["0", "-", "-", "-"]


def test_the_worst_rows_have_their_reasons() -> None:
    assert worst([Judged("s", ROW)]) == ["| c | predicted | 10 us | 11 us | +10.0% | slow |"]
    assert "No measurement of this card" in section("spin-100g", [])
