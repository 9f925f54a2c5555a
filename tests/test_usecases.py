"""The use cases: worked examples, orderings of figures, and that a wrong byte is found."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import nicety as package
from nicety.build.compiler import library_source
from nicety.usecases import Accumulate, Broadcast, Datatype, UseCase, datatype, require_equal
from nicety.usecases.broadcast import children
from nicety.usecases.datatype import default_blocks
from sizes import examples

MODES = ["rdma", "portals4", "spin-store", "spin-stream"]
CARDS = ["spin-discrete", "spin-integrated"]


def figures(case: UseCase, figure: str = "latency_ns", **options: Any) -> dict[tuple[Any, ...], float]:
    """The figures of a use case by mode and parameters."""
    report = package.run_usecase(case, **{"nics": ["spin-discrete"], **options})
    assert all(row["verified"] for row in report["rows"])
    return {(row["mode"], *(row[name] for name in report["parameters"])): row[figure] for row in report["rows"]}


@pytest.mark.parametrize("ranks", [2, 3, 4, 7, 8, 36, 1000, 1024])
def test_every_rank_has_one_parent(ranks: int) -> None:
    found = [child for rank in range(ranks) for child in children(rank, ranks)]
    assert sorted(found) == list(range(1, ranks))
    depth = {0: 0}
    for rank in range(ranks):
        depth |= dict.fromkeys(children(rank, ranks), depth[rank] + 1)
    assert max(depth.values()) <= (ranks - 1).bit_length()
    assert len(children(0, ranks)) == (ranks - 1).bit_length()


def handler_ns(mode: str) -> float:
    """The time of the handlers of a broadcast of four until their put, in cycles of 0.4 ns."""
    run = figures(Broadcast(nodes=[4], sizes=[8]), modes=[mode])[mode, 4, 8]
    return run - (65 + 250 + STAR + 30 + STAR + 30 + 250.125 + 65)


STAR = 0.16 + 33.4 + 50 + 33.4
"""Eight bytes from card to card: two wires, and a switch between."""


def test_a_broadcast_to_one_is_half_a_ping_pong() -> None:
    found = figures(Broadcast(nodes=[2], sizes=[8, 65536]))
    for mode in MODES:
        assert found[mode, 2, 8] == pytest.approx(65 + 250 + 0.16 + 33.4 + 30 + 0.125 + 250 + 65, abs=1e-6)
        assert found[mode, 2, 65536] == pytest.approx(2040.018, abs=1e-6)
    star = figures(Broadcast(nodes=[2], sizes=[8, 65536]), topology="star", modes=["rdma"])
    for size in (8, 65536):
        half = package.run_benchmark("latency", nics=CARDS[:1], modes=["rdma"], sizes=[size], topology="star")
        assert star["rdma", 2, size] == pytest.approx(half["rows"][0]["latency_ns"], abs=1e-6)


def test_a_broadcast_to_three_takes_two_steps() -> None:
    found = figures(Broadcast(nodes=[4], sizes=[8]))
    assert found["rdma", 4, 8] == pytest.approx(2 * (65 + 250 + STAR + 30 + 250.125 + 65), abs=0.0011)
    triggered = 65 + 250 + STAR + 30 + (0.125 + 500) + STAR + 30 + 250.125 + 65
    assert found["portals4", 4, 8] == pytest.approx(triggered, abs=0.0021)
    for mode in MODES[2:]:
        handler = handler_ns(mode)
        assert 0 < handler < 30
        assert handler / 0.4 == pytest.approx(round(handler / 0.4), abs=0.01)


@pytest.mark.parametrize("nic", CARDS)
def test_gains_of_a_broadcast(nic: str) -> None:
    found = figures(Broadcast(nodes=[2, 5, 16, 33], sizes=[8, 65536]), nics=[nic])
    for size in (8, 65536):
        for mode in MODES:
            times = [found[mode, nodes, size] for nodes in (2, 5, 16, 33)]
            assert times == sorted(times)
        for nodes in (5, 16, 33):
            assert found["spin-stream", nodes, size] < found["portals4", nodes, size] < found["rdma", nodes, size]
    # The card forwards a single packet in both; larger messages are within 5 % of triggered puts.
    assert found["spin-store", 16, 8] == pytest.approx(found["spin-stream", 16, 8], rel=0.05)
    assert found["spin-store", 16, 65536] == pytest.approx(found["portals4", 16, 65536], rel=0.05)


def test_host_memory_traffic_of_a_broadcast() -> None:
    case = Broadcast(nodes=[8], sizes=[65536])
    read, written = (figures(case, f"host_memory_{way}_bytes") for way in ("read", "written"))
    for mode in MODES:
        assert written[mode, 8, 65536] == 7 * 65536
        # Only the root reads if cards stream: once for each of its three children.
        assert read[mode, 8, 65536] == (3 if mode == "spin-stream" else 7) * 65536


def test_sizes_that_are_no_multiple_of_anything() -> None:
    figures(Broadcast(nodes=[6], sizes=[1, 4095, 4097, 50_001]))


def test_noise_hurts_where_the_host_sends() -> None:
    # Rank 4 of 8 has half of the tree below it; only with RDMA does its host forward the bytes.
    case, options = Broadcast(nodes=[8], sizes=[8]), {"iterations": 40, "noise": "20us,2us,rank=4"}
    noisy, quiet = figures(case, **options), figures(case)
    hurt = {mode: noisy[mode, 8, 8] - quiet[mode, 8, 8] for mode in MODES}
    # The others wait for rank 4's own notice.
    assert hurt["rdma"] > max(hurt[mode] for mode in MODES[1:]) > 0


def test_the_same_seed_gives_the_same_report(nicety: Callable) -> None:
    command = ["bench", "broadcast", "--nic", "spin-discrete", "--nodes", "4", "--noise", "20us,5us"]
    command += ["--iterations", "3", "--json", "--seed"]
    first, second = nicety(*command, 7), nicety(*command, 7)
    assert (first.status, first.stderr) == (0, "")
    assert first.stdout == second.stdout
    report = first.json()
    assert report["benchmark"] == "broadcast"
    assert report["manifest"]["topology"] == "star"
    assert len(report["rows"]) == 8
    assert set(report["manifest"]["compiler"]) == {"spin-discrete/spin-store", "spin-discrete/spin-stream"}
    for row in report["rows"]:
        assert row["nic"] == "spin-discrete"
        assert row["verified"] is True
        assert row["min_ns"] <= row["p50_ns"] <= row["p99_ns"] == row["max_ns"]
    assert nicety(*command, 8).stdout != first.stdout


def test_the_text_has_the_figures(nicety: Callable, tmp_path: Path) -> None:
    command = ["bench", "broadcast", "--nic", "spin-discrete", "--nodes", "2,4", "--sizes", "8,4Ki"]
    result = nicety(*command, "--csv", "rows.csv", "--plot", "picture.svg", "--trace", "first.pftrace")
    assert (result.status, result.stderr) == (0, "")
    lines = [line.split() for line in result.stdout.splitlines()]
    assert ["#", "Nodes", *MODES] in lines
    assert ["4", "1554.170", "1424.170", "938.045", "938.445"] in lines
    assert len((tmp_path / "rows.csv").read_text().splitlines()) == 1 + 2 * 2 * 4
    assert (tmp_path / "picture.svg").read_text().lstrip().startswith("<?xml")
    assert (tmp_path / "first.pftrace").stat().st_size > 1000
    spread = nicety(*command, "--percentiles", "--mode", "rdma")
    assert "# spin-discrete, size 4Ki, mode rdma: time (ns)" in spread.stdout


def test_a_report_shows_itself_in_a_notebook() -> None:
    report = package.run_usecase(Broadcast(nodes=[4], sizes=[8]), nics=["spin-discrete"], modes=["rdma"])
    assert "1554.170" in report._repr_html_()  # type: ignore[attr-defined]


FLOATS = ["hpu.isa=rv32imafc_zicsr"]


def test_a_host_multiplies_what_memory_brings() -> None:
    found = figures(Accumulate(sizes=[8]), modes=["rdma"])
    # Half a ping-pong; then two lines arrive together, and one goes back: 192 B at 150 GiB/s.
    assert found["rdma", 8] == pytest.approx(693.685 + 51 + 1.193, abs=1e-6)


@pytest.mark.parametrize("overrides", [FLOATS, []], ids=["with F", "in software"])
def test_arrays_that_are_multiplied(overrides: list[str]) -> None:
    case = Accumulate(sizes=[8, 1016, 1024, 1032, 4096, 4104, 50_000])
    found = figures(case, overrides=overrides)
    for mode in case.modes:
        times = [found[mode, size] for size in (8, 1024, 4096, 50_000)]
        assert times == sorted(times)
    moved = figures(case, "host_memory_read_bytes", modes=["spin"], overrides=overrides)
    # The sender's array, and the receiver's own.
    assert moved["spin", 50_000] == 2 * 50_000


def test_more_processors_multiply_more() -> None:
    def bandwidth(cores: int) -> float:
        changes = [*FLOATS, f"hpu.cores={cores}"]
        case = Accumulate(sizes=[256 << 10])
        return figures(case, "bandwidth_bytes_per_s", modes=["spin"], overrides=changes)["spin", 256 << 10]

    assert 1.8 < bandwidth(8) / bandwidth(4) < 2.05


def test_floats_in_software_are_worth_a_note(nicety: Callable) -> None:
    command = ["bench", "accumulate", "--nic", "spin-discrete", "--sizes", "8"]
    plain, unit = nicety(*command), nicety(*command, "--set", FLOATS[0])
    assert (plain.status, unit.status, unit.stderr) == (0, 0, "")
    assert "--set hpu.isa=rv32imafc_zicsr" in plain.stderr


def test_a_block_is_copied_or_deposited() -> None:
    found = figures(Datatype(size=4096, blocks=[4096]))
    way, notice = 65 + 250 + 81.92 + 33.4 + 30, 250 + 65
    # 64 lines arrive in seven rounds of ten, which takes longer than the copy's cycles and the bandwidth.
    assert found["rdma", "vector", 4096, 4096] == pytest.approx(way + 63.898 + notice + 7 * 51, abs=1e-6)
    # The handler waits for its write of 63.898 ns, and ends at a cycle of 0.4 ns.
    handler = found["spin", "vector", 4096, 4096] - way - notice
    assert 63.898 < handler < 63.898 + 40
    assert handler / 0.4 == pytest.approx(round(handler / 0.4), abs=0.01)


@pytest.mark.parametrize("layout", ["vector", "list"])
def test_longer_blocks_are_faster(layout: str) -> None:
    case = Datatype(size=1 << 20, blocks=[32, 256, 4096, 65536], layout=layout)
    found = figures(case, "bandwidth_bytes_per_s")
    spin, rdma = (
        [found[mode, layout, 1 << 20, block] for block in (32, 256, 4096, 65536)] for mode in ("spin", "rdma")
    )
    assert spin == sorted(spin)
    assert all(one > other for one, other in zip(spin, rdma, strict=True))
    # 20 ps per byte are 50 GB/s.
    assert 45e9 < spin[-1] < 50e9
    written, read = (figures(case, f"host_memory_{way}_bytes") for way in ("written", "read"))
    assert read["spin", layout, 1 << 20, 256] == written["spin", layout, 1 << 20, 256] == 1 << 20
    # The CPU reads the deposited bytes, and writes them once more.
    assert read["rdma", layout, 1 << 20, 65536] >= 2 << 20
    assert written["rdma", layout, 1 << 20, 65536] >= 2 << 20


@given(
    block=st.integers(1, 300),
    count=st.integers(1, 60),
    layout=st.sampled_from(["vector", "list"]),
    payload=st.sampled_from([8, 100, 256, 4096]),
    mode=st.sampled_from(["rdma", "spin"]),
    seed=st.integers(0, 1000),
)
@examples(40)
def test_packets_split_blocks_anywhere(block: int, count: int, layout: str, payload: int, mode: str, seed: int) -> None:
    case = Datatype(size=block * count, blocks=[block], layout=layout)
    figures(case, modes=[mode], seed=seed, overrides=[f"packet.payload={payload} B"])


def changed(name: str, before: str, after: str, folder: Path) -> Path:
    """A copy of the library's handlers with a mistake in it."""
    text = library_source(name).read_text()
    assert text.count(before) == 1
    (folder / name).write_text(text.replace(before, after))
    return folder / name


@pytest.mark.parametrize(
    ("mode", "before", "after", "words"),
    [
        (
            "spin-stream",
            "    /* The children first",
            "    p.base[p.length - 1] ^= 1;\n    /* The children first",
            "size 65536: rank 2 received a wrong byte at offset 4095",
        ),
        ("spin-stream", "p.offset) != PTL_OK", "0) != PTL_OK", "rank 3 received a wrong byte at offset"),
        ("spin-store", "PutFromHost(0,", "PutFromHost(1,", "failed"),
    ],
)
def test_a_wrong_byte_is_found(
    nicety: Callable, tmp_path: Path, mode: str, before: str, after: str, words: str
) -> None:
    source = changed(f"broadcast_{mode.removeprefix('spin-')}.c", before, after, tmp_path)
    command = ["bench", "broadcast", "--nic", "spin-discrete", "--mode", mode, "--nodes", "4", "--sizes", "64Ki"]
    result = nicety(*command, "--handlers", source)
    assert result.status == 1
    assert result.stdout == ""
    assert f"nicety: spin-discrete, mode {mode}, nodes 4, size 65536: " in result.stderr
    assert words in result.stderr


@pytest.mark.parametrize(
    ("command", "source", "before", "after"),
    [
        (["accumulate", "--sizes", "8Ki"], "accumulate.c", "a.re * b.im +", "a.re * b.im -"),
        (["accumulate", "--sizes", "8Ki"], "accumulate.c", "in + first, there[lot]", "in + first, there[0]"),
        (["datatype", "--size", "8Ki", "--blocks", "64"], "datatype_vector.c", "to = block *", "to = 1 + block *"),
        (
            ["datatype", "--size", "16Ki", "--blocks", "1Ki", "--layout", "list"],
            "datatype_list.c",
            " + (at - block->message_offset)",
            "",
        ),
    ],
)
def test_handlers_with_a_mistake(
    nicety: Callable, tmp_path: Path, command: list[str], source: str, before: str, after: str
) -> None:
    path = changed(source, before, after, tmp_path)
    use = [*command, "--nic", "spin-discrete", "--mode", "spin", "--set", FLOATS[0]]
    assert nicety("bench", *use).status == 0
    result = nicety("bench", *use, "--handlers", path)
    assert (result.status, result.stdout) == (1, "")
    assert "nicety: spin-discrete, mode spin, " in result.stderr


def test_require_equal() -> None:
    right = np.arange(100, dtype=np.float32)
    require_equal(right.copy(), right, "rank 2 has")
    wrong = right.copy()
    wrong[7] = 8
    with pytest.raises(package.RunError, match=r"rank 1 has a wrong byte at offset 30: 0x00 .* 0xe0; 2 of 400 bytes"):
        require_equal(wrong, right, "rank 1 has")
    with pytest.raises(package.RunError, match="rank 1 has 396 bytes instead of 400"):
        require_equal(right[:99], right, "rank 1 has")


@given(st.integers(1, 1 << 30), st.sampled_from(["vector", "list"]))
def test_the_blocks_of_a_default_divide_and_fit(size: int, layout: str) -> None:
    blocks = default_blocks(size, layout)
    assert blocks
    assert blocks == sorted(set(blocks))
    assert all(size % block == 0 for block in blocks)
    if layout == "list" and blocks != [size]:
        assert 8 * (size // blocks[0] + 2) <= 1 << 19


def test_a_list_without_blocks_is_measured(nicety: Callable) -> None:
    assert default_blocks(4 << 20, "vector") == [16 << power for power in range(15)]
    assert default_blocks(4 << 20, "list")[0] == 128
    done = nicety("bench", "datatype", "--nic", "spin-discrete", "--layout", "list", "--size", "64Ki", "--json")
    assert done.status == 0, done.stderr
    assert [row["block_bytes"] for row in done.json()["rows"]][:2] == [16, 32]


DATATYPE = ["datatype", "--nic", "spin-discrete"]
BROADCAST = ["broadcast", "--nic", "spin-discrete"]


@given(
    lengths=st.lists(st.integers(1, 600), min_size=1, max_size=40),
    gap=st.integers(0, 50),
    long_block=st.sampled_from([1, 256, 10_000]),
    together=st.sampled_from([1, 3, 1 << 14]),
)
def test_blocks_go_to_their_places(lengths: list[int], gap: int, long_block: int, together: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(datatype, "_LONG_BLOCK", long_block)
        patch.setattr(datatype, "_TOGETHER", together)
        starts = np.cumsum([0, *lengths[:-1]])
        layout = datatype.Layout(np.array(lengths), starts + gap * np.arange(len(lengths)))
        message = np.random.default_rng(1).integers(1, 256, sum(lengths), np.uint8)
        memory = np.zeros(layout.span_bytes, np.uint8)
        layout.scatter(message, memory)
    parts = [message[start : start + length].tobytes() for start, length in zip(starts, lengths, strict=True)]
    assert memory.tobytes() == bytes(gap).join(parts)


@pytest.mark.parametrize("case", ["kv", "broadcast", "storage", "datatype", "accumulate", "matching"])
def test_a_card_without_handlers_is_refused(nicety: Callable[..., Any], case: str) -> None:
    done = nicety("bench", case, "--nic", "nfp-4000")
    assert (done.status, done.stdout) == (2, "")
    assert "nfp-4000 is of design nfp" in done.stderr
    assert "for example spin-discrete" in done.stderr


def test_too_little_memory_to_simulate(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise MemoryError("unable to allocate 8 GiB")

    monkeypatch.setattr(datatype.Layout, "scatter", full)
    case = Datatype(size=1024, blocks=[64])
    with pytest.raises(package.RunError, match=r"mode rdma.*block 64: this machine has too little memory"):
        package.run_usecase(case, nics=["spin-discrete"])


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ([*BROADCAST, "--nodes", "1:4"], ["--nodes", "2 nodes or more, not 1"]),
        ([*BROADCAST, "--nodes", "64"], ["64 nodes", "switch.ports is 36"]),
        ([*BROADCAST, "--nodes", "4", "--topology", "pair"], ["pair", "4"]),
        ([*BROADCAST, "--sizes", "0"], ["--sizes", "1 to 2Gi"]),
        ([*BROADCAST, "--sizes", "4Gi"], ["--sizes", "1 to 2Gi"]),
        ([*BROADCAST, "--sizes", "x"], ["--sizes", "not a number"]),
        ([*BROADCAST, "--mode", "spin"], ["'spin'", "rdma, portals4, spin-store, spin-stream"]),
        ([*BROADCAST, "--mode", "rdma", "--handlers", "x.c"], ["mode rdma runs no handlers"]),
        ([*BROADCAST, "--handlers", "gone.c"], ["gone.c", "no such file"]),
        ([*BROADCAST, "--noise", "1us"], ["1us"]),
        ([*BROADCAST, "--set", "hpu.coers=8"], ["hpu.coers", "hpu.cores"]),
        ([*BROADCAST, "--nodes", "32", "--set", "limits.triggered=2"], ["4 children", "limits.triggered"]),
        (["broadcast", "--nic", "spin-discreet"], ["spin-discreet", "spin-discrete"]),
        (["broadcast"], ["--nic"]),
        (["accumulate", "--nic", "spin-discrete", "--sizes", "12"], ["--sizes", "8, 16, 24", "not 12"]),
        (["accumulate", "--nic", "spin-discrete", "--sizes", "0"], ["--sizes", "not 0"]),
        (
            ["accumulate", "--nic", "spin-discrete", "--set", "packet.payload=100 B"],
            ["packets of 100 bytes split", "such as 96 B"],
        ),
        ([*DATATYPE, "--size", "4Mi", "--blocks", "48"], ["--blocks", "48 bytes do not divide", "4194304"]),
        ([*DATATYPE, "--size", "64", "--blocks", "128"], ["--blocks", "do not divide a message of 64"]),
        ([*DATATYPE, "--blocks", "0"], ["--blocks", "blocks of 0 bytes"]),
        (
            [*DATATYPE, "--size", "8Mi", "--blocks", "1"],
            ["--blocks", "not 8388608 of 1 bytes", "4Mi", "2 bytes or more"],
        ),
        ([*DATATYPE, "--size", "8:64"], ["--size 8:64", "one size"]),
        ([*DATATYPE, "--size", "2Gi", "--blocks", "1Gi"], ["--size", "1 to 1Gi"]),
        ([*DATATYPE, "--layout", "matrix"], ["'matrix'", "vector and list"]),
        ([*DATATYPE, "--layout", "list", "--blocks", "16"], ["262144 blocks", "HPU memory", "1048576"]),
        ([*DATATYPE, "--mode", "portals4"], ["'portals4'", "rdma, spin"]),
        ([*BROADCAST, "--csv", "no/such.csv"], ["--csv", "no folder"]),
    ],
)
def test_invalid_options_are_refused(nicety: Callable, command: Sequence[str], words: Sequence[str]) -> None:
    result = nicety("bench", *command)
    assert (result.status, result.stdout) == (2, "")
    assert [word for word in words if word not in result.stderr] == []
