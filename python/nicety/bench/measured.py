"""The common part of benchmarks that run programs on cards: compile the plan's programs, measure, write a timeline."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal

from nicety.program.failures import require_points
from nicety.shared.checks import Place
from nicety.show.html import Shown

if TYPE_CHECKING:
    from nicety import _native
    from nicety._generated.types import ProgramManifest

Progress = Callable[[int, int], None]
"""A function that is called with the number of rows done, and the total."""
Scale = Literal["ns", "ps"]
"""A tick of a timeline: a nanosecond or a picosecond."""
Run = Callable[[str, dict[str, bytes], Progress | None, bool], "tuple[str, _native.Recording | None]"]


def measured(
    request: str,
    plan: Callable[[str], str],
    run: Run,
    build: Callable[[Mapping[str, Any]], tuple[bytes, ProgramManifest]],
    html: Callable[[Any], str],
    *,
    trace: Place | None = None,
    trace_scale: Scale = "ns",
    progress: Progress | None = None,
) -> Shown:
    """The report of a benchmark.

    Args:
        request: the request, as JSON.
        plan: names the programs to compile.
        run: measures with these programs.
        build: compiles one program, and returns its manifest entry.
        html: shows the report in a notebook.
        trace: a file for a timeline of the first measurement.
        trace_scale: a tick of the timeline.
        progress: called with the number of rows done, and the total.
    """
    built = {item["key"]: build(item) for item in json.loads(plan(request))["compile"]}
    text, recording = run(request, {key: elf for key, (elf, _) in built.items()}, progress, trace is not None)
    if trace is not None and recording is not None:
        from nicety.show.traces import write_trace

        write_trace(recording, trace, scale=trace_scale)
    report = json.loads(text)
    report["manifest"]["compiler"] = {key: manifest for key, (_, manifest) in built.items()}
    return reported(report, html)


def reported(report: dict[str, Any], html: Callable[[Any], str]) -> Shown:
    """A report for a notebook.

    Raises:
        RunError: some points failed. The class is that of the first failed point's error; `report` has the other rows.
    """
    shown = Shown(report, html)
    require_points(shown)
    return shown
