#!/usr/bin/env bash
# Guess: dpkt writes a packet that it has read with the same bytes, also where an IPv6 packet has an authentication header.
# From:  RFC 4302: the header gives its own length (2.2), and the packet that it protects follows as it is (3.1.1). RFC 8200, 4.1: it is one
#        of IPv6's extension headers. dpkt reads it as such, and the UDP packet behind it.
# True:  dpkt 1.9.8 keeps what follows the header also as the header's own data, and writes it twice. The frame is longer by a UDP packet
#        than before, while the length in its IPv6 header is that of one. Over IPv4, and with other extension headers, the bytes are the same.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check dpkt==1.9.8 scapy==2.8.0
cat >rewrite.py <<'P'
import logging

logging.getLogger("scapy").setLevel(logging.ERROR)

import dpkt
from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import IPv6, IPv6ExtHdrFragment, IPv6ExtHdrHopByHop
from scapy.layers.ipsec import AH
from scapy.layers.l2 import Ether
from scapy.packet import Raw

ETHER = Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02")
FOUR = ETHER / IP(src="192.0.2.1", dst="192.0.2.2")
SIX = ETHER / IPv6(src="2001:db8::1", dst="2001:db8::2")
UDP_PACKET = UDP(sport=7, dport=7) / Raw(b"sixteen letters!")


def authentication():
    # The whole header has 24 bytes: 6 words, written as 4 (RFC 4302, 2.2).
    return AH(nh=17, payloadlen=4, spi=1, seq=1, icv=bytes(12))


print("dpkt", dpkt.__version__)
seen = []
for name, packet in [
    ("IPv4, authentication header", FOUR / authentication() / UDP_PACKET),
    ("IPv6, no extension header", SIX / UDP_PACKET),
    ("IPv6, hop-by-hop options", SIX / IPv6ExtHdrHopByHop() / UDP_PACKET),
    ("IPv6, fragment header", SIX / IPv6ExtHdrFragment() / UDP_PACKET),
    ("IPv6, authentication header", SIX / authentication() / UDP_PACKET),
]:
    given = bytes(packet)
    read = dpkt.ethernet.Ethernet(given)
    written = bytes(read)
    same = given[14:54] == written[14:54]
    seen.append((len(written) - len(given), written.count(b"sixteen letters!"), same))
    print(f"{name}: {len(given)} bytes read, {len(written)} written, the payload {seen[-1][1]} times; the same IP header: {same}")
raise SystemExit(seen != [(0, 1, True)] * 4 + [(24, 2, True)])
P
env/bin/python rewrite.py || { echo "changed: the bytes differ from those seen with dpkt 1.9.8" >&2; exit 1; }
