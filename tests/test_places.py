"""Places that packets occupy in a card until they are done: in clusters, their memories and the packet buffer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import nicety as package
from nicety._generated.types import LineRateRow
from nicety.bench.words.shortfalls import shortfalls

DROPS = """
#include <frame.h>
__handler int frame_handler(const frame_t *frame, void *state) {
    return FRAME_DROP;
}
"""
# Writes its packet to host memory, and ends without waiting for that.
TO_HOST = """
#include <handler.h>
#include <packets.h>
#include <pspin.h>
__handler__ void payload(handler_args_t *args) {
    task_t *task = args->task;
    spin_cmd_t command;
    const uint64_t host = (uint64_t)task->host_mem_high << 32 | task->host_mem_low;
    spin_dma_to_host(host, (uint32_t)task->pkt_mem, task->pkt_mem_size, false, &command);
#ifdef WAITS
    spin_cmd_wait(command);
#endif
}
void init_handlers(handler_fn *hh, handler_fn *ph, handler_fn *th, void **memory) {
    *hh = NULL, *ph = payload, *th = NULL, *memory = NULL;
}
"""


def check(folder: Path, nic: str, text: str, traffic: str, *overrides: str, **more: Any) -> LineRateRow:
    source = folder / "mine.c"
    source.write_text(text)
    (row,) = package.check_line_rate(source, nics=nic, traffic=traffic, overrides=list(overrides), **more)["rows"]
    return row


# Without PsPIN's command limits, which apply before these places, and with slots at any free place.
PLACES_ALONE = (
    "hpu.commands.engine_commands=0",
    "hpu.commands.feedbacks=0",
    "hpu.interconnect.host_bursts=1024",
    "hpu.packets.cluster_queue=0",
    "hpu.packets.cluster_rings=0",
    "hpu.packets.buffer_rings=0",
)


@pytest.mark.parametrize("packets", [4_000, 30_000])
@pytest.mark.parametrize(
    ("key", "overrides", "size", "places", "stay_ns"),
    [
        # A packet of 100 B is there for a copy, 18 ns; its handler, at least 27 ns; a command, 22 ns. Then for the bus
        # and the feedback.
        ("in_flight", ["bus.latency=250ns"], 100, 80, 320),
        # Of 1000 B two are in the packet buffer, and two in the memory of each cluster.
        ("buffer", ["hpu.packets.buffer=2KiB"], 1000, 2, 90),
        ("cluster_buffer", ["hpu.packets.cluster_buffer=2KiB", "bus.latency=250ns"], 1000, 8, 345),
    ],
)
def test_places_of_clusters_that_are_too_few_limit(
    tmp_path: Path, packets: int, key: str, overrides: list[str], size: int, places: int, stay_ns: float
) -> None:
    part, most = "packets in flight" if key == "in_flight" else "packet slots", 1e9 * places / stay_ns

    def at(share: float) -> LineRateRow:
        traffic = f"udp size={size} rate={round(share * most / 1e3)}kpps packets={packets}"
        return check(tmp_path, "pspin", TO_HOST, traffic, *PLACES_ALONE, *overrides)

    row = at(1.3)
    assert (row["verdict"], row["bottleneck"], row["parts"][0]["name"]) == ("no", part, f"hpu.packets.{key}")
    # For any small number of packets: the rest of them waits at the end.
    assert row["capacity_fraction"] == pytest.approx(1 / 1.3, rel=0.1)
    assert f"times as many {'places in clusters' if part == 'packets in flight' else 'slots'}" in shortfalls([row])[0]
    enough = at(1.3 * row["capacity_fraction"] * 0.97)
    assert (enough["verdict"], enough["bottleneck"]) == ("barely", part)


def test_packets_that_pile_up_are_no_yes_whatever_they_wait_for(tmp_path: Path) -> None:
    # 16 message queues, each busy for some 60 ns per packet, so that 250 Mpps get through. The command engines do 389.
    traffic = "udp size=64 rate=370Mpps packets="
    for packets in (1500, 15_000):
        row = check(tmp_path, "pspin", TO_HOST, f"{traffic}{packets}", "hpu.contexts=16")
        assert row["line_rate_fraction"] < 0.9
        assert (row["verdict"], row["bottleneck"]) == ("no", "message contexts")
        others = [part for part in row["parts"] if part["part"] not in ("packet buffer", "message contexts")]
        assert all(part["load"] < 1 for part in others)
        assert "times as many message contexts as there are (hpu.contexts)" in shortfalls([row])[0]
    most = row["capacity_fraction"] * 370
    more = check(tmp_path, "pspin", TO_HOST, f"{traffic}15k", "hpu.contexts=32")
    assert more["capacity_fraction"] * 370 > 1.3 * most
    fits = check(tmp_path, "pspin", TO_HOST, f"udp size=64 rate={0.95 * most:.0f}Mpps packets=15k", "hpu.contexts=16")
    assert fits["verdict"] != "no"
    # If processors are too few, contexts are occupied because of that.
    few = check(tmp_path, "pspin", TO_HOST, f"{traffic}15k", "hpu.cores=8")
    assert few["bottleneck"] in ("handler cores", "packets in flight")


def test_frames_that_wait_for_the_matching_unit_are_in_the_packet_buffer(tmp_path: Path) -> None:
    traffic = "udp size=60 rate=60Mpps packets=20000"
    row = check(tmp_path, "spin-100g", DROPS, traffic, "hpu.match=30ns", lossy=True)
    figures = row["traffic"]
    assert (row["bottleneck"], row["buffer_packets_used"]) == ("matching unit", 256)
    assert figures["dropped_by_overload"] == pytest.approx(20_000 * (1 - 1 / 1.8), rel=0.05)
    # All places are before the matching unit, except for the few with handlers.
    assert figures["latency_ns_p50"] == pytest.approx(256 * 30, rel=0.05)
