"""Programs in Python on simulated hosts: their costs, their traffic, and the errors of wrong programs."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import resource
import signal
import subprocess
import sys
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import nicety

CARDS = ("spin-discrete", "spin-integrated")


def cluster(nic: str = "spin-discrete", **arguments: object) -> nicety.Cluster:
    return nicety.Cluster(2, nic, **arguments)


def test_a_message_arrives_when_the_contract_says() -> None:
    async def ping(host: nicety.Host) -> None:
        buffer = host.alloc(8)
        buffer.array[:] = range(8)
        await host.send(buffer, to=1, tag=5)

    async def pong(host: nicety.Host) -> tuple[float, nicety.Received, list[int]]:
        buffer = host.alloc(16)
        received = await host.recv(buffer, source=0, tag=5)
        return host.now_ns, received, buffer.array[:8].tolist()

    run = cluster().run({0: ping, 1: pong})
    # post 65, bus 250, link 0.160 + 33.4, match 30, deposit 0.125 + 250, notice 65
    assert run.results[1] == (693.685, nicety.Received(source=0, tag=5, length_bytes=8), list(range(8)))
    assert run.nodes[1].portals.messages_matched == 1
    assert run.nodes[0].host_memory_read_bytes == run.nodes[1].host_memory_written_bytes == 8


def test_every_host_of_a_torus_is_so_many_hops_away() -> None:
    async def ping(host: nicety.Host) -> float | None:
        buffer = host.alloc(8)
        if host.rank == 0:
            await host.send(buffer, to=host.ranks - 1, tag=5)
        elif host.rank == host.ranks - 1:
            await host.recv(buffer, source=0, tag=5)
            return host.now_ns
        return None

    # On a pair it is 693.685; a router at either end is 50.001, and a further hop 83.4.
    for topology, hops in {"torus:2x2x2": 3, "torus:4x2": 2, "torus:2x4x1": 2, "torus:8": 1}.items():
        run = nicety.Cluster(8, "spin-discrete", topology=topology).run(ping)
        assert run.results[7] == pytest.approx(793.687 + 83.4 * (hops - 1)), topology


@pytest.mark.parametrize("nic", CARDS)
@pytest.mark.parametrize("size", [8, 4096, 70_000])
def test_python_and_rust_ping_pong_take_the_same_time(nic: str, size: int) -> None:
    pings, pongs = 1, 2

    async def prepare(host: nicety.Host, bits: int) -> tuple[int, int, nicety.Buffer]:
        out, back = host.alloc(size), host.alloc(size)
        count, pt = host.portals.ct_alloc(), host.portals.pt_alloc(pt=1)
        options = ["op_put", "event_comm_disable", "event_link_disable", "event_ct_comm"]
        await host.portals.me_append(back, pt=pt, match_bits=bits, options=options, ct=count)
        md = host.portals.md_bind(out, options=["event_send_disable"])
        await host.barrier()
        return count, md, out

    async def ping(host: nicety.Host) -> list[float]:
        count, md, _ = await prepare(host, pongs)
        half = []
        for round_ in range(1, 4):
            begun = host.now_ps
            await host.portals.put(md, size, to=1, pt=1, match_bits=pings)
            await host.portals.ct_wait(count, round_)
            half.append((host.now_ps - begun) / 2000)
        return half

    async def pong(host: nicety.Host) -> None:
        count, md, _ = await prepare(host, pings)
        for round_ in range(1, 4):
            await host.portals.ct_wait(count, round_)
            await host.portals.put(md, size, to=0, pt=1, match_bits=pongs)

    row = nicety.run_benchmark("latency", nics=[nic], modes=["rdma"], sizes=[size], iterations=2)["rows"][0]
    half = cluster(nic).run({0: ping, 1: pong}).results[0]
    assert half[1:] == [row["latency_ns"]] * 2


@pytest.mark.parametrize("shards", [1, 2])
@given(sizes=st.lists(st.integers(0, 20_000), min_size=1, max_size=4), seed=st.integers(0, 2**32))
def test_every_byte_arrives_both_ways_in_any_number_of_shards(shards: int, sizes: list[int], seed: int) -> None:
    content = [np.random.default_rng([seed, i]).integers(0, 256, size, np.uint8) for i, size in enumerate(sizes)]

    async def both_ways(host: nicety.Host) -> int:
        other = 1 - host.rank
        for tag, data in enumerate(content):
            out, back = host.alloc(len(data)), host.alloc(len(data))
            out.array[:] = np.roll(data, host.rank)
            await host.barrier()
            if host.rank == tag % 2:
                await host.send(out, to=other, tag=tag)
                await host.recv(back, source=other, tag=tag)
            else:
                await host.recv(back, source=other, tag=tag)
                await host.send(out, to=other, tag=tag)
            assert (back.array == np.roll(data, other)).all()
        return host.now_ps

    one, n = cluster(seed=seed).run(both_ways), cluster(seed=seed, shards=shards).run(both_ways)
    assert one == n


def test_handlers_of_ones_own(tmp_path: Path) -> None:
    source = tmp_path / "double.c"
    source.write_text("""
#include <nicety.h>
__handler int twice(const ptl_payload_t p, void *state) {
    uint32_t *words = (uint32_t *)p.base;
    for (ptl_size_t i = 0; i < p.length / 4; i++)
        words[i] *= *(const uint32_t *)state;
    return PtlHandlerDMAToHostB(p.base, p.offset, p.length, PTL_ME_HOST_MEM) == PTL_OK ? SUCCESS : FAIL;
}
""")
    handlers = nicety.Handlers(source, payload="twice")
    words = 3000

    async def sender(host: nicety.Host) -> None:
        out = host.alloc(4 * words)
        out.view(np.uint32)[:] = range(words)
        await host.barrier()
        await host.portals.put(host.portals.md_bind(out), len(out), to=1, pt=1)

    async def receiver(host: nicety.Host) -> list[int]:
        back, count = host.alloc(4 * words), host.portals.ct_alloc()
        attached = host.portals.attach(handlers, state=(3).to_bytes(4, "little"))
        options = ["op_put", "event_ct_comm", "event_ct_bytes"]
        await host.portals.me_append(back, pt=host.portals.pt_alloc(pt=1), options=options, ct=count, handlers=attached)
        await host.barrier()
        assert await host.portals.ct_wait(count, 4 * words) == 4 * words
        return back.view(np.uint32).tolist()

    run = cluster().run({0: sender, 1: receiver})
    assert run.results[1] == [3 * i for i in range(words)]
    assert run.nodes[1].portals.handler_runs == 3


def test_a_wait_that_fails_names_the_trap(tmp_path: Path) -> None:
    source = tmp_path / "wild.c"
    source.write_text("""#include <nicety.h>
__handler int payload_handler(const ptl_payload_t p, void *state) {
    return *(volatile int *)0x123450;
}
""")

    async def sender(host: nicety.Host) -> None:
        await host.barrier()
        await host.portals.put(host.portals.md_bind(host.alloc(8)), 8, to=1, pt=1)

    async def receiver(host: nicety.Host) -> None:
        back, count = host.alloc(8), host.portals.ct_alloc()
        attached = host.portals.attach(nicety.Handlers(source))
        options = ["op_put", "event_ct_comm"]
        await host.portals.me_append(back, pt=host.portals.pt_alloc(pt=1), options=options, ct=count, handlers=attached)
        await host.barrier()
        await host.portals.ct_wait(count, 1)

    with pytest.raises(nicety.HandlerTrap, match=r"(?s)payload_handler at wild.c:3 .*rank 1 waited for failed"):
        cluster().run({0: sender, 1: receiver})


def test_slices_share_the_memory() -> None:
    async def program(host: nicety.Host) -> None:
        whole = host.alloc(16)
        part = whole[4:12]
        part.view(np.uint32)[:] = (1, 2)
        assert whole.array.tolist() == [0] * 4 + [1, 0, 0, 0, 2, 0, 0, 0] + [0] * 4
        assert len(whole[12:4]) == len(host.alloc(0).array) == 0
        with pytest.raises(nicety.InputError, match="no whole number of uint32"):
            whole[0:3].view(np.uint32)
        with pytest.raises(nicety.InputError, match="without a step"):
            whole[::2]

    cluster().run({0: program})


def test_an_array_outlives_its_run() -> None:
    async def program(host: nicety.Host) -> np.ndarray:
        buffer = host.alloc(1 << 20)
        buffer.array[:] = 9
        return buffer.array

    array = cluster().run({0: program}).results[0]
    assert (array == 9).all()


def failure(error: type[Exception], program: Callable[[nicety.Host], Awaitable[object]], **arguments: object) -> str:
    with pytest.raises(error) as caught:
        cluster(**arguments).run({0: program})
    return str(caught.value)


def test_a_program_that_waits_for_ever_is_told_for_what() -> None:
    async def program(host: nicety.Host) -> None:
        await host.recv(host.alloc(8), source=1, tag=3)

    text = failure(nicety.Deadlock, program)
    assert "program 'rank 0', waits since" in text
    assert "a message from rank 1, tag 3" in text


def test_a_message_waits_for_its_receive() -> None:
    async def early(host: nicety.Host) -> None:
        for size in (8, 100_000):
            data = host.alloc(size)
            data.array[:] = 7
            await host.send(data, to=1, tag=1)

    async def late(host: nicety.Host) -> list[int]:
        await host.compute(ns=10_000)
        both = [host.alloc(8), host.alloc(100_000)]
        for data in both:
            await host.recv(data, tag=1)
        return [int(data.array.sum()) for data in both]

    assert nicety.Cluster(2, "spin-discrete").run({0: early, 1: late}).results[1] == [56, 700_000]


def test_messages_without_room_end_the_run_with_what_to_raise() -> None:
    async def early(host: nicety.Host) -> None:
        for _ in range(2):
            await host.send(host.alloc(64), to=1)

    few = ["messages.eager=64 B", "messages.buffer=64 B", "messages.buffers=1"]
    with pytest.raises(nicety.RunError, match=r"rank 1 before its receive and is lost.*messages\.buffers \(1\)"):
        nicety.Cluster(2, "spin-discrete", set=few).run({0: early})


def test_an_exception_of_a_program_comes_out_as_it_is() -> None:
    async def program(host: nicety.Host) -> None:
        await host.compute(ns=2.5)
        raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine") as caught:
        cluster().run(program)
    assert caught.value.__notes__ == ["in the program of rank 0, at 2.5 ns of virtual time"]


def test_a_call_that_fails_can_be_handled() -> None:
    async def program(host: nicety.Host) -> str:
        with pytest.raises(nicety.InputError) as caught:
            await host.send(host.alloc(8), to=7)
        return str(caught.value)

    assert cluster().run({0: program}).results[0] == "there is no rank 7; the cluster has ranks 0 to 1"


def test_a_message_longer_than_its_receive() -> None:
    async def sender(host: nicety.Host) -> None:
        await host.send(host.alloc(100), to=1)

    async def receiver(host: nicety.Host) -> None:
        await host.recv(host.alloc(64))

    with pytest.raises(nicety.RunError, match=r"100 bytes from rank 0 arrived at a recv of 64 bytes.*buffer of 100"):
        cluster().run({0: sender, 1: receiver})


def test_foreign_awaitables_are_refused() -> None:
    async def loopless(host: nicety.Host) -> None:
        await asyncio.sleep(1)

    async def bare(host: nicety.Host) -> None:
        await asyncio.sleep(0)

    hosts: list[nicety.Host] = []

    async def crossed(host: nicety.Host) -> None:
        hosts.append(host)
        await host.barrier()
        await hosts[1 - host.rank].compute(ns=1)

    assert "rank 0 awaits asyncio; a host program may await only" in failure(nicety.InputError, loopless)
    assert "something foreign (builtins.NoneType)" in failure(nicety.InputError, bare)
    with pytest.raises(nicety.InputError, match="awaits a call of rank 1's host"):
        cluster().run(crossed)


def test_invalid_programs_are_refused() -> None:
    def plain(host: nicety.Host) -> None:
        return None

    assert "is no async function; write: async def plain(host):" in failure(nicety.InputError, plain)
    with pytest.raises(nicety.InputError, match="no rank 2; the cluster has ranks 0 to 1"):
        cluster().run({2: plain})


def test_a_host_is_used_by_its_own_program_only() -> None:
    async def program(host: nicety.Host) -> nicety.Host:
        return host

    host = cluster().run({0: program}).results[0]
    with pytest.raises(nicety.InputError, match="used outside its program"):
        host.alloc(8)

    memories: list[nicety.Buffer] = []

    async def thief(host: nicety.Host) -> None:
        memories.append(host.alloc(8))
        await host.barrier()
        await host.send(memories[1 - host.rank], to=1 - host.rank)

    with pytest.raises(nicety.InputError, match="is not memory of rank 0: hosts share none"):
        cluster().run(thief)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"nodes": 3}, "a pair has 2 nodes, not 3"),
        ({"nodes": -1}, "nodes is a whole number from 0 to"),
        ({"topology": "rink"}, "no topology 'rink'; there are: pair, star, fat-tree, torus, ring, alone"),
        ({"topology": "fat-tree:35"}, "write fat-tree:34 or fat-tree:36"),
        ({"topology": "fat-tree:4:2", "nodes": 9}, "holds 8 nodes, not 9"),
        ({"topology": "torus:4x4x4", "nodes": 8}, "has 64 nodes, not 8; write nodes = 64, or topology torus:2x2x2"),
        ({"topology": "torus:2x", "nodes": 2}, "write torus:XxYxZ, as in torus:4x4x4"),
        ({"nic": "spin-discreet"}, "did you mean spin-discrete"),
        ({"set": {"hpu.cores": 0}}, "whole number from 1 to 1024"),
        ({"set": {"hpu.coers": 8}}, "did you mean hpu.cores"),
        ({"set": ["bus.latency=250"]}, "needs a unit"),
    ],
)
def test_clusters_that_cannot_be(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(nicety.InputError, match=message):
        nicety.Cluster(**{"nodes": 2, "nic": "spin-discrete", **arguments})


def test_more_shards_than_hosts_are_no_more_work() -> None:
    async def program(host: nicety.Host) -> int:
        await host.compute(ns=5)
        return host.now_ps

    assert cluster(shards=2**31).run(program).results == {0: 5000, 1: 5000}


def test_overrides_change_the_card() -> None:
    async def program(host: nicety.Host) -> float:
        await host.portals.put(host.portals.md_bind(host.alloc(8)), 8, to=1, pt=1)
        return host.now_ns

    assert cluster(set={"host.post": "80 ns"}).run({0: program}).results[0] == 80


def test_limits_of_the_card_are_enforced() -> None:
    async def program(host: nicety.Host) -> None:
        host.portals.ct_alloc()
        host.portals.ct_alloc()

    text = failure(nicety.RunError, program, set={"limits.counters": 1})
    assert text == "PTL_NO_SPACE: no counter is left of the card's 1; free one, or raise limits.counters"


def test_ctrl_c_ends_a_run() -> None:
    async def program(host: nicety.Host) -> None:
        while True:
            await host.compute(ns=1)

    timer = threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        cluster().run(program)
    timer.join()


@pytest.mark.parametrize("place", ["program", "thread"])
def test_sys_exit_is_an_error_of_its_program(place: str) -> None:
    async def thread(code: int) -> None:
        sys.exit(code)

    async def program(host: nicety.Host) -> None:
        await host.compute(ns=100 * (1 + host.rank))
        if host.rank == 1:
            if place == "thread":
                await host.gather(thread(0))
            sys.exit()
        await host.barrier()

    with pytest.raises(nicety.RunError) as caught:
        cluster().run(program)
    call = "sys.exit(0)" if place == "thread" else "sys.exit()"
    assert str(caught.value) == (
        f"{call} is an error in a program of a host; write return to end the program\n"
        "  in the program of rank 1, at 200.0 ns of virtual time"
    )
    assert isinstance(caught.value.__cause__, SystemExit)


def test_an_invalid_change_names_the_argument() -> None:
    with pytest.raises(nicety.InputError) as caught:
        cluster(set={"hpu.cores": -1})
    assert str(caught.value) == "set: hpu.cores=-1: expected a whole number from 1 to 1024, e.g. hpu.cores=4"


def test_a_signal_still_ends_the_process_of_a_run() -> None:
    def handler(*_: object) -> None:
        sys.exit(143)

    async def program(host: nicety.Host) -> None:
        await host.compute(ns=1)
        os.kill(os.getpid(), signal.SIGTERM)
        for number in range(1000):
            await host.compute(ns=number)

    before = signal.signal(signal.SIGTERM, handler)
    try:
        with pytest.raises(SystemExit, match="143"):
            cluster().run(program)
    finally:
        signal.signal(signal.SIGTERM, before)


def test_numbers_that_do_not_fit() -> None:
    def failure(call: Callable[[nicety.Host], object]) -> str:
        async def program(host: nicety.Host) -> None:
            await call(host)  # type: ignore[misc]

        with pytest.raises(nicety.InputError) as caught:
            nicety.Cluster(2, "spin-discrete").run({0: program})
        return str(caught.value)

    assert "tag is a whole number from 0 to 2^63 - 1" in failure(lambda h: h.send(h.alloc(8), to=1, tag=2**70))
    assert "tag is a whole number from 0 to 2^63 - 1" in failure(lambda h: h.recv(h.alloc(8), tag=2**63))
    assert "ignore is a whole number from 0 to 2^63 - 1, not -1" in failure(
        lambda h: h.recv(h.alloc(8), tag=1, ignore=-1)
    )
    assert "as in tag=0x500, ignore=0xff" in failure(lambda h: h.post_recv(h.alloc(8), ignore=1))
    assert "threshold is a whole number from 0 to 2^64 - 1, not -1" in failure(lambda h: h.portals.ct_wait(0, -1))
    assert "length_bytes is a whole number" in failure(lambda h: h.alloc(2**70))
    assert "compute(ns=inf)" in failure(lambda h: h.compute(ns=float("inf")))
    assert "compute(ns=1e+300)" in failure(lambda h: h.compute(ns=1e300))


def test_a_forgotten_await() -> None:
    async def forgets(host: nicety.Host) -> None:
        host.send(host.alloc(8), to=1)

    async def goes_on(host: nicety.Host) -> None:
        host.compute(ns=1)
        await host.barrier()

    async def later(host: nicety.Host) -> float:
        call = host.compute(ns=1)
        await host.compute(ns=2)
        await call
        return host.now_ns

    cluster = nicety.Cluster(2, "spin-discrete")
    with pytest.raises(nicety.InputError, match=r"rank 0: host.send\(...\) at .*test_cluster.py:\d+ was never awaited"):
        cluster.run({0: forgets})
    with pytest.raises(nicety.InputError, match=r"write await host.compute\(...\)"):
        cluster.run({0: goes_on})
    assert cluster.run({0: later}).results == {0: 3.0}


@pytest.mark.skipif(sys.platform != "linux", reason="limits of addresses are read where Linux has them")
@pytest.mark.parametrize("nodes", [200_000, 1_000_000, 4_000_000_000])
def test_a_cluster_beyond_the_machines_memory_is_refused(nodes: int) -> None:
    """It reports this before it has taken much, with any limit; here the limit is one of addresses."""
    program = (
        "import nicety, re, resource\n"
        "from pathlib import Path\n"
        "resource.setrlimit(resource.RLIMIT_AS, (1500 << 20, 1500 << 20))\n"
        "try:\n"
        f"    nicety.Cluster({nodes}, 'spin-discrete', topology='fat-tree:36')\n"
        "except nicety.InputError as error:\n"
        "    print(error)\n"
        # The peak of resource.getrusage includes that of the parent.
        "print(re.search(r'VmHWM:\\s+(\\d+) kB', Path('/proc/self/status').read_text())[1])\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300, check=True)
    text, used = done.stdout.splitlines()
    assert text.startswith(f"{nodes} hosts with spin-discrete need "), done.stdout
    assert " GiB of this machine's memory at the start, but it has " in text
    assert int(used) < 1 << 20


@pytest.mark.skipif(sys.platform != "linux", reason="what a process takes is read where Linux tells it")
def test_a_large_cluster_says_what_it_takes_before_it_has_taken_it() -> None:
    program = "import nicety; nicety.Cluster(150_000, 'spin-discrete', topology='fat-tree:36')"
    with subprocess.Popen([sys.executable, "-c", program], stderr=subprocess.PIPE, text=True) as building:
        assert building.stderr is not None
        line = building.stderr.readline()
        used = Path(f"/proc/{building.pid}/statm").read_text().split()[1]
        building.kill()
    told = re.fullmatch(r"nicety: 150000 hosts with spin-discrete need about (.*) GiB of memory at the start\n", line)
    assert told is not None, line
    # A host takes 14 to 42 KiB. The network, which is built before, has more than half.
    assert 2 < float(told[1]) < 6
    assert int(used) * resource.getpagesize() < 0.7 * float(told[1]) * 2**30


@pytest.mark.parametrize("card", ["spin-discrete", "qnix", "nfp-4000"])
def test_the_end_of_time_is_an_error_like_others(card: str) -> None:
    """A program that asks for more time than there is may catch the error; a thread that waits for a CPU gets it,
    too."""

    async def asks(host: nicety.Host) -> str:
        try:
            for _ in range(3):
                await host.compute(ns=1e16)
        except nicety.RunError as error:
            return str(error)
        return "no end"

    text = "compute, at 10000000 s: for 10000000 s; virtual time ends after 2^64 ps (213 days), before this would end"
    assert nicety.Cluster(2, card).run(asks).results == {0: text, 1: text}

    async def long(host: nicety.Host) -> None:
        await host.compute(ns=1e16)

    async def waits(host: nicety.Host) -> None:
        await host.gather(*(long(host) for _ in range(40)))

    with pytest.raises(nicety.RunError, match="virtual time ends after"):
        nicety.Cluster(2, card).run(waits)


@pytest.mark.parametrize(
    "value", ["host.post=18446744 s", "bus.latency=18446744 s", "link.gap=1000000000 us/B", "hpu.clock=1 Hz"]
)
def test_values_of_a_card_that_come_to_the_end_of_time(value: str) -> None:
    with contextlib.suppress(nicety.RunError, nicety.InputError):
        nicety.run_benchmark("latency", nics="spin-discrete", sizes=[8, 5000], iterations=2, overrides=value)
