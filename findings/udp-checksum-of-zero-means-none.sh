#!/usr/bin/env bash
# Guess: a library that computes UDP checksums writes 0xffff where the sum is zero, because zero means that there is no checksum.
# From:  RFC 768: a computed checksum of zero is transmitted as all ones. RFC 8200, 8.1: over IPv6, receivers discard packets with zero.
# True:  dpkt 1.9.8 does so over IPv4 only, and pnet_packet 0.35.0 over neither. One packet of 65536 has such a sum. A receiver drops
#        it over IPv6, and does not check it over IPv4. scapy 2.8.0 and etherparse 0.21.0 write 0xffff over both.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check dpkt==1.9.8 scapy==2.8.0
cat >sums.py <<'P'
import socket
import struct
import sys
import warnings

warnings.simplefilter("ignore")
import dpkt
from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import IPv6

PORTS = 1000, 2000
ENDS4, ENDS6 = ("10.0.0.1", "10.0.0.2"), ("fe80::1", "fe80::2")


def rest(pseudo: bytes) -> bytes:
    """The two bytes with which the words of a packet, and of its pseudo header, add up to 0xffff."""
    total = sum(struct.unpack(f"!{len(pseudo) // 2}H", pseudo))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return struct.pack("!H", 0xFFFF - total)


header = struct.pack("!4H", *PORTS, 10, 0)
raw4, raw6 = [socket.inet_aton(end) for end in ENDS4], [socket.inet_pton(socket.AF_INET6, end) for end in ENDS6]
data4 = rest(b"".join(raw4) + struct.pack("!2H", 17, 10) + header)
data6 = rest(b"".join(raw6) + struct.pack("!2I", 10, 17) + header)
open("data", "wb").write(data4 + data6)


def dpkt_udp(data: bytes) -> dpkt.udp.UDP:
    return dpkt.udp.UDP(sport=PORTS[0], dport=PORTS[1], ulen=10, data=data)


def scapy_udp(data: bytes):
    return UDP(sport=PORTS[0], dport=PORTS[1]) / data


four = bytes(dpkt.ip.IP(src=raw4[0], dst=raw4[1], p=17, len=30, data=dpkt_udp(data4)))
six = bytes(dpkt.ip6.IP6(src=raw6[0], dst=raw6[1], nxt=17, plen=10, data=dpkt_udp(data6)))
print(f"dpkt 1.9.8: {four[-4:-2].hex()} over IPv4, {six[-4:-2].hex()} over IPv6")
four = bytes(IP(src=ENDS4[0], dst=ENDS4[1]) / scapy_udp(data4))
six = bytes(IPv6(src=ENDS6[0], dst=ENDS6[1]) / scapy_udp(data6))
print(f"scapy 2.8.0: {four[-4:-2].hex()} over IPv4, {six[-4:-2].hex()} over IPv6")
P
env/bin/python sums.py 2>errors >seen || { cat errors >&2; exit 1; }

cargo init --quiet --bin --name probe .
cat >>Cargo.toml <<'T'
etherparse = "=0.21.0"
pnet_packet = "=0.35.0"
T
cat >src/main.rs <<'R'
use pnet_packet::udp::{UdpPacket, ipv4_checksum, ipv6_checksum};
use std::net::{Ipv4Addr, Ipv6Addr};

fn main() {
    let data = std::fs::read("data").unwrap();
    let four: [Ipv4Addr; 2] = ["10.0.0.1", "10.0.0.2"].map(|end| end.parse().unwrap());
    let six: [Ipv6Addr; 2] = ["fe80::1", "fe80::2"].map(|end| end.parse().unwrap());
    let header = etherparse::UdpHeader { source_port: 1000, destination_port: 2000, length: 10, checksum: 0 };
    let packet = |data: &[u8]| [&header.to_bytes()[..], data].concat();
    let (over4, over6) = (packet(&data[..2]), packet(&data[2..]));
    println!(
        "pnet_packet 0.35.0: {:04x} over IPv4, {:04x} over IPv6",
        ipv4_checksum(&UdpPacket::new(&over4).unwrap(), &four[0], &four[1]),
        ipv6_checksum(&UdpPacket::new(&over6).unwrap(), &six[0], &six[1]),
    );
    println!(
        "etherparse 0.21.0: {:04x} over IPv4, {:04x} over IPv6",
        header.calc_checksum_ipv4_raw(four[0].octets(), four[1].octets(), &data[..2]).unwrap(),
        header.calc_checksum_ipv6_raw(six[0].octets(), six[1].octets(), &data[2..]).unwrap(),
    );
}
R
cargo run --quiet 2>build.log >>seen || { cat build.log >&2; exit 1; }
cat seen
expected='dpkt 1.9.8: ffff over IPv4, 0000 over IPv6
scapy 2.8.0: ffff over IPv4, ffff over IPv6
pnet_packet 0.35.0: 0000 over IPv4, 0000 over IPv6
etherparse 0.21.0: ffff over IPv4, ffff over IPv6'
[[ $(<seen) == "$expected" ]] || { echo "changed: the sums differ from those seen with dpkt 1.9.8 and pnet_packet 0.35.0" >&2; exit 1; }
