#!/usr/bin/env bash
# Guess: editcap keeps the length of frame check sequences when it rewrites a pcap file as pcapng. Both formats have it,
#        and Wireshark reads it in both.
# From:  the pcap draft on the FCS field of the file's header, the pcapng draft on if_fcslen; editcap's page says that it
#        "reads some or all of the captured packets from the infile" and writes them in another format.
# True:  editcap leaves the option out. The 4 bytes of each frame's checksum become payload.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

# Debian 12's tshark package; there is no such program in a registry of Python, Rust or Go.
version=$(editcap --version 2>/dev/null | sed -n 1p) || { echo "there is no editcap: install tshark 4.0.17" >&2; exit 2; }
[[ $version == *" 4.0.17 "* ]] || { echo "not the version seen, 4.0.17: $version" >&2; exit 2; }

cat >write.py <<'PYTHON'
import struct
frame = bytes.fromhex("020000000002" "020000000001" "88b5") + bytes(46) + bytes.fromhex("deadbeef")
# FCS length: two units of 16 bits in the upper four bits of the link type, and the bit that says that they are valid.
header = struct.pack("<IHHIIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 2 << 28 | 1 << 26 | 1)
packet = struct.pack("<IIII", 1, 0, len(frame), len(frame)) + frame
open("in.pcap", "wb").write(header + packet)
PYTHON
python3 write.py
editcap -F pcapng in.pcap out.pcapng 2>editcap.err
show() { tshark -r "$1" -T fields -E separator=, -e eth.fcs -e data.len 2>/dev/null; }
echo "$version"
echo "checksum and payload of the pcap file:   $(show in.pcap)"
echo "checksum and payload of the pcapng file: $(show out.pcapng)"
[[ $(show in.pcap) == "0xdeadbeef,46" && $(show out.pcapng) == ",50" ]] ||
    { echo "changed: the frames are read otherwise" >&2; exit 1; }
