#!/usr/bin/env bash
# Guess: rdinstret in an emulator of RISC-V counts the emulated instructions: two reads with two instructions between them differ by 3.
# From:  RISC-V's extension Zicntr: the counter instret is the number of instructions that the hart has retired.
# True:  unicorn 2.1.4 reads a clock of its host for instret, as for cycle, and so does QEMU for programs of a user. The difference is
#        another one in each run, and often thousands. QEMU's option -icount, which makes it a count, is for whole machines only.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check unicorn==2.1.4
cat >count.py <<'P'
import struct
from importlib.metadata import version

from unicorn import UC_ARCH_RISCV, UC_HOOK_CODE, UC_MODE_RISCV64, Uc
from unicorn.riscv_const import UC_RISCV_REG_A0, UC_RISCV_REG_A1

# rdinstret a0; nop; nop; rdinstret a1; nop
PROGRAM = struct.pack("<5I", 0xC0202573, 0x13, 0x13, 0xC02025F3, 0x13)
BASE = 0x1000


def run() -> tuple[int, int]:
    """The difference of the two reads, and the number of instructions by a hook."""
    engine = Uc(UC_ARCH_RISCV, UC_MODE_RISCV64)
    engine.mem_map(BASE, 0x1000)
    engine.mem_write(BASE, PROGRAM)
    executed = []
    engine.hook_add(UC_HOOK_CODE, lambda engine, address, size, data: executed.append(address))
    engine.emu_start(BASE, BASE + len(PROGRAM))
    return engine.reg_read(UC_RISCV_REG_A1) - engine.reg_read(UC_RISCV_REG_A0), len(executed)


runs = [run() for _ in range(5)]
differences = [difference for difference, _ in runs]
print(f"unicorn {version('unicorn')}: {runs[0][1]} instructions in each run; differences of instret: {differences}")
raise SystemExit({executed for _, executed in runs} != {5} or set(differences) == {3})
P
env/bin/python count.py || { echo "changed: instret counts otherwise than seen with unicorn 2.1.4" >&2; exit 1; }
