"""Handlers on frames of an Ethernet card: `host.frames`, and `nicety bench handlers` on `spin-100g`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import nicety as package
from nicety.build.compiler import library_source

ECHO = library_source("frames/echo.c")
COUNT = library_source("frames/count.c")
DROP = library_source("frames/drop.c")
VLAN = library_source("frames/vlan.c")


def handler(tmp_path: Path, body: str) -> Path:
    path = tmp_path / "handler.c"
    path.write_text(
        f"#include <frame.h>\n__handler int frame_handler(const frame_t *frame, void *state) {{\n{body}\n}}\n"
    )
    return path


def test_a_card_answers_datagrams_and_counts_those_that_it_passes() -> None:
    async def main(host: package.Host) -> object:
        socket = host.socket.datagram()
        if host.rank == 0:
            await host.barrier()
            for port in (7, 9, 9):
                await socket.sendto(b"a line", 1, port)
            return await socket.recvfrom(100)
        await socket.bind(9)
        echo = host.frames.install("udp dport=7", package.Handlers(ECHO))
        words = [package.FrameWord(36, 0xFFFF0000, 9 << 16)]
        count = host.frames.install(words, package.Handlers(COUNT), state=bytes(512))
        assert (echo.number, count.number) == (0, 1)
        await host.barrier()
        assert [(await socket.recvfrom(100))[0] for _ in range(2)] == [b"a line"] * 2
        counters = [int.from_bytes(count.state[at : at + 4], "little") for at in range(0, 512, 4)]
        return [counter for counter in counters if counter]

    run = package.Cluster(2, "spin-100g").run(main)
    data, (address, port) = run.results[0]
    # The answer has right checksums: the host's protocols accepted it.
    assert (data, address, port) == (b"a line", "10.0.0.2", 7)
    # A frame of 14 + 20 + 8 + 6 bytes is padded to 60 on the wire.
    assert run.results[1] == [2, 120]
    rules = [(rule.rule, rule.frames, rule.to_host, rule.to_wire, rule.dropped) for rule in run.nodes[1].socket.rules]
    assert rules == [("udp dport=7", 1, 0, 1, 0), ("word@36&ffff0000=00090000..00090000", 2, 2, 0, 0)]
    assert run.nodes[0].socket.rules == []


# Adds a tag to a frame, and removes it again.
TAGS = """
    uint32_t addresses[3];
    __builtin_memcpy(addresses, frame->data, 12);
    const uint32_t length = frame->length;
    uint8_t *data = frame_push(frame, 4);
    __builtin_memcpy(data, addresses, 12);
    frame_put32(data + 12, 0x81000005);
    if (frame->length != length + 4 || frame_get16(data + 16) != 0x0800)
        return FRAME_FAIL;
    __builtin_memcpy(frame_pull(frame, 4), addresses, 12);
    return FRAME_QUEUE(frame->channel);"""


def test_a_datagram_whose_frame_grew_and_shrank_is_received(tmp_path: Path) -> None:
    async def main(host: package.Host) -> object:
        socket = host.socket.datagram()
        if host.rank == 0:
            await host.barrier()
            await socket.sendto(b"12345678", 1, 9)
            return None
        await socket.bind(9)
        host.frames.install("udp dport=9", package.Handlers(handler(tmp_path, TAGS)))
        await host.barrier()
        return (await socket.recvfrom(100))[0]

    assert package.Cluster(2, "spin-100g").run(main).results[1] == b"12345678"


# Reads and writes words at odd places, and compares updated checksums with computed ones.
WORDS = """
    uint8_t bytes[21], other[21];
    for (int i = 0; i < 21; i++) {
        bytes[i] = (uint8_t)(i * 77 + 3);
        other[i] = (uint8_t)(i * 31 + 200);
    }
    if (frame_load32(bytes + 1) != (bytes[1] | bytes[2] << 8 | bytes[3] << 16 | (uint32_t)bytes[4] << 24) ||
        frame_load16(bytes + 3) != (bytes[3] | bytes[4] << 8))
        return FRAME_FAIL;
    frame_store32(bytes + 5, 0x11223344);
    frame_store16(bytes + 9, 0x5566);
    if (frame_get32(bytes + 5) != 0x44332211 || frame_get16(bytes + 9) != 0x6655)
        return FRAME_FAIL;
    for (uint32_t n = 0; n < 20; n++) {
        const uint8_t first = bytes[n], last = other[n];
        frame_swap(bytes + 1, other + 1, n);
        frame_swap(bytes + 1, other + 1, n + 1);
        if (bytes[n] != first || other[n] != last || bytes[n + 1] != (uint8_t)((n + 1) * 31 + 200))
            return FRAME_FAIL;
        frame_swap(bytes + n + 1, other + n + 1, 1);
    }
    uint16_t sum = 0x1234;
    uint32_t gone = 0xfffe0001;
    for (uint32_t come = 1; come; come *= 2) {
        const uint16_t halves = frame_checksum(frame_checksum(sum, (uint16_t)gone, (uint16_t)come),
                                               (uint16_t)(gone >> 16), (uint16_t)(come >> 16));
        sum = frame_checksum32(sum, gone, come);
        if (sum != halves)
            return FRAME_FAIL;
        gone = come * 7;
    }
    return FRAME_DROP;"""


@pytest.mark.parametrize("misaligned", ["cost", "trap"])
def test_words_of_frames_lie_anywhere(misaligned: str, nicety: Callable[..., Any], tmp_path: Path) -> None:
    source = handler(tmp_path, WORDS)
    done = nicety(
        *("bench", "handlers", source, "--nic", "spin-100g", "--packet-sizes", "60", "--messages", "3", "--json"),
        *("--set", f"hpu.misaligned={misaligned}"),
    )
    assert done.json()["rows"][0]["packet_dispositions"]["dropped"] == 3


def test_words_are_loaded_whole_where_the_card_can(nicety: Callable[..., Any], tmp_path: Path) -> None:
    source = handler(tmp_path, "    return frame_load32(frame->data + 26) == 1 ? FRAME_HOST : FRAME_DROP;")
    command = ("bench", "handlers", source, "--nic", "spin-100g", "--packet-sizes", "60", "--messages", "10", "--json")
    whole, bytewise = (
        nicety(*command, "--set", f"hpu.misaligned={how}").json()["rows"][0]["instructions_mean"]
        for how in ("cost", "trap")
    )
    # Three more loads, three shifts and three ors.
    assert bytewise - whole >= 9


def test_a_tag_that_stays_makes_the_frame_longer(nicety: Callable[..., Any], tmp_path: Path) -> None:
    (row,) = nicety(
        *("bench", "handlers", VLAN, "--nic", "spin-100g", "--packet-sizes", "1000", "--messages", "100", "--json")
    ).json()["rows"]
    assert row["packet_dispositions"]["proceeded"] == 100
    # A frame of 1518 bytes has no room for a tag.
    done = nicety("bench", "handlers", VLAN, "--nic", "spin-100g", "--packet-sizes", "1518", "--messages", "10")
    assert done.status == 1
    assert "sent a frame of 1522 bytes on; frames have 14 to 1518 (frames.mtu) (10 times)" in done.stderr


@pytest.mark.parametrize(
    ("rule", "handlers", "text"),
    [
        ("udp dport=5-9", DROP, "rules 'udp dport=7' and 'udp dport=5-9' overlap: a frame with word@12="),
        ([package.FrameWord(36, 0xFFFF0000, 7 << 16), "udp"], DROP, "a rule is a text such as"),
        ("dport=7", DROP, "rule 'dport=7', column 1: ports are those of udp or of tcp"),
        (package.FrameWord(2, 1, 1), DROP, "offset 2 is no multiple of 4"),
        (7, DROP, "a rule is a text such as"),
        ("arp", library_source("sink_stream.c"), "which is for messages, but no frame_handler"),
    ],
)
def test_rules_and_programs_that_cannot_be_are_refused(rule: Any, handlers: Path, text: str) -> None:
    async def main(host: package.Host) -> None:
        host.frames.install("udp dport=7", package.Handlers(DROP))
        with pytest.raises(package.InputError) as raised:
            host.frames.install(rule, package.Handlers(handlers))
        assert text in str(raised.value)

    package.Cluster(1, "spin-100g").run(main)


def test_cards_without_processors_say_so() -> None:
    async def main(host: package.Host) -> str:
        with pytest.raises(package.InputError) as raised:
            _ = host.frames
        return str(raised.value)

    assert (
        package.Cluster(1, "ethernet-100g")
        .run(main)
        .results[0]
        .startswith(
            "host.frames of rank 0, ethernet-100g: the card has no handler cores: its spec has no section [hpu]"
        )
    )
    assert "design portals has no sockets" in package.Cluster(1, "spin-discrete").run(main).results[0]


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (
            "frame_resize(frame, 1519);\nreturn FRAME_HOST;",
            "frame_resize to 1519 bytes; the frame has room for 1 to",
        ),
        ("frame_resize(frame, 13);\nreturn FRAME_WIRE;", "sent a frame of 13 bytes on; frames have 14 to 1518"),
        ("frame_push(frame, 65);\nreturn FRAME_HOST;", "frame_push of 65 bytes, but 64 are left before the frame"),
        ("return frame->data[frame->length];", "load of 1 byte"),
        ("return FRAME_QUEUE(32);", "the host has receive channels 0 to 31"),
        ("return FRAME_QUEUE(5000);", "returned FRAME_QUEUE(5000), and the host has receive channels 0 to 31"),
    ],
)
def test_errors_of_handlers_name_rule_and_line(
    nicety: Callable[..., Any], tmp_path: Path, body: str, text: str
) -> None:
    done = nicety(
        "bench", "handlers", handler(tmp_path, body), "--nic", "spin-100g", "--packet-sizes", "60", "--messages", "10"
    )
    assert done.status == 1
    assert "rule 'any': frame handler" in done.stderr
    assert text in done.stderr
    if "sent" not in text and "QUEUE" not in body:
        assert "handler.c:3" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--rule", "udp,udp dport=53"], "rules 'udp' and 'udp dport=53' overlap: a frame with word@12=08004500"),
        (["--rule", "word@13=0"], "rule 'word@13=0', column 1: offset 13 is no multiple of 4"),
        (["--rule", "word@9999=0"], "offset 9999 is beyond every frame"),
        (["--rule", "word@2000&ff=01"], "beyond every frame of the card; the last word is at 1512"),
        (["--rule", "udp,udp"], "rules 'udp' and 'udp' overlap"),
        (["--rule", "udp", "--rule", "udp"], "rules 'udp' and 'udp' overlap"),
        (["--rule", ""], "an empty rule; write rules between commas"),
        (["--set", "link.gap=0ps/B"], "a frame takes a wire some time, write a gap above zero"),
        (["--messages", "1000001"], "--messages is 1 to 1000000"),
        (["--lossy"], "--lossy: the option is for traffic that finds the packet buffer full; name the traffic"),
        (["--set", "hpu.memory=100"], "nicety: --set hpu.memory=100: a size needs a unit"),
        (["--set", "memory.l1.interleave=6B"], "6 bytes in a row (interleave) do not divide into accesses of 4"),
        (["--rule", "udp dprt=53"], "column 5: there is no 'dprt=53'; a term is any"),
        (["--rule", "udp", "--set", "hpu.words=1"], "compares 2 words of a frame, but the card compares at most 1"),
        (["--packet-sizes", "59"], "a frame of spin-100g has 60 to 1518 bytes without its check sequence, not 59"),
        (["--message-packets", "2"], "frames of spin-100g are not parts of messages"),
        (["--nic", "spin-discrete", "--rule", "udp"], "handlers of spin-discrete process messages"),
        (["--nic", "ethernet-100g"], "the card has no handler cores: its spec has no section [hpu]"),
    ],
)
def test_wrong_requests_say_what_to_write(nicety: Callable[..., Any], arguments: list[str], text: str) -> None:
    if "--nic" not in arguments:
        arguments = ["--nic", "spin-100g", *arguments]
    done = nicety("bench", "handlers", DROP, *arguments)
    assert done.status == 2
    assert text in done.stderr


def test_frames_that_no_rule_matches_are_told(nicety: Callable[..., Any]) -> None:
    arguments = ["bench", "handlers", DROP, "--nic", "spin-100g", "--traffic", "udp packets=50", "--rule"]
    done = nicety(*arguments, "tcp dport=53")
    assert done.status == 0
    assert "traffic: no handler ran, since no frame has matched a rule" in done.stdout
    assert "no handler ran" not in nicety(*arguments, "udp").stdout


def test_a_handler_that_leaves_its_state_learns_of_its_length(nicety: Callable[..., Any], tmp_path: Path) -> None:
    source = handler(tmp_path, "((volatile uint8_t *)state)[2000] = 1;\nreturn FRAME_DROP;")
    command = ["bench", "handlers", source, "--nic", "spin-100g", "--packet-sizes", "60", "--messages", "10"]
    done = nicety(*command)
    assert done.status == 1
    assert "the state has 1024 bytes here" in done.stderr
    assert "--state-bytes 64Ki" in done.stderr
    assert nicety(*command, "--state-bytes", "2001").status == 0
    # Errors elsewhere are unrelated.
    for body in ("*(volatile int *)0 = 1;", "((volatile uint8_t *)frame->data)[frame->length] = 1;"):
        other = handler(tmp_path, f"{body}\nreturn FRAME_DROP;")
        done = nicety(*[other if argument == source else argument for argument in command])
        assert "outside its memory" in done.stderr
        assert "the state has" not in done.stderr
    # A user who sets the length knows it.
    assert "the state has" not in nicety(*command, "--state-bytes", "1Ki").stderr


def test_frames_keep_up_or_not(nicety: Callable[..., Any]) -> None:
    report = nicety(
        "bench", "handlers", DROP, "--nic", "spin-100g", "--packet-sizes", "60,1514", "--messages", "2000", "--json"
    ).json()
    small, large = report["rows"]
    # By hand: 60 + 24 bytes at 80 ps; 16 cycles to start, an instruction and a return, 4 cycles to end.
    assert small["packet_interval_ns"] == 6.72
    assert small["cycles_mean"] == 23
    assert small["handler_ns"] == pytest.approx(23, abs=0.5)
    assert (small["verdict"], large["verdict"]) == ("yes", "yes")
    assert small["packet_dispositions"] == {"processed": 0, "dropped": 2000, "proceeded": 0, "failed": 0}
    assert "traffic" not in small


def test_traffic_of_frames_is_handled_lost_or_answered(nicety: Callable[..., Any]) -> None:
    command = ["bench", "handlers", ECHO, "--nic", "spin-100g", "--lossy", "--rule", "udp dport=7", "--json"]
    traffic = "udp dport=7 src=10.0.0.0/8 flows=100 size=imix packets=3000"
    report = nicety(*command, "--traffic", traffic, "--set", "hpu.cores=1").json()
    (row,) = report["rows"]
    figures = row["traffic"]
    assert row["verdict"] == "no"
    assert figures["handled"] + figures["dropped_by_overload"] == figures["offered"] == 3000
    assert (
        row["packet_dispositions"]["processed"]
        == figures["handled"]
        == round(row["sent_per_packet"] * figures["handled"])
    )
    (other,) = nicety(*command, "--traffic", traffic.replace("dport=7", "dport=8")).json()["rows"]
    assert other["packet_dispositions"]["processed"] == 0


def test_an_echo_of_mixed_sizes_fills_the_wire_and_keeps_up_barely(nicety: Callable[..., Any]) -> None:
    # Their mean interval is no whole number of picoseconds: rounded down, the link would be overloaded.
    traffic = "udp dport=7 src=10.0.0.0/8 flows=100 imix packets=3001"
    for options in ([], ["--lossy"]):
        command = ["bench", "handlers", ECHO, "--nic", "spin-100g", "--traffic", traffic, "--json", *options]
        (row,) = nicety(*command).json()["rows"]
        assert (row["verdict"], row["bottleneck"], row["limited_by"]) == ("barely", "link", None)
        assert row["capacity_fraction"] == pytest.approx(1, abs=1e-3)
        assert row["loads"]["link"] <= 1
        assert row["traffic"]["dropped_by_overload"] == 0


def test_flows_of_version_6_match_rules_for_them(nicety: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "mine.c").write_text(
        """#include <frame.h>
        __handler int frame_handler(const frame_t *frame, void *state) {
            const uint8_t *data = frame->data;
            if (data[14] >> 4 != 6 || frame_get32(data + 22) != 0x20010db8)
                return FRAME_FAIL;
            return FRAME_DROP;
        }"""
    )
    command = ["bench", "handlers", "mine.c", "--nic", "spin-100g", "--rule", "ip6 udp dport=53", "--json"]
    traffic = "udp src=2001:db8::/32 dport=53 flows=1M zipf=1.1 imix rate=20Gbps packets=1000"
    (row,) = nicety(*command, "--traffic", traffic).json()["rows"]
    assert row["packet_dispositions"] == {"processed": 0, "dropped": 1000, "proceeded": 0, "failed": 0}
    refused = nicety(*command, "--traffic", "udp src=2001:db8::/32 dst=10.0.0.1")
    assert refused.status == 2
    assert "two addresses of one version" in refused.stderr


def test_a_frame_that_the_card_refuses_to_send_on_has_failed(nicety: Callable[..., Any], tmp_path: Path) -> None:
    source = tmp_path / "grows.c"
    source.write_text(
        "#include <frame.h>\n__handler int frame_handler(const frame_t *frame, void *state) {\n"
        "    frame_push(frame, 40);\n    return FRAME_WIRE;\n}\n"
    )
    command = ["bench", "handlers", source, "--nic", "spin-100g", "--json", "--allow-failures"]
    # The longest frame is 1478 + 40 bytes, and one byte more is too long.
    for size, failed in [(1478, 0), (1479, 200)]:
        done = nicety(*command, "fail", "--traffic", f"udp size={size} packets=200")
        (row,) = json.loads(done.stdout)["rows"]
        assert [row["traffic"][key] for key in ("handled", "failed", "passed")] == [200, failed, 200 - failed]
    done = nicety(*command, "fail,trap", "--traffic", "udp packets=200")
    assert done.status == 2
    assert "trap cannot be allowed here" in done.stderr


def test_a_failure_on_packets_that_were_lost_is_none_that_is_lost(nicety: Callable[..., Any], tmp_path: Path) -> None:
    source = handler(
        tmp_path,
        "    if (__atomic_fetch_add((uint32_t *)state, 1, __ATOMIC_RELAXED) == 1900)\n        return FRAME_FAIL;\n"
        '    for (int i = 0; i < 500; i++)\n        __asm__ volatile("");\n    return FRAME_DROP;',
    )
    command = ["bench", "handlers", source, "--nic", "spin-100g", "--lossy", "--set", "hpu.cores=2", "--json"]
    done = nicety(*command, "--traffic", "udp size=60 packets=2000")
    assert done.status == 1
    report = json.loads(done.stdout)
    # The first run handles fewer packets than that.
    assert report["rows"][0]["traffic"]["handled"] < 1900
    assert [failure["kind"] for failure in report["failures"]] == ["fail"]
    assert "in the second run" in done.stderr
