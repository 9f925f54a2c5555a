"""`host.socket`: streams and datagrams, and the errors that a socket programmer knows."""

from __future__ import annotations

import errno
import re
from collections.abc import Awaitable, Callable

import numpy as np
import pytest

import nicety

NIC = "niagara2-niu"


def alone(program: Callable[[nicety.Host], Awaitable[object]]) -> object:
    """The result of a program of rank 0, beside an idle host."""
    return nicety.Cluster(2, NIC).run({0: program}).results[0]


async def number_of(call: Awaitable[object]) -> str:
    """The name of the error of a call."""
    try:
        await call
    except OSError as error:
        return errno.errorcode[error.errno]
    return "none"


def test_streams_and_their_ends() -> None:
    sent = bytes(range(256)) * 300

    async def server(host: nicety.Host) -> object:
        listener = host.socket.stream()
        await listener.setsockopt("SO_RCVBUF", 20_000)
        await listener.bind(80)
        await listener.listen()
        assert (listener.address, listener.peer) == (("10.0.0.1", 80), None)
        await host.barrier()
        peer = await listener.accept()
        got = b""
        while piece := await peer.recv(5000):
            assert 0 < len(piece) <= 5000
            got += piece
        assert await peer.send(b"") == 0
        await peer.send(np.arange(4, dtype=np.uint8))
        await peer.close()
        return got, repr(peer), peer.number

    async def client(host: nicety.Host) -> object:
        await host.barrier()
        socket = host.socket.stream()
        assert socket.address is None
        await socket.setsockopt("TCP_NODELAY", 1)
        await socket.connect("10.0.0.1", 80)
        buffer = host.alloc(100)
        assert await socket.send(buffer) == 100
        assert await socket.send(memoryview(sent)) == len(sent)
        await socket.shutdown()
        own, peer = socket.address, socket.peer
        return await socket.recv(100), await socket.recv(100), own, peer

    run = nicety.Cluster(2, NIC).run({0: server, 1: client})
    assert run.results[0] == (bytes(100) + sent, "<StreamSocket 4 of rank 0>", 4)
    answer, end, own, peer = run.results[1]
    assert (answer, end) == (bytes([0, 1, 2, 3]), b"")
    assert own[0] == "10.0.0.2"
    assert peer == ("10.0.0.1", 80)
    counted = run.nodes[0].socket
    assert counted.frames_received == sum(counted.channels) > 50
    assert {group.group for group in counted.groups if group.busy_ps} >= {"driver", "stack", "socket", "kernel", "copy"}
    assert sum(group.busy_ps for group in counted.groups) == counted.busy_ps
    assert run.nodes[0].kernel.calls == counted.system_calls


def test_datagrams() -> None:
    async def one(host: nicety.Host) -> object:
        socket = host.socket.datagram()
        await socket.bind(9)
        await host.barrier()
        got = [await socket.recvfrom(4) for _ in range(2)]
        await socket.sendto(b"back", got[0][1][0], got[0][1][1])
        return got

    async def two(host: nicety.Host) -> object:
        await host.barrier()
        socket = host.socket.datagram()
        assert await socket.sendto(b"first", 0, 9) == 5
        await socket.sendto(bytearray(b"two"), "10.0.0.1", 9)
        return await socket.recvfrom(100), socket.address

    results = nicety.Cluster(2, NIC).run({0: one, 1: two}).results
    assert [data for data, _ in results[0]] == [b"firs", b"two"]
    assert results[0][0][1] == results[1][1]
    assert results[1][0] == (b"back", ("10.0.0.1", 9))


def test_an_ipv6_address_is_its_ranks_too() -> None:
    sent = bytes(range(200)) * 40

    async def server(host: nicety.Host) -> object:
        listener, inbox = host.socket.stream(), host.socket.datagram()
        await listener.bind(80)
        await inbox.bind(53)
        await listener.listen()
        await host.barrier()
        peer = await listener.accept()
        got = b""
        while piece := await peer.recv(5000):
            got += piece
        question, source = await inbox.recvfrom(100)
        await inbox.sendto(question[::-1], *source)
        return got == sent, peer.peer[0], source[0]

    async def client(host: nicety.Host) -> object:
        await host.barrier()
        socket, questions = host.socket.stream(), host.socket.datagram()
        await socket.connect("fd00::1", 80)
        await socket.send(sent)
        await socket.close()
        await questions.bind(1000)
        await questions.sendto(b"why?", "fd00::1", 53)
        answer, source = await questions.recvfrom(100)
        refused = host.socket.stream()
        return (
            answer,
            source,
            await number_of(refused.connect("fd00::1", 81)),
            await number_of(host.socket.stream().connect("fd01::1", 80)),
        )

    run = nicety.Cluster(2, NIC).run({0: server, 1: client})
    assert run.results[0] == (True, "fd00::2", "fd00::2")
    assert run.results[1] == (b"?yhw", ("fd00::1", 53), "ECONNREFUSED", "ENETUNREACH")


def test_errors_are_those_of_sockets() -> None:
    async def main(host: nicety.Host) -> list[str]:
        stream, other, datagram = host.socket.stream(), host.socket.stream(), host.socket.datagram()
        with pytest.raises(ConnectionRefusedError, match=r"connect to 10\.0\.0\.2:80: connection refused"):
            await stream.connect(1, 80)
        await stream.bind(80)
        calls = [
            other.bind(80), stream.connect(5, 80), stream.connect("192.168.0.1", 80), other.send(b"x"), other.accept(),
            datagram.recvfrom(1), datagram.sendto(bytes(1473), 1, 9), other.setsockopt("SO_SNDBUF", 0),
        ]  # fmt: skip
        names = [await number_of(call) for call in calls]
        await other.close()
        return [*names, await number_of(other.close()), await number_of(other.recv(1))]

    assert alone(main) == [
        "EADDRINUSE", "EHOSTUNREACH", "ENETUNREACH", "ENOTCONN", "EINVAL", "EINVAL", "EMSGSIZE", "EINVAL", "EBADF",
        "EBADF",
    ]  # fmt: skip


def test_a_closed_socket_has_no_address() -> None:
    async def main(host: nicety.Host) -> None:
        socket = host.socket.datagram()
        await socket.close()
        with pytest.raises(OSError, match="socket is closed"):
            print(socket.address)

    alone(main)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (
            lambda socket: socket.connect("nowhere", 80),
            "'nowhere' is no address; write a rank, or an address such as 10.0.0.1",
        ),
        (lambda socket: socket.connect(1, 70_000), "port is 0 to 65535, not 70000"),
        (
            lambda socket: socket.send("text"),
            "data is bytes, or what has some, such as a buffer's array, not <class 'str'>",
        ),
        (
            lambda socket: socket.setsockopt("SO_LINGER", 1),
            "setsockopt has SO_SNDBUF, SO_RCVBUF and TCP_NODELAY, not SO_LINGER",
        ),
        (lambda socket: socket.recv(-1), "most_bytes is a whole number from 0 to 2^64 - 1, not -1"),
    ],
)
def test_arguments_are_checked_where_they_are_given(call: Callable[[nicety.StreamSocket], object], text: str) -> None:
    async def main(host: nicety.Host) -> None:
        call(host.socket.stream())

    with pytest.raises(nicety.InputError) as raised:
        alone(main)
    assert str(raised.value).endswith(text)


def test_an_error_that_a_program_does_not_catch_is_its_own() -> None:
    async def main(host: nicety.Host) -> None:
        await host.socket.stream().connect(1, 80)

    with pytest.raises(ConnectionRefusedError):
        alone(main)


def test_a_deadlock_says_what_sockets_wait_for() -> None:
    async def main(host: nicety.Host) -> None:
        listener = host.socket.stream()
        await listener.bind(80)
        await listener.listen()
        await listener.accept()

    with pytest.raises(nicety.Deadlock, match=r"rank 0'.* for a connection to its port 80"):
        alone(main)


@pytest.mark.parametrize("nic", [NIC, "ethernet-100g"])
def test_a_peer_that_never_reads_is_told_in_a_deadlock(nic: str) -> None:
    async def client(host: nicety.Host) -> None:
        stream = host.socket.stream()
        await stream.connect(1, 80)
        await stream.send(bytes(30_000_000))

    async def server(host: nicety.Host) -> None:
        listener = host.socket.stream()
        await listener.bind(80)
        await listener.listen()
        connection = await listener.accept()
        await host.recv(host.alloc(8), source=0)
        await connection.close()

    with pytest.raises(nicety.Deadlock) as raised:
        nicety.Cluster(2, nic).run({0: client, 1: server})
    text = str(raised.value)
    assert re.search(
        r"'rank 0', waits since \S+ ms for room in the send buffer of its connection from .* to 10.0.0.2:80", text
    )
    assert re.search(r"'rank 1', waits since \S+ us for a message from rank 0", text)


@pytest.mark.parametrize("nic", [NIC, "ethernet-100g"])
def test_long_messages_that_both_send_first_are_a_deadlock(nic: str) -> None:
    async def main(host: nicety.Host) -> None:
        buffer = host.alloc(20_000_000)
        await host.send(buffer, to=1 - host.rank)
        await host.recv(buffer)

    with pytest.raises(nicety.Deadlock, match="rank 1', waits since"):
        nicety.Cluster(2, nic).run(main)


def test_messages_that_no_receive_takes_are_told_in_a_deadlock() -> None:
    async def main(host: nicety.Host) -> None:
        buffer = host.alloc(5000)
        if host.rank == 0:
            for tag in (1, 2):
                await host.send(buffer, to=1, tag=tag)
        else:
            await host.recv(buffer, tag=3)

    cluster = nicety.Cluster(2, NIC)
    with pytest.raises(nicety.Deadlock) as raised:
        cluster.run(main)
    text = "at rank 1, 2 messages wait for a recv, the first one of 5000 bytes from rank 0, tag 1"
    assert text in str(raised.value)
    held = nicety.Cluster(2, NIC, set={"messages.unexpected": "100 B"})
    with pytest.raises(nicety.Deadlock) as raised:
        held.run(main)
    assert "a message of 5000 bytes from rank 0, tag 1, waits in its connection and blocks all later messages" in str(
        raised.value
    )


@pytest.mark.parametrize("how", ["ends", "fails", "thread"])
def test_the_sockets_of_a_program_that_has_ended_are_closed(how: str) -> None:
    async def server(host: nicety.Host) -> tuple[bytes, bytes, str]:
        listener = host.socket.stream()
        await listener.bind(80)
        await listener.listen()
        await host.barrier()
        peer = await listener.accept()
        got, end = await peer.recv(100), await peer.recv(100)
        # The listener of the other end is gone too.
        return got, end, await number_of(host.socket.stream().connect(1, 90))

    async def client(host: nicety.Host) -> None:
        listener, datagrams = host.socket.stream(), host.socket.datagram()
        await listener.bind(90)
        await listener.listen()
        await datagrams.bind(91)
        await host.barrier()

        async def talk() -> None:
            socket = host.socket.stream()
            await socket.connect(0, 80)
            await socket.send(b"hello")

        await (host.gather(talk()) if how == "thread" else talk())
        if how == "fails":
            raise KeyError("no more")

    cluster = nicety.Cluster(2, NIC)
    if how == "fails":
        with pytest.raises(KeyError, match="no more"):
            cluster.run({0: server, 1: client})
        return
    result = cluster.run({0: server, 1: client}).results[0]
    assert result == (b"hello", b"", "ECONNREFUSED")


@pytest.mark.parametrize(("nic", "seconds"), [("niagara2-niu", 180), ("ethernet-100g", 127)])
def test_a_connect_that_no_backlog_has_room_for_is_tried_again_and_ends(nic: str, seconds: int) -> None:
    async def server(host: nicety.Host) -> None:
        listener = host.socket.stream()
        await listener.bind(80)
        await listener.listen(1)
        await host.barrier()
        await host.barrier()
        await host.compute(ns=5e9)
        # The third has waited for this.
        (await listener.accept(), await listener.accept())

    async def client(host: nicety.Host) -> list[object]:
        await host.barrier()
        sockets = [host.socket.stream() for _ in range(3)]
        await sockets[0].connect(0, 80)
        begun = host.now_ns
        number = await number_of(sockets[1].connect(0, 80))
        took = host.now_ns - begun
        await host.barrier()
        begun = host.now_ns
        await sockets[2].connect(0, 80)
        return [number, took, host.now_ns - begun]

    number, took, later = nicety.Cluster(2, nic).run({0: server, 1: client}).results[1]
    assert number == "ETIMEDOUT"
    assert took == pytest.approx(seconds * 1e9, rel=1e-3)
    # SYNs are at 0, 1, 3 and 7 s.
    assert 5e9 < later < 20e9


def test_port_0_is_a_free_one() -> None:
    async def main(host: nicety.Host) -> object:
        ports = []
        for kind in (host.socket.stream, host.socket.stream, host.socket.datagram):
            socket = kind()
            await socket.bind(0)
            ports.append(socket.address)
        listener = host.socket.stream()
        await listener.bind(0)
        await listener.listen()
        await host.barrier()
        own = listener.address
        if host.rank == 0:
            client = host.socket.stream()
            # None of the ports in use there is this one.
            return ports, own, await number_of(client.connect(1, 2))
        return ports, own, ""

    run = nicety.Cluster(2, NIC).run(main)
    for rank, (ports, own, refused) in run.results.items():
        numbers = [port for _, port in [*ports, own]]
        assert {address for address, _ in [*ports, own]} == {f"10.0.0.{rank + 1}"}
        assert min(numbers) >= 49152
        assert len({numbers[0], numbers[1], numbers[3]}) == 3
        assert refused == ("ECONNREFUSED" if rank == 0 else "")


def test_a_failed_host_is_named_where_a_socket_waits_for_it() -> None:
    async def server(host: nicety.Host) -> None:
        listener = host.socket.stream()
        await listener.bind(80)
        await listener.listen()
        await host.barrier()
        peer = await listener.accept()
        await peer.recv(100)
        await peer.recv(100)

    async def client(host: nicety.Host) -> None:
        await host.barrier()
        socket = host.socket.stream()
        await socket.connect(0, 80)
        await socket.send(b"a")
        await host.compute(ns=100_000_000)
        await socket.send(b"b")
        await host.compute(ns=100_000_000)

    note = r"\n  note: hosts\.1 is down from 50 ms on; [0-9]+ packets were lost"
    with pytest.raises(nicety.Deadlock, match=note) as error:
        nicety.Cluster(2, NIC, faults="fail=hosts.1@50ms").run({0: server, 1: client})
    assert "a card of this design" not in str(error.value)
