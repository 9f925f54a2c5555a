//! Receiving: posted receives, and the reader of the connections.

use super::header::Header;
use super::{Incoming, Messenger, Posted, Reading, failed, is_done};
use crate::programs::InCall;
use crate::sockets::Socket;
use crate::wire;
use nicety_host::threads::{Group, Piece, Thread};
use nicety_kernel::{Either, Guard, race};
use nicety_nic_core::library::to_its_end;
use nicety_nic_core::{Arrival, CardError};
use nicety_stack::Error;
use nicety_types::{Path, Stage};
use std::cell::RefCell;
use std::rc::Rc;

/// The maximum number of bytes per read of a connection.
const CHUNK: u64 = 64 << 10;

/// A guard of the reading thread.
pub(super) struct Reads {
    pub(super) call: InCall,
    pub(super) _turn: Guard,
}

impl Messenger {
    /// Waits for the message of a receive, for a thread of the host's program. Reads connections if no other thread
    /// reads them.
    pub(super) async fn read_message(
        self: &Rc<Messenger>,
        program: u32,
        posted: &Rc<Posted>,
        path: &mut Path,
    ) -> Result<Arrival, CardError> {
        while !is_done(posted) {
            let told = posted.done.wait_until(|| is_done(posted));
            if let Either::Left(turn) = race(self.turn.acquire(), told).await {
                let reads = Rc::new(Reads { call: self.net.programs.enter(program), _turn: turn });
                path.advance(Stage::CPU_QUEUED, self.net.sim.now());
                self.net.watcher.replace(Some(reads.call.thread().clone()));
                self.read_for(posted, &reads, path).await?;
            }
        }
        if let Some((arrival, arrived)) = posted.take_result() {
            path.follow(&arrived);
            return arrival;
        }
        Ok(self.take_kept(program, posted, path).await)
    }

    /// Reads connections until the message of a receive has arrived.
    async fn read_for(
        self: &Rc<Messenger>,
        posted: &Posted,
        reads: &Rc<Reads>,
        path: &mut Path,
    ) -> Result<(), CardError> {
        while !is_done(posted) {
            let Some(next) = self.next() else {
                reads.call.thread().sleep().await;
                continue;
            };
            self.read_to_its_end(next, reads, path).await?;
        }
        Ok(())
    }

    /// Completes a read, so that bytes taken from a connection are not lost if the waiting call is dropped.
    pub(super) async fn read_to_its_end(
        self: &Rc<Messenger>,
        next: Rc<Incoming>,
        reads: &Rc<Reads>,
        path: &mut Path,
    ) -> Result<(), CardError> {
        let (own, reads, mut on) = (self.clone(), reads.clone(), path.clone());
        let work = async move {
            let result = own.read(&next, reads.call.thread(), &mut on).await;
            ((result, on), ())
        };
        let (result, on) = to_its_end(&self.net.sim, work).await;
        *path = on;
        result
    }

    /// Returns a connection with bytes to store.
    pub(super) fn next(&self) -> Option<Rc<Incoming>> {
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
                self.has_room(header.bytes) || self.library.awaits(header.source, header.tag)
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
        let kept = posted.progress.take().expect("its message is there");
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
