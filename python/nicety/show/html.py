"""Display of results in a notebook."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from html import escape
from io import BytesIO
from os import PathLike
from typing import TYPE_CHECKING, Any

from nicety.errors import InputError
from nicety.show.axes import save, write_picture
from nicety.show.tables import Library, Table, data_frame, report_table

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Shown(dict[str, Any]):
    """A report that shows itself in a notebook, and becomes a picture or a data frame on request.

    Otherwise it is a plain dict. A type checker knows a report by its fields alone; for these methods write
    `typing.cast(nicety.Shown, report)`.
    """

    def __init__(
        self,
        report: Mapping[str, Any],
        html: Callable[[Any], str],
        figure: Callable[..., Figure] | None = None,
        table: Callable[[Any], Table] | None = None,
    ) -> None:
        """Make a report that can be shown.

        Args:
            report: the report.
            html: converts the report to HTML.
            figure: draws the report; None for a report without a picture.
            table: converts the report to a table; by default the table of its rows, or of its own numbers and texts.
        """
        super().__init__(report)
        self._html = html
        self._figure = figure
        self._table = table or _rows_or_values

    def _repr_html_(self) -> str:
        return self._html(self)

    def plot(self, path: str | PathLike[str] | None = None, **parts: bool) -> Figure:
        """Draw the report as `--plot` does. If `path` is given, also write the picture (`.svg`, `.png`, `.pdf`).

        Args:
            path: the file.
            parts: the parts to draw, as options of the command: `breakdown=True`, `percentiles=True`.

        Raises:
            InputError: there is no picture of such a report, no such part of it, or the file cannot be written.
        """
        if self._figure is None:
            raise InputError("plot(): there is no picture of this report; table() has its numbers")
        try:
            figure = self._figure(self, **parts)
        except TypeError as error:
            if not parts or "keyword argument" not in str(error):
                raise
            raise InputError(f"plot(): a picture of this report has no {', '.join(parts)}; leave it out") from error
        if path is not None:
            save(figure, path)
        return figure

    def table(self, library: Library | None = None) -> Any:
        """Return the rows as a data frame, with the columns of `--csv`.

        Args:
            library: `pandas`, `polars` or `pyarrow`; by default the first of them that is installed.

        Raises:
            InputError: the library is not installed.
        """
        return data_frame(self._table(self), library)


def _rows_or_values(report: Mapping[str, Any]) -> Table:
    """Return the table of a report's rows; for a report without rows a single row with its own values."""
    if "rows" in report:
        return report_table(report)
    values = {name: value for name, value in report.items() if isinstance(value, bool | int | float | str)}
    return report_table({"rows": [values]})


def table_html(title: str, rows: Sequence[Sequence[str]]) -> str:
    """Return a table as HTML. Row 0 names the columns."""
    head, *body = ["".join(_cell(text, index == 0) for text in row) for index, row in enumerate(rows)]
    lines = "".join(f"<tr>{cells}</tr>" for cells in body)
    caption = f'<caption style="text-align: left; font-weight: bold; white-space: nowrap">{escape(title)}</caption>'
    return f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{lines}</tbody></table>"


def rows_html(names: Sequence[str], columns: Sequence[Sequence[Any]], count: int) -> str:
    """Return the first rows of a table as HTML.

    Args:
        names: the names of the columns.
        columns: the first values of each column.
        count: the number of rows of the table.
    """
    rows = [["" if cell is None else str(cell) for cell in row] for row in zip(*columns, strict=True)]
    title = f"{count} row{'' if count == 1 else 's'}"
    return table_html(title if len(rows) == count else f"{title}, the first {len(rows)}", [names, *rows])


def picture_html(figure: Figure, title: str) -> str:
    """Return a picture as HTML that holds all its bytes. Screen readers read the title."""
    drawn = BytesIO()
    write_picture(figure, drawn, "svg")
    source = b64encode(drawn.getvalue()).decode("ascii")
    return f'<img alt="{escape(title)}" style="max-width: 100%" src="data:image/svg+xml;base64,{source}">'


def text_html(text: str) -> str:
    """Return aligned text as HTML."""
    return f'<pre style="line-height: 1.25">{escape(text)}</pre>'


def _cell(text: str, heads: bool) -> str:
    tag = "th" if heads else "td"
    return f'<{tag} style="text-align: right; padding: 0.1em 0.6em">{escape(text)}</{tag}>'
