// The program of a host with channels, a part of it for each word: what test_exec_go.py runs beside the same in Python.
package main

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/nicety-lab/nicety/go/nicety"
)

var parts = map[string]func(*nicety.Program) error{
	"gather": gather, "either": either, "bulk": bulk, "refusals": refusals, "memory": memory, "passing": passing, "orders": orders,
	"sharing": sharing, "stray": stray, "stuck": stuck, "deadlock": deadlock, "joins": joins, "gone": gone, "fails": fails, "input": input,
	"trap": trap, "computes": computes,
}

func main() {
	nicety.Main(func() error {
		part, known := parts[os.Args[2]]
		if !known {
			return fmt.Errorf("%w: no part %q", nicety.ErrInput, os.Args[2])
		}
		program, err := nicety.LoadFile(os.Args[1])
		if err != nil {
			return err
		}
		return part(program)
	})
}

type text [8]byte

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func channelTo[T any](target uint32) *nicety.Channel[T] {
	channel, err := nicety.Subscribe[T](nicety.Open(), target)
	must(err)
	return channel
}

func start(program *nicety.Program, name string, microengine uint32, args ...uint32) *nicety.Process {
	process, err := program.Start(name, nicety.At{Microengine: microengine}, args...)
	must(err)
	return process
}

// gather talks to four processes at once, each in a goroutine.
func gather(program *nicety.Program) error {
	var talks []func() error
	begun := uint64(0)
	for target := uint32(0); target < 4; target++ {
		start(program, "shout", target, target, 2)
		channel := channelTo[text](target)
		talks = append(talks, func() error {
			for _, said := range []string{"a packet", "a letter"} {
				var sent text
				copy(sent[:], said)
				must(channel.Send(sent))
				reply, err := channel.Receive()
				must(err)
				fmt.Println(channel.Target(), string(reply[:]), nicety.NowPs()-begun)
			}
			return nil
		})
	}
	begun = nicety.NowPs()
	return nicety.Gather(talks...)
}

// either receives from whichever of two processes writes first.
func either(program *nicety.Program) error {
	start(program, "late", 1, 1, 60_000)
	start(program, "late", 2, 2, 30_000)
	begun := nicety.NowPs()
	slow, fast := channelTo[uint32](1), channelTo[uint32](2)
	soon, err := slow.Within(10 * time.Microsecond)
	must(err)
	if _, err := soon.Receive(); !errors.Is(err, nicety.ErrTimedOut) {
		return fmt.Errorf("it is %v", err)
	}
	var numbers [2]uint32
	for range numbers {
		which, err := nicety.SelectWithin(500*time.Microsecond, slow.Into(&numbers[0]), fast.Into(&numbers[1]))
		must(err)
		fmt.Println(which, numbers[which], nicety.NowPs()-begun)
	}
	_, err = nicety.SelectWithin(5*time.Microsecond, slow.Into(&numbers[0]))
	fmt.Println(errors.Is(err, nicety.ErrTimedOut), nicety.NowPs()-begun)
	return nil
}

// bulk selects indirect messages.
func bulk(program *nicety.Program) error {
	whole, err := nicety.CardMemory(nicety.EMEM, 0, 0, 8000)
	must(err)
	contents := make([]byte, 8000)
	for i := range contents {
		contents[i] = byte(i % 251)
	}
	must(whole.Write(contents))
	start(program, "bulk", 1, 1, 60_000, 8000)
	start(program, "bulk", 2, 2, 30_000, 8000)
	begun := nicety.NowPs()
	slow, fast := channelTo[byte](1), channelTo[byte](2)
	here := [2][]byte{make([]byte, 8000), make([]byte, 8000)}
	for turn := 0; turn < 2; turn++ {
		which, err := nicety.Select(slow.IntoInd(here[0]), fast.IntoInd(here[1]))
		must(err)
		fmt.Println(which, string(here[which]) == string(contents), nicety.NowPs()-begun)
	}
	return nil
}

// refusals are errors that the program goes on from.
func refusals(program *nicety.Program) error {
	type gap struct {
		small byte
		large uint32
	}
	start(program, "shout", 0, 7, 4)
	expect := func(what string, err, kind error, part string) {
		if !errors.Is(err, kind) || !strings.Contains(err.Error(), part) {
			panic(fmt.Sprintf("%s: %v", what, err))
		}
	}
	_, err := nicety.Load([]byte("no ELF file"))
	expect("elf", err, nicety.ErrInput, "ELF")
	_, err = nicety.LoadFile("none.elf")
	expect("file", err, nicety.ErrInput, "none.elf")
	_, err = program.Start("none", nicety.At{})
	expect("name", err, nicety.ErrInput, "none")
	_, err = program.Start("shout", nicety.At{}, 1, 2, 3, 4, 5, 6, 7, 8, 9)
	expect("arguments", err, nicety.ErrInput, "9 arguments")
	_, err = program.Start("shout", nicety.At{Microengine: 60}, 1, 2)
	expect("microengine", err, nicety.ErrInput, "60")
	_, err = nicety.Subscribe[uint32](nicety.Open(), 99)
	expect("target", err, nicety.ErrFailed, "99")
	_, err = nicety.Subscribe[string](nicety.Open(), 7)
	expect("text", err, nicety.ErrInput, "string")
	_, err = nicety.Subscribe[[4]*int](nicety.Open(), 7)
	expect("pointer", err, nicety.ErrInput, "ptr")
	_, err = nicety.Subscribe[gap](nicety.Open(), 7)
	expect("gap", err, nicety.ErrInput, "gaps")
	channel := channelTo[uint32](7)
	_, err = nicety.Subscribe[uint32](nicety.Open(), 7)
	expect("twice", err, nicety.ErrFailed, "7")
	expect("size", channel.Send(1), nicety.ErrFailed, "target 7")
	wide, err := nicety.As[[57]byte](channel)
	must(err)
	expect("long", wide.Send([57]byte{}), nicety.ErrInput, "57 bytes")
	_, err = wide.Receive()
	expect("long receive", err, nicety.ErrInput, "57")
	expect("empty", channel.SendInd(nil), nicety.ErrInput, "")
	_, err = nicety.Select()
	expect("no cases", err, nicety.ErrInput, "")
	var value uint32
	_, err = nicety.Select(channel.Into(&value), channel.Into(&value))
	expect("cases", err, nicety.ErrInput, "")
	_, err = nicety.Select(make([]nicety.Case, 1025)...)
	expect("many cases", err, nicety.ErrInput, "1025")
	_, err = channel.Within(-1)
	expect("time", err, nicety.ErrInput, "-1ns")
	expect("sleep", nicety.Sleep(-1), nicety.ErrInput, "-1ns")
	_, err = nicety.CardMemory(nicety.MemoryKind(9), 0, 0, 1)
	expect("memory", err, nicety.ErrInput, "CLS")
	_, err = nicety.CardMemory(nicety.CLS, -1, 0, 1)
	expect("island", err, nicety.ErrInput, "")
	must(channel.Close())
	expect("closed", channel.Send(1), nicety.ErrFailed, "")
	return nil
}

// memory is set before a process, and read behind it.
func memory(program *nicety.Program) error {
	word, err := nicety.CardMemory(nicety.EMEM, 0, 4096, 8)
	must(err)
	must(word.Write([]byte{21, 0, 0, 0, 5}))
	result, err := start(program, "twice", 0, word.Address).Finished()
	must(err)
	contents, err := word.Read()
	fmt.Println(result, contents, err)
	return word.Write(make([]byte, 9))
}

// passing has goroutines pass values by a channel of Go with room, and end in a known order.
func passing(*nicety.Program) error {
	values := make(chan int, 3)
	var order []int
	for i := 0; i < 3; i++ {
		i := i
		nicety.Go(func() error {
			must(nicety.Sleep(time.Duration(3-i) * time.Microsecond))
			values <- i
			order = append(order, i)
			return nil
		})
	}
	must(nicety.Sleep(10 * time.Microsecond))
	fmt.Println(<-values, <-values, <-values, order, nicety.Now())
	return nil
}

// orders is the order in which goroutines run that are ready at the same instants.
func orders(*nicety.Program) error {
	var order []int
	var talks []func() error
	for i := 0; i < 16; i++ {
		i := i
		talks = append(talks, func() error {
			for round := 0; round < 4; round++ {
				order = append(order, i)
				must(nicety.Sleep(time.Duration(1+i%3) * time.Microsecond))
			}
			return nil
		})
	}
	err := nicety.Gather(talks...)
	fmt.Println(order, nicety.Now())
	return err
}

// sharing has goroutines write a variable without a lock.
func sharing(*nicety.Program) error {
	total := 0
	var talks []func() error
	for i := 0; i < 50; i++ {
		talks = append(talks, func() error {
			for round := 0; round < 20; round++ {
				before := total
				for spin := 0; spin < 100; spin++ {
					before++
				}
				total = before - 99
				must(nicety.Sleep(time.Nanosecond))
			}
			return nil
		})
	}
	err := nicety.Gather(talks...)
	fmt.Println(total)
	return err
}

// stray makes a call in a goroutine that takes no part.
func stray(*nicety.Program) error {
	done := make(chan struct{})
	go func() {
		nicety.Now()
		close(done)
	}()
	<-done
	return nil
}

// stuck waits for a goroutine that does not run.
func stuck(*nicety.Program) error {
	var both sync.WaitGroup
	both.Add(1)
	nicety.Go(func() error {
		both.Done()
		return nil
	})
	both.Wait()
	return nil
}

// deadlock waits for a process that never writes.
func deadlock(program *nicety.Program) error {
	start(program, "shout", 0, 7, 1)
	channel := channelTo[text](7)
	task := nicety.Go(func() error {
		_, err := channel.Receive()
		return err
	})
	return task.Wait()
}

// joins waits for goroutines that have ended, that others wait for, and that fail.
func joins(*nicety.Program) error {
	why := errors.New("as it should")
	failing := nicety.Go(func() error { return why })
	slow := nicety.Go(func() error { return nicety.Sleep(time.Microsecond) })
	other := nicety.Go(slow.Wait)
	must(nicety.Sleep(time.Nanosecond))
	if err := slow.Wait(); !errors.Is(err, nicety.ErrFailed) {
		return fmt.Errorf("two waited: %v", err)
	}
	must(other.Wait())
	if first, second := failing.Wait(), failing.Wait(); first != why || second != why {
		return fmt.Errorf("it failed with %v, %v", first, second)
	}
	if err := nicety.Gather(func() error { return nil }, func() error { return why }); err != why {
		return fmt.Errorf("gathered: %v", err)
	}
	return nil
}

// gone ends in the middle.
func gone(*nicety.Program) error {
	os.Exit(3)
	return nil
}

// fails has a goroutine fail that nobody waits for.
func fails(*nicety.Program) error {
	nicety.Go(func() error { return errors.New("nobody waited for this") })
	return nil
}

func input(*nicety.Program) error { return fmt.Errorf("%w: this one", nicety.ErrInput) }

func trap(program *nicety.Program) error {
	_, err := start(program, "twice", 0, 0).Finished()
	if !errors.Is(err, nicety.ErrTrap) {
		return fmt.Errorf("no trap: %v", err)
	}
	fmt.Println(err)
	return nil
}

// computes has goroutines compute side by side, and ranks meet.
func computes(*nicety.Program) error {
	compute := func() error { return nicety.Compute(time.Duration(10+nicety.Rank()) * time.Microsecond) }
	must(nicety.Gather(compute, compute))
	fmt.Println(nicety.Rank(), "of", nicety.Ranks(), "computed until", nicety.NowPs())
	must(nicety.Barrier())
	fmt.Println(nicety.Rank(), "goes on at", nicety.NowPs())
	return nil
}
