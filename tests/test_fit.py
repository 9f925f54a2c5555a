"""Specs fitted to a user's rows (`nicety specs fit`), and scores of cards by claims (`nicety specs score`)."""

from __future__ import annotations

import csv
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest

import nicety as package
from nicety.shared.cards import show
from nicety.studies.score import solve
from nicety.studies.score.cards import USES, card_score, claims_of, known_cards, studies, use_of
from nicety.studies.score.cards_text import card_figure, card_text
from nicety.studies.score.fit import ENOUGH, fit, verdict
from nicety.studies.score.fit_text import fit_text, verdict_text
from nicety.studies.score.points import measured
from nicety.studies.score.rows import Published, read_rows
from nicety.studies.score.scoring import score, shipped_rows
from nicety.studies.score.solve import Key, Model
from nicety.studies.score.text import score_text

Command = Callable[..., Any]
HEAD = "test,size_bytes,published,fit"
LATENCY = "bus.pcie.read_latency"
LATENCY_TEST = "LAT_DMA_RD"


def rows(*lines: str, card: str = "nfp-6000") -> list[Published]:
    return read_rows("\n".join([HEAD, *lines]) + "\n", "mine.csv", card)


def figure(line: str, overrides: list[str], card: str = "nfp-6000") -> float:
    (row,) = rows(f"{line},1,", card=card)
    return measured([row], overrides=overrides)[row.card, row.point]


@pytest.mark.parametrize("value", ["90 ns", "300 ns"])
def test_a_key_is_found_again(value: str) -> None:
    """Rows that the model makes with a value give the value back, to the step of the card's timestamps."""
    there = figure("LAT_DMA_RD,8", [f"{LATENCY}={value}"])
    report = fit(rows(f"LAT_DMA_RD,8,{there},{LATENCY}"), "nfp-6000", "mine")
    (found,) = report["fitted"]
    assert found["deviation_percent"] == pytest.approx(0, abs=0.01)
    # A step is 13.3 ns: the middle of a step is at most half of one away.
    assert float(found["value"].split()[0]) == pytest.approx(float(value.removesuffix(" ns")), abs=7)
    assert found["before"] == "127.63 ns"


@pytest.mark.parametrize("value", [565, 575, 586, 587, 605, 620, 645, 655])
def test_a_value_between_two_steps_takes_the_nearer_one(value: int) -> None:
    """Latencies are steps of 13.3 ns, so a measurement is at most half of one from the nearest figure."""
    (found,) = fit(rows(f"LAT_DMA_RD,8,{value},{LATENCY}"), "nfp-6000", "mine")["fitted"]
    assert abs(found["model"] - value) <= 13.34 / 2 or abs(found["deviation_percent"]) < 0.9, found
    assert found["model"] == pytest.approx(figure("LAT_DMA_RD,8", [f"{LATENCY}={found['value']}"]))


def test_rows_between_steps_are_fitted_together() -> None:
    lines = [f"LAT_DMA_RD,8,586,{LATENCY}", "LAT_DMA_RD,2048,1190,bus.engines.read_move"]
    report = fit(rows(*lines), "nfp-6000", "mine")
    assert [abs(row["deviation_percent"]) < 1 for row in report["fitted"]] == [True, True]


def test_two_keys_are_found_together() -> None:
    wanted = [f"{LATENCY}=250 ns", "bus.engines.read_move=30 ns"]
    lines = [f"LAT_DMA_RD,{size},{figure(f'LAT_DMA_RD,{size}', wanted)}" for size in (8, 2048, 1024)]
    report = fit(rows(f"{lines[0]},{LATENCY}", f"{lines[1]},bus.engines.read_move", f"{lines[2]},"), "nfp-6000", "mine")
    values = {row["key"]: float(row["value"].split()[0]) for row in report["fitted"]}
    assert values[LATENCY] == pytest.approx(250, abs=14)
    assert values["bus.engines.read_move"] == pytest.approx(30, abs=1)
    assert report["rows"][0]["deviation_percent"] == pytest.approx(0, abs=1.5)


def test_a_pingpong_and_a_rate_identify_keys_of_an_ethernet_card() -> None:
    there = figure("LAT_PINGPONG,8", ["interrupts.time=11 us"], "ethernet-100g")
    report = fit(rows(f"LAT_PINGPONG,8,{there},interrupts.time", card="ethernet-100g"), "ethernet-100g", "mine")
    assert report["fitted"][0]["value"] == "11 us"
    assert figure("XDP_DROP,64", [], "ethernet-100g") > figure("XDP_DROP,64", ["host.xdp.frame=200"], "ethernet-100g")


def test_the_file_of_a_fit_is_a_spec(nicety: Command, tmp_path: Path) -> None:
    text = f"{HEAD}\nLAT_DMA_RD,8,586.7,{LATENCY}\nLAT_DMA_RD,64,600,\n"
    (tmp_path / "mine.csv").write_text(text)
    done = nicety("specs", "fit", "--rows", "mine.csv", "--from", "nfp-6000", "-o", "mine.toml", "--csv", "out.csv")
    assert (done.status, done.stderr) == (0, "nicety: mine.toml: extends nfp-6000; write --nic ./mine.toml\n")
    assert "too few rows for an interval: 1 predicted row, 10 needed; largest deviation 0.0 %" in done.stdout
    document = tomllib.loads((tmp_path / "mine.toml").read_text())
    value = document["bus"]["pcie"]["read_latency"]
    assert (document["extends"], value["kind"]) == ("nfp-6000", "calibrated")
    assert value["against"] == "586.7 ns, LAT_DMA_RD of 8 B, line 2"
    assert nicety("specs", "check", "mine.toml").stdout == "mine.toml: ok\n"
    scored = nicety("specs", "score", "./mine.toml", "--rows", "mine.csv", "--json").json()
    assert scored["counts"] == {"calibrated": 1, "seen": 0, "predicted": 1}
    # The file's model is the one that was fitted.
    report = nicety("specs", "fit", "--rows", "mine.csv", "--from", "nfp-6000", "--json").json()
    assert scored["rows"][0]["model"] == report["fitted"][0]["model"]
    assert scored["rows"][1]["model"] == report["rows"][0]["model"]
    assert (tmp_path / "out.csv").read_text().startswith("card,test,pattern")
    again = nicety("specs", "fit", "--rows", "mine.csv", "--from", "nfp-6000", "-o", "mine.toml")
    assert (again.status, again.stderr) == (2, "nicety: mine.toml: it is there already; name another file\n")


def test_a_table_has_fitted_rows_without_predicted_ones(nicety: Command, tmp_path: Path) -> None:
    (tmp_path / "mine.csv").write_text(f"{HEAD}\nLAT_DMA_RD,8,586,{LATENCY}\n")
    words = ["--rows", "mine.csv", "--from", "nfp-6000", "-o", "my card.toml", "--csv", "out.csv"]
    done = nicety("specs", "fit", *words)
    assert (done.status, done.stderr) == (0, "nicety: my card.toml: extends nfp-6000; write --nic './my card.toml'\n")
    assert "# mine.csv: 1 row fitted, 0 predicted" in done.stdout
    (row,) = csv.DictReader((tmp_path / "out.csv").read_text().splitlines())
    assert (row["kind"], row["pattern"], row["key"], row["value"]) == ("calibrated", "seq", LATENCY, "166.86 ns")
    assert float(row["model"]) == pytest.approx(586.67, abs=0.01)
    scored = nicety("specs", "score", "./my card.toml", "--rows", "mine.csv")
    assert "# 1 row calibrated, 0 seen before, 0 predicted" in scored.stdout


@pytest.mark.parametrize(
    ("lines", "error"),
    [
        (["LAT_DMA_RD,8,587,"], "mine.csv: no row names a key in the column fit"),
        (["LAT_DMA_RD,8,587,bus.pcie.read"], "mine.csv: line 2: nfp-6000 has no key 'bus.pcie.read'"),
        (["LAT_DMA_RD,8,587,bus.kind"], "mine.csv: line 2: bus.kind is no number but 'pcie'"),
        (
            ["LAT_DMA_RD,8,587,bus.engines.read"],
            "mine.csv: line 2: LAT_DMA_RD does not identify bus.engines.read: from",
        ),
        (["LAT_DMA_RD,8,300,bus.pcie.read_latency"], "mine.csv: line 2: bus.pcie.read_latency from 0 ns to"),
        (
            [f"LAT_DMA_RD,8,587,{LATENCY}", f"LAT_DMA_RD,64,600,{LATENCY}"],
            "mine.csv: line 3: bus.pcie.read_latency is fitted to line 2 already",
        ),
        (
            [f"LAT_DMA_RD,8,587,{LATENCY}", "LAT_DMA_RD,64,600,bus.latency"],
            "mine.csv: lines 2 and 3: bus.pcie.read_latency and bus.latency move both rows alike",
        ),
    ],
)
def test_fits_without_meaning_are_refused(lines: list[str], error: str) -> None:
    with pytest.raises(package.InputError) as caught:
        fit(rows(*lines), "nfp-6000", "mine", place="mine.csv")
    assert str(caught.value).startswith(error)
    assert "\n" not in str(caught.value)


def test_rows_of_another_card_are_refused(nicety: Command, tmp_path: Path) -> None:
    (tmp_path / "mine.csv").write_text(f"card,{HEAD}\nqnix,LAT_DMA_RD,8,587,{LATENCY}\n")
    done = nicety("specs", "fit", "--rows", "mine.csv", "--from", "nfp-6000")
    assert (done.status, done.stdout) == (2, "")
    assert done.stderr.startswith("nicety: mine.csv: line 2: the row is of qnix, and the spec of nfp-6000 is fitted")
    (tmp_path / "mine.csv").write_text(f"kind,{HEAD}\nseen,LAT_DMA_RD,8,587,{LATENCY}\n")
    done = nicety("specs", "fit", "--rows", "mine.csv", "--from", "nfp-6000")
    assert done.stderr.startswith("nicety: mine.csv: line 2: a row that a key is fitted to is calibrated, not seen")


@pytest.mark.parametrize(("size", "cpus", "words"), [(60, 1, "size_bytes of XDP_DROP is 64"), (64, 0, "cpus of XDP")])
def test_rates_outside_the_frames_of_ethernet_are_refused(size: int, cpus: int, words: str) -> None:
    text = f"test,size_bytes,cpus,published\nXDP_DROP,{size},{cpus},20\n"
    with pytest.raises(package.InputError, match=f"line 2: {words}"):
        measured(read_rows(text, "mine.csv", "ethernet-100g"))


class Steps(Model):
    """A model with one row, which moves in steps of 10 at multiples of 4 of its key."""

    def figure(self, row: Published, changed: Any = None) -> float:
        number = {**self.values, **(changed or {})}[row.fit]
        return 100 + 10 * (number // 4)


def test_the_middle_of_a_step_is_the_value() -> None:
    (row,) = rows("LAT_DMA_RD,8,120,k")
    key = Key("k", 5.0, "ns", whole=False, quantity="time")
    model = Steps({"k": key}, {"k": 5.0})
    number, low, high = solve.plateau(model, row, 4.0, 16.0)
    assert (number, low, high) == (pytest.approx(10, abs=0.01), pytest.approx(8, abs=0.01), pytest.approx(12, abs=0.01))
    (between,) = rows("LAT_DMA_RD,8,124,k")
    number, *_ = solve.plateau(model, between, 4.0, 16.0)
    assert model.figure(between, {"k": number}) == 120
    assert number == pytest.approx(10, abs=0.01)
    # A value nearer to the upper step takes that one, also where the search ends below the step.
    (above,) = rows("LAT_DMA_RD,8,126,k")
    number, *_ = solve.plateau(model, above, 4.0, 16.0)
    assert model.figure(above, {"k": number}) == 130
    whole = Key("k", 5.0, "", whole=True, quantity="count")
    number, *_ = solve.plateau(Steps({"k": whole}, {"k": 5.0}), row, 4.0, 16.0)
    assert number in {9, 10}


def test_a_verdict_by_hand() -> None:
    # Deviations of 1 to 10 %: 90 % of them are at most 9 %.
    found = verdict([number * (-1) ** number for number in range(1, 11)])
    assert (found["p90_percent"], found["median_percent"], found["largest_percent"]) == (9, 5, 10)
    assert (found["low"], found["high"]) == (pytest.approx(1 / 1.09), pytest.approx(1 / 0.91))
    assert "interval of a figure: 91.7 % to 109.9 % of the model's" in verdict_text(found)
    wide = verdict([150.0] * ENOUGH)
    assert "high" not in wide
    assert "40.0 % to any value of the model's" in verdict_text(wide)
    assert "p90_percent" not in verdict([1.0] * (ENOUGH - 1))
    assert verdict_text(verdict([])).startswith("no row is predicted")


def test_text_of_a_fit() -> None:
    report = fit(rows(f"LAT_DMA_RD,8,586.7,{LATENCY}", "LAT_DMA_RD,64,600,"), "nfp-6000", "mine")
    text = fit_text(report)
    assert "# fitted rows" in text
    assert "LAT_DMA_RD     8  586.7 ns" in text
    assert report["fitted"][0]["effect_percent"] > 10


@pytest.fixture(scope="module")
def scored() -> Any:
    return card_score("apenet-v5", quick=True, sections=["Parts"])


def test_a_score_has_the_claims_of_a_card(scored: Any) -> None:
    assert [row["claim"] for row in scored["rows"]] == [
        *("transmit-peak", "receive-peak", "link", "errors-optical", "errors-copper", "tlb-hit", "tlb-miss")
    ]
    uses = {row["claim"]: row["use"] for row in scored["rows"]}
    assert (uses["transmit-peak"], uses["receive-peak"], uses["link"]) == ("calibrated", "consequence", "input")
    assert scored["predicted"] == {"rows": 0, "without_number": 0, "met_without_number": 0}
    assert {each["key"] for each in scored["calibrated"]} >= {"dma.setup"}
    text = card_text(scored)
    assert "# met: equal to the published number at its precision," in text
    assert "# rows by use: 5 input, 1 calibrated, 1 consequence, 0 seen, 0 predicted" in text
    assert "table of bit error rates" in text
    assert card_figure(scored).axes[0].get_xlabel().startswith("Deviation")


def test_every_card_with_claims_is_known() -> None:
    known = known_cards()
    assert set(known) == {
        *("spin-discrete", "spin-integrated", "nfp-4000", "qnix", "apenet-v5", "apenet-v4", "niagara2-neptune"),
        *("niagara2-niu", "pspin", "ethernet-100g", "hxdp-sume", "nfp-6000", "nfp-6000-bdw-e5-2630v4"),
        *("nfp-6000-hsw-e5-2637v3", "nfp-6000-hsw-e3-1226v3", "bluefield3-dpa"),
    }
    for card in known[:-5]:
        own = [claim for study in studies() for claim in claims_of(study, card)]
        assert own, card
        assert {use_of(claim) for claim in own} <= set(USES)


@pytest.mark.parametrize("study", [study.name for study in studies()])
def test_a_seen_row_names_a_key_or_a_change(study: str) -> None:
    (found,) = [each for each in studies() if each.name == study]
    for claim in found.paper.claims:
        if claim.seen and "." in claim.seen.split(",")[0]:
            key = claim.seen.split(",")[0].split()[0]
            present = {each["key"] for card in claim.cards for each in show(card)["parameters"]}
            # A key that was removed is named as such.
            assert key in present or "gave way" in claim.seen, claim.id


def test_scores_of_other_cards_are_refused(nicety: Command) -> None:
    done = nicety("specs", "score", "xeon-oplin")
    assert (done.status, done.stdout) == (2, "")
    assert done.stderr.startswith("nicety: xeon-oplin: it has no published measurement; name spin-discrete, ")
    done = nicety("specs", "score", "pspn")
    assert "did you mean pspin?" in done.stderr
    done = nicety("specs", "score", "qnix", "--test", "LAT_DMA_RD")
    assert done.stderr.startswith("nicety: --test LAT_DMA_RD: the published rows of qnix are claims of studies")
    done = nicety("specs", "score", "nfp-6000", "--quick")
    assert done.stderr.startswith("nicety: --quick: rows of benchmarks are measured in full")


def test_a_baseline_is_explained_where_there_is_one() -> None:
    usual = (LATENCY_TEST, "seq", "hwarm", 8192, 0, 0)
    rows = [
        row
        for row in shipped_rows("nfp-6000")
        if (row.test, row.pattern, row.cache, row.window, row.host_offset, row.card_offset) == usual
    ]
    report = score("nfp-6000", rows)
    assert "baseline, its 90 %: the same two of a simple guess" in score_text(report)
    group = {name: value for name, value in report["groups"][0].items() if not name.startswith("baseline")}
    text = score_text(cast(Any, {**report, "groups": [group]}))
    assert "simple guess" not in text
