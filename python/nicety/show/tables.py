"""Tables as columns, CSV and Arrow files."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.util import find_spec
from os import PathLike
from typing import Any

from nicety import _native
from nicety.errors import InputError
from nicety.shared.files import write_whole

Table = _native.Table


def report_table(report: Mapping[str, Any]) -> Table:
    """A benchmark's rows as a table.

    The columns are the fields of the rows in JSON. A nested field has its path in its name, as in `stages_link_ns`,
    `host_memory_1_written_bytes`, `flows_0_1_latency_ns` and `handlers_payload_cycles_mean`. A missing value is null.
    """
    flat = [dict(flatten(row)) for row in report["rows"]]
    names = list(dict.fromkeys(name for row in flat for name in row))
    return Table([(name, [row.get(name) for row in flat]) for name in names])


_COUNTED = {"refused_commands": ("commands_refused", "times"), "locks": ("lock_waits", "waits")}
"""Lists of a row that become one column of a table: the column's name, and the field that is summed."""

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
    "sensitivity_values": ("key",),
    "sensitivity_stopped": ("key", "value"),
}
"""Lists of a row that become columns for each item: the field that names an item."""


def flatten(row: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """The columns of a row and their values, as in `report_table`."""
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
            # The figures of the row are those of the last one.
            yield "trial_rate_fraction", value[-1]["rate_fraction"] if value else None
        elif isinstance(value, Mapping):
            for field, inner in value.items():
                path = f"{name}_{field}"
                if path in _LISTED:
                    yield from _listed(path, inner, _LISTED[path])
                else:
                    yield path, ", ".join(inner) if isinstance(inner, list) else inner
        else:
            yield name, value


def _listed(name: str, items: Sequence[Mapping[str, Any]], keys: Sequence[str]) -> Iterator[tuple[str, Any]]:
    for item in items:
        prefix = "_".join([name, *(str(item[key]).replace(" ", "_") for key in keys)])
        for field, value in item.items():
            if isinstance(value, Mapping):
                yield from ((f"{prefix}_{field}_{inner}", count) for inner, count in value.items())
            elif field not in keys and not isinstance(value, list):
                yield f"{prefix}_{field}", value


def write_arrow(table: Table, path: str | PathLike[str]) -> None:
    """Write a table as an Arrow file, which requires pyarrow.

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
    """Refuse an action that requires pyarrow if it is not installed."""
    if find_spec("pyarrow") is None:
        raise InputError(f"{what}: this takes pyarrow, which is not installed; pip install 'nicety[arrow]'")


def csv_text(table: Table) -> str:
    """A table as CSV with a line of names. A missing value is empty, and booleans are `true` or `false`."""
    return csv_rows(table.columns, zip(*(table.column(name) for name in table.columns), strict=True))


def csv_rows(names: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A line of names and a line per row, as CSV."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(names)
    for row in rows:
        writer.writerow(["" if cell is None else str(cell).lower() if isinstance(cell, bool) else cell for cell in row])
    return text.getvalue()
