"""Helpers of XDP programs at their edges: a card's runtime has the results of the interpreter, which are Linux's."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nicety import _native
from test_xdp_cards import built, capture, udp

# The packet has 60 bytes, so that it is too short for a step of 47.
EDGES = """
#include <xdp.h>
struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1024);
    __type(key, __u32);
    __type(value, __s64);
} results SEC(".maps");

static __always_inline void note(__u32 frame, __u32 step, __s64 result) {
    __u32 key = frame % 32 * 32 + step;
    bpf_map_update_elem(&results, &key, &result, BPF_ANY);
}

/* A step at the begin of the packet, and the way back. */
static __always_inline void move(struct xdp_md *context, __u32 frame, __u32 step, int by) {
    __s64 result = bpf_xdp_adjust_head(context, by);
    if (!result) {
        bpf_xdp_adjust_head(context, -by);
    }
    note(frame, step, result * 1000 + (xdp_end(context) - xdp_data(context)));
}

SEC("xdp") int edges(struct xdp_md *context) {
    unsigned char *data = xdp_data(context);
    if (data + 60 > (unsigned char *)xdp_end(context)) {
        return XDP_ABORTED;
    }
    __u32 frame = data[59], seed = *(__u32 *)(data + 54);
    __be32 *header = (void *)(data + 14), old = *(__be32 *)(data + 42), changed = *(__be32 *)(data + 46);
    __be32 zeros[5] = {}, ones[5] = {-1, -1, -1, -1, -1};
    note(frame, 0, bpf_csum_diff(0, 0, header, 20, 0));
    note(frame, 1, bpf_csum_diff(0, 0, header, 20, seed));
    note(frame, 2, bpf_csum_diff(0, 0, zeros, 20, 0));
    note(frame, 3, bpf_csum_diff(0, 0, ones, 20, -1));
    note(frame, 4, bpf_csum_diff(&old, 4, &changed, 4, seed));
    note(frame, 5, bpf_csum_diff(&old, 4, &old, 4, 0));
    note(frame, 6, bpf_csum_diff(zeros, 4, zeros, 4, seed));
    note(frame, 7, bpf_csum_diff(ones, 4, zeros, 4, 0));
    note(frame, 8, bpf_csum_diff(header, 20, zeros, 20, seed));
    note(frame, 9, bpf_csum_diff(header, 20, 0, 0, seed));
    note(frame, 10, bpf_csum_diff(0, 0, header, 16, seed));
    move(context, frame, 16, -20);
    move(context, frame, 17, 20);
    move(context, frame, 18, 0);
    move(context, frame, 19, 46);
    move(context, frame, 20, 47);
    move(context, frame, 21, 2147483647);
    move(context, frame, 22, -2147483647 - 1);
    move(context, frame, 23, -4000);
    if (!bpf_xdp_adjust_meta(context, -8)) {
        move(context, frame, 24, -20);
        move(context, frame, 25, 20);
        move(context, frame, 26, 47);
        move(context, frame, 27, -4000);
    }
    return XDP_DROP;
}
char _license[] SEC("license") = "GPL";
"""


@pytest.mark.parametrize("nic", ["spin-100g", "spin-100g-rv64"])
def test_sums_and_begins_of_packets_are_those_of_the_interpreter(
    nicety: Callable[..., Any], tmp_path: Path, nic: str
) -> None:
    chosen = random.Random(11)
    # Some words are zeros or ones, at which sums of one's complement have two zeros.
    words = [bytes(4), b"\xff" * 4, *(chosen.randbytes(4) for _ in range(6))]
    frames = []
    for at in range(32):
        data = bytearray(udp(chosen.randrange(256), chosen.randrange(65536)))
        data[14:58] = b"".join(chosen.choices(words, k=11))
        data[59] = at
        frames.append(bytes(data))
    traffic, dumped = tmp_path / "traffic.pcap", tmp_path / "results.json"
    traffic.write_bytes(capture(frames))
    program = built(tmp_path, "edges", EDGES)
    result = nicety(
        "bench", "handlers", program, "--nic", nic, "--traffic", f"capture={traffic}", "--dump", f"results={dumped}"
    )
    assert result.status == 0, result.stderr
    asked = {"program": None, "repeat": 1, "cpus": 1, "gap_ns": 1000, "interface": 1, "queue": 0}
    request = json.dumps({**asked, "instructions": None, "maps": []})
    ran = json.loads(_native.xdp_run(program.read_bytes(), request, traffic.read_bytes()))
    expected = ran["maps"]["results"]
    assert len({str(each["value"]) for each in expected}) > 100
    assert json.loads(dumped.read_text()) == expected
