"""`nicety xdp`: XDP programs, as Linux loads them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from nicety.cli.options import GROUPS, Json, Unverified, count, group

xdp = group(GROUPS["xdp"])

_LINES = 20
"""Maximum number of a map's entries that the text has; --dump writes all."""
_Object = Annotated[
    Path, typer.Argument(metavar="FILE.o", help="An eBPF object, of nicety cc --xdp or clang -target bpf.")
]


@xdp.command("show")
def _show(file: _Object, as_json: Json = False) -> None:
    """Print the programs, maps and helpers of an object, and the reason for each part that nicety cannot run.

    The status is 2 if no program of the object can run.
    """
    from nicety import _native
    from nicety.cli.files import read_bytes
    from nicety.cli.output import print_json, say
    from nicety.errors import InputError

    content = read_bytes(file)
    try:
        report = json.loads(_native.xdp_show(content))
    except InputError as error:
        raise InputError(f"{file}: {error}") from error
    if as_json:
        print_json(report)
    else:
        say(_shown(report))
    programs, refused = report["programs"], [map_ for map_ in report["maps"] if map_["refused"]]
    if refused or all(program["refused"] for program in programs):
        first = [*refused, *programs][0]
        raise InputError(f"{file}: {first['refused']}")


def _shown(report: dict[str, Any]) -> str:
    from nicety.show.columns import align

    parts = []
    programs = [["program", "section", "for", "instructions", "functions", "groups"]]
    for program in report["programs"]:
        numbers = ["-", "-"] if program["refused"] else [str(program[name]) for name in ("instructions", "functions")]
        row = [program["name"], program["section"], program["attach"], *numbers, " ".join(program["groups"]) or "-"]
        programs.append(row)
    parts.append(align(programs))
    if report["maps"]:
        maps = [["map", "type", "key", "value", "entries", "flags"]]
        for each in report["maps"]:
            sizes = [f"{each['key_size']} B", f"{each['value_size']} B", str(each["max_entries"])]
            flags = f"{each['flags']:#x}" + (", pinned by name" if each["pinned"] else "")
            maps.append([each["name"], each["kind"], *sizes, flags])
        parts.append(align(maps))
    for program in report["programs"]:
        if program["refused"]:
            parts.append([f"cannot run: {program['refused']}"])
            continue
        data, calls, types = program["relocations"]
        rows = [
            [program["name"], "helpers", ", ".join(program["helpers"]) or "-"],
            ["", "maps", ", ".join(program["maps"]) or "-"],
            ["", "relocations", f"{data} of maps and data, {calls} of calls, {types} of types"],
        ]
        parts.append(align(rows))
    parts += [[f"cannot be made: {each['refused']}"] for each in report["maps"] if each["refused"]]
    parts += [[_unset(each)] for each in report["maps"] if each["pointers"]]
    if report["others"]:
        parts.append([f"other programs, which nicety does not run: {', '.join(report['others'])}"])
    parts.append([f"license: {report['license'] or '-'}"])
    return "\n\n".join("\n".join(part) for part in parts) + "\n"


def _unset(data: dict[str, Any]) -> str:
    return (
        f"pointers in {data['name']} that no loader sets: {', '.join(data['pointers'])}; write arrays in their place,"
        " as in char NAME[COUNT][SIZE]"
    )


@xdp.command("run")
def _run(
    file: _Object,
    packet: Annotated[
        str,
        typer.Option(
            "--packet", metavar="FILE|HEX", help="A capture, a file with the bytes of one packet, or its bytes as hex."
        ),
    ],
    program: Annotated[
        str | None, typer.Option(metavar="NAME", help="The program, where the object has several.")
    ] = None,
    maps: Annotated[
        list[str] | None,
        typer.Option("--map", metavar="NAME=FILE", help="Entries of a map before the run, as bpftool -j prints them."),
    ] = None,
    dumps: Annotated[
        list[str] | None,
        typer.Option("--dump", metavar="NAME=FILE", help="Write the entries of a map after the run as JSON."),
    ] = None,
    repeat: Annotated[
        int, typer.Option(parser=count(1, 1_000_000_000), metavar="N", help="Number of runs of each packet.")
    ] = 1,
    cpus: Annotated[
        int, typer.Option(parser=count(1, 1024), metavar="N", help="CPUs with values of per-CPU maps.")
    ] = 1,
    gap: Annotated[
        str, typer.Option(metavar="TIME", help="The time between two packets; those of a capture have their own.")
    ] = "1us",
    interface: Annotated[
        int, typer.Option(parser=count(1, 2**32 - 1), metavar="N", help="The interface that packets come from.")
    ] = 1,
    queue: Annotated[
        int, typer.Option(parser=count(0, 2**32 - 1), metavar="N", help="The receive queue that packets come from.")
    ] = 0,
    max_instructions: Annotated[
        int | None,
        typer.Option(parser=count(1), metavar="N", help="Trap after N instructions of a packet. Default 100M."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Run a program on packets, without a card, and print verdicts, packets and maps.

    Each run gets the packet as it was given; maps keep their contents. The status is 1 if a packet trapped.
    """
    from nicety import _native
    from nicety.cli.files import dump_files, fills, read_bytes
    from nicety.cli.output import note, print_json, say
    from nicety.cli.progress import progress
    from nicety.errors import InputError
    from nicety.show.columns import counted

    targets = dump_files(file, dumps)
    request = {
        "program": program,
        "repeat": repeat,
        "instructions": max_instructions,
        "cpus": cpus,
        "gap_ns": _nanoseconds(gap),
        "interface": interface,
        "queue": queue,
        "maps": list(fills(maps).items()),
    }
    packets, place = _packets(packet)
    content = read_bytes(file)
    try:
        with progress(f"running {file.name}"):
            report = json.loads(_native.xdp_run(content, json.dumps(request), packets))
    except InputError as error:
        of_packets = str(error).startswith(("packet ", "a capture ", "at packet ", "there is no packet "))
        raise InputError(f"{place if of_packets else file}: {error}") from error
    for name, path in targets:
        _dump(report, name, path)
    if as_json:
        print_json(report)
    else:
        say(_told(report))
    if report["traps"]:
        packets_run = counted(report["packets"], "packet")
        note(f"{file}: {report['traps']} of {packets_run} trapped; first: {report['trap_texts'][0]}")
        raise typer.Exit(1)


@xdp.command("translate")
def _translate(
    file: _Object,
    program: Annotated[
        str | None, typer.Option(metavar="NAME", help="The program, where the object has several.")
    ] = None,
    nic: Annotated[
        str, typer.Option(metavar="NIC", help="The card: a name of a spec, or the path of a spec file.")
    ] = "spin-100g",
    isa: Annotated[
        str | None, typer.Option(metavar="ISA", help="The instruction set, if it is not that of the card's cores.")
    ] = None,
    maps: Annotated[
        bool, typer.Option("--maps", help="Print the descriptors of maps and the data sections, too.")
    ] = False,
    unverified: Unverified = False,
) -> None:
    """Print the assembly of a program for the cores of a card, or its rows for a core that executes eBPF itself."""
    from nicety.build.card import XdpProgram, card_values
    from nicety.cli.output import say

    if (rows := _rows(file, nic, program)) is not None:
        say(_listed(rows))
        return
    card = card_values(nic)
    found = XdpProgram(file, program=program, unverified=unverified).translate(isa or card["isa"], card["xdp"])
    say(found["assembly"] if maps else found["code"])


def _rows(file: Path, nic: str, program: str | None) -> dict[str, Any] | None:
    """Return the rows of a program for a card with an eBPF core, or None for other cards."""
    from nicety import _native
    from nicety.cli.files import read_bytes
    from nicety.errors import InputError

    content = read_bytes(file)
    try:
        text = _native.xdp_rows(content, nic, program)
    except InputError as error:
        raise InputError(f"{file}: {error}") from error
    return None if text is None else json.loads(text)


def _listed(report: dict[str, Any]) -> str:
    from nicety.show.columns import align

    rows, lanes = report["rows"], len(report["rows"][0]["lanes"])
    checks = any(row["checks"] for row in rows)
    lines = [["row", *(["check"] if checks else []), *(f"lane {lane}" for lane in range(lanes))]]
    for number, row in enumerate(rows):
        cells = [", ".join(row["checks"])] if checks else []
        lines.append([str(number), *cells, *(operation or "-" for operation in row["lanes"])])
    count, operations = len(rows), report["operations"]
    words = [
        f"{report['program']}: {report['slots']} instructions in {count} rows: {report['slots_per_row']:.2f} a row.",
        f"{operations} operations: {operations / count:.2f} a row.",
        (
            f"Checks {report['checks']}, zeroing {report['zeroing']}, moves {report['three_operands']}, copies of 6 B"
            f" {report['six_bytes']}, exits {report['exit_values']}, moved up {report['moved']}."
        ),
    ]
    return "\n".join([*align(lines), "", *words]) + "\n"


def _nanoseconds(text: str) -> int:
    from nicety import _native

    try:
        return _native.parse_quantity("time", text) // 1000
    except ValueError as error:
        raise typer.BadParameter(f"--gap: {error}") from None


def _packets(text: str) -> tuple[bytes, str]:
    """Return the bytes of a file (a packet or a capture) or of hexadecimal digits, and a name for messages."""
    from nicety.cli.files import read_bytes
    from nicety.errors import InputError

    path = Path(text)
    try:
        if path.is_file():
            return read_bytes(path), text
    except OSError:
        # The text is a packet in hex that is longer than a file name may be.
        pass
    try:
        return bytes.fromhex(text), "--packet"
    except ValueError:
        raise InputError(
            f"--packet {text[:64]}: neither a file nor hexadecimal; write two digits for each byte"
        ) from None


def _dump(report: dict[str, Any], name: str, path: Path) -> None:
    from nicety.shared.files import write_whole

    # Each entry is on its own line.
    lines = ",\n".join(json.dumps(entry) for entry in report["maps"][name])
    write_whole(path, f"[{lines}]\n".encode())


def _told(report: dict[str, Any]) -> str:
    from nicety.show.columns import align, counted

    rows = [[name, str(number)] for name, number in sorted(report["verdicts"].items())]
    if report["traps"]:
        rows.append(["trapped", str(report["traps"])])
    done = report["packets"] - report["traps"]
    if done:
        rows.append(["instructions a packet", f"{report['instructions'] / done:.1f}"])
    parts = [align([[f"{report['program']}:", f"packets {report['packets']}"], *rows])]
    parts += _aborted(report["aborted_at"])
    if len(report["rows"]) == 1:
        parts.append(_packet(report["rows"][0]))
    for name, records in report["records"].items():
        if records:
            parts.append([f"{name}: {counted(len(records), 'record')}"])
    if report["printed"]:
        parts.append(["printed:", *report["printed"]])
    for name, entries in report["maps"].items():
        if name.startswith(".rodata"):
            continue
        lines = [line for entry in entries if (line := _entry(entry))]
        more = len(lines) - _LINES
        if lines:
            parts.append([f"{name}:", *lines[:_LINES], *([f"  {more} more; --dump writes all"] if more > 0 else [])])
    return "\n\n".join("\n".join(part) for part in parts) + "\n"


def _aborted(aborted: list[dict[str, Any]]) -> list[list[str]]:
    """The lines at which the program ended with XDP_ABORTED."""
    places = [f"  {each['frames']} at {each['place']} of {each['program']}" for each in aborted]
    return [["XDP_ABORTED:", *places]] if places else []


def _packet(row: dict[str, Any]) -> list[str]:
    """Return lines with a packet's contents after its run."""
    data = bytes.fromhex(row["bytes"])
    lines = [f"to {row['redirect']}"] if row["redirect"] else []
    lines.append(
        f"packet of {len(data) - row['metadata']} B" + (f", metadata of {row['metadata']} B" if row["metadata"] else "")
    )
    return [*lines, *(f"  {at:04x}  {data[at : at + 16].hex(' ')}" for at in range(0, min(len(data), 128), 16))]


def _entry(entry: dict[str, Any]) -> str | None:
    """Return an entry on one line, or None if all bytes of its value are 0.

    The value of a map of programs or maps is a name.
    """
    values = [entry["value"]] if "value" in entry else [each["value"] for each in entry["values"]]
    if not any(isinstance(value, str) or any(int(byte, 16) for byte in value) for value in values):
        return None
    formatted = entry.get("formatted", {})
    key = formatted.get("key", " ".join(byte[2:] for byte in entry.get("key", [])))
    shown = formatted.get("value")
    if shown is None and "values" in formatted:
        shown = [each["value"] for each in formatted["values"]]
    if shown is None:
        shown = " | ".join(
            value if isinstance(value, str) else " ".join(byte[2:] for byte in value) for value in values
        )
    texts = [each if isinstance(each, str) else json.dumps(each) for each in (key, shown)]
    return "  " + ": ".join(text for text in texts if text)
