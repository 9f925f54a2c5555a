// Package nicety lets a Go program run on a simulated host with a card for processes, such as nfp-4000. The program starts C functions
// on the card's microengines, and exchanges messages with them through typed channels. The interface is that of NFComms (Pennefather,
// Bradshaw and Irwin, SACJ 31(2), 2019). A call ends when both ends have called and the message has passed.
//
//	func main() {
//		nicety.Main(func() error {
//			program, err := nicety.LoadFile("ping.elf")
//			if err != nil {
//				return err
//			}
//			if _, err := program.Start("ping", nicety.At{Microengine: 0}, 7, 1); err != nil {
//				return err
//			}
//			channel, err := nicety.Subscribe[uint32](nicety.Open(), 7)
//			if err != nil {
//				return err
//			}
//			return channel.Send(42)
//		})
//	}
//
// The program is built as usual, without cgo, and nicety exec starts it:
//
//	nicety exec --nic nfp-4000 --launcher none -- ./program
//
// # Time
//
// The goroutine of Main, and those started by [Go] and [Gather], take part in virtual time. One of them runs at a time, and virtual time
// stands still meanwhile. During its calls of this package, virtual time advances; then the simulation chooses the next goroutine.
// [Now] returns the time, [Compute] takes time on a CPU of the host, and [Sleep] without one. Computation between calls is free, or
// costs its CPU time on this machine: see --compute.
//
// So every run is the same, and goroutines share variables without locks. Two errors would break that, and are reported:
//
//   - A goroutine of the go statement calls this package: it panics.
//   - The running goroutine waits, by a channel of Go or a lock, for one without the turn. The program ends with an error that shows the
//     place. Use [Task.Wait], or a channel of Go with room for the value.
//
// The clock and the timers of the time package are the machine's.
package nicety
