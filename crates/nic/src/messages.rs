//! Messages between ranks, as `send` and `recv` of a host hand them to a card of whatever design.

use nicety_host::Cpus;
use nicety_kernel::Sim;
use nicety_types::{Path, Recorder, Resource, Time};
use std::any::Any;
use std::cell::RefCell;
use std::pin::Pin;

/// A call that a host's program waits for.
pub type Calling<'c, T> = Pin<Box<dyn Future<Output = T> + 'c>>;

/// A thread of a host's program that calls its card.
#[derive(Clone, Copy)]
pub struct Caller<'c> {
    /// The node's part of the simulation.
    pub sim: &'c Sim,
    /// The host's CPUs.
    pub cpus: &'c Cpus,
    /// Keeps what happens on the node.
    pub recorder: &'c Recorder,
    /// Where the thread's time went.
    pub path: &'c RefCell<Path>,
}

impl Caller<'_> {
    /// A call that takes virtual time, on the thread's path and in the recording.
    pub async fn timed<T>(&self, what: &'static str, call: impl AsyncFnOnce(&mut Path) -> T) -> T {
        let start = self.sim.now();
        let result = self.on_path(call).await;
        self.called(what, start);
        result
    }

    /// A part of such a call.
    pub async fn on_path<T>(&self, part: impl AsyncFnOnce(&mut Path) -> T) -> T {
        let mut path = *self.path.borrow();
        let result = part(&mut path).await;
        self.path.replace(path);
        result
    }

    /// A call that began at `start` is over.
    pub fn called(&self, what: &'static str, start: Time) {
        self.recorder.slice(Resource::Program, start, self.sim.now(), None, what);
    }
}

/// A message to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outgoing {
    /// To which rank; there is one, the host has looked.
    pub to: u32,
    /// Its tag.
    pub tag: u32,
    /// Where it lies in host memory.
    pub address: u64,
    /// Its length in bytes.
    pub bytes: u64,
}

/// A receive to be posted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// From which rank, which there is; from any where none is named.
    pub source: Option<u32>,
    /// Of which tag; of any where none is named.
    pub tag: Option<u32>,
    /// Where it goes in host memory.
    pub address: u64,
    /// Bytes that there is room for.
    pub room: u64,
}

impl Wanted {
    /// What a program waits for that has posted it.
    pub fn what(&self) -> String {
        let from = self.source.map_or("any rank".to_owned(), |rank| format!("rank {rank}"));
        let tagged = self.tag.map_or("any tag".to_owned(), |tag| format!("tag {tag}"));
        format!("a message from {from}, {tagged}")
    }
}

/// A message that was received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// The rank that sent it.
    pub source: u32,
    /// Its tag.
    pub tag: u32,
    /// Its length in bytes, as it was sent.
    pub bytes: u64,
    /// Bytes that there was room for: what is beyond was cut.
    pub room: u64,
}

/// A receive that was posted, as its card's design has it.
pub struct PostedReceive(Box<dyn Any>);

impl PostedReceive {
    /// A receive of one design.
    pub fn new(posted: impl Any) -> PostedReceive {
        PostedReceive(Box::new(posted))
    }

    /// The receive, of a card of the design that it was posted on.
    ///
    /// # Panics
    /// When it was posted on a card of another design.
    pub fn of<P: Any>(self) -> P {
        *self.0.downcast().expect("a receive is asked for on the card that it was posted on")
    }
}
