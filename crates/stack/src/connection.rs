//! One TCP connection as the stack keeps it: its state machine, its ends, and who has it.

use crate::error::Error;
use crate::frame::{ACK, FIN, RST, SYN, TcpHeader};
use crate::stack::ListenerId;
use crate::tcp::{State, Tcb};
use nicety_types::Time;
use std::net::{IpAddr, SocketAddr};

#[derive(Debug)]
pub(crate) struct Connection {
    pub local: SocketAddr,
    pub remote: SocketAddr,
    /// Where packets to the peer go on the link.
    pub hop: IpAddr,
    pub tcb: Tcb,
    /// Its state when it was looked at last.
    pub last: State,
    /// Whether a program has this, and what it is told when it calls.
    pub held: bool,
    pub error: Option<Error>,
    pub listener: Option<ListenerId>,
    /// Is counted among those of its listener whose handshake has begun.
    pub is_begun: bool,
    /// The neighbour's address, and the version of the table that it was taken from.
    pub mac: Option<(u64, [u8; 6])>,
    /// Is in the queue of sources that have something to send; waits for its neighbour's address.
    pub ready: bool,
    pub resolving: bool,
    /// The earliest entry of this connection among the timers.
    pub armed: Option<Time>,
    /// When a closed connection waits no longer for its peer's end.
    pub fin_at: Option<Time>,
    /// Bytes of its buffers.
    pub buffers: usize,
}

impl Connection {
    pub fn new(local: SocketAddr, remote: SocketAddr, hop: IpAddr, tcb: Tcb, buffers: usize) -> Connection {
        Connection {
            local,
            remote,
            hop,
            last: tcb.state(),
            tcb,
            held: false,
            error: None,
            listener: None,
            is_begun: false,
            mac: None,
            ready: false,
            resolving: false,
            armed: None,
            fin_at: None,
            buffers,
        }
    }

    /// When time does something to it.
    pub fn due(&self) -> Option<Time> {
        self.tcb.deadline().into_iter().chain(self.fin_at).min()
    }

    /// Whether no program has it, or will have.
    pub fn is_orphan(&self) -> bool {
        !self.held && self.listener.is_none()
    }

    /// Whether a SYN begins a new connection where this one waits for late segments: one that is beyond all that this
    /// one has used (RFC 9293, 3.10.7.4).
    pub fn is_renewed_by(&self, tcp: &TcpHeader) -> bool {
        let begins = tcp.flags & (SYN | ACK | RST | FIN) == SYN;
        begins && self.tcb.state() == State::TimeWait && self.tcb.is_beyond(tcp.seq)
    }
}
