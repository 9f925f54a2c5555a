"""The recording of a run: tables, a timeline, pictures, and the time of its messages by stage.

    run = nicety.Cluster(2, "spin-discrete", recording="everything").run(programs)
    print(run.breakdown())
    polars.DataFrame(run.messages)  # or pyarrow.table(run.messages)
    run.trace("run.pftrace")  # for https://ui.perfetto.dev
    run.plot("run.svg")

Column names end with the unit; times are picoseconds of virtual time.
"""

from __future__ import annotations

from os import PathLike
from typing import TYPE_CHECKING, Literal, cast

from nicety import _native
from nicety.errors import InputError
from nicety.show.stages import Breakdown, StageTime
from nicety.show.tables import Table
from nicety.show.traces import write_trace

if TYPE_CHECKING:
    from matplotlib.figure import Figure


Level = Literal["summary", "messages", "packets", "everything"]
"""The extent of a recording. Each level includes the levels before it."""

LEVELS: tuple[Level, ...] = ("summary", "messages", "packets", "everything")


class Recorded:
    """The recording of a run, which every `Run` has. Its extent depends on the cluster's `recording`."""

    _recording: _native.Recording

    @property
    def recording(self) -> Level:
        """The extent of the recording."""
        return cast(Level, self._recording.level)

    @property
    def messages(self) -> Table:
        """A table with a row per message. Requires level `messages` or higher.

        Columns: `source` and `sequence` identify the message, `target`, `kind`, `started_by`, `cause_source` and
        `cause_sequence` (the message whose handler sent this one), `size_bytes`, `outcome`, `posted_ps`,
        `first_byte_ps`, `matched_ps`, `completed_ps`, `noticed_ps`, `latency_ps` (posted to completed), and a column
        per stage. For a message between a host and its own card's processes, source and target are the same node.
        """
        return self._from("messages", "messages").messages()

    @property
    def packets(self) -> Table:
        """A table with a row per packet. Requires level `packets` or higher.

        Columns: `source` and `sequence` of its message, `offset_bytes`, `size_bytes`, `sent_ps`, `arrived_ps`,
        `matched_ps`, `settled_ps`.
        """
        return self._from("packets", "packets").packets()

    @property
    def handler_runs(self) -> Table:
        """A table with a row per run of a handler. Requires level `packets` or higher.

        Columns: `node`, `hpu`, `handler`, `source` and `sequence` of its message, `offset_bytes`, `ready_ps`,
        `start_ps`, `end_ps`, `cycles`, `instructions`, `outcome`.
        """
        return self._from("handler_runs", "packets").handler_runs()

    @property
    def resources(self) -> Table:
        """A table with a row per use of a resource. Requires level `everything`.

        Columns: `node`, `resource`, `unit`, `what`, `source` and `sequence` of its message or command, `start_ps`,
        `end_ps`.
        """
        return self._from("resources", "everything").resources()

    @property
    def left_out(self) -> dict[str, int]:
        """Maps a full table to the number of rows that it left out; see `recorded_rows` of `Cluster`."""
        return self._recording.left_out()

    def breakdown(self) -> Breakdown:
        """Return the messages' time by stage. Requires level `messages` or higher."""
        messages, stages = self._from("breakdown()", "messages").breakdown()
        return Breakdown(messages, [StageTime(name, passed, ps / 1000) for name, passed, ps in stages])

    def plot(
        self, path: str | PathLike[str] | None = None, *, kind: Literal["timeline", "breakdown"] | None = None
    ) -> Figure:
        """Draw the run with matplotlib. If `path` is given, also write the picture (`.svg`, `.png`, `.pdf`).

        Args:
            path: the file.
            kind: `timeline`, the uses of each resource over time, which requires level `everything`; or `breakdown`,
                the messages' time by stage. The default is `timeline` at level `everything`, otherwise `breakdown`.
        """
        if kind is None:
            kind = "timeline" if self.recording == "everything" else "breakdown"
        if kind == "breakdown":
            from nicety.show.bars import breakdown_figure

            figure = breakdown_figure(self.breakdown())
        else:
            from nicety.show.timelines import timeline_figure

            figure = timeline_figure(self.resources)
        if path is not None:
            from nicety.show.axes import save

            save(figure, path)
        return figure

    def trace(self, path: str | PathLike[str], *, scale: Literal["ns", "ps"] = "ns") -> None:
        """Write a timeline for https://ui.perfetto.dev. Requires level `everything`.

        Args:
            path: the file.
            scale: the tick of the timeline. With `ns`, times are truncated to nanoseconds, and each slice has the exact
                picoseconds as arguments. With `ps` a nanosecond in the viewer is a picosecond.
        """
        write_trace(self._from("trace()", "everything"), path, scale=scale)

    def _from(self, what: str, level: Level) -> _native.Recording:
        if LEVELS.index(self.recording) < LEVELS.index(level):
            raise InputError(
                f"run.{what}: this run recorded {self.recording} only; make the cluster with recording={level!r}"
            )
        return self._recording
