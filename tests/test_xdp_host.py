"""`host.xdp`: programs that host programs attach to the driver, and their maps."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import pytest

import nicety
from nicety.build.xdp import compile_xdp

COUNT = """#include <xdp.h>
struct limit {
    __u32 port;
    __u32 verdict;
};
struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 4);
    __type(key, __u32);
    __type(value, struct limit);
} limits SEC(".maps");
struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, 2);
    __type(key, __u32);
    __type(value, __u64);
} frames SEC(".maps");
SEC("xdp") int count(struct xdp_md *context) {
    unsigned char *data = xdp_data(context);
    if (data + 42 > (unsigned char *)xdp_end(context) || data[23] != IPPROTO_UDP) {
        return XDP_PASS;
    }
    __u32 key = 0;
    __u64 *frame = bpf_map_lookup_elem(&frames, &key);
    struct limit *limit = bpf_map_lookup_elem(&limits, &key);
    if (frame) {
        (*frame)++;
    }
    return limit ? (int)limit->verdict : XDP_PASS;
}
SEC("xdp") int nothing(struct xdp_md *context) { return XDP_DROP; }
char _license[] SEC("license") = "GPL";
"""
NIC = "ethernet-100g"
ROOT = Path(__file__).parents[1]


@cache
def built() -> Path:
    import tempfile

    folder = Path(tempfile.mkdtemp(prefix="nicety-xdp-"))
    (folder / "count.c").write_text(COUNT)
    return compile_xdp(folder / "count.c", output=folder / "count.o")


def alone(program: Any, nic: str = NIC) -> Any:
    return nicety.Cluster(2, nic).run({0: program}).results[0]


def test_a_program_counts_and_drops_as_its_maps_say() -> None:
    async def receiver(host: nicety.Host) -> Any:
        socket = host.socket.datagram()
        await socket.bind(9)
        program = host.xdp.load(built(), program="count")
        assert (program.name, sorted(program.maps)) == ("count", ["frames", "limits"])
        await host.xdp.attach(program)
        await host.barrier()
        first, _ = await socket.recvfrom(100)
        await program.maps["limits"].set(0, {"port": 9, "verdict": 1})
        await host.barrier()
        await host.barrier()
        await host.compute(ns=100_000)
        await host.barrier()
        await program.maps["limits"].delete(0)
        await host.barrier()
        third, _ = await socket.recvfrom(100)
        await host.barrier()
        counts = await program.maps["frames"].get(0)
        return first[0], third[0], sum(counts), len(counts), await host.xdp.detach(), await host.xdp.detach()

    async def paced(host: nicety.Host) -> None:
        socket = host.socket.datagram()
        await host.barrier()
        await socket.sendto(bytes(20), 1, 9)
        await host.barrier()
        await socket.sendto(bytes([1]) * 20, 1, 9)
        await host.barrier()
        await host.barrier()
        await host.barrier()
        await socket.sendto(bytes([2]) * 20, 1, 9)
        await host.barrier()

    run = nicety.Cluster(2, NIC).run({0: paced, 1: receiver})
    assert run.results[1] == (0, 2, 3, 64, True, False)
    found = run.nodes[1].socket.xdp
    assert found is not None
    assert (found.dropped, found.aborted, found.trapped) == (1, 0, 0)
    assert run.nodes[0].socket.xdp is None


def test_entries_are_read_written_and_removed() -> None:
    async def main(host: nicety.Host) -> Any:
        program = host.xdp.load(
            built(), program="count", maps={"limits": [{"key": 7, "value": {"port": 1, "verdict": 2}}]}
        )
        limits = program.maps["limits"]
        await limits.set(8, {"port": 3, "verdict": 4})
        found = await limits.get(8), await limits.get(9), sorted(key for key, _ in await limits.items())
        return *found, await limits.delete(8), await limits.delete(8), len(await limits.items())

    assert alone(main) == ({"port": 3, "verdict": 4}, None, [7, 8], True, False, 1)


def test_calls_take_the_time_of_system_calls() -> None:
    async def main(host: nicety.Host) -> Any:
        program = host.xdp.load(built(), program="count")
        frames, times = program.maps["frames"], []
        # A thread that has just been started pays for its switch once.
        await frames.get(0)
        for call in (lambda: frames.get(0), lambda: host.xdp.attach(program), frames.items):
            begin = host.now_ps
            await call()
            times.append(host.now_ps - begin)
        return times

    get, attach, items = alone(main)
    # 300 instructions at 3.55 GHz; two entries are five calls.
    assert (get, attach, items) == (84_508, 84_508, 5 * 84_508)


def test_a_program_is_replaced() -> None:
    async def main(host: nicety.Host) -> Any:
        await host.xdp.attach(host.xdp.load(built(), program="count"))
        await host.xdp.attach(host.xdp.load(built(), program="nothing", mode="generic"))
        return await host.xdp.detach(), await host.xdp.detach()

    assert alone(main) == (True, False)


def test_a_program_is_attached_on_the_host_that_loaded_it() -> None:
    loaded: list[Any] = []

    async def load(host: nicety.Host) -> None:
        loaded.append(host.xdp.load(built(), program="count"))
        await host.barrier()

    async def attach(host: nicety.Host) -> None:
        await host.barrier()
        with pytest.raises(nicety.InputError, match="another host has loaded count; load it on this host"):
            host.xdp.attach(loaded[0])

    nicety.Cluster(2, NIC).run({0: load, 1: attach})


@pytest.mark.parametrize(
    ("act", "error"),
    [
        (lambda host: host.xdp.load("none.o"), "none.o: cannot read it"),
        (lambda host: host.xdp.load(built()), "it has 2 programs: count, nothing"),
        (
            lambda host: host.xdp.load(built(), program="count", mode="fast"),
            "mode is 'native' or 'generic', not 'fast'",
        ),
        (lambda host: host.xdp.load(built(), program="count").maps["flows"], "no map 'flows'; it has"),
        (lambda host: host.xdp.load(built(), program="count", maps={"limits": [{}]}), "map limits: entry 0: no key"),
        (lambda host: host.xdp.attach(built()), "attach takes what host.xdp.load returns"),
    ],
)
def test_mistakes_are_told(act: Any, error: str) -> None:
    async def main(host: nicety.Host) -> Any:
        with pytest.raises(nicety.InputError) as failed:
            act(host)
        return str(failed.value)

    assert error in alone(main)


def test_a_full_map_and_a_wrong_key_are_errors() -> None:
    async def main(host: nicety.Host) -> Any:
        limits = host.xdp.load(built(), program="count").maps["limits"]
        texts = []
        for key in range(5):
            try:
                await limits.set(key, {"port": 0, "verdict": 0})
            except nicety.InputError as failed:
                texts.append(str(failed))
        with pytest.raises(nicety.InputError) as failed:
            await limits.get("port")
        return texts, str(failed.value)

    full, wrong = alone(main)
    assert len(full) == 1
    assert "map limits: the hash does not accept this entry" in full[0]
    assert wrong.startswith("map limits: ")


def test_constants_keep_their_values_behind_the_load(tmp_path: Path) -> None:
    firewall = compile_xdp(ROOT / "handlers/xdp/firewall.c", output=tmp_path / "firewall.o")

    async def main(host: nicety.Host) -> Any:
        with pytest.raises(nicety.InputError) as failed:
            await host.xdp.load(firewall).maps[".rodata"].set(0, [0])
        return str(failed.value)

    assert "map .rodata: a loader freezes constants; give them when the program is loaded" in alone(main)


def test_other_cards_have_no_xdp() -> None:
    async def main(host: nicety.Host) -> Any:
        with pytest.raises(nicety.InputError) as failed:
            host.xdp.load(built())
        return str(failed.value)

    assert alone(main, "spin-discrete").startswith("host.xdp of rank 0, spin-discrete: ")
