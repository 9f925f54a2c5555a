"""XDP programs in the driver of a modelled host: `nicety bench xdp`."""

from __future__ import annotations

import json
import struct
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from nicety import InputError, RunError, bench_xdp
from nicety.build.xdp import compile_xdp

ROOT = Path(__file__).parent.parent
FEW = ["receive.entries=256"]
ONE = {"nics": ["ethernet-100g"], "cpus": [1], "overrides": FEW}

BY_PORT = """#include <xdp.h>
struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, __u64);
} frames SEC(".maps");
struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 16);
    __type(key, __u16);
    __type(value, __u32);
} verdicts SEC(".maps");
SEC("xdp") int by_port(struct xdp_md *context) {
    unsigned char *data = xdp_data(context);
    if (data + 42 > (unsigned char *)xdp_end(context)) {
        return XDP_ABORTED;
    }
    __u32 zero = 0;
    __u64 *count = bpf_map_lookup_elem(&frames, &zero);
    if (count) {
        (*count)++;
    }
    __u16 port = (__u16)(data[36] << 8 | data[37]);
    __u32 *verdict = bpf_map_lookup_elem(&verdicts, &port);
    return verdict ? (int)*verdict : XDP_DROP;
}
SEC("xdp") int outside(struct xdp_md *context) {
    unsigned char *data = xdp_data(context);
    return data[60000] ? XDP_DROP : XDP_PASS;
}
char _license[] SEC("license") = "GPL";
"""


@cache
def built() -> Path:
    import tempfile

    folder = Path(tempfile.mkdtemp(prefix="nicety-xdp-"))
    (folder / "by_port.c").write_text(BY_PORT)
    return compile_xdp(folder / "by_port.c", output=folder / "by_port.o")


def row(**given: Any) -> Any:
    (only,) = bench_xdp(built(), **{**ONE, "program": "by_port", **given})["rows"]
    return only


def test_a_rate_that_the_driver_keeps_up_with_loses_nothing() -> None:
    found = row(traffic="udp size=64 rate=1Mpps packets=2000 src=10.0.0.0/8 flows=64")
    assert (found["offered"], found["lost"], found["cpus"]) == (2000, 0, 1)
    assert found["verdicts"]["dropped"] == found["verdicts"]["frames"] == 2000
    assert found["lossless_pps"] == pytest.approx(1e6)
    latency = found["latency"]
    assert 0 < latency["p50_ns"] <= latency["p99_ns"] <= latency["max_ns"]


def test_map_entries_decide_over_verdicts() -> None:
    entries = {"verdicts": json.dumps([{"key": 53, "value": 3}])}
    found = row(traffic="udp dport=53 size=64 rate=1Mpps packets=500", maps=entries)
    assert (found["verdicts"]["transmitted"], found["verdicts"]["dropped"]) == (500, 0)
    # They left by the link.
    assert next(part["load"] for part in found["parts"] if part["part"] == "link, out") > 0
    passed = row(
        traffic="udp dport=53 size=64 rate=100kpps packets=100", maps={"verdicts": '[{"key": 53, "value": 2}]'}
    )
    assert passed["verdicts"]["passed"] == 100
    assert passed["cpu_ns_per_frame"] > found["cpu_ns_per_frame"]


def test_lost_frames_are_an_error_unless_they_may_be_lost() -> None:
    given = {"traffic": "udp size=64 packets=20k src=10.0.0.0/8 flows=64"}
    found = row(lossy=True, **given)
    verdicts = found["verdicts"]["frames"]
    assert found["lost"] > 0
    assert verdicts + found["lost"] == found["offered"] == 20_000
    assert found["lossless_pps"] < found["offered_pps"]
    assert found["bottleneck"]["part"] == "CPU 0"
    assert found["bottleneck"]["load"] > 0.9
    # As many frames a second get a verdict while others are lost.
    assert found["taken_pps"] == pytest.approx(found["lossless_pps"], rel=0.1)
    with pytest.raises(
        RunError, match=r"of 20000 frames were lost at .*; write a lower rate in --traffic, or --lossy"
    ) as failed:
        row(**given)
    assert failed.value.report["rows"][0]["lost"] == found["lost"]


def test_fetches_of_descriptors_are_among_the_parts() -> None:
    found = row(
        traffic="udp dport=53 size=64 packets=5k",
        maps={"verdicts": json.dumps([{"key": 53, "value": 3}])},
        overrides=[*FEW, "transmit.fetch=1", "transmit.entries=64"],
        lossy=True,
    )
    assert found["bottleneck"]["part"] == "descriptor fetches"
    assert found["bottleneck"]["load"] > 0.9
    # Frames that find no descriptor are lost after their verdict.
    assert found["verdicts"]["transmit_full"] == found["lost"] - found["lost_before"] > 0


def test_the_rate_grows_with_the_cpus() -> None:
    given = {"traffic": "udp size=64 packets=20k src=10.0.0.0/8 flows=256", "lossy": True, "program": "by_port"}
    rows = bench_xdp(built(), nics=["ethernet-100g"], overrides=FEW, cpus=[1, 2], **given)["rows"]
    one, two = [found["lossless_pps"] for found in rows]
    assert one * 1.5 < two < one * 2.2


def test_the_generic_mode_costs_more() -> None:
    given = {"traffic": "udp size=64 rate=200kpps packets=500"}
    native, generic = row(**given), row(mode="generic", **given)
    assert native["verdicts"] == generic["verdicts"]
    assert generic["cpu_ns_per_frame"] > 1.5 * native["cpu_ns_per_frame"]


def test_a_trap_fails_the_run_with_its_line() -> None:
    with pytest.raises(RunError, match=r"XDP: program outside, instruction 2 \(.*by_port.c:30\): reads 1 bytes"):
        row(program="outside", traffic="udp size=64 rate=1Mpps packets=10")


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"program": None}, "it has 2 programs: by_port, outside; name one with --program"),
        ({"nics": ["spin-discrete"], "overrides": []}, "name a card of design ethernet, for example niagara2-niu"),
        ({"cpus": [0]}, "--cpus 0: write 1 to 256"),
        ({"cpus": [65]}, "--cpus 65: the host of ethernet-100g has 64 CPUs; write 1 to 64"),
        ({"maps": {"flows": "[]"}}, "map flows: the object has no such map; it has frames, verdicts"),
        ({"maps": {"verdicts": "{"}}, "map verdicts: not JSON"),
        ({"overrides": ["frames.mtu=9000 B", "receive.buffer=16 KiB"]}, "frames of 9018 bytes do not fit"),
        ({"traffic": "udp rate=500Mpps size=64"}, "--traffic: a rate of 500 Mpps exceeds the rate of the wire"),
        ({"nics": ["ethernet-100g", "ethernet-100g"]}, "named twice"),
    ],
)
def test_bad_input_is_refused(given: dict[str, Any], error: str) -> None:
    with pytest.raises(InputError) as failed:
        row(**given)
    assert error in str(failed.value)
    assert "\n" not in str(failed.value)
    if "object" in error or "programs" in error:
        assert str(failed.value).startswith(f"{built()}: ")


def nicety(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "nicety", *words], capture_output=True, text=True, check=False)


def test_the_command_prints_rates_verdicts_and_the_busiest_part(tmp_path: Path) -> None:
    (tmp_path / "verdicts.json").write_text('[{"key": 53, "value": 2}]')
    command = ["bench", "xdp", str(built()), "--program", "by_port", "--cpus", "1", "--nic"]
    traffic = ["--traffic", "udp dport=53 size=64 rate=50kpps packets=200"]
    maps = ["--map", f"verdicts={tmp_path}/verdicts.json"]
    shown = nicety(*command, "ethernet-100g,niagara2-niu", *traffic, *maps)
    assert shown.returncode == 0, shown.stderr
    for text in (
        "# by_port.o, native mode; traffic udp dport=53",
        "# niagara2-niu: rates (Mpps)",
        "Lossless",
        "PASS",
        "CPU 0",
    ):
        assert text in shown.stdout
    as_json = nicety(*command, "ethernet-100g,niagara2-niu", *traffic, *maps, "--json")
    assert [found["verdicts"]["passed"] for found in json.loads(as_json.stdout)["rows"]] == [200, 200]
    lost = nicety(*command, "ethernet-100g", "--traffic", "udp size=64 packets=5k")
    assert lost.returncode == 1
    assert "Lossless" in lost.stdout
    assert "of 5000 frames were lost at" in lost.stderr
    wrong = nicety(*command, "ethernet-100g", "--map", "verdicts")
    assert (wrong.returncode, wrong.stderr) == (2, "nicety: --map verdicts: write NAME=FILE\n")


def test_frames_of_a_capture_are_offered(tmp_path: Path) -> None:
    parts = [struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1)]
    frame = bytes(12) + b"\x08\x00" + bytes(46)
    parts += [struct.pack("<IIII", 0, at, len(frame), len(frame)) + frame for at in range(50)]
    (tmp_path / "frames.pcap").write_bytes(b"".join(parts))
    found = row(traffic=f"capture={tmp_path}/frames.pcap rate=1Mpps")
    assert (found["offered"], found["verdicts"]["dropped"]) == (50, 50)


def test_a_file_that_is_no_object_is_named(tmp_path: Path) -> None:
    (tmp_path / "text.o").write_text("no object")
    with pytest.raises(InputError, match=r"text\.o: not an ELF file; compile the C file with nicety cc --xdp"):
        bench_xdp(tmp_path / "text.o", nics=["ethernet-100g"])
