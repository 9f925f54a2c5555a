"""The study of APEnet+: the calibrated values are met, and the others follow from its parts."""

from __future__ import annotations

import json
import re

import pytest

from nicety.studies import load_study
from nicety.studies.measure import run_study
from nicety.studies.study import Measured, StudyReport


@pytest.fixture(scope="module")
def measured() -> tuple[StudyReport, list[Measured]]:
    return run_study(load_study("apenet"), quick=True)


@pytest.fixture(scope="module")
def claims(measured: tuple[StudyReport, list[Measured]]) -> dict[str, dict]:
    return {finding["id"]: dict(finding) for finding in measured[0]["claims"]}


def test_numbers_that_went_in_come_out(claims: dict[str, dict]) -> None:
    went_in = [finding for finding in claims.values() if finding["kind"] in {"input", "calibrated", "consequence"}]
    assert len(went_in) > 6
    assert [finding["id"] for finding in went_in if finding["met"] is False] == ["receive-peak"]
    # The links of two axes of one torus, with a bit error rate each.
    axes = re.search(r"x ([\d.]+), y ([\d.]+) in 10\^14", json.dumps(claims["media"]))
    assert axes is not None
    assert [pytest.approx(float(found), rel=0.2) for found in axes.groups()] == [2.36, 11.0]


def test_deviations_are_explained(claims: dict[str, dict]) -> None:
    off = {finding["id"] for finding in claims.values() if finding["met"] is False}
    assert off == {"receive-peak"}
    assert all(claims[name]["explanation"] and claims[name]["tried"] for name in off)


def test_completions_of_packets_make_the_receive_side_the_limit(
    measured: tuple[StudyReport, list[Measured]],
) -> None:
    table = next(table for table in measured[0]["tables"] if "by completions" in table["title"])
    (_, *ways), *rows = table["rows"]
    rates = {name: dict(zip(ways, map(float, found), strict=True)) for name, *found in rows}
    received = rates["of each received packet, of each sent message"]
    assert received["two nodes"] < 0.95 * received["flushed"]
    # A page's lookup, set-up, write and the set-up for its completion, on two engines.
    assert received["two nodes"] == pytest.approx(2 * 4.096 / (0.124 + 0.598 + 0.58 + 0.598), rel=0.02)
    for other in ("of each message", "by no engine"):
        assert rates[other]["two nodes"] > 0.99 * rates[other]["flushed"]
    # With completions of pages on both sides, calibrated to the same peak, the transmit side is the limit again.
    both = rates["that, the set-up calibrated for it"]
    assert both["flushed"] == pytest.approx(4.8, abs=0.05)
    assert both["two nodes"] > 0.99 * both["flushed"]


def test_bandwidth_falls_where_the_pages_of_a_message_exceed_the_tlb(
    measured: tuple[StudyReport, list[Measured]],
) -> None:
    table = next(table for table in measured[0]["tables"] if "host pages" in table["title"])
    names, *rows = table["rows"]
    rates = {row[0]: dict(zip(names[1:], map(float, row[1:]), strict=True)) for row in rows}
    assert rates["2 MiB"]["v5"] < 0.55 * rates["1 MiB"]["v5"]
    assert rates["512 KiB"]["v4"] < 0.7 * rates["256 KiB"]["v4"]
    # Beyond it every page waits for the embedded processor, which translates one at a time: 4096 B in 1.9 us.
    assert rates["4 MiB"]["v5"] == pytest.approx(4.096 / 1.9, abs=0.01)


def test_only_what_could_have_come_out_otherwise_is_predicted(claims: dict[str, dict]) -> None:
    judged = {name for name, claim in claims.items() if claim["kind"] == "predicted" and claim["test"] != "shown"}
    assert judged == {"two-receive", "flat"}
