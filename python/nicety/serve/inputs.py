"""Requests of the page for works, as arguments of the functions that do them."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from nicety.serve.cards import Cards, read_changes
from nicety.serve.fields import Fields, Refused
from nicety.serve.programs import Program, read_program
from nicety.serve.uploads import MOST_PACKETS, Upload, Uploads

ACTIONS = ("run", "profile", "check")
"""The actions of works."""
MOST_SCHEDULES = 1000
"""Maximum number of interleavings of a check."""
_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
_HANDLER = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
_DEFINE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}(?:=[A-Za-z0-9_+*()-]{0,100})?")
_RATE = re.compile(r"wire|recorded|[0-9.]{1,20}[A-Za-z]{1,10}")
_CAPTURE = re.compile(r"(?:^|\s)capture")
_MOST_EXPRESSIONS = 16
_MOST_RULES = 64
_MOST_DEFINES = 64
_MOST_SIZES = 16
_PACKET_BYTES = (1, 1 << 20)
_MOST_MESSAGES = 1_000_000
_MOST_STATE = 1 << 26
_MOST_SEED = (1 << 53) - 1
_OVERLOADS = {"wait": {}, "lossy": {"lossy": True}, "pfc": {"pfc": True}}


@dataclass(frozen=True)
class Input:
    """The program, cards and traffic of a work.

    Attributes:
        program: the program.
        names: names of handlers.
        defines: macros of the program.
        given: arguments of `check_line_rate`, without the traffic of an upload.
        upload: the capture that is sent, if any.
        capture: words of the traffic's expression behind `capture=FILE`.
    """

    program: Program
    names: dict[str, str]
    defines: list[str]
    given: dict[str, Any]
    upload: Upload | None = None
    capture: tuple[str, ...] = ()

    def arguments(self) -> dict[str, Any]:
        """Return the arguments of `check_line_rate`."""
        return self.given | self._traffic(None if self.upload is None else str(self.upload.path))

    def shown(self) -> dict[str, Any]:
        """Return the arguments for a command line: a capture has the name of the user's file."""
        return self.given | self._traffic(None if self.upload is None else self.upload.name)

    def _traffic(self, file: str | None) -> dict[str, Any]:
        if file is None:
            return {}
        return {"traffic": [" ".join([f'capture="{file}"' if " " in file else f"capture={file}", *self.capture])]}


@dataclass(frozen=True)
class Start:
    """A request for a work.

    Attributes:
        id: the page's name of the work.
        action: `run`, `profile` or `check`.
        input: the program, cards and traffic.
        more: further arguments of the action's function.
    """

    id: str
    action: str
    input: Input
    more: dict[str, Any] = field(default_factory=dict)


def read_id(fields: Fields, key: str = "id") -> str:
    """Read a page's name of a work."""
    name = fields.text(key, 64)
    if not _ID.fullmatch(name):
        raise Refused(fields.place(key), "is 1 to 64 letters, digits, - and _")
    return name


def read_start(fields: Fields, cards: Cards, uploads: Uploads) -> Start:
    """Read a request for a work.

    Raises:
        Refused: it is invalid.
    """
    name, action = read_id(fields), fields.word("action", ACTIONS)
    more: dict[str, Any] = {}
    if fields.optional("schedules"):
        if action != "check":
            raise Refused("schedules", "is for the action check; leave it out")
        more["schedules"] = fields.whole("schedules", 1, MOST_SCHEDULES)
    if fields.optional("sensitivity") and fields.flag("sensitivity"):
        if action != "run":
            raise Refused("sensitivity", "is for the action run; leave it out")
        more["sensitivity"] = True
    request = _read_input(fields.inner("input"), cards, uploads)
    fields.end()
    return Start(name, action, request, more)


def _read_input(fields: Fields, cards: Cards, uploads: Uploads) -> Input:
    program = read_program(fields.inner("program"))
    names = _read_handlers(fields.inner("names")) if fields.optional("names") else {}
    defines = _read_defines(fields) if fields.optional("defines") else []
    given: dict[str, Any] = {"nics": cards.read_names(fields, "nics")}
    if changes := read_changes(fields):
        given["overrides"] = changes
    if fields.optional("overload"):
        given |= _OVERLOADS[fields.word("overload", tuple(_OVERLOADS))]
    if fields.optional("rules") and (rules := fields.texts("rules", _MOST_RULES, longest=200)):
        given["rules"] = rules
    if fields.optional("state_bytes"):
        given["state_bytes"] = fields.whole("state_bytes", 0, _MOST_STATE)
    if fields.optional("seed"):
        given["seed"] = fields.whole("seed", 0, _MOST_SEED)
    traffic, upload, capture = _read_traffic(fields.inner("traffic"), uploads)
    fields.end()
    return Input(program, names, defines, given | traffic, upload, capture)


def _read_handlers(fields: Fields) -> dict[str, str]:
    names = {}
    for key in ("header", "payload", "completion"):
        if fields.optional(key):
            names[key] = fields.text(key, 128)
            if not _HANDLER.fullmatch(names[key]):
                raise Refused(fields.place(key), "is the name of a C function")
    fields.end()
    return names


def _read_defines(fields: Fields) -> list[str]:
    """Read macros. Their texts reach the compiler as they are, so they must name no file."""
    defines = fields.texts("defines", _MOST_DEFINES, longest=200)
    for at, text in enumerate(defines):
        if not _DEFINE.fullmatch(text):
            place = f"{fields.place('defines')}[{at}]"
            raise Refused(place, "is NAME or NAME=VALUE, with letters, digits, _, +, -, * and parentheses in the value")
    return defines


def _read_traffic(fields: Fields, uploads: Uploads) -> tuple[dict[str, Any], Upload | None, tuple[str, ...]]:
    """Read the traffic: arguments, the capture that is sent, and the words behind it."""
    kind = fields.word("kind", ("equal", "expression", "capture"))
    given: dict[str, Any] = {}
    upload: Upload | None = None
    words: list[str] = []
    if kind == "equal":
        if fields.optional("packet_sizes_bytes"):
            given["packet_sizes"] = fields.numbers("packet_sizes_bytes", _MOST_SIZES, _PACKET_BYTES)
        for key in ("message_packets", "messages"):
            if fields.optional(key):
                given[key] = fields.whole(key, 1, _MOST_MESSAGES)
    elif kind == "expression":
        given["traffic"] = fields.texts("expressions", _MOST_EXPRESSIONS, longest=4096, least=1)
        for at, text in enumerate(given["traffic"]):
            if _CAPTURE.search(text):
                place = f"{fields.place('expressions')}[{at}]"
                raise Refused(place, "a file of this machine is not read; upload the capture, and choose it as traffic")
    else:
        upload, words = _read_capture(fields, uploads)
    fields.end()
    return given, upload, tuple(words)


def _read_capture(fields: Fields, uploads: Uploads) -> tuple[Upload, list[str]]:
    upload = uploads.get(fields.text("upload", 64), fields.place("upload"))
    rate = fields.text("rate", 32) if fields.optional("rate") else "wire"
    if not _RATE.fullmatch(rate):
        raise Refused(fields.place("rate"), "write wire, recorded, or a rate such as 10Gbps or 5Mpps")
    words = [f"rate={rate}"]
    loops = fields.optional("loop") and fields.flag("loop")
    packets = fields.whole("packets", 1, MOST_PACKETS) if fields.optional("packets") else None
    if loops and not upload.is_complete:
        raise Refused(fields.place("loop"), "the server has only the first packets of this capture; leave it out")
    if loops:
        words.append("loop")
        words.append(f"packets={packets or upload.packets}")
    elif packets is not None or not upload.is_complete:
        words.append(f"packets={min(packets or upload.packets, upload.packets)}")
    if fields.optional("cut") and fields.flag("cut"):
        words.append("cut=pad")
    return upload, words
