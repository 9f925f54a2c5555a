"""Writes the tables of docs/trust.md, the deviations of all cards, from the reports on the pages of studies and cards.

Tests run the pages' commands and compare what they print, the long ones in part except in long runs
(`HYPOTHESIS_PROFILE=soak`). tests/test_trust.py compares the tables with the pages.

    python tests/trust.py    write the tables
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from nicety import _native
from nicety.shared.cards import card_names
from nicety.studies.score.scoring import quantile
from nicety.studies.study import load_study
from studies import NAMES, Row, report, rows

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "trust.md"
SCORED = ROOT / "docs" / "cards" / "nfp-6000.md"
ON_PAGES = {
    "bluefield3-dpa": ("seen", re.compile(r"^\| `DPA_\w+` \|.* ([+-][0-9.]+) % \| seen \|$", re.MULTILINE)),
    "hxdp-sume": (
        "predicted",
        re.compile(r"^\|.*\| (?:section|table) [0-9.]+ \|.* ([+-]?[0-9.]+) % \|$", re.MULTILINE),
    ),
}
"""The use and the deviations of rows that are in a table of a card's page."""
WORST = 3
"""The number of rows of a card with their reasons."""
_TABLES = re.compile(r"<!-- trust -->\n.*?<!-- end of trust -->", re.DOTALL)
_ALL = re.compile(r"^# All tests\n# card.*\n((?:\w.*\n)+)", re.MULTILINE)


@dataclass
class Judged:
    """A claim of a card that is predicted, or was predicted and seen."""

    study: str
    row: Row

    @property
    def deviation(self) -> float | None:
        """The deviation in percent, or in points of a percentage."""
        if self.row.deviation == "-":
            return None
        return 0.0 if self.row.deviation == "none" else float(self.row.deviation.split()[0].rstrip("%"))


def judged() -> dict[str, list[Judged]]:
    """The predicted and seen claims of each card."""
    found: dict[str, list[Judged]] = {name: [] for name in card_names()}
    for study in NAMES:
        cards = {claim.title: claim.cards for claim in load_study(study).paper.claims}
        for row in rows(report(study)):
            if row.kind in {"predicted", "seen"}:
                for card in cards[row.claim]:
                    found[card].append(Judged(study, row))
    return found


def scored() -> dict[str, list[str]]:
    """The numbers of rows, medians and 90 % of cards with shipped rows, as shown on the cards' pages."""
    (lines,) = _ALL.findall(SCORED.read_text(encoding="utf-8"))
    return {line.split()[0]: line.split()[1:4] for line in lines.splitlines()}


def on_page(card: str, kind: str) -> list[float]:
    """The absolute deviations of rows of a kind that are in a table of a card's page."""
    use, rows_of = ON_PAGES.get(card, ("", re.compile("")))
    if use != kind:
        return []
    own = rows_of.findall((ROOT / "docs" / "cards" / f"{card}.md").read_text(encoding="utf-8"))
    return [abs(float(deviation)) for deviation in own]


def deviations(own: Sequence[Judged], kind: str, further: Sequence[float] = ()) -> list[str]:
    """The number of a card's claims of a kind with a number, their median deviation and the 90 %; and those without.

    `further` has the absolute deviations of other rows of that kind.
    """
    of_kind = [each for each in own if each.row.kind == kind]
    off = [*(abs(each.deviation) for each in of_kind if each.deviation is not None), *further]
    others = [each.row.met == "yes" for each in of_kind if each.deviation is None]
    figures = [f"{quantile(off, share):.1f}" for share in (0.5, 0.9)] if off else ["-", "-"]
    return [str(len(off)), *figures, f"{sum(others)} of {len(others)}" if others else "-"]


def summary() -> str:
    """A row for each card."""
    head = [
        "card",
        *(f"{kind}: {what}" for kind in ("predicted", "seen") for what in ("rows", "median", "90 %", "met")),
    ]
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    measured = scored()
    for card, own in judged().items():
        cells = {use: deviations(own, use, on_page(card, use)) for use in ("predicted", "seen")}
        if card in measured:
            cells["predicted"] = [*measured[card], "-"]
        shown = [f"[{card}](cards/{card}.md)", *cells["predicted"], *cells["seen"]]
        lines.append(f"| {' | '.join(shown)} |")
    return "\n".join(lines)


def worst(own: Sequence[Judged]) -> list[str]:
    """The rows with the largest deviations, and their reasons, as lines of a table."""
    numbered = [each for each in own if each.deviation]
    ordered = sorted(numbered, key=lambda each: -abs(each.deviation or 0))[:WORST]
    failed = [each for each in own if each.deviation is None and each.row.met == "no"]
    lines = []
    for each in (*ordered, *failed):
        row = each.row
        # The experiments of a reason are on the study's page.
        reason = row.reason.partition("; `nicety ")[0]
        cells = (row.claim, row.kind, row.paper, row.ours, row.deviation, reason or "-")
        lines.append(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |")
    return lines


def constants(card: str) -> list[tuple[str, str, str]]:
    """The calibrated values of a card that are not those of the card that it extends."""
    shown = json.loads(_native.spec_show(card, []))
    values = [(each["key"], each["value"], each["against"]) for each in shown["parameters"] if each["against"]]
    inherited = constants_of_all(shown["extends"][0]) if shown["extends"] else []
    return [value for value in values if value not in inherited]


def constants_of_all(card: str) -> list[tuple[str, str, str]]:
    """All calibrated values of a card."""
    shown = json.loads(_native.spec_show(card, []))
    return [(each["key"], each["value"], each["against"]) for each in shown["parameters"] if each["against"]]


def section(card: str, own: Sequence[Judged]) -> str:
    """The worst rows and the calibrated values of a card."""
    parts = [f"### {card}"]
    studies = list(dict.fromkeys(each.study for each in own))
    places = [f"[{name}](studies/{name}.md)" for name in studies]
    if card in ON_PAGES:
        places.append(f"[its page](cards/{card}.md)")
    if places:
        parts.append(f"Rows: {', '.join(places)}.")
    else:
        parts.append("No measurement of this card is predicted.")
    if lines := worst(own):
        head = "| row | kind | published | model | deviation | reason |"
        parts.append(
            "\n".join(["Largest deviations, and statements that do not hold:\n", head, "|---|---|---|---|---|---|"])
        )
        parts[-1] += "\n" + "\n".join(lines)
    extends = json.loads(_native.spec_show(card, []))["extends"]
    values = constants(card)
    if values:
        lines = ["| calibrated key | value | against |", "|---|---|---|"]
        lines += [f"| `{key}` | {value} | {against} |" for key, value, against in values]
        parts.append("\n".join(lines))
    if extends and constants_of_all(extends[0]):
        further = "Further constants" if values else "Calibrated constants"
        parts.append(f"{further}: those of [{extends[0]}](#{extends[0]}).")
    elif not values:
        parts.append("No constant is calibrated.")
    return "\n\n".join(parts)


def written(page: str) -> str:
    """The page with the tables of all cards."""
    body = "\n\n".join([summary(), "## Card by card", *(section(card, own) for card, own in judged().items())])
    return _TABLES.sub(lambda _: f"<!-- trust -->\n\n{body}\n\n<!-- end of trust -->", page)


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
