//! One TCP connection: smoltcp's socket, what was seen of its segments, and what the stack keeps beside it.

use crate::engine::{Engine, stamp};
use crate::error::Error;
use crate::frame::{ACK, FIN, RST, SYN, TCP, TcpHeader, before};
use crate::stack::ListenerId;
use crate::watch::Watch;
use nicety_types::Time;
use smoltcp::iface::{SocketHandle, SocketSet};
use smoltcp::socket::tcp::{CongestionControl, Socket, SocketBuffer, State};
use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};

/// Packets that one connection has ready beside its stream, answers to segments that came: beyond, the oldest is
/// dropped, an acknowledgement that a later one repeats.
const MOST_REPLIES: usize = 64;

pub(crate) struct Connection {
    pub local: SocketAddr,
    pub remote: SocketAddr,
    /// Where packets to the peer go on the link.
    pub hop: IpAddr,
    pub sockets: SocketSet<'static>,
    handle: SocketHandle,
    pub watch: Watch,
    /// smoltcp's state when it was looked at last.
    pub last: State,
    /// Whether a program has this, and what it is told when it calls.
    pub held: bool,
    pub error: Option<Error>,
    pub listener: Option<ListenerId>,
    /// Is counted among those of its listener whose handshake has begun.
    pub is_begun: bool,
    /// Whether the peer's end of the stream was received, and the bytes before it that were not read when smoltcp
    /// began to wait for late segments: it forgets them afterwards.
    pub finished: bool,
    pub rest: VecDeque<u8>,
    /// Packets with room for the frame's header.
    pub replies: VecDeque<Vec<u8>>,
    pub mac: Option<(u64, [u8; 6])>,
    /// Is in the queue of sources that have something to send; waits for its neighbour's address.
    pub ready: bool,
    pub resolving: bool,
    /// The earliest entry of this connection among the timers.
    pub armed: Option<Time>,
    /// When the peer was heard last, or begun to be waited for; set while something is waited for.
    pub waiting_since: Option<Time>,
    pub fin_at: Option<Time>,
    /// Is to send its end, which waits for the peer to have all before it.
    pub ends_later: bool,
    /// Where smoltcp has no timer although there is something to send.
    pub rescue_at: Option<Time>,
    pub buffers: usize,
    receive_buffer: usize,
    /// The payload of a full segment.
    pub segment: usize,
}

/// What a segment has changed.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Taken {
    pub readable: usize,
    pub acknowledged: usize,
    pub answered: bool,
    /// Does not fit into the receive buffer.
    pub beyond: bool,
    pub duplicate: bool,
    pub lost_more: bool,
}

/// Sizes and choices of a connection.
pub(crate) struct Setup {
    pub send: usize,
    pub receive: usize,
    pub nodelay: bool,
    pub ack_delay: Option<smoltcp::time::Duration>,
    pub timestamps: bool,
    pub segment: usize,
}

impl Connection {
    pub fn new(local: SocketAddr, remote: SocketAddr, hop: IpAddr, setup: &Setup) -> Connection {
        let buffer = |bytes: usize| SocketBuffer::new(vec![0; bytes]);
        let mut socket = Socket::new(buffer(setup.receive), buffer(setup.send));
        socket.set_congestion_control(CongestionControl::Reno);
        socket.set_nagle_enabled(!setup.nodelay);
        socket.set_ack_delay(setup.ack_delay);
        if setup.timestamps {
            socket.set_tsval_generator(Some(stamp));
        }
        let mut sockets = SocketSet::new(Vec::with_capacity(1));
        let handle = sockets.add(socket);
        Connection {
            local,
            remote,
            hop,
            sockets,
            handle,
            watch: Watch::default(),
            last: State::Closed,
            held: false,
            error: None,
            listener: None,
            is_begun: false,
            finished: false,
            rest: VecDeque::new(),
            replies: VecDeque::new(),
            mac: None,
            ready: false,
            resolving: false,
            armed: None,
            waiting_since: None,
            fin_at: None,
            ends_later: false,
            rescue_at: None,
            buffers: setup.send + setup.receive,
            receive_buffer: setup.receive,
            segment: setup.segment,
        }
    }

    pub fn connect(&mut self, engine: &mut Engine) -> Result<(), Error> {
        let (local, remote) = (self.local, self.remote);
        self.socket().connect(engine.context(), remote, local).map_err(|_| Error::Invalid)?;
        self.last = State::SynSent;
        Ok(())
    }

    pub fn listen(&mut self) -> Result<(), Error> {
        let local = self.local;
        self.socket().listen(local).map_err(|_| Error::Invalid)?;
        self.last = State::Listen;
        Ok(())
    }

    pub fn socket(&mut self) -> &mut Socket<'static> {
        self.sockets.get_mut(self.handle)
    }

    pub fn view(&self) -> &Socket<'static> {
        self.sockets.get(self.handle)
    }

    /// Takes what was not read out of smoltcp's hands.
    pub fn keep_unread(&mut self) {
        let mut rest = vec![0; self.view().recv_queue()];
        if let Ok(read) = self.socket().recv_slice(&mut rest) {
            self.rest.extend(&rest[..read]);
        }
    }

    /// Whether smoltcp has forgotten the connection.
    pub fn is_gone(&self) -> bool {
        let socket = self.view();
        socket.remote_endpoint().is_none() && matches!(socket.state(), State::Closed | State::Listen)
    }

    pub fn reply(&mut self, packet: Vec<u8>) {
        if self.replies.len() == MOST_REPLIES {
            self.replies.pop_front();
        }
        self.replies.push_back(packet);
    }

    /// Sends the end of the stream behind what is in the buffer.
    ///
    /// Where the peer has ended too, that waits until all of it is acknowledged: after its end, smoltcp takes no update
    /// of a window that has closed, and no duplicate acknowledgements.
    pub fn end(&mut self) {
        let socket = self.view();
        self.ends_later = socket.state() == State::CloseWait && socket.send_queue() > 0;
        if !self.ends_later {
            self.socket().close();
        }
    }

    /// Whether bytes, a SYN or a FIN are on their way or wait for their turn.
    pub fn expects(&self) -> bool {
        let socket = self.view();
        let state = socket.state();
        let handshake = matches!(state, State::SynSent | State::SynReceived);
        state != State::Closed && (handshake || socket.send_queue() > 0 || self.watch.outstanding() > 0)
    }

    /// A segment of this connection, which was found to be intact.
    pub fn input(
        &mut self,
        engine: &mut Engine,
        now: Time,
        packet: &[u8],
        tcp: &TcpHeader,
        payload: usize,
        reply: &mut Vec<u8>,
    ) -> Taken {
        let socket = self.view();
        let (state, queued, readable) = (socket.state(), socket.send_queue(), socket.recv_queue());
        let mut taken = Taken::default();
        let free = self.receive_buffer - readable;
        if let Some(expected) = self.watch.expected()
            && payload > 0
        {
            let end = tcp.seq.wrapping_add(payload as u32).wrapping_sub(expected) as i32;
            taken.duplicate = end <= 0;
            taken.beyond = end > 0 && end as usize > free;
            // Before it has sent its window with the scale, smoltcp takes the window of its SYN to be scaled, and
            // would take more than its buffer has.
            if taken.beyond && !self.watch.is_window_known() {
                return taken;
            }
        }
        // smoltcp acts on a FIN even where it has cut off the bytes before it, as beyond its window.
        let mut cut = Vec::new();
        let ends = tcp.flags & FIN != 0 && payload > 0;
        if ends {
            cut.extend_from_slice(packet);
            cut[packet.len() - payload - tcp.length + 13] &= !FIN;
        }
        taken.answered = engine.input(now, if ends { &cut } else { packet }, &mut self.sockets, reply);
        taken.readable = self.view().recv_queue().saturating_sub(readable);
        let end = tcp.seq.wrapping_add(payload as u32);
        if ends
            && self.watch.expected().map(|expected| expected.wrapping_add(taken.readable as u32)) == Some(end)
        {
            let fields = Fields { seq: end, ack: tcp.ack, flags: FIN | ACK, window: tcp.window };
            cut.clear();
            write_segment(&mut cut, self.remote, self.local, &fields);
            let mut more = Vec::new();
            if engine.input(now, &cut, &mut self.sockets, &mut more) {
                self.reply(more);
            }
        }
        self.take_acknowledgement(engine, now, tcp, (state, queued), taken.readable);
        let socket = self.view();
        let after = socket.state();
        taken.acknowledged = queued.saturating_sub(socket.send_queue());
        let embryo = |s| matches!(s, State::Closed | State::Listen | State::SynSent | State::SynReceived);
        let fin_acked = match (state, after) {
            (State::FinWait1, State::FinWait2 | State::TimeWait) | (State::Closing, State::TimeWait) => true,
            (State::LastAck, State::Closed) => tcp.flags & RST == 0,
            _ => false,
        };
        let fin = has_finished(after) && !has_finished(state);
        if taken.readable > 0 || taken.acknowledged > 0 || after != state {
            taken.beyond = false;
        }
        let is_first = tcp.flags & SYN != 0 && state != after;
        if is_first || !embryo(after) || after == State::Closed {
            self.watch.saw(tcp, payload);
        }
        self.watch.took(taken.readable, fin);
        taken.lost_more = self.watch.acknowledged(now, taken.acknowledged, !embryo(after), fin_acked);
        taken
    }

    /// Gives smoltcp the acknowledgement of a segment that it has refused for its sequence number. After a timeout it
    /// numbers its own acknowledgements from where it sends again, below what the peer has: two ends that both send
    /// again would refuse each other's for ever.
    fn take_acknowledgement(
        &mut self,
        engine: &mut Engine,
        now: Time,
        tcp: &TcpHeader,
        before_it: (State, usize),
        readable: usize,
    ) {
        let (socket, una) = (self.view(), self.watch.unacknowledged());
        let refused = (socket.state(), socket.send_queue()) == before_it;
        let new = before(una, tcp.ack) && !before(una.wrapping_add(self.watch.outstanding()), tcp.ack);
        let synchronized =
            !matches!(before_it.0, State::Closed | State::Listen | State::SynSent | State::SynReceived);
        if refused
            && new
            && synchronized
            && tcp.flags & (SYN | RST | ACK) == ACK
            && let Some(expected) = self.watch.expected()
        {
            let seq = expected.wrapping_add(readable as u32);
            let fields = Fields { seq, ack: tcp.ack, flags: ACK, window: tcp.window };
            let (mut packet, mut answer) = (Vec::with_capacity(60), Vec::new());
            write_segment(&mut packet, self.remote, self.local, &fields);
            engine.input(now, &packet, &mut self.sockets, &mut answer);
        }
    }

    /// Has the first segment that is not acknowledged sent again. Whether something was done about it.
    ///
    /// smoltcp is given what its peer might have sent: acknowledgements with another window and with the true one, which
    /// have it forget earlier duplicates, and three duplicates.
    pub fn nudge(&mut self, engine: &mut Engine, now: Time) {
        let (Some(seq), Some(window)) = (self.watch.expected(), self.watch.peer_window) else { return };
        let ack = self.watch.unacknowledged();
        // With nothing on its way, one acknowledgement of a closed window has smoltcp begin to probe.
        let all = [window ^ 1, window, window, window, window];
        let windows = if self.watch.outstanding() == 0 { &all[1..2] } else { &all[..] };
        let (mut packet, mut answer) = (Vec::with_capacity(60), Vec::new());
        for &window in windows {
            packet.clear();
            write_segment(&mut packet, self.remote, self.local, &Fields { seq, ack, flags: ACK, window });
            engine.input(now, &packet, &mut self.sockets, &mut answer);
        }
        self.watch.nudged();
    }

    /// Whether something is lost that smoltcp will not send again: it has no timer, or one to probe a closed window with
    /// a byte behind all that it has sent.
    pub fn is_stuck(&self, has_timer: bool) -> bool {
        let closed = self.watch.peer_window == Some(0) && self.watch.outstanding() > 0;
        self.expects() && (!has_timer || closed)
    }

    /// Whether a FIN is all that the peer has not acknowledged; smoltcp does not send that again before its timeout, and
    /// after three duplicate acknowledgements not at all.
    pub fn lacks_fin_only(&self) -> bool {
        let closing = matches!(self.view().state(), State::FinWait1 | State::Closing | State::LastAck);
        closing && self.view().send_queue() == 0 && self.watch.outstanding() == 1
    }

    /// The packet with the FIN, with room for a frame's header and without checksums.
    pub fn fin_again(&mut self, room: usize) -> Option<Vec<u8>> {
        let (ack, window) = (self.watch.expected()?, self.watch.own_window?);
        let seq = self.watch.unacknowledged();
        let mut packet = Vec::with_capacity(room + 60);
        packet.resize(room, 0);
        let fields = Fields { seq, ack, flags: FIN | ACK, window };
        write_segment(&mut packet, self.local, self.remote, &fields);
        Some(packet)
    }
}

/// Whether the peer's end of the stream was received.
pub(crate) fn has_finished(state: State) -> bool {
    matches!(state, State::CloseWait | State::LastAck | State::Closing | State::TimeWait)
}

struct Fields {
    seq: u32,
    ack: u32,
    flags: u8,
    window: u16,
}

/// Appends an IP packet with a segment without payload, options and checksums.
fn write_segment(out: &mut Vec<u8>, from: SocketAddr, to: SocketAddr, fields: &Fields) {
    match (from.ip(), to.ip()) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            out.extend_from_slice(&[0x45, 0, 0, 40, 0, 0, 0x40, 0, 64, TCP, 0, 0]);
            out.extend_from_slice(&source.octets());
            out.extend_from_slice(&destination.octets());
        }
        (IpAddr::V6(source), IpAddr::V6(destination)) => {
            out.extend_from_slice(&[0x60, 0, 0, 0, 0, 20, TCP, 64]);
            out.extend_from_slice(&source.octets());
            out.extend_from_slice(&destination.octets());
        }
        _ => unreachable!("a connection is between addresses of one family"),
    }
    out.extend_from_slice(&from.port().to_be_bytes());
    out.extend_from_slice(&to.port().to_be_bytes());
    out.extend_from_slice(&fields.seq.to_be_bytes());
    out.extend_from_slice(&fields.ack.to_be_bytes());
    out.extend_from_slice(&[0x50, fields.flags]);
    out.extend_from_slice(&fields.window.to_be_bytes());
    out.extend_from_slice(&[0; 4]);
}

/// Whether a SYN begins a new connection where an old one between the same ends waits for late segments. Any but the old
/// one's own does: initial sequence numbers are random, and do not grow from one connection to the next.
pub(crate) fn renews(connection: &Connection, tcp: &TcpHeader) -> bool {
    let first = tcp.flags & (SYN | ACK | RST | FIN) == SYN;
    first && connection.last == State::TimeWait && connection.watch.first_received != Some(tcp.seq)
}
