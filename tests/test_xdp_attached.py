"""XDP programs on modelled cards and in drivers against the kernel, which attaches the same object to a veth pair."""

from __future__ import annotations

import json
import random
import struct
from collections import Counter
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from attached import answer
from test_xdp import TCP, address, balancer_maps, capture, frame, maglev, tcp, udp
from test_xdp_cards import built

PASS = '#include <xdp.h>\nSEC("xdp") int pass(struct xdp_md *context) { return XDP_PASS; }\n'
# Stands for the number of the interface, of four bytes in hex.
INDEX = "INDEX"
SHORTEST = 60
CARD, SENDER = bytes.fromhex("020000000001"), bytes.fromhex("020000000000")


def entries(items: Iterable[tuple[bytes | str, bytes | str]]) -> list[tuple[str, str]]:
    """Entries in hex."""

    def text(part: bytes | str) -> str:
        return part if isinstance(part, str) else part.hex()

    return [(text(key), text(value)) for key, value in items]


def flow(source: int, port: int, protocol: int) -> bytes:
    return address(f"10.0.0.{source}") + address("10.0.0.9") + struct.pack("!HHBBBB", port, port, protocol, 0, 0, 0)


@cache
def filled(name: str) -> dict[str, list[tuple[str, str]]]:
    """Entries of the maps of a program."""
    if name == "firewall":
        flows = [(flow(at, 53, 17 if at % 2 else TCP), struct.pack("<I", at % 4)) for at in range(12)]
        return {"flows": entries(flows)}
    if name == "router":
        hop = (SENDER + CARD).hex() + INDEX
        prefixes = [(24, "10.0.0.0"), (32, "10.0.0.9"), (16, "192.168.0.0")]
        return {"routes": entries([(struct.pack("<I", bits) + address(to), hop) for bits, to in prefixes])}
    if name == "tunnel":
        ends = address("192.0.2.1") + address("192.0.2.2") + SENDER
        return {"tunnels": entries([(address("10.0.0.9"), ends + bytes(2))])}
    if name == "redirect":
        return {"ports": [(INDEX, INDEX)]}
    if name == "balancer":
        maps = balancer_maps(maglev(["a", "b", "c"]))
        servers = [(at, address(f"192.0.2.{at}") + SENDER + bytes(2)) for at in range(8)]
        return {
            "services": entries([(address("10.0.0.9") + struct.pack("!HBB", 53, TCP, 0), bytes(4))]),
            "places": entries([(struct.pack("<I", e["key"]), struct.pack("<I", e["value"])) for e in maps["places"]]),
            "servers": entries([(struct.pack("<I", at), value) for at, value in servers]),
        }
    if name == "syncookie":
        return {"protected_ports": entries([(struct.pack("!H", 53), struct.pack("<I", 1))])}
    return {}


# The maps that a program changes.
CHANGED = {
    "counters": ["protocols", "sources"],
    "firewall": ["verdicts"],
    "router": [],
    "tunnel": [],
    "too_long": ["answers"],
    "queues": ["counts"],
    "redirect": [],
    "balancer": ["known"],
    "syncookie": ["proved"],
}


def frames(count: int) -> list[bytes]:
    """UDP and TCP of known and other flows, some of them long, some with another header."""
    rng = random.Random(11)
    found = []
    for _ in range(count):
        source, port = rng.randrange(16), rng.choice([53, 53, 80])
        rest = bytes(rng.randrange(256) for _ in range(rng.choice([26, 40, 700])))
        if rng.randrange(2):
            payload, protocol = udp(port, port, rest), 17
        else:
            flags = rng.choice([2, 16, 18])
            payload, protocol = tcp(port, port, rng.randrange(1000), rng.randrange(1000), flags) + rest, TCP
        kind = rng.choice([0x0800] * 9 + [0x86DD])
        to = rng.choice(["10.0.0.9", "10.0.0.9", "10.0.1.1"])
        made = bytearray(frame(f"10.0.0.{source}", to, payload, protocol, rng.choice([1, 64, 64, 64]), kind))
        if rng.randrange(10) == 0:
            made[14] = rng.choice([0x41, 0x46, 0x4F])
        # The addresses of the modelled link, which a card and its traffic have.
        found.append(CARD + SENDER + bytes(made[12:]))
    return found


def traffic(some: list[bytes]) -> bytes:
    """A capture with a frame every microsecond, the first of them long before.

    The first frame makes the lists of a map. Later frames would wait for it together, and two cores could then add the
    same key, as the kernel's only CPU never does.
    """
    data = capture(some)
    seconds = struct.pack("<I", 1)
    at = 24 + 16 + len(some[0])
    parts = [data[:at]]
    for each in some[1:]:
        parts += [seconds, data[at + 4 : at + 16 + len(each)]]
        at += 16 + len(each)
    return b"".join(parts)


def words(values: list[bytes]) -> bytes:
    """A value; of a per-CPU map the sums of its 64-bit words."""
    if len(values) == 1:
        return values[0]
    of_cpus = [struct.unpack(f"<{len(value) // 8}Q", value) for value in values]
    return struct.pack(f"<{len(of_cpus[0])}Q", *map(sum, zip(*of_cpus, strict=True)))


def sent_by_card(file: Path) -> list[bytes]:
    """The frames of a capture's first run that leave the card."""
    data, at, own, found = file.read_bytes(), 0, [], []
    while at < len(data):
        kind, length = struct.unpack_from("<II", data, at)
        block = data[at + 8 : at + length - 4]
        if kind == 1:
            size = struct.unpack_from("<H", block, 10)[0]
            own.append(block[12 : 12 + size] in (b"hosts.1 -> hosts.0", b"hosts.1 -> switch.0"))
        elif kind == 6:
            interface, size = struct.unpack_from("<I8xI", block)
            if own[interface]:
                found.append(block[20 : 20 + size])
        at += length
    return found


def modelled(nicety: Callable, folder: Path, name: str, nic: str, count: int) -> Any:
    """Verdicts, frames on the wire, and changed maps of a card or a driver."""
    options: list[str] = []
    for map_, items in filled(name).items():
        own = [[list(bytes.fromhex(part.replace(INDEX, "01000000"))) for part in item] for item in items]
        (folder / f"{map_}.json").write_text(json.dumps([{"key": key, "value": value} for key, value in own]))
        options += ["--map", f"{map_}={folder / map_}.json"]
    for map_ in CHANGED[name]:
        options += ["--dump", f"{map_}={folder / map_}.json"]
    (folder / "in.pcap").write_bytes(traffic(frames(count)))
    command = ["bench", "handlers", folder / f"{name}.o", "--nic", nic, "--traffic", f"capture={folder / 'in.pcap'}"]
    result = nicety(*command, *options, "--capture", folder / "out.pcapng", "--json")
    assert result.status == 0, result.stderr
    (place,) = result.json()["places"]
    maps = {}
    for map_ in CHANGED[name]:
        shown = json.loads((folder / f"{map_}.json").read_text())
        maps[map_] = {of(entry["key"]): words([of(each) for each in listed(entry)]) for entry in shown}
    return place["verdicts"], sent_by_card(folder / "out.pcapng"), maps


def of(shown: list[str]) -> bytes:
    return bytes(int(byte, 16) for byte in shown)


def listed(entry: dict[str, Any]) -> list[list[str]]:
    return [each["value"] for each in entry["values"]] if "values" in entry else [entry["value"]]


@pytest.mark.kernel
@pytest.mark.parametrize(
    ("name", "mode", "nic", "count"),
    [
        ("firewall", "xdpdrv", "spin-100g-rv64", 400),
        ("balancer", "xdpdrv", "spin-100g", 400),
        ("counters", "xdpgeneric", "ethernet-100g", 400),
        *(
            pytest.param(name, mode, nic, 10_000, marks=pytest.mark.soak)
            for name in CHANGED
            for mode in ("xdpdrv", "xdpgeneric")
            for nic in ("spin-100g", "spin-100g-rv64", "ethernet-100g")
        ),
    ],
)
def test_a_program_acts_as_the_kernels_attached_one(
    name: str, mode: str, nic: str, count: int, nicety: Callable, tmp_path: Path
) -> None:
    request = {
        "object": str(built(tmp_path, name)),
        "program": name,
        "pass": str(built(tmp_path, "pass", PASS)),
        "mode": mode,
        "maps": filled(name),
        "frames": [each.hex() for each in frames(count)],
    }
    kernel = answer(request)
    assert kernel["arrived"] == count
    verdicts, sent, maps = modelled(nicety, tmp_path, name, nic, count)
    assert verdicts.get("XDP_PASS", 0) == len(kernel["passed"])
    assert verdicts.get("XDP_TX", 0) + verdicts.get("XDP_REDIRECT", 0) == len(kernel["returned"])
    assert sum(verdicts.values()) == count
    assert len(verdicts) > 1 or name in ("counters", "queues", "redirect")
    # Cores finish out of order, and cards send no frame shorter than Ethernet's shortest.
    both = (sent, map(bytes.fromhex, kernel["returned"]))
    own, expected = [Counter(each.ljust(SHORTEST, b"\0") for each in some) for some in both]
    assert own == expected
    for map_ in CHANGED[name]:
        shown = {bytes.fromhex(key): words(list(map(bytes.fromhex, values))) for key, values in kernel["maps"][map_]}
        if name == "queues":
            # The kernel's pair has one queue, and a card spreads frames over its channels.
            totals = [sum(int.from_bytes(value, "little") for value in each.values()) for each in (maps[map_], shown)]
            assert totals == [count, count]
            continue
        assert maps[map_] == shown, map_
