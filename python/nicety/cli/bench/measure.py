"""Commands that measure: the options that all of them have, and what becomes of a report."""

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
    """Where a command's report goes: files, and stdout as text or JSON."""

    files: Files
    as_json: bool

    @property
    def timeline(self) -> dict[str, Any]:
        """The file for a timeline, and the unit of its ticks."""
        return {"trace": self.files.trace, "trace_scale": self.files.scale}

    def of(
        self,
        run: Callable[..., _R],
        text: Callable[..., str],
        figure: Callable[..., Figure],
        *,
        spread: bool = False,
        tells: bool = False,
        **shown: bool,
    ) -> _R:
        """Run a benchmark, write its files, and print it.

        Args:
            run: measures, given a function that it tells its `progress`.
            text: makes the report a text.
            figure: makes it a picture.
            spread: whether it is spread over the processes of the command, where MPI has started several.
            tells: whether it also has `news` on its way.
            shown: what of it is shown, for both.

        Raises:
            Error: where handlers failed that are not allowed to, or points did, after all has been written.
        """
        import warnings

        from nicety.cli.bench.processes import processes
        from nicety.cli.output import note, print_json, say, with_report
        from nicety.cli.progress import progress
        from nicety.show.traces import RecordingWarning

        with (
            processes(spread=spread, what="this benchmark") as is_first,
            warnings.catch_warnings(record=True) as warned,
            progress("preparing") as bar,
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
    """Add a command that measures: one of `nicety.cli.arguments.command`, whose `act` gets an `Output` as well.

    Args:
        group: what it is added to.
        name: as the command line has it.
        act: what it does.
        requests: TypedDicts of its options.
        text: what it says of itself, where that is not the first request's docstring.
        traces: whether it can write a timeline.
        captures: whether it has links.
    """
    command(group, name, act, *requests, text=text, more=_output if traces else _untraced, captures=captures)
