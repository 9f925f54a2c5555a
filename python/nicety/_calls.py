"""The calls of a host's program, before the simulation has them: what is checked, and what is awaited."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from nicety._checks import U32, U64, names, text, whole
from nicety.buffers import Buffer
from nicety.errors import InputError

if TYPE_CHECKING:
    from nicety.handlers import Handlers
    from nicety.processes import Processes

_T = TypeVar("_T")


class Call(Generic[_T]):
    """A call whose virtual time passes while it is awaited."""

    def __init__(
        self, host: Caller, command: Mapping[str, Any], result: Callable[[Any], _T], forgotten: list[str]
    ) -> None:
        self.host = host
        self.command = command
        self._result = result
        self._forgotten = forgotten
        self._awaited = False
        # The line of the program: behind this, Host._call and the method of Host.
        frame = sys._getframe(3)  # noqa: SLF001, the cheap way to know it
        self._code, self._line = frame.f_code, frame.f_lineno

    def __await__(self) -> Generator[Call[_T], Any, _T]:
        if self._awaited:
            raise InputError(f"{self!r} was awaited before; call it again")
        self._awaited = True
        return self._result((yield self))

    def __del__(self) -> None:
        # Like Python's own coroutines, so that a call may be made in one line and awaited in a later one.
        if not getattr(self, "_awaited", True) and hasattr(self, "_line"):
            text = f"rank {self.host.rank}: {self!r} was never awaited; write await {self._name()}(...)"
            self._forgotten.append(text)

    def __repr__(self) -> str:
        return f"{self._name()}(...) at {self._code.co_filename}:{self._line}"

    def _name(self) -> str:
        operation: str = self.command["op"]
        return _METHODS.get(operation, f"host.{operation}")


_METHODS = {
    "work": "host.compute",
    "finished": "process.finished",
    "subscribe": "device.subscribe",
    "channel_select": "device.select",
    "vni_open": "process.open",
    **{f"vni_{name}": f"interface.{name}" for name in ("close", "send", "receive", "test", "wait")},
    "vni_pool": "interface.register_pool",
    **{f"channel_{name}": f"channel.{name}" for name in ("close", "send", "receive", "send_ind", "receive_ind")},
}
"""Calls that are no methods of hosts, or have another name for the simulation."""


def nothing(_: Any) -> None:
    """The result of a call that has none."""


@dataclass
class Progress:
    """What a host and those who drive it both know.

    Attributes:
        now_ps: the instant of virtual time.
        forgotten: what to say of calls that were never awaited.
    """

    now_ps: int = 0
    forgotten: list[str] = field(default_factory=list)


class Turns(Protocol):
    """What a host asks through."""

    def at_once(self, host: Any, command: Mapping[str, Any]) -> tuple[Any, Any]:
        """Ask for what takes no virtual time; give its result and the memory it allocated."""

    def load(self, host: Any, program: Handlers | Processes) -> int:
        """Compile a program and hand it over, once for all hosts; give its number."""

    def threads(self, host: Any, coroutines: Sequence[object]) -> list[int]:
        """Numbers for further threads of a host's program."""

    def gathered(self, host: Any, numbers: Sequence[int]) -> list[Any]:
        """What threads returned, all of which have ended."""


class Caller:
    """A host as far as its calls go."""

    def __init__(self, turns: Turns, rank: int, ranks: int, progress: Progress, uid: int = 0) -> None:
        self._turns = turns
        self._uid = uid
        self._rank = rank
        self._ranks = ranks
        self._progress = progress

    @property
    def rank(self) -> int:
        """This host's number."""
        return self._rank

    @property
    def uid(self) -> int:
        """The user on whose behalf its operations are (`PtlGetUid`); see `uids` of `Cluster`."""
        return self._uid

    @property
    def ranks(self) -> int:
        """How many hosts there are."""
        return self._ranks

    def _call(self, operation: str, result: Callable[[Any], Any] = nothing, /, **arguments: Any) -> Call[Any]:
        return Call(self, command(operation, **arguments), result, self._progress.forgotten)

    def _ask(self, operation: str, /, **arguments: Any) -> tuple[Any, Any]:
        return self._turns.at_once(self, command(operation, **arguments))

    def _own(self, buffer: Buffer) -> dict[str, int]:
        if not isinstance(buffer, Buffer):
            raise InputError(f"expected a buffer made by host.alloc, not {type(buffer).__name__}")
        if buffer._host is not self:  # noqa: SLF001, two halves of one thing
            raise InputError(f"{buffer!r} is not memory of rank {self.rank}: hosts share none")
        return buffer._part()  # noqa: SLF001, two halves of one thing


class OfHost:
    """What belongs to a host, and makes its calls through it: a channel, an interface, a process."""

    def __init__(self, host: Caller) -> None:
        self._host = host
        # Hosts' own names for them begin with an underscore, since programs see hosts.
        self._call, self._ask, self._own = host._call, host._ask, host._own  # noqa: SLF001, the one place that needs it


def picoseconds(ns: float, name: str) -> int:
    """A time in nanoseconds as whole picoseconds, rounded up.

    Raises:
        InputError: where it is none.
    """
    try:
        # By way of the decimal digits: 0.1 ns is 100 ps, not the 101 that its binary fraction comes up to.
        ps = math.ceil(Decimal(str(ns)) * 1000)
    except (ArithmeticError, ValueError):
        ps = -1
    if not 0 <= ps <= U64:
        raise InputError(f"{name}: a time is a number of nanoseconds from 0 to 1.8e16, 2^64 picoseconds")
    return ps


_MOST = {
    **dict.fromkeys(("to", "source", "tag", "pt", "depth", "uid"), U32),
    **dict.fromkeys(("md", "get_md", "ct", "eq", "me", "length_bytes", "threshold", "match_bits", "ignore_bits"), U64),
    **dict.fromkeys(("local_offset", "local_get_offset", "remote_offset", "hdr_data", "user_ptr"), U64),
    **dict.fromkeys(("min_free", "success", "failure"), U64),
}
"""Numbers that calls take, and how large they may be."""

_OPTIONAL = {
    "recv": ("source", "tag"),
    "vni_receive": ("tag",),
    "post_recv": ("source", "tag"),
    "pt_alloc": ("pt", "eq"),
    "md_bind": ("eq", "ct"),
    "me_append": ("handlers",),
}


def number(name: str, value: object) -> int:
    """A number that a call takes by this name.

    Raises:
        InputError: where it is none, or too large.
    """
    return whole(value, name, _MOST[name])


def command(operation: str, /, **arguments: Any) -> dict[str, Any]:
    """A call as the simulation takes it, its numbers checked."""
    optional = _OPTIONAL.get(operation, ())
    for name, value in arguments.items():
        most = U32 if (operation, name) == ("me_append", "handlers") else _MOST.get(name)
        if most is not None and not (value is None and name in optional):
            try:
                arguments[name] = whole(value, name, most)
            except InputError as error:
                if (operation, name) in {("recv", "source"), ("recv", "tag")}:
                    raise InputError(f"{error}; leave it out for any") from None
                raise
    return {"op": operation, **arguments}


def option_names(options: Iterable[str]) -> list[str]:
    """Options by their short names, as in `op_put`; `PTL_ME_OP_PUT` is that too."""
    given = [text(name, "an option", "op_put") for name in names(options, "an option", "op_put")]
    return [re.sub("^PTL_(ME|MD|PT)_", "", name) for name in given]


def entry(
    match_bits: int,
    ignore_bits: int,
    source: int | None,
    uid: int | None,
    options: Iterable[str],
    ct: int | None,
    user_ptr: int,
) -> dict[str, Any]:
    """What a match entry, or a search, takes."""
    return {
        "match_bits": number("match_bits", match_bits),
        "ignore_bits": number("ignore_bits", ignore_bits),
        "source": None if source is None else number("source", source),
        "uid": None if uid is None else number("uid", uid),
        "options": option_names(options),
        "ct": None if ct is None else number("ct", ct),
        "user_ptr": number("user_ptr", user_ptr),
    }
