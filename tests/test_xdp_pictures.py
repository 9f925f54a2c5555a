"""Pictures of XDP programs on cards: all cards are drawn or named, and drops are drops on each of them."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from nicety.bench.line_rate import check_line_rate
from nicety.bench.line_rate_pictures import line_rate_figure
from nicety.build.xdp import compile_xdp

FIFTH = """
#include <xdp.h>
struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, __u32);
} seen SEC(".maps");
SEC("xdp") int fifth(struct xdp_md *context) {
    __u32 key = 0;
    __u32 *count = bpf_map_lookup_elem(&seen, &key);
    return count && __sync_fetch_and_add(count, 1) % 5 == 0 ? XDP_PASS : XDP_DROP;
}
"""
TRAFFIC = "udp dport=53 size=60 packets=500 rate=2Mpps"


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("pictures")
    (folder / "fifth.c").write_text(FIFTH)
    compile_xdp(folder / "fifth.c", output=folder / "fifth.o")
    return check_line_rate(
        folder / "fifth.o", nics=["spin-100g", "pspin", "ethernet-100g", "hxdp-sume"], traffic=[TRAFFIC]
    )


def test_drops_of_a_program_are_drops_on_every_card(report: Any) -> None:
    counts = {row["nic"]: (row["traffic"]["passed"], row["traffic"]["dropped_by_handler"]) for row in report["rows"]}
    assert counts == {"spin-100g": (100, 400), "pspin": (100, 400)}


def test_a_picture_has_every_place_of_a_program(report: Any, tmp_path: Path) -> None:
    figure = line_rate_figure(report)
    first, _, dispositions, rates = figure.axes
    names = [text.get_text().split("\n")[0] for text in dispositions.get_yticklabels()]
    assert names == ["spin-100g", "pspin", "ethernet-100g, host driver", "hxdp-sume, eBPF core"]
    legend = dispositions.get_legend()
    assert legend is not None
    texts = [text.get_text() for text in legend.get_texts()]
    shares = "\n".join(["passed", *(f"{name}: 20.0%" for name in names)])
    assert texts == [shares, shares.replace("passed", "dropped by handlers").replace("20.0", "80.0")]
    assert [text.get_text().split(",")[0] for text in rates.get_yticklabels()] == [
        each["nic"] for each in report["places"]
    ]
    notes = " ".join(text.get_text().replace("\n", " ") for text in first.texts)
    assert "handler time and utilisation without ethernet-100g (host driver), hxdp-sume (eBPF core)" in notes
    figure.savefig(tmp_path / "picture.png")
    # No percentage of a bar covers that of the next one.
    boxes = sorted((text.get_window_extent() for text in figure.axes[1].texts), key=lambda box: box.y0)
    assert all(below.y1 - above.y0 < 1 for below, above in pairwise(boxes))
