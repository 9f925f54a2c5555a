//! The interpreter: executes a slice of a context.
//!
//! Blocks carry the cumulative cycles of their operations, so that a block costs one addition and one comparison with
//! the limit. Only memory latencies are added during execution. Then the part of the block that may still begin before
//! the limit is looked up anew: limits are exact to the instruction.

use crate::block::{Block, Count};
use crate::context::{Context, Exit, Pending};
use crate::core::Misaligned;
use crate::costs::CycleCosts;
use crate::decode::{Kind, csr};
use crate::image::Image;
use crate::memory::{AccessCost, AddressSpace, Reference};
use crate::op::Op;
use crate::overlap::{Overlap, Touched, Window};
use crate::reservations::Reservations;
use crate::trap::Access;

mod ends;
mod float;

pub(crate) use ends::shape;

/// `a / b` as defined by RISC-V: no trap for zero or overflow.
const fn div(a: u32, b: u32) -> u32 {
    if b == 0 { u32::MAX } else { (a as i32).wrapping_div(b as i32) as u32 }
}

const fn rem(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { (a as i32).wrapping_rem(b as i32) as u32 }
}

/// Returns each byte that is not zero with all its bits set.
const fn or_combine(a: u32) -> u32 {
    let any = ((a & 0x7f7f_7f7f) + 0x7f7f_7f7f) | a;
    (any >> 7 & 0x0101_0101) * 0xff
}

const fn high(product: i64) -> u32 {
    (product >> 32) as u32
}

/// Maximum cycles of a slice, so that its counts fit a [`Count`].
const LONGEST: u64 = 1 << 31;

/// The position of a slice: its block, the cycle at the block's start (with latencies so far), and the slice's counts
/// before the block.
#[derive(Clone, Copy)]
struct Place<'i> {
    block: &'i Block,
    cycle: u64,
    count: Count,
}

impl Context {
    /// Executes up to, not past, the next point at which the order between cores matters. No instruction begins at or
    /// after cycle `until`. A slice of 2^31 cycles ends by itself.
    ///
    /// Afterwards, [`cycle`](Context::cycle) is the start of the next instruction. Any division into slices gives the
    /// same state and the same cycles, unless code is fetched through a cache. There, a slice that begins inside a
    /// block looks up the rest of its lines again, and other cores may have evicted them in between.
    pub fn run(
        &mut self,
        image: &Image,
        space: &mut AddressSpace<'_>,
        reservations: &mut Reservations,
        until: u64,
    ) -> Exit {
        // The same code is instantiated several times, so that the variant without a cache or with in-order issue costs
        // no time here.
        match (&image.core().overlap, space.has_code_cache()) {
            (None, false) => self.run_on::<false, false>(image, space, reservations, until),
            (None, true) => self.run_on::<true, false>(image, space, reservations, until),
            (Some(overlap), cached) => {
                space.take_no_turns();
                self.open_window(overlap, &image.core().costs);
                match cached {
                    false => self.run_on::<false, true>(image, space, reservations, until),
                    true => self.run_on::<true, true>(image, space, reservations, until),
                }
            }
        }
    }

    /// Prepares the window of a core that overlaps instructions for a slice.
    #[inline(never)]
    fn open_window(&mut self, overlap: &Overlap, costs: &CycleCosts) {
        let window = self.window.get_or_insert_with(|| Box::new(Window::new(overlap)));
        window.resume(self.cycle);
        let loaded = std::mem::take(&mut self.loaded);
        if loaded != 0 {
            window.loaded(loaded, self.cycle + u64::from(costs.load_use));
        }
    }

    /// The instructions in flight.
    #[inline(always)]
    fn window(&mut self) -> &mut Window {
        self.window.as_mut().expect("a core that overlaps instructions has a window")
    }

    #[inline(never)]
    #[expect(
        clippy::too_many_lines,
        reason = "the loop keeps its state in registers; a split slows down every instruction"
    )]
    fn run_on<const CACHED: bool, const OVERLAPS: bool>(
        &mut self,
        image: &Image,
        space: &mut AddressSpace<'_>,
        reservations: &mut Reservations,
        until: u64,
    ) -> Exit {
        self.pending = Pending::Nothing;
        // A store to a reserved word must be detected. No word is reserved during a slice.
        let cache_stores = reservations.is_empty();
        if !cache_stores {
            space.forget_stores();
        }
        let last = self.cycle_limit.min(self.cycle.saturating_add(LONGEST));
        let mut bound = until.min(last);
        let (mut pc, mut cycle, mut count) = (self.pc, self.cycle, Count::ZERO);
        let mut from = None;
        // The cycles, without the first, of the jump to this code. Code is fetched in them.
        let mut jumped = if CACHED { std::mem::take(&mut self.jumped) } else { 0 };

        'blocks: loop {
            if OVERLAPS {
                cycle = self.window().enter();
            }
            if self.sp() < self.stack_limit {
                self.rest::<OVERLAPS>(pc, cycle, count);
                return self.overrun(image, space, reservations, from);
            }
            let Some(block) = image.block(pc) else {
                self.rest::<OVERLAPS>(pc, cycle, count);
                return self.nowhere(image, reservations, from);
            };
            if CACHED && cycle < bound {
                let from = if self.fetched == 0 { pc } else { self.fetched };
                let now = cycle + self.time_base;
                if let Some((line, behind)) = space.missing_line(from, block.end, now) {
                    let asked = if self.fetched == 0 && line <= pc { jumped } else { 0 };
                    (self.pc, self.cycle, self.fetched) = (pc, cycle, behind);
                    self.counted(count);
                    return Exit::Fetch { address: line, asked };
                }
                self.fetched = 0;
            }
            if !OVERLAPS && self.loaded != 0 {
                if block.first_reads >> self.loaded & 1 != 0 {
                    cycle += u64::from(image.core().costs.load_use);
                }
                self.loaded = 0;
            }
            'again: loop {
                let mut end = match OVERLAPS {
                    true => block.ops.len(),
                    false => block.within(bound.saturating_sub(cycle)),
                };
                let mut rest = &block.ops[..end];
                while let [op, tail @ ..] = rest {
                    rest = tail;
                    if OVERLAPS && self.window().enter() >= bound {
                        end = usize::from(op.index);
                        break;
                    }
                    let mut touched = Touched::default();
                    let a = self.regs[op.rs1 as usize & 63];
                    let b = self.regs[op.rs2 as usize & 63];

                    macro_rules! set {
                        ($value:expr) => {
                            self.regs[op.rd as usize & 63] = $value
                        };
                    }
                    macro_rules! add_latency {
                        ($extra:expr) => {
                            let extra = $extra;
                            if OVERLAPS {
                                touched.extra = extra;
                            } else if extra != 0 {
                                cycle += u64::from(extra);
                                let next = op.index as usize + 1;
                                end = block.within(bound.saturating_sub(cycle)).max(next);
                                rest = &block.ops[next..end];
                            }
                        };
                    }
                    // Accounts for the cost of a load or store. After its turn the slice may continue.
                    macro_rules! took {
                        ($took:expr, $misaligned:expr) => {
                            let AccessCost { extra, slice } = $took;
                            let extra = extra + $misaligned;
                            if let (false, Some(slice)) = (OVERLAPS, slice) {
                                cycle += u64::from(extra);
                                let behind = u64::from(op.before) + u64::from(image.core().costs.of(op.kind));
                                bound = last.min((cycle + behind).saturating_add(slice));
                                let next = op.index as usize + 1;
                                end = block.within(bound.saturating_sub(cycle)).max(next);
                                rest = &block.ops[next..end];
                            } else {
                                add_latency!(extra);
                            }
                        };
                    }
                    macro_rules! load {
                        ($size:literal, $from:expr) => {{
                            let address = a.wrapping_add(op.imm);
                            if OVERLAPS {
                                touched = Touched { address, size: $size, extra: 0 };
                            }
                            let bytes = match space.load_fast::<$size>(op.rs1, address) {
                                Some(bytes) => bytes,
                                None => {
                                    let reference = Reference {
                                        cycle: cycle + u64::from(op.before),
                                        pc: block.pc.wrapping_add(u32::from(op.offset)),
                                        ..self.reference(image, op, Access::Read, address, $size)
                                    };
                                    match space.load(reference) {
                                        Ok((value, took)) => {
                                            took!(took, misaligned_extra(image, address, $size));
                                            *value.to_le_bytes().first_chunk().expect("at most four bytes")
                                        }
                                        Err(stop) => {
                                            let place = Place { block, cycle, count };
                                            return self.stopped(image, reservations, stop, place, op);
                                        }
                                    }
                                }
                            };
                            set!($from(bytes) as u32);
                            self.regs[0] = 0;
                        }};
                    }
                    macro_rules! store {
                        ($size:literal) => {{
                            let address = a.wrapping_add(op.imm);
                            if OVERLAPS {
                                touched = Touched { address, size: $size, extra: 0 };
                            }
                            let bytes: [u8; $size] =
                                *b.to_le_bytes().first_chunk().expect("at most four bytes");
                            if !space.store_fast::<$size>(op.rs1, address, bytes) {
                                let reference = Reference {
                                    cycle: cycle + u64::from(op.before),
                                    pc: block.pc.wrapping_add(u32::from(op.offset)),
                                    ..self.reference(image, op, Access::Write, address, $size)
                                };
                                match space.store(reference, b, cache_stores) {
                                    Ok((took, shared)) => {
                                        if shared && !cache_stores {
                                            reservations.stored(self.hart, address, $size);
                                        }
                                        took!(took, misaligned_extra(image, address, $size));
                                    }
                                    Err(stop) => {
                                        let place = Place { block, cycle, count };
                                        return self.stopped(image, reservations, stop, place, op);
                                    }
                                }
                            }
                        }};
                    }
                    macro_rules! go {
                        ($target:expr, $cycles:expr) => {{
                            if !OVERLAPS {
                                cycle += u64::from($cycles);
                                if CACHED {
                                    jumped = ($cycles - block.last_before).saturating_sub(1);
                                }
                            }
                            count = count + block.count;
                            pc = $target;
                            // Lines may have been evicted, by another core or by one another.
                            if pc == block.pc && !CACHED {
                                continue 'again;
                            }
                            from = Some(block.last_pc);
                            continue 'blocks;
                        }};
                    }
                    macro_rules! branches {
                        ($taken:expr) => {
                            if OVERLAPS {
                                let step = &block.steps[usize::from(op.index)];
                                self.window().branch(step, op, block.last_pc, $taken);
                            }
                        };
                    }
                    macro_rules! branch {
                        ($taken:expr) => {
                            if $taken {
                                branches!(true);
                                go!(op.imm, block.taken)
                            } else {
                                branches!(false);
                                go!(block.end, block.through)
                            }
                        };
                    }

                    match op.kind {
                        Kind::Nop => {}
                        Kind::Constant => set!(op.imm),
                        Kind::Addi => set!(a.wrapping_add(op.imm)),
                        Kind::Slti => set!(u32::from((a as i32) < op.imm as i32)),
                        Kind::Sltiu => set!(u32::from(a < op.imm)),
                        Kind::Xori => set!(a ^ op.imm),
                        Kind::Ori => set!(a | op.imm),
                        Kind::Andi => set!(a & op.imm),
                        Kind::Slli => set!(a << (op.imm & 31)),
                        Kind::Srli => set!(a >> (op.imm & 31)),
                        Kind::Srai => set!((a as i32 >> (op.imm & 31)) as u32),
                        Kind::Add => set!(a.wrapping_add(b)),
                        Kind::Sub => set!(a.wrapping_sub(b)),
                        Kind::Sll => set!(a << (b & 31)),
                        Kind::Slt => set!(u32::from((a as i32) < b as i32)),
                        Kind::Sltu => set!(u32::from(a < b)),
                        Kind::Xor => set!(a ^ b),
                        Kind::Srl => set!(a >> (b & 31)),
                        Kind::Sra => set!((a as i32 >> (b & 31)) as u32),
                        Kind::Or => set!(a | b),
                        Kind::And => set!(a & b),
                        Kind::Mul => set!(a.wrapping_mul(b)),
                        Kind::Mulh => set!(high(i64::from(a as i32) * i64::from(b as i32))),
                        Kind::Mulhsu => set!(high(i64::from(a as i32) * i64::from(b))),
                        Kind::Mulhu => set!(((u64::from(a) * u64::from(b)) >> 32) as u32),
                        Kind::Div => set!(div(a, b)),
                        Kind::Divu => set!(a.checked_div(b).unwrap_or(u32::MAX)),
                        Kind::Rem => set!(rem(a, b)),
                        Kind::Remu => set!(a.checked_rem(b).unwrap_or(a)),
                        Kind::Lb => load!(1, |v| i32::from(i8::from_le_bytes(v))),
                        Kind::Lh => load!(2, |v| i32::from(i16::from_le_bytes(v))),
                        Kind::Lw => load!(4, u32::from_le_bytes),
                        Kind::Lbu => load!(1, u8::from_le_bytes),
                        Kind::Lhu => load!(2, u16::from_le_bytes),
                        Kind::Sb => store!(1),
                        Kind::Sh => store!(2),
                        Kind::Sw => store!(4),
                        Kind::Csr => {
                            let now = match OVERLAPS {
                                true => self.window().enter(),
                                false => cycle + u64::from(op.before),
                            };
                            let instret = self.instret + count.instructions() + u64::from(op.index);
                            set!(self.counter(op.imm, now, instret));
                        }
                        Kind::Beq => branch!(a == b),
                        Kind::Bne => branch!(a != b),
                        Kind::Blt => branch!((a as i32) < b as i32),
                        Kind::Bge => branch!(a as i32 >= b as i32),
                        Kind::Bltu => branch!(a < b),
                        Kind::Bgeu => branch!(a >= b),
                        Kind::Jal => {
                            set!(block.end);
                            self.regs[0] = 0;
                            branches!(true);
                            go!(op.imm, block.through)
                        }
                        Kind::Jalr => {
                            let target = a.wrapping_add(op.imm) & !1;
                            set!(block.end);
                            self.regs[0] = 0;
                            branches!(true);
                            go!(target, block.through)
                        }
                        Kind::Through => {
                            if !OVERLAPS {
                                cycle += u64::from(block.through);
                                self.loaded = block.last_load;
                                jumped = 0;
                            }
                            count = count + block.count;
                            pc = block.end;
                            from = Some(pc);
                            continue 'blocks;
                        }
                        _ => {
                            if !self.extended(op, a, b) {
                                let place = Place { block, cycle, count };
                                return self.ended(image, reservations, place, op);
                            }
                        }
                    }
                    if OVERLAPS {
                        self.window().step(&block.steps[usize::from(op.index)], touched);
                    }
                }
                let op = &block.ops[end];
                self.stay(Place { block, cycle, count }, op);
                if CACHED && end == 0 {
                    self.jumped = jumped;
                }
                if OVERLAPS {
                    self.cycle = self.window().enter();
                } else if op.kind == Kind::Through {
                    self.loaded = block.last_load;
                }
                return self.limit(image, reservations);
            }
        }
    }

    /// Executes an instruction of Zba, Zbb, Zbs or F. Returns false for others, and for those of F that cannot be
    /// executed. A separate function, since inside the loop it would slow down all other instructions.
    #[inline(never)]
    fn extended(&mut self, op: &Op, a: u32, b: u32) -> bool {
        let value = match op.kind {
            Kind::Sh1add => (a << 1).wrapping_add(b),
            Kind::Sh2add => (a << 2).wrapping_add(b),
            Kind::Sh3add => (a << 3).wrapping_add(b),
            Kind::Andn => a & !b,
            Kind::Orn => a | !b,
            Kind::Xnor => !(a ^ b),
            Kind::Clz => a.leading_zeros(),
            Kind::Ctz => a.trailing_zeros(),
            Kind::Cpop => a.count_ones(),
            Kind::Max => (a as i32).max(b as i32) as u32,
            Kind::Maxu => a.max(b),
            Kind::Min => (a as i32).min(b as i32) as u32,
            Kind::Minu => a.min(b),
            Kind::SextB => i32::from(a as i8) as u32,
            Kind::SextH => i32::from(a as i16) as u32,
            Kind::Rol => a.rotate_left(b & 31),
            Kind::Ror => a.rotate_right(b & 31),
            Kind::Rori => a.rotate_right(op.imm),
            Kind::OrcB => or_combine(a),
            Kind::Rev8 => a.swap_bytes(),
            Kind::Bclr => a & !(1 << (b & 31)),
            Kind::Bext => a >> (b & 31) & 1,
            Kind::Bexti => a >> (op.imm & 31) & 1,
            Kind::Binv => a ^ 1 << (b & 31),
            Kind::Bset => a | 1 << (b & 31),
            kind if kind.is_float() => return self.float(op),
            _ => return false,
        };
        self.regs[op.rd as usize & 63] = value;
        true
    }

    /// Leaves the context before `op`.
    fn stay(&mut self, place: Place<'_>, op: &Op) {
        self.pc = place.block.pc.wrapping_add(u32::from(op.offset));
        self.cycle = match &self.window {
            Some(window) => window.drained(place.block.steps.get(usize::from(op.index))),
            None => place.cycle + u64::from(op.before),
        };
        self.counted(place.count + Count::before(op));
    }

    /// Leaves the context before a block that it does not execute.
    #[inline(always)]
    fn rest<const OVERLAPS: bool>(&mut self, pc: u32, cycle: u64, count: Count) {
        (self.pc, self.cycle) = (pc, if OVERLAPS { self.window().drained(None) } else { cycle });
        self.counted(count);
    }

    const fn counted(&mut self, count: Count) {
        self.instret += count.instructions();
        self.accesses += count.accesses();
    }

    pub(crate) fn reference(
        &self,
        image: &Image,
        op: &Op,
        access: Access,
        address: u32,
        size: u32,
    ) -> Reference {
        Reference {
            access,
            address,
            size,
            base_register: op.rs1,
            stack_pointer: self.sp(),
            misaligned: image.core().misaligned == Misaligned::Costs && !op.kind.is_atomic(),
            in_order: false,
            cycle: 0,
            pc: 0,
        }
    }

    pub(crate) fn counter(&self, number: u32, cycle: u64, instret: u64) -> u32 {
        if number == csr::MHARTID {
            return self.hart;
        }
        let value = match number & csr::WHICH {
            0 => cycle,
            1 => cycle.wrapping_add(self.time_base),
            _ => instret,
        };
        if number & csr::HIGH != 0 { (value >> 32) as u32 } else { value as u32 }
    }
}

pub(crate) fn misaligned_extra(image: &Image, address: u32, size: u32) -> u32 {
    if address.is_multiple_of(size) { 0 } else { u32::from(image.core().costs.misaligned_extra) }
}
