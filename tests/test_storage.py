"""RAID-5 storage: the time of its steps, that nothing is lost with concurrent handlers, and that a wrong byte is
found."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import nicety as package
from nicety.build.compiler import library_source
from nicety.usecases import Storage
from sizes import examples

WAY = 33.4 + 50 + 33.4
"""From card to card, without bytes: two wires, and a switch between."""


def figures(case: Storage, figure: str = "latency_ns", **options: Any) -> dict[tuple[str, str, int], float]:
    """A figure of each row by mode, operation and size."""
    report = package.run_usecase(case, **{"nics": ["spin-discrete"], **options})
    assert all(row["verified"] for row in report["rows"])
    return {(row["mode"], row["operation"], row["size_bytes"]): row[figure] for row in report["rows"]}


def test_a_read_is_two_messages() -> None:
    found = figures(Storage(sizes=[8], operations=["read"]))
    there, back = 65 + 250 + WAY + 30, 0.16 + WAY + 30 + 0.125 + 250 + 65
    # The server's CPU notices the request, and posts the answer; the card fetches its bytes.
    assert found["host", "read", 8] == pytest.approx(there + 250 + 65 + 65 + 250 + back, abs=0.003)
    handler = found["spin", "read", 8] - (there + 500 + back)
    assert 0 < handler < 40
    assert handler / 0.4 == pytest.approx(round(handler / 0.4), abs=0.02)


def test_a_write_is_four_messages() -> None:
    found = figures(Storage(sizes=[8], operations=["write"], requests=1))
    there, host = 65 + 250 + 0.16 + WAY + 30 + 0.125 + 250 + 65, 65 + 250 + WAY + 30 + 250 + 65
    # Each CPU that XORs waits for about two lines, and the parity server's gets the second message.
    xor = found["host", "write", 8] - 2 * there - 2 * host
    assert 2 * 51 < xor < 2 * 60
    assert found["spin", "write", 8] < found["host", "write", 8]


def test_host_memory_traffic_of_writes() -> None:
    case = Storage(sizes=[64 << 10], operations=["write"], requests=1)
    read, written = (figures(case, f"host_memory_{way}_bytes") for way in ("read", "written"))
    # The client's block, the old one, and the parity; the block, and the parity.
    assert read["spin", "write", 64 << 10] == 3 * (64 << 10)
    assert written["spin", "write", 64 << 10] == 2 * (64 << 10)
    assert read["host", "write", 64 << 10] > read["spin", "write", 64 << 10]
    assert written["host", "write", 64 << 10] > written["spin", "write", 64 << 10]


def test_more_processors_write_faster() -> None:
    case = Storage(sizes=[256 << 10], operations=["write", "rebuild"], requests=1)
    few, many = (figures(case, modes=["spin"], overrides=[f"hpu.cores={cores}"]) for cores in (2, 8))
    assert few["spin", "write", 256 << 10] > 3 * many["spin", "write", 256 << 10]
    # Parts of the same place, from several servers, wait for each other.
    assert few["spin", "rebuild", 256 << 10] > 2 * many["spin", "rebuild", 256 << 10]


@given(
    size=st.integers(1, 20_000),
    servers=st.integers(2, 6),
    requests=st.integers(1, 4),
    payload=st.sampled_from([8, 100, 1000, 4096]),
    cores=st.sampled_from([1, 4, 16]),
    mode=st.sampled_from(["host", "spin"]),
    operation=st.sampled_from(["write", "rebuild"]),
    seed=st.integers(0, 1000),
)
@examples(40)
def test_nothing_is_lost(
    size: int, servers: int, requests: int, payload: int, cores: int, mode: str, operation: str, seed: int
) -> None:
    """Overlapping blocks at all servers at once: contents, parity, and a rebuilt server's bytes are right."""
    size = min(size, 40 * payload)
    case = Storage(sizes=[size], operations=[operation], servers=servers, requests=requests)
    changes = [f"packet.payload={payload} B", f"hpu.cores={cores}"]
    figures(case, modes=[mode], seed=seed, overrides=changes, noise="10us,1us")


def test_an_array_in_a_fat_tree(nicety: Callable) -> None:
    command = ["bench", "storage", "--nic", "spin-integrated", "--sizes", "512", "--servers", "3", "--json"]
    near, far = nicety(*command), nicety(*command, "--topology", "fat-tree:4")
    assert (near.status, far.status, far.stderr) == (0, 0, "")
    for row, further in zip(near.json()["rows"], far.json()["rows"], strict=True):
        assert (row["servers"], row["requests"], row["size_bytes"]) == (3, 4, 512)
        assert row["latency_ns"] < further["latency_ns"]
        assert row["bandwidth_bytes_per_s"] == pytest.approx(512e9 / row["latency_ns"])


@pytest.mark.parametrize(
    ("operation", "before", "after"),
    [
        ("write", "a[0] = a0 ^ b0", "a[0] = a0"),
        ("write", "before + h.packet_length == h.hdr_data", "before == 0"),
        ("rebuild", "while (!PtlHandlerCAS(lock, 0, 1))", "while (0)"),
        ("read", "h->hdr_data >> 32", "(h->hdr_data >> 32) + 1"),
    ],
)
def test_handlers_with_a_mistake(nicety: Callable, tmp_path: Path, operation: str, before: str, after: str) -> None:
    text = library_source("storage.c").read_text()
    assert before in text
    path = tmp_path / "wrong.c"
    path.write_text(text.replace(before, after))
    command = ["bench", "storage", "--nic", "spin-discrete", "--sizes", "16Ki", "--operation", operation]
    result = nicety(*command, "--handlers", path)
    assert (result.status, result.stdout) == (1, "")
    assert f"nicety: spin-discrete, mode spin, operation {operation}, " in result.stderr


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--sizes", "0"], ["--sizes", "1 to 256Mi", "not 0"]),
        (["--servers", "1"], ["--servers", "2 to 62", "not 1"]),
        (["--requests", "0"], ["--requests", "not 0"]),
        (["--operation", "write,format"], ["--operation", "'format'", "write, read, rebuild"]),
        (["--operation", "write,"], ["--operation", "empty name"]),
        (["--mode", "rdma"], ["'rdma'", "host, spin"]),
        (["--topology", "pair"], ["pair", "6"]),
        (["--set", "hpu.memory=16 KiB"], ["HPU memory", "16384", "hpu.memory"]),
    ],
)
def test_invalid_options_are_refused(nicety: Callable, options: Sequence[str], words: Sequence[str]) -> None:
    result = nicety("bench", "storage", "--nic", "spin-discrete", *options)
    assert (result.status, result.stdout) == (2, "")
    assert [word for word in words if word not in result.stderr] == []
