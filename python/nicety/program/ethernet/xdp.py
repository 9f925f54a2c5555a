"""XDP programs in the driver of a host's card.

    async def main(host):
        program = host.xdp.load("count.o")
        await host.xdp.attach(program)
        ...
        counts = await program.maps["protocols"].items()

Calls are system calls of the host, and take their time. Keys and values are numbers, members by name, or lists of
bytes, as in the JSON of `bpftool`.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Awaitable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, TypeAlias, cast

from nicety import _native
from nicety.errors import InputError

XdpMode = Literal["native", "generic"]
"""The place of a program: before the kernel's packet buffer, or behind it."""

XdpValue: TypeAlias = "int | str | list[Any] | dict[str, Any]"
"""A key or a value of a map."""


class XdpMap:
    """A map of a loaded program."""

    def __init__(self, calls: _native.XdpCalls, program: int, name: str) -> None:
        self._calls = calls
        self._program = program
        self._name = name

    @property
    def name(self) -> str:
        """Its name."""
        return self._name

    def get(self, key: XdpValue) -> Awaitable[Any]:
        """Look a key up: its value, a list of the values of all CPUs, or None.

        Raises:
            InputError: the key is wrong.
        """
        return self._calls.get(self._program, self._name, json.dumps(key), _value)

    def set(self, key: XdpValue, value: XdpValue) -> Awaitable[None]:
        """Change an entry; in a map with values of each CPU, those of all CPUs.

        Raises:
            InputError: the key or the value is wrong, or the map has no room.
        """
        return self._calls.set(self._program, self._name, json.dumps({"key": key, "value": value}))

    def delete(self, key: XdpValue) -> Awaitable[bool]:
        """Remove an entry, and return whether there was one.

        Raises:
            InputError: the key is wrong, or entries of the map cannot be removed.
        """
        return cast(Awaitable[bool], self._calls.delete(self._program, self._name, json.dumps(key), bool))

    def items(self) -> Awaitable[list[tuple[Any, Any]]]:
        """All entries: keys and values. Each takes two system calls."""
        return cast("Awaitable[list[tuple[Any, Any]]]", self._calls.items(self._program, self._name, _items))

    def records(self) -> XdpRecords:
        """The records of a ring buffer, or the samples of perf events: `async for record in events.records()`.

        The host's program waits in a system call while there are none. A perf event buffer keeps 256 KiB for each CPU.

        Raises:
            InputError: the map has no records.
        """
        return XdpRecords(self._calls, self._program, self._name)

    def socket(self, key: int, *, queue: int | None = None, buffers: int = 4096, zero_copy: bool = False) -> XdpSocket:
        """Bind an AF_XDP socket to an entry of an xskmap; set-up, takes no virtual time.

        The program's redirects to this entry then bring the frames of one receive queue to the socket.

        Args:
            key: the key of the entry.
            queue: the receive queue; by default the one whose number is the key.
            buffers: buffers of the socket's memory. Without a free one the driver drops frames.
            zero_copy: whether the card writes frames into this memory, in place of a copy by the driver.

        Raises:
            InputError: the map has no sockets, or the driver cannot bind this one.
        """
        numbers: dict[str, Any] = {"key": key, "buffers": buffers, "queue": key if queue is None else queue}
        for name, value in numbers.items():
            most = 2**32 - 1 if name == "key" else 2**40
            if not isinstance(value, int) or not 0 <= value <= most:
                raise InputError(f"{name} is a number from 0 to {most}, not {value!r}")
        self._calls.bind(self._program, self._name, (key, numbers["queue"]), (buffers, zero_copy))
        return XdpSocket(self._calls, self._program, self._name, key)

    def __repr__(self) -> str:
        return f"<XdpMap {self._name}>"


class XdpRecords:
    """Records of a map in the order of their submission, as bytes. It never ends; leave the loop by `break`."""

    def __init__(self, calls: _native.XdpCalls, program: int, name: str) -> None:
        self._calls = calls
        self._program = program
        self._name = name
        self._taken: deque[bytes] = deque()

    def __aiter__(self) -> XdpRecords:
        return self

    async def __anext__(self) -> bytes:
        if not self._taken:
            self._taken.extend(await self._calls.records(self._program, self._name, _records))
        return self._taken.popleft()


class XdpSocket:
    """A bound AF_XDP socket: `async for frame in socket`. It never ends; leave the loop by `break`.

    A call takes up to `batch` frames at once. Their buffers go back when the same thread takes the next ones, or ends.
    The thread waits in a system call while there are none.

    Attributes:
        batch: maximum number of frames of a call.
    """

    batch = 64

    def __init__(self, calls: _native.XdpCalls, program: int, name: str, key: int) -> None:
        self._calls = calls
        self._program = program
        self._name = name
        self._key = key
        self._taken: deque[bytes] = deque()

    def __aiter__(self) -> XdpSocket:
        return self

    async def __anext__(self) -> bytes:
        if not self._taken:
            self._taken.extend(await self.frames())
        return self._taken.popleft()

    def frames(self) -> Awaitable[list[bytes]]:
        """The frames that have come, at least one and at most `batch`."""
        found = self._calls.frames(self._program, self._name, self._key, self.batch, _records)
        return cast("Awaitable[list[bytes]]", found)

    def __repr__(self) -> str:
        return f"<XdpSocket {self._name}[{self._key}]>"


def _records(data: bytes) -> list[bytes]:
    """Records, each with its length in front of it."""
    found, at = [], 0
    while at < len(data):
        begin = at + 4
        at = begin + int.from_bytes(data[at:begin], "little")
        found.append(bytes(data[begin:at]))
    return found


def _value(text: bytes) -> Any:
    entry = json.loads(text)
    return None if entry is None else _parts(entry)[1]


def _items(text: bytes) -> list[tuple[Any, Any]]:
    return [_parts(entry) for entry in json.loads(text)]


def _parts(entry: Mapping[str, Any]) -> tuple[Any, Any]:
    """Key and value of an entry, by their types if the object has them."""
    formatted = entry.get("formatted", {})
    key = formatted.get("key", entry.get("key"))
    if "values" in entry:
        return key, [each["value"] for each in formatted.get("values", entry["values"])]
    return key, formatted.get("value", entry.get("value"))


class _Maps(Mapping[str, XdpMap]):
    def __init__(self, calls: _native.XdpCalls, program: int, names: list[str]) -> None:
        self._maps = {name: XdpMap(calls, program, name) for name in names}

    def __getitem__(self, name: str) -> XdpMap:
        if name not in self._maps:
            raise InputError(f"the object has no map {name!r}; it has {', '.join(self._maps)}")
        return self._maps[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._maps)

    def __len__(self) -> int:
        return len(self._maps)


class LoadedXdp:
    """A loaded program. Its maps keep their entries when it is detached.

    Attributes:
        number: its number on its host.
        host: the calls of that host.
    """

    def __init__(self, calls: _native.XdpCalls, number: int, host: _native.Calls) -> None:
        names = json.loads(calls.names(number))
        self.number = number
        self.host = host
        self._name = str(names["program"])
        self._maps = _Maps(calls, number, names["maps"])

    @property
    def name(self) -> str:
        """Its name."""
        return self._name

    @property
    def maps(self) -> Mapping[str, XdpMap]:
        """Its maps, by name."""
        return self._maps

    def __repr__(self) -> str:
        return f"<LoadedXdp {self._name}>"


class Xdp:
    """The XDP programs of a host's driver."""

    def __init__(self, calls: _native.Calls) -> None:
        self._calls = _native.XdpCalls(calls)
        self._host = calls

    def load(
        self,
        file: Path | str,
        *,
        program: str | None = None,
        maps: Mapping[str, list[dict[str, Any]]] | None = None,
        mode: XdpMode = "native",
    ) -> LoadedXdp:
        """Load a program of an eBPF object; set-up, takes no virtual time.

        Args:
            file: the object.
            program: the program's name, if the object has several.
            maps: entries of maps, each with `key`, and `value` or `values`.
            mode: `native` runs it before the kernel's packet buffer, `generic` behind it.

        Raises:
            InputError: the object, the program or an entry is wrong.
        """
        if mode not in ("native", "generic"):
            raise InputError(f"mode is 'native' or 'generic', not {mode!r}")
        try:
            content = Path(file).read_bytes()
        except OSError as error:
            raise InputError(f"{file}: cannot read it ({error.strerror})") from error
        entries = [(name, json.dumps(rows)) for name, rows in (maps or {}).items()]
        number = self._calls.load(content, program, entries, mode == "generic")
        return LoadedXdp(self._calls, number, self._host)

    def attach(self, program: LoadedXdp) -> Awaitable[None]:
        """Attach a program to the card's interface, or replace the attached one.

        Raises:
            InputError: frames of the card are too long for it, or another host has loaded it.
        """
        if not isinstance(program, LoadedXdp):
            raise InputError(f"attach takes what host.xdp.load returns, not {type(program).__name__}")
        if program.host is not self._host:
            raise InputError(f"attach: another host has loaded {program.name}; load it on this host")
        return self._calls.attach(program.number)

    def detach(self) -> Awaitable[bool]:
        """Detach the program, and return whether there was one."""
        return cast(Awaitable[bool], self._calls.detach(bool))
