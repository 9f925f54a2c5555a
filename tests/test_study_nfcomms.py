"""The study of NFComms: the calibrated values are met, and deviations are explained."""

from __future__ import annotations

import re

import pytest

from nicety.apps.salesman import climb_lengths, solve_tsp
from nicety.errors import InputError
from nicety.studies import load_study
from nicety.studies.measure import calibrations, run_study
from nicety.studies.report import study_text, tables_html
from nicety.studies.study import Measured, StudyReport


@pytest.fixture(scope="module")
def measured() -> tuple[StudyReport, list[Measured]]:
    return run_study(load_study("nfcomms"), quick=True)


@pytest.fixture(scope="module")
def claims(measured: tuple[StudyReport, list[Measured]]) -> dict[str, dict]:
    return {finding["id"]: dict(finding) for finding in measured[0]["claims"]}


def test_calibrated_claims_come_out(claims: dict[str, dict]) -> None:
    calibrated = [finding for finding in claims.values() if finding["kind"] == "calibrated"]
    assert {finding["section"] for finding in calibrated} == {"Calibrated"}
    assert len(calibrated) == 5
    assert [finding["id"] for finding in calibrated if not finding["met"]] == []


def test_deviations_are_explained(claims: dict[str, dict]) -> None:
    off = {finding["id"] for finding in claims.values() if finding["met"] is False}
    # Nothing was fitted to these.
    assert {claims[name]["section"] for name in off} <= {"Bulk messages", "Cardinality"}
    assert all(name.startswith(("bulk", "pcsa")) for name in off)
    assert all(claims[name]["explanation"] and claims[name]["tried"] for name in off)


def test_changes_of_context_and_wake_ups_do_not_explain_eight_contexts(
    measured: tuple[StudyReport, list[Measured]],
) -> None:
    table = next(table for table in measured[0]["tables"] if "where one step takes less" in table["title"])
    rows = {name: list(map(int, cells)) for name, *cells in table["rows"][1:-1]}
    in_all, computing, changing = 4, 5, 7
    nothing, free = rows["nothing"], rows["hpu.cycles.switch=0"]
    assert free[changing] == 0
    assert nothing[in_all] - free[in_all] == nothing[changing]
    assert rows["hpu.cycles.signal=1"] == nothing
    # The others' way is instructions: it stays without changes and signals.
    assert free[computing] == nothing[computing]


def test_noise_of_the_host_makes_runs_vary(claims: dict[str, dict]) -> None:
    quiet, noisy = (each["value"] for each in claims["bulk-spread"]["tried"])
    assert noisy > 10 * quiet


def test_a_fixed_cost_of_a_message_makes_eight_processes_rise(claims: dict[str, dict]) -> None:
    short, long, short_fixed, long_fixed = (each["value"] for each in claims["bulk-rise"]["tried"])
    assert long < 1.01 * short
    assert long_fixed > 1.03 * short_fixed


def test_the_papers_future_work_is_shown(claims: dict[str, dict]) -> None:
    one, two, four = map(float, re.findall(r"([\d.]+) Mb/s", claims["future-cards"]["ours_text"]))
    assert one == pytest.approx(114.3, rel=0.02)
    assert 1.9 * one < two < four
    called, awaited = map(float, re.findall(r"([\d.]+) (?:us|to)", claims["future-calls"]["ours_text"]))
    # Library, system call and driver; awaiting a message that has passed is a system call.
    assert called == pytest.approx(0.05 + 0.06 + 5.4, abs=0.01)
    assert awaited < 0.5


def test_one_update_is_what_the_parts_make(claims: dict[str, dict]) -> None:
    ours = {name: claim["ours"] for name, claim in claims.items()}
    assert ours["pcsa-update"] == ours["pcsa-computing"] + ours["pcsa-asleep"]
    assert ours["pcsa-one"] == ours["pcsa-one-computing"] + ours["pcsa-one-asleep"]
    assert ours["pcsa-eight"] == ours["pcsa-eight-computing"] + ours["pcsa-eight-asleep"]
    assert 8 * ours["pcsa-update"] <= ours["pcsa-one"] < 8 * ours["pcsa-update"] + 137
    assert ours["pcsa-eight"] < 0.7 * ours["pcsa-one"]


def test_only_what_could_have_come_out_otherwise_is_predicted(claims: dict[str, dict]) -> None:
    # Sums of other claims, eightfold calibrated values, and sizes of a mailbox are consequences.
    predicted = {name for name, claim in claims.items() if claim["kind"] == "predicted"}
    assert not predicted & {"direct-sizes", "pcsa-update", "pcsa-one-asleep", "pcsa-one", "pcsa-each"}
    for gone in ("bulk-over-direct", "bulk-eight", "direct-one-channel", "tsp-optimum", "tsp-restarts", "tsp-memory"):
        assert gone not in claims, gone


def test_packets_come_over_the_port(measured: tuple[StudyReport, list[Measured]], claims: dict[str, dict]) -> None:
    assert claims["pcsa-wire"]["met"]
    (table,) = (table for table in measured[0]["tables"] if "replayed into the port" in table["title"])
    busy = [float(row[2]) for row in table["rows"][1:]]
    assert busy == sorted(busy)
    assert busy[0] < 50
    assert busy[-1] == 100


def test_calibrated_values_name_their_figures(measured: tuple[StudyReport, list[Measured]]) -> None:
    report = measured[0]
    assert report["calibrated"] == calibrations("nfp-4000")
    against = {value["against"].split(",")[0] for value in report["calibrated"]}
    for figure in ("14.66 us", "114.3 Mb/s", "75 cycles"):
        assert any(figure in each for each in against), figure
    text = study_text(report)
    assert all(value["key"] in text and value["key"] in tables_html(report) for value in report["calibrated"])
    # The cards of sPIN have none.
    assert calibrations("spin-discrete") == []


def test_extrapolated_times_say_so(measured: tuple[StudyReport, list[Measured]]) -> None:
    (tours,) = (table for table in measured[0]["tables"] if table["section"] == "Travelling salesman")
    _, *body = tours["rows"]
    kinds = {int(count): kind for count, *_, kind in body}
    assert [count for count, kind in kinds.items() if kind == "measured"] == [59]
    assert set(kinds.values()) == {"measured", "extrapolated"}
    lengths = [int(row[1]) for row in body]
    assert lengths == sorted(lengths, reverse=True)
    assert lengths[-1] >= 21282
    times = [float(row[3]) for row in body]
    assert times == sorted(times)


def test_a_climb_of_a_number_is_the_same_everywhere() -> None:
    lengths = climb_lengths("kroA100", restarts=7)
    assert climb_lengths("kroA100", restarts=3) == lengths[:3]
    assert climb_lengths("kroA100", restarts=7, seed=2) != lengths
    card = solve_tsp("kroA100", restarts=2, climbers=2)
    assert card["length"] == min(lengths[:2])
    with pytest.raises(InputError):
        climb_lengths("no such file", restarts=1)


def test_one_process_carries_as_much_both_ways(claims: dict[str, dict]) -> None:
    # The manager asks for the destination once a message, so that its question hardly counts in 20 MiB.
    to_card, to_host = claims["bulk-one-to-card"], claims["bulk-one-to-host"]
    assert to_card["ours"] == pytest.approx(to_host["ours"], rel=0.05)
    assert to_host["ours"] == pytest.approx(to_host["paper"], rel=0.01)


def test_bulk_throughput_is_shown_with_what_it_depends_on(measured: tuple[StudyReport, list[Measured]]) -> None:
    (changes,) = (table for table in measured[0]["tables"] if "is another" in table["title"])
    _, *body = changes["rows"]
    eight = {name: float(row[-2]) for name, *row in body}
    for value in ("memory.emem.width=4", "memory.emem.width=16", "bus.pcie.mrrs", "host.cores", "kernel.interrupt"):
        assert any(value in name for name in eight), value
    nothing, *others = eight.values()
    assert min(others) < 0.6 * nothing
    assert max(others) > 1.2 * nothing


def test_the_curves_are_whole(measured: tuple[StudyReport, list[Measured]]) -> None:
    report = next(found.data["channel-bandwidth"] for found in measured[1] if "channel-bandwidth" in found.data)
    points = {(row["processes"], row["direction"], row["size_bytes"]) for row in report["rows"]}
    assert len(points) == len(report["rows"]) == 2 * 2 * 4
    assert all(row["verified"] for row in report["rows"])
