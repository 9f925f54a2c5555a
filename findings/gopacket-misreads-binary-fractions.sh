#!/usr/bin/env bash
# Guess: gopacket reads the times of a pcapng interface whose unit is a power of 2, such as 2^-32 s of some capture cards.
# From:  the pcapng draft on if_tsresol: with the highest bit set, the others are a negative power of 2. gopacket's reader has a type
#        for it, with a function that tells binary resolutions.
# True:  gopacket 1.7.7 gets the whole seconds right, and the fraction wrong. Half a second becomes 0.5369 s at 2^-32, and 0.4996 s
#        at 2^-20. At 2^-32, the last packets of a second appear to arrive after the first ones of the next second.
set -euo pipefail
command -v go >/dev/null || { echo "needs Go" >&2; exit 2; }
work=$(mktemp -d)
trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT
cd "$work"

export GOPATH=$work/gopath GOCACHE=$work/gocache GOFLAGS=-mod=mod
cat >main.go <<'G'
package main

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/gopacket/gopacket/pcapgo"
)

// block returns a block of pcapng with a body of 32-bit words.
func block(kind uint32, words ...uint32) []byte {
	length := uint32(12 + 4*len(words))
	whole := append(append([]uint32{kind, length}, words...), length)
	var out bytes.Buffer
	binary.Write(&out, binary.LittleEndian, whole)
	return out.Bytes()
}

// capture returns a file with one empty packet at 1700000000.5 s, whose time counts units of 2^-power s.
func capture(power uint32) []byte {
	ticks := uint64(1700000000)<<power + 1<<(power-1)
	return bytes.Join([][]byte{
		block(0x0a0d0d0a, 0x1a2b3c4d, 1, 0xffffffff, 0xffffffff),
		block(1, 1, 0, 1<<16|9, 0x80|power, 0),
		block(6, 0, uint32(ticks>>32), uint32(ticks), 0, 0),
	}, nil)
}

func main() {
	for _, power := range []uint32{10, 20, 32} {
		reader, err := pcapgo.NewNgReader(bytes.NewReader(capture(power)), pcapgo.DefaultNgReaderOptions)
		if err != nil {
			panic(err)
		}
		_, info, err := reader.ReadPacketData()
		if err != nil {
			panic(err)
		}
		fmt.Printf("gopacket 1.7.7: half a second in units of 2^-%d s is %d ns\n", power, info.Timestamp.Nanosecond())
	}
}
G
{ go mod init probe && go get github.com/gopacket/gopacket/pcapgo@v1.7.7 && go build -o probe .; } >build.log 2>&1 ||
    { cat build.log >&2; exit 1; }
./probe | tee seen
expected='gopacket 1.7.7: half a second in units of 2^-10 s is 499999744 ns
gopacket 1.7.7: half a second in units of 2^-20 s is 499646464 ns
gopacket 1.7.7: half a second in units of 2^-32 s is 536870912 ns'
[[ $(<seen) == "$expected" ]] || { echo "changed: the times differ from those seen with gopacket 1.7.7" >&2; exit 1; }
