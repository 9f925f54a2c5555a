"""Message matching: the time of its steps, the targets of messages as in MPI, and that a mistake is found."""

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
from nicety.usecases import Matching, Overlap
from nicety.usecases.matching import overlap_ratio
from nicety.usecases.messenger import ANY, CardMessenger, CpuMessenger, Messenger, Receive
from sizes import examples

HALF_PING_PONG = 65 + 250 + 0.16 + 33.4 + 30 + 0.125 + 250 + 65


def figures(case: Matching, figure: str = "latency_ns", **options: Any) -> dict[tuple[str, str, int], float]:
    """A figure of each row by mode, arrival and size."""
    report = package.run_usecase(case, **{"nics": ["spin-discrete"], **options})
    assert all(row["verified"] for row in report["rows"])
    return {(row["mode"], row["arrival"], row["size_bytes"]): row[figure] for row in report["rows"]}


def cycles(ns: float) -> float:
    """The difference of a handler's time from a whole number of cycles of 0.4 ns, in cycles."""
    return abs(ns / 0.4 - round(ns / 0.4))


def test_a_short_message() -> None:
    found = figures(Matching(sizes=[8]))
    # The CPU searches its list, o, and copies a line that memory brings; another goes back.
    copied = 51 + 1.193
    assert found["host", "expected", 8] == pytest.approx(HALF_PING_PONG + 65 + copied, abs=0.002)
    handler = found["spin", "expected", 8] - HALF_PING_PONG
    assert 0 < handler < 10
    assert cycles(handler) < 0.01
    # It notices the message, and nothing more; matches it with no receive, and then the receive with it.
    assert found["host", "unexpected", 8] == pytest.approx(4 * 65 + copied, abs=0.002)
    # The match entry goes to the card and the answer returns; it is noticed, and then the event.
    assert found["spin", "unexpected", 8] == pytest.approx(65 + 500 + 2 * 65 + copied, abs=0.002)


def test_a_long_message() -> None:
    found = figures(Matching(sizes=[16384], arrivals=["expected"]))
    # The sender posts an entry and the request; the get goes back, and the bytes are fetched and arrive in four
    # packets.
    request, get = 2 * 65 + 250 + 33.4 + 30, 33.4 + 30 + 500
    come = 327.68 + 33.4 + 2 + 63.898 + 250 + 65
    handler = found["spin", "expected", 16384] - (request + get + come)
    assert 0 < handler < 20
    assert cycles(handler) < 0.02
    # The CPU notices the request, searches its list, and posts the get.
    host = request + (250 + 65 + 65 + 65 + 250) + get + come
    assert found["host", "expected", 16384] == pytest.approx(host, abs=0.003)


def test_computing_hides_a_share() -> None:
    case = Overlap(sizes=[1024, 64 << 10, 1 << 20], eager_bytes=4096)
    found = figures(case, "overlap_ratio")
    assert all(0 <= ratio <= 1 for ratio in found.values())
    # A CPU that computes gets nothing; the card does, and only the notice at the end is left.
    assert found["host", "expected", 1 << 20] < 0.05
    assert found["spin", "expected", 1 << 20] > 0.99
    # If the receive is late, the CPU posts the get before it computes, in both.
    assert all(found[mode, "unexpected", 1 << 20] > 0.95 for mode in ("host", "spin"))
    latency, plain = figures(case), figures(Matching(sizes=[1024, 64 << 10, 1 << 20], eager_bytes=4096))
    assert latency == plain


def test_the_overlap_is_a_share() -> None:
    assert overlap_ratio(1000, 1000) == 1
    assert overlap_ratio(1000, 1250) == 0.75
    assert overlap_ratio(1000, 2000) == overlap_ratio(1000, 2100) == 0
    assert overlap_ratio(1000, 900) == 1


def test_traffic_of_host_memory() -> None:
    case = Matching(sizes=[4096, 64 << 10], eager_bytes=4096, arrivals=["expected"])
    written = figures(case, "host_memory_written_bytes")
    assert written["host", "expected", 4096] == 2 * written["spin", "expected", 4096] == 8192
    assert written["host", "expected", 64 << 10] == written["spin", "expected", 64 << 10] == 64 << 10


EAGER = 64
Sent = list[tuple[int, int, int]]
"""For each message: its tag, its length, and its sender's wait before it."""


async def _messenger(host: package.Host, mode: str) -> Messenger:
    made: Messenger
    if mode == "host":
        made = CpuMessenger(host, eager_bytes=EAGER, unexpected_bytes=4096, match_ns=65)
    else:
        handlers = host.portals.attach(package.Handlers(library_source("matching.c")))
        made = CardMessenger(host, eager_bytes=EAGER, unexpected_bytes=4096, handlers=handlers)
    await made.set_up()
    return made


def _content(source: int, number: int, length: int) -> Any:
    return np.random.default_rng([source, number]).integers(0, 256, length, np.uint8)


def exchange(
    mode: str, sends: list[Sent], receives: list[tuple[int | None, int | None]], pauses: list[int]
) -> list[Receive]:
    """Ranks from 1 on send to rank 0, which posts these receives with pauses between them, and waits for all."""

    async def sender(host: package.Host) -> None:
        messages, sending = await _messenger(host, mode), []
        await host.barrier()
        for number, (tag, length, pause) in enumerate(sends[host.rank - 1]):
            out = host.alloc(length)
            out.array[:] = _content(host.rank, number, length)
            await host.compute(ns=pause)
            sending.append(await messages.send(out, to=0, tag=tag))
        for one in sending:
            await messages.sent(one)

    async def receiver(host: package.Host) -> list[Receive]:
        messages, posted = await _messenger(host, mode), []
        await host.barrier()
        for (source, tag), pause in zip(receives, pauses, strict=True):
            await host.compute(ns=pause)
            posted.append(await messages.receive(host.alloc(400), source=source, tag=tag))
        for one in posted:
            await messages.wait(one)
        return posted

    programs: dict[int, Any] = dict.fromkeys(range(1, len(sends) + 1), sender)
    run = package.Cluster(len(sends) + 1, "spin-discrete", topology="star").run({0: receiver, **programs})
    found: list[Receive] = run.results[0]
    return found


@given(data=st.data(), mode=st.sampled_from(["host", "spin"]))
@examples(40)
def test_messages_go_where_mpi_wants_them(data: st.DataObject, mode: str) -> None:
    message = st.tuples(st.integers(0, 2), st.integers(1, 300), st.integers(0, 3000))
    sends = data.draw(st.lists(st.lists(message, max_size=5), min_size=1, max_size=3))
    left = [(source, tag) for source, sent in enumerate(sends, 1) for tag, _, _ in sent]
    # Specific receives are first, so that none of the others takes their messages.
    exact = [one for one in data.draw(st.permutations(left)) if data.draw(st.booleans())]
    for one in exact:
        left.remove(one)
    of_source = [source for source, _ in left if data.draw(st.booleans())]
    receives: list[tuple[int | None, int | None]] = [*exact, *((source, ANY) for source in of_source)]
    receives += [(ANY, ANY)] * (len(left) - len(of_source))
    pauses = [data.draw(st.integers(0, 5000)) for _ in receives]

    taken: dict[tuple[int, int], int] = {}
    for order, receive in enumerate(exchange(mode, sends, receives, pauses)):
        # Its bytes identify the message.
        sent = sends[receive.source - 1]
        fitting = [
            number
            for number, (tag, length, _) in enumerate(sent)
            if (tag, length) == (receive.tag, receive.length_bytes)
        ]
        bytes_ = receive.buffer.array[: receive.length_bytes]
        numbers = [n for n in fitting if (bytes_ == _content(receive.source, n, receive.length_bytes)).all()]
        number = next(n for n in numbers if (receive.source, n) not in taken)
        source, tag = receives[order]
        assert source in (ANY, receive.source)
        assert tag in (ANY, receive.tag)
        taken[receive.source, number] = order
        # No message has overtaken an earlier one of its sender that this receive would have taken.
        for earlier in range(number):
            if tag in (ANY, sent[earlier][0]):
                assert (receive.source, earlier) in taken
    assert len(taken) == sum(map(len, sends))


@pytest.mark.parametrize("mode", ["host", "spin"])
@pytest.mark.parametrize("pause", [0, 100_000], ids=["expected", "unexpected"])
def test_a_message_that_is_too_long(mode: str, pause: int) -> None:
    with pytest.raises(package.Error, match="a message of 401 bytes from rank 1 with tag 1 into a buffer of 400"):
        exchange(mode, [[(1, 401, 1000)]], [(1, 1)], [pause])


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("MATCHING_DATA | h.hdr_data >> 32", "h.match_bits"),
        ("PTL_ME_HOST_MEM, 1, h.source_id, data, 0)", "PTL_ME_HOST_MEM, 1, h.source_id, data, 1)"),
        ("PtlHandlerGetToHost(0, length", "PtlHandlerGetToHost(0, length - 1"),
    ],
)
def test_handlers_with_a_mistake(nicety: Callable, tmp_path: Path, before: str, after: str) -> None:
    text = library_source("matching.c").read_text()
    assert before in text
    path = tmp_path / "wrong.c"
    path.write_text(text.replace(before, after))
    command = ["bench", "matching", "--nic", "spin-discrete", "--sizes", "64Ki", "--arrival", "expected"]
    result = nicety(*command, "--handlers", path)
    assert (result.status, result.stdout) == (1, "")
    assert "nicety: spin-discrete, mode spin, arrival expected, " in result.stderr


def test_the_command(nicety: Callable) -> None:
    command = ["bench", "matching", "--nic", "spin-integrated", "--sizes", "8,64Ki", "--overlap", "--json"]
    result = nicety(*command, "--noise", "20us,5us", "--eager", "0", "--arrival", "expected")
    assert (result.status, result.stderr) == (0, "")
    rows = result.json()["rows"]
    assert len(rows) == 4
    for row in rows:
        assert (row["eager_bytes"], row["arrival"]) == (0, "expected")
        assert {"overlap_ratio", "latency_ns", "bandwidth_bytes_per_s", "host_memory_read_bytes"} <= set(row)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--sizes", "0"], ["--sizes", "not 0"]),
        (["--sizes", "2Gi"], ["--sizes", "1 to 1Gi"]),
        (["--eager", "2Gi"], ["--eager", "0 to 1Gi"]),
        (["--eager", "8:64"], ["--eager 8:64", "one size"]),
        (["--arrival", "late"], ["--arrival", "'late'", "expected and unexpected"]),
        (["--mode", "rdma"], ["'rdma'", "host, spin"]),
    ],
)
def test_invalid_options_are_refused(nicety: Callable, options: Sequence[str], words: Sequence[str]) -> None:
    result = nicety("bench", "matching", "--nic", "spin-discrete", *options)
    assert (result.status, result.stdout) == (2, "")
    assert [word for word in words if word not in result.stderr] == []
