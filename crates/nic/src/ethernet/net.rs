//! A host's network: the stack, the kernel threads that run it, and who waits for what.

use super::card::Card;
use super::softrings::SoftRing;
use super::spec::EthernetSpec;
use super::{stages, wire};
use nicety_host::threads::{Data, Group, Piece, Placement, Thread, Threads};
use nicety_kernel::{Either, Signal, Sim, race};
use nicety_stack::{ConnectionId, Error, Event, ListenerId, Network, Source, Stack, StackSpec};
use nicety_types::{MessageId, NodeId, Path, Time};
use rustc_hash::FxHashSet;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

/// The frame's number where none is meant, for transfers over the bus that belong to no frame.
pub(super) const NO_FRAME: u64 = u64::MAX;

/// A connection's state in the kernel, beside the stack's own.
pub(super) struct Connection {
    /// Its lines in caches.
    pub(super) data: Data,
    /// The thread that waits to read, or may.
    pub(super) reader: RefCell<Option<Thread>>,
    /// The thread that waits to write, or may.
    pub(super) writer: RefCell<Option<Thread>>,
    /// Up to what the stack has done with the last frame.
    pub(super) path: RefCell<Path>,
    /// Whether it is established.
    pub(super) connected: Cell<bool>,
    /// Why it is over.
    pub(super) failed: Cell<Option<Error>>,
}

/// The network of a host.
pub(super) struct Net {
    pub(super) sim: Sim,
    pub(super) spec: Arc<EthernetSpec>,
    pub(super) card: Rc<Card>,
    pub(super) threads: Threads,
    pub(super) stack: RefCell<Stack>,
    pub(super) rings: Vec<SoftRing>,
    connections: RefCell<BTreeMap<ConnectionId, Rc<Connection>>>,
    /// Threads that wait for connections to accept.
    pub(super) listeners: RefCell<BTreeMap<ListenerId, Thread>>,
    /// Ranks whose stations the stack knows.
    known: RefCell<FxHashSet<u32>>,
    /// When the timer's thread is to run.
    due: Cell<Option<Time>>,
    due_sooner: Signal,
}

impl Net {
    /// Starts the kernel's threads: those of interrupts, soft rings and timers.
    pub(super) fn start(sim: &Sim, spec: Arc<EthernetSpec>, card: Rc<Card>) -> Rc<Net> {
        let threads = Threads::new(sim, spec.threads, spec.cpus);
        let node = card.node;
        let stack = Stack::new(stack_spec(&spec, sim, node)).expect("the spec was checked when it was read");
        let rings =
            (0..spec.stack.rings).map(|_| SoftRing::new(threads.thread(Placement::Anywhere))).collect();
        let net = Rc::new(Net {
            sim: sim.clone(),
            card,
            threads,
            stack: RefCell::new(stack),
            rings,
            connections: RefCell::default(),
            listeners: RefCell::default(),
            known: RefCell::default(),
            due: Cell::new(None),
            due_sooner: Signal::new(sim),
            spec,
        });
        net.start_driver();
        for number in 0..net.rings.len() {
            sim.spawn(net.clone().serve_soft_ring(number));
        }
        let timer = net.threads.thread(Placement::Anywhere);
        sim.spawn(net.clone().watch_time(timer.clone()));
        sim.spawn(net.clone().serve_timer(timer));
        net
    }

    /// Does something with the stack at this instant.
    pub(super) fn with<T>(&self, act: impl FnOnce(&mut Stack, Time) -> T) -> T {
        act(&mut self.stack.borrow_mut(), self.sim.now())
    }

    /// The number for transfers over the bus that belong to no frame.
    pub(super) fn no_frame(&self) -> MessageId {
        MessageId { source: self.card.node, sequence: NO_FRAME }
    }

    /// A connection that the stack has.
    pub(super) fn connection(&self, id: ConnectionId) -> Option<Rc<Connection>> {
        if let Some(known) = self.connections.borrow().get(&id) {
            return Some(known.clone());
        }
        let is_there = self.stack.borrow().ends(id).is_ok();
        is_there.then(|| self.new_connection(id))
    }

    fn new_connection(&self, id: ConnectionId) -> Rc<Connection> {
        let lines = self.spec.stack.lines;
        let connection = Rc::new(Connection {
            data: Data::new(lines),
            reader: RefCell::default(),
            writer: RefCell::default(),
            path: RefCell::new(Path::clock(self.sim.now())),
            connected: Cell::new(false),
            failed: Cell::new(None),
        });
        self.connections.borrow_mut().insert(id, connection.clone());
        connection
    }

    /// What follows from something that was done with the stack: threads that wait are woken, frames that are ready are sent,
    /// and the timer is set. All of it is work of `thread`.
    pub(super) async fn follow(self: &Rc<Net>, thread: &Thread, path: &mut Path) {
        loop {
            let event = self.stack.borrow_mut().next_event();
            let Some(event) = event else { break };
            for woken in self.changed(event, path) {
                thread.wake(&woken, &mut path.clone()).await;
            }
        }
        self.output(thread, path).await;
        self.set_timer();
    }

    /// A socket has changed. Returns the threads to wake.
    fn changed(&self, event: Event, path: &Path) -> Vec<Thread> {
        match event {
            Event::Incoming(listener) => {
                self.listeners.borrow().get(&listener).cloned().into_iter().collect()
            }
            Event::Connected(id) => self.over(id, path, |connection| connection.connected.set(true)),
            Event::Finished(id) => self.over(id, path, |_| {}),
            Event::Failed(id, error) => {
                let woken = self.over(id, path, |connection| connection.failed.set(Some(error)));
                self.connections.borrow_mut().remove(&id);
                woken
            }
            Event::Closed(id) => {
                let woken = self.over(id, path, |_| {});
                self.connections.borrow_mut().remove(&id);
                woken
            }
            Event::Undeliverable(..) => Vec::new(),
        }
    }

    fn over(&self, id: ConnectionId, path: &Path, change: impl FnOnce(&Connection)) -> Vec<Thread> {
        let connections = self.connections.borrow();
        let Some(connection) = connections.get(&id) else { return Vec::new() };
        change(connection);
        connection.path.replace(path.clone());
        let threads = [&connection.reader, &connection.writer].map(|thread| thread.borrow().clone());
        threads.into_iter().flatten().collect()
    }

    /// Sends the frames that the stack has ready.
    async fn output(self: &Rc<Net>, thread: &Thread, path: &mut Path) {
        let mut frame = Vec::new();
        loop {
            let source = self.stack.borrow_mut().next_ready();
            let Some(source) = source else { return };
            let state = match source {
                Source::Connection(id) => self.connection(id),
                Source::Host | Source::Datagram(_) => None,
            };
            loop {
                let out = self.with(|stack, now| stack.transmit(now, source, &mut frame));
                let Some(out) = out else { break };
                let costs = &self.spec.stack;
                let work = if out.payload > 0 { costs.transmit } else { costs.acknowledge };
                let summed =
                    if self.spec.frames.checksums { 0 } else { self.lines(frame.len()) * costs.checksum };
                let data: Vec<&Data> = state.iter().map(|connection| &connection.data).collect();
                let piece = Piece::new(Group::Stack, work + summed).touching(&data);
                thread.run(piece, stages::STACK_OUT, path).await;
                thread.run(Piece::new(Group::Buffers, costs.buffer), stages::STACK_OUT, path).await;
                self.send(thread, &frame, out.needs_checksum, path).await;
            }
        }
    }

    /// Lines of so many bytes.
    pub(super) fn lines(&self, bytes: usize) -> u64 {
        (bytes as u64).div_ceil(self.spec.threads.caches.line)
    }

    /// Sets the timer to what the stack has to do next.
    pub(super) fn set_timer(&self) {
        let next = self.stack.borrow_mut().next_timer();
        let sooner = next.is_some_and(|next| self.due.get().is_none_or(|due| next < due));
        if sooner {
            self.due.set(next);
            self.due_sooner.notify_one();
        }
    }

    /// The clock of the kernel's timers: wakes their thread when something is due.
    async fn watch_time(self: Rc<Net>, timer: Thread) {
        loop {
            self.due_sooner.wait_until(|| self.due.get().is_some()).await;
            let Some(due) = self.due.get() else { continue };
            if let Either::Left(()) = race(self.sim.until(due), self.due_sooner.wait()).await {
                self.due.set(None);
                timer.interrupt();
            }
        }
    }

    /// The thread of the kernel's timers.
    async fn serve_timer(self: Rc<Net>, thread: Thread) {
        loop {
            thread.sleep().await;
            let mut path = Path::clock(self.sim.now());
            let piece = Piece::new(Group::Kernel, self.spec.stack.acknowledge);
            thread.run(piece, stages::STACK_OUT, &mut path).await;
            self.with(|stack, now| stack.on_timer(now));
            self.follow(&thread, &mut path).await;
        }
    }

    /// So many bytes more can be read from, and written to, a connection. Returns the threads to wake.
    pub(super) fn available(
        &self,
        id: ConnectionId,
        readable: usize,
        writable: usize,
        path: &Path,
    ) -> Vec<Thread> {
        let Some(connection) = self.connection(id) else { return Vec::new() };
        let mut threads = Vec::new();
        if readable > 0 {
            connection.path.replace(path.clone());
            threads.extend(connection.reader.borrow().clone());
        }
        if writable > 0 {
            threads.extend(connection.writer.borrow().clone());
        }
        threads
    }

    /// Makes a rank's station known, as a network's administrator does who enters all of them by hand.
    pub(super) fn know(&self, rank: u32) {
        if rank >= self.card.nodes || !self.known.borrow_mut().insert(rank) {
            return;
        }
        let mac = wire::station(NodeId(rank));
        let mut stack = self.stack.borrow_mut();
        stack.add_neighbour(wire::ipv4(rank).into(), mac);
        stack.add_neighbour(wire::ipv6(rank).into(), mac);
    }
}

fn stack_spec(spec: &EthernetSpec, sim: &Sim, node: NodeId) -> StackSpec {
    let EthernetSpec { frames, sockets, tcp, .. } = spec;
    StackSpec {
        mac: wire::station(node),
        ipv4: Some(Network { address: wire::ipv4(node.0), prefix: 8, gateway: None }),
        ipv6: Some(Network { address: wire::ipv6(node.0), prefix: 64, gateway: None }),
        mtu: frames.mtu as usize,
        min_rto: tcp.min_rto,
        delayed_ack: Some(tcp.delayed_ack),
        timeout: tcp.timeout,
        send_buffer: sockets.send_buffer as usize,
        receive_buffer: sockets.receive_buffer as usize,
        connections: sockets.connections as usize,
        checksum_offload: frames.checksums,
        seed: sim.rng("network stack").next_u64(),
        ..StackSpec::default()
    }
}
