//! Processes on microengines: memories outside the core, calls of nfp.h, and the order that these make.
//!
//! Signals and atomic operations order processes. Calls of channels and frames do so too: all before one such call
//! precedes all behind a later one. The host or another card may have handed on the news.

use crate::area::{Area, key_of};
use crate::calls::Site;
use crate::checker::Checker;
use crate::commands::reference_of;
use crate::contexts::Frame;
use crate::execute::{Reference, value_at, verb};
use crate::finding::Defect;
use crate::loops::polls;
use crate::raw::Place;
use crate::run::{A0, Pending, Running, Transfer, Unit};
use nicety_hpu::calls::process as number;
use nicety_hpu::{AddressSpace, Context};

/// Results of calls, as in nfp.h.
const OK: i32 = 0;
const CHANNEL_BAD_ADDRESS: i32 = -11;
const ETH_TOO_LARGE: i32 = -2;
const ETH_BAD_ADDRESS: i32 = -3;
/// Most bytes of a direct message, and most guards of a selection.
const DIRECT: u32 = 56;
const MOST_GUARDS: u32 = 64;
/// Bytes of a guard, and of its words before the result.
const GUARD: u32 = 20;
const ASKED: u32 = 16;

impl Running {
    /// Returns the number of a byte among those of all processes.
    pub(crate) const fn key(&self, address: u32) -> u32 {
        key_of(address, self.record.core / 8, self.record.island)
    }
}

impl Checker {
    /// A load from a memory outside the microengine.
    pub(crate) fn load_outer(&mut self, run: &mut Running, reference: &Reference) {
        let place = (run.record.program, run.site.pc);
        let polls = *self.processes.polls.entry(place).or_insert_with(|| polls(&run.image, run.site.pc));
        if polls {
            self.acquire(run, reference.key);
        }
        run.polls = polls;
        self.outer_access(run, reference, false);
        run.polls = false;
        run.rests();
    }

    /// A store to a memory outside the microengine. A loop may wait for it.
    pub(crate) fn store_outer(
        &mut self,
        run: &mut Running,
        reference: &Reference,
        value: u64,
        space: &AddressSpace<'_>,
    ) {
        self.outer_access(run, reference, true);
        if reference.bytes == 4 && value == 0 && self.locks.knows(reference.key) {
            let old = value_at(space, reference.address, 4);
            self.changed(run, (reference.key, old, 0), run.site);
        }
        self.release(run, reference.key);
        run.rests();
    }

    /// Checks an access against transfers in flight, and otherwise for its order.
    fn outer_access(&mut self, run: &Running, reference: &Reference, store: bool) {
        let Reference { key, bytes, .. } = *reference;
        let hit = |transfer: &&Transfer| {
            transfer.run != run.number && transfer.overlaps(key, bytes) && (transfer.writes || store)
        };
        let Some(transfer) = self.processes.transfers.iter().find(hit).copied() else {
            return self.shared_access(run, reference, store, false);
        };
        let (defect, what, action) = match transfer.writes {
            true => (Defect::BufferReuse, "that a transfer in flight writes", "begins to write the bytes"),
            false => {
                (Defect::WriteWhileSending, "that a transfer in flight reads", "begins to read the bytes")
            }
        };
        let place = Place { run: transfer.run, site: transfer.at, action: action.to_owned() };
        let text = format!("{} {} bytes {what}", verb(store), reference.memory);
        self.report(defect, run, run.site, text, Some(place));
    }

    /// A call of nfp.h, before the card serves it.
    pub(crate) fn call_card(&mut self, run: &mut Running, context: &Context, space: &AddressSpace<'_>) {
        let registers = context.args();
        let [a, b, c, d, e, .., number] = registers;
        self.check_arguments(run, number);
        match number {
            number::CRC32 => {
                let undefined = run.undefined[A0] | run.undefined[A0 + 1];
                return run.set(A0 as u8, if undefined == 0 { 0 } else { u64::MAX }, 0);
            }
            number::READ | number::WRITE => self.copy(run, space, (b, a), c),
            number::SIGNAL => {
                let known = self.processes.signals.entry((a.wrapping_mul(8).wrapping_add(b), c)).or_default();
                known.join(&run.clock);
                run.clock.advance(run.number);
            }
            number::CHANNEL_WRITE if c <= DIRECT => self.used(run, space, b, c),
            number::CHANNEL_WRITE | number::CHANNEL_READ if c > DIRECT => {
                let (verb, most) = (if number == number::CHANNEL_WRITE { "sends" } else { "reads" }, DIRECT);
                let text = format!("{verb} {c} bytes, but a direct message has at most {most}");
                self.report(Defect::LongSend, run, run.site, text, None);
            }
            number::CHANNEL_SELECT => self.check_guards(run, space, a, b),
            number::ETH_SEND | number::ETH_SEND_TO => self.used(run, space, b, c),
            number::ETH_MOVE => self.use_frame(run, c),
            _ => {}
        }
        if is_of_outside(number) {
            let known = &mut self.processes.outside;
            known.join(&run.clock);
            run.clock.advance(run.number);
        }
        // A transfer is an access behind all that precedes the call, and lasts until its end.
        match number {
            number::CHANNEL_WRITE_IND => self.transfer(run, space, (b, e), c, false),
            number::CHANNEL_READ_IND => self.transfer(run, space, (b, e), c, true),
            number::ETH_SEND | number::ETH_SEND_TO => self.transfer(run, space, (d, 0), e, false),
            number::ETH_MOVE => self.transfer(run, space, (a, 0), c, true),
            number::CHANNEL_SELECT => {
                for (into, bytes) in indirect_guards(space, a, b) {
                    self.transfer(run, space, (into, 0), bytes, true);
                }
            }
            _ => {}
        }
        if gives_up_core(number) {
            run.rests();
        }
        run.pending = Pending::Call { registers, at: run.site };
    }

    /// Checks that the arguments of a call have values.
    fn check_arguments(&mut self, run: &mut Running, number: u32) {
        let count = match number {
            number::YIELD | number::ETH_TYPE | number::CRC32 => 0,
            number::WAIT_ALL
            | number::WAIT_ANY
            | number::CHANNEL_REGISTER
            | number::NODE
            | number::ETH_OPEN => 1,
            number::CHANNEL_SELECT => 2,
            number::READ | number::WRITE | number::SIGNAL | number::ETH_RECEIVE | number::ETH_MOVE => 3,
            number::CHANNEL_WRITE_IND | number::CHANNEL_READ_IND | number::ETH_SEND => 5,
            number::ETH_SEND_TO => 6,
            _ => 4,
        };
        if (A0..A0 + count).any(|register| run.undefined[register] != 0) {
            let text = "passes a call an argument that depends on memory without a value".to_owned();
            self.report(Defect::Uninitialised, run, run.site, text, None);
            run.undefined[A0..A0 + count].fill(0);
        }
    }

    /// A block move from one address to another. It copies undefined bytes too.
    fn copy(&mut self, run: &mut Running, space: &AddressSpace<'_>, (from, to): (u32, u32), bytes: u32) {
        let [source, target] = [from, to].map(|address| self.referred(run, space, address, bytes));
        if source.area == Area::Nowhere || target.area == Area::Nowhere || bytes == 0 {
            return;
        }
        if source.area == Area::Outer {
            self.outer_access(run, &source, false);
        }
        if target.area == Area::Outer {
            self.outer_access(run, &target, true);
            if bytes <= 4 {
                self.release(run, target.key);
            }
        }
        for at in 0..bytes {
            let from = if source.area.is_shared() { &self.shared } else { &run.own };
            let undefined = from.undefined(source.key.wrapping_add(at), 1);
            let into = if target.area.is_shared() { &mut self.shared } else { &mut run.own };
            into.set(target.key.wrapping_add(at), 1, undefined);
            if at % 4 == 0 {
                into.set_origin(target.key.wrapping_add(at), 0);
            }
        }
    }

    /// Resolves the bytes of a call.
    fn referred(&self, run: &Running, space: &AddressSpace<'_>, address: u32, bytes: u32) -> Reference {
        let reference = reference_of(space, address, bytes);
        match reference.area {
            Area::Local | Area::Outer => Reference { key: run.key(address), ..reference },
            _ => reference,
        }
    }

    /// Bytes that leave the card, or decide on what it does.
    fn used(&mut self, run: &mut Running, space: &AddressSpace<'_>, address: u32, bytes: u32) {
        let reference = self.referred(run, space, address, bytes);
        if matches!(reference.area, Area::Nowhere | Area::Code) {
            return;
        }
        let shadow = if reference.area.is_shared() { &self.shared } else { &run.own };
        if let Some(at) = shadow.first_undefined(reference.key, bytes) {
            let text = format!("gives a call {bytes} bytes, but byte {} has no value", at - reference.key);
            self.report(Defect::Uninitialised, run, run.site, text, None);
            let shadow = if reference.area.is_shared() { &mut self.shared } else { &mut run.own };
            shadow.fill(reference.key, bytes, true);
        }
    }

    /// Begins the transfer of a call, by a 40-bit address.
    fn transfer(
        &mut self,
        run: &Running,
        space: &AddressSpace<'_>,
        (address, upper): (u32, u32),
        bytes: u32,
        writes: bool,
    ) {
        let reference = reference_of(space, address, bytes);
        if reference.area != Area::Outer || reference.memory == "CLS" || bytes == 0 {
            return;
        }
        let island = upper.checked_sub(1).unwrap_or(run.record.island);
        let reference = Reference { key: key_of(address, 0, island), ..reference };
        self.outer_access(run, &reference, writes);
        self.processes.transfers.push(Transfer {
            unit: Unit::Commands,
            number: 0,
            address: reference.key,
            bytes,
            writes,
            area: Area::Outer,
            run: run.number,
            at: run.site,
        });
    }

    /// Checks the guards of a selection.
    fn check_guards(&mut self, run: &mut Running, space: &AddressSpace<'_>, guards: u32, count: u32) {
        for guard in 0..count.min(MOST_GUARDS) {
            let at = guards.wrapping_add(guard * GUARD);
            let Reference { area, key, .. } = self.referred(run, space, at, GUARD);
            let shadow = if area.is_shared() { &self.shared } else { &run.own };
            if let Some(first) = shadow.first_undefined(key, ASKED) {
                let text = format!(
                    "selects by guard {guard}, but its byte {} has no value",
                    first.wrapping_sub(key)
                );
                self.report(Defect::Uninitialised, run, run.site, text, None);
            }
        }
    }

    /// A move of bytes of the process's frame. One of no bytes gives it up.
    fn use_frame(&mut self, run: &Running, bytes: u32) {
        let frame = self.processes.frames.entry(run.number).or_default();
        match (*frame, bytes) {
            (Frame::Held, 0) => *frame = Frame::GivenUp(run.site),
            (Frame::Held, _) | (_, 0) => {}
            (Frame::GivenUp(site), _) => {
                let other = Place { run: run.number, site, action: "gives the frame up".to_owned() };
                let text = "moves bytes of a frame that it has given up".to_owned();
                self.report(Defect::UseAfterFree, run, run.site, text, Some(other));
            }
            (Frame::None, _) => {
                let text = "moves bytes of a frame, but has received none".to_owned();
                self.report(Defect::UseAfterFree, run, run.site, text, None);
            }
        }
    }

    /// The end of a call: its result is in a0.
    pub(crate) fn call_completed(
        &mut self,
        run: &mut Running,
        registers: [u32; 8],
        at: Site,
        context: &Context,
        space: &AddressSpace<'_>,
    ) {
        let [a, b, c, .., number] = registers;
        let result = context.reg(A0) as i32;
        run.set(A0 as u8, 0, 0);
        self.processes.transfers.retain(|transfer| transfer.run != run.number);
        if is_of_outside(number) {
            run.clock.join(&self.processes.outside);
        }
        let direct = matches!(number, number::CHANNEL_READ) && result == OK;
        match number {
            number::WAIT_ALL | number::WAIT_ANY => {
                for signal in (0..16).filter(|signal| result >> signal & 1 != 0) {
                    if let Some(sent) = self.processes.signals.get(&(run.record.core, signal)) {
                        run.clock.join(sent);
                    }
                }
            }
            number::CHANNEL_READ if direct => self.written(run, space, b, c),
            number::CHANNEL_READ_IND if result == OK => self.written(run, space, b, c),
            number::CHANNEL_SELECT if result >= 0 => {
                self.selected(run, space, a.wrapping_add(result as u32 * GUARD))
            }
            number::ETH_RECEIVE | number::ETH_RECEIVE_FROM if result >= 0 => {
                self.written(run, space, a, b.min(result as u32));
                self.written(run, space, c, 4);
                self.processes.frames.insert(run.number, Frame::Held);
            }
            number::ETH_MOVE if result == OK && c > 0 => self.written(run, space, a, c),
            _ => {}
        }
        self.check_result(run, number, result, at);
    }

    /// Makes findings of refusals that are errors of the program.
    fn check_result(&mut self, run: &Running, number: u32, result: i32, at: Site) {
        let of_port = matches!(number, number::ETH_SEND | number::ETH_SEND_TO | number::ETH_MOVE);
        let of_channel =
            matches!(number, number::CHANNEL_WRITE_IND | number::CHANNEL_READ_IND | number::CHANNEL_SELECT);
        if of_port && result == ETH_BAD_ADDRESS || of_channel && result == CHANNEL_BAD_ADDRESS {
            let text = "names memory that is not in CTM, IMEM or EMEM".to_owned();
            self.report(Defect::OutOfBounds, run, at, text, None);
        }
        if of_port && number != number::ETH_MOVE && result == ETH_TOO_LARGE {
            let text = "sends no bytes, or more than a frame or its head has".to_owned();
            self.report(Defect::LongSend, run, at, text, None);
        }
    }

    /// The read of a selection's guard.
    fn selected(&mut self, run: &mut Running, space: &AddressSpace<'_>, guard: u32) {
        let word = |index: u32| value_at(space, guard.wrapping_add(4 * index), 4) as u32;
        self.written(run, space, guard.wrapping_add(ASKED), 4);
        if word(4) as i32 == OK {
            self.written(run, space, word(1), word(2));
        }
    }

    /// Bytes that a call has written.
    fn written(&mut self, run: &mut Running, space: &AddressSpace<'_>, address: u32, bytes: u32) {
        let reference = self.referred(run, space, address, bytes);
        match reference.area {
            Area::Nowhere | Area::Code => {}
            area if area.is_shared() => self.shared.fill(reference.key, bytes, true),
            _ => run.own.fill(address, bytes, true),
        }
    }

    /// Ends a process. The host may know its result.
    pub(crate) fn ended(&mut self, run: &Running) {
        self.processes.outside.join(&run.clock);
        self.processes.transfers.retain(|transfer| transfer.run != run.number);
        self.processes.frames.remove(&run.number);
    }
}

/// Whether other contexts may run during a call.
const fn gives_up_core(number: u32) -> bool {
    use number::{CHANNEL_REGISTER, ETH_OPEN, ETH_TYPE, NODE, SIGNAL};
    !matches!(number, SIGNAL | CHANNEL_REGISTER | NODE | ETH_TYPE | ETH_OPEN)
}

/// Whether a call exchanges news with the host or another card.
const fn is_of_outside(number: u32) -> bool {
    matches!(number, number::CHANNEL_WRITE..=number::CHANNEL_SELECT)
        || matches!(
            number,
            number::ETH_SEND | number::ETH_RECEIVE | number::ETH_SEND_TO | number::ETH_RECEIVE_FROM
        )
}

/// Returns the memories of a selection's indirect guards: address and bytes.
fn indirect_guards(space: &AddressSpace<'_>, guards: u32, count: u32) -> Vec<(u32, u32)> {
    let word =
        |guard: u32, index: u32| value_at(space, guards.wrapping_add(guard * GUARD + 4 * index), 4) as u32;
    let guards = (0..count.min(MOST_GUARDS)).filter(|guard| word(*guard, 3) == 1);
    guards.map(|guard| (word(guard, 1), word(guard, 2))).collect()
}
