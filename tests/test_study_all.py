"""The table of all studies' claims is that of their pages."""

from __future__ import annotations

from nicety.studies import STUDIES, load_study
from nicety.studies.claims import KINDS
from studies import NAMES, PAGE, report, rows, written

TRIED = ("apenet", "qnix", "nfcomms", "spin")
"""Studies with an experiment for each reason."""


def test_the_table_of_claims_is_that_of_the_pages() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert written(page) == page, "write it by tests/studies.py"


def test_every_study_is_in_the_table() -> None:
    assert sorted(NAMES) == sorted(STUDIES)


def test_the_table_has_every_claim_of_every_study() -> None:
    for name in NAMES:
        titles = [claim.title for claim in load_study(name).paper.claims]
        assert sorted(row.claim for row in rows(report(name))) == sorted(titles), name


def test_each_miss_names_an_experiment_and_its_result() -> None:
    for name in TRIED:
        missed = [row for row in rows(report(name)) if row.met == "no"]
        assert missed
        assert [row.claim for row in missed if "`nicety " not in row.reason] == [], name
        assert [row.claim for row in rows(report(name)) if row.kind == "not measured" and len(row.ours) < 16] == []


def test_each_consequence_has_its_reason() -> None:
    for name in NAMES:
        found = [row for row in rows(report(name)) if row.kind == "consequence"]
        assert found or name in {"xdp", "nfp-6000", "hxdp"}
        assert [row.claim for row in found if not row.reason] == [], name


def test_claims_that_are_not_judged_are_shown_or_not_measured() -> None:
    for name in NAMES:
        assert {row.kind for row in rows(report(name)) if row.met == "-"} <= {"shown", "not measured"}, name
        assert {row.kind for row in rows(report(name)) if row.met != "-"} <= {*KINDS, "seen"}, name
