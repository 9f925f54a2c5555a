"""Profiles of handlers on cards."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Unpack, cast

from nicety import _native
from nicety._generated.types import LineRateOptions, ProfileReport
from nicety.bench.line_rate import build_for, derived, on_cards_of, program_of
from nicety.bench.measured import Progress, measured
from nicety.bench.profile.text import profile_figure, profile_html, profile_table
from nicety.build.card import XdpProgram
from nicety.build.sources import Handlers
from nicety.errors import InputError
from nicety.program.failures import Allowed, allowed, require_report
from nicety.shared.options import request_text
from nicety.shared.typed import checked


@checked
def profile_handlers(
    handlers: Handlers | XdpProgram | Path | str,
    *,
    include_dirs: Iterable[Path | str] = (),
    defines: Iterable[str] = (),
    cc: str | None = None,
    allow_failures: Allowed = (),
    progress: Progress | None = None,
    **given: Unpack[LineRateOptions],
) -> ProfileReport:
    """Send packets to handlers, and count their cycles by instruction, line, function and call.

    The packets are those of `check_line_rate`, all of the same size. Each cycle for which a handler holds a core is
    counted once, with its cause.

    Args:
        handlers: as in `check_line_rate`.
        include_dirs: further folders for `#include`.
        defines: macros, `NAME` or `NAME=VALUE`.
        cc: a compiler to use instead of the one in the `ziglang` package.
        allow_failures: failures of handlers that are part of the experiment; see `Cluster`.
        progress: called with the number of cards done, and the total.
        given: the arguments of `LineRateOptions`; `packet_sizes` has one size.

    Raises:
        InputError: a card, size, override or handler that does not exist or is invalid.
        HandlerTrap: a handler failed; the text names the line.
        HandlerFailure: handlers failed in a way that is not allowed; the exception's `report` is complete.
        RunError: the run failed otherwise.
    """
    program = program_of(handlers, include_dirs, defines, cc)
    kinds = allowed(allow_failures)
    if "trap" in kinds and kinds != allowed("all"):
        raise InputError("allow_failures: a handler that is stopped ends the run, so that trap cannot be allowed here")
    on_cards = on_cards_of(program, {}, given)

    def run(
        request: str, elfs: dict[str, bytes], progress: Progress | None, _record: bool
    ) -> tuple[str, _native.Recording | None]:
        return _native.profile_run(request, elfs, progress), None

    shown = measured(
        request_text(LineRateOptions, given, **derived(program, on_cards)),
        _native.line_rate_plan,
        run,
        partial(build_for, program, on_cards),
        profile_html,
        profile_figure,
        table=profile_table,
        progress=progress,
    )
    report = cast(ProfileReport, shown)
    require_report(report, kinds)
    return report
