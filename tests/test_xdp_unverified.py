"""XDP programs that Linux's verifier refuses: refused by name, or checked on the card while they run."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

import nicety as package
from test_xdp_cards import built, flow

CARDS = ["spin-100g", "spin-100g-rv64", "pspin"]
# Line 5 compares with data_end in the program that Linux takes.
READS = """#include <xdp.h>
SEC("xdp") int reads(struct xdp_md *context) {
    unsigned char *data = xdp_data(context);
#ifdef COMPARED
    if (data + 101 > (unsigned char *)xdp_end(context)) return XDP_PASS;
#endif
    return data[100] ? XDP_DROP : XDP_TX;
}
"""
ENDLESS = """#include <xdp.h>
volatile int more = 1;
SEC("xdp") int endless(struct xdp_md *context) {
    while (more) {
    }
    return XDP_DROP;
}
"""
NULL = """#include <xdp.h>
struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 4);
    __type(key, __u32);
    __type(value, __u32);
} none SEC(".maps");
SEC("xdp") int null(struct xdp_md *context) {
    __u32 key = context->rx_queue_index;
    __u32 *value = bpf_map_lookup_elem(&none, &key);
    return *value;
}
"""


@pytest.mark.parametrize(
    ("name", "text", "line", "reason"),
    [
        ("reads", READS, 7, "it reads 1 bytes of the packet without a comparison with data_end"),
        ("null", NULL, 11, "it reads 4 bytes at a lookup's result, which may be 0"),
    ],
)
def test_what_linux_refuses_for_certain_is_refused_with_its_line(
    name: str, text: str, line: int, reason: str, nicety: Callable, tmp_path: Path
) -> None:
    command = ["bench", "handlers", built(tmp_path, name, text), "--packet-sizes", "60"]
    result = nicety(*command, "--nic", "spin-100g")
    assert result.status == 2
    assert f"{name}.c:{line}): {reason}" in result.stderr
    assert "run it with checks: --unverified" in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1


@pytest.mark.parametrize("nic", CARDS)
@pytest.mark.parametrize(
    ("name", "text", "line", "reason"),
    [
        ("reads", READS, 7, "reads 1 byte outside the packet; compare with data_end first"),
        ("null", NULL, 11, "reads 4 bytes outside one value of a map"),
    ],
)
def test_checks_trap_with_the_line_and_fail_the_run(
    name: str, text: str, line: int, reason: str, nic: str, nicety: Callable, tmp_path: Path
) -> None:
    command = ["bench", "handlers", built(tmp_path, name, text), "--packet-sizes", "60"]
    result = nicety(*command, "--nic", nic, "--unverified")
    assert result.status == 1
    assert reason in result.stderr
    assert f"in {name} at {name}.c:{line}" in result.stderr


def test_an_access_that_a_packet_allows_is_made(nicety: Callable, tmp_path: Path) -> None:
    command = ["bench", "handlers", built(tmp_path, "reads", READS), "--packet-sizes", "200", "--messages", "300"]
    result = nicety(*command, "--nic", ",".join(CARDS), "--unverified", "--json")
    assert result.status == 0, result.stderr
    assert [sum(row["xdp"]["verdicts"].values()) > 0 for row in json.loads(result.stdout)["rows"]] == [True] * 3


def test_an_endless_program_ends_at_the_cards_limit(nicety: Callable, tmp_path: Path) -> None:
    command = ["bench", "handlers", built(tmp_path, "endless", ENDLESS), "--packet-sizes", "60", "--unverified"]
    result = nicety(*command, "--nic", "spin-100g", "--set", "hpu.cycle_limit=20000")
    assert result.status == 1
    assert "still running at its limit" in result.stderr
    assert "endless.c:4" in result.stderr


def test_checks_change_no_verdict_of_a_program_that_linux_takes(tmp_path: Path) -> None:
    flows = [flow(at, 53, at % 4) for at in range(8)]
    traffic = "udp src=10.0.0.0/28 dst=10.0.0.9 sport=53 dport=53 size=60 packets=300"
    object_ = built(tmp_path, "firewall")
    found, cycles = [], []
    for unverified in (False, True):
        program = package.XdpProgram(object_, maps={"flows": flows}, unverified=unverified)
        rows = package.check_line_rate(program, nics=CARDS, traffic=traffic)["rows"]
        found.append([row["xdp"]["verdicts"] for row in rows])
        cycles.append([row["cycles_mean"] for row in rows])
    assert found[0] == found[1]
    assert all(checked > plain for plain, checked in zip(*cycles, strict=True))


def test_the_option_is_for_objects(nicety: Callable, tmp_path: Path) -> None:
    (tmp_path / "x.c").write_text("int payload_handler(void) { return 0; }")
    result = nicety("bench", "handlers", tmp_path / "x.c", "--nic", "spin-100g", "--unverified")
    assert (result.status, "--unverified: for XDP programs" in result.stderr) == (2, True)
    result = nicety("cc", tmp_path / "x.c", "--unverified")
    assert (result.status, "--unverified: for XDP programs" in result.stderr) == (2, True)
    text = nicety("xdp", "translate", built(tmp_path, "reads", READS), "--unverified").stdout
    assert "call t2, nicety_xdp_guard" in text
