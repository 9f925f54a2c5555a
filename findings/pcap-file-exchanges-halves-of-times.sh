#!/usr/bin/env bash
# Guess: the crate pcap-file writes and reads the time of an interface statistics block as that of a packet.
# From:  the pcapng draft on that block: "time this statistics refers to. The format of the timestamp is the same already
#        defined in the Enhanced Packet Block", which is the upper 32 bits, then the lower 32.
# True:  in little-endian files it writes and reads the lower 32 bits first. The time is wrong for other programs, and
#        its own reader and writer agree, so that no round trip shows it.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

mkdir src
cat >Cargo.toml <<'TOML'
[package]
name = "statistics"
edition = "2024"

[dependencies]
pcap-file = "=2.0.0"

[workspace]
TOML
cat >src/main.rs <<'RUST'
use pcap_file::DataLink;
use pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketBlock;
use pcap_file::pcapng::blocks::interface_description::InterfaceDescriptionBlock;
use pcap_file::pcapng::blocks::interface_statistics::InterfaceStatisticsBlock;
use pcap_file::pcapng::{Block, PcapNgBlock, PcapNgReader, PcapNgWriter};
use std::time::Duration;

/// Two in the upper half, five in the lower.
const TIME: u64 = (2 << 32) + 5;

fn main() {
    let mut writer = PcapNgWriter::new(Vec::new()).unwrap();
    let mut times = Vec::new();
    let blocks: [Block; 3] = [
        InterfaceDescriptionBlock::new(DataLink::ETHERNET, 0).into_block(),
        EnhancedPacketBlock { interface_id: 0, timestamp: Duration::from_nanos(TIME), original_len: 0, data: [][..].into(), options: vec![] }.into_block(),
        InterfaceStatisticsBlock { interface_id: 0, timestamp: TIME, options: vec![] }.into_block(),
    ];
    for block in &blocks {
        times.push(writer.get_ref().len() + 12);
        writer.write_block(block).unwrap();
    }
    let mut file = writer.into_inner();
    println!("byte order: {:02x?}", &file[8..12]);
    println!("packet, written:     {:?}", &file[times[1]..][..8]);
    println!("statistics, written: {:?}", &file[times[2]..][..8]);
    // A file by the draft.
    file[times[2]..][..8].copy_from_slice(&[2, 0, 0, 0, 5, 0, 0, 0]);
    let mut reader = PcapNgReader::new(&file[..]).unwrap();
    while let Some(block) = reader.next_block() {
        if let Block::InterfaceStatistics(statistics) = block.unwrap() {
            println!("2 * 2^32 + 5 by the draft is read as {} * 2^32 + {}", statistics.timestamp >> 32, statistics.timestamp as u32);
        }
    }
}
RUST
cargo run --quiet --target-dir target >out
grep -A 1 'name = "pcap-file"' Cargo.lock
cat out
cat >expected <<'TEXT'
byte order: [4d, 3c, 2b, 1a]
packet, written:     [2, 0, 0, 0, 5, 0, 0, 0]
statistics, written: [5, 0, 0, 0, 2, 0, 0, 0]
2 * 2^32 + 5 by the draft is read as 5 * 2^32 + 2
TEXT
cmp out expected || { echo "changed: the bytes differ from those seen" >&2; exit 1; }
