#!/usr/bin/env bash
# Guess: a reader of pcapng reads a block's options up to the end of the block, also where no opt_endofopt ends them.
# From:  the pcapng draft on options: software that reads files must not assume that a list of options ends with opt_endofopt. The length of
#        the block tells where they end.
# True:  the crate pcap-file 2.0.0 refuses a block whose options end otherwise with "Invalid option". Of a capture whose packets have
#        flags and no such end, it gives no packet. pcap-parser 0.17.0 and scapy 2.8.0 read the same file.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check scapy==2.8.0
cat >captures.py <<'P'
import logging
import struct

logging.getLogger("scapy").setLevel(logging.ERROR)
from scapy.utils import RawPcapNgReader


def block(kind, body):
    length = struct.pack("<I", 12 + len(body))
    return struct.pack("<I", kind) + length + body + length


section = block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1))
interface = block(1, struct.pack("<HHI", 1, 0, 0))
flags = struct.pack("<HHI", 2, 4, 1)
for name, end in ("end", bytes(4)), ("no-end", b""):
    packet = block(6, struct.pack("<IIIII", 0, 0, 0, 60, 60) + bytes(60) + flags + end)
    with open(name + ".pcapng", "wb") as file:
        file.write(section + interface + packet)
    print(f"scapy, {name}.pcapng:", [len(data) for data, _ in RawPcapNgReader(name + ".pcapng")])
P
mkdir src
cat >Cargo.toml <<'T'
[package]
name = "options"
edition = "2024"

[dependencies]
pcap-file = "=2.0.0"
pcap-parser = "=0.17.0"

[workspace]
T
cat >src/main.rs <<'R'
use pcap_file::pcapng::{Block, PcapNgReader};
use pcap_parser::PcapBlockOwned::NG;
use pcap_parser::traits::PcapReaderIterator;

fn main() {
    for name in ["end", "no-end"] {
        let file = std::fs::read(format!("{name}.pcapng")).unwrap();
        let mut reader = pcap_parser::PcapNGReader::new(4096, &file[..]).unwrap();
        let mut lengths = Vec::new();
        while let Ok((length, block)) = reader.next() {
            if let NG(pcap_parser::Block::EnhancedPacket(packet)) = block {
                lengths.push(packet.caplen);
            }
            reader.consume(length);
        }
        println!("pcap-parser, {name}.pcapng: {lengths:?}");

        let mut reader = PcapNgReader::new(&file[..]).unwrap();
        let mut lengths = Vec::new();
        let error = loop {
            match reader.next_block() {
                Some(Ok(Block::EnhancedPacket(packet))) => lengths.push(packet.data.len()),
                Some(Ok(_)) => {}
                Some(Err(error)) => break Some(error),
                None => break None,
            }
        };
        println!("pcap-file, {name}.pcapng: {lengths:?}, error {error:?}");
    }
}
R
env/bin/python captures.py >seen
cargo run --quiet --target-dir target >>seen 2>build.log || { cat build.log >&2; exit 1; }
grep -A 1 'name = "pcap-' Cargo.lock
cat seen
expected='scapy, end.pcapng: [60]
scapy, no-end.pcapng: [60]
pcap-parser, end.pcapng: [60]
pcap-file, end.pcapng: [60], error None
pcap-parser, no-end.pcapng: [60]
pcap-file, no-end.pcapng: [], error Some(InvalidField("Invalid option"))'
[[ $(<seen) == "$expected" ]] || { echo "changed: the packets differ from those seen with pcap-file 2.0.0" >&2; exit 1; }
