//! Random programs have the same results as in QEMU's RISC-V emulator: registers of both kinds, `fcsr` and memory.
//!
//! Differences by design are excluded: counters; misaligned accesses, which QEMU executes; own stores between LR and
//! SC. QEMU's SC fails if they changed the word. `ctzw` is excluded too: before
//! version 8, QEMU counts the zeros of 64 bits.

use crate::common;
use crate::common::{Load, Random, cases, data, elf, elf_64};
use nicety_hpu::asm::*;
use nicety_hpu::{Core, Image, bare};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

const CODE: u32 = 0x10_0000;
const DATA: u32 = 0x20_0000;
const DATA_SIZE: u32 = 1024;
/// The state written after the data at the end of each program: f0 to f31, `fcsr`, four unused bytes, x0 to x31.
const DUMP: u32 = DATA_SIZE;
const DUMP_REGISTERS: u32 = DUMP + 4 * 34;
/// Number of programs in one file: QEMU takes longer to start than to run many of them.
const BATCH: u32 = 40;

/// A processor, and QEMU's emulator of it.
struct Target {
    isa: &'static str,
    emulator: &'static str,
    cpu: &'static str,
    wide: bool,
}

const RV32: Target = Target {
    isa: "rv32imafc_zicsr_zba_zbb_zbs",
    emulator: "qemu-riscv32",
    cpu: "rv32,f=on,d=off,zba=on,zbb=on,zbs=on",
    wide: false,
};

const RV64: Target = Target {
    isa: "rv64imafc_zicsr_zba_zbb_zbs",
    emulator: "qemu-riscv64",
    cpu: "rv64,f=on,d=off,zba=on,zbb=on,zbs=on",
    wide: true,
};

impl Target {
    /// Bytes of an integer register.
    fn register(&self) -> u32 {
        if self.wide { 8 } else { 4 }
    }

    /// Bytes of the output of a program.
    fn output(&self) -> usize {
        (DUMP_REGISTERS + 32 * self.register()) as usize
    }
}

/// s0 and sp point into the data throughout. All other registers may change.
fn free(random: &mut Random) -> u32 {
    random.of(&[RA, GP, TP, T0, T1, T2, S1, A0, A1, A2, A3, A4, A5, A6, A7, S2, S5, S11, T3, T6, ZERO])
}

/// One of a0 to a5, as a compressed instruction's three bits.
fn short(random: &mut Random) -> u16 {
    2 + random.below(6) as u16
}

/// An instruction that only RV64 has, or a shift by more than 31.
fn wide_operation(random: &mut Random) -> u32 {
    const BINARY: &[Three] = &[
        addw, subw, sllw, srlw, sraw, mulw, divw, divuw, remw, remuw, add_uw, sh1add_uw, sh2add_uw,
        sh3add_uw, rolw, rorw,
    ];
    const ONE: &[Two] = &[clzw, cpopw, zext_h_64, rev8_64];
    const SHIFTS: &[Three] = &[slli, srli, srai, rori, bclri, bexti, binvi, bseti, slli_uw];
    const WORD_SHIFTS: &[Three] = &[slliw, srliw, sraiw, roriw];
    const MEMORY: &[(Access, u32)] = &[(ld, 8), (sd, 8), (ld, 8), (sd, 8), (lwu, 4)];
    const ATOMIC: &[Three] =
        &[amoswap_d, amoadd_d, amoxor_d, amoand_d, amoor_d, amomin_d, amomax_d, amominu_d, amomaxu_d];
    let (rd, a, b) = (free(random), free(random), free(random));
    match random.below(16) {
        0..=4 => random.of(BINARY)(rd, a, b),
        5 => random.of(ONE)(rd, a),
        6..=7 => random.of(SHIFTS)(rd, a, random.below(64)),
        8 => random.of(WORD_SHIFTS)(rd, a, random.below(32)),
        9..=10 => addiw(rd, a, random.below(4096) as i32 - 2048),
        11..=14 => {
            let (instruction, size) = random.of(MEMORY);
            instruction(rd, (random.below(DATA_SIZE / size) * size) as i32, S0)
        }
        _ => random.of(ATOMIC)(rd, a, S0),
    }
}

/// An instruction of both widths.
fn operation(random: &mut Random, wide: bool) -> u32 {
    const BINARY: &[Three] =
        &[add, sub, sll, slt, sltu, xor, srl, sra, or, and, mul, mulh, mulhsu, mulhu, div, divu, rem, remu];
    const BITS: &[Three] =
        &[sh1add, sh2add, sh3add, andn, orn, xnor, max, maxu, min, minu, rol, ror, bclr, bext, binv, bset];
    const BITS_OF_ONE: &[Two] = &[clz, ctz, cpop, sext_b, sext_h, orc_b, zext_h, rev8];
    const IMMEDIATE: &[fn(u32, u32, i32) -> u32] = &[addi, slti, sltiu, xori, ori, andi];
    const MEMORY: &[(Access, u32)] =
        &[(lw, 4), (lh, 2), (lhu, 2), (lb, 1), (lbu, 1), (sw, 4), (sh, 2), (sb, 1)];
    const ATOMIC: &[Three] =
        &[amoswap_w, amoadd_w, amoxor_w, amoand_w, amoor_w, amomin_w, amomax_w, amominu_w, amomaxu_w];
    let (rd, a, b) = (free(random), free(random), free(random));
    match random.below(19) {
        0..=5 => random.of(BINARY)(rd, a, b),
        6..=7 => random.of(IMMEDIATE)(rd, a, random.below(4096) as i32 - 2048),
        8 => {
            let shift: Three = random.of(&[slli, srli, srai, rori, bclri, bexti, binvi, bseti]);
            shift(rd, a, random.below(32))
        }
        // RV64 has other encodings of the last two.
        16 => random.of(if wide { &BITS_OF_ONE[..6] } else { BITS_OF_ONE })(rd, a),
        17..=18 => random.of(BITS)(rd, a, b),
        9 => random.of(&[lui as fn(u32, u32) -> u32, auipc])(rd, random.next() >> 12),
        10..=13 => {
            let (instruction, size) = random.of(MEMORY);
            instruction(rd, (random.below(DATA_SIZE / size) * size) as i32, S0)
        }
        14 => random.of(ATOMIC)(rd, a, S0),
        _ => fence(),
    }
}

/// Bits of a float that interacts with others: special ones, or an exponent near one and few significant bits.
fn float_bits(random: &mut Random) -> u32 {
    const SPECIAL: &[u32] = &[
        0,
        1,
        2,
        0x7f_ffff,
        0x80_0000,
        0x80_0001,
        0xff_ffff,
        0x100_0000,
        0x3f80_0000,
        0x3f7f_ffff,
        0x3f80_0001,
        0x4b00_0000,
        0x4b7f_ffff,
        0x4f00_0000,
        0x4eff_ffff,
        0x4f80_0000,
        0x3400_0000,
        0x3f00_0000,
        0x7f7f_ffff,
        0x7f00_0000,
        0x7f80_0000,
        0x7f80_0001,
        0x7fc0_0000,
        0x7fc1_2345,
        0x2000_0000,
        0x2080_0000,
        0x5f00_0000,
    ];
    let sign = random.below(2) << 31;
    match random.below(8) {
        0..=1 => sign | random.of(SPECIAL),
        2 => random.next(),
        3 => sign | random.below(0x100_0000), // subnormal, or nearly
        _ => {
            let (exponent, zeros) = (127 - 30 + random.below(60), random.below(24));
            sign | exponent << 23 | (random.next() & 0x7f_ffff) >> zeros << zeros
        }
    }
}

type Access = fn(u32, i32, u32) -> u32;
type Two = fn(u32, u32) -> u32;
type Three = fn(u32, u32, u32) -> u32;
type Four = fn(u32, u32, u32, u32) -> u32;
const FLOAT: &[Three] = &[fadd_s, fsub_s, fmul_s, fdiv_s];
const FUSED: &[Four] = &[fmadd_s, fmsub_s, fnmsub_s, fnmadd_s];
const SELECT: &[Three] = &[fsgnj_s, fsgnjn_s, fsgnjx_s, fmin_s, fmax_s];
const COMPARE: &[Three] = &[feq_s, flt_s, fle_s];
const TO_INTEGER: &[Two] = &[fcvt_w_s, fcvt_wu_s];
const FROM_INTEGER: &[Two] = &[fcvt_s_w, fcvt_s_wu];
const TO_INTEGER_64: &[Two] = &[fcvt_w_s, fcvt_wu_s, fcvt_l_s, fcvt_lu_s];
const FROM_INTEGER_64: &[Two] = &[fcvt_s_w, fcvt_s_wu, fcvt_s_l, fcvt_s_lu];

fn float_operation(random: &mut Random, wide: bool) -> u32 {
    let (to_integer, from_integer) =
        if wide { (TO_INTEGER_64, FROM_INTEGER_64) } else { (TO_INTEGER, FROM_INTEGER) };
    let (rd, a, b, c) = (random.below(32), random.below(32), random.below(32), random.below(32));
    let (x, y) = (free(random), free(random));
    let mode = random.of(&[DYN, DYN, DYN, RNE, RNE, RTZ, RDN, RUP, RMM]);
    let offset = 4 * random.below(DATA_SIZE / 4) as i32;
    match random.below(24) {
        0..=5 => with_rounding(random.of(FLOAT)(rd, a, b), mode),
        6..=8 => with_rounding(random.of(FUSED)(rd, a, b, c), mode),
        9 => with_rounding(fsqrt_s(rd, a), mode),
        10..=11 => random.of(SELECT)(rd, a, b),
        12..=13 => random.of(COMPARE)(x, a, b),
        14 => with_rounding(random.of(to_integer)(x, a), mode),
        15 => with_rounding(random.of(from_integer)(rd, x), mode),
        16 => random.of(&[fmv_x_w, fclass_s])(x, a),
        17 => fmv_w_x(rd, x),
        18..=20 => flw(rd, offset, S0),
        21 => fsw(rd, offset, S0),
        22 => csrrwi(x, FRM, random.below(5)),
        // frm never gets a reserved mode.
        _ => match random.below(8) {
            0 => csrrw(x, FFLAGS, y),
            1 => csrrs(x, FFLAGS, y),
            2 => csrrc(x, FFLAGS, y),
            3 => csrrsi(x, FFLAGS, random.below(32)),
            4 => csrrci(x, FCSR, random.below(32)),
            5 => csrrwi(x, FCSR, random.below(32)),
            6 => csrrs(x, FRM, ZERO),
            _ => csrrs(x, FCSR, ZERO),
        },
    }
}

fn compressed(random: &mut Random, wide: bool) -> u16 {
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
    // RV64 has larger shifts, and double words instead of floats.
    let amount = if wide { imm } else { amount };
    let pair = |random: &mut Random| (random.below(64) as u16) << 7;
    match random.below(if wide { 25 } else { 22 }) {
        22 => 0x2001 | rd | imm, // c.addiw
        23 => 0x9c01 | shorts,   // c.subw
        24 => 0x9c21 | shorts,   // c.addw
        // Offsets are multiples of eight.
        19 if wide => 0x6002 | rd | imm & !0x10 | imm & 0x1000, // c.ldsp
        0 => 0x0001 | rd | imm,                                 // c.addi
        1 => 0x4001 | rd | imm,                                 // c.li
        2 => 0x6001 | rd | imm | 1 << 2,                        // c.lui
        3 => 0x0002 | rd | amount,                              // c.slli
        4 => 0x8002 | rd | rs2,                                 // c.mv
        5 => 0x9002 | rd | rs2,                                 // c.add
        6 => 0x8001 | short_rd | amount,                        // c.srli
        7 => 0x8401 | short_rd | amount,                        // c.srai
        8 => 0x8801 | short_rd | imm,                           // c.andi
        9 => 0x8c01 | shorts,                                   // c.sub
        10 => 0x8c21 | shorts,                                  // c.xor
        11 => 0x8c41 | shorts,                                  // c.or
        12 => 0x8c61 | shorts,                                  // c.and
        13 => 0x4002 | rd | imm,                                // c.lwsp
        14 => 0xc002 | pair(random) | rs2,                      // c.swsp
        15 => 0x4000 | scattered(random) | short_rs2,           // c.lw from s0
        16 => 0xc000 | scattered(random) | short_rs2,           // c.sw to s0
        17 => 0x6000 | scattered(random) | short_rs2,           // c.flw, c.ld from s0
        18 => 0xe000 | scattered(random) | short_rs2,           // c.fsw, c.sd to s0
        19 => 0x6002 | rd | imm,                                // c.flwsp
        20 => 0xe002 | pair(random) | rs2,                      // c.fswsp, c.sdsp
        _ => (1 + random.below(255) as u16) << 5 | short_rs2,   // c.addi4spn
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
    /// A branch over some of the following items.
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

/// Random registers, a body with forward branches only, and a final dump.
fn program(random: &mut Random, target: &Target) -> Vec<Item> {
    const BRANCHES: &[fn(u32, u32, i32) -> u32] = &[beq, bne, blt, bge, bltu, bgeu, |rd, _, to| jal(rd, to)];
    let mut items = Vec::new();
    let mut word = |word| items.push(Item::Word(word));
    for register in 0..32 {
        li(T0, float_bits(random)).into_iter().for_each(&mut word);
        word(fmv_w_x(register, T0));
    }
    word(csrrwi(ZERO, FCSR, 0));
    word(csrrwi(ZERO, FRM, random.of(&[RNE, RNE, RNE, RTZ, RDN, RUP, RMM])));
    for register in 1..32 {
        let value = value(random, target.wide);
        match register {
            S0 | SP => li(register, DATA).into_iter().for_each(&mut word),
            _ if target.wide => li_64(register, value).into_iter().for_each(&mut word),
            _ => li(register, value as u32).into_iter().for_each(&mut word),
        }
    }
    for _ in 0..300 {
        items.push(match random.below(32) {
            0 if target.wide && random.below(2) == 0 => {
                Item::Pair(lr_d(free(random), S0), sc_d(free(random), free(random), S0))
            }
            0 => Item::Pair(lr_w(free(random), S0), sc_w(free(random), free(random), S0)),
            1..=7 if target.wide => Item::Word(wide_operation(random)),
            1..=11 => Item::Word(operation(random, target.wide)),
            12..=20 => Item::Half(compressed(random, target.wide)),
            21..=28 => Item::Word(float_operation(random, target.wide)),
            _ => Item::Over(random.of(BRANCHES), free(random), free(random), random.below(9) as usize),
        });
    }
    let mut word = |word| items.push(Item::Word(word));
    (0..9).for_each(|_| word(nop())); // targets of the last branches
    for register in 0..32 {
        let store = if target.wide { sd } else { sw };
        word(store(register, (DUMP_REGISTERS + target.register() * register) as i32, S0));
        word(fsw(register, (DUMP + 4 * register) as i32, S0));
    }
    word(csrrs(T0, FCSR, ZERO));
    word(sw(T0, (DUMP + 128) as i32, S0));
    write_out(DATA, target.output() as u32).into_iter().for_each(word);
    items
}

/// The content of a register. Small and extreme values are as frequent as arbitrary ones.
fn value(random: &mut Random, wide: bool) -> u64 {
    let word = u64::from(random.next());
    let word = random.of(&[word, word & 7, 0, 0xffff_ffff, 0x8000_0000, 0x7fff_ffff]);
    if !wide {
        return word;
    }
    let high = random.of(&[0, 0, u32::MAX, 0x8000_0000, 0x7fff_ffff, random.0 as u32]);
    word | u64::from(high) << 32
}

fn write_out(address: u32, size: u32) -> Vec<u32> {
    [&[addi(A0, ZERO, 1)], &li(A1, address)[..], &li(A2, size), &[addi(A7, ZERO, 64), ecall()]].concat()
}

fn exit() -> [u32; 3] {
    [addi(A0, ZERO, 0), addi(A7, ZERO, 93), ecall()]
}

fn assemble(items: &[Item]) -> Vec<u8> {
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

/// Returns the program of that name, if it is installed. If tests must not be skipped, it is required.
fn tool(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).map(|folder| folder.join(name)).find(|file| file.is_file());
    if found.is_none() {
        assert!(std::env::var_os("NICETY_NO_SKIPS").is_none(), "{name} is not installed");
        // Bypasses the capture of a passing test's output.
        let _ = writeln!(std::io::stderr(), "skipped: {name} is not installed");
    }
    found
}

/// Returns the outputs of our processor and of QEMU's for the code, with `data` of `size` bytes at [`DATA`].
fn outputs(
    (target, qemu): (&Target, &Path),
    name: &str,
    code: Vec<u8>,
    bytes: &[u8],
    size: u32,
) -> (Vec<u8>, Vec<u8>) {
    let code_size = code.len() as u32;
    let flags = common::READABLE | common::EXECUTABLE;
    let loads = [Load { address: CODE, flags, bytes: code, size: code_size }, data(DATA, bytes, size)];
    let program = if target.wide { elf_64(CODE, &loads) } else { elf(CODE, &loads) };

    let core = Core { isa: target.isa.parse().unwrap(), ..Core::default() };
    let mut ours = Vec::new();
    let result = bare::run(&Image::load(&program, &core).unwrap(), None, 1 << 40, &mut ours).unwrap();
    assert_eq!((result.exit_code, result.trap), (Some(0), None), "{name}");

    let file = std::env::temp_dir().join(format!("nicety-hpu-{name}-{}.elf", std::process::id()));
    std::fs::write(&file, &program).unwrap();
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    let theirs = Command::new(qemu).args(["-cpu", target.cpu]).arg(&file).output().unwrap();
    let error = String::from_utf8_lossy(&theirs.stderr);
    assert_eq!(theirs.status.code(), Some(0), "{name}: {error}");
    std::fs::remove_file(&file).unwrap();
    assert_eq!(ours.len(), theirs.stdout.len(), "{name}");
    (ours, theirs.stdout)
}

fn word(bytes: &[u8], index: usize) -> u32 {
    u32::from_le_bytes(bytes[4 * index..][..4].try_into().unwrap())
}

#[test]
fn random_programs_agree_with_qemu() {
    random_programs_agree(&RV32);
}

#[test]
fn random_programs_of_rv64_agree_with_qemu() {
    random_programs_agree(&RV64);
}

fn random_programs_agree(target: &Target) {
    let Some(qemu) = tool(target.emulator) else { return };
    let (output, register) = (target.output(), target.register() / 4);
    for seed in 0..u64::from(cases(4_000).min(100_000).div_ceil(BATCH)) {
        let mut random = Random(seed);
        let mut items: Vec<_> = (0..BATCH).flat_map(|_| program(&mut random, target)).collect();
        items.extend(exit().map(Item::Word));
        let bytes: Vec<u8> = (0..DATA_SIZE / 4).flat_map(|_| float_bits(&mut random).to_le_bytes()).collect();
        let name = format!("random-{}", target.emulator);
        let (ours, theirs) = outputs((target, &qemu), &name, assemble(&items), &bytes, 4096);
        assert_eq!(ours.len(), BATCH as usize * output);
        for (program, (ours, theirs)) in ours.chunks(output).zip(theirs.chunks(output)).enumerate() {
            for at in 0..output / 4 {
                let place = match (4 * at as u32).checked_sub(DUMP).map(|at| at / 4) {
                    None => format!("data + {}", 4 * at),
                    Some(number @ 0..32) => format!("f{number}"),
                    Some(32 | 33) => "fcsr".to_owned(),
                    Some(word) => format!("word {} of x{}", (word - 34) % register, (word - 34) / register),
                };
                let (our, their) = (word(ours, at), word(theirs, at));
                assert!(our == their, "seed {seed}, program {program}: {place} is {our:#x}, not {their:#x}");
            }
        }
    }
}

/// A compiled program has QEMU's output, exit code and number of instructions, which QEMU logs one by one.
#[test]
fn compiled_programs_agree_with_qemu() {
    let programs: [(&Target, &[u8]); 2] =
        [(&RV32, include_bytes!("data/program.elf")), (&RV64, include_bytes!("data/program-64.elf"))];
    for (target, program) in programs {
        let Some(qemu) = tool(target.emulator) else { continue };
        let core = Core { isa: target.isa.parse().unwrap(), ..Core::default() };
        let mut output = Vec::new();
        let ours = bare::run(&Image::load(program, &core).unwrap(), None, 1 << 20, &mut output).unwrap();
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
        let file = file.join(if target.wide { "program-64.elf" } else { "program.elf" });
        // The option has another name since QEMU 8.1.
        let theirs = ["-one-insn-per-tb", "-singlestep"].map(|single| {
            Command::new(&qemu).args([single, "-d", "nochain,exec"]).arg(&file).output().unwrap()
        });
        let theirs = theirs.iter().find(|run| run.status.code() == Some(42)).expect("QEMU runs it");
        assert_eq!(output, theirs.stdout);
        let log = String::from_utf8_lossy(&theirs.stderr);
        let instructions = log.lines().filter(|line| line.starts_with("Trace ")).count() as u64;
        assert_eq!((ours.exit_code, ours.instructions), (Some(42), instructions), "{}", target.emulator);
    }
}

/// Every operation on floats in every rounding mode, with its flags, on many operands.
#[test]
fn float_operations_agree_with_qemu() {
    const MODES: [u32; 5] = [RNE, RTZ, RDN, RUP, RMM];
    let Some(qemu) = tool("qemu-riscv32") else { return };
    let mut random = Random(1);
    let triples = cases(20_000).min(1_000_000);
    let operands: Vec<u8> = (0..3 * triples).flat_map(|_| float_bits(&mut random).to_le_bytes()).collect();

    // Operands are in fa0 to fa2, and a0 has the first one too. A float result is in fa3, an integer one in
    // a3.
    let mut operations = Vec::new();
    for mode in MODES {
        let float = FLOAT.iter().map(|f| f(FA3, FA0, FA1));
        let fused = FUSED.iter().map(|f| f(FA3, FA0, FA1, FA2));
        let from = FROM_INTEGER.iter().map(|f| f(FA3, A0));
        let floats = float.chain(fused).chain(from).chain([fsqrt_s(FA3, FA0)]);
        operations.extend(floats.map(|word| [with_rounding(word, mode), fmv_x_w(A3, FA3)]));
        operations.extend(TO_INTEGER.iter().map(|f| [with_rounding(f(A3, FA0), mode), nop()]));
    }
    operations.extend(SELECT.iter().map(|f| [f(FA3, FA0, FA1), fmv_x_w(A3, FA3)]));
    operations.extend(COMPARE.iter().map(|f| [f(A3, FA0, FA1), nop()]));
    operations.push([fclass_s(A3, FA0), nop()]);

    let size = 8 * operations.len() as u32;
    let output = DATA + 12 * triples;
    let mut code = [&li(S0, DATA)[..], &li(S1, output), &li(S2, output)].concat();
    let start = code.len();
    code.extend([flw(FA0, 0, S0), flw(FA1, 4, S0), flw(FA2, 8, S0), lw(A0, 0, S0)]);
    for (at, words) in operations.iter().enumerate() {
        code.push(csrrwi(ZERO, FFLAGS, 0));
        code.extend(words);
        let at = 8 * at as i32;
        code.extend([csrrs(A4, FFLAGS, ZERO), sw(A3, at, S1), sw(A4, at + 4, S1)]);
    }
    code.extend([addi(S1, S1, size as i32), addi(S0, S0, 12)]);
    code.push(bne(S0, S2, 4 * (start as i32 - code.len() as i32)));
    code.extend(write_out(output, size * triples));
    code.extend(exit());

    let memory = 12 * triples + size * triples;
    let (ours, theirs) = outputs((&RV32, &qemu), "floats", bytes(&code), &operands, memory);
    assert_eq!(ours.len() as u32, size * triples);
    for at in 0..ours.len() / 8 {
        let (triple, operation) = (at / operations.len(), at % operations.len());
        let [our, their] = [&ours, &theirs].map(|all| (word(all, 2 * at), word(all, 2 * at + 1)));
        assert!(
            our == their,
            "{:#010x} of {:x?} gives (bits, flags) {our:x?}, not {their:x?}",
            operations[operation][0],
            [0, 1, 2].map(|i| word(&operands, 3 * triple + i)),
        );
    }
}
