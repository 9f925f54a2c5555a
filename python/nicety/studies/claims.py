"""Claims of a paper and their findings: the paper's statement, the measurement here, and the deviation."""

from __future__ import annotations

import math
import tomllib
from dataclasses import asdict, dataclass
from importlib.resources import files
from typing import Any, Literal, TypedDict, cast

from nicety.show.columns import fixed

Kind = Literal["input", "calibrated", "consequence", "predicted"]
Test = Literal["equals", "at most", "at least", "holds", "shown"]

KINDS: dict[Kind, str] = {
    "input": "the paper's number is in the card's spec, and comes out again unless it is lost on the way",
    "calibrated": "the paper's number chose a value of the card's spec, and has to come out again",
    "consequence": "follows from such numbers, or from how the parts are joined, whatever the rest of the model does",
    "predicted": "no number of it went into the card, and the model could have got it wrong",
}


@dataclass(frozen=True)
class Claim:
    """The claims of a paper.

    Attributes:
        id: its name, unique in the study.
        section: its subject; claims of one section are measured together.
        title: the claim in a few words.
        says: the paper's statement, in our words.
        kind: its relation to the numbers in the card's spec.
        test: `equals`, the paper has a number, and ours is compared with it; `at most` and `at least`, it has a bound;
            `holds`, it has neither; `shown`, it has a figure or table without readable numbers, so that the measurement
            is shown beside it and not judged.
        paper: its number, or None without one.
        unit: the unit of `paper`.
        printed: the precision of the paper's number: a number that differs by less is the same.
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

    def __post_init__(self) -> None:
        if (self.paper is None) != (self.test in {"holds", "shown"}):
            raise ValueError(f"claim {self.id}: a number is for a test that compares with one")
        if self.kind not in KINDS:
            raise ValueError(f"claim {self.id}: no kind of claim is called {self.kind}")


@dataclass(frozen=True)
class Paper:
    """A paper and its claims."""

    title: str
    source: str
    claims: tuple[Claim, ...]

    def of(self, section: str) -> list[Claim]:
        """The claims of a section."""
        return [claim for claim in self.claims if claim.section == section]


def read_paper(package: str, name: str = "paper.toml") -> Paper:
    """The paper's data of a study, from its package."""
    document = tomllib.loads(files(package).joinpath(name).read_text(encoding="utf-8"))
    claims = tuple(Claim(**claim) for claim in document["claim"])
    names = [claim.id for claim in claims]
    if len(set(names)) != len(names):
        raise ValueError(f"{package}: two claims of one name")
    return Paper(document["title"], document["source"], claims)


@dataclass(frozen=True)
class Tried:
    """An experiment for the reason of a deviation.

    Attributes:
        command: the command that was run.
        result: its result, in a few words.
        figure: the name of the figure in the last row of the command's report.
        value: its value there.
    """

    command: str
    result: str
    figure: str
    value: float


@dataclass(frozen=True)
class Ours:
    """The measurement for a claim.

    Attributes:
        value: the number, or whether it holds; None if it is only shown.
        text: its display form, if that is not just the number.
        why: the reason for a difference from the paper's; a line.
        tried: experiments that show the reason, or rule another one out.
    """

    value: float | bool | None
    text: str = ""
    why: str = ""
    tried: tuple[Tried, ...] = ()


class TriedRow(TypedDict):
    """An experiment for the reason of a deviation, as in a report."""

    command: str
    result: str
    figure: str
    value: float


class Finding(TypedDict):
    """A claim with its measurement, a row of a study's report.

    `deviation` is our number divided by the paper's, minus 1. For percentages it is the difference in points, divided
    by 100. It is None without a number to compare with. `met` is whether the number equals the paper's at its
    precision, is within the bound, or holds; None if it is only shown. `explanation` is empty if there is nothing to
    explain, and so is `tried`.
    """

    id: str
    section: str
    title: str
    says: str
    kind: Kind
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
    elif claim.paper is None:
        met = bool(ours.value)
        paper_text = "holds"
        ours_text = ours.text or ("holds" if met else "does not hold")
    else:
        if ours.value is None:
            raise ValueError(f"claim {claim.id}: there is a number to compare with, and none of ours")
        value = float(ours.value)
        paper_text = f"{_sign(claim.test)}{_number(claim.paper)} {claim.unit}".strip()
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
        test=claim.test,
        unit=claim.unit,
        paper=claim.paper,
        paper_text=paper_text,
        ours=ours.value,
        ours_text=ours_text,
        deviation=0.0 if same and deviation is not None else deviation,
        met=met,
        explanation="" if same else ours.why,
        tried=[] if same else [cast(TriedRow, asdict(each)) for each in ours.tried],
    )


def deviation_text(finding: Finding) -> str:
    """The deviation of ours from the paper's."""
    deviation = finding["deviation"]
    if deviation is None:
        return "-"
    if deviation == 0:
        return "none"
    points = " points" if finding["unit"] == "%" else "%"
    return f"{'+' if deviation > 0 else '-'}{fixed(abs(100 * deviation), 1)}{points}"


def _sign(test: Test) -> str:
    return {"at most": "at most ", "at least": "at least "}.get(test, "")


def _number(value: float) -> str:
    return fixed(value, 3).rstrip("0").rstrip(".") if not float(value).is_integer() else str(int(value))


def as_row(finding: Finding) -> dict[str, Any]:
    """A finding as a row of a table."""
    return dict(finding)
