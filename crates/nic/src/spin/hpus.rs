//! The handler processors: who runs next, and one handler's run from its start to what follows from its result.

use super::commands::{Stop, Transfers, command_name};
use super::handlers::{Application, map};
use super::receive::Fate;
use super::{Card, FAULTS_KEPT, Fault};
use crate::spec::HpuSpec;
use nicety_fabric::Packet;
use nicety_hpu::{AddressSpace, Context, Exit, Image, Region, Trap};
use nicety_kernel::{Signal, Sim};
use nicety_portals::FailType;
use nicety_types::{Buffer, Frequency, HandlerRun, Level, MessageId, Path, Payload, Resource, Stage, Time};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

/// Which handler runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Header,
    Payload,
    Completion,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Kind::Header => "header handler",
            Kind::Payload => "payload handler",
            Kind::Completion => "completion handler",
        }
    }

    /// The name in tables.
    fn word(self) -> &'static str {
        self.name().trim_end_matches(" handler")
    }
}

/// What a handler may return, as numbered in nicety.h.
mod returned {
    pub const SUCCESS: u32 = 0;
    pub const SUCCESS_PENDING: u32 = 1;
    pub const PROCESS_DATA: u32 = 2;
    pub const PROCESS_DATA_PENDING: u32 = 3;
    pub const PROCEED: u32 = 4;
    pub const PROCEED_PENDING: u32 = 5;
    pub const DROP: u32 = 6;
    pub const DROP_PENDING: u32 = 7;
    pub const FAIL: u32 = -1i32 as u32;
    pub const SEGV: u32 = -2i32 as u32;
}

/// A handler that is ready to run.
pub(super) struct Run {
    /// The message's place among the arriving ones.
    pub(super) place: usize,
    pub(super) kind: Kind,
    /// The packet, for header and payload handlers.
    pub(super) packet: Option<Packet>,
    /// Accounts for the time until it became ready.
    pub(super) path: Path,
}

/// What handlers have done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HandlerStatistics {
    /// Handlers run to their end.
    pub runs: u64,
    /// Instructions they executed.
    pub instructions: u64,
    /// Cycles they held a core, the waiting for commands and the start included.
    pub cycles: u64,
    /// Runs among them that failed: stopped, returned an error or nonsense.
    pub failed: u64,
}

/// Cycles of a slice at most, so that a run can be interrupted whatever its handlers do.
const SLICE: u64 = 1_000_000;

/// What one core keeps between runs.
struct CoreState {
    context: Context,
    stack: Vec<u8>,
    /// The run before: whose it was and where its time went.
    last: Option<(MessageId, Path)>,
}

/// A handler processor.
pub(super) struct Core {
    assigned: RefCell<Option<Run>>,
    wake: Signal,
    state: RefCell<CoreState>,
    pub(super) transfers: Transfers,
}

/// The cores and the queue before them. Its length is bounded by the packet buffer: every waiting run holds a slot
/// of it, but for one completion handler a message.
pub(super) struct Hpus {
    cores: Vec<Core>,
    idle: RefCell<Vec<bool>>,
    queue: RefCell<VecDeque<Run>>,
    statistics: Cell<HandlerStatistics>,
}

impl Hpus {
    pub(super) fn new(sim: &Sim, spec: &HpuSpec) -> Hpus {
        let core = |hart: usize| Core {
            assigned: RefCell::default(),
            wake: Signal::new(sim),
            state: RefCell::new(CoreState {
                context: Context::new(hart as u32),
                stack: vec![0; spec.stack as usize],
                last: None,
            }),
            transfers: Transfers::new(sim, spec.dma_handles),
        };
        Hpus {
            cores: (0..spec.cores).map(core).collect(),
            idle: RefCell::new(vec![false; spec.cores]),
            queue: RefCell::default(),
            statistics: Cell::default(),
        }
    }

    pub(super) fn core(&self, index: usize) -> &Core {
        &self.cores[index]
    }

    pub(super) fn statistics(&self) -> HandlerStatistics {
        self.statistics.get()
    }

    fn count(&self, change: impl FnOnce(HandlerStatistics) -> HandlerStatistics) {
        self.statistics.set(change(self.statistics.get()));
    }

    /// A handler is ready: the idle core of the lowest number takes it, or it waits behind those before it.
    pub(super) fn ready(&self, run: Run) {
        let idle = self.idle.borrow().iter().position(|idle| *idle);
        match idle {
            None => self.queue.borrow_mut().push_back(run),
            Some(index) => {
                self.idle.borrow_mut()[index] = false;
                self.cores[index].assigned.replace(Some(run));
                self.cores[index].wake.notify_one();
            }
        }
    }

    /// A core has nothing to do: it takes what waits, or is idle from now on.
    fn release(&self, index: usize) {
        let waiting = self.queue.borrow_mut().pop_front();
        self.idle.borrow_mut()[index] = waiting.is_none();
        self.cores[index].assigned.replace(waiting);
    }

    /// What a released core runs next.
    async fn next(&self, index: usize) -> Run {
        let core = &self.cores[index];
        core.wake.wait_until(|| core.assigned.borrow().is_some()).await;
        core.assigned.take().expect("just seen")
    }
}

/// The bytes that a run may look at beside its application's memory.
pub(super) struct RunMemory {
    pub(super) packet: Buffer,
    /// The payload where it has no bytes: there is nothing to map, and a handler that touches it is stopped.
    phantom: Option<Payload>,
    arguments: [u8; 64],
}

impl RunMemory {
    fn new(payload: Payload, arguments: [u8; 64]) -> RunMemory {
        if payload.is_real() {
            let packet = payload.into_buffer().expect("every segment is real");
            RunMemory { packet, phantom: None, arguments }
        } else {
            RunMemory { packet: Buffer::zeroed(0), phantom: Some(payload), arguments }
        }
    }

    /// Whether all of these addresses are those of a packet without bytes.
    pub(super) fn is_phantom(&self, address: u32, len: u32) -> bool {
        let phantom = self.phantom.as_ref().map_or(0, Payload::len);
        let end = u64::from(address) + u64::from(len);
        address >= map::PACKET && end <= u64::from(map::PACKET) + phantom
    }

    fn into_payload(self) -> Payload {
        self.phantom.unwrap_or_else(|| Payload::real(self.packet))
    }
}

/// The address space of a run, built anew for each slice.
pub(super) fn space<'a>(
    application: &'a Application,
    memory: &'a mut [u8],
    stack: &'a mut [u8],
    run: &'a mut RunMemory,
) -> AddressSpace<'a> {
    AddressSpace::new()
        .with(Region::memory("HPU memory", map::MEMORY, memory))
        .with(Region::stack("the stack", map::STACK, stack, map::STACK_GUARD))
        .with(Region::memory("the packet", map::PACKET, &mut run.packet))
        .with(Region::read_only("the header", map::ARGUMENTS, &run.arguments))
        .with(Region::read_only("program memory", map::CODE, &application.code))
}

/// A handler under way: what its commands need to know.
pub(super) struct Running {
    pub(super) core: usize,
    pub(super) place: usize,
    pub(super) message: MessageId,
    pub(super) application: Rc<Application>,
    pub(super) memory: RunMemory,
    /// When its cycle 0 began.
    pub(super) started: Time,
    pub(super) path: Path,
}

/// How a handler ended.
enum Ended {
    Returned(u32),
    /// Stopped, and why.
    Stopped(String),
}

impl Ended {
    /// The name in tables.
    const fn name(&self) -> &'static str {
        match self {
            Ended::Stopped(_) => "stopped",
            Ended::Returned(value) => match *value {
                returned::SUCCESS => "SUCCESS",
                returned::SUCCESS_PENDING => "SUCCESS_PENDING",
                returned::PROCESS_DATA => "PROCESS_DATA",
                returned::PROCESS_DATA_PENDING => "PROCESS_DATA_PENDING",
                returned::PROCEED => "PROCEED",
                returned::PROCEED_PENDING => "PROCEED_PENDING",
                returned::DROP => "DROP",
                returned::DROP_PENDING => "DROP_PENDING",
                returned::FAIL => "FAIL",
                returned::SEGV => "SEGV",
                _ => "invalid",
            },
        }
    }
}

impl Card {
    /// A core: runs one handler after another.
    pub(super) async fn serve_core(self: Rc<Card>, index: usize) {
        self.hpus.release(index);
        loop {
            let run = self.hpus.next(index).await;
            self.run(index, run).await;
        }
    }

    async fn run(self: &Rc<Card>, index: usize, mut run: Run) {
        let core = &self.hpus.cores[index];
        let (now, ready) = (self.sim.now(), run.path.at());
        let message = self.incoming.borrow_mut().get(run.place).message;
        if now > run.path.at() {
            match core.state.borrow().last {
                // A handler of the same message kept the core: its path is the critical one.
                Some((last, path)) if last == message && path.at() == now => run.path = path,
                _ => run.path.advance(Stage::HandlerQueued, now),
            }
        }
        let (memory, entry, arguments) = self.arguments(&mut run);
        let mut running = Running {
            core: index,
            place: run.place,
            message,
            application: self.application_of(run.place),
            memory,
            started: now,
            path: run.path,
        };
        let ended = self.execute(core, &mut running, entry, arguments).await;
        running.path.advance(Stage::Handler, self.sim.now());
        core.state.borrow_mut().last = Some((message, running.path));
        self.record_run(&running, &run, ready, &ended);
        if let Some(packet) = &mut run.packet {
            packet.payload = running.memory.into_payload();
            packet.path = running.path;
        }
        // Before what follows from its result, which may be one more handler for this very core.
        self.hpus.release(index);
        self.ended(index, run, ended, running.path);
    }

    fn record_run(&self, running: &Running, run: &Run, ready: Time, ended: &Ended) {
        let (start, end) = (running.started, self.sim.now());
        let resource = Resource::Hpu(running.core as u32);
        self.recorder.slice(resource, start, end, Some(running.message), run.kind.name());
        if self.recorder.keeps(Level::Packets) {
            self.recorder.handler_run(HandlerRun {
                hpu: running.core as u32,
                kind: run.kind.word(),
                message: running.message,
                offset: run.packet.as_ref().map(|packet| packet.offset),
                ready,
                start,
                end,
                cycles: cycles_until(self.spec.hpu.clock, start, end),
                instructions: self.hpus.core(running.core).state.borrow().context.instret(),
                outcome: ended.name(),
            });
        }
    }

    /// Lays out what a handler sees, and where it begins with which arguments.
    fn arguments(&self, run: &mut Run) -> (RunMemory, u32, [u32; 3]) {
        let mut table = self.incoming.borrow_mut();
        let incoming = table.get(run.place);
        let attachment = incoming.attachment.as_ref().expect("only messages with handlers run them");
        let program = &attachment.application.program;
        let payload = run.packet.as_mut().map(|p| std::mem::take(&mut p.payload)).unwrap_or_default();
        let delivery = incoming.delivery.expect("only matched messages run handlers");
        let offset = run.packet.as_ref().map_or(0, |p| p.offset);
        let kept = payload.len().min(delivery.mlength.saturating_sub(offset)) as u32;

        let mut arguments = [0; 64];
        let mut put = |at: usize, bytes: &[u8]| arguments[at..at + bytes.len()].copy_from_slice(bytes);
        let (entry, registers) = match run.kind {
            Kind::Header => {
                let header = &incoming.header;
                put(4, &(header.length as u32).to_le_bytes());
                put(8, &header.source.0.to_le_bytes());
                put(12, &header.target.0.to_le_bytes());
                put(16, &header.match_bits.to_le_bytes());
                put(24, &header.hdr_data.to_le_bytes());
                put(32, &(delivery.remote_offset as u32).to_le_bytes());
                put(36, &(delivery.mlength as u32).to_le_bytes());
                put(40, &map::PACKET.to_le_bytes());
                put(44, &kept.to_le_bytes());
                (program.header, [map::ARGUMENTS, attachment.state, 0])
            }
            Kind::Payload => {
                put(0, &map::PACKET.to_le_bytes());
                put(4, &kept.to_le_bytes());
                put(8, &(offset as u32).to_le_bytes());
                (program.payload, [map::ARGUMENTS, attachment.state, 0])
            }
            // Flow control does not exist yet on this card: nothing disables a portal table entry.
            Kind::Completion => (program.completion, [incoming.dropped_bytes as u32, 0, attachment.state]),
        };
        (RunMemory::new(payload, arguments), entry.expect("only handlers that exist are run"), registers)
    }

    /// Runs a handler's instructions in slices; between them time passes and commands are carried out.
    async fn execute(
        self: &Rc<Card>,
        core: &Core,
        running: &mut Running,
        entry: u32,
        arguments: [u32; 3],
    ) -> Ended {
        let spec = &self.spec.hpu;
        let application = running.application.clone();
        let image = &application.program.image;
        {
            let mut state = core.state.borrow_mut();
            let stack_top = map::STACK + spec.stack;
            state.context = Context::new(running.core as u32);
            state.context.call(image, entry, stack_top, &arguments, spec.handler_start + spec.cycle_limit);
            state.context.set_cycle(spec.handler_start);
            // `time` goes on between handlers, `cycle` begins with each.
            state.context.set_time_base(spec.clock.cycles_in(running.started.since(Time::ZERO)));
        }
        let ended = loop {
            let exit = {
                let mut state = core.state.borrow_mut();
                let CoreState { context, stack, .. } = &mut *state;
                let mut memory = application.memory.borrow_mut();
                let mut space = space(&application, &mut memory, stack, &mut running.memory);
                let until = context.cycle().saturating_add(SLICE);
                context.run(image, &mut space, &mut application.reservations.borrow_mut(), until)
            };
            let cycle = core.state.borrow().context.cycle();
            self.sim.until(running.started + spec.clock.cycles(cycle)).await;
            match exit {
                Exit::Return(value) => break Ended::Returned(value),
                Exit::Trap(trap) => break stopped(running, &trap),
                Exit::Order(_) => {
                    let mut state = core.state.borrow_mut();
                    let CoreState { context, stack, .. } = &mut *state;
                    let mut memory = application.memory.borrow_mut();
                    let mut space = space(&application, &mut memory, stack, &mut running.memory);
                    let reservations = &mut application.reservations.borrow_mut();
                    if let Err(trap) = context.perform(image, &mut space, reservations) {
                        drop(space);
                        break stopped(running, &trap);
                    }
                }
                Exit::Ecall => {
                    let asked = self.sim.now();
                    running.path.advance(Stage::Handler, asked);
                    let registers = core.state.borrow().context.args();
                    let answer = self.command(running, registers).await;
                    if self.sim.now() > asked {
                        let (hpu, what) = (Resource::Hpu(running.core as u32), command_name(registers[7]));
                        self.recorder.slice(hpu, asked, self.sim.now(), Some(running.message), what);
                    }
                    match answer {
                        Ok(result) => {
                            let stalled = cycles_until(spec.clock, running.started, self.sim.now());
                            let mut state = core.state.borrow_mut();
                            state.context.finish_ecall(result, 0);
                            // The command itself began at `cycle`; what it waited for is over at `stalled`.
                            let context_cycle = state.context.cycle();
                            state.context.set_cycle(context_cycle.max(stalled));
                        }
                        Err(stop) => {
                            let pc = core.state.borrow().context.pc();
                            break stop_in_command(running, image, pc, stop);
                        }
                    }
                }
                Exit::Limit => {}
                Exit::Device(_) => unreachable!("no devices here"),
            }
        };
        let ended = match (self.finish_transfers(running).await, ended) {
            (Err(stop), Ended::Returned(_)) => {
                let pc = core.state.borrow().context.pc();
                stop_in_command(running, image, pc, stop)
            }
            (_, ended) => ended,
        };
        application.reservations.borrow_mut().release(running.core as u32);
        let cycle = cycles_until(spec.clock, running.started, self.sim.now()) + spec.handler_end;
        self.sim.until(running.started + spec.clock.cycles(cycle)).await;

        let instructions = core.state.borrow().context.instret();
        self.hpus.count(|before| HandlerStatistics {
            runs: before.runs + 1,
            instructions: before.instructions + instructions,
            cycles: before.cycles + cycle,
            ..before
        });
        ended
    }

    /// Calls `act` on what a running handler may touch.
    pub(super) fn with_space<R>(
        &self,
        running: &mut Running,
        act: impl FnOnce(&mut AddressSpace<'_>) -> R,
    ) -> R {
        let mut state = self.hpus.cores[running.core].state.borrow_mut();
        let mut memory = running.application.memory.borrow_mut();
        act(&mut space(&running.application, &mut memory, &mut state.stack, &mut running.memory))
    }

    /// What follows from a handler's result.
    fn ended(self: &Rc<Card>, index: usize, run: Run, ended: Ended, path: Path) {
        let Run { place, kind, packet, .. } = run;
        let offset = packet.as_ref().map(|packet| packet.offset);
        let value = match ended {
            Ended::Returned(value) => value,
            Ended::Stopped(why) => {
                self.fault(Some(index), format!("{} stopped: {why}", kind.name()));
                return self.failed(place, kind, packet, path);
            }
        };
        match (kind, value) {
            (Kind::Header, returned::PROCESS_DATA | returned::PROCESS_DATA_PENDING) => {
                let fate = self.attachment_of(place).expect("its handler ran").processing();
                self.decide(place, packet.expect("it ran on one"), fate, &path);
            }
            (Kind::Header, returned::PROCEED | returned::PROCEED_PENDING) => {
                self.decide(place, packet.expect("it ran on one"), Fate::Deposit, &path);
            }
            (Kind::Header, returned::DROP | returned::DROP_PENDING) => {
                self.decide(place, packet.expect("it ran on one"), Fate::Drop, &path);
            }
            (Kind::Payload, returned::SUCCESS) => self.settled(place, offset.unwrap_or(0), &path),
            (Kind::Payload, returned::DROP) => {
                self.count_dropped(place, &packet.expect("it ran on one"));
                self.settled(place, offset.unwrap_or(0), &path);
            }
            (Kind::Completion, returned::SUCCESS | returned::SUCCESS_PENDING) => {
                self.incoming.borrow_mut().get(place).path.follow(&path);
                self.advance(place);
            }
            (_, returned::FAIL | returned::SEGV) => {
                let word = if value == returned::FAIL { "FAIL" } else { "SEGV" };
                self.fault(Some(index), format!("{} returned {word}", kind.name()));
                self.failed(place, kind, packet, path);
            }
            (_, value) => {
                let allowed = match kind {
                    Kind::Header => "PROCESS_DATA, PROCEED, DROP, FAIL or SEGV",
                    Kind::Payload => "SUCCESS, DROP, FAIL or SEGV",
                    Kind::Completion => "SUCCESS, FAIL or SEGV",
                };
                self.fault(
                    Some(index),
                    format!("{} returned {}, which is none of {allowed}", kind.name(), value as i32),
                );
                self.failed(place, kind, packet, path);
            }
        }
    }

    /// A handler failed: the rest of its message is dropped, and the host gets an event that says so.
    fn failed(self: &Rc<Card>, place: usize, kind: Kind, packet: Option<Packet>, path: Path) {
        self.hpus.count(|before| HandlerStatistics { failed: before.failed + 1, ..before });
        {
            let mut table = self.incoming.borrow_mut();
            let incoming = table.get(place);
            incoming.fail = FailType::HandlerError;
            incoming.path.follow(&path);
        }
        match kind {
            Kind::Header => self.decide(place, packet.expect("it ran on one"), Fate::Drop, &path),
            Kind::Payload => {
                self.incoming.borrow_mut().get(place).fate = Fate::Drop;
                self.settled(place, packet.expect("it ran on one").offset, &path);
            }
            Kind::Completion => self.advance(place),
        }
    }

    /// Keeps a fault for the run's report.
    pub(super) fn fault(&self, hpu: Option<usize>, text: String) {
        let mut faults = self.faults.borrow_mut();
        if faults.len() < FAULTS_KEPT {
            faults.push(Fault { time: self.sim.now(), node: self.node, hpu, text });
        }
    }
}

/// Why a handler was stopped at an instruction.
fn stopped(running: &Running, trap: &Trap) -> Ended {
    let packet = running.memory.phantom.as_ref().map_or(0, Payload::len);
    let phantom = trap.address().is_some_and(|address| running.memory.is_phantom(address, 1));
    Ended::Stopped(match phantom {
        true => format!(
            "the payload is phantom, {packet} bytes long without contents, and a handler cannot touch it; send it from \
             real memory: {trap}"
        ),
        false => trap.to_string(),
    })
}

/// Why a handler was stopped in a command.
fn stop_in_command(running: &Running, image: &Image, pc: u32, stop: Stop) -> Ended {
    match stop {
        Stop::Trap(kind) => stopped(running, &image.trap(pc, kind)),
        Stop::PhantomMemory { len } => Ended::Stopped(format!(
            "the {len} bytes of host memory that it fetched are phantom: they have no contents; give the match entry \
             real memory"
        )),
    }
}

/// The first cycle that begins at `now` or later.
pub(super) fn cycles_until(clock: Frequency, started: Time, now: Time) -> u64 {
    let elapsed = now.since(started);
    let whole = clock.cycles_in(elapsed);
    if clock.cycles(whole) == elapsed { whole } else { whole + 1 }
}
