"""Claims of a paper, measurements for them, and findings: a claim with its measurement and the deviation."""

from __future__ import annotations

import math
import tomllib
from dataclasses import asdict, dataclass
from importlib.resources import files
from typing import Any, Literal, TypedDict, cast

from nicety.show.columns import fixed

Kind = Literal["input", "calibrated", "consequence", "predicted"]
Test = Literal["equals", "at most", "at least", "holds", "shown"]

UNMEASURED = "not measured"
"""The first words of the measurement of a claim that is not measured. The reason follows."""

KINDS: dict[Kind, str] = {
    "input": "the paper's number is a value of the card's spec, and the model has to reproduce it",
    "calibrated": "a value of the spec was chosen by the paper's number, and the model has to reproduce the number",
    "consequence": "follows from such numbers, or from the connections of the parts, for any other values of the model",
    "predicted": "no number of the claim went into the card, and the model could have been wrong",
}
"""The kinds of claims."""
SEEN = "predicted, but a value of the card moved after a first comparison"
"""The meaning of `seen` in the column of kinds."""


@dataclass(frozen=True)
class Claim:
    """A claim of a paper.

    Attributes:
        id: the claim's name, unique in the study.
        section: the claim's subject. The claims of a section are measured together.
        title: the claim in a few words.
        says: the paper's statement in other words.
        kind: the relation of the claim to the numbers in the card's spec; see `KINDS`.
        test: `equals`: the paper has a number, with which the measurement is compared. `at most` and `at least`: the
            paper has a bound. `holds`: it has neither. `shown`: it has a figure or table without readable numbers; the
            measurement is shown beside it and not judged.
        paper: the paper's number or bound, or None without one.
        unit: the unit of `paper`.
        printed: the precision of the paper's number. A measurement that differs by less is equal.
        cards: the cards of the claim. A comparison of a card with another one is a claim about the first.
        at: the table or figure of the claim, if it is known.
        seen: for a predicted claim, the value of the card that moved after a first comparison with the claim.
    """

    id: str
    section: str
    title: str
    says: str
    kind: Kind
    test: Test
    paper: float | None = None
    unit: str = ""
    printed: float = 0.0
    cards: tuple[str, ...] = ()
    at: str = ""
    seen: str = ""

    def __post_init__(self) -> None:
        if (self.paper is None) != (self.test in {"holds", "shown"}):
            raise ValueError(f"claim {self.id}: a number is for a test that compares with one")
        if self.kind not in KINDS:
            raise ValueError(f"claim {self.id}: no kind of claim is called {self.kind}")
        if self.seen and self.kind != "predicted":
            raise ValueError(f"claim {self.id}: only a prediction can have been seen")


@dataclass(frozen=True)
class Paper:
    """A paper and its claims."""

    title: str
    source: str
    claims: tuple[Claim, ...]

    def of(self, section: str) -> list[Claim]:
        """Return the claims of a section."""
        return [claim for claim in self.claims if claim.section == section]


def read_paper(package: str, name: str = "paper.toml") -> Paper:
    """Read a paper and its claims from a TOML file in a study's package.

    `card` of the file is the card of each claim that names none.
    """
    document = tomllib.loads(files(package).joinpath(name).read_text(encoding="utf-8"))
    claims = tuple(_claim(claim, document["card"]) for claim in document["claim"])
    names = [claim.id for claim in claims]
    if len(set(names)) != len(names):
        raise ValueError(f"{package}: two claims of one name")
    return Paper(document["title"], document["source"], claims)


def _claim(given: dict[str, Any], usual: str) -> Claim:
    card = given.pop("card", usual)
    return Claim(**given, cards=(card,) if isinstance(card, str) else tuple(card))


@dataclass(frozen=True)
class Tried:
    """An experiment that explains a deviation.

    Attributes:
        command: the command that was run.
        result: the result, with its unit.
        figure: the name of a figure in the last row of the command's report.
        value: the value of that figure, in the unit of the report.
    """

    command: str
    result: str
    figure: str
    value: float


@dataclass(frozen=True)
class Ours:
    """nicety's measurement for a claim.

    Attributes:
        value: the number, or whether the claim holds; None if the measurement is only shown, or if there is none.
        text: the measurement as text, if that is not just the number. It begins with `UNMEASURED` if there is none.
        why: a line with the reason for a deviation from the paper. For a consequence, it is the reason why the claim
            holds, if it does.
        tried: experiments that confirm the reason, or rule out another reason.
    """

    value: float | bool | None
    text: str = ""
    why: str = ""
    tried: tuple[Tried, ...] = ()


class TriedRow(TypedDict):
    """An experiment that explains a deviation, as in a report; see `Tried`."""

    command: str
    result: str
    figure: str
    value: float


class Finding(TypedDict):
    """A claim with its measurement: a row of a study's report.

    `deviation` is the measured number divided by the paper's, minus 1. For percentages it is the difference in points,
    divided by 100. It is None if there is no number to compare with. `met` is whether the number equals the paper's at
    the paper's precision, is within the bound, or the claim holds. It is None if the measurement is only shown, or if
    there is none.
    `seen` names a value of the card that moved after a first comparison with a predicted claim. `tried` is empty if
    there is no deviation. So is `explanation`, unless the claim is a consequence: it then says from which numbers or
    parts the claim follows.
    """

    id: str
    section: str
    title: str
    says: str
    kind: Kind
    seen: str
    test: Test
    unit: str
    paper: float | None
    paper_text: str
    ours: float | bool | None
    ours_text: str
    deviation: float | None
    met: bool | None
    explanation: str
    tried: list[TriedRow]


def judge(claim: Claim, ours: Ours) -> Finding:
    """Compare a measurement with its claim."""
    deviation: float | None = None
    met: bool | None
    if claim.test == "shown":
        met, paper_text, ours_text = None, "no number", ours.text or "nothing"
    elif ours.value is None and ours.text.startswith(UNMEASURED):
        met, paper_text, ours_text = None, _published(claim), ours.text
    elif claim.paper is None:
        met = bool(ours.value)
        paper_text = "holds"
        ours_text = ours.text or ("holds" if met else "does not hold")
    else:
        if ours.value is None:
            raise ValueError(f"claim {claim.id}: there is a number to compare with, and none of ours")
        value = float(ours.value)
        paper_text = _published(claim)
        ours_text = ours.text or f"{_number(value)} {claim.unit}".strip()
        if claim.test == "equals":
            met = math.isclose(value, claim.paper, rel_tol=1e-9, abs_tol=0) or abs(value - claim.paper) < claim.printed
            deviation = (value - claim.paper) / (100.0 if claim.unit == "%" else claim.paper)
        else:
            met = value <= claim.paper if claim.test == "at most" else value >= claim.paper
    same = met is True and (deviation is None or abs(deviation) < 1e-9)  # noqa: PLR2004, rounding of binary fractions
    return Finding(
        id=claim.id,
        section=claim.section,
        title=claim.title,
        says=claim.says,
        kind=claim.kind,
        seen=claim.seen,
        test=claim.test,
        unit=claim.unit,
        paper=claim.paper,
        paper_text=paper_text,
        ours=ours.value,
        ours_text=ours_text,
        deviation=0.0 if same and deviation is not None else deviation,
        met=met,
        explanation="" if same and claim.kind != "consequence" else ours.why,
        tried=[] if same else [cast(TriedRow, asdict(each)) for each in ours.tried],
    )


def shown_kind(finding: Finding) -> str:
    """Return the kind of a claim that is judged, or `seen`; for another claim, `shown` or `not measured`."""
    if finding["ours_text"].startswith(UNMEASURED):
        return "not measured"
    if finding["met"] is None:
        return "shown"
    return "seen" if finding["seen"] else finding["kind"]


def deviation_text(finding: Finding) -> str:
    """Return the deviation of the measurement from the paper's number, as text."""
    deviation = finding["deviation"]
    if deviation is None:
        return "-"
    if deviation == 0:
        return "none"
    points = " points" if finding["unit"] == "%" else "%"
    return f"{'+' if deviation > 0 else '-'}{fixed(abs(100 * deviation), 1)}{points}"


def _published(claim: Claim) -> str:
    """Return the paper's number or bound as text."""
    return f"{_sign(claim.test)}{_number(claim.paper)} {claim.unit}".strip() if claim.paper is not None else "holds"


def _sign(test: Test) -> str:
    return {"at most": "at most ", "at least": "at least "}.get(test, "")


def _number(value: float) -> str:
    return fixed(value, 3).rstrip("0").rstrip(".") if not float(value).is_integer() else str(int(value))


def as_row(finding: Finding) -> dict[str, Any]:
    """Return a finding as a row of a table."""
    return dict(finding)
