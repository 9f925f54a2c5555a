"""`nicety bench handlers`: whether handlers keep up with the wire."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from nicety.cli.measure import Output, add
from nicety.cli.options import AllowFailures, Compiler, Defines, IncludeDirs, Nics, Overrides, Seed
from nicety.shared.checks import U64


def _handlers(
    file: Annotated[Path, typer.Argument(metavar="FILE.c", help="The handlers, in C.")],
    nic: Nics,
    packet_sizes: Annotated[
        str | None,
        typer.Option(
            "--packet-sizes",
            metavar="RANGE",
            help="Payload bytes of a packet: 64:4Ki doubles. Default: that, as far as the packets of all cards carry.",
        ),
    ] = None,
    message_packets: Annotated[
        int | None, typer.Option(min=1, max=U64, metavar="N", help="Packets of a message. Default 64.")
    ] = None,
    messages: Annotated[
        int | None,
        typer.Option(min=1, max=U64, metavar="N", help="Messages measured. Default: as many as have 2048 packets."),
    ] = None,
    state: Annotated[
        str | None,
        typer.Option(metavar="HEX", help="What the handlers' state begins with, as in 0100ff."),
    ] = None,
    state_bytes: Annotated[
        str | None, typer.Option(metavar="SIZE", help="Bytes of the handlers' state. Default 1Ki.")
    ] = None,
    user_header: Annotated[
        str | None, typer.Option(metavar="HEX", help="What every message begins with; the rest is random.")
    ] = None,
    handler_memory: Annotated[
        str, typer.Option(metavar="SIZE", help="Bytes of host memory that only handlers use.")
    ] = "64Ki",
    header: Annotated[
        str | None, typer.Option(metavar="NAME", help="The header handler, if not header_handler.")
    ] = None,
    payload: Annotated[
        str | None, typer.Option(metavar="NAME", help="The payload handler, if not payload_handler.")
    ] = None,
    completion: Annotated[
        str | None, typer.Option(metavar="NAME", help="The completion handler, if not completion_handler.")
    ] = None,
    include_dirs: IncludeDirs = None,
    defines: Defines = None,
    cc: Compiler = None,
    overrides: Overrides = None,
    allow_failures: AllowFailures = None,
    seed: Seed = 1,
    *,
    output: Output,
) -> None:
    """Send packets to handlers at the rate of the wire: what each takes, and whether the card keeps up.

    The rate of the wire is a packet every max(g, bytes x G): the card's gap between messages, or the link's time for
    the bytes.
    """
    from nicety.bench.line_rate import check_line_rate, line_rate_figure, line_rate_text
    from nicety.build.sources import Handlers
    from nicety.cli.output import parse_names, parse_one
    from nicety.shared.ranges import parse_ranges

    handlers = Handlers(
        file,
        header=header,
        payload=payload,
        completion=completion,
        include_dirs=include_dirs or [],
        defines=defines or [],
        cc=cc,
    )
    output.of(
        lambda progress: check_line_rate(
            handlers,
            nics=parse_names(nic, "--nic"),
            packet_sizes=None if packet_sizes is None else parse_ranges(packet_sizes, "--packet-sizes"),
            message_packets=message_packets,
            messages=messages,
            overrides=overrides or [],
            state=_hex(state, "--state"),
            state_bytes=None
            if state_bytes is None
            else parse_one(state_bytes, "--state-bytes", "one size, as in 64Ki"),
            user_header=_hex(user_header, "--user-header"),
            handler_memory=parse_one(handler_memory, "--handler-memory", "one size, as in 64Ki"),
            seed=seed,
            allow_failures=allow_failures or "",
            trace=output.trace,
            trace_scale=output.scale,
            progress=progress,
        ),
        line_rate_text,
        line_rate_figure,
    )


def _hex(text: str | None, option: str) -> bytes:
    from nicety.errors import InputError

    if text is None:
        return b""
    try:
        return bytes.fromhex(text.removeprefix("0x"))
    except ValueError as error:
        raise InputError(f"{option} {text}: bytes are written as two hexadecimal digits each, as in 0100ff") from error


def register(bench: typer.Typer) -> None:
    """Add the command."""
    add(bench, "handlers", _handlers)
