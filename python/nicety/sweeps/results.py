"""A sweep's results: the outcomes of its points, and one table of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from nicety.shared.files import write_whole
from nicety.show.html import table_html
from nicety.show.tables import Table, csv_text, flatten, rows_with_places
from nicety.sweeps.grid import Point
from nicety.sweeps.store import Outcome

_OURS = ("point", "status", "error")
"""Columns of the table that a sweep has itself."""


@dataclass(frozen=True)
class Sweep:
    """The results of a sweep.

    Attributes:
        points: the points of the grid, in the grid's order.
        outcomes: the outcome of each point; None if the point has not run.
        before: the number of points that had an outcome before this sweep.
        folder: the folder with the results, if any.
        options: the parameters that are the same at all points.
        damaged: a message for each damaged file in the folder. Its point has run again.
    """

    points: Sequence[Point]
    outcomes: Sequence[Outcome | None]
    before: int = 0
    folder: Path | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    damaged: Sequence[str] = ()

    @property
    def done(self) -> int:
        """The number of points that are done."""
        return sum(outcome is not None and outcome["status"] == "done" for outcome in self.outcomes)

    @property
    def failed(self) -> list[tuple[Point, str]]:
        """The points that failed, each with its error."""
        pairs = zip(self.points, self.outcomes, strict=True)
        return [(point, outcome["error"]) for point, outcome in pairs if outcome is not None and "error" in outcome]

    @property
    def table(self) -> Table:
        """The rows of all points as one table.

        Columns are `point`, a number from 0; the grid's parameters; the options, so that tables of several sweeps can
        be merged; `status`, `done` or `failed`; `error`; and the columns of the results' rows, with names as in
        `report_table`. A result without rows is one row; the report of `nicety exec` has a row per process. If a row
        has a column with the name of a parameter or an option, the row's column replaces it. A row's own column
        `point`, `status` or `error` is named `report_point`, `report_status` or `report_error`.
        """
        rows = list(self._rows())
        first = ["point", *(self.points[0].values if self.points else []), *self.options, "status", "error"]
        names = list(dict.fromkeys([*first, *(name for row in rows for name in row)]))
        return Table([(name, column([row.get(name) for row in rows])) for name in names])

    def _rows(self) -> Iterator[dict[str, Any]]:
        for number, (point, outcome) in enumerate(zip(self.points, self.outcomes, strict=True)):
            if outcome is not None:
                about = {"status": outcome["status"], "error": outcome.get("error")}
                for row in rows_of(outcome.get("result", [])) or [{}]:
                    own = {f"report_{name}" if name in _OURS else name: cell for name, cell in row.items()}
                    yield {"point": number, **point.values, **self.options, **about, **own}

    @property
    def files(self) -> list[Path]:
        """The files that `write` writes; empty without a folder."""
        if self.folder is None:
            return []
        kinds = ["csv", "parquet"] if find_spec("pyarrow") is not None else ["csv"]
        return [self.folder / f"table.{kind}" for kind in kinds]

    def write(self) -> None:
        """Write the table beside the points as `table.csv`, and as `table.parquet` if pyarrow is installed."""
        table = self.table
        for file in self.files:
            write_whole(file, csv_text(table).encode() if file.suffix == ".csv" else _parquet(table))

    def _repr_html_(self) -> str:
        table = self.table
        rows = zip(*(table.column(name) for name in table.columns), strict=True)
        title = f"{self.done} of {len(self.points)} points"
        body = [["" if cell is None else str(cell) for cell in row] for row in rows]
        return table_html(title, [table.columns, *body])


def _parquet(table: Table) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    content = pa.BufferOutputStream()
    pq.write_table(pa.table(table), content)
    found: bytes = content.getvalue().to_pybytes()
    return found


def rows_of(result: Any) -> list[dict[str, Any]]:
    """Return the rows of a result.

    They are its field `rows`, its items if it is a list, or itself as one row. A report of a real program has a row per
    process, with the report's own fields; a report of several cards has the rows of each card.
    """
    if isinstance(result, Mapping):
        if "rows" not in result and _are_mappings(result.get("cards")):
            return [row for report in result["cards"] for row in rows_of(report)]
        if "rows" not in result and _are_mappings(result.get("ranks")):
            report = _row(result)
            return [report | _process(each) for each in result["ranks"]]
        rows = rows_with_places(result) if result.get("places") else result.get("rows", [result])
    else:
        rows = result if isinstance(result, list) else [result]
    return [_row(row) for row in rows]


def _are_mappings(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(each, Mapping) for each in value)


def _row(row: Any) -> dict[str, Any]:
    """Return a row's columns. Lists and nested fields without columns are left out."""
    flat = dict(flatten(row)) if isinstance(row, Mapping) else {"value": row}
    return {name: cell for name, cell in flat.items() if not isinstance(cell, list | Mapping)}


def _process(process: Mapping[str, Any]) -> dict[str, Any]:
    """Return the columns of a process, with the names of `nicety exec --csv`."""
    own = {name: cell for name, cell in process.items() if not isinstance(cell, Mapping)}
    return own | dict(process.get("offload", {}))


def column(cells: Sequence[Any]) -> list[Any]:
    """Return the cells of a column with one type. If types differ, all cells become text."""
    kinds = {type(cell) if isinstance(cell, bool | str) else float for cell in cells if cell is not None}
    if len(kinds) <= 1:
        return list(cells)
    return [None if cell is None else str(cell).lower() if isinstance(cell, bool) else str(cell) for cell in cells]
