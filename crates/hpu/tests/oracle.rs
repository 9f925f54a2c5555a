//! Random programs give what QEMU's RISC-V emulator gives.
//!
//! Left out is what differs by design: counters; misaligned accesses, which QEMU executes; own stores between LR and
//! SC, where QEMU's SC fails if they changed the word.

mod common;

use common::{Load, Random, cases, data, elf};
use nicety_hpu::asm::*;
use nicety_hpu::{Core, Image, bare};
use std::path::PathBuf;
use std::process::Command;

const CODE: u32 = 0x10_0000;
const DATA: u32 = 0x20_0000;
const DATA_SIZE: u32 = 1024;
/// Registers are written behind the data at the end.
const DUMP: u32 = DATA + DATA_SIZE;

/// s0 and sp point into the data throughout; everything else is fair game.
fn free(random: &mut Random) -> u32 {
    random.of(&[RA, GP, TP, T0, T1, T2, S1, A0, A1, A2, A3, A4, A5, A6, A7, S2, S5, S11, T3, T6, ZERO])
}

/// One of a0 to a5, as a compressed instruction's three bits.
fn short(random: &mut Random) -> u16 {
    2 + random.below(6) as u16
}

fn operation(random: &mut Random) -> u32 {
    type Three = fn(u32, u32, u32) -> u32;
    const BINARY: &[Three] =
        &[add, sub, sll, slt, sltu, xor, srl, sra, or, and, mul, mulh, mulhsu, mulhu, div, divu, rem, remu];
    const IMMEDIATE: &[fn(u32, u32, i32) -> u32] = &[addi, slti, sltiu, xori, ori, andi];
    type Access = fn(u32, i32, u32) -> u32;
    const MEMORY: &[(Access, u32)] =
        &[(lw, 4), (lh, 2), (lhu, 2), (lb, 1), (lbu, 1), (sw, 4), (sh, 2), (sb, 1)];
    const ATOMIC: &[Three] =
        &[amoswap_w, amoadd_w, amoxor_w, amoand_w, amoor_w, amomin_w, amomax_w, amominu_w, amomaxu_w];
    let (rd, a, b) = (free(random), free(random), free(random));
    match random.below(16) {
        0..=5 => random.of(BINARY)(rd, a, b),
        6..=7 => random.of(IMMEDIATE)(rd, a, random.below(4096) as i32 - 2048),
        8 => random.of(&[slli as Three, srli, srai])(rd, a, random.below(32)),
        9 => random.of(&[lui as fn(u32, u32) -> u32, auipc])(rd, random.next() >> 12),
        10..=13 => {
            let (instruction, size) = random.of(MEMORY);
            instruction(rd, (random.below(DATA_SIZE / size) * size) as i32, S0)
        }
        14 => random.of(ATOMIC)(rd, a, S0),
        _ => fence(),
    }
}

fn compressed(random: &mut Random) -> u16 {
    let rd = loop {
        let register = free(random) as u16;
        if register != 0 {
            break register << 7;
        }
    };
    let rs2 = (1 + random.below(31) as u16) << 2;
    let amount = (random.below(32) as u16) << 2;
    let imm = amount | (random.below(2) as u16) << 12;
    let (short_rd, short_rs2) = (short(random) << 7, short(random) << 2);
    let shorts = short_rd | short_rs2;
    match random.below(18) {
        0 => 0x0001 | rd | imm,                               // c.addi
        1 => 0x4001 | rd | imm,                               // c.li
        2 => 0x6001 | rd | imm | 1 << 2,                      // c.lui
        3 => 0x0002 | rd | amount,                            // c.slli
        4 => 0x8002 | rd | rs2,                               // c.mv
        5 => 0x9002 | rd | rs2,                               // c.add
        6 => 0x8001 | short_rd | amount,                      // c.srli
        7 => 0x8401 | short_rd | amount,                      // c.srai
        8 => 0x8801 | short_rd | imm,                         // c.andi
        9 => 0x8c01 | shorts,                                 // c.sub
        10 => 0x8c21 | shorts,                                // c.xor
        11 => 0x8c41 | shorts,                                // c.or
        12 => 0x8c61 | shorts,                                // c.and
        13 => 0x4002 | rd | imm,                              // c.lwsp
        14 => 0xc002 | (random.below(64) as u16) << 7 | rs2,  // c.swsp
        15 => 0x4000 | scattered(random) | short_rs2,         // c.lw from s0
        16 => 0xc000 | scattered(random) | short_rs2,         // c.sw to s0
        _ => (1 + random.below(255) as u16) << 5 | short_rs2, // c.addi4spn
    }
}

/// A random offset of c.lw and c.sw.
fn scattered(random: &mut Random) -> u16 {
    (random.below(8) as u16) << 10 | (random.below(4) as u16) << 5
}

enum Item {
    Word(u32),
    Half(u16),
    /// LR and SC, with nothing between.
    Pair(u32, u32),
    /// A branch over so many of the items that follow.
    Over(fn(u32, u32, i32) -> u32, u32, u32, usize),
}

impl Item {
    fn len(&self) -> usize {
        match self {
            Item::Half(_) => 2,
            Item::Pair(..) => 8,
            Item::Word(_) | Item::Over(..) => 4,
        }
    }
}

/// Random registers, a body that only branches forwards, and at the end everything written out.
fn program(random: &mut Random) -> Vec<u8> {
    const BRANCHES: &[fn(u32, u32, i32) -> u32] = &[beq, bne, blt, bge, bltu, bgeu, |rd, _, to| jal(rd, to)];
    let mut items = Vec::new();
    let mut word = |word| items.push(Item::Word(word));
    for register in 1..32 {
        // Small and extreme values as often as any.
        let value = random.next();
        let value = random.of(&[value, value & 7, 0, u32::MAX, 0x8000_0000, 0x7fff_ffff]);
        let value = if register == S0 || register == SP { DATA } else { value };
        li(register, value).into_iter().for_each(&mut word);
    }
    for _ in 0..300 {
        items.push(match random.below(24) {
            0 => Item::Pair(lr_w(free(random), S0), sc_w(free(random), free(random), S0)),
            1..=11 => Item::Word(operation(random)),
            12..=20 => Item::Half(compressed(random)),
            _ => Item::Over(random.of(BRANCHES), free(random), free(random), random.below(9) as usize),
        });
    }
    let mut word = |word| items.push(Item::Word(word));
    (0..9).for_each(|_| word(nop())); // where the last branches may go
    for register in 1..32 {
        word(sw(register, (DUMP - DATA + 4 * register) as i32, S0));
    }
    word(addi(A0, ZERO, 1));
    li(A1, DATA).into_iter().for_each(&mut word);
    li(A2, DATA_SIZE + 128).into_iter().for_each(&mut word);
    word(addi(A7, ZERO, 64));
    word(ecall());
    word(addi(A0, ZERO, 0));
    word(addi(A7, ZERO, 93));
    word(ecall());

    let mut code = Vec::new();
    for (i, item) in items.iter().enumerate() {
        match *item {
            Item::Word(word) => code.extend(word.to_le_bytes()),
            Item::Pair(lr, sc) => code.extend([lr, sc].map(u32::to_le_bytes).as_flattened()),
            Item::Half(half) => code.extend(half.to_le_bytes()),
            Item::Over(branch, a, b, over) => {
                let to: usize = items[i..=i + over].iter().map(Item::len).sum();
                code.extend(branch(a, b, to as i32).to_le_bytes());
            }
        }
    }
    code
}

/// The program of that name, if it is installed; where tests must not be skipped it has to be.
fn tool(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).map(|folder| folder.join(name)).find(|file| file.is_file());
    if found.is_none() {
        assert!(std::env::var_os("NICETY_NO_SKIPS").is_none(), "{name} is not installed");
        eprintln!("skipped: {name} is not installed");
    }
    found
}

#[test]
fn random_programs_agree_with_qemu() {
    let Some(qemu) = tool("qemu-riscv32") else { return };
    let file = std::env::temp_dir().join(format!("nicety-hpu-oracle-{}.elf", std::process::id()));
    for seed in 0..u64::from(cases(60).min(20_000)) {
        let mut random = Random(seed);
        let code = program(&mut random);
        let bytes: Vec<u8> = (0..DATA_SIZE).map(|_| random.next() as u8).collect();
        let size = code.len() as u32;
        let loads = [
            Load { address: CODE, flags: common::READABLE | common::EXECUTABLE, bytes: code, size },
            data(DATA, &bytes, 4096),
        ];
        let program = elf(CODE, &loads);

        let mut ours = Vec::new();
        let result =
            bare::run(&Image::load(&program, &Core::default()).unwrap(), None, 10_000, &mut ours).unwrap();
        assert_eq!((result.exit_code, result.trap), (Some(0), None), "seed {seed}");

        std::fs::write(&file, &program).unwrap();
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
        }
        let theirs = Command::new(&qemu).arg(&file).output().unwrap();
        let error = String::from_utf8_lossy(&theirs.stderr);
        assert_eq!(theirs.status.code(), Some(0), "seed {seed}: {error}");
        for (at, (our, their)) in ours.chunks(4).zip(theirs.stdout.chunks(4)).enumerate() {
            let at = 4 * at as u32;
            let place =
                if at < DATA_SIZE { format!("data + {at}") } else { format!("x{}", (at - DATA_SIZE) / 4) };
            assert_eq!(our, their, "seed {seed}: {place}");
        }
        assert_eq!((ours.len(), theirs.stdout.len()), (DATA_SIZE as usize + 128, DATA_SIZE as usize + 128));
    }
    std::fs::remove_file(&file).unwrap();
}
