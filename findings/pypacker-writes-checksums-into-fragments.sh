#!/usr/bin/env bash
# Guess: pypacker leaves the payload of an IP fragment as it is. A program that forwards fragments takes one from the time to live, and
#        gets the packet's bytes with that and the header's checksum changed.
# From:  RFC 791, 2.3: only the fragment with offset 0 has the beginning of the datagram, and its UDP header. RFC 768: length and checksum
#        in that header are those of the whole datagram.
# True:  pypacker 5.4 reads the first bytes of any fragment as a UDP header. Of a later one it gives payload as the ports, and overwrites 4 bytes
#        of payload with a length and a checksum. Of the first one it replaces the datagram's length and checksum by the fragment's. Neither
#        gives an error; the datagram is broken where it is put together.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check pypacker==5.4 scapy==2.8.0
cat >forward.py <<'P'
import logging
from importlib.metadata import version

logging.getLogger("scapy").setLevel(logging.ERROR)

from pypacker.layer12.ethernet import Ethernet
from pypacker.layer3.ip import IP
from pypacker.layer4.udp import UDP
from scapy.layers.inet import IP as ScapyIP
from scapy.layers.inet import UDP as ScapyUDP
from scapy.layers.inet import defragment, fragment
from scapy.layers.l2 import Ether
from scapy.packet import Raw

whole = ScapyIP(src="192.0.2.1", dst="192.0.2.2", id=1) / ScapyUDP(sport=7, dport=9) / Raw(b"abcdefgh" * 6)
print("pypacker", version("pypacker"))
seen, forwarded = [], []
for number, part in enumerate(fragment(whole, fragsize=32)):
    given = bytes(Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02") / part)
    packet = Ethernet(given)
    ports = packet[UDP].sport, packet[UDP].dport
    packet[IP].ttl -= 1
    written = packet.bin()
    changed = [place for place in range(34, len(given)) if given[place] != written[place]]
    seen.append((ports, changed))
    forwarded.append(Ether(written)[ScapyIP])
    print(f"fragment {number}: ports {ports}, {given[34:42]} became {written[34:42]}, changed behind the IP header: {changed}")
after = bytes(defragment(forwarded)[0][ScapyUDP].payload)
print("the payload, put together again:", after)
letters = int.from_bytes(b"ab", "big"), int.from_bytes(b"cd", "big")
damaged = [place for place, byte in enumerate(b"abcdefgh" * 6) if after[place] != byte]
raise SystemExit((seen, damaged) != ([((7, 9), [39, 40, 41]), (letters, [38, 39, 40, 41])], [28, 29, 30, 31]))
P
env/bin/python forward.py || { echo "changed: the fragments differ from those seen with pypacker 5.4" >&2; exit 1; }
