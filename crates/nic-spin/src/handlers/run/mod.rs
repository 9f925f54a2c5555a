//! A run of a handler, from its start to its result. `frames.rs` has runs on frames, and `ahead.rs` grants turns
//! inside slices.

mod ahead;
pub(crate) mod frames;

use crate::Card;
use crate::Processors;
use crate::handlers::codes::{Stop, code, command_name, phantom_memory};
use crate::handlers::contention::exclusive::Act;
use crate::handlers::disposition::Run;
use crate::handlers::hpus::{Thread, ThreadState};
use crate::handlers::memory::reach::PROGRAM_BITS;
use crate::handlers::outcome::{Ended, returned};
use crate::handlers::pspin::command_unit::Issued;
use crate::handlers::pspin::hardware::Bytes;
use crate::handlers::pspin::ports::{Ports, SeenPorts, Settling};
use crate::handlers::refusals::place;
use crate::handlers::run::ahead::Ahead;
use crate::handlers::running::{Commands, RunMemory, Running, Turn, fill};
use crate::handlers::shared::{SharedWord, WordAccess};
use crate::programs::application::Bound;
use crate::programs::program::{Kind, map};
use crate::resources;
use crate::spec::pspin_map;
use crate::stages;
use nicety_hpu::{AddressSpace, Context, Exit, Image, OrderPoint, Trap, TrapKind};
use nicety_portals::HeaderKind;
use nicety_types::{Duration, HandlerRun, Level, MessageId, Path, Payload, Time};
use std::cell::RefCell;
use std::rc::Rc;

/// The register with the address of the core's registers in PsPIN's runtime: s2.
const REGISTERS: usize = 18;

/// The register tp.
const THREAD_POINTER: usize = 4;

/// Most cycles of a slice. It bounds the delay with which an unordered load sees another handler's store, and the
/// delay of an interrupt of the run.
const SLICE: u64 = 1000;

/// The same in clusters, where handlers are short.
const CLUSTER_SLICE: u64 = 128;

/// An instruction that has its turn.
struct ReadyInstruction {
    /// Its cycles beyond its own.
    extra: u64,
    /// The kind of its access and, for a word that other handlers wait for, the word and its address.
    point: OrderPoint,
    word: Option<(u32, SharedWord)>,
}

impl Card {
    /// Runs one handler after another on a core's thread. Runs as a task.
    pub(crate) async fn serve_thread(self: Rc<Card>, thread: Rc<Thread>) {
        loop {
            let run = thread.next().await;
            self.run(&thread, run).await;
        }
    }

    /// Makes a handler ready to run.
    pub(crate) fn ready(self: &Rc<Card>, run: Run) {
        match self.scheduler.clusters() {
            true => self.schedule(run),
            false => self.ready_in(None, run),
        }
    }

    /// Makes a handler ready to run in a cluster, or anywhere.
    pub(crate) fn ready_in(self: &Rc<Card>, cluster: Option<usize>, run: Run) {
        let new = self.hpus.ready(cluster, run, self.sim.now(), |run| {
            let attachment = self.attachment_of(run.place).expect("only messages with handlers run them");
            attachment.application().clone()
        });
        if let Some(new) = new {
            self.sim.spawn(self.clone().serve_thread(new));
        }
    }

    async fn run(self: &Rc<Card>, thread: &Rc<Thread>, mut run: Run) {
        let (now, ready) = (self.sim.now(), run.path.at());
        let message = self.incoming.borrow_mut().get(run.place).message;
        let attachment = self.attachment_of(run.place).expect("only messages with handlers run them");
        run.stay.began = now;
        if attachment.application().exhausted() {
            self.hpus.release(thread, self.sim.now());
            self.left_cluster(thread.core, &run);
            return self.refused(run);
        }
        self.queued(thread.core, message, &mut run.path);
        thread.state.borrow_mut().begin(attachment.application());
        let mut running = Running {
            thread: thread.clone(),
            kind: run.kind,
            place: run.place,
            packet: run.packet.as_ref().map(|packet| packet.offset),
            message,
            attachment,
            memory: RunMemory::new(),
            edges: self.levels.edges(thread.core, now),
            since: now,
            path: run.path.clone(),
            busy: 0,
            number: self.hpus.next_run(),
            atomic_commands: 0,
            shared_accesses: 0,
            memory_waits: 0,
            fetch_waits: 0,
            issued: self.spec.hpu.pspin.map(|_| Rc::new(Issued::new(&self.sim))),
        };
        let started = running.edges.at(0);
        let (entry, arguments) = self.arguments(&mut run, &mut running);
        let ended = self.processors.execute(self, thread, &mut running, entry, arguments).await;
        self.contention.goes_on(running.number);
        running.path.advance(stages::HANDLER, self.sim.now());
        self.leave_core(&running);
        let parked = running.edges.at(0).since(started);
        self.record_run(&running, [ready, now], parked, ended.name());
        if let Some(packet) = &mut run.packet {
            packet.payload = self.payload_after(thread, &mut running, packet.offset);
            packet.path = running.path.clone();
        }
        if running.issued.is_some() && thread.commands().hold_feedback().await {
            // The core has remained in its task until now.
            self.sim.until(self.levels.edges(thread.core, self.sim.now()).at(self.hpu.handler_end)).await;
        }
        // The core is released first, because the result may start another handler on it.
        self.hpus.release(thread, self.sim.now());
        match self.scheduler.clusters() {
            true => self.sim.spawn(self.clone().feed_back(running, run, ended)),
            false => self.ended(thread.core, run, ended, running.path),
        }
    }

    /// Returns the packet after a handler. A handler of PsPIN has had a copy in L1. The next handler on the packet
    /// gets a new copy of the packet in L2.
    fn payload_after(&self, thread: &Thread, running: &mut Running, offset: u64) -> Payload {
        let payload = running.memory.take_payload();
        let has_next = running.kind == Kind::Header
            || self.incoming.borrow_mut().get(running.place).keeps(offset, payload.len());
        match &thread.state.borrow().hardware {
            Some(hardware) if has_next && payload.is_real() => Payload::copy_of(hardware.l2()),
            _ => payload,
        }
    }

    /// Lets a handler yield: its core runs other handlers, and then resumes it. It keeps its stack and its packet,
    /// and loses its reservation.
    pub(crate) async fn let_others_go(self: &Rc<Card>, running: &mut Running) {
        // Handlers that become ready at this instant compete too.
        self.sim.yield_now().await;
        let (thread, asked) = (running.thread.clone(), self.sim.now());
        if !self.hpus.others_wait(thread.core) {
            return;
        }
        self.leave_core(running);
        let application = running.application();
        application.reservations.borrow_mut().release(thread.core as u32);
        if let Some(new) = self.hpus.park(&thread, application, asked) {
            self.sim.spawn(self.clone().serve_thread(new));
        }
        thread.resumed().await;
        running.since = self.sim.now();
        self.queued(thread.core, running.message, &mut running.path);
        // Its cycles do not advance meanwhile, but `time` does.
        let started = running.edges.at(0) + running.since.since(asked);
        running.edges = self.levels.edges(thread.core, started);
        thread.state.borrow_mut().context.set_time_base(running.edges.card());
    }

    /// Fills the memory of a run. Returns the entry point and the arguments.
    fn arguments(&self, run: &mut Run, running: &mut Running) -> (u32, [u32; 3]) {
        let memory = &mut running.memory;
        let slots = run.slots;
        let mut table = self.incoming.borrow_mut();
        let incoming = table.get(run.place);
        let attachment = incoming.attachment.as_ref().expect("only messages with handlers run them");
        let program = &attachment.program.handlers;
        let payload = run.packet.as_mut().map(|p| std::mem::take(&mut p.payload)).unwrap_or_default();
        let delivery = incoming.delivery.expect("only matched messages run handlers");
        let offset = run.packet.as_ref().map_or(0, |p| p.offset);
        let kept = incoming.kept(offset, payload.len()) as u32;

        memory.hold(payload);
        if program.pspin.is_some() {
            let handler = match run.kind {
                Kind::Header => program.header,
                Kind::Payload => program.payload,
                Kind::Completion => program.completion,
            };
            drop(table);
            return self.begin_task(running, handler.expect("only handlers that exist are run"), slots);
        }
        let mut put = |at: usize, bytes: &[u8]| memory.arguments[at..at + bytes.len()].copy_from_slice(bytes);
        let (entry, registers) = match run.kind {
            Kind::Header => {
                let header = &incoming.header;
                put(0, &request_type(header.kind).to_le_bytes());
                put(4, &(header.length as u32).to_le_bytes());
                put(8, &header.source.0.to_le_bytes());
                put(12, &header.target.0.to_le_bytes());
                put(16, &header.match_bits.to_le_bytes());
                put(24, &header.hdr_data.to_le_bytes());
                put(32, &(delivery.remote_offset as u32).to_le_bytes());
                put(36, &(delivery.mlength as u32).to_le_bytes());
                put(40, &map::PACKET.to_le_bytes());
                put(44, &kept.to_le_bytes());
                (program.header, [map::ARGUMENTS, attachment.state_address(), 0])
            }
            Kind::Payload => {
                put(0, &map::PACKET.to_le_bytes());
                put(4, &kept.to_le_bytes());
                put(8, &(offset as u32).to_le_bytes());
                (program.payload, [map::ARGUMENTS, attachment.state_address(), 0])
            }
            Kind::Completion => {
                let flow_control = u32::from(incoming.flow_control);
                (
                    program.completion,
                    [incoming.dropped_bytes as u32, flow_control, attachment.state_address()],
                )
            }
        };
        (entry.expect("only handlers that exist are run"), registers)
    }
}

impl Processors {
    /// Continues a path that waited for this core.
    pub(crate) fn queued(&self, core: usize, message: MessageId, path: &mut Path) {
        let now = self.sim.now();
        if now > path.at() {
            match &*self.hpus.core(core).last.borrow() {
                // A handler of the same message occupied the core. Its path is the critical one.
                Some((last, of)) if *last == message && of.at() == now => path.clone_from(of),
                _ => path.advance(stages::HANDLER_QUEUED, now),
            }
        }
    }

    /// Takes a handler off its core, for now or for good. Its path ends now.
    pub(crate) fn leave_core(&self, running: &Running) {
        let core = running.thread.core;
        self.hpus.core(core).last.replace(Some((running.message, running.path.clone())));
        let (resource, message) = (resources::HPU.numbered(core as u32), Some(running.message));
        self.recorder.slice(resource, running.since, self.sim.now(), message, running.kind.name());
    }

    pub(crate) fn record_run(
        &self,
        running: &Running,
        [ready, start]: [Time; 2],
        parked: Duration,
        outcome: &'static str,
    ) {
        let end = self.sim.now();
        let watch = self.watch.get();
        if watch.is_some() || self.recorder.keeps(Level::Packets) {
            let run = HandlerRun {
                hpu: running.thread.core as u32,
                kind: running.kind.word(),
                message: running.message,
                offset: running.packet,
                ready,
                start,
                end,
                parked,
                cycles: running.edges.until(end),
                instructions: running.thread.state.borrow().context.instret(),
                outcome,
            };
            if let Some(watch) = watch {
                watch.ran(&run);
            }
            self.recorder.handler_run(run);
        }
    }

    /// Makes a handler wait for DMA that delays accesses of its last slice and was not known in the slice.
    async fn settle(&self, thread: &Thread, running: &Running, ports: &Ports) {
        let mut settling = Settling::default();
        loop {
            let cycle = {
                let state = thread.state.borrow();
                if state.accesses.is_empty() {
                    return;
                }
                state.context.cycle() + settling.waited
            };
            self.sim.pass_until(running.edges.at(cycle)).await;
            let ThreadState { context, accesses, .. } = &mut *thread.state.borrow_mut();
            if settling.settle(ports, running.edges.card(), cycle, accesses) {
                context.stall(settling.waited);
                accesses.clear();
                return;
            }
        }
    }

    /// Runs a handler's instructions in slices. Between slices, time passes and commands are carried out.
    pub(crate) async fn execute(
        &self,
        card: &impl Commands,
        thread: &Thread,
        running: &mut Running,
        entry: u32,
        arguments: [u32; 3],
    ) -> Ended {
        let levels = &*self.levels;
        levels.begins(running);
        let spec = &self.hpu;
        // Whether accesses ask for their turns inside slices. That needs levels in turn, and neither overlap nor
        // instruction caches.
        let asks = levels.in_turn && spec.core.overlap.is_none() && levels.caches.borrow().is_empty();
        let attachment = running.attachment.clone();
        let (program, application) = (&attachment.program, attachment.application());
        let image = &program.handlers.image;
        let ports = card.ports(thread.core);
        let slice = if ports.is_some() { CLUSTER_SLICE } else { SLICE };
        let (limit, bound) = application.bound(spec.handler_start, spec.cycle_limit);
        let (mut stalled, mut ahead) = (0, None);
        let mut due: Option<ReadyInstruction> = None;
        // Whether the access to memory that ended the slice has its turn.
        let mut granted = false;
        {
            let mut state = thread.state.borrow_mut();
            let pspin = program.handlers.pspin.is_some();
            // A handler written for PsPIN has its arguments on the stack.
            let stack_top = if pspin { arguments[0] } else { map::STACK + spec.stack };
            let hart =
                running.memory.hardware.as_ref().map_or(thread.core as u32, |hardware| hardware.hart());
            state.context = Context::new(hart);
            state.context.call(image, entry, stack_top, &arguments, limit);
            if pspin {
                state.context.set_reg(REGISTERS, pspin_map::HARDWARE);
                // FPsPIN's runtime keeps the core's number there for handlers.
                state.context.set_reg(THREAD_POINTER, hart);
            }
            state.context.set_cycle(spec.handler_start);
            // `time` continues between handlers, `cycle` restarts with each.
            state.context.set_time_base(running.edges.card());
        }
        let ended = loop {
            // `unasked` says whether no access has used a granted turn.
            let (exit, unasked) = {
                let mut state = thread.state.borrow_mut();
                let ThreadState { context, stack, accesses, .. } = &mut *state;
                let (mut data, mut bytes) =
                    (program.data.bytes.borrow_mut(), attachment.state.bytes.borrow_mut());
                let words = application.atomic_words.borrow();
                let mut pads = program.pads.borrow_mut();
                let mut caches = levels.caches.borrow_mut();
                let (base, known) = (running.edges.card(), ports.map_or(0, |ports| ports.known));
                let dma = ports.map(|ports| SeenPorts {
                    ports,
                    base,
                    // The cost of an access that overlaps others cannot be found later.
                    known: if spec.core.overlap.is_some() { u64::MAX } else { context.cycle() + known },
                    accesses: RefCell::new(accesses),
                });
                let mut ahead_of_others = Ahead {
                    sim: &self.sim,
                    levels,
                    edges: &running.edges,
                    words: &words,
                    turn: Turn {
                        core: thread.core,
                        cycle: 0,
                        pc: 0,
                        attachment: &attachment,
                        shared_accesses: &mut running.shared_accesses,
                        memory_waits: &mut running.memory_waits,
                    },
                    base: running.edges.card(),
                    first: std::mem::take(&mut granted),
                };
                let mut space = AddressSpace::new();
                if let Some(cache) = levels.cache_of(&mut caches, thread.core) {
                    space.fetch_through(cache, program.number << PROGRAM_BITS);
                }
                let memory = Bytes { data: &mut data, state: &mut bytes, stack, pads: &mut pads };
                fill(&mut space, &levels.timings, &attachment, memory, &mut running.memory);
                if let Some(dma) = &dma {
                    space.wait_for_dma(dma);
                }
                space.order_words(&words);
                let mut reservations = application.reservations.borrow_mut();
                let performed = due.take().map_or(Ok(()), |ReadyInstruction { extra, point, word }| {
                    let pc = context.pc();
                    let value = |space: &AddressSpace<'_>| {
                        let (address, _) = word.as_ref()?;
                        space.read(*address, 4).ok()?.first_chunk::<4>().copied()
                    };
                    let before = value(&space);
                    context.perform(image, &mut space, &mut reservations)?;
                    context.stall(extra);
                    if let Some((_, shared)) = &word {
                        let changed = value(&space) != before;
                        let (run, act) = (running.number, Act::of(&point, image, pc));
                        self.comes_to(shared, &WordAccess { run, image, pc, act, changed });
                    }
                    Ok(())
                });
                // A turn is granted at a cycle, and waits for DMA may move that cycle.
                if asks && dma.is_none() {
                    space.take_turns(&mut ahead_of_others, slice);
                }
                let exit = match performed {
                    Err(trap) => Exit::Trap(trap),
                    Ok(()) => {
                        let until = context.cycle().saturating_add(slice);
                        context.run(image, &mut space, &mut reservations, until)
                    }
                };
                drop(space);
                (exit, ahead_of_others.first)
            };
            if let Some(ports) = ports {
                self.settle(thread, running, ports).await;
            }
            let cycle = thread.state.borrow().context.cycle();
            if matches!(exit, Exit::Return(_)) && thread.transfers.all_free() {
                // The return has no effect. So the task waits only once, until the handler's end.
                ahead = Some(cycle);
            } else {
                let reached = running.edges.at(cycle);
                match &exit {
                    // It was not its turn: other events come first.
                    Exit::Order(OrderPoint::Memory { .. }) if asks => self.sim.until(reached).await,
                    _ => self.sim.pass_until(reached).await,
                }
            }
            match exit {
                Exit::Return(value) => break Ended::Returned(value),
                Exit::Trap(trap) => {
                    let in_vain = self.contention.in_vain(running.number);
                    break match stopped_within(running, &trap, bound) {
                        Ended::Stopped(why) if matches!(trap.kind, TrapKind::CycleLimit { .. }) => {
                            Ended::Stopped(
                                [Some(why), in_vain].into_iter().flatten().collect::<Vec<_>>().join("; "),
                            )
                        }
                        ended => ended,
                    };
                }
                Exit::Order(OrderPoint::Fence) => {
                    let performed = {
                        let mut state = thread.state.borrow_mut();
                        let ThreadState { context, stack, .. } = &mut *state;
                        let (mut data, mut bytes) =
                            (program.data.bytes.borrow_mut(), attachment.state.bytes.borrow_mut());
                        let mut pads = program.pads.borrow_mut();
                        let mut space = AddressSpace::new();
                        let memory = Bytes { data: &mut data, state: &mut bytes, stack, pads: &mut pads };
                        fill(&mut space, &levels.timings, &attachment, memory, &mut running.memory);
                        context.perform(image, &mut space, &mut application.reservations.borrow_mut())
                    };
                    if let Err(trap) = performed {
                        break stopped(running, &trap);
                    }
                    running.orders_next();
                }
                Exit::Order(point) => {
                    let word = running.ordered_word(&point);
                    let asks = asks && !unasked && ports.is_none();
                    if asks && word.is_none() && matches!(point, OrderPoint::Memory { .. }) {
                        granted = true;
                        continue;
                    }
                    let extra = levels.in_turn(&mut running.turn(), &point);
                    due = Some(ReadyInstruction { extra, point, word });
                }
                Exit::Ecall => {
                    let asked = self.sim.now();
                    running.path.advance(stages::HANDLER, asked);
                    let registers = thread.state.borrow().context.args();
                    let answer = card.command(running, registers).await;
                    if self.sim.now() > asked && running.since <= asked {
                        let (hpu, what) =
                            (resources::HPU.numbered(thread.core as u32), command_name(registers[7]));
                        self.recorder.slice(hpu, asked, self.sim.now(), Some(running.message), what);
                    }
                    match answer {
                        Ok(result) => {
                            let over = running.edges.until(self.sim.now());
                            let mut state = thread.state.borrow_mut();
                            if result != code::OK && program.handlers.pspin.is_none() {
                                self.refusals.count(&registers, result, image, state.context.pc());
                            }
                            state.context.finish_ecall(result, 0);
                            // The command was issued at `cycle`. Its wait ends at `over`.
                            let cycle = state.context.cycle();
                            stalled += over.saturating_sub(cycle);
                            let busy = std::mem::take(&mut running.busy);
                            state.context.set_cycle(cycle.max(over) + busy);
                        }
                        Err(stop) => {
                            let pc = thread.state.borrow().context.pc();
                            break stop_in_command(running, image, pc, stop);
                        }
                    }
                }
                Exit::Fetch { address, asked } => {
                    let cycles = levels.fetch(running, address, asked);
                    running.fetch_waits += cycles;
                    thread.state.borrow_mut().context.stall(cycles);
                }
                Exit::Limit => {
                    self.sim.check_interrupt();
                    running.orders_polled();
                }
                Exit::Device(access) => {
                    let asked = self.sim.now();
                    running.path.advance(stages::HANDLER, asked);
                    match card.register(running, access).await {
                        Ok(None) => break Ended::Returned(success(running.kind)),
                        Ok(Some(value)) => {
                            let over = running.edges.until(self.sim.now());
                            let context = &mut thread.state.borrow_mut().context;
                            let waited = over.saturating_sub(context.cycle());
                            stalled += waited;
                            context.stall(waited);
                            context.finish_device(value, 0);
                        }
                        Err(stop) => {
                            let pc = thread.state.borrow().context.pc();
                            break stop_in_command(running, image, pc, stop);
                        }
                    }
                }
            }
        };
        let ended = match (card.leave(running), ended) {
            (Err(stop), Ended::Returned(_)) => {
                let pc = thread.state.borrow().context.pc();
                stop_in_command(running, image, pc, stop)
            }
            (_, ended) => ended,
        };
        application.reservations.borrow_mut().release(thread.state.borrow().context.hart());
        if let Some(hardware) = running.memory.hardware.take() {
            thread.state.borrow_mut().hardware = Some(hardware);
        }
        let over = ahead.unwrap_or_else(|| running.edges.until(self.sim.now()));
        stalled += over.saturating_sub(thread.state.borrow().context.cycle());
        let cycle = over + spec.handler_end;
        self.sim.pass_until(running.edges.at(cycle)).await;

        let (instructions, accesses) = {
            let context = &thread.state.borrow().context;
            (context.instret(), context.accesses() + running.atomic_commands)
        };
        application.count(|statistics| {
            statistics.runs += 1;
            statistics.instructions += instructions;
            statistics.accesses += accesses;
            statistics.shared_accesses += running.shared_accesses;
            statistics.memory_waits += running.memory_waits;
            statistics.fetch_waits += running.fetch_waits;
            statistics.cycles += cycle;
            statistics.stalled += stalled;
        });
        ended
    }
}

/// Returns the result of PsPIN's handlers, which return no code.
const fn success(kind: Kind) -> u32 {
    match kind {
        Kind::Header => returned::PROCESS_DATA,
        Kind::Payload | Kind::Completion => returned::SUCCESS,
    }
}

/// Returns the end of a handler that was stopped at an instruction, possibly by its bound.
fn stopped_within(running: &Running, trap: &Trap, bound: Bound) -> Ended {
    let budget = match bound {
        _ if !matches!(trap.kind, TrapKind::CycleLimit { .. }) => return stopped(running, trap),
        Bound::CycleLimit => return stopped(running, trap),
        Bound::Run(cycles) => format!("{cycles} cycles for a run"),
        Bound::Total(cycles) => format!("{cycles} cycles in all"),
    };
    let name = running.application().name();
    let place = match &trap.location {
        Some(location) => format!("{location} (pc {:#010x})", trap.pc),
        None => format!("at pc {:#010x}", trap.pc),
    };
    Ended::OutOfBudget(format!("the budget of application '{name}' is used up, {budget}, {place}"))
}

/// Returns the end of a handler that was stopped at an instruction.
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

/// Returns the end of a handler that was stopped in a command.
fn stop_in_command(running: &Running, image: &Image, pc: u32, stop: Stop) -> Ended {
    match stop {
        Stop::Trap(kind) => stopped(running, &image.trap(pc, kind)),
        Stop::PhantomMemory { len } => Ended::Stopped(phantom_memory(len)),
        Stop::Wrong(why) => Ended::Stopped(format!("{why}, at {}", place(image, pc))),
    }
}

/// Returns the request type of a message, as numbered in nicety.h.
const fn request_type(kind: HeaderKind) -> u32 {
    match kind {
        HeaderKind::Put | HeaderKind::Reply | HeaderKind::Ack => 0,
        HeaderKind::Get => 1,
        HeaderKind::Atomic => 2,
        HeaderKind::FetchAtomic => 3,
        HeaderKind::Swap => 4,
    }
}
