//! The `channel_*` calls of processes.

use crate::card::Card;
use crate::map::MemoryKind;
use crate::processor::number::{
    CHANNEL_READ, CHANNEL_READ_IND, CHANNEL_REGISTER, CHANNEL_SELECT, CHANNEL_WRITE, CHANNEL_WRITE_IND,
};
use crate::processor::{Place, Served, Services};
use crate::stages;
use nicety_channels::{
    Buffer, Completion, ContextId, Deadline, Error, Failure, Guard, PAYLOAD_BYTES, TargetId, Want,
};
use nicety_hpu::TrapKind;
use nicety_types::{MessageId, Path, Time};
use std::rc::{Rc, Weak};

/// Result codes of a call. They are equal to those in `nfp.h`.
mod code {
    pub(super) const OK: i32 = 0;
    pub(super) const SIZE_MISMATCH: i32 = -1;
    pub(super) const KIND_MISMATCH: i32 = -2;
    pub(super) const TIMED_OUT: i32 = -3;
    pub(super) const DMA_FAILED: i32 = -4;
    pub(super) const PIN_FAILED: i32 = -5;
    pub(super) const CLOSED: i32 = -6;
    pub(super) const UNKNOWN_TARGET: i32 = -7;
    pub(super) const BUSY: i32 = -8;
    pub(super) const TOO_LARGE: i32 = -9;
    pub(super) const NO_BYTES: i32 = -10;
    pub(super) const BAD_ADDRESS: i32 = -11;
    pub(super) const NO_SPACE: i32 = -12;
    pub(super) const BAD_GUARDS: i32 = -13;
}

/// The value of a timeout that means no timeout.
const FOREVER: u32 = u32::MAX;
/// Maximum number of guards in a selection.
const MOST_GUARDS: u32 = 64;
/// Size in bytes of a guard in local memory. Its words are target, buffer, size, kind and result.
const GUARD: u32 = 20;

/// The state of the call in which a context sleeps.
#[derive(Clone, Debug)]
pub(super) struct ContextCall {
    /// The critical path of the context's process.
    pub(super) path: Path,
    /// The time of the call.
    pub(super) called: Time,
    /// For each guard, the address in local memory for the bytes of a direct message.
    into: Vec<u32>,
    /// The address of a selection's guards in local memory.
    guards: Option<u32>,
    /// The message that the process writes, if messages are recorded.
    pub(super) message: Option<MessageId>,
}

impl Default for ContextCall {
    fn default() -> ContextCall {
        ContextCall {
            path: Path::from(Time::ZERO),
            called: Time::ZERO,
            into: Vec::new(),
            guards: None,
            message: None,
        }
    }
}

/// The card's services for its processor.
pub(super) struct Processes(Weak<Card>);

impl Processes {
    pub(super) fn of(card: &Rc<Card>) -> Processes {
        Processes(Rc::downgrade(card))
    }
}

impl Services for Processes {
    fn serve(&self, place: Place, registers: &[u32; 8]) -> Option<Result<Served, TrapKind>> {
        let card = self.0.upgrade().expect("a processor that runs is part of a card");
        let &[a, b, c, timeout, island, .., number] = registers;
        let direct = Call { target: TargetId(a), address: b, bytes: c, island, timeout };
        Some(match number {
            CHANNEL_REGISTER => Ok(card.register(TargetId(a))),
            CHANNEL_WRITE => card.write(place, direct),
            CHANNEL_READ => card.read(place, direct),
            CHANNEL_WRITE_IND => Ok(card.move_indirect(place, direct, true)),
            CHANNEL_READ_IND => Ok(card.move_indirect(place, direct, false)),
            CHANNEL_SELECT => card.select(place, a, b, timeout),
            _ => return card.serve_port(place, registers),
        })
    }

    fn released(&self, by: Place, released: Place) {
        let card = self.0.upgrade().expect("a processor that runs is part of a card");
        let now = card.sim.now();
        let path = card.context(card.id(by), |call| {
            call.path.advance(stages::PROCESS, now);
            call.path.clone()
        });
        card.context(card.id(released), |call| call.path.follow(&path));
    }

    fn ended(&self, place: Place) {
        let card = self.0.upgrade().expect("a processor that runs is part of a card");
        card.let_go(card.id(place));
    }
}

/// A call with its arguments.
#[derive(Clone, Copy)]
struct Call {
    target: TargetId,
    address: u32,
    bytes: u32,
    /// Selects the island of a 40-bit address: 0 for the caller's island, otherwise the island's number plus one.
    island: u32,
    timeout: u32,
}

impl Card {
    /// Calls `act` with the call state of a context.
    pub(super) fn context<R>(&self, context: ContextId, act: impl FnOnce(&mut ContextCall) -> R) -> R {
        let mut contexts = self.contexts.borrow_mut();
        let number = usize::from(context.0);
        if contexts.len() <= number {
            contexts.resize_with(number + 1, Default::default);
        }
        act(&mut contexts[number])
    }

    pub(super) fn id(&self, place: Place) -> ContextId {
        ContextId((place.core * self.spec.contexts + place.context) as u16)
    }

    fn place(&self, context: ContextId) -> Place {
        let number = usize::from(context.0);
        Place { core: number / self.spec.contexts, context: number % self.spec.contexts }
    }

    fn register(&self, target: TargetId) -> Served {
        Served::Now(match self.card.borrow_mut().register(target) {
            Ok(()) => code::OK,
            Err(error) => refused(&error),
        } as u32)
    }

    /// Begins a call of a context. For each guard, `into` has the address in local memory to which the bytes of a
    /// direct message go.
    pub(super) fn called(&self, place: Place, into: &[u32], guards: Option<u32>) -> ContextId {
        let (context, now) = (self.id(place), self.sim.now());
        self.context(context, |call| {
            call.path.advance(stages::PROCESS, now);
            call.called = now;
            call.into.clear();
            call.into.extend_from_slice(into);
            call.guards = guards;
            call.message = None;
        });
        context
    }

    fn deadline(&self, timeout: u32) -> Deadline {
        (timeout != FOREVER).then(|| self.sim.now().ps() + u64::from(timeout) * 1000)
    }

    fn write(self: &Rc<Card>, place: Place, call: Call) -> Result<Served, TrapKind> {
        let Call { target, address, bytes, timeout, .. } = call;
        let mut payload = [0; PAYLOAD_BYTES];
        let Some(payload) = payload.get_mut(..bytes as usize) else {
            return Ok(Served::Now(code::TOO_LARGE as u32));
        };
        self.nfp.read_local(place, address, payload)?;
        let (context, deadline) = (self.called(place, &[], None), self.deadline(timeout));
        Ok(begun(self.on_card(None, |card, effects| card.write(context, target, payload, deadline, effects))))
    }

    fn read(self: &Rc<Card>, place: Place, call: Call) -> Result<Served, TrapKind> {
        let Call { target, address, bytes, timeout, .. } = call;
        if bytes as usize <= PAYLOAD_BYTES {
            self.nfp.check_local(place, address, bytes)?;
        }
        let (context, deadline) = (self.called(place, &[address], None), self.deadline(timeout));
        Ok(begun(self.on_card(None, |card, effects| card.read(context, target, bytes, deadline, effects))))
    }

    fn move_indirect(self: &Rc<Card>, place: Place, call: Call, write: bool) -> Served {
        let Call { target, address, bytes, island, timeout } = call;
        let Some(address) = self.address(place, address, island, bytes) else {
            return Served::Now(code::BAD_ADDRESS as u32);
        };
        let (context, deadline) = (self.called(place, &[0], None), self.deadline(timeout));
        let buffer = Buffer { address, bytes };
        begun(self.on_card(None, |card, effects| match write {
            true => card.write_indirect(context, target, buffer, deadline, effects),
            false => card.read_indirect(context, target, buffer, deadline, effects),
        }))
    }

    fn select(
        self: &Rc<Card>,
        place: Place,
        address: u32,
        count: u32,
        timeout: u32,
    ) -> Result<Served, TrapKind> {
        if count > MOST_GUARDS {
            return Ok(Served::Now(code::BAD_GUARDS as u32));
        }
        let (mut guards, mut into) = (Vec::new(), Vec::new());
        for number in 0..count {
            let mut words = [0; GUARD as usize];
            let at = address.wrapping_add(number * GUARD);
            self.nfp.read_local(place, at, &mut words)?;
            self.nfp.check_local(place, at, GUARD)?;
            let word = |index: usize| u32::from_le_bytes(words[4 * index..4 * index + 4].try_into().unwrap());
            let (to, bytes) = (word(1), word(2));
            let want = match word(3) {
                0 => {
                    if bytes as usize <= PAYLOAD_BYTES {
                        self.nfp.check_local(place, to, bytes)?;
                    }
                    Want::Direct(bytes)
                }
                1 => match self.address(place, to, 0, bytes) {
                    Some(address) => Want::Indirect(Buffer { address, bytes }),
                    None => return Ok(Served::Now(code::BAD_ADDRESS as u32)),
                },
                _ => return Ok(Served::Now(code::BAD_GUARDS as u32)),
            };
            guards.push(Guard { from: TargetId(word(0)), want });
            into.push(to);
        }
        let (context, deadline) = (self.called(place, &into, Some(address)), self.deadline(timeout));
        Ok(begun(self.on_card(None, |card, effects| card.select(context, &guards, deadline, effects))))
    }

    /// Returns the 40-bit DMA address of a call's memory. `None` unless all of its bytes are in CTM, IMEM or EMEM.
    pub(super) fn address(&self, place: Place, low: u32, island: u32, bytes: u32) -> Option<u64> {
        let kind = MemoryKind::ALL.into_iter().rev().find(|kind| kind.base() <= low)?;
        let inside =
            u64::from(low - kind.base()) + u64::from(bytes) <= u64::from(self.spec.memory(kind).size);
        if kind == MemoryKind::Cls || !inside {
            return None;
        }
        let island = match island {
            0 => place.core / self.spec.island,
            number => number as usize - 1,
        };
        if island >= self.spec.islands() {
            return None;
        }
        let upper = if kind.of_island() { island as u64 + 1 } else { 0 };
        Some(upper << 32 | u64::from(low))
    }

    /// Ends a context's call. `path` is the path of the message that released the context, if any.
    pub(super) fn end_call(
        &self,
        context: ContextId,
        guard: u16,
        result: Result<Completion, Failure>,
        path: Option<Path>,
    ) {
        let (place, at) = (self.place(context), self.nfp.resumes_at());
        let (into, guards, message) = self.context(context, |call| {
            if let Some(path) = path {
                call.path.follow(&path);
            }
            call.path.advance(stages::MANAGER, at);
            (call.into.get(usize::from(guard)).copied(), call.guards, call.message.take())
        });
        if let (Some(message), Err(failure)) = (message, &result) {
            self.failed(message, failure);
        }
        let code = match &result {
            Ok(_) => code::OK,
            Err(failure) => failed(failure),
        };
        if let (Ok(Completion { payload, .. }), Some(into)) = (&result, into)
            && !payload.is_empty()
        {
            self.nfp.write_local(place, into, payload).expect("checked when the call was made");
        }
        let answer = match guards {
            // The result of a timeout is not that of any guard.
            Some(address) if code != code::TIMED_OUT => {
                let at = address + u32::from(guard) * GUARD + 16;
                self.nfp.write_local(place, at, &code.to_le_bytes()).expect("checked when the call was made");
                i32::from(guard)
            }
            _ => code,
        };
        self.nfp.resume(place, answer as u32);
    }
}

fn begun(result: Result<(), Error>) -> Served {
    match result {
        Ok(()) => Served::Later,
        Err(error) => Served::Now(refused(&error) as u32),
    }
}

fn refused(error: &Error) -> i32 {
    match error {
        Error::ZeroSize => code::NO_BYTES,
        Error::DirectTooLong(_) | Error::TooLong { .. } => code::TOO_LARGE,
        Error::NoSpace { .. } => code::NO_SPACE,
        Error::Busy { .. } | Error::TargetExists(_) => code::BUSY,
        Error::UnknownTarget(_) => code::UNKNOWN_TARGET,
        Error::CardAddress { .. } => code::BAD_ADDRESS,
        Error::NoGuards | Error::RepeatedGuard(_) => code::BAD_GUARDS,
        other => unreachable!("no context's call is refused so: {other}"),
    }
}

fn failed(failure: &Failure) -> i32 {
    match failure {
        Failure::SizeMismatch { .. } => code::SIZE_MISMATCH,
        Failure::KindMismatch { .. } => code::KIND_MISMATCH,
        Failure::Timeout => code::TIMED_OUT,
        Failure::Dma { .. } => code::DMA_FAILED,
        Failure::Pin => code::PIN_FAILED,
        Failure::Closed => code::CLOSED,
        Failure::UnknownTarget(_) => code::UNKNOWN_TARGET,
        Failure::TargetTaken(_) => code::BUSY,
    }
}
