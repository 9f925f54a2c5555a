"""The files that a benchmark writes beside its printed output."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

from nicety.errors import InputError
from nicety.shared.checks import one_of
from nicety.shared.files import PICTURES, check_place, write_whole
from nicety.show.tables import check_arrow, csv_text, report_table, write_arrow

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Files:
    """The requested files, None for a file that is not requested."""

    plot: Path | None = None
    csv: Path | None = None
    arrow: Path | None = None
    trace: Path | None = None
    trace_scale: str | None = None

    def check(self) -> None:
        """Refuse unwritable files before anything runs."""
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
            raise InputError(f"--trace-scale {self.trace_scale}: a tick of the timeline is a nanosecond, ns, or a ps")
        if self.trace_scale is not None and self.trace is None:
            raise InputError("--trace-scale: there is no timeline; name a file for one with --trace")

    @property
    def scale(self) -> Literal["ns", "ps"]:
        """The unit of a tick of the timeline."""
        return cast(Literal["ns", "ps"], self.trace_scale or "ns")

    def write(self, report: Mapping[str, Any], figure: Callable[[], Figure]) -> None:
        """Write the files made from a report. The benchmark writes the timeline.

        Args:
            report: a report with rows that are written as tables.
            figure: draws the report.
        """
        if self.csv is not None:
            write_whole(self.csv, csv_text(report_table(report)).encode())
        if self.arrow is not None:
            write_arrow(report_table(report), self.arrow)
        if self.plot is not None:
            from nicety.show.axes import save

            save(figure(), self.plot)


def read_bytes(path: Path) -> bytes:
    """The bytes of a file.

    Raises:
        InputError: it cannot be read.
    """
    from nicety.errors import InputError

    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(f"{path}: cannot read it ({error.strerror})") from error


def assigned(text: str, option: str) -> tuple[str, Path]:
    """The name and the file of an option `NAME=FILE`.

    Raises:
        InputError: it has another form.
    """
    from nicety.errors import InputError

    name, equals, path = text.partition("=")
    if not equals or not name or not path:
        raise InputError(f"{option} {text}: write NAME=FILE")
    return name, Path(path)


def entries(path: Path) -> str:
    """The entries of a map in a file, as JSON.

    Raises:
        InputError: it cannot be read.
    """
    from nicety.errors import InputError

    try:
        return read_bytes(path).decode()
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: no text; write a list of entries as JSON") from error
