//! `send` and `recv` over connections. Each rank has a connection to each destination, and a header precedes each
//! message.
//!
//! | file | contents |
//! |---|---|
//! | `header.rs` | the header |
//! | `send.rs` | connecting and writing |
//! | `receive.rs` | reading |
//! | `hints.rs` | deadlock hints |
//!
//! A thread that waits for a message reads all arriving data, and hands each message to the oldest receive that takes
//! it. Only one thread reads at a time. A message without a receive goes into the library's memory. If that memory is
//! full, the message stays in the connection, and TCP's window slows down the message's sender.

mod header;
mod hints;
mod receive;
mod send;

use super::net::Net;
use super::sockets::{Listening, Socket};
use header::Header;
use nicety_host::Memory;
use nicety_host::threads::{Group, Piece, Thread};
use nicety_kernel::{Server, Signal, describe};
use nicety_nic_core::library::{self, Library, Transport, Types};
use nicety_nic_core::{Arrival, CardError, Outgoing, Wanted};
use nicety_stack::{Error, Options};
use nicety_types::{Path, Payload, Stage};
use receive::Reads;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::rc::Rc;

/// The TCP port of messages on every host.
pub(crate) const PORT: u16 = 1;

/// A message that arrives before its receive.
pub(super) struct Unexpected {
    header: Header,
    bytes: RefCell<Vec<u8>>,
    /// The path up to the message's last byte, once that byte has arrived.
    whole: RefCell<Option<Path>>,
    /// Notifies the receive that has taken the message.
    taken: RefCell<Option<Signal>>,
}

type ArrivedMessage = library::ArrivedMessage<Rc<Unexpected>>;
/// A posted receive. Its progress is the message for it, if the message is in the library's memory.
type Posted = library::Receiving<Messenger>;

/// Whether the message of a receive has arrived.
fn is_done(posted: &Posted) -> bool {
    let kept = posted.progress.borrow();
    posted.has_result() || kept.as_ref().is_some_and(|kept| kept.whole.borrow().is_some())
}

/// The destination of a message's bytes.
#[derive(Clone)]
enum Target {
    Receive(Rc<Posted>),
    Memory(Rc<Unexpected>),
}

/// A connection to another rank.
struct Sender {
    socket: RefCell<Option<Socket>>,
    /// Serialises messages.
    turn: Server,
}

/// A connection from another rank.
struct Incoming {
    socket: Socket,
    rank: u32,
    state: RefCell<Reading>,
}

/// The state of reading a connection.
#[derive(Default)]
struct Reading {
    header: Vec<u8>,
    /// The message in progress: its header, its destination, and the bytes read.
    message: Option<(Header, Option<Target>, u64)>,
}

/// The library of `send` and `recv`.
pub(super) struct Messenger {
    net: Rc<Net>,
    memory: Rc<Memory>,
    listener: Listening,
    senders: RefCell<BTreeMap<u32, Rc<Sender>>>,
    /// The one waiting thread that reads connections holds this.
    turn: Server,
    incoming: RefCell<Vec<Rc<Incoming>>>,
    library: Library<Messenger>,
    /// Number of bytes of messages in the library's memory.
    kept: Cell<u64>,
}

impl Messenger {
    pub(super) fn start(net: &Rc<Net>, memory: &Rc<Memory>) -> Result<Rc<Messenger>, CardError> {
        let options = Options { nodelay: true, ..Options::default() };
        let listener = Listening::open(net, PORT, net.card.nodes as usize, &options);
        let listener = listener.map_err(|error| failed("the port of messages", error))?;
        listener.watch();
        Ok(Rc::new(Messenger {
            memory: memory.clone(),
            listener,
            senders: RefCell::default(),
            turn: Server::new(&net.sim),
            incoming: RefCell::default(),
            library: Library::signalling(&net.sim, net.early.clone()),
            kept: Cell::new(0),
            net: net.clone(),
        }))
    }

    /// Returns the destination of a message: the oldest receive that takes it, or the library's memory.
    fn target(&self, header: Header) -> Target {
        let card = &self.net.card;
        if let Some(posted) = self.library.take_receive(header.source, header.tag) {
            card.recorder.message_matched(header.message(), self.net.sim.now(), "receiving");
            return Target::Receive(posted);
        }
        card.recorder.message_matched(header.message(), self.net.sim.now(), "unexpected");
        self.kept.set(self.kept.get() + header.bytes);
        let (bytes, whole, taken) = (RefCell::default(), RefCell::default(), RefCell::default());
        let kept = Rc::new(Unexpected { header, bytes, whole, taken });
        let Header { source, tag, bytes, .. } = header;
        self.library.keep(ArrivedMessage { source, tag, bytes, body: kept.clone() });
        Target::Memory(kept)
    }

    /// Stores a part of a message.
    fn put(&self, target: &Target, done: u64, bytes: &[u8]) {
        match target {
            Target::Receive(posted) => self.store(posted, done, bytes),
            Target::Memory(kept) => kept.bytes.borrow_mut().extend_from_slice(bytes),
        }
    }

    /// Stores a part of a message in its receive, as far as the receive has room.
    fn store(&self, posted: &Posted, done: u64, bytes: &[u8]) {
        let room = posted.wanted.room.saturating_sub(done).min(bytes.len() as u64);
        if room > 0 {
            let payload = Payload::copy_of(&bytes[..room as usize]);
            let address = posted.wanted.address + done;
            self.memory.deposit(address, room, &payload).expect("checked when it was posted");
        }
    }

    /// Copies a message within the host, as the library does.
    async fn copy(&self, thread: &Thread, bytes: usize, path: &mut Path) {
        let lines = self.net.lines(bytes);
        let copy = Piece::new(Group::Application, lines * self.net.spec.sockets.copy).streaming(lines);
        thread.run(copy, Stage::COPY, path).await;
    }

    /// Completes a message after its last byte was stored.
    fn complete(&self, target: &Target, header: Header, path: &Path) {
        let recorder = &self.net.card.recorder;
        match target {
            Target::Receive(posted) => {
                recorder.message_completed(header.message(), path, "received");
                recorder.message_noticed(header.message(), self.net.sim.now());
                let Header { source, tag, bytes, .. } = header;
                let arrival = Arrival { source, tag, bytes, room: posted.wanted.room };
                posted.finish(Ok(arrival), path.clone());
            }
            Target::Memory(kept) => {
                kept.whole.replace(Some(path.clone()));
                recorder.message_completed(header.message(), path, "unexpected");
                if let Some(changed) = &*kept.taken.borrow() {
                    changed.notify_all();
                }
            }
        }
    }

    fn has_room(&self, bytes: u64) -> bool {
        self.kept.get().checked_add(bytes).is_some_and(|all| all <= self.net.spec.messages.unexpected)
    }
}

impl Types for Messenger {
    type Body = Rc<Unexpected>;
    type Progress = RefCell<Option<Rc<Unexpected>>>;
    /// A failure concerns a single message only.
    type Failure = Infallible;
    type Error = CardError;

    fn failed(failure: &Infallible) -> CardError {
        match *failure {}
    }
}

impl Transport for Messenger {
    const SHOWS_WAITS: bool = true;

    fn library(&self) -> &Library<Messenger> {
        &self.library
    }

    async fn send(self: &Rc<Self>, thread: u32, message: Outgoing, path: &mut Path) -> Result<(), CardError> {
        self.write_message(thread, message, path).await
    }

    /// The call of the receive itself copies the message to its buffer.
    fn deliver(self: &Rc<Self>, receiving: Rc<Posted>, came: ArrivedMessage, _path: Path) {
        came.body.taken.replace(Some(receiving.done.clone()));
        receiving.progress.replace(Some(came.body));
    }

    async fn receive(
        self: &Rc<Self>,
        thread: u32,
        receiving: &Rc<Posted>,
        path: &mut Path,
    ) -> Result<Arrival, CardError> {
        let wanted = receiving.wanted;
        describe(move || wanted.what(), self.read_message(thread, receiving, path)).await
    }

    async fn call(&self, thread: u32, path: &mut Path) {
        let call = self.net.programs.enter(thread);
        let work = Piece::new(Group::Application, self.net.spec.messages.match_);
        call.thread().run(work, Stage::NOTICE, path).await;
    }

    /// Reads arrived data up to a message that matches `wanted`, unless another thread reads.
    async fn look(self: &Rc<Self>, thread: u32, wanted: &Wanted, path: &mut Path) -> Result<(), CardError> {
        if let Some(turn) = self.turn.try_acquire() {
            let reads = Rc::new(Reads { call: self.net.programs.enter(thread), _turn: turn });
            while self.library.first(wanted).is_none()
                && let Some(next) = self.next()
            {
                self.read_to_its_end(next, &reads, path).await?;
            }
        }
        self.call(thread, path).await;
        Ok(())
    }
}

fn failed(what: &str, error: Error) -> CardError {
    CardError::Failed(format!("{what}: {error}"))
}
