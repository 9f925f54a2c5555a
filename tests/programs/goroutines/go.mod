module goroutines

go 1.19

require github.com/nicety-lab/nicety/go/nicety v0.0.0

replace github.com/nicety-lab/nicety/go/nicety => ../../../go/nicety
