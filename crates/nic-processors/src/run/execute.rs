//! The execution of a handler, slice after slice. Between slices, time passes and commands are carried out.

use crate::Processors;
use crate::commands::codes::{Stop, code, command_name};
use crate::contention::exclusive::Act;
use crate::hpus::{Thread, ThreadState};
use crate::memory::levels::Levels;
use crate::memory::reach::PROGRAM_BITS;
use crate::programs::application::Bound;
use crate::programs::attachments::Attachment;
use crate::programs::program::map;
use crate::pspin::hardware::Bytes;
use crate::pspin::ports::{Ports, SeenPorts};
use crate::resources;
use crate::run::ahead::Ahead;
use crate::run::ends::{stop_in_command, stopped, stopped_within, success};
use crate::run::observe::{Command, Observe, Observed, ObservedRun};
use crate::run::profile::{CommandCauses, cause_of_register, causes_of_command};
use crate::run::shared::{SharedWord, WordAccess};
use crate::running::{Commands, Ended, Running, Turn, fill};
use crate::spec::pspin_map;
use crate::stages;
use nicety_hpu::profile::{Cause, Parts};
use nicety_hpu::{
    AddressSpace, Context, DeviceAccess, Exit, Image, OrderPoint, RETURN_ADDRESS, Reservations, Trap,
    TrapKind,
};
use nicety_types::Time;
use std::cell::RefCell;
use std::ops::ControlFlow::{self, Break, Continue};
use std::rc::Rc;

/// The register with the address of the core's registers in PsPIN's runtime: s2.
const REGISTERS: usize = 18;

/// Argument registers of a command of nicety.h.
const ARGUMENTS: usize = 5;

/// The register tp.
const THREAD_POINTER: usize = 4;

/// Most cycles of a slice. It bounds the delay with which an unordered load sees another handler's store, and the
/// delay of an interrupt of the run.
const SLICE: u64 = 1000;

/// The same in clusters, where handlers are short.
const CLUSTER_SLICE: u64 = 128;

/// The same for threads that share the issue of a core: an instruction, so that threads take turns at each cycle.
const THREAD_SLICE: u64 = 1;

/// An instruction that has its turn.
struct DueInstruction {
    /// Its cycles beyond its own.
    extra: u64,
    /// The causes of these cycles.
    causes: Parts,
    /// The kind of its access and, for a word that other handlers wait for, the word and its address.
    point: OrderPoint,
    word: Option<(u32, SharedWord)>,
}

/// The execution of a handler.
struct Execution<'e, C> {
    processors: &'e Processors,
    levels: &'e Levels,
    card: &'e Rc<C>,
    ports: Option<&'e Ports>,
    observer: Option<&'e dyn Observe>,
    thread: &'e Thread,
    running: &'e mut Running,
    attachment: Rc<Attachment>,
    /// The budget that stops it.
    bound: Bound,
    /// Whether accesses ask for their turns inside slices. That needs levels in turn, and neither overlap, instruction
    /// caches nor an observer.
    asks: bool,
    /// The instruction that the next slice begins with.
    due: Option<DueInstruction>,
    /// Whether the access to memory that ended the slice has its turn.
    granted: bool,
    /// Whether no access of the slice has used a granted turn.
    unasked: bool,
    /// The cycle of its return, if the task does not wait for that.
    returned: Option<u64>,
    /// The cycles of its waits.
    stalled: u64,
    /// Its first instruction.
    entry: u32,
    /// The completed instructions at the last report to the observer.
    reported: Option<u64>,
    /// Whether the slice ends behind the instruction that has its turn.
    only_due: bool,
    /// The cycles of its waits for issue.
    issue_waits: u64,
    /// The cycle of the last look for words that the handler polls.
    looked: u64,
}

/// The start of a slice of a hardware thread: its cycle, the completed instructions before it, and its first address.
type SliceStart = (u64, u64, u32);

impl Processors {
    /// Runs a handler's instructions in slices. Between slices, time passes and commands are carried out.
    pub async fn execute(
        &self,
        card: &Rc<impl Commands>,
        thread: &Thread,
        running: &mut Running,
        entry: u32,
        arguments: [u32; 3],
    ) -> Ended {
        let mut execution = Execution::begin(self, card, thread, running, entry, arguments);
        if let Some(observer) = execution.observer {
            observer.begins(execution.running);
        }
        let ended = loop {
            let begun = match execution.ready().await {
                Continue(begun) => begun,
                Break(ended) => break ended,
            };
            let exit = execution.slice();
            execution.issue(begun, &exit);
            if let Some(ports) = execution.ports {
                self.settle(thread, execution.running, ports).await;
            }
            match execution.reached(&exit) {
                None => {}
                // It was not its turn: other events come first.
                Some((reached, true)) => self.sim.until(reached).await,
                Some((reached, false)) => self.sim.pass_until(reached).await,
            }
            let next = match exit {
                Exit::Ecall => execution.command().await,
                Exit::Device(access) => execution.register(access).await,
                exit => execution.go_on(exit),
            };
            if let Break(ended) = next {
                break ended;
            }
        };
        let (ended, cycle) = execution.leave(ended);
        self.sim.pass_until(execution.running.edges.at(cycle)).await;
        execution.count(cycle);
        ended
    }
}

impl<'e, C: Commands> Execution<'e, C> {
    /// Prepares the registers of a thread for a handler.
    fn begin(
        processors: &'e Processors,
        card: &'e Rc<C>,
        thread: &'e Thread,
        running: &'e mut Running,
        entry: u32,
        arguments: [u32; 3],
    ) -> Execution<'e, C> {
        let (levels, spec) = (&*processors.levels, &processors.hpu);
        levels.begins(running);
        let attachment = running.attachment.clone();
        let handlers = &attachment.program.handlers;
        let (limit, bound) = attachment.application().bound(spec.handler_start, spec.cycle_limit);
        {
            let mut state = thread.state.borrow_mut();
            let pspin = handlers.pspin.is_some();
            // A handler written for PsPIN has its arguments on the stack.
            let stack_top = if pspin { arguments[0] } else { map::STACK + spec.stack };
            let hart =
                running.memory.hardware.as_ref().map_or(thread.core as u32, |hardware| hardware.hart());
            state.context.renew(hart);
            state.context.call(&handlers.image, entry, stack_top, &arguments, limit);
            if pspin {
                state.context.set_reg(REGISTERS, pspin_map::HARDWARE.into());
                // FPsPIN's runtime keeps the core's number there for handlers.
                state.context.set_reg(THREAD_POINTER, hart.into());
            }
            state.context.set_cycle(spec.handler_start);
            // `time` continues between handlers, `cycle` restarts with each.
            state.context.set_time_base(running.edges.card());
            if let Some(profiles) = processors.profiles.get() {
                profiles.begin(&attachment, entry, &mut state);
            }
        }
        let observer = processors.observer.get().map(|observer| &**observer);
        let plain = spec.core.overlap.is_none() && levels.caches.borrow().is_empty();
        Execution {
            processors,
            levels,
            card,
            ports: card.ports(thread.core),
            observer,
            thread,
            running,
            attachment,
            bound,
            // A thread that shares its core's issue waits for that between accesses.
            asks: levels.in_turn && plain && observer.is_none() && processors.hpus.issue.is_none(),
            due: None,
            granted: false,
            unasked: false,
            returned: None,
            stalled: 0,
            entry,
            reported: None,
            only_due: false,
            issue_waits: 0,
            looked: 0,
        }
    }

    /// Performs the access that has its turn, and waits until its thread can ask for its next instruction. Does
    /// nothing on a core of one thread.
    async fn ready(&mut self) -> ControlFlow<Ended, SliceStart> {
        if self.processors.hpus.issue.is_none() {
            return Continue((0, 0, 0));
        }
        if self.due.is_some() {
            self.only_due = true;
            let exit = self.slice();
            self.only_due = false;
            if let Exit::Trap(trap) = &exit {
                return Break(self.trapped(trap));
            }
        }
        let cycle = self.thread.state.borrow().context.cycle();
        self.processors.sim.pass_until(self.running.edges.at(cycle)).await;
        let context = &self.thread.state.borrow().context;
        Continue((cycle, context.instret(), context.pc()))
    }

    /// Makes the instructions of a slice wait for a port of the core.
    fn issue(&mut self, (cycle, completed, first): SliceStart, exit: &Exit) {
        let Some(issue) = &self.processors.hpus.issue else { return };
        // The instruction that ends it completes later.
        let last = matches!(exit, Exit::Order(_) | Exit::Ecall | Exit::Device(_));
        let instructions = self.thread.state.borrow().context.instret() - completed + u64::from(last);
        let wait = issue.take(self.thread.core, self.running.edges.card() + cycle, instructions);
        self.issue_waits += wait;
        // Behind the last instruction there is none; the wait is one of its slice.
        let next = self.thread.state.borrow().context.pc();
        self.stall_at(if next == RETURN_ADDRESS { first } else { next }, Cause::Ready, wait);
    }

    /// Executes instructions until the handler needs an ordered access or a command of the card.
    fn slice(&mut self) -> Exit {
        let seen = self.observer.map(|observer| (observer, ObservedRun::of(self.running)));
        let Execution { processors, levels, thread, attachment, ports, .. } = self;
        let (program, application) = (&attachment.program, attachment.application());
        let image = &program.handlers.image;
        let Running { number, edges, memory, shared_accesses, memory_waits, causes, .. } = &mut *self.running;
        let mut state = thread.state.borrow_mut();
        let ThreadState { context, stack, accesses, profile, .. } = &mut *state;
        let (mut data, mut bytes) = (program.data.bytes.borrow_mut(), attachment.state.bytes.borrow_mut());
        let words = application.atomic_words.borrow();
        let mut pads = program.pads.borrow_mut();
        let mut caches = levels.caches.borrow_mut();
        let base = edges.card();
        let dma = ports.map(|ports| SeenPorts {
            ports,
            base,
            // The cost of an access that overlaps others cannot be found later.
            known: match processors.hpu.core.overlap {
                Some(_) => u64::MAX,
                None => context.cycle() + ports.known,
            },
            accesses: RefCell::new(accesses),
        });
        let slice = match (&dma, &processors.hpus.issue) {
            (_, Some(_)) => THREAD_SLICE,
            (Some(_), None) => CLUSTER_SLICE,
            (None, None) => SLICE,
        };
        let turn =
            Turn { core: thread.core, cycle: 0, pc: 0, attachment, shared_accesses, memory_waits, causes };
        let first = std::mem::take(&mut self.granted);
        let mut ahead = Ahead { sim: &processors.sim, levels, edges, words: &words, turn, base, first };
        let mut space = AddressSpace::new();
        if let Some(cache) = levels.cache_of(&mut caches, thread.core) {
            space.fetch_through(cache, program.number << PROGRAM_BITS);
        }
        let hpu_memory = Bytes { data: &mut data, state: &mut bytes, stack, pads: &mut pads };
        fill(&mut space, &levels.timings, attachment, hpu_memory, memory);
        if let Some(dma) = &dma {
            space.wait_for_dma(dma);
        }
        space.order_words(&words);
        if let Some(profile) = profile {
            space.count_in(profile);
        }
        let mut reservations = application.reservations.borrow_mut();
        let reported = &mut self.reported;
        let mut observed =
            seen.as_ref().map(|&(observer, ref run)| Observed { observer, run, image, edges, reported });
        let performed = match self.due.take() {
            None => Ok(()),
            Some(due) if observed.as_mut().is_some_and(|o| o.in_turn(context, &mut space, due.point)) => {
                Ok(())
            }
            Some(due) => processors.perform(due, *number, image, context, &mut space, &mut reservations),
        };
        // A turn is granted at a cycle, and waits for DMA may move that cycle.
        if self.asks && dma.is_none() {
            space.take_turns(&mut ahead, slice);
        }
        let exit = match performed {
            Err(trap) => Exit::Trap(trap),
            Ok(()) => {
                let until = context.cycle().saturating_add(if self.only_due { 0 } else { slice });
                match &mut observed {
                    None => context.run(image, &mut space, &mut reservations, until),
                    Some(observed) => observed.run(context, &mut space, &mut reservations, until),
                }
            }
        };
        drop(space);
        self.unasked = ahead.first;
        exit
    }

    /// Returns the time that the handler has reached, and whether other events come first. None if it has returned
    /// without an effect, so that the task waits only once, until the handler's end.
    fn reached(&mut self, exit: &Exit) -> Option<(Time, bool)> {
        let cycle = self.thread.state.borrow().context.cycle();
        if matches!(exit, Exit::Return(_)) && self.thread.transfers.all_free() {
            self.returned = Some(cycle);
            return None;
        }
        let others_first = self.asks && matches!(exit, Exit::Order(OrderPoint::Memory { .. }));
        Some((self.running.edges.at(cycle), others_first))
    }

    /// Handles the end of a slice that needs no command.
    fn go_on(&mut self, exit: Exit) -> ControlFlow<Ended> {
        match exit {
            Exit::Return(value) => return Break(Ended::Returned(value)),
            Exit::Trap(trap) => return Break(self.trapped(&trap)),
            Exit::Order(OrderPoint::Fence) => {
                if let Err(trap) = self.fence() {
                    self.report_trap(&trap);
                    return Break(stopped(self.running, &trap));
                }
                self.running.orders_next();
            }
            Exit::Order(point) => {
                let word = self.running.ordered_word(&point);
                let asks = self.asks && !self.unasked && self.ports.is_none();
                if asks && word.is_none() && matches!(point, OrderPoint::Memory { .. }) {
                    self.granted = true;
                } else {
                    let extra = self.levels.in_turn(&mut self.running.turn(), &point);
                    let causes = std::mem::take(&mut self.running.causes);
                    self.due = Some(DueInstruction { extra, causes, point, word });
                }
            }
            Exit::Fetch { address, asked } => {
                let cycles = self.levels.fetch(self.running, address, asked);
                self.running.fetch_waits += cycles;
                self.stall(Cause::Fetch, cycles);
            }
            Exit::Limit => {
                let cycle = self.thread.state.borrow().context.cycle();
                if self.processors.hpus.issue.is_some() && cycle < self.looked + SLICE {
                    return Continue(());
                }
                self.looked = cycle;
                self.processors.sim.check_interrupt();
                self.running.orders_polled();
            }
            Exit::Ecall | Exit::Device(_) => unreachable!("these are commands"),
        }
        Continue(())
    }

    /// Reports a trap to the observer.
    fn report_trap(&mut self, trap: &Trap) {
        if let Some(observer) = self.observer {
            observer.traps(self.running, trap);
            observer.stops(self.running, trap.error());
        }
    }

    /// Returns the end of the handler at a trap.
    fn trapped(&mut self, trap: &Trap) -> Ended {
        self.report_trap(trap);
        let in_vain = self.processors.contention.in_vain(self.running.number);
        match stopped_within(self.running, trap, self.bound) {
            Ended::Stopped(why) if matches!(trap.kind, TrapKind::CycleLimit { .. }) => {
                Ended::Stopped([Some(why), in_vain].into_iter().flatten().collect::<Vec<_>>().join("; "))
            }
            ended => ended,
        }
    }

    /// Performs a fence.
    fn fence(&mut self) -> Result<(), Box<Trap>> {
        let seen = self.observer.map(|observer| (observer, ObservedRun::of(self.running)));
        let (program, application) = (&self.attachment.program, self.attachment.application());
        let mut state = self.thread.state.borrow_mut();
        let ThreadState { context, stack, profile, .. } = &mut *state;
        let (mut data, mut bytes) =
            (program.data.bytes.borrow_mut(), self.attachment.state.bytes.borrow_mut());
        let mut pads = program.pads.borrow_mut();
        let mut space = AddressSpace::new();
        let memory = Bytes { data: &mut data, state: &mut bytes, stack, pads: &mut pads };
        let (edges, image) = (&self.running.edges, &program.handlers.image);
        fill(&mut space, &self.levels.timings, &self.attachment, memory, &mut self.running.memory);
        if let Some(profile) = profile {
            space.count_in(profile);
        }
        if let Some((observer, run)) = &seen {
            let mut observed =
                Observed { observer: *observer, run, image, edges, reported: &mut self.reported };
            if observed.in_turn(context, &mut space, OrderPoint::Fence) {
                return Ok(());
            }
        }
        context.perform(image, &mut space, &mut application.reservations.borrow_mut())
    }

    /// Carries out the command of the handler's call.
    async fn command(&mut self) -> ControlFlow<Ended> {
        let (processors, thread) = (self.processors, self.thread);
        let asked = processors.sim.now();
        self.running.path.advance(stages::HANDLER, asked);
        let (registers, beyond) = {
            let context = &thread.state.borrow().context;
            (context.args(), context.argument_beyond(ARGUMENTS))
        };
        if let Some(observer) = self.observer {
            observer.command(self.running, &Command::Call(registers));
        }
        if let Some(argument) = beyond {
            return Break(self.stop(Stop::Trap(TrapKind::ArgumentBeyond { argument })));
        }
        let answer = self.card.command(self.running, registers).await;
        let (now, running) = (processors.sim.now(), &mut *self.running);
        if now > asked && running.since <= asked {
            let (hpu, command) = (resources::HPU.numbered(thread.core as u32), command_name(registers[7]));
            processors.recorder.slice(hpu, asked, now, Some(running.message), command);
        }
        let result = match answer {
            Ok(result) => result,
            Err(stop) => return Break(self.stop(stop)),
        };
        let handlers = &self.attachment.program.handlers;
        let over = running.edges.until(now);
        let mut state = thread.state.borrow_mut();
        let ThreadState { context, profile, .. } = &mut *state;
        if result != code::OK && handlers.pspin.is_none() {
            processors.refusals.count(&registers, result, &handlers.image, context.pc());
        }
        let pc = context.pc();
        context.finish_ecall(result, 0);
        // The command was issued at `cycle`. Its wait ends at `over`.
        let cycle = context.cycle();
        self.stalled += over.saturating_sub(cycle);
        let busy = std::mem::take(&mut running.busy);
        context.set_cycle(cycle.max(over) + busy);
        if let Some(profile) = profile {
            let CommandCauses { wait, busy } = causes_of_command(&registers);
            handlers.image.count_in(profile, pc);
            profile.reach(pc, wait, cycle.max(over));
            let causes = std::mem::take(&mut running.causes);
            let causes = if busy == Cause::Atomic { causes } else { Parts::new() };
            profile.reach_in_parts(pc, &causes, busy, context.cycle());
        }
        drop(state);
        if let Some(observer) = self.observer {
            observer.commanded(self.running, &Command::Call(registers));
        }
        Continue(())
    }

    /// Carries out an access to a register of the core.
    async fn register(&mut self, access: DeviceAccess) -> ControlFlow<Ended> {
        let asked = self.processors.sim.now();
        self.running.path.advance(stages::HANDLER, asked);
        if let Some(observer) = self.observer {
            observer.command(self.running, &Command::Register(access));
        }
        match self.card.register(self.running, access).await {
            Ok(None) => return Break(Ended::Returned(success(self.running.kind))),
            Ok(Some(value)) => {
                let over = self.running.edges.until(self.processors.sim.now());
                let waited = over.saturating_sub(self.thread.state.borrow().context.cycle());
                self.stalled += waited;
                self.stall(cause_of_register(&access, pspin_map::HARDWARE), waited);
                let ThreadState { context, profile, .. } = &mut *self.thread.state.borrow_mut();
                if let Some(profile) = profile {
                    self.attachment.program.handlers.image.count_in(profile, context.pc());
                }
                context.finish_device(value, 0);
            }
            Err(stop) => return Break(self.stop(stop)),
        }
        if let Some(observer) = self.observer {
            observer.commanded(self.running, &Command::Register(access));
        }
        Continue(())
    }

    /// Makes the next instruction wait.
    fn stall(&self, cause: Cause, cycles: u64) {
        let pc = self.thread.state.borrow().context.pc();
        self.stall_at(pc, cause, cycles);
    }

    fn stall_at(&self, pc: u32, cause: Cause, cycles: u64) {
        let ThreadState { context, profile, .. } = &mut *self.thread.state.borrow_mut();
        context.stall(cycles);
        if let Some(profile) = profile {
            profile.reach(pc, cause, context.cycle());
        }
    }

    /// Returns the end of a handler that was stopped in a command.
    fn stop(&mut self, stop: Stop) -> Ended {
        if let Some(observer) = self.observer {
            observer.stops(self.running, stop.error());
        }
        let pc = self.thread.state.borrow().context.pc();
        stop_in_command(self.running, &self.attachment.program.handlers.image, pc, stop)
    }

    /// Ends the handler on its thread. Returns its end, and the cycle at which its core is free.
    fn leave(&mut self, ended: Ended) -> (Ended, u64) {
        let ended = match (self.card.leave(self.running), ended) {
            (Err(stop), Ended::Returned(_)) => self.stop(stop),
            (_, ended) => ended,
        };
        if let Some(observer) = self.observer {
            observer.ends(self.running, &ended);
        }
        let (mut state, running) = (self.thread.state.borrow_mut(), &mut *self.running);
        self.attachment.application().reservations.borrow_mut().release(state.context.hart());
        if let Some(hardware) = running.memory.hardware.take() {
            state.hardware = Some(hardware);
        }
        let over = self.returned.unwrap_or_else(|| running.edges.until(self.processors.sim.now()));
        self.stalled += over.saturating_sub(state.context.cycle());
        (ended, over + self.processors.hpu.handler_end)
    }

    /// Adds the run, which has taken `cycles`, to the application's statistics and to the profile.
    fn count(&self, cycles: u64) {
        let (running, state) = (&*self.running, &mut *self.thread.state.borrow_mut());
        if let (Some(profiles), Some(profile)) = (self.processors.profiles.get(), &mut state.profile) {
            let handler_end = self.processors.hpu.handler_end;
            profile.reach(self.entry, Cause::Transfer, cycles - handler_end);
            profile.reach(self.entry, Cause::Dispatch, cycles);
            profiles.add(&self.attachment, profile);
        }
        let context = &state.context;
        self.attachment.application().count(|statistics| {
            statistics.runs += 1;
            statistics.instructions += context.instret();
            statistics.accesses += context.accesses() + running.atomic_commands;
            statistics.shared_accesses += running.shared_accesses;
            statistics.memory_waits += running.memory_waits;
            statistics.fetch_waits += running.fetch_waits;
            statistics.cycles += cycles;
            statistics.stalled += self.stalled;
            statistics.issue_waits += self.issue_waits;
        });
    }
}

impl Processors {
    /// Performs the instruction that has its turn, for the run with this number.
    fn perform(
        &self,
        DueInstruction { extra, causes, point, word }: DueInstruction,
        run: u64,
        image: &Image,
        context: &mut Context,
        space: &mut AddressSpace<'_>,
        reservations: &mut Reservations,
    ) -> Result<(), Box<Trap>> {
        let pc = context.pc();
        // An access of RV64 may be to two words.
        let end = match point {
            OrderPoint::Atomic { address, size, .. } | OrderPoint::Memory { address, size, .. } => {
                address.saturating_add(size - 1)
            }
            OrderPoint::Fence => 0,
        };
        let value = |space: &AddressSpace<'_>| {
            let (address, _) = word.as_ref()?;
            let mut value = [0; 8];
            let bytes = if end.saturating_sub(*address) < 4 { 4 } else { 8 };
            value[..bytes].copy_from_slice(space.read(*address, bytes as u32).ok()?);
            Some(value)
        };
        let before = value(space);
        context.perform(image, space, reservations)?;
        context.stall(extra);
        if let Some(profile) = space.profile() {
            profile.reach_in_parts(pc, &causes, Cause::Bank, context.cycle());
        }
        if let Some((_, shared)) = &word {
            let changed = value(space) != before;
            let act = Act::of(&point, image, pc);
            self.comes_to(shared, &WordAccess { run, image, pc, act, changed });
        }
        Ok(())
    }
}
