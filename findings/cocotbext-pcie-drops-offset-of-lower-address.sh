#!/usr/bin/env bash
# Guess: a TLP's get_lower_address gives the field "lower address" of the first completion. It is bits 6 to 2 of the request's address,
#        and the offset of the first enabled byte.
# From:  the function's own text in cocotbext-pcie, and the PCI Express base specification on the rules for completions.
# True:  cocotbext-pcie 0.2.16 adds the offset to its mask instead of the address, because & binds less than +. A read from 0x1003 gets
#        0x00 instead of 0x03, and one from 0x1015 gets 0x14 instead of 0x15. Addresses that are multiples of 4 are right.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check cocotbext-pcie==0.2.16 cocotb==2.1.0
cat >lower.py <<'P'
from importlib.metadata import version

from cocotbext.pcie.core.tlp import Tlp, TlpType


def lower(address: int, length: int) -> tuple[int, int]:
    """The lower address and the byte count for a read of so many bytes."""
    tlp = Tlp()
    tlp.fmt_type = TlpType.MEM_READ
    tlp.set_addr_be(address, length)
    return tlp.get_lower_address(), tlp.get_be_byte_count()


print("cocotbext-pcie", version("cocotbext-pcie"))
found = {address: lower(address, 6) for address in (0x1000, 0x1014, 0x1001, 0x1002, 0x1003, 0x1015)}
for address, (low, count) in found.items():
    print(f"a read of 6 bytes from {address:#x}: lower address {low:#04x}, byte count {count}")
raise SystemExit(list(found.values()) != [(0, 6), (0x14, 6), (0, 6), (0, 6), (0, 6), (0x14, 6)])
P
env/bin/python lower.py || { echo "changed: the addresses differ from those seen with cocotbext-pcie 0.2.16" >&2; exit 1; }
