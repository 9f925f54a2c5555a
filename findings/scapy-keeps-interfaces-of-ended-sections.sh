#!/usr/bin/env bash
# Guess: scapy reads two pcapng files joined by cat as it reads each of them.
# From:  the pcapng draft: a file has one section or more, and can be made by joining files. An interface's number counts the interface
#        blocks of its own section only.
# True:  scapy 2.8.0 keeps the interfaces of sections that have ended. Packets of a later section get the first section's unit of times
#        and its link type. Nanoseconds count as microseconds, and IP packets become Ethernet frames. tshark reads the file as meant.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check scapy==2.8.0
cat >sections.py <<'P'
import struct
import warnings

warnings.simplefilter("ignore")
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from scapy.utils import rdpcap

SECOND = 1_700_000_000


def block(kind: int, body: bytes) -> bytes:
    body += bytes(-len(body) % 4)
    length = struct.pack("<I", 12 + len(body))
    return struct.pack("<I", kind) + length + body + length


def section(link: int, resolution: int, packet: bytes) -> bytes:
    """A file with an interface, whose unit is 10 to the power of -resolution seconds, and a packet."""
    ticks = SECOND * 10**resolution
    return (
        block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1))
        + block(1, struct.pack("<HHI HHB3x HH", link, 0, 0, 9, 1, resolution, 0, 0))
        + block(6, struct.pack("<5I", 0, ticks >> 32, ticks & 0xFFFFFFFF, len(packet), len(packet)) + packet)
    )


def read(*sections: bytes) -> list[str]:
    open("capture.pcapng", "wb").write(b"".join(sections))
    return [f"{packet.time} s {packet.name}" for packet in rdpcap("capture.pcapng")]


packet = bytes(IP(src="10.0.0.1", dst="10.0.0.2") / UDP(sport=1, dport=2))
micro, nano = section(1, 6, bytes(Ether(src="2:0:0:0:0:1", dst="2:0:0:0:0:2", type=0x800)) + packet), section(101, 9, packet)
found = read(micro), read(nano), read(micro, nano)
print(f"scapy 2.8.0: apart {found[0] + found[1]}, joined {found[2]}")
alone = [f"{SECOND} s Ethernet"], [f"{SECOND} s IP"]
raise SystemExit(found != (*alone, [f"{SECOND} s Ethernet", f"{SECOND * 1000} s Ethernet"]))
P
env/bin/python sections.py 2>errors || { cat errors >&2; echo "changed: the packets differ from those seen with scapy 2.8.0" >&2; exit 1; }
