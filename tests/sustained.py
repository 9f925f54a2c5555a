"""Handlers that wait for one another, send, miss in caches, or vary. A scan checks their sustainable rates."""

from __future__ import annotations

import random
import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

_FRAME = """#include <frame.h>
#define NOPS(n) for (int i = 0; i < (n); i++) __asm__ volatile("nop")
{before}
__handler int frame_handler(const frame_t *frame, void *state) {{
    uint32_t *words = state;
    const uint32_t hash = frame_load32(frame->data + 26) * 2654435761u;
    (void)words, (void)hash;
    {body}
    return {end};
}}
"""
_PSPIN = """#include <handler.h>
#define NOPS(n) for (int i = 0; i < (n); i++) __asm__ volatile("nop")
uint32_t memory[1024];
{before}
__handler__ void packet(handler_args_t *args) {{
    uint32_t *words = memory;
    const uint32_t hash = ((const uint32_t *)args->task->pkt_mem)[3] * 2654435761u;
    (void)words, (void)hash;
    {body}
}}
void init_handlers(handler_fn *hh, handler_fn *ph, handler_fn *th, void **memory) {{
    *hh = NULL; *ph = packet; *th = NULL; *memory = NULL;
}}
"""


def _exchange(word: str, hold: str) -> str:
    # Without differing pauses one of them may be starved.
    return (
        f"while (__atomic_exchange_n({word}, 1, __ATOMIC_ACQUIRE)) NOPS(4 + (hash >> 27)); {hold}"
        f" __atomic_store_n({word}, 0, __ATOMIC_RELEASE);"
    )


def _take(word: str) -> str:
    """Takes a lock; looks before each further attempt."""
    looks = f"while (__atomic_load_n({word}, __ATOMIC_RELAXED)) {{}}"
    return f"while (__atomic_exchange_n({word}, 1, __ATOMIC_ACQUIRE)) {looks}"


def _looks(word: str, hold: str) -> str:
    return f"{_take(word)} {hold} __atomic_store_n({word}, 0, __ATOMIC_RELEASE);"


def _ticket(word: str, hold: str) -> str:
    return (
        f"const uint32_t own = __atomic_fetch_add({word}, 1, __ATOMIC_RELAXED);"
        f" while (__atomic_load_n({word} + 1, __ATOMIC_ACQUIRE) != own) {{}} {hold}"
        f" __atomic_store_n({word} + 1, own + 1, __ATOMIC_RELEASE);"
    )


def _readers(writes: str, hold: str) -> str:
    """A lock for many readers or one writer: word 0 has the writer, word 1 the number of readers."""
    return f"""if ({writes}) {{
        {_take("&words[0]")}
        while (__atomic_load_n(&words[1], __ATOMIC_ACQUIRE)) {{}}
        {hold}
        __atomic_store_n(&words[0], 0, __ATOMIC_RELEASE);
    }} else {{
        {_take("&words[0]")}
        __atomic_fetch_add(&words[1], 1, __ATOMIC_ACQUIRE);
        __atomic_store_n(&words[0], 0, __ATOMIC_RELEASE);
        {hold}
        __atomic_fetch_sub(&words[1], 1, __ATOMIC_RELEASE);
    }}"""


def _swap(word: str, work: str) -> str:
    """Compare-and-swap until no other handler was faster."""
    return (
        f"uint32_t seen = __atomic_load_n({word}, __ATOMIC_RELAXED), next; do {{ {work} next = seen + 1; }}"
        f" while (!__atomic_compare_exchange_n({word}, &seen, next, 1, __ATOMIC_RELAXED, __ATOMIC_RELAXED));"
    )


def _reserve(word: str) -> str:
    """LR and SC until no other handler was faster."""
    load = f'__asm__ volatile("lr.w %0, (%1)" : "=r"(seen) : "r"({word}) : "memory");'
    store = f'__asm__ volatile("sc.w %0, %1, (%2)" : "=&r"(failed) : "r"(seen + 1), "r"({word}) : "memory");'
    return f"uint32_t seen, failed; do {{ {load} NOPS(4); {store} }} while (failed);"


def _adds(times: int) -> str:
    return f"for (int i = 0; i < {times}; i++) __atomic_fetch_add(&words[0], 1, __ATOMIC_RELAXED);"


def _inside(most: int, work: str) -> str:
    """At most `most` handlers continue at a time; one that may not withdraws its claim."""
    claim = f"__atomic_fetch_add(&words[0], 1, __ATOMIC_ACQUIRE) >= {most}"
    back = "__atomic_fetch_sub(&words[0], 1, __ATOMIC_RELEASE);"
    return f"while ({claim}) {back} {work} {back}"


_BUCKET = "&words[4 * (hash >> 24)]"
_COUNTS = "volatile uint32_t *counts = &words[8]; for (int i = 0; i < {n}; i++) counts[i]++;"
_TOKENS = f"""uint32_t now; __asm__ volatile("csrr %0, time" : "=r"(now));
    uint32_t *bucket = {_BUCKET};
    {_take("&bucket[0]")}
    const int32_t gained = now - bucket[2];
    if (gained > 0) {{ bucket[2] = now; bucket[1] += gained; if (bucket[1] > 65536) bucket[1] = 65536; }}
    const int passes = bucket[1] >= frame->length;
    if (passes) bucket[1] -= frame->length; else bucket[3]++;
    __atomic_store_n(&bucket[0], 0, __ATOMIC_RELEASE);"""
_CACHES = (
    "memory.cache.size=4KiB",
    "memory.cache.load=1",
    "memory.cache.store=1",
    "memory.cache.invalidate=10",
    "memory.cache.transfer=20",
    "memory.l1.cached=true",
)


@dataclass(frozen=True)
class Packets:
    """UDP packets of flows that differ in their source addresses: sizes are bytes of IP, with their weights."""

    flows: int = 1000
    zipf: float = 0.0
    sizes: tuple[int, ...] = (46,)
    weights: tuple[int, ...] = (1,)

    def frames(self, count: int) -> list[bytes]:
        """Ethernet frames, each with a flow and a size by chance; the same ones each time."""
        chance = random.Random(1)
        addresses = [chance.randrange(1 << 24) for _ in range(self.flows)]
        shares = [(rank + 1) ** -self.zipf for rank in range(self.flows)]
        flows = chance.choices(addresses, shares, k=count)
        return [_frame(*of) for of in zip(flows, chance.choices(self.sizes, self.weights, k=count), strict=True)]


def _frame(host: int, size: int) -> bytes:
    """A frame from 10.0.0.0/8 to port 53, without checksums of IP and UDP."""
    udp = struct.pack("!HHHH", 1024 + host % 50_000, 53, size - 20, 0).ljust(size - 20, b"\0")
    ip = struct.pack("!BBHHHBBHII", 0x45, 0, size, 0, 0, 64, 17, 0, 10 << 24 | host, 192 << 24 | 1)
    return bytes.fromhex("020000000002 020000000001 0800") + ip + udp


def write_capture(path: Path, frames: Sequence[bytes], times_ps: Sequence[int]) -> None:
    """A pcapng file of Ethernet frames with times in picoseconds."""

    def block(kind: int, body: bytes) -> bytes:
        size = 12 + len(body)
        return struct.pack("<II", kind, size) + body + struct.pack("<I", size)

    header = block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1))
    resolution = struct.pack("<HHBxxxHH", 9, 1, 12, 0, 0)
    interface = block(1, struct.pack("<HHI", 1, 0, 0) + resolution)
    packets = (
        block(
            6,
            struct.pack("<IIIII", 0, time >> 32, time & 0xFFFFFFFF, len(frame), len(frame))
            + frame.ljust(-(-len(frame) // 4) * 4, b"\0"),
        )
        for frame, time in zip(frames, times_ps, strict=True)
    )
    path.write_bytes(header + interface + b"".join(packets))


@dataclass(frozen=True)
class Case:
    """Handlers on a card, and their packets, without the rate."""

    name: str
    nic: str
    source: str
    packets: Packets = field(default_factory=Packets)
    sets: tuple[str, ...] = field(default=())
    scanned: int = 100
    """Packets of the scan for each place of the buffer. 100: a rate a quarter of a percent too high fills the rest."""
    overflows: bool = False
    """Whether the card sustains less once it has been saturated for a while: the scan's burst overflows the buffer."""

    def __str__(self) -> str:
        return self.name


def _frames(name: str, body: str, end: str = "FRAME_DROP", before: str = "", **more: object) -> Case:
    return Case(f"100g-{name}", "spin-100g", _FRAME.format(body=body, end=end, before=before), **more)  # type: ignore[arg-type]


def _packets(name: str, body: str, before: str = "", **more: object) -> Case:
    # The card's own buffer has 65 536 packets of 64 B, and a rate 1 % too high would take millions to fill it.
    more = {"packets": Packets(sizes=(64,)), "sets": ("hpu.packets.buffer=64KiB",), "scanned": 25, **more}
    return Case(f"pspin-{name}", "pspin", _PSPIN.format(body=body, before=before), **more)  # type: ignore[arg-type]


_ONE = Packets(flows=1)
# The usual mix: 64, 570 and 1518 bytes of Ethernet.
_MIX = Packets(sizes=(46, 552, 1500), weights=(7, 4, 1))
_ZIPF = Packets(zipf=1.3)
_SEND = "spin_cmd_t cmd; spin_send_packet(args->task->pkt_mem, args->task->pkt_mem_size, &cmd); NOPS(40);"
_CALL = "volatile uint32_t *out = &words[16]; for (int i = 0; i < 4; i++) out[i] += hash;"

CASES: tuple[Case, ...] = (
    # One lock for all, held for shorter or longer, by handlers that retry at once and those that look before.
    _frames("exchange", _exchange("&words[0]", _COUNTS.format(n=6))),
    _frames("exchange-short", _exchange("&words[0]", "words[4]++;")),
    _frames("exchange-wire", _exchange("&words[0]", _COUNTS.format(n=2)), "FRAME_WIRE"),
    _frames("looks", _looks("&words[0]", _COUNTS.format(n=6))),
    _frames("looks-wire", _looks("&words[0]", _COUNTS.format(n=6)), "FRAME_WIRE"),
    _frames("looks-long", _looks("&words[0]", "NOPS(60);"), "FRAME_WIRE"),
    _frames("ticket-host", _ticket("&words[0]", "NOPS(400);"), "FRAME_HOST"),
    _frames("ticket", _ticket("&words[0]", _COUNTS.format(n=6))),
    _frames("ticket-wire", _ticket("&words[0]", "NOPS(30);"), "FRAME_WIRE"),
    _frames("ticket-imix", _ticket("&words[0]", "NOPS(frame->length / 8);"), "FRAME_WIRE", packets=_MIX),
    # A lock per flow, with several flows and a busiest one.
    _frames("buckets-one", _TOKENS, "passes ? FRAME_WIRE : FRAME_DROP", packets=_ONE),
    _frames("buckets-zipf", _TOKENS, "passes ? FRAME_WIRE : FRAME_DROP", packets=_ZIPF, scanned=40, overflows=True),
    _frames("buckets-ticket", _ticket(_BUCKET, "NOPS(8);"), "FRAME_WIRE", packets=_ZIPF),
    # Readers and writers.
    _frames("readers", _readers("hash % 16 == 0", "NOPS(20);")),
    _frames("readers-wire", _readers("hash % 4 == 0", "NOPS(10);"), "FRAME_WIRE"),
    _frames("writers", _readers("1", "NOPS(10);")),
    # Two locks, one after the other.
    _frames("two-locks", _looks("&words[0]", "NOPS(8);") + _looks("&words[2]", "NOPS(16);"), "FRAME_WIRE"),
    # Words with retries.
    _frames("swap", _swap("&words[0]", "")),
    _frames("swap-wire", _swap("&words[0]", ""), "FRAME_WIRE"),
    _frames("swap-work", _swap("&words[0]", "NOPS(10);")),
    _frames("swap-flows", _swap(_BUCKET, "NOPS(4);"), "FRAME_WIRE", packets=_ZIPF),
    _frames("reserve", _reserve("&words[0]")),
    _frames("reserve-wire", _reserve("&words[0]"), "FRAME_WIRE"),
    _frames("adds", _adds(20)),
    _frames("adds-wire", _adds(8), "FRAME_WIRE"),
    # Lines that move between caches.
    _frames("caches", "for (int i = 0; i < 8; i++) words[8 * (hash >> 28) + i] += frame->length;", sets=_CACHES),
    _frames("caches-one", "for (int i = 0; i < 8; i++) words[i] += frame->length;", sets=_CACHES),
    _frames("caches-wire", _CALL, "FRAME_WIRE", sets=_CACHES),
    _frames("caches-lock", _looks("&words[0]", _CALL), "FRAME_WIRE", sets=_CACHES),
    # No waits: processors, sends, and a varying time per packet.
    _frames("work", "NOPS(100);"),
    _frames("work-wire", "NOPS(60);", "FRAME_WIRE"),
    _frames("work-imix", "NOPS(frame->length / 2);", "FRAME_WIRE", packets=_MIX),
    # One ring of the host takes 1024 frames, which a rate 1 % too high fills.
    _frames("host", "NOPS(20);", "FRAME_HOST", sets=("receive.channels=1",), scanned=400),
    _frames("some-to-host", "NOPS(80);", "hash % 32 ? FRAME_WIRE : FRAME_HOST"),
    _frames("varies", "NOPS(hash >> 16 & 255);", "FRAME_WIRE"),
    _frames("varies-much", "NOPS(hash % 50 == 0 ? 2000 : 30);"),
    # More than a few concurrent handlers slow each other down.
    _frames("collapse", _inside(12, "NOPS(40);")),
    _frames("collapse-swap", _swap("&words[0]", "NOPS(30);"), "FRAME_WIRE"),
    _packets("exchange", _exchange("&words[0]", "NOPS(10);")),
    _packets("looks", _looks("&words[0]", "NOPS(10);")),
    _packets("ticket", _ticket("&words[0]", "NOPS(10);")),
    _packets("readers", _readers("hash % 16 == 0", "NOPS(20);")),
    _packets("swap", _swap("&words[0]", "")),
    _packets("swap-work", _swap("&words[0]", "NOPS(20);")),
    _packets("reserve", _reserve("&words[0]")),
    _packets("adds", _adds(20)),
    _packets("buckets", _looks(_BUCKET, "NOPS(20);")),
    _packets("work", "NOPS(200);"),
    _packets("varies", "NOPS(hash % 50 == 0 ? 3000 : 60);"),
    _packets("send", _SEND),
)
