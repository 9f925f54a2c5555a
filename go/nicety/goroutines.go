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

// The participating goroutines. Only the running one uses the fields after the first two.
type goroutines struct {
	*process
	// The runtime's identity of the running goroutine; 0 while the simulation has the turn.
	runs uint64
	// Turns so far.
	turns uint64
	// The number of the running goroutine, and the channel that wakes each goroutine.
	current uint64
	wakes   map[uint64]chan struct{}
	tasks   []*Task
	// Memory that calls use, kept at its address until they return.
	kept map[uint64][]unsafe.Pointer
}

var taking *goroutines

// Main runs a program on the host of this process, with program as its first goroutine. Main returns when all goroutines have ended. If
// program returns an error, or a goroutine that nobody has waited for does, Main prints it and ends the process. The status is 2 for
// ErrInput and 1 for other errors.
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

// identity returns the runtime's number of the calling goroutine.
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

// run records that the calling goroutine runs.
func (g *goroutines) run() {
	atomic.AddUint64(&g.turns, 1)
	atomic.StoreUint64(&g.runs, identity())
}

// here returns the goroutines for a call of the calling goroutine, which must have the turn.
func here() *goroutines {
	if taking == nil {
		panic("nicety: there is no simulation yet; make calls in the function that is given to nicety.Main")
	}
	if own := identity(); own != atomic.LoadUint64(&taking.runs) {
		panic(fmt.Sprintf("nicety: goroutine %d takes no part in virtual time, or has ended that; start it with nicety.Go", own))
	}
	return taking
}

// call makes a call of the running goroutine, and returns its results.
func (g *goroutines) call(op uint32, given ...uint64) (*[words]uint64, error) {
	// Others run while this goroutine waits, and change the shared fields.
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
	// The next call overwrites both.
	*args = *g.words
	return args, errorOf(g.slot.result, g.refusal())
}

// passOn wakes the goroutine of the reply. It returns whether that is the caller.
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

// keep keeps memory at its address until the call returns, and returns the address.
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

// Go starts a goroutine that takes part in virtual time, at this instant. It runs when the caller, and all goroutines that were ready
// before, wait in calls.
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

// Wait waits for the end of the goroutine and returns its function's error. One goroutine at a time may wait for it.
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

// Gather runs functions at once, each as a goroutine, and waits until all have ended. It returns the first error, in the order of the
// functions.
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

// Rank returns the number of this process's host, from 0.
func Rank() int { return int(here().rank) }

// Ranks returns the number of hosts.
func Ranks() int { return int(here().header.ranks) }

// Now returns the virtual time since the start of the run, in whole nanoseconds. A read costs the time of nicety exec --clock-cost.
func Now() time.Duration { return time.Duration(here().clockPs() / 1000) }

// NowPs returns the virtual time in picoseconds, at the cost of Now.
func NowPs() uint64 { return here().clockPs() }

// Compute takes a time on one of the host's CPUs; if all are busy, it waits for one.
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

// Barrier waits until every host has called it, over the job launcher's own network.
func Barrier() error {
	_, err := here().call(opBarrier)
	return err
}

// Interval of checks on the running goroutine.
const watchEvery = 500 * time.Millisecond

// watch ends the program if the running goroutine waits for others that do not run.
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
			fail("rank "+strconv.Itoa(int(g.rank)), errors.New("the running goroutine waits for another one, which runs only after a call "+
				"of nicety; wait by Task.Wait, or give channels of Go room for the value:\n"+where))
		}
	}
}

// stuck returns the stack of the running goroutine if it waits and no other could wake it. For one that ended without its function it
// returns a text.
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
