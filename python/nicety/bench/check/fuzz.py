"""Mutated packets for the checker, led by the instructions that they reach, and captures that replay findings."""

from __future__ import annotations

import random
import struct
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nicety._generated.types import CheckReport, Finding, FindingCapture
from nicety.shared.files import write_whole

BATCH = 32
"""Packets of a run."""
SHORTEST, LONGEST = 60, 1514
"""Bytes of a frame."""
_ADDRESSES = bytes.fromhex("020000000002020000000001")
_WORDS = (0, 1, 0x7F, 0x80, 0xFF, 0x100, 0x7FFF, 0x8000, 0xFFFF)
# The head of a capture: microseconds, Ethernet.
_HEAD = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1)

Key = tuple[Any, ...]
Check = Callable[[Path], CheckReport]


def capture_of(frames: Sequence[bytes]) -> bytes:
    """A pcap file with frames, a microsecond apart."""
    records = (struct.pack("<IIII", 0, at, len(frame), len(frame)) + frame for at, frame in enumerate(frames))
    return _HEAD + b"".join(records)


def usual_frames() -> list[bytes]:
    """The frames that the search begins with: UDP, TCP, a VLAN tag and ARP."""
    found = []
    for protocol, size in ((17, 60), (6, 100), (17, 300)):
        ip = struct.pack("!BBHHHBBH4s4s", 0x45, 0, size - 14, 1, 0, 64, protocol, 0, b"\x0a\0\0\1", b"\x0a\0\0\2")
        ports = struct.pack("!HHHH", 53, 53, size - 34, 0)
        found.append((_ADDRESSES + b"\x08\0" + ip + ports).ljust(size, b"\0"))
    tagged = found[0][:12] + b"\x81\0\0\5" + found[0][12:]
    return [*found, tagged, (_ADDRESSES + b"\x08\6").ljust(SHORTEST, b"\0")]


def mutated(frame: bytes, other: bytes, chance: random.Random) -> bytes:
    """A frame with one to four changes."""
    data = bytearray(frame)
    for _ in range(chance.randint(1, 4)):
        at = chance.randrange(len(data))
        match chance.randrange(6):
            case 0:
                data[at] ^= 1 << chance.randrange(8)
            case 1:
                data[at] = chance.randrange(256)
            case 2:
                data[at : at + 2] = struct.pack("!H", chance.choice(_WORDS))
            case 3:
                del data[chance.randint(14, len(data)) :]
            case 4:
                data += chance.randbytes(chance.randrange(200))
            case _:
                data[at:] = other[at:]
    return bytes(data[:LONGEST]).ljust(SHORTEST, b"\0")


def key_of(finding: Finding) -> Key:
    """The identity of a finding: its kind and its places."""
    sides = [side for side in (finding["at"], finding["other"]) if side is not None]
    places = sorted((side["place"]["file"] or "", side["place"]["line"] or side["pc"]) for side in sides)
    return (finding["kind"], *places)


def packets_of(finding: Finding) -> list[int]:
    """The numbers of the packets that a finding names."""
    sides = [side for side in (finding["at"], finding["other"]) if side is not None]
    return sorted({side["packet"] for side in sides if side["packet"] is not None})


def unused_path(name: str, key: Key, captures: Sequence[FindingCapture]) -> Path:
    """A file for a finding. Findings at one line may differ in their other side."""
    kind, (_, line) = key[0], key[1]
    known = {capture["file"] for capture in captures}
    names = (f"{name}.{kind}.{line}{suffix}.pcap" for suffix in ("", *(f"-{at}" for at in range(2, 1000))))
    return Path(next(name for name in names if name not in known))


@dataclass
class Search:
    """A search for findings.

    Attributes:
        check: checks the packets of a capture.
        seed: the seed of mutations.
        name: the begin of the names of captures that replay findings.
    """

    check: Check
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
        corpus = usual_frames()
        ends = time.monotonic() + seconds
        with tempfile.TemporaryDirectory() as folder:
            self._place = Path(folder) / "packets.pcap"
            self.covered = self._checked(corpus)["covered"]
            self._take([], corpus)
            while time.monotonic() < ends:
                batch = [mutated(chance.choice(corpus), chance.choice(corpus), chance) for _ in range(BATCH)]
                self._take(batch, corpus)

    def _checked(self, frames: Sequence[bytes]) -> CheckReport:
        self.runs += 1
        self.packets += len(frames)
        self._place.write_bytes(capture_of(frames))
        return self.check(self._place)

    def _take(self, batch: list[bytes], corpus: list[bytes]) -> None:
        """Check a batch behind the corpus, keep its frames that reach new instructions, and its findings."""
        frames = [*corpus, *batch]
        report = self._checked(frames)
        if report["covered"] > self.covered:
            for frame in batch:
                more = self._checked([*corpus, frame])["covered"]
                if more > self.covered:
                    self.covered = more
                    corpus.append(frame)
            # Some instructions need several packets.
            self.covered = max(self.covered, report["covered"])
        for finding in report["findings"]:
            key = key_of(finding)
            if key not in self.findings:
                self.findings[key] = finding
                self._save(key, finding, frames)

    def _save(self, key: Key, finding: Finding, all_: list[bytes]) -> None:
        """Write the fewest packets with which the finding comes again."""
        path = unused_path(self.name, key, self.captures)
        capture: FindingCapture = {
            "kind": finding["kind"],
            "place": finding["at"]["place"],
            "file": str(path),
            "packets": len(all_),
        }
        # An interrupt of the search for fewer packets leaves this capture.
        write_whole(path, capture_of(all_))
        self.captures.append(capture)
        named = [all_[number] for number in packets_of(finding) if number < len(all_)]
        frames = named if named and self._replays(key, named) else all_
        for frame in list(frames):
            fewer = [other for other in frames if other is not frame]
            if fewer and self._replays(key, fewer):
                frames = fewer
        write_whole(path, capture_of(frames))
        capture["packets"] = len(frames)

    def _replays(self, key: Key, frames: Sequence[bytes]) -> bool:
        return key in {key_of(finding) for finding in self._checked(frames)["findings"]}
