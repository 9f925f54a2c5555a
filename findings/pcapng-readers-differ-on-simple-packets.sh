#!/usr/bin/env bash
# Guess: a reader of pcapng gives a frame in a simple packet block as it gives the same frame in an enhanced one, but without a time.
# From:  the pcapng draft on the simple packet block: it has the original length, and its data are as long as the smaller of that and the
#        interface's SnapLen, which is 0 where there is no limit. Padding to 32 bits is no part of the packet.
# True:  of a frame of 61 bytes, scapy 2.8.0 gives none where SnapLen is 0, as it takes that for the limit. dpkt 1.9.8 leaves the packet
#        out. The crate pcap-file 2.0.0 gives 64 bytes, with the padding, which it cuts off in enhanced blocks. pcap-parser 0.17.0 gives
#        61, but calls the whole frame truncated. None gives an error or a warning. python-pcapng 2.1.1 reads both frames as they are.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check dpkt==1.9.8 scapy==2.8.0 python-pcapng==2.1.1
cat >captures.py <<'P'
import logging
import struct

logging.getLogger("scapy").setLevel(logging.ERROR)
import dpkt
import pcapng
from scapy.utils import RawPcapNgReader


def block(kind, body):
    body += bytes(-len(body) % 4)
    length = struct.pack("<I", 12 + len(body))
    return struct.pack("<I", kind) + length + body + length


frame = bytes(range(61))
section = block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1))
simple = block(3, struct.pack("<I", 61) + frame)
enhanced = block(6, struct.pack("<IIIII", 0, 0, 0, 61, 61) + frame)
PACKETS = pcapng.blocks.SimplePacket, pcapng.blocks.EnhancedPacket
for limit in 0, 65535:
    name = f"{limit}.pcapng"
    with open(name, "wb") as file:
        file.write(section + block(1, struct.pack("<HHI", 1, 0, limit)) + simple + enhanced)
    print(f"scapy, SnapLen {limit}:", [len(data) for data, _ in RawPcapNgReader(name)])
    with open(name, "rb") as file:
        print(f"dpkt, SnapLen {limit}:", [len(data) for _, data in dpkt.pcapng.Reader(file)])
    with open(name, "rb") as file:
        blocks = [one for one in pcapng.FileScanner(file) if isinstance(one, PACKETS)]
        print(f"python-pcapng, SnapLen {limit}:", [len(one.packet_data) for one in blocks])
P
mkdir src
cat >Cargo.toml <<'T'
[package]
name = "simple"
edition = "2024"

[dependencies]
pcap-file = "=2.0.0"
pcap-parser = "=0.17.0"

[workspace]
T
cat >src/main.rs <<'R'
use pcap_file::pcapng::{Block, PcapNgReader};
use pcap_parser::PcapBlockOwned::NG;
use pcap_parser::traits::{PcapNGPacketBlock, PcapReaderIterator};

fn main() {
    for limit in [0, 65535] {
        let file = std::fs::read(format!("{limit}.pcapng")).unwrap();
        let mut reader = pcap_parser::PcapNGReader::new(4096, &file[..]).unwrap();
        let mut seen = Vec::new();
        while let Ok((length, block)) = reader.next() {
            match block {
                NG(pcap_parser::Block::SimplePacket(packet)) => seen.push((packet.packet_data().len(), packet.truncated())),
                NG(pcap_parser::Block::EnhancedPacket(packet)) => seen.push((packet.packet_data().len(), packet.truncated())),
                _ => {}
            }
            reader.consume(length);
        }
        println!("pcap-parser, SnapLen {limit}, lengths and whether truncated: {seen:?}");

        let mut reader = PcapNgReader::new(&file[..]).unwrap();
        let mut lengths = Vec::new();
        while let Some(block) = reader.next_block() {
            match block.unwrap() {
                Block::SimplePacket(packet) => lengths.push(packet.data.len()),
                Block::EnhancedPacket(packet) => lengths.push(packet.data.len()),
                _ => {}
            }
        }
        println!("pcap-file, SnapLen {limit}: {lengths:?}");
    }
}
R
env/bin/python captures.py >seen
cargo run --quiet --target-dir target >>seen 2>build.log || { cat build.log >&2; exit 1; }
env/bin/pip list --disable-pip-version-check --format=freeze | grep -i 'dpkt\|scapy\|pcapng'
grep -A 1 'name = "pcap-' Cargo.lock
cat seen
expected='scapy, SnapLen 0: [0, 61]
dpkt, SnapLen 0: [61]
python-pcapng, SnapLen 0: [61, 61]
scapy, SnapLen 65535: [61, 61]
dpkt, SnapLen 65535: [61]
python-pcapng, SnapLen 65535: [61, 61]
pcap-parser, SnapLen 0, lengths and whether truncated: [(61, true), (61, false)]
pcap-file, SnapLen 0: [64, 61]
pcap-parser, SnapLen 65535, lengths and whether truncated: [(61, true), (61, false)]
pcap-file, SnapLen 65535: [64, 61]'
[[ $(<seen) == "$expected" ]] || { echo "changed: the lengths differ from those seen" >&2; exit 1; }
