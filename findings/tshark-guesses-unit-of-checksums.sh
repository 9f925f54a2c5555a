#!/usr/bin/env bash
# Guess: the option if_fcslen of a pcapng interface has one unit, so that 32 and 4 are different lengths.
# From:  the pcapng draft: "specifies the length of the Frame Check Sequence (in bits)", with the example '4'.
# True:  tshark takes 4 and 32 for the same 4 bytes. It takes numbers below 8 for bytes and others for bits; so do 1 and
#        8, 2 and 16. A reader that follows the text alone cuts nothing, or half a byte, off the files of others.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

# Debian 12's tshark package; there is no such program in a registry of Python, Rust or Go.
version=$(tshark --version 2>/dev/null | sed -n 1p) || { echo "there is no tshark: install tshark 4.0.17" >&2; exit 2; }
[[ $version == *" 4.0.17 "* ]] || { echo "not the version seen, 4.0.17: $version" >&2; exit 2; }

cat >write.py <<'PYTHON'
import struct

def block(kind, body):
    body += bytes(-len(body) % 4)
    length = struct.pack("<I", 12 + len(body))
    return struct.pack("<I", kind) + length + body + length

frame = bytes.fromhex("020000000002" "020000000001" "88b5") + bytes(46) + bytes.fromhex("deadbeef")
for number in (1, 2, 4, 8, 16, 32):
    option = struct.pack("<HHBxxx", 13, 1, number) + bytes(4)
    section = block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1))
    interface = block(1, struct.pack("<HHI", 1, 0, 0) + option)
    packet = block(6, struct.pack("<IIIII", 0, 0, 0, len(frame), len(frame)) + frame)
    open(f"{number}.pcapng", "wb").write(section + interface + packet)
PYTHON
python3 write.py
echo "$version"
for number in 1 8 2 16 4 32; do
    payload=$(tshark -r $number.pcapng -T fields -e data.len 2>/dev/null)
    echo "if_fcslen $number: $((50 - payload)) B cut off"
done | tee out
printf 'if_fcslen %s B cut off\n' "1: 1" "8: 1" "2: 2" "16: 2" "4: 4" "32: 4" | cmp out - ||
    { echo "changed: other lengths are cut off" >&2; exit 1; }
