//! A host's sockets, on cards that serve the kernel's protocols: [`Sockets`].

use super::Host;
use crate::Error;
use nicety_nic_ethernet::{self as ethernet, Node, Report, Setting, SocketError, SocketKind};
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;

/// The socket interface of a host, for one thread of its program. A socket has the same number in all threads of the
/// host. Cheap to clone.
#[derive(Clone)]
pub struct Sockets {
    host: Host,
    node: Rc<Node>,
}

impl Host {
    /// Returns the socket interface of this host.
    ///
    /// # Errors
    /// When the card is of another design. The error names a card with sockets.
    pub fn socket(&self) -> Result<Sockets, Error> {
        Ok(Sockets { host: self.clone(), node: self.inner.card.of::<Node>()? })
    }
}

impl Sockets {
    /// Returns the IPv4 address of the host with this rank, even if there is no such host.
    pub fn address(rank: u32) -> IpAddr {
        ethernet::Sockets::address(rank)
    }

    /// Opens a socket, and returns its number. This is set-up: it takes no virtual time.
    pub fn open(&self, kind: SocketKind) -> u32 {
        self.node.sockets().open(kind)
    }

    /// Binds a socket to a port.
    ///
    /// # Errors
    /// [`Error::System`], for the errors of [`ethernet::Sockets::bind`].
    pub async fn bind(&self, socket: u32, port: u16) -> Result<(), Error> {
        let (sockets, thread) = (self.node.sockets(), self.host.thread);
        let bind = async |path: &mut _| sockets.bind(thread, socket, port, path).await;
        socket_error(|| format!("bind to port {port}"), self.host.timed("bind", bind).await)
    }

    /// Changes an option of a socket.
    ///
    /// # Errors
    /// [`Error::System`], for the errors of [`ethernet::Sockets::set`].
    pub async fn set(&self, socket: u32, setting: Setting) -> Result<(), Error> {
        let (sockets, thread) = (self.node.sockets(), self.host.thread);
        let set = async |path: &mut _| sockets.set(thread, socket, setting, path).await;
        socket_error(|| "setsockopt".to_owned(), self.host.timed("setsockopt", set).await)
    }

    /// Connects a socket. Returns when the connection is established.
    ///
    /// # Errors
    /// [`Error::System`], for the errors of [`ethernet::Sockets::connect`].
    pub async fn connect(&self, socket: u32, to: SocketAddr) -> Result<(), Error> {
        let (sockets, thread) = (self.node.sockets(), self.host.thread);
        let connect = async |path: &mut _| sockets.connect(thread, socket, to, path).await;
        socket_error(|| format!("connect to {to}"), self.host.timed("connect", connect).await)
    }

    /// Makes a socket with a port listen for connections. Up to `backlog` connections may wait to be accepted.
    ///
    /// # Errors
    /// [`Error::System`], for the errors of [`ethernet::Sockets::listen`].
    pub async fn listen(&self, socket: u32, backlog: u32) -> Result<(), Error> {
        let (sockets, thread) = (self.node.sockets(), self.host.thread);
        let listen = async |path: &mut _| sockets.listen(thread, socket, backlog, path).await;
        socket_error(|| "listen".to_owned(), self.host.timed("listen", listen).await)
    }

    /// Waits for a connection, and returns the number of its socket.
    ///
    /// # Errors
    /// [`Error::System`], for the errors of [`ethernet::Sockets::accept`].
    pub async fn accept(&self, socket: u32) -> Result<u32, Error> {
        let (sockets, thread) = (self.node.sockets(), self.host.thread);
        let accept = async |path: &mut _| sockets.accept(thread, socket, path).await;
        socket_error(|| "accept".to_owned(), self.host.timed("accept", accept).await)
    }

    /// Writes bytes to a connection. Returns when the last byte is in the socket's buffer.
    ///
    /// # Errors
    /// [`Error::System`], for the errors of [`ethernet::Sockets::send`].
    pub async fn send(&self, socket: u32, bytes: &[u8]) -> Result<(), Error> {
        let (sockets, thread) = (self.node.sockets(), self.host.thread);
        let send = async |path: &mut _| sockets.send(thread, socket, bytes, path).await;
        socket_error(|| "send".to_owned(), self.host.timed("socket send", send).await)
    }

    /// Waits until a connection has bytes, and returns at most `most` of them. At end-of-file, the result is empty.
    ///
    /// # Errors
    /// [`Error::System`], for the errors of [`ethernet::Sockets::recv`].
    pub async fn recv(&self, socket: u32, most: u64) -> Result<Vec<u8>, Error> {
        let (sockets, thread) = (self.node.sockets(), self.host.thread);
        let recv = async |path: &mut _| sockets.recv(thread, socket, most, path).await;
        socket_error(|| "recv".to_owned(), self.host.timed("socket recv", recv).await)
    }

    /// Sends a datagram.
    ///
    /// # Errors
    /// [`Error::System`], for the errors of [`ethernet::Sockets::send_to`].
    pub async fn send_to(&self, socket: u32, bytes: &[u8], to: SocketAddr) -> Result<(), Error> {
        let (sockets, thread) = (self.node.sockets(), self.host.thread);
        let send = async |path: &mut _| sockets.send_to(thread, socket, bytes, to, path).await;
        socket_error(|| format!("sendto {to}"), self.host.timed("sendto", send).await)
    }

    /// Waits for a datagram. Returns its bytes, truncated to `most`, and its sender.
    ///
    /// # Errors
    /// [`Error::System`], for the errors of [`ethernet::Sockets::recv_from`].
    pub async fn recv_from(&self, socket: u32, most: u64) -> Result<(Vec<u8>, SocketAddr), Error> {
        let (sockets, thread) = (self.node.sockets(), self.host.thread);
        let recv = async |path: &mut _| sockets.recv_from(thread, socket, most, path).await;
        socket_error(|| "recvfrom".to_owned(), self.host.timed("recvfrom", recv).await)
    }

    /// Shuts down the send direction of a connection.
    ///
    /// # Errors
    /// [`Error::System`], for the errors of [`ethernet::Sockets::shutdown`].
    pub async fn shutdown(&self, socket: u32) -> Result<(), Error> {
        let (sockets, thread) = (self.node.sockets(), self.host.thread);
        let shutdown = async |path: &mut _| sockets.shutdown(thread, socket, path).await;
        socket_error(|| "shutdown".to_owned(), self.host.timed("shutdown", shutdown).await)
    }

    /// Closes a socket.
    ///
    /// # Errors
    /// [`Error::System`], for the errors of [`ethernet::Sockets::close`].
    pub async fn close(&self, socket: u32) -> Result<(), Error> {
        let (sockets, thread) = (self.node.sockets(), self.host.thread);
        let close = async |path: &mut _| sockets.close(thread, socket, path).await;
        socket_error(|| "close".to_owned(), self.host.timed("close", close).await)
    }

    /// Returns the address and port of a socket, and the address and port of its peer.
    ///
    /// # Errors
    /// [`Error::System`], for the errors of [`ethernet::Sockets::ends`].
    pub fn ends(&self, socket: u32) -> Result<(Option<SocketAddr>, Option<SocketAddr>), Error> {
        socket_error(|| "getsockname".to_owned(), self.node.sockets().ends(socket))
    }

    /// Executes `instructions` instructions of the program itself, on the hardware thread that makes the program's
    /// calls.
    pub async fn work(&self, instructions: u64) {
        let (sockets, thread) = (self.node.sockets(), self.host.thread);
        self.host.timed("work", async |path: &mut _| sockets.work(thread, instructions, path).await).await;
    }

    /// Returns the counters of the host's card, protocols and threads so far.
    pub fn report(&self) -> Report {
        self.node.report()
    }
}

fn socket_error<T>(what: impl FnOnce() -> String, result: Result<T, SocketError>) -> Result<T, Error> {
    result.map_err(|error| Error::System { name: error.name(), text: format!("{}: {error}", what()) })
}
