"""Sockets in TCP and UDP: programs of hosts with kernel protocols above an Ethernet card.

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

The calls are those of Python's own `socket`. A call that would block there is awaited here. Errors are `OSError` and
its subclasses, such as `ConnectionRefusedError`, with the numbers of `errno`.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from nicety import _native
from nicety.program.buffers import Buffer

if TYPE_CHECKING:
    import numpy.typing as npt

Address = int | str
"""A host: its rank, or its IP address. Rank 0 has 10.0.0.1."""

End = tuple[str, int]
"""An IP address and a port."""

SocketOption = Literal["SO_SNDBUF", "SO_RCVBUF", "TCP_NODELAY"]
"""Options of stream sockets: bytes of the send buffer, bytes of the receive buffer, and small segments sent at once."""

Data: TypeAlias = "bytes | bytearray | memoryview | npt.NDArray[Any] | Buffer"
"""Bytes to send: a bytes-like object of Python, or host memory."""


class _Socket:
    """The part that TCP and UDP sockets have in common."""

    def __init__(self, calls: _native.SocketCalls, rank: int, number: int) -> None:
        self._calls = calls
        self._rank = rank
        self._number = number

    @property
    def number(self) -> int:
        """The socket's number on its host. The number is reused after `close`."""
        return self._number

    @property
    def address(self) -> End | None:
        """The socket's own address and port; None if it has no port.

        Raises:
            OSError: EBADF, after `close`.
        """
        return self._calls.ends(self._number)[0]

    def bind(self, port: int) -> Awaitable[None]:
        """Bind the socket to a port. With 0 the kernel chooses a free port, and `address` returns it.

        Raises:
            OSError: EADDRINUSE; EADDRNOTAVAIL if no port is free; EINVAL for a socket with a port or a connection;
                EBADF.
        """
        return self._calls.bind(self._number, port)

    def close(self) -> Awaitable[None]:
        """Close the socket. Sent bytes are still delivered. If received bytes are unread, the connection is reset.

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
        """Address and port of the peer of a connected socket.

        Raises:
            OSError: EBADF, after `close`.
        """
        return self._calls.ends(self._number)[1]

    def setsockopt(self, option: SocketOption, value: int) -> Awaitable[None]:
        """Change an option. Set buffers before the socket connects or listens.

        Accepted sockets have the options of the listening socket.

        Raises:
            InputError: there is no such option.
            OSError: EINVAL for an invalid size, or if it is too late for a size; EBADF.
        """
        return self._calls.setsockopt(self._number, option, value)

    def connect(self, to: Address, port: int) -> Awaitable[None]:
        """Connect to a port of a host. If the socket has no port, the kernel chooses a free one.

        Raises:
            ConnectionRefusedError: there is no listener.
            TimeoutError: the host does not answer for `tcp.connect_timeout`, or its listener has no room for another
                connection for that time.
            OSError: EHOSTUNREACH if there is no such host; ENETUNREACH for an address of another network, and for the
                host's own address; EADDRINUSE; ENOBUFS if the host has no memory for the buffers; EISCONN; EINVAL;
                EBADF.
        """
        return self._calls.connect(self._number, to, port)

    def listen(self, backlog: int = 128) -> Awaitable[None]:
        """Listen for connections.

        At most `backlog` connections may wait for `accept`. Further requests get no answer until one is accepted.

        Raises:
            OSError: EINVAL for a socket without a port; EADDRINUSE; EBADF.
        """
        return self._calls.listen(self._number, backlog)

    def accept(self) -> Awaitable[StreamSocket]:
        """Wait for a connection, and return its socket.

        Raises:
            OSError: EINVAL for a socket that does not listen; EBADF, also if another thread closes it during the wait.
        """
        return self._calls.accept(self._number, self._accepted)

    def _accepted(self, number: int) -> StreamSocket:
        return StreamSocket(self._calls, self._rank, number)

    def send(self, data: Data) -> Awaitable[int]:
        """Send all bytes, and return their number. Returns when the send buffer has taken the last byte.

        Raises:
            BrokenPipeError: after `shutdown`.
            ConnectionResetError: the peer has reset the connection.
            TimeoutError: the peer has not answered for `tcp.timeout`.
            OSError: ENOTCONN; EBADF.
        """
        return self._calls.send(self._number, _bytes(data))

    def recv(self, most_bytes: int) -> Awaitable[bytes]:
        """Wait for bytes, and return at most `most_bytes` of them. At end-of-file the result is empty.

        Raises:
            ConnectionResetError: the peer has reset the connection.
            TimeoutError: the peer has not answered for `tcp.timeout`.
            OSError: ENOTCONN; EBADF.
        """
        return self._calls.recv(self._number, most_bytes)

    def shutdown(self) -> Awaitable[None]:
        """Close the sending direction. After the sent bytes, the peer reads end-of-file.

        Raises:
            OSError: ENOTCONN; EBADF.
        """
        return self._calls.shutdown(self._number)


class DatagramSocket(_Socket):
    """A socket of UDP, made by `host.socket.datagram`."""

    def sendto(self, data: Data, to: Address, port: int) -> Awaitable[int]:
        """Send a datagram, and return its number of bytes. Without a port, the kernel binds the socket to a free one.

        Raises:
            OSError: EMSGSIZE for a datagram that does not fit into a frame; ENETUNREACH; EINVAL; EBADF.
        """
        return self._calls.sendto(self._number, _bytes(data), to, port)

    def recvfrom(self, most_bytes: int) -> Awaitable[tuple[bytes, End]]:
        """Wait for a datagram, and return its bytes, truncated to `most_bytes`, and its sender.

        Raises:
            OSError: EINVAL for a socket without a port; EBADF.
        """
        return self._calls.recvfrom(self._number, most_bytes)


class Sockets:
    """Sockets of a host: `host.socket`."""

    def __init__(self, calls: _native.Calls) -> None:
        self._calls = _native.SocketCalls(calls)
        self._rank = calls.rank

    @property
    def address(self) -> str:
        """The IP address of this host."""
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
