"""AF_XDP sockets: frames that a program in the driver redirects to a host program."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import nicety
from test_xdp_cards import built

TO_SOCKET = """#include <xdp.h>
struct {
    __uint(type, BPF_MAP_TYPE_XSKMAP);
    __uint(max_entries, 4);
    __type(key, __u32);
    __type(value, __u32);
} sockets SEC(".maps");
struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, __u32);
} plain SEC(".maps");
SEC("xdp") int to_socket(struct xdp_md *context) {
    unsigned char *data = xdp_data(context);
    if (data + 42 > (unsigned char *)xdp_end(context) || data[23] != IPPROTO_UDP) {
        return XDP_PASS;
    }
    __u32 key = 0;
    bpf_map_lookup_elem(&plain, &key);
    return (int)bpf_redirect_map(&sockets, 0, XDP_PASS);
}
char _license[] SEC("license") = "GPL";
"""
ONE = {"receive.channels": 1}


async def sender(host: nicety.Host) -> None:
    socket = host.socket.datagram()
    await host.barrier()
    for number in range(5):
        await socket.sendto(bytes([number]) * 1400, 1, 9)
        await host.compute(ns=50_000)


def run(object_: Path, **options: Any) -> tuple[Any, Any]:
    async def receiver(host: nicety.Host) -> Any:
        program = host.xdp.load(object_)
        socket = program.maps["sockets"].socket(0, buffers=8192, **options)
        await host.xdp.attach(program)
        await host.barrier()
        found = []
        async for frame in socket:
            found.append((frame[42:], host.now_ps))
            if len(found) == 5:
                break
        return found

    done = nicety.Cluster(2, "ethernet-100g", set=ONE).run({0: sender, 1: receiver})
    return done.results[1], done.nodes[1].socket.xdp


def test_frames_come_to_a_host_program_and_zero_copy_is_earlier(tmp_path: Path) -> None:
    object_ = built(tmp_path, "to_socket", TO_SOCKET)
    (copied, report), (shared, other) = run(object_), run(object_, zero_copy=True)
    for found in (copied, shared):
        assert [frame for frame, _ in found] == [bytes([number]) * 1400 for number in range(5)]
    assert (report.redirected, report.unreachable, other.redirected) == (5, 0, 5)
    saved = {at - earlier for (_, at), (_, earlier) in zip(copied, shared, strict=True)}
    assert all(each > 0 for each in saved)


def test_frames_without_a_socket_are_unreachable(tmp_path: Path) -> None:
    object_ = built(tmp_path, "to_socket", TO_SOCKET)

    async def receiver(host: nicety.Host) -> None:
        program = host.xdp.load(object_)
        # A socket of another entry.
        program.maps["sockets"].socket(1, queue=0)
        await program.maps["sockets"].set(0, 1)
        await host.xdp.attach(program)
        await host.barrier()
        await host.compute(ns=1_000_000)

    done = nicety.Cluster(2, "ethernet-100g", set=ONE).run({0: sender, 1: receiver})
    assert done.nodes[1].socket.xdp.unreachable == 5


@pytest.mark.parametrize(
    ("map_", "nic", "arguments", "error"),
    [
        ("plain", "ethernet-100g", {"key": 0}, "map plain: it has no sockets; name an xskmap"),
        ("sockets", "ethernet-100g", {"key": 4, "queue": 0}, "map sockets: key 4 is beyond its 4 entries"),
        ("sockets", "ethernet-100g", {"key": 1}, "map sockets: queue 1: the card has 1 receive channels"),
        ("sockets", "ethernet-100g", {"key": 0, "buffers": 0}, "map sockets: 0 buffers: write more than 0"),
        ("sockets", "ethernet-100g", {"key": "a"}, "key is a number from 0 to 4294967295, not 'a'"),
        ("sockets", "niagara2-niu", {"key": 0, "zero_copy": True}, "the driver has no zero copy"),
    ],
)
def test_mistakes_are_told(map_: str, nic: str, arguments: dict[str, Any], error: str, tmp_path: Path) -> None:
    async def main(host: nicety.Host) -> str:
        program = host.xdp.load(built(tmp_path, "to_socket", TO_SOCKET))
        with pytest.raises(nicety.InputError) as failed:
            program.maps[map_].socket(**arguments)
        return str(failed.value)

    assert error in nicety.Cluster(2, nic, set=ONE).run({0: main}).results[0]


@pytest.mark.parametrize("zero_copy", [False, True])
def test_threads_of_a_socket_have_their_own_buffers(zero_copy: bool, tmp_path: Path) -> None:
    object_ = built(tmp_path, "to_socket", TO_SOCKET)

    async def apart(host: nicety.Host) -> None:
        socket = host.socket.datagram()
        await host.barrier()
        for number in range(100):
            await socket.sendto(bytes([number]) * 20, 1, 9)
            await host.compute(ns=100_000)

    async def receiver(host: nicety.Host) -> int:
        program = host.xdp.load(object_)
        buffers = 8 + (2048 if zero_copy else 0)
        socket = program.maps["sockets"].socket(0, buffers=buffers, zero_copy=zero_copy)
        socket.batch = 1
        await host.xdp.attach(program)
        await host.barrier()

        async def reader() -> int:
            taken = 0
            for _ in range(50):
                taken += len(await socket.frames())
                # The other thread takes frames meanwhile.
                await host.compute(ns=150_000)
            return taken

        return sum(await host.gather(reader(), reader()))

    few = ONE | {"receive.entries": 2048}
    done = nicety.Cluster(2, "ethernet-100g", set=few).run({0: apart, 1: receiver})
    report: Any = done.nodes[1].socket.xdp
    assert (done.results[1], report.queue_full) == (100, 0)


def test_a_thread_that_ends_leaves_no_buffers(tmp_path: Path) -> None:
    object_ = built(tmp_path, "to_socket", TO_SOCKET)

    async def apart(host: nicety.Host) -> None:
        socket = host.socket.datagram()
        await host.barrier()
        for number in range(40):
            await socket.sendto(bytes([number]) * 20, 1, 9)
            await host.compute(ns=100_000)

    async def receiver(host: nicety.Host) -> int:
        program = host.xdp.load(object_)
        socket = program.maps["sockets"].socket(0, buffers=4)
        await host.xdp.attach(program)
        await host.barrier()

        async def once() -> int:
            return len(await socket.frames())

        return sum([sum(await host.gather(once())) for _ in range(40)])

    done = nicety.Cluster(2, "ethernet-100g", set=ONE).run({0: apart, 1: receiver})
    report: Any = done.nodes[1].socket.xdp
    assert (done.results[1], report.queue_full) == (40, 0)
