// Pcsa counts the distinct source addresses of a capture on the card. The method is probabilistic counting with stochastic averaging
// (Flajolet and Martin, 1985). handlers/nfp/pcsa.c keeps 2048 sketches on each island, and this program sends it the addresses. The
// capture is pcap of Ethernet; packets without IP version 4 are skipped.
//
//	nicety cc handlers/nfp/pcsa.c -o pcsa.elf && go build -o pcsa . &&
//	nicety exec --nic nfp-4000 --launcher none -- ./pcsa pcsa.elf capture.pcap
package main

import (
	"encoding/binary"
	"fmt"
	"math"
	"os"

	"github.com/nicety-lab/nicety/go/nicety"
)

// As in pcsa.c: sketches, the most addresses of a block, and bytes per read.
const (
	sketches = 2048
	block    = 24_576
)

// The card: microengines, microengines per island, and contexts per microengine.
const (
	microengines = 60
	island       = 12
	islands      = microengines / island
	contexts     = 8
)

// The first target of the islands' feeders.
const firstTarget = 1

func main() {
	nicety.Main(func() error {
		if len(os.Args) != 3 {
			return fmt.Errorf("%w: give the processes' file and a capture, as in: %s pcsa.elf capture.pcap", nicety.ErrInput, os.Args[0])
		}
		addresses, err := sources(os.Args[2])
		if err != nil {
			return err
		}
		program, err := nicety.LoadFile(os.Args[1])
		if err != nil {
			return err
		}
		if err := start(program); err != nil {
			return err
		}
		return count(addresses)
	})
}

// sources reads the source addresses of a capture.
func sources(path string) ([]uint32, error) {
	file, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("%w: %v", nicety.ErrInput, err)
	}
	if len(file) < 24 || binary.LittleEndian.Uint32(file) != 0xa1b2c3d4 || binary.LittleEndian.Uint32(file[20:]) != 1 {
		return nil, fmt.Errorf("%w: %s is no capture of Ethernet in pcap's format, with numbers in little endian", nicety.ErrInput, path)
	}
	var found []uint32
	for rest := file[24:]; len(rest) > 0; {
		if len(rest) < 16 || uint64(len(rest)) < 16+uint64(binary.LittleEndian.Uint32(rest[8:])) {
			return nil, fmt.Errorf("%w: %s ends within its packet %d", nicety.ErrInput, path, len(found)+1)
		}
		packet := rest[16 : 16+binary.LittleEndian.Uint32(rest[8:])]
		rest = rest[16+len(packet):]
		if len(packet) >= 34 && binary.BigEndian.Uint16(packet[12:]) == 0x0800 && packet[14]>>4 == 4 {
			found = append(found, binary.LittleEndian.Uint32(packet[26:]))
		}
	}
	return found, nil
}

// start starts a feeder on each island, and workers on all other contexts.
func start(program *nicety.Program) error {
	// Behind the merged sketches is the number of islands that have merged theirs.
	merged, err := nicety.CardMemory(nicety.IMEM, 0, 0, 4*sketches)
	if err != nil {
		return err
	}
	arrived := merged.Address + 4*sketches
	for engine := uint32(0); engine < microengines; engine++ {
		first := engine / island * island
		for context := uint32(0); context < contexts; context++ {
			at := nicety.At{Microengine: engine, Context: context}
			number := (engine-first)*contexts + context
			if number == 0 {
				_, err = program.Start("pcsa_feeder", at, firstTarget+engine/island, island, contexts, islands, merged.Address, arrived)
			} else {
				_, err = program.Start("pcsa_worker", at, first, number-1, island*contexts-1, merged.Address)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// count sends the addresses to all islands, a block at a time to each island that is ready, and prints the estimate.
func count(addresses []uint32) error {
	device := nicety.Open()
	channels := make([]*nicety.Channel[uint32], islands)
	for i := range channels {
		channel, err := nicety.Subscribe[uint32](device, firstTarget+uint32(i))
		if err != nil {
			return err
		}
		channels[i] = channel
	}
	begun, left := nicety.NowPs(), addresses
	feeders := make([]func() error, islands)
	for i := range feeders {
		channel := channels[i]
		feeders[i] = func() error {
			for {
				// No other goroutine runs before the call, so each block is sent once.
				next := left
				if len(next) > block {
					next = next[:block]
				}
				left = left[len(next):]
				if err := channel.Send(uint32(len(next))); err != nil || len(next) == 0 {
					return err
				}
				if err := channel.SendInd(next); err != nil {
					return err
				}
			}
		}
	}
	if err := nicety.Gather(feeders...); err != nil {
		return err
	}
	sum, err := channels[0].Receive()
	if err != nil {
		return err
	}
	taken := nicety.NowPs() - begun
	estimate := sketches / 0.77351 * math.Exp2(float64(sum)/sketches)
	fmt.Printf("addresses  %d\nestimate   %.1f\ncard time  %d ps\n", len(addresses), estimate, taken)
	return nil
}
