"""The checker: handlers on simulated cores, each instruction observed."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Unpack, cast

from nicety import _native
from nicety._generated.types import CheckedFrame, CheckReport, Finding, FindingSide, LineRateOptions
from nicety.bench.check.fuzz import Search, key_of
from nicety.bench.check.messages import MessageSearch
from nicety.bench.line_rate import build_for, derived, on_cards_of, program_of
from nicety.build.card import XdpProgram
from nicety.build.sources import Handlers
from nicety.errors import Error, InputError, RunError
from nicety.program.failures import Allowed, allowed, require_report
from nicety.shared.options import request_text
from nicety.shared.typed import checked
from nicety.show.columns import counted
from nicety.show.html import Shown, text_html
from nicety.show.tables import Table

_OF_PACKETS = ("packet_sizes", "message_packets", "messages", "user_header", "traffic")
"""Options of packets, which mutated ones replace."""
_GENERATED = 256
"""Packets of an expression of traffic without a number."""
MOST_SCHEDULES = 10_000
"""Most interleavings of a check."""


@checked
def check_handlers(
    handlers: Handlers | XdpProgram | Path | str,
    *,
    schedules: int = 1,
    fuzz: float = 0,
    allow_failures: Allowed = (),
    include_dirs: Iterable[Path | str] = (),
    defines: Iterable[str] = (),
    cc: str | None = None,
    progress: Callable[[int, int], None] | None = None,
    **given: Unpack[LineRateOptions],
) -> CheckReport:
    """Run handlers under a checker of memory, races, locks, lifetimes and commands.

    Args:
        handlers: a C file, `Handlers` with the names of its functions, an eBPF object, or `XdpProgram` with its maps.
        schedules: interleavings to try: the first is the card's own, others delay runs by random cycles.
        fuzz: seconds for which mutated packets are checked after these. For each of their findings a capture with the
            fewest packets that replay it is written into this folder.
        allow_failures: failures that are accepted without findings: `fail`, a handler returns a failure; `refused`, the
            card refuses a command; or all others of `Cluster.run`.
        include_dirs: further folders for `#include`.
        defines: macros, `NAME` or `NAME=VALUE`.
        cc: a compiler to use instead of the one in the `ziglang` package.
        progress: called with the number of runs done, and the total.
        given: the arguments of `LineRateOptions`: one card, and its packets. By default 4 messages of 8 packets, or 256
            frames.

    Returns:
        A report with `findings`, each once. It is empty for a program without findings. The report is a dict.

    Raises:
        InputError: a card, size, override or handler that does not exist or is invalid.
        HandlerFailure: there are no findings, but handlers failed; the exception's `report` is complete.
        RunError: the run failed otherwise, or no handler has run.
        KeyboardInterrupt: the user interrupted the check. While packets are mutated, this error and `RunError` have the
            attribute `report`: the report with the findings so far.
    """
    _check_arguments(schedules, fuzz, given)
    kinds = allowed(allow_failures)
    program = program_of(handlers, include_dirs, defines, cc)
    if isinstance(program, XdpProgram):
        program = replace(program, lenient=True)
    on_cards = on_cards_of(program, {}, given)
    own = derived(program, on_cards)
    if traffic := given.get("traffic"):
        given["traffic"] = [fewer(text) for text in ([traffic] if isinstance(traffic, str) else traffic)]
    elif "packet_sizes" not in given:
        # Without a size, packets of a small one: larger ones show no more.
        given["packet_sizes"] = [64]
    request = request_text(LineRateOptions, given, **own)
    plan = json.loads(_native.line_rate_plan(request))
    elfs = {item["key"]: build_for(program, on_cards, item)[0] for item in plan["compile"]}
    report: CheckReport = json.loads(_native.check_run(request, elfs, schedules, progress))
    if fuzz:

        def check(capture: Path) -> CheckReport:
            kept = {name: value for name, value in given.items() if name not in _OF_PACKETS}
            text = request_text(LineRateOptions, {**kept, "traffic": [f"capture={capture} rate=wire"]}, **own)
            found: CheckReport = json.loads(_native.check_run(text, elfs, 1, None))
            return found

        extend(
            report,
            Search(
                check, report["seed"], program.paths()[0].stem if isinstance(program, Handlers) else program.path.stem
            ),
            fuzz,
        )
    if not report["covered"] and not report["findings"]:
        raise RunError("no handler has run, so nothing was checked; write --rule or --traffic that reaches one")
    shown = cast(CheckReport, Shown(report, lambda found: text_html(check_text(found)), table=check_table))
    if not report["findings"]:
        require_report(shown, kinds)
    return shown


def _check_arguments(schedules: int, fuzz: float, given: LineRateOptions) -> None:
    if not 1 <= schedules <= MOST_SCHEDULES:
        raise InputError(f"schedules is 1 to {MOST_SCHEDULES}, not {schedules}")
    check_seconds(fuzz)
    if given.get("sensitivity"):
        raise InputError("sensitivity: a check measures nothing; leave it out")
    cards = given.get("nics", "")
    if isinstance(cards, list | tuple) and len(cards) != 1:
        raise InputError("--nic: a check covers one card; name one card")


def check_seconds(fuzz: float) -> None:
    """Check the time of a search."""
    if not (fuzz >= 0 and math.isfinite(fuzz)):
        raise InputError(f"fuzz: seconds are 0 or more, not {fuzz}")


def fewer(traffic: str) -> str:
    """Return an expression of traffic with fewer packets, if it has no number and is no capture."""
    return traffic if re.search(r"(^|\s)(packets|capture)=", traffic) else f"{traffic} packets={_GENERATED}"


def extend(report: CheckReport, search: Search | MessageSearch, seconds: float) -> None:
    """Search with mutated input, and add the findings to a report, also if the search fails or is interrupted."""
    known = {key_of(finding) for finding in report["findings"]}
    failure: Error | KeyboardInterrupt | None = None
    try:
        search.run(seconds)
    except (Error, KeyboardInterrupt) as error:
        failure = error
    report["findings"] += [finding for key, finding in search.findings.items() if key not in known]
    report["covered"] = max(report["covered"], search.covered)
    report["fuzz"] = {"runs": search.runs, "packets": search.packets, "captures": search.captures}
    if failure is not None:
        vars(failure)["report"] = report
        raise failure


def check_text(report: CheckReport) -> str:
    """A report as text: findings with their call stacks, then their number."""
    lines = [line for finding in report["findings"] for line in [*_of(finding), ""]]
    found = len(report["findings"])
    total = counted(found, "finding") if found else "no findings"
    schedules = report["schedules"]
    tried = f" in {schedules} interleavings" if schedules > 1 else ""
    what = ("process", "processes") if "program" in report else ("run of handlers", "runs of handlers")
    instructions = counted(report["instructions"], "instruction")
    counts = f"{counted(report['runs'], *what)}, {instructions}, {report['covered']} different"
    searched = []
    if "fuzz" in report:
        fuzz = report["fuzz"]
        inputs = "message" if "program" in report else "packet"
        searched.append(f"mutated: {counted(fuzz['packets'], inputs)} in {counted(fuzz['runs'], 'run')}")
        searched += [f"{each['file']}: replays {each['kind']}" for each in fuzz["captures"]]
    searched += [f"{report['nic']}: {words}" for words in report["missing"]]
    return "\n".join([*lines, *searched, f"{report['nic']}: {total}; {counts}{tried}, seed {report['seed']}"]) + "\n"


def check_table(report: CheckReport) -> Table:
    """A report as a table, with a row per finding."""
    findings = report["findings"]
    sides = [finding["at"] for finding in findings]
    return Table(
        [
            ("nic", [report["nic"]] * len(findings)),
            ("kind", [finding["kind"] for finding in findings]),
            ("place", [_place(side["place"]) for side in sides]),
            *((name, [side[name] for side in sides]) for name in ("handler", "packet", "process", "action")),
            ("times", [finding["times"] for finding in findings]),
            ("advice", [finding["advice"] for finding in findings]),
        ]
    )


def _of(finding: Finding) -> list[str]:
    at, other = finding["at"], finding["other"]
    times = f" ({finding['times']} times)" if finding["times"] > 1 else ""
    lines = [f"{_at(at)}: {finding['kind']}: {_side(at)}{times}", *_stack(at)]
    if other is not None:
        lines += [f"  {_at(other)}: {_side(other)}", *_stack(other)]
    return [*lines, f"  advice: {finding['advice']}"]


def _side(side: FindingSide) -> str:
    if side["process"] is not None:
        return f"process {side['process']} {side['action']}"
    packet = "" if side["packet"] is None else f" of packet {side['packet']}"
    return f"the {side['handler']}{packet} {side['action']}"


def _at(side: FindingSide) -> str:
    """The place of a side: its line, or its function and address."""
    place = _place(side["place"])
    return place if side["place"]["file"] is not None else f"{place} (pc {side['pc']:#010x})"


def _place(frame: CheckedFrame) -> str:
    if frame["file"] is None:
        return frame["function"] or "unknown place"
    return f"{frame['file']}:{frame['line']}" if frame["line"] else str(frame["file"])


def _stack(side: FindingSide) -> list[str]:
    return [f"    in {frame['function'] or '?'} at {_place(frame)}" for frame in side["stack"]]
