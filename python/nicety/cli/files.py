"""The files of a command: the program that it measures or checks, and what it writes beside its printed output."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

from nicety.errors import InputError
from nicety.shared.checks import one_of
from nicety.shared.files import PICTURES, check_place, write_whole
from nicety.show.tables import check_arrow, csv_text, report_table, write_arrow

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from nicety.build.card import XdpProgram
    from nicety.build.sources import Handlers


OF_PROGRAMS = ("nics", "overrides", "seed")
"""Options that commands for handlers have for a program of hosts too."""


_WITHOUT_ENTRIES = ("ringbuf", "bloom_filter", "perf_event_array")
"""Types of maps that a program writes to and that have no entries."""


@dataclass(frozen=True)
class Files:
    """The files that the user requested. None for a file that is not requested."""

    plot: Path | None = None
    csv: Path | None = None
    arrow: Path | None = None
    trace: Path | None = None
    trace_scale: str | None = None

    def check(self) -> None:
        """Raise an error before the run if a file cannot be written, or two options name the same file."""
        named = {"--plot": self.plot, "--csv": self.csv, "--arrow": self.arrow, "--trace": self.trace}
        places: dict[Path, str] = {}
        for option, path in named.items():
            if path is None:
                continue
            check_place(f"{option} {path}", path)
            other = places.setdefault(path.resolve(), option)
            if other != option:
                raise InputError(f"{option} {path}: {other} writes there already; name another file")
        if self.arrow is not None:
            check_arrow(f"--arrow {self.arrow}")
        if self.plot is not None and self.plot.suffix.lower() not in PICTURES:
            raise InputError(f"--plot {self.plot}: a picture's name ends with {one_of(PICTURES)}")
        if self.trace_scale is not None and self.trace_scale not in {"ns", "ps"}:
            raise InputError(f"--trace-scale {self.trace_scale}: write ns or ps for the tick of the timeline")
        if self.trace_scale is not None and self.trace is None:
            raise InputError("--trace-scale: there is no timeline; name a file for one with --trace")

    @property
    def scale(self) -> Literal["ns", "ps"]:
        """The unit of the timeline's ticks."""
        return cast(Literal["ns", "ps"], self.trace_scale or "ns")

    def write(self, report: Mapping[str, Any], figure: Callable[[], Figure]) -> None:
        """Write the table and the picture of a report. The benchmark itself writes the timeline.

        Args:
            report: a report; its rows become the rows of a table.
            figure: draws the report.
        """
        if self.csv is not None:
            write_whole(self.csv, csv_text(report_table(report)).encode())
        if self.arrow is not None:
            write_arrow(report_table(report), self.arrow)
        if self.plot is not None:
            from nicety.show.axes import save

            save(figure(), self.plot)


def check_kind(
    file: Path, arguments: Sequence[str] | None, of_handlers: Mapping[str, object], given: Mapping[str, Any]
) -> None:
    """Refuse options and arguments that are not for this kind of file."""
    if file.suffix != ".py":
        if arguments:
            raise InputError(f"{arguments[0]}: arguments are for a program of hosts, PROGRAM.py; leave it out")
        return
    named = [option for option, value in of_handlers.items() if value]
    named += [f"--{name.replace('_', '-')}" for name, value in given.items() if value and name not in OF_PROGRAMS]
    if named:
        raise InputError(f"{named[0]}: for handlers; a program of hosts has --nic, --set, --seed and its own arguments")


def read_bytes(path: Path) -> bytes:
    """Return the bytes of a file.

    Raises:
        InputError: the file cannot be read.
    """
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(f"{path}: cannot read it ({error.strerror})") from error


def assigned(text: str, option: str) -> tuple[str, Path]:
    """Split an option `NAME=FILE` into name and file.

    Raises:
        InputError: the option has another form.
    """
    name, equals, path = text.partition("=")
    if not equals or not name or not path:
        raise InputError(f"{option} {text}: write NAME=FILE")
    return name, Path(path)


def fills(maps: list[str] | None) -> dict[str, str]:
    """Return the entries of maps, as JSON, by the name of the map.

    Args:
        maps: values of `--map`, as NAME=FILE.

    Raises:
        InputError: a map is named twice, or a file cannot be read.
    """
    found: dict[str, str] = {}
    for name, path in (assigned(text, "--map") for text in maps or []):
        if name in found:
            raise InputError(f"--map {name}: the map is named twice; write all its entries in one file")
        found[name] = entries(path)
    return found


def dump_files(file: Path, dumps: list[str] | None) -> list[tuple[str, Path]]:
    """Return the maps of an eBPF object to write after a run, with their files.

    Args:
        file: the object.
        dumps: values of `--dump`, as NAME=FILE.

    Raises:
        InputError: there is no such map, it has no entries, or its file cannot be written.
    """
    from nicety import _native

    named = [assigned(text, "--dump") for text in dumps or []]
    if not named:
        return []
    content = read_bytes(file)
    try:
        kinds = {each["name"]: each["kind"] for each in json.loads(_native.xdp_show(content))["maps"]}
    except InputError as error:
        raise InputError(f"{file}: {error}") from error
    for name, path in named:
        if name not in kinds:
            raise InputError(f"--dump {name}: {file} has no such map; it has {', '.join(kinds) or 'none'}")
        if kinds[name] in _WITHOUT_ENTRIES:
            raise InputError(f"--dump {name}: a map of type {kinds[name]} has no entries; leave it out")
        check_place(f"--dump {path}", path)
    return named


def entries(path: Path) -> str:
    """Return the text of a file with entries of a map, as JSON.

    Raises:
        InputError: the file cannot be read, or is no text.
    """
    try:
        return read_bytes(path).decode()
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: no text; write a list of entries as JSON") from error


def program_of(
    file: Path,
    named: Mapping[str, str | None],
    include_dirs: list[Path] | None,
    defines: list[str] | None,
    cc: str | None,
    *,
    program: str | None,
    maps: list[str] | None,
    dumps: list[str] | None = None,
    unverified: bool = False,
) -> Handlers | XdpProgram:
    """The handlers in a C file, or the XDP program of an eBPF object.

    Args:
        file: the file.
        named: names of handlers, by their options.
        include_dirs: folders of headers.
        defines: macros.
        cc: a compiler.
        program: the XDP program.
        maps: files with entries of maps, as NAME=FILE.
        dumps: files for entries of maps, as NAME=FILE.
        unverified: whether an XDP program is checked on the card.

    Raises:
        InputError: an option is for the other kind of file.
    """
    from nicety.build.card import XdpProgram, is_object
    from nicety.build.sources import Handlers

    if is_object(file):
        of_sources = {**{f"--{name}": value for name, value in named.items()}, "-I": include_dirs, "-D": defines}
        if other := next((option for option, value in of_sources.items() if value), None):
            raise InputError(f"{other}: for handlers in C, and {file} is an eBPF object; leave it out")
        return XdpProgram(file, program=program, maps=fills(maps), cc=cc, unverified=unverified)
    if not file.exists():
        raise InputError(f"{file}: no such file")
    of_objects = {"--program": program, "--map": maps, "--dump": dumps, "--unverified": unverified}
    if other := next((option for option, value in of_objects.items() if value), None):
        raise InputError(f"{other}: for XDP programs, and {file} is no eBPF object; leave it out")
    return Handlers(file, **named, include_dirs=include_dirs or [], defines=defines or [], cc=cc)
