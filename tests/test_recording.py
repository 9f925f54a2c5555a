"""Recordings of runs: tables for Arrow, breakdowns, and the contents of each level."""

from __future__ import annotations

import csv
import io
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest
from rich.console import Console

import nicety
from conftest import Result
from nicety import _native
from nicety.build.compiler import library_source
from nicety.show import tables
from nicety.show.recordings import LEVELS
from nicety.show.tables import csv_text, report_table, write_arrow

TABLES = {"messages": "messages", "packets": "packets", "handler_runs": "packets", "resources": "everything"}

SINK = """
#include <nicety.h>
__handler int header_handler(const ptl_header_t h, void *state) { return PROCESS_DATA; }
__handler int payload_handler(const ptl_payload_t p, void *state) {
    PtlHandlerDMAToHostB(p.base, p.offset, p.length, PTL_ME_HOST_MEM);
    return SUCCESS;
}
__handler int completion_handler(int dropped_bytes, bool flow_control_triggered, void *state) { return SUCCESS; }
"""


def ping_pong(recording: str = "messages", **arguments: Any) -> nicety.Run:
    async def ping(host: nicety.Host) -> None:
        buffer = host.alloc(5000)
        await host.barrier()
        await host.send(buffer[0:8], to=1, tag=1)
        await host.recv(buffer, source=1, tag=2)

    async def pong(host: nicety.Host) -> None:
        buffer = host.alloc(5000)
        await host.barrier()
        await host.recv(buffer, source=0, tag=1)
        await host.compute(ns=1000)
        await host.send(buffer, to=0, tag=2)

    # Nothing is acknowledged, so there are two messages.
    card = {"set": ["messages.eager=8 KiB"], **arguments}
    return nicety.Cluster(2, "spin-discrete", recording=recording, **card).run({0: ping, 1: pong})


@pytest.fixture(scope="module")
def sink(tmp_path_factory: pytest.TempPathFactory) -> nicety.Run:
    """A put of 10 000 B, three packets, through handlers of all three kinds."""
    source = tmp_path_factory.mktemp("sink") / "sink.c"
    source.write_text(SINK)
    handlers = nicety.Handlers(source)

    async def sender(host: nicety.Host) -> None:
        out = host.alloc(10_000)
        await host.barrier()
        await host.portals.put(host.portals.md_bind(out), len(out), to=1, pt=1)

    async def receiver(host: nicety.Host) -> None:
        back, count = host.alloc(10_000), host.portals.ct_alloc()
        options = ["op_put", "event_ct_comm"]
        await host.portals.me_append(
            back, pt=host.portals.pt_alloc(pt=1), options=options, ct=count, handlers=host.portals.attach(handlers)
        )
        await host.barrier()
        await host.portals.ct_wait(count, 1)

    return nicety.Cluster(2, "spin-discrete", recording="everything").run({0: sender, 1: receiver})


def test_each_level_keeps_what_those_before_it_keep() -> None:
    runs = {level: ping_pong(level) for level in LEVELS}
    assert len({run.time_ps for run in runs.values()}) == 1
    for level, run in runs.items():
        assert run.recording == level
        for table, since in TABLES.items():
            if LEVELS.index(level) >= LEVELS.index(since):
                kept, all_kept = (pl.DataFrame(getattr(r, table)) for r in (run, runs["everything"]))
                assert kept.equals(all_kept)
            else:
                with pytest.raises(nicety.InputError, match=f"recording='{since}'"):
                    getattr(run, table)
    with pytest.raises(nicety.InputError, match=r"run\.trace\(\): this run recorded messages only"):
        runs["messages"].trace("x")
    with pytest.raises(nicety.InputError, match=r"recording is 'summary' or 'messages' or .*, not 'all'"):
        ping_pong("all")


def test_messages_are_recorded_by_default() -> None:
    async def program(host: nicety.Host) -> None:
        await host.barrier()

    assert nicety.Cluster(2, "spin-discrete").run(program).recording == "messages"


def test_tables_go_to_arrow_and_back() -> None:
    run = ping_pong("everything")
    for name in TABLES:
        table = getattr(run, name)
        arrow = pa.table(table)
        assert pl.DataFrame(table).rows() == pl.from_arrow(arrow).rows()
        assert arrow.column_names == table.columns
        assert arrow.num_rows == len(table)
        assert arrow.schema == pa.schema(table)
        assert {field.type for field in arrow.schema if field.name.endswith("_ps")} <= {pa.int64()}
        for column in table.columns:
            assert table.column(column) == arrow.column(column).to_pylist()
    messages = run.messages
    arrow = pa.table(messages)
    del run, messages
    assert arrow.column("size_bytes").to_pylist() == [8, 5000]


def test_a_table_of_ones_own(tmp_path: Path) -> None:
    columns = [("a", [1, None]), ("b", [0.5, 2]), ("c", ["x", None]), ("d", [True, False])]
    table = _native.Table(columns)
    assert repr(table) == "<Table of 2 rows: a, b, c, d>"
    assert [(name, table.column(name)) for name in table.columns] == columns
    write_arrow(table, tmp_path / "t.arrow")
    assert pl.read_ipc(tmp_path / "t.arrow").to_dict(as_series=False) == dict(columns)
    assert csv_text(table) == "a,b,c,d\n1,0.5,x,true\n,2.0,,false\n"
    with pytest.raises(KeyError, match="no column 'e'; there are a, b, c, d"):
        table.column("e")
    with pytest.raises(nicety.InputError, match="no table of these columns"):
        _native.Table([("a", [1]), ("b", [1, 2])])


def test_the_worked_example() -> None:
    first = pl.DataFrame(ping_pong().messages).row(0, named=True)
    assert (first["source"], first["target"], first["size_bytes"]) == (0, 1, 8)
    assert (first["kind"], first["started_by"], first["outcome"]) == ("put", "host", "ok")
    since = {
        name: first[name] - first["posted_ps"]
        for name in first
        if name in {"first_byte_ps", "matched_ps", "completed_ps", "noticed_ps"}
    }
    assert list(since.values()) == [315_000, 378_560, 628_685, 693_685]
    assert first["latency_ps"] == 628_685
    stages = {"post_ps": 65_000, "bus_ps": 250_000, "link_ps": 33_560, "match_ps": 30_000, "deposit_ps": 250_125}
    assert {name: first[name] for name in stages} == stages
    assert sum(stages.values()) == first["latency_ps"]


def test_stages_add_up(sink: nicety.Run) -> None:
    for run in (sink, ping_pong()):
        frame = pl.DataFrame(run.messages)
        stages = frame.select(
            pl.col("^.*_ps$").exclude(
                "posted_ps", "first_byte_ps", "matched_ps", "completed_ps", "noticed_ps", "latency_ps"
            )
        )
        assert stages.sum_horizontal().to_list() == frame["latency_ps"].to_list()
        breakdown = run.breakdown()
        assert breakdown.messages == len(frame)
        assert breakdown.total_ns == sum(frame["latency_ps"]) / 1000


def test_packets_and_handler_runs(sink: nicety.Run) -> None:
    packets = pl.DataFrame(sink.packets)
    assert packets["offset_bytes"].to_list() == [0, 4096, 8192]
    assert packets["size_bytes"].to_list() == [4096, 4096, 1808]
    times = packets.select("sent_ps", "arrived_ps", "matched_ps", "settled_ps").rows()
    assert all(list(row) == sorted(row) for row in times)

    runs = pl.DataFrame(sink.handler_runs)
    kinds = runs.group_by("handler").len().rows_by_key("handler")
    assert kinds == {"header": [(1,)], "payload": [(3,)], "completion": [(1,)]}
    assert runs.filter(pl.col("handler") == "header")["outcome"].to_list() == ["PROCESS_DATA"]
    assert set(runs.filter(pl.col("handler") != "header")["outcome"]) == {"SUCCESS"}
    assert runs.filter(pl.col("handler") == "payload")["offset_bytes"].sort().to_list() == [0, 4096, 8192]
    assert runs.filter(pl.col("handler") == "completion")["offset_bytes"].to_list() == [None]
    node = sink.nodes[1]
    assert (len(runs), runs["instructions"].sum(), runs["cycles"].sum()) == (
        node.portals.handler_runs,
        node.portals.handler_instructions,
        node.portals.handler_cycles,
    )
    assert all(ready <= start < end for ready, start, end in runs.select("ready_ps", "start_ps", "end_ps").rows())
    # 2.5 GHz.
    assert (runs["end_ps"] - runs["start_ps"]).to_list() == (runs["cycles"] * 400).to_list()


def test_resources(sink: nicety.Run) -> None:
    uses = pl.DataFrame(sink.resources)
    assert set(uses["resource"]) == {
        "program",
        "host CPU",
        "bus to card",
        "bus to host",
        "DMA",
        "link",
        "matching",
        "HPU",
    }
    link = uses.filter((pl.col("resource") == "link") & (pl.col("node") == 0))
    assert (link["end_ps"] - link["start_ps"]).to_list() == [4096 * 20, 4096 * 20, 1808 * 20]
    nested = uses.filter(pl.col("what") == "DMA to host")
    assert set(nested["resource"]) == {"HPU"}


def test_messages_of_handlers_name_their_cause() -> None:
    handlers = nicety.Handlers(library_source("pingpong_stream.c"))
    # pingpong_t: match bits of the reply, reply target, bytes in a packet, and the length so far.
    state = struct.pack("<QIIQ", 2, 0, 4096, 0)

    async def entry(host: nicety.Host, bits: int, **arguments: Any) -> int:
        count = host.portals.ct_alloc()
        options = ["op_put", "event_ct_comm"]
        buffer = host.alloc(8)
        await host.portals.me_append(
            buffer, pt=host.portals.pt_alloc(pt=1), match_bits=bits, options=options, ct=count, **arguments
        )
        await host.barrier()
        return count

    async def ping(host: nicety.Host) -> None:
        count = await entry(host, 2)
        await host.portals.put(host.portals.md_bind(host.alloc(8)), 8, to=1, pt=1, match_bits=1)
        await host.portals.ct_wait(count, 1)

    async def pong(host: nicety.Host) -> None:
        await entry(host, 1, handlers=host.portals.attach(handlers, state=state))

    frame = pl.DataFrame(nicety.Cluster(2, "spin-discrete").run({0: ping, 1: pong}).messages)
    first, reply = frame.rows(named=True)
    assert (first["started_by"], first["cause_source"], first["cause_sequence"]) == ("host", None, None)
    assert (reply["started_by"], reply["cause_source"], reply["cause_sequence"]) == (
        "handler",
        first["source"],
        first["sequence"],
    )
    assert first["matched_ps"] < reply["posted_ps"] < reply["first_byte_ps"] + 1
    assert reply["handler_ps"] == 0, "a message's own time begins where its handler has put it"


def test_full_tables_are_counted() -> None:
    whole = ping_pong("everything")
    assert whole.left_out == {"messages": 0, "packets": 0, "handler_runs": 0, "resources": 0}
    part = ping_pong("everything", recorded_rows=1)
    assert len(part.messages) == 1  # commands of the second host are numbered too
    assert part.left_out["messages"] == 1
    assert len(part.resources) + part.left_out["resources"] == len(whole.resources)
    with pytest.raises(nicety.InputError, match="recorded_rows"):
        ping_pong(recorded_rows=-1)


@pytest.mark.parametrize("shards", [2, 3])
def test_recordings_do_not_depend_on_shards(shards: int) -> None:
    one, other = ping_pong("everything"), ping_pong("everything", shards=shards)
    for name in TABLES:
        assert pl.DataFrame(getattr(one, name)).equals(pl.DataFrame(getattr(other, name)))


def test_a_breakdown_is_a_table() -> None:
    breakdown = ping_pong().breakdown()
    lines = str(breakdown).splitlines()
    assert lines[0] == "# Where the time of 2 messages went"
    assert lines[1].split() == ["#", "Stage", "Mean", "(ns)", "Share", "Messages"]
    assert lines[2].split() == ["post", "65.000", "9.2%", "2"]
    assert lines[-1].split()[2:] == ["100.0%", "2"]
    assert [stage.stage for stage in breakdown.stages] == ["post", "bus", "link", "match", "deposit"]
    html = breakdown._repr_html_()
    assert html.startswith("<table>")
    assert "<td" in html
    console = Console(record=True, file=io.StringIO(), width=80)
    console.print(breakdown)
    assert "65.000" in console.export_text()


def test_nothing_happened() -> None:
    async def idle(host: nicety.Host) -> None:
        await host.compute(ns=1)

    run = nicety.Cluster(2, "spin-discrete").run(idle)
    assert len(run.messages) == 0
    assert run.breakdown().messages == 0
    assert str(run.breakdown()).splitlines()[0] == "# Where the time of 0 messages went"
    assert pa.table(run.messages).num_rows == 0


def test_the_rows_of_a_benchmark_as_a_table(nicety: Callable[..., Result], tmp_path: Path) -> None:
    command = [
        "bench",
        "bandwidth",
        "--nic",
        "spin-discrete",
        "--mode",
        "rdma",
        "--sizes",
        "8,4Ki",
        "--iterations",
        "2",
    ]
    done = nicety(*command, "--pattern", "bidirectional", "--csv", "rows.csv", "--arrow", "rows.arrow", "--json")
    assert done.status == 0, done.stderr
    rows = done.json()["rows"]
    table = report_table(done.json())
    frame = pl.DataFrame(table)
    assert frame["size_bytes"].to_list() == [8, 4096]
    assert frame["flows_1_0_bandwidth_bytes_per_s"].to_list() == [
        row["flows"][1]["bandwidth_bytes_per_s"] for row in rows
    ]
    assert frame["host_memory_1_written_bytes"].to_list() == [row["host_memory"][1]["written_bytes"] for row in rows]
    assert pl.read_ipc(tmp_path / "rows.arrow").equals(frame)
    written = list(csv.DictReader(io.StringIO((tmp_path / "rows.csv").read_text())))
    assert [row["bandwidth_bytes_per_s"] for row in written] == [str(row["bandwidth_bytes_per_s"]) for row in rows]
    assert [row["verified"] for row in written] == ["true", "true"]


def test_a_latency_has_a_column_for_each_stage() -> None:
    report = nicety.run_benchmark("latency", nics=["spin-discrete"], modes=["rdma", "portals4"], sizes=[8])
    frame = pl.DataFrame(report_table(report))
    assert frame["stages_post_ns"].to_list() == [65, 32.5]
    assert frame["stages_fetch_ns"].to_list()[0] is None
    stages = frame.select(pl.col("^stages_.*$")).sum_horizontal().to_list()
    assert stages == pytest.approx(frame["latency_ns"].to_list(), abs=1e-9)


def test_arrow_files_take_pyarrow(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(tables, "find_spec", lambda _name: None)
    with pytest.raises(
        nicety.InputError, match=r"needs pyarrow, which is not installed; pip install 'nicety\[arrow\]'"
    ):
        write_arrow(_native.Table([("a", [1])]), tmp_path / "t.arrow")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--csv", "no/rows.csv"], "--csv no/rows.csv: there is no folder no; make it first"),
        (["--arrow", "."], "--arrow .: this is a folder; name a file in it"),
        (["--plot", "p.jpg"], "--plot p.jpg: a picture's name ends with .svg, .png or .pdf"),
        (["--plot", "plot"], "--plot plot: a picture's name ends with .svg, .png or .pdf"),
        (["--csv", "x", "--trace", "./x"], "--trace x: --csv writes there already; name another file"),
        (["--trace", "t", "--trace-scale", "us"], "--trace-scale us: write ns or ps for the tick of the timeline"),
        (["--trace-scale", "ps"], "--trace-scale: there is no timeline; name a file for one with --trace"),
    ],
)
def test_files_that_cannot_be_are_refused_at_once(
    nicety: Callable[..., Result], tmp_path: Path, options: list[str], message: str
) -> None:
    done = nicety("bench", "latency", "--nic", "spin-discrete", "--mode", "rdma", "--sizes", "8", *options)
    assert (done.status, done.stdout) == (2, "")
    assert done.stderr.startswith(f"nicety: {message}")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("card", ["nfp-4000", "qnix"])
def test_every_card_records_its_messages(card: str) -> None:
    sizes = [8, 4096, 100_000]

    async def main(host: nicety.Host) -> None:
        buffer = host.alloc(sizes[-1])
        for size in sizes:
            if host.rank == 0:
                await host.send(buffer[:size], to=1, tag=size)
            else:
                await host.recv(buffer[:size])

    run = nicety.Cluster(2, card, recording="messages").run(main)
    rows = pl.DataFrame(pa.table(run.messages)).to_dicts()
    assert [(row["source"], row["target"], row["kind"], row["size_bytes"], row["outcome"]) for row in rows] == [
        (0, 1, "send", size, "received") for size in sizes
    ]
    stages = [name for name in rows[0] if name.endswith("_ps") and name not in TIMES]
    for row in rows:
        assert sum(row[stage] for stage in stages) == row["latency_ps"] == row["completed_ps"] - row["posted_ps"]
        assert row["posted_ps"] < row["matched_ps"] <= row["completed_ps"] <= row["noticed_ps"]
    assert run.breakdown().messages == len(sizes)


TIMES = {"posted_ps", "first_byte_ps", "matched_ps", "completed_ps", "noticed_ps", "latency_ps"}
