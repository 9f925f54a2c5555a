"""Commands of handlers that a card refused, as lines of text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

_LISTED = 8
"""Maximum number of lines; a report has all refusals."""


def refused_at_sizes(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return a line per refused command of a line-rate check on one card, with the packet sizes at which it occurs."""
    sizes: dict[str, list[str]] = {}
    for row in rows:
        for refused in row["refused_commands"]:
            sizes.setdefault(_text(refused, refused["times"]), []).append(str(row["packet_bytes"]))
    traffic = any("traffic" in row for row in rows)
    return _first([f"{'traffic' if traffic else ', '.join(at) + ' B'}: {text}" for text, at in sizes.items()])


def refused_on_ranks(refusals: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return a line per refused command of `nicety run`, summed over the ranks of a card's run."""
    found: dict[tuple[str, ...], list[Mapping[str, Any]]] = {}
    for refused in refusals:
        key = tuple(refused[name] for name in ("nic", "command", "code", "place"))
        found.setdefault(key, []).append(refused)
    lines = []
    for same in found.values():
        where = f"rank {same[0]['rank']}" if len(same) == 1 else f"{len(same)} ranks"
        lines.append(f"{same[0]['nic']}, {where}: {_text(same[0], sum(refused['times'] for refused in same))}")
    return _first(lines)


def _text(refused: Mapping[str, Any], times: int) -> str:
    return f"{times} {refused['command']} refused: {refused['code']}, {refused['place']}"


def _first(lines: list[str]) -> list[str]:
    more = len(lines) - _LISTED
    return [*lines[:_LISTED], f"and {more} more; --json has them all"] if more > 0 else lines
