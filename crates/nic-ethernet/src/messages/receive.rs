//! Receiving: posted receives, and the reader of the connections.

use super::header::Header;
use super::{Incoming, Messenger, Posted, Reading, failed};
use crate::programs::{InCall, to_its_end};
use crate::sockets::Socket;
use crate::wire;
use nicety_host::threads::{Group, Piece, Thread};
use nicety_kernel::{Either, Guard, Signal, race};
use nicety_nic_core::{Arrival, CardError, Tags, Wanted};
use nicety_stack::Error;
use nicety_types::{Path, Stage};
use std::cell::RefCell;
use std::rc::Rc;

/// The most bytes per read of a connection.
const CHUNK: u64 = 64 << 10;

/// A guard of the reading thread.
struct Reads {
    call: InCall,
    _turn: Guard,
}

impl Messenger {
    /// Posts a receive.
    pub(crate) fn post(&self, wanted: Wanted) -> Rc<Posted> {
        let mut matching = self.matching.borrow_mut();
        let takes = |kept: &Rc<super::Unexpected>| wanted.takes(kept.header.source, kept.header.tag);
        let (unexpected, _) = matching.take_message(takes);
        let posted = Rc::new(Posted {
            wanted,
            unexpected: RefCell::new(unexpected.clone()),
            arrival: RefCell::default(),
            changed: Signal::new(&self.net.sim),
        });
        match unexpected {
            Some(kept) => drop(kept.taken.replace(Some(posted.changed.clone()))),
            None => matching.post(posted.clone()),
        }
        posted
    }

    /// Waits for the message of a receive, for a thread of the host's program. Reads connections if no other thread
    /// does.
    pub(crate) async fn received(
        self: &Rc<Messenger>,
        program: u32,
        posted: &Rc<Posted>,
        path: &mut Path,
    ) -> Result<Arrival, CardError> {
        while !posted.is_done() {
            let told = posted.changed.wait_until(|| posted.is_done());
            if let Either::Left(turn) = race(self.turn.acquire(), told).await {
                let reads = Rc::new(Reads { call: self.net.programs.enter(program), _turn: turn });
                path.advance(Stage::CPU_QUEUED, self.net.sim.now());
                self.net.watcher.replace(Some(reads.call.thread().clone()));
                self.read_for(posted, &reads, path).await?;
            }
        }
        if let Some((arrival, arrived)) = posted.arrival.take() {
            path.follow(&arrived);
            return Ok(arrival);
        }
        Ok(self.take_kept(program, posted, path).await)
    }

    /// Returns the oldest message that a receive would take. Reads arrived data up to such a message, unless another
    /// thread reads.
    pub(crate) async fn probe(
        self: &Rc<Messenger>,
        program: u32,
        source: Option<u32>,
        tags: Tags,
        path: &mut Path,
    ) -> Result<Option<Arrival>, CardError> {
        let wanted = Wanted { source, tags, address: 0, room: 0 };
        if let Some(turn) = self.turn.try_acquire() {
            let reads = Rc::new(Reads { call: self.net.programs.enter(program), _turn: turn });
            while self.first(&wanted).is_none()
                && let Some(next) = self.next()
            {
                self.read_to_its_end(next, &reads, path).await?;
            }
        }
        let call = self.net.programs.enter(program);
        let work = Piece::new(Group::Application, self.net.spec.messages.match_);
        call.thread().run(work, Stage::NOTICE, path).await;
        Ok(self.first(&wanted))
    }

    fn first(&self, wanted: &Wanted) -> Option<Arrival> {
        let matching = self.matching.borrow();
        let found = matching.messages().find(|kept| wanted.takes(kept.header.source, kept.header.tag));
        found.map(|kept| {
            let Header { source, tag, bytes, .. } = kept.header;
            Arrival { source, tag, bytes, room: bytes }
        })
    }

    /// Cancels a posted receive. Returns whether no message has taken it.
    pub(crate) async fn cancel(&self, program: u32, posted: &Rc<Posted>, path: &mut Path) -> bool {
        let call = self.net.programs.enter(program);
        let work = Piece::new(Group::Application, self.net.spec.messages.match_);
        call.thread().run(work, Stage::NOTICE, path).await;
        self.matching.borrow_mut().withdraw(|receive| Rc::ptr_eq(receive, posted)).is_some()
    }

    /// Reads connections until the message of a receive has arrived.
    async fn read_for(
        self: &Rc<Messenger>,
        posted: &Posted,
        reads: &Rc<Reads>,
        path: &mut Path,
    ) -> Result<(), CardError> {
        while !posted.is_done() {
            let Some(next) = self.next() else {
                reads.call.thread().sleep().await;
                continue;
            };
            self.read_to_its_end(next, reads, path).await?;
        }
        Ok(())
    }

    /// Completes a read, so that bytes taken from a connection are not lost if the waiting call is dropped.
    async fn read_to_its_end(
        self: &Rc<Messenger>,
        next: Rc<Incoming>,
        reads: &Rc<Reads>,
        path: &mut Path,
    ) -> Result<(), CardError> {
        let (own, reads, mut on) = (self.clone(), reads.clone(), path.clone());
        let work = async move {
            let result = own.read(&next, reads.call.thread(), &mut on).await;
            (result, on)
        };
        let (result, on) = to_its_end(&self.net.sim, work).await;
        *path = on;
        result
    }

    /// Returns a connection with bytes to store.
    fn next(&self) -> Option<Rc<Incoming>> {
        while let Some(socket) = self.listener.accept_now() {
            let peer = socket.ends().ok().and_then(|(_, peer)| wire::rank(peer.ip()));
            let Some(rank) = peer else { continue };
            socket.watch();
            self.incoming.borrow_mut().push(Rc::new(Incoming { socket, rank, state: RefCell::default() }));
        }
        self.incoming.borrow().iter().find(|incoming| self.can_read(incoming)).cloned()
    }

    fn can_read(&self, incoming: &Incoming) -> bool {
        let Incoming { socket, state, .. } = incoming;
        let Reading { message, .. } = &*state.borrow();
        let has_place = match message {
            Some((header, None, _)) => {
                let takes = |posted: &Rc<Posted>| posted.wanted.takes(header.source, header.tag);
                self.has_room(header.bytes) || self.matching.borrow().receives().any(takes)
            }
            _ => true,
        };
        // A message without bytes is complete after its header.
        let whole = message.as_ref().is_some_and(|(header, _, done)| header.bytes == *done);
        has_place && (socket.readable() > 0 || whole || socket.check().is_err())
    }

    /// Reads a header, or a part of a message.
    async fn read(&self, incoming: &Incoming, thread: &Thread, path: &mut Path) -> Result<(), CardError> {
        let Incoming { socket, rank, state } = incoming;
        let lost = |error| failed(&format!("recv: the connection from rank {rank}"), error);
        let message = state.borrow().message.clone();
        let Some((header, target, done)) = message else {
            return self.read_header(incoming, thread, path).await;
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
        let bytes = match most {
            0 => Vec::new(),
            _ => self.bytes(socket, thread, most, path).await.map_err(lost)?,
        };
        self.put(&target, done, &bytes);
        let done = done + bytes.len() as u64;
        if done < header.bytes {
            state.borrow_mut().message = Some((header, Some(target), done));
        } else {
            state.borrow_mut().message = None;
            self.complete(&target, header, path);
        }
        Ok(())
    }

    async fn read_header(
        &self,
        incoming: &Incoming,
        thread: &Thread,
        path: &mut Path,
    ) -> Result<(), CardError> {
        let Incoming { socket, rank, state } = incoming;
        let missing = Header::BYTES - state.borrow().header.len();
        let bytes = self.bytes(socket, thread, missing, path).await;
        let bytes =
            bytes.map_err(|error| failed(&format!("recv: the connection from rank {rank}"), error))?;
        let mut state = state.borrow_mut();
        state.header.extend_from_slice(&bytes);
        if let Ok(whole) = <&[u8; Header::BYTES]>::try_from(&state.header[..]) {
            let header = Header::parse(whole, *rank).ok_or_else(|| {
                CardError::Failed(format!("recv: the bytes of a connection from rank {rank} are no message"))
            })?;
            state.header.clear();
            state.message = Some((header, None, 0));
        }
        Ok(())
    }

    async fn bytes(
        &self,
        socket: &Socket,
        thread: &Thread,
        most: usize,
        path: &mut Path,
    ) -> Result<Vec<u8>, Error> {
        let bytes = socket.read_now(thread, most, path).await?;
        if bytes.is_empty() { socket.check().map(|()| bytes) } else { Ok(bytes) }
    }

    /// Copies a message from the library's memory to its receive.
    async fn take_kept(&self, program: u32, posted: &Posted, path: &mut Path) -> Arrival {
        let kept = posted.unexpected.take().expect("its message is there");
        let bytes = kept.bytes.take();
        self.store(posted, 0, &bytes);
        self.kept.set(self.kept.get() - kept.header.bytes);
        let call = self.net.programs.enter(program);
        if let Some(whole) = &*kept.whole.borrow() {
            path.follow(whole);
        }
        self.copy(call.thread(), bytes.len(), path).await;
        let Header { source, tag, bytes, .. } = kept.header;
        self.net.card.recorder.message_noticed(kept.header.message(), self.net.sim.now());
        Arrival { source, tag, bytes, room: posted.wanted.room }
    }
}
