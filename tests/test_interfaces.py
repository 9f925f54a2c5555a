"""Cards that many processes share: processes in host programs, their benchmarks, and refusals."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import nicety
from sizes import examples

Command = Callable[..., Any]


@pytest.fixture
def command(request: pytest.FixtureRequest) -> Command:
    """The command line."""
    started: Command = request.getfixturevalue("nicety")
    return started


def run(program: Any, nodes: int = 2, **options: Any) -> nicety.Run:
    return nicety.Cluster(nodes, "qnix", topology="pair" if nodes == 2 else "star", **options).run(program)


def test_processes_exchange_messages_in_every_way() -> None:
    async def process(host: nicety.Host, number: int) -> list[int]:
        me = host.vni.process(number)
        interface = await me.open()
        pool = await interface.register_pool(1 << 20)
        await host.compute(ns=2_000_000)
        there = (1 - host.rank, interface.number)
        lengths = []
        for tag, (how, length) in enumerate(
            [("auto", 0), ("pio", 1000), ("pool", 5000), ("copy", 5000), ("translate", 70_000)]
        ):
            out = pool[: max(length, 1)][:length] if how == "pool" else me.alloc(length)
            back = pool[500_000 : 500_000 + length] if how == "pool" else me.alloc(length)
            out.array[:] = number + tag
            receive = await interface.receive(back, source=there, tag=tag, how="auto" if how == "pio" else how)
            send = await interface.send(out, to=there, tag=tag, how=how)
            await interface.wait(send)
            while (completed := await interface.test(receive)) is None:
                pass
            assert (completed.rank, completed.vni, completed.truncated) == (*there, False)
            assert (back.array == number + tag).all()
            lengths.append(completed.length_bytes)
        await interface.close()
        return lengths

    async def main(host: nicety.Host) -> list[list[int]]:
        return await host.gather(*(process(host, number) for number in range(1, 9)))

    result = run(main)
    assert result.results[0] == [[0, 1000, 5000, 5000, 70_000]] * 8
    node = result.nodes[0]
    assert (node.vni.sends, node.vni.programmed_io_sends, node.vni.strays) == (40, 16, 0)
    assert (node.kernel.interrupts, node.kernel.wakes) == (0, 0)
    # To open, to close, for the pool, and for the two translated buffers; the first receive copies nothing.
    assert node.kernel.calls == 8 * 5


def test_objects_of_another_process_are_refused() -> None:
    async def main(host: nicety.Host) -> None:
        if host.rank == 1:
            return
        stranger = host.vni.process(5)
        mine = host.alloc(64)
        with pytest.raises(nicety.RunError, match="interface 0 belongs to process 0; process 5 cannot use it"):
            await stranger.interface(0).send(stranger.alloc(8), to=(1, 0))
        with pytest.raises(nicety.RunError, match="interface 9 is not open"):
            await stranger.interface(9).close()
        interface = await stranger.open()
        with pytest.raises(nicety.RunError, match="not in the memory of process 5"):
            await interface.send(mine, to=(1, 0))
        with pytest.raises(nicety.RunError, match="has interface 1 already"):
            await stranger.open()
        with pytest.raises(nicety.InputError, match="no node 2"):
            await interface.send(stranger.alloc(8), to=(2, 0))
        with pytest.raises(nicety.InputError, match=r"as in to=\(1, 0\)"):
            await interface.send(stranger.alloc(8), to=1)  # type: ignore[arg-type]
        with pytest.raises(nicety.InputError, match=r"'dma' is no way .* auto, pio, pool, copy, translate"):
            await interface.send(stranger.alloc(8), to=(1, 0), how="dma")  # type: ignore[arg-type]
        with pytest.raises(nicety.InputError, match="the maximum is 8388608"):
            await interface.register_pool((8 << 20) + 1)
        with pytest.raises(nicety.InputError, match="the maximum is 2097152"):
            await interface.send(stranger.alloc((2 << 20) + 1), to=(1, 0))
        with pytest.raises(nicety.RunError, match="has no operation 77"):
            await interface.wait(nicety.Operation(77))
        with pytest.raises(nicety.InputError, match="what a call that posts a transfer gives"):
            await interface.test(3)  # type: ignore[arg-type]

    assert run(main).nodes[0].vni.refused == 3


def test_other_cards_have_no_interfaces() -> None:
    async def main(host: nicety.Host) -> None:
        with pytest.raises(nicety.InputError, match="no virtual network interfaces, but a Portals interface"):
            await host.vni.process(1).open()

    nicety.Cluster(2, "spin-discrete").run(main)
    with pytest.raises(nicety.InputError, match=r"^host.portals of rank 0, qnix: a card of design qnix has no Portals"):
        nicety.Cluster(1, "qnix").run(_load)


async def _load(host: nicety.Host) -> None:
    host.portals.attach(nicety.Handlers("pingpong_stream.c"))


@examples(15)
@given(
    lengths=st.lists(st.integers(0, 9000) | st.sampled_from([1023, 1024, 1025, 4096]), min_size=1, max_size=12),
    late=st.booleans(),
    limit=st.sampled_from(["0 B", "1 KiB", "8 KiB"]),
)
def test_send_and_recv_bring_every_byte(lengths: list[int], late: bool, limit: str) -> None:
    async def main(host: nicety.Host) -> None:
        other = 1 - host.rank
        backs = [host.alloc(length) for length in lengths]
        pending = [] if late else [await host.post_recv(back, source=other) for back in backs]
        await host.barrier()
        for tag, length in enumerate(lengths):
            out = host.alloc(length)
            out.array[:] = (tag * 7 + host.rank) % 256
            await host.send(out, to=other, tag=tag)
        for tag, back in enumerate(backs):
            received = await host.recv(back, source=other) if late else await pending[tag]
            assert (received.tag, received.length_bytes) == (tag, lengths[tag])
            assert (back.array == (tag * 7 + other) % 256).all()

    run(main, set={"pio.limit": limit})


def test_registration_as_a_function_and_as_a_command(command: Command, tmp_path: Path) -> None:
    report = nicety.bench_registration(sizes=[64, 1750, 4096])
    assert report["crossovers"] == [{"nic": "qnix", "crossover_bytes": 1750}]
    assert [row["translate_ns"] for row in report["rows"]] == [2500.0] * 3
    arguments = ["bench", "registration", "--nic", "qnix", "--sizes", "64,1750,4Ki"]
    done = command(*arguments, "--json")
    assert json.loads(done.stdout) == report
    files = [str(tmp_path / name) for name in ("a.csv", "a.svg")]
    done = command(*arguments, "--csv", files[0], "--plot", files[1])
    assert "# qnix: translating takes no longer from 1750 B on" in done.stdout
    assert (tmp_path / "a.csv").read_text().startswith("nic,size_bytes,pages,copy_ns,translate_ns")
    assert (tmp_path / "a.svg").stat().st_size > 1000
    assert "2500.000" in report._repr_html_()  # type: ignore[attr-defined]


def test_fairness_as_a_function_and_as_a_command(command: Command, tmp_path: Path) -> None:
    report = nicety.bench_fairness(processes=[1, 8], size=8192, messages=4)
    assert all(row["jain_index"] > 0.95 and row["verified"] for row in report["rows"])
    arguments = ["bench", "fairness", "--nic", "qnix", "--processes", "1,8", "--size", "8Ki", "--messages", "4"]
    done = command(*arguments, "--json", "--plot", str(tmp_path / "a.svg"))
    assert json.loads(done.stdout) == report
    assert "Jain's index" in command(*arguments).stdout


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["registration", "--nic", "spin-discrete"], "does not register memory"),
        (["registration", "--nic", "qnix", "--sizes", "0"], "registers 1 to 2097152 bytes"),
        (["fairness", "--nic", "nfp-4000"], "no virtual network interfaces"),
        (["fairness", "--nic", "qnix", "--processes", "65"], "interfaces for 1 to 64"),
        (["fairness", "--nic", "qnix", "--size", "1:8"], "one size, as in --size 64Ki"),
        (["latency", "--nic", "qnix", "--mode", "rdma"], "qnix has no mode rdma"),
    ],
)
def test_mistakes_are_named(command: Command, arguments: list[str], expected: str) -> None:
    done = command("bench", *arguments)
    assert done.status == 2
    assert expected in done.stderr
