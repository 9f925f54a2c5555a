//! Posted receives, and messages that have arrived.

use super::Types;
use crate::{Arrival, Wanted};
use nicety_kernel::{Signal, Sim};
use nicety_types::Path;
use std::cell::{Cell, RefCell};

/// A message that has arrived. A long message counts as arrived when its RTS has arrived.
#[derive(Debug)]
pub struct ArrivedMessage<B> {
    /// The sender's rank.
    pub source: u32,
    /// The message's tag.
    pub tag: u64,
    /// The message's length in bytes.
    pub bytes: u64,
    /// The design's part of the message, such as the location of its bytes.
    pub body: B,
}

impl<B> ArrivedMessage<B> {
    /// Whether a receive takes this message.
    pub fn is_for(&self, wanted: &Wanted) -> bool {
        wanted.takes(self.source, self.tag)
    }

    /// Returns the [`Arrival`] of this message in a buffer of `room` bytes.
    pub fn arrival(&self, room: u64) -> Arrival {
        Arrival { source: self.source, tag: self.tag, bytes: self.bytes, room }
    }
}

/// The result of a receive, and the path up to its end.
type Outcome<E> = (Result<Arrival, E>, Path);

/// A posted receive.
pub struct Receiving<T: Types> {
    /// The messages that the receive takes, and its buffer.
    pub wanted: Wanted,
    /// The design's part of the receive.
    pub progress: T::Progress,
    outcome: RefCell<Option<Outcome<T::Error>>>,
    ended: Cell<bool>,
    /// Notified when the receive ends. A design may also notify this signal at other progress.
    pub done: Signal,
}

impl<T: Types> Receiving<T> {
    pub(super) fn new(sim: &Sim, wanted: Wanted) -> Receiving<T> {
        let (outcome, ended, done) = (RefCell::new(None), Cell::new(false), Signal::new(sim));
        Receiving { wanted, progress: T::Progress::default(), outcome, ended, done }
    }

    /// Ends the receive with its result. Later calls have no effect, so a received message stays received.
    pub fn finish(&self, result: Result<Arrival, T::Error>, path: Path) {
        if !self.ended.replace(true) {
            self.outcome.replace(Some((result, path)));
        }
        self.done.notify_all();
    }

    /// Whether the receive has ended.
    pub fn has_ended(&self) -> bool {
        self.ended.get()
    }

    /// Whether the receive has a result that no call has taken.
    pub fn has_result(&self) -> bool {
        self.outcome.borrow().is_some()
    }

    /// Takes the result.
    pub fn take_result(&self) -> Option<Outcome<T::Error>> {
        self.outcome.take()
    }
}
