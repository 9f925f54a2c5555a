"""The number of distinct addresses in traffic: PCSA on a network flow processor.

Probabilistic counting with stochastic averaging (Flajolet and Martin, 1985) keeps a few thousand words, the sketches,
instead of the addresses. The card's program is `nfp/pcsa.c` of the library.
"""

from __future__ import annotations

import json
from os import fspath
from typing import Literal, Unpack, cast, get_args

from nicety import _native
from nicety._generated.types import CountOptions, CountReport
from nicety.bench.measured import Progress
from nicety.build.compiler import compiled
from nicety.errors import InputError
from nicety.shared.checks import Place, one_of, text
from nicety.shared.options import request_text
from nicety.shared.typed import checked
from nicety.show.columns import align, fixed
from nicety.show.html import Shown, text_html

Hash = Literal["mixed", "crc"]
"""The hash of an address. `crc` is the card's CRC-32, as in the paper; `mixed` has MurmurHash3's last steps too."""
HASHES: tuple[Hash, ...] = get_args(Hash)


class CardinalityReport(CountReport):
    """A report with the hash of addresses."""

    hash: Hash


@checked
def count_sources(
    capture: Place,
    *,
    hash: Hash = "mixed",  # noqa: A002, the option's name
    cc: str | None = None,
    progress: Progress | None = None,
    **given: Unpack[CountOptions],
) -> CardinalityReport:
    """Count the distinct source addresses of a capture on a card, and compare with an exact count.

    Packets are replayed into the card's port back to back, and processes on the card find their addresses. With
    `through="channels"` the host finds the addresses instead, and sends them over channels. An address of IP version 6
    is folded to 32 bits by MurmurHash3 of its bytes. A damaged capture is counted up to the damage, and the report
    gives the place of the damage.

    Args:
        capture: a file in pcap's or pcapng's format, of any length, optionally compressed by gzip or zstd.
        hash: the hash of an address: `mixed`, or `crc`, as in the paper. With `crc`, the estimate of addresses in order
            is off by far more than the expected error, since a CRC keeps their distances.
        cc: a compiler to use instead of the one in the `ziglang` package.
        progress: called with the number of kilobytes read, and the total.
        given: the arguments of `CountOptions`.

    Raises:
        InputError: the file is no capture, the capture has no source address, or an argument is invalid.
    """
    if hash not in HASHES:
        raise InputError(f"hash is {one_of(HASHES)}, not {hash}")
    request = request_text(CountOptions, given, file=text(fspath(capture), "a capture", "capture.pcap"))
    plan = json.loads(_native.pcsa_count_plan(request))
    elf, manifest = compiled("nfp/pcsa.c", plan["isa"], cc, (plan["define"], *(["MIXED"] if hash == "mixed" else [])))
    report = json.loads(_native.pcsa_count(request, {"pcsa": elf}, progress))
    report["manifest"]["compiler"] = {report["nic"]: manifest}
    report["hash"] = hash
    return cast(CardinalityReport, Shown(report, lambda found: text_html(count_text(found))))


_THROUGH = {
    "port": "packets through the port, their addresses found by the card",
    "channels": "addresses by channels, found by the host",
}


ENOUGH = 10
"""Minimum number of distinct addresses per sketch without a warning: the estimate's bias is 0.4% here, and falls."""
_WHOLE = 0.9999
"""Minimum utilisation of the wire, up to the last packet's departure, at which no remark on delays is printed."""


def count_text(report: CardinalityReport) -> str:
    """Return a count as aligned lines of names and values, below a header."""
    ipv6, skipped = report["ipv6_packets"], report["packets"] - report["ipv4_packets"] - report["ipv6_packets"]
    reasons = {
        "not of IP": report["other_packets"],
        "cut off": report["truncated_packets"],
        "of other links": report["unknown_link_packets"],
        "damaged on their link": report["damaged_packets"],
    }
    parts = [f"{packets} {name}" for name, packets in reasons.items() if packets]
    why = f" ({', '.join(parts)})" if parts else ""
    dropped = report["dropped_packets"]
    wire = []
    if report["sent_ns"] is not None and report["wire_busy_ns"] is not None:
        busy = report["wire_busy_ns"] / report["sent_ns"] if report["sent_ns"] else 1.0
        wire = [["wire busy", f"{fixed(100 * busy, 1)}%" + ("" if busy > _WHOLE else ", the card delayed packets")]]
    of = "" if report["hash"] == "mixed" else " for random addresses; larger for addresses in order"
    if report["distinct"] < (enough := ENOUGH * report["sketches"]):
        of += f"; valid from {enough} addresses on, and with fewer the estimate is too high"
    rows = [
        ["packets", f"{report['packets']}"],
        ["of IP, counted", f"{report['packets'] - skipped}" + (f" ({ipv6} of version 6)" if ipv6 else "")],
        *([["skipped", f"{skipped}{why}"]] if skipped else []),
        *([["shortened", f"{report['oversized_packets']}"]] if report["oversized_packets"] else []),
        *([["dropped by the port", f"{dropped} (length field 0, or more than was captured)"]] if dropped else []),
        ["estimate", fixed(report["estimate"], 1)],
        ["distinct sources", f"{report['distinct']}"],
        ["error", f"{fixed(100 * report['relative_error'], 2)}%"],
        ["expected error", f"{fixed(100 * report['expected_error'], 2)}%, 0.78 / sqrt({report['sketches']}){of}"],
        *wire,
        ["card time", f"{fixed(report['card_time_ns'] / 1e6, 3)} ms"],
        ["packets/s", f"{fixed(report['card_packets_per_s'] / 1e6, 1)} million, of card time"],
    ]
    lines = [
        f"# nicety PCSA v{report['version']}",
        f"# {report['capture']}, {report['format']}; {report['nic']}, {report['sketches']} sketches",
        f"# {_THROUGH[report['through']]}",
        "",
        *align(rows),
    ]
    return "\n".join(lines) + "\n"
