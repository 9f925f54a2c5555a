package nicety

import (
	"fmt"
	"os"
	"strings"
	"unsafe"
)

// Program is a program for the card's microengines, loaded by Load or LoadFile.
type Program struct{ number uint64 }

// Process is a C function that runs on a context of a microengine, started by Program.Start.
type Process struct {
	number uint64
	name   string
}

// At is the place of a process.
type At struct {
	// Microengine and Context are numbers from 0.
	Microengine, Context uint32
	// Contexts is the number of contexts that the microengine uses, set when its first process starts; 0 means all.
	Contexts uint32
}

func address(g *goroutines, contents []byte) uint64 {
	if len(contents) == 0 {
		return 0
	}
	return g.keep(unsafe.Pointer(&contents[0]))
}

// Load loads a program compiled by nicety cc. It takes no virtual time.
func Load(elf []byte) (*Program, error) {
	g := here()
	results, err := g.call(opLoad, address(g, elf), uint64(len(elf)))
	if err != nil {
		return nil, err
	}
	return &Program{results[0]}, nil
}

// LoadFile loads a program from a file.
func LoadFile(path string) (*Program, error) {
	elf, err := os.ReadFile(path)
	if err != nil {
		return nil, inputError(err.Error())
	}
	program, err := Load(elf)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return program, nil
}

// Start starts a process: a function of the program, with up to eight arguments. It takes no virtual time.
func (p *Program) Start(name string, at At, args ...uint32) (*Process, error) {
	g := here()
	contexts := anyValue
	if at.Contexts != 0 {
		contexts = uint64(at.Contexts)
	}
	given := []uint64{p.number, address(g, []byte(name)), uint64(len(name)), uint64(at.Microengine), uint64(at.Context), contexts,
		uint64(len(args))}
	if len(args) > arguments {
		return nil, inputError(fmt.Sprintf("%s: %d arguments; a process has up to %d", name, len(args), arguments))
	}
	for _, arg := range args {
		given = append(given, uint64(arg))
	}
	results, err := g.call(opStart, given...)
	if err != nil {
		return nil, err
	}
	return &Process{results[0], strings.Clone(name)}, nil
}

// Finished waits for the end of a process and returns its function's result. The error is ErrTrap if the process was stopped.
func (p *Process) Finished() (uint32, error) {
	results, err := here().call(opFinished, p.number)
	return uint32(results[0]), err
}

func (p *Process) String() string { return p.name }

// MemoryKind is a memory of the card.
type MemoryKind uint64

// The memories, the nearest to the microengines first.
const (
	CLS MemoryKind = iota
	CTM
	IMEM
	EMEM
)

// Memory is a part of a memory of the card. Reading and writing it takes no virtual time.
type Memory struct {
	// Address is the memory's address for processes of the card.
	Address uint32
	part    [4]uint64
}

// CardMemory returns a part of a memory of the card; island selects one if each island has its own (CLS, CTM).
func CardMemory(kind MemoryKind, island int, offset, length uint32) (*Memory, error) {
	part := [4]uint64{uint64(kind), uint64(island), uint64(offset), uint64(length)}
	results, err := here().call(opMemory, part[:]...)
	if err != nil {
		return nil, err
	}
	return &Memory{uint32(results[0]), part}, nil
}

// Read returns the current bytes.
func (m *Memory) Read() ([]byte, error) {
	g := here()
	contents := make([]byte, m.part[3])
	_, err := g.call(opRead, append(m.part[:], address(g, contents))...)
	return contents, err
}

// Write changes bytes, from the first on.
func (m *Memory) Write(contents []byte) error {
	g := here()
	if uint64(len(contents)) > m.part[3] {
		return inputError(fmt.Sprintf("%d bytes for a part of a memory of %d bytes", len(contents), m.part[3]))
	}
	part := m.part
	part[3] = uint64(len(contents))
	_, err := g.call(opWrite, append(part[:], address(g, contents))...)
	return err
}
