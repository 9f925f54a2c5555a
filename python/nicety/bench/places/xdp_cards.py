"""XDP programs in line-rate checks: builds for cards, figures after runs, and one table of cards and hosts' drivers."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from nicety._generated.types import (
    EbpfCoreRow,
    FlowProcessorRow,
    LineRateReport,
    LineRateRow,
    XdpAborted,
    XdpFigures,
    XdpPlace,
    XdpRow,
)
from nicety.bench.verdicts import named, program_files
from nicety.build.card import FLOW_PROCESSOR, XdpProgram
from nicety.errors import InputError
from nicety.shared.cards import show
from nicety.shared.files import write_whole
from nicety.show.captures import active_capture
from nicety.show.circumstances import circumstances
from nicety.show.columns import counted, distinct, fixed
from nicety.show.traces import RecordingWarning

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def write_dumps(entries: Mapping[str, Iterable[Any]], files: Mapping[str, Path]) -> None:
    """Write the entries of each map to its file, a line for each entry."""
    for name, path in files.items():
        lines = ",\n".join(json.dumps(entry) for entry in entries[name])
        write_whole(path, f"[{lines}]\n".encode())


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
        """Refuse memory of handlers in C, and dumps of several runs.

        Raises:
            InputError: the check has more than one run, or memory that no XDP program sees.
        """
        named = (option for name, option in _OF_HANDLERS.items() if given.get(name) not in (None, b"", []))
        if option := next(named, None):
            raise InputError(f"{option}: for handlers in C; an XDP program has its state in maps (--map)")
        sizes = given.get("packet_sizes")
        one = given.get("traffic") or (sizes is not None and len(sizes) == 1)
        if self.dumps and (len(given.get("nics", ())) > 1 or not one):
            raise InputError("--dump: the entries after one run; name one card, and one packet size or traffic")

    def options(self) -> dict[str, Any]:
        """The program in a request."""
        maps = [{"map": name, "json": text} for name, text in self.program.entries()]
        return {"program": self.program.program, "maps": maps, "dumps": list(self.dumps)}

    def build(self, item: Mapping[str, Any]) -> tuple[bytes, str, list[str]]:
        """The program for a card of the plan, the compiler's name and its flags; for a host's driver, the object.

        Raises:
            InputError: the program is wrong.
        """
        if item["interface"] == "xdp":
            return self.program.chosen(), "none: the object as it is", []
        self._items[item["key"]] = item
        compiled = self.program.compile(item["isa"], item["xdp"], item["interface"])
        return compiled.elf, compiled.compiler, compiled.flags

    def told(self, text: str, elfs: Mapping[str, bytes], data: Iterable[bytes | None]) -> str:
        """The report with the figures of the program, after dumps are written."""
        report = json.loads(text)
        places = {(each["nic"], each["packet_bytes"]): each for each in report["places"]}
        rows = report["rows"]
        flow_processors = report.get("flow_processors", [])
        for row, bytes_ in zip([*rows, *flow_processors], data, strict=True):
            if bytes_ is None:
                continue
            item, elf = self._items[row["nic"]], elfs[row["nic"]]
            if "handlers" not in row:
                card = (item["isa"], item["xdp"])
                found = self.program.after(elf, bytes_, _destinations(row["verdicts"]), card, list(self.dumps))
                row["xdp"] = found["figures"]
                write_dumps(found["maps"], self.dumps)
                continue
            found = self.program.figures(row, elf, bytes_, item, list(self.dumps))
            row["xdp"] = found["figures"]
            places[row["nic"], row["packet_bytes"]]["verdicts"] = found["figures"]["verdicts"]
            _count_drops(row)
            write_dumps(found["maps"], self.dumps)
        for row in [*report.get("drivers", []), *report.get("ebpf_cores", [])]:
            write_dumps(row.pop("maps", {}), self.dumps)
        return json.dumps(report)


_OF_HANDLERS = {
    "state": "--state",
    "state_bytes": "--state-bytes",
    "handler_memory": "--handler-memory",
}
"""Options of memory that handlers in C reach, and XDP programs do not."""


def check_recordings(given: Any, plan: Mapping[str, Any], trace: str | PathLike[str] | None) -> None:
    """Refuse a timeline and a capture that no card of a check can write, and warn where only some cards can.

    Args:
        given: the cards: a name or a path, or several.
        plan: the plan of the check, which has a program for each card.
        trace: the file for a timeline.

    Raises:
        InputError: no card has a timeline, or no card has a link.
    """
    nics = [item["key"] for item in plan["compile"]]
    in_hosts = {item["key"] for item in plan["compile"] if item["interface"] in ("xdp", FLOW_PROCESSOR)}
    if trace is not None:
        kept = [nic for nic in nics if nic not in in_hosts]
        _check_recording(f"--trace {fspath(trace)}", "a timeline", nics, kept[:1], "cores for handlers")
    if (capture := active_capture()) is not None:
        asked = [show(fspath(nic)) for nic in ([given] if isinstance(given, str | PathLike) else given)]
        linked = {card["name"] for card in asked if card["design"] not in _WITHOUT_LINKS}
        kept = [nic for nic in nics if nic in linked]
        _check_recording(f"--capture {capture}", "a capture", nics, kept, "a link to capture")


_WITHOUT_LINKS = ("hxdp", "nfp")
"""Designs of cards that run XDP programs without a simulated link: frames arrive at the core or the buffers."""


def _check_recording(place: str, what: str, nics: Sequence[str], kept: Sequence[str], needed: str) -> None:
    """Raise an error if no card is kept, and warn if the recording leaves a card out for which it was asked."""
    if not kept:
        raise InputError(
            f"{place}: an XDP program has no {what.removeprefix('a ')} on {', '.join(nics)}; leave it out, or name a "
            f"card with {needed}, such as spin-100g"
        )
    if len(kept) < len(nics):
        warnings.warn(f"{place}: {what} of {', '.join(kept)} only", RecordingWarning, stacklevel=2)


def _destinations(verdicts: Mapping[str, int]) -> dict[str, int]:
    """Frames by destination, of those by verdict."""
    count = verdicts.get
    return {"DROP": _dropped(verdicts), "HOST": count("XDP_PASS", 0), "WIRE": count("XDP_TX", 0)}


def _count_drops(row: LineRateRow) -> None:
    """Count frames that a program dropped among those of `dropped_by_handler`.

    A handler of PsPIN drops a packet without a word to the card: it only leaves out the transfer to the host.
    """
    if "traffic" in row:
        traffic = row["traffic"]
        missing = max(_dropped(row["xdp"]["verdicts"]) - traffic["dropped_by_handler"], 0)
        traffic["dropped_by_handler"] += missing
        traffic["passed"] -= missing


def _dropped(verdicts: Mapping[str, int]) -> int:
    return verdicts.get("XDP_DROP", 0) + verdicts.get("XDP_ABORTED", 0)


def places_of(aborted: Iterable[XdpAborted]) -> str:
    """In words, the lines at which programs ended with XDP_ABORTED."""
    places = [f"{each['frames']} at {each['place']} of {each['program']}" for each in aborted]
    return f": {', '.join(places)}" if places else ""


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
        at = places_of(figures["aborted_at"])
        texts.append(f"{counted(aborted, 'frame')} ended with XDP_ABORTED, and the card dropped them{at}.")
    if invalid := figures["invalid"]:
        texts.append(f"{counted(invalid, 'frame')} ended with a number that is no verdict, and the card dropped them.")
    if failed := figures["redirects_failed"]:
        texts.append(
            f"{counted(failed, 'frame')} with XDP_REDIRECT had no destination, and the card dropped them: the map's"
            " entry is empty, or the host has no such receive channel."
        )
    if longer := figures["too_long"]:
        texts.append(
            f"{counted(longer, 'frame')} became longer than the card sends (frames.mtu), and the card dropped them."
        )
    texts += [
        f"map {name} was full for {count} updates, which failed; raise its max_entries, or let the program report it."
        for name, count in figures["updates_full"].items()
    ]
    return texts


PLACES = "rates (Mpps), cycles of a core and CPU time of the host for a frame (ns), and frames by verdict"
"""The title of the table."""

_HEAD = ("Card", "Place", "Packet", "Cores", "Cycles", "Offered", "Sustained", "% of offered", "Lost", "Host")
_VERDICTS = ("XDP_PASS", "XDP_DROP", "XDP_TX", "XDP_REDIRECT", "XDP_ABORTED")


def places_table(places: Sequence[XdpPlace]) -> list[list[str]]:
    """The table with its head. Verdicts that no place has are left out."""
    verdicts = [name for name in _VERDICTS if any(place["verdicts"].get(name) for place in places)]
    head = [*_HEAD, *(name.removeprefix("XDP_") for name in verdicts), "Bottleneck"]
    return [head, *(_cells(place, verdicts) for place in places)]


def _cells(place: XdpPlace, verdicts: Sequence[str]) -> list[str]:
    def given(value: float | None) -> str:
        return "-" if value is None else fixed(value, 1)

    load = place["bottleneck_load"]
    return [
        place["nic"],
        place["place"],
        str(place["packet_bytes"]),
        str(place["processors"]),
        given(place["cycles_mean"]),
        fixed(place["offered_pps"] / 1e6, 2),
        fixed(place["sustained_pps"] / 1e6, 2),
        f"{fixed(100 * place['sustained_fraction'], 1)}%",
        str(place["lost"]),
        given(place["host_cpu_ns"]),
        *(str(place["verdicts"].get(name, 0)) for name in verdicts),
        place["bottleneck"] if load is None else f"{place['bottleneck']}, {fixed(100 * load, 1)}% busy",
    ]


def xdp_about(report: LineRateReport) -> list[str]:
    """The traffic, the seed, and unusual circumstances."""
    traffic = [row["traffic"]["traffic"] for row in report["rows"] if "traffic" in row]
    traffic += [row["traffic"] for row in report.get("drivers", [])]
    traffic += [row["traffic"] for row in report.get("ebpf_cores", [])]
    traffic += [row["traffic"] for row in report.get("flow_processors", [])]
    has_sizes = any("traffic" not in row for row in report["rows"]) or len(distinct(traffic)) > 1
    offered = "frames as fast as the wire carries them" if has_sizes else f"traffic, each packet a frame: {traffic[0]}"
    return [offered, f"seed {report['seed']}", *circumstances(report["manifest"])]


def driver_words(rows: Iterable[XdpRow]) -> list[str]:
    """In words, the program in drivers: latency, losses, and errors that it may hide."""
    return [f"{row['offered_bytes'] // max(row['offered'], 1)} B: {text}" for row in rows for text in _of_driver(row)]


def _of_driver(row: XdpRow) -> list[str]:
    latency, counts = row["latency"], cast("Mapping[str, Any]", row["verdicts"])
    p50, p99 = (fixed(latency[name] / 1e3, 2) for name in ("p50_ns", "p99_ns"))
    rate = "the offered rate" if row["lossless_pps"] is None else "the sustained rate"
    instructions = fixed(row["instructions_per_frame"], 1)
    texts = [
        (
            f"{row['mode']} mode on {row['cpus']} CPUs; at {rate} a frame takes {instructions} instructions of eBPF."
            f" Its latency from the card to its verdict is {p50} us (median) and {p99} us (p99)."
        )
    ]
    if row["lost"]:
        lost = f"{row['lost']} of {row['offered']} frames were lost at the offered rate"
        texts.append(f"{lost}, {row['lost_before']} of them without a buffer.")
    if aborted := counts["aborted"] - counts["invalid"]:
        at = places_of(counts["aborted_at"])
        texts.append(f"{counted(aborted, 'frame')} ended with XDP_ABORTED, and the driver dropped them{at}.")
    errors = {
        "invalid": "ended with a number that is no verdict, and the driver dropped them",
        "unreachable": "with XDP_REDIRECT had no destination, and the driver dropped them",
    }
    texts += [f"{counted(counts[name], 'frame')} {words}." for name, words in errors.items() if counts[name]]
    return texts


def core_words(rows: Iterable[EbpfCoreRow]) -> list[str]:
    """In words, the program on a core that executes eBPF: rows, cycles, latency and losses."""
    return [f"{row['offered_bytes'] // max(row['offered'], 1)} B: {text}" for row in rows for text in _of_core(row)]


def context_words(rows: Iterable[FlowProcessorRow]) -> list[str]:
    """In words, the program on microengines: cycles, references, loads, latency and losses."""
    return [f"{row['offered_bytes'] // max(row['offered'], 1)} B: {text}" for row in rows for text in _of_contexts(row)]


def _of_contexts(row: FlowProcessorRow) -> list[str]:
    latency = row["latency"]
    p50, p99 = (fixed(latency[name]) for name in ("p50_ns", "p99_ns"))
    per_frame = fixed(row["instructions_per_frame"], 1)
    loads = ", ".join(f"{each['part']} {fixed(100 * each['load'], 1)}%" for each in row["parts"])
    texts = [
        (
            f"{row['contexts']} contexts on {row['microengines']} microengines share the frames. A frame takes"
            f" {fixed(row['cycles_mean'], 1)} cycles of computing for {per_frame} instructions, with the firmware's"
            f" path, and {fixed(row['references_per_frame'], 1)} references to memories, during which its context"
            " sleeps."
        ),
        f"{_rate_of_latency(row)} its latency is {p50} ns (median) and {p99} ns (p99). Loads: {loads}.",
    ]
    if row["lost"]:
        texts.append(f"{row['lost']} of {row['offered']} frames found no buffer at the offered rate.")
    return texts + (_of(row["xdp"]) if "xdp" in row else [])


def _rate_of_latency(row: EbpfCoreRow | FlowProcessorRow) -> str:
    """In words, the rate of the run that gave the latency. Near the core's own rate, the queue grows with the run."""
    if row["lossless_pps"] is not None:
        rate = fixed(row["lossless_pps"] / 1e6, 2)
        return f"At {rate} Mpps, the highest rate at which none of {row['offered']} frames is lost,"
    rate, lost = fixed(row["offered_pps"] / 1e6, 2), fixed(100 * row["lost"] / max(row["offered"], 1), 1)
    return f"At the offered {rate} Mpps, with {lost}% of the frames lost,"


def _of_core(row: EbpfCoreRow) -> list[str]:
    latency = row["latency"]
    p50, p99 = (fixed(latency[name]) for name in ("p50_ns", "p99_ns"))
    per_row = fixed(row["instructions_per_row"], 2)
    texts = [
        (
            f"{row['slots']} instructions are {row['rows']} rows of {row['lanes']} lanes,"
            f" {fixed(row['slots_per_row'], 2)} a row. A frame takes {fixed(row['instructions_per_frame'], 1)}"
            f" instructions in {fixed(row['rows_per_frame'], 1)} rows, {per_row} a row."
        ),
        (
            f"a frame keeps the core for {fixed(row['cycles_mean'], 1)} cycles,"
            f" {fixed(row['waiting_cycles_mean'], 1)} of them for its bytes and"
            f" {fixed(row['helper_cycles_mean'], 1)} for helpers. {_rate_of_latency(row)} its latency, with the time in"
            f" the input queue, is {p50} ns (median) and {p99} ns (p99)."
        ),
    ]
    if row["lost"]:
        texts.append(f"{row['lost']} of {row['offered']} frames found the input queue full at the offered rate.")
    return texts


def other_places(report: LineRateReport) -> list[XdpPlace]:
    """The places that are no cores of a card. They have no handlers, so most panels leave them out."""
    return [place for place in report.get("places", []) if place["place"] != "card cores"]


def left_out_note(report: LineRateReport) -> str:
    """A note that names the places without panels of handlers. Empty if there are none."""
    names = distinct(f"{place['nic']} ({place['place']})" for place in other_places(report))
    return f"handler time and utilisation without {', '.join(names)}" if names else ""


def dispositions_of_place(place: XdpPlace) -> dict[str, float]:
    """The shares of a place's frames in percent, by disposition: those with a verdict, and the lost ones."""
    seen, dropped = sum(place["verdicts"].values()), _dropped(place["verdicts"])
    lost = "lost: no room in the host" if place["place"] == "host driver" else "lost: packet buffer full"
    shares = {"passed": seen - dropped, "dropped by handlers": dropped, lost: place["lost"]}
    total = max(sum(shares.values()), 1)
    return {name: 100 * count / total for name, count in shares.items()}


def draw_places(axes: Axes, places: Sequence[XdpPlace]) -> None:
    """Draw two bars for each place: the sustained rate in front of that offered."""
    names = [f"{place['nic']}, {place['place']}, {place['packet_bytes']} B" for place in places]
    axes.barh(names, [place["offered_pps"] / 1e6 for place in places], color="#dddddd", label="offered")
    rates = [place["sustained_pps"] / 1e6 for place in places]
    axes.barh(names, rates, height=0.5, color="#4477aa", label="sustained")
    axes.set_xlabel("Mpps")
    axes.invert_yaxis()
    axes.set_axisbelow(True)


def draw_all_places(axes: Axes, places: Sequence[XdpPlace]) -> None:
    """Draw the rates of all places as a panel of a picture, with a legend beside it."""
    draw_places(axes, places)
    axes.set_title("Rates of the program in all places", loc="left", fontsize=9)
    axes.legend(frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(1.02, 1.0))


def places_figure(report: LineRateReport) -> Figure:
    """A picture of the table: the sustained rates, beside those offered."""
    from nicety.show.axes import house_style, new_figure, set_figure_titles

    places = report["places"]
    with house_style():
        figure = new_figure(9.0, 1.6 + 0.5 * len(places))
        draw_places(figure.add_subplot(), places)
        what, *notes = xdp_about(report)
        set_figure_titles(figure, f"{program_files(report['manifest'])}: {what}", notes)
        figure.legend(frameon=False, fontsize=8, loc="outside lower left", ncols=2)
    return figure
