package nicety

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
	"unsafe"
)

// TestLayouts compares layouts and numbers with those of a C compiler for protocol.h, portals.h and channels.h.
func TestLayouts(t *testing.T) {
	compiler, err := exec.LookPath("cc")
	if err != nil {
		t.Skip("there is no C compiler (cc)")
	}
	client, err := filepath.Abs("../../shim")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(client); err != nil {
		t.Skip("the module is not in nicety's tree: ", err)
	}
	var own strings.Builder
	source := "#include \"channels.h\"\n#include \"portals.h\"\n#include <stddef.h>\n#include <stdio.h>\nint main(void) {\n"
	number := func(name string, value uint64) {
		fmt.Fprintf(&own, "%s %d\n", name, value)
		source += fmt.Sprintf("printf(\"%s %%llu\\n\", (unsigned long long)(%s));\n", name, name)
	}
	layout := func(value any, structure string, fields ...string) {
		kind := reflect.TypeOf(value)
		number("sizeof(struct "+structure+")", uint64(kind.Size()))
		if kind.NumField() != len(fields) {
			t.Fatalf("%v has %d fields, not %d", kind, kind.NumField(), len(fields))
		}
		for i, field := range fields {
			number("offsetof(struct "+structure+", "+field+")", uint64(kind.Field(i).Offset))
		}
	}
	layout(header{}, "nicety_header", "magic", "version", "ranks", "ended", "spins", "simulator", "measured", "clock_cost_ps", "epoch_ns",
		"scale", "look_cost_ps", "tag_bits", "card", "atomic_bytes", "fetch_bytes", "launcher", "begun", "asleep")
	layout(completion{}, "nicety_completion", "context", "flags", "error", "bytes", "address", "data", "tag", "source", "cut")
	layout(slot{}, "nicety_slot", "turn", "pid", "now_ps", "spent_ps", "clock_reads", "call", "flags", "args", "result", "completions",
		"ended", "completion", "posted", "taken", "quiet_ps",
		"looks_left", "looks", "counts", "end", "end_code", "fork", "loaded", "watched", "shared",
		"service", "names", "library", "guard", "library_path", "looks_of_waits", "sending", "receiving")
	layout(counts{}, "nicety_counts", "done", "failed")
	number("NICETY_MAGIC", magic)
	number("NICETY_VERSION", version)
	number("NICETY_PAGE", page)
	number("NICETY_BELL", bellAt)
	number("NICETY_SLOTS", slotsAt)
	number("NICETY_SLOT_BYTES", slotBytes)
	number("NICETY_ANY", anyValue)
	number("NICETY_MOST_COMPLETIONS", completions)
	number("TURN_RUN", turnRun)
	number("TURN_CALL", turnCall)
	number("TURN_SLEEP", turnSleep)
	number("NICETY_WORDS", words)
	number("NICETY_REASON", reasonBytes)
	number("CALL_CHANNELS", callChannels)
	number("CHANNEL_DIRECT", directBytes)
	number("CHANNEL_ARGUMENTS", arguments)
	number("CHANNEL_ALTERNATIVES", alternatives)
	for i, name := range []string{"OPEN", "LOAD", "START", "FINISHED", "MEMORY", "READ", "WRITE", "SUBSCRIBE", "CLOSE", "SEND", "RECEIVE",
		"SEND_IND", "RECEIVE_IND", "SELECT", "GO", "JOIN", "END", "COMPUTE", "SLEEP", "BARRIER"} {
		number("CHANNELS_"+name, uint64(opOpen)+uint64(i))
	}
	if opBarrier != 20 {
		t.Errorf("the last call is %d", opBarrier)
	}
	for i, kind := range []error{nil, ErrInput, ErrFailed, ErrTrap, ErrTimedOut} {
		if err := errorOf(int64(i), "why"); kind != nil && err.(*Error).kind != kind {
			t.Errorf("code %d is %v", i, err)
		}
		number([]string{"CODE_OK", "CODE_INPUT", "CODE_FAILED", "CODE_TRAP", "CODE_TIMED_OUT"}[i], uint64(i))
	}
	program := filepath.Join(t.TempDir(), "layouts")
	if err := os.WriteFile(program+".c", []byte(source+"}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(compiler, "-std=gnu11", "-I", client, "-o", program, program+".c").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	out, err := exec.Command(program).Output()
	if err != nil {
		t.Fatal(err)
	}
	for i, line := range strings.Split(string(out), "\n") {
		if want := strings.Split(own.String(), "\n")[i]; line != want {
			t.Errorf("the header says %s, and the module %s", line, want)
		}
	}
}

func TestMessagesAreTheirBytes(t *testing.T) {
	type point struct {
		X, Y int32
		Name [4]byte
	}
	sent := point{X: -2, Y: 1 << 20, Name: [4]byte{'a', 'b', 'c', 'd'}}
	contents := bytesOf(&sent)
	if len(contents) != 12 || contents[0] != 0xfe || string(contents[8:]) != "abcd" {
		t.Fatalf("%v", contents)
	}
	results := new([words]uint64)
	for i, each := range contents {
		results[1+i/8] |= uint64(each) << (8 * (i % 8))
	}
	var received point
	take(bytesOf(&received), results)
	if received != sent {
		t.Errorf("%v is not %v", received, sent)
	}
}

func TestTypesOfMessages(t *testing.T) {
	type flat struct {
		A [3]uint16
		B bool
		C uint8
		D float64
	}
	type gap struct {
		A uint8
		B uint64
	}
	for _, err := range []error{check[uint8](), check[float32](), check[[7]int64](), check[flat](), check[[2]flat]()} {
		if err != nil {
			t.Error(err)
		}
	}
	for i, err := range []error{check[int](), check[uintptr](), check[string](), check[[]byte](), check[*int32](), check[gap](),
		check[[2]gap](), check[map[int8]int8](), check[any](), check[struct{ F func() }](), check[unsafe.Pointer]()} {
		if err == nil {
			t.Errorf("type %d has a channel", i)
		}
	}
}

func TestTimes(t *testing.T) {
	if ps, err := picoseconds(1500); ps != 1_500_000 || err != nil {
		t.Error(ps, err)
	}
	if _, err := picoseconds(-1); err == nil {
		t.Error("a time below zero")
	}
}

func TestTimesEnd(t *testing.T) {
	if got := later(endOfTime-5, 5); got != endOfTime {
		t.Error(got)
	}
	if got := later(endOfTime-5, 6); got != endOfTime {
		t.Error(got)
	}
	if got := later(2, 3); got != 5 {
		t.Error(got)
	}
	spent := slot{}
	p := process{header: &header{measured: 1, scale: 1e300}, slot: &spent}
	for deadline := time.Now().Add(time.Second); spent.spentPs == 0 && time.Now().Before(deadline); {
		p.measure()
	}
	if spent.spentPs != endOfTime {
		t.Error(spent.spentPs)
	}
}

const stacks = `goroutine 1 [sync.WaitGroup.Wait, 2 minutes]:
main.main()

goroutine 18 [chan receive]:
nicety.Go()

goroutine 19 [running]:
nicety.watch()
`

func TestWhoIsStuck(t *testing.T) {
	if identityOf([]byte(stacks)) != 1 || identity() == 0 {
		t.Error("an identity is none")
	}
	for _, each := range []struct {
		stacks        string
		runs, watcher uint64
		want          string
	}{
		{stacks, 1, 19, "goroutine 1 [sync.WaitGroup.Wait, 2 minutes]:\nmain.main()"},
		{stacks, 18, 19, "goroutine 18 [chan receive]:\nnicety.Go()"},
		// Goroutine 19 could end the wait.
		{stacks, 1, 20, ""},
		{strings.Replace(stacks, "chan receive", "sleep", 1), 1, 19, ""},
		{strings.Replace(stacks, "chan receive", "IO wait", 1), 1, 19, ""},
		{stacks, 7, 19, "goroutine 7, which has ended by runtime.Goexit"},
		{strings.Replace(stacks, "sync.WaitGroup.Wait", "running", 1), 1, 19, ""},
	} {
		if got := stuck([]byte(each.stacks), each.runs, each.watcher); got != each.want {
			t.Errorf("%d is stuck in %q, not %q", each.runs, got, each.want)
		}
	}
}
