"""Programs in files, run on one card or several: `nicety run`.

A file has a program for all hosts, `main`, or a program for each rank, `programs`:

    async def main(host): ...          # every rank
    programs = {0: ping, 1: pong}      # or a program for each rank

    nodes = 2                          # unless the command line says otherwise
    topology = "pair"
    allow_failures = "fail"            # handlers that fail are part of the experiment

The return value of a program becomes a row of the report. It is a dict of names to numbers or texts, one number, or a
tuple of numbers or texts.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import linecache
import math
import numbers
import sys
import sysconfig
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from os import PathLike
from pathlib import Path
from types import ModuleType
from typing import Any, Literal, Unpack, cast

from nicety import _native
from nicety._generated.reports import ChannelReport, PortalsReport
from nicety.errors import Error, InputError, RunError
from nicety.program.cluster import Cluster, Traffic, usual_topology
from nicety.program.failures import Allowed, Attempts, allowed, require_points, require_report, retold
from nicety.program.host import Program
from nicety.program.reports import transport_of
from nicety.program.run import Run
from nicety.program.script.report import OURS, ProgramReport, program_html, program_table
from nicety.requests import ProgramOptions
from nicety.shared.options import asked
from nicety.shared.typed import checked
from nicety.show.html import Shown

_OF_CARDS = ("failures", "messages_dropped", "frames_lost", "refused_commands", "handler_lines")
"""Fields of a report that are lists over all cards; see `ProgramReport`."""


@dataclass(frozen=True)
class _File:
    programs: Program | Mapping[int, Program]
    nodes: int
    topology: str
    allowed: frozenset[str]


@dataclass
class _Runs:
    """Runs of the programs on several cards, one after the other, and their results.

    Attributes:
        network: the options `faults` and `flow_control`, if given; each adds fields to rows.
        rows: the rows of all cards.
        traffic: the numbers of frames per disposition, for all cards.
        profile: the rows of profiles, for all cards.
        of_cards: the key is a name in `_OF_CARDS`, the value the list with that name in the report.
        attempts: the errors of the cards with a failed run.
    """

    network: Mapping[str, str]
    rows: list[dict[str, Any]] = field(default_factory=list)
    traffic: list[dict[str, Any]] = field(default_factory=list)
    profile: list[dict[str, Any]] = field(default_factory=list)
    of_cards: dict[str, list[dict[str, Any]]] = field(default_factory=lambda: {name: [] for name in _OF_CARDS})
    attempts: Attempts = field(default_factory=Attempts)

    def fields(self, *, profile: bool) -> dict[str, Any]:
        """Return the fields of the report that have the results."""
        fields = {"rows": self.rows, **self.of_cards, "traffic": self.traffic}
        return {**fields, "profile": self.profile} if profile else fields

    def add(self, nic: str, cluster: Cluster, programs: Program | Mapping[int, Program]) -> Run | None:
        """Run the programs on a card. None if the run failed, or if the user interrupted an earlier run."""

        def act() -> Run:
            with _explained(nic):
                return cluster.run(programs)

        run = self.attempts.run(nic, act)
        if run is not None:
            of_network = _network(run, self.network)
            self.rows += [row | of_network for row in _rows(nic, run)]
            self.traffic += [{"nic": nic, **asdict(each)} for each in run.traffic]
            self.profile += [{**row, "nic": nic} for row in run.profile]
            for kind, found in _of_cards(nic, run).items():
                self.of_cards[kind] += found
        return run


@checked
def run_program(
    path: str | PathLike[str],
    *,
    arguments: Sequence[str] = (),
    allow_failures: Allowed = (),
    traffic: Traffic = (),
    trace: str | PathLike[str] | None = None,
    trace_scale: Literal["ns", "ps"] = "ns",
    profile: bool = False,
    progress: Callable[[int, int, str], None] | None = None,
    **given: Unpack[ProgramOptions],
) -> ProgramReport:
    """Run the programs of a Python file on one card after the other, and collect their results.

    Args:
        path: the file. It is loaded once, for any number of cards.
        arguments: the program's arguments, which it finds in `sys.argv` after the file's name.
        allow_failures: failures that are part of the experiment, as for `Cluster.run`, in addition to those that the
            file allows.
        traffic: frames for hosts' cards while the programs run, as for `Cluster`.
        trace: a file for a timeline of the run, to be opened with https://ui.perfetto.dev; of one card only.
        trace_scale: the tick of the timeline, a nanosecond or a picosecond.
        profile: profile the processes of flow processors; `profile` of the report has a row for each card and program.
        progress: called with the number of cards done, the total, and the next card.

    Raises:
        InputError: an unknown card, or more than one for a timeline, which is reported before anything runs; a file
            that does not exist, does not parse, or defines no program; a result that is no row.
        Deadlock: programs wait and no event is left.
        HandlerFailure: handlers failed in a way that is not allowed; it has the complete report.
        RunError: a program raised an exception; the message has the lines of its traceback.
    """
    options = asked(ProgramOptions, given)
    nics, overrides = options["nics"], options["overrides"] or []
    network = {name: options[name] for name in ("faults", "flow_control") if options[name] is not None}
    cards = [json.loads(_native.spec_show(nic, overrides)) for nic in nics]
    called = _named_apart([card["name"] for card in cards], alone=trace is not None)
    kinds = allowed(allow_failures)
    source = _read(path := Path(path))
    runs = _Runs(network)
    with _loaded(path, source, arguments) as module:
        testers = 1 if isinstance(traffic, str) else len(traffic)
        file = _definitions(path, module, options["nodes"], options["topology"], testers)
        if not cards:
            raise InputError("no card named; write for example --nic spin-discrete")
        clusters = [
            Cluster(
                file.nodes,
                nic,
                topology=file.topology,
                seed=options["seed"],
                set=overrides,
                noise=options["noise"],
                **network,
                recording="messages" if trace is None else "everything",
                allow_failures="all",
                traffic=traffic,
                profile=profile,
            )
            for nic in nics
        ]
        for done, (name, cluster) in enumerate(zip(called, clusters, strict=True)):
            if progress is not None:
                progress(done, len(called), name)
            run = runs.add(name, cluster, file.programs)
            if run is not None and trace is not None:
                run.trace(trace, scale=trace_scale)
    report: dict[str, Any] = {
        "program": str(path),
        "version": _native.version(),
        "seed": options["seed"],
        "manifest": {"program_sha256": hashlib.sha256(source).hexdigest(), "arguments": list(arguments)}
        | _circumstances(cards, file, overrides, options["noise"], traffic)
        | network,
        **runs.fields(profile=profile),
    }
    whole = cast(ProgramReport, Shown(runs.attempts.report(report), program_html, table=program_table))
    require_points(whole, runs.attempts)
    require_report(whole, kinds | file.allowed)
    return whole


@contextlib.contextmanager
def on_one_card(
    path: Path, arguments: Sequence[str], what: str, **given: Unpack[ProgramOptions]
) -> Iterator[tuple[Cluster, Program | Mapping[int, Program]]]:
    """Load a file, and yield a cluster of its card and its programs. The block is a part of the file's execution.

    Args:
        path: the file.
        arguments: the program's arguments.
        what: the subject of an error if there is not one card, as in "a check".
        given: the arguments of `ProgramOptions`.

    Raises:
        InputError: as for `run_program`, or several cards.
    """
    options = asked(ProgramOptions, given)
    nics, overrides = options["nics"], options["overrides"] or []
    if len(nics) != 1:
        raise InputError(f"--nic: {what} is of one card, and {len(nics)} are named")
    # Errors in the card and in changes to it are raised before the file is loaded.
    _native.spec_show(nics[0], overrides)
    source = _read(path)
    with _loaded(path, source, arguments) as module:
        file = _definitions(path, module, options["nodes"], options["topology"], 0)
        with _explained(nics[0]):
            cluster = Cluster(
                file.nodes,
                nics[0],
                topology=file.topology,
                seed=options["seed"],
                set=overrides,
                noise=options["noise"],
                faults=options["faults"],
                flow_control=options["flow_control"],
                allow_failures="all",
            )
            yield cluster, file.programs


def _circumstances(
    cards: Sequence[dict[str, Any]], file: _File, overrides: Sequence[str], noise: str | None, traffic: Traffic
) -> dict[str, Any]:
    """Return the entries of the manifest that describe the conditions of a run."""
    return {
        "specs": {card["name"]: {"title": card["title"], "spec_hash": card["hash"]} for card in cards},
        "overrides": overrides,
        "nodes": file.nodes,
        "topology": file.topology,
        "noise": noise,
        "traffic": [traffic] if isinstance(traffic, str) else list(traffic),
    }


def _named_apart(called: list[str], *, alone: bool) -> list[str]:
    """Return the names of cards after a check.

    Raises:
        InputError: two names are equal, or there are several cards for a timeline.
    """
    for name in called:
        if called.count(name) > 1:
            raise InputError(f"two of the cards are called {name}; change the name of one in its file")
    if alone and len(called) > 1:
        raise InputError(f"a timeline is of one card; name one of {', '.join(called)}")
    return called


def _of_cards(nic: str, run: Run) -> dict[str, list[dict[str, Any]]]:
    """Return for each name in `_OF_CARDS` the entries of one card's run."""
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in _OF_CARDS}
    found["failures"] += [{"nic": nic, **asdict(failure)} for failure in run.failures]
    for rank, node in enumerate(run.nodes):
        card = {"nic": nic, "rank": rank}
        found["refused_commands"] += [card | asdict(command) for command in node.refused_commands]
        match node.card:
            case PortalsReport(messages_dropped=dropped, handler_lines_printed=printed) as report:
                if dropped:
                    found["messages_dropped"].append(card | {"messages": dropped, "first": report.first_dropped})
                if printed:
                    lines = {"printed": printed, "suppressed": report.handler_lines_suppressed}
                    found["handler_lines"].append(card | lines)
            case ChannelReport(port=port) if port.frames_unclaimed or port.frames_waiting:
                lost = {"unclaimed": port.frames_unclaimed, "waiting": port.frames_waiting}
                found["frames_lost"].append(card | lost)
    return found


def _network(run: Run, network: Mapping[str, str]) -> dict[str, Any]:
    """Return the counts of faults, of ports and of the cards' transports, if the user gave such an option."""
    if not network:
        return {}
    faults = {"faults": [asdict(link) for link in run.links]} if "faults" in network else {}
    ports = {"ports": [asdict(port) for port in run.ports]} if "flow_control" in network else {}
    transport = [{"node": rank, **asdict(transport_of(node))} for rank, node in enumerate(run.nodes)]
    return {**faults, **ports, "transport": transport}


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError as error:
        raise InputError(f"{path}: no such file; name a Python file with an 'async def main(host)'") from error
    except IsADirectoryError as error:
        raise InputError(f"{path}: a folder; name a Python file in it") from error
    except OSError as error:
        raise InputError(f"{path}: cannot read it ({error.strerror})") from error


_MODULE = "__nicety_program__"


@contextlib.contextmanager
def _loaded(path: Path, source: bytes, arguments: Sequence[str]) -> Iterator[ModuleType]:
    """Load the file as a module. Its `sys.argv` and `sys.path` are those of a script during the block."""
    module = ModuleType(_MODULE)
    module.__file__ = str(path)
    argv, folders = sys.argv, list(sys.path)
    sys.modules[_MODULE] = module
    sys.argv = [str(path), *arguments]
    sys.path.insert(0, str(path.absolute().parent))
    linecache.checkcache(str(path))
    try:
        with _explained(None):
            try:
                code = compile(source, str(path), "exec", dont_inherit=True)
            except (SyntaxError, ValueError) as error:
                if isinstance(error, SyntaxError) and error.filename:
                    raise
                # A null byte in the file is an error without a file name.
                raise InputError(f"{path}: {error}") from error
            exec(code, module.__dict__)  # noqa: S102, running the user's program is the point
        yield module
    finally:
        sys.argv = argv
        sys.path[:] = folders
        sys.modules.pop(_MODULE, None)


def _definitions(path: Path, module: ModuleType, nodes: int | None, topology: str | None, testers: int) -> _File:
    """Return the file's definitions. Values from the command line replace those of the file."""
    programs = _programs(path, module)
    if nodes is None:
        nodes = getattr(module, "nodes", None)
    if nodes is None:
        nodes = max(2, *(rank + 1 for rank in programs)) if isinstance(programs, Mapping) else 2
    if type(nodes) is not int:
        raise InputError(f"{path}: nodes is a whole number, not {nodes!r}")
    if topology is None:
        topology = getattr(module, "topology", None)
    if topology is None:
        topology = usual_topology(nodes, testers)
    if not isinstance(topology, str):
        raise InputError(f"{path}: topology is a name such as 'pair' or 'star', not {topology!r}")
    return _File(programs, nodes, topology, allowed(getattr(module, "allow_failures", ())))


def _programs(path: Path, module: ModuleType) -> Program | Mapping[int, Program]:
    main, programs = (getattr(module, name, None) for name in ("main", "programs"))
    if main is None and programs is None:
        raise InputError(
            f"{path}: it defines no program; write 'async def main(host):' for all ranks, "
            "or programs = {0: ping, 1: pong}"
        )
    if main is not None and programs is not None:
        raise InputError(f"{path}: it defines main and programs; remove one of them")
    if programs is None:
        if not callable(main):
            raise InputError(f"{path}: main is no function; write 'async def main(host):'")
        return cast(Program, main)
    ranks = isinstance(programs, Mapping) and programs and all(type(rank) is int for rank in programs)
    if not ranks or not all(callable(program) for program in programs.values()):
        raise InputError(f"{path}: programs is a dict of ranks to async functions, as in {{0: ping, 1: pong}}")
    return cast("Mapping[int, Program]", programs)


def _rows(nic: str, run: Run) -> list[dict[str, Any]]:
    """Return a row per rank with a returned value, or one row without a rank if there is none."""
    memory = [
        {"node": rank, "read_bytes": node.host_memory_read_bytes, "written_bytes": node.host_memory_written_bytes}
        for rank, node in enumerate(run.nodes)
    ]
    reports = [(rank, _columns(rank, run.results[rank])) for rank in sorted(run.results)]
    found: list[tuple[int | None, dict[str, Any]]] = [(rank, columns) for rank, columns in reports if columns]
    return [
        {"nic": nic, "rank": rank, **columns, "time_ns": run.time_ns, "host_memory": memory}
        for rank, columns in found or [(None, {})]
    ]


def _columns(rank: int, result: object) -> dict[str, Any]:
    if result is None:
        return {}
    named = result if isinstance(result, Mapping) else {"result": result}
    if isinstance(result, tuple):
        named = {f"result_{number}": value for number, value in enumerate(result)}
    columns = {}
    for name, value in named.items():
        if not isinstance(name, str):
            raise InputError(f"rank {rank} returned a dict with {name!r} as a key; keys are texts")
        if name in OURS:
            raise InputError(f"rank {rank} returned {name!r}, which is already a column; use another name")
        columns[name] = _value(rank, name, value)
    return columns


def _value(rank: int, name: str, value: object) -> str | int | float | None:
    if value is None or isinstance(value, str | bool):
        return value
    if isinstance(value, numbers.Integral):
        return int(value)
    if isinstance(value, numbers.Real):
        number = float(value)
        return number if math.isfinite(number) else str(number)
    if type(value).__name__ == "bool":  # numpy.bool, which is no number
        return bool(value)
    what = "" if name == "result" else f" as {name!r}"
    raise InputError(
        f"rank {rank} returned a value of type {type(value).__name__}{what}; "
        "return a number, a tuple of numbers or texts, or a dict of names to numbers or texts"
    )


@contextlib.contextmanager
def _explained(nic: str | None) -> Iterator[None]:
    """Add the card, and the lines of the user's own files, to the text of an error."""
    on = "" if nic is None else f"{nic}: "
    try:
        yield
    except SyntaxError as error:
        raise InputError(_syntax(error)) from error
    except Exception as error:
        frames = _frames(error)
        if isinstance(error, Error):
            raise retold(error, "\n".join([f"{on}{error}", *frames])) from error
        kind = type(error).__qualname__
        text = f"{on}{kind}: {error}" if str(error) else f"{on}{kind}"
        notes = [f"  {note}" for note in getattr(error, "__notes__", [])]
        raise RunError("\n".join([text, *notes, *frames])) from error


def _syntax(error: SyntaxError) -> str:
    place = _shown(error.filename or "the program")
    text = f"{place}:{error.lineno}: {error.msg}" if error.lineno else f"{place}: {error.msg}"
    return f"{text}\n  {error.text.strip()}" if error.text else text


def _frames(error: BaseException) -> list[str]:
    """Return the lines of the user's own files in an exception's traceback, the innermost last."""
    while True:
        own = [frame for frame in traceback.extract_tb(error.__traceback__) if _is_users(frame.filename)]
        if own or error.__cause__ is None:
            return [f"  {_shown(f.filename)}:{f.lineno}, in {f.name}: {f.line or ''}".rstrip(" :") for f in own]
        error = error.__cause__


_LIBRARIES = [
    Path(folder)
    for folder in {str(Path(__file__).parent.parent.parent), *map(sysconfig.get_path, ("stdlib", "purelib", "platlib"))}
]


def _is_users(filename: str) -> bool:
    path = Path(filename).absolute()
    return not filename.startswith("<") and not any(path.is_relative_to(folder) for folder in _LIBRARIES)


def _shown(filename: str) -> str:
    """Return a path relative to the working folder if it is below that folder."""
    path, here = Path(filename), Path.cwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) else filename
