//! One instruction: its result, its branch, its access, its call.

use crate::area::{Area, in_packet};
use crate::bits::{Operand, equality_depends, extended, of_result, order_depends};
use crate::calls::Site;
use crate::checker::{Checker, Interface};
use crate::code::{Decoded, Rules};
use crate::finding::Defect;
use crate::locks::{At, Change};
use crate::loops::waits;
use crate::run::{A0, Behind, Handler, Pending, Reserved, Running, SP, Unit};
use crate::shadow::{BY_CORE, OriginId};
use nicety_hpu::{AddressSpace, Context, Image, Instruction, Kind};

/// The registers with return addresses: ra and t0.
const LINKS: [u8; 2] = [1, 5];
/// The register with the number of the core: mhartid.
const HART: u32 = 0xf14;
/// The bits of an atomic instruction for acquire and release.
const ACQUIRE: u32 = 1 << 26;
const RELEASE: u32 = 1 << 25;

/// An access of an instruction.
#[derive(Clone, Copy)]
pub(crate) struct Reference {
    pub address: u32,
    /// The number of the byte at the address among those that runs share.
    pub key: u32,
    pub bytes: u32,
    pub area: Area,
    pub memory: &'static str,
    /// The register with the address.
    pub base: u8,
}

impl Checker {
    #[inline]
    pub(crate) fn take(
        &mut self,
        run: &mut Running,
        decoded: &Decoded,
        context: &Context,
        space: &AddressSpace<'_>,
    ) {
        let behind = run.behind;
        if behind >= Behind::Stores && decoded.rules.ends_fence() {
            run.behind = if decoded.rules == Rules::Store { Behind::Stores } else { Behind::Earlier };
        }
        let instruction = decoded.instruction;
        let Instruction { rd, rs1, rs2, imm, .. } = instruction;
        if let Some(held) = &mut run.held {
            held.follow(decoded);
        }
        match decoded.rules {
            Rules::Compute | Rules::Divide => self.compute(run, decoded, context),
            Rules::Load => self.load(run, decoded, context, space),
            Rules::Store => self.store(run, instruction, context, space, behind),
            Rules::Branch => self.branch(run, instruction, context),
            Rules::Jal => {
                self.check_division(run, imm, context);
                self.call(run, instruction, imm);
                run.set(rd, 0, 0);
            }
            Rules::Jalr => self.jump(run, instruction, context),
            Rules::Ecall if run.record.handler == Handler::Process => self.call_card(run, context, space),
            Rules::Ecall => self.command(run, context, space),
            Rules::Fence => run.fence(decoded.fences),
            Rules::Csr => run.set(rd, 0, if imm == HART { BY_CORE } else { 0 }),
            Rules::Constant => run.set(rd, 0, 0),
            Rules::Nothing | Rules::Unknown => {}
            Rules::Atomic => self.atomic(run, instruction, context, space),
            Rules::Float => {
                let undefined = run.undefined[usize::from(rs1) & 63] | run.undefined[usize::from(rs2) & 63];
                run.set(rd, if undefined == 0 { 0 } else { u64::MAX }, 0);
            }
        }
    }

    /// A result out of registers.
    #[inline]
    fn compute(&mut self, run: &mut Running, decoded: &Decoded, context: &Context) {
        let Instruction { kind, rd, rs1, rs2, imm, .. } = decoded.instruction;
        let (first, second) = (usize::from(rs1) & 31, usize::from(rs2) & 31);
        let immediate = decoded.immediate;
        if decoded.rules == Rules::Divide && run.undefined[second] == 0 {
            // The instructions of words divide by the lower half of a register.
            let words = matches!(kind, Kind::Divw | Kind::Divuw | Kind::Remw | Kind::Remuw);
            let divisor = context.reg(second);
            if (if words { u64::from(divisor as u32) } else { divisor }) == 0 {
                self.divides_by_zero(run);
            }
        }
        let origin = match (run.origins[first], if immediate { 0 } else { run.origins[second] }) {
            (0, 0) => 0,
            pointers => origin_of(kind, pointers),
        };
        let undefined = (run.undefined[first], if immediate { 0 } else { run.undefined[second] });
        let bits = match undefined {
            (0, 0) => 0,
            _ => {
                let a = Operand { value: context.reg(first), undefined: undefined.0 };
                let value = if immediate { i64::from(imm as i32) as u64 } else { context.reg(second) };
                of_result(kind, a, Operand { value, undefined: undefined.1 }, run.bits())
            }
        };
        run.set(rd, bits, origin);
    }

    #[inline(never)]
    fn divides_by_zero(&mut self, run: &mut Running) {
        let text = "divides by zero".to_owned();
        self.report(Defect::DivisionByZero, run, run.site, text, None);
        run.explained = true;
    }

    #[inline]
    fn branch(&mut self, run: &mut Running, instruction: Instruction, context: &Context) {
        let Instruction { rs1, rs2, .. } = instruction;
        let (first, second) = (usize::from(rs1) & 31, usize::from(rs2) & 31);
        if run.undefined[first] | run.undefined[second] != 0 {
            self.undefined_branch(run, instruction, context);
        }
    }

    /// A branch with an operand that has undefined bits.
    #[inline(never)]
    fn undefined_branch(&mut self, run: &mut Running, instruction: Instruction, context: &Context) {
        let Instruction { kind, rs1, rs2, .. } = instruction;
        let (first, second) = (usize::from(rs1) & 31, usize::from(rs2) & 31);
        let of =
            |register: usize| Operand { value: context.reg(register), undefined: run.undefined[register] };
        let (a, b) = (of(first), of(second));
        let depends = match kind {
            Kind::Beq | Kind::Bne => equality_depends(a, b),
            Kind::Blt | Kind::Bge => order_depends(a, b, true, run.bits()),
            _ => order_depends(a, b, false, run.bits()),
        };
        if depends {
            let text = "branches on a value that depends on memory without a value".to_owned();
            self.report(Defect::Uninitialised, run, run.site, text, None);
            (run.undefined[first], run.undefined[second]) = (0, 0);
        }
    }

    fn call(&mut self, run: &mut Running, instruction: Instruction, target: u32) {
        let pc = run.site.pc;
        if LINKS.contains(&instruction.rd) {
            run.calls.call(&mut self.stacks, pc, pc.wrapping_add(u32::from(instruction.len)), target);
        }
    }

    #[inline(never)]
    fn jump(&mut self, run: &mut Running, instruction: Instruction, context: &Context) {
        let Instruction { rd, rs1, imm, .. } = instruction;
        self.uses_address(run, rs1);
        let target = (context.reg(usize::from(rs1) & 31) as u32).wrapping_add(imm) & !1;
        self.check_division(run, target, context);
        if LINKS.contains(&rd) {
            self.call(run, instruction, target);
        } else if let Some(entry) = run.calls.leave(target) {
            self.left(run, entry, context);
        }
        run.set(rd, 0, 0);
    }

    /// Checks the divisor of a jump to a function that divides. The last call of a function may be a plain jump.
    fn check_division(&mut self, run: &mut Running, target: u32, context: &Context) {
        let divisions = &self.programs[run.record.program as usize].divisions;
        let Some((_, words)) = divisions.iter().find(|(entry, _)| *entry == target) else { return };
        let words = *words as usize;
        let divisor = A0 + words..A0 + 2 * words;
        if divisor.clone().all(|register| context.reg(register) as u32 == 0 && run.undefined[register] == 0) {
            self.report(Defect::DivisionByZero, run, run.site, "divides by zero".to_owned(), None);
        }
    }

    /// Notes the use of a register as an address.
    pub(crate) fn uses_address(&mut self, run: &mut Running, register: u8) {
        let register = usize::from(register) & 31;
        if run.undefined[register] != 0 {
            let text = "uses an address that depends on memory without a value".to_owned();
            self.report(Defect::Uninitialised, run, run.site, text, None);
            run.undefined[register] = 0;
        }
    }

    /// Resolves an access, and checks its pointer and the transfers in flight.
    fn reference(
        &mut self,
        run: &mut Running,
        space: &AddressSpace<'_>,
        (base, address, bytes): (u8, u32, u32),
        store: bool,
    ) -> Reference {
        self.uses_address(run, base);
        let (area, memory, ..) = Area::of(space, address, bytes);
        let key = match area {
            Area::Local | Area::Outer => run.key(address),
            _ => address,
        };
        let reference = Reference { address, key, bytes, area, memory, base };
        self.check_origin(run, &reference, store);
        self.check_transfers(run, &reference, store);
        reference
    }

    /// Checks that a pointer is not to a packet or stack of another run.
    #[inline]
    fn check_origin(&mut self, run: &mut Running, reference: &Reference, store: bool) {
        let origin = run.origins[usize::from(reference.base) & 31];
        if origin != 0 && origin != BY_CORE && (origin - 1) / 2 != run.number {
            self.check_other_origin(run, reference, store, origin);
        }
    }

    /// Checks a pointer of another run.
    #[inline(never)]
    fn check_other_origin(
        &mut self,
        run: &mut Running,
        reference: &Reference,
        store: bool,
        origin: OriginId,
    ) {
        let of = self.record((origin - 1) / 2);
        let is_stack = origin.is_multiple_of(2);
        let own = run.record;
        let same = of.message == own.message && of.offset == own.offset && own.handler != Handler::Completion;
        if is_stack || !same {
            let memory = if is_stack { "the stack" } else { "the packet" };
            let text = match of.handler {
                Handler::Process => format!("{} the stack of another process", verb(store)),
                kind => format!("{} {memory} of a {} that has ended", verb(store), kind.name()),
            };
            self.report(Defect::UseAfterFree, run, run.site, text, None);
            run.explained = true;
            run.origins[usize::from(reference.base) & 31] = 0;
        }
    }

    fn load(&mut self, run: &mut Running, decoded: &Decoded, context: &Context, space: &AddressSpace<'_>) {
        let Instruction { kind, rd, rs1, imm, .. } = decoded.instruction;
        let (bytes, signed) = loaded(kind);
        let address = (context.reg(usize::from(rs1) & 31) as u32).wrapping_add(imm);
        let reference = self.reference(run, space, (rs1, address, bytes), false);
        match reference.area {
            Area::Device => return self.load_register(run, address, rd, space),
            Area::Nowhere => return,
            Area::Shared => {
                let acquires = decoded.before_fence;
                if acquires {
                    self.acquire(run, address);
                } else {
                    self.acquire_at_fence(run, address);
                }
                self.shared_access(run, &reference, false, acquires);
                self.load_by_core(run, &reference);
            }
            Area::Local => self.load_local(run, &reference, rd),
            Area::Outer => self.load_outer(run, &reference),
            _ => {}
        }
        let shadow = if reference.area.is_shared() { &self.shared } else { &run.own };
        let mut undefined = shadow.undefined(reference.key, bytes);
        if signed && undefined != 0 {
            let unused = 64 - 8 * bytes;
            undefined = ((undefined << unused) as i64 >> unused) as u64;
        }
        let mut origin = if bytes >= 4 { shadow.origin(reference.key) } else { 0 };
        if reference.area == Area::Own && bytes >= 4 {
            let value = space.read(address, 4).ok().and_then(|bytes| bytes.first_chunk());
            let value = value.map_or(0, |bytes| u32::from_le_bytes(*bytes));
            if value != 0 && in_packet(space, value) {
                origin = Running::packet_origin(run.number);
            }
        }
        run.set(rd, undefined & (u64::MAX >> (64 - run.bits())), origin);
    }

    #[inline(never)]
    fn store(
        &mut self,
        run: &mut Running,
        instruction: Instruction,
        context: &Context,
        space: &AddressSpace<'_>,
        behind: Behind,
    ) {
        let Instruction { kind, rs1, rs2, imm, .. } = instruction;
        let (bytes, _) = loaded(kind);
        let address = (context.reg(usize::from(rs1) & 31) as u32).wrapping_add(imm);
        let reference = self.reference(run, space, (rs1, address, bytes), true);
        let source = usize::from(rs2) & 63;
        let value = if source < 32 { context.reg(source) } else { 0 };
        match reference.area {
            Area::Device => return self.store_register(run, address, value as u32),
            Area::Nowhere | Area::Code => return,
            Area::Shared => {
                // A store releases if only computations lie between a fence and it.
                let fenced = behind == Behind::Fence;
                self.shared_access(run, &reference, true, fenced);
                self.store_by_core(run, &reference, fenced);
                let word = if bytes < 4 { address & !3 } else { address };
                let stored = value & (u64::MAX >> (64 - 8 * bytes));
                if stored == 0 && (fenced || self.locks.knows(word)) {
                    self.clear(run, space, word, address - word, bytes);
                }
                if fenced {
                    self.release(run, address);
                } else if behind != Behind::Nothing {
                    self.release_from_fence(run, address);
                }
            }
            Area::Local => self.store_local(run, &reference, rs2),
            Area::Outer => self.store_outer(run, &reference, value, space),
            _ => {}
        }
        let (undefined, origin) = (run.undefined[source], run.origins[source]);
        let shadow = if reference.area.is_shared() { &mut self.shared } else { &mut run.own };
        shadow.set(reference.key, bytes, undefined);
        let kept = bytes >= 4 && (source != SP || reference.area.is_shared());
        shadow.set_origin(reference.key, if kept { origin } else { 0 });
    }

    #[inline(never)]
    fn atomic(
        &mut self,
        run: &mut Running,
        instruction: Instruction,
        context: &Context,
        space: &AddressSpace<'_>,
    ) {
        let Instruction { kind, rd, rs1, rs2, imm: bytes, .. } = instruction;
        let address = context.reg(usize::from(rs1) & 31) as u32;
        let writes = kind != Kind::Lr;
        let reference = self.reference(run, space, (rs1, address, bytes), writes);
        if reference.area == Area::Nowhere {
            return;
        }
        let word = run.image.word_at(run.site.pc);
        let (acquires, releases) = match self.limits.interface {
            Interface::Pspin | Interface::Processes => (true, true),
            Interface::Nicety => (word & ACQUIRE != 0, word & RELEASE != 0),
        };
        let shared = reference.area.is_shared();
        if shared {
            match acquires {
                _ if kind == Kind::Sc => {}
                true => self.acquire(run, reference.key),
                false => self.acquire_at_fence(run, reference.key),
            }
            let part = match reference.area {
                Area::Local => None,
                Area::Shared => part_of(&reference, affected(run, &instruction, context)),
                _ => Some(reference),
            };
            if let Some(part) = part {
                self.shared_access(run, &part, writes, true);
            }
            if writes {
                self.store_by_core(run, &reference, true);
            }
            self.lock_operation(run, &instruction, &reference, context, space);
            if releases && writes {
                self.release(run, reference.key);
            } else if writes && run.behind != Behind::Nothing {
                self.release_from_fence(run, reference.key);
            }
            if reference.area == Area::Outer {
                run.rests();
            }
        }
        let stored = run.undefined[usize::from(rs2) & 31];
        let shadow = if shared { &mut self.shared } else { &mut run.own };
        let undefined = shadow.undefined(reference.key, bytes);
        if writes {
            let combined = if matches!(kind, Kind::AmoSwap | Kind::Sc) { stored } else { stored | undefined };
            shadow.set(reference.key, bytes, combined);
            shadow.set_origin(reference.key, 0);
        }
        let result = if kind == Kind::Sc { 0 } else { undefined };
        run.set(rd, if bytes == 4 { extended(result) } else { result } & (u64::MAX >> (64 - run.bits())), 0);
    }

    /// The part of an atomic operation that takes or releases a lock.
    fn lock_operation(
        &mut self,
        run: &mut Running,
        instruction: &Instruction,
        reference: &Reference,
        context: &Context,
        space: &AddressSpace<'_>,
    ) {
        let Instruction { kind, rd, rs2, imm: bytes, .. } = *instruction;
        let Reference { address, key, .. } = *reference;
        let all = u64::MAX >> (64 - 8 * bytes);
        let operand = context.reg(usize::from(rs2) & 31) & all;
        let old = value_at(space, address, bytes);
        let (new, cover) = match kind {
            Kind::AmoSwap => (operand, all),
            Kind::AmoOr => (old | operand, operand),
            Kind::AmoAnd => (old & operand, all & !operand),
            Kind::AmoAdd if self.locks.knows(key) => {
                let at = At { run: run.number, site: run.site };
                let new = old.wrapping_add(operand) & all;
                let change = Change { address: key, old, new, cover: all, at, waits: false, initial: false };
                return self.locks.add(change);
            }
            Kind::Lr => {
                // An LR without its SC: the value was not the expected one.
                if run.reserved.is_some_and(|reserved| reserved.key == key) && old != 0 {
                    self.changed_bits(run, (key, old, old), (u64::MAX, false), run.site);
                }
                run.reserved = Some(Reserved { key, value: old, pc: run.site.pc });
                return;
            }
            Kind::Sc => {
                let reserved = run.reserved.take().filter(|reserved| reserved.key == key);
                let Some(Reserved { value: old, pc: first, .. }) = reserved else { return };
                match operand {
                    // A release counts before others can take the lock.
                    0 => self.changed(run, (key, value_at(space, address, bytes), 0), run.site),
                    new => {
                        let (waits, at) = (self.waits(run, first), run.site);
                        run.pending = Pending::Conditional { address, key, old, new, waits, rd, at };
                    }
                }
                return;
            }
            _ => return,
        };
        let waits = self.waits(run, run.site.pc);
        self.changed_bits(run, (key, old, new), (cover, waits), run.site);
    }

    /// Whether the present atomic operation waits for its word. `first` is its LR, or itself.
    fn waits(&mut self, run: &Running, first: u32) -> bool {
        let place = (run.record.program, run.site.pc);
        *self.waits.entry(place).or_insert_with(|| waits(&run.image, first, run.site.pc))
    }

    /// Reports bytes of a word that become zero to the locks.
    fn clear(&mut self, run: &mut Running, space: &AddressSpace<'_>, word: u32, first: u32, bytes: u32) {
        let old = value_at(space, word, bytes.max(4));
        let cover = u64::MAX >> (64 - 8 * bytes) << (8 * first);
        self.changed_bits(run, (word, old, old & !cover), (cover, false), run.site);
    }

    /// Reports a change of a word with a known old value.
    pub(crate) fn changed(&mut self, run: &mut Running, change: (u32, u64, u64), site: Site) {
        self.changed_bits(run, change, (u64::MAX, true), site);
    }

    /// Reports a change of bits of a word. `waits` is whether a run waits until it may set them.
    fn changed_bits(
        &mut self,
        run: &mut Running,
        (address, old, new): (u32, u64, u64),
        (cover, waits): (u64, bool),
        site: Site,
    ) {
        let at = At { run: run.number, site };
        // A word that is set to zero before its first use is being initialised.
        let begins = matches!(run.record.handler, Handler::Header | Handler::Process);
        let first = begins && !self.locks.has_held(run.number, address);
        let initial = (old | new) & cover == 0 && (first || is_initialisation(&run.image, site));
        if let Some(suspect) = self.locks.change(Change { address, old, new, cover, at, waits, initial }) {
            self.suspected(&suspect);
            run.explained = true;
        }
    }

    /// Completes what the latest instruction of the run has left open.
    #[inline(never)]
    pub(crate) fn complete(&mut self, run: &mut Running, context: &Context, space: &AddressSpace<'_>) {
        match run.pending() {
            Pending::Nothing => {}
            Pending::Conditional { address, key, old, new, waits, rd, at } => {
                let stored = match rd {
                    0 => value_at(space, address, 4) as u32 == new as u32,
                    rd => context.reg(usize::from(rd)) == 0,
                };
                if stored {
                    self.changed_bits(run, (key, old, new), (u64::MAX, waits), at);
                    if old != 0 && new != 0 && old != new {
                        self.locks.count(key);
                    }
                }
            }
            Pending::Call { registers, at } => self.call_completed(run, registers, at, context, space),
            Pending::Command { registers, at } => self.commanded(run, registers, at, context, space),
            Pending::Register { address, rd, at } => {
                self.register_loaded(run, address, at, context.reg(usize::from(rd) & 31) as u32, space);
            }
            Pending::Issued { words, rd, at } => {
                self.issued(run, words, at, context.reg(usize::from(rd) & 31) as u32, space);
            }
            Pending::Waited { handle } => {
                self.end_transfers(run, Unit::Commands, |number| number == handle);
            }
        }
    }
}

/// The bits that an atomic operation on a word concerns. Those on bytes are made of such operations.
fn affected(run: &Running, instruction: &Instruction, context: &Context) -> u64 {
    let operand = context.reg(usize::from(instruction.rs2) & 31);
    match instruction.kind {
        Kind::AmoOr | Kind::AmoXor => operand,
        Kind::AmoAnd => !operand,
        // The SC knows which bytes are new, and the LR does not.
        Kind::Lr => 0,
        Kind::Sc => run.reserved.map_or(u64::MAX, |reserved| reserved.value ^ operand),
        _ => u64::MAX,
    }
}

/// The bytes of a word with these bits. None if there are none.
fn part_of(reference: &Reference, bits: u64) -> Option<Reference> {
    let bits = bits & (u64::MAX >> (64 - 8 * reference.bytes));
    let first = bits.trailing_zeros() / 8;
    let bytes = 8u32.checked_sub(first + bits.leading_zeros() / 8).filter(|_| bits != 0)?;
    let Reference { address, key, .. } = *reference;
    Some(Reference { address: address + first, key: key + first, bytes, ..*reference })
}

/// Whether a site is in a function that initialises a lock, by its name.
fn is_initialisation(image: &Image, site: Site) -> bool {
    let called = image.locate(site.pc).and_then(|place| place.called);
    called.is_some_and(|name| name.contains("init"))
}

pub(crate) fn verb(store: bool) -> &'static str {
    if store { "stores to" } else { "loads from" }
}

/// The bytes of a load or store, and whether it extends the sign.
fn loaded(kind: Kind) -> (u32, bool) {
    match kind {
        Kind::Lb => (1, true),
        Kind::Lbu | Kind::Sb => (1, false),
        Kind::Lh => (2, true),
        Kind::Lhu | Kind::Sh => (2, false),
        Kind::Ld | Kind::Sd => (8, false),
        Kind::Lwu | Kind::Sw => (4, false),
        _ => (4, true),
    }
}

/// Returns the origin of a result, from those of its operands.
fn origin_of(kind: Kind, pointers: (OriginId, OriginId)) -> OriginId {
    match (kind, pointers) {
        (_, (BY_CORE, _) | (_, BY_CORE)) => BY_CORE,
        (Kind::Addi | Kind::Andi, (origin, _)) => origin,
        (Kind::Add | Kind::Sh1add | Kind::Sh2add | Kind::Sh3add, (origin, 0) | (0, origin)) => origin,
        (Kind::Sub, (origin, 0)) => origin,
        _ => 0,
    }
}

/// Returns the value of up to 8 bytes of memory, or 0 where there is none.
pub(crate) fn value_at(space: &AddressSpace<'_>, address: u32, bytes: u32) -> u64 {
    let mut value = [0; 8];
    if let Ok(found) = space.read(address, bytes.min(8)) {
        value[..found.len()].copy_from_slice(found);
    }
    u64::from_le_bytes(value)
}
