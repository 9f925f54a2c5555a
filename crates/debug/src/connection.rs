//! The socket: a listener on the loopback interface, and the connection of one debugger.

use crate::packets::{Input, Packets};
use gdbstub::conn::Connection;
use std::collections::VecDeque;
use std::fmt;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::time::Duration;

/// The real time between two looks at the interrupt, while a debugger is waited for.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Bytes that are read at once.
const CHUNK: usize = 4096;

/// A port that cannot be listened to.
#[derive(Debug)]
pub struct ListenError {
    port: u16,
    error: io::Error,
}

impl fmt::Display for ListenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ListenError { port, error } = self;
        match error.kind() {
            ErrorKind::AddrInUse => {
                write!(f, "port {port} is in use; choose another with --port, or a free one with --port 0")
            }
            ErrorKind::PermissionDenied => {
                write!(f, "port {port} needs privileges; choose one above 1023, or a free one with --port 0")
            }
            _ => write!(f, "cannot listen to port {port} ({error}); choose another with --port"),
        }
    }
}

/// A listener on the loopback interface, for one debugger.
#[derive(Debug)]
pub struct Listener {
    socket: TcpListener,
    port: u16,
}

impl Listener {
    /// Listens to a port of 127.0.0.1; 0 for any free one.
    ///
    /// # Errors
    /// When the port is in use.
    pub fn open(port: u16) -> Result<Listener, ListenError> {
        let refused = |error| ListenError { port, error };
        let socket = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).map_err(refused)?;
        socket.set_nonblocking(true).map_err(refused)?;
        let port = socket.local_addr().map_err(refused)?.port();
        Ok(Listener { socket, port })
    }

    /// The port.
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// Waits for a debugger. None if `interrupted` says so first.
    ///
    /// # Errors
    /// Those of the socket.
    pub fn accept(self, interrupted: &dyn Fn() -> bool) -> io::Result<Option<Wire>> {
        loop {
            match self.socket.accept() {
                Ok((stream, _)) => return Wire::new(stream).map(Some),
                Err(error) if error.kind() == ErrorKind::WouldBlock && interrupted() => return Ok(None),
                Err(error) if error.kind() == ErrorKind::WouldBlock => std::thread::sleep(LOOK_EVERY),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

/// The answer to a command with invalid arguments.
const REFUSAL: &[u8] = b"$E01#a6";

/// The command after which neither side acknowledges packets.
const NO_ACKNOWLEDGEMENTS: &[u8] = b"$QStartNoAckMode#";

/// The connection to a debugger. It answers damaged and invalid packets, and passes the others on.
#[derive(Debug)]
pub struct Wire {
    stream: TcpStream,
    /// Bytes received, and the number of those taken.
    received: (Vec<u8>, usize),
    packets: Packets,
    /// Bytes of whole packets.
    whole: VecDeque<u8>,
    /// Whether packets are acknowledged.
    acknowledges: bool,
    /// Bytes to be sent.
    unsent: Vec<u8>,
    /// The last packet sent.
    last: Vec<u8>,
}

/// Whether a packet has a valid command.
pub(crate) type IsValid = dyn Fn(&[u8]) -> bool;

impl Wire {
    fn new(stream: TcpStream) -> io::Result<Wire> {
        stream.set_nonblocking(false)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(LOOK_EVERY))?;
        Ok(Wire {
            stream,
            received: (Vec::new(), 0),
            packets: Packets::default(),
            whole: VecDeque::new(),
            acknowledges: true,
            unsent: Vec::new(),
            last: Vec::new(),
        })
    }

    /// Waits for a byte of a whole packet. None if `interrupted` says so first.
    pub(crate) fn read(
        &mut self,
        interrupted: &dyn Fn() -> bool,
        is_valid: &IsValid,
    ) -> io::Result<Option<u8>> {
        loop {
            if let Some(byte) = self.take(is_valid)? {
                return Ok(Some(byte));
            }
            match self.fill() {
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                    if interrupted() {
                        return Ok(None);
                    }
                }
                other => other?,
            }
        }
    }

    /// Returns a byte of a whole packet that has already arrived, if there is one.
    pub(crate) fn poll(&mut self, is_valid: &IsValid) -> io::Result<Option<u8>> {
        if self.whole.is_empty() && self.received.1 == self.received.0.len() {
            self.stream.set_nonblocking(true)?;
            let filled = self.fill();
            self.stream.set_nonblocking(false)?;
            match filled {
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(None),
                other => other?,
            }
        }
        self.take(is_valid)
    }

    /// Returns the next byte of the whole packets among the received bytes.
    fn take(&mut self, is_valid: &IsValid) -> io::Result<Option<u8>> {
        while self.whole.is_empty() {
            let Some(&byte) = self.received.0.get(self.received.1) else { return Ok(None) };
            self.received.1 += 1;
            if let Some(input) = self.packets.take(byte) {
                self.sort(input, is_valid)?;
            }
        }
        Ok(self.whole.pop_front())
    }

    /// Passes a valid packet on, and answers anything else.
    fn sort(&mut self, input: Input, is_valid: &IsValid) -> io::Result<()> {
        match input {
            Input::Interrupt => self.whole.push_back(3),
            Input::Packet(packet) if is_valid(&packet) => {
                self.acknowledges &= !packet.starts_with(NO_ACKNOWLEDGEMENTS);
                self.whole.extend(packet);
            }
            Input::Packet(_) | Input::TooLong => return self.refuse(),
            // Without acknowledgements, a packet is not sent again.
            Input::Damaged if !self.acknowledges => return self.refuse(),
            Input::Damaged => return Write::write_all(&mut self.stream, b"-"),
            Input::Again => return Write::write_all(&mut self.stream, &self.last),
        }
        Ok(())
    }

    /// Answers a packet with an error.
    fn refuse(&mut self) -> io::Result<()> {
        self.last = REFUSAL.to_vec();
        let acknowledgement: &[u8] = if self.acknowledges { b"+" } else { b"" };
        Write::write_all(&mut self.stream, &[acknowledgement, REFUSAL].concat())
    }

    /// Receives bytes, once all earlier ones are taken.
    fn fill(&mut self) -> io::Result<()> {
        let mut chunk = [0; CHUNK];
        match self.stream.read(&mut chunk) {
            Ok(0) => Err(ErrorKind::UnexpectedEof.into()),
            Ok(len) => {
                self.received = (chunk[..len].to_vec(), 0);
                Ok(())
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => Ok(()),
            Err(error) => Err(error),
        }
    }
}

impl Connection for Wire {
    type Error = io::Error;

    fn write(&mut self, byte: u8) -> io::Result<()> {
        self.unsent.push(byte);
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        let sent = Write::write_all(&mut self.stream, &self.unsent);
        if let Some(begin) = self.unsent.iter().position(|byte| *byte == b'$') {
            self.last = self.unsent.split_off(begin);
        }
        self.unsent.clear();
        sent
    }
}
