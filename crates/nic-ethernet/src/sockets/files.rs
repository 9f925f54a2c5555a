//! The calls of programs on sockets. Each socket has a number on its host.

use super::datagram::Datagram;
use super::{Listening, Socket};
use crate::messages::PORT;
use crate::net::Net;
use crate::wire;
use nicety_host::threads::{Group, Piece, Thread};
use nicety_stack::{Error, MOST_BUFFER, Options};
use nicety_types::{Path, Stage};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;

/// The first number of a socket. Lower numbers are a program's input and outputs.
const FIRST: u32 = 3;
/// The maximum number of pending connections at a port.
const MOST_BACKLOG: u32 = 4096;

/// The kind of a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SocketKind {
    /// An ordered byte stream on a connection: TCP.
    Stream,
    /// Datagrams: UDP.
    Datagram,
}

/// An option of a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Setting {
    /// Bytes of the send buffer (`SO_SNDBUF`).
    SendBuffer(u64),
    /// Bytes of the receive buffer (`SO_RCVBUF`).
    ReceiveBuffer(u64),
    /// Small segments are sent at once (`TCP_NODELAY`).
    NoDelay(bool),
}

/// The failure of a call on a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SocketError {
    /// A failure of the protocols.
    Protocol(Error),
    /// The socket is already connected (`EISCONN`).
    IsConnected,
    /// The call is impossible on a socket of this kind (`EOPNOTSUPP`).
    NotSupported,
}

impl SocketError {
    /// Returns the error's name in `errno.h`.
    pub const fn name(self) -> &'static str {
        match self {
            SocketError::Protocol(error) => match error {
                Error::AddressInUse => "EADDRINUSE",
                Error::AddressNotAvailable => "EADDRNOTAVAIL",
                Error::ConnectionRefused => "ECONNREFUSED",
                Error::ConnectionReset => "ECONNRESET",
                Error::ConnectionAborted => "ECONNABORTED",
                Error::TimedOut => "ETIMEDOUT",
                Error::HostUnreachable => "EHOSTUNREACH",
                Error::NetworkUnreachable => "ENETUNREACH",
                Error::NotConnected => "ENOTCONN",
                Error::BadHandle => "EBADF",
                Error::BrokenPipe => "EPIPE",
                Error::MessageTooLong => "EMSGSIZE",
                Error::NoBufferSpace => "ENOBUFS",
                Error::WouldBlock => "EWOULDBLOCK",
                Error::Invalid => "EINVAL",
            },
            SocketError::IsConnected => "EISCONN",
            SocketError::NotSupported => "EOPNOTSUPP",
        }
    }
}

impl From<Error> for SocketError {
    fn from(error: Error) -> SocketError {
        SocketError::Protocol(error)
    }
}

impl fmt::Display for SocketError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SocketError::Protocol(error) => error.fmt(f),
            SocketError::IsConnected => f.write_str("socket is connected already"),
            SocketError::NotSupported => f.write_str("operation not supported by a socket of this kind"),
        }
    }
}

impl std::error::Error for SocketError {}

/// A socket by its number.
#[derive(Clone)]
enum File {
    /// A stream socket without a connection, with its port if it has one.
    Fresh(Option<u16>, Options),
    /// A stream socket that a call is connecting.
    Connecting,
    Connected(Socket),
    Listening(Listening),
    /// A datagram socket. It has no port before it is bound or sends.
    Datagram(Option<Datagram>),
}

/// The sockets of a host's programs. The threads of programs have numbers.
pub struct Sockets {
    net: Rc<Net>,
    files: RefCell<BTreeMap<u32, File>>,
    /// Ports of bound stream sockets, by socket.
    bound: RefCell<BTreeMap<u32, u16>>,
}

impl Sockets {
    pub(crate) fn new(net: &Rc<Net>) -> Sockets {
        Sockets { net: net.clone(), files: RefCell::default(), bound: RefCell::default() }
    }

    /// Returns the IPv4 address of a rank's host, even if the rank does not exist.
    pub fn address(rank: u32) -> IpAddr {
        wire::ipv4(rank).into()
    }

    /// Makes a socket. This is set-up, and takes no virtual time.
    pub fn open(&self, kind: SocketKind) -> u32 {
        self.add(match kind {
            SocketKind::Stream => File::Fresh(None, Options::default()),
            SocketKind::Datagram => File::Datagram(None),
        })
    }

    fn add(&self, file: File) -> u32 {
        let mut files = self.files.borrow_mut();
        let number = (FIRST..).find(|number| !files.contains_key(number)).expect("numbers are many");
        files.insert(number, file);
        number
    }

    fn file(&self, socket: u32) -> Result<File, SocketError> {
        self.files.borrow().get(&socket).cloned().ok_or(SocketError::Protocol(Error::BadHandle))
    }

    fn stream(&self, socket: u32) -> Result<Socket, SocketError> {
        match self.file(socket)? {
            File::Connected(stream) => Ok(stream),
            File::Fresh(..) | File::Connecting | File::Listening(_) => Err(Error::NotConnected.into()),
            File::Datagram(_) => Err(SocketError::NotSupported),
        }
    }

    /// Charges a call that consists only of the system call and the socket's work.
    async fn call(&self, thread: &Thread, path: &mut Path) {
        self.net.system_call(thread, path).await;
        self.net.socket_work(thread, path).await;
    }

    /// Binds a socket to a port, or to a free one for port 0.
    ///
    /// # Errors
    /// `EADDRINUSE`; `EADDRNOTAVAIL` if no port is free; `EINVAL` for a socket that has a port or is connected;
    /// `EBADF`.
    pub async fn bind(
        &self,
        program: u32,
        socket: u32,
        port: u16,
        path: &mut Path,
    ) -> Result<(), SocketError> {
        let call = self.net.programs.enter(program);
        self.call(call.thread(), path).await;
        let file = match self.file(socket)? {
            File::Fresh(None, options) => {
                let bound: BTreeSet<u16> = self.bound.borrow().values().copied().collect();
                let taken = |port| port == PORT || bound.contains(&port);
                let port = match port {
                    0 => self.net.stack.borrow_mut().free_port(taken)?,
                    port if taken(port) => return Err(Error::AddressInUse.into()),
                    port => port,
                };
                self.bound.borrow_mut().insert(socket, port);
                File::Fresh(Some(port), options)
            }
            File::Datagram(None) => {
                File::Datagram(Some(Datagram::bind(&self.net, (port != 0).then_some(port))?))
            }
            _ => return Err(Error::Invalid.into()),
        };
        self.files.borrow_mut().insert(socket, file);
        Ok(())
    }

    /// Changes an option. Buffers are set before a socket connects or listens. Accepted connections inherit the
    /// options.
    ///
    /// # Errors
    /// `EINVAL` for an impossible size, or later; `EOPNOTSUPP` for a datagram socket; `EBADF`.
    pub async fn set(
        &self,
        program: u32,
        socket: u32,
        setting: Setting,
        path: &mut Path,
    ) -> Result<(), SocketError> {
        let call = self.net.programs.enter(program);
        match (self.file(socket)?, setting) {
            (File::Connected(stream), Setting::NoDelay(nodelay)) => {
                Ok(stream.set_nodelay(call.thread(), nodelay, path).await?)
            }
            (File::Fresh(port, options), setting) => {
                self.call(call.thread(), path).await;
                let size = |bytes: u64| match usize::try_from(bytes) {
                    Ok(bytes @ 1..=MOST_BUFFER) => Ok(Some(bytes)),
                    _ => Err(SocketError::Protocol(Error::Invalid)),
                };
                let options = match setting {
                    Setting::SendBuffer(bytes) => Options { send_buffer: size(bytes)?, ..options },
                    Setting::ReceiveBuffer(bytes) => Options { receive_buffer: size(bytes)?, ..options },
                    Setting::NoDelay(nodelay) => Options { nodelay, ..options },
                };
                self.files.borrow_mut().insert(socket, File::Fresh(port, options));
                Ok(())
            }
            (File::Datagram(_), _) => Err(SocketError::NotSupported),
            _ => Err(Error::Invalid.into()),
        }
    }

    /// Connects to a port of a host. Returns when the connection is established.
    ///
    /// # Errors
    /// `ECONNREFUSED` without a listener, `EHOSTUNREACH` if no host answers, `ENETUNREACH` for an address outside the
    /// network and for the host's own, `ETIMEDOUT`, `EADDRINUSE`, `ENOBUFS`, `EINVAL`, `EISCONN`, `EOPNOTSUPP`,
    /// `EBADF`.
    pub async fn connect(
        &self,
        program: u32,
        socket: u32,
        to: SocketAddr,
        path: &mut Path,
    ) -> Result<(), SocketError> {
        let (port, options) = match self.file(socket)? {
            File::Fresh(port, options) => (port, options),
            File::Connected(_) | File::Connecting => return Err(SocketError::IsConnected),
            File::Listening(_) => return Err(Error::Invalid.into()),
            File::Datagram(_) => return Err(SocketError::NotSupported),
        };
        let call = self.net.programs.enter(program);
        self.files.borrow_mut().insert(socket, File::Connecting);
        let connected = Socket::connect(&self.net, call.thread(), (to, port), &options, path).await;
        let waits = matches!(self.files.borrow().get(&socket), Some(File::Connecting));
        match connected {
            // Another thread has closed the socket meanwhile.
            Ok(stream) if !waits => {
                stream.close(call.thread(), path).await?;
                Err(Error::BadHandle.into())
            }
            Ok(stream) => {
                self.files.borrow_mut().insert(socket, File::Connected(stream));
                Ok(())
            }
            Err(error) => {
                if waits {
                    self.files.borrow_mut().insert(socket, File::Fresh(port, options));
                }
                Err(error.into())
            }
        }
    }

    /// Makes a socket with a port listen, with up to `backlog` pending connections.
    ///
    /// # Errors
    /// `EADDRINUSE`, `EINVAL` without a port or for a connected socket, `EOPNOTSUPP`, `EBADF`.
    pub async fn listen(
        &self,
        program: u32,
        socket: u32,
        backlog: u32,
        path: &mut Path,
    ) -> Result<(), SocketError> {
        let call = self.net.programs.enter(program);
        self.call(call.thread(), path).await;
        match self.file(socket)? {
            File::Fresh(Some(port), options) => {
                let backlog = backlog.min(MOST_BACKLOG) as usize;
                let listening = Listening::open(&self.net, port, backlog, &options)?;
                self.files.borrow_mut().insert(socket, File::Listening(listening));
                Ok(())
            }
            File::Datagram(_) => Err(SocketError::NotSupported),
            _ => Err(Error::Invalid.into()),
        }
    }

    /// Waits for a connection. Returns the number of its socket.
    ///
    /// # Errors
    /// `EINVAL` for a socket that does not listen, `EOPNOTSUPP`, `EBADF`, also if another thread closes it.
    pub async fn accept(&self, program: u32, socket: u32, path: &mut Path) -> Result<u32, SocketError> {
        match self.file(socket)? {
            File::Listening(listening) => {
                let call = self.net.programs.enter(program);
                let accepted = listening.accept(call.thread(), path).await?;
                Ok(self.add(File::Connected(accepted)))
            }
            File::Datagram(_) => Err(SocketError::NotSupported),
            _ => Err(Error::Invalid.into()),
        }
    }

    /// Writes bytes to a connection. Returns when the socket has taken the last one.
    ///
    /// # Errors
    /// `EPIPE` after [`Sockets::shutdown`], or after a reset by the peer was reported; `ECONNRESET`, `ETIMEDOUT`,
    /// `ENOTCONN`, `EOPNOTSUPP`, `EBADF`.
    pub async fn send(
        &self,
        program: u32,
        socket: u32,
        bytes: &[u8],
        path: &mut Path,
    ) -> Result<(), SocketError> {
        let stream = self.stream(socket)?;
        let call = self.net.programs.enter(program);
        Ok(stream.write(call.thread(), &[bytes], path).await?)
    }

    /// Reads at most `most` bytes of a connection, and waits for the first byte. Returns no bytes after the peer's last
    /// byte.
    ///
    /// # Errors
    /// `ECONNRESET`, `ETIMEDOUT`, `ENOTCONN`, `EOPNOTSUPP`, `EBADF`.
    pub async fn recv(
        &self,
        program: u32,
        socket: u32,
        most: u64,
        path: &mut Path,
    ) -> Result<Vec<u8>, SocketError> {
        let stream = self.stream(socket)?;
        let call = self.net.programs.enter(program);
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        Ok(stream.read(call.thread(), most, path).await?)
    }

    /// Sends a datagram. A socket without a port gets a free one.
    ///
    /// # Errors
    /// `EMSGSIZE` for one that does not fit into a frame, `ENETUNREACH`, `EINVAL`, `EOPNOTSUPP`, `EBADF`.
    pub async fn send_to(
        &self,
        program: u32,
        socket: u32,
        bytes: &[u8],
        to: SocketAddr,
        path: &mut Path,
    ) -> Result<(), SocketError> {
        let datagram = match self.file(socket)? {
            File::Datagram(Some(datagram)) => datagram,
            File::Datagram(None) => {
                let datagram = Datagram::bind(&self.net, None)?;
                self.files.borrow_mut().insert(socket, File::Datagram(Some(datagram.clone())));
                datagram
            }
            _ => return Err(SocketError::NotSupported),
        };
        let call = self.net.programs.enter(program);
        Ok(datagram.send_to(call.thread(), bytes, to, path).await?)
    }

    /// Waits for a datagram. Returns the first `most` bytes of the datagram, and its sender.
    ///
    /// # Errors
    /// `EINVAL` for a socket without a port, `EOPNOTSUPP`, `EBADF`.
    pub async fn recv_from(
        &self,
        program: u32,
        socket: u32,
        most: u64,
        path: &mut Path,
    ) -> Result<(Vec<u8>, SocketAddr), SocketError> {
        let datagram = match self.file(socket)? {
            File::Datagram(Some(datagram)) => datagram,
            File::Datagram(None) => return Err(Error::Invalid.into()),
            _ => return Err(SocketError::NotSupported),
        };
        let call = self.net.programs.enter(program);
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        Ok(datagram.recv_from(call.thread(), most, path).await?)
    }

    /// Ends sending on a connection. The peer reads the end after the sent bytes.
    ///
    /// # Errors
    /// `ENOTCONN`, `EOPNOTSUPP`, `EBADF`.
    pub async fn shutdown(&self, program: u32, socket: u32, path: &mut Path) -> Result<(), SocketError> {
        let stream = self.stream(socket)?;
        let call = self.net.programs.enter(program);
        Ok(stream.shutdown(call.thread(), path).await?)
    }

    /// Closes a socket. Bytes sent on a connection are still delivered. A connection with unread bytes is reset.
    ///
    /// # Errors
    /// `EBADF`.
    pub async fn close(&self, program: u32, socket: u32, path: &mut Path) -> Result<(), SocketError> {
        let file = self.files.borrow_mut().remove(&socket).ok_or(Error::BadHandle)?;
        self.bound.borrow_mut().remove(&socket);
        let call = self.net.programs.enter(program);
        match file {
            File::Fresh(..) | File::Connecting | File::Datagram(None) => {
                self.call(call.thread(), path).await;
                Ok(())
            }
            File::Connected(stream) => Ok(stream.close(call.thread(), path).await?),
            File::Listening(listening) => Ok(listening.close(call.thread(), path).await?),
            File::Datagram(Some(datagram)) => Ok(datagram.close(call.thread(), path).await?),
        }
    }

    /// Closes all sockets, as an operating system does at the end of a program.
    pub(crate) async fn close_all(&self, program: u32, path: &mut Path) {
        loop {
            let first = self.files.borrow().keys().next().copied();
            let Some(socket) = first else { return };
            // `close` also removes the socket of a failed connection.
            let _ = self.close(program, socket, path).await;
        }
    }

    /// Returns the address and port of a socket, and those of its peer if it is connected. Takes no virtual time.
    ///
    /// # Errors
    /// `EBADF`.
    pub fn ends(&self, socket: u32) -> Result<(Option<SocketAddr>, Option<SocketAddr>), SocketError> {
        let own = |port| Some(SocketAddr::new(wire::ipv4(self.net.card.node.0).into(), port));
        Ok(match self.file(socket)? {
            File::Fresh(port, _) => (port.and_then(own), None),
            File::Connecting | File::Datagram(None) => (None, None),
            File::Connected(stream) => {
                let (own, peer) = stream.ends()?;
                (Some(own), Some(peer))
            }
            File::Listening(listening) => (own(listening.port()), None),
            File::Datagram(Some(datagram)) => (own(datagram.port()?), None),
        })
    }

    /// Charges the program's own work between two calls, in instructions, on the thread of its calls.
    pub async fn work(&self, program: u32, instructions: u64, path: &mut Path) {
        let call = self.net.programs.enter(program);
        let work = Piece::new(Group::Application, instructions);
        call.thread().run(work, Stage::COMPUTE, path).await;
    }
}
