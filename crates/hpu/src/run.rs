//! The interpreter: executes a slice of a context.
//!
//! Blocks carry the cumulative cycles of their operations, so that a block costs one addition and one comparison with
//! the limit. Only memory latencies are added during execution. Then the part of the block that may still begin before
//! the limit is looked up anew: limits are exact to the instruction.

use crate::block::{Block, Count};
use crate::context::{Context, Exit, Pending};
use crate::core::Misaligned;
use crate::costs::CycleCosts;
use crate::decode::Kind;
use crate::image::Image;
use crate::memory::{AccessCost, AddressSpace, Reference};
use crate::op::Op;
use crate::overlap::{Overlap, Touched, Window};
use crate::profile::{Cause, Profile};
use crate::reservations::Reservations;
use crate::trap::Access;
use crate::width::Width;

mod ends;
mod extended;
mod float;
mod watched;

pub(crate) use ends::shape;
pub use watched::Watch;

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
        self.covered = 0;
        // The same code is instantiated several times, so that no variant costs the others time here. They are by
        // width, with or without a cache, with or without overlap, with or without a profile, and for slices or single
        // steps.
        match (image.core().isa.is_wide(), space.profile.take()) {
            (false, None) => self.run_as::<u32, false, false>(image, space, reservations, until, None),
            (true, None) => self.run_as::<u64, false, false>(image, space, reservations, until, None),
            (wide, Some(profile)) => {
                let exit = match wide {
                    false => {
                        self.run_as::<u32, false, true>(image, space, reservations, until, Some(profile))
                    }
                    true => self.run_as::<u64, false, true>(image, space, reservations, until, Some(profile)),
                };
                profile.ends(self.cycle);
                space.profile = Some(profile);
                exit
            }
        }
    }

    /// Executes at most one instruction of a slice that ends at cycle `until`. [`Exit::Limit`] ends the slice if
    /// [`cycle`](Context::cycle) is then `until` or later. No turn is requested inside the step.
    ///
    /// A slice in steps gives the same state and the same cycles as [`run`](Context::run) without turns, including
    /// those of instruction caches and of overlap. An instruction that may begin only after the slice is left to the
    /// next one.
    pub fn step(
        &mut self,
        image: &Image,
        space: &mut AddressSpace<'_>,
        reservations: &mut Reservations,
        until: u64,
    ) -> Exit {
        space.take_no_turns();
        match image.core().isa.is_wide() {
            false => self.run_as::<u32, true, false>(image, space, reservations, until, None),
            true => self.run_as::<u64, true, false>(image, space, reservations, until, None),
        }
    }

    #[inline(always)]
    fn run_as<W: Width, const STEP: bool, const PROFILED: bool>(
        &mut self,
        image: &Image,
        space: &mut AddressSpace<'_>,
        reservations: &mut Reservations,
        until: u64,
        profile: Option<&mut Profile>,
    ) -> Exit {
        match (&image.core().overlap, space.has_code_cache()) {
            (None, false) => self.run_on::<W, STEP, false, false, PROFILED, false>(
                image,
                space,
                reservations,
                until,
                profile,
                None,
            ),
            (None, true) => self.run_on::<W, STEP, true, false, PROFILED, false>(
                image,
                space,
                reservations,
                until,
                profile,
                None,
            ),
            (Some(overlap), cached) => {
                space.take_no_turns();
                self.open_window(overlap, &image.core().costs);
                match cached {
                    false => self.run_on::<W, STEP, false, true, PROFILED, false>(
                        image,
                        space,
                        reservations,
                        until,
                        profile,
                        None,
                    ),
                    true => self.run_on::<W, STEP, true, true, PROFILED, false>(
                        image,
                        space,
                        reservations,
                        until,
                        profile,
                        None,
                    ),
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
    fn run_on<
        W: Width,
        const STEP: bool,
        const CACHED: bool,
        const OVERLAPS: bool,
        const PROFILED: bool,
        const WATCHED: bool,
    >(
        &mut self,
        image: &Image,
        space: &mut AddressSpace<'_>,
        reservations: &mut Reservations,
        until: u64,
        mut profile: Option<&mut Profile>,
        mut watch: Option<&mut Watch<'_>>,
    ) -> Exit {
        // Without a profile, no code is left of these.
        macro_rules! profiled {
            ($profile:ident => $act:expr) => {
                if PROFILED && let Some($profile) = profile.as_deref_mut() {
                    $act
                }
            };
        }
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
        // The end of the lines that a step of this slice has already looked up.
        let covered = if STEP { std::mem::take(&mut self.covered) } else { 0 };

        'blocks: loop {
            if OVERLAPS {
                cycle = self.window().enter();
            }
            if self.is_below_stack::<W>() {
                self.rest::<OVERLAPS>(pc, cycle, count);
                return self.overrun(image, space, reservations, from);
            }
            let Some(block) = image.block(pc) else {
                self.rest::<OVERLAPS>(pc, cycle, count);
                return self.nowhere(image, reservations, from);
            };
            if STEP && count != Count::ZERO {
                (self.pc, self.cycle) = (pc, cycle);
                self.counted(count);
                if CACHED {
                    self.jumped = jumped;
                }
                return self.limit(image, reservations);
            }
            if CACHED && cycle < bound && !(STEP && pc < covered) {
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
                    let load_use = image.core().costs.load_use;
                    profiled!(profile => profile.waits(pc, Cause::LoadUse, load_use.into()));
                    cycle += u64::from(load_use);
                }
                self.loaded = 0;
            }
            'again: loop {
                let mut end = match OVERLAPS {
                    true => block.ops.len(),
                    false => block.within(bound.saturating_sub(cycle)),
                };
                if STEP {
                    end = end.min(1);
                }
                let mut rest = &block.ops[..end];
                while let [op, tail @ ..] = rest {
                    rest = tail;
                    if OVERLAPS && self.window().enter() >= bound {
                        end = usize::from(op.index);
                        break;
                    }
                    if WATCHED && let Some(watch) = watch.as_deref_mut() {
                        let place = Place { block, cycle, count };
                        if !self.watched::<W>(image, space, place, op, watch) {
                            return Exit::Limit;
                        }
                    }
                    let mut touched = Touched::default();
                    let a = W::of(self.regs[op.rs1 as usize & 63]);
                    let b = W::of(self.regs[op.rs2 as usize & 63]);

                    macro_rules! set {
                        ($value:expr) => {
                            self.regs[op.rd as usize & 63] = W::kept($value)
                        };
                    }
                    // Traps at an address that no memory of a card has.
                    macro_rules! within {
                        ($address:expr) => {{
                            let address: W = $address;
                            if address.is_beyond() {
                                let place = Place { block, cycle, count };
                                profiled!(profile => profile.ran_up_to(block, op));
                                return self.beyond(image, reservations, address.kept(), place, op);
                            }
                            address.low()
                        }};
                    }
                    macro_rules! add_latency {
                        ($extra:expr) => {
                            let extra = $extra;
                            if OVERLAPS {
                                touched.extra = extra;
                            } else if extra != 0 {
                                cycle += u64::from(extra);
                                let next = op.index as usize + 1;
                                if !STEP {
                                    end = block.within(bound.saturating_sub(cycle)).max(next);
                                }
                                rest = &block.ops[next..end];
                            }
                        };
                    }
                    // Accounts for the cost of a load or store. After its turn the slice may continue.
                    macro_rules! took {
                        ($took:expr, $misaligned:expr) => {
                            let cost: AccessCost = $took;
                            let misaligned = $misaligned;
                            profiled!(profile => if cost.extra + misaligned > 0 {
                                let turn = if cost.slice.is_some() { space.causes_of_turn() } else { &[] };
                                let pc = block.pc.wrapping_add(u32::from(op.offset));
                                profile.accessed(pc, turn, cost.causes(misaligned));
                            });
                            let AccessCost { extra, slice, .. } = cost;
                            let extra = extra + misaligned;
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
                            let address = within!(a.plus(W::extended(op.imm)));
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
                                            *value.to_le_bytes().first_chunk().expect("at most eight bytes")
                                        }
                                        Err(stop) => {
                                            profiled!(profile => profile.ran_up_to(block, op));
                                            let place = Place { block, cycle, count };
                                            return self.stopped(image, reservations, stop, place, op);
                                        }
                                    }
                                }
                            };
                            set!($from(bytes));
                            self.regs[0] = 0;
                        }};
                    }
                    macro_rules! store {
                        ($size:literal) => {{
                            let address = within!(a.plus(W::extended(op.imm)));
                            if OVERLAPS {
                                touched = Touched { address, size: $size, extra: 0 };
                            }
                            let bytes: [u8; $size] =
                                *b.kept().to_le_bytes().first_chunk().expect("at most eight bytes");
                            if !space.store_fast::<$size>(op.rs1, address, bytes) {
                                let reference = Reference {
                                    cycle: cycle + u64::from(op.before),
                                    pc: block.pc.wrapping_add(u32::from(op.offset)),
                                    ..self.reference(image, op, Access::Write, address, $size)
                                };
                                match space.store(reference, b.kept(), cache_stores) {
                                    Ok((took, shared)) => {
                                        if shared && !cache_stores {
                                            reservations.stored(self.hart, address, $size);
                                        }
                                        took!(took, misaligned_extra(image, address, $size));
                                    }
                                    Err(stop) => {
                                        profiled!(profile => profile.ran_up_to(block, op));
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
                            if pc == block.pc && !CACHED && !STEP {
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
                                profiled!(profile => {
                                    let (leaves, enters) = self.window().ends();
                                    profile.left(block.last_pc, op.kind, leaves);
                                    profile.resumes(block.last_pc, enters);
                                });
                            }
                        };
                    }
                    macro_rules! jumps {
                        ($target:expr) => {
                            profiled!(profile => {
                                profile.ran(block, false);
                                profile.jumps(op, $target, block.end);
                                space.path = profile.path();
                            });
                        };
                    }
                    macro_rules! branch {
                        ($taken:expr) => {
                            if $taken {
                                branches!(true);
                                profiled!(profile => profile.ran(block, true));
                                go!(op.imm, block.taken)
                            } else {
                                branches!(false);
                                profiled!(profile => profile.ran(block, false));
                                go!(block.end, block.through)
                            }
                        };
                    }

                    match op.kind {
                        Kind::Nop => {}
                        Kind::Constant => set!(W::extended(op.imm)),
                        Kind::Addi => set!(a.plus(W::extended(op.imm))),
                        Kind::Slti => set!(W::plain((a.signed() < W::extended(op.imm).signed()).into())),
                        Kind::Sltiu => set!(W::plain((a < W::extended(op.imm)).into())),
                        Kind::Xori => set!(a ^ W::extended(op.imm)),
                        Kind::Ori => set!(a | W::extended(op.imm)),
                        Kind::Andi => set!(a & W::extended(op.imm)),
                        Kind::Slli => set!(a.left(op.imm)),
                        Kind::Srli => set!(a.right(op.imm)),
                        Kind::Srai => set!(a.right_signed(op.imm)),
                        Kind::Add => set!(a.plus(b)),
                        Kind::Sub => set!(a.minus(b)),
                        Kind::Sll => set!(a.left(b.low())),
                        Kind::Slt => set!(W::plain((a.signed() < b.signed()).into())),
                        Kind::Sltu => set!(W::plain((a < b).into())),
                        Kind::Xor => set!(a ^ b),
                        Kind::Srl => set!(a.right(b.low())),
                        Kind::Sra => set!(a.right_signed(b.low())),
                        Kind::Or => set!(a | b),
                        Kind::And => set!(a & b),
                        Kind::Mul => set!(a.times(b)),
                        Kind::Mulh => set!(a.high(b)),
                        Kind::Mulhsu => set!(a.high_mixed(b)),
                        Kind::Mulhu => set!(a.high_unsigned(b)),
                        Kind::Div => set!(a.quotient(b)),
                        Kind::Divu => set!(a.quotient_unsigned(b)),
                        Kind::Rem => set!(a.remainder(b)),
                        Kind::Remu => set!(a.remainder_unsigned(b)),
                        Kind::Auipc if W::WIDE => {
                            let pc = W::plain(block.pc.wrapping_add(u32::from(op.offset)));
                            set!(pc.plus(W::extended(op.imm)));
                        }
                        Kind::Addiw if W::WIDE => set!(W::extended(a.low().plus(op.imm))),
                        Kind::Slliw if W::WIDE => set!(W::extended(a.low().left(op.imm))),
                        Kind::Srliw if W::WIDE => set!(W::extended(a.low().right(op.imm))),
                        Kind::Sraiw if W::WIDE => set!(W::extended(a.low().right_signed(op.imm))),
                        Kind::Addw if W::WIDE => set!(W::extended(a.low().plus(b.low()))),
                        Kind::Subw if W::WIDE => set!(W::extended(a.low().minus(b.low()))),
                        Kind::Sllw if W::WIDE => set!(W::extended(a.low().left(b.low()))),
                        Kind::Srlw if W::WIDE => set!(W::extended(a.low().right(b.low()))),
                        Kind::Sraw if W::WIDE => set!(W::extended(a.low().right_signed(b.low()))),
                        Kind::Mulw if W::WIDE => set!(W::extended(a.low().times(b.low()))),
                        Kind::Lb => load!(1, |[v]: [u8; 1]| W::extended(v as i8 as u32)),
                        Kind::Lh => load!(2, |v| W::extended(i16::from_le_bytes(v) as u32)),
                        Kind::Lw => load!(4, |v| W::extended(u32::from_le_bytes(v))),
                        Kind::Lbu => load!(1, |[v]: [u8; 1]| W::plain(v.into())),
                        Kind::Lhu => load!(2, |v| W::plain(u16::from_le_bytes(v).into())),
                        Kind::Lwu if W::WIDE => load!(4, |v| W::plain(u32::from_le_bytes(v))),
                        Kind::Ld if W::WIDE => load!(8, |v| W::of(u64::from_le_bytes(v))),
                        Kind::Sb => store!(1),
                        Kind::Sh => store!(2),
                        Kind::Sw => store!(4),
                        Kind::Sd if W::WIDE => store!(8),
                        Kind::Csr => {
                            let now = match OVERLAPS {
                                true => self.window().enter(),
                                false => cycle + u64::from(op.before),
                            };
                            let instret = self.instret + count.instructions() + u64::from(op.index);
                            set!(W::of(self.counter(op.imm, now, instret)));
                        }
                        Kind::Beq => branch!(a == b),
                        Kind::Bne => branch!(a != b),
                        Kind::Blt => branch!(a.signed() < b.signed()),
                        Kind::Bge => branch!(a.signed() >= b.signed()),
                        Kind::Bltu => branch!(a < b),
                        Kind::Bgeu => branch!(a >= b),
                        Kind::Jal => {
                            set!(W::plain(block.end));
                            self.regs[0] = 0;
                            branches!(true);
                            jumps!(op.imm);
                            go!(op.imm, block.through)
                        }
                        Kind::Jalr => {
                            let target = within!(a.plus(W::extended(op.imm))) & !1;
                            set!(W::plain(block.end));
                            self.regs[0] = 0;
                            branches!(true);
                            jumps!(target);
                            go!(target, block.through)
                        }
                        Kind::Through => {
                            if !OVERLAPS {
                                cycle += u64::from(block.through);
                                self.loaded = block.last_load;
                                jumped = 0;
                            }
                            profiled!(profile => profile.ran(block, false));
                            count = count + block.count;
                            pc = block.end;
                            from = Some(pc);
                            continue 'blocks;
                        }
                        _ => {
                            if !self.extended::<W>(op, a, b) {
                                profiled!(profile => profile.ran_up_to(block, op));
                                let place = Place { block, cycle, count };
                                return self.ended(image, reservations, place, op);
                            }
                        }
                    }
                    if OVERLAPS {
                        let leaves = self.window().step(&block.steps[usize::from(op.index)], touched);
                        profiled!(profile => {
                            let pc = block.pc.wrapping_add(u32::from(op.offset));
                            profile.left(pc, op.kind, leaves.max(self.window().ends().0));
                        });
                    }
                }
                let op = &block.ops[end];
                profiled!(profile => profile.ran_up_to(block, op));
                self.stay(Place { block, cycle, count }, op);
                if CACHED && end == 0 {
                    self.jumped = jumped;
                }
                if OVERLAPS {
                    self.cycle = self.window().enter();
                } else if op.kind == Kind::Through {
                    self.loaded = block.last_load;
                }
                if STEP && CACHED && end == 1 && self.cycle < bound {
                    self.covered = if pc < covered { covered } else { block.end };
                }
                return self.limit(image, reservations);
            }
        }
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
}

pub(crate) fn misaligned_extra(image: &Image, address: u32, size: u32) -> u32 {
    if address.is_multiple_of(size) { 0 } else { u32::from(image.core().costs.misaligned_extra) }
}
