//! A host's stack: its tables of sockets, and the processing after each change of a connection.

mod answers;
mod calls;
mod datagrams;
mod names;
mod receive;
mod timers;
mod transmit;

pub use names::{
    Arrival, ChecksumStatus, ConnectionId, Counters, DatagramId, Drop, Event, ListenerId, Outgoing, Source,
};

use crate::connection::Connection;
use crate::discovery::question;
use crate::error::{Error, SpecError};
use crate::header::ip_header;
use crate::link::Link;
use crate::neighbour::{Lookup, Neighbours};
use crate::spec::{Network, Options, StackSpec, check_buffer, unicast};
use crate::table::Table;
use crate::tcp::{Setup, State};
use datagrams::DatagramSocket;
use nicety_types::Time;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap, VecDeque};
use std::net::{IpAddr, SocketAddr};

/// Maximum number of queued frames that no socket sends, such as replies. Further such frames are dropped.
const MOST_CONTROL: usize = 256;
/// Maximum bytes of options in a TCP header.
const MOST_OPTIONS: usize = 40;
/// The first ephemeral port (RFC 6335).
const EPHEMERAL: u16 = 49152;

/// A listener: a port, and its queues of connections.
pub(crate) struct Listener {
    port: u16,
    backlog: usize,
    options: Options,
    /// Number of connections in the SYN queue.
    begun: usize,
    /// Established connections that the program has not accepted.
    queue: VecDeque<ConnectionId>,
}

/// The protocols of one host. See the crate's documentation.
pub struct Stack {
    spec: StackSpec,
    link: Link,
    neighbours: Neighbours,
    connections: Table<Connection>,
    /// Maps a local port and the peer's address and port to the connection.
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
    /// Size of the buffers of all connections together, in bytes.
    memory: usize,
    next_port: u16,
    /// Number of SYNs answered.
    answered: u64,
    /// Whether [`Source::Host`] is in the queue of ready sources.
    control_ready: bool,
    /// Connections in TIME-WAIT that no program holds, oldest first.
    late: VecDeque<ConnectionId>,
}

impl Stack {
    /// Returns a stack without connections.
    ///
    /// # Errors
    /// [`SpecError`] for an invalid spec, such as an MTU below the minimum of the protocols.
    pub fn new(spec: StackSpec) -> Result<Stack, SpecError> {
        spec.check()?;
        let link = Link { mac: spec.mac, vlan: spec.vlan };
        let drawn = mixed(spec.seed) >> 50;
        Ok(Stack {
            link,
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
            answered: 0,
            control_ready: false,
            late: VecDeque::new(),
            spec,
        })
    }

    /// The spec of the stack.
    pub fn spec(&self) -> &StackSpec {
        &self.spec
    }

    /// The counters so far.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Number of connections, including those that are closing.
    pub fn connections(&self) -> usize {
        self.connections.len()
    }

    /// Removes and returns the oldest change of a socket.
    pub fn next_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Removes and returns the next source that has frames to send. The stack returns the source again only after
    /// [`Stack::transmit`] has returned `None` for it.
    pub fn next_ready(&mut self) -> Option<Source> {
        self.ready.pop_front()
    }

    /// Adds a neighbour's link address, so that the stack need not request it.
    pub fn add_neighbour(&mut self, address: IpAddr, mac: [u8; 6]) {
        let waiting = self.neighbours.learn(address, mac, true);
        self.resolved(waiting);
    }

    /// The host's own address in the family of the given address.
    fn own(&self, family: IpAddr) -> Option<IpAddr> {
        match family {
            IpAddr::V4(_) => self.spec.ipv4.map(|n| n.address.into()),
            IpAddr::V6(_) => self.spec.ipv6.map(|n| n.address.into()),
        }
    }

    /// The next hop for packets to an address.
    fn next_hop(&self, to: IpAddr) -> Result<IpAddr, Error> {
        if !unicast(to) {
            return Err(Error::Invalid);
        }
        // A packet from a host to itself does not pass the card.
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

    /// Returns the link address of a neighbour. If the address is unknown, returns `None`; the source waits, and becomes
    /// ready again when the address is known.
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
            self.control(question(self.link, own, hop));
        }
    }

    /// Queues a frame that no socket sends. Drops it if the queue is full.
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

    /// Makes the sources ready that waited for a neighbour's address.
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

    /// Returns the parameters of a new connection, if there is room. If the table of connections is full, removes the
    /// oldest connection in TIME-WAIT that no program holds.
    fn setup(&mut self, options: &Options, remote: IpAddr) -> Result<Setup, Error> {
        let spec = &self.spec;
        let send = options.send_buffer.unwrap_or(spec.send_buffer);
        let receive = options.receive_buffer.unwrap_or(spec.receive_buffer);
        if check_buffer(send).is_err() || check_buffer(receive).is_err() {
            return Err(Error::Invalid);
        }
        if self.memory.saturating_add(send + receive) > spec.memory {
            return Err(Error::NoBufferSpace);
        }
        let headers = ip_header(remote) + 20;
        let setup = Setup {
            send,
            receive,
            nodelay: options.nodelay,
            segment: spec.mtu - headers,
            // RFC 9293, 3.7.1.
            default_segment: if remote.is_ipv4() { 536 } else { 1220 },
            options: (spec.mtu - headers).min(MOST_OPTIONS),
            burst: spec.tso.map(|most| most - headers),
            timestamps: spec.timestamps,
            sack: spec.sack,
            loss_probe: spec.loss_probe,
            delayed_ack: spec.delayed_ack,
            ack_segments: spec.ack_segments,
            initial_rto: spec.initial_rto,
            min_rto: spec.min_rto,
            max_rto: spec.max_rto,
            time_wait: spec.time_wait,
            timeout: spec.timeout,
            connect_timeout: spec.connect_timeout,
            initial_window: spec.initial_window as usize,
            congestion: spec.congestion,
        };
        while self.connections.is_full() {
            let oldest = self.late.pop_front().ok_or(Error::NoBufferSpace)?;
            self.remove(oldest);
        }
        Ok(setup)
    }

    /// Returns the initial sequence number of a connection that this host begins. It is a hash of both ends, plus a
    /// clock that counts every 4 us. So a later connection between the same ends has higher numbers (RFC 6528).
    fn first_number(&self, now: Time, local: SocketAddr, remote: SocketAddr) -> u32 {
        let word = |ip: IpAddr| match ip {
            IpAddr::V4(ip) => u128::from(u32::from(ip)),
            IpAddr::V6(ip) => u128::from(ip),
        };
        let ports = u64::from(local.port()) << 16 | u64::from(remote.port());
        let ends = [word(local.ip()), word(remote.ip())];
        let words = ends.into_iter().flat_map(|ip| [ip as u64, (ip >> 64) as u64]).chain([ports]);
        let hash = words.fold(mixed(self.spec.seed ^ 1), |hash, word| mixed(hash ^ word));
        (hash as u32).wrapping_add((now.ps() / 4_000_000) as u32)
    }

    /// Returns the random initial sequence number of a SYN-ACK. A SYN may arrive again after its connection has ended.
    /// Due to the random number, a late acknowledgement of the old connection does not establish the new connection.
    fn answering_number(&mut self) -> u32 {
        self.answered += 1;
        mixed(mixed(self.spec.seed ^ 2) ^ self.answered) as u32
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

    /// Frees the local port and the peer's address of a finished connection, so that a new connection can use them.
    fn detach(&mut self, flow: (u16, SocketAddr), id: ConnectionId) {
        if self.flows.get(&flow) == Some(&id) {
            self.flows.remove(&flow);
        }
    }

    /// Handles the changes of a connection: notifies its program and its listener, and updates the timers and the ready
    /// queue. `why` is the error of a connection that has failed.
    fn settle(&mut self, now: Time, id: ConnectionId, why: Option<Error>) {
        if self.late.len() > 2 * self.connections.len() {
            self.late.retain(|late| self.connections.get(late.0).is_some());
        }
        let Some(connection) = self.connections.get_mut(id.0) else { return };
        let counts = connection.tcb.take_counts();
        self.counters.recoveries += counts.recoveries;
        self.counters.timeouts += counts.timeouts;
        let (before, state) = (connection.last, connection.tcb.state());
        if before != state {
            connection.last = state;
            self.changed(id, before, state, why);
        }
        let Some(connection) = self.connections.get_mut(id.0) else { return };
        if connection.tcb.is_gone() {
            let flow = (connection.local.port(), connection.remote);
            return if connection.held { self.detach(flow, id) } else { self.remove(id) };
        }
        let leaves = state == State::FinWait2 && connection.is_orphan();
        connection.fin_at = leaves.then(|| connection.fin_at.unwrap_or(now + self.spec.fin_timeout));
        if state == State::TimeWait && connection.is_orphan() && connection.buffers > 0 {
            connection.tcb.release();
            self.memory -= std::mem::take(&mut connection.buffers);
            self.late.push_back(id);
        }
        if !connection.ready && connection.tcb.has_output() {
            make_ready(&mut self.ready, id, connection);
        }
        if let Some(due) = connection.due()
            && connection.armed.is_none_or(|armed| due < armed)
        {
            connection.armed = Some(due);
            self.timers.push(Reverse((due, id)));
        }
    }

    /// Adds the event for a connection's new state.
    fn changed(&mut self, id: ConnectionId, before: State, state: State, why: Option<Error>) {
        let Some(connection) = self.connections.get_mut(id.0) else { return };
        if before.is_handshake() && state.is_synchronized() {
            if let Some(listener) = connection.listener
                && let Some(entry) = self.listeners.get_mut(listener.0)
            {
                connection.is_begun = false;
                entry.begun -= 1;
                entry.queue.push_back(id);
                self.events.push_back(Event::Incoming(listener));
            } else if connection.held {
                self.events.push_back(Event::Connected(id));
            }
        }
        if state.has_finished() && !before.has_finished() && connection.held {
            self.events.push_back(Event::Finished(id));
        }
        if state != State::Closed {
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

/// Mixes a number so that every bit of the result depends on every bit of the number (SplitMix64).
fn mixed(seed: u64) -> u64 {
    let z = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
