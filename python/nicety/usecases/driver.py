"""Runs of use cases: the sweep over cards, modes and points, the checks before the first run, and the report."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Unpack, cast

from nicety import _native
from nicety.build.compiler import compile_handlers, library_source
from nicety.build.sources import Handlers
from nicety.errors import Error, InputError, RunError
from nicety.program.failures import Allowed, Attempts, allowed, require_points, retold
from nicety.program.reports import transport_of
from nicety.requests import UseCaseOptions
from nicety.shared.checks import U64, Place, whole
from nicety.shared.options import asked
from nicety.shared.typed import checked
from nicety.show.html import Shown
from nicety.usecases.case import Card, Outcome, Point, Trial, UseCase, cluster_of
from nicety.usecases.report import Incomplete, UseCaseReport, report_html, usecase_figure

if TYPE_CHECKING:
    from collections.abc import Iterator


@checked
def run_usecase(
    case: UseCase,
    *,
    handlers: Place | None = None,
    cc: str | None = None,
    allow_failures: Allowed = (),
    trace: Place | None = None,
    trace_scale: Literal["ns", "ps"] = "ns",
    note: Callable[[str], None] | None = None,
    progress: Callable[[int, int], None] | None = None,
    **given: Unpack[UseCaseOptions],
) -> UseCaseReport:
    """Run a use case on one or several cards, in one or several modes, and check every byte of its results.

    Args:
        case: the use case with its sweep, such as `nicety.usecases.Broadcast(nodes=[2, 4], sizes=[8])`.
        handlers: the user's own handlers in C, instead of the library's.
        cc: a compiler to use instead of the one in the `ziglang` package.
        allow_failures: failures of handlers that are part of the experiment; see `Cluster.run`. The report's `failures`
            lists them.
        trace: a file for a timeline of the first run, to be opened with https://ui.perfetto.dev.
        trace_scale: the tick of the timeline, a nanosecond or a picosecond.
        note: called with notes for the user on the sweep, which are not in the report.
        progress: called with the number of rows done, and the total.
        given: the arguments of `UseCaseOptions`.

    Raises:
        InputError: a card, mode, point, override or handler does not exist or is invalid. Raised before the first run.
        HandlerFailure: a handler failed in a way that is not allowed.
        RunError: the run failed: a deadlock, a trap in a handler, or a wrong byte in a result.
    """
    requested = asked(UseCaseOptions, given)
    nics, modes, iterations, overrides = (requested[name] for name in ("nics", "modes", "iterations", "overrides"))
    topology, noise, seed = (requested[name] for name in ("topology", "noise", "seed"))
    network = {name: requested[name] for name in ("faults", "flow_control") if requested[name] is not None}
    count = max(1, iterations)
    # Iteration i has the seed `seed + i`, which must fit 64 bits.
    seed = whole(seed, "seed", U64 - count + 1)
    overrides = overrides or []
    cards = _cards(nics, overrides)
    chosen = _modes(case, modes, handlers)
    points = case.points()
    if not points:
        raise InputError("nothing to measure; name at least one value of each swept option, such as a size")
    pairs = {case.nodes(point) for point in points} == {2}
    options: dict[str, Any] = {"set": overrides, "noise": noise, "recording": "summary"}
    options["allow_failures"] = allowed(allow_failures)
    options |= network
    options["topology"] = topology or ("pair" if pairs else "star")
    _check(case, cards, chosen, seed, options)
    compiled, programs = _compile(case, cards, chosen, handlers, cc)
    if note is not None:
        for text in dict.fromkeys(text for card in cards for text in case.notes(card, chosen)):
            note(text)
    sweep = _Sweep(case, count, seed, options, programs, None if trace is None else (Path(trace), trace_scale))
    rows = sweep.rows([(card, mode, point) for card in cards for mode in chosen for point in points], progress)
    report = {
        "benchmark": case.name,
        "title": case.title,
        "meaning": case.meaning,
        "axis": case.axis,
        "parameters": list(points[0]),
        "figure": asdict(case.figure),
        "version": _native.version(),
        "seed": seed,
        "manifest": {
            "specs": {card.name: {"title": card.title, "spec_hash": card.spec_hash} for card in cards},
            "overrides": overrides,
            "topology": options["topology"],
            "noise": noise,
            **network,
            "compiler": compiled,
        },
        "rows": rows,
        "incomplete": _incomplete(case, list(points[0]), rows),
        "failures": sweep.failures,
    }
    shown = Shown(sweep.attempts.report(report), report_html, usecase_figure)
    require_points(shown, sweep.attempts)
    return cast(UseCaseReport, shown)


def _incomplete(case: UseCase, parameters: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> list[Incomplete]:
    return [
        {"nic": row["nic"], "mode": row["mode"], "point": {name: row[name] for name in parameters}, "text": text}
        for row in rows
        if (text := case.incomplete(row)) is not None
    ]


def incomplete_text(row: Incomplete) -> str:
    """Return a line with a row's card, mode and point, and its requests that were not completed."""
    return f"{_place(row['nic'], row['mode'], row['point'])}: {row['text']}"


def _check(case: UseCase, cards: Sequence[Card], modes: Sequence[str], seed: int, options: Mapping[str, Any]) -> None:
    """Raise an error for an invalid request before the first run."""
    points = case.points()
    for card in cards:
        for mode in modes:
            for point in points:
                with _at(card, mode, point):
                    case.check(card, mode, point)
                    _check_limits(card, case.needs(card, mode, point))
        for nodes in sorted({case.nodes(point) for point in points}):
            # Making the cluster checks its options.
            cluster_of(nodes, card, seed, options)


_LIMITED = {
    "limits.match_entries": "match entries",
    "limits.descriptors": "memory descriptors",
    "limits.counters": "counters",
    "limits.event_queues": "event queues",
    "limits.event_queue_depth": "events in a queue",
    "limits.portal_table": "portal table entries",
    "limits.triggered": "triggered operations",
    "host.memory": "bytes of host memory",
}


def _check_limits(card: Card, needs: Mapping[str, int]) -> None:
    """Raise an error if a card has fewer resources than a node needs."""
    for key, needed in needs.items():
        size = key == "host.memory"
        available = card.size_bytes(key) if size else card.count(key)
        if needed > available:
            raise InputError(
                f"a node needs up to {needed} {_LIMITED[key]}, but this card has {available}; "
                f"set {key} to {needed}{' B' if size else ''} or more"
            )


@dataclass(frozen=True)
class _Sweep:
    """The options of all runs of a sweep, and the failures so far."""

    case: UseCase
    iterations: int
    seed: int
    options: Mapping[str, Any]
    programs: Mapping[str, Handlers]
    trace: tuple[Path, Literal["ns", "ps"]] | None
    failures: list[dict[str, Any]] = field(default_factory=list)
    attempts: Attempts = field(default_factory=Attempts)

    def rows(
        self, measured: Sequence[tuple[Card, str, Point]], progress: Callable[[int, int], None] | None
    ) -> list[dict[str, Any]]:
        """Run all points, and return a row per card, mode and point. A point that fails has no row."""
        rows: list[dict[str, Any]] = []
        if progress is not None:
            progress(0, len(measured))
        for card, mode, point in measured:
            act = partial(self.outcomes, card, mode, point, recorded=not rows)
            outcomes = self.attempts.run(_place(card.name, mode, point), act)
            if outcomes is not None:
                rows.append(_row(self.case, card, mode, point, outcomes))
            if progress is not None:
                progress(len(rows) + len(self.attempts.errors), len(measured))
        return rows

    def outcomes(self, card: Card, mode: str, point: Point, *, recorded: bool) -> list[_Measured]:
        """Run all iterations of a point."""
        with _at(card, mode, point):
            return [
                self.run(card, mode, point, iteration, recorded=recorded and iteration == 0)
                for iteration in range(self.iterations)
            ]

    def run(self, card: Card, mode: str, point: Point, iteration: int, *, recorded: bool) -> _Measured:
        """Run one iteration, and write its timeline if `recorded` and requested."""
        options = dict(self.options)
        if recorded and self.trace is not None:
            options["recording"] = "everything"
        trial = Trial(card, mode, point, self.programs.get(mode), self.seed + iteration, options)
        try:
            outcome = self.case.run(trial)
        except Exception as error:
            notes = trial.fault_notes
            # Errors of the network have these notes already. Invalid input is not caused by faults.
            told = any(words in str(error) for words in (notes.strip(), "not delivered"))
            if not notes or isinstance(error, InputError) or told:
                raise
            if isinstance(error, RunError):
                raise retold(error, f"{error}{notes}") from error
            # Damaged bytes can make the programs fail in any way, since they are no request or reply.
            raise RunError(f"a program cannot continue with the received data ({_named(error)}){notes}") from error
        at = {"nic": card.name, "mode": mode, **point}
        self.failures.extend({**at, **asdict(failure)} for failure in outcome.run.failures)
        if recorded and self.trace is not None:
            path, scale = self.trace
            outcome.run.trace(path, scale=scale)
        return _Measured.of(outcome)


def _cards(nics: Sequence[str], overrides: Sequence[str]) -> list[Card]:
    if not nics:
        raise InputError("no card named; write for example --nic spin-discrete")
    cards: list[Card] = []
    for nic in nics:
        spec = json.loads(_native.spec_show(nic, list(overrides)))
        if spec["design"] != "portals":
            raise InputError(
                f"{spec['name']} is of design {spec['design']}, but use cases need handlers and Portals calls; name "
                "cards of design portals, for example spin-discrete"
            )
        values = {parameter["key"]: parameter["value"] for parameter in spec["parameters"]}
        if any(card.name == spec["name"] for card in cards):
            raise InputError(f"two of the cards are called {spec['name']}; change the name of one in its file")
        cards.append(Card(spec["name"], nic, spec["title"], spec["hash"], values))
    return cards


def _modes(case: UseCase, modes: Sequence[str] | None, handlers: Place | None) -> list[str]:
    handled = [mode for mode in case.modes if case.source(mode) is not None]
    if modes is None:
        return handled if handlers is not None else list(case.modes)
    for mode in modes:
        if mode not in case.modes:
            raise InputError(f"{case.name} has no mode {mode!r}; its modes are {', '.join(case.modes)}")
        if handlers is not None and mode not in handled:
            raise InputError(
                f"mode {mode} runs no handlers; with handlers of your own use --mode {' or '.join(handled)}"
            )
    if not modes:
        raise InputError(f"no mode named; the modes of {case.name} are {', '.join(case.modes)}")
    return list(dict.fromkeys(modes))


def _compile(
    case: UseCase, cards: Sequence[Card], modes: Sequence[str], handlers: Place | None, cc: str | None
) -> tuple[dict[str, Any], dict[str, Handlers]]:
    """Compile the programs of the modes for every card. Return manifest entries by program, and handlers by mode."""
    said: dict[str, Any] = {}
    programs = {}
    for mode in modes:
        name = case.source(mode)
        if name is None:
            continue
        source = Path(handlers) if handlers is not None else library_source(name)
        programs[mode] = Handlers(source, cc=cc)
        for card in cards:
            program = compile_handlers([source], isa=card.isa, interface=card.interface, cc=cc)
            said[f"{card.name}/{mode}"] = {
                "source": str(source) if handlers is not None else source.name,
                "sha256": hashlib.sha256(source.read_bytes()).hexdigest(),
                "version": program.compiler,
                "flags": program.flags,
            }
    return said, programs


def _place(nic: str, mode: str, point: Point) -> str:
    named = ", ".join(f"{name.removesuffix('_bytes').replace('_', ' ')} {value}" for name, value in point.items())
    return f"{nic}, mode {mode}, {named}"


def _named(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


@contextmanager
def _at(card: Card, mode: str, point: Point) -> Iterator[None]:
    """Begin each error in the block with the card, the mode and the point."""
    place = _place(card.name, mode, point)
    try:
        yield
    except Error as error:
        raise retold(error, f"{place}: {error}") from error
    except MemoryError as error:
        raise RunError(
            f"{place}: this machine has too little memory for the simulation; measure fewer points, or smaller sizes"
        ) from error


@dataclass(frozen=True)
class _Measured:
    """The figures of a run that its row needs."""

    time_ps: int
    read_bytes: int
    written_bytes: int
    figures: Mapping[str, float]
    links: Sequence[Mapping[str, Any]]
    ports: Sequence[Mapping[str, Any]]
    transport: Sequence[Mapping[str, Any]]

    @staticmethod
    def of(outcome: Outcome) -> _Measured:
        nodes = outcome.run.nodes
        return _Measured(
            outcome.time_ps,
            sum(node.host_memory_read_bytes for node in nodes),
            sum(node.host_memory_written_bytes for node in nodes),
            outcome.figures,
            [asdict(link) for link in outcome.run.links],
            [asdict(port) for port in outcome.run.ports],
            [{"node": rank, **asdict(transport_of(node))} for rank, node in enumerate(nodes)],
        )


def _row(case: UseCase, card: Card, mode: str, point: Point, outcomes: Sequence[_Measured]) -> dict[str, Any]:
    times = sorted(outcome.time_ps for outcome in outcomes)
    count = len(times)
    payload = case.payload_bytes(point)
    bandwidth = {} if payload is None else {"bandwidth_bytes_per_s": payload * count * 1e12 / sum(times)}
    return {
        "nic": card.name,
        "mode": mode,
        **point,
        "iterations": count,
        "latency_ns": sum(times) / count / 1000,
        **bandwidth,
        **{name: sum(outcome.figures[name] for outcome in outcomes) / count for name in outcomes[0].figures},
        "min_ns": times[0] / 1000,
        "p50_ns": times[math.ceil(0.5 * count) - 1] / 1000,
        "p99_ns": times[math.ceil(0.99 * count) - 1] / 1000,
        "max_ns": times[-1] / 1000,
        "host_memory_read_bytes": _mean(outcome.read_bytes for outcome in outcomes),
        "host_memory_written_bytes": _mean(outcome.written_bytes for outcome in outcomes),
        **_network(outcomes),
        "verified": True,
    }


def _network(outcomes: Sequence[_Measured]) -> dict[str, Any]:
    """Return the counts of faults, of ports and of the cards' transports, summed over the runs. Empty without any."""
    if not outcomes[0].links and not outcomes[0].ports:
        return {}
    links = [_sum(found) for found in zip(*(outcome.links for outcome in outcomes), strict=True)]
    ports = [_port(found) for found in zip(*(outcome.ports for outcome in outcomes), strict=True)]
    cards = [_sum(found, "node") for found in zip(*(outcome.transport for outcome in outcomes), strict=True)]
    return {**({"faults": links} if links else {}), **({"ports": ports} if ports else {}), "transport": cards}


def _port(found: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the counts of a port, summed over runs. The peak occupancy is the maximum over the runs."""
    added = ("dropped_packets", "dropped_bytes", "pauses_sent", "pauses_received", "paused_ps")
    most = max(each["peak_bytes"] for each in found)
    return {**found[0], "peak_bytes": most, **{name: sum(each[name] for each in found) for name in added}}


def _sum(found: Sequence[Mapping[str, Any]], key: str = "link") -> dict[str, Any]:
    """Return the counts of a link or a card, summed over runs."""
    return {name: value if name == key else sum(each[name] for each in found) for name, value in found[0].items()}


def _mean(values: Iterator[int]) -> int | float:
    """Return the mean; a whole number is an int."""
    found = list(values)
    mean, rest = divmod(sum(found), len(found))
    return sum(found) / len(found) if rest else mean
