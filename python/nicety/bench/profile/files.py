"""Profiles in the formats of other tools: speedscope's JSON, and pprof's protocol buffers."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable
from typing import Any

from nicety._generated.types import ProfiledInstruction, ProfileReport, ProfileRow
from nicety.bench.profile.calls import path_chains, stack_of

_MORE = 0x80
"""Set in a byte of a number with further bytes."""
_SCHEMA = "https://www.speedscope.app/file-format-schema.json"


def speedscope(report: ProfileReport) -> bytes:
    """A file for speedscope: a profile of each card, with the cycles of each stack of functions and line.

    Its format is at https://www.speedscope.app/file-format-schema.json. The weight of a sample is its cycles.
    """
    frames: dict[tuple[str, str | None, int | None], int] = {}

    def index(name: str, file: str | None = None, line: int | None = None) -> int:
        return frames.setdefault((name, file, line), len(frames))

    profiles = [_sampled(row, index) for row in report["rows"]]
    shared = [
        {"name": name, **({"file": file} if file else {}), **({"line": line} if line else {})}
        for name, file, line in frames
    ]
    document = {
        "$schema": _SCHEMA,
        "exporter": f"nicety {report['version']}",
        "name": "nicety profile",
        "activeProfileIndex": 0,
        "shared": {"frames": shared},
        "profiles": profiles,
    }
    return json.dumps(document).encode()


def _sampled(row: ProfileRow, index: Any) -> dict[str, Any]:
    """A profile of samples. The innermost frame of a stack has the line."""
    weights: dict[tuple[int, ...], int] = {}
    chains = path_chains(row)
    for sample in row["samples"]:
        instruction = row["instructions"][sample["instruction"]]
        stack = [index(name) for name, _ in stack_of(chains[sample["path"]], instruction)]
        line = row["lines"][instruction["line"]]
        if line["file"] and line["line"]:
            name = line["file"].rpartition("/")[2]
            stack.append(index(f"{name}:{line['line']}", line["file"], line["line"]))
        key = tuple(stack)
        weights[key] = weights.get(key, 0) + sample["cycles"]
    return {
        "type": "sampled",
        "name": f"{', '.join(filter(None, (row['nic'], row['place'])))} (cycles)",
        "unit": "none",
        "startValue": 0,
        "endValue": sum(weights.values()),
        "samples": [list(stack) for stack in weights],
        "weights": list(weights.values()),
    }


def pprof(row: ProfileRow) -> bytes:
    """A card's profile for pprof: a `Profile` of profile.proto, compressed with gzip.

    The values of a sample are executions and cycles. The format is that of
    https://github.com/google/pprof/blob/main/proto/profile.proto.
    """
    return gzip.compress(_Pprof(row).encoded(), mtime=0)


class _Pprof:
    """The tables of a profile, with numbers from 1 on."""

    def __init__(self, row: ProfileRow) -> None:
        self.row = row
        self.strings: dict[str, int] = {"": 0}
        self.functions: dict[tuple[str, str], int] = {}
        self.locations: list[bytes] = []
        self.known: dict[object, int] = {}

    def encoded(self) -> bytes:
        """The message."""
        row = self.row
        period = self._type("cycles", "count")
        parts = [_field(1, self._type("executions", "count")), _field(1, period)]
        for sample in row["samples"]:
            places = self._stack(sample["path"], row["instructions"][sample["instruction"]])
            body = _packed(1, places) + _packed(2, [sample["executions"], sample["cycles"]])
            parts.append(_field(2, body))
        first = row["instructions"][0]["address"] if row["instructions"] else 0
        last = row["instructions"][-1]["address"] + 4 if row["instructions"] else 0
        # All addresses have names already (has_functions to has_inline_frames).
        flags = b"".join(_number(field, 1) for field in (7, 8, 9, 10))
        mapping = _number(1, 1) + _number(2, first) + _number(3, last) + _number(5, self._string(row["nic"])) + flags
        parts.append(_field(3, mapping))
        parts += [_field(4, location) for location in self.locations]
        for (name, file), number in self.functions.items():
            text = self._string(name)
            body = _number(1, number) + _number(2, text) + _number(3, text) + _number(4, self._string(file))
            parts.append(_field(5, body))
        parts += [_field(11, period), _number(12, 1), _number(14, self._string("cycles"))]
        # Strings come last, when all are known.
        parts += [_field(6, text.encode()) for text in self.strings]
        return b"".join(parts)

    def _string(self, text: str) -> int:
        return self.strings.setdefault(text, len(self.strings))

    def _type(self, kind: str, unit: str) -> bytes:
        return _number(1, self._string(kind)) + _number(2, self._string(unit))

    def _function(self, name: str, file: str | None) -> int:
        return self.functions.setdefault((name, file or ""), len(self.functions) + 1)

    def _stack(self, path: int, instruction: ProfiledInstruction) -> list[int]:
        """The locations of a stack, the innermost first."""
        row = self.row
        above, caller = [], row["paths"][path]["caller"]
        while caller is not None:
            above.append(self._call(caller))
            caller = row["paths"][caller]["caller"]
        return [self._location(path, instruction), *above]

    def _call(self, path: int) -> int:
        """The location of a call: the function's start, since the place of the call is not known."""
        if path not in self.known:
            of = self.row["paths"][path]
            name = of["symbol"] or f"{of['address']:#x}"
            self._add(path, of["address"], [(self._function(name, None), 0)])
        return self.known[path]

    def _location(self, path: int, instruction: ProfiledInstruction) -> int:
        key = ("instruction", instruction["address"])
        if key not in self.known:
            of = self.row["paths"][path]
            outermost = instruction["symbol"] or of["symbol"] or f"{of['address']:#x}"
            lines = [
                (self._function(frame["function"] or outermost, frame["file"]), frame["line"] or 0)
                for frame in instruction["frames"]
            ]
            self._add(key, instruction["address"], lines or [(self._function(outermost, None), 0)])
        return self.known[key]

    def _add(self, key: object, address: int, lines: Iterable[tuple[int, int]]) -> None:
        self.known[key] = len(self.locations) + 1
        body = _number(1, self.known[key]) + _number(2, 1) + _number(3, address)
        body += b"".join(_field(4, _number(1, function) + _number(2, line)) for function, line in lines)
        self.locations.append(body)


def _varint(value: int) -> bytes:
    """A number in groups of 7 bits, the lowest first."""
    encoded = bytearray()
    while value >= _MORE:
        encoded.append(value % _MORE | _MORE)
        value //= _MORE
    encoded.append(value)
    return bytes(encoded)


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _field(field: int, body: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(body)) + body


def _packed(field: int, values: Iterable[int]) -> bytes:
    return _field(field, b"".join(_varint(value) for value in values))
