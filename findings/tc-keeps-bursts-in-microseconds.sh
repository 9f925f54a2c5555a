#!/usr/bin/env bash
# Guess: a class of HTB has the burst that it was given in bytes, at any rate: 10000 bytes are a frame of 9000 and some more.
# From:  tc-htb(8) on "burst" and "cburst": amounts of bytes. tc accepts the values without a warning.
# True:  tc of iproute2 6.1.0 gives the kernel the burst as a time at the class's rate, in whole microseconds, rounded down. Of 10000 bytes
#        that is 8 us at 10 Gbit/s, 3 us of 3.2 at 25, and nothing at 100 Gbit/s, where one microsecond is 12500 bytes. The kernel's ticks
#        of 64 ns would hold bursts to within 800 bytes there. tc then shows smaller numbers, since it rounds once more.
set -euo pipefail
for tool in tc unshare; do
    command -v "$tool" >/dev/null || { echo "install $tool (seen with tc of iproute2 6.1.0)" >&2; exit 2; }
done
unshare --net true 2>/dev/null || { echo "needs the right to make a network namespace, as root has it" >&2; exit 2; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check pyroute2==0.9.7
cat >classes.py <<'P'
from pyroute2 import IPRoute

with IPRoute() as kernel:
    for one in kernel.get_classes(index=1):
        options = one.get_attr("TCA_OPTIONS")
        parameters = options.get_attr("TCA_HTB_PARMS")
        rate = options.get_attr("TCA_HTB_RATE64") or parameters["rate"]
        ticks = parameters["buffer"]
        print(f"{rate * 8 // 10**9} Gbit/s: the kernel has {ticks} ticks of 64 ns, {ticks * 64 * rate // 10**9} bytes")
P
cat >classes.sh <<'B'
set -euo pipefail
tc qdisc add dev lo root handle 1: htb
class=0
for rate in 1 10 25 100; do
    tc class add dev lo parent 1: classid "1:$((++class))" htb rate "${rate}gbit" burst 10000 cburst 10000 quantum 60000
done
tc class show dev lo | sed 's/.* \(rate [^ ]*\) .* \(burst [^ ]*\) cburst.*/tc shows \1 \2/' >shown
env/bin/python classes.py >kernel
B
unshare --net bash classes.sh 2>errors || { cat errors >&2; echo "needs Linux with the queueing discipline htb" >&2; exit 2; }
tc -V
cat kernel shown | tee seen
expected='1 Gbit/s: the kernel has 1250 ticks of 64 ns, 10000 bytes
10 Gbit/s: the kernel has 125 ticks of 64 ns, 10000 bytes
25 Gbit/s: the kernel has 46 ticks of 64 ns, 9200 bytes
100 Gbit/s: the kernel has 0 ticks of 64 ns, 0 bytes
tc shows rate 1Gbit burst 10000b
tc shows rate 10Gbit burst 10000b
tc shows rate 25Gbit burst 6250b
tc shows rate 100Gbit burst 0b'
[[ $(<seen) == "$expected" ]] || { echo "changed: the bursts differ from those seen with iproute2 6.1.0" >&2; exit 1; }
