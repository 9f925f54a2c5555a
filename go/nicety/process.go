package nicety

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"
)

// This process, as one rank of the simulation.
type process struct {
	header *header
	bell   *uint32
	slot   *slot
	words  *[words]uint64
	reason *[reasonBytes]byte
	rank   uint32
	// The CPU time of the process when the last reply came, in ns.
	cpuNs uint64
}

const (
	futexWait      = 0
	futexWake      = 1
	prSetPtracer   = 0x59616d61
	clockOfProcess = 2
)

// findRank returns the rank from the launcher of this process: none, MPICH, Open MPI, PMIx.
func findRank() (uint32, bool) {
	for _, name := range []string{"NICETY_RANK", "PMI_RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK"} {
		if rank, err := strconv.ParseUint(os.Getenv(name), 10, 32); err == nil {
			return uint32(rank), true
		}
	}
	return 0, false
}

// attach takes the page of this rank.
func attach() (*process, error) {
	path := os.Getenv("NICETY_EXEC")
	rank, hasRank := findRank()
	if path == "" || !hasRank {
		return nil, inputError("there is no simulation (NICETY_EXEC is not set): start this program with " +
			"nicety exec --nic nfp-4000 --launcher none -- PROGRAM")
	}
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, fmt.Errorf("the simulation of this run cannot be opened: %w", err)
	}
	defer file.Close()
	status, err := file.Stat()
	if err != nil {
		return nil, fmt.Errorf("the simulation of this run cannot be opened: %w", err)
	}
	if status.Size() < page {
		return nil, fmt.Errorf("%s is not the simulation of a run", path)
	}
	memory, err := syscall.Mmap(int(file.Fd()), 0, int(status.Size()), syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("the simulation of this run cannot be mapped: %w", err)
	}
	shared := (*header)(unsafe.Pointer(&memory[0]))
	if shared.magic != magic || shared.version != version {
		return nil, fmt.Errorf("%s is not the simulation of a run of this version (%d): this module and nicety have to be of one version",
			path, version)
	}
	if rank >= shared.ranks || len(memory) < slotsAt+slotBytes*int(shared.ranks) {
		return nil, inputError(fmt.Sprintf("rank %d has no host: the run has %d processes; give nicety exec -n the number that is started",
			rank, shared.ranks))
	}
	own := slotsAt + slotBytes*int(rank)
	end := own + page - 8*words
	p := &process{
		header: shared,
		bell:   (*uint32)(unsafe.Pointer(&memory[bellAt])),
		slot:   (*slot)(unsafe.Pointer(&memory[own])),
		words:  (*[words]uint64)(unsafe.Pointer(&memory[end])),
		reason: (*[reasonBytes]byte)(unsafe.Pointer(&memory[end-reasonBytes])),
		rank:   rank,
	}
	if !atomic.CompareAndSwapUint32(&p.slot.pid, 0, uint32(os.Getpid())) {
		return nil, inputError(fmt.Sprintf("rank %d is process %d already; one process of a rank takes part",
			rank, atomic.LoadUint32(&p.slot.pid)))
	}
	// The simulator knows no end of this process yet, even if another one has ended before it.
	atomic.StoreUint32(&p.slot.end, 0)
	// The simulator reads and writes the memory of messages.
	syscall.RawSyscall(syscall.SYS_PRCTL, prSetPtracer, uintptr(shared.simulator), 0)
	p.cpuNs = p.cpuTimeNs()
	return p, nil
}

func (p *process) cpuTimeNs() uint64 {
	if p.header.measured == 0 {
		return 0
	}
	var now syscall.Timespec
	syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, clockOfProcess, uintptr(unsafe.Pointer(&now)), 0)
	return uint64(now.Nano())
}

// measure adds the CPU time of the process since the last measurement.
func (p *process) measure() {
	if now := p.cpuTimeNs(); now > p.cpuNs {
		ps := endOfTime
		if spent := float64(now-p.cpuNs) * 1000 * p.header.scale; spent < 1<<64 {
			ps = uint64(spent)
		}
		p.slot.spentPs = later(p.slot.spentPs, ps)
		p.cpuNs = now
	}
}

// ask makes a call and waits for a reply, which may be another goroutine's.
func (p *process) ask(op uint32, args *[words]uint64) {
	p.measure()
	p.slot.call = callChannels
	p.slot.flags = op
	*p.words = *args
	atomic.StoreUint32(&p.slot.turn, turnCall)
	atomic.AddUint32(p.bell, 1)
	if atomic.LoadUint32(&p.header.asleep) != 0 {
		syscall.RawSyscall6(syscall.SYS_FUTEX, uintptr(unsafe.Pointer(p.bell)), futexWake, 1<<30, 0, 0, 0)
	}
	p.waitForTurn()
	p.cpuNs = p.cpuTimeNs()
}

func (p *process) waitForTurn() {
	turn := &p.slot.turn
	for looks := uint32(0); looks < p.header.spins; looks++ {
		if atomic.LoadUint32(turn) == turnRun {
			return
		}
	}
	// The simulator wakes only who sleeps.
	atomic.CompareAndSwapUint32(turn, turnCall, turnSleep)
	limit := syscall.NsecToTimespec(int64(time.Second))
	for atomic.LoadUint32(turn) != turnRun {
		syscall.Syscall6(syscall.SYS_FUTEX, uintptr(unsafe.Pointer(turn)), futexWait, turnSleep, uintptr(unsafe.Pointer(&limit)), 0, 0)
		// Without a simulator there is no reply.
		if errors.Is(syscall.Kill(int(p.header.simulator), 0), syscall.ESRCH) {
			os.Exit(1)
		}
	}
}

// refusal returns the reason of the last reply.
func (p *process) refusal() string {
	text := p.reason[:]
	if end := bytes.IndexByte(text, 0); end >= 0 {
		text = text[:end]
	}
	return string(text)
}

// clockPs reads the clock, at its cost.
func (p *process) clockPs() uint64 {
	p.measure()
	p.slot.spentPs = later(p.slot.spentPs, p.header.clockCostPs)
	p.slot.clockReads++
	return later(p.slot.nowPs, p.slot.spentPs)
}

// Times end at 2^64 ps; the simulator reports that.
const endOfTime = ^uint64(0)

func later(ps, by uint64) uint64 {
	if ps >= endOfTime-by {
		return endOfTime
	}
	return ps + by
}
