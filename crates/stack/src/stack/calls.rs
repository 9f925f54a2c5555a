//! The calls of programs on TCP sockets. No call blocks. [`Event`]s and [`Arrival`]s show a program when to try a call
//! again.
//!
//! [`Event`]: super::Event
//! [`Arrival`]: super::Arrival

use super::{ConnectionId, EPHEMERAL, Listener, ListenerId, Stack};
use crate::connection::Connection;
use crate::error::Error;
use crate::spec::Options;
use crate::tcp::{State, Tcb};
use nicety_types::Time;
use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};

impl Stack {
    /// Begins a connection to a peer. If the caller names no port, the connection has an ephemeral port.
    ///
    /// # Errors
    /// [`Error::AddressInUse`] if a listener has the port, or another connection to this peer;
    /// [`Error::AddressNotAvailable`] if no ephemeral port is left. [`Error::NetworkUnreachable`] without a route to
    /// the peer; [`Error::NoBufferSpace`] at the limit of connections or memory; [`Error::Invalid`] for an invalid
    /// address.
    pub fn connect(
        &mut self,
        now: Time,
        remote: SocketAddr,
        port: Option<u16>,
        options: &Options,
    ) -> Result<ConnectionId, Error> {
        if remote.port() == 0 || port == Some(0) {
            return Err(Error::Invalid);
        }
        let remote = plain(remote);
        let hop = self.next_hop(remote.ip())?;
        let own = self.own(remote.ip()).ok_or(Error::NetworkUnreachable)?;
        let setup = self.setup(options, remote.ip())?;
        let taken = |stack: &Stack, port| {
            stack.ports.contains_key(&port) || stack.flows.contains_key(&(port, remote))
        };
        let port = match port {
            Some(port) if taken(self, port) => return Err(Error::AddressInUse),
            Some(port) => port,
            None => self.ephemeral(|stack, port| !taken(stack, port))?,
        };
        let (local, buffers) = (SocketAddr::new(own, port), setup.send + setup.receive);
        let tcb = Tcb::connect(now, setup, self.first_number(now, local, remote));
        let mut connection = Connection::new(local, remote, hop, tcb, buffers);
        connection.held = true;
        let id = self.insert(connection).ok_or(Error::NoBufferSpace)?;
        self.settle(now, id, None);
        Ok(id)
    }

    /// Returns an ephemeral port that no listener and no connection has, and for which `taken` returns false.
    ///
    /// # Errors
    /// [`Error::AddressNotAvailable`] if no such port is left.
    pub fn free_port(&mut self, taken: impl Fn(u16) -> bool) -> Result<u16, Error> {
        let in_use = |stack: &Stack, port| {
            stack.ports.contains_key(&port) || stack.flows.keys().any(|flow| flow.0 == port)
        };
        self.ephemeral(|stack, port| !taken(port) && !in_use(stack, port))
    }

    /// Returns the next free ephemeral port.
    pub(super) fn ephemeral(&mut self, free: impl Fn(&Stack, u16) -> bool) -> Result<u16, Error> {
        for _ in EPHEMERAL..=u16::MAX {
            let port = self.next_port;
            self.next_port = port.checked_add(1).unwrap_or(EPHEMERAL);
            if free(self, port) {
                return Ok(port);
            }
        }
        Err(Error::AddressNotAvailable)
    }

    /// Listens for connections at a port. At most `backlog` connections may be in the handshake or wait to be accepted.
    /// A `backlog` of 0 counts as 1.
    ///
    /// # Errors
    /// [`Error::AddressInUse`] if a listener or a connection has the port; [`Error::Invalid`] for port 0 or a buffer of
    /// 0 bytes; [`Error::NoBufferSpace`] at the limit of listeners.
    pub fn listen(&mut self, port: u16, backlog: usize, options: &Options) -> Result<ListenerId, Error> {
        if port == 0 || [options.send_buffer, options.receive_buffer].contains(&Some(0)) {
            return Err(Error::Invalid);
        }
        let in_use = |flow: &&(u16, SocketAddr)| flow.0 == port;
        if self.ports.contains_key(&port) || self.flows.keys().any(|flow| in_use(&flow)) {
            return Err(Error::AddressInUse);
        }
        let listener =
            Listener { port, backlog: backlog.max(1), options: *options, begun: 0, queue: VecDeque::new() };
        let id = ListenerId(self.listeners.insert(listener).ok_or(Error::NoBufferSpace)?);
        self.ports.insert(port, id);
        Ok(id)
    }

    /// Returns the listener's oldest established connection, and removes it from the queue.
    ///
    /// # Errors
    /// [`Error::WouldBlock`] if no connection waits, [`Error::BadHandle`].
    pub fn accept(&mut self, listener: ListenerId) -> Result<ConnectionId, Error> {
        let entry = self.listeners.get_mut(listener.0).ok_or(Error::BadHandle)?;
        let id = entry.queue.pop_front().ok_or(Error::WouldBlock)?;
        let connection = self.connections.get_mut(id.0).ok_or(Error::WouldBlock)?;
        (connection.held, connection.listener) = (true, None);
        Ok(id)
    }

    /// Stops listening. Connections that were not accepted are reset.
    ///
    /// # Errors
    /// [`Error::BadHandle`].
    pub fn close_listener(&mut self, now: Time, listener: ListenerId) -> Result<(), Error> {
        let entry = self.listeners.remove(listener.0).ok_or(Error::BadHandle)?;
        self.ports.remove(&entry.port);
        let begun = self.flows.values().copied();
        let of_it =
            |id: &ConnectionId| self.connections.get(id.0).is_some_and(|c| c.listener == Some(listener));
        let mut lost: Vec<ConnectionId> = begun.filter(of_it).collect();
        lost.sort_unstable();
        for id in lost {
            if let Some(connection) = self.connections.get_mut(id.0) {
                connection.listener = None;
                connection.tcb.abort();
            }
            self.settle(now, id, None);
        }
        Ok(())
    }

    fn held(&mut self, id: ConnectionId) -> Result<&mut Connection, Error> {
        self.connections.get_mut(id.0).filter(|connection| connection.held).ok_or(Error::BadHandle)
    }

    /// Appends bytes to the send buffer as far as they fit. Returns the number of appended bytes.
    ///
    /// # Errors
    /// [`Error::WouldBlock`] if the buffer is full, [`Error::NotConnected`] before the connection is established,
    /// [`Error::BrokenPipe`] after [`Stack::shutdown`], [`Error::BadHandle`]. If the connection has failed, the reason
    /// of the failure.
    pub fn send(&mut self, now: Time, id: ConnectionId, bytes: &[u8]) -> Result<usize, Error> {
        let connection = self.held(id)?;
        if let Some(error) = connection.error {
            return Err(error);
        }
        if connection.tcb.is_shut() || connection.tcb.state() == State::Closed {
            return Err(Error::BrokenPipe);
        }
        if connection.tcb.state().is_handshake() {
            return Err(Error::NotConnected);
        }
        let sent = connection.tcb.send(now, bytes);
        self.settle(now, id, None);
        if sent == 0 && !bytes.is_empty() { Err(Error::WouldBlock) } else { Ok(sent) }
    }

    /// Moves received bytes into `bytes`, and returns their number. It is 0 (end-of-file) if the peer has closed and no
    /// byte is left.
    ///
    /// # Errors
    /// Those of [`Stack::send`]. Bytes received before a reset can still be read.
    pub fn recv(&mut self, now: Time, id: ConnectionId, bytes: &mut [u8]) -> Result<usize, Error> {
        let connection = self.held(id)?;
        if connection.tcb.state().is_handshake() {
            return Err(Error::NotConnected);
        }
        let read = connection.tcb.recv(now, bytes);
        if read == 0 && !bytes.is_empty() {
            let is_over = connection.tcb.state() == State::Closed;
            return match connection.error {
                Some(error) => Err(error),
                None if connection.tcb.has_finished() => Ok(0),
                None => Err(if is_over { Error::NotConnected } else { Error::WouldBlock }),
            };
        }
        self.settle(now, id, None);
        Ok(read)
    }

    /// Closes the sending direction. The peer reads the bytes in the send buffer, and then end-of-file.
    ///
    /// # Errors
    /// [`Error::NotConnected`], [`Error::BadHandle`]. If the connection has failed, the reason of the failure.
    pub fn shutdown(&mut self, now: Time, id: ConnectionId) -> Result<(), Error> {
        let connection = self.held(id)?;
        if let Some(error) = connection.error {
            return Err(error);
        }
        if matches!(connection.tcb.state(), State::SynSent | State::Closed) {
            return Err(Error::NotConnected);
        }
        connection.tcb.shut(now);
        self.settle(now, id, None);
        Ok(())
    }

    /// Releases the handle. The stack still delivers the bytes in the send buffer, and then closes the connection. If
    /// received bytes are unread, the stack resets the connection instead (RFC 2525, 2.17).
    ///
    /// # Errors
    /// [`Error::BadHandle`].
    pub fn close(&mut self, now: Time, id: ConnectionId) -> Result<(), Error> {
        let connection = self.held(id)?;
        connection.held = false;
        if connection.tcb.readable() > 0 {
            connection.tcb.abort();
        } else {
            connection.tcb.shut(now);
        }
        self.settle(now, id, None);
        Ok(())
    }

    /// Releases the handle and resets the connection. The bytes in both buffers are lost.
    ///
    /// # Errors
    /// [`Error::BadHandle`].
    pub fn abort(&mut self, now: Time, id: ConnectionId) -> Result<(), Error> {
        let connection = self.held(id)?;
        connection.held = false;
        connection.tcb.abort();
        self.settle(now, id, None);
        Ok(())
    }

    /// Sets whether small segments are sent at once (`TCP_NODELAY`).
    ///
    /// # Errors
    /// [`Error::BadHandle`].
    pub fn set_nodelay(&mut self, now: Time, id: ConnectionId, nodelay: bool) -> Result<(), Error> {
        self.held(id)?.tcb.set_nodelay(nodelay);
        self.settle(now, id, None);
        Ok(())
    }

    /// Bytes that can be read now.
    ///
    /// # Errors
    /// [`Error::BadHandle`].
    pub fn readable(&self, id: ConnectionId) -> Result<usize, Error> {
        Ok(self.look(id)?.tcb.readable())
    }

    /// Free bytes of the send buffer, or 0 if nothing can be sent.
    ///
    /// # Errors
    /// [`Error::BadHandle`].
    pub fn writable(&self, id: ConnectionId) -> Result<usize, Error> {
        Ok(self.look(id)?.tcb.writable())
    }

    /// Bytes sent or to be sent that the peer has not acknowledged.
    ///
    /// # Errors
    /// [`Error::BadHandle`].
    pub fn unacknowledged(&self, id: ConnectionId) -> Result<usize, Error> {
        Ok(self.look(id)?.tcb.queued())
    }

    /// The host's address and port, and the peer's address and port.
    ///
    /// # Errors
    /// [`Error::BadHandle`].
    pub fn ends(&self, id: ConnectionId) -> Result<(SocketAddr, SocketAddr), Error> {
        let connection = self.look(id)?;
        Ok((connection.local, connection.remote))
    }

    fn look(&self, id: ConnectionId) -> Result<&Connection, Error> {
        self.connections.get(id.0).filter(|connection| connection.held).ok_or(Error::BadHandle)
    }
}

/// Returns an address and port without IPv6's scope and flow information. An IPv4-mapped address becomes an IPv4
/// address.
pub(super) fn plain(end: SocketAddr) -> SocketAddr {
    match end.ip() {
        IpAddr::V6(a) => SocketAddr::new(a.to_ipv4_mapped().map_or(a.into(), IpAddr::from), end.port()),
        IpAddr::V4(_) => end,
    }
}
