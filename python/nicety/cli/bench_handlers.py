"""`nicety bench handlers`."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from dataclasses import dataclass

from nicety.bench.line_rate import LineRateReport, check_line_rate, line_rate_text
from nicety.build.sources import Handlers
from nicety.cli.files import Files
from nicety.cli.output import note, parse_names, print_json, with_report
from nicety.cli.progress import progress
from nicety.errors import InputError
from nicety.shared.ranges import parse_ranges
from nicety.show.traces import RecordingWarning


@dataclass(frozen=True)
class Request:
    """What the user asked for, as it was written."""

    handlers: Handlers
    nics: Sequence[str]
    packet_sizes: str | None
    message_packets: int | None
    messages: int | None
    overrides: Sequence[str]
    state: str | None
    state_bytes: str | None
    user_header: str | None
    handler_memory: str
    seed: int
    allow_failures: str


def bench_handlers(request: Request, files: Files, *, as_json: bool) -> None:
    """Check handlers, print the table or the report as JSON, and write the files."""
    files.check()
    sizes = request.packet_sizes
    with warnings.catch_warnings(record=True) as warned, progress("preparing") as bar:
        warnings.simplefilter("always", RecordingWarning)
        report, failed = with_report(
            LineRateReport,
            check_line_rate,
            request.handlers,
            nics=parse_names(request.nics, "--nic"),
            packet_sizes=None if sizes is None else parse_ranges(sizes, "--packet-sizes"),
            message_packets=request.message_packets,
            messages=request.messages,
            overrides=request.overrides,
            state=_hex(request.state, "--state"),
            state_bytes=None if request.state_bytes is None else _size(request.state_bytes, "--state-bytes"),
            user_header=_hex(request.user_header, "--user-header"),
            handler_memory=_size(request.handler_memory, "--handler-memory"),
            seed=request.seed,
            allow_failures=request.allow_failures,
            trace=files.trace,
            trace_scale=files.scale,
            progress=lambda done, total: bar.advance(done, total, "measuring"),
        )
    for warning in warned:
        note(str(warning.message))
    files.write(report)
    if as_json:
        print_json(report)
    else:
        sys.stdout.write(line_rate_text(report))
    if failed is not None:
        raise failed


def _hex(text: str | None, option: str) -> bytes:
    if text is None:
        return b""
    try:
        return bytes.fromhex(text.removeprefix("0x"))
    except ValueError as error:
        raise InputError(f"{option} {text}: bytes are written as two hexadecimal digits each, as in 0100ff") from error


def _size(text: str, option: str) -> int:
    sizes = parse_ranges(text, option)
    if len(sizes) != 1:
        raise InputError(f"{option} {text}: one size, as in 64Ki")
    return sizes[0]
