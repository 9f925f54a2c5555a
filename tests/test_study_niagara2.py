"""The study of Niagara 2: what was calibrated comes out, and the other card differs by its place alone."""

from __future__ import annotations

import pytest

from nicety.studies import load_study
from nicety.studies.measure import run_study
from nicety.studies.study import StudyReport


@pytest.fixture(scope="module")
def report() -> StudyReport:
    return run_study(load_study("niagara2"), quick=True, only=["Receive", "Latency"])[0]


@pytest.fixture(scope="module")
def claims(report: StudyReport) -> dict[str, dict]:
    return {finding["id"]: dict(finding) for finding in report["claims"]}


def test_the_discrete_card_has_what_it_was_calibrated_to(claims: dict[str, dict]) -> None:
    calibrated = [finding for finding in claims.values() if finding["kind"] == "calibrated"]
    assert {finding["id"] for finding in calibrated} == {"packet-discrete", "driver-discrete", "instructions"}
    assert [finding["id"] for finding in calibrated if not finding["met"]] == []


def test_nothing_of_the_integrated_card_is_calibrated(claims: dict[str, dict], report: StudyReport) -> None:
    predicted = {name for name, finding in claims.items() if finding["kind"] == "predicted"}
    assert {name for name in claims if name.endswith("-integrated")} < predicted
    assert report["calibrated"]
    assert all("discrete card" in each["against"] for each in report["calibrated"])


def test_deviations_are_explained(claims: dict[str, dict]) -> None:
    off = {name for name, finding in claims.items() if finding["met"] is False}
    # The saving comes out smaller than measured; see docs/studies/niagara2.md.
    assert {"packet-integrated", "driver-integrated", "handler", "switches", "latency"} <= off
    assert all(claims[name]["explanation"] for name in off)


def test_the_place_of_the_card_shows_in_latency_and_handler(claims: dict[str, dict]) -> None:
    assert claims["handler"]["ours"] > 1
    assert 0 < claims["latency"]["ours"] < 6


def test_groups_add_up(report: StudyReport) -> None:
    table = next(table for table in report["tables"] if table["title"] == "CPU time a packet (us)")
    for column in (1, 2):
        *groups, whole = [float(row[column]) for row in table["rows"][1:]]
        assert sum(groups) == pytest.approx(whole, abs=0.05)
