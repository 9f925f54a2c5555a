"""Commands that measure: the options that all of them have, and what becomes of a report."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import typer

from nicety.cli.options import Arrow, Csv, Json, Plot, Trace, TraceScale

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from nicety.cli.files import Files

_R = TypeVar("_R", bound=Mapping[str, Any])

Progress = Callable[[int, int], None]
"""Called with how much is done and how much there is."""


@dataclass(frozen=True)
class Output:
    """Where a command's report goes: files, and stdout as text or JSON."""

    files: Files
    as_json: bool

    @property
    def trace(self) -> Path | None:
        """The file for a timeline."""
        return self.files.trace

    @property
    def scale(self) -> Literal["ns", "ps"]:
        """The unit of a tick of the timeline."""
        return self.files.scale

    def of(
        self, run: Callable[[Progress], _R], text: Callable[..., str], figure: Callable[..., Figure], **shown: bool
    ) -> _R:
        """Run a benchmark, write its files, and print it.

        Args:
            run: measures, given what tells its progress.
            text: makes the report a text.
            figure: makes it a picture.
            shown: what of it is shown, for both.

        Raises:
            HandlerFailure: where handlers failed that are not allowed to, after all has been written.
        """
        import sys
        import warnings

        from nicety.cli.output import note, print_json, with_report
        from nicety.cli.progress import progress
        from nicety.show.traces import RecordingWarning

        self.files.check()
        with warnings.catch_warnings(record=True) as warned, progress("preparing") as bar:
            warnings.simplefilter("always", RecordingWarning)
            report, failed = with_report(run, lambda done, total: bar.advance(done, total, "measuring"))
        for warning in warned:
            note(str(warning.message))
        self.files.write(report, lambda: figure(report, **shown))
        if self.as_json:
            print_json(report)
        else:
            sys.stdout.write(text(report, **shown))
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


def add(
    group: typer.Typer, name: str, act: Callable[..., None], *, text: str | None = None, traces: bool = True
) -> None:
    """Add a command that measures. Its options are those of `act`, and in place of `output` those of an `Output`.

    Args:
        group: what it is added to.
        name: as the command line has it.
        act: what it does.
        text: what it says of itself, where that is not `act`'s docstring.
        traces: whether it can write a timeline.
    """
    own, common = signature(act), signature(_output)
    del own["output"]
    if not traces:
        del common["trace"], common["trace_scale"]

    def command(**given: Any) -> None:
        output = _output(**{option: given.pop(option) for option in common})
        act(**given, output=output)

    take(command, [*own.values(), *common.values()])
    group.command(name, help=text or act.__doc__)(command)


def signature(function: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    """The parameters of a function by name, with annotations that are no texts."""
    return dict(inspect.signature(function, eval_str=True).parameters)


def take(command: Callable[..., Any], parameters: list[inspect.Parameter]) -> None:
    """Give a command the options of other functions."""
    named = [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in parameters]
    command.__signature__ = inspect.Signature(named)  # type: ignore[attr-defined]  # typer reads it
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in named}
