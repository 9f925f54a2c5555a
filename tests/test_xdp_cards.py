"""XDP programs on cards: verdicts and maps as the interpreter has them, figures, and refusals."""

from __future__ import annotations

import json
import random
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nicety import _native
from nicety.build.xdp import compile_xdp

ROOT = Path(__file__).parent.parent
CORES = 16
SECTIONS = """
#include <xdp.h>
SEC("xdp") int first(struct xdp_md *context) { return XDP_DROP; }
SEC("xdp") int second(struct xdp_md *context) { return XDP_TX; }
"""
FULL = """
#include <xdp.h>
struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 2);
    __type(key, __u32);
    __type(value, __u32);
} seen SEC(".maps");
SEC("xdp") int full(struct xdp_md *context) {
    __u32 key = ((__u32)bpf_ktime_get_ns()), one = 1;
    bpf_map_update_elem(&seen, &key, &one, BPF_ANY);
    return key & 1 ? 77 : XDP_ABORTED;
}
"""
LARGE = """
#include <xdp.h>
struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, 65536);
    __type(key, __u32);
    __type(value, __u64);
} ports SEC(".maps");
SEC("xdp") int large(struct xdp_md *context) {
    __u32 key = context->rx_queue_index;
    __u64 *value = bpf_map_lookup_elem(&ports, &key);
    if (value) {
        *value += 1;
    }
    return XDP_PASS;
}
"""
UNKNOWN = """
#include <xdp.h>
static long (*const bpf_fib_lookup)(void *, void *, int, __u32) = (void *)69;
SEC("xdp") int unknown(struct xdp_md *context) {
    __u8 place[64] = {};
    return bpf_fib_lookup(context, place, 64, 0) ? XDP_PASS : XDP_DROP;
}
"""


def built(tmp_path: Path, name: str, text: str | None = None) -> Path:
    source = ROOT / "handlers/xdp" / f"{name}.c"
    if text is not None:
        source = tmp_path / f"{name}.c"
        source.write_text(text)
    return compile_xdp(source, output=tmp_path / f"{name}.o")


def udp(source: int, port: int, size: int = 60) -> bytes:
    header = struct.pack("!BBHHHBBH4B4B", 0x45, 0, size - 14, 1, 0, 64, 17, 0, 10, 0, 0, source, 10, 0, 0, 9)
    data = struct.pack("!HHHH", port, port, size - 34, 0)
    return (bytes.fromhex("0200000000020200000000010800") + header + data).ljust(size, b"\0")


def capture(frames: list[bytes]) -> bytes:
    """A capture with a frame every microsecond."""
    parts = [struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1)]
    parts += [struct.pack("<IIII", 0, at, len(data), len(data)) + data for at, data in enumerate(frames)]
    return b"".join(parts)


def flow(source: int, port: int, verdict: int) -> dict[str, Any]:
    network = {"source": struct.unpack("<I", bytes([10, 0, 0, source]))[0], "destination": 0x0900000A}
    swapped = struct.unpack("<H", struct.pack(">H", port))[0]
    return {"key": {**network, "source_port": swapped, "destination_port": swapped, "protocol": 17}, "value": verdict}


@pytest.fixture(scope="module")
def firewall(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the firewall, flows, and a capture of them and others."""
    folder = tmp_path_factory.mktemp("firewall")
    built(folder, "firewall")
    (folder / "flows.json").write_text(json.dumps([flow(at, 53, at % 4) for at in range(8)]))
    rng = random.Random(3)
    frames = [udp(rng.randrange(12), 53, rng.choice([60, 100, 400])) for _ in range(400)]
    (folder / "traffic.pcap").write_bytes(capture(frames))
    return folder


def test_a_card_decides_and_counts_as_the_interpreter(firewall: Path, nicety: Callable, tmp_path: Path) -> None:
    maps = ["--map", f"flows={firewall / 'flows.json'}", "--dump", f"verdicts={tmp_path / 'out.json'}"]
    traffic = ["--traffic", f"capture={firewall / 'traffic.pcap'}"]
    result = nicety("bench", "handlers", firewall / "firewall.o", "--nic", "spin-100g", *traffic, *maps, "--json")
    assert result.status == 0, result.stderr
    (row,) = json.loads(result.stdout)["rows"]
    asked = {"program": None, "repeat": 1, "cpus": 1, "gap_ns": 1000, "interface": 1, "queue": 0}
    entries = [("flows", (firewall / "flows.json").read_text())]
    request = json.dumps({**asked, "instructions": None, "maps": entries})
    content, packets = (firewall / "firewall.o").read_bytes(), (firewall / "traffic.pcap").read_bytes()
    expected = json.loads(_native.xdp_run(content, request, packets))
    assert row["xdp"]["verdicts"] == expected["verdicts"]
    assert set(expected["verdicts"]) == {"XDP_ABORTED", "XDP_DROP", "XDP_PASS", "XDP_TX"}
    counted = [entry["formatted"]["values"] for entry in json.loads((tmp_path / "out.json").read_text())]
    assert all(len(values) == CORES for values in counted)
    of_cpus = [sum(each["value"] for each in values) for values in counted]
    assert of_cpus == [entry["formatted"]["values"][0]["value"] for entry in expected["maps"]["verdicts"]]
    assert row["xdp"]["map_bytes"]["verdicts"] == 5 * 8 * CORES
    assert row["xdp"]["ebpf_instructions"] > 50
    assert 1000 < row["xdp"]["code_bytes"] < 64 << 10
    # The verdict is that of a card with handlers in C.
    assert row["verdict"] in ("yes", "barely", "no")
    assert row["bottleneck"]


def test_the_text_tells_verdicts_and_memory(firewall: Path, nicety: Callable) -> None:
    command = ["bench", "handlers", firewall / "firewall.o", "--nic", "spin-100g", "--packet-sizes", "64"]
    result = nicety(*command, "--messages", "300")
    assert "verdicts of firewall: XDP_DROP" in result.stdout
    assert "instructions of eBPF; with the runtime, code and constants are" in result.stdout
    assert "flows 196672 B" in result.stdout or "flows " in result.stdout


def test_errors_that_a_program_hides_are_reported(nicety: Callable, tmp_path: Path) -> None:
    command = ["bench", "handlers", built(tmp_path, "full", FULL), "--nic", "spin-100g", "--packet-sizes", "64"]
    (row,) = json.loads(nicety(*command, "--messages", "300", "--json").stdout)["rows"]
    figures = row["xdp"]
    assert figures["updates_full"]["seen"] == 300 - 2
    assert figures["invalid"] + figures["verdicts"]["XDP_ABORTED"] == 300
    text = nicety(*command, "--messages", "300").stdout
    assert "map seen was full for 298 updates" in " ".join(text.split()).replace("# ", "")


def test_the_file_of_a_map_sets_its_size(nicety: Callable, tmp_path: Path) -> None:
    (tmp_path / "size.json").write_text('{"max_entries": 512, "entries": [{"key": 7, "value": 1}]}')
    command = ["bench", "handlers", built(tmp_path, "full", FULL), "--nic", "spin-100g", "--packet-sizes", "64"]
    maps = ["--map", f"seen={tmp_path / 'size.json'}"]
    (row,) = json.loads(nicety(*command, *maps, "--messages", "300", "--json").stdout)["rows"]
    assert row["xdp"]["updates_full"] == {}
    (tmp_path / "size.json").write_text('{"max_entries": "many"}')
    result = nicety(*command, *maps)
    assert (result.status, "map seen: max_entries of" in result.stderr) == (2, True)


def test_a_redirect_without_an_entry_passes_or_fails(nicety: Callable, tmp_path: Path) -> None:
    program = built(tmp_path, "redirect")
    command = [
        "bench",
        "handlers",
        program,
        "--nic",
        "spin-100g",
        "--packet-sizes",
        "64",
        "--messages",
        "300",
        "--json",
    ]
    (row,) = json.loads(nicety(*command).stdout)["rows"]
    assert row["xdp"]["verdicts"] == {"XDP_PASS": 300}
    (tmp_path / "ports.json").write_text('[{"key": 1, "value": 3}]')
    (row,) = json.loads(nicety(*command, "--map", f"ports={tmp_path / 'ports.json'}").stdout)["rows"]
    assert row["xdp"]["verdicts"] == {"XDP_REDIRECT": 300}
    assert row["handlers"][0]["returned"] == {"WIRE": 300}


@pytest.mark.parametrize(
    ("name", "text", "options", "expected"),
    [
        ("two", SECTIONS, [], "it has 2 programs: first, second; name one with --program"),
        (
            "large",
            LARGE,
            [],
            "map ports: it takes 8388608 bytes on 16 cores, and all maps together take 8388608 bytes, but the card's",
        ),
        ("huge", LARGE.replace("65536", "1 << 24"), [], "map ports: it takes 2147483648 bytes on 16 cores"),
        ("unknown", UNKNOWN, [], "helper 69 (bpf_fib_lookup) is not supported by nicety"),
        ("full", FULL, ["--map", "other=IN"], "map other: the object has no such map; it has seen"),
        ("full", FULL, ["--map", "seen=IN"], "map seen: entry 2: the hash does not accept this entry (E2BIG)"),
        ("full", FULL, ["--dump", "seen=out.json", "--nic", "spin-100g,pspin"], "--dump: the entries after one run"),
        (
            "full",
            FULL,
            ["--nic", "spin-discrete"],
            "--nic spin-discrete: an XDP program processes frames, but handlers of this",
        ),
        ("full", FULL, ["--payload", "f"], "--payload: for handlers in C"),
        ("full", FULL, ["--packet-sizes", "20000"], "a frame of spin-100g has 60 to"),
    ],
)
def test_bad_input_is_one_line(
    name: str, text: str, options: list[str], expected: str, nicety: Callable, tmp_path: Path
) -> None:
    (tmp_path / "in.json").write_text(json.dumps([{"key": at, "value": 1} for at in range(3)]))
    options = [option.replace("IN", str(tmp_path / "in.json")) for option in options]
    usual = ["--packet-sizes", "64"] if "--packet-sizes" not in options else []
    nic = ["--nic", "spin-100g"] if "--nic" not in options else []
    result = nicety("bench", "handlers", built(tmp_path, name, text), *nic, *usual, *options)
    assert result.status == 2, result.stderr
    assert expected in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1


def test_another_object_is_no_source(nicety: Callable, tmp_path: Path) -> None:
    (tmp_path / "other.o").write_bytes(b"\x7fELF" + bytes(60))
    result = nicety("bench", "handlers", tmp_path / "other.o", "--nic", "spin-100g", "--packet-sizes", "64")
    assert result.status == 2
    assert "other.o: not a C source; name a file that ends in .c, or only an eBPF object" in result.stderr


def test_a_missing_file_is_named_before_the_card(nicety: Callable, tmp_path: Path) -> None:
    result = nicety("bench", "handlers", tmp_path / "gone.o", "--nic", "ethernet-100g")
    assert result.status == 2
    assert "gone.o: no such file" in result.stderr


def test_constants_are_filled_before_the_translation(firewall: Path, nicety: Callable, tmp_path: Path) -> None:
    (tmp_path / "constants.json").write_text('[{"key": 0, "value": [2, 0, 0, 0]}]')
    command = ["bench", "handlers", firewall / "firewall.o", "--nic", "spin-100g", "--json", "--messages", "300"]
    command += ["--packet-sizes", "64", "--map", f".rodata={tmp_path / 'constants.json'}"]
    (row,) = json.loads(nicety(*command).stdout)["rows"]
    assert row["xdp"]["verdicts"] == {"XDP_PASS": 300}


PRINTS = """
#include <xdp.h>
SEC("xdp") int prints(struct xdp_md *context) {
    static const char format[] = "%pks: %d of %llu";
    static const char name[] = "frame";
    static const char addresses[] = "%pI4, %pi4h and %pI6.";
    static const __u8 address[16] = {192, 0, 2, 7, 0xfe};
    __u32 length = context->data_end - context->data;
    bpf_trace_printk(format, sizeof(format), name, -(int)length, (1ull << 40) + length);
    bpf_trace_printk(addresses, sizeof(addresses), address, address, address);
    return XDP_DROP;
}
"""


def test_prints_go_to_the_log(nicety: Callable, tmp_path: Path) -> None:
    program = built(tmp_path, "prints", PRINTS)
    command = ["bench", "handlers", program, "--nic", "spin-100g", "--packet-sizes", "64", "--messages", "300"]
    (tmp_path / "packet").write_bytes(bytes(64))
    for run in (command, ["xdp", "run", program, "--packet", tmp_path / "packet"]):
        result = nicety(*run)
        assert result.status == 0, result.stderr
        assert "frame: -64 of 1099511627840" in result.stdout + result.stderr
        assert f"192.0.2.7, 192.000.002.007 and c000:0207:fe00{':0000' * 5}." in result.stdout + result.stderr


def test_a_program_is_named(nicety: Callable, tmp_path: Path) -> None:
    command = ["bench", "handlers", built(tmp_path, "two", SECTIONS), "--nic", "spin-100g", "--packet-sizes", "64"]
    (row,) = json.loads(nicety(*command, "--messages", "300", "--program", "second", "--json").stdout)["rows"]
    assert row["xdp"]["verdicts"] == {"XDP_TX": 300}


def test_cc_and_translate_take_an_object(firewall: Path, nicety: Callable, tmp_path: Path) -> None:
    assert nicety("cc", firewall / "firewall.o", "-o", tmp_path / "firewall.elf").status == 0
    functions, defined, _ = map(set, _native.elf_names((tmp_path / "firewall.elf").read_bytes()))
    assert "frame_handler" in functions
    assert "nicety_map_flows" in defined
    text = nicety("xdp", "translate", firewall / "firewall.o").stdout
    assert "nicety_xdp_program_firewall:" in text
    # A lookup in place, which reads a bucket of the map.
    assert "nicety_map_memory_flows+" in text
    assert "nicety_bpf_map_lookup_hash16" not in text
    assert ".loc" in text
    assert "nicety_map_flows:" not in text
    assert "nicety_map_flows:" in nicety("xdp", "translate", firewall / "firewall.o", "--maps").stdout


SHARED = """
#include <xdp.h>
struct prefix {
    __u32 bits;
    __be32 address;
};
struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 64);
    __type(key, __u32);
    __type(value, __u64);
} counts SEC(".maps");
struct {
    __uint(type, BPF_MAP_TYPE_LRU_HASH);
    __uint(max_entries, 32);
    __type(key, __be32);
    __type(value, __be32);
} recent SEC(".maps");
struct {
    __uint(type, BPF_MAP_TYPE_LPM_TRIE);
    __uint(max_entries, 32);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __type(key, struct prefix);
    __type(value, __be32);
} routes SEC(".maps");
struct {
    __uint(type, BPF_MAP_TYPE_QUEUE);
    __uint(max_entries, 4);
    __type(value, __be32);
} waiting SEC(".maps");
SEC("xdp") int shared(struct xdp_md *context) {
    struct ethhdr *eth = xdp_data(context);
    struct iphdr *ip = (void *)(eth + 1);
    if ((void *)(ip + 1) > xdp_end(context)) {
        return XDP_DROP;
    }
    __be32 source = ip->saddr;
    __u32 key = bpf_ntohl(source) & 63;
    __u64 none = 0;
    bpf_map_update_elem(&counts, &key, &none, BPF_NOEXIST);
    __u64 *count = bpf_map_lookup_elem(&counts, &key);
    if (!count) {
        return XDP_ABORTED;
    }
    __sync_fetch_and_add(count, 1);
    bpf_map_update_elem(&recent, &source, &source, BPF_ANY);
    __be32 *own = bpf_map_lookup_elem(&recent, &source);
    if (own && *own != source) {
        return XDP_TX;
    }
    struct prefix prefix = {.bits = 32, .address = source};
    if (bpf_map_update_elem(&routes, &prefix, &source, BPF_ANY) == 0) {
        own = bpf_map_lookup_elem(&routes, &prefix);
        bpf_map_delete_elem(&routes, &prefix);
    }
    bpf_map_push_elem(&waiting, &source, BPF_EXIST);
    bpf_map_pop_elem(&waiting, &source);
    return XDP_PASS;
}
"""


def test_cores_share_maps_without_losing_updates(nicety: Callable, tmp_path: Path) -> None:
    names = ["counts", "recent", "routes", "waiting"]
    dumps = [part for name in names for part in ("--dump", f"{name}={tmp_path / name}.json")]
    traffic = ["--traffic", "udp src=10.0.0.0/24 size=60 packets=2000"]
    command = ["bench", "handlers", built(tmp_path, "shared", SHARED), "--nic", "spin-100g", *traffic, *dumps]
    result = nicety(*command, "--json")
    assert result.status == 0, result.stderr
    (row,) = json.loads(result.stdout)["rows"]
    assert sum(row["xdp"]["verdicts"].values()) == 2000
    assert set(row["xdp"]["verdicts"]) == {"XDP_PASS"}
    dumped = {name: json.loads((tmp_path / f"{name}.json").read_text()) for name in names}
    assert sum(entry["formatted"]["value"] for entry in dumped["counts"]) == 2000
    assert len(dumped["counts"]) == 64
    assert 0 < len(dumped["recent"]) <= 32
    assert all(entry["key"] == entry["value"] for entry in dumped["recent"])
    # Each core removes its own; of a source that two cores had, one of them finds nothing to remove.
    assert dumped["routes"] == []
    assert len(dumped["waiting"]) <= 4


def test_sensitivity_keeps_the_values_that_a_program_is_built_for(firewall: Path, nicety: Callable) -> None:
    command = ["bench", "handlers", firewall / "firewall.o", "--nic", "spin-100g", "--sensitivity", "--json"]
    result = nicety(*command, "--packet-sizes", "64", "--messages", "300")
    assert result.status == 0, result.stderr
    (row,) = json.loads(result.stdout)["rows"]
    found = row["sensitivity"]
    # Some values are not possible, and no run of the program is stopped.
    assert all(each["error"].startswith("--set") for each in found["stopped"])
    values = {value["key"]: value for value in found["values"]}
    # Twice the cores would have no values of their own in maps.
    assert values["hpu.cores"]["halved"] is not None
    assert values["hpu.cores"]["doubled"] is None
