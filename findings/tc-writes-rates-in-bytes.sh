#!/usr/bin/env bash
# Guess: a number that tc writes in JSON is one that tc reads: "rate" is in bits per second, as a bare number is.
# From:  tc(8), "Parameters": a rate with the unit "bit" or a bare number is in bits per second. Of -json it says only that it displays
#        results in JSON. Without it, tc writes the rate as "1Mbit".
# True:  tc of iproute2 6.1.0 writes rates in JSON in bytes per second, 125000 here, without a unit. A shaper that is set again to what
#        its own report says has an eighth of the rate. The burst comes back as it was.
set -euo pipefail
for tool in tc unshare python3; do
    command -v "$tool" >/dev/null || { echo "install $tool (seen with tc of iproute2 6.1.0)" >&2; exit 2; }
done
unshare --net true 2>/dev/null || { echo "needs the right to make a network namespace, as root has it" >&2; exit 2; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

cat >again.sh <<'B'
set -euo pipefail
tc qdisc add dev lo root tbf rate 1000000 burst 10000 latency 10000
tc qdisc show dev lo >first
tc -json qdisc show dev lo >first.json
python3 >parameters <<'P'
import json

options = json.load(open("first.json"))[0]["options"]
print("rate", options["rate"], "burst", options["burst"], "latency", options["lat"])
P
tc qdisc replace dev lo root tbf $(<parameters)
tc qdisc show dev lo >second
B
unshare --net bash again.sh || { echo "needs Linux with the queueing discipline tbf" >&2; exit 2; }
tc -V | sed 's/,$//'
{
    echo "set: rate 1000000 burst 10000 latency 10000"
    echo "shown: $(grep -o 'rate [^ ]* burst [^ ]*' first)"
    echo "JSON: $(<parameters)"
    echo "set to the JSON, shown: $(grep -o 'rate [^ ]* burst [^ ]*' second)"
} | tee seen
expected='set: rate 1000000 burst 10000 latency 10000
shown: rate 1Mbit burst 10000b
JSON: rate 125000 burst 10000 latency 10000
set to the JSON, shown: rate 125Kbit burst 10000b'
[[ $(<seen) == "$expected" ]] || { echo "changed: the rates differ from those seen with iproute2 6.1.0" >&2; exit 1; }
