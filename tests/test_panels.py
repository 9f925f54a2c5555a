"""Pictures of use cases and line-rate checks: shared parts of panels, labels of axes, and bends of lines."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest

import nicety as package
from nicety.bench.places.pictures import line_rate_figure
from nicety.show.axes import empty_figure, value_axis
from nicety.show.ranks import PARTS, RankTimes, ranks_figure
from nicety.usecases import Accumulate, Broadcast, Matching, Overlap, run_usecase
from nicety.usecases.report import report_text, usecase_figure


def drawn(case: Any, **options: Any) -> Any:
    figure = usecase_figure(run_usecase(case, nics=["spin-discrete"], **options))
    figure.draw_without_rendering()
    return figure


def test_panels_go_on_in_the_next_line_and_share_their_axis() -> None:
    figure = drawn(Broadcast(nodes=[2, 32], sizes=[8, 16, 32, 64, 65536]), modes=["spin-stream"])
    places = [axes.get_subplotspec() for axes in figure.axes]
    assert [(place.rowspan.start, place.colspan.start) for place in places] == [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1)]
    assert figure.get_figwidth() < 18
    assert len({(axes.get_yscale(), axes.get_ylim()) for axes in figure.axes}) == 1
    assert [axes.get_legend() is not None for axes in figure.axes] == [False, False, True, False, False]
    assert [text.get_text() for text in figure.axes[0].get_xticklabels()] == ["2", "32"]
    boxes = [axes.get_tightbbox() for axes in figure.axes]
    assert not any(one.overlaps(other) for one, other in itertools.combinations(boxes, 2))


def test_the_first_and_the_last_size_are_named() -> None:
    figure = drawn(Matching(sizes=[8 << power for power in range(13)], arrivals=["expected"]))
    names = [text.get_text() for text in figure.axes[0].get_xticklabels()]
    assert names == ["8", "32", "128", "512", "2Ki", "8Ki", "32Ki"]
    figure = drawn(Matching(sizes=[8 << power for power in range(14)], arrivals=["expected"]))
    names = [text.get_text() for text in figure.axes[0].get_xticklabels()]
    assert names == ["8", "32", "128", "512", "2Ki", "8Ki", "64Ki"]


def test_a_share_goes_from_0_to_1() -> None:
    figure = drawn(Overlap(sizes=[8, 1 << 20]))
    for axes in figure.axes:
        assert axes.get_yscale() == "linear"
        names = [text.get_text() for text in axes.get_yticklabels()]
        assert [name for name in names if name in {"0", "0.2", "0.4", "0.6", "0.8", "1"}] == [
            "0",
            "0.2",
            "0.4",
            "0.6",
            "0.8",
            "1",
        ]


def test_a_title_names_no_unit_but_the_axis_does() -> None:
    report = run_usecase(Accumulate(sizes=[1 << 20]), nics=["spin-discrete"], modes=["rdma"])
    figure = usecase_figure(report)
    assert "B/s" not in figure.get_suptitle()
    assert figure.axes[0].get_ylabel() == "Bandwidth (GB/s)"
    assert "until the products are in place, 10^6 B/s\n" in report_text(report)


@pytest.mark.parametrize("most", [0.7, 2.2, 11.3, 94.0, 4321.0])
def test_ticks_are_round(most: float) -> None:
    figure, axes = empty_figure(4, 4)
    value_axis(axes, [most / 3, most], "Something")
    figure.draw_without_rendering()
    one, other, *_ = axes.get_yticks()
    first = f"{other - one:.3e}"[:5]
    assert first in {"1.000", "2.000", "2.500", "5.000"}


NOTHING = '#include "nicety.h"\n__handler int payload_handler(const ptl_payload_t p, void *s) { return SUCCESS; }\n'


def test_the_budget_bends_where_bytes_take_longer_than_the_gap(tmp_path: Path) -> None:
    source = tmp_path / "nothing.c"
    source.write_text(NOTHING)
    nics = ["spin-discrete", "spin-integrated"]
    report = package.check_line_rate(source, nics=nics, packet_sizes=[64, 512, 4096])
    axes, _ = line_rate_figure(report).axes
    lines = [line for line in axes.get_lines() if not str(line.get_label()).startswith("_")]
    # Both cards have the same link and number of processors: one line is drawn for both.
    assert [line.get_label() for line in lines] == [
        *(f"{nic}: handler time (x: does not keep up)" for nic in nics),
        "time between packets, times 4 HPUs",
    ]
    sizes, budgets = (list(part) for part in lines[2].get_data())
    budget = dict(zip(sizes, budgets, strict=True))
    # 6.7 ns over 20 ps a byte are 335 bytes.
    assert all(value == pytest.approx(4 * 6.7) for size, value in budget.items() if size <= 335)
    assert all(value == pytest.approx(4 * 0.02 * size) for size, value in budget.items() if size >= 335)
    assert 335 in budget
    assert [text.get_text() for text in axes.get_xticklabels()] == ["64", "512", "4Ki"]


def test_the_budget_has_the_bytes_of_headers_in_it(tmp_path: Path) -> None:
    source = tmp_path / "nothing.c"
    source.write_text(NOTHING)
    report = package.check_line_rate(
        source, nics="spin-discrete", packet_sizes=[64, 4096], overrides={"link.header": "100 B", "hpu.cores": 256}
    )
    axes, _ = line_rate_figure(report).axes
    budget = dict(zip(*axes.get_lines()[1].get_data(), strict=True))
    # 6.7 ns over 20 ps a byte are 335 bytes, 100 of them the header.
    assert axes.get_ylabel() == "Time a packet (µs)"
    assert 235 in budget
    for size, value in budget.items():
        assert value == pytest.approx(256 * max(6.7, 0.02 * (size + 100)) / 1000)


def test_cards_with_other_budgets_have_lines_of_their_own(tmp_path: Path) -> None:
    source, other = tmp_path / "nothing.c", tmp_path / "other.toml"
    source.write_text(NOTHING)
    other.write_text(
        'name = "other"\nextends = "spin-discrete"\n[hpu]\ncores = { value = 8, kind = "assumed", source = "a test" }\n'
    )
    report = package.check_line_rate(source, nics=["spin-discrete", str(other)], packet_sizes=[4096])
    axes, _ = line_rate_figure(report).axes
    labels = [line.get_label() for line in axes.get_lines() if not str(line.get_label()).startswith("_")]
    assert labels[2:] == [
        "spin-discrete: time between packets, times 4 HPUs",
        "other: time between packets, times 8 HPUs",
    ]


def test_ranks_of_all_cards_have_one_scale_of_time_so_that_the_faster_ends_earlier() -> None:
    def times(end_ns: float) -> RankTimes:
        return RankTimes({part: [end_ns / 4, end_ns / 4] for part in PARTS}, end_ns)

    figure = ranks_figure({"slow": times(20_000_000), "fast": times(5_000_000)}, title="both")
    figure.draw_without_rendering()
    assert [axes.get_ylim() for axes in figure.axes] == [(0, 20), (0, 20)]
    assert [axes.get_ylabel() for axes in figure.axes] == ["Time (ms)", "Time (ms)"]
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["slow: 20.000 ms", "fast: 5.000 ms"]
    highest = [max(patch.get_data().values.max() for patch in axes.patches) for axes in figure.axes]
    assert highest == [20, 5]
    assert [text.get_text() for text in figure.axes[0].get_xticklabels() if text.get_visible()] == []
    ranks_figure({"none": RankTimes({part: [0.0] for part in PARTS}, 0.0)}, title="nothing").draw_without_rendering()
