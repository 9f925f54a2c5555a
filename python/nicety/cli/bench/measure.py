"""Commands that measure: their common options, and the output of reports."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import typer

from nicety.cli.arguments import command
from nicety.cli.options import Arrow, Csv, Json, Plot, Trace, TraceScale

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from nicety.cli.files import Files

_R = TypeVar("_R", bound=Mapping[str, Any])


@dataclass(frozen=True)
class Output:
    """The destinations of a command's report: files, and stdout as text or as JSON."""

    files: Files
    as_json: bool

    @property
    def timeline(self) -> dict[str, Any]:
        """Arguments of a benchmark: the file for a timeline, and the unit of its ticks."""
        return {"trace": self.files.trace, "trace_scale": self.files.scale}

    def of(
        self,
        run: Callable[..., _R],
        text: Callable[..., str],
        figure: Callable[..., Figure],
        *,
        spread: bool = False,
        tells: bool = False,
        percent: bool = False,
        **shown: bool,
    ) -> _R:
        """Run a benchmark, write its files, and print its report.

        Args:
            run: measures. It takes a function that it calls with the `progress`.
            text: converts the report to text.
            figure: converts the report to a picture.
            spread: whether the benchmark's simulations are spread over processes, if MPI has started several.
            tells: whether the benchmark also calls a function with early results, its `news`.
            percent: whether progress is a share of the work, in place of rows.
            shown: arguments of `text` and `figure` that select the shown parts of the report.

        Raises:
            Error: handlers failed in a way that is not allowed, or points failed. Raised after all output is written.
        """
        import warnings

        from nicety.cli.bench.processes import processes
        from nicety.cli.output import note, print_json, say, with_report
        from nicety.cli.progress import progress
        from nicety.show.traces import RecordingWarning

        with (
            processes(spread=spread, what="this benchmark") as is_first,
            warnings.catch_warnings(record=True) as warned,
            progress("preparing", percent=percent) as bar,
        ):
            if is_first:
                self.files.check()
            warnings.simplefilter("always", RecordingWarning)
            news = {"news": bar.tell} if tells else {}
            advance = partial(bar.advance, description="measuring")
            report, failed = with_report(run, progress=advance, **news)
        for warning in warned:
            note(str(warning.message))
        self.files.write(report, lambda: figure(report, **shown))
        if self.as_json:
            print_json(report)
        else:
            say(text(report, **shown))
        if failed is not None:
            raise failed
        return report


def _output(
    *,
    plot: Plot = None,
    csv: Csv = None,
    arrow: Arrow = None,
    trace: Trace = None,
    trace_scale: TraceScale = None,
    as_json: Json = False,
) -> Output:
    from nicety.cli.files import Files

    return Output(Files(plot=plot, csv=csv, arrow=arrow, trace=trace, trace_scale=trace_scale), as_json)


def _untraced(*, plot: Plot = None, csv: Csv = None, arrow: Arrow = None, as_json: Json = False) -> Output:
    return _output(plot=plot, csv=csv, arrow=arrow, as_json=as_json)


def add(
    group: typer.Typer,
    name: str,
    act: Callable[..., None],
    *requests: type,
    text: str | None = None,
    traces: bool = True,
    captures: bool = True,
) -> None:
    """Add a measuring command: `nicety.cli.arguments.command` with an `act` that also gets an `Output`.

    Args:
        group: the group to which the command is added.
        name: the command's name.
        act: the command's function.
        requests: TypedDicts of the command's options.
        text: the command's help; by default the first request's docstring.
        traces: whether the command can write a timeline.
        captures: whether the command's runs have links.
    """
    command(group, name, act, *requests, text=text, more=_output if traces else _untraced, captures=captures)
