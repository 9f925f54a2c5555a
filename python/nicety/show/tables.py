"""Tables of reports: columns, CSV files and Arrow files."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from os import PathLike
from typing import Any, Literal, get_args

from nicety import _native
from nicety.errors import InputError
from nicety.shared.files import write_whole

Table = _native.Table

Library = Literal["pandas", "polars", "pyarrow"]
"""A package with data frames."""


def data_frame(table: Table, library: Library | None = None) -> Any:
    """Return a table as a data frame of pandas, polars or pyarrow.

    Args:
        table: the table.
        library: the package; by default the first that is installed, in the order above.

    Raises:
        InputError: the package is not installed, or none of them is.
    """
    known = get_args(Library)
    if library is not None and library not in known:
        raise InputError(f"library is {', '.join(known[:-1])} or {known[-1]}, not {library}")
    wanted = known if library is None else (library,)
    name = next((each for each in wanted if find_spec(each) is not None), None)
    if name is None:
        raise InputError(
            f"table(): this needs {' or '.join(wanted)}, which is not installed; pip install 'nicety[{wanted[0]}]'"
        )
    package = import_module(name)
    if name == "pandas":
        # Without pyarrow, pandas does not read Arrow columns.
        return package.DataFrame({column: table.column(column) for column in table.columns})
    return package.DataFrame(table) if name == "polars" else package.table(table)


def report_table(report: Mapping[str, Any]) -> Table:
    """Return a benchmark's rows as a table.

    The columns are the fields of the rows in JSON. The name of a nested field is its path, as in `stages_link_ns`,
    `host_memory_1_written_bytes`, `flows_0_1_latency_ns` and `handlers_payload_cycles_mean`. A missing value is null.
    An XDP program has a row for each of its `places`, with the fields of the card's row before those of the place.
    """
    flat = [dict(flatten(row)) for row in rows_with_places(report)]
    names = list(dict.fromkeys(name for row in flat for name in row))
    return Table([(name, [row.get(name) for row in flat]) for name in names])


def rows_with_places(report: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the rows of a report; for an XDP program, one for each place, as in `report_table`."""
    places = report.get("places")
    if not places:
        return list(report["rows"])
    rows = {(row["nic"], row["packet_bytes"]): row for row in report["rows"]}
    joined = [(rows.get((place["nic"], place["packet_bytes"]), {}), place) for place in places]
    return [{**row, **{name: value for name, value in place.items() if name not in row}} for row, place in joined]


_COUNTED = {"refused_commands": ("commands_refused", "times"), "locks": ("lock_waits", "waits")}
"""Maps a field that is a list to the name of its only column, and to the item's field that the column sums."""

_LISTED = {
    "host_memory": ("node",),
    "transport": ("node",),
    "faults": ("link",),
    "ports": ("at", "port"),
    "traffic_ports": ("port",),
    "flows": ("source", "target"),
    "handlers": ("handler",),
    "breakdown": ("group",),
    "memory_levels": ("level",),
    "parts": ("part",),
    "xdp_aborted_at": ("program", "place"),
    "verdicts_aborted_at": ("program", "place"),
    "sensitivity_values": ("key",),
    "sensitivity_stopped": ("key", "value"),
}
"""Maps a field that is a list to the item's fields that name an item. Each item has its own columns."""


def flatten(row: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield name and value of each column of a row; see `report_table`."""
    for name, value in row.items():
        if name == "stages":
            for stage in value:
                yield f"stages_{stage['stage'].replace(',', '').replace(' ', '_')}_ns", stage["ns"]
        elif name in _LISTED and isinstance(value, list):
            yield from _listed(name, value, _LISTED[name])
        elif name in _COUNTED:
            total, counts = _COUNTED[name]
            yield total, sum(item[counts] for item in value)
        elif name == "trials":
            # The row's figures are those of its last trial.
            yield "trial_rate_fraction", value[-1]["rate_fraction"] if value else None
        elif isinstance(value, Mapping):
            for field, inner in value.items():
                yield from _nested(f"{name}_{field}", inner)
        else:
            yield name, value


def _nested(path: str, inner: Any) -> Iterator[tuple[str, Any]]:
    if path in _LISTED:
        yield from _listed(path, inner, _LISTED[path])
    elif isinstance(inner, Mapping):
        yield from ((f"{path}_{key}", count) for key, count in inner.items())
    else:
        yield path, ", ".join(inner) if isinstance(inner, list) else inner


def _listed(name: str, items: Sequence[Mapping[str, Any]], keys: Sequence[str]) -> Iterator[tuple[str, Any]]:
    for item in items:
        prefix = "_".join([name, *(str(item[key]).replace(" ", "_") for key in keys)])
        for field, value in item.items():
            if isinstance(value, Mapping):
                yield from ((f"{prefix}_{field}_{inner}", count) for inner, count in value.items())
            elif field not in keys and not isinstance(value, list):
                yield f"{prefix}_{field}", value


def write_arrow(table: Table, path: str | PathLike[str]) -> None:
    """Write a table as an Arrow file. Requires pyarrow.

    Raises:
        InputError: the file cannot be written, or pyarrow is not installed.
    """
    check_arrow("write_arrow()")
    import pyarrow as pa

    rows, file = pa.table(table), pa.BufferOutputStream()
    with pa.ipc.new_file(file, rows.schema) as writer:
        writer.write_table(rows)
    write_whole(path, file.getvalue().to_pybytes())


def check_arrow(what: str) -> None:
    """Raise an error if pyarrow is not installed. `what` is the beginning of the error."""
    if find_spec("pyarrow") is None:
        raise InputError(f"{what}: this needs pyarrow, which is not installed; pip install 'nicety[arrow]'")


def csv_text(table: Table) -> str:
    """Return a table as CSV. Line 1 names the columns. A missing value is empty; booleans are `true` or `false`."""
    return csv_rows(table.columns, zip(*(table.column(name) for name in table.columns), strict=True))


def csv_rows(names: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Return a line of column names and a line per row, as CSV."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(names)
    for row in rows:
        writer.writerow(["" if cell is None else str(cell).lower() if isinstance(cell, bool) else cell for cell in row])
    return text.getvalue()
