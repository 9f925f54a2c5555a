"""Mutated messages from hosts to processes, led by the instructions that they reach, and captures that replay them."""

from __future__ import annotations

import random
import struct
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nicety._generated.types import Finding, FindingCapture
from nicety.bench.check.fuzz import Key, key_of, unused_path
from nicety.errors import InputError
from nicety.program.channels.outgoing import Outgoing, Place
from nicety.shared.files import write_whole

MOST_CHANGED = 3
"""Most messages of a run that are changed beside those of the run before it."""
_WORDS = (0, 1, 0x7F, 0x80, 0xFF, 0x100, 0x7FFF, 0x8000, 0xFFFF, 0x7FFF_FFFF, 0x8000_0000, 0xFFFF_FFFF)
# The head of a capture: microseconds, and a link type for private use.
_USER0 = 147
_HEAD = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 1 << 31, _USER0)
_RECORD = struct.Struct("<IIII")

Changes = dict[Place, bytes]
Run = Callable[[Outgoing], dict[str, Any]]


def capture_of(changes: Mapping[Place, bytes]) -> bytes:
    """A pcap file with messages. Each follows its place: rank, card, target and number, of four bytes each."""
    found = [_HEAD]
    for at, (place, contents) in enumerate(changes.items()):
        record = _RECORD.pack(*place) + contents
        found += [_RECORD.pack(0, at, len(record), len(record)), record]
    return b"".join(found)


def messages_of(path: Path) -> Changes:
    """The messages of a capture.

    Raises:
        InputError: the file cannot be read, or is no such capture.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise InputError(f"replay: {path}: cannot read it ({error.strerror})") from error
    refused = InputError(f"replay: {path} is no capture of messages, such as nicety check --fuzz writes")
    if data[: len(_HEAD)] != _HEAD:
        raise refused
    found, at = {}, len(_HEAD)
    while at < len(data):
        try:
            length = _RECORD.unpack_from(data, at)[2]
            place = Place(*_RECORD.unpack_from(data, at + _RECORD.size))
        except struct.error as error:
            raise refused from error
        begin, at = at + 2 * _RECORD.size, at + _RECORD.size + length
        if not begin < at <= len(data):
            raise refused
        found[place] = data[begin:at]
    return found


def mutated(contents: bytes, other: bytes, chance: random.Random) -> bytes:
    """A message of the same length with one to four changes."""
    data = bytearray(contents)
    for _ in range(chance.randint(1, 4)):
        at = chance.randrange(len(data))
        size = min(chance.choice((1, 2, 4)), len(data) - at)
        at -= at % size
        mask = (1 << 8 * size) - 1
        match chance.randrange(5):
            case 0:
                data[at] ^= 1 << chance.randrange(8)
            case 1:
                data[at : at + size] = chance.randbytes(size)
            case 2:
                data[at : at + size] = (chance.choice(_WORDS) & mask).to_bytes(size, "little")
            case 3:
                value = int.from_bytes(data[at : at + size], "little") + chance.choice((-8, -4, -1, 1, 4, 8))
                data[at : at + size] = (value & mask).to_bytes(size, "little")
            case _:
                data[at:] = other[at : len(data)] + data[max(at, len(other)) :]
    return bytes(data)


@dataclass
class MessageSearch:
    """A search for findings.

    Attributes:
        check: runs the program with these messages, under the checker.
        seed: the seed of mutations.
        name: the begin of the names of captures that replay findings.
    """

    check: Run
    seed: int
    name: str
    findings: dict[Key, Finding] = field(default_factory=dict)
    captures: list[FindingCapture] = field(default_factory=list)
    covered: int = 0
    runs: int = 0
    packets: int = 0

    def run(self, seconds: float) -> None:
        """Search for this time."""
        chance = random.Random(self.seed)  # noqa: S311  # mutations are no secret
        ends = time.monotonic() + seconds
        found, sent = self._checked({})
        self.findings = {key_of(finding): finding for finding in found["findings"]}
        reached = _reached(found)
        self.covered = len(reached)
        if not sent:
            raise InputError(
                "fuzz: hosts send no messages to processes, so that there is nothing to mutate; leave it out"
            )
        corpus: list[tuple[Changes, Changes]] = [({}, sent)]
        while time.monotonic() < ends:
            changes, sent = chance.choice(corpus)
            changes = dict(changes)
            for _ in range(chance.randint(1, MOST_CHANGED)):
                place = chance.choice(list(sent))
                changes[place] = mutated(sent[place], chance.choice(list(sent.values())), chance)
            found, sent = self._checked(changes)
            if more := _reached(found) - reached:
                reached |= more
                self.covered = len(reached)
                # Messages that were not sent changed nothing.
                changes = {place: contents for place, contents in changes.items() if place in sent}
                corpus.append((changes, sent))
            for finding in found["findings"]:
                key = key_of(finding)
                if key not in self.findings:
                    self.findings[key] = finding
                    self._save(key, finding, changes)

    def _checked(self, changes: Changes) -> tuple[dict[str, Any], Changes]:
        self.runs += 1
        outgoing = Outgoing(changes)
        found = self.check(outgoing)
        self.packets += len(outgoing.sent)
        return {"findings": [], "covered": [], **found}, {place: sent for place, sent in outgoing.sent.items() if sent}

    def _save(self, key: Key, finding: Finding, changes: Changes) -> None:
        """Write the fewest changed messages with which the finding comes again."""
        path = unused_path(self.name, key, self.captures)
        capture: FindingCapture = {
            "kind": finding["kind"],
            "place": finding["at"]["place"],
            "file": str(path),
            "packets": len(changes),
        }
        # An interrupt of the search for fewer messages leaves this capture.
        write_whole(path, capture_of(changes))
        self.captures.append(capture)
        for place in list(changes):
            fewer = {other: contents for other, contents in changes.items() if other != place}
            if fewer and key in {key_of(other) for other in self._checked(fewer)[0]["findings"]}:
                changes = fewer
        write_whole(path, capture_of(changes))
        capture["packets"] = len(changes)


def _reached(found: Mapping[str, Any]) -> set[tuple[str, int]]:
    return {(functions, address) for functions, addresses in found["covered"] for address in addresses}
