"""Two profiles line by line: another program on the same card, or the same one on another card."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import Any, TypedDict

from nicety._generated.types import ProfiledLine, ProfileReport, ProfileRow
from nicety.bench.profile.sources import function_of, place_of, text_of
from nicety.bench.profile.text import about, per
from nicety.show.columns import align, fixed


class LineDifference(TypedDict):
    """A line in two profiles.

    Attributes:
        line: the line in the first profile, such as `kv.c:12`; None where only the second one has it.
        other_line: the line in the second profile; None where only the first one has it.
        source: the text of the line.
        cycles_mean: cycles a packet in the first profile.
        other_cycles_mean: cycles a packet in the second profile.
        difference_cycles: the second minus the first.
    """

    line: str | None
    other_line: str | None
    source: str | None
    cycles_mean: float
    other_cycles_mean: float
    difference_cycles: float


class Difference(TypedDict):
    """The difference of two profiles.

    Attributes:
        cycles_mean: cycles a packet in the first profile.
        other_cycles_mean: cycles a packet in the second profile.
        causes: by cause, cycles a packet in the second profile minus those in the first.
        lines: each line of either profile once, those with the largest difference first.
    """

    cycles_mean: float
    other_cycles_mean: float
    causes: dict[str, float]
    lines: list[LineDifference]


def difference(report: ProfileReport, other: ProfileReport) -> Difference:
    """The difference of the first cards of two reports."""
    one, two = report["rows"][0], other["rows"][0]
    names = dict.fromkeys([*one["causes"], *two["causes"]])
    causes = {name: _mean(two, two["causes"].get(name, 0)) - _mean(one, one["causes"].get(name, 0)) for name in names}
    lines = list(_lines(one, two))
    lines.sort(key=lambda line: (-abs(line["difference_cycles"]), line["line"] or "", line["other_line"] or ""))
    return {
        "cycles_mean": one["cycles_mean"],
        "other_cycles_mean": two["cycles_mean"],
        "causes": causes,
        "lines": lines,
    }


def _mean(row: ProfileRow, cycles: int) -> float:
    return cycles / row["packets"]


Key = tuple[str | None, int | None]


def _lines(one: ProfileRow, two: ProfileRow) -> Iterator[LineDifference]:
    """Each line once. Lines of two versions of a file are those that are alike in it."""
    first, second = _by_place(one), _by_place(two)
    pairs = _same(first, second)
    for key, lines in first.items():
        partner = pairs.get(key)
        yield _line(one, lines, two, second.get(partner, []) if partner is not None else [])
    matched = set(pairs.values())
    for key, lines in second.items():
        if key not in matched:
            yield _line(one, [], two, lines)


def _by_place(row: ProfileRow) -> dict[Key, list[ProfiledLine]]:
    found: dict[Key, list[ProfiledLine]] = {}
    for line in row["lines"]:
        found.setdefault((line["file"], line["line"]), []).append(line)
    return found


def _same(first: dict[Key, Any], second: dict[Key, Any]) -> dict[Key, Key]:
    """The place in the second profile of each place in the first that both have."""
    pairs: dict[Key, Key] = {key: key for key in first if key in second}
    left = [{file for file, _ in keys if file is not None} for keys in (first, second)]
    # A file that only one of them has is another version of the file of the other.
    alone = [sorted(left[0] - left[1]), sorted(left[1] - left[0])]
    for before in alone[0]:
        after = next((file for file in alone[1] if _name(file) == _name(before)), None)
        after = after or (alone[1][0] if len(alone[0]) == len(alone[1]) == 1 else None)
        if after is None:
            continue
        for number, partner in _alike(before, after):
            if (before, number) in first and (after, partner) in second:
                pairs[before, number] = (after, partner)
    return pairs


def _name(file: str) -> str:
    return file.replace("\\", "/").rpartition("/")[2]


def _alike(before: str, after: str) -> Iterator[tuple[int, int]]:
    """The numbers of lines that are alike in two files."""
    matcher = SequenceMatcher(None, _text(before), _text(after), autojunk=False)
    for at, partner, size in matcher.get_matching_blocks():
        yield from ((at + step + 1, partner + step + 1) for step in range(size))


def _text(file: str) -> list[str]:
    lines: list[str] = []
    while (text := text_of(file, len(lines) + 1)) is not None:
        lines.append(text.strip())
    return lines


def _line(
    one: ProfileRow, first: Sequence[ProfiledLine], two: ProfileRow, second: Sequence[ProfiledLine]
) -> LineDifference:
    means = [sum(line["cycles_mean"] for line in lines) for lines in (first, second)]
    row, shown = (one, first[0]) if first else (two, second[0])
    text = text_of(shown["file"], shown["line"])
    return {
        "line": place_of(first[0]) if first else None,
        "other_line": place_of(second[0]) if second else None,
        "source": function_of(row, shown) if text is None else text.strip(),
        "cycles_mean": means[0],
        "other_cycles_mean": means[1],
        "difference_cycles": means[1] - means[0],
    }


def against_text(report: ProfileReport, other: ProfileReport, most: int) -> str:
    """Two profiles as text: causes, and the lines with the largest differences.

    Args:
        report: the first profile.
        other: the second profile.
        most: the number of lines to show.
    """
    found, (one, two) = difference(report, other), (report["rows"][0], other["rows"][0])
    causes = sorted(found["causes"], key=lambda name: -abs(found["causes"][name]))
    body = [
        [name, *_three(_mean(one, one["causes"].get(name, 0)), _mean(two, two["causes"].get(name, 0)))]
        for name in causes
    ]
    body.append(["all", *_three(found["cycles_mean"], found["other_cycles_mean"])])
    shown = found["lines"][:most]
    lines = [
        [
            line["line"] or "-",
            line["other_line"] or "-",
            *_three(line["cycles_mean"], line["other_cycles_mean"]),
            line["source"] or "",
        ]
        for line in shown
    ]
    title = f"Lines, cycles {per(one)}: the largest {len(shown)} of {len(found['lines'])} differences"
    text = [
        f"# nicety Profile v{report['version']}",
        f"# first: {about(one)}",
        f"# second: {about(two)}",
        "",
        f"# Cycles {per(one)}, by cause",
        *align([["# Cause", "First", "Second", "Difference"], *body], range(1, 4)),
        "",
        f"# {title}",
        *align([["# Line", "Second", "First", "Second", "Difference", "Source"], *lines], range(2, 5)),
    ]
    return "\n".join(text) + "\n"


def _three(first: float, second: float) -> list[str]:
    shown = fixed(abs(second - first), 1)
    sign = "" if float(shown) == 0 else "+" if second > first else "-"
    return [fixed(first, 1), fixed(second, 1), f"{sign}{shown}"]
