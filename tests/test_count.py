"""Counts of the sources of captures on a card: exact, complete or damaged captures, and refusals."""

from __future__ import annotations

import gzip
import ipaddress
import random
import struct
import zlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import nicety as package
from sizes import examples

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
ETHERNET = 1


def frame(source: Address | None) -> bytes:
    """An Ethernet frame from this address, or one of ARP."""
    if source is None:
        return bytes(12) + b"\x08\x06" + bytes(28)
    if source.version == 4:
        return bytes(12) + b"\x08\x00\x45" + bytes(11) + source.packed + bytes(4)
    return bytes(12) + b"\x86\xdd\x60" + bytes(7) + source.packed + bytes(16)


def pcap(sources: Iterable[Address | None], link: int = ETHERNET) -> bytes:
    head = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, link)
    frames = [frame(source) for source in sources]
    return head + b"".join(struct.pack("<IIII", 1, 2, len(each), len(each)) + each for each in frames)


def v4(count: int, seed: int = 1) -> list[Address]:
    dice = random.Random(seed)
    return [ipaddress.IPv4Address(dice.getrandbits(32)) for _ in range(count)]


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    def written(contents: bytes, name: str = "a.pcap") -> Path:
        path = tmp_path / name
        path.write_bytes(contents)
        return path

    return written


def test_an_estimate_is_within_its_error(write: Callable[..., Path]) -> None:
    sources = v4(20_000)
    capture = write(pcap([*sources, *random.Random(2).choices(sources, k=10_000), None]))
    report = package.count_sources(capture)
    assert (report["packets"], report["ipv4_packets"], report["other_packets"]) == (30_001, 30_000, 1)
    assert report["distinct"] == len(set(sources))
    assert report["relative_error"] == pytest.approx(report["estimate"] / report["distinct"] - 1)
    assert report["expected_error"] == pytest.approx(0.78 / 2048**0.5)
    assert abs(report["relative_error"]) < 3 * report["expected_error"]
    assert report["card_packets_per_s"] == pytest.approx(30_000 / report["card_time_ns"] * 1e9)
    # The smallest frames, 84 bytes of 800 ps each, back to back.
    assert report["sent_ns"] == report["wire_busy_ns"] == pytest.approx(30_001 * 67.2)
    assert (report["through"], report["blocks"], report["oversized_packets"]) == ("port", None, 0)
    assert report["damage"] is None
    assert report["bytes"] == capture.stat().st_size
    fewer = package.count_sources(capture, sketches=256)
    assert fewer["expected_error"] == pytest.approx(0.78 / 16)
    assert abs(fewer["relative_error"]) < 3 * fewer["expected_error"]
    assert fewer["card_time_ns"] < report["card_time_ns"]


def test_addresses_come_by_channels_too(nicety: Callable[..., Any], write: Callable[..., Path]) -> None:
    dice = random.Random(4)
    six: list[Address] = [ipaddress.IPv6Address(dice.getrandbits(128)) for _ in range(500)]
    capture = write(pcap([*v4(30_000), None, *six]))
    port, channels = (package.count_sources(capture, through=way) for way in ("port", "channels"))
    assert (channels["blocks"], channels["sent_ns"], channels["wire_busy_ns"]) == (2, None, None)
    assert channels["trailing_ones"] == port["trailing_ones"]
    assert channels["card_time_ns"] < port["card_time_ns"], "the wire has 10 Gb/s"
    shown = {way: nicety("pcsa", capture, "--through", way).stdout for way in ("port", "channels")}
    assert "packets through the port" in shown["port"]
    assert "wire busy         100.0%" in shown["port"]
    assert "addresses by channels" in shown["channels"]
    refused = nicety("pcsa", capture, "--through", "wire")
    assert refused.status == 2
    assert "--through is port or channels, not wire" in refused.stderr


def test_a_card_that_is_too_slow_holds_packets_up(nicety: Callable[..., Any], write: Callable[..., Path]) -> None:
    done = nicety("pcsa", write(pcap(v4(4_000))), "--set", "hpu.cores=1")
    assert done.status == 0, done.stderr
    assert "%, the card delayed packets" in done.stdout


def test_packets_that_the_card_does_not_see_through_are_told_of(
    nicety: Callable[..., Any], write: Callable[..., Path]
) -> None:
    ip = b"\x45" + bytes(11) + v4(1)[0].packed + bytes(4)
    tagged = bytes(12) + b"\x81\x00" + b"\x00\x01\x81\x00" * 11 + b"\x00\x01\x08\x00" + ip
    capture = pcap([]) + struct.pack("<IIII", 1, 2, len(tagged), len(tagged)) + tagged
    done = nicety("pcsa", write(capture))
    assert done.status == 2
    assert "the card found sources in 0 IPv4" in done.stderr
    assert "with --through channels, the host finds them" in done.stderr
    assert nicety("pcsa", write(capture), "--through", "channels").status == 0


def mixed(crc: int) -> int:
    """The last steps of MurmurHash3."""
    crc = (crc ^ crc >> 16) * 0x85EBCA6B % 2**32
    crc = (crc ^ crc >> 13) * 0xC2B2AE35 % 2**32
    return crc ^ crc >> 16


@pytest.mark.parametrize("hashed", ["mixed", "crc"])
@pytest.mark.parametrize("bits", [4, 8, 11, 14])
def test_the_card_has_the_sketches_that_the_addresses_make(write: Callable[..., Path], bits: int, hashed: Any) -> None:
    sources = v4(4_000)
    sketches = [0] * 2**bits
    for source in sources:
        number = zlib.crc32(source.packed)
        number = mixed(number) if hashed == "mixed" else number
        rest = number >> bits
        sketches[number % 2**bits] |= ~rest & (rest + 1)
    ones = sum((~sketch & (sketch + 1)).bit_length() - 1 for sketch in sketches)
    report = package.count_sources(write(pcap(sources)), hash=hashed, sketches=2**bits)
    assert report["trailing_ones"] == ones
    assert report["estimate"] == pytest.approx(2**bits / 0.77351 * 2 ** (ones / 2**bits))


@pytest.mark.parametrize("step", [1, 256])
def test_addresses_in_order_take_the_mixed_hash(
    nicety: Callable[..., Any], write: Callable[..., Path], step: int
) -> None:
    capture = write(pcap([ipaddress.IPv4Address((10 << 24) + step * at) for at in range(6_000)]))
    mixed_hash = nicety("pcsa", capture, "--sketches", "256", "--json").json()
    assert mixed_hash["hash"] == "mixed"
    assert abs(mixed_hash["relative_error"]) < 3 * mixed_hash["expected_error"]
    paper = nicety("pcsa", capture, "--sketches", "256", "--hash", "crc")
    assert "0.78 / sqrt(256) for random addresses; larger for addresses in order\n" in paper.stdout
    error = abs(package.count_sources(capture, sketches=256, hash="crc")["relative_error"])
    assert error > 3 * mixed_hash["expected_error"]
    assert f"{100 * error:.2f}%" in paper.stdout
    refused = nicety("pcsa", capture, "--hash", "md5")
    assert (refused.status, refused.stderr) == (2, "nicety: --hash is mixed or crc, not md5\n")


def test_pcapng_is_read_too(nicety: Callable[..., Any], write: Callable[..., Path]) -> None:
    def block(kind: int, body: bytes) -> bytes:
        body += bytes(-len(body) % 4)
        length = struct.pack("<I", 12 + len(body))
        return struct.pack("<I", kind) + length + body + length

    head = block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1)) + block(1, struct.pack("<HHI", ETHERNET, 0, 0))
    frames = [frame(source) for source in v4(400)]
    packets = b"".join(block(6, struct.pack("<IIIII", 0, 0, 0, len(each), len(each)) + each) for each in frames)
    done = nicety("pcsa", write(head + packets), "--sketches", "32", "--json")
    assert done.status == 0, done.stderr
    report = done.json()
    assert (report["format"], report["packets"], report["distinct"]) == ("pcapng", 400, 400)
    assert report["trailing_ones"] == package.count_sources(write(pcap(v4(400))), sketches=32)["trailing_ones"]


def test_the_order_of_packets_does_not_matter(write: Callable[..., Path]) -> None:
    sources = v4(5_000)
    found = [
        package.count_sources(write(pcap(order)))["trailing_ones"]
        for order in (sources, sources[::-1], sources + sources, sorted(sources))
    ]
    assert len(set(found)) == 1


def test_both_versions_of_ip_are_counted(write: Callable[..., Path]) -> None:
    dice = random.Random(3)
    six: list[Address] = [ipaddress.IPv6Address(dice.getrandbits(128)) for _ in range(3_000)]
    report = package.count_sources(write(pcap([*v4(3_000), *six, *six[:100]])), sketches=256)
    assert (report["ipv4_packets"], report["ipv6_packets"], report["distinct"]) == (3_000, 3_100, 6_000)
    assert abs(report["relative_error"]) < 3 * report["expected_error"]
    # Neighbours differ in their last bytes alone.
    near: list[Address] = [ipaddress.IPv6Address((0xFE80 << 112) + i) for i in range(4_000)]
    close = package.count_sources(write(pcap(near)), sketches=64)
    assert close["distinct"] == 4_000
    assert abs(close["relative_error"]) < 3 * close["expected_error"]


def test_more_sketches_than_addresses_are_told_of(nicety: Callable[..., Any], write: Callable[..., Path]) -> None:
    done = nicety("pcsa", write(pcap(v4(300))))
    assert done.status == 0
    expected = "1.72%, 0.78 / sqrt(2048); valid from 20480 addresses on, and with fewer the estimate is too high\n"
    assert expected in done.stdout
    few = "300 distinct addresses are few for 2048 sketches: the estimate is too high; use --sketches 16"
    assert few in done.stderr


@examples(15)
@given(st.lists(st.sampled_from(v4(40)), min_size=1, max_size=60), st.integers(0, 200))
def test_truncated_captures_are_counted(
    tmp_path_factory: pytest.TempPathFactory, sources: list[Address], end: int
) -> None:
    whole = pcap(sources)
    each = (len(whole) - 24) // len(sources)
    path = tmp_path_factory.mktemp("cut") / "a.pcap"
    path.write_bytes(whole[: 24 + each + end])
    report = package.count_sources(path)
    packets = min(1 + end // each, len(sources))
    assert report["packets"] == packets
    assert report["distinct"] == len(set(sources[:packets]))
    damaged = packets < len(sources) and end % each != 0
    assert (report["damage"] is not None) == damaged
    if report["damage"] is not None:
        assert (report["damage"]["packet"], report["damage"]["byte"]) == (packets + 1, 24 + packets * each)


def test_a_damaged_capture_is_printed_as_far_as_it_is_whole(
    nicety: Callable[..., Any], write: Callable[..., Path]
) -> None:
    capture = write(pcap(v4(50))[:-3])
    for arguments in ([], ["--json"]):
        done = nicety("pcsa", capture, *arguments)
        assert done.status == 2
        text = f"{capture}: at packet 50, byte {24 + 49 * 50}: the file ends 3 bytes before the end of the packet"
        assert text in done.stderr, done.stderr
        assert "49" in done.stdout
    assert done.json()["packets"] == 49


@pytest.mark.parametrize(
    ("contents", "arguments", "text"),
    [
        (b"", [], "a.pcap: the file is empty"),
        (b"no capture", [], "a.pcap: this is no capture; pcap and pcapng can be read"),
        (pcap([]), [], "a.pcap: the capture has no packets"),
        (pcap([None, None]), [], "none of its 2 packets has an IP source address: 2 are not of IP"),
        (pcap(v4(3), link=105), [], "3 are of link types other than Ethernet"),
        (pcap(v4(1))[:30], [], "a.pcap: at packet 1, byte 24: the file ends 10 bytes before the end of a packet's"),
        (pcap(v4(1)), ["--sketches", "100"], "--sketches: 100 sketches; write a power of two from 16 to 16384"),
        (pcap(v4(1)), ["--sketches", "32768"], "write a power of two from 16 to 16384"),
        (
            pcap(v4(1)),
            ["--set", "memory.ctm.size=64 KiB"],
            "two blocks of addresses take 196672 bytes, but CTM has only",
        ),
        (pcap(v4(1)), ["--nic", "spin-discrete"], "a card of design portals has no microengines"),
    ],
)
def test_invalid_captures_are_refused(
    nicety: Callable[..., Any], write: Callable[..., Path], contents: bytes, arguments: list[str], text: str
) -> None:
    done = nicety("pcsa", write(contents), *arguments)
    assert (done.status, done.stdout) == (2, "")
    assert text in done.stderr, done.stderr


def test_folders_and_files_that_are_not_there(nicety: Callable[..., Any], tmp_path: Path) -> None:
    for path, text in ((tmp_path, "this is a folder"), (tmp_path / "none", "cannot read it (No such file")):
        done = nicety("pcsa", path)
        assert (done.status, done.stdout) == (2, "")
        assert text in done.stderr, done.stderr


def lengths(frames: Iterable[tuple[int, int]]) -> bytes:
    """Frames of IEEE 802.3 between two of IP: their lengths, and the captured bytes of data."""
    packets = [frame(v4(2)[0])]
    packets += [bytes(12) + length.to_bytes(2, "big") + bytes([0xAA] * data) for length, data in frames]
    packets.append(frame(v4(2)[1]))
    head = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 96, ETHERNET)
    return head + b"".join(struct.pack("<IIII", 1, 2, len(each), len(each)) + each for each in packets)


def test_frames_that_the_port_drops_are_said(nicety: Callable[..., Any], write: Callable[..., Path]) -> None:
    # A switch's announcement of 300 bytes with 82 captured, one without data, and a complete one.
    capture = write(lengths([(300, 82), (0, 46), (38, 46)]))
    done = nicety("pcsa", capture, "--sketches", "16")
    assert done.status == 0, done.stderr
    assert "dropped by the port  2 (length field 0, or more than was captured)" in done.stdout
    report = nicety("pcsa", capture, "--sketches", "16", "--json").json()
    assert (report["ipv4_packets"], report["other_packets"], report["dropped_packets"]) == (2, 3, 2)
    channels = package.count_sources(capture, sketches=16, through="channels")
    assert (channels["trailing_ones"], channels["dropped_packets"]) == (report["trailing_ones"], None)


@examples(25)
@given(st.lists(st.tuples(st.integers(0, 1600), st.integers(0, 200)), max_size=6))
def test_no_length_is_waited_for(tmp_path_factory: pytest.TempPathFactory, frames: list[tuple[int, int]]) -> None:
    path = tmp_path_factory.mktemp("lengths") / "a.pcap"
    path.write_bytes(lengths(frames))
    report = package.count_sources(path, sketches=16)
    # A type from 0x600 on has no information about the length; data are padded to 46 bytes.
    dropped = sum(not 1 <= length <= max(data, 46) for length, data in frames if length < 0x600)
    assert (report["ipv4_packets"], report["dropped_packets"]) == (2, dropped)


def test_compressed_captures_are_counted(nicety: Callable[..., Any], write: Callable[..., Path]) -> None:
    whole = pcap(v4(500))
    plain = package.count_sources(write(whole))
    # A frame of zstd with one raw block: magic, no content size but a window, the block's head, and its bytes.
    block = (len(whole) << 3 | 1).to_bytes(3, "little")
    zstd = b"\x28\xb5\x2f\xfd\x00\x58" + block + whole
    for contents, name in ((gzip.compress(whole), "a.pcap.gz"), (zstd, "a.pcap.zst")):
        report = package.count_sources(write(contents, name))
        assert {**report, "capture": ""} == {**plain, "capture": ""}
    cut = nicety("pcsa", write(gzip.compress(whole)[:-20], "cut.gz"))
    assert cut.status == 2
    assert "within its gzip data" in cut.stderr


def test_frames_with_errors_and_check_sequences(write: Callable[..., Path]) -> None:
    def block(kind: int, body: bytes) -> bytes:
        body += bytes(-len(body) % 4)
        length = struct.pack("<I", 12 + len(body))
        return struct.pack("<I", kind) + length + body + length

    def packet(source: Address, flags: int) -> bytes:
        data = frame(source) + b"\xfc" * 4
        head = struct.pack("<IIIII", 0, 0, 0, len(data), len(data))
        return block(6, head + data + bytes(-len(data) % 4) + struct.pack("<HHIHH", 2, 4, flags, 0, 0))

    one, other = v4(2)
    interface = struct.pack("<HHI", ETHERNET, 0, 0) + struct.pack("<HHBxxxHH", 13, 1, 32, 0, 0)
    head = block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1)) + block(1, interface)
    # A CRC error; a packet that went out.
    report = package.count_sources(write(head + packet(one, 1 << 24) + packet(other, 2)), sketches=16)
    assert (report["packets"], report["ipv4_packets"], report["damaged_packets"]) == (2, 1, 1)
