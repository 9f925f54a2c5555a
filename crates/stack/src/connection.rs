//! A TCP connection in the stack: its state machine, its ends, and its owner.

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
    /// The next hop on the link for packets to the peer.
    pub hop: IpAddr,
    pub tcb: Tcb,
    /// The state at the last call of `Stack::settle`.
    pub last: State,
    /// Whether a program holds the connection, and the error that the program's calls return.
    pub held: bool,
    pub error: Option<Error>,
    pub listener: Option<ListenerId>,
    /// Whether the connection is in the listener's SYN queue.
    pub is_begun: bool,
    /// The version of the neighbour table at the last lookup, and the neighbour's link address.
    pub mac: Option<(u64, [u8; 6])>,
    /// Whether the connection is in the queue of ready sources, and whether it waits for its neighbour's link address.
    pub ready: bool,
    pub resolving: bool,
    /// The earliest entry of this connection among the timers.
    pub armed: Option<Time>,
    /// The time at which a closed connection stops waiting for its peer's FIN.
    pub fin_at: Option<Time>,
    /// Bytes of the connection's buffers.
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

    /// Returns the time of the connection's next timer event.
    pub fn due(&self) -> Option<Time> {
        self.tcb.deadline().into_iter().chain(self.fin_at).min()
    }

    /// Whether the connection's only timer is that of [probes without success](Tcb::only_probes).
    pub fn only_probes(&self) -> bool {
        self.fin_at.is_none() && self.tcb.only_probes()
    }

    /// Whether no program holds the connection, and no listener will hand it to a program.
    pub fn is_orphan(&self) -> bool {
        !self.held && self.listener.is_none()
    }

    /// Whether a segment is a SYN that begins a new connection while this connection is in TIME-WAIT. The segment's
    /// sequence number must be higher than all numbers that the peer used in this connection (RFC 9293, 3.10.7.4).
    pub fn is_renewed_by(&self, tcp: &TcpHeader) -> bool {
        let begins = tcp.flags & (SYN | ACK | RST | FIN) == SYN;
        begins && self.tcb.state() == State::TimeWait && self.tcb.is_beyond(tcp.seq)
    }
}
