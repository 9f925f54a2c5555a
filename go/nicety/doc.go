// Package nicety lets a Go program be the program of a simulated host whose card runs processes, such as nfp-4000: it starts C
// functions on the card's microengines, and talks to them through typed channels. The interface is that of NFComms (Pennefather,
// Bradshaw and Irwin, SACJ 31(2), 2019): a call ends when both ends have come and the message has passed.
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
// The program is built as any other, without cgo, and nicety exec starts it:
//
//	nicety exec --nic nfp-4000 --launcher none -- ./program
//
// # Time
//
// Goroutines that take part in virtual time are the one that Main runs, and those that [Go] and [Gather] start. One of them runs at a
// time, and virtual time stands still meanwhile. It goes on when the one that runs makes a call of this package, from the call to its
// return; then the simulation says which goroutine runs next. [Now] tells the time, [Compute] takes some of it on a CPU of the host,
// and [Sleep] without one. What a goroutine computes between its calls costs nothing, or what it takes here, as --compute says.
//
// So a run is the same every time, and goroutines share variables without locks. Two things break that, and are told:
//
//   - A goroutine that the go statement started makes a call of this package: it panics.
//   - A goroutine that runs waits, by a channel of Go or a lock, for one whose turn has not come: the program ends with an error that
//     shows where. Use [Task.Wait], or a channel of Go with room for the value.
//
// The clock of the time package is the machine's, and so are its timers.
package nicety
