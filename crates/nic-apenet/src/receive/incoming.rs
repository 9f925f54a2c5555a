//! Messages in reception: the packets, the destination and the event of each message.
//!
//! Packets of a message arrive in order. The events of puts and sends from one node are written in the order in which
//! these messages arrived.

use crate::error::Refusal;
use crate::event::{Event, EventKind};
use crate::spec::Per;
use crate::wire::{Kind, Repr};
use crate::{Card, Endpoint, Operation};
use nicety_types::{NodeId, Path};
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// A message being received.
pub(crate) struct Incoming {
    pub(crate) header: Repr,
    /// Address of the message's destination.
    pub(crate) address: u64,
    /// The process that owns the destination.
    pub(crate) process: u32,
    pub(crate) streaming: bool,
    /// Number of bytes that have arrived, in order.
    pub(crate) come: Cell<u64>,
    /// Number of bytes that have been handed to the bus.
    handed: Cell<u64>,
    /// Number of bytes that are on the bus, so that their completion may be written, or that were dropped.
    written: Cell<u64>,
    /// Whether the message was refused or given up.
    pub(crate) refused: Cell<bool>,
    /// Whether the message's event may be written: all bytes have been handed to the bus, and an engine is set up for
    /// the event.
    done: Cell<bool>,
    path: RefCell<Path>,
}

impl Incoming {
    /// Returns the header of the message's packet at `offset`, with as much payload as `like`.
    fn part(&self, offset: u64, like: &Repr) -> Repr {
        let first = self.header;
        let address = if first.address == 0 { 0 } else { first.address.wrapping_add(offset) };
        Repr { payload: like.payload, offset: offset as u32, address, ..first }
    }

    /// Returns the event of the message.
    fn event(&self, kind: EventKind) -> Event {
        let Incoming { header, address, streaming, .. } = *self;
        let data = if header.kind == Kind::Reply { 0 } else { header.data };
        let (peer, bytes) = (header.from, header.bytes.into());
        Event { kind, peer, address, bytes, data, streaming, refused_by: None }
    }

    /// Whether a packet is the next packet of this message.
    fn continues(&self, header: &Repr) -> bool {
        *header == self.part(self.come.get(), header)
    }

    /// Adds bytes that have been handed to the bus. Returns whether all bytes of the message have now been handed over.
    pub(crate) fn hand_over(&self, bytes: u64) -> bool {
        self.handed.set(self.handed.get() + bytes);
        self.handed.get() == u64::from(self.header.bytes)
    }

    /// Whether a packet belongs to this message but comes after the next expected packet.
    pub(crate) fn skips_to(&self, header: &Repr) -> bool {
        u64::from(header.offset) > self.come.get() && *header == self.part(header.offset.into(), header)
    }
}

/// A get waiting for its reply.
#[derive(Clone, Copy)]
pub(crate) struct Getting {
    pub(crate) peer: Endpoint,
    pub(crate) process: u32,
    pub(crate) address: u64,
    pub(crate) bytes: u64,
    /// Whether the reply has begun to arrive.
    pub(crate) begun: bool,
}

impl Getting {
    /// Whether a packet may be the first packet of the get's reply.
    pub(crate) fn awaits(&self, header: &Repr) -> bool {
        !self.begun && self.peer == header.from && self.bytes == u64::from(header.bytes)
    }
}

impl Card {
    /// Returns the message that a packet begins or continues. If there is no such message, counts the packet, or
    /// reports the loss of an earlier packet.
    pub(crate) fn belongs(self: &Rc<Card>, header: &Repr, path: &Path) -> Option<Rc<Incoming>> {
        let id = header.message();
        let known = self.receive.open.borrow().get(&id).cloned();
        let found = match &known {
            Some(incoming) => incoming.continues(header).then(|| incoming.clone()),
            None => self.begin(header, path),
        };
        let Some(incoming) = found else {
            if !self.tell_lost(known.as_deref(), header, path) {
                let late = header.kind == Kind::Reply && header.data < self.messages.given();
                self.count(|counted| {
                    *if late { &mut counted.stale_replies } else { &mut counted.unusable } += 1
                });
            }
            return None;
        };
        incoming.come.set(incoming.come.get() + u64::from(header.payload));
        if incoming.come.get() == u64::from(incoming.header.bytes) {
            self.receive.open.borrow_mut().remove(&id);
        }
        Some(incoming)
    }

    /// Handles the first packet of a message, and decides the message's destination. Returns `None` if the packet
    /// begins no message.
    fn begin(self: &Rc<Card>, header: &Repr, path: &Path) -> Option<Rc<Incoming>> {
        let bytes = u64::from(header.bytes);
        if header.offset > 0 || header.kind == Kind::Put && !self.note(header) {
            return None;
        }
        let (mut address, mut process, mut refused) = (header.address, header.to.process, None);
        let streaming = header.kind == Kind::Put && header.address == 0 && bytes > 0;
        if header.kind == Kind::Reply {
            let mut gets = self.receive.gets.borrow_mut();
            let get = gets.get_mut(&header.data).filter(|get| get.awaits(header))?;
            get.begun = true;
            (address, process) = (get.address, get.process);
        } else if bytes == 0 && !self.events.has_queue(process) {
            refused = Some(Refusal::NoProcess);
        } else if streaming {
            match self.streaming_buffer(header.to.process, bytes) {
                Ok(buffer) => address = buffer,
                Err(why) => refused = Some(why),
            }
        }
        let incoming = Rc::new(Incoming {
            header: *header,
            address,
            process,
            streaming,
            come: Cell::new(0),
            handed: Cell::new(0),
            written: Cell::new(0),
            refused: Cell::new(false),
            done: Cell::new(false),
            path: RefCell::new(path.clone()),
        });
        let message = header.message();
        self.give_up(header, path);
        self.receive.open.borrow_mut().insert(message, incoming.clone());
        if header.kind == Kind::Put {
            let mut order = self.receive.order.borrow_mut();
            order.entry(header.from.node).or_default().push_back(incoming.clone());
        }
        let outcome = match header.kind {
            Kind::Reply => "reply",
            _ if streaming => "streaming buffer",
            _ => "put",
        };
        self.recorder.message_matched(message, self.sim.now(), outcome);
        if let Some(why) = refused {
            incoming.refused.set(true);
            self.refuse(header, (0, false), why, path);
        }
        Some(incoming)
    }

    /// Records that `bytes` bytes of a message are on the bus, so that their completion may follow, or that they were
    /// dropped. The last bytes complete the message.
    pub(crate) fn written(self: &Rc<Card>, incoming: &Incoming, bytes: u64, path: &Path) {
        incoming.path.borrow_mut().follow(path);
        incoming.written.set(incoming.written.get() + bytes);
        incoming.done.set(incoming.written.get() == u64::from(incoming.header.bytes));
        if !incoming.done.get() && !incoming.refused.get() && self.spec.events.received == Per::Packet {
            let kind = match incoming.header.kind {
                Kind::Reply => EventKind::Fetched(Operation(incoming.header.data)),
                _ => EventKind::Received,
            };
            let message = incoming.header.message();
            self.complete_packet(incoming.process, incoming.event(kind), message, path.clone());
        }
        if incoming.header.kind == Kind::Put {
            return self.tell_in_order(incoming.header.from.node);
        }
        // A refused or cancelled get has no further event.
        let number = incoming.header.data;
        if incoming.done.get() && self.receive.gets.borrow_mut().remove(&number).is_some() {
            let path = incoming.path.borrow().clone();
            self.tell(incoming, EventKind::Fetched(Operation(number)), path);
        }
    }

    /// Writes the events of a node's puts and sends in order, up to the first message that is neither complete nor
    /// refused.
    pub(crate) fn tell_in_order(self: &Rc<Card>, from: NodeId) {
        let mut before: Option<Path> = None;
        while let Some(incoming) = self.next_settled(from) {
            let mut path = incoming.path.borrow().clone();
            if let Some(before) = &before {
                path.follow(before);
            }
            before = Some(path.clone());
            if !incoming.refused.get() {
                self.tell(&incoming, EventKind::Received, path);
            }
        }
    }

    /// Removes and returns a node's oldest put or send without a written event, if it is complete or refused.
    fn next_settled(&self, from: NodeId) -> Option<Rc<Incoming>> {
        let mut order = self.receive.order.borrow_mut();
        let queue = order.get_mut(&from)?;
        queue.front().filter(|incoming| incoming.done.get() || incoming.refused.get())?;
        queue.pop_front()
    }

    /// Writes the event of a complete message.
    fn tell(self: &Rc<Card>, incoming: &Incoming, kind: EventKind, path: Path) {
        let Incoming { header, process, .. } = *incoming;
        let outcome = if header.kind == Kind::Reply { "reply" } else { "received" };
        self.recorder.message_completed(header.message(), &path, outcome);
        self.complete(process, incoming.event(kind), header.message(), path);
    }
}
