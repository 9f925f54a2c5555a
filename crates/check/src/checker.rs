//! The checker: begin, steps and end of runs.

use crate::calls::{Site, Stacks};
use crate::clocks::Clock;
use crate::code::Code;
use crate::contexts::Processes;
use crate::finding::Defect;
use crate::held::LastStores;
use crate::locks::Locks;
use crate::races::Races;
use crate::raw::{Findings, Place};
use crate::run::{A0, Begin, BeginProcess, Handler, Pending, Record, Running, SP, Transfer};
use crate::shadow::{BY_CORE, Shadow};
use nicety_hpu::{AddressSpace, Context, Image, TrapError};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// Offsets of the numbers of the core in the arguments of PsPIN's handlers.
const CORE_NUMBERS: [u32; 2] = [4, 12];

/// The interface of the checked program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interface {
    /// nicety.h, or frame.h.
    Nicety,
    /// PsPIN's headers. Its atomic operations order all accesses.
    Pspin,
    /// nfp.h: processes on contexts of microengines. Their atomic operations order all accesses too.
    Processes,
}

/// The card, as far as findings depend on it.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The interface of the program.
    pub interface: Interface,
    /// The most payload bytes of a packet.
    pub packet_bytes: u32,
    /// The host's receive channels, for handlers of frames.
    pub channels: u32,
}

/// The end of a run.
#[derive(Clone, Copy, Debug)]
pub enum Ending<'e> {
    /// It returned this value.
    Returned(u32),
    /// It was stopped, with the reason.
    Stopped(&'e str),
}

/// A message in progress.
#[derive(Default)]
struct Message {
    /// The end of its header handler, and the ends of its payload handlers so far.
    header: Clock,
    payloads: Clock,
    /// Transfers from and into shared memory by handlers that have ended.
    fetches: Vec<Transfer>,
    /// Parts of host memory that it still sends: offset, bytes, and the place.
    pub sent: Vec<(u32, u32, Place)>,
}

/// A checker of the programs of a card.
pub struct Checker {
    pub(crate) programs: Vec<Code>,
    pub(crate) limits: Limits,
    pub(crate) runs: Vec<Record>,
    open: FxHashMap<u64, Box<Running>>,
    /// The run of the latest step, which most often has the next one too.
    latest: Option<(u64, Box<Running>)>,
    messages: FxHashMap<u64, Message>,
    packets: FxHashMap<(u64, Option<u64>), u64>,
    pub(crate) shared: Shadow,
    pub(crate) stacks: Stacks,
    pub(crate) races: Races,
    pub(crate) locks: Locks,
    /// Whether atomic operations wait, by program and address.
    pub(crate) waits: FxHashMap<(u32, u32), bool>,
    /// The clocks of releases, by word.
    pub(crate) releases: FxHashMap<u32, Clock>,
    pub(crate) findings: Findings,
    /// Transfers of runs in progress from or to shared memory.
    pub(crate) flights: Vec<Transfer>,
    /// The last stores by the number of the core.
    pub(crate) by_core: LastStores,
    /// The order and the transfers of processes.
    pub(crate) processes: Processes,
    /// The entry of an XDP program, which returns a verdict.
    verdict_of: Option<u32>,
}

impl Checker {
    /// A checker without runs.
    pub fn new(image: Arc<Image>, limits: Limits) -> Checker {
        let verdict_of = image.symbol("nicety_xdp_program");
        Checker {
            programs: vec![Code::new(image)],
            limits,
            runs: Vec::new(),
            open: FxHashMap::default(),
            latest: None,
            messages: FxHashMap::default(),
            packets: FxHashMap::default(),
            shared: Shadow::default(),
            stacks: Stacks::default(),
            races: Races::default(),
            locks: Locks::default(),
            waits: FxHashMap::default(),
            releases: FxHashMap::default(),
            findings: Findings::default(),
            flights: Vec::new(),
            by_core: LastStores::default(),
            processes: Processes::default(),
            verdict_of,
        }
    }

    /// Begins a run. `key` names it in further calls.
    pub fn begin(&mut self, key: u64, begin: Begin) {
        let Begin { handler, message, offset, core } = begin;
        let number = self.runs.len() as u32;
        let has_packet = offset.is_some() && handler != Handler::Completion;
        let packet = has_packet.then(|| {
            let next = self.packets.len() as u64;
            *self.packets.entry((message, offset)).or_insert(next)
        });
        let record = Record { handler, message, offset, core, packet, program: 0, island: 0 };
        self.runs.push(record);
        let mut clock = Clock::default();
        let known = self.messages.entry(message).or_default();
        if matches!(handler, Handler::Payload | Handler::Completion) {
            clock.join(&known.header);
        }
        if handler == Handler::Completion {
            clock.join(&known.payloads);
            known.fetches.clear();
        }
        clock.advance(number);
        let image = self.programs[0].image.clone();
        self.open.insert(key, Box::new(Running::new(number, record, clock, image)));
    }

    /// Begins a process on a context.
    pub fn begin_process(&mut self, key: u64, begin: &BeginProcess<'_>) {
        let number = self.runs.len() as u32;
        let known = self.programs.iter().position(|code| Arc::ptr_eq(&code.image, begin.image));
        let program = known.unwrap_or_else(|| {
            self.programs.push(Code::new(begin.image.clone()));
            self.programs.len() - 1
        });
        let record = Record {
            handler: Handler::Process,
            message: 0,
            offset: None,
            core: begin.context,
            packet: None,
            program: program as u32,
            island: begin.island,
        };
        self.runs.push(record);
        self.processes.names.insert(number, begin.name.clone());
        let mut clock = self.processes.outside.clone();
        clock.advance(number);
        let run = Running::new(number, record, clock, begin.image.clone());
        self.open.insert(key, Box::new(run));
    }

    /// Takes the instruction at the context's pc, before it is executed.
    pub fn step(&mut self, key: u64, context: &Context, space: &AddressSpace<'_>) {
        let Some(mut run) = self.opened(key) else { return };
        if run.pending.is_some() {
            self.complete(&mut run, context, space);
        }
        let pc = context.pc();
        let decoded = self.programs[run.record.program as usize].report(pc);
        run.site = Site { pc, stack: run.calls.current };
        if context.sp() != run.stack_pointer {
            self.stack_moved(&mut run, context.sp(), space);
        }
        if let Some(decoded) = decoded {
            self.take(&mut run, &decoded, context, space);
        }
        self.latest = Some((key, run));
    }

    /// The stack pointer of a run has moved, or it begins.
    #[inline(never)]
    fn stack_moved(&self, run: &mut Running, to: u32, space: &AddressSpace<'_>) {
        let begins = run.stack_pointer == 0;
        moved(run, to, space);
        if begins && self.limits.interface == Interface::Pspin {
            // The arguments name the core, on the card and in its cluster.
            for offset in CORE_NUMBERS {
                run.own.set_origin(to + offset, BY_CORE);
            }
        }
    }

    /// Takes a run that is in progress.
    #[inline]
    fn opened(&mut self, key: u64) -> Option<Box<Running>> {
        match self.latest.take() {
            Some((latest, run)) if latest == key => Some(run),
            latest => self.another(latest, key),
        }
    }

    /// Takes another run than that of the latest step.
    #[inline(never)]
    fn another(&mut self, latest: Option<(u64, Box<Running>)>, key: u64) -> Option<Box<Running>> {
        if let Some((latest, run)) = latest {
            self.open.insert(latest, run);
        }
        self.open.remove(&key)
    }

    /// The addresses of the instructions of all steps.
    pub fn covered(&self) -> impl Iterator<Item = u32> {
        self.programs.first().into_iter().flat_map(Code::covered)
    }

    /// The programs of processes, each with the addresses of the instructions of all steps.
    pub fn covered_by_program(&self) -> impl Iterator<Item = (&Arc<Image>, Vec<u32>)> {
        self.programs.iter().map(|code| (&code.image, code.covered().collect()))
    }

    /// Takes the error for which a run is stopped, directly before its end.
    pub fn stops(&mut self, key: u64, error: TrapError) {
        if let Some(mut run) = self.opened(key) {
            run.error = error;
            self.latest = Some((key, run));
        }
    }

    /// Ends a run.
    pub fn end(&mut self, key: u64, ending: Ending<'_>) {
        let Some(mut run) = self.opened(key) else { return };
        match ending {
            Ending::Returned(value) => {
                self.returned(&mut run, value);
                self.leave_transfers(&run);
            }
            Ending::Stopped(why) => self.stopped(&run, why),
        }
        self.flights.retain(|transfer| transfer.run != run.number);
        self.locks.end(run.number, matches!(ending, Ending::Returned(_)));
        if run.record.handler == Handler::Process {
            return self.ended(&run);
        }
        let message = self.messages.entry(run.record.message).or_default();
        match run.record.handler {
            Handler::Header => message.header.join(&run.clock),
            Handler::Payload => message.payloads.join(&run.clock),
            Handler::Completion | Handler::Frame | Handler::Process => {
                self.messages.remove(&run.record.message);
                return;
            }
        }
        // Transfers from or into the packet of a handler that has ended are dropped.
        message.fetches.extend(run.transfers.iter().filter(|transfer| transfer.area.is_shared()));
    }

    /// The transfers by ended handlers of the same message.
    pub(crate) fn fetches(&self, run: &Running) -> &[Transfer] {
        self.messages.get(&run.record.message).map_or(&[], |message| &message.fetches)
    }

    /// The parts of host memory that the run's message still sends.
    pub(crate) fn sent_from_host(&mut self, run: &Running) -> &mut Vec<(u32, u32, Place)> {
        &mut self.messages.entry(run.record.message).or_default().sent
    }

    /// Checks the verdict of an XDP program that returns.
    pub(crate) fn left(&mut self, run: &mut Running, entry: u32, context: &Context) {
        let verdict = context.reg(A0) as u32;
        if Some(entry) == self.verdict_of && verdict > 4 {
            let text = format!("returns {verdict}, which is no verdict (0 to 4)");
            self.report(Defect::ReturnCode, run, run.result_at, text, None);
        }
    }

    fn returned(&mut self, run: &mut Running, value: u32) {
        let at = run.result_at;
        if run.undefined[A0] as u32 != 0 && self.limits.interface == Interface::Nicety {
            let text = "returns a code that depends on memory without a value".to_owned();
            self.report(Defect::Uninitialised, run, at, text, None);
        } else if !self.is_code(run.record.handler, value) {
            let text = format!("returns {}, which is no code of this handler", value as i32);
            self.report(Defect::ReturnCode, run, at, text, None);
        }
    }

    fn is_code(&self, handler: Handler, value: u32) -> bool {
        const FAIL: u32 = -1i32 as u32;
        const SEGV: u32 = -2i32 as u32;
        let channels = 0x100..0x100 + self.limits.channels;
        self.limits.interface != Interface::Nicety
            || match handler {
                Handler::Header => matches!(value, 2..=7 | FAIL | SEGV),
                Handler::Payload => matches!(value, 0 | 6 | FAIL | SEGV),
                Handler::Completion => matches!(value, 0 | 1 | FAIL | SEGV),
                Handler::Frame => matches!(value, 0..=2 | FAIL) || channels.contains(&value),
                Handler::Process => true,
            }
    }

    /// Makes a finding of the reason for which a handler was stopped, unless a finding explains it.
    fn stopped(&mut self, run: &Running, why: &str) {
        if run.explained {
            return;
        }
        let defect = match run.error {
            TrapError::DivisionByZero => Defect::DivisionByZero,
            TrapError::OutOfBounds => Defect::OutOfBounds,
            TrapError::Other => Defect::Trap,
        };
        self.report(defect, run, run.site, format!("is stopped: {why}"), None);
    }

    pub(crate) fn record(&self, run: u32) -> Record {
        self.runs[run as usize]
    }
}

/// The stack pointer has moved: bytes below it have no value, neither new ones nor old ones.
fn moved(run: &mut Running, to: u32, space: &AddressSpace<'_>) {
    let from = run.stack_pointer;
    run.stack_pointer = to;
    let stack = space.regions().iter().find(|region| region.name() == "the stack");
    let Some(stack) = stack else { return };
    let (base, end) = (stack.base(), stack.base().saturating_add(stack.size() as u32));
    let inside = |address: u32| address.clamp(base, end);
    // At the begin of a run everything below is undefined.
    let (low, high) = if from == 0 { (base, to) } else { (from.min(to), from.max(to)) };
    let (low, high) = (inside(low), inside(high));
    run.own.fill(low, high - low, false);
}

impl Running {
    /// Bits of an integer register.
    pub(crate) fn bits(&self) -> u32 {
        self.image.core().isa.register_bits()
    }

    /// Completes what was pending, without effect on other parts.
    pub(crate) fn pending(&mut self) -> Pending {
        std::mem::take(&mut self.pending)
    }

    /// Sets a register of the result.
    #[inline]
    pub(crate) fn set(&mut self, register: u8, undefined: u64, origin: u32) {
        let register = usize::from(register) & 63;
        if register != 0 {
            self.undefined[register] = undefined;
            self.origins[register] = origin;
        }
        if register == A0 {
            self.result_at = self.site;
        }
        if register == SP {
            self.origins[SP] = Running::stack_origin(self.number);
        }
    }
}
