"""The effect of a microengine's contexts on a program: the benchmark `nicety bench pcsa`."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Unpack, cast

from nicety import _native
from nicety._generated.types import ContextOptions, ContextReport, ContextRow
from nicety.bench.measured import Progress, measured
from nicety.build.compiler import compiled
from nicety.shared.options import request_text
from nicety.shared.typed import checked
from nicety.show.circumstances import circumstances
from nicety.show.columns import align, distinct, fixed
from nicety.show.html import table_html

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@checked
def bench_pcsa(
    *, cc: str | None = None, progress: Progress | None = None, **given: Unpack[ContextOptions]
) -> ContextReport:
    """Measure how the number of contexts affects the speed of the cardinality estimate.

    The figures are the cycles that a microengine needs for all updates, and updates per second of the whole card.

    Args:
        cc: a compiler to use instead of the one in the `ziglang` package.
        progress: called with the number of rows done, and the total.
        given: the arguments of `ContextOptions`.

    Raises:
        InputError: a card without microengines, more contexts than a microengine has, or an invalid override.
    """
    shown = measured(
        request_text(ContextOptions, given),
        _native.pcsa_plan,
        lambda request, elfs, progress, _: (_native.pcsa_bench(request, elfs, progress), None),
        lambda item: compiled("nfp/pcsa.c", item["isa"], cc),
        context_html,
        context_figure,
        progress=progress,
    )
    return cast(ContextReport, shown)


_COLUMNS = ("Contexts", "Cycles", "Computing", "Asleep", "Switching", "M updates/s", "Gb/s of 64 B", "Settled")


def context_text(report: ContextReport) -> str:
    """Return a report as text: a table per card."""
    rows = report["rows"]
    lines = [
        f"# nicety PCSA Test v{report['version']}",
        f"# {rows[0]['updates']} updates in all on one microengine, in cycles;",
        "# and updates a second of the whole card, with the Ethernet rate of 64 B packets that they sustain",
    ]
    lines += [f"# {note}" for note in circumstances(report["manifest"])]
    for title, (head, *body) in context_tables(report):
        lines += ["", f"# {title}", *align([[f"# {head[0]}", *head[1:]], *body], range(1, len(head)))]
    return "\n".join(lines) + "\n"


def context_tables(report: ContextReport) -> list[tuple[str, list[list[str]]]]:
    """Return a title and a table per card. Row 0 of a table names the columns."""
    return [
        (nic, [list(_COLUMNS), *(_cells(row) for row in report["rows"] if row["nic"] == nic)])
        for nic in distinct(row["nic"] for row in report["rows"])
    ]


def _cells(row: ContextRow) -> list[str]:
    return [
        *(str(row["contexts"]), str(row["cycles_total"]), str(row["cycles_computing"])),
        *(str(row["cycles_asleep"]), str(row["cycles_switching"])),
        fixed(row["updates_per_s"] / 1e6, 1),
        fixed(row["line_rate_bits_per_s"] / 1e9, 1),
        fixed(row["updates_per_s_bits_set"] / 1e6, 1),
    ]


def context_html(report: ContextReport) -> str:
    """A report for a notebook: a table per card."""
    about = f"pcsa, nicety {report['version']}, {report['rows'][0]['updates']} updates"
    return f"<p>{escape(about)}</p>" + "".join(table_html(title, rows) for title, rows in context_tables(report))


def context_figure(report: ContextReport) -> Figure:
    """Draw a report: the cycles that a microengine needs for all updates, and the busy cycles among them."""
    from nicety.show.curves import figure_of
    from nicety.show.lines import Curve

    by_nic: dict[str, list[ContextRow]] = {}
    for row in report["rows"]:
        by_nic.setdefault(row["nic"], []).append(row)
    curves = []
    for number, (nic, rows) in enumerate(by_nic.items()):
        totals = {row["contexts"]: float(row["cycles_total"]) for row in rows}
        computing = {row["contexts"]: float(row["cycles_computing"]) for row in rows}
        curves.append(Curve(f"{nic}: all cycles", totals, colour=number))
        curves.append(Curve(f"{nic}: computing", computing, colour=number, style=1))
    title = f"{report['rows'][0]['updates']} updates in all on one microengine"
    return figure_of(curves, title=title, notes=circumstances(report["manifest"]), x="Contexts", y="Cycles")
