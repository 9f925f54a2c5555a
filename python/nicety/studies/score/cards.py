"""The score of a card by the studies' claims: each measurement of a paper beside the figure of the model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NotRequired, TypedDict, cast

from nicety import _native
from nicety.bench.measured import Progress
from nicety.errors import InputError
from nicety.shared.cards import card_names
from nicety.shared.checks import meant
from nicety.studies.claims import Claim, Finding
from nicety.studies.measure import calibrations, run_study
from nicety.studies.score.scoring import quantile, scored_cards
from nicety.studies.study import STUDIES, Calibration, Study, load_study

Use = Literal["input", "calibrated", "consequence", "seen", "predicted"]
"""The relation of a measurement to the card: a kind of claims, or a prediction that was seen before a value moved."""
USES: tuple[Use, ...] = ("input", "calibrated", "consequence", "seen", "predicted")


class ClaimRow(TypedDict):
    """A published measurement beside the figure of the model.

    Attributes:
        card: the card.
        study: the study with the claim.
        claim: the claim's name in the study.
        title: the claim in a few words.
        use: the relation to the card: input, calibrated, consequence, seen or predicted.
        seen: for a seen row, the value of the card that moved after a first comparison.
        unit: the unit of the figures.
        published: the published number or bound, if there is one.
        published_text: the published statement.
        model: the number of the model, or whether the claim holds; None if it is not measured.
        model_text: the result of the model.
        deviation_percent: the deviation from a published number; points for a percentage.
        met: whether the result equals the number at its precision, is within the bound, or the claim holds; None if it
            is not measured.
        reason: the reason of a deviation.
        source: the paper, with the table or figure if it is known.
    """

    card: str
    study: str
    claim: str
    title: str
    use: Use
    seen: str
    unit: str
    published: float | None
    published_text: str
    model: float | bool | None
    model_text: str
    deviation_percent: NotRequired[float]
    met: bool | None
    reason: str
    source: str


class Deviations(TypedDict):
    """Absolute deviations of measured rows with a published number.

    Attributes:
        rows: the number of rows with a number.
        median_percent: the median of the absolute deviations.
        p90_percent: 90 % of the absolute deviations are at most this.
        without_number: the number of rows without a number: bounds and statements.
        met_without_number: the number of these rows that are met.
    """

    rows: int
    median_percent: NotRequired[float]
    p90_percent: NotRequired[float]
    without_number: int
    met_without_number: int


class CardScore(TypedDict):
    """The score of a card by the studies' claims.

    Attributes:
        name: the name of the card.
        version: the version of nicety.
        quick: whether the studies measured fewer sizes and nodes.
        counts: the number of rows by use.
        predicted: the deviations of predicted rows.
        seen: the deviations of predicted rows that were seen before a value moved.
        calibrated: the calibrated values of the card.
        rows: all rows, in the order of the studies.
    """

    name: str
    version: str
    quick: bool
    counts: dict[Use, int]
    predicted: Deviations
    seen: Deviations
    calibrated: list[Calibration]
    rows: list[ClaimRow]


def studies() -> list[Study]:
    """Return the studies with claims. The rows of the others are scored by themselves."""
    loaded = [load_study(name) for name in STUDIES]
    return [study for study in loaded if not set(study.cards) & set(scored_cards())]


def claims_of(study: Study, card: str) -> list[Claim]:
    """Return the claims of a study about a card that are judged."""
    return [claim for claim in study.paper.claims if card in claim.cards and claim.test != "shown"]


def known_cards() -> list[str]:
    """Return the cards with published measurements."""
    named = (card for study in studies() for claim in study.paper.claims for card in claim.cards)
    return list(dict.fromkeys([*named, *scored_cards()]))


def card_score(
    name: str, *, quick: bool = False, seed: int = 1, progress: Progress | None = None, sections: Sequence[str] = ()
) -> CardScore:
    """Measure the published figures of a card, and compare.

    Args:
        name: the card.
        quick: measure fewer sizes and nodes.
        seed: the seed of every random stream.
        progress: called with the number of sections done, and the total.
        sections: the sections of the studies to measure; all that are about the card by default.

    Raises:
        InputError: no claim is about the card.
        RunError: a run failed.
    """
    own = [(study, claims) for study in studies() if (claims := claims_of(study, name))]
    if not own:
        known = known_cards()
        shipped = "has no published measurement" if name in card_names() else "is no card with published measurements"
        raise InputError(f"{name}: it {shipped}; name {', '.join(known)}{meant(name, known)}, or --rows FILE.csv")
    chosen = [
        (study, section.name, [claim for claim in claims if claim.section == section.name])
        for study, claims in own
        for section in study.sections
        if not sections or section.name in sections
    ]
    chosen = [each for each in chosen if each[2]]
    rows: list[ClaimRow] = []
    for number, (study, section, claims) in enumerate(chosen):
        if progress is not None:
            progress(number, len(chosen))
        report, _ = run_study(study, quick=quick, only=[section], seed=seed)
        found = {finding["id"]: finding for finding in report["claims"]}
        rows += [_row(name, study, claim, found[claim.id]) for claim in claims]
    return {
        "name": name,
        "version": _native.version(),
        "quick": quick,
        "counts": {use: sum(row["use"] == use for row in rows) for use in USES},
        "predicted": deviations([row for row in rows if row["use"] == "predicted"]),
        "seen": deviations([row for row in rows if row["use"] == "seen"]),
        "calibrated": calibrations(name),
        "rows": rows,
    }


def use_of(claim: Claim) -> Use:
    """Return the relation of a claim to its card."""
    return "seen" if claim.seen else cast(Use, claim.kind)


def _row(card: str, study: Study, claim: Claim, finding: Finding) -> ClaimRow:
    row: ClaimRow = {
        "card": card,
        "study": study.name,
        "claim": claim.id,
        "title": claim.title,
        "use": use_of(claim),
        "seen": claim.seen,
        "unit": claim.unit,
        "published": claim.paper,
        "published_text": finding["paper_text"],
        "model": finding["ours"],
        "model_text": finding["ours_text"],
        "met": finding["met"],
        "reason": finding["explanation"],
        "source": f"{study.paper.title}{f', {claim.at}' if claim.at else ''}",
    }
    if finding["deviation"] is not None:
        row["deviation_percent"] = 100 * finding["deviation"]
    return row


def deviations(rows: Sequence[ClaimRow]) -> Deviations:
    """Return the absolute deviations of rows."""
    off = [abs(row["deviation_percent"]) for row in rows if "deviation_percent" in row]
    others = [row["met"] for row in rows if "deviation_percent" not in row and row["met"] is not None]
    made: Deviations = {
        "rows": len(off),
        "without_number": len(others),
        "met_without_number": sum(others),
    }
    if off:
        made["median_percent"] = quantile(off, 0.5)
        made["p90_percent"] = quantile(off, 0.9)
    return made
