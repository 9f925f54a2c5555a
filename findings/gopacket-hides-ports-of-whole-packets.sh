#!/usr/bin/env bash
# Guess: gopacket shows the UDP header of a packet that is there as a whole, whatever headers of IPv6 stand before it, and of the first fragment
#        of a datagram, which has that header too.
# From:  RFC 8200, 4.5: a fragment with offset 0 begins with the headers of the upper layer. RFC 6946: a fragment header with offset 0 and no
#        more fragments makes an atomic fragment, which receivers process as a whole packet of its own.
# True:  gopacket 1.7.7 ends with a layer "Fragment" behind any fragment header. An atomic fragment has no transport layer and no ports, nor
#        has the first fragment over IPv4 or IPv6, and no layer of errors says so. Counts by ports lose such packets.
set -euo pipefail
command -v go >/dev/null || { echo "needs Go" >&2; exit 2; }
work=$(mktemp -d)
trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT
cd "$work"

export GOPATH=$work/gopath GOCACHE=$work/gocache GOFLAGS=-mod=mod
cat >main.go <<'G'
package main

import (
	"encoding/binary"
	"fmt"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
)

const udp = 17

// datagram is a UDP header from port 40000 to 40001, and 16 bytes.
var datagram = append([]byte{0x9c, 0x40, 0x9c, 0x41, 0, 24, 0, 0}, make([]byte, 16)...)

func four(flags byte) []byte {
	header := []byte{0x45, 0, 0, 20, 0, 7, flags, 0, 64, udp, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2}
	header[3] += byte(len(datagram))
	return append(header, datagram...)
}

func six(next byte, extension ...byte) []byte {
	header := make([]byte, 40)
	header[0], header[6], header[7] = 0x60, next, 64
	binary.BigEndian.PutUint16(header[4:], uint16(len(extension)+len(datagram)))
	copy(header[8:], []byte{0x20, 1, 0xd, 0xb8, 15: 1})
	copy(header[24:], []byte{0x20, 1, 0xd, 0xb8, 15: 2})
	return append(append(header, extension...), datagram...)
}

func main() {
	for _, one := range []struct {
		name  string
		kind  gopacket.LayerType
		bytes []byte
	}{
		{"IPv4, whole", layers.LayerTypeIPv4, four(0)},
		{"IPv4, first fragment", layers.LayerTypeIPv4, four(0x20)},
		{"IPv6, whole", layers.LayerTypeIPv6, six(udp)},
		{"IPv6, destination options", layers.LayerTypeIPv6, six(60, udp, 0, 1, 4, 0, 0, 0, 0)},
		{"IPv6, atomic fragment", layers.LayerTypeIPv6, six(44, udp, 0, 0, 0, 0, 0, 0, 7)},
		{"IPv6, first fragment", layers.LayerTypeIPv6, six(44, udp, 0, 0, 1, 0, 0, 0, 7)},
	} {
		packet := gopacket.NewPacket(one.bytes, one.kind, gopacket.Default)
		last := packet.Layers()[len(packet.Layers())-1].LayerType()
		ports := "none"
		if transport := packet.TransportLayer(); transport != nil {
			ports = transport.TransportFlow().String()
		}
		fmt.Printf("%s: ends with %v, ports %s, error %v\n", one.name, last, ports, packet.ErrorLayer())
	}
}
G
{ go mod init probe && go get github.com/gopacket/gopacket@v1.7.7 && go build -o probe .; } >build.log 2>&1 || { cat build.log >&2; exit 1; }
echo "gopacket 1.7.7"
./probe | tee seen
expected='IPv4, whole: ends with Payload, ports 40000->40001, error <nil>
IPv4, first fragment: ends with Fragment, ports none, error <nil>
IPv6, whole: ends with Payload, ports 40000->40001, error <nil>
IPv6, destination options: ends with Payload, ports 40000->40001, error <nil>
IPv6, atomic fragment: ends with Fragment, ports none, error <nil>
IPv6, first fragment: ends with Fragment, ports none, error <nil>'
[[ $(<seen) == "$expected" ]] || { echo "changed: the layers differ from those seen with gopacket 1.7.7" >&2; exit 1; }
