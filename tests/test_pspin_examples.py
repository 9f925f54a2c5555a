"""Handlers like PsPIN's and FPsPIN's own: includes, tail handlers, FPsPIN's interface, and the examples of both."""

from __future__ import annotations

import os
import struct
from pathlib import Path
from typing import Any

import pytest

import nicety
from nicety.build.compiler import compile_handlers
from test_pspin import NAMES, program, read_words, run

FPSPIN = ["hpu.interface=fpspin", "hpu.cores=16", "hpu.contexts=16", "hpu.scratchpad=176KiB"]

PSPINS = (
    "handler.h",
    "pspin.h",
    "spin_dma.h",
    "libaxidma.h",
    "util.h",
    "spin_conf.h",
    "packets.h",
    "hwsched.h",
    "pspin_rt.h",
)
FPSPINS = (*PSPINS, "spin_host.h")
USES = """
__handler__ void f(handler_args_t *args) {
    spin_rw_lock_t *lock = args->task->scratchpad[0];
    printf("%d %d\\n", spin_lock_try_lock(&lock->glock), MIN(1, 2));
}
"""


@pytest.mark.parametrize(
    ("interface", "header"), [*(("pspin", name) for name in PSPINS), *(("fpspin", name) for name in FPSPINS)]
)
def test_any_header_may_come_first(
    tmp_path: Path, interface: Any, header: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """And <stdio.h> before or after it, and none of them twice."""
    others = PSPINS if interface == "pspin" else FPSPINS
    for before, behind in (("#include <stdio.h>\n", ""), ("", "#include <stdio.h>\n#include <string.h>\n")):
        rest = "".join(f"#include <{name}>\n" for name in reversed(others))
        source = tmp_path / "mine.c"
        source.write_text(f'{before}#include "{header}"\n{behind}{rest}{USES}' + NAMES % ("NULL, f, NULL", "NULL"))
        compile_handlers([source], interface=interface)
    assert "warning" not in capfd.readouterr().err


@pytest.mark.parametrize("clusters", [1, 2, 3])
def test_a_task_has_its_fields_for_any_number_of_clusters(tmp_path: Path, clusters: int) -> None:
    body = """
    __handler__ void f(handler_args_t *args) {
        uint32_t *out = args->task->scratchpad[0];
        out[0] = sizeof(task_t);
        out[1] = args->task->host_mem_size;
        out[2] = args->task->scratchpad_size[0];
        spin_cmd_t command;
        spin_dma_to_host(args->task->host_mem_low, (uint32_t)out, 12, 0, &command);
    }
    """
    handlers = program(tmp_path, body)
    handlers = nicety.Handlers(handlers.paths()[0], defines=[f"NB_CLUSTERS={clusters}"])
    _, _, memory = run(handlers, bytes(8))
    assert read_words(memory, 3) == [72, 4096, 944 << 10]


def test_five_clusters_are_refused(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    handlers = program(tmp_path, USES)
    with pytest.raises(nicety.InputError):
        compile_handlers(handlers.paths(), defines=["NB_CLUSTERS=5"], interface="pspin")
    assert "a task has the scratchpads of 4 clusters: write NB_CLUSTERS of 4 or fewer" in capfd.readouterr().err


def test_a_variable_of_a_clusters_own_is_refused(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    body = """
    __attribute__((section(".data_tiny_l1"))) volatile int mine = 3;
    __handler__ void f(handler_args_t *args) { mine++; }
    """
    with pytest.raises(nicety.InputError):
        compile_handlers(program(tmp_path, body).paths(), interface="pspin")
    assert "a variable in section .data_tiny_l1" in capfd.readouterr().err


TAIL = """
__handler__ void head(handler_args_t *args) {
    uint32_t *l1 = args->task->pkt_mem, *l2 = args->task->l2_pkt_mem;
    l1[1] = 77;
    l2[2] = 88;
}
__handler__ void packet(handler_args_t *args) {
    uint32_t *l1 = args->task->pkt_mem, *l2 = args->task->l2_pkt_mem, *out = args->task->scratchpad[0];
    out[8 + l1[0]] = l1[1] << 16 | l1[2];
    l1[1] = 55;
    l2[2] = l1[0] + 66;
    out[16 + l1[0]] = (uint32_t)l2;
}
__handler__ void tail(handler_args_t *args) {
    task_t *task = args->task;
    uint32_t *l1 = task->pkt_mem, *l2 = task->l2_pkt_mem, *out = task->scratchpad[0];
    out[0] = task->pkt_mem_size;
    out[1] = l1[0];
    out[2] = l1[1];
    out[3] = l1[2];
    out[4] = l2[2];
    out[5] = out[16 + l1[0]] == (uint32_t)l2;
    spin_cmd_t command;
    spin_dma_to_host(task->host_mem_low, (uint32_t)out, 64, 0, &command);
}
"""


@pytest.mark.parametrize("names", ["NULL, NULL, tail", "head, NULL, tail", "NULL, packet, tail", "head, packet, tail"])
@pytest.mark.parametrize("last_bytes", [12, 40, 64])
def test_the_tail_handler_has_the_last_packet(tmp_path: Path, names: str, last_bytes: int) -> None:
    """The packet in L2: changes of handlers in their copies in L1 are not in it."""
    packets = [struct.pack("<3I", number, 10 + number, 20 + number) + bytes(52) for number in range(4)]
    contents = b"".join(packets)[: 3 * 64 + last_bytes]
    _, _, memory = run(program(tmp_path, TAIL, names=names), contents, "packet.payload=64B")
    size, number, word, changed, in_l2, same = read_words(memory, 6)
    expected = 3 + 66 if "packet" in names else 23
    assert (size, number, word, changed, in_l2) == (last_bytes, 3, 13, expected, expected)
    # It has kept its slots of the packet buffer since its packet handler.
    assert same == ("packet" in names)
    if "packet" in names:
        first = 10 << 16 | (88 if "head" in names else 20)
        assert read_words(memory[32:], 4) == [first, 11 << 16 | 21, 12 << 16 | 22, 13 << 16 | 23]


def test_a_message_of_one_packet_and_of_none(tmp_path: Path) -> None:
    handlers = program(tmp_path, TAIL, names="head, packet, tail")
    _, _, memory = run(handlers, struct.pack("<3I", 0, 1, 2))
    assert read_words(memory, 6) == [12, 0, 1, 66, 66, 1]
    body = """
    __handler__ void tail(handler_args_t *args) {
        spin_cmd_t command;
        uint64_t said = args->task->pkt_mem == NULL && args->task->pkt_mem_size == 0 ? 4711 : 1;
        spin_write_to_host(args->task->host_mem_low, said, &command);
    }
    """
    _, _, memory = run(program(tmp_path, body, names="NULL, NULL, tail"), b"")
    assert read_words(memory, 1) == [4711]


def test_last_packets_give_their_slots_back(tmp_path: Path) -> None:
    """Messages with and without a failure, more than the packet buffer has room for."""
    body = """
    __handler__ void packet(handler_args_t *args) {
        if (*(uint32_t *)args->task->pkt_mem == 1) *(volatile int *)0 = 1;
    }
    __handler__ void tail(handler_args_t *args) { amo_add((volatile int32_t *)args->task->handler_mem, 1); }
    """
    handlers = program(tmp_path, body, names="NULL, packet, tail")
    cluster = nicety.Cluster(2, "pspin", set=["hpu.packets.buffer=256B", "packet.payload=64B"], allow_failures="trap")
    seen = []

    async def main(host: nicety.Host) -> None:
        portals = host.portals
        portals.pt_alloc(pt=1)
        if host.rank == 1:
            state = portals.hpu_alloc(64)
            attached = portals.attach(handlers, state=state)
            room = host.alloc(128)
            await portals.me_append(
                room, pt=1, match_bits=5, handlers=attached, options=["op_put", "event_link_disable"]
            )
            await host.barrier()
            await host.barrier()
            await host.compute(ns=100_000)
            seen.append(struct.unpack("<I", await portals.hpu_read(state, 4))[0])
            return
        message = host.alloc(128)
        md = portals.md_bind(message, options=["event_send_disable"])
        await host.barrier()
        for number in range(40):
            # The first packet fails in every other message, after or before the last one.
            message.array[:4] = [number % 2, 0, 0, 0]
            await portals.put(md, 128, to=1, pt=1, match_bits=5)
            await host.compute(ns=300)
        await host.barrier()

    cluster.run(main)
    assert seen == [20]


def test_packets_of_fpspin_are_frames(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    body = """
    __handler__ void f(handler_args_t *args) {
        const pkt_hdr_t *header = args->task->pkt_mem;
        printf("says %u %u %u.%u %u %x %x %u %u %u %u %x\\n", args->task->pkt_mem_size,
               ntohs(header->eth_hdr.length), header->ip_hdr.version, header->ip_hdr.ihl,
               ntohs(header->ip_hdr.length), ntohl(header->ip_hdr.source_id), ntohl(header->ip_hdr.dest_id),
               ntohs(header->udp_hdr.src_port), ntohs(header->udp_hdr.dst_port),
               ntohs(header->udp_hdr.length), ip_checksum((void *)&header->ip_hdr, 20),
               args->cluster_id == user_cluster_id());
    }
    """
    program(tmp_path, body)
    traffic = "udp src=10.1.2.3 dst=10.4.5.6 sport=7 dport=53 size=100 rate=1Mpps packets=2"
    nicety.check_line_rate(tmp_path / "mine.c", nics="pspin", traffic=traffic, overrides=FPSPIN)
    said = [line.partition("says ")[2] for line in capfd.readouterr().err.splitlines() if "says " in line]
    # The sum over a header with its checksum is zero (RFC 1071).
    assert said == ["100 2048 4.5 86 a010203 a040506 7 53 66 0 1"] * 2


def test_fpspins_cycles_and_counters(tmp_path: Path) -> None:
    body = """
    __handler__ void f(handler_args_t *args) {
        for (volatile int round = 0; round < 3; round++) {
            const uint32_t from = cycles();
            push_counter(&__host_data.counters[2], cycles() - from);
        }
    }
    """
    handlers = program(tmp_path, body)
    cluster = nicety.Cluster(2, "pspin", set=FPSPIN)
    read: list[bytes] = []

    async def main(host: nicety.Host) -> None:
        portals = host.portals
        portals.pt_alloc(pt=1)
        if host.rank == 1:
            attached = portals.attach(handlers)
            shared = portals.hpu_variable(attached, "__host_data")
            assert shared.length_bytes == 256
            await portals.me_append(
                host.alloc(64), pt=1, match_bits=5, handlers=attached, options=["op_put", "event_link_disable"]
            )
            await host.barrier()
            await host.compute(ns=10_000)
            read.append(await portals.hpu_read(shared, 8, offset_bytes=16 * 8 + 2 * 8))
            with pytest.raises(nicety.InputError, match="the program has no variable 'counters'; name one that"):
                portals.hpu_variable(attached, "counters")
            with pytest.raises(nicety.InputError, match="'__host_data' is a variable of a program"):
                portals.hpu_free(shared)
            with pytest.raises(nicety.InputError, match="are not in HPU memory of 256 bytes"):
                await portals.hpu_read(shared, 8, offset_bytes=250)
            return
        md = portals.md_bind(host.alloc(64), options=["event_send_disable"])
        await host.barrier()
        await portals.put(md, 64, to=1, pt=1, match_bits=5)

    cluster.run(main)
    total, count = struct.unpack("<2I", read[0])
    assert count == 3
    # 104 cycles from call to call in FPsPIN's own runs; the first round is cold here.
    assert 3 * 100 <= total <= 3 * 104 + 60


def test_programs_that_fpspin_refuses(tmp_path: Path) -> None:
    source = program(tmp_path, USES).paths()[0]

    def check(*overrides: str) -> None:
        nicety.check_line_rate(source, nics="pspin", packet_sizes=[64], messages=1, overrides=list(overrides))

    with pytest.raises(nicety.InputError, match=r"FPsPIN's card has two clusters.*write hpu.cores = 16 or fewer"):
        check("hpu.interface=fpspin")
    # A call that PsPIN's runtime does not have.
    source.write_text(
        source.read_text().replace(
            "spin_rw_lock_t *lock", '__asm__ volatile("li a7, 1; ecall" ::: "a0", "a7"); spin_rw_lock_t *lock'
        )
    )
    check(*FPSPIN)
    with pytest.raises(nicety.HandlerTrap, match="ecall with a7 = 1, which is no known call"):
        check()


# Options of examples, by program; for `icmp_ping` and `udp_ping` those of their runs without a host.
DEFINES = {"slp_l1": ["VECTOR_LEN=4", "DTYPE=int32_t"], "icmp_ping": ["DO_HOST=0"], "udp_ping": ["DO_HOST=0"]}
# The place at which an example stops, and the reason.
NULL_HANDLE = "outside its memory (a null pointer?), in spin_write_to_host, called in"
STOPS = {
    # Tail handlers that pass false instead of a handle.
    "aggregate_global": NULL_HANDLE,
    "aggregate_and_reduce": NULL_HANDLE,
    "histogram_l1": NULL_HANDLE,
    "reduce_l1": NULL_HANDLE,
    # It writes to 0xdeadbeef in host memory.
    "hostdirect": "its host memory is outside that of the task",
    # Its tail handler waits for an answer of the host.
    "slmp": "still running at its limit",
}
BYTES = 512


def message(name: str, interface: str) -> bytes:
    """Eight packets as in the driver of an example, with headers in the form that its handlers read."""
    made = []
    for number in range(8):
        header = bytes([0x54 if interface == "pspin" else 0x45, 0]) + struct.pack("<H", BYTES) + bytes(24)
        values = [(number * 131 + at * 7) % 1024 for at in range((BYTES - 28) // 4)]
        if name == "ooorb_handlers":
            header = struct.pack("<3I", 0, 10 * number, 10 * number + 9) + bytes(16)
        if name == "slp_l1":
            # For a prediction from 5 vectors of 4 words.
            values[:2] = [2, 5]
        if name in ("slmp", "icmp_ping", "udp_ping"):
            # A frame: its ports, and SLMP's fields after them.
            flags = 0x4000 if number == 0 else 0x8000 if number == 7 else 0
            header = bytes(12) + struct.pack(">HBBH", 0x0800, 0x45, 0, BYTES - 14) + bytes(16)
            header += struct.pack(">HHHH", 1, 2, BYTES - 34, 0) + struct.pack(">HII", flags, 1, number * (BYTES - 52))
            values = [0] * ((BYTES - 52) // 4)
        made.append((header + struct.pack(f"<{len(values)}I", *values)).ljust(BYTES, b"\0"))
    return b"".join(made)


def sources(variable: str, under: str) -> list[Path]:
    folder = os.environ.get(variable)
    if folder is None:
        pytest.skip(f"{variable} names no folder")
    found = sorted(Path(folder, under).glob("*/handlers/*.c"))
    assert found, f"no handlers in {folder}"
    return found


def compile_datatypes(handlers: Path) -> None:
    folders = [handlers.parent / "mpitypes/src/dataloop", handlers / "include", handlers / "uthash/src"]
    heap = sorted((handlers / "umm_malloc/src").glob("*.c"))
    compile_handlers([handlers / "datatypes.c", *heap], include_dirs=folders, interface="fpspin")


@pytest.mark.soak
@pytest.mark.parametrize(
    ("variable", "under", "interface"),
    [
        ("NICETY_PSPIN", "examples", "pspin"),
        ("NICETY_FPSPIN", "fpga/app/pspin/deps/pspin/examples", "fpspin"),
    ],
)
def test_the_examples_of_the_repositories_compile_and_run(variable: str, under: str, interface: Any) -> None:
    """NICETY_PSPIN and NICETY_FPSPIN name folders with spcl/pspin and spcl/FPsPIN."""
    ran = set()
    for source in sources(variable, under):
        name = source.stem
        if name == "datatypes":
            # Its state is made by its host's library.
            compile_datatypes(source.parent)
            continue
        overrides = [*(FPSPIN if interface == "fpspin" else []), f"packet.payload={BYTES}B"]
        if name in STOPS:
            overrides.append("hpu.cycle_limit=100000")
        handlers = nicety.Handlers(source, defines=DEFINES.get(name, []))
        found, _, _ = run(
            handlers, message(name, interface), *overrides, memory=256 << 10, allowed="all", state=bytes(1 << 20)
        )
        stops = [failure.text for failure in found.failures if failure.kind == "trap"]
        assert all(STOPS.get(name, "nowhere") in text for text in stops), (name, stops)
        assert bool(stops) == (name in STOPS), name
        assert len(found.handler_runs.column("hpu")) >= 8, name
        ran.add(name)
    assert len(ran) >= 13
