"""The verdict of a line-rate check in words and pictures: bottleneck, headroom, and the basis of the answer."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from nicety._generated.types import CardPart, LineRateRow, PortFigures, TrafficFigures, VariedValue
from nicety.show.columns import distinct, fixed

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BARELY = 0.9
"""Minimum utilisation of the bottleneck for the verdict `barely`."""


def verdict(row: LineRateRow) -> str:
    """Return a card's verdict in a few words, with the bottleneck and the shares of dropped and failed packets."""
    found = [("drops", row["packet_dispositions"]["dropped"]), ("fails", row["packet_dispositions"]["failed"])]
    parts = [f"{verb} {fixed(100 * count / row['packets'], 1)}%" for verb, count in found if count]
    barely = [row["bottleneck"]] if row["verdict"] == "barely" else []
    return ", ".join([row["verdict"], *barely, *parts])


def headrooms(rows: Sequence[LineRateRow]) -> list[str]:
    """Return a sentence per packet size: the bottleneck, and the headroom of the other parts."""
    return [f"{named(row)}: {_headroom(row)}" for row in rows]


def named(row: LineRateRow) -> str:
    """Return the subject of the sentences about a row: the packet size, or `traffic`."""
    return "traffic" if "traffic" in row else f"{row['packet_bytes']} B"


def offered(rows: Sequence[LineRateRow]) -> str:
    """Return the name of the rate at which packets are offered: the traffic's offered rate, or the line rate."""
    return "offered rate" if "traffic" in rows[0] else "line rate"


def _headroom(row: LineRateRow) -> str:
    parts = row["parts"]
    most = [part for part in parts if part["part"] == row["bottleneck"]]
    others = [part for part in parts if part not in most]
    load: str = row["bottleneck"]
    if most and row["bottleneck"] == "cache misses":
        # Waits for cache misses are part of the cores' utilisation, and have no headroom of their own.
        load = f"{load} of {most[0]['name']} (cores wait for them {fixed(100 * most[0]['load'], 1)}% of the time)"
    elif most:
        load = f"{_called(most[0])}, {fixed(100 * most[0]['load'], 1)}% busy"
    sustains = f"{_times(row['capacity_fraction'])} {offered([row])}{_by_runs(row)}"
    text = f"{row['verdict']}: {_unmodelled(row)}bottleneck: {load}; sustainable rate {sustains}."
    text += "".join(f" {words}" for words in _tried(row))
    busy = [f"{_called(part)} {fixed(100 * part['headroom'], 1)}%" for part in others if 0 < part["load"] <= 1]
    more = [f"{_called(part)} {fixed(100 * part['load'], 1)}%" for part in others if part["load"] > 1]
    idle = [part["part"] for part in others if not part["load"] > 0]
    if more:
        text += f" Also above 100%: {', '.join(more)}."
    if busy:
        text += f" Headroom: {', '.join(busy)}."
    return f"{text} Idle: {', '.join(idle)}." if idle else text


def _unmodelled(row: LineRateRow) -> str:
    """Return words about contention that the card's spec does not model, and the keys that model it."""
    found = row["unmodelled"]
    if found is None or row["verdict"] == "no":
        return ""
    used = []
    if found["word"]:
        others = found["atomic_words"] - 1
        more = f", and {others} other words," if others else ""
        used.append(
            f"use {found['word']}{more} by atomic operations, {fixed(found['word_accesses'], 1)} times a packet"
        )
    if found["stored_words"]:
        words = "1 word" if found["stored_words"] == 1 else f"{found['stored_words']} words"
        used.append(f"store {words} that they share")
    where = " and ".join("ideal memory" if level == "ideal" else level for level in found["levels"])
    return (
        f"contention is not modelled on this card: handlers {' and '.join(used)}, in {where}, where no access waits "
        f"for another. Keys that model it (--set): {', '.join(found['keys'])}. Without it "
    )


# Minimum fraction of the offered rate at which a card keeps up: start and end of a run lower the measured rate.
_ALL = 0.99
# A multiple of the offered rate above this is printed as "more than 1000 x".
_MANY = 1000.0
_LITTLE = 0.1


def _times(rate: float) -> str:
    if rate > _MANY:
        return f"more than {fixed(_MANY, 0)} x"
    # Values below 0.1 have two significant digits.
    digits = 2 if rate >= _LITTLE or rate <= 0 else 1 - math.floor(math.log10(rate))
    return f"{fixed(rate, digits)} x"


def _by_runs(row: LineRateRow) -> str:
    """Return words: the highest rate that a run sustained, and the lowest rate that a run did not sustain."""
    most, least = row["sustained_fraction"], row["not_sustained_fraction"]
    above = [run for run in row["trials"] if run["rate_fraction"] == least]
    burst = row["burst"]
    if burst is not None and burst["stopped"] is not None:
        # After a burst the card sustains no rate.
        return ""
    burst_packets = above[0]["burst_packets"] if above else burst["burst_packets"] if burst and least == 1 else 0
    behind = f", after a burst of {burst_packets} packets" if burst_packets else ""
    wire = ", on a faster wire" if any(run["above_wire_rate"] for run in above) else ""
    runs = [f"{_times(most)} sustained"] if most else []
    runs += [f"{_times(least)} not{behind}{wire}"] if least else []
    return f" (runs: {'; '.join(runs)})" if row["trials"] and runs else ""


def _tried(row: LineRateRow) -> Iterator[str]:
    """Yield sentences: a run was stopped, a lock is unfair, or the card does not recover from a burst."""
    stopped = [run for run in row["trials"] if run["stopped"] is not None]
    for run in sorted(stopped, key=lambda run: run["rate_fraction"])[:1]:
        yield f"At {fixed(run['rate_fraction'], 2)} x a run was stopped: {(run['stopped'] or '').rstrip('.')}."
    starved = [run for run in row["trials"] if run["starved_ns"] is not None]
    for run in sorted(starved, key=lambda run: run["rate_fraction"])[:1]:
        yield (
            f"Unfair lock: at {fixed(run['rate_fraction'], 2)} x, after a burst, a packet stayed in the card for "
            f"{fixed((run['starved_ns'] or 0) / 1000, 1)} us, most of the run; a ticket lock takes handlers in order."
        )
    burst = row["burst"]
    if burst is not None and burst["stopped"] is not None:
        yield (
            f"The card kept up in this run. After a burst of {burst['burst_packets']} packets at the line rate, a run "
            f"was stopped: {burst['stopped'].rstrip('.')}."
        )
    if (row["trials"] or burst) and row["verdict"] != "no" and row["capacity_fraction"] < _ALL:
        yield (
            "The card kept up in this run. With a backlog its rate falls to that rate and does not recover; a burst "
            "or a longer run causes the backlog."
        )


def _called(part: CardPart) -> str:
    name = part["part"]
    return f"{name} ({part['name']})" if part["name"] else name


_VALUES = 3
"""Maximum number of assumed values in the table for a packet size. Fewer mean that no other value has an effect."""

SENSITIVE = ("Packet", "Assumed value", "Is", "Half of it", "Twice of it")


def sensitive(rows: Sequence[LineRateRow]) -> list[list[str]]:
    """Return rows of a table: the assumed values that affect the verdict or the sustainable rate most."""
    return [
        [str(row["packet_bytes"]), value["key"], value["value"], _varied(value["halved"]), _varied(value["doubled"])]
        for row in rows
        if "sensitivity" in row
        for value in row["sensitivity"]["values"]
    ]


def _varied(varied: VariedValue | None) -> str:
    if varied is None:
        return "-"
    part = varied["bottleneck"]
    return f"{varied['value']}: {varied['verdict']}, {_times(varied['capacity_fraction'])}, {part}"


def rests(rows: Sequence[LineRateRow]) -> list[str]:
    """Return sentences: the number of assumed values that were varied, and the values that were not varied."""
    found = [row["sensitivity"] for row in rows if "sensitivity" in row]
    if not found:
        return []
    one = found[0]
    both = one["varied"] - one["varied_one_way"]
    text = f"{both} assumed values of the spec were halved and doubled, one at a time"
    if one["varied_one_way"]:
        text += f", and {one['varied_one_way']} were varied in one direction or not at all"
    if any(each["values"] for each in found):
        text += ". The table has those that change the verdict, and then those that change the sustainable rate "
        text += "most, at most three for each packet size."
        if any(len(each["values"]) < _VALUES for each in found):
            text += " Where it has fewer, no other value changes the verdict or the rate."
    else:
        text += ": none matters" + (", except those with which the handlers do not run." if one["stopped"] else ".")
    texts = [text]
    stopped = distinct(f"{each['key']}={each['value']}" for row in found for each in row["stopped"])
    if stopped:
        texts.append(f"Values that are not possible, or with which the handlers do not run: {', '.join(stopped)}.")
    if one["not_varied"]:
        texts.append(f"Assumed, but not varied, since zero or not a number: {', '.join(one['not_varied'])}.")
    return texts


def program_files(manifest: Mapping[str, Any]) -> str:
    """Return the names of a program's files, without their folders."""
    names = [Path(each["source"]).name for built in manifest.get("compiler", {}).values() for each in built["sources"]]
    return ", ".join(distinct(names)) or "the program"


def offered_text(rows: Sequence[LineRateRow]) -> str:
    """Return words on the packets that are offered."""
    traffic = distinct(row["traffic"]["traffic"] for row in rows if "traffic" in row)
    return f"traffic {'; '.join(traffic)}" if traffic else "equal packets at the line rate"


_LEAST_LOAD = 0.1
"""Utilisation in percent of a part that pictures leave out."""
_BAR_HEIGHT = 0.15
"""Inches of a bar with its percentage beside it."""


def _trials(rows: Sequence[LineRateRow]) -> str:
    """Return the name of the load that follows from runs at other rates: it belongs to no part."""
    return f"{offered(rows)} / sustainable rate"


def loads_height(rows: Sequence[LineRateRow]) -> float:
    """Return the height in inches of the panel of utilisation, with room for all percentages."""
    if not _has_bars(rows):
        return _LOADS_HEIGHT
    parts = {part["part"] for row in rows for part in row["parts"] if 100 * part["load"] >= _LEAST_LOAD}
    return max(_LOADS_HEIGHT, 0.8 + _BAR_HEIGHT * len(rows) * (len(parts) + 1))


_LOADS_HEIGHT = 3.0


def _has_bars(rows: Sequence[LineRateRow]) -> bool:
    """Return whether each card has a single packet size."""
    return len(rows) == len(distinct(row["nic"] for row in rows))


def draw_loads(axes: Axes, rows: Sequence[LineRateRow]) -> None:
    """Draw the utilisation of each part over packet sizes, with the thresholds of the verdicts `barely` and `no`.

    With a single packet size on each card, a part has a bar for each card. Parts below 0.1% everywhere are left out.
    """
    rows = [
        cast(LineRateRow, {**row, "parts": [part for part in row["parts"] if 100 * part["load"] >= _LEAST_LOAD]})
        for row in rows
    ]
    title = f"Resource utilisation at the {offered(rows)}: barely from 90%, no above 100%"
    axes.set_title(title, loc="left", fontsize=9)
    if _has_bars(rows):
        _draw_load_bars(axes, rows)
    else:
        _draw_load_curves(axes, rows)


def _draw_load_bars(axes: Axes, rows: Sequence[LineRateRow]) -> None:
    from nicety.show.bars import hatch
    from nicety.show.lines import COLOURS

    found: list[dict[str, float]] = [{} for _ in rows]
    trials = _trials(rows)
    for row, loads in zip(rows, found, strict=True):
        for part in row["parts"]:
            loads[part["part"]] = max(100 * part["load"], loads.get(part["part"], 0.0))
        if row["trials"]:
            loads[trials] = 100 / row["capacity_fraction"]
    names = sorted(distinct(name for loads in found for name in loads), key=lambda name: name == trials)
    height = 0.8 / len(rows)
    for number, (row, loads) in enumerate(zip(rows, found, strict=True)):
        places = [at + (number - (len(rows) - 1) / 2) * height for at in range(len(names))]
        values = [loads.get(name, 0.0) for name in names]
        label = f"{row['nic']}, {row['packet_bytes']} B"
        look: dict[str, Any] = {"color": COLOURS[number % len(COLOURS)], "edgecolor": "white", "hatch": hatch(number)}
        axes.barh(places, values, height=0.9 * height, label=label, linewidth=0.5, **look)
        for place, value in zip(places, values, strict=True):
            axes.annotate(
                f"{fixed(value, 1)}%" if value else "-",
                (value, place),
                (3, 0),
                textcoords="offset points",
                va="center",
                fontsize=7,
            )
    most = max([100.0, *(value for loads in found for value in loads.values())])
    for level, dashes in ((100 * BARELY, ":"), (100.0, "-")):
        axes.axvline(level, color="#666666", linewidth=0.8, linestyle=dashes, label="_limit")
    axes.set_yticks(range(len(names)), names)
    axes.invert_yaxis()
    axes.set_xlim(0, 1.12 * most)
    axes.set_xlabel("Utilisation (%)")
    axes.grid(visible=True, axis="x", color="#dddddd", linewidth=0.6)
    axes.legend(frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(1.02, 1.0))


def _draw_load_curves(axes: Axes, rows: Sequence[LineRateRow]) -> None:
    from nicety.show.axes import size_axis, value_axis
    from nicety.show.lines import MARKERS, Curve, draw

    parts = distinct(part["part"] for row in rows for part in row["parts"] if part["load"] > 0)
    nics = distinct(row["nic"] for row in rows)
    curves = []
    for style, nic in enumerate(nics):
        for colour, name in enumerate(parts):
            points = {
                row["packet_bytes"]: 100 * part["load"]
                for row in rows
                for part in row["parts"]
                if row["nic"] == nic and part["part"] == name and part["load"] > 0
            }
            if points:
                label = f"{nic}: {name}" if len(nics) > 1 else name
                curves.append(Curve(label, points, colour=colour, style=style, marker=colour + len(MARKERS) * style))
        tried = {
            row["packet_bytes"]: 100 / row["capacity_fraction"] for row in rows if row["nic"] == nic and row["trials"]
        }
        if tried:
            label = f"{nic}: {_trials(rows)}" if len(nics) > 1 else _trials(rows)
            marker = len(parts) + len(MARKERS) * style
            curves.append(Curve(label, tried, colour=len(parts), style=style + 1, marker=marker))
    value_axis(axes, [*(value for curve in curves for value in curve.points.values()), 100.0], "Utilisation (%)")
    for level, dashes in ((100 * BARELY, ":"), (100.0, "-")):
        axes.axhline(level, color="#666666", linewidth=0.8, linestyle=dashes, label="_limit")
    handles = draw(axes, curves)
    size_axis(axes, sorted({row["packet_bytes"] for row in rows}))
    axes.set_xlabel("Packet size (B)")
    axes.legend(handles=handles, frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(1.02, 1.0))


DISPOSITIONS = (
    "passed",
    "dropped by handlers",
    "failed",
    "lost: packet buffer full",
    "lost: no room in the host",
    "lost: no room before the port",
)
"""The dispositions of packets."""

# Minimum share in percent that the legend prints; smaller shares are "below 0.1%".
_LEAST = 0.1


def dispositions(figures: TrafficFigures | PortFigures, at_link: int = 0) -> list[int]:
    """Return the number of packets per disposition, in the order of `DISPOSITIONS`. `at_link` is the last of them.

    A frame leaves by another port than the one by which it arrived, so losses at a link are not counted per port.
    """
    passed, dropped_at_host = figures["passed"], figures["dropped_at_host"]
    dropped = [figures["dropped_by_handler"], figures["failed"], figures["dropped_by_overload"]]
    return [passed - dropped_at_host - at_link, *dropped, dropped_at_host, at_link]


def draw_dispositions(axes: Axes, rows: Sequence[LineRateRow], others: Mapping[str, Mapping[str, float]]) -> None:
    """Draw a bar per card and port: the shares of dispositions, and the latency of packets through the card.

    Args:
        axes: the axes.
        rows: the rows.
        others: further bars without a latency: their shares in percent by disposition.
    """
    from nicety.show.bars import hatch
    from nicety.show.lines import COLOURS

    found: list[tuple[str, TrafficFigures | PortFigures]] = []
    shares: list[list[float]] = []
    for row in (row for row in rows if "traffic" in row):
        traffic = row["traffic"]
        # A port that has offered no packet has no shares.
        ports = [port for port in traffic.get("ports", []) if port["offered"]]
        found += [(f"{row['nic']}, port {port['port']}", port) for port in ports]
        shares += [[100 * count / port["offered"] for count in dispositions(port)] for port in ports]
        found.append((f"{row['nic']}, all ports" if ports else row["nic"], traffic))
        counts = dispositions(traffic, traffic["dropped_at_link"])
        shares.append([100 * count / traffic["offered"] for count in counts])
    shares += [[own.get(name, 0.0) for name in DISPOSITIONS] for own in others.values()]
    bars = [*(name for name, _ in found), *others]
    for number, disposition in enumerate(DISPOSITIONS):
        widths = [share[number] for share in shares]
        if any(widths):
            left = [sum(share[:number]) for share in shares]
            axes.barh(
                range(len(bars)),
                widths,
                left=left,
                height=0.6,
                label=_shares(disposition, bars, widths),
                color=COLOURS[number],
                edgecolor="white",
                linewidth=0.5,
                hatch=hatch(number),
            )
    axes.set_xlim(0, 100)
    axes.set_yticks(range(len(bars)), [*(_latencies(nic, figures) for nic, figures in found), *others], fontsize=7)
    axes.invert_yaxis()
    axes.set_xlabel("Packets (% of those offered)")
    axes.set_title("Packet disposition, and latency through the card", loc="left", fontsize=9)
    axes.legend(frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(1.02, 1.0))


def _shares(disposition: str, bars: Sequence[str], widths: Sequence[float]) -> str:
    """Return the legend's text for a disposition: its share in each bar, a line per bar if there are several."""
    if disposition == DISPOSITIONS[-1]:
        # Losses at a link belong to no port: see `dispositions`.
        told = [(bar, width) for bar, width in zip(bars, widths, strict=True) if ", port " not in bar]
        bars, widths = [bar for bar, _ in told], [width for _, width in told]
    if len(bars) == 1:
        return f"{disposition}: {_percent(widths[0])}"
    nics = distinct(bar.partition(", ")[0] for bar in bars)
    names = [bar.partition(", ")[2] or bar for bar in bars] if len(nics) == 1 else bars
    return "\n".join([disposition, *(f"{name}: {_percent(width)}" for name, width in zip(names, widths, strict=True))])


def _percent(share: float) -> str:
    return f"below {_LEAST}%" if 0 < share < _LEAST else f"{fixed(share, 1)}%"


def _latencies(nic: str, figures: TrafficFigures | PortFigures) -> str:
    times = {
        "p50": figures["latency_ns_p50"],
        "p99": figures["latency_ns_p99"],
        "p99.9": figures["latency_ns_p999"],
        "max": figures["latency_ns_max"],
    }
    return "\n".join([nic, *(f"{name} {fixed(value, 1)} ns" for name, value in times.items())])


_TWO_DECADES = 100


def draw_sensitivity(axes: Axes, rows: Sequence[LineRateRow]) -> None:
    """Draw two bars for each assumed value: the sustainable rate with half and with twice the value."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    from nicety.show.lines import COLOURS

    nics = distinct(row["nic"] for row in rows)
    names: list[str] = []
    for row in rows:
        for value in row["sensitivity"]["values"] if "sensitivity" in row else []:
            base = row["capacity_fraction"]
            where = f"{row['nic']}, " if len(nics) > 1 else ""
            for colour, varied in enumerate((value["halved"], value["doubled"])):
                if varied is not None:
                    width = varied["capacity_fraction"] - base
                    axes.barh(len(names), width, left=base, height=0.6, color=COLOURS[colour])
            axes.plot([base], [len(names)], "|", color="black", markersize=12)
            names.append(f"{where}{row['packet_bytes']} B: {value['key']} = {value['value']}")
    axes.set_xscale("log")
    least, most = axes.get_xlim()
    # Over more than two decades, the texts of 2 and 5 would touch.
    axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if most / least <= _TWO_DECADES else (1,)))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda rate, _: f"{rate:g}"))
    axes.axvline(1.0, color="#666666", linewidth=0.8)
    axes.set_yticks(range(len(names)), names)
    axes.invert_yaxis()
    axes.grid(visible=True, axis="x", color="#dddddd", linewidth=0.6)
    axes.set_xlabel(f"Sustainable rate, x {offered(rows)}")
    title = "Assumed values to which the verdict is most sensitive: halved (blue), doubled (orange)"
    axes.set_title(title, loc="left", fontsize=9)
