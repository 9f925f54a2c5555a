"""Pictures: their contents, and that they are the same each time."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

import nicety as package
from conftest import Result
from nicety._generated.types import Report
from nicety.bench.messages import report_figure
from nicety.bench.places.pictures import line_rate_figure
from nicety.shared.ranges import format_size
from nicety.show.axes import deviation_axis, empty_figure, new_figure, save, size_axis, time_unit, value_axis
from nicety.show.bars import stacked_bars, stages_figure
from nicety.show.timelines import timeline_figure
from nicety.studies.score.cards_text import card_figure
from test_recording import ping_pong

LATENCY = ["bench", "latency", "--nic", "spin-discrete,spin-integrated", "--mode", "rdma,portals4"]


@pytest.fixture(scope="module")
def report() -> Report:
    return package.run_benchmark(
        "latency", nics=["spin-discrete", "spin-integrated"], modes=["rdma", "portals4"], sizes=[8, 512, 4096, 1 << 20]
    )


def test_a_line_for_each_card_and_mode(report: Report) -> None:
    figure = report_figure(report)
    (axes,) = figure.axes
    lines = [line for line in axes.get_lines() if line.get_label() != "_below"]
    labels = [line.get_label() for line in lines]
    assert labels == [f"spin-{card}, {mode}" for card in ("discrete", "integrated") for mode in ("rdma", "portals4")]
    # Distinguished without colour, by their markers, and by colour and line if modes or cards are compared.
    assert len({line.get_marker() for line in lines}) == 4
    legend = axes.get_legend()
    assert legend is not None
    handles = legend.get_lines()
    assert [handle.get_color() for handle in handles] == [line.get_color() for line in lines]
    assert len({(handle.get_color(), handle.get_linestyle()) for handle in handles}) == 4
    assert list(lines[0].get_xdata()) == [8, 512, 4096, 1 << 20]
    assert lines[0].get_ydata()[0] == pytest.approx(0.693685)
    assert axes.get_xlabel() == "Message size (B)"
    assert axes.get_ylabel() == "Latency (µs)"
    figure.draw_without_rendering()
    assert [text.get_text() for text in axes.get_xticklabels()] == ["8", "512", "4Ki", "1Mi"]
    assert all("^" not in text.get_text() for text in axes.get_yticklabels())


@pytest.mark.parametrize(
    ("size", "text"),
    [(0, "0"), (8, "8"), (1000, "1000"), (1536, "1536"), (65536, "64Ki"), (4 << 20, "4Mi"), (2 << 30, "2Gi")],
)
def test_sizes_are_readable(size: int, text: str) -> None:
    assert format_size(size) == text


@pytest.mark.parametrize("sizes", [[0, 1, 2], [0], [8], [7, 9, 1000], list(range(1, 40))])
def test_any_sizes_can_be_drawn(sizes: list[int], tmp_path: Path) -> None:
    report = package.run_benchmark("message-rate", nics=["spin-discrete"], modes=["rdma"], sizes=sizes, window=2)
    figure = report_figure(report)
    figure.draw_without_rendering()
    (axes,) = figure.axes
    ticks = [text.get_text() for text in axes.get_xticklabels()]
    assert 1 <= len(ticks) <= 11
    assert axes.get_ylabel() == "Message rate (10⁶ messages/s)"
    save(figure, tmp_path / "p.png")


@pytest.mark.parametrize("noise", [None, "1ms,25us,rank=1"])
@pytest.mark.parametrize("pattern", ["pair", "bidirectional", "incast:4"])
@pytest.mark.parametrize("benchmark", ["latency", "bandwidth", "message-rate"])
def test_no_text_lies_on_another(benchmark: Any, pattern: str, noise: str | None) -> None:
    if benchmark == "latency" and pattern == "incast:4":
        pattern = "incast:1"
    report = package.run_benchmark(
        benchmark, nics=["spin-discrete"], sizes=[8, 4096], iterations=2, pattern=pattern, noise=noise
    )
    figure = report_figure(report)
    figure.draw_without_rendering()
    (axes,) = figure.axes
    circumstances = [text.get_text() for text in axes.texts]
    usual = pattern == "pair" and noise is None
    assert len(circumstances) == (0 if usual else 1)
    assert all(part in circumstances[0] for part in (pattern, noise) if part not in (None, "pair"))
    legend = axes.get_legend()
    assert legend is not None
    assert axes.get_title(loc="left")
    texts = [axes._left_title, *axes.texts, legend, axes.xaxis.label, axes.yaxis.label]  # type: ignore[attr-defined]
    texts += [tick for tick in (*axes.get_xticklabels(), *axes.get_yticklabels()) if tick.get_text()]
    boxes = [text.get_window_extent() for text in texts]
    for one, other in combinations(boxes[:5] if not usual else boxes[:4], 2):
        assert not one.overlaps(other)
    for box in boxes[:5]:
        assert figure.bbox.x0 <= box.x0 < box.x1 <= figure.bbox.x1
        assert figure.bbox.y0 <= box.y0 < box.y1 <= figure.bbox.y1
    assert not any(legend.get_window_extent().overlaps(box) for box in boxes if box is not boxes[texts.index(legend)])


def test_lines_on_top_of_each_other_are_all_seen() -> None:
    sizes = [8 << power for power in range(6)]
    report = package.run_benchmark("bandwidth", nics=["spin-discrete"], sizes=sizes, iterations=2)
    for row in report["rows"]:
        # Three equal modes, and one that differs except for the largest size.
        apart = row["mode"] == "rdma" and row["size_bytes"] < sizes[-1]
        row["bandwidth_bytes_per_s"] = row["size_bytes"] * (1e6 if apart else 2e6)
    (axes,) = report_figure(report).axes
    # A curve below others is wider, and so are its markers there.
    larger = [line for line in axes.get_lines() if line.get_label() == "_below"]
    ends = [(line.get_color(), line.get_markersize(), list(line.get_xdata())) for line in larger]
    rdma, portals4, store, stream = (line.get_color() for line in axes.get_lines() if line not in larger)
    assert ends == [
        (rdma, 12.5, sizes[-1:]),
        (portals4, 10.0, sizes),
        (store, 7.5, sizes),
    ]
    widths = [tuple(round(width, 3) for width in each.get_linewidth()) for each in axes.collections]
    assert widths == [(1.3,), (4.9,), (3.1,), (1.3,)]
    assert stream not in {colour for colour, _, _ in ends}
    assert {tuple(dashes is None for _, dashes in each.get_linestyle()) for each in axes.collections} == {(True,)}


def test_cards_of_one_mode_have_colours_and_markers_of_their_own() -> None:
    report = package.run_benchmark("latency", nics=["spin-discrete", "spin-integrated"], modes=["rdma"], sizes=[8, 64])
    lines = report_figure(report).axes[0].get_lines()
    assert len({line.get_color() for line in lines}) == 2
    assert len({line.get_marker() for line in lines}) == 2


@pytest.mark.parametrize(
    ("values", "ticks"),
    [
        ([693.0, 1450.0], [0, 250, 500, 750, 1000, 1250, 1500]),
        ([0.183, 21.3], [0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50]),
        ([0.05, 49.9], [0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50]),
        ([1.0, 100_000.0], [1, 10, 100, 1000, 10_000, 100_000]),
        ([0.0], [0, 0.2, 0.4, 0.6, 0.8, 1]),
    ],
)
def test_an_axis_ends_with_a_tick(values: list[float], ticks: list[float]) -> None:
    _, axes = empty_figure(5, 4)
    value_axis(axes, values, "Latency (ns)")
    assert list(axes.get_yticks()) == pytest.approx(ticks)
    assert axes.get_ylim() == pytest.approx((ticks[0], ticks[-1]))


def test_the_first_and_the_last_size_are_named() -> None:
    _, axes = empty_figure(7, 4)
    size_axis(axes, [1 << power for power in range(11)] + [1500])
    assert list(axes.get_xticks()) == [*(1 << power for power in range(10)), 1500]


@pytest.mark.parametrize(
    ("most_ns", "unit"), [(9_999, (1, "ns")), (1e4, (1e3, "µs")), (1e7, (1e6, "ms")), (2e10, (1e9, "s"))]
)
def test_times_are_in_readable_units(most_ns: float, unit: tuple[float, str]) -> None:
    assert time_unit(most_ns) == unit


def test_percentiles_are_drawn(nicety: Callable[..., Result], tmp_path: Path) -> None:
    report = package.run_benchmark(
        "latency", nics="spin-discrete", modes="rdma", sizes=[8, 64], iterations=30, noise="10us,1us"
    )
    row = report["rows"][0]
    assert row["min_ns"] < row["p99_ns"]
    axes = report_figure(report, percentiles=True).axes[0]
    thin, thick = (collection.get_segments()[0] for collection in axes.collections[1:3])
    assert [tuple(end) for end in thin] == [(8, row["min_ns"]), (8, row["max_ns"])]
    assert [tuple(end) for end in thick] == [(8, row["p50_ns"]), (8, row["p99_ns"])]
    assert "thick: median to p99" in axes.texts[0].get_text()
    rates = package.run_benchmark("bandwidth", nics="spin-discrete", modes="rdma", sizes=[4096], noise="10us,1us")
    (point,) = (rates["rows"][0],)
    axes = report_figure(rates, percentiles=True).axes[0]
    low, high = (end[1] for end in axes.collections[1].get_segments()[0])
    assert low <= point["bandwidth_bytes_per_s"] / 1e9 <= high
    assert high == pytest.approx(point["window"] * 4096 / point["min_ns"])
    pictures = []
    for option in ([], ["--percentiles"], ["--breakdown"]):
        arguments = ["--noise", "10us,1us", "--iterations", "20", "--sizes", "8", "--plot", "p.png"]
        done = nicety("bench", "latency", "--nic", "spin-discrete", "--mode", "rdma", *arguments, *option)
        assert done.status == 0, done.stderr
        pictures.append((tmp_path / "p.png").read_bytes())
    assert len(set(pictures)) == 3


def test_stages_are_bars_that_add_up() -> None:
    report = package.run_benchmark(
        "latency", nics="spin-discrete", modes=["rdma", "portals4"], sizes=[1 << power for power in range(3, 15)]
    )
    figure = stages_figure(report)
    # At most nine sizes, including the first and the last.
    titles = [axes.get_title(loc="left") for axes in figure.axes]
    assert titles[0] == "8 B (ns)"
    assert titles[-1] == "16 KiB (ns)"
    assert len(titles) <= 9
    ends: dict[float, float] = {}
    for bar in figure.axes[0].patches:
        y, x, width = (getattr(bar, f"get_{part}")() for part in ("y", "x", "width"))
        ends[y] = max(ends.get(y, 0.0), x + width)
    assert list(ends.values()) == pytest.approx([row["latency_ns"] for row in report["rows"] if row["size_bytes"] == 8])


@pytest.mark.parametrize("count", [3, 40])
def test_the_legend_names_every_part_within_the_picture(count: int) -> None:
    bars = {f"card {at}": {f"transmit descriptors {at + part}": 1.0 for part in range(count)} for at in range(2)}
    figure = stacked_bars({"8 B": bars}, title="title")
    figure.draw_without_rendering()
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == [f"transmit descriptors {at}" for at in range(count + 1)]
    whole, box = figure.bbox, legend.get_window_extent()
    assert whole.x0 <= box.x0 < box.x1 <= whole.x1
    assert whole.y0 <= box.y0 < box.y1 <= whole.y1
    assert all(axes.get_window_extent().height > 0.3 * figure.dpi for axes in figure.axes)
    looks = {(bar.get_facecolor(), bar.get_hatch()) for bar in figure.axes[0].patches}
    assert len(looks) == count + 1


def test_a_short_bar_is_seen_beside_a_long_one() -> None:
    bars = {"qnix": {"dma": 385_000.0}, "spin": {"post": 1_000.0, "link": 1_000.0}, "nfp": {"dma": 60_000.0}}
    figure = stacked_bars({"64 KiB": bars}, title="title")
    groups = [[label.get_text() for label in axes.get_yticklabels()] for axes in figure.axes]
    assert groups == [["qnix", "nfp"], ["spin"]]
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["64 KiB (µs)", "64 KiB (ns)"]
    figure.draw_without_rendering()
    for axes in figure.axes:
        ends = [bar.get_window_extent().x1 - axes.bbox.x0 for bar in axes.patches]
        assert max(ends) > 0.8 * axes.bbox.width


def test_ticks_of_axes_side_by_side_do_not_touch() -> None:
    figure = new_figure(2.6 + 4.6 * 3, 4.4)
    for at in range(3):
        axes = figure.add_subplot(1, 3, at + 1)
        size_axis(axes, [16 << power for power in range(15)])
    figure.draw_without_rendering()
    for axes in figure.axes:
        boxes = [text.get_window_extent() for text in axes.get_xticklabels()]
        assert len(boxes) > 3
        assert not any(one.overlaps(other) for one, other in combinations(boxes, 2))


HANDLER = """#include <nicety.h>
__handler int payload_handler(const ptl_payload_t p, void *state) { return SUCCESS; }
"""


def test_two_cards_with_one_traffic_have_bars_of_their_own(tmp_path: Path) -> None:
    (tmp_path / "small.c").write_text(HANDLER)
    nics, traffic = ["spin-discrete", "spin-integrated"], "udp size=64 rate=10Mpps packets=200"
    report = package.check_line_rate(tmp_path / "small.c", nics=nics, traffic=traffic)
    first, second, _ = line_rate_figure(report).axes
    assert first.get_title(loc="left") == "small.c: handler time per packet, and its budget"
    assert traffic in first.texts[0].get_text()
    names = [label.get_text() for label in second.get_yticklabels()]
    legend = second.get_legend()
    assert legend is not None
    assert [text.get_text().partition(",")[0] for text in legend.get_texts()] == nics
    bars = {(round(bar.get_y() + bar.get_height() / 2, 3)): bar for bar in second.patches}
    assert len(bars) == 2 * len(names), "no bar lies on another"
    assert len({bar.get_facecolor() for bar in bars.values()}) == 2
    widths = {name: [bars[y].get_width() for y in sorted(bars) if round(y) == at] for at, name in enumerate(names)}
    for number, row in enumerate(report["rows"]):
        for part in row["parts"]:
            if 100 * part["load"] >= 0.1:
                assert widths[part["part"]][number] == pytest.approx(100 * part["load"])
            else:
                assert part["part"] not in names


@pytest.mark.parametrize("ending", ["svg", "png", "pdf"])
def test_the_same_picture_is_the_same_file(report: Report, tmp_path: Path, ending: str) -> None:
    for name in ("a", "b"):
        save(report_figure(report), tmp_path / f"{name}.{ending}")
    a, b = ((tmp_path / f"{name}.{ending}").read_bytes() for name in ("a", "b"))
    assert a == b
    starts = {"svg": b"<?xml", "png": b"\x89PNG", "pdf": b"%PDF"}
    assert a.startswith(starts[ending])


def test_the_command_line_draws(nicety: Callable[..., Result], tmp_path: Path) -> None:
    done = nicety(*LATENCY, "--sizes", "8:64", "--plot", "latency.svg")
    assert done.status == 0, done.stderr
    assert "# Size" in done.stdout
    assert ET.parse(tmp_path / "latency.svg").getroot().tag.endswith("svg")


def test_a_run_draws_its_timeline_and_breakdown(tmp_path: Path) -> None:
    run = ping_pong("everything")
    timeline = run.plot(tmp_path / "timeline.svg")
    labels = [text.get_text() for text in timeline.axes[0].get_yticklabels()]
    assert labels[:3] == ["node 0: program", "node 0: host CPU", "node 0: bus to card"]
    assert "node 1: matching" in labels
    assert timeline.axes[0].get_xlabel().startswith("Virtual time (ns, from 20")
    breakdown = run.plot(kind="breakdown")
    assert [text.get_text() for text in breakdown.axes[0].get_yticklabels()] == [
        "post",
        "bus",
        "link",
        "match",
        "deposit",
    ]
    assert ping_pong().plot(tmp_path / "b.png").axes[0].get_title(loc="left").startswith("Where the time of 2 messages")
    assert (tmp_path / "timeline.svg").exists()
    assert (tmp_path / "b.png").exists()


def test_transfers_at_once_are_no_engines() -> None:
    spans = {"node": [0] * 3, "resource": ["DMA"] * 3, "unit": [0, 1, 2], "start_ps": [0, 1, 2], "end_ps": [9, 9, 9]}
    figure = timeline_figure(package._native.Table(list(spans.items())))
    labels = [text.get_text() for text in figure.axes[0].get_yticklabels()]
    assert labels == ["node 0: DMA", "node 0: DMA, also in flight (1)", "node 0: DMA, also in flight (2)"]


def test_impossible_pictures_are_refused() -> None:
    with pytest.raises(package.InputError, match="a picture's name ends with"):
        ping_pong().plot("picture.gif")
    with pytest.raises(package.InputError, match="recording='everything'"):
        ping_pong().plot(kind="timeline")
    with pytest.raises(package.InputError, match="cannot write it"):
        ping_pong().plot("no/p.png")
    many = [("node", [0] * 70), ("resource", ["HPU"] * 70), ("unit", list(range(70))), ("start_ps", [0] * 70)]
    with pytest.raises(package.InputError, match=r"70 uses of 70 resources are too many for a picture"):
        timeline_figure(package._native.Table([*many, ("end_ps", [1] * 70)]))


def test_the_parts_of_bars_are_in_the_order_in_which_each_has_them() -> None:
    short = {"post": 1.0, "link": 2.0, "notice": 1.0}
    figure = stacked_bars({"8 B": {"rdma": short, "spin": {"post": 1.0, "fetch": 3.0, **short}}}, title="")
    (legend,) = figure.legends or [figure.axes[0].get_legend()]
    assert [text.get_text() for text in legend.get_texts()] == ["post", "fetch", "link", "notice"]


@pytest.mark.parametrize(
    ("values", "label", "ticks"),
    [
        ([-1.0, 0.5, 5.9], "Deviation (%)", ["-1", "0", "1", "2", "3", "4", "5", "6"]),
        ([-40.0, 80.0], "Deviation (%)", ["-40", "-20", "0", "20", "40", "60", "80"]),
        (
            [0.0, -3.0, 640.0],
            "Deviation (%) (log scale beyond 1 %)",
            ["-3", "-1", "0", "1", "3", "10", "30", "100", "300"],
        ),
        ([-150.0, 640.0], "Deviation (%) (log scale beyond 1 %)", ["-100", "-10", "-1", "0", "1", "10", "100"]),
        ([0.0], "Deviation (%)", ["0"]),
    ],
)
def test_an_axis_of_deviations_has_ticks_up_to_its_ends(values: list[float], label: str, ticks: list[str]) -> None:
    figure, axes = empty_figure(7.2, 3)
    axes.plot(values, range(len(values)), "o")
    deviation_axis(axes, values, "Deviation (%)")
    figure.draw_without_rendering()
    assert axes.get_xlabel() == label
    shown = [text.get_text() for text in axes.get_xticklabels()]
    assert shown[: len(ticks)] == ticks, shown
    low, high = axes.get_xlim()
    assert float(shown[-1]) >= 0.15 * max(values)
    # A marker at an end has room for its half.
    ends = [axes.transData.transform((value, 0))[0] for value in (low, min(values), max(values), high)]
    assert ends[1] - ends[0] > 5 or min(values) > 0
    assert ends[3] - ends[2] > 5


def test_the_picture_of_a_score_cuts_nothing() -> None:
    rows = [
        {"title": f"A published measurement, the {at}th", "deviation_percent": 3.0 * at, "use": "predicted"}
        for at in range(8)
    ]
    predicted = {
        "rows": 128,
        "median_percent": 12.3,
        "p90_percent": 45.6,
        "without_number": 12,
        "met_without_number": 11,
    }
    report: Any = {"name": "nfp-6000-hsw-e5-2637v3", "rows": rows, "predicted": predicted}
    figure = card_figure(report)
    figure.draw_without_rendering()
    box = figure.get_tightbbox()
    assert box is not None
    assert box.x0 >= 0, box
    assert box.x1 <= 7.2, box
    (axes,) = figure.axes
    low, high = sorted(axes.get_ylim())
    assert (low < -0.4, high > 7.4) == (True, True)
