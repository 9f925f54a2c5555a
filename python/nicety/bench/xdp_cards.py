"""XDP programs in line-rate checks: builds for cards, and figures after runs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nicety._generated.types import LineRateRow, XdpFigures
from nicety.bench.verdicts import named
from nicety.build.card import XdpProgram
from nicety.build.compiler import Compiled
from nicety.errors import InputError
from nicety.shared.files import write_whole


@dataclass
class OnCards:
    """A program on the cards of a check.

    Attributes:
        program: the program.
        dumps: names of maps, and files for their entries after the run.
    """

    program: XdpProgram
    dumps: Mapping[str, Path]
    _items: dict[str, Mapping[str, Any]] = field(default_factory=dict)

    def check(self, given: Mapping[str, Any]) -> None:
        """Refuse dumps of several runs.

        Raises:
            InputError: the check has more than one run.
        """
        sizes = given.get("packet_sizes")
        one = given.get("traffic") or (sizes is not None and len(sizes) == 1)
        if self.dumps and (len(given.get("nics", ())) > 1 or not one):
            raise InputError("--dump: the entries after one run; name one card, and one packet size or traffic")

    def build(self, item: Mapping[str, Any]) -> Compiled:
        """Build the program for a card of the plan.

        Raises:
            InputError: its handlers have no frames, or the program is wrong.
        """
        if item["xdp"] is None:
            raise InputError(
                f"{self.program.path}: an XDP program has frames, and handlers of {item['key']} have messages; name a"
                " card with frames, as --nic spin-100g"
            )
        self._items[item["key"]] = item
        return self.program.compile(item["isa"], item["xdp"])

    def told(self, text: str, elfs: Mapping[str, bytes], data: Iterable[bytes | None]) -> str:
        """The report with the figures of the program, after dumps are written."""
        report = json.loads(text)
        for row, bytes_ in zip(report["rows"], data, strict=True):
            if bytes_ is None:
                continue
            item, elf = self._items[row["nic"]], elfs[row["nic"]]
            found = self.program.figures(row, elf, bytes_, item, list(self.dumps))
            row["xdp"] = found["figures"]
            for name, path in self.dumps.items():
                # A line for each entry.
                lines = ",\n".join(json.dumps(entry) for entry in found["maps"][name])
                write_whole(path, f"[{lines}]\n".encode())
        return json.dumps(report)


def xdp_words(rows: Iterable[LineRateRow]) -> list[str]:
    """In words, the verdicts of an XDP program, its memory, and the errors that it may hide."""
    return [f"{named(row)}: {text}" for row in rows if "xdp" in row for text in _of(row["xdp"])]


def _of(figures: XdpFigures) -> list[str]:
    counts = figures["verdicts"]
    verdicts = ", ".join(f"{name} {counts[name]}" for name in sorted(counts, key=lambda name: -counts[name]))
    sizes = {name: size for name, size in figures["map_bytes"].items() if size}
    maps = ", ".join(f"{name} {size} B" for name, size in sizes.items())
    texts = [
        f"verdicts of {figures['program']}: {verdicts or 'none'}.",
        (
            f"{figures['program']} has {figures['ebpf_instructions']} instructions of eBPF; with the runtime, code and"
            f" constants are {figures['code_bytes']} B, and maps {sum(sizes.values())} B{f' ({maps})' if maps else ''}."
        ),
    ]
    if aborted := counts.get("XDP_ABORTED"):
        texts.append(f"{aborted} frames ended with XDP_ABORTED, and the card dropped them.")
    if invalid := figures["invalid"]:
        texts.append(f"{invalid} frames ended with a number that is no verdict, and the card dropped them.")
    if failed := figures["redirects_failed"]:
        texts.append(
            f"{failed} frames with XDP_REDIRECT had no destination, and the card dropped them: the map's entry is"
            " empty, or the host has no such receive channel."
        )
    if longer := figures["too_long"]:
        texts.append(f"{longer} frames became longer than the card sends (frames.mtu), and the card dropped them.")
    texts += [
        f"map {name} was full for {count} updates, which failed; raise its max_entries, or let the program tell."
        for name, count in figures["updates_full"].items()
    ]
    return texts
