"""Writes the table of all studies' claims, docs/studies/all.md, from the reports on their pages.

Tests run the pages' commands and compare what they print. tests/test_study_all.py compares this table with the pages.

    python tests/studies.py    write the table
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "studies" / "all.md"
NAMES = ("apenet", "qnix", "nfcomms", "spin", "niagara2", "pspin", "xdp", "nfp-6000", "hxdp")
_HEAD = ("Claim", "Paper", "Ours", "Deviation", "Kind", "Met")
_TABLES = re.compile(r"<!-- claims -->\n.*?<!-- end of claims -->", re.DOTALL)


@dataclass
class Row:
    """A claim of a report."""

    section: str
    claim: str
    paper: str
    ours: str
    deviation: str
    kind: str
    met: str
    reason: str = ""


def report(name: str) -> str:
    """The report of a study, as it is on its page."""
    page = (ROOT / "docs" / "studies" / f"{name}.md").read_text(encoding="utf-8")
    found = re.search(rf"```console\n\$ nicety reproduce {name}\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    assert found is not None, name
    return found[1]


def rows(text: str) -> list[Row]:
    """The claims of a report with the reasons of their deviations."""
    found: list[Row] = []
    for paragraph in text.split("\n\n"):
        title, *lines = paragraph.strip("\n").split("\n")
        if not lines or re.split(r"  +", lines[0].removeprefix("# ")) != list(_HEAD):
            continue
        starts = [lines[0].index(name) for name in _HEAD]
        starts[0] = 0
        ends = [*starts[1:], None]
        own: dict[str, Row] = {}
        last: Row | None = None
        for line in lines[1:]:
            if not line.startswith("#"):
                cells = [line[start:end].strip() for start, end in zip(starts, ends, strict=True)]
                own[cells[0]] = Row(title.removeprefix("# "), *cells)
            elif line.startswith("#   ") and last is not None:
                text = line.removeprefix("#   ")
                tried = text.startswith("nicety ")
                last.reason += f"; `{text.replace(': ', '`: ', 1)}" if tried else f" {text}"
            elif line.startswith("# seen: "):
                last = Row("", *[""] * 6)
            else:
                claim = max((name for name in own if line.startswith(f"# {name}: ")), key=len)
                last = own[claim]
                last.reason = line.removeprefix(f"# {claim}: ")
        found += own.values()
    return found


def table(name: str) -> str:
    """The claims of a study as a table."""
    lines = [
        "| claim | kind | paper | ours | deviation | met | reason |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in rows(report(name)):
        cells = (row.claim, row.kind, row.paper, row.ours, row.deviation, row.met, row.reason)
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines)


def counts() -> str:
    """The number of claims of each study by kind, and of those that are met."""
    kinds = ("predicted", "seen", "consequence", "calibrated", "input")
    lines = [f"| study | {' | '.join(kinds)} | shown | not measured |", "|---|---|---|---|---|---|---|---|"]
    for name in NAMES:
        found = rows(report(name))
        cells = []
        for kind in kinds:
            own = [row for row in found if row.kind == kind]
            cells.append(f"{sum(row.met == 'yes' for row in own)} of {len(own)}")
        cells += [str(sum(row.kind == kind for row in found)) for kind in ("shown", "not measured")]
        lines.append(f"| [{name}]({name}.md) | {' | '.join(cells)} |")
    return "\n".join(lines)


def written(page: str) -> str:
    """The page with the claims of all reports."""
    body = "\n\n".join([counts(), *(f"## {name}\n\n{table(name)}" for name in NAMES)])
    return _TABLES.sub(lambda _: f"<!-- claims -->\n\n{body}\n\n<!-- end of claims -->", page)


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
