"""The card `pspin`, and handlers written for PsPIN."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nicety

PT, BITS = 1, 5

NAMES = """
void init_handlers(handler_fn *hh, handler_fn *ph, handler_fn *th, void **handler_mem_ptr) {
    volatile handler_fn handlers[] = {%s};
    *hh = handlers[0];
    *ph = handlers[1];
    *th = handlers[2];
    *handler_mem_ptr = %s;
}
"""


def program(folder: Path, body: str, names: str = "NULL, f, NULL", memory: str = "NULL") -> nicety.Handlers:
    """A program with these functions."""
    source = folder / "mine.c"
    headers = ("pspin.h", "handler.h", "packets.h", "spin_dma.h", "pspin_rt.h", "util.h", "spin_conf.h")
    includes = "".join(f"#include <{name}>\n" for name in headers)
    source.write_text(includes + body + NAMES % (names, memory))
    return nicety.Handlers(source)


def run(
    handlers: nicety.Handlers,
    contents: bytes,
    *overrides: str,
    memory: int = 4096,
    allowed: Any = (),
    state: bytes = bytes(64),
) -> tuple[nicety.Run, bytes, bytes]:
    """Send a message to handlers: the run, the sender's answers, and the memory of the message at the receiver."""
    cluster = nicety.Cluster(2, "pspin", set=overrides, recording="packets", allow_failures=allowed)
    got: dict[str, bytes] = {}

    async def send(host: nicety.Host) -> None:
        message, answers = host.alloc(len(contents)), host.alloc(len(contents))
        message.array[:] = np.frombuffer(contents, np.uint8)
        host.portals.pt_alloc(pt=PT)
        await host.portals.me_append(answers, pt=PT, match_bits=BITS, options=["op_put", "event_link_disable"])
        md = host.portals.md_bind(message, options=["event_send_disable"])
        await host.barrier()
        await host.portals.put(md, len(contents), to=1, pt=PT, match_bits=BITS)
        await host.barrier()
        got["answers"] = answers.array.tobytes()

    async def receive(host: nicety.Host) -> None:
        attached = host.portals.attach(handlers, state=state)
        host.portals.pt_alloc(pt=PT)
        room, options = host.alloc(memory), ["op_put", "event_link_disable"]
        room.array[:8] = range(8)
        await host.portals.me_append(room, pt=PT, match_bits=BITS, handlers=attached, options=options)
        await host.barrier()
        await host.barrier()
        got["memory"] = room.array.tobytes()

    found = cluster.run({0: send, 1: receive})
    return found, got["answers"], got["memory"]


def words(*values: int) -> bytes:
    return np.array(values, "<u4").tobytes()


def read_words(contents: bytes, count: int) -> list[int]:
    return [int(word) for word in np.frombuffer(contents[: 4 * count], "<u4")]


def test_a_packet_goes_back_with_its_addresses_exchanged() -> None:
    from nicety.build.compiler import library_source

    # A header of six words: the ports are after it.
    packet = bytes([0x64, 0, 64, 0]) + bytes(range(4, 64))
    _, answer, _ = run(nicety.Handlers(library_source("pspin/pingpong.c")), packet * 3, "packet.payload=64B")
    swapped = packet[:12] + packet[16:20] + packet[12:16] + packet[20:24] + packet[26:28] + packet[24:26] + packet[28:]
    assert answer == swapped * 3


def test_fields_of_a_task(tmp_path: Path) -> None:
    body = """
    __handler__ void f(handler_args_t *args) {
        task_t *task = args->task;
        uint32_t *said = (uint32_t *)task->scratchpad[args->cluster_id];
        said[0] = args->hpu_gid;
        said[1] = args->cluster_id;
        said[2] = args->hpu_id;
        said[3] = (uint32_t)task->handler_mem;
        said[4] = task->handler_mem_size;
        said[5] = (uint32_t)task->pkt_mem;
        said[6] = task->pkt_mem_size;
        said[7] = (uint32_t)task->scratchpad[3];
        said[8] = task->scratchpad_size[0];
        said[9] = task->host_mem_size;
        said[10] = (uint32_t)task->l2_pkt_mem;
        said[11] = task->home_cluster_id;
        said[12] = *(uint32_t *)task->pkt_mem;
        said[13] = *(uint32_t *)task->l2_pkt_mem;
        said[14] = *(uint32_t *)task->handler_mem;
        uint64_t host = (uint64_t)task->host_mem_high << 32 | task->host_mem_low;
        spin_cmd_t command;
        spin_dma_to_host(host, (uint32_t)said, 64, 0, &command);
    }
    volatile uint32_t mine[] = {7, 8, 9};
    """
    _, _, said = run(program(tmp_path, body, memory="(void *)mine"), words(1234, 5))
    found = read_words(said, 15)
    assert found[:3] == [0, 0, 0]
    assert found[3:5] == [0x1C000000, 12]
    assert found[5:7] == [0x10004000, 8]
    assert found[7:9] == [0x10C14000, 944 << 10]
    assert found[9] == 4096
    assert 0x1C400000 <= found[10] < 0x1D000000
    assert found[11:] == [0, 1234, 1234, 7]


def test_the_three_handlers_run_in_order_with_a_shared_state(tmp_path: Path) -> None:
    body = """
    typedef struct { int32_t order, heads, packets, tail; } seen_t;
    __handler__ void head(handler_args_t *args) {
        seen_t *seen = args->task->handler_mem;
        seen->heads = seen->order == 0;
        amo_add(&seen->order, 1);
    }
    __handler__ void packet(handler_args_t *args) {
        seen_t *seen = args->task->handler_mem;
        if (seen->order > 0) amo_add(&seen->packets, 1);
        amo_add(&seen->order, 1);
    }
    __handler__ void tail(handler_args_t *args) {
        task_t *task = args->task;
        seen_t *seen = task->handler_mem;
        seen->tail = seen->order + task->pkt_mem_size;
        spin_cmd_t command;
        spin_dma_to_host(task->host_mem_low, (uint32_t)seen, sizeof(seen_t), 0, &command);
        spin_cmd_wait(command);
    }
    """
    handlers = program(tmp_path, body, names="head, packet, tail")
    # The tail handler has the last packet, of 40 bytes.
    _, _, seen = run(handlers, bytes(4 * 64 + 40), "packet.payload=64B")
    assert read_words(seen, 4) == [6, 1, 5, 46]


def test_commands_take_what_the_rtl_takes(tmp_path: Path) -> None:
    body = """
    #define TIMED(at, issue) \\
        __asm__ volatile("csrr %0, cycle" : "=r"(from)); \\
        issue; spin_cmd_wait(command); \\
        __asm__ volatile("csrr %0, cycle" : "=r"(to)); \\
        times[at] = to - from;
    __handler__ void f(handler_args_t *args) {
        task_t *task = args->task;
        uint32_t *times = task->scratchpad[args->cluster_id], from, to;
        uint32_t packet = (uint32_t)task->pkt_mem;
        uint64_t host = task->host_mem_low;
        spin_cmd_t command;
        /* Once to have the code in the instruction cache. */
        for (volatile int round = 0; round < 3; round++) {
            TIMED(0, spin_send_packet((void *)packet, 1024, &command))
            TIMED(1, spin_dma_to_host(host + 1024, packet, 64, 0, &command))
            TIMED(2, spin_dma_to_host(host + 1024, packet, 1024, 0, &command))
            TIMED(3, spin_dma_from_host(host + 1024, packet, 1024, 0, &command))
            TIMED(4, spin_write_to_host(host + 1024, 5, &command))
        }
        spin_dma_to_host(host, (uint32_t)times, 20, 0, &command);
    }
    """
    _, _, memory = run(program(tmp_path, body), bytes(1024))
    found = read_words(memory, 5)
    # The RTL's time from the issue to the completion; the instructions before and after take some more.
    for took, rtl in zip(found, (22, 21, 36, 37, 21), strict=True):
        assert rtl <= took <= rtl + 16, found
    issue = [took - rtl for took, rtl in zip(found, (22, 21, 36, 37, 21), strict=True)]
    assert max(issue) - min(issue) <= 4, "the instructions of a command hardly differ"


def test_bytes_from_the_host_and_out_of_registers(tmp_path: Path) -> None:
    body = """
    __handler__ void f(handler_args_t *args) {
        task_t *task = args->task;
        uint64_t host = task->host_mem_low;
        uint8_t bytes[8] = {0};
        bool done = false;
        spin_cmd_t command;
        spin_dma_from_host(host, (uint32_t)bytes, 8, 1, &command);
        while (!done) spin_cmd_test(command, &done);
        uint64_t value;
        __builtin_memcpy(&value, bytes, 8);
        spin_host_write(host + 8, value + 1, &command);
        spin_cmd_wait(command);
        uint32_t *from = task->pkt_mem, *to = task->scratchpad[1];
        spin_dma_t copy;
        uint32_t copied;
        spin_dma(from, to, 16, 1, 0, &copy);
        spin_dma_test(copy, &copied);
        spin_dma_wait(copy);
        to[4] = copied;
        spin_dma_to_host(host + 16, (uint32_t)to, 20, 0, &command);
    }
    """
    _, _, memory = run(program(tmp_path, body), bytes(range(100, 116)))
    assert memory[8:16] == bytes([1, 1, 2, 3, 4, 5, 6, 7])
    assert memory[16:36] == bytes(range(100, 116)) + bytes(4)


def test_locks_and_atomics_keep_counts_of_all_cores(tmp_path: Path) -> None:
    body = """
    typedef struct {
        spin_lock_t lock;
        spin_rw_lock_t rw;
        int32_t plain, amo;
        uint32_t swapped, read;
    } counts_t;
    __handler__ void f(handler_args_t *args) {
        counts_t *c = args->task->scratchpad[0];
        spin_lock_lock(&c->lock);
        c->plain = c->plain + 1;
        spin_lock_unlock(&c->lock);
        amo_add(&c->amo, 2);
        uint32_t before;
        do before = c->swapped; while (compare_and_swap(&c->swapped, before, before + 3) != 0);
        spin_rw_lock_w_lock(&c->rw);
        c->read++;
        spin_rw_lock_w_unlock(&c->rw);
        spin_rw_lock_r_lock(&c->rw);
        spin_rw_lock_r_unlock(&c->rw);
    }
    __handler__ void tail(handler_args_t *args) {
        counts_t *c = args->task->scratchpad[0];
        spin_cmd_t command;
        spin_dma_to_host(args->task->host_mem_low, (uint32_t)&c->plain, 16, 0, &command);
    }
    """
    handlers = program(tmp_path, body, names="NULL, f, tail")
    found, _, counts = run(handlers, bytes(64 * 64), "packet.payload=64B")
    assert len(set(found.handler_runs.column("hpu"))) > 8, "cores of several clusters"
    assert read_words(counts, 4) == [64, 128, 192, 64]


SAYS = """
    __handler__ void f(handler_args_t *args) {
        const pkt_hdr_t *header = args->task->pkt_mem;
        uint8_t *payload;
        uint32_t length;
        GET_IP_UDP_PLD(args->task->pkt_mem, payload, length);
        printf("says %u %u.%u %u %u %x %x %u %u %u %u %u\\n", args->task->pkt_mem_size, header->ip_hdr.version,
               header->ip_hdr.ihl, header->ip_hdr.length, header->ip_hdr.protocol, header->ip_hdr.source_id,
               header->ip_hdr.dest_id, header->udp_hdr.src_port, header->udp_hdr.dst_port, header->udp_hdr.length,
               length, payload - (uint8_t *)header);
    }
"""


def said(capfd: pytest.CaptureFixture[str]) -> list[str]:
    return [line.partition("says ")[2] for line in capfd.readouterr().err.splitlines() if "says " in line]


def test_packets_of_the_line_rate_check_have_pspins_headers(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    program(tmp_path, SAYS)
    source = tmp_path / "mine.c"

    def check(**options: Any) -> list[str]:
        nicety.check_line_rate(source, nics="pspin", **options)
        return said(capfd)

    equal = check(packet_sizes=[100], messages=1)
    assert set(equal) == {"100 4.5 100 17 c6120001 c6130001 49152 9 80 72 28"}
    made = check(traffic="udp src=10.1.2.3 dst=10.4.5.6 sport=7 dport=53 size=100 rate=1Mpps packets=2")
    assert made == ["100 4.5 100 17 a010203 a040506 7 53 80 72 28"] * 2
    # A frame of Ethernet with a VLAN's tag, padded to 60 bytes.
    capture = tmp_path / "frames.pcap"
    ip = struct.pack(">BBHHHBBHII", 0x45, 0, 36, 9, 0, 64, 17, 0, 0x0A010203, 0x0A040506)
    frame = bytes(12) + struct.pack(">HHH", 0x8100, 5, 0x0800) + ip + struct.pack(">HHHH", 7, 53, 16, 0)
    frame += bytes(60 - len(frame))
    capture.write_bytes(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1))
    with capture.open("ab") as file:
        file.write(struct.pack("<IIII", 1, 2, len(frame), len(frame)) + frame)
    assert check(traffic=f"capture={capture}") == ["36 4.5 36 17 a010203 a040506 7 53 16 8 28"]


def test_printf_and_helpers(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    body = """
    __handler__ void f(handler_args_t *args) {
        uint8_t *payload;
        uint32_t length;
        GET_IP_UDP_PLD(args->task->pkt_mem, payload, length);
        printf("%u bytes, first %u, %u %u %u\\n", length, payload[0], FAST_MOD(13, 8), MIN(3, 4), MAX(3, 4));
    }
    """
    header = bytes([0x54, 0]) + (28 + 36).to_bytes(2, "little") + bytes(24)
    run(program(tmp_path, body), header + bytes([77]) + bytes(35))
    assert "HPU 0] 36 bytes, first 77, 5 3 4" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("line", "error"),
    [
        (
            "*(volatile uint8_t *)&task->flow_id = 1;",
            "store of 1 byte to 0x1b20504c in the task, which has whole words only",
        ),
        (
            "*(volatile int *)0x10100000 = 1;",
            "store of 4 bytes to 0x10100000 outside its memory, 0 bytes past the end of",
        ),
        ("((volatile uint8_t *)task->pkt_mem)[64] = 1;", "0 bytes past the end of the packet (64 bytes at 0x10004000)"),
        ("*(volatile int *)0x1d000000 = 1;", "in program memory, which is read-only"),
        ("spin_send_packet(task->pkt_mem, 65, &c);", "outside its memory, over the end of the packet"),
        (
            "spin_send_packet(task->scratchpad[0], 4096, &c);",
            "spin_send_packet: it is longer than the card's packets (packet.payload); send several packets",
        ),
        ("spin_rdma_put(2, task->pkt_mem, 8, &c);", "spin_rdma_put: its destination is no rank of this network"),
        (
            "spin_dma_to_host(host + 4090, (uint32_t)task->pkt_mem, 8, 0, &c);",
            "spin_dma_to_host: its host memory is outside that of the task (host_mem) and of the handlers",
        ),
        ("spin_dma_from_host(host, 0x1b205008, 8, 0, &c);", "store of 8 bytes to 0x1b205008 in the task"),
        ("spin_cmd_wait(4);", "spin_cmd_wait: there is no such handle; wait for one that a command has given"),
        ("spin_cmd_test(9, &done);", "spin_cmd_test: there is no such handle; test one that a command has given"),
        ("MMIO_WRITE(HWSCHED_DOORBELL + 16, 1);", "an access to the core's registers: there is no such register here"),
        (
            "(void)MMIO_READ(PRIVATE_DMA_BASE + 0x40);",
            "an access to the core's registers: there is no such register here",
        ),
        ("(void)MMIO_READ(HWSCHED_HANDLER_FUN_ADDR);", "a load of the task's register: the runtime waits for tasks"),
        ("MMIO_WRITE(CMD_INFO, 6); (void)MMIO_READ(CMD_ISSUE);", "a command: its kind is unknown"),
        ("amo_add((volatile int32_t *)0x1b205080, 1);", "atomic access to 0x1b205080 in the core's registers"),
        ('while (1) __asm__ volatile("");', "still running at its limit of"),
    ],
)
def test_errors_have_their_line(tmp_path: Path, line: str, error: str) -> None:
    body = f"""
    __handler__ void f(handler_args_t *args) {{
        task_t *task = args->task;
        uint64_t host = task->host_mem_low;
        spin_cmd_t c;
        bool done;
        (void)host; (void)c; (void)done;
        {line}
    }}
    """
    with pytest.raises(nicety.HandlerTrap) as caught:
        run(program(tmp_path, body), bytes(64))
    text = str(caught.value)
    assert error in text
    assert "f at mine.c:15" in text


@pytest.mark.parametrize(
    ("body", "names", "memory", "error"),
    [
        ("", "NULL, NULL, NULL", "NULL", "init_handlers: it names no handler; set at least one"),
        ("", "NULL, (handler_fn)0x1c000000, NULL", "NULL", "sets *ph to 0x1c000000, where there is no code"),
        (
            "void f(handler_args_t *a) {}",
            "NULL, f, NULL",
            "(void *)0x10000000",
            "which is none of the program's variables",
        ),
        (
            "void f(handler_args_t *a) {}",
            "NULL, f, NULL",
            "*(void **)64",
            "(a null pointer?), in init_handlers at mine.c:",
        ),
    ],
)
def test_init_handlers_is_checked(tmp_path: Path, body: str, names: str, memory: str, error: str) -> None:
    with pytest.raises(nicety.InputError) as caught:
        run(program(tmp_path, body, names, memory), bytes(64))
    assert error in str(caught.value)


def test_a_program_for_another_interface_is_refused(nicety: Callable, tmp_path: Path) -> None:
    (tmp_path / "other.c").write_text("__attribute__((used)) int payload_handler(void *p, void *s) { return 0; }\n")
    result = nicety("bench", "handlers", "other.c", "--nic", "pspin")
    assert result.status == 2
    assert (
        "the program has no init_handlers: this card runs handlers written for PsPIN (hpu.interface)" in result.stderr
    )
    result = nicety("cc", "other.c", "--interface", "spin")
    assert (result.status, result.stderr.strip()) == (2, "nicety: --interface spin: write nicety or pspin or fpspin")


def test_bench_handlers_says_whether_they_keep_up(nicety: Callable) -> None:
    from nicety.build.compiler import library_source

    sizes = ["--packet-sizes", "64,1Ki", "--messages", "4"]
    result = nicety("bench", "handlers", str(library_source("pspin/sum.c")), "--nic", "pspin", *sizes, "--json")
    assert (result.status, result.stderr) == (0, "")
    small, large = result.json()["rows"]
    # 80 cycles, and the runtime's 4; at least 1520 cycles.
    assert 84 <= small["cycles_mean"] <= 100
    assert large["cycles_mean"] >= 1524
    assert large["verdict"] == "no"


def test_the_study_has_what_the_rtl_has() -> None:
    from nicety.studies import load_study
    from nicety.studies.measure import run_study

    report, _ = run_study(load_study("pspin"))
    claims = {claim["id"]: claim for claim in report["claims"]}
    went_in = [claim for claim in claims.values() if claim["kind"] != "predicted"]
    assert all(claim["met"] for claim in went_in), [claim["id"] for claim in went_in if not claim["met"]]
    # docs/studies/pspin.md has the reason.
    assert {claim["id"] for claim in claims.values() if claim["met"] is False} == {
        "pingpong-1024-cycles-min",
        "pingpong-1024-cycles-avg",
    }


def test_definitions_of_handler_h_exist(tmp_path: Path) -> None:
    """As in PsPIN's examples; a pointer passed as an address is a warning there."""
    source = tmp_path / "mine.c"
    source.write_text("""#include <handler.h>
#include <packets.h>
#include <spin_conf.h>
    typedef struct { uint32_t counts[NB_CLUSTERS][NB_CORES]; } mine_t;
    __handler__ void packet(handler_args_t *args) {
        task_t *task = args->task;
        uint32_t *memory = task->handler_mem;
        DEBUG_PRINT("packet of %d bytes", (int)task->pkt_mem_size);
        ASSERT(CORE_COUNT == NUM_HPUS);
        *(uint32_t *)task->l2_pkt_mem = memory[FAST_MOD(7u, 4)] + FAST_DIV(8, 2) + DIV_CEIL(5, 2) + MAX(1, 2);
        spin_dma_t copy;
        spin_dma(task->l2_pkt_mem, task->scratchpad[args->cluster_id], 16, SPIN_DMA_EXT2LOC, 0, &copy);
        if (spin_dma_wait(copy) == SPIN_FAIL) return;
        spin_cmd_t done;
        uint64_t host = task->host_mem_high;
        host = (host << 32) | (task->host_mem_low);
        spin_dma_to_host(host, task->l2_pkt_mem, task->pkt_mem_size, 0, &done);
    }
    void init_handlers(handler_fn *hh, handler_fn *ph, handler_fn *th, void **memory) {
        volatile handler_fn handlers[] = {NULL, packet, NULL};
        *hh = handlers[0];
        *ph = handlers[1];
        *th = handlers[2];
    }
    """)
    (row,) = nicety.check_line_rate(source, nics=["pspin"], packet_sizes=[64], messages=4)["rows"]
    assert row["packet_dispositions"]["processed"] == row["packets"]
