"""Channels between a host and the processes on its card: synchronous messages of up to 56 bytes or of any size.

    async def main(host):
        host.channels.start(nicety.Processes("echo.c"), "echo", microengine=0, args=(7,))
        device = host.channels.open()
        channel = await device.subscribe(7)
        await channel.send(b"a message")
        return await channel.receive(9)

A call ends when host and process have both called and the message has passed. Both must name the same size and the same
kind, direct or indirect. If they differ, both calls fail with an error.
"""

from __future__ import annotations

from collections.abc import Awaitable, Generator, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from nicety.errors import InputError
from nicety.program.buffers import Buffer
from nicety.program.channels import outgoing
from nicety.shared.checks import U32, whole

if TYPE_CHECKING:
    from nicety import _native

if TYPE_CHECKING:
    from nicety import _native

DIRECT_BYTES = 56
"""Maximum number of bytes in a direct message."""


def card_of(rank: int, card: int) -> str:
    """Name a card of a host in texts: the host's rank, and the number of the card from the second one on."""
    return f"rank {rank}, card {card}" if card else f"rank {rank}"


@dataclass(frozen=True)
class Alternative:
    """A message that `Device.select` may receive, made by `Channel.message` or `Channel.bulk_message`."""

    channel: Channel
    wanted: int | Buffer


class PendingMessage:
    """A call on a channel that has begun: `await pending` waits for its end, once.

    The result is the bytes of a received direct message, and empty for every other call. The call also completes if it
    is not awaited.

    Raises, where it is awaited:
        TimedOut: the process did not call before the timeout.
        RunError: the process's call has another size or kind; or DMA failed too often.
    """

    def __init__(self, calls: _native.ChannelCalls, number: int, target: int) -> None:
        self._calls = calls
        self._number = number
        self._target = target
        self._awaited = False

    def __await__(self) -> Generator[Any, Any, bytes]:
        # A plain method, so that an error in the call below still finds the program's line.
        if self._awaited:
            raise InputError(f"{self!r} was awaited before; start another call")
        self._awaited = True
        return self._calls.wait(self._number).__await__()

    def __repr__(self) -> str:
        return f"<PendingMessage {self._number} of target {self._target}>"


class Device:
    """The device through which a host reaches the processes on its card, opened by `host.channels.open()`."""

    def __init__(self, calls: _native.ChannelCalls, rank: int, card: int) -> None:
        self._calls = calls
        self._card = (rank, card)

    def subscribe(self, target: int) -> Awaitable[Channel]:
        """Subscribe to a target. Return the channel to the process that registered the target by `channel_register`.

        Raises:
            RunError: no process has registered the target, or the target has a channel already.
        """
        target = whole(target, "target", U32)
        return self._calls.subscribe(target, lambda number: Channel(self._calls, self._card, number, target))

    def select(
        self, alternatives: Iterable[Alternative], *, timeout_ns: float | None = None
    ) -> Awaitable[tuple[int, bytes]]:
        """Receive one message, from the first of several channels on which a process writes.

            number, message = await device.select([first.message(8), second.message(8)])

        Args:
            alternatives: the possible messages, one per channel: `channel.message(bytes)` and
                `channel.bulk_message(buffer)`. If several processes wait already, the earliest in the list is served.
            timeout_ns: maximum wait for a process; by default unlimited.

        Returns:
            The index of the alternative, and the bytes of a direct message. The bytes of an indirect message are in the
            alternative's buffer.

        Raises:
            TimedOut: no process called before the timeout.
            RunError: the process's call has another size or kind.
        """
        return self._calls.select([self._alternative(alternative) for alternative in alternatives], timeout_ns)

    def _alternative(self, alternative: Alternative) -> tuple[int, int | Buffer]:
        if not isinstance(alternative, Alternative):
            raise InputError(
                f"select takes channel.message(bytes) and channel.bulk_message(buffer), not {alternative!r}"
            )
        if not alternative.channel.is_of(self._calls):
            raise InputError(f"{alternative.channel!r} is no channel of {self!r}; use the device that opened it")
        return alternative.channel.number, alternative.wanted

    def __repr__(self) -> str:
        return f"<Device of {card_of(*self._card)}>"


class Channel:
    """A channel to a process, made by `device.subscribe`.

    It carries messages in both directions, one at a time in each. A timeout bounds the wait until the process calls;
    after that call the message always passes. By default a call waits without limit.
    """

    def __init__(self, calls: _native.ChannelCalls, card: tuple[int, int], number: int, target: int) -> None:
        self._calls = calls
        self._card = card
        self._number = number
        self._target = target

    def is_of(self, calls: _native.ChannelCalls) -> bool:
        """Return whether the channel belongs to the host with these calls."""
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
            TimedOut: the process did not call before the timeout.
            RunError: the process's call has another size, or an indirect message.
        """
        return self._calls.send(self._number, self._bytes_of(message), timeout_ns)

    def _bytes_of(self, message: bytes | Buffer) -> bytes:
        """Return the bytes of a direct message. A buffer above 56 bytes is cut to 57, which `send` refuses."""
        if isinstance(message, Buffer):
            self._calls.check(message)
            message = (
                message.array[: DIRECT_BYTES + 1].tobytes() if len(message) > DIRECT_BYTES else bytes(message.array)
            )
        if not isinstance(message, bytes | bytearray | memoryview):
            raise InputError(f"a message is bytes, such as b'hello', or a buffer, not {type(message).__name__}")
        contents = bytes(message)
        messages = outgoing.active()
        return contents if messages is None else messages.passed(*self._card, self._target, contents)

    def _changed(self, buffer: Buffer) -> Buffer:
        """Return the buffer of an indirect message, with the bytes to send."""
        messages = outgoing.active()
        if messages is not None:
            self._calls.check(buffer)
            contents = bytes(buffer.array.tobytes())
            sent = messages.passed(*self._card, self._target, contents)
            if sent != contents:
                buffer.array.view("u1")[:] = list(sent)
        return buffer

    def receive(self, length_bytes: int, *, timeout_ns: float | None = None) -> Awaitable[bytes]:
        """Receive exactly `length_bytes` bytes, 1 to 56, from the process's `channel_write`.

        Raises:
            InputError: the length is 0, or above 56; use `receive_ind`.
            TimedOut: the process did not call before the timeout.
            RunError: the process's call has another size, or an indirect message.
        """
        return self._calls.receive(self._number, length_bytes, timeout_ns)

    def send_ind(self, buffer: Buffer, *, timeout_ns: float | None = None) -> Awaitable[None]:
        """Send a buffer by an indirect message, for the process's `channel_read_ind`.

        Raises:
            TimedOut: the process did not call before the timeout.
            RunError: the process's call has another size, or a direct message; or DMA failed too often.
        """
        return self._calls.send_ind(self._number, self._changed(buffer), timeout_ns)

    def receive_ind(self, buffer: Buffer, *, timeout_ns: float | None = None) -> Awaitable[None]:
        """Receive an indirect message that fills a buffer, from the process's `channel_write_ind`.

        Raises:
            TimedOut: the process did not call before the timeout.
            RunError: the process's call has another size, or a direct message; or DMA failed too often.
        """
        return self._calls.receive_ind(self._number, buffer, timeout_ns)

    def start_send(self, message: bytes | Buffer, *, timeout_ns: float | None = None) -> Awaitable[PendingMessage]:
        """Begin `send`, and return when the card has the message. The program continues before the call ends.

            pending = await channel.start_send(b"a message")
            await host.compute(ns=20_000)
            await pending

        A thread of the kernel completes the call.

        Raises:
            InputError: the message has no bytes, or more than 56.
            RunError: another thread sends on the channel.
        """
        return self._calls.start_send(self._number, self._bytes_of(message), timeout_ns, self._pending)

    def start_receive(self, length_bytes: int, *, timeout_ns: float | None = None) -> Awaitable[PendingMessage]:
        """Begin `receive`. Awaiting the pending message returns the received bytes."""
        length = whole(length_bytes, "length_bytes", U32)
        return self._calls.start_receive(self._number, length, timeout_ns, self._pending)

    def start_send_ind(self, buffer: Buffer, *, timeout_ns: float | None = None) -> Awaitable[PendingMessage]:
        """Begin `send_ind`. The buffer must not change until `await pending` has returned."""
        return self._calls.start_send_ind(self._number, self._changed(buffer), timeout_ns, self._pending)

    def start_receive_ind(self, buffer: Buffer, *, timeout_ns: float | None = None) -> Awaitable[PendingMessage]:
        """Begin `receive_ind`. The buffer has the message after `await pending` has returned."""
        self._calls.check(buffer)
        return self._calls.start_receive(self._number, buffer, timeout_ns, self._pending)

    def _pending(self, number: int) -> PendingMessage:
        return PendingMessage(self._calls, number, self._target)

    def message(self, length_bytes: int) -> Alternative:
        """Make an alternative for `Device.select`: a direct message of `length_bytes` bytes."""
        return Alternative(self, whole(length_bytes, "length_bytes", U32))

    def bulk_message(self, buffer: Buffer) -> Alternative:
        """Make an alternative for `Device.select`: an indirect message that fills a buffer."""
        self._calls.check(buffer)
        return Alternative(self, buffer)

    def close(self) -> Awaitable[None]:
        """Close the channel. If the process waits in a call on the channel, that call fails.

        Raises:
            RunError: the channel is not open, or a thread is in a call on it.
        """
        return self._calls.close(self._number)

    def __repr__(self) -> str:
        return f"<Channel of {card_of(*self._card)} to target {self.target}>"
