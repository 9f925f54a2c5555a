"""`nicety profile`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nicety._generated import types
from nicety.cli.arguments import command
from nicety.cli.files import OF_PROGRAMS, check_kind
from nicety.cli.options import (
    AllowFailures,
    AnyProgram,
    Compiler,
    CompletionName,
    Defines,
    HeaderName,
    IncludeDirs,
    Json,
    MapFiles,
    PayloadName,
    ProgramArguments,
    Unverified,
    XdpName,
    count,
)

if TYPE_CHECKING:
    from nicety._generated.types import ProfileReport

_TEXT = """Count the cycles of handlers by instruction, line, function and call, with their causes.

Packets of one size, 512 bytes unless --packet-sizes names another, or traffic. The options are those of bench handlers.
With a program of hosts, PROGRAM.py, the processes on its flow processors are counted. It has the options --nic, --set,
--seed and its own arguments.
"""


def _profile(
    file: AnyProgram,
    arguments: ProgramArguments = None,
    header: HeaderName = None,
    payload: PayloadName = None,
    completion: CompletionName = None,
    include_dirs: IncludeDirs = None,
    defines: Defines = None,
    cc: Compiler = None,
    allow_failures: AllowFailures = None,
    program: XdpName = None,
    maps: MapFiles = None,
    lines: Annotated[
        int, typer.Option("--lines", parser=count(1), metavar="N", help="Lines to show, the hottest first.")
    ] = 12,
    html: Annotated[
        Path | None, typer.Option("--html", metavar="FILE", help="Write annotated source as one HTML file.")
    ] = None,
    speedscope: Annotated[
        Path | None, typer.Option("--speedscope", metavar="FILE", help="Write stacks for https://www.speedscope.app.")
    ] = None,
    pprof: Annotated[
        Path | None, typer.Option("--pprof", metavar="FILE", help="Write stacks for pprof, compressed with gzip.")
    ] = None,
    against: Annotated[
        str | None,
        typer.Option("--against", metavar="FILE|NIC", help="Compare with another program, or with another card."),
    ] = None,
    as_json: Json = False,
    unverified: Unverified = False,
    **given: Any,
) -> None:
    files = {"--html": html, "--speedscope": speedscope, "--pprof": pprof}
    _check(files, against, given)
    named = {"header": header, "payload": payload, "completion": completion}
    build: dict[str, Any] = {"-I": include_dirs, "-D": defines, "--cc": cc, "--program": program, "--map": maps}
    build["--unverified"] = unverified
    of_handlers = {f"--{name}": value for name, value in named.items()} | build
    check_kind(file, arguments, of_handlers, given)

    def run(file: Path, **given: Any) -> tuple[ProfileReport, BaseException | None]:
        if file.suffix == ".py":
            return _of_program(file, arguments or [], allow_failures or "", given)
        return _of_handlers(file, named, build, allow_failures or "", given)

    report, failed = run(file, **given)
    if len(report["rows"]) > 1 and (against is not None or pprof is not None):
        _refuse_several(report, "--against" if against is not None else "--pprof")
    _write(files, report)
    other = None
    if against is not None:
        is_card = not Path(against).is_file() or Path(against).suffix == ".toml"
        other, other_failed = run(file, **{**given, "nics": [against]}) if is_card else run(Path(against), **given)
        failed = failed or other_failed
        _note_one_profile(files, file, against)
    _show(report, other, lines, as_json=as_json)
    if failed is not None:
        raise failed


def _of_program(
    file: Path, arguments: Sequence[str], allow_failures: str, given: Mapping[str, Any]
) -> tuple[ProfileReport, BaseException | None]:
    """The profile of a program of hosts."""
    from nicety.bench.profile.program import profile_program
    from nicety.cli.output import with_report
    from nicety.cli.progress import progress

    own = {name: given[name] for name in OF_PROGRAMS if name in given}
    with progress(f"profiling {file.name}") as bar:

        def advance(done: int, total: int, _nic: str) -> None:
            bar.advance(done, total)

        more = {"allow_failures": allow_failures, "progress": advance, **own}
        return with_report(profile_program, file, arguments=arguments, **more)


def _of_handlers(
    file: Path,
    named: Mapping[str, str | None],
    build: Mapping[str, Any],
    allow_failures: str,
    given: Mapping[str, Any],
) -> tuple[ProfileReport, BaseException | None]:
    """The profile of handlers, or of an XDP program."""
    from nicety.bench.profile.run import profile_handlers
    from nicety.cli.files import program_of
    from nicety.cli.output import with_report
    from nicety.cli.progress import progress

    include_dirs, defines, cc, program, maps, unverified = build.values()
    own = (dict(named), include_dirs, defines, cc)
    handlers = program_of(file, *own, program=program, maps=maps, unverified=unverified)
    with progress(f"profiling {file.name}") as bar:
        return with_report(profile_handlers, handlers, allow_failures=allow_failures, progress=bar.advance, **given)


def _show(report: ProfileReport, other: ProfileReport | None, lines: int, *, as_json: bool) -> None:
    """Print a profile, or two and their differences."""
    from nicety.bench.profile.against import against_text, difference
    from nicety.bench.profile.text import profile_text
    from nicety.cli.output import print_json, say

    if other is None:
        if as_json:
            print_json(report)
        else:
            say(profile_text(report, lines))
    elif as_json:
        print_json({"profile": report, "against": other, "difference": difference(report, other)})
    else:
        say(against_text(report, other, lines))


def _check(files: Mapping[str, Path | None], against: str | None, given: Mapping[str, Any]) -> None:
    """Refuse files and comparisons that cannot be made, before anything runs."""
    from nicety.errors import InputError
    from nicety.shared.files import check_place

    places: dict[Path, str] = {}
    for option, path in files.items():
        if path is None:
            continue
        check_place(f"{option} {path}", path)
        other = places.setdefault(path.resolve(), option)
        if other != option:
            raise InputError(f"{option} {path}: {other} writes there already; name another file")
    several = len(given.get("nics", ())) > 1
    if several and (against is not None or files["--pprof"] is not None):
        option = "--against" if against is not None else "--pprof"
        raise InputError(f"{option}: for the profile of one card; name one with --nic")
    if against is not None and Path(against).suffix in {".c", ".o"} and not Path(against).is_file():
        raise InputError(f"--against {against}: no such file; write a C file, an eBPF object, or the name of a card")


def _refuse_several(report: ProfileReport, option: str) -> None:
    """Refuse an option for one profile, where the run has several."""
    from nicety.bench.profile.text import about
    from nicety.errors import InputError

    found = "; ".join(about(row) for row in report["rows"])
    raise InputError(f"{option}: for one profile, and the run has {len(report['rows'])}: {found}; use --json")


def _write(files: Mapping[str, Path | None], report: ProfileReport) -> None:
    from nicety.bench.profile.files import pprof, speedscope
    from nicety.bench.profile.page import profile_page
    from nicety.shared.files import write_whole

    if (path := files["--html"]) is not None:
        write_whole(path, profile_page(report))
    if (path := files["--speedscope"]) is not None:
        write_whole(path, speedscope(report))
    if (path := files["--pprof"]) is not None:
        write_whole(path, pprof(report["rows"][0]))


def _note_one_profile(files: Mapping[str, Path | None], file: Path, against: str) -> None:
    """Print a note: a file has one profile, not the comparison."""
    from nicety.cli.output import note

    for path in files.values():
        if path is not None:
            note(f"{path}: it has only the profile of {file}; for a file of {against}, profile it without --against")


def register(app: typer.Typer) -> None:
    """Add the command."""
    command(app, "profile", _profile, types.LineRateOptions, text=_TEXT, without={"sensitivity"})
