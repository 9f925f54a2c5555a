#!/usr/bin/env bash
# Guess: a reader of pcap files takes the link type from the lower 16 bits of the header's word. It reads Ethernet also where the upper
#        bits give the length of frame check sequences.
# From:  the pcap draft on the file's header: the link type has 16 bits of the last word. Above it are the length of the FCS and a bit
#        that says whether the length is there.
# True:  scapy 2.8.0 warns of the link type 603979777 and returns raw bytes. dpkt 1.9.8 and pcap-parser 0.17.0 return that number as the
#        link type, so that no comparison with Ethernet holds. gopacket 1.7.7 and tshark read Ethernet.
set -euo pipefail
command -v go >/dev/null || { echo "needs Go" >&2; exit 2; }
work=$(mktemp -d)
trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT
cd "$work"

python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check dpkt==1.9.8 scapy==2.8.0
cat >links.py <<'P'
import struct
import warnings
import zlib

warnings.simplefilter("ignore")
import dpkt
from scapy.utils import rdpcap

frame = bytes.fromhex("ffffffffffff02000000000188b5") + bytes(46)
frame += struct.pack("<I", zlib.crc32(frame))
with open("frame.pcap", "wb") as file:
    # Ethernet, and a frame check sequence of 2 units of 16 bits.
    link = 1 | 1 << 26 | 2 << 28
    file.write(struct.pack("<IHHIIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, link))
    file.write(struct.pack("<4I", 1_700_000_000, 0, len(frame), len(frame)) + frame)
print("scapy 2.8.0:", rdpcap("frame.pcap")[0].name)
with open("frame.pcap", "rb") as file:
    print("dpkt 1.9.8:", dpkt.pcap.Reader(file).datalink())
P
env/bin/python links.py 2>warnings >seen || { cat warnings >&2; exit 1; }

mkdir -p rust go
cd rust
cargo init --quiet --bin --name probe .
cat >>Cargo.toml <<'T'
pcap-parser = "=0.17.0"
T
cat >src/main.rs <<'R'
fn main() {
    let (_, header) = pcap_parser::parse_pcap_header(&std::fs::read("../frame.pcap").unwrap()).unwrap();
    println!("pcap-parser 0.17.0: {}", header.network);
}
R
cargo run --quiet 2>build.log >>../seen || { cat build.log >&2; exit 1; }
cd ../go
export GOPATH=$work/gopath GOCACHE=$work/gocache GOFLAGS=-mod=mod
cat >main.go <<'G'
package main

import (
	"fmt"
	"os"

	"github.com/gopacket/gopacket/pcapgo"
)

func main() {
	file, err := os.Open("../frame.pcap")
	if err != nil {
		panic(err)
	}
	reader, err := pcapgo.NewReader(file)
	if err != nil {
		panic(err)
	}
	fmt.Println("gopacket 1.7.7:", reader.LinkType())
}
G
{ go mod init probe && go get github.com/gopacket/gopacket/pcapgo@v1.7.7 && go build -o probe .; } >build.log 2>&1 ||
    { cat build.log >&2; exit 1; }
./probe >>../seen
cd ..
cat seen
expected='scapy 2.8.0: Raw
dpkt 1.9.8: 603979777
pcap-parser 0.17.0: Linktype(603979777 / 0x24000001)
gopacket 1.7.7: Ethernet'
[[ $(<seen) == "$expected" ]] || { echo "changed: the link types differ from those seen" >&2; exit 1; }
