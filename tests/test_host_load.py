"""The host in line-rate checks of cards with frames: its load, and frames for which it has no room."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import nicety as package
from nicety._generated.types import LineRateReport, LineRateRow
from nicety.bench.line_rate import line_rate_text
from nicety.bench.places.pictures import line_rate_figure

# To the host, or to the destination in the first bytes of the payload.
TO_HOST = """
#include <frame.h>
__handler int frame_handler(const frame_t *frame, void *state) {
    return FRAME_HOST;
}
"""
TO_ONE_CHANNEL = TO_HOST.replace("FRAME_HOST", "frame->data[37] == 7 ? FRAME_DROP : FRAME_QUEUE(5)")

# By hand, from the spec: the driver takes a frame in 350 instructions and a buffer's 200. The protocols take 1000 and
# 200. Each is a cycle of 3.55 GHz. Interrupts and waits for memory are additional.
FRAME_NS = (350 + 200 + 1000 + 200) / 3.55
# 1500 and 800 instructions of an interrupt, which takes 64 frames if enough of them wait.
INTERRUPT_NS = (1500 + 800) / 64 / 3.55


def report(folder: Path, source: str, **more: Any) -> LineRateReport:
    path = folder / "mine.c"
    path.write_text(source)
    return package.check_line_rate(path, nics="spin-100g", **more)


def check(folder: Path, source: str, **more: Any) -> LineRateRow:
    (row,) = report(folder, source, **more)["rows"]
    return row


def load(row: LineRateRow) -> float:
    (part,) = [part for part in row["parts"] if part["part"] == "host"]
    assert row["loads"]["host"] == part["load"]
    return part["load"]


def test_an_overloaded_host_is_told_however_long_its_rings_hide_it(tmp_path: Path) -> None:
    """One flow is one receive channel, and one CPU takes its frames: a frame every 6.72 ns overloads it."""
    loads, buses = [], []
    for packets in ("1k", "30k", "100k"):
        row = check(tmp_path, TO_HOST, traffic=f"udp size=60 packets={packets}")
        assert (row["verdict"], row["bottleneck"], row["limited_by"]) == ("no", "host", "host")
        assert (row["traffic"]["dropped_at_host"] > 0) is (packets != "1k")
        loads.append(load(row))
        buses.append(row["loads"]["bus_to_host"])
        assert row["capacity_fraction"] == pytest.approx(1 / loads[-1], rel=0.01) or packets != "1k"
        assert row["hpus_needed"] is None
    assert loads == pytest.approx([(FRAME_NS + INTERRUPT_NS) / 6.72] * 3, rel=0.1)
    assert loads == pytest.approx([loads[0]] * 3, rel=0.03)
    # The demand for the bus is also that of all frames.
    assert buses == pytest.approx([buses[0]] * 3, rel=0.03)


def test_many_flows_are_shared_by_the_cpus(tmp_path: Path) -> None:
    """Equal packets are from random sources: 32 channels with rings that have room for all 20000."""
    row = check(tmp_path, TO_HOST, packet_sizes=[60])
    assert (row["verdict"], row["bottleneck"]) == ("no", "host")
    # Of 32 CPUs the one with most frames counts.
    mean = (FRAME_NS + INTERRUPT_NS) / 32 / 6.72
    assert mean < load(row) < 1.3 * mean
    long = check(tmp_path, TO_HOST, packet_sizes=[1500])
    assert (long["verdict"], long["limited_by"]) == ("yes", None)
    assert load(long) < load(row) / 10


@pytest.mark.parametrize(("mpps", "verdict"), [(0.5, "yes"), (1.75, "barely"), (2.5, "no")])
def test_a_host_keeps_up_with_what_its_cpu_can(tmp_path: Path, mpps: float, verdict: str) -> None:
    row = check(tmp_path, TO_HOST, traffic=f"udp size=60 rate={1000 * mpps:.0f}kpps packets=2k")
    assert (row["verdict"], row["bottleneck"]) == (verdict, "host")
    # A ring that is not full has fewer frames taken at a time: 32 per interrupt, or those of 8 us.
    at_a_time = min(32, 8 * mpps)
    assert load(row) >= mpps / 1000 * (FRAME_NS + 64 / max(64, at_a_time) * INTERRUPT_NS)
    assert load(row) == pytest.approx(mpps / 1000 * (FRAME_NS + 64 / at_a_time * INTERRUPT_NS), rel=0.15)


def test_frames_that_stay_away_from_the_host_are_none_of_its_work(tmp_path: Path) -> None:
    row = check(tmp_path, TO_ONE_CHANNEL, traffic="udp dport=7 size=60 packets=1k")
    assert load(row) == 0
    assert row["verdict"] == "yes"
    (part,) = [part for part in row["parts"] if part["part"] == "host"]
    assert (part["name"], part["capacity_fraction"]) == (None, None)
    row = check(tmp_path, TO_ONE_CHANNEL, traffic="udp dport=9 size=60 packets=1k")
    (part,) = [part for part in row["parts"] if part["part"] == "host"]
    assert part["name"] == "CPU 5"


def test_cards_of_messages_have_no_such_part(tmp_path: Path) -> None:
    path = tmp_path / "mine.c"
    path.write_text(
        "#include <nicety.h>\n__handler int header_handler(const ptl_header_t h, void *s) { return PROCEED; }"
    )
    made = package.check_line_rate(path, nics="spin-discrete", packet_sizes=[64])
    assert made["rows"][0]["loads"]["host"] is None
    assert "host" not in {part["part"] for part in made["rows"][0]["parts"]}
    assert "Host" not in line_rate_text(made)


def test_frames_without_room_are_in_the_table_the_text_and_the_picture(tmp_path: Path) -> None:
    made = report(
        tmp_path,
        TO_ONE_CHANNEL,
        traffic=["udp dport=9 size=60 packets=5k", "udp dport=7 size=60 packets=5k"],
        overrides=["link.ports=2"],
    )
    figures = made["rows"][0]["traffic"]
    lost = figures["dropped_at_host"]
    # All but the ring's 1024, and those that the CPU takes in 33.6 us.
    assert 5000 - 1024 - 33_600 / FRAME_NS <= lost <= 5000 - 1024
    assert [port["dropped_at_host"] for port in figures["ports"]] == [lost, 0]
    text = line_rate_text(made)
    head, *table = [
        line.split() for line in text.splitlines() if line.split()[:1] in (["0"], ["1"], ["all"]) or "No room" in line
    ]
    assert "Overload  No room" in text
    assert head[0] == "#"
    assert [(line[2], line[3], line[7]) for line in table] == [
        ("5000", "5000", str(lost)),
        ("5000", "0", "0"),
        ("10000", "5000", str(lost)),
    ]
    words = text.replace("\n# ", " ")
    assert f"the host (CPU 5) needs {load(made['rows'][0]):.2f} x its capacity" in words
    assert f"{lost} frames found no buffer in its rings, and were dropped." in words
    figure = line_rate_figure(made)
    figure.draw_without_rendering()
    labels = [text.get_text() for text in figure.axes[2].get_legend().get_texts()]
    assert labels[-1].startswith("lost: no room in the host")
    # If there was room for all, there is no such column.
    assert "No room" not in line_rate_text(report(tmp_path, TO_HOST, traffic="udp packets=100 rate=100kpps"))


def test_bursts_that_rings_do_not_hold_are_lost_though_the_host_has_time(tmp_path: Path) -> None:
    made = report(tmp_path, TO_HOST, traffic="udp size=60 rate=100kpps arrivals=burst:1500 packets=3k")
    (row,) = made["rows"]
    assert load(row) < 0.2
    assert (row["verdict"], row["bottleneck"]) == ("no", "host")
    lost = row["traffic"]["dropped_at_host"]
    assert row["capacity_fraction"] == pytest.approx(1 - lost / 3000, rel=0.01)
    assert f"{lost} frames found no buffer in its rings" in line_rate_text(made).replace("\n# ", " ")
