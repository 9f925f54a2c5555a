"""The processes of a program of hosts under a debugger that speaks GDB's remote protocol."""

from __future__ import annotations

import contextlib
import io
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from os import PathLike
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypedDict, Unpack, cast

from nicety import _native
from nicety.apps.debug import MOST_PORT
from nicety.errors import Error, HandlerTrap, InputError, RunError, failure_text
from nicety.program.cluster import Cluster
from nicety.program.host import Program
from nicety.program.script import on_one_card
from nicety.requests import ProgramOptions
from nicety.shared.options import asked
from nicety.shared.typed import checked


class DebugProgramReport(TypedDict):
    """The result of a debugging session with processes.

    Attributes:
        program: the program of hosts.
        nic: the card.
        seed: the seed of the run.
        end: `complete`; `killed` by the debugger; `lost` where the connection was lost, and the run is complete.
        lost: the reason of a lost connection.
        stops: stops of the debugger.
        simulations: runs of the program: one, and those of steps and continues back in time.
        processes: processes of the debugged program that were started in the last run.
        failures: failures of processes, a line each.
    """

    program: str
    nic: str
    seed: int
    end: str
    lost: str | None
    stops: int
    simulations: int
    processes: int
    failures: list[str]


class _Runs:
    """Runs of a program under a session."""

    def __init__(
        self, path: Path, arguments: Sequence[str], session: _native.DebugSession, rank: int, given: ProgramOptions
    ) -> None:
        self._path = path
        self._arguments = arguments
        self._session = session
        self._rank = rank
        self._given = given
        self.elf = b""
        self.count = 0

    def run(self) -> list[str]:
        """Run the program once, and print its output. Return its failures. An abandoned run has neither."""
        self.count += 1
        printed = io.StringIO()
        try:
            with contextlib.redirect_stdout(printed):
                return self._run()
        finally:
            # A deferred stop takes another run.
            if not self._session.repeats() and not self._session.left():
                sys.stdout.write(printed.getvalue())

    def _run(self) -> list[str]:
        with self._loaded() as (cluster, programs):
            try:
                run = cluster.debug(programs, self._session, rank=self._rank)
                return [failure_text(asdict(failure)) for failure in run.failures]
            except KeyboardInterrupt:
                if not self._session.left():
                    raise
                return []
            except HandlerTrap as error:
                return str(error).splitlines()
            finally:
                self.elf = self.elf or cluster.program_with(self._session.first() or "")

    @contextlib.contextmanager
    def _loaded(self) -> Iterator[tuple[Cluster, Program]]:
        with on_one_card(self._path, self._arguments, "a debugger", **self._given) as (cluster, programs):
            yield cluster, cast(Program, programs)


@checked
def debug_program(
    path: str | PathLike[str],
    *,
    arguments: Sequence[str] = (),
    port: int = 0,
    rank: int = 0,
    elf: Path | str | None = None,
    listening: Callable[[int, Path], None] | None = None,
    **given: Unpack[ProgramOptions],
) -> DebugProgramReport:
    """Run a program of hosts on flow processors, stopped at the first instruction of its first process.

    The debugger has the processes of one compiled program, on the first card of one host. A thread of the debugger is a
    context. No simulated time passes at a stop. The file is loaded anew for each run.

    Args:
        path: a Python file, as for `run_program`.
        arguments: the program's arguments.
        port: the port of 127.0.0.1 for the debugger; 0 for any free one.
        rank: the host whose card is debugged.
        elf: a file for the compiled program, which the debugger reads; by default one that is removed at the end.
        listening: called with the port and the file of the compiled program, before the debugger connects.
        given: the arguments of `ProgramOptions`; one card.

    Raises:
        InputError: the file, the card or the port is invalid, or the card has no processes.
        RunError: the run failed, or no process has run.
    """
    if not 0 <= port <= MOST_PORT:
        raise InputError(f"port is 0 to {MOST_PORT}, not {port}")
    options = asked(ProgramOptions, given)
    path = Path(path)
    session = _native.DebugSession(port)
    runs = _Runs(path, arguments, session, rank, given)
    runs.run()
    if not session.repeats():
        raise RunError(f"{path}: no process has run on the card of rank {rank}; start one with host.channels.start")
    with TemporaryDirectory(prefix="nicety-debug-") as folder:
        file = Path(folder, f"{path.stem}.elf") if elf is None else Path(elf)
        try:
            file.write_bytes(runs.elf)
        except OSError as error:
            raise InputError(f"{file}: cannot write it ({error.strerror})") from error
        if listening is not None:
            listening(session.port(), file)
        session.accept()
        failures, failure = _run(runs)
        while session.repeats():
            failures, failure = _run(runs)
    ended = json.loads(session.finish(bool(failures) or failure is not None))
    if ended["end"] == "interrupted":
        raise KeyboardInterrupt
    if failure is not None and ended["end"] != "killed":
        raise failure
    return {
        "program": str(path),
        "nic": options["nics"][0],
        "seed": options["seed"],
        "end": ended["end"],
        "lost": ended["lost"],
        "stops": ended["stops"],
        "simulations": runs.count - 1,
        "processes": ended["processes"],
        "failures": failures,
    }


def _run(runs: _Runs) -> tuple[list[str], Error | None]:
    """Run a program. Return its failures, and the error that ended it."""
    try:
        return runs.run(), None
    except Error as error:
        return [], error
