#!/usr/bin/env bash
# Guess: capstone's details find all loads and stores of a RISC-V program by their memory operands, and where its functions return by
#        the group of returns.
# From:  capstone's header for RISC-V, which has a type of memory operands and CS_GRP_RET, as those of other architectures have.
# True:  capstone 5.0.9 gives sw a memory operand, and the compressed loads and stores a number and a register instead. Atomic
#        instructions have registers only. "ret" is in the group of calls, and in no other: no function returns.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check capstone==5.0.9
cat >accesses.py <<'P'
import struct
from importlib.metadata import version

from capstone import CS_ARCH_RISCV, CS_GRP_CALL, CS_GRP_RET, CS_MODE_RISCV32, CS_MODE_RISCVC, Cs
from capstone.riscv import RISCV_OP_MEM

engine = Cs(CS_ARCH_RISCV, CS_MODE_RISCV32 | CS_MODE_RISCVC)
engine.detail = True
WORDS = {
    "lw": struct.pack("<I", 0x0005A503),  # lw a0, 0(a1)
    "sw": struct.pack("<I", 0x00A12623),  # sw a0, 12(sp)
    "c.lw": struct.pack("<H", 0x4188),  # c.lw a0, 0(a1)
    "c.sw": struct.pack("<H", 0xC188),  # c.sw a0, 0(a1)
    "c.lwsp": struct.pack("<H", 0x40B2),  # c.lwsp ra, 12(sp)
    "amoadd.w": struct.pack("<I", 0x00C5A52F),  # amoadd.w a0, a2, (a1)
}
print("capstone", version("capstone"))
found = {}
for name, word in WORDS.items():
    (instruction,) = engine.disasm(word, 0)
    assert instruction.mnemonic == name, instruction.mnemonic
    found[name] = sum(operand.type == RISCV_OP_MEM for operand in instruction.operands)
    print(f"{name} {instruction.op_str}: {found[name]} memory operands")
(ret,) = engine.disasm(struct.pack("<I", 0x00008067), 0)
groups = ret.group(CS_GRP_CALL), ret.group(CS_GRP_RET)
print(f"{ret.mnemonic}: call {groups[0]}, return {groups[1]}")
raise SystemExit(list(found.values()) != [1, 1, 0, 0, 0, 0] or groups != (True, False))
P
env/bin/python accesses.py || { echo "changed: the details differ from those seen with capstone 5.0.9" >&2; exit 1; }
