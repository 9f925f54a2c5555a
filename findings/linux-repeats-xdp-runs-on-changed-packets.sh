#!/usr/bin/env bash
# Guess: Linux gives each repetition of BPF_PROG_TEST_RUN the packet of the request, so that "repeat" measures a program on that packet.
# From:  bpftool-prog(8) on "repeat": the number of consecutive runs, whose average duration is printed. cilium/ebpf's page on
#        Program.Benchmark: it runs the program with the given input a number of times, and returns the time of one.
# True:  Linux 6.18 gives each run the packet that the last one has left, with its new place and length. A router that takes one from
#        the time to live of 64 drops the packet from the 64th run on; a program that pushes 20 bytes in front has no room after the 10th.
#        Most of 1000 runs then measure another way through the program. Only the last verdict, which is a drop, tells it.
set -euo pipefail
command -v go >/dev/null || { echo "needs Go" >&2; exit 2; }
work=$(mktemp -d)
trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT
cd "$work"

export GOPATH=$work/gopath GOCACHE=$work/gocache GOFLAGS=-mod=mod CGO_ENABLED=0
cat >main.go <<'G'
package main

import (
	"fmt"
	"os"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
)

var verdicts = map[uint32]string{1: "drop", 3: "send"}

// load loads an XDP program that ends with XDP_TX, or at "drop" with XDP_DROP.
func load(body ...asm.Instruction) *ebpf.Program {
	program, err := ebpf.NewProgram(&ebpf.ProgramSpec{Type: ebpf.XDP, License: "GPL", Instructions: append(body,
		asm.Mov.Imm(asm.R0, 3),
		asm.Return(),
		asm.Mov.Imm(asm.R0, 1).WithSymbol("drop"),
		asm.Return(),
	)})
	if err != nil {
		fmt.Fprintln(os.Stderr, "needs the right to load eBPF programs:", err)
		os.Exit(2)
	}
	return program
}

func main() {
	const timeToLive = 14 + 8
	router := load(
		asm.LoadMem(asm.R2, asm.R1, 4, asm.Word),
		asm.LoadMem(asm.R1, asm.R1, 0, asm.Word),
		asm.Mov.Reg(asm.R3, asm.R1),
		asm.Add.Imm(asm.R3, 34),
		asm.JGT.Reg(asm.R3, asm.R2, "drop"),
		asm.LoadMem(asm.R4, asm.R1, timeToLive, asm.Byte),
		asm.JLE.Imm(asm.R4, 1, "drop"),
		asm.Sub.Imm(asm.R4, 1),
		asm.StoreMem(asm.R1, timeToLive, asm.R4, asm.Byte),
	)
	pusher := load(
		asm.Mov.Imm(asm.R2, -20),
		asm.FnXdpAdjustHead.Call(),
		asm.JNE.Imm(asm.R0, 0, "drop"),
	)
	for _, repeat := range []uint32{1, 2, 10, 11, 63, 64, 1000} {
		for _, one := range []struct {
			name    string
			program *ebpf.Program
		}{{"router", router}, {"pusher", pusher}} {
			packet := make([]byte, 64)
			packet[timeToLive] = 64
			options := ebpf.RunOptions{Data: packet, DataOut: make([]byte, 1000), Repeat: repeat}
			verdict, err := one.program.Run(&options)
			if err != nil {
				fmt.Fprintln(os.Stderr, "changed:", err)
				os.Exit(1)
			}
			fmt.Printf("%s, %d runs: %s, %d bytes", one.name, repeat, verdicts[verdict], len(options.DataOut))
			if one.name == "router" {
				fmt.Printf(", time to live %d", options.DataOut[timeToLive])
			}
			fmt.Println()
		}
	}
}
G
{ go mod init probe && go get github.com/cilium/ebpf@v0.22.0 && go build -o probe .; } >build.log 2>&1 || { cat build.log >&2; exit 1; }
echo "Linux $(uname -r | grep -o '^[0-9]*\.[0-9]*'), cilium/ebpf 0.22.0"
./probe >seen || exit "$?"
cat seen
expected='router, 1 runs: send, 64 bytes, time to live 63
pusher, 1 runs: send, 84 bytes
router, 2 runs: send, 64 bytes, time to live 62
pusher, 2 runs: send, 104 bytes
router, 10 runs: send, 64 bytes, time to live 54
pusher, 10 runs: send, 264 bytes
router, 11 runs: send, 64 bytes, time to live 53
pusher, 11 runs: drop, 264 bytes
router, 63 runs: send, 64 bytes, time to live 1
pusher, 63 runs: drop, 264 bytes
router, 64 runs: drop, 64 bytes, time to live 1
pusher, 64 runs: drop, 264 bytes
router, 1000 runs: drop, 64 bytes, time to live 1
pusher, 1000 runs: drop, 264 bytes'
[[ $(<seen) == "$expected" ]] || { echo "changed: the results differ from those seen with Linux 6.18" >&2; exit 1; }
