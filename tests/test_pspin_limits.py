"""Limits of PsPIN's commands under load, on the card `pspin`: their effect on runs, by cycle."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

import nicety
from nicety.build.compiler import library_source

PT, BITS = 1, 5
ONE_CORE = ("hpu.cores=1", "memory.cluster=1")
ONE_CLUSTER = ("hpu.cores=8",)

NAMES = """
void init_handlers(handler_fn *hh, handler_fn *ph, handler_fn *th, void **handler_mem_ptr) {
    *hh = NULL;
    *ph = f;
    *th = NULL;
    *handler_mem_ptr = NULL;
}
"""


def program(folder: Path, body: str) -> nicety.Handlers:
    source = folder / "mine.c"
    source.write_text("#include <handler.h>\n#include <pspin.h>\n" + body + NAMES)
    return nicety.Handlers(source)


def run(
    handlers: nicety.Handlers, packets: int, size: int, *overrides: str, memory: int = 1 << 16
) -> tuple[list[int], nicety.Run, bytes]:
    """Packets of `size` bytes, a beat per cycle: the cycles of their feedbacks, the run, and the sender's answers."""
    cluster = nicety.Cluster(2, "pspin", set=[f"packet.payload={size}B", *overrides], recording="packets")
    length = packets * size
    memory = max(memory, length)
    got: dict[str, bytes] = {}

    async def send(host: nicety.Host) -> None:
        message, answers = host.alloc(length), host.alloc(memory)
        host.portals.pt_alloc(pt=PT)
        await host.portals.me_append(answers, pt=PT, match_bits=BITS, options=["op_put", "event_link_disable"])
        md = host.portals.md_bind(message, options=["event_send_disable"])
        await host.barrier()
        await host.portals.put(md, length, to=1, pt=PT, match_bits=BITS)
        await host.barrier()
        got["answers"] = answers.array.tobytes()

    async def receive(host: nicety.Host) -> None:
        attached = host.portals.attach(handlers)
        host.portals.pt_alloc(pt=PT)
        room, options = host.alloc(memory), ["op_put", "event_link_disable"]
        room.array[:] = np.arange(memory) % 251
        await host.portals.me_append(room, pt=PT, match_bits=BITS, handlers=attached, options=options)
        await host.barrier()
        await host.barrier()

    found = cluster.run({0: send, 1: receive})
    sources, settled = found.packets.column("source"), found.packets.column("settled_ps")
    ours = sorted(at // 1000 for source, at in zip(sources, settled, strict=True) if source == 0)
    return ours, found, got["answers"]


HOST = "uint64_t host = args->task->host_mem_low; uint32_t packet = (uint32_t)args->task->pkt_mem; spin_cmd_t c;"


FETCH_AND_SEND = """
    spin_dma_from_host(host, packet, 1024, 0, &c);
    spin_cmd_wait(c);
    spin_send_packet((void *)packet, 1024, &c);
"""
PUT = """
    spin_dma_from_host(host, 0x10020000, 5000, 0, &c);
    spin_cmd_wait(c);
    spin_rdma_put(0, (void *)0x10020000, 5000, &c);
"""


def handler(commands: str) -> str:
    return f"__handler__ void f(handler_args_t *args) {{ {HOST} (void)packet; (void)host; {commands} }}\n"


@pytest.mark.parametrize(
    ("command", "cycles"),
    [
        # From issue to completion 36 and 37 cycles; in the next one the feedback leaves and the next command is issued.
        ("spin_dma_to_host(host, packet, 1024, 0, &c);", 37),
        ("spin_dma_from_host(host, packet, 1024, 0, &c);", 38),
    ],
)
def test_a_command_waits_for_the_feedback_of_the_last_handler(tmp_path: Path, command: str, cycles: int) -> None:
    def gaps(*changes: str) -> list[int]:
        settled, *_ = run(program(tmp_path, handler(command)), 12, 1024, *ONE_CORE, *changes)
        return [after - before for before, after in pairwise(settled[3:])]

    assert set(gaps()) == {cycles}
    # Otherwise handlers follow one another at the speed of the core.
    assert max(gaps("hpu.commands.feedbacks=0")) < cycles


@pytest.mark.parametrize(
    ("commands", "size", "overrides", "cycles"),
    [
        # 7 places of an engine, each occupied for 3 cycles fewer than a command's duration: 21 to the host, 22 from it.
        ("spin_dma_to_host(host, packet, 64, 0, &c);", 64, (), 18),
        ("spin_dma_from_host(host, packet, 64, 0, &c);", 64, (), 19),
        ("spin_write_to_host(host, 5, &c);", 64, (), 18),
        # One read channel: 16 beats to the host and 16 that are sent, of each of 7 packets.
        (
            "spin_dma_to_host(host, packet, 1024, 0, &c); spin_send_packet((void *)packet, 1024, &c);",
            1024,
            (),
            7 * 32,
        ),
        # One port of a cluster: 16 beats from the host and 16 that are sent.
        (
            FETCH_AND_SEND,
            1024,
            ONE_CLUSTER,
            7 * 32,
        ),
    ],
)
def test_seven_packets_take_what_their_limit_says(
    tmp_path: Path, commands: str, size: int, overrides: tuple[str, ...], cycles: int
) -> None:
    packets = 230
    settled, *_ = run(program(tmp_path, handler(commands)), packets, size, *overrides)
    groups = (packets - 20) // 7
    took = settled[-1] - settled[-1 - 7 * groups]
    # The maximum difference is a group of 7 at either end.
    assert groups * cycles - cycles <= took <= 1.1 * groups * cycles, took / groups


def test_one_feedback_leaves_in_a_cycle(tmp_path: Path) -> None:
    # 32 handlers end nearly together: a loop of some cycles until the same time.
    body = """
    __handler__ void f(handler_args_t *args) {
        uint32_t now;
        do __asm__ volatile("csrr %0, time" : "=r"(now)); while (now % 4096 < 4000);
    }
    """
    settled, *_ = run(program(tmp_path, body), 32, 64)
    assert len(settled) == len(set(settled)) == 32
    freely, *_ = run(program(tmp_path, body), 32, 64, "hpu.packets.cluster_queue=0")
    assert len(set(freely)) < 32


def test_a_put_becomes_several_packets(tmp_path: Path) -> None:
    body = handler(PUT)
    _, found, answers = run(program(tmp_path, body), 1, 2048, *ONE_CORE)
    assert answers[:5000] == bytes(at % 251 for at in range(5000))
    packets = found.packets
    lengths = [
        size for source, size in zip(packets.column("source"), packets.column("size_bytes"), strict=True) if source == 1
    ]
    # 2048 less PsPIN's header of 32.
    assert lengths == [2016, 2016, 968]


def test_two_bursts_are_in_flight_from_the_host(tmp_path: Path) -> None:
    body = handler("spin_dma_from_host(host, 0x10020000, 32768, 0, &c);")
    far = "bus.latency=1 us"
    two, *_ = run(program(tmp_path, body), 1, 2048, *ONE_CORE, far)
    many, *_ = run(program(tmp_path, body), 1, 2048, *ONE_CORE, far, "hpu.interconnect.host_bursts=8")
    # 8 bursts of 64 beats, each 2000 cycles there and back. Two at a time: the third is requested when the first has
    # arrived, and so on in turn.
    assert two[0] - many[0] == 3 * 2064 - 6 * 64


@pytest.mark.parametrize(("port", "cycles"), [("8B", [26, 27, 28, 29]), ("0B", [26, 26, 26, 26])])
def test_cold_starts_in_four_clusters_wait_for_program_memory(tmp_path: Path, port: str, cycles: list[int]) -> None:
    """A line of 16 B occupies the port for two cycles. Clusters request a cycle apart, so that each waits a cycle
    more."""
    handlers = program(tmp_path, "__handler__ void f(handler_args_t *args) { (void)args; }")
    changes = ["packet.payload=64B", "link.gap=1ps/B", "host.post=0 ns", f"memory.instructions.port={port}"]
    cluster = nicety.Cluster(2, "pspin", set=changes, recording="packets")

    async def send(host: nicety.Host) -> None:
        host.portals.pt_alloc(pt=PT)
        md = host.portals.md_bind(host.alloc(64), options=["event_send_disable"])
        await host.barrier()
        for _ in range(4):
            await host.portals.put(md, 64, to=1, pt=PT, match_bits=BITS)

    async def receive(host: nicety.Host) -> None:
        attached = host.portals.attach(handlers)
        host.portals.pt_alloc(pt=PT)
        room, options = host.alloc(64), ["op_put", "event_link_disable"]
        await host.portals.me_append(room, pt=PT, match_bits=BITS, handlers=attached, options=options)
        await host.barrier()

    runs = cluster.run({0: send, 1: receive}).handler_runs
    starts = [start // 1000 for start in runs.column("start_ps")]
    assert [start - starts[0] for start in starts] == [0, 1, 2, 3]
    assert runs.column("hpu") == [0, 8, 16, 24]
    assert runs.column("cycles") == cycles


@pytest.mark.parametrize(
    ("define", "size", "part", "name", "most_gbps"),
    [
        # Seven writes in each 18 cycles of 1 GHz.
        ("WRITE", 64, "command engine", "writes out of registers to the host", 512 * 7 / 18),
        # The packet is read for the host and for the wire: two cycles for each beat.
        ("STORE_AND_SEND", 1024, "memory channel", "reads of the clusters' L1", 256),
    ],
)
def test_a_verdict_names_the_engine_or_the_channel(
    define: str, size: int, part: str, name: str, most_gbps: float
) -> None:
    handlers = nicety.Handlers(library_source("pspin/saturate.c"), defines=[define])
    (row,) = nicety.check_line_rate(handlers, nics="pspin", packet_sizes=[size], overrides=["bus.latency=0ns"])["rows"]
    assert (row["verdict"], row["bottleneck"]) == ("no", part), row["parts"]
    assert next(each["name"] for each in row["parts"] if each["part"] == part) == name
    sustained = row["capacity_fraction"] * row["line_rate_packets_per_s"] * 8 * size / 1e9
    assert sustained == pytest.approx(most_gbps, rel=0.03)
