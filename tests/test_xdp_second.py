"""XDP programs and their host: records, programs behind a redirect, lines of XDP_ABORTED, and rules of a card."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import nicety
from nicety.build.xdp import compile_xdp

EVENTS = """#include <xdp.h>
struct {
    __uint(type, BPF_MAP_TYPE_RINGBUF);
    __uint(max_entries, 4096);
} ring SEC(".maps");
struct {
    __uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
    __uint(key_size, 4);
    __uint(value_size, 4);
} perf SEC(".maps");
struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, __u32);
} plain SEC(".maps");
SEC("xdp") int events(struct xdp_md *context) {
    unsigned char *data = xdp_data(context);
    if (data + 43 > (unsigned char *)xdp_end(context) || data[23] != IPPROTO_UDP) {
        return XDP_PASS;
    }
    __u32 number = data[42];
    __u32 *record = bpf_ringbuf_reserve(&ring, sizeof(*record), 0);
    if (record) {
        *record = number;
        bpf_ringbuf_submit(record, 0);
    }
    number += 100;
    bpf_perf_event_output(context, &perf, 0xffffffff, &number, sizeof(number));
    return XDP_DROP;
}
char _license[] SEC("license") = "GPL";
"""

SECOND = """#include <xdp.h>
struct bpf_devmap_val {
    __u32 ifindex;
    __u32 program;
};
struct {
    __uint(type, BPF_MAP_TYPE_DEVMAP);
    __uint(max_entries, 2);
    __type(key, __u32);
    __type(value, struct bpf_devmap_val);
} ports SEC(".maps");
struct {
    __uint(type, BPF_MAP_TYPE_CPUMAP);
    __uint(max_entries, 4);
    __type(key, __u32);
    __type(value, struct bpf_devmap_val);
} cpus SEC(".maps");
struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 4);
    __type(key, __u32);
    __type(value, __u64);
} seen SEC(".maps");
static __always_inline void see(__u32 key, __u32 add) {
    __u64 *count = bpf_map_lookup_elem(&seen, &key);
    if (count) {
        *count += add;
    }
}
SEC("xdp") int to_port(struct xdp_md *context) { return (int)bpf_redirect_map(&ports, 1, 0); }
SEC("xdp") int to_cpu(struct xdp_md *context) { return (int)bpf_redirect_map(&cpus, 3, 0); }
SEC("xdp/devmap") int out(struct xdp_md *context) {
    unsigned char *data = xdp_data(context);
    see(0, context->egress_ifindex);
    if (data + 34 > (unsigned char *)xdp_end(context)) {
        return XDP_ABORTED;
    }
    return data[29] & 1 ? XDP_DROP : XDP_PASS;
}
SEC("xdp/cpumap") int there(struct xdp_md *context) {
    see(1, 1);
    see(2, bpf_get_smp_processor_id());
    unsigned char *data = xdp_data(context);
    if (data + 34 > (unsigned char *)xdp_end(context) || data[29] & 1) {
        return XDP_ABORTED;
    }
    return XDP_DROP;
}
char _license[] SEC("license") = "GPL";
"""
NIC = "ethernet-100g"
TRAFFIC = "udp src=10.0.0.0/24 size=64 rate=1Mpps packets=400"


@cache
def built(name: str, text: str) -> Path:
    import tempfile

    folder = Path(tempfile.mkdtemp(prefix="nicety-xdp-"))
    (folder / f"{name}.c").write_text(text)
    return compile_xdp(folder / f"{name}.c", output=folder / f"{name}.o")


def sent(numbers: list[int], gap_ns: int) -> Any:
    async def sender(host: nicety.Host) -> None:
        socket = host.socket.datagram()
        await host.barrier()
        for number in numbers:
            await socket.sendto(bytes([number]) * 30, 1, 9)
            await host.compute(ns=gap_ns)

    return sender


@pytest.mark.parametrize(("name", "add"), [("ring", 0), ("perf", 100)])
def test_records_come_to_a_host_program(name: str, add: int) -> None:
    async def receiver(host: nicety.Host) -> Any:
        program = host.xdp.load(built("events", EVENTS))
        await host.xdp.attach(program)
        await host.barrier()
        begin, found = host.now_ps, []
        async for record in program.maps[name].records():
            found.append((int.from_bytes(record, "little"), host.now_ps - begin))
            if len(found) == 3:
                break
        return found

    run = nicety.Cluster(2, NIC).run({0: sent([5, 6, 7], 100_000), 1: receiver})
    numbers, times = zip(*run.results[1], strict=True)
    assert numbers == (5 + add, 6 + add, 7 + add)
    # The reader sleeps until each frame, which come some 100 us apart.
    assert times[0] > 0
    assert all(later - earlier > 90_000_000 for earlier, later in pairwise(times))


def test_records_that_wait_come_at_once() -> None:
    async def receiver(host: nicety.Host) -> Any:
        program = host.xdp.load(built("events", EVENTS))
        await host.xdp.attach(program)
        await host.barrier()
        await host.compute(ns=1_000_000)
        records = program.maps["ring"].records()
        return [(int.from_bytes(await anext(records), "little"), host.now_ps) for _ in range(3)]

    found = nicety.Cluster(2, NIC).run({0: sent([1, 2, 3], 1000), 1: receiver}).results[1]
    assert [number for number, _ in found] == [1, 2, 3]
    assert len({at for _, at in found}) == 1


def test_maps_without_records_have_none() -> None:
    async def main(host: nicety.Host) -> Any:
        program = host.xdp.load(built("events", EVENTS))
        with pytest.raises(nicety.InputError) as failed:
            await anext(program.maps["plain"].records())
        return str(failed.value)

    found = nicety.Cluster(2, NIC).run({0: main}).results[0]
    assert found == "map plain: it has no records; name a ring buffer or perf events"


def dumped(path: Path) -> list[int]:
    return [entry["formatted"]["value"] for entry in json.loads(path.read_text())]


def bench(nicety: Callable, tmp_path: Path, program: str, maps: dict[str, Any], *options: str) -> Any:
    files = []
    for name, entries in maps.items():
        (tmp_path / f"{name}.map.json").write_text(json.dumps(entries))
        files += ["--map", f"{name}={tmp_path / name}.map.json"]
    command = ["bench", "xdp", built("second", SECOND), "--program", program, "--nic", NIC, "--traffic", TRAFFIC]
    return nicety(*command, *files, "--dump", f"seen={tmp_path / 'seen.json'}", *options)


@pytest.mark.parametrize("mode", ["native", "generic"])
def test_a_program_of_a_device_map_runs_before_the_port(mode: str, nicety: Callable, tmp_path: Path) -> None:
    entry = {"key": 1, "value": 1, "program": "out"}
    result = bench(nicety, tmp_path, "to_port", {"ports": [entry]}, "--json", "--mode", mode)
    assert result.status == 0, result.stderr
    (row,) = json.loads(result.stdout)["rows"]
    verdicts = row["verdicts"]
    assert (verdicts["redirected"], verdicts["second"]) == (400, 400)
    # By the lowest bit of the source address.
    assert 150 < verdicts["second_dropped"] < 250
    assert "maps" not in row
    # Interface 1 for each frame.
    assert dumped(tmp_path / "seen.json")[0] == 400
    plain = bench(nicety, tmp_path, "to_port", {"ports": [{"key": 1, "value": 1}]}, "--json", "--mode", mode)
    (other,) = json.loads(plain.stdout)["rows"]
    assert (other["verdicts"]["second"], other["verdicts"]["redirected"]) == (0, 400)


def test_a_program_of_a_cpu_map_runs_on_its_cpu(nicety: Callable, tmp_path: Path) -> None:
    entry = {"key": 3, "value": 64, "program": "there"}
    result = bench(nicety, tmp_path, "to_cpu", {"cpus": [entry]}, "--json")
    assert result.status == 0, result.stderr
    (row,) = json.loads(result.stdout)["rows"]
    verdicts = row["verdicts"]
    assert verdicts["second"] == verdicts["second_dropped"] == 400
    seen = dumped(tmp_path / "seen.json")
    assert (seen[1], seen[2]) == (400, 3 * 400)
    (aborted,) = verdicts["aborted_at"]
    assert aborted["program"] == "there"
    assert aborted["place"].startswith("second.c:")
    assert 150 < aborted["frames"] < 250


@pytest.mark.parametrize(
    ("program", "maps", "error"),
    [
        ("to_port", {"ports": [{"key": 1, "value": 1, "program": "there"}]}, 'write SEC("xdp/devmap")'),
        ("to_cpu", {"cpus": [{"key": 1, "value": 1, "program": "out"}]}, 'write SEC("xdp/cpumap")'),
        ("to_port", {"ports": [{"key": 1, "value": 1, "program": "gone"}]}, "map ports: entry 0: "),
        ("to_port", {"ports": [{"key": 1, "value": 1, "program": 7}]}, 'write "program": "NAME"'),
        ("to_port", {"ports": [{"key": 1, "value": [1, 0, 0, 0, 5, 0, 0, 0]}]}, 'write "program": "NAME"'),
        ("to_port", {"seen": [{"key": 1, "value": 1, "program": "out"}]}, "only devmap, devmap_hash and cpumap"),
    ],
)
def test_wrong_programs_are_one_line(
    program: str, maps: dict[str, Any], error: str, nicety: Callable, tmp_path: Path
) -> None:
    result = bench(nicety, tmp_path, program, maps)
    assert result.status == 2, result.stderr
    assert error in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1


def test_a_card_refuses_programs_behind_a_redirect() -> None:
    program = nicety.XdpProgram(
        built("second", SECOND), program="to_port", maps={"ports": [{"key": 1, "value": 1, "program": "out"}]}
    )
    with pytest.raises(nicety.InputError, match="a card runs no program after a redirect"):
        nicety.check_line_rate(program, nics=["spin-100g"], packet_sizes=[64])


ABORTS = """#include <xdp.h>
SEC("xdp") int aborts(struct xdp_md *context) {
    unsigned char *data = xdp_data(context);
    if (data + 34 > (unsigned char *)xdp_end(context)) {
        return XDP_DROP;
    }
    if (data[29] & 1) {
        return XDP_ABORTED;
    }
    return data[29] & 2;
}
"""
LINES = {"aborts.c:8", "aborts.c:10"}


def test_aborted_frames_have_their_lines_on_cards_and_in_the_driver(nicety: Callable) -> None:
    command = ["bench", "handlers", built("aborts", ABORTS), "--traffic", "udp src=10.0.0.0/24 size=60 packets=400"]
    command += ["--nic", "spin-100g,spin-100g-rv64,pspin,ethernet-100g"]
    result = nicety(*command, "--json")
    assert result.status == 0, result.stderr
    report = json.loads(result.stdout)
    found = [row["xdp"]["aborted_at"] for row in report["rows"]]
    found += [row["verdicts"]["aborted_at"] for row in report["drivers"]]
    places = [{each["place"]: each["frames"] for each in of_place} for of_place in found]
    assert all(each == places[0] for each in places)
    # The first is the jump of line 7 or the return of line 8, as the compiler has it.
    assert sum(places[0].values()) == report["places"][0]["verdicts"]["XDP_ABORTED"]
    assert len(places[0]) == 2
    text = " ".join(nicety(*command).stdout.replace("\n# ", " ").split())
    for place, frames in places[0].items():
        assert text.count(f"{frames} at {place} of aborts") == 4


def test_a_dump_is_of_one_run(nicety: Callable, tmp_path: Path) -> None:
    result = bench(nicety, tmp_path, "to_port", {}, "--cpus", "1,2")
    assert result.status == 2
    assert "--dump: the entries after one run; name one card, and one number of CPUs" in result.stderr


PORTS = """#include <xdp.h>
struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 16);
    __type(key, __u16);
    __type(value, __u32);
} ports SEC(".maps");
SEC("xdp") int by_port(struct xdp_md *context) {
    unsigned char *data = xdp_data(context);
    if (data + 42 > (unsigned char *)xdp_end(context)) {
        return XDP_PASS;
    }
    __u16 port = (__u16)(data[36] << 8 | data[37]);
    __u32 *count = bpf_map_lookup_elem(&ports, &port);
    if (!count) {
        return XDP_PASS;
    }
    __sync_fetch_and_add(count, 1);
    return XDP_DROP;
}
char _license[] SEC("license") = "GPL";
"""


def test_a_host_installs_a_program_on_its_card() -> None:
    async def main(host: nicety.Host) -> Any:
        if host.rank == 0:
            socket = host.socket.datagram()
            await host.barrier()
            for port in (53, 80, 53):
                await socket.sendto(bytes(20), 1, port)
            await host.barrier()
            return None
        program = nicety.XdpProgram(built("ports", PORTS), maps={"ports": [{"key": 53, "value": 10}]})
        rule = host.frames.install("any", program)
        socket = host.socket.datagram()
        await socket.bind(80)
        await host.barrier()
        data, _ = await socket.recvfrom(100)
        await host.barrier()
        await host.compute(ns=100_000)
        entries = rule.entries("ports")
        with pytest.raises(nicety.InputError, match="the object has no such map; it has ports"):
            rule.entries("other")
        with pytest.raises(nicety.InputError, match="an XDP program keeps its state in maps"):
            host.frames.install("any", program, state=b"1")
        return len(data), [(entry["formatted"]["key"], entry["formatted"]["value"]) for entry in entries]

    assert nicety.Cluster(2, "spin-100g").run(main).results[1] == (20, [(53, 12)])
