"""Contents and definitions of XDP maps that Linux refuses, and contents that come back as they were written."""

from __future__ import annotations

import gzip
import json
import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from nicety import InputError, XdpProgram, check_line_rate
from nicety.build.xdp import compile_xdp

SOURCE = """\
#include <xdp.h>
struct inner { __uint(type, BPF_MAP_TYPE_ARRAY); __uint(max_entries, 2); __type(key, __u32); __type(value, __u32); };
struct inner first SEC(".maps");
struct { __uint(type, BPF_MAP_TYPE_ARRAY); __uint(max_entries, 3); __type(key, __u32); __type(value, __u32); }
    longer SEC(".maps");
struct { __uint(type, BPF_MAP_TYPE_HASH_OF_MAPS); __uint(max_entries, 2); __type(key, __u32);
    __array(values, struct inner); } outer SEC(".maps");
struct { __uint(type, BPF_MAP_TYPE_PROG_ARRAY); __uint(max_entries, 4); __type(key, __u32); __type(value, __u32); }
    jumps SEC(".maps");
struct { __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY); __uint(max_entries, 2); __type(key, __u32); __type(value, __u32); }
    counts SEC(".maps");
struct { __uint(type, BPF_MAP_TYPE_ARRAY); __uint(max_entries, 4); __type(key, __u32); __type(value, __u64);
    __uint(map_flags, 0x80); } fixed SEC(".maps");
SEC("xdp") int second(struct xdp_md *context) { return XDP_TX; }
SEC("xdp/devmap") int behind(struct xdp_md *context) { return XDP_DROP; }
SEC("xdp") int jump(struct xdp_md *context) {
    __u32 key = 0;
    bpf_map_lookup_elem(&counts, &key);
    bpf_tail_call(context, &jumps, 1);
    return XDP_PASS;
}
SEC("xdp") int nested(struct xdp_md *context) {
    __u32 key = 7, zero = 0;
    void *inner = bpf_map_lookup_elem(&outer, &key);
    __u32 *value = inner ? bpf_map_lookup_elem(inner, &zero) : 0;
    if (value) { *value += 1; }
    return value ? XDP_TX : XDP_DROP;
}
SEC("xdp") int changes(struct xdp_md *context) {
    __u32 key = 0;
    __u64 value = 7;
    return bpf_map_update_elem(&fixed, &key, &value, 0) ? XDP_DROP : XDP_PASS;
}
SEC("xdp") int stores(struct xdp_md *context) {
    __u32 key = 0;
    __u64 *value = bpf_map_lookup_elem(&fixed, &key);
    if (value) { *value = 7; }
    return XDP_PASS;
}
char _license[] SEC("license") = "GPL";
"""
PACKET = "02" * 12 + "0800" + "00" * 46


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("contents")
    (folder / "maps.c").write_text(SOURCE)
    return compile_xdp(folder / "maps.c", output=folder / "maps.o")


@pytest.mark.parametrize(
    ("map_", "entry", "message"),
    [
        ("outer", {"key": 7, "value": 100}, 'the value is not a name; write "value": "NAME", with the name of a map'),
        ("jumps", {"key": 1, "value": 1}, 'the value is not a name; write "value": "NAME", with the name of a program'),
        ("outer", {"key": 7, "value": "longer"}, "map longer has max_entries 3, but the inner maps of outer have 2"),
        ("outer", {"key": 7, "value": "fixed"}, "map fixed has value size 8, but the inner maps of outer have 4"),
        ("outer", {"key": 7, "value": "outer"}, "map outer has type 13, but the inner maps of outer have 2"),
        (
            "counts",
            {"key": 0, "values": [{"cpu": 0, "value": 1}, {"cpu": 0, "value": 2}]},
            "values[1]: write one value for each cpu from 0 to 1",
        ),
    ],
)
def test_entries_that_linux_refuses_are_errors(
    program: Path, nicety: Callable, tmp_path: Path, map_: str, entry: dict[str, object], message: str
) -> None:
    (tmp_path / "map.json").write_text(json.dumps([entry]))
    ways = [("xdp", "run", program, "--packet", PACKET, "--cpus", "2")]
    if map_ != "counts":
        ways.append(("bench", "handlers", program, "--nic", "spin-100g", "--packet-sizes", "60"))
    for words in ways:
        done = nicety(*words, "--program", "jump", "--map", f"{map_}=map.json")
        assert done.status == 2
        assert done.stdout == ""
        (line,) = done.stderr.splitlines()
        assert message in line


def test_dumped_programs_and_maps_are_contents_again(program: Path, nicety: Callable, tmp_path: Path) -> None:
    (tmp_path / "jumps.json").write_text('[{"key": 1, "value": "second"}]')
    (tmp_path / "outer.json").write_text('[{"key": 7, "value": "first"}]')
    for name, map_ in (("jump", "jumps"), ("nested", "outer")):
        words = ["xdp", "run", program, "--program", name, "--packet", PACKET, "--json"]
        once = nicety(*words, "--map", f"{map_}={map_}.json", "--dump", f"{map_}=dump.json")
        again = nicety(*words, "--map", f"{map_}=dump.json")
        assert once.json()["verdicts"] == again.json()["verdicts"] == {"XDP_TX": 1}, once.stderr
        card = nicety(
            *("bench", "handlers", program, "--program", name, "--nic", "spin-100g", "--packet-sizes", "60"),
            *("--messages", "50", "--map", f"{map_}=dump.json", "--dump", f"{map_}=card.json", "--json"),
        )
        assert list(card.json()["rows"][0]["xdp"]["verdicts"]) == ["XDP_TX"], card.stderr
        assert (tmp_path / "card.json").read_text() == (tmp_path / "dump.json").read_text()


def test_entries_with_names_are_printed(program: Path, nicety: Callable, tmp_path: Path) -> None:
    (tmp_path / "jumps.json").write_text('[{"key": 1, "value": "second"}]')
    (tmp_path / "outer.json").write_text('[{"key": 7, "value": "first"}]')
    maps = ("--map", "jumps=jumps.json", "--map", "outer=outer.json")
    done = nicety("xdp", "run", program, "--program", "jump", "--packet", PACKET, *maps)
    assert done.status == 0, done.stderr
    assert "jumps:\n  01 00 00 00: second\n" in done.stdout
    assert "outer:\n  07 00 00 00: first\n" in done.stdout


def test_a_map_is_filled_once(program: Path, nicety: Callable, tmp_path: Path) -> None:
    (tmp_path / "one.json").write_text('[{"key": 1, "value": "second"}]')
    ways = [("xdp", "run", program, "--packet", PACKET), ("bench", "handlers", program, "--nic", "spin-100g")]
    for words in ways:
        done = nicety(*words, "--program", "jump", "--map", "jumps=one.json", "--map", "jumps=one.json")
        assert (done.status, done.stdout) == (2, "")
        assert "--map jumps: the map is named twice; write all its entries in one file" in done.stderr


@pytest.mark.parametrize(
    ("dump", "message"),
    [
        ("jump=x.json", "--dump jump: {object} has no such map; it has counts, jumps, outer, fixed, first, longer"),
        ("jumps=none/x.json", "--dump none/x.json: there is no folder none; make it first"),
    ],
)
def test_dumps_are_checked_before_the_run(program: Path, nicety: Callable, dump: str, message: str) -> None:
    ways = [("xdp", "run", program, "--packet", PACKET), ("bench", "handlers", program, "--nic", "spin-100g")]
    for words in ways:
        # An unknown program would be found in the run.
        done = nicety(*words, "--program", "none", "--dump", dump)
        assert (done.status, done.stdout) == (2, "")
        assert message.format(object=program) in done.stderr


@pytest.mark.parametrize("option", [("--state", "00"), ("--state-bytes", "64"), ("--handler-memory", "0")])
def test_a_program_has_no_state_of_handlers(program: Path, nicety: Callable, option: tuple[str, str]) -> None:
    done = nicety("bench", "handlers", program, "--program", "jump", "--nic", "spin-100g", *option)
    assert (done.status, done.stdout) == (2, "")
    assert f"{option[0]}: for handlers in C; an XDP program has its state in maps" in done.stderr


def test_a_check_from_python_has_no_state_of_handlers(program: Path) -> None:
    for given in ({"state": b"1"}, {"state_bytes": 64}, {"handler_memory": 64}):
        (name,) = given
        with pytest.raises(InputError, match=f"--{name.replace('_', '-')}: for handlers in C"):
            check_line_rate(XdpProgram(program, program="jump"), nics=["ethernet-100g"], **given)


@pytest.mark.parametrize("nic", ["ethernet-100g", "hxdp-sume", "spin-100g"])
def test_every_place_names_the_object(program: Path, nicety: Callable, tmp_path: Path, nic: str) -> None:
    (tmp_path / "none.json").write_text("[]")
    cases = {
        (): "the object: it has ",
        ("--program", "none"): "program none: the object has no such XDP program",
        ("--program", "jump", "--map", "none=none.json"): "map none: the object has no such map",
    }
    for words, message in cases.items():
        done = nicety("bench", "handlers", program, "--nic", nic, "--packet-sizes", "60", *words)
        assert (done.status, done.stdout) == (2, "")
        assert done.stderr.startswith(f"nicety: {program}: {message}")


def test_values_of_cpus_go_to_their_cpus(program: Path, nicety: Callable, tmp_path: Path) -> None:
    (tmp_path / "map.json").write_text('[{"key": 1, "values": [{"cpu": 1, "value": 7}, {"cpu": 0, "value": 9}]}]')
    words = ["--packet", PACKET, "--cpus", "2", "--map", "counts=map.json", "--dump", "counts=dump.json"]
    assert nicety("xdp", "run", program, "--program", "jump", *words).status == 0
    entry = json.loads((tmp_path / "dump.json").read_text())[1]
    assert [each["value"] for each in entry["formatted"]["values"]] == [9, 7]


@pytest.mark.parametrize("name", ["changes", "stores"])
def test_programs_change_no_map_that_they_may_only_read(program: Path, nicety: Callable, name: str) -> None:
    run = nicety("xdp", "run", program, "--program", name, "--packet", PACKET)
    assert run.status == 1
    card = nicety("bench", "handlers", program, "--program", name, "--nic", "spin-100g", "--packet-sizes", "60")
    assert card.status == 2
    assert "Linux's verifier refuses it" in card.stderr


def test_programs_of_map_entries_are_for_no_device(program: Path, nicety: Callable) -> None:
    message = "program behind: its section xdp/devmap is for an entry of a devmap, not for a device"
    for words in (
        ("xdp", "run", program, "--packet", PACKET),
        ("bench", "handlers", program, "--nic", "spin-100g,ethernet-100g,hxdp-sume", "--packet-sizes", "60"),
    ):
        done = nicety(*words, "--program", "behind")
        assert done.status == 2
        assert message in done.stderr


def test_packets_come_from_compressed_captures(program: Path, nicety: Callable, tmp_path: Path) -> None:
    head = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1)
    packet = struct.pack("<IIII", 0, 0, 60, 60) + bytes.fromhex(PACKET)
    (tmp_path / "three.pcap.gz").write_bytes(gzip.compress(head + 3 * packet))
    words = ["xdp", "run", program, "--program", "second", "--packet"]
    assert nicety(*words, "three.pcap.gz", "--json").json()["verdicts"] == {"XDP_TX": 3}
    (tmp_path / "old.pcap").write_bytes(struct.pack("<IHH", 0xA1B2C3D4, 2, 3) + head[8:] + packet)
    old = nicety(*words, "old.pcap")
    assert old.status == 2
    assert "version 2.3 of pcap" in old.stderr


DEFINITION = """\
#include <xdp.h>
struct {{ __uint(type, BPF_MAP_TYPE_{type}); __uint(max_entries, 4); {keys} __uint(value_size, {value});
    __uint(map_flags, {flags}); }} own SEC(".maps");
SEC("xdp") int named(struct xdp_md *context) {{ return bpf_redirect_map(&own, 0, 2); }}
char _license[] SEC("license") = "GPL";
"""


@pytest.mark.parametrize(
    ("kind", "value", "flags", "message"),
    [
        ("DEVMAP", 4, 1, "map_flags of 0x1 on a devmap; remove 0x1"),
        ("XSKMAP", 4, 1, "map_flags of 0x1 on a xskmap; remove 0x1"),
        ("HASH", 8, 0x80000000, "map_flags of 0x80000000 on a hash"),
        ("ARRAY", 8, 0x180, "map_flags of 0x180 on a array"),
        ("PERCPU_ARRAY", 40000, 0, "values of 40000 bytes for each CPU; write at most 32768"),
    ],
)
def test_definitions_that_linux_refuses_are_errors(
    nicety: Callable, tmp_path: Path, kind: str, value: int, flags: int, message: str
) -> None:
    text = DEFINITION.format(type=kind, value=value, flags=flags, keys="__uint(key_size, 4);")
    (tmp_path / "own.c").write_text(text)
    built = compile_xdp(tmp_path / "own.c", output=tmp_path / "own.o")
    done = nicety("xdp", "run", built, "--packet", PACKET)
    assert done.status == 2, done.stderr
    assert message in done.stderr
