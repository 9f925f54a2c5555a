"""A program on a card under a debugger that speaks GDB's remote protocol."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypedDict, Unpack

from nicety import _native
from nicety._generated.types import LineRateOptions
from nicety.bench.line_rate import build_for, derived, on_cards_of, program_of
from nicety.build.card import XdpProgram
from nicety.build.sources import Handlers
from nicety.errors import InputError
from nicety.shared.options import request_text
from nicety.shared.typed import checked

MOST_PORT = 65_535
"""The highest port."""


class DebugReport(TypedDict):
    """The result of a debugging session.

    Attributes:
        nic: the card.
        seed: the seed of the run.
        end: `complete`; `killed` by the debugger; `lost` where the connection was lost, and the run is complete.
        lost: the reason of a lost connection.
        stops: stops of the debugger.
        simulations: runs of the simulation: one, and those of steps and continues back in time.
        handler_runs: completed runs of handlers in the last run.
        handler_instructions: instructions that they executed.
        failures: failures of handlers, a line each.
    """

    nic: str
    seed: int
    end: str
    lost: str | None
    stops: int
    simulations: int
    handler_runs: int
    handler_instructions: int
    failures: list[str]


@checked
def debug(
    handlers: Handlers | XdpProgram | Path | str,
    *,
    port: int = 0,
    elf: Path | str | None = None,
    listening: Callable[[int, Path], None] | None = None,
    include_dirs: Iterable[Path | str] = (),
    defines: Iterable[str] = (),
    cc: str | None = None,
    **given: Unpack[LineRateOptions],
) -> DebugReport:
    """Run a program on a card, stopped at its first instruction until a debugger lets it go on.

    The packets are those of `check_line_rate`, sent once. No simulated time passes at a stop.

    Args:
        handlers: a C file, `Handlers` with the names of its functions, an eBPF object, or `XdpProgram` with its maps.
        port: the port of 127.0.0.1 for the debugger; 0 for any free one.
        elf: a file for the compiled program, which the debugger reads; by default one that is removed at the end.
        listening: called with the port and the file of the compiled program, before the debugger connects.
        include_dirs: further folders for `#include`.
        defines: macros, `NAME` or `NAME=VALUE`.
        cc: a compiler to use instead of the one in the `ziglang` package.
        given: the arguments of `LineRateOptions`; one card and one packet size.

    Raises:
        InputError: a card, override, program or port that does not exist or is invalid.
        HandlerTrap: a handler failed; the text names the line.
        RunError: the run failed otherwise.
    """
    if not 0 <= port <= MOST_PORT:
        raise InputError(f"port is 0 to {MOST_PORT}, not {port}")
    program = program_of(handlers, include_dirs, defines, cc)
    if isinstance(program, XdpProgram):
        program = replace(program, lenient=True)
    on_cards = on_cards_of(program, {}, given)
    request = request_text(LineRateOptions, given, **derived(program, on_cards))
    items = json.loads(_native.line_rate_plan(request))["compile"]
    elfs = {item["key"]: build_for(program, on_cards, item)[0] for item in items}
    source = program.paths()[0] if isinstance(program, Handlers) else program.path
    with TemporaryDirectory(prefix="nicety-debug-") as folder:
        file = Path(folder, f"{Path(source).stem}.elf") if elf is None else Path(elf)
        try:
            file.write_bytes(elfs[next(iter(elfs))])
        except OSError as error:
            raise InputError(f"{file}: cannot write it ({error.strerror})") from error

        def told(found: str) -> None:
            if listening is not None:
                listening(int(found), file)

        report: DebugReport = json.loads(_native.debug_run(request, elfs, port, told))
    return report
