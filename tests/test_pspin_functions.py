"""Handlers written for PsPIN: one per function of its headers, one with registers alone, and the places of packets."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import nicety
from test_pspin import program, read_words, run, words

HEADER = b"".join(
    [
        bytes([0x54, 0x21]),  # version 4, ihl 5; tos
        (200).to_bytes(2, "little"),
        (301).to_bytes(2, "little"),
        (402).to_bytes(2, "little"),
        bytes([64, 17]),
        (503).to_bytes(2, "little"),
        (0x0A000001).to_bytes(4, "little"),
        (0x0A000002).to_bytes(4, "little"),
        (1111).to_bytes(2, "little"),
        (2222).to_bytes(2, "little"),
        (8 + 36).to_bytes(2, "little"),
        (3333).to_bytes(2, "little"),
    ]
)
PACKET = HEADER + bytes(range(100, 136))

# The body of a handler, with `out` for its results in words, `packet`, `host` and `command`; and the results. Host
# memory begins with the bytes 0 to 7.
FUNCTIONS: dict[str, tuple[str, list[int]]] = {
    "spin_send_packet": ("out[0] = spin_send_packet(packet, 64, &command); out[1] = command < 4;", [0, 1]),
    "spin_rdma_put": ("out[0] = spin_rdma_put(0, packet, 64, &command);", [0]),
    "spin_dma_to_host": (
        (
            "out[0] = spin_dma_to_host(host + 512, (uint32_t)packet + 28, 4, false, &command); spin_cmd_wait(command);"
            "out[1] = spin_dma_from_host(host + 512, (uint32_t)(out + 2), 4, false, &command); spin_cmd_wait(command);"
        ),
        [0, 0, 0x67666564],
    ),
    "spin_dma_from_host": (
        "out[0] = spin_dma_from_host(host, (uint32_t)(out + 1), 8, true, &command); spin_cmd_wait(command);",
        [0, 0x03020100, 0x07060504],
    ),
    "spin_write_to_host": (
        (
            "out[0] = spin_write_to_host(host + 600, 0x1122334455667788, &command); spin_cmd_wait(command);"
            "spin_dma_from_host(host + 600, (uint32_t)(out + 1), 8, false, &command); spin_cmd_wait(command);"
        ),
        [0, 0x55667788, 0x11223344],
    ),
    "spin_host_write": (
        (
            "out[0] = spin_host_write(host + 600, 7, &command); spin_cmd_wait(command);"
            "spin_dma_from_host(host + 600, (uint32_t)(out + 1), 8, false, &command); spin_cmd_wait(command);"
        ),
        [0, 7, 0],
    ),
    "spin_cmd_wait": ("spin_send_packet(packet, 64, &command); out[0] = spin_cmd_wait(command);", [0]),
    "spin_cmd_test": (
        (
            "bool done = true; spin_send_packet(packet, 64, &command); out[0] = spin_cmd_test(command, &done);"
            " out[1] = done;"
            "while (!done) out[0] |= spin_cmd_test(command, &done); out[2] = done;"
        ),
        [0, 0, 1],
    ),
    "spin_dma": (
        "spin_dma_t copy; out[0] = spin_dma(packet + 28, out + 1, 8, 1, 0, &copy); spin_dma_wait(copy);",
        [0, 0x67666564, 0x6B6A6968],
    ),
    "spin_dma_wait": ("spin_dma_t copy; spin_dma(packet, out + 1, 4, 1, 0, &copy); out[0] = spin_dma_wait(copy);", [0]),
    "spin_dma_test": (
        (
            "spin_dma_t copy; uint32_t done; spin_dma(out + 64, out + 2048, 4096, 1, 0, &copy);"
            "out[0] = spin_dma_test(copy, &done); out[1] = done; spin_dma_wait(copy); spin_dma_test(copy, &done);"
            "out[2] = done;"
        ),
        [0, 0, 1],
    ),
    "spin_lock_init": ("spin_lock_t lock = 5; out[0] = spin_lock_init(&lock); out[1] = lock;", [0, 0]),
    "spin_lock_try_lock": (
        (
            "spin_lock_t lock; spin_lock_init(&lock); out[0] = spin_lock_try_lock(&lock); out[1] ="
            " spin_lock_try_lock(&lock);"
        ),
        [1, 0],
    ),
    "spin_lock_lock": (
        (
            "spin_lock_t lock; spin_lock_init(&lock); out[0] = spin_lock_lock(&lock); out[1] ="
            " spin_lock_try_lock(&lock);"
        ),
        [0, 0],
    ),
    "spin_lock_unlock": (
        (
            "spin_lock_t lock; spin_lock_init(&lock); spin_lock_lock(&lock); out[0] = spin_lock_unlock(&lock);"
            "out[1] = spin_lock_try_lock(&lock);"
        ),
        [0, 1],
    ),
    "spin_rw_lock_r_lock": (
        (
            "spin_rw_lock_t lock = {0, 0}; out[0] = spin_rw_lock_r_lock(&lock); out[1] = spin_rw_lock_r_lock(&lock);"
            "out[2] = lock.glock; out[3] = lock.num_readers;"
        ),
        [0, 0, 1, 2],
    ),
    "spin_rw_lock_r_unlock": (
        (
            "spin_rw_lock_t lock; spin_rw_lock_init(&lock); spin_rw_lock_r_lock(&lock); out[0] ="
            " spin_rw_lock_r_unlock(&lock);"
            "out[1] = lock.glock; out[2] = lock.num_readers; out[3] = spin_rw_lock_w_lock(&lock);"
        ),
        [0, 0, 0, 0],
    ),
    "spin_rw_lock_w_lock": ("spin_rw_lock_t lock; spin_rw_lock_init(&lock); out[0] = spin_rw_lock_w_lock(&lock);", [0]),
    "spin_rw_lock_w_unlock": (
        (
            "spin_rw_lock_t lock; spin_rw_lock_init(&lock); spin_rw_lock_w_lock(&lock); out[0] ="
            " spin_rw_lock_w_unlock(&lock);"
            "out[1] = spin_rw_lock_r_lock(&lock);"
        ),
        [0, 0],
    ),
    "amo_add": ("volatile int32_t at = 12; out[0] = amo_add(&at, 5); out[1] = at;", [12, 17]),
    "amo_store": ("volatile uint32_t at = 12; amo_store(&at, 5); out[0] = at;", [5]),
    "amo_swap": ("volatile uint32_t at = 12; out[0] = amo_swap(&at, 5); out[1] = at;", [12, 5]),
    "amo_and": ("volatile uint32_t at = 12; out[0] = amo_and(&at, 5); out[1] = at;", [12, 4]),
    "amo_or": ("volatile uint32_t at = 12; out[0] = amo_or(&at, 5); out[1] = at;", [12, 13]),
    "amo_xor": ("volatile uint32_t at = 12; out[0] = amo_xor(&at, 5); out[1] = at;", [12, 9]),
    "amo_min": ("volatile int32_t at = 12; out[0] = amo_min(&at, -5); out[1] = at;", [12, 2**32 - 5]),
    "amo_max": ("volatile int32_t at = 12; out[0] = amo_max(&at, -5); out[1] = at;", [12, 12]),
    "amo_minu": ("volatile uint32_t at = 12; out[0] = amo_minu(&at, -5); out[1] = at;", [12, 12]),
    "amo_maxu": ("volatile uint32_t at = 12; out[0] = amo_maxu(&at, -5); out[1] = at;", [12, 2**32 - 5]),
    "load_reserved": ("volatile uint32_t at = 12; out[0] = load_reserved(&at);", [12]),
    "store_conditional": (
        (
            "volatile uint32_t at = 12; load_reserved(&at); out[0] = store_conditional(&at, 13); out[1] = at;"
            "out[2] = store_conditional(&at, 14); out[3] = at;"
        ),
        [0, 13, 1, 13],
    ),
    "compare_and_swap": (
        (
            "volatile uint32_t at = 12; out[0] = compare_and_swap(&at, 12, 13); out[1] = compare_and_swap(&at,"
            " 12, 14); out[2] = at;"
        ),
        [0, 2**32 - 1, 13],
    ),
    "GET_IP_UDP_PLD": (
        (
            "uint8_t *payload; uint32_t length; GET_IP_UDP_PLD(packet, payload, length); out[0] = length; out[1]"
            " = payload[0];"
            "out[2] = payload - packet;"
        ),
        [200 - 28, 100, 28],
    ),
    "FAST_MOD": ("volatile uint32_t a = 13; out[0] = FAST_MOD(a, 8);", [5]),
    "MIN": ("volatile int a = -3; out[0] = MIN(a, 4); out[1] = MIN(4, a);", [2**32 - 3, 2**32 - 3]),
    "MAX": ("volatile int a = -3; out[0] = MAX(a, 4); out[1] = MAX(4, a);", [4, 4]),
    "ip_hdr_t": (
        (
            "ip_hdr_t *ip = (ip_hdr_t *)packet; out[0] = ip->version; out[1] = ip->ihl; out[2] = ip->tos; out[3]"
            " = ip->length;"
            "out[4] = ip->identification; out[5] = ip->offset; out[6] = ip->ttl; out[7] = ip->protocol; out[8] ="
            " ip->checksum;"
            "out[9] = ip->source_id; out[10] = ip->dest_id;"
        ),
        [4, 5, 0x21, 200, 301, 402, 64, 17, 503, 0x0A000001, 0x0A000002],
    ),
    "udp_hdr_t": (
        (
            "udp_hdr_t *udp = &((pkt_hdr_t *)packet)->udp_hdr; out[0] = udp->src_port; out[1] = udp->dst_port;"
            "out[2] = udp->length; out[3] = udp->checksum;"
        ),
        [1111, 2222, 44, 3333],
    ),
    "pkt_hdr_t": (
        "pkt_hdr_t *p = (pkt_hdr_t *)packet; out[0] = p->ip_hdr.source_id; out[1] = sizeof(*p);",
        [0x0A000001, 28],
    ),
    "task_t": (
        (
            "out[0] = (uint32_t)task->handler_mem; out[1] = task->handler_mem_size; out[2] = task->pkt_mem_size;"
            "out[3] = (uint32_t)task->scratchpad[1]; out[4] = task->scratchpad_size[2]; out[5] = task->host_mem_high;"
            "out[6] = task->host_mem_size; out[7] = task->home_cluster_id; out[8] = task->flow_id; out[9] ="
            " (uint32_t)task;"
            "out[10] = (uint32_t)task->l2_pkt_mem; out[11] = sizeof(task_t); out[12] = task->host_mem_low != 0;"
        ),
        [0x1C000000, 64, 64, 0x10414000, 944 << 10, 0, 4096, 0, 0, 0x1B205008, 0x1C400000, 72, 1],
    ),
    "task_t ignores stores": (
        (
            "uint32_t *words = (uint32_t *)task->scratchpad; task->flow_id = 3; out[0] = MMIO_READ(HWSCHED_FLOW_ID);"
            "out[1] = amo_add((volatile int32_t *)&words[1], 5); out[2] = words[1]; out[3] = amo_swap(&words[5], 1);"
            "out[4] = words[5]; load_reserved(&words[0]); out[5] = store_conditional(&words[0], 9); out[6] = words[0];"
        ),
        [0, 0x10414000, 0x10414000, 944 << 10, 944 << 10, 0, 0x10014000],
    ),
    "task_t parts": (
        (
            "out[0] = *(volatile uint16_t *)&task->scratchpad[1]; out[1] = *(volatile uint8_t *)&task->pkt_mem_size;"
            "out[2] = task->host_mem_size >= 65536; out[3] = ((volatile uint16_t *)&task->scratchpad[1])[1];"
        ),
        [0x4000, 64, 0, 0x1041],
    ),
    "handler_args_t": ("out[0] = args->hpu_gid; out[1] = args->cluster_id; out[2] = args->hpu_id;", [0, 0, 0]),
    "futex": (
        (
            "futex_t futex = 7; futex_init(&futex); out[0] = futex; out[1] = futex_try_lock(&futex); out[2] ="
            " futex_try_lock(&futex); futex_unlock(&futex); out[3] = futex; out[4] = futex_lock(&futex);"
            "futex_unlock(&futex); out[5] = futex_lock_s(&futex); out[6] = futex;"
        ),
        [0, 1, 0, 0, 1, 1, 1],
    ),
    "spin_dma of no bytes": (
        "spin_dma_t copy = 9; out[0] = spin_dma(packet, out, 0, 1, 0, &copy); out[1] = copy;",
        [1, 9],
    ),
    "spin__": (
        (
            "out[0] = spin__memcpy_nonblk(packet + 28, out + 2, 4); spin__wait_for_tf_completion(out[0]);"
            "out[1] = spin__tf_completed(out[0]); spin__memcpy(packet + 32, out + 3, 4);"
        ),
        [1, 1, 0x67666564, 0x6B6A6968],
    ),
    "axidma__": (
        (
            "axidma__dma_conf_t *dma = (axidma__dma_conf_t *)(PRIVATE_DMA_BASE); axidma__clear_seg_addr(dma);"
            "out[0] = axidma__launch_oned(dma, out + 64, out + 2048, 4096); out[1] = axidma__read_completed_id(dma);"
            "out[2] = dma->config; out[3] = axidma__memcpy_nonblk(dma, packet + 28, out + 6, 4);"
            "axidma__wait_for_tf_completion(dma, out[3]); out[4] = axidma__tf_completed(dma, out[3]);"
            "out[5] = dma->config;"
        ),
        [1, 0, 0x10001, 2, 1, 1, 0x67666564],
    ),
    "hwsched": (
        (
            "out[0] = MMIO_READ(HWSCHED_PKT_ADDR) == (uint32_t)packet; out[1] = MMIO_READ(HWSCHED_PKT_SIZE);"
            "out[2] = MMIO_READ(HWSCHED_SCRATCHPAD_1_ADDR); out[3] = MMIO_READ(HWSCHED_SCRATCHPAD_3_SIZE);"
            "out[4] = MMIO_READ(HWSCHED_HOST_MEM_SIZE); out[5] = MMIO_READ(HWSCHED_HOST_L2_PKT_ADDR);"
            "out[6] = MMIO_READ(HWSCHED_HANDLER_MEM_ADDR); out[7] = MMIO_READ(HWSCHED_HANDLER_MEM_SIZE);"
            "out[8] = MMIO_READ(HWSCHED_HOME_CLUSTER_ID); out[9] = MMIO_READ(HWSCHED_FLOW_ID);"
        ),
        [1, 64, 0x10414000, 944 << 10, 4096, 0x1C400000, 0x1C000000, 64, 0, 0],
    ),
    "pspin_rt": ("out[0] = rt_core_id(); out[1] = rt_cluster_id(); out[2] = ECALL_PSPIN_HANDLER_EXIT;", [0, 0, 10]),
    "macros": (
        (
            "out[0] = ALIGN_UP(13, MEM_ALIGNMENT); out[1] = DMA_MAX_XFER_SIZE; out[2] = DMA_NULL; out[3] = AND(6, 3);"
            "out[4] = PKT_SIZE; out[5] = PacketQueueLength; out[6] = sizeof(struct task) + sizeof(struct handler_args);"
            "out[7] = sizeof(struct ip_hdr) + sizeof(struct udp_hdr) + sizeof(struct pkt_hdr); LABEL(here);"
            "asm_mem_fence(); TRACING_DUMMY_INSTR(); uint32_t sp; read_register(sp, sp); out[8] = sp >> 28;"
        ),
        [16, 32768, 0, 2, 1024, 4194292, 88, 56, 1],
    ),
    "spin_conf": ("out[0] = NUM_CLUSTERS; out[1] = NUM_HPUS; out[2] = NUM_CLUSTER_HPUS;", [4, 32, 8]),
}

BODY = """
__handler__ void f(handler_args_t *args) {
    task_t *task = args->task;
    uint8_t *packet = task->pkt_mem;
    uint32_t *out = task->scratchpad[args->cluster_id];
    uint64_t host = (uint64_t)task->host_mem_high << 32 | task->host_mem_low;
    spin_cmd_t command;
    (void)packet; (void)host;
    %s
    spin_dma_to_host(host + 1024, (uint32_t)out, 64, false, &command);
    spin_cmd_wait(command);
}
"""


def test_a_pause_takes_its_cycles(tmp_path: Path) -> None:
    """A round of the loop takes 4 cycles: 1 for the sum and 3 for the taken branch; the last branch takes 1."""
    text = "".join(
        f'__asm__ volatile("csrr %0, cycle" : "=r"(from)); rt_time_wait_cycles({cycles});'
        f'__asm__ volatile("csrr %0, cycle" : "=r"(to)); out[{at}] = to - from;'
        for at, cycles in enumerate((32, 4, 100))
    )
    loop = f"uint32_t from, to; for (volatile int round = 0; round < 3; round++) {{ {text} }}"
    _, _, memory = run(program(tmp_path, BODY % loop), PACKET)
    took = read_words(memory[1024:], 3)
    # 8 and 25 rounds less 2 cycles, 3 instructions before them, and those of the measurement.
    assert 8 * 4 - 2 + 3 <= took[0] <= 8 * 4 - 2 + 3 + 5
    assert took[1] <= 8
    assert 25 * 4 - 2 + 3 <= took[2] <= 25 * 4 - 2 + 3 + 5


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_does_what_it_says(tmp_path: Path, name: str) -> None:
    text, expected = FUNCTIONS[name]
    _, answer, memory = run(program(tmp_path, BODY % text), PACKET)
    assert read_words(memory[1024:], len(expected)) == expected
    if name in ("spin_send_packet", "spin_rdma_put", "spin_cmd_wait"):
        assert answer == PACKET


def test_printf_prints(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    run(program(tmp_path, BODY % 'out[0] = printf("%d %s %x\\n", -5, "text", 255);'), PACKET)
    assert "HPU 0] -5 text ff" in capfd.readouterr().err


def test_registers_at_the_documented_addresses(tmp_path: Path) -> None:
    """A handler without a header for commands: numbers are those of PsPIN's hardware interface."""
    source = tmp_path / "registers.c"
    source.write_text("""
#include <stdint.h>
#define AT(address) (*(volatile uint32_t *)(address))
static uint32_t issue(uint32_t kind) { AT(0x1B20508C) = kind; return AT(0x1B205080); }
static void until_done(uint32_t handle) {
    AT(0x1B205088) = handle;
    while (!AT(0x1B205088)) {}
}
__attribute__((used)) void packet(void *args) {
    uint32_t *task = *(uint32_t **)args, at = task[2], bytes = task[3], low = task[13], high = task[12];
    /* A raw packet back. */
    AT(0x1B205090) = 0; AT(0x1B205094) = 0; AT(0x1B205098) = at; AT(0x1B20509C) = 0; AT(0x1B2050A0) = bytes;
    AT(0x1B205084) = issue(1 << 1);
    /* The first 8 bytes of the packet to the host, and with an event back behind it. */
    AT(0x1B205090) = low + 1024; AT(0x1B205094) = high; AT(0x1B205098) = at; AT(0x1B20509C) = 8; AT(0x1B2050A0) = 1;
    until_done(issue(0 << 1 | 1));
    AT(0x1B205098) = at + 16; AT(0x1B2050A0) = 0;
    AT(0x1B205084) = issue(0 << 1);
    /* 8 bytes out of registers. */
    AT(0x1B205090) = low + 1032; AT(0x1B205094) = high; AT(0x1B205098) = (8 << 1) | 1;
    AT(0x1B20509C) = *(uint32_t *)(at + 16); AT(0x1B2050A0) = *(uint32_t *)(at + 20);
    AT(0x1B205084) = issue(2 << 1);
}
void init_handlers(void **hh, void **ph, void **th, void **memory) {
    *hh = 0; *ph = (void *)packet; *th = 0; *memory = 0;
}
""")
    sent = bytes(range(64))
    _, answer, memory = run(nicety.Handlers(source), sent)
    assert answer == sent
    assert memory[1024:1040] == sent[:8] * 2


SLOTS = """
__handler__ void f(handler_args_t *args) {
    task_t *task = args->task;
    uint32_t number = *(uint32_t *)task->pkt_mem;
    uint32_t *out = (uint32_t *)task->scratchpad[args->cluster_id] + 8 * number;
    out[0] = (uint32_t)task->pkt_mem;
    out[1] = (uint32_t)task->l2_pkt_mem;
    out[2] = args->cluster_id;
    out[3] = *(uint32_t *)((uint8_t *)task->l2_pkt_mem + task->pkt_mem_size - 4);
    for (volatile int i = 0; i < 200; i++) {}
    spin_cmd_t command;
    spin_dma_to_host(task->host_mem_low + 16 * number, (uint32_t)out, 16, false, &command);
}
"""


# Long enough for all handlers to end before the receiver looks at its memory.
LATER = "barrier.latency=1ms"


def packets(count: int, size: int) -> bytes:
    return b"".join(words(number) + bytes(size - 8) + words(1000 + number) for number in range(count))


def test_packets_lie_in_slots(tmp_path: Path) -> None:
    """Of 100 bytes each, so in two slots of 64 bytes: the 20 of a cluster one after the other, and likewise in L2."""
    _, _, memory = run(program(tmp_path, SLOTS), packets(24, 100), "packet.payload=100B")
    found = [read_words(memory[16 * number :], 4) for number in range(24)]
    assert [row[0] for row in found[:20]] == [0x10004000 + 128 * number for number in range(20)]
    assert [row[1] for row in found] == [0x1C400000 + 128 * number for number in range(24)]
    # Those without room in the first cluster are in the memory of the others.
    assert [row[2] for row in found[:20]] == [0] * 20
    for pkt_mem, _, cluster, last in found:
        assert 0x10004000 + (cluster << 22) <= pkt_mem < 0x10014000 + (cluster << 22)
        assert 1000 <= last < 1024
    assert {row[2] for row in found[20:]} - {0}


def test_a_slot_is_used_again(tmp_path: Path) -> None:
    """Packets that arrive one by one are at the place of the first one."""
    _, _, memory = run(program(tmp_path, SLOTS), packets(5, 100), "packet.payload=100B", "link.gap=100000ps/B", LATER)
    assert [read_words(memory[16 * number :], 2) for number in range(5)] == [[0x10004000, 0x1C400000]] * 5


def test_a_full_buffer_holds_packets_back(tmp_path: Path) -> None:
    """If a cluster has room for one packet, its handlers run one at a time; if L2 has, all of them do."""

    def most(*overrides: str) -> tuple[int, set[int]]:
        found, _, memory = run(program(tmp_path, SLOTS), packets(12, 100), "packet.payload=100B", LATER, *overrides)
        starts, ends = found.handler_runs.column("start_ps"), found.handler_runs.column("end_ps")
        at_once = [sum(begin <= at < end for begin, end in zip(starts, ends, strict=True)) for at in starts]
        return max(at_once), {read_words(memory[16 * number :], 1)[0] for number in range(12)}

    assert most()[0] == 8
    ring, home = "hpu.packets.cluster_rings=1", "hpu.packets.cluster_queue=0"
    assert most("hpu.packets.cluster_buffer=256B", ring, home) == (2, {0x10004000, 0x10004080})
    assert most("hpu.packets.cluster_buffer=128B", ring, home) == (1, {0x10004000})
    # A cluster in which two packets wait for slots takes no further one; the others do.
    assert most("hpu.packets.cluster_buffer=128B", ring) == (4, {0x10004000 + (4 << 20) * at for at in range(4)})
    assert most("hpu.packets.buffer=128B") == (1, {0x10004000})


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (
            "hpu.packets.cluster_buffer=1KiB",
            "1024 bytes have no room for the longest packet, of 2048 bytes (packet.payload)",
        ),
        ("hpu.packets.buffer=1000B", "1000 bytes do not divide into slots of 64 bytes"),
        ("hpu.packets.cluster_buffer=128KiB", "131072 bytes: the memory map of PsPIN has room for 65536 bytes"),
        ("hpu.packets.slot=48B", "do not divide into slots of 48 bytes"),
        ("hpu.packets.cluster_rings=5", "65536 bytes do not divide into 5 rings of whole slots of 64 bytes"),
        ("hpu.packets.cluster_buffer=4KiB", "a ring of 1024 bytes has no room for the longest packet, of 2048 bytes"),
    ],
)
def test_buffers_that_cannot_be_are_refused(nicety: Callable, value: str, text: str) -> None:
    refused = nicety("specs", "show", "pspin", "--set", value)
    assert refused.status == 2, refused.stderr
    assert text in " ".join(refused.stderr.split())


def test_a_core_has_so_many_protection_entries(nicety: Callable, tmp_path: Path) -> None:
    handlers = program(tmp_path, BODY % "out[0] = 1;").paths()[0]
    command = ("bench", "handlers", str(handlers), "--nic", "pspin", "--packet-sizes", "64", "--messages", "1")
    assert nicety(*command, "--set", "hpu.protection=10").status == 0
    refused = nicety(*command, "--set", "hpu.protection=9")
    assert refused.status == 2
    assert (
        "a handler takes 10 protection entries of a core (stack, registers, packet in L1, packet in L2,"
        in refused.stderr
    )
    assert "and hpu.protection is 9; write --set hpu.protection=10" in refused.stderr
    # Two clusters fewer, two scratchpads fewer.
    fewer = nicety(*command, "--set", "hpu.protection=8", "--set", "hpu.cores=16")
    assert fewer.status == 0, fewer.stderr
