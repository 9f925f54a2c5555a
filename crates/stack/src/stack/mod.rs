//! A host's stack: its tables, and what happens after anything has happened to a connection.

mod calls;
mod datagrams;
mod names;
mod receive;
mod timers;
mod transmit;

pub use names::{
    Arrival, ChecksumStatus, ConnectionId, Counters, DatagramId, Drop, Event, ListenerId, Outgoing, Source,
};

use crate::connection::{Connection, Setup, has_finished};
use crate::engine::{Engine, Wish};
use crate::error::{Error, SpecError};
use crate::link::Link;
use crate::neighbour::{Lookup, Neighbours, ask};
use crate::spec::{Network, Options, StackSpec, check_buffer, unicast};
use crate::table::Table;
use datagrams::DatagramSocket;
use nicety_types::Time;
use smoltcp::socket::tcp::State;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap, VecDeque};
use std::net::{IpAddr, SocketAddr};

/// Frames that the stack has of its own, answers to what came: beyond, they are dropped.
const MOST_CONTROL: usize = 256;
/// The first ephemeral port (RFC 6335).
const EPHEMERAL: u16 = 49152;

/// A port on which connections are waited for.
pub(crate) struct Listener {
    port: u16,
    backlog: usize,
    options: Options,
    /// Connections whose handshake has begun.
    begun: usize,
    /// Connections to accept.
    queue: VecDeque<ConnectionId>,
}

/// The protocols of one host. See the crate's documentation.
pub struct Stack {
    spec: StackSpec,
    link: Link,
    engine: Engine,
    neighbours: Neighbours,
    connections: Table<Connection>,
    /// By the own port and the peer.
    flows: HashMap<(u16, SocketAddr), ConnectionId>,
    listeners: Table<Listener>,
    ports: BTreeMap<u16, ListenerId>,
    datagrams: Table<DatagramSocket>,
    datagram_ports: BTreeMap<u16, DatagramId>,
    control: VecDeque<Vec<u8>>,
    ready: VecDeque<Source>,
    events: VecDeque<Event>,
    timers: BinaryHeap<Reverse<(Time, ConnectionId)>>,
    counters: Counters,
    /// Bytes of all connections' buffers.
    memory: usize,
    next_port: u16,
    /// Whether [`Source::Host`] is in the queue of those that are ready.
    control_ready: bool,
    scratch: Vec<u8>,
}

impl Stack {
    /// A stack without connections.
    ///
    /// # Errors
    /// [`SpecError`], for a spec with which there can be none: an MTU below what the protocols need, say.
    pub fn new(spec: StackSpec) -> Result<Stack, SpecError> {
        spec.check()?;
        let link = Link { mac: spec.mac, vlan: spec.vlan };
        // The ports' order is drawn from another stream than the sequence numbers, which smoltcp draws.
        let drawn = spec.seed.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 50;
        Ok(Stack {
            link,
            engine: Engine::new(&spec, link.room()),
            neighbours: Neighbours::default(),
            connections: Table::new(spec.connections),
            flows: HashMap::new(),
            listeners: Table::new(1 << 16),
            ports: BTreeMap::new(),
            datagrams: Table::new(1 << 16),
            datagram_ports: BTreeMap::new(),
            control: VecDeque::new(),
            ready: VecDeque::new(),
            events: VecDeque::new(),
            timers: BinaryHeap::new(),
            counters: Counters::default(),
            memory: 0,
            next_port: EPHEMERAL + (drawn as u16),
            control_ready: false,
            scratch: Vec::new(),
            spec,
        })
    }

    /// What the stack was made of.
    pub fn spec(&self) -> &StackSpec {
        &self.spec
    }

    /// What was counted so far.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Connections that there are, those being closed included.
    pub fn connections(&self) -> usize {
        self.connections.len()
    }

    /// The next change of a socket, in the order in which they came.
    pub fn next_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// The next source of frames that was found to have one. It is not named again before [`Stack::transmit`] has
    /// answered that it has no more.
    pub fn next_ready(&mut self) -> Option<Source> {
        self.ready.pop_front()
    }

    /// Says where a neighbour is, so that nobody need ask.
    pub fn add_neighbour(&mut self, address: IpAddr, mac: [u8; 6]) {
        let waiting = self.neighbours.learn(address, mac, true);
        self.resolved(waiting);
    }

    /// The own address in the family of another.
    fn own(&self, family: IpAddr) -> Option<IpAddr> {
        match family {
            IpAddr::V4(_) => self.spec.ipv4.map(|n| n.address.into()),
            IpAddr::V6(_) => self.spec.ipv6.map(|n| n.address.into()),
        }
    }

    /// The neighbour that packets for an address go to.
    fn next_hop(&self, to: IpAddr) -> Result<IpAddr, Error> {
        if !unicast(to) {
            return Err(Error::Invalid);
        }
        // A host's packets to itself do not come to its card.
        if self.own(to) == Some(to) {
            return Err(Error::NetworkUnreachable);
        }
        let hop = match to {
            IpAddr::V4(to) => self.spec.ipv4.and_then(|Network { address, prefix, gateway }| {
                let differ = u32::from(address) ^ u32::from(to);
                let near = differ.leading_zeros() >= u32::from(prefix);
                if near { Some(to) } else { gateway }.map(IpAddr::from)
            }),
            IpAddr::V6(to) => self.spec.ipv6.and_then(|Network { address, prefix, gateway }| {
                let differ = u128::from(address) ^ u128::from(to);
                let near = differ.leading_zeros() >= u32::from(prefix);
                if near { Some(to) } else { gateway }.map(IpAddr::from)
            }),
        };
        hop.ok_or(Error::NetworkUnreachable)
    }

    /// The address of a neighbour on the link; a source that has to wait is named again when it is known.
    fn resolve(&mut self, now: Time, hop: IpAddr, source: Source) -> Option<[u8; 6]> {
        match self.neighbours.look_up(now, hop, source) {
            Lookup::Known(mac) => Some(mac),
            Lookup::Waiting { ask } => {
                if ask {
                    self.ask(hop);
                }
                None
            }
        }
    }

    fn ask(&mut self, hop: IpAddr) {
        if let Some(own) = self.own(hop) {
            let mut frame = Vec::new();
            ask(self.link, own, hop, &mut frame);
            self.control(frame);
        }
    }

    /// Has a frame of the stack's own sent.
    fn control(&mut self, frame: Vec<u8>) {
        if self.control.len() == MOST_CONTROL {
            self.counters.control_dropped += 1;
            return;
        }
        self.control.push_back(frame);
        if !self.control_ready {
            self.control_ready = true;
            self.ready.push_back(Source::Host);
        }
    }

    /// Sources whose neighbour is known by now, or will not be.
    fn resolved(&mut self, waiting: Vec<Source>) {
        for source in waiting {
            match source {
                Source::Connection(id) => {
                    let Some(connection) = self.connections.get_mut(id.0) else { continue };
                    connection.resolving = false;
                    make_ready(&mut self.ready, id, connection);
                }
                Source::Datagram(id) => self.ready_datagrams(id),
                Source::Host => {}
            }
        }
    }

    fn setup(&self, options: &Options, remote: IpAddr) -> Result<Setup, Error> {
        let send = options.send_buffer.unwrap_or(self.spec.send_buffer);
        let receive = options.receive_buffer.unwrap_or(self.spec.receive_buffer);
        if check_buffer(send).is_err() || check_buffer(receive).is_err() {
            return Err(Error::Invalid);
        }
        if self.connections.is_full() || self.memory.saturating_add(send + receive) > self.spec.memory {
            return Err(Error::NoBufferSpace);
        }
        let headers = if remote.is_ipv4() { 40 } else { 60 } + if self.spec.timestamps { 12 } else { 0 };
        Ok(Setup {
            send,
            receive,
            nodelay: options.nodelay,
            ack_delay: self.spec.delayed_ack.map(|delay| self.engine.clock.duration(delay)),
            timestamps: self.spec.timestamps,
            segment: self.spec.mtu - headers,
        })
    }

    fn insert(&mut self, connection: Connection) -> Option<ConnectionId> {
        let (flow, bytes) = ((connection.local.port(), connection.remote), connection.buffers);
        let id = ConnectionId(self.connections.insert(connection)?);
        self.memory += bytes;
        self.flows.insert(flow, id);
        Some(id)
    }

    fn remove(&mut self, id: ConnectionId) {
        let Some(connection) = self.connections.remove(id.0) else { return };
        self.memory -= connection.buffers;
        if connection.is_begun
            && let Some(listener) = connection.listener
            && let Some(entry) = self.listeners.get_mut(listener.0)
        {
            entry.begun -= 1;
        }
        self.detach((connection.local.port(), connection.remote), id);
    }

    /// Lets others use the ends of a connection that is over.
    fn detach(&mut self, flow: (u16, SocketAddr), id: ConnectionId) {
        if self.flows.get(&flow) == Some(&id) {
            self.flows.remove(&flow);
        }
    }

    /// Looks what has become of a connection: tells its program, its listener, the timers and the card's side. `why` is
    /// the error if it is over.
    fn settle(&mut self, now: Time, id: ConnectionId, why: Option<Error>) {
        let Some(connection) = self.connections.get_mut(id.0) else { return };
        if connection.ends_later {
            connection.end();
        }
        let (before, state) = (connection.last, connection.view().state());
        connection.last = state;
        if before != state {
            self.changed(id, before, state, why);
        }
        let Some(connection) = self.connections.get_mut(id.0) else { return };
        if connection.is_gone() && connection.replies.is_empty() {
            let (flow, held) = ((connection.local.port(), connection.remote), connection.held);
            if held {
                self.detach(flow, id)
            } else {
                self.remove(id)
            }
            return;
        }
        let wish = self.engine.wish(now, &connection.sockets);
        let spec = &self.spec;
        connection.waiting_since =
            if connection.expects() { connection.waiting_since.or(Some(now)) } else { None };
        if state == State::Closed {
            connection.watch.probe_at = None;
        }
        let leaves = state == State::FinWait2 && !connection.held && connection.listener.is_none();
        connection.fin_at = leaves.then(|| connection.fin_at.unwrap_or(now + spec.fin_timeout));
        let stalled = connection.waiting_since.map(|since| since + spec.timeout);
        let mut due = [connection.watch.probe_at, stalled, connection.fin_at].into_iter().flatten().min();
        match wish {
            Wish::Now => make_ready(&mut self.ready, id, connection),
            Wish::At(at) => due = due.map_or(Some(at), |d| Some(d.min(at))),
            Wish::Never => {}
        }
        if !connection.replies.is_empty() {
            make_ready(&mut self.ready, id, connection);
        }
        if wish != Wish::Now && connection.is_stuck(wish != Wish::Never) {
            let at = *connection.rescue_at.get_or_insert(now + connection.watch.patience(spec.min_rto));
            due = due.map_or(Some(at), |d| Some(d.min(at)));
        } else {
            connection.rescue_at = None;
        }
        if let Some(due) = due
            && connection.armed.is_none_or(|armed| due < armed)
        {
            connection.armed = Some(due);
            self.timers.push(Reverse((due, id)));
        }
    }

    /// Tells of a connection's new state.
    fn changed(&mut self, id: ConnectionId, before: State, state: State, why: Option<Error>) {
        let Some(connection) = self.connections.get_mut(id.0) else { return };
        let handshake = |s| matches!(s, State::Listen | State::SynSent | State::SynReceived);
        if handshake(before) && !handshake(state) {
            if let Some(listener) = connection.listener
                && let Some(entry) = self.listeners.get_mut(listener.0)
            {
                if state != State::Closed {
                    connection.is_begun = false;
                    entry.begun -= 1;
                    entry.queue.push_back(id);
                    self.events.push_back(Event::Incoming(listener));
                }
            } else if state != State::Closed && connection.held {
                self.events.push_back(Event::Connected(id));
            }
        }
        connection.finished |= has_finished(state);
        if state == State::TimeWait {
            connection.keep_unread();
        }
        if has_finished(state) && !has_finished(before) && connection.held {
            self.events.push_back(Event::Finished(id));
        }
        let over = state == State::Closed || (state == State::Listen && before == State::SynReceived);
        if !over {
            return;
        }
        connection.error = why;
        if connection.held {
            self.events.push_back(why.map_or(Event::Closed(id), |error| Event::Failed(id, error)));
        } else if let Some(listener) = connection.listener
            && let Some(entry) = self.listeners.get_mut(listener.0)
        {
            entry.queue.retain(|&waiting| waiting != id);
        }
    }
}

fn make_ready(ready: &mut VecDeque<Source>, id: ConnectionId, connection: &mut Connection) {
    if !connection.ready && !connection.resolving {
        connection.ready = true;
        ready.push_back(Source::Connection(id));
    }
}
