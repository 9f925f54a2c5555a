#!/usr/bin/env bash
# Guess: MarshalFCS of Go's package github.com/mdlayher/ethernet gives the frame as it is on the wire, and UnmarshalFCS takes a frame that a
#        card has captured with its frame check sequence.
# From:  IEEE 802.3 on the frame check sequence (3.2.9) and the order of bits (3.3): the coefficient of x^31 is sent first, and other
#        bytes are sent with the lowest bit first. So a captured sequence is the reflected CRC-32 of programs, with its lowest byte first.
#        Over a right frame and these 4 bytes, that CRC is 0x2144df1c.
# True:  the package writes the highest byte first, and expects that. tshark calls the frame's sequence bad, and UnmarshalFCS calls one
#        in the order of the wire invalid. Its own reader and writer agree, so that no round trip shows it.
set -euo pipefail
command -v go >/dev/null || { echo "needs Go" >&2; exit 2; }
command -v tshark >/dev/null || { echo "install tshark (seen with 4.0.17)" >&2; exit 2; }
work=$(mktemp -d)
trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT
cd "$work"

export GOPATH=$work/gopath GOCACHE=$work/gocache GOFLAGS=-mod=mod HOME=$work
version=v0.0.0-20220221185849-529eae5b6118
cat >main.go <<'G'
package main

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"os"

	"github.com/mdlayher/ethernet"
)

// capture writes a pcap file with one Ethernet frame, whose last 4 bytes are its check sequence.
func capture(name string, frame []byte) {
	file := binary.LittleEndian.AppendUint32(nil, 0xa1b2c3d4)
	file = binary.LittleEndian.AppendUint16(file, 2)
	file = binary.LittleEndian.AppendUint16(file, 4)
	for _, word := range []int{0, 0, 65535, 1, 0, 0, len(frame), len(frame)} {
		file = binary.LittleEndian.AppendUint32(file, uint32(word))
	}
	if err := os.WriteFile(name, append(file, frame...), 0o666); err != nil {
		panic(err)
	}
}

func main() {
	frame := ethernet.Frame{
		Destination: []byte{2, 0, 0, 0, 0, 2},
		Source:      []byte{2, 0, 0, 0, 0, 1},
		EtherType:   0x88b5,
		Payload:     make([]byte, 46),
	}
	written, err := frame.MarshalFCS()
	if err != nil {
		panic(err)
	}
	wire := append([]byte{}, written...)
	end := len(wire) - 4
	binary.LittleEndian.PutUint32(wire[end:], crc32.ChecksumIEEE(wire[:end]))
	for name, bytes := range map[string][]byte{"written": written, "wire": wire} {
		capture(name+".pcap", bytes)
	}
	fmt.Printf("MarshalFCS: %x at the end, CRC-32 of the whole 0x%08x, read back with error %v\n",
		written[end:], crc32.ChecksumIEEE(written), new(ethernet.Frame).UnmarshalFCS(written))
	fmt.Printf("the wire: %x at the end, CRC-32 of the whole 0x%08x, read with error %v\n",
		wire[end:], crc32.ChecksumIEEE(wire), new(ethernet.Frame).UnmarshalFCS(wire))
}
G
{ go mod init probe && go get "github.com/mdlayher/ethernet@$version" && go build -o probe .; } >build.log 2>&1 ||
    { cat build.log >&2; exit 1; }
echo "github.com/mdlayher/ethernet $version; $(tshark --version 2>/dev/null | sed -n '1s/ (Git.*//p')"
{
    ./probe
    for name in written wire; do
        status=$(tshark -r "$name.pcap" -o eth.fcs:Always -o eth.check_fcs:TRUE -T fields -e eth.fcs.status 2>errors)
        echo "tshark: the sequence of $name.pcap has status $status"
    done
} | tee seen
expected='MarshalFCS: cbf47b5d at the end, CRC-32 of the whole 0xf6718f2c, read back with error <nil>
the wire: 5d7bf4cb at the end, CRC-32 of the whole 0x2144df1c, read with error invalid frame check sequence
tshark: the sequence of written.pcap has status 0
tshark: the sequence of wire.pcap has status 1'
[[ $(<seen) == "$expected" ]] || { echo "changed: the sequences differ from those seen with $version" >&2; exit 1; }
