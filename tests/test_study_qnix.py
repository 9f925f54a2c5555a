"""The study of QNIX: the calibrated values are met, and the others follow from its parts."""

from __future__ import annotations

import pytest

from nicety.studies import load_study
from nicety.studies.measure import run_study
from nicety.studies.report import study_text
from nicety.studies.study import Measured, StudyReport


@pytest.fixture(scope="module")
def measured() -> tuple[StudyReport, list[Measured]]:
    return run_study(load_study("qnix"), quick=True)


@pytest.fixture(scope="module")
def claims(measured: tuple[StudyReport, list[Measured]]) -> dict[str, dict]:
    return {finding["id"]: dict(finding) for finding in measured[0]["claims"]}


def test_calibrated_claims_come_out(claims: dict[str, dict]) -> None:
    calibrated = [finding for finding in claims.values() if finding["kind"] == "calibrated"]
    assert len(calibrated) == 5
    assert [finding["id"] for finding in calibrated if not finding["met"]] == []


def test_deviations_are_explained(claims: dict[str, dict]) -> None:
    off = {finding["id"] for finding in claims.values() if finding["met"] is False}
    assert off == {
        *("pio-dma", "copy-page", "translate-most", "crossover"),
        *("latency-parts", "latency", "bandwidth", "share"),
    }
    assert all(claims[name]["explanation"] and claims[name]["tried"] for name in off)


def test_one_set_up_does_not_make_a_short_dma_slow_and_a_doorbell_quick(
    measured: tuple[StudyReport, list[Measured]],
) -> None:
    """The chapter's doorbell leaves 745 ns for the set-up of a transfer; its limit of programmed I/O asks for 5 us."""
    table = next(table for table in measured[0]["tables"] if table["title"].startswith("A transfer's set-up"))
    rows = {name: (float(doorbell), int(limit.split()[0])) for name, doorbell, limit, *_ in table["rows"][1:]}
    ours, five = rows["16 and 58.5 cycles, as it is"], rows["5 us by the channel"]
    assert ours[0] == pytest.approx(1)
    assert ours[1] < 1024 < five[1] < 1100
    assert five[0] == pytest.approx(5.415, abs=0.01)


def test_only_what_could_have_come_out_otherwise_is_predicted(claims: dict[str, dict]) -> None:
    predicted = {finding["id"] for finding in claims.values() if finding["kind"] == "predicted"}
    assert predicted == {"bandwidth", "pio-dma"}


def test_copying_and_translating_cross_where_their_numbers_do(claims: dict[str, dict]) -> None:
    # A copy of n bytes takes n / 700 MB/s, and one page 1.5 us in the kernel and 1 for its descriptor.
    assert claims["crossover"]["ours"] == 1750
    assert claims["copy-page"]["ours"] == pytest.approx(4000 / 700, abs=1e-3)
    assert claims["copy-most"]["ours"] == pytest.approx(2_000_000 / 700, abs=1e-3)


def test_the_empty_message_is_compared_part_by_part(
    measured: tuple[StudyReport, list[Measured]], claims: dict[str, dict]
) -> None:
    table = next(table for table in measured[0]["tables"] if table["title"].startswith("An empty message"))
    rows = {name: (chapter, here) for name, chapter, here in table["rows"][1:]}
    steps = list(rows)[: list(rows).index("to the doorbell")]
    # 1 us to post, 0.5 for the header, 0.2 from card to card, 1 for the doorbell.
    assert [rows[name][0] for name in steps] == ["1000", "500", "200", "1000", "-", "-", "-"]
    assert [rows[name][1] for name in steps[:4]] == ["1000", "500", "200", "1000"]
    assert claims["latency-parts"]["ours"] == pytest.approx(2.7)
    rung = sum(float(rows[name][1]) for name in steps)
    assert rung == float(rows["to the doorbell"][1]) == pytest.approx(1000 * claims["latency"]["ours"])
    assert float(rows["In all"][1]) == rung + float(rows["noticing it"][1])


def test_the_control_programs_work_for_a_packet_costs_bandwidth(
    measured: tuple[StudyReport, list[Measured]], claims: dict[str, dict]
) -> None:
    table = next(table for table in measured[0]["tables"] if table["title"].startswith("Bandwidth by DMA"))
    names, *_, (_, *most) = table["rows"]
    period = {name: 4096 / float(rate) for name, rate in zip(names[1:], most, strict=True)}
    # 4128 bytes at 200 MB/s, and then a look that begins within three, and the header.
    assert 20.64 + 0.5 + 0.04 < period["as it is"] < 20.64 + 0.5 + 0.22
    assert period["in 1000"] - period["header in 0 cycles"] == pytest.approx(10, abs=0.2)
    assert claims["bandwidth"]["ours"] == pytest.approx(4096 / period["as it is"])


def test_calibrated_values_name_their_figures(measured: tuple[StudyReport, list[Measured]]) -> None:
    report = measured[0]
    assert {"dma.setup", "bus.pci.wait"} <= {value["key"] for value in report["calibrated"]}
    assert all(value["against"] and value["key"] in study_text(report) for value in report["calibrated"])
