// Ping sends numbers to a process on the card, which sends them back, and then a block.
//
//	nicety cc card/ping.c -o ping.elf && go build -o ping . && nicety exec --nic nfp-4000 --launcher none -- ./ping ping.elf
package main

import (
	"fmt"
	"os"

	"github.com/nicety-lab/nicety/go/nicety"
)

const (
	target = 7
	pings  = 3
	block  = 25_000
)

func main() {
	nicety.Main(func() error {
		if len(os.Args) != 2 {
			return fmt.Errorf("%w: give the processes' file, as in: %s ping.elf", nicety.ErrInput, os.Args[0])
		}
		return ping(os.Args[1])
	})
}

func ping(elf string) error {
	program, err := nicety.LoadFile(elf)
	if err != nil {
		return err
	}
	process, err := program.Start("ping", nicety.At{Microengine: 0}, target, pings, 4*block)
	if err != nil {
		return err
	}
	channel, err := nicety.Subscribe[uint32](nicety.Open(), target)
	if err != nil {
		return err
	}
	for number := uint32(1); number <= pings; number++ {
		begun := nicety.NowPs()
		if err := channel.Send(number); err != nil {
			return err
		}
		reply, err := channel.Receive()
		if err != nil {
			return err
		}
		fmt.Printf("%d -> %d %d ps\n", number, reply, nicety.NowPs()-begun)
	}
	there, back := make([]uint32, block), make([]uint32, block)
	for i := range there {
		there[i] = uint32(i * i)
	}
	begun := nicety.NowPs()
	if err := channel.SendInd(there); err != nil {
		return err
	}
	if err := channel.ReceiveInd(back); err != nil {
		return err
	}
	taken := nicety.NowPs() - begun
	for i := range there {
		if back[i] != there[i] {
			return fmt.Errorf("word %d is %d, not %d", i, back[i], there[i])
		}
	}
	fmt.Printf("%d bytes there and back %d ps\n", 4*block, taken)
	result, err := process.Finished()
	fmt.Printf("the process returned %d\n", result)
	return err
}
