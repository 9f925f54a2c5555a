//! Sockets: a thread's calls on connections, and what they cost.

use super::net::{Connection, Net};
use super::{stages, wire};
use nicety_host::threads::{Group, Piece, Thread};
use nicety_stack::{ConnectionId, Error, ListenerId, Options};
use nicety_types::{Path, Stage};
use std::net::SocketAddr;
use std::rc::Rc;

/// A socket of a connection.
#[derive(Clone)]
pub(super) struct Socket {
    net: Rc<Net>,
    pub(super) id: ConnectionId,
    state: Rc<Connection>,
}

impl Socket {
    fn new(net: &Rc<Net>, id: ConnectionId) -> Result<Socket, Error> {
        let state = net.connection(id).ok_or(Error::BadHandle)?;
        Ok(Socket { net: net.clone(), id, state })
    }

    /// Connects to a port of a rank. Ready when the connection is established.
    pub(super) async fn connect(
        net: &Rc<Net>,
        thread: &Thread,
        (rank, port): (u32, u16),
        path: &mut Path,
    ) -> Result<Socket, Error> {
        net.call(thread, path).await;
        net.know(rank);
        let to = SocketAddr::new(wire::ipv4(rank).into(), port);
        let options = Options { nodelay: true, ..Options::default() };
        let id = net.with(|stack, now| stack.connect(now, to, None, &options))?;
        let socket = Socket::new(net, id)?;
        socket.state.writer.replace(Some(thread.clone()));
        net.follow(thread, path).await;
        while !socket.state.connected.get() {
            socket.check()?;
            thread.sleep().await;
            socket.join(path);
        }
        Ok(socket)
    }

    /// A connection that has come to a listener, if there is one.
    pub(super) fn accept(net: &Rc<Net>, listener: ListenerId) -> Option<Socket> {
        let id = net.stack.borrow_mut().accept(listener).ok()?;
        Socket::new(net, id).ok()
    }

    /// Writes all bytes. Ready when the socket has taken the last one.
    pub(super) async fn write(
        &self,
        thread: &Thread,
        mut bytes: &[u8],
        path: &mut Path,
    ) -> Result<(), Error> {
        self.state.writer.replace(Some(thread.clone()));
        self.call(thread, path).await;
        while !bytes.is_empty() {
            let room = self.net.stack.borrow().writable(self.id)?;
            if room == 0 {
                self.check()?;
                thread.sleep().await;
                path.advance(stages::SOCKET_QUEUED, self.net.sim.now());
                continue;
            }
            let part = &bytes[..room.min(bytes.len())];
            self.copy(thread, part.len(), path).await;
            let taken = match self.net.with(|stack, now| stack.send(now, self.id, part)) {
                Err(Error::WouldBlock) => 0,
                taken => taken?,
            };
            bytes = &bytes[taken..];
            self.net.follow(thread, path).await;
        }
        Ok(())
    }

    /// Bytes that can be read at once.
    pub(super) fn readable(&self) -> usize {
        self.net.stack.borrow().readable(self.id).unwrap_or(0)
    }

    /// Has a thread woken when there is something to read.
    pub(super) fn wake(&self, thread: &Thread) {
        self.state.reader.replace(Some(thread.clone()));
    }

    /// Reads at most so many of the bytes that are there, after [`Socket::wake`]. Empty when there are none now, or never again.
    pub(super) async fn read(&self, thread: &Thread, most: usize, path: &mut Path) -> Result<Vec<u8>, Error> {
        self.join(path);
        self.call(thread, path).await;
        let mut bytes = vec![0; most.min(self.readable())];
        let taken = match self.net.with(|stack, now| stack.recv(now, self.id, &mut bytes)) {
            Err(Error::WouldBlock) => 0,
            taken => taken?,
        };
        bytes.truncate(taken);
        self.copy(thread, taken, path).await;
        self.net.follow(thread, path).await;
        Ok(bytes)
    }

    /// Whether the connection is over.
    ///
    /// # Errors
    /// Why.
    pub(super) fn check(&self) -> Result<(), Error> {
        self.state.failed.get().map_or(Ok(()), Err)
    }

    /// What a thread does next follows what the stack did with the last frame, if it waited for that.
    fn join(&self, path: &mut Path) {
        let arrived = self.state.path.borrow();
        if arrived.at() > path.at() {
            path.clone_from(&arrived);
        }
        drop(arrived);
        path.advance(Stage::WAKE, self.net.sim.now());
    }

    async fn call(&self, thread: &Thread, path: &mut Path) {
        self.net.call(thread, path).await;
        let touched = [&self.state.data];
        let socket = Piece::new(Group::Socket, self.net.spec.sockets.socket).touching(&touched);
        thread.run(socket, stages::SOCKET, path).await;
    }

    async fn copy(&self, thread: &Thread, bytes: usize, path: &mut Path) {
        let lines = self.net.lines(bytes);
        let copy = Piece::new(Group::Copy, lines * self.net.spec.sockets.copy).streaming(lines);
        thread.run(copy, stages::COPY, path).await;
    }
}

impl Net {
    /// Waits for connections to a port; `thread` is woken when one comes.
    pub(super) fn listen(&self, port: u16, backlog: usize, thread: &Thread) -> Result<ListenerId, Error> {
        let options = Options { nodelay: true, ..Options::default() };
        let listener = self.stack.borrow_mut().listen(port, backlog, &options)?;
        self.listeners.borrow_mut().insert(listener, thread.clone());
        Ok(listener)
    }

    /// A system call that does nothing.
    async fn call(&self, thread: &Thread, path: &mut Path) {
        thread.run(Piece::new(Group::Kernel, self.spec.sockets.call), Stage::SYSTEM_CALL, path).await;
    }
}
