//! `send` and `recv` over connections: one from each rank to each that it sends to, with a header before each message.
//!
//! A library thread of the receiver reads what comes, as long as a program waits for a message, and hands each message to the
//! oldest receive that takes it. One that no receive takes goes into the library's memory; where that is full, it stays in the
//! connection, which slows its sender down by TCP's window.

use super::net::Net;
use super::sockets::Socket;
use crate::design::CardError;
use crate::messages::{Arrival, Outgoing, Wanted};
use crate::parts::Matching;
use nicety_host::Memory;
use nicety_host::threads::{Group, Piece, Placement, Thread};
use nicety_kernel::Server;
use nicety_stack::{Error, ListenerId};
use nicety_types::{MessageId, NodeId, Path, Payload, Stage, Starter};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

/// The port of messages on every host.
const PORT: u16 = 1024;
/// Bytes of a message's header.
const HEADER: usize = 28;
/// Most bytes that are read from a connection at a time.
const CHUNK: u64 = 64 << 10;

/// The header of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Header {
    source: u32,
    tag: u32,
    bytes: u64,
    /// The number of the message at its sender.
    number: u64,
}

impl Header {
    fn emit(self) -> [u8; HEADER] {
        let mut bytes = [0; HEADER];
        bytes[..4].copy_from_slice(b"nice");
        bytes[4..8].copy_from_slice(&self.source.to_be_bytes());
        bytes[8..12].copy_from_slice(&self.tag.to_be_bytes());
        bytes[12..20].copy_from_slice(&self.bytes.to_be_bytes());
        bytes[20..].copy_from_slice(&self.number.to_be_bytes());
        bytes
    }

    fn parse(bytes: &[u8; HEADER]) -> Option<Header> {
        let word = |at: usize| u32::from_be_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
        let long = |at: usize| u64::from_be_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
        let header = Header { source: word(4), tag: word(8), bytes: long(12), number: long(20) };
        (bytes[..4] == *b"nice").then_some(header)
    }

    const fn message(self) -> MessageId {
        MessageId { source: NodeId(self.source), sequence: self.number }
    }
}

/// A message that has come, or is coming, before its receive.
struct Unexpected {
    header: Header,
    bytes: RefCell<Vec<u8>>,
    whole: Cell<bool>,
}

/// A posted receive.
pub(super) struct Posted {
    wanted: Wanted,
    /// The message in the library's memory that is for it.
    unexpected: RefCell<Option<Rc<Unexpected>>>,
    arrival: Cell<Option<Arrival>>,
}

impl Posted {
    /// The object of 'waits for'.
    pub(super) fn what(&self) -> String {
        self.wanted.what()
    }
}

/// Where the bytes of a message go.
enum Target {
    Receive(Rc<Posted>),
    Memory(Rc<Unexpected>),
}

/// A connection from another rank.
struct Incoming {
    socket: Socket,
    header: Vec<u8>,
    /// The message that is being read, and how much of it has been.
    message: Option<(Header, Option<Target>, u64)>,
}

/// A connection to another rank.
struct Sender {
    thread: Thread,
    socket: RefCell<Option<Socket>>,
    /// One message at a time.
    turn: Server,
}

/// The library of `send` and `recv`.
pub(super) struct Messenger {
    net: Rc<Net>,
    memory: Rc<Memory>,
    listener: ListenerId,
    senders: RefCell<BTreeMap<u32, Rc<Sender>>>,
    receiver: Thread,
    /// Who waits for a message drives the library, one at a time.
    turn: Server,
    incoming: RefCell<Vec<Rc<RefCell<Incoming>>>>,
    matching: RefCell<Matching<Rc<Posted>, Rc<Unexpected>>>,
    /// Bytes of messages in the library's memory.
    kept: Cell<u64>,
}

impl Messenger {
    pub(super) fn start(net: &Rc<Net>, memory: &Rc<Memory>) -> Messenger {
        let receiver = net.threads.thread(Placement::Anywhere);
        let backlog = net.card.nodes as usize;
        let listener = net.listen(PORT, backlog, &receiver).expect("the first listener of the host");
        Messenger {
            memory: memory.clone(),
            listener,
            senders: RefCell::default(),
            turn: Server::new(&net.sim),
            receiver,
            incoming: RefCell::default(),
            matching: RefCell::default(),
            kept: Cell::new(0),
            net: net.clone(),
        }
    }

    /// Sends a message. Ready when its buffer may be used again: the socket has its bytes.
    pub(super) async fn send(&self, message: Outgoing, path: &mut Path) -> Result<(), CardError> {
        let Outgoing { to, tag, address, bytes } = message;
        let card = &self.net.card;
        let header = Header { source: card.node.0, tag, bytes, number: card.next_message().sequence };
        card.recorder.sent(header.message(), NodeId(to), bytes, "send", Starter::Host, path);
        let payload = self.memory.read(address, bytes)?.into_buffer();
        let payload = payload.map_err(|phantom| CardError::Input(format!("send over TCP: {phantom}")))?;
        let sender = self.sender(to);
        let _turn = sender.turn.acquire().await;
        path.advance(Stage::SEND_QUEUED, self.net.sim.now());
        let result = self.send_on(&sender, to, header, &payload, path).await;
        sender.thread.exit();
        result.map_err(|error| failed(&format!("send to rank {to}"), error))
    }

    async fn send_on(
        &self,
        sender: &Sender,
        to: u32,
        header: Header,
        payload: &[u8],
        path: &mut Path,
    ) -> Result<(), Error> {
        let thread = &sender.thread;
        let work = Piece::new(Group::Application, self.net.spec.messages.match_);
        thread.run(work, Stage::POST, path).await;
        if to == self.net.card.node.0 {
            self.deliver_own(header, payload, path);
            return Ok(());
        }
        let known = sender.socket.borrow().clone();
        let socket = match known {
            Some(socket) => socket,
            None => {
                let socket = Socket::connect(&self.net, thread, (to, PORT), path).await?;
                sender.socket.replace(Some(socket.clone()));
                socket
            }
        };
        let bytes = [&header.emit()[..], payload].concat();
        socket.write(thread, &bytes, path).await
    }

    fn sender(&self, to: u32) -> Rc<Sender> {
        let new = || {
            Rc::new(Sender {
                thread: self.net.threads.thread(Placement::Anywhere),
                socket: RefCell::default(),
                turn: Server::new(&self.net.sim),
            })
        };
        self.senders.borrow_mut().entry(to).or_insert_with(new).clone()
    }

    /// A message of the host to itself, which the library hands over.
    fn deliver_own(&self, header: Header, payload: &[u8], path: &Path) {
        match self.target(header) {
            Target::Receive(posted) => {
                self.store(&posted, 0, payload);
                self.arrived(&posted, header, path);
            }
            Target::Memory(kept) => {
                kept.bytes.borrow_mut().extend_from_slice(payload);
                self.whole(&kept, path);
            }
        }
        self.receiver.interrupt();
    }

    /// Posts a receive.
    pub(super) fn post(&self, wanted: Wanted) -> Rc<Posted> {
        let mut matching = self.matching.borrow_mut();
        let takes = |kept: &Rc<Unexpected>| wanted.takes(kept.header.source, kept.header.tag);
        let (unexpected, _) = matching.take_message(takes);
        let waits = unexpected.is_none();
        let posted =
            Rc::new(Posted { wanted, unexpected: RefCell::new(unexpected), arrival: Cell::new(None) });
        if waits {
            matching.post(posted.clone());
        }
        posted
    }

    /// Waits for the message of a receive, and reads others meanwhile.
    pub(super) async fn received(&self, posted: &Posted, path: &mut Path) -> Result<Arrival, CardError> {
        let _turn = self.turn.acquire().await;
        path.advance(Stage::CPU_QUEUED, self.net.sim.now());
        let thread = &self.receiver;
        let result = loop {
            if let Some(arrival) = posted.arrival.get() {
                break Ok(arrival);
            }
            let whole = posted.unexpected.borrow().clone().filter(|kept| kept.whole.get());
            if let Some(kept) = whole {
                break Ok(self.take_kept(posted, &kept, path).await);
            }
            match self.advance(path).await {
                Ok(true) => {}
                Ok(false) => thread.sleep().await,
                Err(error) => break Err(error),
            }
        };
        thread.exit();
        result
    }

    /// Does one thing that there is to do. Returns whether there was any.
    async fn advance(&self, path: &mut Path) -> Result<bool, CardError> {
        if let Some(socket) = Socket::accept(&self.net, self.listener) {
            socket.wake(&self.receiver);
            let incoming = Incoming { socket, header: Vec::with_capacity(HEADER), message: None };
            self.incoming.borrow_mut().push(Rc::new(RefCell::new(incoming)));
            return Ok(true);
        }
        let next = self.incoming.borrow().iter().find(|incoming| self.can_read(&incoming.borrow())).cloned();
        let Some(next) = next else { return Ok(false) };
        let socket = next.borrow().socket.clone();
        self.read(&next, &socket, path).await.map_err(|error| failed("recv", error))?;
        Ok(true)
    }

    /// Whether a connection has bytes that have a place to go to.
    fn can_read(&self, incoming: &Incoming) -> bool {
        let has_place = match &incoming.message {
            Some((header, None, _)) => {
                let takes = |posted: &&Rc<Posted>| posted.wanted.takes(header.source, header.tag);
                self.has_room(header.bytes) || self.matching.borrow().receives().any(|posted| takes(&posted))
            }
            _ => true,
        };
        // A message without bytes is whole behind its header.
        let whole = matches!(&incoming.message, Some((header, _, done)) if header.bytes == *done);
        has_place && (incoming.socket.readable() > 0 || whole)
    }

    fn has_room(&self, bytes: u64) -> bool {
        self.kept.get() + bytes <= self.net.spec.messages.unexpected
    }

    /// Reads a part of a message.
    async fn read(
        &self,
        incoming: &Rc<RefCell<Incoming>>,
        socket: &Socket,
        path: &mut Path,
    ) -> Result<(), Error> {
        let thread = &self.receiver;
        let message = incoming.borrow_mut().message.take();
        let Some((header, target, done)) = message else {
            let missing = HEADER - incoming.borrow().header.len();
            let bytes = socket.read(thread, missing, path).await?;
            let mut incoming = incoming.borrow_mut();
            incoming.header.extend_from_slice(&bytes);
            if let Ok(whole) = <&[u8; HEADER]>::try_from(&incoming.header[..]) {
                let header = Header::parse(whole).ok_or(Error::Invalid)?;
                incoming.header.clear();
                incoming.message = Some((header, None, 0));
            }
            return Ok(());
        };
        let target = match target {
            Some(target) => target,
            None => {
                let work = Piece::new(Group::Application, self.net.spec.messages.match_);
                thread.run(work, Stage::NOTICE, path).await;
                self.target(header)
            }
        };
        let most = (header.bytes - done).min(CHUNK) as usize;
        let bytes = if most > 0 { socket.read(thread, most, path).await? } else { Vec::new() };
        match &target {
            Target::Receive(posted) => self.store(posted, done, &bytes),
            Target::Memory(kept) => kept.bytes.borrow_mut().extend_from_slice(&bytes),
        }
        let done = done + bytes.len() as u64;
        if done < header.bytes {
            incoming.borrow_mut().message = Some((header, Some(target), done));
            return Ok(());
        }
        match &target {
            Target::Receive(posted) => self.arrived(posted, header, path),
            Target::Memory(kept) => self.whole(kept, path),
        }
        Ok(())
    }

    /// Where a message goes: into the oldest receive that takes it, or into the library's memory.
    fn target(&self, header: Header) -> Target {
        let mut matching = self.matching.borrow_mut();
        let (posted, _) = matching.take_receive(|posted| posted.wanted.takes(header.source, header.tag));
        let card = &self.net.card;
        if let Some(posted) = posted {
            card.recorder.message_matched(header.message(), self.net.sim.now(), "receiving");
            return Target::Receive(posted);
        }
        card.recorder.message_matched(header.message(), self.net.sim.now(), "unexpected");
        self.kept.set(self.kept.get() + header.bytes);
        let kept = Rc::new(Unexpected { header, bytes: RefCell::default(), whole: Cell::new(false) });
        matching.keep(kept.clone());
        Target::Memory(kept)
    }

    /// Stores a part of a message, as far as its receive has room.
    fn store(&self, posted: &Posted, done: u64, bytes: &[u8]) {
        let room = posted.wanted.room.saturating_sub(done).min(bytes.len() as u64);
        if room > 0 {
            let payload = Payload::copy_of(&bytes[..room as usize]);
            let address = posted.wanted.address + done;
            self.memory.deposit(address, room, &payload).expect("checked when it was posted");
        }
    }

    fn whole(&self, kept: &Unexpected, path: &Path) {
        kept.whole.set(true);
        self.net.card.recorder.message_completed(kept.header.message(), path, "unexpected");
    }

    fn arrived(&self, posted: &Posted, header: Header, path: &Path) {
        let recorder = &self.net.card.recorder;
        recorder.message_completed(header.message(), path, "received");
        recorder.message_noticed(header.message(), self.net.sim.now());
        let Header { source, tag, bytes, .. } = header;
        posted.arrival.set(Some(Arrival { source, tag, bytes, room: posted.wanted.room }));
    }

    /// Copies a message from the library's memory to its receive.
    async fn take_kept(&self, posted: &Posted, kept: &Unexpected, path: &mut Path) -> Arrival {
        let bytes = kept.bytes.take();
        let lines = self.net.lines(bytes.len());
        let copy = Piece::new(Group::Application, lines * self.net.spec.sockets.copy).streaming(lines);
        self.receiver.run(copy, Stage::COPY, path).await;
        self.store(posted, 0, &bytes);
        self.kept.set(self.kept.get() - kept.header.bytes);
        let Header { source, tag, bytes, .. } = kept.header;
        self.net.card.recorder.message_noticed(kept.header.message(), self.net.sim.now());
        Arrival { source, tag, bytes, room: posted.wanted.room }
    }
}

fn failed(what: &str, error: Error) -> CardError {
    CardError::Failed(format!("{what}: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_bytes() {
        let header = Header { source: 3, tag: 0x0102_0304, bytes: 1 << 40, number: 7 };
        let mut bytes = header.emit();
        assert_eq!(Header::parse(&bytes), Some(header));
        assert_eq!((&bytes[..8], &bytes[20..]), (&b"nice\0\0\0\x03"[..], &[0, 0, 0, 0, 0, 0, 0, 7][..]));
        bytes[0] ^= 1;
        assert_eq!(Header::parse(&bytes), None);
    }
}
