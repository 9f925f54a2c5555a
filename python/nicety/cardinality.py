"""How many distinct addresses went by? PCSA on a network flow processor.

Probabilistic counting with stochastic averaging (Flajolet and Martin, 1985) keeps a few thousand words, the sketches,
in place of the addresses. The card's program is `nfp/pcsa.c` of the library.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from os import PathLike, fspath
from typing import Any, Literal, TypedDict, cast

from nicety import _native
from nicety._checks import U32, U64, Names, Numbers, Overrides, changes, names, numbers, text, whole
from nicety._typed import checked
from nicety.compiler import compile_handlers, library_source

Progress = Callable[[int, int], None]


class ContextRow(TypedDict):
    """A number of contexts on a card.

    `cycles_total` is what one microengine takes for `updates` in all, which its contexts share after one start for all;
    it is the sum of the cycles in which some context computed, all were asleep, and the microengine changed over.
    `context_cycles_*` are summed over contexts, which sleep while others compute.

    `updates_per_s` is what the whole card makes with as many contexts on every microengine, where each update sets a
    bit that is new and so makes two references; `updates_per_s_settled` where the bits are set already, with one. The
    line rate is the Ethernet that carries a packet of 64 bytes, 84 with preamble and gap, for each of the former.
    """

    nic: str
    contexts: int
    updates: int
    cycles_total: int
    cycles_computing: int
    cycles_asleep: int
    cycles_switching: int
    context_cycles_asleep: int
    context_cycles_ready: int
    time_ns: float
    updates_per_s: float
    updates_per_s_settled: float
    line_rate_packets_per_s: float
    line_rate_bits_per_s: float


class ContextReport(TypedDict):
    """What the benchmark of contexts gives; `nicety bench pcsa --json` prints just this."""

    benchmark: Literal["pcsa"]
    version: str
    manifest: dict[str, Any]
    rows: list[ContextRow]


class _Shown(dict[str, Any]):
    """A report that shows itself as tables in a notebook."""

    def _repr_html_(self) -> str:
        from nicety._notebook import context_html

        return context_html(cast(ContextReport, self))


@checked
def bench_pcsa(
    *,
    nics: Names = ("nfp-4000",),
    contexts: Numbers = range(1, 9),
    updates: int = 8,
    overrides: Overrides = (),
    cc: str | None = None,
    progress: Progress | None = None,
) -> ContextReport:
    """Measure what contexts do for the cardinality estimate: cycles of some updates, and updates a second of the card.

    Args:
        nics: cards with a network flow processor: names of specs, or paths of spec files.
        contexts: numbers of contexts, each a row.
        updates: updates in all on one microengine, 256 at most.
        overrides: changes to the cards, `KEY=VALUE` with a unit where the key has one: `hpu.cores=8`.
        cc: a compiler to use instead of the one in the `ziglang` package.
        progress: called with the number of rows that are done and that there will be.

    Raises:
        InputError: a card without microengines, more contexts than they have, an override that cannot be.
    """
    request = json.dumps(
        {
            "nics": names(nics, "a card", "nfp-4000"),
            "contexts": numbers(contexts, "a number of contexts"),
            "updates": whole(updates, "updates", U64),
            "overrides": changes(overrides),
        }
    )
    elfs: dict[str, bytes] = {}
    compiler: dict[str, dict[str, Any]] = {}
    for item in json.loads(_native.pcsa_plan(request))["compile"]:
        elfs[item["key"]], compiler[item["key"]] = compiled("nfp/pcsa.c", item["isa"], cc)
    report = json.loads(_native.pcsa_bench(request, elfs, progress))
    report["manifest"]["compiler"] = compiler
    return cast(ContextReport, _Shown(report))


class Damage(TypedDict):
    """Where a capture ceases to be whole: the packet, counted from 1, the byte of the file, and what is wrong."""

    packet: int
    byte: int
    text: str


class CountReport(TypedDict):
    """What counting a capture's sources gives; `nicety pcsa --json` prints just this.

    `packets` are all that were read: those of IP, which are counted, and `other_packets` (not of IP), `cut_packets`
    (too little was captured) and `unknown_link_packets`. `distinct` is the true number of source addresses, `estimate`
    the card's, `relative_error` how far that is off, and `expected_error` the standard error of so many sketches.
    `trailing_ones` is what the card gives. Card time is from the first packet, or the host's first message, to when
    the host has the sum. Through the port, `sent_ns` is when the last packet had gone in, and `wire_ns` how long the
    wire was busy with them: less where the card held them up. `shortened_packets` were longer than a frame, and went
    without their end. Through channels, `blocks` is in how many the addresses went to the card. What does not apply is
    None.
    """

    application: Literal["pcsa"]
    version: str
    manifest: dict[str, Any]
    capture: str
    format: Literal["pcap", "pcapng"]
    bytes: int
    packets: int
    ipv4_packets: int
    ipv6_packets: int
    other_packets: int
    cut_packets: int
    unknown_link_packets: int
    shortened_packets: int
    distinct: int
    nic: str
    sketches: int
    estimate: float
    relative_error: float
    expected_error: float
    trailing_ones: int
    through: Literal["port", "channels"]
    blocks: int | None
    sent_ns: float | None
    wire_ns: float | None
    card_time_ns: float
    card_packets_per_s: float
    damage: Damage | None


@checked
def count_sources(
    capture: PathLike[str] | str,
    *,
    nic: PathLike[str] | str = "nfp-4000",
    sketches: int = 2048,
    through: Literal["port", "channels"] = "port",
    overrides: Overrides = (),
    cc: str | None = None,
    progress: Progress | None = None,
) -> CountReport:
    """Count the distinct source addresses of a capture on a card, and one by one beside it.

    Packets are replayed into the card's port, one behind the other, and processes on the card find their addresses; or
    the host does, and sends them by channels. An address of IP version 6 is folded to 32 bits by MurmurHash3 of its
    bytes. A capture that is damaged is counted up to there, and the report says where.

    Args:
        capture: a file in pcap's or pcapng's format, of any length.
        nic: a card with a network flow processor: the name of a spec, or the path of a spec file.
        sketches: a power of two from 16 to what the card's CLS holds.
        through: how the addresses come to the card, `port` or `channels`.
        overrides: changes to the card, `KEY=VALUE` with a unit where the key has one: `hpu.cores=8`.
        cc: a compiler to use instead of the one in the `ziglang` package.
        progress: called with the kilobytes that have been read and that there are.

    Raises:
        InputError: no capture, none with a source address, or an argument that cannot be.
    """
    request = json.dumps(
        {
            "file": text(fspath(capture), "a capture", "capture.pcap"),
            "nic": text(fspath(nic), "a card", "nfp-4000"),
            "sketches": whole(sketches, "sketches", U32),
            "through": through,
            "overrides": changes(overrides),
        }
    )
    plan = json.loads(_native.pcsa_count_plan(request))
    elf, manifest = compiled("nfp/pcsa.c", plan["isa"], cc, (plan["define"],))
    report = json.loads(_native.pcsa_count(request, {"pcsa": elf}, progress))
    report["manifest"]["compiler"] = {report["nic"]: manifest}
    return cast(CountReport, report)


def compiled(name: str, isa: str, cc: str | None, defines: tuple[str, ...] = ()) -> tuple[bytes, dict[str, Any]]:
    """A program of the library for a card, and what a manifest says of it."""
    source = library_source(name)
    program = compile_handlers([source], isa=isa, cc=cc, defines=defines)
    return program.elf, {
        "source": name,
        "sha256": hashlib.sha256(source.read_bytes()).hexdigest(),
        "version": program.compiler,
        "flags": program.flags,
    }
