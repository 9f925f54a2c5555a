"""`nicety exec`."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from nicety._generated.types import ExecOptions, ExecReport
from nicety.cli.arguments import command, named_as_options, parse_names
from nicety.cli.options import Arrow, Csv, Json, Plot, TraceScale, count
from nicety.shared.options import arguments_of

if TYPE_CHECKING:
    from nicety.cli.files import Files
    from nicety.show.tables import Table


_MOST = 8
"""Maximum number of ranks in a message; the rest are counted."""


def _exec(
    program: Annotated[
        list[str], typer.Argument(metavar="PROGRAM [ARGS]...", help="The program, after --, and its arguments.")
    ],
    ranks: Annotated[
        int, typer.Option("-n", "--ranks", parser=count(), metavar="N", help="Number of the program's processes.")
    ] = 1,
    launcher: Annotated[
        str, typer.Option(metavar="auto|mpich|openmpi|none", help="What starts the processes.")
    ] = "auto",
    breakdown: Annotated[bool, typer.Option("--breakdown", help="Show what each process spends its time on.")] = False,
    plot: Plot = None,
    csv: Csv = None,
    arrow: Arrow = None,
    trace: Annotated[
        Path | None, typer.Option("--trace", metavar="FILE", help="Write a timeline for ui.perfetto.dev.")
    ] = None,
    trace_scale: TraceScale = None,
    *,
    as_json: Json = False,
    compare_offload: Annotated[
        bool,
        typer.Option("--compare-offload", help="Run it twice, first without --offload, and print both in one table."),
    ] = False,
    **given: Any,
) -> None:
    """Run a real program, such as an MPI program, on simulated hosts, one per process.

    With several cards, as in --nic A,B, the program runs on one card after the other.
    """
    from nicety.apps.launchers import LAUNCHERS, Launcher
    from nicety.apps.processes import processes_table, processes_text, run_processes
    from nicety.cli.files import Files
    from nicety.cli.output import note, print_behind, print_json, recording_notes, say, told_behind
    from nicety.errors import InputError
    from nicety.shared.checks import one_of

    files = Files(plot=plot, csv=csv, arrow=arrow, trace=trace, trace_scale=trace_scale)
    files.check()
    sys.stdout.flush()
    if launcher not in LAUNCHERS:
        raise InputError(f"--launcher is {one_of(LAUNCHERS)}, not {launcher}")
    options = {"ranks", "launcher", *arguments_of(ExecOptions)}
    nics = parse_names([given["nic"]], "--nic")
    if compare_offload or len(nics) > 1:
        with named_as_options(options):
            if compare_offload:
                _compare(program, ranks, launcher, files, as_json=as_json, **given)
            else:
                _on_cards(program, ranks, launcher, files, nics, as_json=as_json, breakdown=breakdown, **given)
        return
    given["nic"] = nics[0]
    words: list[str] = []
    with told_behind(words, to_stderr=as_json), recording_notes(), named_as_options(options):
        report = run_processes(
            program,
            launcher=cast(Launcher, launcher),
            to_stderr=as_json,
            launcher_words=words.append,
            ranks=ranks,
            trace=files.trace,
            trace_scale=files.scale,
            **given,
        )
    _write(files, processes_table(report), {report["nic"]: report})
    if as_json:
        print_json(report)
    else:
        say(processes_text(report, breakdown=breakdown))
    for text in _left_out(report):
        note(text)
    if (end := _bad_end(report)) is not None:
        note(end)
    print_behind("".join(words), to_stderr=as_json)
    if report["status"]:
        raise typer.Exit(report["status"])


def _left_out(report: ExecReport) -> Iterator[str]:
    """Yield notes on operations that are not in the schedule of a run."""
    from nicety.show.columns import counted

    if "goal" not in report:
        return
    file = report["goal"]["file"]
    if unreceived := report["goal"]["unmatched_messages"]:
        yield f"{file}: {counted(unreceived, 'message')} without a receive left out"
    if accesses := report["goal"]["accesses"]:
        left_out = counted(accesses, "access", "accesses")
        yield f"{file}: {left_out} to registered memory left out; schedules have only messages"


def _bad_end(report: ExecReport) -> str | None:
    """Return a message on processes that failed after they had closed the network. None without any."""
    ends = [(row["signal"], row["rank"]) for row in report["ranks"] if "signal" in row]
    # A launcher sends SIGTERM and SIGKILL to the other processes after one has ended.
    own = [end for end in ends if end[0] not in {signal.SIGKILL, signal.SIGTERM}]
    statuses = [(row["status"], row["rank"]) for row in report["ranks"] if "status" in row]
    for of_kind, is_signal in ((own, True), (statuses, False), (ends, True)):
        if of_kind:
            return _end_text(of_kind, is_signal=is_signal)
    return None


def _end_text(ends: Sequence[tuple[int, int]], *, is_signal: bool) -> str:
    """Return a message on the processes with the first of these ends: signals or exit statuses, each with its rank."""
    number = ends[0][0]
    ranks = [str(rank) for each, rank in ends if each == number]
    who = f"process of rank {ranks[0]}" if len(ranks) == 1 else f"processes of ranks {', '.join(ranks[:_MOST])}"
    more = f" and {len(ranks) - _MOST} more" if len(ranks) > _MOST else ""
    if is_signal:
        named = {each.value: f" ({each.name})" for each in signal.Signals}.get(number, "")
        return f"the {who}{more} ended, by signal {number}{named}, after the network was closed"
    return f"the {who}{more} ended with status {number}, after the network was closed"


def _write(files: Files, table: Table, reports: Mapping[str, ExecReport]) -> None:
    """Write the requested files: tables, and a picture with axes for each run."""
    from nicety.apps.processes import several_figure
    from nicety.shared.files import write_whole
    from nicety.show.axes import save
    from nicety.show.tables import csv_text, write_arrow

    if files.csv is not None:
        write_whole(files.csv, csv_text(table).encode())
    if files.arrow is not None:
        write_arrow(table, files.arrow)
    if files.plot is not None:
        save(several_figure(reports), files.plot)


def _check_cards(nics: Sequence[str], overrides: Sequence[str]) -> None:
    """Raise an error if a card or a change to it is unknown, before the first run."""
    from nicety.shared.cards import show

    for nic in nics:
        show(nic, overrides)


def _on_cards(
    program: list[str],
    ranks: int,
    launcher: str,
    files: Files,
    nics: Sequence[str],
    *,
    as_json: bool,
    breakdown: bool,
    **given: Any,
) -> None:
    """Run the program on one card after the other. A card on which the run fails ends the command after the output."""
    from nicety.apps.launchers import Launcher
    from nicety.apps.processes import cards_table, cards_text, processes_text, run_processes
    from nicety.cli.output import note, print_json, recording_notes, say
    from nicety.errors import Error, InputError
    from nicety.program.failures import retold

    if files.trace is not None or given.get("goal") is not None:
        option = "--goal" if files.trace is None else "--trace"
        raise InputError(f"{option}: a file of one run; name one card with --nic")
    _check_cards(nics, given.get("overrides") or ())
    reports: list[ExecReport] = []
    failed: Error | None = None
    for nic in nics:
        print(f"# on {nic}", file=sys.stderr if as_json else sys.stdout, flush=True)
        options = {**given, "nic": nic}
        try:
            with recording_notes():
                run = run_processes(
                    program, launcher=cast(Launcher, launcher), to_stderr=as_json, ranks=ranks, **options
                )
        except Error as error:
            failed = retold(error, f"{nic}: {error}")
            break
        reports.append(run)
    if reports:
        _write(files, cards_table(reports), {report["nic"]: report for report in reports})
        if as_json:
            print_json({"program": reports[0]["program"], "cards": reports})
        else:
            say("".join(f"{processes_text(report, breakdown=breakdown)}\n" for report in reports) + cards_text(reports))
    if failed is not None:
        raise failed
    for report in reports:
        if (end := _bad_end(report)) is not None:
            note(f"{report['nic']}: {end}")
    if status := next((report["status"] for report in reports if report["status"]), 0):
        raise typer.Exit(status)


def _compare(program: list[str], ranks: int, launcher: str, files: Files, *, as_json: bool, **given: Any) -> None:
    """Print two runs in one table."""
    from nicety.apps.launchers import Launcher
    from nicety.apps.offload import compare_offload, offload_comparison_text, offload_table
    from nicety.cli.output import print_json, say
    from nicety.errors import InputError

    if files.trace is not None:
        raise InputError("--trace: a timeline is of one run; leave out --compare-offload")
    report = compare_offload(program, ranks=ranks, launcher=cast(Launcher, launcher), to_stderr=as_json, **given)
    _write(files, offload_table(report), {"without offload": report["without"], "offload": report["offload"]})
    if as_json:
        print_json(report)
    else:
        say(offload_comparison_text(report))


def register(app: typer.Typer) -> None:
    """Add the command."""
    command(app, "exec", _exec, ExecOptions, captures=True)
