#!/usr/bin/env bash
# Guess: capstone shows an eBPF instruction that it does not know as unknown, and otherwise by its name.
# From:  RFC 9669. In 5.3, the constant of an atomic instruction selects the operation. In 4.1, the offset of a division or a move selects
#        its signed form. In 4.3, class 6 has 32-bit jumps. capstone's list of architectures names eBPF.
# True:  capstone 5.0.9 shows fetching additions, or, exchanges and compare-exchanges all as xadddw, a signed division as div64, and a
#        sign-extending move as mov64. At the first 32-bit jump it ends, without an error: the rest of the program is missing.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check capstone==5.0.9
cat >names.py <<'P'
import struct
from importlib.metadata import version

from capstone import CS_ARCH_BPF, CS_MODE_BPF_EXTENDED, CS_MODE_LITTLE_ENDIAN, Cs

engine = Cs(CS_ARCH_BPF, CS_MODE_BPF_EXTENDED | CS_MODE_LITTLE_ENDIAN)


def op(code: int, offset: int = 0, constant: int = 0) -> bytes:
    """An instruction on r1 and r2."""
    return struct.pack("<BBhi", code, 0x21, offset, constant)


def names(program: bytes) -> list[str]:
    return [instruction.mnemonic for instruction in engine.disasm(program, 0)]


atomics = {"add": 0x00, "fetch add": 0x01, "or": 0x40, "exchange": 0xE1, "compare-exchange": 0xF1}
found = {name: names(op(0xDB, constant=constant)) for name, constant in atomics.items()}
found["signed division by 3"] = names(struct.pack("<BBhi", 0x37, 1, 1, 3))
found["move of a signed byte"] = names(op(0xBF, offset=8))
found["move, 32-bit jump, exit"] = names(op(0xBF) + op(0x1E, offset=0) + struct.pack("<Q", 0x95))
print("capstone", version("capstone"))
for name, shown in found.items():
    print(f"{name}: {' '.join(shown)}")
expected = 5 * [["xadddw"]] + [["div64"], ["mov64"], ["mov64"]]
raise SystemExit(list(found.values()) != expected)
P
env/bin/python names.py || { echo "changed: the names differ from those seen with capstone 5.0.9" >&2; exit 1; }
