"""XDP programs in the driver of a host: the highest rate without loss, and the cost of a frame."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack, cast

from nicety import _native
from nicety._generated.types import XdpBenchReport, XdpOptions, XdpRow
from nicety.bench.measured import Progress, reported
from nicety.bench.places.losses import loss_text, require_no_losses
from nicety.bench.places.xdp_cards import places_of, write_dumps
from nicety.build.card import XdpProgram
from nicety.errors import InputError
from nicety.shared.options import request_text
from nicety.shared.typed import checked
from nicety.show.circumstances import circumstances
from nicety.show.columns import align, fixed
from nicety.show.html import table_html

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@checked
def bench_xdp(
    file: Path | str,
    *,
    maps: Mapping[str, str] | None = None,
    dumps: Mapping[str, Path] | None = None,
    progress: Progress | None = None,
    **given: Unpack[XdpOptions],
) -> XdpBenchReport:
    """Run an XDP program in a host's driver: the highest rate without loss, CPU time and latency of a frame, verdicts.

    Args:
        file: an eBPF object, as Linux loads it.
        maps: entries of maps before each run as JSON, by the maps' names.
        dumps: files for entries of maps after the run at the traffic's rate, by the maps' names.
        progress: called with the number of rows done, and the total.
        given: the arguments of `XdpOptions`.

    Raises:
        InputError: an object, a program or entries that cannot be used, or a card without XDP.
        RunError: the program trapped, or frames of the traffic were lost without `lossy`; the latter has a `report`.
    """
    program = XdpProgram(file, program=given.get("program"), maps=maps or {})
    content = program.chosen()
    entries = [{"map": name, "json": text} for name, text in program.entries()]
    files = dumps or {}
    _check_dumps(files, given)
    request = request_text(XdpOptions, given, maps=entries, dumps=list(files))
    report = json.loads(_native.xdp_bench(content, request, progress))
    for row in report["rows"]:
        write_dumps(row.pop("maps", {}), files)
    report["manifest"]["program"] = Path(file).name
    report["manifest"]["traffic"] = given.get("traffic") or "udp size=64 src=10.0.0.0/8 flows=1Ki"
    shown = cast(XdpBenchReport, reported(report, xdp_html, xdp_figure))
    if not given.get("lossy"):
        _require_frames(shown)
    return shown


def _check_dumps(files: Mapping[str, Path], given: Mapping[str, Any]) -> None:
    """Refuse dumps of several runs.

    Raises:
        InputError: there is more than one card, or more than one number of CPUs.
    """
    if files and (len(given.get("nics", ())) > 1 or len(given.get("cpus") or [0]) > 1):
        raise InputError("--dump: the entries after one run; name one card, and one number of CPUs")


def _require_frames(report: XdpBenchReport) -> None:
    """Raise an error with the report, if frames of the traffic were lost."""
    losses = [
        loss_text(f"{row['nic']}, {_cpus(row)}", row["lost"], row["offered"], row["offered_pps"])
        for row in report["rows"]
        if row["lost"]
    ]
    require_no_losses(losses, report)


def _mega(pps: float) -> str:
    return fixed(pps / 1e6, 3)


def _cpus(row: XdpRow) -> str:
    return f"{row['cpus']} CPU" + ("s" if row["cpus"] > 1 else "")


_HEAD = ["CPUs", "Offered", "Lost", "Taken", "Lossless", "ns/frame", "Instr.", "p50", "p99", "max"]


def xdp_tables(report: XdpBenchReport) -> list[tuple[str, list[list[str]]]]:
    """Tables with titles: rates and costs by card, and verdicts of all cards."""
    tables = []
    for nic in dict.fromkeys(row["nic"] for row in report["rows"]):
        rows = [row for row in report["rows"] if row["nic"] == nic]
        title = f"{nic}: rates (Mpps), a frame's CPU time (ns) and latency (us)"
        tables.append((title, [_HEAD, *(_cells(row) for row in rows)]))
    names = [name for name in _VERDICTS if any(row["verdicts"].get(name) for row in report["rows"])]
    counts: list[Mapping[str, Any]] = [cast("Mapping[str, Any]", row["verdicts"]) for row in report["rows"]]
    verdicts = [
        [row["nic"], str(row["cpus"]), *(str(count[name]) for name in names)]
        for row, count in zip(report["rows"], counts, strict=True)
    ]
    tables.append(("Frames by verdict", [["Card", "CPUs", *(_VERDICTS[name] for name in names)], *verdicts]))
    loads = [
        [row["nic"], str(row["cpus"]), row["bottleneck"]["part"], fixed(100 * row["bottleneck"]["load"], 1)]
        for row in report["rows"]
    ]
    tables.append(("Busiest part at the rate without loss", [["Card", "CPUs", "Part", "Load (%)"], *loads]))
    return tables


_VERDICTS = {
    "passed": "PASS",
    "dropped": "DROP",
    "transmitted": "TX",
    "redirected": "REDIRECT",
    "aborted": "ABORTED",
    "transmit_full": "No descriptor",
    "unreachable": "No target",
    "queue_full": "Queue full",
}


def _cells(row: XdpRow) -> list[str]:
    latency = row["latency"]
    return [
        str(row["cpus"]),
        _mega(row["offered_pps"]),
        str(row["lost"]),
        _mega(row["taken_pps"]),
        _mega(row["lossless_pps"]) if row["lossless_pps"] is not None else "-",
        fixed(row["cpu_ns_per_frame"], 1),
        fixed(row["instructions_per_frame"], 1),
        *(fixed(latency[name] / 1e3, 2) for name in ("p50_ns", "p99_ns", "max_ns")),
    ]


def _about(report: XdpBenchReport) -> list[str]:
    manifest = cast(Mapping[str, str], report["manifest"])
    modes = ", ".join(dict.fromkeys(row["mode"] for row in report["rows"]))
    lines = [f"{manifest['program']}, {modes} mode; traffic {manifest['traffic']}", f"seed {report['seed']}"]
    return [*lines, *circumstances(report["manifest"])]


def _aborted(report: XdpBenchReport) -> Iterator[str]:
    """The lines at which programs ended with XDP_ABORTED."""
    for row in report["rows"]:
        if found := row["verdicts"]["aborted_at"]:
            yield f"# {row['nic']}, {_cpus(row)}: XDP_ABORTED{places_of(found)}"


def xdp_text(report: XdpBenchReport) -> str:
    """A report as text: tables of rates and costs, of verdicts, and of the busiest parts."""
    lines = [f"# nicety XDP Test v{report['version']}", *(f"# {line}" for line in _about(report))]
    for title, (head, *body) in xdp_tables(report):
        right = range(1, len(head))
        lines += ["", f"# {title}", *align([[f"# {head[0]}", *head[1:]], *body], right)]
    lines += ["", *aborted] if (aborted := [*_aborted(report)]) else []
    return "\n".join(lines) + "\n"


def xdp_html(report: XdpBenchReport) -> str:
    """A report as HTML: its tables."""
    about = f"{report['benchmark']}, nicety {report['version']}, {'; '.join(_about(report))}"
    return f"<p>{escape(about)}</p>" + "".join(table_html(title, rows) for title, rows in xdp_tables(report))


def xdp_figure(report: XdpBenchReport) -> Figure:
    """A report as a picture: the rate without loss, and the CPU time of a frame, over the number of CPUs."""
    from nicety.show.axes import house_style, new_figure, set_figure_titles, size_axis, value_axis
    from nicety.show.lines import Curve, draw

    nics = dict.fromkeys(row["nic"] for row in report["rows"])
    own = {nic: [row for row in report["rows"] if row["nic"] == nic] for nic in nics}
    rates = {nic: {row["cpus"]: (row["lossless_pps"] or 0) / 1e6 for row in rows} for nic, rows in own.items()}
    times = {nic: {row["cpus"]: row["cpu_ns_per_frame"] for row in rows} for nic, rows in own.items()}
    with house_style():
        figure = new_figure(9.6, 3.8)
        handles = []
        for place, (label, curves) in zip(
            figure.subplots(1, 2), [("Mpps without loss", rates), ("CPU ns a frame", times)], strict=True
        ):
            lines = [Curve(nic, points, colour=at, marker=at) for at, (nic, points) in enumerate(curves.items())]
            value_axis(place, [value for points in curves.values() for value in points.values()], label)
            handles = draw(place, lines)
            size_axis(place, sorted({cpus for points in curves.values() for cpus in points}))
            place.set_xlabel("CPUs")
        what, *notes = _about(report)
        set_figure_titles(figure, f"XDP: {what}", notes)
        figure.legend(handles=handles, frameon=False, fontsize=8, loc="outside lower left", ncols=2)
    return figure
