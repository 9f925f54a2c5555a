"""The study of QNIX: what was calibrated comes out, and the rest is what its parts make."""

from __future__ import annotations

import pytest

from nicety.studies import load_study
from nicety.studies.report import study_text
from nicety.studies.study import Measured, StudyReport, run_study


@pytest.fixture(scope="module")
def measured() -> tuple[StudyReport, list[Measured]]:
    return run_study(load_study("qnix"), quick=True)


@pytest.fixture(scope="module")
def claims(measured: tuple[StudyReport, list[Measured]]) -> dict[str, dict]:
    return {finding["id"]: dict(finding) for finding in measured[0]["claims"]}


def test_what_was_calibrated_comes_out(claims: dict[str, dict]) -> None:
    calibrated = [finding for finding in claims.values() if finding["kind"] == "calibrated"]
    assert len(calibrated) == 6
    assert [finding["id"] for finding in calibrated if not finding["met"]] == []


def test_what_is_off_is_explained(claims: dict[str, dict]) -> None:
    off = {finding["id"] for finding in claims.values() if not finding["met"]}
    # Arithmetic in units of 1000 and 1024 bytes; nothing that was predicted.
    assert off <= {"copy-page", "copy-most", "translate-most"}
    assert all(claims[name]["explanation"] for name in off)


def test_copying_and_translating_cross_where_their_numbers_do(claims: dict[str, dict]) -> None:
    # A copy of n bytes takes n / 700 MB/s, and one page 1.5 us in the kernel and 1 for its descriptor.
    assert claims["crossover"]["ours"] == 1750
    assert claims["copy-page"]["ours"] == pytest.approx(4096 / 700, abs=1e-3)


def test_the_empty_message_is_the_sum_of_its_steps(measured: tuple[StudyReport, list[Measured]]) -> None:
    table = next(table for table in measured[0]["tables"] if table["title"].startswith("An empty message"))
    *steps, (name, whole) = table["rows"][1:]
    assert name == "In all"
    assert sum(float(time) for _, time in steps) == float(whole)


def test_calibrated_values_name_their_figures(measured: tuple[StudyReport, list[Measured]]) -> None:
    report = measured[0]
    assert {"dma.setup", "bus.pci.wait"} <= {value["key"] for value in report["calibrated"]}
    assert all(value["against"] and value["key"] in study_text(report) for value in report["calibrated"])
