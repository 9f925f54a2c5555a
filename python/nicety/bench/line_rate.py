"""The line-rate check: a card receives packets as fast as its link delivers them."""

from __future__ import annotations

import hashlib
import json
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from html import escape
from pathlib import Path
from typing import Any, Unpack, cast

from nicety import _native
from nicety._generated.types import (
    DataCache,
    HandlerNames,
    LineRateOptions,
    LineRateReport,
    LineRateRow,
    PortFigures,
    ProgramManifest,
    SourceManifest,
    TrafficFigures,
)
from nicety.bench.measured import Progress, Scale, measured
from nicety.bench.places.pictures import line_rate_figure
from nicety.bench.places.xdp_cards import (
    PLACES,
    OnCards,
    check_recordings,
    context_words,
    core_words,
    driver_words,
    places_table,
    xdp_about,
    xdp_words,
)
from nicety.bench.verdicts import (
    SENSITIVE,
    headrooms,
    named,
    offered,
    rests,
    sensitive,
    verdict,
)
from nicety.bench.words.remarks import remarks, unused
from nicety.bench.words.shortfalls import shortfalls
from nicety.build.card import XdpProgram, is_object
from nicety.build.sources import Handlers
from nicety.errors import InputError
from nicety.program.failures import Allowed, allowed, require_report
from nicety.program.portals.refusals import refused_at_sizes
from nicety.shared.checks import Place
from nicety.shared.options import request_text
from nicety.shared.typed import checked
from nicety.show.circumstances import circumstances
from nicety.show.columns import align, counted, distinct, fixed
from nicety.show.html import table_html


@checked
def check_line_rate(
    handlers: Handlers | XdpProgram | Path | str,
    *,
    include_dirs: Iterable[Path | str] = (),
    defines: Iterable[str] = (),
    cc: str | None = None,
    dumps: Iterable[tuple[str, Path]] = (),
    allow_failures: Allowed = (),
    trace: Place | None = None,
    trace_scale: Scale = "ns",
    progress: Progress | None = None,
    news: Callable[[str], None] | None = None,
    recorded: Callable[[_native.Recording], None] | None = None,
    **given: Unpack[LineRateOptions],
) -> LineRateReport:
    """Send packets to handlers at the rate of the wire, and find out whether the handlers keep up.

    The rate of the wire is a packet every max(g, bytes x G): the card's gap between messages, or the link's time for
    the bytes. The handlers serve one persistent match entry, at which messages arrive back to back.

    Args:
        handlers: a C file, `Handlers` with the names of its functions, an eBPF object, or `XdpProgram` with its maps.
        include_dirs: further folders for `#include`.
        defines: macros, `NAME` or `NAME=VALUE`.
        cc: a compiler to use instead of the one in the `ziglang` package.
        dumps: names of maps of an XDP program, and files for their entries after the run.
        allow_failures: failures of handlers that are part of the experiment; see `Cluster`.
        trace: a file for a timeline of the first row's run, to be opened with https://ui.perfetto.dev.
        trace_scale: the tick of the timeline, a nanosecond or a picosecond.
        progress: called with the number of rows done, and the total.
        news: called with early results of a row: whether the card keeps up, and the progress of the search for its
            sustainable rate.
        recorded: called with the recording of the first row's run as soon as that has ended; not with `trace`.
        given: the arguments of `LineRateOptions`.

    Raises:
        InputError: a card, size, override or handler that does not exist or is invalid.
        HandlerTrap: a handler failed; the text names the line.
        HandlerFailure: handlers failed in a way that is not allowed; the exception's `report` is complete.
        RunError: the run failed otherwise.
    """
    program = program_of(handlers, include_dirs, defines, cc)
    if trace is not None and recorded is not None:
        raise InputError("recorded: the recording goes to the file of trace; leave one of them out")
    kinds = allowed(allow_failures)
    if "trap" in kinds and kinds != allowed("all"):
        raise InputError(
            "allow_failures: a handler that is stopped ends the check, so that trap cannot be allowed here"
        )

    on_cards = on_cards_of(program, dict(dumps), given)
    request = request_text(LineRateOptions, given, **derived(program, on_cards))
    if on_cards is not None:
        check_recordings(given.get("nics"), json.loads(_native.line_rate_plan(request)), trace)

    def run(
        request: str, elfs: dict[str, bytes], progress: Progress | None, record: bool
    ) -> tuple[str, _native.Recording | None]:
        record = record or recorded is not None
        text, recording, data = _native.line_rate_run(request, elfs, progress, record, news=news, recorded=recorded)
        return (text if on_cards is None else on_cards.told(text, elfs, data)), recording

    shown = measured(
        request,
        _native.line_rate_plan,
        run,
        partial(build_for, program, on_cards),
        line_rate_html,
        line_rate_figure,
        trace=trace,
        trace_scale=trace_scale,
        progress=progress,
    )
    report = cast(LineRateReport, shown)
    require_report(report, kinds)
    return report


def build_for(
    program: Handlers | XdpProgram, on_cards: OnCards | None, item: Mapping[str, Any]
) -> tuple[bytes, ProgramManifest]:
    """Build a program for a card of the plan. Return the ELF file and its entry in the manifest."""
    if isinstance(program, XdpProgram):
        elf, version, flags = cast(OnCards, on_cards).build(item)
        return elf, {"sources": [_source(program.path)], "version": version, "flags": flags}
    compiled = program.compile(isa=item["isa"], interface=item["interface"])
    sources = [_source(path) for path in program.paths()]
    return compiled.elf, {"sources": sources, "version": compiled.compiler, "flags": compiled.flags}


def derived(program: Handlers | XdpProgram, on_cards: OnCards | None) -> dict[str, Any]:
    """Return the options of a request that follow from the program: names of handlers, or values of an XDP program."""
    if on_cards is not None:
        return {"xdp": on_cards.options()}
    names: HandlerNames = {
        "header": getattr(program, "header", None),
        "payload": getattr(program, "payload", None),
        "completion": getattr(program, "completion", None),
    }
    return {"names": names}


def program_of(
    handlers: Handlers | XdpProgram | Path | str,
    include_dirs: Iterable[Path | str],
    defines: Iterable[str],
    cc: str | None,
) -> Handlers | XdpProgram:
    """Return the program for the cards: handlers in C, or an XDP program if `handlers` is an eBPF object."""
    more = include_dirs or defines or cc is not None
    if isinstance(handlers, Handlers | XdpProgram):
        if more:
            raise InputError("include_dirs, defines and cc are those of the Handlers; give them there")
        return handlers
    if is_object(Path(handlers)):
        if include_dirs or defines:
            raise InputError(f"{handlers}: an eBPF object is compiled already; leave include_dirs and defines out")
        return XdpProgram(Path(handlers), cc=cc)
    return Handlers(handlers, include_dirs=include_dirs, defines=defines, cc=cc)


def on_cards_of(program: Handlers | XdpProgram, dumps: Mapping[str, Path], given: Mapping[str, Any]) -> OnCards | None:
    """Return the object that builds an XDP program for each card; None for handlers in C."""
    if isinstance(program, XdpProgram):
        on_cards = OnCards(program, dumps)
        on_cards.check(given)
        return on_cards
    if dumps:
        raise InputError("dumps: C handlers have no maps; give an eBPF object, or leave it out")
    return None


def _source(path: Path) -> SourceManifest:
    return {"source": str(path), "sha256": hashlib.sha256(path.read_bytes()).hexdigest()}


def line_rate_html(report: LineRateReport) -> str:
    """Return a line-rate check for a notebook: each card's tables, and sentences with the reasons for its verdict."""
    text = f"<p>line-rate check, nicety {escape(report['version'])}, seed {report['seed']}</p>"
    if "places" in report:
        text += table_html(PLACES, places_table(report["places"]))
        text += "".join(f"<p>{escape(words)}</p>" for words in driver_words(report.get("drivers", [])))
        text += "".join(f"<p>{escape(words)}</p>" for words in core_words(report.get("ebpf_cores", [])))
        text += "".join(f"<p>{escape(words)}</p>" for words in context_words(report.get("flow_processors", [])))
    for nic in dict.fromkeys(row["nic"] for row in report["rows"]):
        own = [row for row in report["rows"] if row["nic"] == nic]
        text += "".join(table_html(title, rows) for title, rows in tables_of(nic, own))
        text += "".join(f"<p>{escape(words)}</p>" for words in [*refused_at_sizes(own), *words_of(own)])
    return text


_FIGURES = ("Cycles", "p99", "Instr.", "p99", "Time", "Budget", "HPUs", "of", "GB/s", "% of RATE", "Sustained")


_LOAD_COLUMNS = (
    "Packet",
    "Processed",
    "Dropped",
    "To host",
    "Failed",
    "Forwarded",
    "HPUs",
    "Matching",
    "Link",
    "Bus in",
    "Bus out",
    "Lock",
)


_TRAFFIC_COLUMNS = (
    "Offered",
    "Handled",
    "Passed",
    "Dropped",
    "Failed",
    "Overload",
    "No room",
    "p50",
    "p99",
    "p99.9",
    "Max",
)


_HANDLER_COLUMNS = ("Packet", "Handler", "Runs", "Cycles", "p99", "Instr.", "p99", "Time (ns)", "Queued (ns)")


def line_rate_text(report: LineRateReport) -> str:
    """A report as text."""
    if "places" in report:
        return _xdp_text(report)
    rows = report["rows"]
    if "traffic" in rows[0]:
        about = [*_expressions(rows[0]["traffic"]), f"seed {report['seed']}"]
    else:
        each, counts = rows[0]["message_packets"], distinct(row["packets"] for row in rows)
        about = [
            f"packets as fast as the wire carries them, {each} to a message",
            f"seed {report['seed']}, {counted(counts[0], 'packet')} a size",
        ]
    lines = [f"# {line}" for line in (f"nicety Line-Rate Check v{report['version']}", *about)]
    lines += [f"# {note}" for note in circumstances(report["manifest"])]
    for nic in distinct(row["nic"] for row in rows):
        own = [row for row in rows if row["nic"] == nic]
        for title, (head, *body) in tables_of(nic, own):
            lines += ["", f"# {title}", *align([[f"# {head[0]}", *head[1:]], *body], range(1, len(head)))]
        if refused := refused_at_sizes(own):
            lines += ["", *(f"# {line}" for line in refused)]
        for text in words_of(own):
            lines += ["", *textwrap.wrap(text, 100, initial_indent="# ", subsequent_indent="# ")]
    return "\n".join(lines) + "\n"


def _xdp_text(report: LineRateReport) -> str:
    """A report of an XDP program as text: one table of all places, and sentences on each."""
    lines = [f"# {line}" for line in (f"nicety Line-Rate Check v{report['version']}", *xdp_about(report))]
    head, *body = places_table(report["places"])
    lines += ["", f"# {PLACES}", *align([[f"# {head[0]}", *head[1:]], *body], range(2, len(head) - 1))]
    for nic in distinct(place["nic"] for place in report["places"]):
        own = [row for row in report["rows"] if row["nic"] == nic]
        drivers = [row for row in report.get("drivers", []) if row["nic"] == nic]
        cores = [row for row in report.get("ebpf_cores", []) if row["nic"] == nic]
        flows = [row for row in report.get("flow_processors", []) if row["nic"] == nic]
        others = [*driver_words(drivers), *core_words(cores), *context_words(flows)]
        for words in [*refused_at_sizes(own), *(words_of(own) if own else []), *others]:
            lines += ["", *textwrap.wrap(f"{nic}: {words}", 100, initial_indent="# ", subsequent_indent="# ")]
    return "\n".join(lines) + "\n"


def _expressions(traffic: TrafficFigures) -> list[str]:
    """Return lines with the expressions of the offered traffic; with several ports, a line per port."""
    ports = traffic.get("ports", [])
    if not ports:
        return [f"traffic, each packet a message: {traffic['traffic']}"]
    return [
        f"traffic of {len(ports)} ports at once, each packet a message",
        *(f"port {port['port']}: {port['traffic']}" for port in ports),
    ]


def words_of(rows: list[LineRateRow]) -> list[str]:
    """Return sentences about the figures of one card's rows."""
    return [
        *unused(rows),
        *shortfalls(rows),
        *headrooms(rows),
        *remarks(rows),
        *waits(rows),
        *foundation(rows),
        *rests(rows),
        *xdp_words(rows),
    ]


def tables_of(nic: str, rows: list[LineRateRow]) -> list[tuple[str, list[list[str]]]]:
    """Return titles and tables of one card's figures. Row 0 of a table names the columns."""
    rate = offered(rows)
    head = ["Packet", *(name.replace("RATE", rate) for name in _FIGURES)]
    tables = [(f"{nic}: payload handlers, and handler time a packet (ns)", [head, *map(_cells, rows)])]
    if figures := [row["traffic"] for row in rows if "traffic" in row]:
        title = f"{nic}: packet disposition, and latency through the card (ns)"
        tables.insert(0, (title, _traffic_table(figures)))
    if any(figures["handler"] != "payload" for row in rows for figures in row["handlers"]):
        cells = [
            [
                str(row["packet_bytes"]),
                figures["handler"],
                str(figures["runs"]),
                fixed(figures["cycles_mean"], 1),
                str(figures["cycles_p99"]),
                fixed(figures["instructions_mean"], 1),
                str(figures["instructions_p99"]),
                fixed(figures["time_ns_mean"]),
                fixed(figures["queued_ns_mean"]),
            ]
            for row in rows
            for figures in row["handlers"]
        ]
        tables.append((f"{nic}: each handler", [list(_HANDLER_COLUMNS), *cells]))
    title = f"{nic}: packet disposition, and resource utilisation at the {rate} (%)"
    loads = [list(_LOAD_COLUMNS), *map(_loads, rows)]
    if any(row["memory"]["levels"] for row in rows):
        banks = [fixed(100 * row["loads"]["memory_bank"], 1) for row in rows]
        loads = [[*line, cell] for line, cell in zip(loads, ["Bank", *banks], strict=True)]
    if any(row["loads"]["host"] is not None for row in rows):
        hosts = [fixed(100 * (row["loads"]["host"] or 0.0), 1) for row in rows]
        loads = [[*line, cell] for line, cell in zip(loads, ["Host", *hosts], strict=True)]
    tables.append((title, loads))
    if varied := sensitive(rows):
        title = f"{nic}: the assumed values to which the verdict is most sensitive, with the sustainable rate / {rate}"
        tables.append((title, [list(SENSITIVE), *varied]))
    return tables


def _traffic_table(figures: Sequence[TrafficFigures]) -> list[list[str]]:
    """Return a table of the packets per disposition; with several ports, also per port."""
    # The column of frames for which the host had no buffer is shown only if there are such frames.
    left_out = any(each["dropped_at_host"] for each in figures)
    columns = [name for name in _TRAFFIC_COLUMNS if left_out or name != "No room"]
    if not any("ports" in each for each in figures):
        return [columns, *(_traffic_cells(each, left_out) for each in figures)]
    lines = []
    for each in figures:
        lines += [[str(port["port"]), *_traffic_cells(port, left_out)] for port in each.get("ports", [])]
        lines.append(["all", *_traffic_cells(each, left_out)])
    return [["Port", *columns], *lines]


def _traffic_cells(figures: TrafficFigures | PortFigures, left_out: bool) -> list[str]:
    counts = [figures["offered"], figures["handled"], figures["passed"], figures["dropped_by_handler"]]
    counts += [figures["failed"], figures["dropped_by_overload"]]
    if left_out:
        counts.append(figures["dropped_at_host"])
    times = [
        figures["latency_ns_p50"],
        figures["latency_ns_p99"],
        figures["latency_ns_p999"],
        figures["latency_ns_max"],
    ]
    return [*map(str, counts), *map(fixed, times)]


def _loads(row: LineRateRow) -> list[str]:
    dispositions, loads = row["packet_dispositions"], row["loads"]
    of_packets = [dispositions["processed"], dispositions["dropped"], dispositions["proceeded"], dispositions["failed"]]
    of_parts = [loads["hpus"], loads["matching"], loads["link"], loads["bus_to_card"], loads["bus_to_host"]]
    return [
        str(row["packet_bytes"]),
        *(fixed(100 * count / row["packets"], 1) for count in of_packets),
        fixed(100 * row["sent_per_packet"], 1),
        *(fixed(100 * load, 1) for load in of_parts),
        fixed(100 * loads["lock"], 1) if any(lock["waits"] for lock in row["locks"]) else "-",
    ]


def _cells(row: LineRateRow) -> list[str]:
    def mean(value: float | None) -> str:
        return "-" if value is None else fixed(value, 1)

    def most(value: int | None) -> str:
        return "-" if value is None else str(value)

    return [
        str(row["packet_bytes"]),
        mean(row["cycles_mean"]),
        most(row["cycles_p99"]),
        mean(row["instructions_mean"]),
        most(row["instructions_p99"]),
        fixed(row["handler_ns"]),
        fixed(row["handler_budget_ns"]),
        "-" if row["hpus_needed"] is None else str(row["hpus_needed"]),
        str(row["hpus"]),
        fixed(row["bandwidth_bytes_per_s"] / 1e9, 2),
        f"{fixed(100 * row['line_rate_fraction'], 1)}%",
        verdict(row),
    ]


def waits(rows: list[LineRateRow]) -> list[str]:
    """Return sentences: waits for busy memory per packet and level, and the source lines with the longest waits."""
    texts = []
    for row in rows:
        for level in row["memory"]["levels"]:
            if level["wait_cycles"] < _FEW_CYCLES:
                continue
            text = f"{named(row)}: a packet's handlers wait {fixed(level['wait_cycles'], 1)} cycles in all "
            text += f"in {fixed(level['accesses'], 1)} accesses to {level['level']}"
            if level["busiest_wait_cycles"] >= _FEW_CYCLES:
                text += f", {fixed(level['busiest_wait_cycles'], 1)} of them for {level['busiest']}"
            places = [f"{fixed(line['wait_cycles'], 1)} at {line['line']}" for line in level["lines"][:3]]
            texts.append(f"{text}; most at these lines: {', '.join(places)}." if places else f"{text}.")
        texts.extend(_cached(row, cache) for cache in row["memory"]["caches"])
        memory = row["memory"]
        if memory["fetch_wait_cycles"] >= _FEW_CYCLES:
            waited = fixed(memory["fetch_wait_cycles"], 1)
            texts.append(f"{named(row)}: a packet's handlers wait {waited} cycles in all for their code.")
    return texts


def _cached(row: LineRateRow, cache: DataCache) -> str:
    """Return sentences about the data caches in front of one memory level: hits, misses, transfers and waits."""
    rate = "" if cache["miss_rate"] is None else f" ({fixed(100 * cache['miss_rate'], 1)}%)"
    text = f"{named(row)}: of {fixed(cache['accesses'], 1)} accesses of a packet to {cache['level']}, "
    text += f"{fixed(cache['hits'], 1)} hit the data caches, {fixed(cache['misses'], 1)} miss{rate} and "
    text += f"{fixed(cache['bypasses'], 1)} bypass them. "
    transfers = [
        ("written back", cache["writebacks"]),
        ("handed over by other caches", cache["cache_to_cache_transfers"]),
    ]
    counts = [f"{fixed(lines, 1)} lines are {how}" for how, lines in transfers if lines > 0]
    if cache["invalidations"] > 0:
        counts.append(f"other caches give up their lines {fixed(cache['invalidations'], 1)} times")
    waited = f"handlers wait {fixed(cache['wait_cycles'], 1)} cycles in all"
    places = [f"{fixed(line['wait_cycles'], 1)} at {line['line']}" for line in cache["lines"][:3]]
    text += "; ".join([*counts, waited]).capitalize()
    text += f", most at these lines: {', '.join(places)}." if places else "."
    if stale := cache["stale_accesses"]:
        of = ", ".join(f"{line['accesses']} at {line['line']}" for line in cache["stale_lines"][:3])
        text += f" The caches are not coherent: {stale} accesses of the run would have met stale bytes on the card, "
        text += f"{of}."
    return text


_FEW_CYCLES = 0.05
"""Minimum wait, in cycles per packet, that is mentioned."""


def foundation(rows: list[LineRateRow]) -> list[str]:
    """Return sentences: the verdict assumes ideal memory for these levels, in which no access waits for another."""
    memory = rows[0]["memory"]
    ideal, cycles, levels = memory["ideal"], memory["ideal_cycles"], memory["uncontended"]
    texts = [
        f"Rests on a level of memory, {level}, that several cores share and in which no access waits for another "
        f"(contended in [memory.{level}] of the spec)."
        for level in levels
    ]
    if not ideal:
        return texts
    counts = [row["memory"]["accesses"] - row["memory"]["shared_accesses"] for row in rows]
    sizes = [f"{fixed(count, 1)} at {row['packet_bytes']} B" for row, count in zip(rows, counts, strict=True)]
    pieces = ", ".join(ideal)
    text = f"Rests on ideal memory, which answers any number of cores at once, in the cycles of {cycles}: "
    text += f"{pieces} ([memory] in the spec). Accesses a packet outside contended levels: {', '.join(sizes)}."
    return [text, *texts]
