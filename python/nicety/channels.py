"""Channels between a host and the processes on its card: synchronous messages, of up to 56 bytes or of any size.

    async def main(host):
        host.start(nicety.Processes("echo.c"), "echo", microengine=0, args=(7,))
        device = host.open()
        channel = await device.subscribe(7)
        await channel.send(b"a message")
        return await channel.receive(9)

A call ends when both ends have come and the message has passed. Both ends name the same size and the same kind, direct
or indirect; where they do not, both are told.
"""

from __future__ import annotations

from collections.abc import Awaitable, Iterable
from dataclasses import dataclass
from typing import Any

from nicety._calls import Caller, OfHost, picoseconds
from nicety._checks import U32, whole
from nicety.buffers import Buffer
from nicety.errors import InputError

DIRECT_BYTES = 56
"""Most bytes of a direct message."""


@dataclass(frozen=True)
class Alternative:
    """What `Device.select` may receive, made by `Channel.message` or `Channel.bulk_message`."""

    channel: Channel
    host: Caller
    command: dict[str, Any]


class Device(OfHost):
    """The device through which a host reaches the processes on its card, opened by `host.open()`."""

    def subscribe(self, target: int) -> Awaitable[Channel]:
        """Subscribe to a target: a channel to the process that has registered it with `channel_register`.

        Raises:
            RunError: where no process has, or another channel is there.
        """
        target = whole(target, "target", U32)
        return self._call("subscribe", lambda number: Channel(self._host, number, target), target=target)

    def select(
        self, alternatives: Iterable[Alternative], *, timeout_ns: float | None = None
    ) -> Awaitable[tuple[int, bytes]]:
        """Receive from the first of several channels whose process writes.

            number, message = await device.select([first.message(8), second.message(8)])

        Args:
            alternatives: what may be received, one of each channel: `channel.message(bytes)` and
                `channel.bulk_message(buffer)`. Where several processes wait already, the first of the list is taken.
            timeout_ns: how long to wait for one of them; for ever if left out.

        Returns:
            Which alternative, and the bytes of a direct message; those of an indirect one are in its buffer.

        Raises:
            TimedOut: where no process came in time.
            RunError: where the process that came has another size or kind.
        """
        given = [self._alternative(alternative) for alternative in alternatives]
        return self._call(
            "channel_select",
            lambda selected: (selected[0], bytes.fromhex(selected[1])),
            alternatives=given,
            timeout_ps=_timeout("select", timeout_ns),
        )

    def _alternative(self, alternative: Alternative) -> dict[str, Any]:
        if not isinstance(alternative, Alternative):
            raise InputError(
                f"select takes channel.message(bytes) and channel.bulk_message(buffer), not {alternative!r}"
            )
        if alternative.host is not self._host:
            raise InputError(f"{alternative.channel!r} is no channel of rank {self._host.rank}")
        return alternative.command

    def __repr__(self) -> str:
        return f"<Device of rank {self._host.rank}>"


class Channel(OfHost):
    """A channel to a process, made by `device.subscribe`. It carries messages both ways, one at a time in each.

    A timeout bounds the wait for the process; once it has come, the message passes. One that is left out is for ever.
    """

    def __init__(self, host: Caller, number: int, target: int) -> None:
        super().__init__(host)
        self._number = number
        self._target = target

    @property
    def target(self) -> int:
        """The target that it was subscribed to."""
        return self._target

    def send(self, message: bytes | Buffer, *, timeout_ns: float | None = None) -> Awaitable[None]:
        """Send 1 to 56 bytes, for the process's `channel_read`.

        Raises:
            InputError: where it is no bytes, or too many; use `send_ind`.
            TimedOut: where the process did not come in time.
            RunError: where it expects another size, or an indirect message.
        """
        if isinstance(message, Buffer):
            self._own(message)
            message = (
                message.array[: DIRECT_BYTES + 1].tobytes() if len(message) > DIRECT_BYTES else bytes(message.array)
            )
        if not isinstance(message, bytes | bytearray | memoryview):
            raise InputError(f"a message is bytes, such as b'hello', or a buffer, not {type(message).__name__}")
        contents = bytes(message).hex()
        timeout_ps = _timeout("send", timeout_ns)
        return self._call("channel_send", channel=self._number, contents=contents, timeout_ps=timeout_ps)

    def receive(self, length_bytes: int, *, timeout_ns: float | None = None) -> Awaitable[bytes]:
        """Receive exactly so many bytes, 1 to 56, from the process's `channel_write`.

        Raises:
            InputError: where it is none, or too many; use `receive_ind`.
            TimedOut: where the process did not come in time.
            RunError: where it has another size, or an indirect message.
        """
        length_bytes, timeout_ps = whole(length_bytes, "length_bytes", U32), _timeout("receive", timeout_ns)
        return self._call(
            "channel_receive", bytes.fromhex, channel=self._number, bytes=length_bytes, timeout_ps=timeout_ps
        )

    def send_ind(self, buffer: Buffer, *, timeout_ns: float | None = None) -> Awaitable[None]:
        """Send a buffer by an indirect message, for the process's `channel_read_ind`.

        Raises:
            TimedOut: where the process did not come in time.
            RunError: where it expects another size, or a direct message; where DMA failed too often.
        """
        part, timeout_ps = self._own(buffer), _timeout("send_ind", timeout_ns)
        return self._call("channel_send_ind", channel=self._number, part=part, timeout_ps=timeout_ps)

    def receive_ind(self, buffer: Buffer, *, timeout_ns: float | None = None) -> Awaitable[None]:
        """Receive an indirect message that fills a buffer, from the process's `channel_write_ind`.

        Raises:
            TimedOut: where the process did not come in time.
            RunError: where it has another size, or a direct message; where DMA failed too often.
        """
        part, timeout_ps = self._own(buffer), _timeout("receive_ind", timeout_ns)
        return self._call("channel_receive_ind", channel=self._number, part=part, timeout_ps=timeout_ps)

    def message(self, length_bytes: int) -> Alternative:
        """An alternative of `Device.select`: a direct message of so many bytes."""
        length_bytes = whole(length_bytes, "length_bytes", U32)
        return Alternative(self, self._host, {"channel": self._number, "bytes": length_bytes})

    def bulk_message(self, buffer: Buffer) -> Alternative:
        """An alternative of `Device.select`: an indirect message that fills a buffer."""
        return Alternative(self, self._host, {"channel": self._number, "part": self._own(buffer)})

    def close(self) -> Awaitable[None]:
        """Close the channel. A process that waits at its end is told.

        Raises:
            RunError: where it is not open, or a thread is in a call on it.
        """
        return self._call("channel_close", channel=self._number)

    def __repr__(self) -> str:
        return f"<Channel of rank {self._host.rank} to target {self.target}>"


class ChannelCalls(Caller):
    """The part of a host that is about channels."""

    def open(self) -> Device:
        """Open the device of this host's card. Takes no virtual time.

        Raises:
            InputError: where the card has no channels.
        """
        self._ask("open")
        return Device(self)


def _timeout(what: str, ns: float | None) -> int | None:
    return None if ns is None else picoseconds(ns, f"{what}(timeout_ns={ns})")
