"""Reports as text."""

from __future__ import annotations

from nicety._generated.types import MessagesBenchmark, Report, Row
from nicety.bench.messages import benchmark_text
from nicety.show.columns import align


def row(nic: str, mode: str, size: int, latency: float, **stages: float) -> Row:
    return {
        "nic": nic,
        "mode": mode,
        "size_bytes": size,
        "iterations": 10,
        "verified": True,
        "latency_ns": latency,
        "stages": [{"stage": name, "ns": ns} for name, ns in stages.items()],
    }


def report(*rows: Row, benchmark: MessagesBenchmark = "latency") -> Report:
    return {"benchmark": benchmark, "version": "1.2.3", "seed": 5, "manifest": {}, "rows": list(rows)}


def test_a_table_for_each_card() -> None:
    text = benchmark_text(
        report(
            row("a", "rdma", 8, 693.685),
            row("a", "rdma", 65536, 2040.018),
            row("a", "spin-stream", 8, 400.0),
            row("b", "rdma", 8, 1.5),
        )
    )
    assert text == (
        "# nicety Latency Test v1.2.3\n"
        "# half a round trip of send and receive, host to host\n"
        "# seed 5, 10 iterations a size\n"
        "\n"
        "# a: Latency (ns)\n"
        "# Size      rdma  spin-stream\n"
        "8        693.685      400.000\n"
        "65536   2040.018            -\n"
        "\n"
        "# b: Latency (ns)\n"
        "# Size   rdma\n"
        "8       1.500\n"
    )


def test_cards_with_one_mode_share_a_table() -> None:
    text = benchmark_text(report(row("a", "rdma", 8, 1.0), row("b", "rdma", 8, 2.0)))
    assert text.endswith("\n# mode rdma: Latency (ns)\n# Size      a      b\n8       1.000  2.000\n")


def test_the_breakdown_has_a_column_for_each_mode() -> None:
    rows = report(row("a", "rdma", 8, 3.0, post=1, link=2), row("a", "spin", 8, 6.0, post=1, handler=3, link=2))
    text = benchmark_text(rows, breakdown=True)
    assert text.endswith(
        "# a, 8 B: where the time goes (ns)\n"
        "# Stage   rdma   spin\n"
        "post     1.000  1.000\n"
        "handler      -  3.000\n"
        "link     2.000  2.000\n"
        "sum      3.000  6.000\n"
    )
    assert "handler" not in benchmark_text(rows)


def test_a_stage_that_was_passed_twice_counts_twice() -> None:
    once = row("a", "rdma", 8, 3.0)
    once["stages"] = [{"stage": "bus", "ns": 1.0}, {"stage": "link", "ns": 4.0}, {"stage": "bus", "ns": 2.0}]
    text = benchmark_text(report(once), breakdown=True)
    assert "bus      3.000\n" in text
    assert "sum      7.000\n" in text


def test_bytes_that_were_not_checked_are_marked() -> None:
    unchecked = row("a", "rdma", 8, 1.0)
    unchecked["verified"] = False
    text = benchmark_text(report(unchecked))
    assert "1.000*" in text
    assert "# * not every byte was checked" in text


def test_bandwidth_and_message_rate() -> None:
    one: Row = {"nic": "a", "mode": "rdma", "size_bytes": 8, "iterations": 1, "verified": True}
    bandwidth = benchmark_text(report({**one, "bandwidth_bytes_per_s": 49_123_456_789.0}, benchmark="bandwidth"))
    assert "# a: Bandwidth (MB/s)\n" in bandwidth
    assert "49123.46" in bandwidth
    rate = benchmark_text(report({**one, "messages_per_s": 149_253_731.343}, benchmark="message-rate"))
    assert "# a: Messages/s\n" in rate
    assert "149253731.34" in rate
    assert "1 iteration a size" in rate


def test_a_report_without_rows() -> None:
    assert benchmark_text(report()).endswith("# seed 5\n")


def test_columns() -> None:
    assert align([["a", "1"], ["long", "22"]], right=[1]) == ["a      1", "long  22"]
    assert align([]) == []
