"""Frames that were lost in a check of the line rate."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from nicety._generated.types import LineRateReport
from nicety.errors import RunError
from nicety.show.columns import fixed


def lossless(check: Callable[..., LineRateReport], lossy: bool, **options: Any) -> LineRateReport:
    """Run a check, and raise an error if frames were lost that `lossy` does not allow.

    Args:
        check: the check, with the arguments of `check_line_rate`.
        lossy: whether the check allows losses. Equal packets at the rate of the wire are no traffic that can be lost.
        options: further arguments of `check`.

    Raises:
        RunError: a host, a driver or a core without credits lost frames at the offered rate; with the `report`.
    """
    report = check(**options)
    if not lossy:
        require_no_losses([*_losses(report)], report)
    return report


def require_no_losses(losses: list[str], report: Mapping[str, Any]) -> None:
    """Raise an error with the report and a line for each loss, if there is one.

    Raises:
        RunError: there are losses.
    """
    if losses:
        error = RunError("\n".join(losses))
        vars(error)["report"] = report
        raise error


def loss_text(at: str, lost: int, offered: int, pps: float) -> str:
    """The text on `lost` of `offered` frames at a rate in frames a second."""
    return (
        f"{at}: {lost} of {offered} frames were lost at {fixed(pps / 1e6, 3)} Mpps; write a lower rate in --traffic, "
        "or --lossy"
    )


def _losses(report: LineRateReport) -> Iterator[str]:
    for row in report["rows"]:
        figures = row.get("traffic")
        if figures is not None and (lost := figures["dropped_at_host"] + figures["dropped_at_link"]):
            pps = figures["offered"] / (figures["offered_ns"] or 1) * 1e9
            yield loss_text(row["nic"], lost, figures["offered"], pps)
    for place in (*report.get("drivers", ()), *report.get("ebpf_cores", ()), *report.get("flow_processors", ())):
        if place["lost"]:
            yield loss_text(place["nic"], place["lost"], place["offered"], place["offered_pps"])
