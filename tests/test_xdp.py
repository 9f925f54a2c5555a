"""XDP programs: nicety's own against models of their functions, and the command line."""

from __future__ import annotations

import ipaddress
import json
import platform
import signal
import struct
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from nicety import _native
from nicety.build.xdp import compile_xdp
from nicety.errors import InputError

ROOT = Path(__file__).parent.parent
OURS, PEER = bytes.fromhex("020000000002"), bytes.fromhex("020000000001")
UDP, TCP, ICMP = 17, 6, 1


def checksum(data: bytes) -> int:
    total = sum(struct.unpack(f"!{(len(data) + 1) // 2}H", data + b"\0" * (len(data) % 2)))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def address(text: str) -> bytes:
    return ipaddress.IPv4Address(text).packed


def number(data: bytes) -> int:
    """A number as the program's processor reads it."""
    return int.from_bytes(data, "little")


def frame(source: str, to: str, payload: bytes = b"", protocol: int = UDP, ttl: int = 64, kind: int = 0x0800) -> bytes:
    header = (
        struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(payload), 1, 0, ttl, protocol, 0) + address(source) + address(to)
    )
    header = header[:10] + struct.pack("!H", checksum(header)) + header[12:]
    return OURS + PEER + struct.pack("!H", kind) + header + payload


def udp(sport: int, dport: int, data: bytes = bytes(20)) -> bytes:
    return struct.pack("!HHHH", sport, dport, 8 + len(data), 0) + data


def tcp(sport: int, dport: int, seq: int, ack: int, flags: int, options: bytes = b"") -> bytes:
    return struct.pack("!HHIIBBHHH", sport, dport, seq, ack, (5 + len(options) // 4) << 4, flags, 1000, 0, 0) + options


def capture(frames: list[bytes]) -> bytes:
    """A capture with a frame every microsecond."""
    parts = [struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1)]
    parts += [struct.pack("<IIII", 0, at, len(data), len(data)) + data for at, data in enumerate(frames)]
    return b"".join(parts)


@cache
def folder() -> Path:
    import tempfile

    return Path(tempfile.mkdtemp(prefix="nicety-xdp-"))


@cache
def built(name: str) -> bytes:
    return compile_xdp(ROOT / "handlers/xdp" / f"{name}.c", output=folder() / f"{name}.o").read_bytes()


def run(name: str, packets: bytes, maps: dict[str, Any] | None = None, **options: Any) -> dict[str, Any]:
    return run_object(built(name), packets, maps, **options)


def run_object(compiled: bytes, packets: bytes, maps: dict[str, Any] | None = None, **options: Any) -> dict[str, Any]:
    asked = {"program": None, "repeat": 1, "instructions": None, "cpus": 1, "gap_ns": 1000, "interface": 1, "queue": 0}
    entries = [(map_, json.dumps(given)) for map_, given in (maps or {}).items()]
    report: dict[str, Any] = json.loads(
        _native.xdp_run(compiled, json.dumps({**asked, "maps": entries, **options}), packets)
    )
    assert report["trap_texts"] == []
    return report


def shown(report: dict[str, Any], name: str) -> dict[Any, Any]:
    """The values of a map by key, of the only CPU."""
    formatted = (entry["formatted"] for entry in report["maps"][name])
    first = ((each["key"], each["values"][0]["value"] if "values" in each else each["value"]) for each in formatted)
    return {key if isinstance(key, int) else json.dumps(key): value for key, value in first}


def verdicts(report: dict[str, Any]) -> list[str]:
    return [row["verdict"].removeprefix("XDP_") for row in report["rows"]]


def out(report: dict[str, Any], at: int = 0) -> bytes:
    return bytes.fromhex(report["rows"][at]["bytes"])


def test_counters_count_by_protocol_and_by_source() -> None:
    frames = [frame("10.0.0.1", "10.0.0.9", bytes(10)), frame("10.0.0.2", "10.0.0.9", bytes(30), TCP)]
    report = run("counters", capture([*frames, frames[0], frame("10.0.0.1", "10.0.0.9", kind=0x86DD)]))
    assert verdicts(report) == ["PASS"] * 4
    protocols = shown(report, "protocols")
    assert (protocols[UDP], protocols[TCP]) == ({"packets": 2, "bytes": 88}, {"packets": 1, "bytes": 64})
    sources = shown(report, "sources")
    assert sources[number(address("10.0.0.1"))] == {"packets": 2, "bytes": 88}
    assert len(sources) == 2


def flow(source: str, to: str, sport: int, dport: int, protocol: int) -> dict[str, int]:
    ports = [number(port.to_bytes(2, "big")) for port in (sport, dport)]
    names = ("source", "destination", "source_port", "destination_port", "protocol")
    return dict(zip(names, [number(address(source)), number(address(to)), *ports, protocol], strict=True))


def test_firewall_decides_by_five_tuple() -> None:
    known = flow("10.0.0.1", "10.0.0.9", 4000, 53, UDP)
    frames = [
        frame("10.0.0.1", "10.0.0.9", udp(4000, 53)),
        frame("10.0.0.1", "10.0.0.9", udp(4001, 53)),
        frame("10.0.0.1", "10.0.0.9", udp(4000, 53), TCP),
        frame("10.0.0.1", "10.0.0.9", udp(4000, 53), ICMP),
        frame("10.0.0.1", "10.0.0.9", udp(4000, 53), kind=0x0806),
        frame("10.0.0.1", "10.0.0.9", b"\x0f\xa0\x00\x35"),
    ]
    report = run("firewall", capture(frames), {"flows": [{"key": known, "value": 2}]})
    assert verdicts(report) == ["PASS", "DROP", "DROP", "DROP", "PASS", "DROP"]
    assert shown(report, "verdicts") == {0: 0, 1: 4, 2: 2, 3: 0, 4: 0}


def test_router_takes_the_longest_prefix() -> None:
    def route(prefix: str, interface: int) -> dict[str, Any]:
        network = ipaddress.IPv4Network(prefix)
        key = {"bits": network.prefixlen, "address": number(network.network_address.packed)}
        return {"key": key, "value": {"destination": list(PEER), "source": list(OURS), "interface": interface}}

    routes = {"routes": [route("10.0.0.0/8", 3), route("10.1.0.0/16", 4), route("10.1.2.3/32", 5)]}
    to = ["10.9.9.9", "10.1.9.9", "10.1.2.3", "11.0.0.1"]
    frames = [frame("192.0.2.1", each) for each in to] + [frame("192.0.2.1", "10.0.0.1", ttl=1)]
    report = run("router", capture(frames), routes)
    assert verdicts(report) == ["REDIRECT"] * 3 + ["PASS", "DROP"]
    assert [row["redirect"] for row in report["rows"][:3]] == ["interface 3", "interface 4", "interface 5"]
    for at in range(3):
        sent = out(report, at)
        assert (sent[:6], sent[6:12], sent[22]) == (PEER, OURS, 63)
        assert checksum(sent[14:34]) == 0


@pytest.mark.parametrize("ttl", range(2, 256, 9))
def test_router_keeps_the_headers_checksum(ttl: int) -> None:
    key = {"bits": 0, "address": 0}
    hop = {"destination": list(PEER), "source": list(OURS), "interface": 3}
    report = run("router", frame("192.0.2.1", "10.0.0.1", ttl=ttl), {"routes": [{"key": key, "value": hop}]})
    assert checksum(out(report)[14:34]) == 0


def outer(sent: bytes, source: str, to: str) -> bytes:
    """Check an outer IP header, and return the inner packet."""
    assert (sent[:6], sent[6:12]) == (PEER, OURS)
    assert checksum(sent[14:34]) == 0
    assert (sent[23], sent[26:30], sent[30:34]) == (4, address(source), address(to))
    assert int.from_bytes(sent[16:18], "big") == len(sent) - 14
    return sent[34:]


def test_tunnel_encapsulates() -> None:
    ends = {
        "source": number(address("198.51.100.1")),
        "destination": number(address("198.51.100.2")),
        "station": list(PEER),
    }
    tunnels = {"tunnels": [{"key": number(address("10.0.0.9")), "value": ends}]}
    inner = frame("10.0.0.1", "10.0.0.9", udp(1, 2))
    report = run("tunnel", capture([inner, frame("10.0.0.1", "10.0.0.8")]), tunnels)
    assert verdicts(report) == ["TX", "PASS"]
    assert outer(out(report), "198.51.100.1", "198.51.100.2") == inner[14:]


def test_long_packets_are_answered() -> None:
    long = frame("10.0.0.1", "10.0.0.9", bytes(range(256)) * 4)
    report = run("too_long", capture([frame("10.0.0.1", "10.0.0.9", bytes(566)), long]))
    assert verdicts(report) == ["PASS", "TX"]
    sent = out(report, 1)
    assert (sent[:6], sent[6:12], sent[23]) == (PEER, OURS, ICMP)
    assert (sent[26:30], sent[30:34]) == (address("10.0.0.9"), address("10.0.0.1"))
    assert checksum(sent[14:34]) == checksum(sent[34:]) == 0
    assert sent[34:36] == b"\x03\x04"
    assert int.from_bytes(sent[40:42], "big") == 600
    assert sent[42:] == long[14 : 14 + 28]
    assert shown(report, "answers") == {0: 1}


def test_queues_leave_a_note() -> None:
    data = frame("10.0.0.1", "10.0.0.9")
    report = run("queues", data, interface=7, queue=5, repeat=3)
    assert report["rows"][0]["metadata"] == 8
    assert out(report) == struct.pack("<II", 7, 5) + data
    assert {key: value for key, value in shown(report, "counts").items() if value} == {5: 3}


def test_redirect_sends_to_the_port_of_the_map() -> None:
    ports = {"ports": [{"key": 2, "value": 9}]}
    report = run("redirect", frame("10.0.0.1", "10.0.0.9"), ports, interface=2)
    assert (verdicts(report), report["rows"][0]["redirect"]) == (["REDIRECT"], "entry 2 of ports")
    report = run("redirect", frame("10.0.0.1", "10.0.0.9"), ports, interface=3)
    assert (verdicts(report), report["rows"][0]["redirect"]) == (["PASS"], None)


PLACES = 251


def maglev(names: list[str]) -> list[int]:
    """The table of Maglev (NSDI 2016, section 3.4) with two simple hashes."""
    steps = [(hash_of(name, 1) % PLACES, hash_of(name, 2) % (PLACES - 1) + 1) for name in names]
    table, turns = [-1] * PLACES, [0] * len(names)
    while True:
        for server, (begin, skip) in enumerate(steps):
            while table[place := (begin + turns[server] * skip) % PLACES] >= 0:
                turns[server] += 1
            table[place] = server
            if -1 not in table:
                return table


def hash_of(name: str, seed: int) -> int:
    total = seed
    for byte in name.encode():
        total = (total * 131 + byte) % 2**31
    return total


def balancer_maps(table: list[int], known: Any = ()) -> dict[str, Any]:
    service = {"address": number(address("10.0.0.9")), "port": number((80).to_bytes(2, "big")), "protocol": TCP}
    servers = [
        {"key": at, "value": {"address": number(address(f"192.0.2.{at}")), "station": list(PEER)}} for at in range(8)
    ]
    return {
        "services": [{"key": service, "value": 0}],
        "places": [{"key": place, "value": server} for place, server in enumerate(table)],
        "servers": servers,
        "known": list(known),
    }


def test_balancer_spreads_flows_and_keeps_known_ones() -> None:
    frames = [frame("10.0.0.1", "10.0.0.9", tcp(1000 + at, 80, 1, 1, 16), TCP) for at in range(90)]
    frames += [frame("10.0.0.1", "10.0.0.9", tcp(1000, 81, 1, 1, 16), TCP)]
    report = run("balancer", capture(frames), balancer_maps(maglev(["a", "b", "c"])))
    assert verdicts(report) == ["TX"] * 90 + ["PASS"]
    chosen = [out(report, at)[33] for at in range(90)]
    assert all(
        outer(out(report, at), "0.0.0.0", f"192.0.2.{server}") == frames[at][14:] for at, server in enumerate(chosen)
    )
    counts = Counter(chosen)
    assert set(counts) == {0, 1, 2}
    assert min(counts.values()) > 10
    # Another table: flows that are known stay where they are.
    other = balancer_maps([7] * PLACES, report["maps"]["known"])
    later = run("balancer", capture([*frames[:90], frame("10.0.0.1", "10.0.0.9", tcp(9, 80, 1, 1, 16), TCP)]), other)
    assert [out(later, at)[33] for at in range(90)] == chosen
    assert out(later, 90)[33] == 7


def test_bucket_passes_its_depth_and_then_its_rate() -> None:
    data = frame("10.0.0.1", "10.0.0.9", bytes(66))
    gap = 37_000
    report = run("bucket", data, repeat=100, gap_ns=gap)
    tokens, expected = 3000, []
    for at in range(100):
        tokens = min(tokens + (gap // 1000 if at else 0), 3000)
        passes = tokens >= len(data)
        tokens -= len(data) if passes else 0
        expected.append("PASS" if passes else "DROP")
    assert verdicts(report) == expected
    assert {"PASS", "DROP"} == set(expected)


def test_syncookies_prove_a_client() -> None:
    ports = {"protected_ports": [{"key": number((80).to_bytes(2, "big")), "value": 1}]}

    def of(flags: int, seq: int, ack: int, options: bytes = b"", port: int = 80) -> bytes:
        return frame("10.0.0.1", "10.0.0.9", tcp(4000, port, seq, ack, flags, options), TCP)

    syn = of(2, 5000, 0, b"\x02\x04\x05\xb4")
    report = run("syncookie", capture([syn, of(2, 1, 0, port=81)]), ports)
    assert verdicts(report) == ["TX", "PASS"]
    sent = out(report)
    assert len(sent) == 54
    assert (sent[:6], sent[6:12]) == (PEER, OURS)
    assert checksum(sent[14:34]) == 0
    pseudo = sent[26:34] + struct.pack("!BBH", 0, TCP, 20)
    assert checksum(pseudo + sent[34:]) == 0
    sport, dport, own, ack = struct.unpack("!HHII", sent[34:46])
    assert (sport, dport, ack, sent[47]) == (80, 4000, 5001, 18)
    later = [of(16, 5001, own), of(16, 5001, own + 1), of(16, 5002, own + 9), of(16, 5003, own + 9)]
    assert verdicts(run("syncookie", capture(later), ports)) == ["DROP", "PASS", "PASS", "PASS"]


COUNT = """
#include <xdp.h>
struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 4);
    __type(key, __u32);
    __type(value, __u64);
} seen SEC(".maps");
SEC("xdp") int count(struct xdp_md *context) {
    __u32 key = 1;
    __u64 *value = bpf_map_lookup_elem(&seen, &key);
    if (value) {
        *value += 1;
    }
    return *(__u8 *)xdp_data(context) == 9 ? ((__u8 *)xdp_data(context))[5000] : XDP_TX;
}
"""


@pytest.fixture
def count(nicety: Callable, tmp_path: Path) -> Path:
    (tmp_path / "count.c").write_text(COUNT)
    assert nicety("cc", "--xdp", tmp_path / "count.c", "-o", tmp_path / "count.o").status == 0
    return tmp_path / "count.o"


def test_show_prints_programs_maps_and_helpers(nicety: Callable, count: Path) -> None:
    text = nicety("xdp", "show", count).stdout
    assert "count    xdp      device" in text
    assert "seen  array  4 B  8 B    4        0x0" in text
    assert "bpf_map_lookup_elem" in text
    report = json.loads(nicety("xdp", "show", count, "--json").stdout)
    assert report["programs"][0]["maps"] == ["seen"]


def test_run_fills_and_dumps_maps(nicety: Callable, count: Path, tmp_path: Path) -> None:
    (tmp_path / "in.json").write_text('[{"key": 1, "value": 40}]')
    maps = ["--map", f"seen={tmp_path / 'in.json'}", "--dump", f"seen={tmp_path / 'out.json'}"]
    result = nicety("xdp", "run", count, "--packet", "00" * 14, "--repeat", "2", *maps)
    assert result.status == 0
    assert "XDP_TX" in result.stdout
    assert "  1: 42" in result.stdout
    dumped = json.loads((tmp_path / "out.json").read_text())
    assert dumped[1]["formatted"] == {"key": 1, "value": 42}
    assert len(dumped) == 4


def test_a_trap_gives_status_1_and_the_line(nicety: Callable, count: Path) -> None:
    result = nicety("xdp", "run", count, "--packet", "09" * 14)
    assert result.status == 1
    assert "1 of 1 packet trapped; first: program count, instruction " in result.stderr
    assert "count.c:15): reads 1 bytes at byte 5000 of a packet with 14 bytes in reach" in result.stderr


def test_a_packet_may_be_a_file_or_a_capture(nicety: Callable, count: Path, tmp_path: Path) -> None:
    (tmp_path / "packet").write_bytes(bytes(60))
    (tmp_path / "two.pcap").write_bytes(capture([bytes(60), bytes(1500)]))
    for name, packets in (("packet", 1), ("two.pcap", 2)):
        result = nicety("xdp", "run", count, "--packet", tmp_path / name, "--json")
        assert json.loads(result.stdout)["packets"] == packets


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such signal")
def test_a_long_run_ends_at_ctrl_c(count: Path) -> None:
    words = ["-m", "nicety", "xdp", "run", str(count), "--packet", "00" * 60, "--repeat", str(10**9)]
    with subprocess.Popen([sys.executable, *words], stderr=subprocess.PIPE, text=True) as process:
        time.sleep(1.5)
        process.send_signal(signal.SIGINT)
        try:
            _, said = process.communicate(timeout=60)
        finally:
            process.kill()
    assert process.returncode == 130
    assert "interrupted" in said


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--packet", "0x"], "--packet 0x: neither a file nor hexadecimal"),
        (["--packet", "00"], "--packet: packet 0: it has 1 bytes; write 14 to 73152"),
        (["--packet", "00" * 14, "--map", "seen"], "--map seen: write NAME=FILE"),
        (["--packet", "00" * 14, "--map", "seen=missing"], "missing: cannot read it"),
        (["--packet", "00" * 14, "--dump", "other=x.json"], "--dump other: "),
        (
            ["--packet", "00" * 14, "--program", "other"],
            "program other: the object has no such XDP program; it has count",
        ),
    ],
)
def test_wrong_input_is_one_line(nicety: Callable, count: Path, arguments: list[str], message: str) -> None:
    result = nicety("xdp", "run", count, *arguments)
    assert result.status == 2
    assert message in result.stderr
    assert result.stderr.count("\n") == 1


def test_files_that_are_no_objects_are_refused(nicety: Callable, tmp_path: Path) -> None:
    (tmp_path / "x.o").write_bytes(b"text")
    result = nicety("xdp", "show", tmp_path / "x.o")
    assert (result.status, result.stderr.count("\n")) == (2, 1)
    assert "x.o: not an ELF file; compile the C file with nicety cc --xdp, or with clang" in result.stderr


def test_captures_with_cut_packets_are_refused() -> None:
    whole = capture([bytes(60)])
    with pytest.raises(InputError, match="cut short"):
        run("redirect", whole[:32] + struct.pack("<II", 60, 90) + whole[40:])


def test_a_capture_without_packets_is_refused(nicety: Callable, count: Path, tmp_path: Path) -> None:
    (tmp_path / "empty.pcap").write_bytes(capture([]))
    result = nicety("xdp", "run", count, "--packet", tmp_path / "empty.pcap")
    assert (result.status, result.stdout) == (2, "")
    assert result.stderr == f"nicety: {tmp_path}/empty.pcap: there is no packet in it; name a capture with packets\n"


def test_cc_refuses_a_source_without_a_program(nicety: Callable, tmp_path: Path) -> None:
    function = "int plain(struct xdp_md *context) { return XDP_PASS; }"
    for text in (function, f'SEC("xdp") static {function}', "int own;"):
        (tmp_path / "none.c").write_text(f"#include <xdp.h>\n{text}\n")
        result = nicety("cc", "--xdp", tmp_path / "none.c", "-o", tmp_path / "none.o")
        assert result.status == 2
        last = result.stderr.splitlines()[-1]
        expected = 'no program in it; write SEC("xdp") in front of a function that is not static'
        assert last == f"nicety: {tmp_path}/none.c: {expected}"
        assert not (tmp_path / "none.o").exists()
    # Linux loads programs of other types.
    (tmp_path / "tc.c").write_text('#include <xdp.h>\nSEC("tc") int other(void *context) { return 0; }\n')
    assert nicety("cc", "--xdp", tmp_path / "tc.c", "-o", tmp_path / "tc.o").status == 0


POINTERS = """
#include <xdp.h>
static const char *const names[] = {"first", "second"};
static struct { int number; const char *text; } rows[] = {{1, "one"}, {2, "two"}};
SEC("xdp") int named(struct xdp_md *context) {
    return names[context->rx_queue_index & 1][0] == 's' ? XDP_DROP : XDP_PASS;
}
SEC("xdp") int changed(struct xdp_md *context) {
    rows[1].number = context->rx_queue_index;
    return rows[context->rx_queue_index & 1].text[0] == 't' ? XDP_DROP : XDP_PASS;
}
SEC("xdp") int plain(struct xdp_md *context) { return XDP_PASS; }
"""


def test_pointers_in_data_are_shown_and_named_by_traps(nicety: Callable, tmp_path: Path) -> None:
    (tmp_path / "own.c").write_text(POINTERS)
    program = compile_xdp(tmp_path / "own.c", output=tmp_path / "own.o")
    text = nicety("xdp", "show", program).stdout
    for name, section in (("names", ".rodata"), ("rows", ".data")):
        assert f"pointers in {section} that no loader sets: {name}; write arrays in their place, as in char" in text
    advice = (
        "no loader sets the pointers of names in .rodata and of rows in .data: write arrays in their place, as in char"
        " NAME[COUNT][SIZE]"
    )
    for name in ("named", "changed"):
        result = nicety("xdp", "run", program, "--program", name, "--packet", "00" * 60)
        assert result.status == 1
        assert advice in result.stderr
        on_card = nicety("bench", "handlers", program, "--program", name, "--nic", "spin-100g", "--packet-sizes", "60")
        assert on_card.status == 2
        assert advice in on_card.stderr
    # Linux loads such an object.
    assert nicety("xdp", "run", program, "--program", "plain", "--packet", "00" * 60).status == 0


def test_an_object_without_pointers_in_data_has_none(nicety: Callable, count: Path) -> None:
    report = json.loads(nicety("xdp", "show", count, "--json").stdout)
    assert all(each["pointers"] == [] for each in report["maps"])
    result = nicety("xdp", "run", count, "--packet", "09" * 14)
    assert "no loader sets" not in result.stderr


IPV6 = """
struct vlan_hdr {
    __be16 tag;
    __be16 proto;
};
SEC("xdp") int ipv6(struct xdp_md *context) {
    struct ethhdr *eth = xdp_data(context);
    struct vlan_hdr *vlan = (void *)(eth + 1);
    struct ipv6hdr *ip = (void *)(vlan + 1);
    struct icmp6hdr *icmp = (void *)(ip + 1);
    if ((void *)(icmp + 1) > xdp_end(context) || eth->h_proto != bpf_htons(ETH_P_8021Q)) {
        return XDP_PASS;
    }
    if (eth->h_proto == bpf_htons(ETH_P_8021AD) || vlan->proto != bpf_htons(ETH_P_IPV6) || ip->version != 6) {
        return XDP_PASS;
    }
    if (ip->nexthdr != IPPROTO_ICMPV6 || ip->hop_limit != 255 || ip->payload_len != bpf_htons(8)) {
        return XDP_PASS;
    }
    struct in6_addr from = ip->saddr;
    if (from.s6_addr[15] != 1 || ip->daddr.s6_addr32[3] != bpf_htonl(2)) {
        return XDP_PASS;
    }
    return icmp->icmp6_type == 128 && icmp->icmp6_sequence == bpf_htons(7) ? XDP_DROP : XDP_ABORTED;
}
"""
KERNEL_HEADERS = ("linux/in.h", "linux/in6.h", "linux/ipv6.h", "linux/icmpv6.h")


@pytest.mark.parametrize("kernel", [None, "before", "behind"])
def test_xdp_h_has_vlan_and_ipv6_beside_headers_of_the_kernel(tmp_path: Path, kernel: str | None) -> None:
    own, folders = "#include <xdp.h>\n", []
    if kernel is not None:
        folders = [Path("/usr/include"), Path(f"/usr/include/{platform.machine()}-linux-gnu")]
        if not all((folders[0] / name).exists() for name in KERNEL_HEADERS) or not folders[1].exists():
            pytest.skip("this machine has no headers of the kernel")
        others = "".join(f"#include <{name}>\n" for name in KERNEL_HEADERS)
        own = others + own if kernel == "before" else own + others
    (tmp_path / "ipv6.c").write_text(own + IPV6)
    # A warning would be an error.
    program = compile_xdp(
        tmp_path / "ipv6.c",
        output=tmp_path / "ipv6.o",
        include_dirs=folders,
        cc=f"{sys.executable} -m ziglang cc -Werror",
    )
    addresses = ipaddress.IPv6Address("fd00::1").packed + ipaddress.IPv6Address("fd00::2").packed
    echo = struct.pack("!BBHHH", 128, 0, 0, 1, 7)
    sent = OURS + PEER + bytes.fromhex("8100000586dd") + struct.pack("!IHBB", 6 << 28, 8, 58, 255) + addresses + echo
    found = verdicts(run_object(program.read_bytes(), capture([sent, sent[:-1] + b"\x08"])))
    assert found == ["DROP", "ABORTED"]


MEMORY = """
#include <xdp.h>
void *memcpy(void *to, const void *from, unsigned long size);
void *memset(void *to, int byte, unsigned long size);
static void *memmove(void *to, const void *from, unsigned long size) {
    return size == 6 ? to : (void *)from;
}
SEC("xdp") int swap(struct xdp_md *context) {
    struct ethhdr *eth = xdp_data(context);
    if ((void *)(eth + 1) > xdp_end(context)) {
        return XDP_PASS;
    }
    __u8 to[6];
    memcpy(to, eth->h_dest, 6);
    memcpy(eth->h_dest, eth->h_source, 6);
    memcpy(eth->h_source, memmove(to, eth, 6), 6);
    memset(&eth->h_proto, 7, 2);
    return XDP_TX;
}
"""


def test_cc_takes_builtins_for_functions_of_memory(tmp_path: Path) -> None:
    (tmp_path / "swap.c").write_text(MEMORY)
    compiled = compile_xdp(tmp_path / "swap.c", output=tmp_path / "swap.o").read_bytes()
    sent = bytes(range(1, 61))
    report = run_object(compiled, capture([sent]))
    assert verdicts(report) == ["TX"]
    assert out(report) == sent[6:12] + sent[:6] + bytes([7, 7]) + sent[14:]


@pytest.mark.parametrize("option", [["--host"], ["--isa", "rv32i"], ["--interface", "pspin"]])
def test_cc_refuses_options_of_other_programs(nicety: Callable, tmp_path: Path, option: list[str]) -> None:
    (tmp_path / "count.c").write_text(COUNT)
    result = nicety("cc", "--xdp", tmp_path / "count.c", *option)
    assert result.status == 2
    assert f"--xdp: an XDP program has no {option[0]}; leave it out" in result.stderr


FLAVOUR = """
#include <xdp.h>
struct queue_info___v2 { __u32 number; } __attribute__((preserve_access_index));
struct queue_info { __u32 number; } __attribute__((preserve_access_index));
SEC("xdp") int asks(struct xdp_md *context) {
    return __builtin_preserve_type_info(*(struct TYPE *)0, 0) ? XDP_DROP : XDP_PASS;
}
char _license[] SEC("license") = "GPL";
"""


def test_a_type_with_several_definitions_is_the_kernels(nicety: Callable[..., Any], tmp_path: Path) -> None:
    frame = tmp_path / "frame.hex"
    frame.write_text("00" * 60)
    for name, status in [("queue_info___v2", 2), ("queue_info", 0)]:
        (tmp_path / "own.c").write_text(FLAVOUR.replace("TYPE", name))
        program = compile_xdp(tmp_path / "own.c", output=tmp_path / "own.o")
        result = nicety("xdp", "run", program, "--packet", frame)
        assert result.status == status, result.stderr
        told = f"struct {name} belongs to the kernel, which is not modelled" in result.stderr
        assert told is (status == 2)
