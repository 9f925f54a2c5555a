"""XDP programs on microengines: verdicts and maps as the interpreter has them, rates, and refusals by name."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import nicety as package
from conftest import Result
from nicety import _native
from nicety.build.xdp import compile_xdp
from test_xdp_cards import capture, flow, udp

ROOT = Path(__file__).parent.parent
DATA = ROOT / "crates" / "xdp" / "tests" / "data"
CARD = "nfp-6000"
TEN = {
    "balancer": "map .rodata: global variables and constants are an array with flags",
    "bucket": "map .rodata: global variables and constants are an array with flags",
    "counters": "map protocols: a map of type percpu_array is not offloaded (bpf_map_offload_map_alloc)",
    "firewall": "map .rodata: global variables and constants are an array with flags",
    "queues": "the card's only atomic operation is an addition without the old value (nfp_bpf_check_atomic)",
    "redirect": "map ports: a map of type devmap_hash is not offloaded (bpf_map_offload_map_alloc)",
    "router": "map routes: a map of type lpm_trie is not offloaded (bpf_map_offload_map_alloc)",
    "syncookie": "map .rodata: global variables and constants are an array with flags",
    "too_long": "map .rodata: global variables and constants are an array with flags",
    "tunnel": "csum_diff is not offloaded (nfp_bpf_check_helper_call); write a program without it",
}
"""The ten programs of nicety's sources, and the reason for which each is refused."""
HASH = """
struct {{
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, {entries});
    __uint(map_flags, {flags});
    __uint(key_size, {key});
    __uint(value_size, {value});
}} values SEC(".maps");
"""


def of_text(name: str, text: str, folder: Path) -> Path:
    source = f'#include <xdp.h>\n{text}\nchar _license[] SEC("license") = "GPL";\n'
    (folder / f"{name}.c").write_text(source)
    return compile_xdp(folder / f"{name}.c", output=folder / f"{name}.o")


def program(body: str, maps: str = "") -> str:
    return f'{maps}\nSEC("xdp") int program(struct xdp_md *context) {{\n{body}\n}}'


def looked_up(key: int = 4, value: int = 8, entries: int = 16, flags: int = 0) -> str:
    """A program that looks up a key of zeros."""
    maps = HASH.format(entries=entries, flags=flags, key=key, value=value)
    return program(
        f"__u32 key[{(key + 3) // 4}] = {{}}; return bpf_map_lookup_elem(&values, key) ? XDP_DROP : XDP_PASS;", maps
    )


def test_a_card_decides_and_counts_as_the_interpreter(nicety: Callable[..., Result], tmp_path: Path) -> None:
    own = compile_xdp(DATA / "flow_filter.c", output=tmp_path / "filter.o")
    flows = json.dumps([flow(at, 53, at % 4) for at in range(8)])
    (tmp_path / "flows.json").write_text(flows)
    rng = random.Random(3)
    frames = [udp(rng.randrange(12), 53, rng.choice([60, 100, 400])) for _ in range(400)]
    (tmp_path / "traffic.pcap").write_bytes(capture(frames))
    maps = ["--map", f"flows={tmp_path / 'flows.json'}", "--dump", f"verdicts={tmp_path / 'out.json'}"]
    traffic = ["--traffic", f"capture={tmp_path / 'traffic.pcap'}"]
    report = nicety("bench", "handlers", own, "--nic", CARD, *traffic, *maps, "--json").json()
    asked = {"program": None, "repeat": 1, "cpus": 1, "gap_ns": 1000, "interface": 1, "queue": 0}
    request = json.dumps({**asked, "instructions": None, "maps": [("flows", flows)]})
    expected = json.loads(_native.xdp_run(own.read_bytes(), request, (tmp_path / "traffic.pcap").read_bytes()))
    (row,), (place,) = report["flow_processors"], report["places"]
    assert row["verdicts"] == row["xdp"]["verdicts"] == place["verdicts"] == expected["verdicts"]
    assert set(expected["verdicts"]) == {"XDP_ABORTED", "XDP_DROP", "XDP_PASS", "XDP_TX"}
    assert sum(each["frames"] for each in row["xdp"]["aborted_at"]) == expected["verdicts"]["XDP_ABORTED"]
    counted = [entry["formatted"]["value"] for entry in json.loads((tmp_path / "out.json").read_text())]
    assert counted == [entry["formatted"]["value"] for entry in expected["maps"]["verdicts"]]
    assert (place["place"], place["processors"], row["contexts"]) == ("microengines", 50, 200)


def test_the_rate_is_that_of_the_part_that_limits(tmp_path: Path) -> None:
    drop = compile_xdp(DATA / "flow_drop.c", output=tmp_path / "drop.o")

    def row(*overrides: str) -> dict[str, Any]:
        options: dict[str, Any] = {"packet_sizes": [60], "overrides": list(overrides)}
        return dict(package.check_line_rate(drop, nics=[CARD], **options)["flow_processors"][0])

    at_rate = row()
    # 84 bytes at 40 Gb/s.
    assert at_rate["lossless_pps"] == pytest.approx(1e9 / 16.8)
    assert (at_rate["lost"], at_rate["bottleneck"]["part"]) == (0, "link, in")
    # One context of one microengine on each island: each frame keeps it for its whole time.
    slow = row("xdp.workers=1", "xdp.contexts=1")
    assert slow["lost"] > 0
    assert slow["bottleneck"]["part"] == "contexts"
    assert slow["lossless_pps"] < at_rate["lossless_pps"] / 3
    # Four contexts hide the latency of memories behind each other.
    assert row("xdp.workers=1")["lossless_pps"] > 1.5 * slow["lossless_pps"]
    # The firmware's work is on the core.
    longer = row("xdp.before=2000")
    assert longer["bottleneck"]["part"] == "microengines"
    assert longer["cycles_mean"] == pytest.approx(at_rate["cycles_mean"] + 1925, abs=12)
    assert longer["lossless_pps"] == pytest.approx(50 * 1.2e9 / longer["cycles_mean"], rel=0.05)


def test_programs_update_maps_where_the_firmware_does(nicety: Callable[..., Result], tmp_path: Path) -> None:
    text = program(
        "__u32 *word = xdp_data(context); if ((void *)(word + 9) > xdp_end(context)) return XDP_DROP;"
        " __u32 key = word[6], other = key + 1; __u64 one = 1;"
        " bpf_map_update_elem(&values, &key, &one, BPF_ANY); bpf_map_delete_elem(&values, &other); return XDP_PASS;",
        HASH.format(entries=64, flags=0, key=4, value=8),
    )
    own = of_text("updates", text, tmp_path)
    (tmp_path / "traffic.pcap").write_bytes(capture([udp(at % 20, 53) for at in range(60)]))
    command = ["bench", "handlers", own, "--nic", CARD, "--traffic", f"capture={tmp_path / 'traffic.pcap'}"]
    refused = nicety(*command)
    assert (refused.status, refused.stderr.count("\n")) == (2, 1)
    assert "map_update_elem: the firmware lacks it (xdp.updates; nfp_bpf_check_helper_call)" in refused.stderr
    done = nicety(*command, "--set", "xdp.updates=true", "--dump", f"values={tmp_path / 'out.json'}")
    assert done.status == 0, done.stderr
    asked = {"program": None, "repeat": 1, "cpus": 1, "gap_ns": 1000, "interface": 1, "queue": 0}
    request = json.dumps({**asked, "instructions": None, "maps": []})
    expected = json.loads(_native.xdp_run(own.read_bytes(), request, (tmp_path / "traffic.pcap").read_bytes()))
    entries = sorted(entry["key"] for entry in json.loads((tmp_path / "out.json").read_text()))
    assert entries == sorted(entry["key"] for entry in expected["maps"]["values"])


@pytest.mark.parametrize("name", TEN)
def test_the_ten_programs_are_refused_by_name(nicety: Callable[..., Result], tmp_path: Path, name: str) -> None:
    own = compile_xdp(ROOT / "handlers" / "xdp" / f"{name}.c", output=tmp_path / f"{name}.o")
    result = nicety("bench", "handlers", own, "--nic", CARD, "--packet-sizes", "60")
    assert (result.status, result.stdout, result.stderr.count("\n")) == (2, "", 1)
    assert TEN[name] in result.stderr


LOAD = "__u32 *word = xdp_data(context); if ((void *)(word + 4) > xdp_end(context)) return XDP_DROP;"


def words(body: str) -> str:
    """A program with two words of an entry, and with words of the packet."""
    found = "__u32 key = 0; __u32 *value = bpf_map_lookup_elem(&values, &key); if (!value) return XDP_DROP;"
    return program(f"{LOAD} {found} {body}", HASH.format(entries=4, flags=0, key=4, value=8))


def test_a_value_has_a_word_that_is_read_beside_a_counter(nicety: Callable[..., Result], tmp_path: Path) -> None:
    text = words("__atomic_fetch_add(&value[1], 1, __ATOMIC_RELAXED); return value[0] & 1;")
    (tmp_path / "entries.json").write_text('[{"key": [0, 0, 0, 0], "value": [1, 0, 0, 0, 0, 0, 0, 0]}]')
    options = ["--packet-sizes", "60", "--messages", "300", "--map", f"values={tmp_path / 'entries.json'}"]
    out = tmp_path / "out.json"
    found = nicety(
        "bench", "handlers", of_text("beside", text, tmp_path), "--nic", CARD, *options, "--dump", f"values={out}"
    )
    assert found.status == 0, found.stderr
    counted = json.loads(out.read_text())[0]["value"]
    assert [int(byte, 16) for byte in counted] == [1, 0, 0, 0, 300 % 256, 300 // 256, 0, 0]


@pytest.mark.parametrize(
    ("text", "part"),
    [
        (
            looked_up(key=60),
            "map values: its key has 60 bytes, but the firmware takes at most 56 (xdp.keys; nfp_bpf_map_alloc)",
        ),
        (looked_up(value=57), "map values: its value has 57 bytes, but the firmware takes at most 56 (xdp.values;"),
        (looked_up(key=20, value=44), "map values: key and value, each filled up to 8 bytes, have 72 bytes"),
        (looked_up(flags=1), "map values: maps with flags, here 0x1, are not offloaded (nfp_bpf_map_alloc)"),
        (looked_up(entries=2_048_001), "its maps have 2048001 entries, but the firmware allows 2048000 (xdp.entries;"),
        (program("return bpf_ktime_get_ns() & 1;"), "ktime_get_ns is not offloaded (nfp_bpf_check_helper_call)"),
        (program("return context->rx_queue_index & 1;"), "the card has only data and data_end of the context"),
        (program(f"{LOAD} return word[0] % (word[1] | 1);"), "the card has no remainder (nfp_bpf_supported_opcode)"),
        (program(f"{LOAD} return word[0] / (word[1] | 1);"), "the divisor is no constant (nfp_bpf_check_alu)"),
        (
            program(f"{LOAD} return (*(__u64 *)word) / 7;"),
            "it divides a number that may have more than 32 bits (nfp_bpf_check_alu)",
        ),
        (
            program(f"{LOAD} return (*(__u64 *)word) * (*(__u64 *)(word + 2)) >> 63;"),
            "it multiplies a number that may have more than 32 bits (nfp_bpf_check_alu)",
        ),
        (
            program(
                "__u32 key = 0; __u64 *value = bpf_map_lookup_elem(&values, &key); if (value) *value = 1;"
                " return XDP_DROP;",
                HASH.format(entries=4, flags=0, key=4, value=8),
            ),
            "it writes a map's value by a pointer (nfp_bpf_check_ptr)",
        ),
        (
            program(
                f"{LOAD} return bpf_map_lookup_elem(&values, word) ? XDP_DROP : XDP_PASS;",
                HASH.format(entries=4, flags=0, key=4, value=8),
            ),
            "map_lookup_elem: its key is not at a known place of the stack (nfp_bpf_stack_arg_ok)",
        ),
        (
            program(
                "__u32 key = 0; __u64 *value = bpf_map_lookup_elem(&values, &key);"
                " return value ? __sync_fetch_and_or(value, 1) & 1 : 1;",
                HASH.format(entries=4, flags=0, key=4, value=8),
            ),
            "the card's only atomic operation is an addition without the old value (nfp_bpf_check_atomic)",
        ),
        (
            words("__atomic_fetch_add(&value[1], 1, __ATOMIC_RELAXED); return value[1] > 4 ? XDP_DROP : XDP_PASS;"),
            "bytes 4 to 7 of a value of values are both read and added to (nfp_bpf_map_mark_used_one); keep counters",
        ),
        (
            words(
                "if (word[0]) return *(volatile __u64 *)value & 1; __atomic_fetch_add(&value[1], 1, __ATOMIC_RELAXED);"
                " return XDP_DROP;"
            ),
            "bytes 4 to 7 of a value of values are both read and added to (nfp_bpf_map_mark_used_one); keep counters",
        ),
        (
            words("__u32 *at = &value[word[0] & 1]; __atomic_fetch_add(at, 1, __ATOMIC_RELAXED); return XDP_DROP;"),
            "an access to a value of values at an offset that depends on data (nfp_bpf_map_mark_used); use a member",
        ),
    ],
)
def test_programs_that_linux_does_not_offload_are_refused_by_name(
    nicety: Callable[..., Result], tmp_path: Path, text: str, part: str
) -> None:
    own = of_text("beyond", text, tmp_path)
    result = nicety("bench", "handlers", own, "--nic", CARD, "--packet-sizes", "60")
    assert (result.status, result.stdout, result.stderr.count("\n")) == (2, "", 1)
    assert part in result.stderr


@pytest.mark.parametrize(
    ("command", "part"),
    [
        (["profile", "--packet-sizes", "60"], "this card has no handler cores"),
        (["check"], "this card has no handler cores"),
        (["debug"], "this card has no handler cores"),
        (["bench", "handlers", "--packet-sizes", "60", "--sensitivity"], "--sensitivity: nfp-6000 has no handler"),
        (["bench", "handlers", "--packet-sizes", "60", "--rule", "udp"], "--rule: nfp-6000 has no handler cores"),
        (["bench", "handlers", "--packet-sizes", "60", "--unverified"], "--unverified: no checks on microengines"),
        (["bench", "handlers", "--packet-sizes", "60", "--trace", "t.pftrace"], "no timeline on nfp-6000"),
        (["bench", "handlers", "--packet-sizes", "60", "--capture", "t.pcapng"], "no capture on nfp-6000"),
        (["bench", "handlers", "--packet-sizes", "1515"], "a frame of nfp-6000 has 60 to 1514 bytes"),
        (["bench", "handlers", "--packet-sizes", "60", "--set", "xdp.buffers=129"], "they do not fit into CTM"),
    ],
)
def test_other_tools_and_options_are_refused_in_one_line(
    nicety: Callable[..., Result], tmp_path: Path, command: list[str], part: str
) -> None:
    own = compile_xdp(DATA / "flow_drop.c", output=tmp_path / "drop.o")
    words = 2 if command[0] == "bench" else 1
    result = nicety(*command[:words], own, "--nic", CARD, *command[words:])
    assert (result.status, result.stdout) == (2, "")
    assert part in result.stderr


def test_a_card_without_the_firmware_is_refused(nicety: Callable[..., Result], tmp_path: Path) -> None:
    own = compile_xdp(DATA / "flow_drop.c", output=tmp_path / "drop.o")
    result = nicety("bench", "handlers", own, "--nic", "nfp-4000", "--packet-sizes", "60")
    assert (result.status, result.stderr.count("\n")) == (2, 1)
    assert "nfp-4000: this card has no firmware for XDP programs ([xdp] of its spec); name nfp-6000" in result.stderr


def test_one_table_has_microengines_beside_other_places(nicety: Callable[..., Result], tmp_path: Path) -> None:
    own = compile_xdp(DATA / "flow_turn.c", output=tmp_path / "turn.o")
    nics = f"{CARD},spin-100g,hxdp-sume"
    found = nicety(
        "bench", "handlers", own, "--nic", nics, "--packet-sizes", "60", "--messages", "500", "--json"
    ).json()
    assert [place["place"] for place in found["places"]] == ["microengines", "card cores", "eBPF core"]
    assert list(found["places"][0]["verdicts"]) == ["XDP_TX"]
    text = nicety("bench", "handlers", own, "--nic", CARD, "--packet-sizes", "60").stdout
    assert "200 contexts on 50 microengines share the frames" in text
