//! Calls of helpers: numbers, clocks, callbacks and output.

use super::run::Registers;
use super::trap::{Fault, TrapKind};
use super::{Machine, Sample};
use crate::address;
use crate::helper::{self, Helper};
use crate::map::{Errno, Flags, MapKind};
use crate::object::Linked;
use std::rc::Rc;

/// The most calls of `bpf_loop`.
const MOST_LOOPS: u64 = 8 << 20;

/// The bits of an index in flags of perf events; all mean the own CPU.
const INDEX: u64 = 0xffff_ffff;
/// The bits of the packet's bytes in flags of perf events.
const PACKET_BYTES: u64 = 0xf_ffff << 32;

/// The result of a call of a helper.
pub(crate) type Returned = Result<u64, Fault>;

/// A result as a helper returns it.
pub(crate) fn returned(result: Result<(), Errno>) -> u64 {
    result.map_or_else(Errno::returned, |()| 0)
}

impl Machine {
    /// Calls a helper with r1 to r5.
    pub(crate) fn helper(&mut self, code: &Rc<Linked>, number: u32, r: &Registers) -> Returned {
        let Some(known) = Helper::of(number) else {
            let name = helper::name(number).unwrap_or("unknown");
            return Err(Fault::new(TrapKind::Argument, format!("a call of helper {number} ({name})")));
        };
        self.count_call(known, r[1]);
        match known {
            Helper::MapLookup
            | Helper::MapUpdate
            | Helper::MapDelete
            | Helper::MapPush
            | Helper::MapPop
            | Helper::MapPeek
            | Helper::MapLookupPercpu
            | Helper::RedirectMap
            | Helper::RingbufOutput
            | Helper::RingbufReserve
            | Helper::RingbufSubmit
            | Helper::RingbufDiscard
            | Helper::RingbufQuery
            | Helper::SpinLock
            | Helper::SpinUnlock => self.map_helper(known, r),
            Helper::AdjustHead
            | Helper::AdjustMeta
            | Helper::AdjustTail
            | Helper::BuffLen
            | Helper::LoadBytes
            | Helper::StoreBytes
            | Helper::CsumDiff
            | Helper::Redirect => self.packet_helper(known, r),
            Helper::KtimeGet | Helper::KtimeGetBoot | Helper::KtimeGetTai => Ok(self.now_ns),
            // The clock of the timer's tick, at Linux's usual 250 a second.
            Helper::KtimeGetCoarse => Ok(self.now_ns / 4_000_000 * 4_000_000),
            // Linux begins five minutes before 32 bits of ticks are full.
            Helper::Jiffies => Ok(self.now_ns / 4_000_000 + u64::from((-300i32 * 250) as u32)),
            Helper::Random => Ok(u64::from(self.random())),
            Helper::Cpu => Ok(u64::from(self.cpu)),
            Helper::PerfEventOutput => self.perf_event_output(r),
            Helper::ForEachMapElem => self.for_each(code, r),
            Helper::Loop => self.call_loop(code, r),
            Helper::TracePrintk | Helper::TraceVprintk => self.print(known, r),
            Helper::TailCall => Ok(0),
        }
    }

    /// Counts a call by its work. `first` is its first argument, a map where the helper takes one there.
    fn count_call(&mut self, helper: Helper, first: u64) {
        use Helper as H;
        let inlined = match helper {
            H::Cpu => true,
            H::MapLookup => {
                self.map_argument(first, helper, 1).is_ok_and(|map| self.maps[map].kind.is_array())
            }
            _ => false,
        };
        if inlined {
            self.calls.inlined += 1;
            return;
        }
        self.calls.plain += 1;
        let on_map = matches!(
            helper,
            H::MapLookup | H::MapLookupPercpu | H::MapUpdate | H::MapDelete | H::MapPush | H::MapPop
        );
        self.calls.maps += u64::from(on_map || helper == H::MapPeek);
    }

    /// Takes work of a helper from the budget: `units` of eight bytes or one entry each.
    pub(crate) fn charge(&mut self, units: u64) -> Result<(), Fault> {
        if units > self.budget {
            self.charged += self.budget;
            self.budget = 0;
            let limit = self.limits.instructions;
            let problem = format!("the budget of {limit} instructions is used up by work of a helper");
            return Err(Fault::new(TrapKind::Budget, problem));
        }
        self.budget -= units;
        self.charged += units;
        Ok(())
    }

    /// A random number of SplitMix64.
    fn random(&mut self) -> u32 {
        self.seed = self.seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.seed ^ (self.seed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed >> 32) as u32 ^ (mixed as u32 >> 1)
    }

    /// The number of the map in an argument.
    #[inline(always)]
    pub(crate) fn map_argument(&self, value: u64, helper: Helper, argument: u32) -> Result<usize, Fault> {
        let (region, offset) = address::parts(value);
        let number = offset as usize / 8;
        if region == address::MAP && offset.is_multiple_of(8) && number < self.maps.len() {
            let definition = &self.maps[number].definition;
            if helper.changes_map() && definition.flags & Flags::READ_ONLY_PROGRAM != 0 {
                let problem =
                    format!("{} of map {}, which programs may only read", helper.name(), definition.name);
                return Err(Fault::new(TrapKind::Argument, problem));
            }
            return Ok(number);
        }
        let problem = format!("argument {argument} of {} is {value:#x}, not a map", helper.name());
        Err(Fault::new(TrapKind::Argument, problem))
    }

    /// A helper that a map's type does not have.
    #[cold]
    pub(crate) fn wrong_map(&self, map: usize, helper: Helper) -> Fault {
        let map = &self.maps[map];
        let problem = format!("{} of map {}, a {}", helper.name(), map.definition.name, map.kind.name());
        Fault::new(TrapKind::Argument, problem)
    }

    /// Checks that an argument is the context.
    pub(crate) fn context_argument(&self, value: u64, helper: Helper) -> Result<(), Fault> {
        if value == address::at(address::CONTEXT, 0) {
            return Ok(());
        }
        let problem = format!("argument 1 of {} is {value:#x}, not the context", helper.name());
        Err(Fault::new(TrapKind::Argument, problem))
    }

    /// The step of the function in an argument.
    fn function_argument(&self, code: &Linked, value: u64, helper: Helper) -> Result<usize, Fault> {
        let (region, offset) = address::parts(value);
        let step = offset as usize / 8;
        if region == address::FUNCTION && offset.is_multiple_of(8) && step < code.code.steps.len() {
            return Ok(step);
        }
        let problem = format!("argument 2 of {} is {value:#x}, not a function", helper.name());
        Err(Fault::new(TrapKind::Argument, problem))
    }

    fn call_loop(&mut self, code: &Rc<Linked>, r: &Registers) -> Returned {
        let step = self.function_argument(code, r[2], Helper::Loop)?;
        let count = u64::from(r[1] as u32);
        if r[4] != 0 {
            return Ok(Errno::EINVAL.returned());
        }
        if count > MOST_LOOPS {
            return Ok(Errno::E2BIG.returned());
        }
        for index in 0..count {
            if self.function(code, step, [index, r[3], 0, 0, 0])? != 0 {
                return Ok(index + 1);
            }
        }
        Ok(count)
    }

    fn for_each(&mut self, code: &Rc<Linked>, r: &Registers) -> Returned {
        let map = self.map_argument(r[1], Helper::ForEachMapElem, 1)?;
        let step = self.function_argument(code, r[2], Helper::ForEachMapElem)?;
        self.charge(u64::from(self.maps[map].definition.max_entries))?;
        let Some(walk) = self.maps[map].walk(self.cpu) else {
            return Err(self.wrong_map(map, Helper::ForEachMapElem));
        };
        if r[4] != 0 {
            return Ok(Errno::EINVAL.returned());
        }
        let mut count = 0;
        for (key, value) in walk {
            self.key = key;
            count += 1;
            let value = address::value(map as u32, value);
            let arguments = [r[1], address::at(address::KEY, 0), value, r[3], 0];
            if self.function(code, step, arguments)? != 0 {
                break;
            }
        }
        self.key.clear();
        Ok(count)
    }

    fn perf_event_output(&mut self, r: &Registers) -> Returned {
        self.context_argument(r[1], Helper::PerfEventOutput)?;
        let number = self.map_argument(r[2], Helper::PerfEventOutput, 2)?;
        if self.maps[number].kind != MapKind::PerfEvents {
            return Err(self.wrong_map(number, Helper::PerfEventOutput));
        }
        let (flags, size) = (r[3], r[5] as usize);
        self.readable(r[4], size)?;
        self.charge(self.packet.length() as u64 / 8)?;
        if flags & !(INDEX | PACKET_BYTES) != 0 {
            return Ok(Errno::EINVAL.returned());
        }
        let from_packet = ((flags & PACKET_BYTES) >> 32) as usize;
        if from_packet > self.packet.length() {
            return Ok(Errno::EFAULT.returned());
        }
        let cpu = if flags & INDEX == INDEX { self.cpu } else { flags as u32 };
        if cpu >= self.maps[number].definition.max_entries {
            return Ok(Errno::E2BIG.returned());
        }
        if self.maps[number].number(cpu).is_none() {
            return Ok(Errno::ENOENT.returned());
        }
        if cpu != self.cpu {
            const EOPNOTSUPP: Errno = Errno(95);
            return Ok(EOPNOTSUPP.returned());
        }
        let mut bytes = self.copied(r[4], size)?.to_vec();
        let mut rest = vec![0; from_packet];
        if let Err(error) = self.packet.copy(0, &mut rest, false) {
            return Ok(error.returned());
        }
        bytes.extend(rest);
        // As of a reader without room.
        if !self.room(bytes.len()) {
            return Ok(Errno::ENOSPC.returned());
        }
        self.samples.push(Sample { map: number, cpu, bytes });
        Ok(0)
    }

    /// Takes bytes of the output that one packet may make.
    pub(crate) fn room(&mut self, bytes: usize) -> bool {
        self.output = self.output.saturating_add(bytes + 32);
        self.output <= self.limits.output_bytes
    }
}
