"""Pictures: what is on them, and that they are the same each time."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

import nicety as package
from conftest import Result
from nicety import plots
from test_recording import ping_pong

LATENCY = ["bench", "latency", "--nic", "spin-discrete,spin-integrated", "--mode", "rdma,portals4"]


@pytest.fixture(scope="module")
def report() -> package.benchmarks.Report:
    return package.run_benchmark(
        "latency", nics=["spin-discrete", "spin-integrated"], modes=["rdma", "portals4"], sizes=[8, 512, 4096, 1 << 20]
    )


def test_a_line_for_each_card_and_mode(report: package.benchmarks.Report) -> None:
    figure = plots.report_figure(report)
    (axes,) = figure.axes
    lines = axes.get_lines()
    labels = [line.get_label() for line in lines]
    assert labels == [f"spin-{card}, {mode}" for card in ("discrete", "integrated") for mode in ("rdma", "portals4")]
    # Told apart without colour: by marker and line, or filling.
    looks = {(line.get_marker(), line.get_linestyle()) for line in lines}
    assert len(looks) == 4
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
    assert plots.size_text(size) == text


@pytest.mark.parametrize("sizes", [[0, 1, 2], [0], [8], [7, 9, 1000], list(range(1, 40))])
def test_any_sizes_can_be_drawn(sizes: list[int], tmp_path: Path) -> None:
    report = package.run_benchmark("message-rate", nics=["spin-discrete"], modes=["rdma"], sizes=sizes, window=2)
    figure = plots.report_figure(report)
    figure.draw_without_rendering()
    (axes,) = figure.axes
    ticks = [text.get_text() for text in axes.get_xticklabels()]
    assert 1 <= len(ticks) <= 11
    assert axes.get_ylabel() == "Message rate (10⁶ messages/s)"
    plots.save(figure, tmp_path / "p.png")


@pytest.mark.parametrize("noise", [None, "1ms,25us,rank=1"])
@pytest.mark.parametrize("pattern", ["pair", "bidirectional", "incast:4"])
@pytest.mark.parametrize("benchmark", ["latency", "bandwidth", "message-rate"])
def test_no_text_lies_on_another(benchmark: Any, pattern: str, noise: str | None) -> None:
    if benchmark == "latency" and pattern == "incast:4":
        pattern = "incast:1"
    report = package.run_benchmark(
        benchmark, nics=["spin-discrete"], sizes=[8, 4096], iterations=2, pattern=pattern, noise=noise
    )
    figure = plots.report_figure(report)
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
        # Three modes alike, and one apart from them but for the largest size.
        apart = row["mode"] == "rdma" and row["size_bytes"] < sizes[-1]
        row["bandwidth_bytes_per_s"] = row["size_bytes"] * (1e6 if apart else 2e6)
    (axes,) = plots.report_figure(report).axes
    marked = {str(line.get_label()).split(", ")[1]: line.get_markevery() for line in axes.get_lines()}
    assert marked == {"rdma": [0, 1, 2, 3, 4], "portals4": [0, 3, 5], "spin-store": [1, 4], "spin-stream": [2]}
    widths = [list(underlay.get_linewidth()) for underlay in axes.collections]
    assert [len(each) for each in widths] == [0, 5, 5, 0]
    thin = axes.get_lines()[0].get_linewidth()
    assert min(widths[1]) > max(widths[2]) > thin


@pytest.mark.parametrize("ending", ["svg", "png", "pdf"])
def test_the_same_picture_is_the_same_file(report: package.benchmarks.Report, tmp_path: Path, ending: str) -> None:
    for name in ("a", "b"):
        plots.save(plots.report_figure(report), tmp_path / f"{name}.{ending}")
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
    figure = plots.timeline_figure(package._native.Table(list(spans.items())))
    labels = [text.get_text() for text in figure.axes[0].get_yticklabels()]
    assert labels == ["node 0: DMA", "node 0: DMA, also under way (1)", "node 0: DMA, also under way (2)"]


def test_what_cannot_be_drawn() -> None:
    with pytest.raises(package.InputError, match="a picture's name ends with"):
        ping_pong().plot("picture.gif")
    with pytest.raises(package.InputError, match="recording='everything'"):
        ping_pong().plot(kind="timeline")
    with pytest.raises(package.InputError, match="cannot write it"):
        ping_pong().plot("no/p.png")
    many = [("node", [0] * 70), ("resource", ["HPU"] * 70), ("unit", list(range(70))), ("start_ps", [0] * 70)]
    with pytest.raises(package.InputError, match=r"70 uses of 70 resources are too many for a picture"):
        plots.timeline_figure(package._native.Table([*many, ("end_ps", [1] * 70)]))
