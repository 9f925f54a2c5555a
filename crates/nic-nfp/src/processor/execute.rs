//! Execution of a microengine, cycle by cycle: one kernel task per core.
//!
//! A context's instructions up to its next reference have no effect that another core can see, so they are executed at
//! once. The task then sleeps until the cycle of the reference, makes the reference, and gives the core to the next
//! context. A reference thus costs one event of the simulation.

use crate::processor::engine::{Engine, EngineState, Next, Outcome, SIGNALS, State};
use crate::processor::intrinsics::{self, Call};
use crate::processor::memory::{Memories, Reference};
use crate::processor::nfp::Nfp;
use crate::processor::service::{self, Place, Served};
use crate::spec::NfpSpec;
use nicety_hpu::{Access, AddressSpace, DeviceAccess, Exit, Nearest, OrderPoint, Region, TrapKind};
use nicety_kernel::{Sim, race};
use std::rc::Rc;

/// The most cycles executed ahead of simulated time. The bound allows the user to interrupt every run.
const SLICE: u64 = 1_000_000;

/// The next state of the context that ran.
enum NextState {
    /// It continues.
    Continue,
    /// It releases the core.
    Leave(State),
}

impl Nfp {
    /// A processor with microengines that have no programs.
    pub fn new(sim: &Sim, spec: &NfpSpec) -> Rc<Nfp> {
        let nfp = Rc::new(Nfp::parts(sim, spec));
        (0..spec.cores).for_each(|core| sim.spawn(nfp.clone().serve(core)));
        nfp
    }

    /// The task of a microengine; never returns.
    async fn serve(self: Rc<Nfp>, index: usize) {
        let engine = &self.engines[index];
        loop {
            let next = engine.state.borrow().next(self.cycle());
            match next {
                Next::Run { slot, at } => {
                    engine.state.borrow_mut().dispatch(slot, at, self.spec.switch);
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
            let (exit, issue) = {
                let mut state = engine.state.borrow_mut();
                let exit = self.compute(&mut state, slot, &engine.memories);
                let costs = &self.spec.core.costs;
                let cost = match &exit {
                    Exit::Device(access) if access.write.is_some() => costs.store,
                    Exit::Device(_) => costs.load,
                    Exit::Order(_) => costs.atomic,
                    Exit::Ecall => costs.ecall,
                    Exit::Return(_) | Exit::Limit | Exit::Trap(_) | Exit::Fetch { .. } => 0,
                };
                (exit, state.slots[slot].cpu.cycle() + u64::from(cost))
            };
            self.sim.until(self.time(issue)).await;
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
                let mut state = engine.state.borrow_mut();
                let cycle = state.slots[slot].cpu.cycle();
                state.leave(slot, cycle, next);
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
    fn compute(&self, state: &mut EngineState, slot: usize, memories: &Memories) -> Exit {
        let program = state.program.clone().expect("a program is loaded");
        let image = &program.image;
        let mut space = AddressSpace::new();
        let (cpu, reservations) = state.open(slot, memories, &mut space);
        let until = cpu.cycle().saturating_add(SLICE);
        loop {
            let exit = cpu.run(image, &mut space, reservations, until);
            let own = match exit {
                Exit::Order(OrderPoint::Atomic { address, .. }) => memories.find(address, 4).is_none(),
                Exit::Order(_) => true,
                Exit::Ecall if cpu.args()[7] == intrinsics::CRC32 => {
                    let [crc, word, ..] = cpu.args();
                    let more = self.spec.crc32 - u64::from(self.spec.core.costs.ecall);
                    cpu.finish_ecall(intrinsics::crc32(crc, word), more);
                    continue;
                }
                _ => false,
            };
            if !own {
                return exit;
            }
            if let Err(trap) = cpu.perform(image, &mut space, reservations) {
                return Exit::Trap(trap);
            }
        }
    }

    /// Makes a call of the core or of the card. The call's instruction ends at cycle `issue`.
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
                state.slots[slot].cpu.finish_ecall(0, 0);
                then
            }
            Err(kind) => trapped(&mut state, slot, kind, issue),
        }
    }

    /// Applies the card's answer to a context's call.
    fn served(
        &self,
        place: Place,
        number: u32,
        served: Option<Result<Served, TrapKind>>,
        issue: u64,
    ) -> NextState {
        let mut state = self.engines[place.core].state.borrow_mut();
        let unknown = TrapKind::UnknownCall { number, served: "nfp.h has the calls of a card" };
        let cpu = &mut state.slots[place.context].cpu;
        match served.unwrap_or(Err(unknown)) {
            Ok(Served::Now(result)) => {
                cpu.finish_ecall(result, 0);
                NextState::Continue
            }
            Ok(Served::Later) => {
                cpu.finish_ecall(0, 0);
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

/// Stops a process with a trap for a bad argument.
fn trapped(state: &mut EngineState, slot: usize, kind: TrapKind, issue: u64) -> NextState {
    let image = state.program.as_ref().expect("a program is loaded").image.clone();
    let cpu = &mut state.slots[slot].cpu;
    let trap = image.trap(cpu.pc(), kind);
    cpu.set_cycle(issue);
    NextState::Leave(State::Ended(Outcome::Trapped(trap)))
}

/// Makes a load from or store to a memory.
fn refer(engine: &Engine, slot: usize, access: DeviceAccess, issue: u64) -> NextState {
    let mut state = engine.state.borrow_mut();
    let slot = &mut state.slots[slot];
    let DeviceAccess { address, size, write } = access;
    let (memory, offset) = engine.memories.find(address, size).expect("the devices are the memories");
    let reference = if write.is_some() { Reference::Write } else { Reference::Read };
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
    slot.cpu.finish_device(u32::from_le_bytes(word), 0);
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
    let performed = slot.cpu.perform(&program.image, &mut space, &mut memory.reservations.borrow_mut());
    drop(space);
    if let Err(trap) = performed {
        slot.cpu.set_cycle(issue);
        return NextState::Leave(State::Ended(Outcome::Trapped(trap)));
    }
    slot.cpu.settle();
    slot.account.referred();
    memory.replace(offset, &word);
    NextState::Leave(State::Ready { at: memory.claim(Reference::Atomic, issue, 4) })
}

/// Moves bytes between local memory and a memory, in one reference.
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
    state.slots[slot].account.referred();
    Ok(NextState::Leave(State::Ready { at: memory.claim(reference, issue, u64::from(len)) }))
}

/// Describes the memory nearest to an address that is in no memory.
fn nearest(memories: &Memories, address: u32) -> Option<Nearest> {
    let memory = memories.0.iter().rev().find(|memory| memory.kind().base() <= address)?;
    Some(Nearest { region: memory.kind().name(), base: memory.kind().base(), size: memory.size() })
}
