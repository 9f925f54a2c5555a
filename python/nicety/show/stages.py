"""The time of messages by stage."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from nicety.show.columns import align, fixed
from nicety.show.html import table_html


@dataclass(frozen=True)
class StageTime:
    """A stage of messages: the number of messages that passed it, and the sum of their times in it in nanoseconds."""

    stage: str
    messages: int
    total_ns: float


@dataclass(frozen=True)
class Breakdown:
    """The time of messages by stage, from the post until the receiving host can see the completion.

    Attributes:
        messages: number of messages.
        stages: the stages with a time above 0, in the order of a message's path. Their sum is the sum of latencies.
    """

    messages: int
    stages: list[StageTime]

    @property
    def total_ns(self) -> float:
        """The sum of the latencies of all messages, in nanoseconds."""
        return sum(round(stage.total_ns * 1000) for stage in self.stages) / 1000

    def rows(self) -> list[list[str]]:
        """Return the table as texts: stage, mean over all messages, share, and number of messages that passed it."""
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

        head, *body = self.rows()
        return table_html(f"Where the time of {self.messages} messages went", [head, *body])

    def __rich__(self) -> Any:
        from rich.table import Table as RichTable

        head, *body = self.rows()
        table = RichTable(title=f"Where the time of {self.messages} messages went", title_justify="left")
        for index, name in enumerate(head):
            table.add_column(name, justify="left" if index == 0 else "right")
        for row in body:
            table.add_row(*row)
        return table
