#!/usr/bin/env bash
# Guess: the crate pcap-file writes a packet's Duration in the unit of its interface, which is a microsecond where
#        the interface does not say another.
# From:  the pcapng draft on if_tsresol: "If this option is not present, a resolution of 10^-6 is assumed". The field
#        has the type Duration, so that no unit is left to its user.
# True:  it writes and reads nanoseconds, whatever the interface says. Other programs take one second for 1000.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

mkdir src
cat >Cargo.toml <<'TOML'
[package]
name = "second"
edition = "2024"

[dependencies]
pcap-file = "=2.0.0"

[workspace]
TOML
cat >src/main.rs <<'RUST'
use pcap_file::DataLink;
use pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketBlock;
use pcap_file::pcapng::blocks::interface_description::InterfaceDescriptionBlock;
use pcap_file::pcapng::{PcapNgBlock, PcapNgWriter};
use std::time::Duration;

fn main() {
    let mut writer = PcapNgWriter::new(Vec::new()).unwrap();
    writer.write_block(&InterfaceDescriptionBlock::new(DataLink::ETHERNET, 0).into_block()).unwrap();
    let at = writer.get_ref().len() + 12;
    let packet = EnhancedPacketBlock {
        interface_id: 0,
        timestamp: Duration::from_secs(1),
        original_len: 0,
        data: [][..].into(),
        options: vec![],
    };
    writer.write_block(&packet.into_block()).unwrap();
    let [upper, lower] = [0, 4].map(|half| {
        u32::from_le_bytes(writer.get_ref()[at + half..][..4].try_into().unwrap())
    });
    println!("one second is {} units of a microsecond", (u64::from(upper) << 32) + u64::from(lower));
}
RUST
cargo run --quiet --target-dir target | tee out
grep -A 1 'name = "pcap-file"' Cargo.lock
grep -qx "one second is 1000000000 units of a microsecond" out ||
    { echo "changed: it is another number of units" >&2; exit 1; }
