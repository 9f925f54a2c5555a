#!/usr/bin/env bash
# Guess: a reader of pcapng adds an interface's if_tsoffset to the times of its packets, as it applies the interface's unit.
# From:  the pcapng draft on if_tsoffset: seconds to add to each packet's time to obtain the absolute time, in the section's byte order.
# True:  scapy 2.8.0 and python-pcapng 2.1.1 leave the offset out: packets are of 1970, without a warning. python-pcapng reads the
#        option, and does not use it. pcap-parser 0.17.0 takes it as little-endian also in sections that are big-endian.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check scapy==2.8.0 python-pcapng==2.1.1
cat >offset.py <<'P'
import struct
import warnings

warnings.simplefilter("ignore")
from pcapng import FileScanner
from pcapng.blocks import EnhancedPacket
from scapy.utils import rdpcap


def write(name: str, order: str) -> None:
    """A capture whose only packet is half a second behind the interface's offset."""

    def block(kind: int, body: bytes) -> bytes:
        length = struct.pack(order + "I", 12 + len(body))
        return struct.pack(order + "I", kind) + length + body + length

    with open(name, "wb") as file:
        file.write(block(0x0A0D0D0A, struct.pack(order + "IHHq", 0x1A2B3C4D, 1, 0, -1)))
        file.write(block(1, struct.pack(order + "HHI HHq HH", 1, 0, 0, 14, 8, 1_700_000_000, 0, 0)))
        file.write(block(6, struct.pack(order + "5I", 0, 0, 500_000, 60, 60) + bytes(60)))


write("little.pcapng", "<")
write("big.pcapng", ">")
print("scapy 2.8.0:", rdpcap("little.pcapng")[0].time)
with open("little.pcapng", "rb") as file:
    packet = next(block for block in FileScanner(file) if isinstance(block, EnhancedPacket))
    print("python-pcapng 2.1.1:", packet.timestamp, "with the offset", packet.interface.options["if_tsoffset"])
P
env/bin/python offset.py 2>errors >seen || { cat errors >&2; exit 1; }

cargo init --quiet --bin --name probe .
cat >>Cargo.toml <<'T'
pcap-parser = "=0.17.0"
T
cat >src/main.rs <<'R'
use pcap_parser::{Block, parse_block_be, parse_block_le};

fn main() {
    for (name, big) in [("little", false), ("big", true)] {
        let bytes = std::fs::read(format!("{name}.pcapng")).unwrap();
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            let (left, block) = if big { parse_block_be(rest) } else { parse_block_le(rest) }.unwrap();
            if let Block::InterfaceDescription(interface) = block {
                println!("pcap-parser 0.17.0, {name}-endian: the offset {}", interface.if_tsoffset);
            }
            rest = left;
        }
    }
}
R
cargo run --quiet 2>build.log >>seen || { cat build.log >&2; exit 1; }
cat seen
expected='scapy 2.8.0: 0.5
python-pcapng 2.1.1: 0.5 with the offset 1700000000
pcap-parser 0.17.0, little-endian: the offset 1700000000
pcap-parser 0.17.0, big-endian: the offset 67927162644070400'
[[ $(<seen) == "$expected" ]] || { echo "changed: the times differ from those seen with scapy 2.8.0 and python-pcapng 2.1.1" >&2; exit 1; }
