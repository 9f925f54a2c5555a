//! Connection sockets: the calls of threads on them, and the costs of the calls.

use crate::net::loans::Loan;
use crate::net::{Connection, Net};
use crate::{stages, wire};
use nicety_host::threads::{Group, Piece, Thread};
use nicety_kernel::describe;
use nicety_stack::{ConnectionId, Error, Options};
use nicety_types::{Path, Stage};
use std::net::SocketAddr;
use std::rc::Rc;

/// A connection socket.
#[derive(Clone)]
pub(crate) struct Socket {
    net: Rc<Net>,
    id: ConnectionId,
    state: Rc<Connection>,
}

impl Socket {
    pub(crate) fn new(net: &Rc<Net>, id: ConnectionId) -> Result<Socket, Error> {
        let state = net.connection(id).ok_or(Error::BadHandle)?;
        Ok(Socket { net: net.clone(), id, state })
    }

    /// Connects from a given port or a free one. Returns when the connection is established.
    pub(crate) async fn connect(
        net: &Rc<Net>,
        thread: &Thread,
        (to, port): (SocketAddr, Option<u16>),
        options: &Options,
        path: &mut Path,
    ) -> Result<Socket, Error> {
        net.system_call(thread, path).await;
        if let Some(rank) = wire::rank(to.ip()) {
            net.know(rank);
        }
        let id = net.with(|stack, now| stack.connect(now, to, port, options))?;
        let socket = Socket::new(net, id)?;
        let established = socket.established(thread, path).await;
        if established.is_err() {
            // No socket has the handle of this connection.
            drop(net.forget(id));
            net.with(|stack, now| stack.close(now, id))?;
        }
        established.map(|()| socket)
    }

    async fn established(&self, thread: &Thread, path: &mut Path) -> Result<(), Error> {
        let _waiting = self.state.writers.enter(thread);
        self.net.follow(thread, path).await;
        while !self.state.connected.get() {
            self.check()?;
            let peer = || self.ends().map_or_else(|_| String::new(), |(_, peer)| format!(" {peer}"));
            describe(|| format!("an answer of{}", peer()), thread.sleep()).await;
            self.join(path);
        }
        Ok(())
    }

    /// Writes the bytes of all parts. Returns when the socket has taken the last one.
    pub(crate) async fn write(&self, thread: &Thread, parts: &[&[u8]], path: &mut Path) -> Result<(), Error> {
        let _waiting = self.state.writers.enter(thread);
        self.call(thread, path).await;
        for part in parts {
            let mut bytes = *part;
            while !bytes.is_empty() {
                let taken = self.write_some(thread, bytes, path).await?;
                bytes = &bytes[taken..];
            }
        }
        Ok(())
    }

    /// Waits for room, and writes at least one byte of `bytes` and as many as fit.
    async fn write_some(&self, thread: &Thread, bytes: &[u8], path: &mut Path) -> Result<usize, Error> {
        loop {
            self.check()?;
            let room = self.net.stack.borrow().writable(self.id)?;
            if room > 0 {
                let part = &bytes[..room.min(bytes.len())];
                self.copy(thread, part.len(), path).await;
                // Another thread may have used the room meanwhile.
                match self.net.with(|stack, now| stack.send(now, self.id, part)) {
                    Err(Error::WouldBlock) => {}
                    taken => {
                        let taken = taken?;
                        self.net.follow(thread, path).await;
                        return Ok(taken);
                    }
                }
                continue;
            }
            // This call returns the error, if sending is impossible.
            match self.net.with(|stack, now| stack.send(now, self.id, &bytes[..1])) {
                Err(Error::WouldBlock) => {}
                taken => return taken,
            }
            describe(|| self.waits_for("room in the send buffer"), thread.sleep()).await;
            path.advance(stages::SOCKET_QUEUED, self.net.sim.now());
        }
    }

    /// Returns the number of bytes that can be read immediately.
    pub(crate) fn readable(&self) -> usize {
        self.there().saturating_sub(self.state.held.bytes())
    }

    /// Returns the number of received bytes, including those that are held back from readers.
    fn there(&self) -> usize {
        self.net.stack.borrow().readable(self.id).unwrap_or(0)
    }

    /// Makes [`Net::watcher`] wake when there is something to read.
    pub(crate) fn watch(&self) {
        self.state.watched.set(true);
    }

    /// Reads at most `most` of the received bytes. Returns no bytes if there are none.
    pub(crate) async fn read_now(
        &self,
        thread: &Thread,
        most: usize,
        path: &mut Path,
    ) -> Result<Vec<u8>, Error> {
        self.join(path);
        self.call(thread, path).await;
        match self.take(most) {
            Err(Error::WouldBlock) => Ok(Vec::new()),
            taken => self.taken(thread, taken?, path).await,
        }
    }

    /// Waits for at least one byte, and reads at most `most` bytes. Returns no bytes after the peer's last byte.
    pub(crate) async fn read(&self, thread: &Thread, most: usize, path: &mut Path) -> Result<Vec<u8>, Error> {
        let _waiting = self.state.readers.enter(thread);
        self.call(thread, path).await;
        loop {
            match self.take(most) {
                Err(Error::WouldBlock) => {}
                taken => return self.taken(thread, taken?, path).await,
            }
            describe(|| self.waits_for("bytes"), thread.sleep()).await;
            self.join(path);
        }
    }

    fn take(&self, most: usize) -> Result<Vec<u8>, Error> {
        let readable = self.readable();
        if readable == 0 && self.there() > 0 {
            return Err(Error::WouldBlock);
        }
        let mut bytes = vec![0; most.min(readable.max(1))];
        let taken = self.net.with(|stack, now| stack.recv(now, self.id, &mut bytes))?;
        bytes.truncate(taken);
        Ok(bytes)
    }

    async fn taken(&self, thread: &Thread, bytes: Vec<u8>, path: &mut Path) -> Result<Vec<u8>, Error> {
        let free = self.state.loans.read(bytes.len(), self.there());
        self.net.copy(thread, bytes.len(), &Loan::pages(&free), path).await;
        self.net.free(thread, free, path).await;
        self.net.follow(thread, path).await;
        Ok(bytes)
    }

    /// Ends sending. The peer reads the end after the written bytes.
    pub(crate) async fn shutdown(&self, thread: &Thread, path: &mut Path) -> Result<(), Error> {
        self.call(thread, path).await;
        self.net.with(|stack, now| stack.shutdown(now, self.id))?;
        self.net.follow(thread, path).await;
        Ok(())
    }

    /// Closes the connection. Written bytes are still delivered.
    pub(crate) async fn close(&self, thread: &Thread, path: &mut Path) -> Result<(), Error> {
        self.call(thread, path).await;
        self.net.with(|stack, now| stack.close(now, self.id))?;
        let woken = self.net.forget(self.id);
        self.net.wake(thread, woken, path).await;
        self.net.follow(thread, path).await;
        Ok(())
    }

    /// Sets whether small segments are sent at once.
    pub(crate) async fn set_nodelay(
        &self,
        thread: &Thread,
        nodelay: bool,
        path: &mut Path,
    ) -> Result<(), Error> {
        self.call(thread, path).await;
        self.net.with(|stack, now| stack.set_nodelay(now, self.id, nodelay))?;
        self.net.follow(thread, path).await;
        Ok(())
    }

    /// Returns the addresses of this end and of the peer.
    pub(crate) fn ends(&self) -> Result<(SocketAddr, SocketAddr), Error> {
        self.net.stack.borrow().ends(self.id)
    }

    /// Checks that the connection is not over.
    ///
    /// # Errors
    /// The reason why the connection is over.
    pub(crate) fn check(&self) -> Result<(), Error> {
        self.state.failed.get().map_or(Ok(()), Err)
    }

    /// Joins a thread's path to that of the stack's work for the last frame, if the thread waited for it.
    fn join(&self, path: &mut Path) {
        let arrived = self.state.path.borrow();
        if arrived.at() > path.at() {
            path.clone_from(&arrived);
        }
        drop(arrived);
        path.advance(Stage::WAKE, self.net.sim.now());
    }

    fn waits_for(&self, what: &str) -> String {
        match self.ends() {
            Ok((own, peer)) => format!("{what} of its connection from {own} to {peer}"),
            Err(_) => what.to_owned(),
        }
    }

    /// Charges a system call on this socket.
    async fn call(&self, thread: &Thread, path: &mut Path) {
        self.net.system_call(thread, path).await;
        let touched = [&self.state.data];
        let socket = Piece::new(Group::Socket, self.net.spec.sockets.socket).touching(&touched);
        thread.run(socket, stages::SOCKET, path).await;
    }

    async fn copy(&self, thread: &Thread, bytes: usize, path: &mut Path) {
        self.net.copy(thread, bytes, &[], path).await;
    }
}
