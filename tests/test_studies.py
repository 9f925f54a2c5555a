"""Studies: the judgement of claims, and that the sPIN paper's are met."""

from __future__ import annotations

from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import nicety as package
from nicety.shared.cards import card_names
from nicety.studies import STUDIES, load_study
from nicety.studies.claims import KINDS, Claim, Ours, Paper, deviation_text, judge, shown_kind
from nicety.studies.measure import run_study
from nicety.studies.report import study_text, summary, write_report
from nicety.studies.study import Measured, Options, Section, Study, StudyReport


def claim(**more: object) -> Claim:
    usual = {"id": "a", "section": "S", "title": "T", "says": "s", "kind": "predicted", "test": "equals", "paper": 50.0}
    return Claim(**{**usual, **more})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("more", "ours", "met", "deviation"),
    [
        ({}, 50.0, True, "none"),
        ({}, 50 * (1 + 1e-12), True, "none"),
        ({}, 51.0, False, "+2.0%"),
        ({}, 49.0, False, "-2.0%"),
        ({"printed": 1.0}, 50.9, True, "+1.8%"),
        ({"printed": 1.0}, 51.0, False, "+2.0%"),
        ({"unit": "%"}, 57.5, False, "+7.5 points"),
        ({"test": "at most"}, 50.0, True, "-"),
        ({"test": "at most"}, 50.1, False, "-"),
        ({"test": "at least"}, 49.9, False, "-"),
        ({"test": "at least"}, 60.0, True, "-"),
        ({"test": "holds", "paper": None}, True, True, "-"),
        ({"test": "holds", "paper": None}, False, False, "-"),
        ({"test": "shown", "paper": None}, None, None, "-"),
    ],
)
def test_claims_are_judged(more: dict, ours: float | None, met: bool | None, deviation: str) -> None:
    finding = judge(claim(**more), Ours(ours, why="because"))
    assert finding["met"] is met
    assert deviation_text(finding) == deviation
    # A claim that is met needs no explanation, unless it is a consequence; every other one has one.
    assert (finding["explanation"] == "because") is not (met and deviation in {"none", "-"})
    consequence = judge(claim(**more, kind="consequence"), Ours(ours, why="because"))
    assert consequence["explanation"] == "because"


@given(st.floats(1, 1e4), st.floats(1, 1e4), st.floats(0, 10))
def test_a_deviation_leads_back_to_ours(paper: float, ours: float, printed: float) -> None:
    finding = judge(claim(paper=paper, printed=printed), Ours(ours))
    assert finding["deviation"] is not None
    assert paper * (1 + finding["deviation"]) == pytest.approx(ours)


def test_a_claim_has_to_make_sense() -> None:
    with pytest.raises(ValueError, match="compares"):
        claim(paper=None)
    with pytest.raises(ValueError, match="compares"):
        claim(test="holds")
    with pytest.raises(ValueError, match="compares"):
        claim(test="shown")
    with pytest.raises(ValueError, match="none of ours"):
        judge(claim(), Ours(None))
    with pytest.raises(ValueError, match="kind"):
        claim(kind="hoped")
    with pytest.raises(ValueError, match="only a prediction"):
        claim(kind="calibrated", seen="x moved")


def test_a_prediction_that_was_seen_is_counted_apart() -> None:
    found = judge(claim(seen="bus.latency moved"), Ours(50.0))
    assert (found["kind"], found["seen"], shown_kind(found)) == ("predicted", "bus.latency moved", "seen")
    assert summary([judge(claim(), Ours(60.0)), found]) == "0 of 1 predictions are met; 1 of 1 seen predictions are met"


def test_every_claim_is_measured_and_nothing_else() -> None:
    paper = Paper("P", "s", (claim(), claim(id="b")))

    def study(*measured: str) -> Study:
        return Study("x", paper, [Section("S", lambda _: Measured({name: Ours(50.0) for name in measured}))])

    seen: list[tuple[int, int, str]] = []
    report, _ = run_study(study("a", "b"), progress=lambda *at: seen.append(at))
    assert [finding["met"] for finding in report["claims"]] == [True, True]
    assert seen == [(0, 1, "S"), (1, 1, "done")]
    for wrong in (["a"], ["a", "b", "c"]):
        with pytest.raises(ValueError, match="claimed or measured only"):
            run_study(study(*wrong))


def test_met_claims_are_counted_by_kind() -> None:
    """A number that went into the card is no prediction, and a claim without a number in the source is not judged."""
    findings = [
        judge(claim(id="a"), Ours(50.0)),
        judge(claim(id="b"), Ours(60.0)),
        judge(claim(id="c", kind="input"), Ours(50.0)),
        judge(claim(id="d", kind="calibrated"), Ours(51.0)),
        judge(claim(id="e", kind="consequence"), Ours(50.0)),
        judge(claim(id="f", test="shown", paper=None), Ours(None, "1.5 GB/s")),
    ]
    counted = (
        "1 of 2 predictions are met; 2 of 3 input numbers and their consequences are reproduced; 1 claim is only shown"
    )
    assert summary(findings) == counted
    assert summary(findings[:1]) == "1 of 1 predictions are met"
    assert (findings[5]["paper_text"], findings[5]["ours_text"]) == ("no number", "1.5 GB/s")
    unmeasured = judge(claim(id="g", test="shown", paper=None), Ours(None, "not measured: no trace"))
    kinds = ["predicted", "predicted", "input", "calibrated", "consequence", "shown", "not measured"]
    assert [shown_kind(finding) for finding in (*findings, unmeasured)] == kinds


def test_sections_are_chosen_by_name() -> None:
    paper = Paper("P", "s", tuple(claim(id=name, section=name) for name in ("One", "Two", "Three")))
    study = Study(
        "x", paper, [Section(name, lambda _, n=name: Measured({n: Ours(50.0)})) for name in ("One", "Two", "Three")]
    )
    seen: list[tuple[int, int, str]] = []
    report, _ = run_study(study, only=["three", "One"], progress=lambda *at: seen.append(at))
    assert [finding["section"] for finding in report["claims"]] == report["only"] == ["One", "Three"]
    assert seen == [(0, 2, "One"), (1, 2, "Three"), (2, 2, "done")]
    # Each paragraph but the first is one of the whole report's, in order.
    (head, *some), (_, one, two, three) = (
        study_text(each).strip().split("\n\n") for each in (report, run_study(study)[0])
    )
    assert ", only One, Three; 2 of 2 predictions are met" in head
    assert some == [one, three]
    assert "# Two" in two
    assert run_study(study)[0]["only"] == []
    with pytest.raises(package.InputError, match=r"no section 'Tow'; it has One, Two, Three; did you mean Two\?"):
        run_study(study, only=["Tow"])


@pytest.mark.parametrize("name", STUDIES)
def test_a_study_is_whole(name: str) -> None:
    study = load_study(name)
    assert study.name == name
    sections = [section.name for section in study.sections]
    assert len(set(sections)) == len(sections)
    assert {claim.section for claim in study.paper.claims} == set(sections)
    assert {claim.kind for claim in study.paper.claims} >= {"predicted", "calibrated" if study.cards else "input"}
    assert all(claim.cards and set(claim.cards) <= set(card_names()) for claim in study.paper.claims)
    assert {claim.kind for claim in study.paper.claims} <= set(KINDS)
    assert all(claim.says.endswith(".") for claim in study.paper.claims)


@pytest.fixture(scope="module")
def measured() -> tuple[StudyReport, list[Measured]]:
    return run_study(load_study("spin"), quick=True)


@pytest.fixture(scope="module")
def spin(measured: tuple[StudyReport, list[Measured]]) -> dict[str, dict]:
    return {finding["id"]: dict(finding) for finding in measured[0]["claims"]}


def test_inputs_of_the_cards_come_out(spin: dict[str, dict]) -> None:
    inputs = [finding for finding in spin.values() if finding["kind"] == "input"]
    assert len(inputs) == 11
    assert all(finding["met"] and finding["deviation"] == 0 for finding in inputs)


def test_consequences_to_the_byte_and_to_the_cycle(spin: dict[str, dict]) -> None:
    assert spin["break-even"]["ours"] == 335
    # The last whole cycles of 0.4 ns within 8 x 6.7 ns and 8 x 81.92 ns.
    assert spin["any-size"]["ours"] == pytest.approx(53.6)
    assert spin["full-packets"]["ours"] == pytest.approx(655.2)
    assert all(spin[name]["met"] for name in ("break-even", "any-size", "full-packets"))


def test_deviations_are_shown_and_explained(spin: dict[str, dict]) -> None:
    off = {name for name, finding in spin.items() if finding["met"] is False}
    assert off == {"broadcast-rdma", "broadcast-portals4", "storage", "memory"}
    assert all(spin[name]["explanation"] and spin[name]["tried"] for name in off)
    met = {name for name, finding in spin.items() if finding["kind"] == "predicted" and finding["met"]}
    assert met == {"store-single", "store-multi"}


def test_a_mini_application_ends_alike_by_host_and_card(measured: tuple[StudyReport, list[Measured]]) -> None:
    table = next(table for table in measured[0]["tables"] if table["title"].startswith("A mini-application"))
    assert "none of the paper's applications" in table["note"]
    for _, host, card, *_ in table["rows"][1:]:
        # 20 steps of 20 us at least, and the card matches no slower than by some percent.
        assert 400 < float(host) < 1.1 * float(card)
        assert float(card) < 1.1 * float(host)


def test_overlapping_processors_are_beside_those_in_order(measured: tuple[StudyReport, list[Measured]]) -> None:
    """They are faster where handlers compute, and as fast where they do not."""
    payload, times = (
        next(table for table in measured[0]["tables"] if table["title"].startswith(title))["rows"]
        for title in ("Arriving payload", "Time of an operation")
    )
    in_order, overlapping = (
        payload[0].index("spin, 4 HPUs with F"),
        payload[0].index("spin, 4 HPUs with F, out of order"),
    )
    assert all(float(row[overlapping]) >= 2 * float(row[in_order]) - 0.02 for row in payload[1:] if "KiB" in row[0])
    in_order, overlapping = times[0].index("spin, 4 HPUs"), times[0].index("spin, 4 HPUs, out of order")
    for row in times[1:]:
        if "write of 4 KiB" in row[0]:
            assert float(row[overlapping]) < 0.7 * float(row[in_order])
        elif "read" in row[0]:
            assert row[overlapping] == row[in_order]


def test_claims_without_a_number_are_shown(spin: dict[str, dict]) -> None:
    shown = {name: finding for name, finding in spin.items() if finding["test"] == "shown"}
    assert {finding["section"] for finding in shown.values()} >= {"Ping-pong", "Broadcast", "Accumulate", "Storage"}
    assert all(finding["met"] is None and finding["ours_text"] != "nothing" for finding in shown.values())
    nothing = {name for name, finding in shown.items() if finding["ours_text"].startswith("not measured: ")}
    assert nothing == {"storage-traces"}


def test_the_baseline_of_the_authors_simulator_is_beside_ours(measured: tuple[StudyReport, list[Measured]]) -> None:
    """Without bus and matching a level takes RDMA its wires and switches and o twice; handlers gain less over it."""
    changes, parts = (
        next(table for table in measured[0]["tables"] if table["title"].startswith(title))["rows"]
        for title in ("Sooner than RDMA", "A level of 8 B")
    )
    gains = {row[0]: [float(cell.split(" / ")[0]) for cell in row[1:]] for row in changes[1:]}
    of_level = {row[0]: dict(zip(parts[0][1:], map(float, row[1:]), strict=True)) for row in parts[1:]}
    free = of_level["In all"]["rdma"] - of_level["Bus"]["rdma"] - of_level["Matching"]["rdma"]
    expected = 100 * (1 - of_level["In all"]["spin-stream"] / free)
    assert gains["RDMA takes L + 2o a level"][1] == pytest.approx(expected, abs=0.2)
    for change, of_change in gains.items():
        if f"{change}; RDMA takes L + 2o a level" in gains:
            assert gains[f"{change}; RDMA takes L + 2o a level"][0] < of_change[0]


def test_the_parts_of_a_level_are_those_of_the_spec(measured: tuple[StudyReport, list[Measured]]) -> None:
    parts = next(table for table in measured[0]["tables"] if table["title"].startswith("A level of 8 B"))
    head, *body = parts["rows"]
    of = {row[0]: dict(zip(head[1:], map(float, row[1:]), strict=True)) for row in body}
    # With RDMA each level notices and posts, 65 ns each, and crosses the bus of 50 ns twice.
    assert of["o, posting and noticing"]["rdma"] == 130
    assert of["Bus"]["rdma"] == of["Bus"]["portals4"] == 100
    assert {of["Matching"][mode] for mode in head[1:]} == {30}
    # Handlers avoid all but the root's post and the last process's notice, and a crossing of the bus at either end.
    assert of["o, posting and noticing"]["spin-stream"] == pytest.approx(130 / 6, abs=0.05)
    assert of["Bus"]["spin-stream"] == pytest.approx(100 / 6, abs=0.05)
    for mode in head[1:]:
        whole = sum(values[mode] for part, values in of.items() if part != "In all")
        assert whole == pytest.approx(of["In all"][mode], abs=0.3)


def test_tables_are_whole(measured: tuple[StudyReport, list[Measured]]) -> None:
    report = measured[0]
    sections = {finding["section"] for finding in report["claims"]}
    for table in report["tables"]:
        assert table["section"] in sections
        assert len({len(row) for row in table["rows"]}) == 1
        assert table["title"] in study_text(report)
    noise = next(table for table in report["tables"] if table["section"] == "Noise")
    assert {row[0].partition(" ")[0].rstrip(",") for row in noise["rows"][1:]} >= {
        "accumulate",
        "rendezvous",
        "storage",
    }


class _Sources(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.files: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.files += [value or "" for name, value in attributes if name == "src"]


def test_the_report_is_a_folder(measured: tuple[StudyReport, list[Measured]], tmp_path: Path) -> None:
    report, found = measured
    write_report(report, found, tmp_path)
    page = (tmp_path / "report.html").read_text()
    assert all(finding["ours_text"] in page for finding in report["claims"] if "%" not in finding["ours_text"])
    parser = _Sources()
    parser.feed(page)
    assert len(parser.files) == len({name for each in found for name in each.figures}) > 5
    assert all((tmp_path / file).read_text().startswith("<?xml") for file in parser.files)
    assert page.count("<table") == len({finding["section"] for finding in report["claims"]}) + len(report["tables"])
    assert (tmp_path / "ping-pong.csv").read_text().startswith("nic,mode,size_bytes")
    text = study_text(report)
    assert all(finding["title"] in text for finding in report["claims"])
    assert ", quick; " in text


def test_the_command_line(nicety: Callable, tmp_path: Path) -> None:
    done = nicety("reproduce", "spin", "--quick", "--only", "ping-pong", "--json", "--report", "out/spin")
    assert done.status == 0, done.stderr
    assert (done.json()["study"], done.json()["only"]) == ("spin", ["Ping-pong"])
    assert "out/spin/report.html" in done.stderr
    assert (tmp_path / "out/spin/report.json").read_text() == done.stdout
    (tmp_path / "file").write_text("")
    for command, words in (
        (
            ["spni"],
            (
                "there is no study 'spni'; there are spin, nfcomms, qnix, apenet, niagara2, pspin, xdp, nfp-6000, "
                "hxdp; did you mean spin?"
            ),
        ),
        (["spin", "--only", "line rat"], "no section 'line rat'; it has Parameters, "),
        (["spin", "--only", "line rat"], "did you mean Line rate?"),
        ([], "STUDY"),
        (["spin", "--report", "file"], "--report file"),
        (["spin", "--report", "file/deeper"], "--report file/deeper"),
    ):
        result = nicety("reproduce", *command)
        assert result.status == 2, result.stderr
        assert words in result.stderr


def test_a_report_shows_itself(measured: tuple[StudyReport, list[Measured]]) -> None:
    assert "<table>" in measured[0]._repr_html_()  # type: ignore[attr-defined]
    assert package.reproduce.__module__ == "nicety.studies"
    assert Options() == Options(quick=False, seed=1)
