"""What a run leaves to look at: tables, a timeline, pictures, and where the time of its messages went.

    run = nicety.Cluster(2, "spin-discrete", recording="everything").run(programs)
    print(run.breakdown())
    polars.DataFrame(run.messages)  # or pyarrow.table(run.messages)
    run.trace("run.pftrace")  # for https://ui.perfetto.dev
    run.plot("run.svg")

Columns have their units in their names; times are picoseconds of virtual time.
"""

from __future__ import annotations

import csv
import io
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any, Literal, cast

from nicety import _native
from nicety._files import write_whole
from nicety.errors import InputError
from nicety.tables import align, fixed

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from nicety.programs import ProgramReport

Table = _native.Table

Level = Literal["summary", "messages", "packets", "everything"]
"""How much of a run is recorded; each level keeps what those before it keep."""

LEVELS: tuple[Level, ...] = ("summary", "messages", "packets", "everything")


PICTURES = (".svg", ".png", ".pdf")
"""How the names of pictures end."""


class RecordingWarning(UserWarning):
    """Something is made of a recording that is not whole."""


@dataclass(frozen=True)
class StageTime:
    """A stage of messages: how many passed it, and the nanoseconds of all of them together."""

    stage: str
    messages: int
    total_ns: float


@dataclass(frozen=True)
class Breakdown:
    """Where the time of messages went, from the post to the completion that their hosts could see.

    Attributes:
        messages: how many messages these are.
        stages: the stages that took any time, in their usual order; they add up to the messages' latencies.
    """

    messages: int
    stages: list[StageTime]

    @property
    def total_ns(self) -> float:
        """The latencies of all messages together, in nanoseconds."""
        return sum(round(stage.total_ns * 1000) for stage in self.stages) / 1000

    def rows(self) -> list[list[str]]:
        """The table as texts: stage, mean of all messages, share, and the messages that passed the stage."""
        total, rows = self.total_ns, [["Stage", "Mean (ns)", "Share", "Messages"]]
        for stage in self.stages:
            mean, share = round(stage.total_ns * 1000) / (1000 * self.messages), stage.total_ns / total
            rows.append([stage.stage, fixed(mean), f"{share:.1%}", str(stage.messages)])
        if self.stages:
            rows.append(["sum", fixed(round(total * 1000) / (1000 * self.messages)), "100.0%", str(self.messages)])
        return rows

    def __str__(self) -> str:
        head, *body = self.rows()
        title = f"# Where the time of {self.messages} message{'s' if self.messages != 1 else ''} went"
        return "\n".join([title, *align([[f"# {head[0]}", *head[1:]], *body], range(1, len(head)))])

    def _repr_html_(self) -> str:
        from nicety._notebook import _table

        head, *body = self.rows()
        return _table(f"Where the time of {self.messages} messages went", [head, *body])

    def __rich__(self) -> Any:
        from rich.table import Table as RichTable

        head, *body = self.rows()
        table = RichTable(title=f"Where the time of {self.messages} messages went", title_justify="left")
        for index, name in enumerate(head):
            table.add_column(name, justify="left" if index == 0 else "right")
        for row in body:
            table.add_row(*row)
        return table


class Recorded:
    """What a run has recorded; every `Run` has this. Which of it there is says the cluster's `recording`."""

    _recording: _native.Recording

    @property
    def recording(self) -> Level:
        """How much was recorded."""
        return cast(Level, self._recording.level)

    @property
    def messages(self) -> Table:
        """A row for each message; from level `messages` on.

        Columns: `source` and `sequence` name the message, `target`, `kind`, `started_by`, `cause_source` and
        `cause_sequence` (the message whose handler sent it), `size_bytes`, `outcome`, `posted_ps`, `first_byte_ps`,
        `matched_ps`, `completed_ps`, `noticed_ps`, `latency_ps` (posted to completed), and the stages of that.
        Messages between a host and its own card's processes have the node as source and target.
        """
        return self._from("messages", "messages").messages()

    @property
    def packets(self) -> Table:
        """A row for each packet; from level `packets` on.

        Columns: `source` and `sequence` of its message, `offset_bytes`, `size_bytes`, `sent_ps`, `arrived_ps`,
        `matched_ps`, `settled_ps`.
        """
        return self._from("packets", "packets").packets()

    @property
    def handler_runs(self) -> Table:
        """A row for each run of a handler; from level `packets` on.

        Columns: `node`, `hpu`, `handler`, `source` and `sequence` of its message, `offset_bytes`, `ready_ps`,
        `start_ps`, `end_ps`, `cycles`, `instructions`, `outcome`.
        """
        return self._from("handler_runs", "packets").handler_runs()

    @property
    def resources(self) -> Table:
        """A row for each use of a resource; at level `everything`.

        Columns: `node`, `resource`, `unit`, `what`, `source` and `sequence` of the message or command it was for,
        `start_ps`, `end_ps`.
        """
        return self._from("resources", "everything").resources()

    @property
    def left_out(self) -> dict[str, int]:
        """How many rows each table left out because it was full; see `recorded_rows` of `Cluster`."""
        return self._recording.left_out()

    def breakdown(self) -> Breakdown:
        """Where the time of the messages went; from level `messages` on."""
        messages, stages = self._from("breakdown()", "messages").breakdown()
        return Breakdown(messages, [StageTime(name, passed, ps / 1000) for name, passed, ps in stages])

    def plot(
        self, path: str | PathLike[str] | None = None, *, kind: Literal["timeline", "breakdown"] | None = None
    ) -> Figure:
        """Draw the run with matplotlib, into a file (`.svg`, `.png`, `.pdf`) where one is named.

        Args:
            path: the file.
            kind: `timeline`, what each resource did when, which takes level `everything`; or `breakdown`, where the
                messages' time went. By default the timeline where it was recorded.
        """
        from nicety import plots

        if kind is None:
            kind = "timeline" if self.recording == "everything" else "breakdown"
        figure = (
            plots.breakdown_figure(self.breakdown()) if kind == "breakdown" else plots.timeline_figure(self.resources)
        )
        if path is not None:
            plots.save(figure, path)
        return figure

    def trace(self, path: str | PathLike[str], *, scale: Literal["ns", "ps"] = "ns") -> None:
        """Write a timeline for https://ui.perfetto.dev; takes level `everything`.

        Args:
            path: the file.
            scale: what a tick of the timeline is. With `ns`, times are cut to nanoseconds, and the exact picoseconds
                are arguments of the slices; with `ps` the viewer's nanosecond is a picosecond.
        """
        write_trace(self._from("trace()", "everything"), path, scale=scale)

    def _from(self, what: str, level: Level) -> _native.Recording:
        if LEVELS.index(self.recording) < LEVELS.index(level):
            raise InputError(
                f"run.{what}: this run recorded {self.recording} only; make the cluster with recording={level!r}"
            )
        return self._recording


def write_trace(recording: _native.Recording, path: str | PathLike[str], *, scale: str = "ns") -> None:
    """Write a recording's timeline to a file; warns where the recording is not whole."""
    left_out = recording.left_out()["resources"]
    if left_out:
        text = f"{fspath(path)}: {left_out} uses of resources did not fit the recording, so the timeline lacks its end"
        warnings.warn(text, RecordingWarning, stacklevel=3)
    write_whole(path, recording.timeline(scale))


def report_table(report: Mapping[str, Any]) -> Table:
    """A benchmark's rows as a table.

    The columns are the fields of the rows in JSON; what is inside a field has its path in its name, as in
    `stages_link_ns`, `host_memory_1_written_bytes`, `flows_0_1_latency_ns` and `handlers_payload_cycles_mean`. Where a
    row has no value it is null.
    """
    flat = [dict(_flatten(row)) for row in report["rows"]]
    names = list(dict.fromkeys(name for row in flat for name in row))
    return Table([(name, [row.get(name) for row in flat]) for name in names])


_COUNTED = {"refused_commands": ("commands_refused", "times"), "locks": ("lock_waits", "waits")}
"""Lists of which a table has a sum: the column, and what is added up."""


def _flatten(row: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, value in row.items():
        if name == "stages":
            for stage in value:
                yield f"stages_{stage['stage'].replace(',', '').replace(' ', '_')}_ns", stage["ns"]
        elif name in {"host_memory", "transport"}:
            yield from _listed(name, value, ("node",))
        elif name == "faults" and isinstance(value, list):
            yield from _listed(name, value, ("link",))
        elif name in _COUNTED:
            total, counts = _COUNTED[name]
            yield total, sum(item[counts] for item in value)
        elif name == "flows":
            yield from _listed(name, value, ("source", "target"))
        elif name == "handlers":
            yield from _listed(name, value, ("handler",))
        elif isinstance(value, Mapping):
            yield from ((f"{name}_{field}", inner) for field, inner in value.items())
        else:
            yield name, value


def _listed(name: str, items: Sequence[Mapping[str, Any]], keys: Sequence[str]) -> Iterator[tuple[str, Any]]:
    for item in items:
        prefix = "_".join([name, *(str(item[key]) for key in keys)])
        for field, value in item.items():
            if isinstance(value, Mapping):
                yield from ((f"{prefix}_{field}_{inner}", count) for inner, count in value.items())
            elif field not in keys:
                yield f"{prefix}_{field}", value


def write_arrow(table: Table, path: str | PathLike[str]) -> None:
    """Write a table as an Arrow file, which takes pyarrow.

    Raises:
        InputError: where the file cannot be written, or pyarrow is not installed.
    """
    check_arrow("write_arrow()")
    import pyarrow as pa

    rows, file = pa.table(table), pa.BufferOutputStream()
    with pa.ipc.new_file(file, rows.schema) as writer:
        writer.write_table(rows)
    write_whole(path, file.getvalue().to_pybytes())


def check_arrow(what: str) -> None:
    """Refuse what takes pyarrow where it is not installed."""
    if find_spec("pyarrow") is None:
        raise InputError(f"{what}: this takes pyarrow, which is not installed; pip install 'nicety[arrow]'")


def csv_text(table: Table) -> str:
    """A table as CSV with a line of names; what has no value is empty, and truth is `true` or `false`."""
    return _csv(table.columns, zip(*(table.column(name) for name in table.columns), strict=True))


def program_csv(report: ProgramReport) -> str:
    """What programs reported, as CSV: the fields of the rows in JSON, with memory as in `report_table`.

    Raises:
        InputError: where a program's own name is that of such a column.
    """
    rows = []
    for row in report["rows"]:
        fields = list(_flatten(row))
        rows.append(dict(fields))
        for name in row.keys() - {"host_memory"}:
            if [field for field, _ in fields].count(name) > 1:
                raise InputError(f"a program returned {name!r}, which is a column of its own; give it another name")
    # Every row of a report has the same nodes; only what programs returned differs.
    last = ["time_ns", *(name for name in rows[0] if name not in report["rows"][0])]
    names = [*dict.fromkeys(name for row in rows for name in row if name not in last), *last]
    return _csv(names, ([row.get(name) for name in names] for row in rows))


def _csv(names: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(names)
    for row in rows:
        writer.writerow(["" if cell is None else str(cell).lower() if isinstance(cell, bool) else cell for cell in row])
    return text.getvalue()
