"""The key-value store: the time of its steps, its equivalence with a dict, and that a mistake is found."""

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
from nicety.usecases import KeyValue
from nicety.usecases.kv import Answer, Table, hash_of
from sizes import examples

WAY = 33.4 + 50 + 33.4
"""From card to card, without bytes: two wires, and a switch between."""


def rows(case: KeyValue, **options: Any) -> dict[tuple[str, str, int], dict[str, Any]]:
    """The rows by mode, operation and clients."""
    report = package.run_usecase(case, **{"nics": ["spin-discrete"], "topology": "star", **options})
    assert all(row["verified"] for row in report["rows"])
    return {(row["mode"], row["operation"], row["clients"]): row for row in report["rows"]}


def test_a_lookup_of_an_absent_key() -> None:
    # The only lookup of seed 4 is of an absent key, and the only bucket in use is another one.
    found = rows(KeyValue(clients=[1], operations=["lookup"], requests=1, buckets=1 << 16), seed=4)
    there, back = 65 + 250 + 16 * 0.02 + WAY + 30, 250 + WAY + 30 + 250 + 65
    # The CPU's hash takes 4 cycles per byte and the bucket 8, which is more than the time of memory for the two lines.
    # The request is 16 bytes over the bus.
    host = there + 0.25 + 250 + 65 + (51 + (16 * 4 + 8) * 0.4) + 65 + back
    assert found["host", "lookup", 1]["latency_ns"] == pytest.approx(host, abs=0.003)
    # The card reads the bucket of 88 bytes, and answers without the bus.
    handler = found["spin", "lookup", 1]["latency_ns"] - (there + 500 + 88 * 0.0156 + back - 250)
    assert 0 < handler < 120


def test_a_plain_table() -> None:
    assert hash_of(b"") == 0x811C9DC5
    assert hash_of(b"foobar") == 0xBF9CF968  # one of the authors' test vectors
    table = Table(np.zeros(3 * 24, np.uint8), 8, 8)
    keys = [bytes([number] * 8) for number in range(4)]
    assert [table.insert(key, bytes(8))[0] for key in keys] == [Answer.INSERTED] * 3 + [Answer.FULL]
    assert table.insert(keys[1], keys[2])[0] == Answer.UPDATED
    probed, found = table.find(keys[1])
    assert found
    assert table.value(probed[-1]) == keys[2]
    assert table.find(keys[3]) == ([(hash_of(keys[3]) + step) % 3 for step in range(3)], False)


def test_count_of_taken_buckets() -> None:
    table = Table(np.zeros(5 * 24, np.uint8), 8, 8)
    assert table.used == 0
    for number in range(3):
        table.insert(bytes([number]) * 8, bytes(8))
        assert table.used == number + 1
    table.insert(bytes(8), bytes([1]) * 8)
    assert table.used == 3


def test_a_large_table(nicety: Callable) -> None:
    sizes = ["--buckets", "1Mi", "--key-bytes", "16", "--value-bytes", "1Ki"]
    result = nicety(
        "bench",
        "kv",
        "--nic",
        "spin-discrete",
        "--clients",
        "1",
        "--requests",
        "2",
        *sizes,
        "--operation",
        "insert",
        "--json",
    )
    assert result.status == 0, result.stderr
    assert {row["buckets"] for row in result.json()["rows"]} == {1 << 20}


@given(
    clients=st.integers(1, 5),
    requests=st.integers(1, 12),
    key=st.sampled_from([8, 16, 40]),
    value=st.sampled_from([8, 64, 200]),
    buckets=st.integers(1, 80),
    cores=st.sampled_from([1, 4]),
    mode=st.sampled_from(["host", "spin"]),
    seed=st.integers(0, 1000),
)
@examples(40)
def test_the_table_is_a_dict(
    clients: int, requests: int, key: int, value: int, buckets: int, cores: int, mode: str, seed: int
) -> None:
    """Collisions, updates, absent keys and full tables: every reply, and the table, is compared inside."""
    case = KeyValue(clients=[clients], requests=requests, key_bytes=key, value_bytes=value, buckets=buckets)
    found = rows(case, modes=[mode], seed=seed, overrides=[f"hpu.cores={cores}"])
    for row in found.values():
        assert 0 < row["latency_ns"] / 1000 <= row["operation_p99_ns"] * 1.001
        assert row["operations_per_s"] <= clients * 1e9 / row["latency_ns"] * 1.001


def test_inserts_are_of_distinct_keys() -> None:
    """Nothing is updated, so the table has a bucket per insert, and updates take longer."""
    case = KeyValue(clients=[16], operations=["insert", "update"])
    found = rows(case, modes=["spin"])
    insert, update = (found["spin", operation, 16] for operation in ("insert", "update"))
    # A handler claims a free bucket over the bus once. For a present key it also reads the key, and claims it again.
    assert insert["operations_per_s"] > 2 * update["operations_per_s"]
    # By default nothing is refused: there are four buckets per key.
    assert (insert["buckets"], insert["refused"], update["refused"]) == (4 * 16 * 64, 0, 0)
    exact = rows(KeyValue(clients=[4], operations=["insert"], requests=8, buckets=4 * 8))
    assert [row["refused"] for row in exact.values()] == [0, 0]
    short = rows(KeyValue(clients=[4], operations=["insert"], requests=8, buckets=4 * 8 - 1))
    assert [row["refused"] for row in short.values()] == [1, 1]


def test_handlers_insert_distinct_keys_faster_than_a_cpu() -> None:
    found = rows(KeyValue(clients=[32], operations=["insert"]))
    rate = {mode: found[mode, "insert", 32]["operations_per_s"] for mode in ("host", "spin")}
    assert rate["spin"] > 1.15 * rate["host"]


def test_refused_requests_are_told_and_fail_the_command(nicety: Callable, tmp_path: Path) -> None:
    command = ["bench", "kv", "--nic", "spin-discrete", "--requests", "8", "--buckets", "12", "--operation", "insert"]
    result = nicety(*command, "--clients", "1,2")
    assert result.status == 1
    lines = result.stdout.splitlines()
    head = next(at for at, line in enumerate(lines) if line.startswith("# Clients"))
    assert lines[head].split() == ["#", "Clients", "host", "refused", "spin", "refused"]
    assert [line.split()[2::2] for line in lines[head + 1 : head + 3]] == [["0", "0"], ["4", "4"]]
    told = result.stderr.splitlines()
    assert len(told) == 2
    assert told[1].startswith("spin-discrete, mode spin, operation insert, clients 2, ")
    assert told[1].endswith(
        "4 requests were refused: the table is full, with 12 buckets for 16 keys; leave --buckets out for four "
        "buckets per key, or set it to 64"
    )
    result = nicety(*command, "--clients", "2", "--mode", "spin", "--json")
    assert result.status == 1
    assert result.json()["rows"][0]["refused"] == 4
    (failure,) = result.json()["incomplete"]
    assert (failure["nic"], failure["mode"], failure["point"]["clients"]) == ("spin-discrete", "spin", 2)
    assert "4 requests were refused" in failure["text"]
    result = nicety(*command, "--clients", "2", "--percentiles")
    assert result.status == 1
    shown = [line for line in result.stdout.splitlines() if line and not line.startswith("# ")]
    assert [line.split()[-1] for line in shown] == ["4", "4"]
    result = nicety(*command, "--clients", "1")
    assert (result.status, result.stderr) == (0, "")
    assert "refused" not in result.stdout


def test_several_clients_are_served_together() -> None:
    found = rows(KeyValue(clients=[1, 4], requests=20))
    for mode in ("host", "spin"):
        for operation in ("insert", "lookup"):
            one, four = (found[mode, operation, clients]["operations_per_s"] for clients in (1, 4))
            assert 3 * one < four < 4.2 * one
    moved = {mode: found[mode, "insert", 4]["host_memory_written_bytes"] for mode in ("host", "spin")}
    assert moved["spin"] < moved["host"]


def test_the_same_seed_gives_the_same_report(nicety: Callable) -> None:
    command = ["bench", "kv", "--nic", "spin-discrete", "--clients", "2", "--requests", "5", "--noise", "20us,5us"]
    first, second = nicety(*command, "--json"), nicety(*command, "--json")
    assert (first.status, first.stderr) == (0, "")
    assert first.stdout == second.stdout
    row = first.json()["rows"][0]
    assert {"nic", "mode", "operation", "clients", "requests", "key_bytes", "value_bytes", "buckets"} <= set(row)
    assert nicety(*command, "--json", "--seed", "2").stdout != first.stdout


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ("h->base + s->key_bytes, value", "h->base, value", "another value"),
        ("if (found == 0) {", "if (1) {", "instead of UPDATED"),
        ("probed < s->buckets;", "probed < 2;", " buckets are empty"),
        ("at + 1 == s->buckets ? 0 : at + 1", "at + 0", "buckets are empty"),
    ],
)
def test_handlers_with_a_mistake(nicety: Callable, tmp_path: Path, before: str, after: str, words: str) -> None:
    text = library_source("kv.c").read_text()
    assert before in text
    path = tmp_path / "wrong.c"
    path.write_text(text.replace(before, after))
    command = ["bench", "kv", "--nic", "spin-discrete", "--buckets", "24", "--requests", "24", "--clients", "1"]
    command += ["--operation", "update"]
    result = nicety(*command, "--handlers", path)
    assert (result.status, result.stdout) == (1, "")
    assert "nicety: spin-discrete, mode spin, operation update, " in result.stderr
    assert words in result.stderr


def test_a_bucket_that_two_take(nicety: Callable, tmp_path: Path) -> None:
    """Without compare-and-swap, two of several clients find the same bucket empty, and one of their keys is lost."""
    text = library_source("kv.c").read_text()
    swap = "PtlHandlerDMACASB(bucket, &found, busy, PTL_HANDLER_HOST_MEM)"
    assert swap in text
    path = tmp_path / "wrong.c"
    path.write_text(text.replace(swap, "PtlHandlerDMAFromHostB(bucket, &found, 8, PTL_HANDLER_HOST_MEM)"))
    command = ["bench", "kv", "--nic", "spin-discrete", "--mode", "spin", "--buckets", "128", "--clients", "16"]
    assert nicety(*command, "--requests", "8").status == 0
    result = nicety(*command, "--requests", "8", "--handlers", path)
    assert (result.status, result.stdout) == (1, "")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--clients", "0"], ["--clients", "not 0"]),
        (["--clients", "1025"], ["--clients", "1 to 1024", "not 1025"]),
        (["--requests", "0"], ["--requests", "not 0"]),
        (["--key-bytes", "12"], ["--key-bytes", "8, 16, 24", "not 12"]),
        (["--value-bytes", "0"], ["--value-bytes", "not 0"]),
        (["--value-bytes", "4088"], ["4104 bytes", "packet of 4096", "packet.payload"]),
        (["--buckets", "0"], ["--buckets", "1 bucket or more", "not 0"]),
        (["--buckets", "100000000"], ["--buckets", "2147483648"]),
        (["--buckets", "1Gi"], ["--buckets", "1073741824 buckets"]),
        (["--buckets", "8:64"], ["--buckets 8:64", "one number"]),
        (["--value-bytes", "64k"], ["--value-bytes", "64016 bytes"]),
        (["--operation", "delete"], ["--operation", "'delete'", "insert, update, lookup"]),
        (["--mode", "rdma"], ["'rdma'", "host, spin"]),
        (["--topology", "pair"], ["pair"]),
        (["--set", "hpu.memory=256 B"], ["HPU memory", "hpu.memory"]),
    ],
)
def test_invalid_options_are_refused(nicety: Callable, options: Sequence[str], words: Sequence[str]) -> None:
    result = nicety("bench", "kv", "--nic", "spin-discrete", *options)
    assert (result.status, result.stdout) == (2, "")
    assert [word for word in words if word not in result.stderr] == []
