package nicety

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
	"unsafe"
)

// The goroutines that take part. All but the first two fields are used by the one alone that runs.
type goroutines struct {
	*process
	// The identity of the goroutine that runs, as the runtime has it; 0 while the simulation has the turn.
	runs uint64
	// Turns so far.
	turns uint64
	// The number of the one that runs, and what wakes each of them.
	current uint64
	wakes   map[uint64]chan struct{}
	tasks   []*Task
	// Memory that calls have named, so that it stays where it is until they return.
	kept map[uint64][]unsafe.Pointer
}

var taking *goroutines

// Main runs a program on the host of this process: program is its first goroutine. Main returns when all goroutines have ended. If
// program returns an error, or a goroutine that nobody has waited for does, Main prints it and ends the process, with status 2 for
// ErrInput and 1 for others.
func Main(program func() error) {
	if taking != nil {
		panic("nicety: Main is called once")
	}
	own, err := attach()
	if err != nil {
		fail(os.Args[0], err)
	}
	taking = &goroutines{
		process: own,
		wakes:   map[uint64]chan struct{}{0: make(chan struct{}, 1)},
		kept:    map[uint64][]unsafe.Pointer{},
	}
	taking.run()
	go taking.watch()
	if _, err := taking.call(opOpen); err != nil {
		fail("rank "+strconv.Itoa(int(own.rank)), err)
	}
	err = program()
	_, ended := taking.call(opEnd)
	atomic.StoreUint64(&taking.runs, 0)
	for _, task := range taking.tasks {
		if err == nil && !task.waited {
			err = task.err
		}
	}
	if err == nil {
		err = ended
	}
	if err != nil {
		fail("rank "+strconv.Itoa(int(own.rank)), err)
	}
}

func fail(who string, err error) {
	fmt.Fprintf(os.Stderr, "nicety: %s: %v\n", who, err)
	if errors.Is(err, ErrInput) {
		os.Exit(2)
	}
	os.Exit(1)
}

// identity is what the runtime numbers the calling goroutine by.
func identity() uint64 {
	var text [64]byte
	return identityOf(text[:runtime.Stack(text[:], false)])
}

// identityOf reads the head of a stack, as in "goroutine 18 [running]:".
func identityOf(stack []byte) uint64 {
	digits := bytes.TrimPrefix(stack, []byte("goroutine "))
	number, _, _ := bytes.Cut(digits, []byte(" "))
	id, _ := strconv.ParseUint(string(number), 10, 64)
	return id
}

// run notes that the calling goroutine runs.
func (g *goroutines) run() {
	atomic.AddUint64(&g.turns, 1)
	atomic.StoreUint64(&g.runs, identity())
}

// here is what the calling goroutine makes its calls by.
func here() *goroutines {
	if taking == nil {
		panic("nicety: there is no simulation yet; make calls in the function that is given to nicety.Main")
	}
	if own := identity(); own != atomic.LoadUint64(&taking.runs) {
		panic(fmt.Sprintf("nicety: goroutine %d takes no part in virtual time, or has ended that; start it with nicety.Go", own))
	}
	return taking
}

// call makes a call of the goroutine that runs: its results.
func (g *goroutines) call(op uint32, given ...uint64) (*[words]uint64, error) {
	// Others run while this one waits, and change what is shared.
	own, wake := g.current, g.wakes[g.current]
	args := new([words]uint64)
	copy(args[:], given)
	atomic.StoreUint64(&g.runs, 0)
	g.ask(op, args)
	if !g.passOn(own) {
		<-wake
		g.current = own
	}
	g.run()
	delete(g.kept, own)
	// Both are overwritten by the next call.
	*args = *g.words
	return args, errorOf(g.slot.result, g.refusal())
}

// passOn lets the goroutine run that the reply is to: whether that is the caller.
func (g *goroutines) passOn(own uint64) bool {
	next := g.words[words-1]
	if next == own {
		return true
	}
	wake, known := g.wakes[next]
	if !known {
		fail("the simulation", fmt.Errorf("it replies to goroutine %d, which there is not", next))
	}
	wake <- struct{}{}
	return false
}

// keep has memory stay where it is until the call returns: its address.
func (g *goroutines) keep(memory unsafe.Pointer) uint64 {
	g.kept[g.current] = append(g.kept[g.current], memory)
	return uint64(uintptr(memory))
}

// Task is a goroutine that takes part in virtual time.
type Task struct {
	number uint64
	err    error
	ended  bool
	waited bool
}

// Go starts a goroutine that takes part in virtual time, at this instant. It runs when the caller, and those that were ready before,
// wait in calls.
func Go(function func() error) *Task {
	g := here()
	results, err := g.call(opGo)
	if err != nil {
		fail("a new goroutine", err)
	}
	task := &Task{number: results[0]}
	wake := make(chan struct{}, 1)
	g.wakes[task.number] = wake
	g.tasks = append(g.tasks, task)
	go func() {
		<-wake
		g.current = task.number
		g.run()
		task.err = function()
		task.ended = true
		delete(g.wakes, task.number)
		atomic.StoreUint64(&g.runs, 0)
		g.ask(opEnd, new([words]uint64))
		g.passOn(task.number)
	}()
	return task
}

// Wait waits for the end of the goroutine: the error that its function returned. One goroutine waits for it at a time.
func (t *Task) Wait() error {
	g := here()
	t.waited = true
	if !t.ended {
		if _, err := g.call(opJoin, t.number); err != nil {
			return err
		}
	}
	return t.err
}

// Gather runs functions at once, each as a goroutine, and waits until all have ended: the error of the first in order that failed.
func Gather(functions ...func() error) error {
	tasks := make([]*Task, len(functions))
	for i, function := range functions {
		tasks[i] = Go(function)
	}
	var first error
	for _, task := range tasks {
		if err := task.Wait(); err != nil && first == nil {
			first = err
		}
	}
	return first
}

// Rank is the number of this process's host, from 0 on.
func Rank() int { return int(here().rank) }

// Ranks is how many hosts there are.
func Ranks() int { return int(here().header.ranks) }

// Now is the virtual time since the start of the run, in whole nanoseconds. Reading it costs what nicety exec --clock-cost says.
func Now() time.Duration { return time.Duration(here().clockPs() / 1000) }

// NowPs is the virtual time in picoseconds, at the cost of Now.
func NowPs() uint64 { return here().clockPs() }

// Compute takes a time on one of the host's CPUs; with all of them taken it waits for one.
func Compute(d time.Duration) error { return pass(opCompute, d) }

// Sleep lets a time pass.
func Sleep(d time.Duration) error { return pass(opSleep, d) }

func pass(op uint32, d time.Duration) error {
	ps, err := picoseconds(d)
	if err == nil {
		_, err = here().call(op, ps)
	}
	return err
}

func picoseconds(d time.Duration) (uint64, error) {
	const most = time.Duration(^uint64(0) >> 1 / 1000)
	if d < 0 || d > most {
		return 0, inputError(fmt.Sprintf("a time of %v: it is from 0 to %v", d, most))
	}
	return uint64(d) * 1000, nil
}

// Barrier waits until every host has come here, over the job launcher's own network.
func Barrier() error {
	_, err := here().call(opBarrier)
	return err
}

// How often the goroutine that runs is looked at.
const watchEvery = 500 * time.Millisecond

// watch ends the program when the goroutine that runs waits for others that do not run.
func (g *goroutines) watch() {
	own, before := identity(), uint64(0)
	for range time.Tick(watchEvery) {
		turns, runs := atomic.LoadUint64(&g.turns), atomic.LoadUint64(&g.runs)
		if turns != before || runs == 0 {
			before = turns
			continue
		}
		stacks := make([]byte, 1<<20)
		where := stuck(stacks[:runtime.Stack(stacks, true)], runs, own)
		if where != "" && atomic.LoadUint64(&g.turns) == turns && atomic.LoadUint64(&g.runs) == runs {
			fail("rank "+strconv.Itoa(int(g.rank)), errors.New("a goroutine whose turn it is waits for another one, whose turn does not "+
				"come before it makes a call of nicety; wait by Task.Wait, or give channels of Go room for the value:\n"+where))
		}
	}
}

// stuck is the stack of the goroutine that runs, if it waits and no other one could end that, or has ended without its function.
func stuck(stacks []byte, runs, watcher uint64) string {
	where := fmt.Sprintf("goroutine %d, which has ended by runtime.Goexit", runs)
	for _, stack := range bytes.Split(bytes.TrimSpace(stacks), []byte("\n\n")) {
		_, state, _ := strings.Cut(string(stack), "[")
		state, _, _ = strings.Cut(state, "]")
		state, _, _ = strings.Cut(state, ",")
		waits := strings.HasPrefix(state, "chan ") || strings.HasPrefix(state, "select") || strings.HasPrefix(state, "sem") ||
			strings.HasPrefix(state, "sync.")
		switch id := identityOf(stack); {
		case id == watcher:
		case !waits:
			return ""
		case id == runs:
			where = string(stack)
		}
	}
	return where
}
