#!/usr/bin/env bash
# Guess: the ports of HdrHistogram give the same percentiles for the same recorded values.
# From:  their pages: each is a port of HdrHistogram. The crate's page has its definition: the given percentage of the values are smaller
#        than or equivalent to the value of a percentile.
# True:  with the latencies 1 to 10, the crate hdrhistogram 7.6.0 gives 10 for percentiles 91 to 100. The ports for Go (1.4.0) and
#        Python (0.10.8) give 9 for 91 to 94, since they round the rank to the nearest instead of up. The 99.9th of 1600 values
#        is the 1599th by the crate and the 1598th by them.
set -euo pipefail
command -v go >/dev/null || { echo "needs Go" >&2; exit 2; }
work=$(mktemp -d)
trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT
cd "$work"

python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check hdrhistogram==0.10.8
cat >ranks.py <<'P'
from hdrh.histogram import HdrHistogram


def at(count: int, percentile: float) -> int:
    histogram = HdrHistogram(1, 1_000_000, 4)
    for value in range(1, count + 1):
        histogram.record_value(value)
    return histogram.get_value_at_percentile(percentile)


print("Python 0.10.8:", at(10, 54), at(10, 91), at(10, 94), at(10, 95), at(1600, 99.9))
P
env/bin/python ranks.py >seen

mkdir -p rust go
cd rust
cargo init --quiet --bin --name probe .
cat >>Cargo.toml <<'T'
hdrhistogram = { version = "=7.6.0", default-features = false }
T
cat >src/main.rs <<'R'
fn at(count: u64, percentile: f64) -> u64 {
    let mut histogram = hdrhistogram::Histogram::<u64>::new_with_bounds(1, 1_000_000, 4).unwrap();
    for value in 1..=count {
        histogram.record(value).unwrap();
    }
    histogram.value_at_percentile(percentile)
}

fn main() {
    println!("Rust 7.6.0: {} {} {} {} {}", at(10, 54.0), at(10, 91.0), at(10, 94.0), at(10, 95.0), at(1600, 99.9));
}
R
cargo run --quiet 2>build.log >>../seen || { cat build.log >&2; exit 1; }
cd ../go
export GOPATH=$work/gopath GOCACHE=$work/gocache GOFLAGS=-mod=mod
cat >main.go <<'G'
package main

import (
	"fmt"

	"github.com/HdrHistogram/hdrhistogram-go"
)

func at(count int64, percentile float64) int64 {
	histogram := hdrhistogram.New(1, 1000000, 4)
	for value := int64(1); value <= count; value++ {
		if err := histogram.RecordValue(value); err != nil {
			panic(err)
		}
	}
	return histogram.ValueAtPercentile(percentile)
}

func main() {
	fmt.Println("Go 1.4.0:", at(10, 54), at(10, 91), at(10, 94), at(10, 95), at(1600, 99.9))
}
G
{ go mod init probe && go get github.com/HdrHistogram/hdrhistogram-go@v1.4.0 && go build -o probe .; } >build.log 2>&1 ||
    { cat build.log >&2; exit 1; }
./probe >>../seen
cd ..
cat seen
expected='Python 0.10.8: 5 9 9 10 1598
Rust 7.6.0: 6 10 10 10 1599
Go 1.4.0: 5 9 9 10 1598'
[[ $(<seen) == "$expected" ]] || { echo "changed: the percentiles differ from those seen" >&2; exit 1; }
