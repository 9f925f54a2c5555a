"""Sockets: programs of hosts below whose protocols there is an Ethernet card, in TCP and UDP.

    async def main(host):
        if host.rank == 0:
            server = host.socket.stream()
            await server.bind(80)
            await server.listen()
            peer = await server.accept()
            return await peer.recv(100)
        client = host.socket.stream()
        await client.connect(0, 80)
        await client.send(b"a line")

The calls are those of Python's own `socket`, and wait where it would block. Errors are `OSError` and its kin,
`ConnectionRefusedError` and so on, with the numbers of `errno`.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from nicety import _native
from nicety.program.buffers import Buffer

if TYPE_CHECKING:
    import numpy.typing as npt

Address = int | str
"""A host: its rank, or an address such as "10.0.0.1", which is that of rank 0."""

End = tuple[str, int]
"""An address and a port."""

SocketOption = Literal["SO_SNDBUF", "SO_RCVBUF", "TCP_NODELAY"]
"""Options of stream sockets: bytes of the send buffer, of the receive buffer; whether small segments go out at once."""

Data: TypeAlias = "bytes | bytearray | memoryview | npt.NDArray[Any] | Buffer"
"""Bytes to send: of Python's, or of host memory."""


class _Socket:
    """What sockets of both kinds have."""

    def __init__(self, calls: _native.SocketCalls, rank: int, number: int) -> None:
        self._calls = calls
        self._rank = rank
        self._number = number

    @property
    def number(self) -> int:
        """Its number on its host, which is given out again after `close`."""
        return self._number

    @property
    def address(self) -> End | None:
        """Its own address and port, if it has one.

        Raises:
            OSError: EBADF, after `close`.
        """
        return self._calls.ends(self._number)[0]

    def bind(self, port: int) -> Awaitable[None]:
        """Give it a port; with 0 a free one, which is in `address`.

        Raises:
            OSError: EADDRINUSE; EADDRNOTAVAIL where no port is free; EINVAL for a socket that has a port or is
                connected; EBADF.
        """
        return self._calls.bind(self._number, port)

    def close(self) -> Awaitable[None]:
        """Give it back. What was sent is still delivered; where bytes were not received, a connection is reset instead.

        Raises:
            OSError: EBADF.
        """
        return self._calls.close(self._number)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._number} of rank {self._rank}>"


class StreamSocket(_Socket):
    """A socket of TCP, made by `host.socket.stream` or `accept`."""

    @property
    def peer(self) -> End | None:
        """Address and port at the other end, of a socket that is connected.

        Raises:
            OSError: EBADF, after `close`.
        """
        return self._calls.ends(self._number)[1]

    def setsockopt(self, option: SocketOption, value: int) -> Awaitable[None]:
        """Change an option. Buffers are set before the socket connects or listens; what it accepts has its options.

        Raises:
            InputError: where there is no such option.
            OSError: EINVAL for a size that cannot be, or later; EBADF.
        """
        return self._calls.setsockopt(self._number, option, value)

    def connect(self, to: Address, port: int) -> Awaitable[None]:
        """Connect to a port of a host, from a free port where the socket has none.

        Raises:
            ConnectionRefusedError: where no one listens.
            TimeoutError: where the host does not answer for `tcp.connect_timeout`, or its listener has no room for
                another connection for as long.
            OSError: EHOSTUNREACH where there is no such host; ENETUNREACH for an address of another network, and for
                the host's own; EADDRINUSE; ENOBUFS where the host has no memory for the buffers; EISCONN; EINVAL;
                EBADF.
        """
        return self._calls.connect(self._number, to, port)

    def listen(self, backlog: int = 128) -> Awaitable[None]:
        """Wait for connections, of which so many may wait for `accept`; further ones are not answered meanwhile.

        Raises:
            OSError: EINVAL for a socket without a port; EADDRINUSE; EBADF.
        """
        return self._calls.listen(self._number, backlog)

    def accept(self) -> Awaitable[StreamSocket]:
        """Wait for a connection: its socket.

        Raises:
            OSError: EINVAL for a socket that does not listen; EBADF, also where another thread closes it meanwhile.
        """
        return self._calls.accept(self._number, self._accepted)

    def _accepted(self, number: int) -> StreamSocket:
        return StreamSocket(self._calls, self._rank, number)

    def send(self, data: Data) -> Awaitable[int]:
        """Send bytes: all of them, and how many they were. Ready when the socket has taken the last one.

        Raises:
            BrokenPipeError: after `shutdown`.
            ConnectionResetError: where the peer has reset the connection.
            TimeoutError: where it has not answered for `tcp.timeout`.
            OSError: ENOTCONN; EBADF.
        """
        return self._calls.send(self._number, _bytes(data))

    def recv(self, most_bytes: int) -> Awaitable[bytes]:
        """Receive at most so many bytes, and wait for the first; none after the peer's last.

        Raises:
            ConnectionResetError: where the peer has reset the connection.
            TimeoutError: where it has not answered for `tcp.timeout`.
            OSError: ENOTCONN; EBADF.
        """
        return self._calls.recv(self._number, most_bytes)

    def shutdown(self) -> Awaitable[None]:
        """Send no more: the peer receives the end behind what was sent.

        Raises:
            OSError: ENOTCONN; EBADF.
        """
        return self._calls.shutdown(self._number)


class DatagramSocket(_Socket):
    """A socket of UDP, made by `host.socket.datagram`."""

    def sendto(self, data: Data, to: Address, port: int) -> Awaitable[int]:
        """Send a datagram, from a free port where the socket has none; how many bytes it has.

        Raises:
            OSError: EMSGSIZE for one that does not fit into a frame; ENETUNREACH; EINVAL; EBADF.
        """
        return self._calls.sendto(self._number, _bytes(data), to, port)

    def recvfrom(self, most_bytes: int) -> Awaitable[tuple[bytes, End]]:
        """Wait for a datagram: its bytes, cut to so many, and who sent it.

        Raises:
            OSError: EINVAL for a socket without a port; EBADF.
        """
        return self._calls.recvfrom(self._number, most_bytes)


class Sockets:
    """Sockets of a host, as `host.socket`."""

    def __init__(self, calls: _native.Calls) -> None:
        self._calls = _native.SocketCalls(calls)
        self._rank = calls.rank

    @property
    def address(self) -> str:
        """The address of this host."""
        return self._calls.address(self._rank)

    def stream(self) -> StreamSocket:
        """Make a socket of TCP; takes no virtual time."""
        return StreamSocket(self._calls, self._rank, self._calls.open(False))

    def datagram(self) -> DatagramSocket:
        """Make a socket of UDP; takes no virtual time."""
        return DatagramSocket(self._calls, self._rank, self._calls.open(True))

    def __repr__(self) -> str:
        return f"<Sockets of rank {self._rank}>"


def _bytes(data: Data) -> Any:
    return data.array if isinstance(data, Buffer) else data
