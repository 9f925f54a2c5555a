package nicety

import (
	"fmt"
	"reflect"
	"time"
	"unsafe"
)

// Device is a host's access to the processes on its card.
type Device struct{}

// Open opens the device. It takes no virtual time.
func Open() Device {
	here()
	return Device{}
}

// Channel joins the host with a process of the card: synchronous messages of values of type T, in both directions. T is a number, a
// boolean, or an array or structure of them without gaps. Its bytes are those in memory, as of the same type in C.
type Channel[T any] struct {
	number uint64
	target uint32
	// The limit of the wait for the other end, in ps.
	limitPs uint64
}

// Subscribe makes a channel to the process that has registered a target by channel_register.
func Subscribe[T any](_ Device, target uint32) (*Channel[T], error) {
	if err := check[T](); err != nil {
		return nil, err
	}
	results, err := here().call(opSubscribe, uint64(target))
	if err != nil {
		return nil, err
	}
	return &Channel[T]{results[0], target, anyValue}, nil
}

// As returns the same channel for messages of another type.
func As[U, T any](c *Channel[T]) (*Channel[U], error) {
	if err := check[U](); err != nil {
		return nil, err
	}
	return &Channel[U]{c.number, c.target, c.limitPs}, nil
}

// check refuses types that are more than their bytes.
func check[T any]() error {
	kind := reflect.TypeOf((*T)(nil)).Elem()
	if why := unfit(kind); why != "" {
		return inputError(fmt.Sprintf("a channel of %v: %s; give one of numbers, and of arrays and structures of them", kind, why))
	}
	return nil
}

func unfit(kind reflect.Type) string {
	switch kind.Kind() {
	case reflect.Bool, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64, reflect.Uint8, reflect.Uint16, reflect.Uint32,
		reflect.Uint64, reflect.Float32, reflect.Float64:
		return ""
	case reflect.Array:
		return unfit(kind.Elem())
	case reflect.Struct:
		var bytes uintptr
		for i := 0; i < kind.NumField(); i++ {
			if why := unfit(kind.Field(i).Type); why != "" {
				return why
			}
			bytes += kind.Field(i).Type.Size()
		}
		if bytes != kind.Size() {
			return fmt.Sprintf("%v has %d bytes, and its fields %d, so that there are gaps", kind, kind.Size(), bytes)
		}
		return ""
	default:
		return fmt.Sprintf("a message has no %v (%v)", kind.Kind(), kind)
	}
}

func bytesOf[T any](value *T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(value)), unsafe.Sizeof(*value))
}

// Target returns the target of the subscription.
func (c *Channel[T]) Target() uint32 { return c.target }

// Within returns the same channel with a limit on each call's wait for the other end. After the limit, the call fails with ErrTimedOut. A
// transfer that has begun has no limit.
func (c *Channel[T]) Within(limit time.Duration) (*Channel[T], error) {
	ps, err := picoseconds(limit)
	return &Channel[T]{c.number, c.target, ps}, err
}

// Send sends a value of up to 56 bytes, for the process's channel_read.
func (c *Channel[T]) Send(value T) error {
	contents := bytesOf(&value)
	if len(contents) > directBytes {
		return inputError(fmt.Sprintf("send to target %d: a direct message of %d bytes; it has up to %d; send longer messages by SendInd",
			c.target, len(contents), directBytes))
	}
	given := make([]uint64, 3+directBytes/8)
	given[0], given[1], given[2] = c.number, c.limitPs, uint64(len(contents))
	for i, each := range contents {
		given[3+i/8] |= uint64(each) << (8 * (i % 8))
	}
	_, err := here().call(opSend, given...)
	return err
}

// Receive receives a value of up to 56 bytes, from the process's channel_write.
func (c *Channel[T]) Receive() (value T, err error) {
	contents := bytesOf(&value)
	results, err := here().call(opReceive, c.number, c.limitPs, uint64(len(contents)))
	if err == nil {
		take(contents, results)
	}
	return value, err
}

// take copies a direct message to its place behind a call's first result.
func take(contents []byte, results *[words]uint64) {
	for i := range contents {
		contents[i] = byte(results[1+i/8] >> (8 * (i % 8)))
	}
}

// SendInd sends values by an indirect message of any size, for the process's channel_read_ind.
func (c *Channel[T]) SendInd(values []T) error { return c.indirect(opSendInd, values) }

// ReceiveInd receives an indirect message that fills values, from the process's channel_write_ind.
func (c *Channel[T]) ReceiveInd(values []T) error { return c.indirect(opReceiveInd, values) }

func (c *Channel[T]) indirect(op uint32, values []T) error {
	g := here()
	address, bytes := place(g, values)
	_, err := g.call(op, c.number, c.limitPs, bytes, address)
	return err
}

func place[T any](g *goroutines, values []T) (address, bytes uint64) {
	if len(values) == 0 {
		return 0, 0
	}
	return g.keep(unsafe.Pointer(&values[0])), uint64(len(values)) * uint64(unsafe.Sizeof(values[0]))
}

// Close closes the channel. A process that waits at its end gets an error.
func (c *Channel[T]) Close() error {
	_, err := here().call(opClose, c.number)
	return err
}

// Case is a message that Select may receive, made by Channel.Into or Channel.IntoInd.
type Case struct {
	number  uint64
	bytes   uint64
	address func(g *goroutines) uint64
	take    func(results *[words]uint64)
}

// Into makes a case of a direct message into a variable.
func (c *Channel[T]) Into(value *T) Case {
	contents := bytesOf(value)
	return Case{
		number:  c.number,
		bytes:   uint64(len(contents)),
		address: func(*goroutines) uint64 { return 0 },
		take:    func(results *[words]uint64) { take(contents, results) },
	}
}

// IntoInd makes a case of an indirect message that fills values.
func (c *Channel[T]) IntoInd(values []T) Case {
	var bytes uint64
	if len(values) > 0 {
		bytes = uint64(len(values)) * uint64(unsafe.Sizeof(values[0]))
	}
	return Case{
		number: c.number,
		bytes:  bytes,
		address: func(g *goroutines) uint64 {
			address, _ := place(g, values)
			return address
		},
		take: func(*[words]uint64) {},
	}
}

// Select receives from the first channel with a writing process, by one case per channel, and returns the index. If several processes wait,
// the first case in order counts.
func Select(cases ...Case) (int, error) { return choose(anyValue, cases) }

// SelectWithin is Select with a limit on the wait. After the limit it fails with ErrTimedOut.
func SelectWithin(limit time.Duration, cases ...Case) (int, error) {
	ps, err := picoseconds(limit)
	if err != nil {
		return 0, err
	}
	return choose(ps, cases)
}

func choose(limitPs uint64, cases []Case) (int, error) {
	g := here()
	if len(cases) > alternatives {
		return 0, inputError(fmt.Sprintf("a selection of %d alternatives; the maximum is %d", len(cases), alternatives))
	}
	// One extra word, so that there is memory even without cases.
	given := make([]uint64, 0, 3*len(cases)+1)
	for _, each := range cases {
		given = append(given, each.number, each.bytes, each.address(g))
	}
	results, err := g.call(opSelect, g.keep(unsafe.Pointer(&given[:1][0])), uint64(len(cases)), limitPs)
	if err != nil {
		return 0, err
	}
	cases[results[0]].take(results)
	return int(results[0]), nil
}
