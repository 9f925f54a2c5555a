//! Executes the programs of microengines. Each core has a task of the simulation kernel.
//!
//! A context's instructions up to its next reference to a memory have no effect that another core can see. So the task
//! executes them at once. It then sleeps until the cycle of the reference, makes the reference, and gives the core to
//! the next context. So a reference costs one event of the simulation.

use crate::processor::engine::{Engine, EngineState, Next, Outcome, SIGNALS, Slot, State};
use crate::processor::intrinsics::{self, Call};
use crate::processor::memory::{Memories, Reference};
use crate::processor::nfp::Nfp;
use crate::processor::observe::Observed;
use crate::processor::service::{self, Place, Served};
use crate::spec::NfpSpec;
use nicety_hpu::profile::Cause;
use nicety_hpu::{Access, AddressSpace, DeviceAccess, Exit, Nearest, OrderPoint, Region, TrapKind};
use nicety_kernel::{Sim, race};
use std::rc::Rc;

/// Maximum number of cycles that are executed ahead of virtual time. Due to this limit, the user can interrupt every
/// run.
const SLICE: u64 = 1_000_000;

/// The next state of the context that ran.
enum NextState {
    /// The context continues.
    Continue,
    /// The context releases the core.
    Leave(State),
}

impl Nfp {
    /// Returns a processor without programs on its microengines.
    pub fn new(sim: &Sim, spec: &NfpSpec) -> Rc<Nfp> {
        let nfp = Rc::new(Nfp::parts(sim, spec));
        (0..spec.cores).for_each(|core| sim.spawn(nfp.clone().serve(core)));
        nfp
    }

    /// The task of a microengine. It never returns.
    async fn serve(self: Rc<Nfp>, index: usize) {
        let engine = &self.engines[index];
        loop {
            let next = engine.state.borrow().next(self.cycle());
            match next {
                Next::Run { slot, at } => {
                    engine.state.borrow_mut().dispatch(slot, at, self.spec.switch);
                    if let Some((observer, process, _)) = self.observed(Place { core: index, context: slot })
                    {
                        observer.resumes(&process, &mut engine.state.borrow_mut().slots[slot].cpu);
                    }
                    self.run(index, slot).await;
                }
                Next::Look { at } => drop(race(self.sim.until(self.time(at)), engine.wake.wait()).await),
                Next::Idle => engine.wake.wait().await,
            }
        }
    }

    /// Runs a context until it releases the core.
    async fn run(&self, index: usize, slot: usize) {
        let engine = &self.engines[index];
        loop {
            let (exit, issue, pc) = {
                let mut state = engine.state.borrow_mut();
                let exit = self.compute(&mut state, Place { core: index, context: slot }, &engine.memories);
                let costs = &self.spec.core.costs;
                let cost = match &exit {
                    Exit::Device(access) if access.write.is_some() => costs.store,
                    Exit::Device(_) => costs.load,
                    Exit::Order(_) => costs.atomic,
                    Exit::Ecall => costs.ecall,
                    Exit::Return(_) | Exit::Limit | Exit::Trap(_) | Exit::Fetch { .. } => 0,
                };
                let cpu = &state.slots[slot].cpu;
                (exit, cpu.cycle() + u64::from(cost), cpu.pc())
            };
            self.sim.until(self.time(issue)).await;
            if self.observing.get().is_some() {
                // A debugger may abandon the run.
                self.sim.check_interrupt();
                if self.reports(Place { core: index, context: slot }, &exit) {
                    continue;
                }
            }
            let then = match exit {
                Exit::Limit => {
                    self.sim.check_interrupt();
                    NextState::Continue
                }
                Exit::Return(value) => NextState::Leave(State::Ended(Outcome::Returned(value))),
                Exit::Trap(trap) => NextState::Leave(State::Ended(Outcome::Trapped(trap))),
                Exit::Device(access) => refer(engine, slot, access, issue),
                Exit::Order(OrderPoint::Atomic { address, .. }) => atomic(engine, slot, address, issue),
                Exit::Order(_) => unreachable!("fences are performed at once, and no region is ordered"),
                Exit::Ecall => self.call(index, slot, issue),
                Exit::Fetch { .. } => unreachable!("microengines have no instruction cache"),
            };
            if let NextState::Leave(next) = then {
                let ended = matches!(next, State::Ended(_));
                if self.observing.get().is_some() {
                    self.reports_rest(Place { core: index, context: slot }, &next);
                }
                let mut state = engine.state.borrow_mut();
                let cycle = state.slots[slot].cpu.cycle();
                if let Some(profile) = &mut state.slots[slot].profile {
                    profile.sleeps(pc, cause_of_sleep(&next));
                }
                state.leave(slot, cycle, next);
                if ended
                    && let Some(profiles) = self.profiles.get()
                    && let Some(profile) = state.slots[slot].profile.take()
                    && let Some(program) = &state.program
                {
                    let counters = state.slots[slot].counters();
                    profiles.add(&program.image, Place { core: index, context: slot }, &profile, counters);
                }
                drop(state);
                if ended {
                    if let Some(services) = self.services.get() {
                        services.ended(Place { core: index, context: slot });
                    }
                    self.ended.notify_all();
                }
                return;
            }
        }
    }

    /// Executes instructions up to the next instruction with an effect outside the core.
    fn compute(&self, state: &mut EngineState, place: Place, memories: &Memories) -> Exit {
        let slot = place.context;
        let program = state.program.clone().expect("a program is loaded");
        let image = &program.image;
        let mut space = AddressSpace::new();
        let watched = self.observed(place);
        let mut reported = state.slots[slot].reported;
        let time = |cycle| self.time(cycle);
        let mut observed = watched.as_ref().map(|(observer, process, outer)| Observed {
            observer: *observer,
            process,
            outer,
            time: &time,
            reported: &mut reported,
        });
        let (cpu, reservations) = state.open(slot, memories, &mut space);
        let until = cpu.cycle().saturating_add(SLICE);
        let exit = loop {
            let exit = match &mut observed {
                None => cpu.run(image, &mut space, reservations, until),
                Some(observed) => observed.run(cpu, &mut space, reservations, until),
            };
            if exit == Exit::Ecall
                && let Some((result, more)) = self.unit(&cpu.args())
            {
                let pc = cpu.pc();
                cpu.finish_ecall(result, more);
                if let Some(profile) = space.profile() {
                    image.count_in(profile, pc);
                    profile.reach(pc, Cause::Execute, cpu.cycle());
                }
                continue;
            }
            let own = match exit {
                Exit::Order(OrderPoint::Atomic { address, .. }) => memories.find(address, 4).is_none(),
                Exit::Order(_) => true,
                _ => false,
            };
            if !own {
                break exit;
            }
            if let Err(trap) = cpu.perform(image, &mut space, reservations) {
                break Exit::Trap(trap);
            }
        };
        drop(space);
        state.slots[slot].reported = reported;
        exit
    }

    /// Returns the result of a call that keeps the core busy, and its cycles beside the instruction. `None` for other calls.
    fn unit(&self, arguments: &[u32; 8]) -> Option<(u32, u64)> {
        let &[a, b, .., number] = arguments;
        match (number, &self.spec.xdp) {
            (intrinsics::CRC32, _) => {
                Some((intrinsics::crc32(a, b), self.spec.crc32 - u64::from(self.spec.core.costs.ecall)))
            }
            (intrinsics::XDP_WORK, Some(xdp)) => Some((0, if a == 0 { xdp.before } else { xdp.behind })),
            _ => None,
        }
    }

    /// Makes a context's call to the core or to the card. The call's instruction ends at cycle `issue`.
    fn call(&self, index: usize, slot: usize, issue: u64) -> NextState {
        let engine = &self.engines[index];
        let mut state = engine.state.borrow_mut();
        let registers = state.slots[slot].cpu.args();
        if registers[7] >= service::FIRST
            && let Some(services) = self.services.get()
        {
            drop(state);
            let place = Place { core: index, context: slot };
            let served = services.serve(place, &registers);
            return self.served(place, registers[7], served, issue);
        }
        let made = match Call::of(&registers, self.spec.transfer) {
            Err(kind) => Err(kind),
            Ok(Call::Send { core, context, signal }) => match self.known(core, context, signal) {
                Err(kind) => Err(kind),
                Ok(()) => {
                    drop(state);
                    let to = Place { core: core as usize, context: context as usize };
                    self.deliver(to.core, to.context, signal, issue);
                    if let Some(services) = self.services.get()
                        && self.engines[to.core].state.borrow().is_released(to.context)
                    {
                        services.released(Place { core: index, context: slot }, to);
                    }
                    state = engine.state.borrow_mut();
                    Ok(NextState::Continue)
                }
            },
            Ok(Call::Wait { mask, all }) => Ok(NextState::Leave(State::Waiting { mask, all })),
            Ok(Call::Yield) => Ok(NextState::Leave(State::Ready { at: issue })),
            Ok(Call::Read { to, from, len }) => {
                transfer(&mut state, engine, slot, Reference::Read, (to, from, len), issue)
            }
            Ok(Call::Write { to, from, len }) => {
                transfer(&mut state, engine, slot, Reference::Write, (from, to, len), issue)
            }
        };
        match made {
            Ok(then) => {
                finish(&mut state, slot, 0);
                then
            }
            Err(kind) => trapped(&mut state, slot, kind, issue),
        }
    }

    /// Handles the card's answer to a context's call.
    fn served(
        &self,
        place: Place,
        number: u32,
        served: Option<Result<Served, TrapKind>>,
        issue: u64,
    ) -> NextState {
        let mut state = self.engines[place.core].state.borrow_mut();
        let unknown = TrapKind::UnknownCall { number, served: "nfp.h has the calls of a card" };
        match served.unwrap_or(Err(unknown)) {
            Ok(Served::Now(result)) => {
                finish(&mut state, place.context, result);
                NextState::Continue
            }
            Ok(Served::Later) => {
                finish(&mut state, place.context, 0);
                NextState::Leave(State::Called { number })
            }
            Err(kind) => trapped(&mut state, place.context, kind, issue),
        }
    }

    fn known(&self, core: u32, context: u32, signal: u32) -> Result<(), TrapKind> {
        let why = if core as usize >= self.spec.cores {
            "there is no such microengine; hpu.cores says how many there are"
        } else if context as usize >= self.spec.contexts {
            "there is no such context; hpu.contexts says how many a microengine has"
        } else if signal >= SIGNALS {
            "there is no such signal; they are numbered 0 to 15"
        } else {
            return Ok(());
        };
        Err(TrapKind::CallRefused { call: "nfp_signal", why })
    }
}

/// Returns the reason for which a context that enters a state sleeps.
fn cause_of_sleep(state: &State) -> Cause {
    match state {
        State::Waiting { .. } => Cause::Signal,
        State::Called { number } if service::is_of_port(*number) => Cause::Port,
        State::Called { .. } => Cause::Channel,
        // A context that yields is ready at once.
        State::Free | State::Ready { .. } | State::Running | State::Ended(_) => Cause::Memory,
    }
}

/// Completes a context's call.
fn finish(state: &mut EngineState, slot: usize, result: u32) {
    let EngineState { slots, program, .. } = state;
    let Slot { cpu, profile, .. } = &mut slots[slot];
    let pc = cpu.pc();
    cpu.finish_ecall(result, 0);
    if let (Some(profile), Some(program)) = (profile, program) {
        profile.performed(&program.image, pc, cpu.cycle());
    }
}

/// Stops a process with a trap for a bad argument.
fn trapped(state: &mut EngineState, slot: usize, kind: TrapKind, issue: u64) -> NextState {
    let image = state.program.as_ref().expect("a program is loaded").image.clone();
    let Slot { cpu, profile, .. } = &mut state.slots[slot];
    let trap = image.trap(cpu.pc(), kind);
    cpu.set_cycle(issue);
    if let Some(profile) = profile {
        profile.trapped(cpu.pc(), issue);
    }
    NextState::Leave(State::Ended(Outcome::Trapped(trap)))
}

/// Makes a load from a memory, or a store to a memory.
fn refer(engine: &Engine, slot: usize, access: DeviceAccess, issue: u64) -> NextState {
    let EngineState { slots, program, .. } = &mut *engine.state.borrow_mut();
    let slot = &mut slots[slot];
    let DeviceAccess { address, size, write } = access;
    let (memory, offset) = engine.memories.find(address, size).expect("the devices are the memories");
    let reference = if write.is_some() { Reference::Write } else { Reference::Read };
    let queue = memory.queue(issue);
    let at = memory.claim(reference, issue, u64::from(size));
    let mut word = [0; 4];
    let bytes = &mut word[..size as usize];
    match write {
        Some(value) => {
            bytes.copy_from_slice(&value.to_le_bytes()[..size as usize]);
            memory.poke(offset, bytes)
        }
        None => memory.peek(offset, bytes),
    }
    .expect("the bytes are in the memory");
    let pc = slot.cpu.pc();
    slot.cpu.finish_device(u32::from_le_bytes(word), 0);
    if let (Some(profile), Some(program)) = (&mut slot.profile, program) {
        profile.performed(&program.image, pc, slot.cpu.cycle());
        profile.queued(queue);
    }
    // The loaded value is in the register when the context wakes.
    slot.cpu.settle();
    slot.account.referred();
    NextState::Leave(State::Ready { at })
}

/// Makes an atomic access to a word of a memory.
fn atomic(engine: &Engine, slot: usize, address: u32, issue: u64) -> NextState {
    let mut state = engine.state.borrow_mut();
    let program = state.program.clone().expect("a program is loaded");
    let slot = &mut state.slots[slot];
    let (memory, offset) = engine.memories.find(address, 4).expect("atomics elsewhere are performed at once");
    let mut word = [0; 4];
    memory.peek(offset, &mut word).expect("the word is in the memory");
    let mut space = AddressSpace::new().with(Region::memory(memory.kind().name(), address, &mut word));
    if let Some(profile) = &mut slot.profile {
        profile.queued(memory.queue(issue));
        space.count_in(&mut profile.profile);
    }
    let performed = slot.cpu.perform(&program.image, &mut space, &mut memory.reservations.borrow_mut());
    drop(space);
    if let Err(trap) = performed {
        slot.cpu.set_cycle(issue);
        if let Some(profile) = &mut slot.profile {
            profile.trapped(slot.cpu.pc(), issue);
        }
        return NextState::Leave(State::Ended(Outcome::Trapped(trap)));
    }
    slot.cpu.settle();
    slot.account.referred();
    memory.replace(offset, &word);
    NextState::Leave(State::Ready { at: memory.claim(Reference::Atomic, issue, 4) })
}

/// Moves bytes between local memory and another memory, in one reference.
fn transfer(
    state: &mut EngineState,
    engine: &Engine,
    slot: usize,
    reference: Reference,
    (own, far, len): (u32, u32, u32),
    issue: u64,
) -> Result<NextState, TrapKind> {
    let access = if reference == Reference::Read { Access::Read } else { Access::Write };
    let found = engine.memories.find(far, len);
    let outside =
        || TrapKind::OutOfRegion { access, address: far, size: len, nearest: nearest(&engine.memories, far) };
    let (memory, offset) = found.ok_or_else(outside)?;
    let mut space = AddressSpace::new();
    state.open(slot, &engine.memories, &mut space);
    match reference {
        Reference::Read => memory.peek(offset, space.write(own, len)?),
        _ => memory.poke(offset, space.read(own, len)?),
    }
    .expect("the bytes are in the memory");
    drop(space);
    let slot = &mut state.slots[slot];
    slot.account.referred();
    if let Some(profile) = &mut slot.profile {
        profile.queued(memory.queue(issue));
    }
    Ok(NextState::Leave(State::Ready { at: memory.claim(reference, issue, u64::from(len)) }))
}

/// Returns a description of the memory that is nearest to an address outside all memories.
fn nearest(memories: &Memories, address: u32) -> Option<Nearest> {
    let memory = memories.0.iter().rev().find(|memory| memory.kind().base() <= address)?;
    Some(Nearest { region: memory.kind().name(), base: memory.kind().base(), size: memory.size() })
}
