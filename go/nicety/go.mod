module github.com/nicety-lab/nicety/go/nicety

go 1.19
