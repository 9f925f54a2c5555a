"""Channels between a host and the processes on its card: synchronous messages of up to 56 bytes or of any size.

    async def main(host):
        host.channels.start(nicety.Processes("echo.c"), "echo", microengine=0, args=(7,))
        device = host.channels.open()
        channel = await device.subscribe(7)
        await channel.send(b"a message")
        return await channel.receive(9)

A call ends when both ends have called and the message has passed. Both ends must name the same size and the same kind,
direct or indirect. If they differ, both get an error.
"""

from __future__ import annotations

from collections.abc import Awaitable, Generator, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from nicety.errors import InputError
from nicety.program.buffers import Buffer
from nicety.shared.checks import U32, whole

if TYPE_CHECKING:
    from nicety import _native

if TYPE_CHECKING:
    from nicety import _native

DIRECT_BYTES = 56
"""Maximum bytes of a direct message."""


@dataclass(frozen=True)
class Alternative:
    """A message that `Device.select` may receive, made by `Channel.message` or `Channel.bulk_message`."""

    channel: Channel
    wanted: int | Buffer


class PendingMessage:
    """A call on a channel that has begun: `await pending` waits for its end, once.

    The result is the bytes of a received direct message, and empty for every other call. Without an await the call
    completes by itself.

    Raises, where it is awaited:
        TimedOut: the process did not call in time.
        RunError: the process's call has another size or kind; or DMA failed too often.
    """

    def __init__(self, calls: _native.ChannelCalls, number: int, target: int) -> None:
        self._calls = calls
        self._number = number
        self._target = target
        self._awaited = False

    def __await__(self) -> Generator[Any, Any, bytes]:
        # Not a generator, so that the call behind it still finds the program's line.
        if self._awaited:
            raise InputError(f"{self!r} was awaited before; begin another call")
        self._awaited = True
        return self._calls.wait(self._number).__await__()

    def __repr__(self) -> str:
        return f"<PendingMessage {self._number} of target {self._target}>"


class Device:
    """The device through which a host reaches the processes on its card, opened by `host.channels.open()`."""

    def __init__(self, calls: _native.ChannelCalls, rank: int) -> None:
        self._calls = calls
        self._rank = rank

    def subscribe(self, target: int) -> Awaitable[Channel]:
        """Subscribe to a target: a channel to the process that has registered it with `channel_register`.

        Raises:
            RunError: no process has registered the target, or the target has a channel already.
        """
        target = whole(target, "target", U32)
        return self._calls.subscribe(target, lambda number: Channel(self._calls, self._rank, number, target))

    def select(
        self, alternatives: Iterable[Alternative], *, timeout_ns: float | None = None
    ) -> Awaitable[tuple[int, bytes]]:
        """Receive from the first of several channels with a writing process.

            number, message = await device.select([first.message(8), second.message(8)])

        Args:
            alternatives: the possible messages, one per channel: `channel.message(bytes)` and
                `channel.bulk_message(buffer)`. If several processes wait already, the first of the list is taken.
            timeout_ns: maximum wait for one of them; for ever by default.

        Returns:
            The index of the alternative, and the bytes of a direct message. The bytes of an indirect message are in the
            alternative's buffer.

        Raises:
            TimedOut: no process called in time.
            RunError: the process's call has another size or kind.
        """
        return self._calls.select([self._alternative(alternative) for alternative in alternatives], timeout_ns)

    def _alternative(self, alternative: Alternative) -> tuple[int, int | Buffer]:
        if not isinstance(alternative, Alternative):
            raise InputError(
                f"select takes channel.message(bytes) and channel.bulk_message(buffer), not {alternative!r}"
            )
        if not alternative.channel.is_of(self._calls):
            raise InputError(f"{alternative.channel!r} is no channel of rank {self._rank}")
        return alternative.channel.number, alternative.wanted

    def __repr__(self) -> str:
        return f"<Device of rank {self._rank}>"


class Channel:
    """A channel to a process, made by `device.subscribe`.

    It carries messages both ways, one at a time in each direction. A timeout bounds the wait for the process; once the
    process has called, the message passes. By default a call waits for ever.
    """

    def __init__(self, calls: _native.ChannelCalls, rank: int, number: int, target: int) -> None:
        self._calls = calls
        self._rank = rank
        self._number = number
        self._target = target

    def is_of(self, calls: _native.ChannelCalls) -> bool:
        """Whether this is a channel of the host with these calls."""
        return self._calls is calls

    @property
    def number(self) -> int:
        """The channel's number on its host."""
        return self._number

    @property
    def target(self) -> int:
        """The target to which the channel is subscribed."""
        return self._target

    def send(self, message: bytes | Buffer, *, timeout_ns: float | None = None) -> Awaitable[None]:
        """Send 1 to 56 bytes, for the process's `channel_read`.

        Raises:
            InputError: the message has no bytes, or more than 56; use `send_ind`.
            TimedOut: the process did not call in time.
            RunError: the process's call has another size, or an indirect message.
        """
        return self._calls.send(self._number, self._bytes_of(message), timeout_ns)

    def _bytes_of(self, message: bytes | Buffer) -> bytes:
        """The bytes of a direct message; of a longer buffer, one byte more than a message may have."""
        if isinstance(message, Buffer):
            self._calls.check(message)
            message = (
                message.array[: DIRECT_BYTES + 1].tobytes() if len(message) > DIRECT_BYTES else bytes(message.array)
            )
        if not isinstance(message, bytes | bytearray | memoryview):
            raise InputError(f"a message is bytes, such as b'hello', or a buffer, not {type(message).__name__}")
        return bytes(message)

    def receive(self, length_bytes: int, *, timeout_ns: float | None = None) -> Awaitable[bytes]:
        """Receive exactly `length_bytes` bytes, 1 to 56, from the process's `channel_write`.

        Raises:
            InputError: the length is 0, or above 56; use `receive_ind`.
            TimedOut: the process did not call in time.
            RunError: the process's call has another size, or an indirect message.
        """
        return self._calls.receive(self._number, length_bytes, timeout_ns)

    def send_ind(self, buffer: Buffer, *, timeout_ns: float | None = None) -> Awaitable[None]:
        """Send a buffer by an indirect message, for the process's `channel_read_ind`.

        Raises:
            TimedOut: the process did not call in time.
            RunError: the process's call has another size, or a direct message; or DMA failed too often.
        """
        return self._calls.send_ind(self._number, buffer, timeout_ns)

    def receive_ind(self, buffer: Buffer, *, timeout_ns: float | None = None) -> Awaitable[None]:
        """Receive an indirect message that fills a buffer, from the process's `channel_write_ind`.

        Raises:
            TimedOut: the process did not call in time.
            RunError: the process's call has another size, or a direct message; or DMA failed too often.
        """
        return self._calls.receive_ind(self._number, buffer, timeout_ns)

    def start_send(self, message: bytes | Buffer, *, timeout_ns: float | None = None) -> Awaitable[PendingMessage]:
        """Begin `send`, and return when the message is with the card. The program goes on meanwhile.

            pending = await channel.start_send(b"a message")
            await host.compute(ns=20_000)
            await pending

        A thread of the kernel does the rest of the call.

        Raises:
            InputError: the message has no bytes, or more than 56.
            RunError: another thread sends on the channel.
        """
        return self._calls.start_send(self._number, self._bytes_of(message), timeout_ns, self._pending)

    def start_receive(self, length_bytes: int, *, timeout_ns: float | None = None) -> Awaitable[PendingMessage]:
        """Begin `receive`. Awaiting the pending message returns its bytes."""
        length = whole(length_bytes, "length_bytes", U32)
        return self._calls.start_receive(self._number, length, timeout_ns, self._pending)

    def start_send_ind(self, buffer: Buffer, *, timeout_ns: float | None = None) -> Awaitable[PendingMessage]:
        """Begin `send_ind`. The buffer must not change until the pending message was awaited."""
        return self._calls.start_send_ind(self._number, buffer, timeout_ns, self._pending)

    def start_receive_ind(self, buffer: Buffer, *, timeout_ns: float | None = None) -> Awaitable[PendingMessage]:
        """Begin `receive_ind`. The buffer has the message when the pending message was awaited."""
        self._calls.check(buffer)
        return self._calls.start_receive(self._number, buffer, timeout_ns, self._pending)

    def _pending(self, number: int) -> PendingMessage:
        return PendingMessage(self._calls, number, self._target)

    def message(self, length_bytes: int) -> Alternative:
        """An alternative of `Device.select`: a direct message of `length_bytes` bytes."""
        return Alternative(self, whole(length_bytes, "length_bytes", U32))

    def bulk_message(self, buffer: Buffer) -> Alternative:
        """An alternative of `Device.select`: an indirect message that fills a buffer."""
        self._calls.check(buffer)
        return Alternative(self, buffer)

    def close(self) -> Awaitable[None]:
        """Close the channel. A process that waits at the other end is notified.

        Raises:
            RunError: the channel is not open, or a thread is in a call on it.
        """
        return self._calls.close(self._number)

    def __repr__(self) -> str:
        return f"<Channel of rank {self._rank} to target {self.target}>"
