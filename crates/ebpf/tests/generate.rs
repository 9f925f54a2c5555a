//! Random programs that Linux's verifier takes, nearly always.
//!
//! They have scalars in r0 to r5 and on the stack, accesses to the packet between checks, and helpers on maps of all types.

use nicety_ebpf::asm::*;
use nicety_ebpf::instruction::{ALU32, ALU64, JMP, JMP32, LDX, MODE_SIGNED, REGISTER};
use nicety_ebpf::{Helper, Instruction, MapDefinition, MapKind};
use std::collections::{BTreeMap, BTreeSet};

/// SplitMix64.
#[derive(Clone)]
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u64) as usize]
    }

    /// A constant, often one at a limit.
    fn imm(&mut self) -> i32 {
        match self.below(4) {
            0 => self.pick(&[0, 1, -1, i32::MAX, i32::MIN, 0xffff, 0x80, 31, 32]),
            1 => self.below(256) as i32,
            _ => self.next() as i32,
        }
    }
}

/// The map of a type, by its number in a program.
pub(crate) fn maps() -> Vec<MapDefinition> {
    let map = |kind: MapKind, key_size, value_size, max_entries, flags| MapDefinition {
        name: kind.name().to_owned(),
        kind: kind as u32,
        key_size,
        value_size,
        max_entries,
        flags,
        ..MapDefinition::default()
    };
    let zero_seed = 1 << 6;
    let inner = map(MapKind::Array, 4, 16, 4, 0);
    let mut maps = vec![
        map(MapKind::Array, 4, 16, 4, 0),
        map(MapKind::Hash, 8, 16, 4, 0),
        map(MapKind::PerCpuArray, 4, 16, 4, 0),
        map(MapKind::PerCpuHash, 4, 16, 4, 0),
        map(MapKind::LruHash, 4, 16, 4, 0),
        map(MapKind::LruPerCpuHash, 4, 16, 4, 0),
        map(MapKind::Lpm, 8, 16, 4, 1),
        map(MapKind::Hash, 4, 16, 4, 1),
        map(MapKind::Queue, 0, 16, 3, 0),
        map(MapKind::Stack, 0, 16, 3, 0),
        map(MapKind::Bloom, 0, 16, 64, zero_seed),
        map(MapKind::Ring, 0, 0, 4096, 0),
        map(MapKind::Programs, 4, 4, 4, 0),
        map(MapKind::Devices, 4, 4, 4, 0),
        map(MapKind::DeviceHash, 4, 4, 4, 0),
        map(MapKind::Cpus, 4, 4, 4, 0),
        map(MapKind::Sockets, 4, 4, 4, 0),
        map(MapKind::ArrayOfMaps, 4, 4, 2, 0),
        map(MapKind::HashOfMaps, 4, 4, 2, 0),
        map(MapKind::PerfEvents, 4, 4, 2, 0),
        map(MapKind::LruHash, 4, 16, 4, 2),
        inner.clone(),
    ];
    for map in &mut maps {
        if matches!(map.kind, 12 | 13) {
            map.inner = Some(Box::new(inner.clone()));
        }
    }
    maps
}

/// The number of the map that maps of maps have at key 1.
pub(crate) const INNER: usize = 21;
const RING: u32 = 11;
const PROGRAMS: u32 = 12;
const PERF: u32 = 19;

/// Bytes of the packet that a program has proved.
const PROVED: i16 = 40;
/// Places on the stack: scalars, a key, a value, and a further buffer.
const KEY: i16 = -144;
const VALUE: i16 = -168;
const BUFFER: i16 = -232;

/// A program, the first slots of its functions, and the counts of what it has.
pub(crate) struct Generated {
    pub(crate) slots: Vec<Instruction>,
    pub(crate) functions: Vec<usize>,
    pub(crate) counts: BTreeMap<String, u64>,
}

pub(crate) struct Generator {
    random: Random,
    out: Vec<Instruction>,
    /// Scalars that are written: bits of registers.
    ready: u16,
    counts: BTreeMap<String, u64>,
    nesting: u32,
    /// Whether r6 to r8 are context, packet and its end.
    packet: bool,
    /// Whether it has only what the cards' tests have: arrays, and helpers without state.
    plain: bool,
    /// Slots that call a function or name one, and the number of the function.
    calls: Vec<(usize, usize)>,
}

impl Generator {
    pub(crate) fn generate(random: Random) -> Generated {
        Generator::of(random, false)
    }

    /// A program with arrays alone, and with helpers that change nothing else.
    pub(crate) fn plain(random: Random) -> Generated {
        Generator::of(random, true)
    }

    fn of(random: Random, plain: bool) -> Generated {
        let mut g = Generator {
            random,
            out: Vec::new(),
            ready: 0,
            counts: BTreeMap::new(),
            nesting: 0,
            packet: true,
            plain,
            calls: Vec::new(),
        };
        g.out.push(mov(6, 1));
        g.prove();
        g.fill_stack();
        for _ in 0..3 + g.random.below(12) {
            g.statement();
        }
        g.end();
        let mut functions = vec![0];
        let called: BTreeSet<usize> = g.calls.iter().map(|(_, function)| *function).collect();
        g.packet = false;
        for function in called {
            let first = g.out.len();
            functions.push(first);
            g.function(function);
            for (slot, _) in g.calls.iter().filter(|(_, called)| *called == function) {
                g.out[*slot].imm = (first - slot - 1) as i32;
            }
        }
        Generated { slots: g.out, functions, counts: g.counts }
    }

    fn count(&mut self, what: impl Into<String>) {
        *self.counts.entry(what.into()).or_default() += 1;
    }

    /// Loads the packet's pointers, and leaves where it is too short.
    fn prove(&mut self) {
        let value = self.random.imm();
        self.out.extend([
            load(W, 7, 6, 0),
            load(W, 8, 6, 4),
            mov(1, 7),
            alu64_imm(ADD, 1, i32::from(PROVED)),
            jump(0xb0, 1, 8, 2),
            mov_imm(0, value),
            exit(),
        ]);
        self.ready = 0;
    }

    fn fill_stack(&mut self) {
        for slot in 1..=16 {
            let imm = self.random.imm();
            self.out.push(store_imm(DW, 10, -8 * slot, imm));
        }
    }

    /// A scalar register, written now where none is.
    fn scalar(&mut self) -> u8 {
        let ready: Vec<u8> = (0..6).filter(|register| self.ready & (1 << register) != 0).collect();
        if ready.is_empty() || self.random.below(4) == 0 {
            let register = self.random.below(6) as u8;
            self.fresh(register);
            return register;
        }
        self.random.pick(&ready)
    }

    fn fresh(&mut self, register: u8) {
        let value = self.random.next();
        match self.random.below(4) {
            0 => self.out.extend(constant(register, value)),
            1 => {
                let slot = 1 + self.random.below(16) as i16;
                self.out.push(load(DW, register, 10, -8 * slot));
            }
            _ => {
                let imm = self.random.imm();
                self.out.push(mov_imm(register, imm));
            }
        }
        self.ready |= 1 << register;
    }

    /// Registers behind a call: r0 is a scalar, r1 to r5 are gone.
    fn called(&mut self) {
        self.ready = 1;
    }

    fn statement(&mut self) {
        match self.random.below(if self.packet { 22 } else { 9 }) {
            0..=3 => self.arithmetic(),
            4 => self.order(),
            5 => self.condition(),
            6 => self.stack(),
            7 => self.atomic_stack(),
            8 => self.bounded_loop(),
            9..=11 => self.packet_access(),
            12..=15 => self.map_call(),
            16 | 17 if self.plain => self.arithmetic(),
            16 => self.adjust(),
            17 => self.queue_call(),
            18 => self.local_call(),
            19 => self.callback(),
            20 => self.packet_call(),
            _ => self.other_call(),
        }
    }

    fn arithmetic(&mut self) {
        let dst = self.scalar();
        let class = self.random.pick(&[ALU32, ALU64]);
        let operation = self.random.pick(&[ADD, SUB, MUL, DIV, OR, AND, LSH, RSH, MOD, XOR, MOV, ARSH]);
        let signed = matches!(operation, DIV | MOD) && self.random.below(2) == 0;
        let bits = if class == ALU64 { 64 } else { 32 };
        let offset = i16::from(signed);
        self.count(format!("alu{bits}"));
        self.count(format!("alu {operation:#04x}"));
        if self.random.below(2) == 0 {
            let src = self.scalar();
            self.out.push(Instruction { code: class | REGISTER | operation, dst, src, offset, imm: 0 });
            return;
        }
        let imm = match operation {
            LSH | RSH | ARSH => self.random.below(bits) as i32,
            DIV | MOD => self.random.imm() | 1,
            _ => self.random.imm(),
        };
        self.out.push(Instruction { code: class | operation, dst, src: 0, offset, imm });
    }

    fn order(&mut self) {
        let (dst, src) = (self.scalar(), self.scalar());
        let bits = self.random.pick(&[16, 32, 64]);
        let choice = self.random.below(5);
        self.count(["to little", "to big", "byte swap", "extend 64", "negate"][choice as usize]);
        self.out.push(match choice {
            0 => Instruction { code: ALU32 | 0xd0, dst, src: 0, offset: 0, imm: bits },
            1 => Instruction { code: ALU32 | 0xd8, dst, src: 0, offset: 0, imm: bits },
            2 => Instruction { code: ALU64 | 0xd0, dst, src: 0, offset: 0, imm: bits },
            3 => {
                let class = self.random.pick(&[ALU32, ALU64]);
                let widths: &[i16] = if class == ALU64 { &[8, 16, 32] } else { &[8, 16] };
                let offset = self.random.pick(widths);
                Instruction { code: class | REGISTER | MOV, dst, src, offset, imm: 0 }
            }
            _ => {
                let class = self.random.pick(&[ALU32, ALU64]);
                Instruction { code: class | 0x80, dst, src: 0, offset: 0, imm: 0 }
            }
        });
    }

    /// Statements that run on one side of a condition.
    fn condition(&mut self) {
        let dst = self.scalar();
        let class = self.random.pick(&[JMP, JMP32]);
        let condition = self.random.pick(&[0x10, 0x20, 0x30, 0x40, 0x50, 0x60, 0x70, 0xa0, 0xb0, 0xc0, 0xd0]);
        self.count(if class == JMP { "jump" } else { "jump32" });
        let (code, src, imm) = if self.random.below(2) == 0 {
            (class | REGISTER | condition, self.scalar(), 0)
        } else {
            (class | condition, 0, self.random.imm())
        };
        let at = self.out.len();
        self.out.push(Instruction { code, dst, src, offset: 0, imm });
        let before = self.ready;
        self.nested(2);
        self.ready &= before;
        self.out[at].offset = (self.out.len() - at - 1) as i16;
    }

    fn nested(&mut self, most: u64) {
        self.nesting += 1;
        if self.nesting < 4 {
            for _ in 0..1 + self.random.below(most) {
                self.statement();
            }
        } else {
            self.arithmetic();
        }
        self.nesting -= 1;
    }

    fn stack(&mut self) {
        let size = self.random.pick(&[B, H, W, DW]);
        let bytes = match size {
            B => 1,
            H => 2,
            W => 4,
            _ => 8,
        };
        let at = -128 + (self.random.below(128 / bytes) * bytes) as i16;
        let register = self.scalar();
        let imm = self.random.imm();
        self.count("stack");
        self.out.push(match self.random.below(4) {
            0 => store(size, 10, at, register),
            1 => store_imm(size, 10, at, imm),
            2 if size != DW => {
                Instruction { code: LDX | MODE_SIGNED | size, dst: register, src: 10, offset: at, imm: 0 }
            }
            _ => load(size, register, 10, at),
        });
    }

    fn operation(&mut self) -> i32 {
        let operation = self.random.pick(&[0, 0x40, 0x50, 0xa0, 1, 0x41, 0x51, 0xa1, 0xe1, 0xf1]);
        self.count(format!("atomic {operation:#x}"));
        operation
    }

    fn atomic_stack(&mut self) {
        let operation = self.operation();
        self.fresh(0);
        let src = 1 + self.random.below(5) as u8;
        self.fresh(src);
        let (size, at) = if self.random.below(2) == 0 { (W, 4) } else { (DW, 8) };
        let at = -128 + at * self.random.below(16) as i16;
        self.out.push(atomic(size, operation, 10, at, src));
    }

    /// A loop with a counter in r9, which no statement changes.
    fn bounded_loop(&mut self) {
        if self.nesting > 0 {
            return self.arithmetic();
        }
        self.count("loop");
        self.ready = 0;
        let rounds = 1 + self.random.below(6) as i32;
        self.out.push(mov_imm(9, rounds));
        let begin = self.out.len();
        self.nesting += 2;
        self.nested(3);
        self.nesting -= 2;
        self.ready = 0;
        self.out.push(alu64_imm(SUB, 9, 1));
        let distance = begin as i64 - self.out.len() as i64 - 1;
        self.out.push(jump_imm(JNE, 9, 0, distance as i16));
    }

    fn packet_access(&mut self) {
        let size = self.random.pick(&[B, H, W, DW]);
        let at = self.random.below(PROVED as u64 - 7) as i16;
        let register = self.scalar();
        let imm = self.random.imm();
        let choice = self.random.below(4);
        self.count(
            ["packet store", "packet store constant", "packet load signed", "packet load"][choice as usize],
        );
        self.out.push(match choice {
            0 => store(size, 7, at, register),
            1 => store_imm(size, 7, at, imm),
            2 if size != DW => {
                Instruction { code: LDX | MODE_SIGNED | size, dst: register, src: 7, offset: at, imm: 0 }
            }
            _ => load(size, register, 7, at),
        });
    }

    /// Writes a key and a value to the stack.
    fn key_and_value(&mut self, map: &MapDefinition) {
        let key = self.random.below(6) as i32;
        if map.kind == MapKind::Lpm as u32 {
            let length = self.random.pick(&[0, 8, 12, 16, 24, 31, 32, 32, 33]);
            let address = (self.random.below(4) as i32) << self.random.pick(&[0, 8, 24]);
            self.out.extend([store_imm(W, 10, KEY, length), store_imm(W, 10, KEY + 4, address)]);
        } else {
            self.out.push(store_imm(DW, 10, KEY, key));
        }
        for at in [VALUE, VALUE + 8] {
            let imm = self.random.imm();
            self.out.push(store_imm(DW, 10, at, imm));
        }
    }

    fn pointers(&mut self, number: u32) {
        self.out.extend(map(1, number));
        self.out.extend([mov(2, 10), alu64_imm(ADD, 2, i32::from(KEY))]);
    }

    fn call(&mut self, helper: Helper) {
        self.count(helper.name());
        self.out.push(call(helper));
        self.called();
    }

    fn map_call(&mut self) {
        let all = maps();
        let number = match self.plain {
            true => self.random.pick(&[0, 2]),
            false => self.random.pick(&[0, 1, 2, 3, 4, 5, 6, 7, 13, 14, 17, 18, 20]),
        };
        let map = &all[number as usize];
        self.count(format!("map {}", map.name));
        self.key_and_value(map);
        self.pointers(number);
        let changes = number < 8 || number == 20;
        match self.random.below(3) {
            0 if changes => {
                let flags = self.random.pick(&[0, 0, 0, 1, 2, 3]);
                self.out.extend([mov(3, 10), alu64_imm(ADD, 3, i32::from(VALUE)), mov_imm(4, flags)]);
                self.call(Helper::MapUpdate);
                self.keep_result();
            }
            1 if changes && map.kind != MapKind::PerCpuArray as u32 && map.kind != MapKind::Array as u32 => {
                self.call(Helper::MapDelete);
                self.keep_result();
            }
            _ => self.lookup(map),
        }
    }

    /// Stores r0 where a later statement reads it.
    fn keep_result(&mut self) {
        let slot = 1 + self.random.below(16) as i16;
        self.out.push(store(DW, 10, -8 * slot, 0));
    }

    fn lookup(&mut self, map: &MapDefinition) {
        self.call(Helper::MapLookup);
        let at = self.out.len();
        self.out.push(jump_imm(JEQ, 0, 0, 0));
        if matches!(map.kind, 12 | 13) {
            self.count("lookup in a map of a map");
            self.out.push(store_imm(DW, 10, KEY, 1));
            self.out.extend([mov(1, 0), mov(2, 10), alu64_imm(ADD, 2, i32::from(KEY))]);
            self.call(Helper::MapLookup);
            self.out.push(jump_imm(JEQ, 0, 0, 1));
            self.out.push(store_imm(W, 0, 4, 77));
        } else if matches!(map.kind, 14 | 25) {
            self.out.push(load(W, 1, 0, 0));
            self.out.push(store(DW, 10, -8, 1));
        } else {
            self.value_access();
        }
        self.out[at].offset = (self.out.len() - at - 1) as i16;
        self.ready = 0;
        self.fresh(0);
    }

    /// Accesses to a value at r0.
    fn value_access(&mut self) {
        self.out.push(mov(3, 0));
        self.ready = 0;
        let imm = self.random.imm();
        self.out.extend([mov_imm(1, imm), mov_imm(0, 5)]);
        match self.random.below(4) {
            0 => {
                let operation = self.operation();
                let (size, at) = self.random.pick(&[(W, 0), (W, 4), (W, 12), (DW, 0), (DW, 8)]);
                self.out.push(atomic(size, operation, 3, at, 1));
                self.out.push(store(DW, 10, -16, 1));
            }
            1 => {
                let size = self.random.pick(&[B, H, W, DW]);
                let at = self.random.below(9) as i16;
                self.out.push(store(size, 3, at, 1));
            }
            _ => {
                let size = self.random.pick(&[B, H, W, DW]);
                let at = self.random.below(9) as i16;
                self.out.extend([load(size, 1, 3, at), store(DW, 10, -24, 1)]);
            }
        }
    }

    fn queue_call(&mut self) {
        let number = self.random.pick(&[8u32, 8, 9, 9, 10, RING, RING]);
        let all = maps();
        self.count(format!("map {}", all[number as usize].name));
        for at in [VALUE, VALUE + 8] {
            let imm = self.random.below(4) as i32;
            self.out.push(store_imm(DW, 10, at, imm));
        }
        self.out.extend(map(1, number));
        self.out.extend([mov(2, 10), alu64_imm(ADD, 2, i32::from(VALUE))]);
        if number == RING {
            return self.ring_call();
        }
        let helper = self.random.pick(&[Helper::MapPush, Helper::MapPop, Helper::MapPeek, Helper::MapPush]);
        let helper = if number == 10 && helper == Helper::MapPop { Helper::MapPeek } else { helper };
        if helper == Helper::MapPush {
            let flags = self.random.pick(&[0, 0, 2, 1]);
            self.out.push(mov_imm(3, flags));
        }
        self.call(helper);
        self.keep_result();
        self.out.extend([load(DW, 1, 10, VALUE), store(DW, 10, -32, 1)]);
    }

    fn ring_call(&mut self) {
        match self.random.below(3) {
            0 => {
                let size = 1 + self.random.below(16) as i32;
                self.out.extend([mov_imm(3, size), mov_imm(4, 0)]);
                self.call(Helper::RingbufOutput);
            }
            1 => {
                let fact = self.random.below(5) as i32;
                self.out.push(mov_imm(2, fact));
                self.call(Helper::RingbufQuery);
            }
            _ => {
                let size = self.random.pick(&[16, 64, 1500, 4000]);
                self.out.extend([mov_imm(2, size), mov_imm(3, 0)]);
                self.call(Helper::RingbufReserve);
                let finish = self.random.pick(&[Helper::RingbufSubmit, Helper::RingbufDiscard]);
                self.out.extend([jump_imm(JEQ, 0, 0, 4), store_imm(DW, 0, 8, 5), mov(1, 0), mov_imm(2, 0)]);
                self.call(finish);
                self.ready = 0;
                self.fresh(0);
                return;
            }
        }
        self.keep_result();
    }

    /// A helper after which the packet's pointers are read again.
    fn adjust(&mut self) {
        let helper = self.random.pick(&[Helper::AdjustHead, Helper::AdjustTail, Helper::AdjustMeta]);
        let delta = match self.random.below(4) {
            0 => self.random.pick(&[-300, -216, -217, 300, 4000, -2000]),
            1 => 4 * (self.random.below(20) as i32 - 10),
            _ => self.random.below(40) as i32 - 20,
        };
        self.out.extend([mov(1, 6), mov_imm(2, delta)]);
        self.call(helper);
        self.keep_result();
        self.prove();
    }

    fn local_call(&mut self) {
        self.count("call");
        for register in 1..=5 {
            self.fresh(register);
        }
        self.calls.push((self.out.len(), 0));
        self.out.push(call_local(0));
        self.called();
    }

    /// `bpf_loop` or `bpf_for_each_map_elem` with a function and a place on the stack.
    fn callback(&mut self) {
        let each = self.random.below(2) == 0;
        if each {
            let number = self.random.pick(&[0, 2]);
            self.out.extend(map(1, number));
        } else {
            let rounds = self.random.below(20) as i32;
            self.out.push(mov_imm(1, rounds));
        }
        self.calls.push((self.out.len(), if each { 2 } else { 1 }));
        self.out.extend(function(2, 0));
        self.out.extend([mov(3, 10), alu64_imm(ADD, 3, -64), mov_imm(4, 0)]);
        self.call(if each { Helper::ForEachMapElem } else { Helper::Loop });
        self.keep_result();
    }

    fn packet_call(&mut self) {
        match self.random.below(if self.plain { 2 } else { 4 }) {
            0 => {
                self.out.push(mov(1, 6));
                self.call(Helper::BuffLen);
            }
            1 => self.checksum(),
            choice => {
                let offset = self.random.pick(&[0, 1, 13, 30, 50, 1000, 70_000]);
                let length = 1 + self.random.below(32) as i32;
                self.fill_buffer();
                self.out.extend([
                    mov(1, 6),
                    mov_imm(2, offset),
                    mov(3, 10),
                    alu64_imm(ADD, 3, i32::from(BUFFER)),
                ]);
                self.out.push(mov_imm(4, length));
                self.call(if choice == 2 { Helper::LoadBytes } else { Helper::StoreBytes });
                self.keep_result();
                self.out.extend([load(DW, 1, 10, BUFFER), store(DW, 10, -40, 1)]);
                if choice == 3 {
                    self.prove();
                    self.fresh(0);
                }
                return;
            }
        }
        self.keep_result();
    }

    fn fill_buffer(&mut self) {
        for at in 0..4 {
            let imm = self.random.imm();
            self.out.push(store_imm(DW, 10, BUFFER + 8 * at, imm));
        }
    }

    fn checksum(&mut self) {
        self.fill_buffer();
        let (from, to) = (4 * self.random.below(5) as i32, 4 * self.random.below(5) as i32);
        let seed = self.random.imm();
        self.out.extend([mov(1, 10), alu64_imm(ADD, 1, i32::from(BUFFER)), mov_imm(2, from)]);
        self.out.extend([
            mov(3, 10),
            alu64_imm(ADD, 3, i32::from(BUFFER) + 8),
            mov_imm(4, to),
            mov_imm(5, seed),
        ]);
        self.call(Helper::CsumDiff);
    }

    fn other_call(&mut self) {
        let choice = if self.plain { self.random.pick(&[0, 1, 4]) } else { self.random.below(5) };
        match choice {
            0 => {
                self.call(Helper::Cpu);
                self.keep_result();
            }
            1 => {
                let flags = self.random.pick(&[0, 0, 1]);
                self.out.extend([mov_imm(1, 1), mov_imm(2, flags)]);
                self.call(Helper::Redirect);
                self.keep_result();
            }
            2 => {
                let number = self.random.pick(&[13, 14, 15, 16]);
                let (key, flags) =
                    (self.random.below(6) as i32, self.random.pick(&[0, 1, 2, 3, 4, 8, 16, 24, 26]));
                self.count(format!("map {}", maps()[number as usize].name));
                self.out.extend(map(1, number));
                self.out.extend([mov_imm(2, key), mov_imm(3, flags)]);
                self.call(Helper::RedirectMap);
                self.keep_result();
            }
            3 => {
                self.count(format!("map {}", maps()[PERF as usize].name));
                let size = 1 + self.random.below(16) as i32;
                self.fill_buffer();
                self.out.push(mov(1, 6));
                self.out.extend(map(2, PERF));
                let flags =
                    self.random.pick(&[0u64, 1, 5, 0xffff_ffff, 0x5_ffff_ffff, 1 << 60, 0xf_ffff_0000_0000]);
                self.out.extend(constant(3, flags));
                self.out.extend([mov(4, 10), alu64_imm(ADD, 4, i32::from(BUFFER)), mov_imm(5, size)]);
                self.call(Helper::PerfEventOutput);
                self.keep_result();
            }
            _ => {
                self.count("map prog_array");
                self.out.push(mov(1, 6));
                self.out.extend(map(2, PROGRAMS));
                let key = self.random.below(6) as i32;
                self.out.push(mov_imm(3, key));
                self.call(Helper::TailCall);
                self.ready = 0;
                self.fresh(0);
            }
        }
    }

    fn end(&mut self) {
        // Mixes some of the stack into the result, so that differences show.
        self.fresh(0);
        for slot in [1, 2, 3, 4, 5, 9, 16] {
            self.out.extend([load(DW, 1, 10, -8 * slot), alu64_imm(MUL, 0, 31), alu64(ADD, 0, 1)]);
        }
        if self.random.below(4) > 0 {
            let verdict = self.random.below(5) as i32;
            self.out.push(store(DW, 7, 0, 0));
            self.out.push(mov_imm(0, verdict));
        }
        self.out.push(exit());
    }

    /// A function of numbers, or a callback: of `bpf_loop` or of a walk.
    fn function(&mut self, number: usize) {
        self.count("function");
        if number > 0 {
            let value = if number == 2 { 3 } else { 1 };
            let pointer = if number == 2 { 4 } else { 2 };
            if number == 2 {
                self.out.push(load(DW, 3, 3, 0));
            }
            let limit = self.random.below(30) as i32;
            self.out.extend([
                load(DW, 5, pointer, 0),
                alu64_imm(MUL, 5, 7),
                alu64(ADD, 5, value),
                store(DW, pointer, 0, 5),
                mov_imm(0, 0),
                jump_imm(JGT, value, limit, 1),
                exit(),
                mov_imm(0, 1),
                exit(),
            ]);
            return;
        }
        self.fill_stack();
        self.ready = 0b11_1110;
        for _ in 0..2 + self.random.below(5) {
            self.statement();
        }
        let result = self.scalar();
        self.out.extend([mov(0, result), exit()]);
    }
}

/// Whether a slot names a map or a function of the program.
pub(crate) fn names_map(slot: &Instruction) -> bool {
    slot.is_wide() && slot.src == nicety_ebpf::instruction::CONSTANT_MAP
}
