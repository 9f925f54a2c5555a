"""The common part of benchmarks that run programs on cards: compile the plan's programs, measure, write a timeline."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal

from nicety.program.failures import require_points
from nicety.shared.checks import Place
from nicety.show.html import Shown
from nicety.show.tables import Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from nicety import _native
    from nicety._generated.types import ProgramManifest

Progress = Callable[[int, int], None]
"""A function that is called with the number of rows done, and the total."""
Scale = Literal["ns", "ps"]
"""The unit of a timeline's ticks: a nanosecond or a picosecond."""
Run = Callable[[str, dict[str, bytes], Progress | None, bool], "tuple[str, _native.Recording | None]"]


def measured(
    request: str,
    plan: Callable[[str], str],
    run: Run,
    build: Callable[[Mapping[str, Any]], tuple[bytes, ProgramManifest]],
    html: Callable[[Any], str],
    figure: Callable[..., Figure],
    *,
    table: Callable[[Any], Table] | None = None,
    trace: Place | None = None,
    trace_scale: Scale = "ns",
    progress: Progress | None = None,
) -> Shown:
    """Compile the programs of a benchmark, measure, write a timeline, and return the report.

    Args:
        request: the request, as JSON.
        plan: returns the programs to compile for the request.
        run: measures with the compiled programs, and returns the report and perhaps a recording.
        build: compiles one program, and returns its bytes and its manifest entry.
        html: returns the report for a notebook.
        figure: draws the report.
        table: converts the report to a table, if not by its rows.
        trace: a file for a timeline of the first measurement.
        trace_scale: the unit of the timeline's ticks.
        progress: called with the number of rows done, and the total.
    """
    built = {item["key"]: build(item) for item in json.loads(plan(request))["compile"]}
    text, recording = run(request, {key: elf for key, (elf, _) in built.items()}, progress, trace is not None)
    if trace is not None and recording is not None:
        from nicety.show.traces import write_trace

        write_trace(recording, trace, scale=trace_scale)
    report = json.loads(text)
    report["manifest"]["compiler"] = {key: manifest for key, (_, manifest) in built.items()}
    return reported(report, html, figure, table)


def reported(
    report: dict[str, Any],
    html: Callable[[Any], str],
    figure: Callable[..., Figure],
    table: Callable[[Any], Table] | None = None,
) -> Shown:
    """Return the report in a form that a notebook shows.

    Args:
        report: the report.
        html: returns the report for a notebook.
        figure: draws the report.
        table: converts the report to a table, if not by its rows.

    Raises:
        RunError: some points failed. The class is that of the first failed point's error; `report` has the other rows.
    """
    shown = Shown(report, html, figure, table)
    require_points(shown)
    return shown
