"""Pictures and recordings of XDP programs on cards: all cards are drawn, or named where a file leaves them out."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from nicety.bench.line_rate import check_line_rate
from nicety.bench.places.pictures import line_rate_figure
from nicety.bench.places.xdp_cards import core_words
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
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pictures")
    (folder / "fifth.c").write_text(FIFTH)
    compile_xdp(folder / "fifth.c", output=folder / "fifth.o")
    return folder / "fifth.o"


@pytest.fixture(scope="module")
def report(program: Path) -> Any:
    return check_line_rate(program, nics=["spin-100g", "pspin", "ethernet-100g", "hxdp-sume"], traffic=[TRAFFIC])


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


@pytest.mark.parametrize(
    ("nics", "option", "status", "words"),
    [
        (
            "hxdp-sume",
            "--trace t.pftrace",
            2,
            "an XDP program has no timeline on hxdp-sume; leave it out, or name a card",
        ),
        ("./own.toml", "--trace t.pftrace", 2, "an XDP program has no timeline on own; leave it out, or name"),
        (
            "hxdp-sume",
            "--capture t.pcapng",
            2,
            "an XDP program has no capture on hxdp-sume; leave it out, or name a card",
        ),
        ("./own.toml", "--capture t.pcapng", 0, ""),
        ("hxdp-sume,spin-100g", "--trace t.pftrace", 0, "a timeline of spin-100g only"),
        ("hxdp-sume,spin-100g", "--capture t.pcapng", 0, "a capture of spin-100g only"),
    ],
)
def test_a_recording_names_the_cards_that_it_has(
    program: Path, nicety: Callable[..., Any], tmp_path: Path, nics: str, option: str, status: int, words: str
) -> None:
    (tmp_path / "own.toml").write_text('extends = "ethernet-100g"\nname = "own"\ntitle = "own"\n')
    done = nicety(
        *("bench", "handlers", program, "--nic", nics, "--packet-sizes", "60", "--messages", "100", *option.split())
    )
    assert done.status == status, done.stderr
    assert done.stderr.startswith(f"nicety: {option}: {words}" if words else ""), done.stderr
    assert (tmp_path / option.split()[1]).exists() == (status == 0)


def test_the_latency_of_a_core_names_its_rate(report: Any) -> None:
    (row,) = report["ebpf_cores"]
    words = " ".join(core_words([row]))
    assert "At 2.00 Mpps, the highest rate at which none of 500 frames is lost, its latency, with the time in" in words
    (lossy,) = core_words([{**row, "lossless_pps": None, "lost": 300}])[1:2]
    assert "At the offered 2.00 Mpps, with 60.0% of the frames lost, its latency, with the time in the" in lossy
